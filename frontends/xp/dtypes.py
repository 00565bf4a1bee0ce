"""Data types: their limits, kinds, conversions and promotion."""

from __future__ import annotations

from functools import reduce
from typing import Any

import ml_dtypes
import numpy as np
from attrs import frozen

from passkit.errors import ArgumentError, DTypeError, SettingError
from passkit.frontends.xp.array import Array
from passkit.values.arguments import shown
from passkit.values.dtype import DType, dtype_of, promote, weak_scalar

PYTHON_NUMBERS = (bool, int, float, complex)
"""The types of weak scalars."""

KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}
"""The letters of `DType.kind` by the standard's names of kinds."""


@frozen
class FInfo:
    """The limits of a floating-point dtype; of a complex one, those of its components.

    Attributes:
        bits: the size in bits.
        eps: the distance from 1 to the next number.
        max: the largest finite number.
        min: the smallest finite number, which is negative.
        smallest_normal: the smallest positive number of full precision.
        dtype: the real dtype.
    """

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype[Any]


@frozen
class IInfo:
    """The limits of an integer dtype.

    Attributes:
        bits: the size in bits.
        max: the largest number.
        min: the smallest number.
        dtype: the dtype.
    """

    bits: int
    max: int
    min: int
    dtype: np.dtype[Any]


def checked_dtype(where: str, dtype: Any) -> DType:
    """Return a dtype that a caller gave as the object of passkit.

    Args:
        where: the function and the argument, such as "zeros: dtype".
        dtype: a dtype of `passkit.xp`, a name such as "float32" or "f32", a type such as float or
            `numpy.int8`, a `DType`, or an array, whose dtype is taken.

    Raises: DTypeError, which names ``where``, if `passkit.xp` has no such dtype; None is none.
    """
    try:
        return dtype_of(dtype)
    except DTypeError as error:
        raise DTypeError(f"{where}: {error}") from None


def _dtype_of_operand(where: str, operand: Any) -> DType:
    """Return the dtype of ``operand``: an `Array`, NumPy array or scalar, or a dtype itself.

    ``where`` is the function, for messages. Raises: DTypeError if it is nothing of these, such as a
    Python number, or `passkit.xp` has no such dtype.
    """
    if isinstance(operand, (Array, np.ndarray, np.generic)):
        return dtype_of(operand.dtype)
    return checked_dtype(where, operand)


def can_cast(from_: Any, to: Any, /) -> bool:
    """Return whether values can be converted to a dtype safely, by the rules of `numpy.can_cast`.

    Args:
        from_: a dtype or an array, of which elements do not matter; no Python number.
        to: the target dtype.

    Raises: DTypeError if one of them is nothing of these.

    >>> from passkit import xp
    >>> xp.can_cast(xp.int32, xp.float64), xp.can_cast(xp.float64, xp.int32)
    (True, False)
    """
    source = _dtype_of_operand("can_cast: from_", from_)
    return np.can_cast(source.numpy, checked_dtype("can_cast: to", to).numpy)


def finfo(type: Any, /) -> FInfo:
    """Return the limits of a floating-point dtype.

    Args:
        type: a real or complex floating-point dtype, or an array of one.

    Raises: DTypeError for other dtypes, and for what is neither, such as a Python number.

    >>> from passkit import xp
    >>> xp.finfo(xp.float32).bits, xp.finfo(xp.float64).eps
    (32, 2.220446049250313e-16)
    """
    dtype = _dtype_of_operand("finfo", type)
    if dtype.kind not in "fc":
        raise DTypeError(f"finfo needs a floating-point dtype, got {dtype}; iinfo is for integers")
    info: Any = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
    return FInfo(
        bits=int(info.bits),
        eps=float(info.eps),
        max=float(info.max),
        min=float(info.min),
        smallest_normal=float(info.smallest_normal),
        dtype=np.dtype(info.dtype),
    )


def iinfo(type: Any, /) -> IInfo:
    """Return the limits of an integer dtype.

    Args:
        type: an integer dtype, or an array of one.

    Raises: DTypeError for other dtypes, such as bool, and for what is neither.

    >>> from passkit import xp
    >>> xp.iinfo(xp.int8).max
    127
    """
    dtype = _dtype_of_operand("iinfo", type)
    if not dtype.is_integer:
        raise DTypeError(f"iinfo needs an integer dtype, got {dtype}; finfo is for floats")
    info = np.iinfo(dtype.numpy)
    return IInfo(bits=int(info.bits), max=int(info.max), min=int(info.min), dtype=dtype.numpy)


def isdtype(dtype: Any, kind: Any) -> bool:
    """Return whether a dtype is of a kind.

    Args:
        dtype: the dtype, in any form that functions of `passkit.xp` take, or an array of it.
        kind: a dtype; a name: "bool", "signed integer", "unsigned integer", "integral",
            "real floating", "complex floating" or "numeric"; or a tuple of them, of which one is to
            hold. An empty tuple gives False.

    Raises:
        DTypeError: ``dtype`` is no dtype, or ``kind`` neither a dtype nor a text nor a tuple.
        SettingError: There is no kind of this name; names of dtypes are none.

    >>> from passkit import xp
    >>> xp.isdtype(xp.float32, "real floating"), xp.isdtype(xp.int8, (xp.bool, "integral"))
    (True, True)
    """
    given = checked_dtype("isdtype: dtype", dtype)
    if isinstance(kind, tuple):
        return any([isdtype(given, k) for k in kind])
    if isinstance(kind, str):
        if kind not in KINDS:
            raise SettingError(f"isdtype has no kind {shown(kind)}; kinds: {', '.join(KINDS)}")
        return given.kind in KINDS[kind]
    return given is checked_dtype("isdtype: kind", kind)


def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """Return the dtype of an operation on arrays and dtypes, by promotion as in NumPy 2.

    Args:
        *arrays_and_dtypes: arrays, dtypes and Python numbers. A number is weak: it only matters if
            it is of a higher kind than all arrays and dtypes; alone, numbers have default dtypes
            (an int that needs it uint64). NumPy's scalars are arrays.

    Raises:
        ArgumentError: There are none.
        DTypeError: One is nothing of these, the common dtype, if it is one of integers, cannot
            hold a Python int, or there are only numbers and an int needs more than 64 bits.

    >>> from passkit import xp
    >>> xp.result_type(xp.int32, xp.float32), xp.result_type(xp.asarray([1.0], dtype=xp.float32), 2)
    (dtype('float64'), dtype('float32'))
    """
    if not arrays_and_dtypes:
        raise ArgumentError("result_type needs at least one array or dtype, got none")
    numbers = [a for a in arrays_and_dtypes if type(a) in PYTHON_NUMBERS]
    others = [a for a in arrays_and_dtypes if type(a) not in PYTHON_NUMBERS]
    if not others:
        for number in numbers:
            if type(number) is int and not -(2**63) <= number < 2**64:
                raise DTypeError(f"result_type: {shown(number)} fits no integer dtype")
        return np.result_type(*numbers)
    dtype = reduce(promote, [_dtype_of_operand("result_type", a) for a in others])
    for number in numbers:
        dtype = promote(dtype, weak_scalar(number, dtype))
    return dtype.numpy
