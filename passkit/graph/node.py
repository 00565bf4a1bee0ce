"""Nodes and entries: what graphs consist of.

A node says what is computed, an entry is one of its results. Both are immutable and compare by
identity. Shape and dtype of an entry are found when its node is made, as far as they are known.
Variables and constants are made here; the other nodes by calling operators: `passkit.graph.call`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType, NoneType
from typing import TYPE_CHECKING, Any

import numpy as np

from passkit.errors import ArgumentError, DTypeError, GraphError, ShapeError
from passkit.graph.infer import infer_dtypes, infer_shapes, show_shape
from passkit.graph.op import REQUIRED, Op, register_op
from passkit.values import arguments
from passkit.values.dtype import DType, dtype_of
from passkit.values.lazy import Lazy
from passkit.values.size import Extent, Shape, Size

if TYPE_CHECKING:
    from passkit.graph import call, copying
else:
    call = Lazy("passkit.graph.call")
    copying = Lazy("passkit.graph.copying")


def _operator(symbol: str, swap: bool = False) -> Callable[..., Entry]:
    def method(self: Entry, *others: Any) -> Entry:
        sides = (*others, self) if swap else (self, *others)
        return call.operate(symbol, *sides)

    return method


class Entry:
    """One result of a node. ``==`` is identity; `pk.ops.equal` compares values."""

    __slots__ = ("dtype", "index", "node", "shape")

    node: Node
    index: int
    shape: Shape | None
    dtype: DType | None

    def __init__(
        self, node: Node, index: int, shape: Shape | None = None, dtype: DType | None = None
    ) -> None:
        if not isinstance(node, Node):
            arguments.refuse("Entry: node", node, "a Node; calling operators makes entries")
        if type(index) is not int or index < 0:
            arguments.count("Entry: index", index, 0)
        if not isinstance(shape, (tuple, NoneType)):
            arguments.refuse("Entry: shape", shape, "a tuple of sizes or None")
        if not isinstance(dtype, (DType, NoneType)):
            arguments.refuse("Entry: dtype", dtype, "a DType or None")
        object.__setattr__(self, "node", node)
        object.__setattr__(self, "index", index)
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "dtype", dtype)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"an Entry is immutable; cannot set {name!r}")

    @property
    def ndim(self) -> int:
        """The rank. Raises: ShapeError when it is unknown."""
        return len(known_shape(self))

    @property
    def name(self) -> str:
        """The node's name, with the output's number where there are several."""
        many = len(self.node.entries) > 1
        return f"{self.node.label}:{self.index}" if many else self.node.label

    def __copy__(self) -> Entry:
        return self  # it is immutable

    def __deepcopy__(self, memo: dict[int, Any]) -> Entry:
        return copying.deep(self.node, memo).entries[self.index]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled is all that it is computed from; two of them that are to share it, as a Graph."""
        return copying.entry_of, (copying.written((self,)), 0)

    def __repr__(self) -> str:
        shape = "?" if self.shape is None else ",".join(map(str, self.shape))
        return f"Entry({self.name}: {self.dtype}[{shape}])"

    def __bool__(self) -> bool:
        raise GraphError(
            f"{self.name} has no value before the graph runs; use pk.ops.where for choices"
        )

    def __iter__(self) -> Iterator[Entry]:
        raise GraphError(f"{self.name} cannot be iterated; use pk.ops.slice or pk.ops.split")

    __add__, __radd__ = _operator("+"), _operator("+", swap=True)
    __sub__, __rsub__ = _operator("-"), _operator("-", swap=True)
    __mul__, __rmul__ = _operator("*"), _operator("*", swap=True)
    __truediv__, __rtruediv__ = _operator("/"), _operator("/", swap=True)
    __floordiv__, __rfloordiv__ = _operator("//"), _operator("//", swap=True)
    __mod__, __rmod__ = _operator("%"), _operator("%", swap=True)
    __pow__, __rpow__ = _operator("**"), _operator("**", swap=True)
    __matmul__, __rmatmul__ = _operator("@"), _operator("@", swap=True)
    __and__, __rand__ = _operator("&"), _operator("&", swap=True)
    __or__, __ror__ = _operator("|"), _operator("|", swap=True)
    __xor__, __rxor__ = _operator("^"), _operator("^", swap=True)
    __lt__ = _operator("<")
    __le__ = _operator("<=")
    __gt__ = _operator(">")
    __ge__ = _operator(">=")
    __neg__ = _operator("neg")
    __invert__ = _operator("~")
    __abs__ = _operator("abs")
    __getitem__ = _operator("[]")

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise GraphError(
            f"{self.name} has no value before the graph runs, so NumPy cannot make an array of it; "
            f"use operators of pk.ops, or compile a graph of it and call that"
        )

    __array_ufunc__ = None  # np.float32(2) * entry must come here, not become an object array


