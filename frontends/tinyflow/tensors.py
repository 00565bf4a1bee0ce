"""Tensors and operations: what a program of TensorFlow 1 holds in its hands.

A tensor is an entry of passkit's graph with a name; its shape and dtype are known at once.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from passkit.errors import DTypeError, GraphError
from passkit.frontends.tinyflow.graphs import Graph, get_default_graph
from passkit.frontends.tinyflow.ranks import known_shape
from passkit.frontends.tinyflow.shapes import (
    Dimension,
    TensorShape,
    UnknownShape,
    extents_of,
    shown,
)
from passkit.frontends.tinyflow.types import as_dtype
from passkit.graph.call import operate
from passkit.graph.node import Entry, Node, constant
from passkit.graph.op import get_op
from passkit.ops.helpers import make, size_as_entry
from passkit.values import arguments
from passkit.values.dtype import DType
from passkit.values.size import Size

Array = np.ndarray[Any, Any]
MOST_KNOWN = 64
"""A whole-number tensor with more elements is no shape."""


class Operation:
    """What runs for its effect: assignments, or a group of them. A run of it returns None."""

    def __init__(self, name: str, nodes: Sequence[Node], graph: Graph) -> None:
        self.name, self.nodes, self.graph = name, tuple(nodes), graph

    def run(self, feed_dict: Mapping[Any, Any] | None = None, session: Any = None) -> None:
        """Run it in a session, by default the one of the innermost `with`."""
        _session(session, f"operation '{self.name}'").run(self, feed_dict)

    def __repr__(self) -> str:
        return f"<tf.Operation '{self.name}'>"


def _session(given: Any, what: str) -> Any:
    from passkit.frontends.tinyflow.session import get_default_session  # it runs tensors

    found = get_default_session() if given is None else given
    if found is None:
        raise GraphError(
            f"{what} needs a session to run in, and none is the default; pass session=, or stand "
            f"within `with tf.Session() as sess`"
        )
    return found


def _infix(symbol: str, default: str, swap: bool = False) -> Callable[..., Tensor]:
    """The method of one of Python's operators; sizes are computed with before a run."""

    def method(self: Tensor, *others: Any, name: str | None = None) -> Tensor:
        sides = (*others, self) if swap else (self, *others)
        if symbol in _EXACT and name is None and self.dtype.is_integer:
            from passkit.frontends.tinyflow.deferring import call_later, is_unranked

            if any(map(is_unranked, sides)):  # a run may know the numbers
                given, full = {"self": self, "other": others[0]}, named(None, default)
                return call_later(by_name, given, [(None, self.dtype)], full)[0]
        known = [_numbers(s) for s in sides]
        if symbol in _EXACT and all(k is not None for k in known):
            value = np.asarray(_EXACT[symbol](*known), dtype=object)
            if value.size <= MOST_KNOWN:
                return known_tensor(value, self.dtype, name, default)
        entries = [operand(s, self.dtype) for s in sides]
        return wrapped(operate(symbol, *entries), named(name, default))

    def by_name(self: Tensor, other: Any, name: str) -> Tensor:
        return method(self, other, name=name)

    return method


def _numbers(side: Any) -> Any:
    if isinstance(side, Tensor):
        return side.known
    return np.asarray(side, dtype=object) if type(side) is int else None


_EXACT: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
}


