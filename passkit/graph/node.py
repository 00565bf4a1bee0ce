"""Nodes and entries, the elements of graphs, with variables, state variables and constants.

A node applies an operator to entries; an entry is one result of a node. Both are immutable and
compare by identity. Shapes and dtypes of entries are inferred when their node is created, as far as
they are known. This module creates variables and constants; `passkit.graph.call` creates the other
nodes when operators are called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType, NoneType
from typing import TYPE_CHECKING, Any

import numpy as np

from passkit import ast
from passkit.errors import ArgumentError, DTypeError, GraphError, ShapeError
from passkit.graph.attribute_calls import refuse_result
from passkit.graph.entry_methods import EntryMethods
from passkit.graph.infer import infer_dtypes, infer_shapes, show_shape
from passkit.graph.node_view import NodeLike
from passkit.graph.op import REQUIRED, FInferType, Op, register_op
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
    """Return the method for a Python operator, which calls the operator of `passkit.ops`.

    Args:
        symbol: the Python operator as `call.operate` names it, such as ``"+"``, ``"neg"`` or
            ``"[]"``.
        swap: whether ``self`` is the right operand, as in ``__radd__``.
    """

    def method(self: Entry, *others: Any) -> Entry:
        operands = (*others, self) if swap else (self, *others)
        return call.operate(symbol, *operands)

    return method


class Entry(EntryMethods):
    """One result of a node.

    Python's operators on entries call the operators of `passkit.ops`. ``==`` is identity, so that
    entries can be keys; `pk.ops.equal` compares values.

    Attributes:
        node: the node that computes it.
        index: which result of the node it is, from 0 on.
        shape: its extents, integers or sizes; None while the rank is unknown.
        dtype: its dtype; None while that is unknown.

    Raises:
        ArgumentError: ``node`` is no Node, ``shape`` no tuple or None, or ``dtype`` no DType or
            None.
        SettingError: ``index`` is no integer from 0 on.
    """

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
        """Return the rank. Raises: ShapeError when it is unknown."""
        return len(known_shape(self))

    @property
    def name(self) -> str:
        """Return the node's label, followed by ``:index`` if the node has several results."""
        several = len(self.node.entries) > 1
        return f"{self.node.label}:{self.index}" if several else self.node.label

    def __copy__(self) -> Entry:
        return self  # it is immutable

    def __deepcopy__(self, memo: dict[int, Any]) -> Entry:
        return copying.deep_copy(self.node, memo).entries[self.index]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the entry with all nodes that it depends on.

        Entries pickled separately share no nodes afterwards; pickle a Graph to keep them shared.
        Raises: GraphError for a parameter that JSON cannot represent, DTypeError for an array of a
        dtype that passkit does not have.
        """
        return copying.entry_of, (copying.text_of_entries((self,)), 0)

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


class Node(NodeLike):
    """An application of an operator to entries, or a variable when ``op`` is None.

    Calling an operator (`pk.ops`) checks its inputs and parameters and creates a node; this
    constructor checks only types, and infers the shapes and dtypes of the results.

    Args:
        op: the operator, or None for a variable.
        inputs: the entries that the operator is applied to.
        params: the operator's parameters, by name.
        name: a name for messages, or "".
        control: nodes that must run before this one, beside those of the inputs.

    Raises:
        ArgumentError: An argument has a wrong type.
        RuleError: FInferShape or FInferType returns something else than it must.
        ShapeError: The shapes of the inputs do not fit the operator, or a result is too large.
        DTypeError: The dtypes of the inputs do not fit the operator.
        GraphError: FInferShape or FInferType refuses a parameter, or that there are no inputs.
    """

    __slots__ = ("__weakref__", "control", "entries", "inputs", "name", "op", "params")

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
        if type(inputs) is not tuple or not _ENTRY_TYPES.issuperset(map(type, inputs)):
            inputs = arguments.sequence("Node: inputs", inputs, Entry, "a sequence of entries")
        if type(control) is not tuple or control:
            control = tuple(control) if isinstance(control, dict) else control  # an ordered set
            control = arguments.sequence("Node: control", control, Node, "a sequence of nodes")
        if params is None or type(params) not in (dict, MappingProxyType):
            params = arguments.mapping("Node: params", params, "a mapping of names to values")
        self._set_fields(op, inputs, MappingProxyType(dict(params)), name, control)
        shapes, dtypes = _infer(self)
        self._set_entries(zip(shapes, dtypes, strict=True))

    def _set_fields(
        self,
        op: Op | None,
        inputs: tuple[Entry, ...],
        params: Mapping[str, Any],
        name: str,
        control: tuple[Node, ...],
    ) -> None:
        """Set all fields but ``entries`` of a node that is being created to the arguments.

        ``op`` is None for a variable. Plain assignment would raise, for nodes are immutable.
        Nothing is checked.
        """
        put = object.__setattr__
        put(self, "op", op)
        put(self, "inputs", inputs)
        put(self, "params", params)
        put(self, "name", name)
        put(self, "control", control)

    def _set_entries(self, types: Iterable[tuple[Shape | None, DType | None]]) -> None:
        """Set ``entries`` to a new entry for each of ``types``, pairs of shape and dtype."""
        entries = tuple(Entry(self, k, shape, dtype) for k, (shape, dtype) in enumerate(types))
        object.__setattr__(self, "entries", entries)

    def replaced(
        self,
        inputs: Iterable[Entry] | None = None,
        control: Iterable[Node] | None = None,
        name: str | None = None,
    ) -> Node:
        """Return a node like this one with other inputs, control dependences or name.

        Arguments that are None keep what this node has. It is always a new node, whose shapes and
        dtypes are inferred. The number of inputs is not checked.

        Raises: ShapeError or DTypeError where the inputs do not fit the operator; GraphError where
        it needs at least one and gets none; RuleError where FInferShape or FInferType returns
        something else than it must or takes another number of inputs; ArgumentError where an
        argument has a wrong type.
        """
        return Node(
            self.op,
            self.inputs if inputs is None else inputs,
            self.params,
            self.name if name is None else name,
            self.control if control is None else control,
        )

    def isolated(self, inputs: tuple[Entry, ...]) -> Node:
        """Return a node like this one with other inputs, no name and no control dependences.

        There must be as many ``inputs`` as this node has. Shapes and dtypes are inferred again only
        where an input has others than the one it replaces.

        Raises: ShapeError or DTypeError where they then do not fit the operator; ValueError for
        another number of ``inputs``.
        """
        pairs = zip(inputs, self.inputs, strict=True)
        if not all(a.shape == b.shape and a.dtype is b.dtype for a, b in pairs):
            return Node(self.op, inputs, self.params)
        node = object.__new__(Node)
        node._set_fields(self.op, inputs, self.params, "", ())
        node._set_entries((e.shape, e.dtype) for e in self.entries)
        return node

    def __copy__(self) -> Node:
        return self  # it is immutable

    def __deepcopy__(self, memo: dict[int, Any]) -> Node:
        return copying.deep_copy(self, memo)

    def __reduce__(self) -> tuple[Any, ...]:
        return copying.node_of, (copying.text_of_entries(self.entries[:1]),)

    def __repr__(self) -> str:
        return f"Node({self.where})"


_ENTRY_TYPES = frozenset({Entry})


def _infer(node: Node) -> tuple[Sequence[Shape | None], Sequence[DType | None]]:
    """Return the shapes of a node's results, and their dtypes; None for one that is unknown.

    There are as many of either. Those of a variable are its parameters "shape" and "dtype".

    Raises: ShapeError or DTypeError where the inputs do not fit the operator; ShapeError for a
    result of too many axes or elements; RuleError where an attribute function returns something
    else than it must, or FInferShape and FInferType give different numbers of results; GraphError
    where one refuses a parameter, or that there are no inputs.
    """
    if node.op is None:
        shape = node.params.get("shape")
        _check_elements(node, shape)
        return (shape,), (node.params.get("dtype"),)
    shapes = [e.shape for e in node.inputs]
    dtypes = [e.dtype for e in node.inputs]
    result_shapes = infer_shapes(node, shapes)
    for shape in result_shapes:
        if not any(shape is s for s in shapes):
            _check_elements(node, shape)
    result_dtypes = infer_dtypes(node, dtypes)
    if len(result_shapes) != len(result_dtypes):
        return _of_equal_length(node, result_shapes, result_dtypes)
    return result_shapes, result_dtypes


def _of_equal_length(
    node: Node, shapes: Sequence[Shape | None], dtypes: Sequence[DType | None]
) -> tuple[Sequence[Shape | None], Sequence[DType | None]]:
    """Return the shapes and dtypes of the results of an operator that has any number of them.

    A single dtype, or a single unknown shape, applies to all results.

    Raises: RuleError where there are different numbers of them otherwise.
    """
    if len(dtypes) == 1:
        return shapes, list(dtypes) * len(shapes)
    if list(shapes) == [None]:
        return [None] * len(dtypes), dtypes
    need = f"a dtype for each of the {len(shapes)} results of FInferShape"
    refuse_result(FInferType, node, need, tuple(dtypes), f"it gave {len(dtypes)}")


MOST_AXES = 64
"""The most axes of an array, as in NumPy 2."""
MOST_ELEMENTS = 1 << 59
"""The most elements of an array: its size in bytes, up to 16 an element, must fit in 63 bits."""


def _check_elements(node: Node, shape: Shape | None) -> None:
    """Check a shape of a result of ``node`` against what arrays can have; None passes.

    Raises: ShapeError if it has more than MOST_AXES axes, or if its extents that are numbers other
        than 0 multiply to more than MOST_ELEMENTS.
    """
    if shape is not None and len(shape) > MOST_AXES:
        raise ShapeError(
            f"{node.where}: a shape of {len(shape)} axes was given; arrays have at most {MOST_AXES}"
        )
    count = 1
    for n in shape or ():
        if isinstance(n, int):
            count *= n or 1  # NumPy limits the other extents of an empty array, too
    if count > MOST_ELEMENTS:
        raise ShapeError(
            f"{node.where}: the extents of shape {show_shape(shape)} multiply to {count} elements "
            f"or more; the most that can be addressed are {MOST_ELEMENTS}"
        )


def var(
    name: str, shape: Sequence[int | str | Size | None] | None = None, dtype: Any = "float32"
) -> Entry:
    """Create an input of a graph.

    Args:
        name: the name under which a call feeds it.
        shape: its extents: integers, sizes, names or None. A name, an identifier, is a symbolic
            size, equal to every other size of that name; None is the size called
            ``{name}.{axis}``. A shape of None leaves the rank open, too.
        dtype: its dtype, or None to leave it open.

    Raises:
        ArgumentError: ``name`` is not a text, or ``shape`` not a sequence.
        ShapeError: An extent is negative, a bool, a float, a text that is no identifier or anything
            else; or there are too many axes or elements.
        DTypeError: There is no such dtype.

    Example:
        >>> import passkit as pk
        >>> pk.var("x", ("n", 4))
        Entry(x: float32[n,4])
    """
    arguments.text("var: name", name)
    extents = None
    if shape is not None:
        need = "a sequence of sizes (numbers, names or None), or None"
        sizes = arguments.sequence(f"var '{name}': shape", shape, object, need)
        extents = tuple(_extent(d, name, k) for k, d in enumerate(sizes))
    params = {"shape": extents, "dtype": None if dtype is None else dtype_of(dtype)}
    return Node(None, (), params, name).entries[0]


def state(name: str, value: Any) -> Entry:
    """Create a state variable: it keeps its value between calls, and `pk.ops.assign` writes it.

    Args:
        name: the name under which an executable gives access to the value.
        value: the initial array, number or nested list, which is copied; or a tuple (shape, dtype)
            for a variable that starts unset. Its shape has numbers only. A tuple of two members, of
            which the first is no number or text, is taken as such a pair.

    Raises:
        ArgumentError: ``name`` is not a text, ``value`` neither an array nor such a pair, or an
            extent of the pair no integer.
        SettingError: An extent of the pair is negative or a bool.
        ShapeError: The pair has too many axes or elements.
        DTypeError: There is no such dtype.

    Example:
        >>> import passkit as pk
        >>> pk.state("w", [1.5]), pk.state("steps", ((), "int64"))
        (Entry(w: float64[1]), Entry(steps: int64[]))
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
    """Return an extent of the variable called ``name`` as an integer or Size.

    Args:
        d: an integer, a Size, the name of a symbolic size, or None for a size of its own.
        name: the variable's name.
        axis: the axis, which names a size of its own and is shown in messages.

    Raises: ShapeError on anything else, and on a negative integer.
    """
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
    """Infer the shape of a constant from its array. Raises: GraphError if its value is no array."""
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