_ENTRIES = frozenset({Entry})


class Node:
    """An application of an operator, or a variable when ``op`` is None.

    ``params`` hold what the op needs to know, ``control`` the nodes that must run before.
    """

    __slots__ = ("__weakref__", "control", "entries", "inputs", "name", "op", "params")

    op: Op | None
    inputs: tuple[Entry, ...]
    params: Mapping[str, Any]
    name: str
    control: tuple[Node, ...]
    entries: tuple[Entry, ...]

    def __init__(
        self,
        op: Op | None,
        inputs: Iterable[Entry] = (),
        params: Mapping[str, Any] | None = None,
        name: str = "",
        control: Iterable[Node] = (),
    ) -> None:
        if not isinstance(op, (Op, NoneType)):
            arguments.refuse("Node: op", op, "an Op, as pk.get_op gives one, or None")
        arguments.text("Node: name", name)
        inputs = tuple(inputs) if type(inputs) is list else inputs
        if type(inputs) is not tuple or not _ENTRIES.issuperset(map(type, inputs)):
            inputs = arguments.sequence("Node: inputs", inputs, Entry, "a sequence of entries")
        if type(control) is not tuple or control:
            control = tuple(control) if isinstance(control, dict) else control  # an ordered set
            control = arguments.sequence("Node: control", control, Node, "a sequence of nodes")
        if params is None or type(params) not in (dict, MappingProxyType):
            params = arguments.mapping("Node: params", params, "a mapping of names to values")
        put = object.__setattr__
        put(self, "op", op)
        put(self, "inputs", inputs)
        put(self, "params", MappingProxyType(dict(params)))
        put(self, "name", name)
        put(self, "control", control)
        shapes, dtypes = _facts(self)
        put(
            self,
            "entries",
            tuple(
                Entry(self, k, s, d) for k, (s, d) in enumerate(zip(shapes, dtypes, strict=True))
            ),
        )

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Node is immutable; cannot set {name!r}")

    @property
    def label(self) -> str:
        """The name, or the op's name where none was given."""
        return self.name or (self.op.name if self.op else "variable")

    @property
    def where(self) -> str:
        """How messages call this node: operator and name."""
        if self.op is None:
            return f"variable '{arguments.shortened(self.name)}'"
        name = arguments.shortened(self.name)
        return f"{self.op.name} '{name}'" if name else self.op.name

    @property
    def is_variable(self) -> bool:
        """Whether this is an input or a state variable."""
        return self.op is None

    def replaced(
        self,
        inputs: Iterable[Entry] | None = None,
        control: Iterable[Node] | None = None,
        name: str | None = None,
    ) -> Node:
        """This node with other inputs, control dependences or name."""
        return Node(
            self.op,
            self.inputs if inputs is None else inputs,
            self.params,
            self.name if name is None else name,
            self.control if control is None else control,
        )

    def alone(self, inputs: tuple[Entry, ...]) -> Node:
        """This node by itself: without its name, and without what must run before it.

        Where ``inputs`` have the shapes and dtypes of its own, nothing is inferred again.
        """
        pairs = zip(inputs, self.inputs, strict=True)
        if not all(a.shape == b.shape and a.dtype is b.dtype for a, b in pairs):
            return Node(self.op, inputs, self.params)
        made, put = self.seen(inputs), object.__setattr__
        put(made, "name", "")
        put(made, "control", ())
        put(made, "entries", tuple(Entry(made, e.index, e.shape, e.dtype) for e in self.entries))
        return made

    def seen(self, inputs: Iterable[Entry], entries: Iterable[Entry] | None = None) -> Node:
        """This node as a rule is to see it: with other inputs, or results, of the same values.

        Its results are those of this node unless ``entries`` are given, so it is no part of a
        graph.
        """
        view = object.__new__(Node)
        for name in ("op", "params", "name", "control"):
            object.__setattr__(view, name, getattr(self, name))
        object.__setattr__(view, "inputs", tuple(inputs))
        object.__setattr__(view, "entries", self.entries if entries is None else tuple(entries))
        return view

    def __copy__(self) -> Node:
        return self  # it is immutable

    def __deepcopy__(self, memo: dict[int, Any]) -> Node:
        return copying.deep(self, memo)

    def __reduce__(self) -> tuple[Any, ...]:
        return copying.node_of, (copying.written(self.entries[:1]),)

    def __repr__(self) -> str:
        return f"Node({self.where})"