class Tensor:
    """A value that a run computes.

    ``known`` holds the numbers of a small whole-number tensor, unknown sizes as expressions, so
    that shapes can be computed from it before a run.
    """

    def __init__(
        self,
        entry: Entry | None,
        name: str,
        graph: Graph,
        known: Array | None = None,
        index: int = 0,
        dtype: DType | None = None,
    ) -> None:
        self._entry, self._name, self.graph, self.known = entry, name, graph, known
        self._index, self._dtype = index, dtype

    @property
    def entry(self) -> Entry:
        """The entry of passkit's graph."""
        if self._entry is None:
            assert self.known is not None
            self._entry = _from_extents(self.known, self.dtype, self._name)
        return self._entry

    @property
    def name(self) -> str:
        """The name, with the number of the result: ``scope/MatMul:0``."""
        return f"{self._name}:{self._index}"

    @property
    def op(self) -> Operation:
        """The operation that computes it."""
        return Operation(self._name, [self.entry.node], self.graph)

    @property
    def dtype(self) -> DType:
        """The element type."""
        found = self._dtype or self.entry.dtype
        assert found is not None
        return found

    @property
    def device(self) -> str:
        """Where tf.device placed it; empty for the session's target."""
        return self.graph.devices.get(self.entry.node, ("", ""))[0]

    @property
    def shape(self) -> TensorShape:
        """The static shape; that of a tensor of unknown rank has no dimensions to ask for."""
        if self.known is not None:
            return TensorShape.of(self.known.shape)
        if self.entry.shape is None:
            return UnknownShape(self.name)
        return TensorShape.of(self.entry.shape)

    def get_shape(self) -> TensorShape:
        """The static shape."""
        return self.shape

    def set_shape(self, shape: Any) -> None:
        """State the shape, for what follows. Raises: GraphError when it contradicts what is known.

        Sizes that only a run knows are checked there.
        """
        wanted = extents_of(shape, f"set_shape of {self.name}")
        if self.entry.shape is None:
            from passkit.frontends.tinyflow.deferring import shaped

            self._entry = shaped(self, wanted)
            return
        found = known_shape(self.entry)
        merged = [m if n is None else n for m, n in zip(found, wanted, strict=False)]
        both_known = [
            (n, m) for n, m in zip(wanted, found, strict=False)
            if isinstance(n, int) and isinstance(m, int)
        ]
        if len(found) != len(wanted) or any(n != m for n, m in both_known):
            raise GraphError(
                f"set_shape of {self.name} needs a shape that fits {shown(found)}, got "
                f"{shown(wanted)}"
            )
        self._entry = make("reshape", self.entry, shape=tuple(merged))

    def eval(self, feed_dict: Mapping[Any, Any] | None = None, session: Any = None) -> Any:
        """Its value, run in a session, by default the one of the innermost `with`."""
        return _session(session, f"tensor '{self.name}'").run(self, feed_dict)

    def __getitem__(self, key: Any) -> Tensor:
        from passkit.frontends.tinyflow.deferring import call_later, is_unranked, tensors_of

        if any(map(is_unranked, tensors_of((self, key)))):
            given, kind = {"tensor": self, "key": key}, [(None, self.dtype)]
            return call_later(_item, given, kind, named(None, "strided_slice"))[0]
        return self._part(key, None)

    def _part(self, key: Any, name: str | None) -> Tensor:
        keys = key if isinstance(key, tuple) else (key,)
        whole = tuple(_index(k) for k in keys)
        if self.known is not None and all(isinstance(k, (int, slice)) for k in whole):
            known = np.asarray(self.known[whole], dtype=object)
            return known_tensor(known, self.dtype, name, "strided_slice")
        return wrapped(self.entry[whole], named(name, "strided_slice"))

    def __iter__(self) -> Iterator[Tensor]:
        raise GraphError(f"{self.name} cannot be iterated before a run; tf.unstack takes it apart")

    def __bool__(self) -> bool:
        raise GraphError(f"{self.name} has no value before a run; tf.where chooses of two tensors")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise GraphError(f"{self.name} has no value before it runs; session.run(tensor) gives it")

    __add__, __radd__ = _infix("+", "add"), _infix("+", "add", swap=True)
    __sub__, __rsub__ = _infix("-", "sub"), _infix("-", "sub", swap=True)
    __mul__, __rmul__ = _infix("*", "mul"), _infix("*", "mul", swap=True)
    __truediv__, __rtruediv__ = _infix("/", "truediv"), _infix("/", "truediv", swap=True)
    __floordiv__, __rfloordiv__ = _infix("//", "floordiv"), _infix("//", "floordiv", swap=True)
    __mod__, __rmod__ = _infix("%", "mod"), _infix("%", "mod", swap=True)
    __pow__, __rpow__ = _infix("**", "pow"), _infix("**", "pow", swap=True)
    __matmul__, __rmatmul__ = _infix("@", "matmul"), _infix("@", "matmul", swap=True)
    __and__, __rand__ = _infix("&", "and"), _infix("&", "and", swap=True)
    __or__, __ror__ = _infix("|", "or"), _infix("|", "or", swap=True)
    __xor__, __rxor__ = _infix("^", "xor"), _infix("^", "xor", swap=True)
    __lt__, __le__ = _infix("<", "Less"), _infix("<=", "LessEqual")
    __gt__, __ge__ = _infix(">", "Greater"), _infix(">=", "GreaterEqual")
    __neg__, __abs__ = _infix("neg", "Neg"), _infix("abs", "Abs")
    __invert__ = _infix("~", "LogicalNot")

    __array_ufunc__ = None  # np.float32(2) * tensor must come here, not become an object array

    def __repr__(self) -> str:
        ranked = self.known is not None or self.entry.shape is not None
        text = shown(d.extent for d in self.shape) if ranked else "<unknown>"
        return f"<tf.Tensor '{self.name}' shape={text} dtype={self.dtype}>"


