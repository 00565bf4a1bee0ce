"""`Array`: an array whose value may be pending in an operation stream."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from passkit.errors import ArgumentError, DeviceError, DTypeError, OperandError
from passkit.frontends.xp.aliases import written
from passkit.frontends.xp.array_methods import ArrayMethods
from passkit.frontends.xp.computing_methods import ComputingMethods
from passkit.frontends.xp.elementwise_operations import constant_power
from passkit.frontends.xp.linalg_operations import MATMUL
from passkit.frontends.xp.runtime import (
    THREADS,
    apply,
    apply_any,
    computed,
    converted,
    from_numpy,
    operation,
    scalar,
    thread_state,
)
from passkit.streams import recorder
from passkit.streams.operation import CPU, array_type
from passkit.streams.recorder import ArrayBase, Value, binary_method, connect, unary_method
from passkit.streams.settings import settings
from passkit.values.arguments import shown
from passkit.values.dtype import dtype_of, weak_scalar

if TYPE_CHECKING:

    def wrap(value: Value) -> Array:
        """Return a new array that holds a value, which no other array may hold."""

else:
    wrap = recorder.wrap


def call(name: str, *arrays: Array, **params: Hashable) -> Array:
    """Apply an operation with one result to arrays, and return the result.

    Args:
        name: the name of the operation in `runtime.OPERATIONS`.
        *arrays: its operands.
        **params: its parameters.

    Raises:
        PasskitError: the operands do not fit; mostly a ShapeError or DTypeError.
        KeyError: there is no operation of this name.
    """
    return wrap(apply(operation(name, **params), *[a._value for a in arrays]))


def operand_value(operand: Any, like: np.dtype[Any]) -> Value:
    """Return the value of an operand of a function that also reads an array of dtype ``like``.

    Args:
        operand: an `Array`, NumPy array (which is copied) or scalar, or a Python number. Python
            numbers are weak, as in NumPy 2: they take the dtype ``like``, or a default one if that
            is of a lower kind.
        like: the dtype of the other operand.

    Raises:
        ArgumentError: It is nothing of these, such as None or a list.
        OperandError: A Python integer does not fit the dtype (of floats: it is beyond float64), or
            a NumPy array or scalar has none of `passkit.xp`. It is an ArgumentError and a
            DTypeError.
    """
    if type(operand) is Array:
        return operand._value
    kind = type(operand)
    if kind is float and like.kind == "f":
        return scalar(operand, like)
    if kind in (bool, int, float, complex):
        is_float = kind is int and like.kind == "f"  # frequent: weak_scalar is not asked
        dtype = like
        try:
            if not is_float:
                dtype = weak_scalar(operand, dtype_of(like)).numpy
            return scalar(float(operand) if kind is int and dtype.kind in "Vc" else operand, dtype)
        except OverflowError:
            raise OperandError(f"{shown(operand)} does not fit {dtype}") from None
        except DTypeError as error:
            raise OperandError(*error.args) from None
    if isinstance(operand, (np.ndarray, np.generic)):
        try:
            dtype_of(operand.dtype)
        except DTypeError as error:
            raise OperandError(*error.args) from None
        return from_numpy(np.array(operand))
    if isinstance(operand, Array):
        return operand._value
    raise ArgumentError(
        f"an operand must be an Array, a NumPy array or a number, got {shown(operand)}; "
        "xp.asarray makes an array of it"
    )


def _is_operand(operand: Any) -> bool:
    """Return whether Python's operators take an operand beside an array."""
    return isinstance(operand, (Array, bool, int, float, complex, np.ndarray, np.generic))


def operator_operand(operand: Any, like: np.dtype[Any]) -> Any:
    """Return the value of the other operand of a Python operator; NotImplemented if it is none.

    Args:
        operand: anything; an array, a NumPy array or scalar, or a Python number is an operand.
        like: the dtype of the array beside it.

    Raises: OperandError, a DTypeError, if a Python integer does not fit the dtype, or a NumPy array
    or scalar has none of `passkit.xp`.
    """
    return operand_value(operand, like) if _is_operand(operand) else NotImplemented


def _binary(name: str, swap: bool = False) -> Callable[[Array, Any], Any]:
    """Return the method of a Python operator that applies the operation ``name`` to two operands.

    With ``swap`` the array is the right operand, as in ``__radd__``.
    """
    return binary_method(operation(name), swap)


def _in_place(name: str) -> Callable[[Array, Any], Any]:
    """Return the method of an in-place operator, which gives the array a new value of its type.

    ``name`` is the operation. The method returns the array itself, or NotImplemented if the other
    operand is none. It raises what the operation does, such as ShapeError, and as `Array._assign`.
    """
    op = operation(name)

    def method(self: Array, other: Any) -> Any:
        if not _is_operand(other):
            return NotImplemented
        self._assign(apply(op, self._value, operand_value(other, self._value.type.dtype)), name)
        return self

    return method


def _unary(name: str) -> Callable[[Array], Any]:
    """Return the method of a unary Python operator that applies the operation ``name``."""
    return unary_method(operation(name))