def _facts(node: Node) -> tuple[Sequence[Shape | None], Sequence[DType | None]]:
    if node.op is None:
        shape = node.params.get("shape")
        _check_elements(node, shape)
        return (shape,), (node.params.get("dtype"),)
    shapes = [e.shape for e in node.inputs]
    dtypes = [e.dtype for e in node.inputs]
    found = infer_shapes(node, shapes)
    for shape in found:
        if not any(shape is s for s in shapes):
            _check_elements(node, shape)
    return found, infer_dtypes(node, dtypes)


MOST_ELEMENTS = 1 << 59
"""Elements of an array: its bytes, 16 each at most, must be a number of 63 bits."""


def _check_elements(node: Node, shape: Shape | None) -> None:
    """Refuse a shape that no array can have, as far as its extents are known.

    Raises: ShapeError with the number of elements.
    """
    count = 1
    for n in shape or ():
        if isinstance(n, int):
            count *= n or 1  # as NumPy has it, also where the array is empty
    if count > MOST_ELEMENTS:
        raise ShapeError(
            f"{node.where}: the extents of shape {show_shape(shape)} multiply to {count} elements "
            f"or more; the most that can be addressed are {MOST_ELEMENTS}"
        )


def var(
    name: str, shape: Sequence[int | str | Size | None] | None = None, dtype: Any = "float32"
) -> Entry:
    """An input. A dimension of None or a name is unknown; equal names are equal sizes.

    Shape None leaves even the rank open, for InferShape to find.
    """
    arguments.text("var: name", name)
    found = None
    if shape is not None:
        need = "a sequence of sizes (numbers, names or None), or None"
        sizes = arguments.sequence(f"var '{name}': shape", shape, object, need)
        found = tuple(_extent(d, name, k) for k, d in enumerate(sizes))
    params = {"shape": found, "dtype": None if dtype is None else dtype_of(dtype)}
    return Node(None, (), params, name).entries[0]


def state(name: str, value: Any) -> Entry:
    """A variable that keeps its value between calls; `assign` writes it.

    ``value`` is the initial array, or (shape, dtype) for one that starts unset.
    """
    arguments.text("state: name", name)
    if isinstance(value, tuple) and len(value) == 2 and not np.isscalar(value[0]):
        sizes = arguments.sequence(f"state '{name}': shape", value[0], (int, np.integer))
        shape = tuple(arguments.count(f"state '{name}': a size", n, 0) for n in sizes)
        dtype, initial = dtype_of(value[1]), None
    else:
        initial = arguments.numbers(f"state '{name}': value", value)
        shape, dtype = initial.shape, dtype_of(initial.dtype)
        initial.flags.writeable = False
    params = {"shape": shape, "dtype": dtype, "state": True, "initial": initial}
    return Node(None, (), params, name).entries[0]


