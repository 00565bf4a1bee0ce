"""The elementwise functions of the array API.

Operands are arrays that broadcast, and Python numbers, which take the dtype of the array beside
them. The functions queue an operation and return at once.
"""

from __future__ import annotations

from collections.abc import Callable
from textwrap import fill
from typing import Any

import numpy as np

from passkit.errors import ArgumentError
from passkit.frontends.xp.array import Array, array_of, operand_value, wrap
from passkit.frontends.xp.conversion import duplicate
from passkit.frontends.xp.elementwise_operations import FUNCTIONS
from passkit.frontends.xp.runtime import apply, operation
from passkit.streams.recorder import Value, binary_method, operand_beside
from passkit.values.arguments import shown

_BY_NAME = {function.name: function for function in FUNCTIONS}

_REAL = ("atan2", "copysign", "hypot", "logaddexp", "nextafter")
_ROUNDED = ("ceil", "floor", "signbit", "trunc")
_QUOTIENTS = ("floor_divide", "remainder")
_BITS = ("bitwise_and", "bitwise_invert", "bitwise_or", "bitwise_xor")
_SHIFTS = ("bitwise_left_shift", "bitwise_right_shift")
_SIGNED = ("negative", "positive", "sign", "subtract")
_OPERANDS = {
    "": " of numbers or booleans",
    "bool": "; numbers are true unless they are 0",
    "float": " of numbers or booleans; integers and booleans are computed as floats",
    "number": " of numbers; booleans count as int8",
    "quotient": " of numbers or booleans; integers are divided as float64",
    **dict.fromkeys(_REAL, " of real numbers; integers and booleans are computed as floats"),
    **dict.fromkeys(_ROUNDED, " of real numbers or booleans"),
    **dict.fromkeys(_QUOTIENTS, " of real numbers; booleans count as int8"),
    **dict.fromkeys(_BITS, " of integers or booleans"),
    **dict.fromkeys(_SHIFTS, " of integers; booleans count as int8"),
    **dict.fromkeys(_SIGNED, " of numbers"),
}
"""The words for operands in docstrings, by the name of a function or else its domain."""

_TESTS = ("equal", "greater", "greater_equal", "isfinite", "isinf", "isnan", "less", "less_equal")
_BOOLEANS = "A new array of booleans."
_PROMOTED = "the promoted dtype, in which Python numbers are weak"
_RESULTS = {
    "": f"A new array of {_PROMOTED}.",
    "bool": _BOOLEANS,
    "float": f"A new array of {_PROMOTED}; float16 for integers of 8 bits and booleans, float32 "
    "for those of 16 bits, float64 for wider ones.",
    "number": f"A new array of {_PROMOTED}; int8 for booleans.",
    "quotient": "A new array of the promoted dtype; float64 for integers and booleans.",
    **dict.fromkeys((*_TESTS, "not_equal", "signbit"), _BOOLEANS),
    "abs": "A new array of the dtype of x, for complex numbers that of their parts.",
}
"""The words for results in docstrings, by the name of a function or else its domain."""

_OF_TWO = """\
    ShapeError: the shapes do not broadcast, or to too many elements.
    DeviceError: the arrays are on different devices.
"""
"""The errors in docstrings that two operands may raise."""


def _documentation(name: str) -> str:
    """Return the docstring of the public function of an operation of `FUNCTIONS`."""
    function = _BY_NAME[name]
    operand = _OPERANDS.get(name, _OPERANDS[function.domain])
    result = _RESULTS.get(name, _RESULTS[function.domain])
    if function.arity == 1:
        result = result.replace(_PROMOTED, "the dtype of x")
    kind, separator, note = operand.partition("; ")
    operand = f"an array{kind}, or a Python number{separator}{note}."
    lines = [f"x: {operand}"]
    if function.arity == 2:
        lines = [f"x1: {operand}", "x2: the same; it broadcasts with x1."]
    arguments = "\n".join(
        fill(line, 96, initial_indent=" " * 4, subsequent_indent=" " * 8) for line in lines
    )
    return (
        f"Return {function.summary}, for each element.\n\n"
        f"Args:\n{arguments}\n\n"
        f"{fill(f'Returns: {result}', 96, subsequent_indent=' ' * 4)}\n\n"
        "Raises:\n"
        "    ArgumentError: an operand is neither an array nor a number.\n"
        "    DTypeError: the function is not defined for the dtype, or a Python integer does not\n"
        "        fit it.\n" + (_OF_TWO if function.arity == 2 else "")
    )