def _item(tensor: Tensor, key: Any, name: str) -> Tensor:
    """``tensor[key]``, of a name."""
    return tensor._part(key, name)


def _index(key: Any) -> Any:
    """One part of an index, with known tensors and dimensions as numbers."""
    if isinstance(key, slice):
        return slice(_index(key.start), _index(key.stop), _index(key.step))
    known = getattr(key, "known", None)
    if known is not None and known.ndim == 0:
        return known[()]
    if isinstance(key, Tensor):
        return key.entry
    return int(key) if hasattr(key, "extent") else key


class HostTensor(Tensor):
    """What the host makes of fetched tensors after a run: text, summaries. It has no entry."""

    def __init__(
        self, sources: Sequence[Tensor], function: Callable[..., Any], name: str, graph: Graph
    ) -> None:
        super().__init__(None, name, graph)
        self.sources, self.function = tuple(sources), function

    @property
    def entry(self) -> Entry:
        """Raises: DTypeError: text cannot be computed with."""
        raise DTypeError(
            f"{self.name} is text, which only session.run can fetch; operators take numbers"
        )

    @property
    def op(self) -> Operation:
        """The operation that computes what it is made of."""
        return Operation(self._name, [n for s in self.sources for n in s.op.nodes], self.graph)

    @property
    def shape(self) -> TensorShape:
        """The static shape: a scalar's."""
        return TensorShape()

    def __repr__(self) -> str:
        return f"<tf.Tensor '{self.name}' shape=() dtype=string>"


# from values to entries


def read(value: Any, dtype: Any = None) -> Entry:
    """The entry of a tensor, or of a constant; Python numbers are float32 and int32.

    Raises: DTypeError when a tensor has another dtype than the one asked for.
    """
    wanted = None if dtype is None else as_dtype(dtype)
    if isinstance(value, Tensor):
        entry = value.entry
        if wanted is not None and entry.dtype is not wanted:
            raise DTypeError(
                f"{value.name} needs to be {wanted} here, got {entry.dtype}; tf.cast converts it"
            )
        return entry
    if isinstance(value, Entry):
        return value
    return constant(_array(value, wanted))


def _array(value: Any, wanted: DType | None) -> Any:
    """Numbers as an array. Tensors among them are refused. Raises: DTypeError for text."""
    array = arguments.numbers("a tensor's value", value, None if wanted is None else wanted.numpy)
    if wanted is not None:
        return array
    if not isinstance(value, (np.ndarray, np.generic)) and array.dtype.kind in "if":
        return array.astype(np.float32 if array.dtype.kind == "f" else np.int32)
    return array


def scalar(tensor: Tensor) -> Entry:
    """The entry of a tensor that stands for one number; of unknown rank, a run checks that it is.

    Such are the probabilities, learning rates and flags that a program feeds.
    """
    if tensor.known is None and tensor.entry.shape is None:
        found: Entry = make("reshape", tensor.entry, shape=())
        return found
    return tensor.entry


