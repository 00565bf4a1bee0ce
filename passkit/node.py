"""Nodes and entries: what calling an operator makes.

A node says what is computed, an entry is one of its results. Both are immutable and compare by
identity. Shape and dtype of an entry are found when its node is made, as far as they are known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from types import MappingProxyType
from typing import Any

import numpy as np

from passkit.dtype import DType, dtype_of, promote, weak_scalar
from passkit.errors import DTypeError, GraphError, RegistryError, ShapeError, nearest
from passkit.infer import infer_dtypes, infer_shapes
from passkit.op import (
    REQUIRED,
    FListInputNames,
    FOperator,
    Op,
    TOperator,
    get_op,
    register_op,
)
from passkit.size import Extent, Shape, Size


def _operator(symbol: str, swap: bool = False) -> Callable[..., Entry]:
    def method(self: Entry, *others: Any) -> Entry:
        sides = (*others, self) if swap else (self, *others)
        return operate(symbol, *sides)

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

    __array_ufunc__ = None  # np.float32(2) * entry must come here, not become an object array


def operate(symbol: str, *sides: Any) -> Entry:
    """What a Python operator means: the op whose TOperator is ``symbol``, dtypes promoted.

    An op with FOperator reads the operands in its own way, as indexing does.

    Raises: RegistryError when no registered operator implements it.
    """
    op = find_operator(symbol)
    own = FOperator.get(op.name)
    if own is not None:
        return own(*sides)  # type: ignore[no-any-return]
    return op(*promote_operands(symbol, sides))  # type: ignore[no-any-return]


def find_operator(symbol: str) -> Op:
    """The op that implements a Python operator or protocol, by its TOperator."""
    for name, row in TOperator.rows.items():
        if row.value == symbol:
            return get_op(name)
    raise RegistryError(
        f"no operator implements '{symbol}'; import passkit.ops, or set TOperator on one of yours"
    )


def promote_operands(what: str, sides: Iterable[Any]) -> list[Entry]:
    """The operands as entries of one dtype, with casts where they differ (NumPy 2's rules)."""
    sides = list(sides)
    arrays = [as_entry(s) for s in sides if not _is_weak(s)]
    if not arrays:
        raise DTypeError(f"'{what}' needs an entry or array, got {sides!r}")
    known = [e.dtype for e in arrays if e.dtype is not None]
    if not known:
        return [as_entry(s) for s in sides]
    wanted = known[0]
    for d in known[1:]:
        wanted = promote(wanted, d)
    for s in sides:
        if _is_weak(s):
            wanted = weak_scalar(s, wanted)
    found = iter(arrays)
    return [constant(s, wanted) if _is_weak(s) else convert(next(found), wanted) for s in sides]


def convert(entry: Entry, wanted: DType) -> Entry:
    """``entry`` with dtype ``wanted``, through the op that implements "cast"."""
    if entry.dtype is wanted or entry.dtype is None:
        return entry
    return find_operator("cast")(entry, dtype=wanted.name)  # type: ignore[no-any-return]


def _is_weak(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic)


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
        put = object.__setattr__
        put(self, "op", op)
        put(self, "inputs", tuple(inputs))
        put(self, "params", MappingProxyType(dict(params or {})))
        put(self, "name", name)
        put(self, "control", tuple(control))
        shapes, dtypes = _facts(self)
        put(
            self,
            "entries",
            tuple(
                Entry(self, k, s, d)
                for k, (s, d) in enumerate(zip(shapes, dtypes, strict=True))
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
            return f"variable '{self.name}'"
        return f"{self.op.name} '{self.name}'" if self.name else self.op.name

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

    def __repr__(self) -> str:
        return f"Node({self.where})"


def var(
    name: str, shape: Sequence[int | str | None] | None = None, dtype: Any = "float32"
) -> Entry:
    """An input. A dimension of None or a name is unknown; equal names are equal sizes.

    Shape None leaves even the rank open, for InferShape to find.
    """
    found = None if shape is None else tuple(_extent(d, name, k) for k, d in enumerate(shape))
    params = {"shape": found, "dtype": None if dtype is None else dtype_of(dtype)}
    return Node(None, (), params, name).entries[0]


def state(name: str, value: Any) -> Entry:
    """A variable that keeps its value between calls; `assign` writes it.

    ``value`` is the initial array, or (shape, dtype) for one that starts unset.
    """
    if isinstance(value, tuple) and len(value) == 2 and not np.isscalar(value[0]):
        shape, dtype, initial = tuple(value[0]), dtype_of(value[1]), None
    else:
        initial = np.array(value)
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


CONSTANT = register_op(
    "constant", num_inputs=0, params={"value": REQUIRED}, doc="A fixed array, in `value`."
)
CONSTANT.set_attr("FInferShape", lambda node: node.params["value"].shape)
CONSTANT.set_attr("FInferType", lambda node: dtype_of(node.params["value"].dtype))
CONSTANT.set_attr("FCompute", lambda node: node.params["value"])


def constant(value: Any, dtype: Any = None, name: str = "") -> Entry:
    """A constant entry; the array is copied and frozen."""
    array = np.array(value, dtype=None if dtype is None else dtype_of(dtype).numpy)
    dtype_of(array.dtype)
    array.flags.writeable = False
    return Node(CONSTANT, (), {"value": array}, name).entries[0]


def as_entry(value: Any) -> Entry:
    """An entry as it is; a number or array as a constant.

    Raises: GraphError for a tuple of entries and DTypeError for what is no array.
    """
    if isinstance(value, Entry):
        return value
    if isinstance(value, tuple) and value and isinstance(value[0], Entry):
        raise GraphError(
            f"{value[0].node.where} has {len(value)} results and one is needed here; index it"
        )
    return constant(value)


def apply(
    op: Op, inputs: Sequence[Any], params: Mapping[str, Any], name: str, control: Sequence[Node]
) -> Node:
    """Make a node of ``op``, with its inputs and parameters checked.

    Raises: GraphError on a wrong number of inputs or an unknown parameter.
    """
    where = f"{op.name} '{name}'" if name else op.name
    inputs, given = _positional(op, inputs, params, where)
    names = _input_names(op, given)
    by_name = {k: given.pop(k) for k in list(given) if k in names and k not in op.params}
    for key in given:
        if key not in op.params:
            hint = nearest(key, [*op.params, *names]) if op.params or names else "it takes none"
            raise GraphError(f"{where} has no parameter {key!r}; {hint}")
    full = {k: plain(given.get(k, default)) for k, default in op.params.items()}
    for key, value in full.items():
        if value is REQUIRED:
            raise GraphError(f"{where} needs the parameter {key!r}")
        check_param(where, key, value, op.params[key])
    if names and len(inputs) > len(names):
        raise GraphError(f"{where} takes {', '.join(names)}, got {len(inputs)} inputs")
    if names and (by_name or len(inputs) < len(names)):
        inputs = _complete(op, inputs, by_name, names, name or op.name)
    if op.num_inputs not in (-1, len(inputs)):
        raise GraphError(f"{where} takes {op.num_inputs} input(s), got {len(inputs)}")
    return Node(op, _same_dtype(inputs), full, name, control)


def _positional(
    op: Op, inputs: Sequence[Any], params: Mapping[str, Any], where: str
) -> tuple[Sequence[Any], dict[str, Any]]:
    """Inputs and parameters of a call: parameters may follow the inputs by position.

    An op of any number of inputs takes them one by one or as one sequence.
    """
    given = dict(params)
    rest: Sequence[Any] = ()
    if op.num_inputs is not None and op.num_inputs >= 0:
        inputs, rest = inputs[: op.num_inputs], inputs[op.num_inputs :]
    elif inputs and isinstance(inputs[0], (list, tuple)):
        inputs, rest = inputs[0], inputs[1:]
    if len(rest) > len(op.params) or any(isinstance(x, Entry) for x in rest):
        raise GraphError(
            f"{where} takes {len(inputs)} input(s), got {len(inputs) + len(rest)}"
        )
    for key, value in zip(op.params, rest, strict=False):
        if key in given:
            raise GraphError(f"{where}: parameter {key!r} is given twice")
        given[key] = value
    return inputs, given


def check_param(where: str, key: str, value: Any, default: Any) -> None:
    """Make sure that a parameter is of its default's type, where that is bool, float or str.

    Raises: GraphError naming the type that is needed.
    """
    for kind, fits in ((bool, bool), (float, (int, float)), (str, str)):
        if type(default) is kind and (
            not isinstance(value, fits) or (kind is float and isinstance(value, bool))
        ):
            raise GraphError(f"{where} needs a {kind.__name__} as {key}, got {value!r}")


def plain(value: Any) -> Any:
    """A parameter as text and JSON write it: tuples, Python numbers, dtypes by name."""
    if isinstance(value, (list, tuple)):
        return tuple(plain(v) for v in value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (DType, np.dtype)) or (
        isinstance(value, type) and issubclass(value, (np.generic, bool, int, float))
    ):
        return dtype_of(value).name
    return value


def _input_names(op: Op, params: Mapping[str, Any]) -> list[str]:
    lister = FListInputNames.get(op.name)
    return list(lister({**op.params, **params})) if lister else []


def _complete(
    op: Op, inputs: Sequence[Any], by_name: Mapping[str, Any], names: list[str], prefix: str
) -> list[Any]:
    """Named inputs put in order; a missing one becomes a variable `<node>_<arg>` (NNVM)."""
    filled = dict(zip(names, inputs, strict=False))
    for key, value in by_name.items():
        if key in filled:
            raise GraphError(f"{op.name} '{prefix}': input {key!r} is given twice")
        filled[key] = value
    like = next((v.dtype for v in filled.values() if isinstance(v, Entry)), None)
    return [filled[n] if n in filled else var(f"{prefix}_{n}", None, like) for n in names]


def _same_dtype(inputs: Sequence[Any]) -> list[Entry]:
    """Entries of the inputs; Python scalars take the dtype that the entries have together."""
    known = [x.dtype for x in inputs if isinstance(x, Entry) and x.dtype is not None]
    like = reduce(promote, known) if known else None
    return [
        constant(x, weak_scalar(x, like)) if _is_weak(x) and like is not None else as_entry(x)
        for x in inputs
    ]


def known_shape(entry: Entry) -> Shape:
    """The shape of an entry. Raises: ShapeError when its rank is not known yet."""
    if entry.shape is None:
        raise ShapeError(
            f"the rank of {entry.name} is not known here; give its variables a shape"
        )
    return entry.shape


def _facts(node: Node) -> tuple[Sequence[Shape | None], Sequence[DType | None]]:
    if node.op is None:
        return (node.params.get("shape"),), (node.params.get("dtype"),)
    shapes = [e.shape for e in node.inputs]
    dtypes = [e.dtype for e in node.inputs]
    return infer_shapes(node, shapes), infer_dtypes(node, dtypes)


def _call(
    self: Op, *inputs: Any, name: str = "", control: Sequence[Node] = (), **params: Any
) -> Any:
    """Make a node; its entry, or a tuple of entries when there are several results.

    Inputs are entries, arrays (they become constants) or Python scalars (weak constants).
    """
    entries = apply(self, inputs, params, name, control).entries
    return entries[0] if self.num_outputs == 1 else entries


Op.__call__ = _call  # type: ignore[method-assign, assignment]
