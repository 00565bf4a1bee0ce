"""Tensors and operations: the values that a program of TensorFlow 1 handles.

A tensor is a named entry of passkit's graph. Its dtype, and usually its shape, are known as soon as
it is created. The functions below the classes convert Python values to entries, and entries to
tensors.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from passkit.errors import DTypeError, GraphError, ShapeError
from passkit.frontends.tinyflow.dtypes import as_dtype
from passkit.frontends.tinyflow.graphs import Graph, default_sessions, get_default_graph
from passkit.frontends.tinyflow.shapes import (
    Dimension,
    TensorShape,
    UnknownShape,
    format_shape,
    parse_shape,
    require_shape,
)
from passkit.graph.call import operate
from passkit.graph.node import Entry, Node, constant
from passkit.graph.op import get_op
from passkit.ops.helpers import make, size_as_entry
from passkit.values import arguments
from passkit.values.dtype import DType
from passkit.values.size import Size

NumpyArray = np.ndarray[Any, Any]
MAX_STATIC_ELEMENTS = 64
"""The most elements of an integer tensor whose value is tracked: larger ones are no shapes."""


class Operation:
    """Nodes that run for their effect, such as assignments. `Session.run` returns None for it.

    Args:
        name: Its name in the graph.
        nodes: The nodes that it runs.
        graph: The graph that it belongs to.
    """

    def __init__(self, name: str, nodes: Sequence[Node], graph: Graph) -> None:
        self.name, self.nodes, self.graph = name, tuple(nodes), graph

    def run(self, feed_dict: Mapping[Any, Any] | None = None, session: Any = None) -> None:
        """Run the operation; return None.

        Args:
            feed_dict: Values by placeholder, or by any other tensor, which is then not computed;
                none by default.
            session: The session; by default that of the innermost `with`.

        Raises:
            GraphError: If there is no session, or it is closed.
            FeedError: If a feed is missing or does not fit, or a variable has no value.
            PasskitError: Another one that `Session.run` raises, such as NumericsError.
        """
        require_session(session, f"operation '{self.name}'").run(self, feed_dict)

    def __repr__(self) -> str:
        return f"<tf.Operation '{self.name}'>"


def require_session(session: Any, subject: str) -> Any:
    """Return ``session``, or the default one of this thread.

    Args:
        session: A session, or None for the default one of this thread.
        subject: The beginning of the message.

    Raises:
        GraphError: If there is none; the message begins with ``subject``.
    """
    chosen = default_sessions.innermost if session is None else session
    if chosen is None:
        raise GraphError(
            f"{subject} needs a session to run in, and none is the default; pass session=, or "
            f"call it inside `with tf.Session() as sess`"
        )
    return chosen


def _deferred_calls() -> Any:
    """Return the module `deferred_calls`, which is built on this one."""
    from passkit.frontends.tinyflow import deferred_calls

    return deferred_calls


_STATIC_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
}
"""The operators that are computed on static values, so that shapes can be computed from shapes."""


def _operator_method(symbol: str, default: str, swap: bool = False) -> Callable[..., Tensor]:
    """Create the method for one of Python's operators.

    Args:
        symbol: The operator, as `operate` names it.
        default: The default name of the result.
        swap: Whether the tensor is the right operand, as in ``__radd__``.

    Returns:
        The method. Its operands are tensors, numbers and arrays; it returns a tensor. It raises
        DTypeError or ShapeError for operands that do not fit the operator, and ArgumentError for
        other values.
    """

    def method(self: Tensor, *others: Any, name: str | None = None) -> Tensor:
        operands = (*others, self) if swap else (self, *others)
        is_static = symbol in _STATIC_OPERATORS and name is None and self.dtype.is_integer
        if is_static and any(map(_deferred_calls().is_unranked, operands)):
            # A run may know the numbers.
            arguments_, outputs = {"self": self, "other": others[0]}, [(None, self.dtype)]
            return _deferred_calls().defer_call(  # type: ignore[no-any-return]
                named_method, arguments_, outputs, unique_name(None, default)
            )[0]
        value = _static_result(symbol, [_static_operand(v) for v in operands], self.dtype)
        if value is not None:
            return static_tensor(value, self.dtype, name, default)
        entries = [as_operand(v, self.dtype) for v in operands]
        return as_tensor(operate(symbol, *entries), unique_name(name, default))

    def named_method(self: Tensor, other: Any, name: str) -> Tensor:
        return method(self, other, name=name)

    return method


def _static_operand(operand: Any) -> Any:
    """Return the static value of an operand.

    Args:
        operand: A tensor, or a Python or NumPy value.

    Returns:
        An array of objects (ints and sizes); None for a tensor without static value, and for
        anything but an int.
    """
    if isinstance(operand, Tensor):
        return operand.static_value
    return np.asarray(operand, dtype=object) if type(operand) is int else None


def _static_result(
    symbol: str, values: Sequence[NumpyArray | None], dtype: DType
) -> NumpyArray | None:
    """Apply one of Python's operators to static values.

    Args:
        symbol: The operator, as `operate` names it.
        values: The static values of the operands; None for those that have none.
        dtype: The integer dtype of the result.

    Returns:
        An array of objects. None if an operand is None, the operator is not among
        `_STATIC_OPERATORS`, the shapes do not broadcast, a divisor is 0, a number does not fit
        ``dtype``, or there are more than `MAX_STATIC_ELEMENTS`: the nodes of the graph decide then.
    """
    if symbol not in _STATIC_OPERATORS or any(v is None for v in values):
        return None
    try:
        result = np.asarray(_STATIC_OPERATORS[symbol](*values), dtype=object)
    except (ValueError, ZeroDivisionError):
        return None
    is_static = static_value_fits(result, dtype) and result.size <= MAX_STATIC_ELEMENTS
    return result if is_static else None


def static_value_fits(value: NumpyArray, dtype: DType) -> bool:
    """Return whether all ints of a static value are within the limits of the integer ``dtype``.

    Symbolic sizes in it always are.
    """
    limits = np.iinfo(dtype.numpy)
    numbers = (n for n in value.ravel().tolist() if isinstance(n, int))
    return all(limits.min <= n <= limits.max for n in numbers)


class Tensor:
    """A value that a run computes.

    Args:
        entry: The entry of passkit's graph; None for a tensor of static value only.
        name: Its name without the output number.
        graph: The graph that it belongs to.
        static_value: The value of a small integer tensor, an array of objects in which a `Size`
            stands for a number that a run determines. Shapes can be computed from it.
        index: The output number of the operation.
        dtype: The element type, where there is no entry.
    """

    def __init__(
        self,
        entry: Entry | None,
        name: str,
        graph: Graph,
        static_value: NumpyArray | None = None,
        index: int = 0,
        dtype: DType | None = None,
    ) -> None:
        self._entry, self._name, self.graph = entry, name, graph
        self.static_value = static_value
        self._index, self._dtype = index, dtype

    @property
    def entry(self) -> Entry:
        """The entry of passkit's graph.

        That of a tensor of static value is created at the first use: a constant, or, where the
        value has symbolic sizes, nodes that compute them in a run.

        Raises:
            DTypeError: If a number of a static value does not fit the dtype.
        """
        if self._entry is None:
            assert self.static_value is not None
            self._entry = _entry_of_extents(self.static_value, self.dtype, self._name)
        return self._entry

    @property
    def name(self) -> str:
        """The name, with the output number: ``scope/MatMul:0``."""
        return f"{self._name}:{self._index}"

    @property
    def op(self) -> Operation:
        """The operation that computes the tensor, a new object each time."""
        return Operation(self._name, [self.entry.node], self.graph)

    @property
    def dtype(self) -> DType:
        """The element type.

        Raises:
            DTypeError: For a tensor of text.
        """
        dtype = self._dtype or self.entry.dtype
        assert dtype is not None
        return dtype

    @property
    def device(self) -> str:
        """The device that `tf.device` requested; empty for the session's target.

        Raises:
            DTypeError: For a tensor of text.
        """
        return self.graph.devices.get(self.entry.node, ("", ""))[0]

    @property
    def shape(self) -> TensorShape:
        """The static shape; an `UnknownShape` if the rank is unknown."""
        if self.static_value is not None:
            return TensorShape.of(self.static_value.shape)
        if self.entry.shape is None:
            return UnknownShape(self.name)
        return TensorShape.of(self.entry.shape)

    def get_shape(self) -> TensorShape:
        """Return the static shape; an `UnknownShape` if the rank is unknown."""
        return self.shape

    def set_shape(self, shape: Any) -> None:
        """Change the static shape in place, for functions that are called with the tensor later.

        Args:
            shape: An int for each axis; None for those that remain unknown. None instead of all, or
                a shape of unknown rank, changes nothing. Runs check axes that were unknown before.

        Raises:
            GraphError: If it contradicts the static shape in rank or an extent.
            ShapeError: If an extent is negative, or neither an int nor None.
            DTypeError: For a tensor of text.
        """
        if shape is None or isinstance(shape, UnknownShape):
            return
        stated = parse_shape(shape, f"set_shape of {self.name}")
        if any(isinstance(n, int) and n < 0 for n in stated):
            raise ShapeError(
                f"set_shape of {self.name} needs extents of 0 or more, and None for those that "
                f"remain unknown, got {format_shape(stated)}"
            )
        entry = self.entry
        if entry.shape is None:
            self._entry = _deferred_calls().refine_shape(self, stated)
            self.graph.refined_entries[self._entry.node] = entry
            return
        current = require_shape(entry)
        merged = [m if n is None else n for m, n in zip(current, stated, strict=False)]
        numbers = [
            (n, m)
            for n, m in zip(stated, current, strict=False)
            if isinstance(n, int) and isinstance(m, int)
        ]
        if len(current) != len(stated) or any(n != m for n, m in numbers):
            raise GraphError(
                f"set_shape of {self.name} needs a shape that fits {format_shape(current)}, got "
                f"{format_shape(stated)}"
            )
        self._entry = make("reshape", entry, shape=tuple(merged))
        self.graph.refined_entries[self._entry.node] = entry

    def eval(self, feed_dict: Mapping[Any, Any] | None = None, session: Any = None) -> Any:
        """Compute the tensor, and return its value.

        Args:
            feed_dict: Values by placeholder, or by any other tensor, which is then not computed;
                none by default.
            session: The session; by default that of the innermost `with`.

        Returns:
            A NumPy array or number.

        Raises:
            GraphError: If there is no session, or it is closed.
            FeedError: If a feed is missing or does not fit, or a variable has no value.
            PasskitError: Another one that `Session.run` raises, such as NumericsError.
        """
        return require_session(session, f"tensor '{self.name}'").run(self, feed_dict)

    def __getitem__(self, key: Any) -> Tensor:
        """Return a part of the tensor.

        Args:
            key: An int, a slice, None, an ellipsis, a scalar tensor of integers, a `Dimension`, or
                a tuple of these, as for NumPy arrays.

        Returns:
            A tensor. If a rank is unknown, the part is taken in a run.

        Raises:
            ShapeError: If an index is out of range or of another kind, such as a bool, a float, a
                list or a tensor that is no scalar of integers, if it is a dimension that only a run
                determines, if a bound of a slice is no int or a step is 0, or if there are more of
                them than axes.
            DTypeError: For a tensor of text.
        """
        deferred_calls = _deferred_calls()
        if any(map(deferred_calls.is_unranked, deferred_calls.nested_tensors((self, key)))):
            arguments_, outputs = {"tensor": self, "key": key}, [(None, self.dtype)]
            full_name = unique_name(None, "strided_slice")
            return deferred_calls.defer_call(  # type: ignore[no-any-return]
                _get_item, arguments_, outputs, full_name
            )[0]
        return _get_item(self, key, None)

    def __iter__(self) -> Iterator[Tensor]:
        raise GraphError(
            f"{self.name} cannot be iterated before a run; tf.unstack returns its slices"
        )

    def __bool__(self) -> bool:
        raise GraphError(
            f"{self.name} has no value before a run; tf.where selects from two tensors"
        )

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise GraphError(f"{self.name} has no value before it runs; session.run(tensor) returns it")

    __add__ = _operator_method("+", "add")
    __radd__ = _operator_method("+", "add", swap=True)
    __sub__ = _operator_method("-", "sub")
    __rsub__ = _operator_method("-", "sub", swap=True)
    __mul__ = _operator_method("*", "mul")
    __rmul__ = _operator_method("*", "mul", swap=True)
    __truediv__ = _operator_method("/", "truediv")
    __rtruediv__ = _operator_method("/", "truediv", swap=True)
    __floordiv__ = _operator_method("//", "floordiv")
    __rfloordiv__ = _operator_method("//", "floordiv", swap=True)
    __mod__ = _operator_method("%", "mod")
    __rmod__ = _operator_method("%", "mod", swap=True)
    __pow__ = _operator_method("**", "pow")
    __rpow__ = _operator_method("**", "pow", swap=True)
    __matmul__ = _operator_method("@", "matmul")
    __rmatmul__ = _operator_method("@", "matmul", swap=True)
    __and__ = _operator_method("&", "and")
    __rand__ = _operator_method("&", "and", swap=True)
    __or__ = _operator_method("|", "or")
    __ror__ = _operator_method("|", "or", swap=True)
    __xor__ = _operator_method("^", "xor")
    __rxor__ = _operator_method("^", "xor", swap=True)
    __lt__ = _operator_method("<", "Less")
    __le__ = _operator_method("<=", "LessEqual")
    __gt__ = _operator_method(">", "Greater")
    __ge__ = _operator_method(">=", "GreaterEqual")
    __neg__ = _operator_method("neg", "Neg")
    __abs__ = _operator_method("abs", "Abs")
    __invert__ = _operator_method("~", "LogicalNot")

    __array_ufunc__ = None  # np.float32(2) * tensor must come here, not become an object array

    def __repr__(self) -> str:
        is_ranked = self.static_value is not None or self.entry.shape is not None
        shape = format_shape(d.extent for d in self.shape) if is_ranked else "<unknown>"
        return f"<tf.Tensor '{self.name}' shape={shape} dtype={self.dtype}>"


def _get_item(tensor: Tensor, key: Any, name: str | None) -> Tensor:
    """Return ``tensor[key]``; a static value is indexed at once by ints and slices.

    Args:
        tensor: The tensor, of known rank.
        key: Index: ints, slices, None, ellipses, dimensions, scalar tensors of integers, or a tuple
            of them.
        name: Name of the result; None for "strided_slice".

    Raises:
        ShapeError: If an index is out of range or of another kind, such as a bool, a bound of a
            slice is no int, a step is 0, or there are too many.
        DTypeError: For a tensor of text.
    """
    keys = key if isinstance(key, tuple) else (key,)
    index = tuple(_resolve_index(k) for k in keys)
    are_static = all(isinstance(k, slice) or type(k) is int for k in index)
    if tensor.static_value is not None and are_static:
        try:
            part = np.asarray(tensor.static_value[index], dtype=object)
        except (IndexError, TypeError, ValueError):  # the entry's ShapeError names the tensor
            pass
        else:
            return static_tensor(part, tensor.dtype, name, "strided_slice")
    return as_tensor(tensor.entry[index], unique_name(name, "strided_slice"))


def _resolve_index(key: Any) -> Any:
    """Convert one element of an index for an entry of passkit's graph.

    Static scalar tensors become ints or symbolic sizes, dimensions ints, other tensors entries;
    slices are converted part by part. Other values are returned as they are.

    Raises:
        ShapeError: For a dimension that only a run determines.
        DTypeError: For a tensor of text.
    """
    if isinstance(key, slice):
        return slice(_resolve_index(key.start), _resolve_index(key.stop), _resolve_index(key.step))
    static_value = getattr(key, "static_value", None)
    if static_value is not None and static_value.ndim == 0:
        return static_value[()]
    if isinstance(key, Tensor):
        return key.entry
    return int(key) if hasattr(key, "extent") else key


class HostTensor(Tensor):
    """Text or a summary, which the host computes from fetched tensors after a run.

    Args:
        sources: The tensors to fetch.
        function: Takes their values, and returns the value of this tensor.
        name: Its name without the output number.
        graph: The graph that it belongs to.
    """

    def __init__(
        self, sources: Sequence[Tensor], function: Callable[..., Any], name: str, graph: Graph
    ) -> None:
        super().__init__(None, name, graph)
        self.sources, self.function = tuple(sources), function

    @property
    def entry(self) -> Entry:
        """Raise DTypeError: operators cannot compute with text."""
        raise DTypeError(
            f"{self.name} is text, which only session.run can fetch; operators take numbers"
        )

    @property
    def op(self) -> Operation:
        """An operation that computes the sources, a new object each time."""
        return Operation(self._name, [n for s in self.sources for n in s.op.nodes], self.graph)

    @property
    def shape(self) -> TensorShape:
        """The static shape, that of a scalar."""
        return TensorShape()

    def __repr__(self) -> str:
        return f"<tf.Tensor '{self.name}' shape=() dtype=string>"


# from values to entries


def as_entry(value: Any, dtype: Any = None) -> Entry:
    """Convert a value to an entry.

    Args:
        value: A tensor; an entry, which is returned as it is, whatever its dtype; or numbers for a
            constant. Python's floats are float32 and ints int32, or int64 if they do not fit; bools
            and complex numbers are bool and complex128. NumPy arrays and scalars keep their dtype.
        dtype: The required dtype; None for any. Numbers are converted to it, floats truncated to
            integers.

    Raises:
        DTypeError: If a tensor has another dtype than ``dtype`` or is text, or ``dtype`` is no
            element type.
        ArgumentError: For a value that is neither a tensor nor numbers, complex numbers for a real
            ``dtype`` but bool, Python's integers beyond 64 bits or the limits of an integer
            ``dtype``, such as 300 for uint8, or NaN or too large a float for one.
    """
    required = None if dtype is None else as_dtype(dtype)
    if isinstance(value, Tensor):
        entry = value.entry
        if required is not None and entry.dtype is not required:
            raise DTypeError(
                f"{value.name} needs to be {required} here, got {entry.dtype}; tf.cast converts it"
            )
        return entry
    if isinstance(value, Entry):
        return value
    return constant(_as_array(value, required))


def _as_array(value: Any, dtype: DType | None) -> Any:
    """Convert numbers to an array; Python's numbers get the default dtypes of `as_entry`.

    Args:
        value: Numbers, nested lists, or an array.
        dtype: Dtype of the array; None for the default.

    Returns:
        A new NumPy array.

    Raises:
        ArgumentError: For text, None, tensors among the numbers, nested lists of different lengths,
            and numbers that `as_entry` refuses for ``dtype``.
    """
    array = arguments.numbers("a tensor's value", value, None if dtype is None else dtype.numpy)
    if dtype is not None:
        return array
    if isinstance(value, (np.ndarray, np.generic)):
        return array
    if array.dtype.kind == "f":
        return array.astype(np.float32)
    if array.dtype.kind == "i":
        narrow = array.astype(np.int32)
        return narrow if np.array_equal(narrow, array) else array
    return array


def scalar_entry(tensor: Tensor) -> Entry:
    """Return the entry of a tensor that stands for one number, such as a fed learning rate.

    If its rank is unknown, the entry is a reshape, so that each run checks that it has one element.
    The shape is not checked otherwise.

    Raises:
        DTypeError: For a tensor of text.
    """
    if tensor.static_value is None and tensor.entry.shape is None:
        scalar: Entry = make("reshape", tensor.entry, shape=())
        return scalar
    return tensor.entry


def contains_tensors(value: Any) -> bool:
    """Return whether a nested list or tuple holds tensors, so that it has to be stacked.

    False for anything else, tensors themselves and shapes included.
    """
    if not isinstance(value, (list, tuple)) or isinstance(value, TensorShape):
        return False
    return any(isinstance(v, Tensor) or contains_tensors(v) for v in value)


def as_operand(value: Any, like: DType | None) -> Any:
    """Convert an operand of an operator.

    Args:
        value: A tensor, an entry, a `Dimension`, numbers, or a list of these.
        like: The dtype of the other operand; None for none. Arrays and lists of numbers take it if
            NumPy's casting "same_kind" allows, which may round or wrap; else they become entries as
            by `as_entry`. Tensors and entries keep their dtype.

    Returns:
        An entry; or a Python number, for a bool, int, float or `Dimension`.

    Raises:
        ArgumentError: For a value that is neither a tensor nor numbers.
        ShapeError: For a dimension that only a run determines, or listed tensors of several shapes.
        DTypeError: For listed tensors of another dtype than ``like``, or of several, and for a
            tensor of text.
    """
    if isinstance(value, Tensor):
        return value.entry
    if isinstance(value, (bool, int, float)) and not isinstance(value, np.generic):
        return value
    if isinstance(value, Dimension):
        return operator.index(value)
    if isinstance(value, Entry):
        return value
    if contains_tensors(value):
        return make("stack", *(as_entry(v, like) for v in value))
    array = arguments.numbers("an operand", value)
    if like is not None and np.can_cast(array.dtype, like.numpy, "same_kind"):
        return constant(array, like)
    return as_entry(value)  # lists of Python's numbers are float32 and int32


def as_operands(x: Any, y: Any) -> list[Any]:
    """Convert two operands by `as_operand`, each for the dtype of the first that is a tensor.

    Args:
        x: A tensor, numbers or an array.
        y: A tensor, numbers or an array.

    Returns:
        Two entries or numbers, of which at least one is an entry: of two numbers the first.

    Raises:
        ArgumentError: For a value that is neither a tensor nor numbers.
        ShapeError: For a dimension that only a run determines, or listed tensors of several shapes.
        DTypeError: For a tensor of text, or listed tensors of several dtypes.
    """
    like = next((v.dtype for v in (x, y) if isinstance(v, Tensor)), None)
    operands = [as_operand(v, like) for v in (x, y)]
    if any(isinstance(v, Entry) for v in operands):
        return operands
    return [as_entry(x), operands[1]]


def convert_to_tensor(value: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Convert a value to a tensor.

    Args:
        value: A tensor, which is returned as it is; numbers, an array or nested lists of numbers
            for a constant; or a list that holds tensors, which is stacked.
        dtype: The required dtype; by default that of ``value``, with float32 and int32 for Python's
            numbers, or int64 for ints that do not fit.
        name: The name of a constant, "Const" by default, or of a stack, "packed" by default.

    Returns:
        The tensor.

    Raises:
        DTypeError: If a tensor is text or has another dtype than ``dtype``, or that is no element
            type, or elements of a list that holds tensors differ in dtype.
        ArgumentError: If the value is neither a tensor nor numbers, such as text or a `Dimension`,
            or holds tensors in nested lists; or if ``name`` is no text.
        ShapeError: If listed tensors differ in shape.
    """
    if isinstance(value, Tensor):
        as_entry(value, dtype)
        return value
    if contains_tensors(value):
        return call_operator("stack", "packed", name, *(as_entry(v, dtype) for v in value))
    entry = as_entry(value, dtype)
    return as_tensor(entry, unique_name(name, "Const"), static_value_of(value))