def tensors_in(value: Any) -> bool:
    """Whether a list holds tensors, so that it is to be stacked."""
    return isinstance(value, (list, tuple)) and any(
        isinstance(v, Tensor) or tensors_in(v) for v in value
    )


def operand(value: Any, like: DType | None) -> Any:
    """An operand beside one of dtype ``like``: numbers are weak, arrays take that dtype."""
    if isinstance(value, Tensor):
        return value.entry
    if isinstance(value, (bool, int, float)) and not isinstance(value, np.generic):
        return value
    if isinstance(value, Dimension):
        return operator.index(value)
    if isinstance(value, Entry):
        return value
    if tensors_in(value):
        return make("stack", *(read(v, like) for v in value))
    array = arguments.numbers("an operand", value)
    if like is not None and np.can_cast(array.dtype, like.numpy, "same_kind"):
        return constant(array, like)
    return constant(array)


def both(x: Any, y: Any) -> list[Any]:
    """Two operands, the dtype of a tensor among them for the other."""
    like = next((v.dtype for v in (x, y) if isinstance(v, Tensor)), None)
    sides = [operand(v, like) for v in (x, y)]
    return sides if any(isinstance(s, Entry) for s in sides) else [read(x), sides[1]]


def convert_to_tensor(value: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """A tensor as it is; numbers, arrays and lists as a constant."""
    if isinstance(value, Tensor):
        read(value, dtype)
        return value
    if tensors_in(value):
        return made("stack", "packed", name, *(read(v, dtype) for v in value))
    return wrapped(read(value, dtype), named(name, "Const"), known=_known(value))


def _known(value: Any) -> Array | None:
    """The numbers of a small whole-number constant."""
    array = np.asarray(value)
    if array.dtype.kind in "iu" and array.size <= MOST_KNOWN:
        return array.astype(object)
    return None


# from entries to tensors


def named(name: str | None, default: str) -> str:
    """A name of its own under the scope in force.

    One that ends in a slash is taken as it is, as tf.name_scope gives it.
    """
    if name is not None:
        arguments.text("name", name)
    if name and name.endswith("/"):
        return name[:-1]
    return get_default_graph().unique(name or default)


def wrapped(
    entry: Entry, name: str, known: Array | None = None, index: int = 0, control: bool = True
) -> Tensor:
    """An entry as a tensor of the default graph, after what control_dependencies asks for."""
    graph = get_default_graph()
    if control and graph.controls and entry.node.control[-1:] != graph.controls[-1:]:
        entry = get_op("identity")(entry, name=name, control=graph.controls)
    if graph.device:
        graph.devices[entry.node] = (graph.device, f"{name}:{index}")
    return Tensor(entry, name, graph, known, index)


def made(op: str, default: str, name: str | None, *inputs: Any, **params: Any) -> Tensor:
    """The tensor of a call of an operator of one result."""
    full = named(name, default)
    controls = get_default_graph().controls
    return wrapped(get_op(op)(*inputs, name=full, control=controls, **params), full)


def known_tensor(known: Array, dtype: DType, name: str | None, default: str) -> Tensor:
    """A tensor of numbers and sizes that are known before a run."""
    return Tensor(None, named(name, default), get_default_graph(), known, dtype=dtype)


def _from_extents(known: Array, dtype: DType, name: str) -> Entry:
    """Numbers, and sizes that a run tells."""
    flat = known.ravel().tolist()
    if not any(isinstance(n, Size) for n in flat):
        return constant(np.array(flat, dtype.numpy).reshape(known.shape), dtype, name)
    parts = [make("reshape", size_as_entry(n), shape=(1,)) for n in flat]
    whole = make("concat", *parts, axis=0) if len(parts) > 1 else parts[0]
    found: Entry = make("cast", make("reshape", whole, shape=known.shape), dtype=dtype.name)
    return found