def _extent(d: Any, name: str, axis: int) -> Extent:
    if d is None:
        return Size.symbol(f"{name}.{axis}")
    if isinstance(d, Size):
        return d
    if isinstance(d, str):
        if not d.isidentifier():
            raise ShapeError(f"variable '{name}': a size's name must be an identifier, got {d!r}")
        return Size.symbol(d)
    if isinstance(d, (int, np.integer)) and d >= 0 and not isinstance(d, bool):
        return int(d)
    raise ShapeError(
        f"variable '{name}': dimension {axis} must be an int >= 0, a name or None, got {d!r}"
    )


def _constant_shape(node: Node) -> Shape:
    value = node.params["value"]
    if not isinstance(value, np.ndarray):
        raise GraphError(
            f"{node.where} needs a NumPy array as value, got {value!r}; pk.constant makes one"
        )
    return tuple(value.shape)


CONSTANT = register_op(
    "constant", num_inputs=0, params={"value": REQUIRED}, doc="A fixed array, in `value`."
)
CONSTANT.set_attr("TParameters", {"value": ("np.ndarray[Any, Any]", "the array, which is frozen")})
CONSTANT.set_attr("FInferShape", _constant_shape)
CONSTANT.set_attr("FInferType", lambda node: dtype_of(node.params["value"].dtype))
CONSTANT.set_attr("FCompute", lambda node: node.params["value"])


AS_READ = register_op(
    "as_read", doc="A state variable's value at the time when the node it comes after read it."
)
AS_READ.set_attr("FInferShape", lambda node, shape: shape)
AS_READ.set_attr("FInferType", lambda node, dtype: dtype)
AS_READ.set_attr("FCompute", lambda node, x: x)
AS_READ.set_attr("FGradient", lambda node, dy: [dy])


def is_state(entry: Entry) -> bool:
    """Whether an entry is a variable that keeps its value between calls."""
    return entry.node.op is None and bool(entry.node.params.get("state"))


def as_read(entry: Entry, by: Node) -> Entry:
    """A state variable as ``by`` read it, whatever was written since."""
    return Node(AS_READ, (entry,), name=entry.node.name, control=(by,)).entries[0]


def constant(value: Any, dtype: Any = None, name: str = "") -> Entry:
    """A constant entry; the array is copied and frozen."""
    arguments.text("constant: name", name)
    wanted = None if dtype is None else dtype_of(dtype).numpy
    array = arguments.numbers("constant: value", value, wanted)
    dtype_of(array.dtype)
    array.flags.writeable = False
    return Node(CONSTANT, (), {"value": array}, name).entries[0]


def as_entry(value: Any) -> Entry:
    """An entry as it is; a number or array as a constant.

    Raises: GraphError for a tuple of entries, DTypeError for a kernel expression, ArgumentError for
    anything else.
    """
    if isinstance(value, Entry):
        return value
    if isinstance(value, tuple) and value and isinstance(value[0], Entry):
        raise GraphError(
            f"{value[0].node.where} has {len(value)} results and one is needed here; index it"
        )
    try:
        return constant(value)
    except ArgumentError:
        from passkit.ast import Expr  # takes a third of a warm start, and only errors need it

        if isinstance(value, Expr):
            raise DTypeError(
                f"operators take entries, got an expression ({type(value).__name__} of "
                f"{value.dtype}); FCodeGen and FElement compute with expressions by pk.ast: "
                f"pk.ast.exp(x) in place of pk.ops.exp(x)"
            ) from None
        raise


def known_shape(entry: Entry) -> Shape:
    """The shape of an entry. Raises: ShapeError when its rank is not known yet."""
    if entry.shape is None:
        raise ShapeError(f"the rank of {entry.name} is not known here; give its variables a shape")
    return entry.shape