_ARRAYS_AND_REALS = (Array, float, int)
"""The types of operands beside an `Array` that the recorder takes as they are."""


def _unary(name: str) -> Callable[[Any], Array]:
    """Return the public function of the unary operation ``name``, with a docstring."""
    op = operation(name)

    def function(x: Any, /) -> Array:
        return wrap(apply(op, (x if type(x) is Array else array_of(x))._value))

    _name(function, name)
    return function


def _binary(name: str) -> Callable[[Any, Any], Array]:
    """Return the public function of the binary operation ``name``, with a docstring."""
    op = operation(name)
    beside, reflected = binary_method(op), binary_method(op, swap=True)

    def function(x1: Any, x2: Any, /) -> Array:
        if type(x1) is Array and type(x2) in _ARRAYS_AND_REALS:
            return beside(x1, x2)  # type: ignore[no-any-return]
        if type(x2) is Array and type(x1) in _ARRAYS_AND_REALS:
            return reflected(x2, x1)  # type: ignore[no-any-return]
        return wrap(apply(op, *operand_values(x1, x2)))

    _name(function, name)
    return function


def _name(function: Any, name: str) -> None:
    """Give ``function`` the name of an operation and its documentation, in place."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = _documentation(name)


def operand_values(x1: Any, x2: Any) -> tuple[Value, Value]:
    """Return the values of the operands ``x1`` and ``x2`` of a function.

    A Python number takes the other's dtype, or a default one if that is of a lower kind. Of two
    Python numbers the second has its default dtype, which the first takes.

    Raises: ArgumentError if one is neither an array nor a number; DTypeError for a Python integer
    that the other's dtype, or no dtype, can hold.
    """
    if isinstance(x1, (bool, int, float, complex)) and not isinstance(x1, np.generic):
        right = array_of(x2)._value
        return operand_beside(x1, right), right
    left = array_of(x1)._value
    value = operand_beside(x2, left)
    return left, operand_value(x2, left.type.dtype) if value is NotImplemented else value


abs = _unary("abs")
acos = _unary("acos")
acosh = _unary("acosh")
add = _binary("add")
asin = _unary("asin")
asinh = _unary("asinh")
atan = _unary("atan")
atan2 = _binary("atan2")
atanh = _unary("atanh")
bitwise_and = _binary("bitwise_and")
bitwise_invert = _unary("bitwise_invert")
bitwise_left_shift = _binary("bitwise_left_shift")
bitwise_or = _binary("bitwise_or")
bitwise_right_shift = _binary("bitwise_right_shift")
bitwise_xor = _binary("bitwise_xor")
ceil = _unary("ceil")
copysign = _binary("copysign")
cos = _unary("cos")
cosh = _unary("cosh")
divide = _binary("divide")
equal = _binary("equal")
exp = _unary("exp")
expm1 = _unary("expm1")
floor = _unary("floor")
floor_divide = _binary("floor_divide")
greater = _binary("greater")
greater_equal = _binary("greater_equal")
hypot = _binary("hypot")
isfinite = _unary("isfinite")
isinf = _unary("isinf")
isnan = _unary("isnan")
less = _binary("less")
less_equal = _binary("less_equal")
log = _unary("log")
log10 = _unary("log10")
log1p = _unary("log1p")
log2 = _unary("log2")
logaddexp = _binary("logaddexp")
logical_and = _binary("logical_and")
logical_not = _unary("logical_not")
logical_or = _binary("logical_or")
logical_xor = _binary("logical_xor")
maximum = _binary("maximum")
minimum = _binary("minimum")
multiply = _binary("multiply")
negative = _unary("negative")
nextafter = _binary("nextafter")
not_equal = _binary("not_equal")
positive = _unary("positive")
reciprocal = _unary("reciprocal")
remainder = _binary("remainder")
round = _unary("round")
sign = _unary("sign")
signbit = _unary("signbit")
sin = _unary("sin")
sinh = _unary("sinh")
sqrt = _unary("sqrt")
square = _unary("square")
subtract = _binary("subtract")
tan = _unary("tan")
tanh = _unary("tanh")
trunc = _unary("trunc")


def pow(x1: Any, x2: Any, /) -> Array:
    """Return x1 to the power of x2, for each element.

    Python numbers such as 2, -1 and 0.5 as exponent need no logarithm: the square is a product.
    Integers wrap; those to an array of negative integers are cut to integers. Booleans become
    integers.

    Args:
        x1: an array or a Python number, also complex.
        x2: the same; it broadcasts with x1.

    Raises:
        ArgumentError: an operand is neither an array nor a number.
        DTypeError: an array of integers or booleans to the power of a negative Python integer, or
            a Python integer does not fit the dtype of the array.
        ShapeError: the shapes do not broadcast, or to too many elements.
        DeviceError: the arrays are on several devices.
    """
    if isinstance(x1, Array):
        power = x1.__pow__(x2)
        if power is not NotImplemented:
            return power  # type: ignore[no-any-return]
    return wrap(apply(operation("pow"), *operand_values(x1, x2)))


def clip(x: Any, /, min: Any = None, max: Any = None) -> Array:
    """Return the elements limited to an interval: max where min > max, and NaN of NaN.

    Args:
        x: an array of numbers, or a number; complex ones are compared by their real parts first.
        min: the least value, an array that broadcasts with x or a number; None for no limit.
        max: the greatest value, in the same form. Python integers that the dtype of x cannot hold
            are no limit, unless they are beyond all its numbers.

    Returns: A new array of the promoted dtype, in which Python numbers are weak; without limits a
        copy.

    Raises:
        ArgumentError: x is no array or number, a limit is neither None nor an array nor a number,
            or no number of the dtype of x is within it.
        DTypeError: a Python integer is too large for float64, or a NumPy array has no dtype of
            `passkit.xp`.
        ShapeError: the shapes do not broadcast, or to too many elements.
        DeviceError: the arrays are on several devices.

    >>> from passkit import xp
    >>> xp.clip(xp.asarray([1, 5, 9]), 2, 6).numpy()
    array([2, 5, 6])
    """
    array = array_of(x)
    value = array._value
    for name, limit in (("maximum", min), ("minimum", max)):
        if limit is not None and not _is_beyond(limit, value, name):
            value = apply(operation(name), value, operand_value(limit, value.type.dtype))
    return duplicate(array) if value is array._value else wrap(value)


def _is_beyond(limit: Any, value: Value, name: str) -> bool:
    """Return whether ``limit`` has no effect, as all numbers of a value's dtype are within it.

    That is asked of Python ints and integer dtypes only; for others the result is False. ``name``
    is "maximum" for a lower and "minimum" for an upper limit.

    Raises: ArgumentError if no number of the dtype is within it.
    """
    dtype = value.type.dtype
    if type(limit) is not int or dtype.kind not in "iu":
        return False
    lowest, highest = np.iinfo(dtype).min, np.iinfo(dtype).max
    if lowest <= limit <= highest:
        return False
    if (limit < lowest) == (name == "maximum"):
        return True
    raise ArgumentError(
        f"clip: {dtype} cannot hold the limit {shown(limit)}; convert the array with xp.astype"
    )


def conj(x: Any, /) -> Array:
    """Return a new array with the complex conjugate of each element, or real numbers as they are.

    Args:
        x: an array of numbers or booleans, whose dtype the result has.

    Raises: ArgumentError if it is neither an array nor a number.
    """
    return array_of(x).conj()


def imag(x: Any, /) -> Array:
    """Return the imaginary part of each element, as a new array: zeros of their dtype for others.

    Args:
        x: an array of numbers or booleans.

    Raises: ArgumentError if it is neither an array nor a number.
    """
    return array_of(x).imag


def real(x: Any, /) -> Array:
    """Return the real part of each element, as a new array; for real numbers it is a copy.

    Args:
        x: an array of numbers or booleans.

    Raises: ArgumentError if it is neither an array nor a number.
    """
    return array_of(x).real