def _pending_names(value: Value, most: int = 8) -> str:
    """Return the names of the operations that a pending value waits for, its own first.

    They are joined by commas; beyond ``most`` names there is only the number of the others.
    """
    names: list[str] = []
    seen = {id(value)}
    pending = [value]
    while pending:
        current = pending.pop(0)
        assert current.operation is not None
        names.append(current.operation.name)
        for operand in current.operands:
            if operand.operation is not None and id(operand) not in seen:
                seen.add(id(operand))
                pending.append(operand)
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def array_of(x: Any) -> Array:
    """Return an operand as an array.

    Args:
        x: an `Array`, which is returned itself; a NumPy array, which is copied, or scalar; or a
            Python number, which becomes bool, int64 (uint64 if it needs that), float64 or
            complex128.

    Raises:
        ArgumentError: It is nothing of these, such as None or a list.
        OperandError: A NumPy array has no dtype of `passkit.xp`, or an int is out of range. It is
            an ArgumentError and a DTypeError.
    """
    if isinstance(x, Array):
        return x
    if isinstance(x, (int, float, complex)) and not isinstance(x, np.generic):
        array = np.asarray(x)
        if array.dtype.kind == "O":
            raise OperandError(f"{shown(x)} fits no integer dtype; write it as a float")
        return wrap(from_numpy(array, is_owned=True))
    return wrap(operand_value(x, np.dtype(np.float64)))


_general_power, _general_power_in_place = _binary("pow"), _in_place("pow")


def _power(self: Array, exponent: Any) -> Any:
    """Return ``self ** exponent``; NotImplemented if the exponent is no operand.

    Python numbers such as 2, -1 and 0.5 need no logarithm.

    Raises: DTypeError for integers to a negative Python integer; ShapeError if an array as exponent
    does not broadcast; DeviceError if it is on another device; OperandError for an int that does
    not fit the dtype.
    """
    op = constant_power(self._value, exponent)
    return _general_power(self, exponent) if op is None else wrap(apply(op, self._value))


def _power_in_place(self: Array, exponent: Any) -> Any:
    """Give the array the value of ``self ** exponent`` in its dtype, and return it.

    Returns: The array itself; NotImplemented if the exponent is no operand.

    Raises: DTypeError if the dtype cannot hold the result, or for integers to a negative Python
    integer; ArgumentError if the result has another shape; ShapeError if the shapes do not
    broadcast; DeviceError if the exponent is on another device; OperandError for an int that does
    not fit the dtype.
    """
    op = constant_power(self._value, exponent)
    if op is None:
        return _general_power_in_place(self, exponent)
    self._assign(apply(op, self._value), "pow")
    return self