def is_leaf(node: Node) -> bool:
    """Return whether a node is a variable or a constant."""
    return node.op is None or node.op is CONSTANT


AS_READ = register_op(
    "as_read",
    doc="The value that a state variable had when the node of its control dependence read it.",
)
AS_READ.set_attr("FInferShape", lambda node, shape: shape)
AS_READ.set_attr("FInferType", lambda node, dtype: dtype)
AS_READ.set_attr("FCompute", lambda node, x: x)
AS_READ.set_attr("FGradient", lambda node, dy: [dy])


def is_state(entry: Entry) -> bool:
    """Return whether an entry is a state variable, which keeps its value between calls."""
    return entry.node.op is None and bool(entry.node.params.get("state"))


def as_read(entry: Entry, by: Node) -> Entry:
    """Return the value that the state variable ``entry`` had when the node ``by`` read it.

    A later update may overwrite the variable. The result is that of a new AS_READ node with ``by``
    as its control dependence and the name of the variable.
    """
    return Node(AS_READ, (entry,), name=entry.node.name, control=(by,)).entries[0]


def constant(value: Any, dtype: Any = None, name: str = "") -> Entry:
    """Create a constant.

    Args:
        value: a number, an array or a nested list of numbers or booleans; it is copied.
        dtype: the dtype to convert it to, as `numpy.array` does: integers then lose fractions. By
            default it is NumPy's for the value: int64 for an int, float64 for a float. Numbers
            too large for a dtype of floats become infinite, and all but 0 are true.
        name: a name for messages, or "".

    Raises:
        ArgumentError: ``value`` is no array of numbers, such as a text, None, an entry or rows of
            different lengths; it is complex and ``dtype`` real, but not bool; it is or holds a
            Python integer beyond 64 bits or the limits of an integer ``dtype``, or for an integer
            ``dtype`` a Python float that is NaN or too large; or ``name`` is no text.
        DTypeError: There is no such dtype, or passkit does not have that of the array.

    Example:
        >>> import passkit as pk
        >>> pk.constant([1, 2], "float32")
        Entry(constant: float32[2])
    """
    arguments.text("constant: name", name)
    numpy_dtype = None if dtype is None else dtype_of(dtype).numpy
    array = arguments.numbers("constant: value", value, numpy_dtype)
    dtype_of(array.dtype)
    array.flags.writeable = False
    return Node(CONSTANT, (), {"value": array}, name).entries[0]