def static_value_of(value: Any) -> NumpyArray | None:
    """Return the static value of a constant.

    Args:
        value: Numbers or an array, of equal lengths along each axis.

    Returns:
        An array of objects (ints) of the same shape; None if it has other elements than integers,
        such as bools, or more than `MAX_STATIC_ELEMENTS`. An empty list has floats. None for an
        entry, too.
    """
    if isinstance(value, Entry):
        return None
    array = np.asarray(value)
    if array.dtype.kind in "iu" and array.size <= MAX_STATIC_ELEMENTS:
        return array.astype(object)
    return None


# from entries to tensors


def unique_name(name: str | None, default: str) -> str:
    """Return an unused name under the current name scope.

    Args:
        name: The requested name. One that ends in a slash, as `tf.name_scope` returns it, is used
            as it is, without the slash.
        default: The name where none is requested.

    Returns:
        The full name: scope and name, with a number appended if it is taken.

    Raises:
        ArgumentError: If ``name`` is no text.
    """
    if name is not None:
        arguments.text("name", name)
    if name and name.endswith("/"):
        return name[:-1]
    return get_default_graph().unique_name(name or default)


def as_tensor(
    entry: Entry,
    name: str,
    static_value: NumpyArray | None = None,
    index: int = 0,
    control: bool = True,
) -> Tensor:
    """Create a tensor of the default graph for an entry.

    Args:
        entry: The entry.
        name: The full name of the tensor, without the output number.
        static_value: See `Tensor`.
        index: The output number.
        control: Whether the tensor runs after the current `tf.control_dependencies`; then the entry
            may be wrapped into an ``identity``.

    Returns:
        The tensor. The current `tf.device` is recorded for its node.
    """
    graph = get_default_graph()
    if control and graph.controls and entry.node.control[-1:] != graph.controls[-1:]:
        entry = get_op("identity")(entry, name=name, control=graph.controls)
    if graph.device:
        graph.devices[entry.node] = (graph.device, f"{name}:{index}")
    return Tensor(entry, name, graph, static_value, index)