class Array(ArrayBase, ArrayMethods, ComputingMethods):
    """An array of the array API standard, with operations that run when a result is needed.

    Operators and functions of `passkit.xp` queue an operation and return at once. Converting to
    a Python number or to NumPy, printing and `xp.eval` execute what the array needs. ``repr``,
    which interactive shells and debuggers call, executes nothing: it names pending operations.
    In-place operators and ``x[...] = y`` give this object a new value; no other array changes.

    Arrays are created by functions such as `xp.asarray`.
    """

    __slots__ = ("__weakref__",)

    _wrapped = staticmethod(wrap)

    def __init__(self) -> None:
        raise ArgumentError("an Array cannot be created directly; use xp.asarray")

    # Properties

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype, as a NumPy dtype."""
        return self._value.type.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        return self._value.type.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._value.type.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._value.type.size

    @property
    def nbytes(self) -> int:
        """The size in bytes."""
        return self._value.type.nbytes

    @property
    def itemsize(self) -> int:
        """The size of an element in bytes."""
        return self._value.type.dtype.itemsize

    @property
    def device(self) -> str:
        """The name of the device that the array is on, such as "cpu" or "opencl:0"."""
        device = self._value.type.device
        return CPU if device is None else device.name

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a 0-dimensional array has no length")
        return self.shape[0]

    # Assignments

    def _assign(self, value: Value, name: str) -> None:
        """Give this array a new value, converted to its dtype.

        With the setting ``aliasing``, its views and the array that it is a view of get new values,
        too. ``name`` is the operation, for messages.

        Raises:
            ArgumentError: The value has another shape.
            DTypeError: It has a dtype of a higher kind, such as floats for an array of integers.
            DeviceError: It is on another device.
        """
        type = self._value.type
        if value.type.device is not type.device:
            raise DeviceError(
                f"{name} in place needs a result on {self.device}, got one on "
                f"{value.type.device or CPU}; x = x.to_device({str(value.type.device or CPU)!r}) "
                f"moves the array"
            )
        if value.type.shape != type.shape:
            raise ArgumentError(
                f"{name} in place needs a result of shape {type.shape}, got {value.type.shape}"
            )
        if value.type.dtype != type.dtype:
            if not np.can_cast(value.type.dtype, type.dtype, "same_kind"):
                raise DTypeError(
                    f"{name} in place cannot store {value.type.dtype} in an array of {type.dtype}; "
                    f"convert it with xp.astype first"
                )
            value = converted(value, dtype_of(type.dtype))
        self._value = value
        if settings.aliasing:
            written(self)

    # Conversions: these execute what the array needs

    def _numpy(self, reason: str = "numpy") -> Any:
        """Return the NumPy array of the value, its own memory, which must not be written.

        It is a copy from a device. What it needs is executed; ``reason`` says why, for those who
        inspect the stream.

        Raises: PasskitError if an operation that it needs fails; ConcretizationError for an array
        that depends on arguments of a function that is traced.
        """
        return computed(self._value, reason)

    def _scalar(self, target: str) -> Any:
        """Return the single element as a Python number, after executing what it needs.

        ``target`` says what needs it, for messages and for those who inspect the stream. The array
        may have axes of length 1.

        Raises: TypeError if the array has not exactly one element; PasskitError if an operation
        that it needs fails; ConcretizationError for an array that depends on arguments of a
        function that is traced, as by `grad`.
        """
        if self._value.type.size != 1:
            raise TypeError(
                f"{target} needs an array of one element, got one of shape {self.shape}"
            )
        return computed(self._value, target).item()

    def __bool__(self) -> bool:
        return bool(self._scalar("bool"))

    def __int__(self) -> int:
        return int(self._scalar("int"))

    def __float__(self) -> float:
        return float(self._scalar("float"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex"))

    def __index__(self) -> int:
        if self.ndim or self.dtype.kind not in "iu":
            raise TypeError(
                f"an index needs a 0-dimensional integer array, got {self.dtype} of shape "
                f"{self.shape}"
            )
        return int(self._scalar("index"))

    def item(self) -> Any:
        """Return the single element as a Python bool, int, float or complex; it is executed.

        The array may have axes of length 1.

        Raises: TypeError if the array has not exactly one element; PasskitError if an operation
        that it needs fails; ConcretizationError for an array that depends on arguments of a
        function that is traced, as by `grad`.
        """
        return self._scalar("item")

    def numpy(self) -> Any:
        """Return a NumPy array of the value, a copy that the caller may write; it is executed.

        Raises: PasskitError if an operation that it needs fails; ConcretizationError for an array
        that depends on arguments of a function that is traced.
        """
        return self._numpy().copy()

    def __repr__(self) -> str:
        if self._value.operation is not None:
            return f"Array(pending: {_pending_names(self._value)}; {self._value.type})"
        elements = np.array2string(self._numpy(), separator=", ", prefix="Array(")
        place = "" if self._value.type.device is None else f", device={self.device!r}"
        return f"Array({elements}, dtype={self.dtype}{place})"

    def __str__(self) -> str:
        return str(self._numpy())

    # Operators

    __add__, __radd__, __iadd__ = _binary("add"), _binary("add", swap=True), _in_place("add")
    __sub__, __rsub__ = _binary("subtract"), _binary("subtract", swap=True)
    __isub__ = _in_place("subtract")
    __mul__, __rmul__ = _binary("multiply"), _binary("multiply", swap=True)
    __imul__ = _in_place("multiply")
    __truediv__, __rtruediv__ = _binary("divide"), _binary("divide", swap=True)
    __itruediv__ = _in_place("divide")
    __floordiv__, __rfloordiv__ = _binary("floor_divide"), _binary("floor_divide", swap=True)
    __ifloordiv__ = _in_place("floor_divide")
    __mod__, __rmod__ = _binary("remainder"), _binary("remainder", swap=True)
    __imod__ = _in_place("remainder")
    __pow__, __rpow__, __ipow__ = _power, _binary("pow", swap=True), _power_in_place
    __matmul__, __rmatmul__ = _binary(MATMUL), _binary(MATMUL, swap=True)
    __imatmul__ = _in_place(MATMUL)
    __and__, __rand__ = _binary("bitwise_and"), _binary("bitwise_and", swap=True)
    __iand__ = _in_place("bitwise_and")
    __or__, __ror__ = _binary("bitwise_or"), _binary("bitwise_or", swap=True)
    __ior__ = _in_place("bitwise_or")
    __xor__, __rxor__ = _binary("bitwise_xor"), _binary("bitwise_xor", swap=True)
    __ixor__ = _in_place("bitwise_xor")
    __lshift__, __rlshift__ = (
        _binary("bitwise_left_shift"),
        _binary("bitwise_left_shift", swap=True),
    )
    __ilshift__ = _in_place("bitwise_left_shift")
    __rshift__, __rrshift__ = (
        _binary("bitwise_right_shift"),
        _binary("bitwise_right_shift", swap=True),
    )
    __irshift__ = _in_place("bitwise_right_shift")
    __lt__, __le__ = _binary("less"), _binary("less_equal")
    __gt__, __ge__ = _binary("greater"), _binary("greater_equal")
    __eq__ = _binary("equal")
    __ne__ = _binary("not_equal")
    __hash__ = None  # type: ignore[assignment]
    __neg__, __pos__ = _unary("negative"), _unary("positive")
    __invert__, __abs__ = _unary("bitwise_invert"), _unary("abs")


connect(Array, apply_any, operator_operand, thread_state, array_type, THREADS)