def as_entry(value: Any) -> Entry:
    """Return ``value`` if it is an entry, else a constant of it.

    Raises:
        GraphError: It is a tuple that begins with an entry, such as the results of an operator with
            several.
        DTypeError: It is a kernel expression (`pk.ast`), or an array of a dtype that passkit does
            not have.
        ArgumentError: It is neither a number nor an array or nested list of numbers, or is or holds
            a Python integer beyond 64 bits.
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
        if isinstance(value, ast.Expr):
            raise DTypeError(
                f"operators take entries, got an expression ({type(value).__name__} of "
                f"{value.dtype}); FCodeGen and FElement compute with expressions by pk.ast: "
                f"pk.ast.exp(x) in place of pk.ops.exp(x)"
            ) from None
        raise


def known_shape(entry: Entry) -> Shape:
    """Return the shape of an entry. Raises: ShapeError when its rank is not known yet."""
    if entry.shape is None:
        raise ShapeError(f"the rank of {entry.name} is not known here; give its variables a shape")
    return entry.shape


def known_dtype(entry: Entry) -> DType:
    """Return the dtype of an entry. Raises: DTypeError when it is not known yet."""
    if entry.dtype is None:
        raise DTypeError(f"the dtype of {entry.name} is not known here; give its variables a dtype")
    return entry.dtype