def call_operator(op: str, default: str, name: str | None, *inputs: Any, **params: Any) -> Tensor:
    """Create a node of an operator with one result, and return its tensor.

    Args:
        op: The operator's name in passkit.
        default: The default name of the tensor.
        name: The requested name of the tensor; None for ``default``.
        *inputs: Entries and numbers.
        **params: The parameters of the operator.

    Raises:
        ShapeError: If the shapes of the inputs do not fit the operator.
        DTypeError: If their dtypes do not.
        GraphError: If the operator has no such parameter, or refuses its value.
        ArgumentError: If ``name`` is no text, or an input neither an entry, an array nor a number.
        RegistryError: If there is no such operator.
    """
    full_name = unique_name(name, default)
    controls = get_default_graph().controls
    entry = get_op(op)(*inputs, name=full_name, control=controls, **params)
    return as_tensor(entry, full_name)


def static_tensor(value: NumpyArray, dtype: DType, name: str | None, default: str) -> Tensor:
    """Create an integer tensor whose value is known, but for sizes that a run determines.

    Nodes are created for it when its entry is first used.

    Args:
        value: Array of objects: ints and symbolic sizes.
        dtype: Dtype of the tensor.
        name: Requested name; None for ``default``.
        default: Name if none is requested; a number is appended if it is taken.

    Raises:
        ArgumentError: If ``name`` is no text.
    """
    return Tensor(None, unique_name(name, default), get_default_graph(), value, dtype=dtype)


def _entry_of_extents(value: NumpyArray, dtype: DType, name: str) -> Entry:
    """Create an entry that computes a static value; a run determines the sizes in it.

    Args:
        value: An array of objects: ints and sizes.
        dtype: The dtype of the entry.
        name: The name of the node, used if there are no sizes.

    Raises:
        DTypeError: If a number does not fit the dtype.
    """
    flat = value.ravel().tolist()
    if not static_value_fits(value, dtype):
        largest = max((n for n in flat if isinstance(n, int)), key=abs)
        raise DTypeError(
            f"'{name}' needs a dtype that holds {largest}, got {dtype}; out_type=tf.int64"
        )
    if not any(isinstance(n, Size) for n in flat):
        return constant(np.array(flat, dtype.numpy).reshape(value.shape), dtype, name)
    parts = [make("reshape", size_as_entry(n), shape=(1,)) for n in flat]
    joined = make("concat", *parts, axis=0) if len(parts) > 1 else parts[0]
    reshaped = make("reshape", joined, shape=value.shape)
    entry: Entry = make("cast", reshaped, dtype=dtype.name)
    return entry
