"""How functions of `passkit.xp.nn` are defined and applied: operands of one float dtype."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from passkit.errors import ArgumentError, DTypeError, FeedError, ShapeError
from passkit.frontends.xp.array import Array, array_of, operand_value, wrap
from passkit.frontends.xp.density_operations import float_dtype
from passkit.frontends.xp.elementwise_operations import converted
from passkit.frontends.xp.nn.array_functions import in_floats
from passkit.frontends.xp.runtime import OPERATIONS, apply, operation
from passkit.graph.node import Entry
from passkit.streams.recorder import Value
from passkit.values.arguments import shown
from passkit.values.dtype import dtype_of

FLOAT64 = np.dtype(np.float64)


def define(
    name: str,
    build: Callable[..., Any],
    floats: int | None = None,
    on_arrays: Callable[..., Any] | None = None,
) -> None:
    """Define an operation on floats, ``nn.`` and its name.

    Args:
        name: its name.
        build: ``build(*entries, **params)`` returns the result, or a tuple of results.
        floats: how many operands, the first ones, are converted to a common float dtype; None: all.
            If none of these is a float, it is float64. The others stay as they are.
        on_arrays: the same function of NumPy arrays, all operands of one float dtype; None
            interprets.

    Raises: PasskitError if there is an operation of this name.
    """

    def build_floats(*operands: Entry, **params: Any) -> Any:
        count = len(operands) if floats is None else floats
        return build(*converted(operands[:count], "special"), *operands[count:], **params)

    OPERATIONS.define(
        f"nn.{name}", build_floats, None if on_arrays is None else in_floats(on_arrays)
    )


def real_value(where: str, name: str, x: Any, like: np.dtype[Any] = FLOAT64) -> Value:
    """Return the value of an operand of real numbers, which keeps its dtype; bools count as such.

    Args:
        where: the function, for messages.
        name: the parameter, for messages.
        x: an `Array`, a NumPy array or scalar, or a Python bool, int or float. A Python number
            takes the dtype ``like``, or a default one if that is of a lower kind.
        like: the dtype of another operand.

    Raises:
        ArgumentError: it is nothing of these, such as None, a list or a Python complex.
        DTypeError: it is an array or NumPy scalar of complex numbers, or a Python integer out of
            the range of ``like``.
    """
    if type(x) is Array and x._value.type.dtype.kind != "c":
        return x._value
    if not isinstance(x, (Array, np.ndarray, np.generic, bool, int, float)):
        raise ArgumentError(
            f"{where}: {name} must be an array of real numbers, got {shown(x)}; xp.asarray makes "
            "an array of a list"
        )
    value = operand_value(x, like)
    if value.type.dtype.kind == "c":
        raise DTypeError(f"{where}: {name} must be real, got {value.type.dtype}; take xp.real(x)")
    return value


def real_array(where: str, name: str, x: Any) -> Array:
    """Return an operand of real numbers as an array: itself if it is an `Array`.

    The value of an array must not be wrapped a second time, since it belongs to one array. Raises
    ArgumentError for no number or array, and DTypeError for complex ones, as `real_value`.
    """
    value = real_value(where, name, x)
    return x if isinstance(x, Array) else wrap(value)


def real_values(where: str, *, optional: tuple[str, ...] = (), **operands: Any) -> list[Value]:
    """Return the values of the operands of a function, in order.

    Operands that are None are left out if their names are in ``optional``. Python numbers take the
    common dtype of the arrays of floats, or float64 if there are none.

    Raises:
        ArgumentError: one is neither an array nor a real number; so is a None that is needed.
        DTypeError: one is an array of complex numbers or of a dtype that passkit does not have, or
            a Python integer too large for a float.
    """
    arrays = [x for x in operands.values() if isinstance(x, (Array, np.ndarray, np.generic))]
    like = float_dtype([dtype_of(x.dtype) for x in arrays]).numpy
    given = {name: x for name, x in operands.items() if x is not None or name not in optional}
    return [real_value(where, name, x, like) for name, x in given.items()]


def real_number(where: str, name: str, x: Any) -> float:
    """Return a parameter as a float.

    Args:
        where: the function, for messages.
        name: the parameter, for messages.
        x: a bool, int or float of Python, or a scalar of NumPy's integers or floats; also NaN.

    Raises: ArgumentError if it is nothing of these, such as an `Array`, or an int too large for a
    float.
    """
    if not isinstance(x, (int, float, np.integer, np.floating)):
        raise ArgumentError(f"{where}: {name} must be a number, got {shown(x)}")
    try:
        return float(x)
    except OverflowError:
        raise ArgumentError(f"{where}: {name} is too large for a float: {shown(x)}") from None


def positive_number(where: str, name: str, x: Any) -> float:
    """Return a parameter above 0 as a float.

    ``where`` and ``name`` are the function and the parameter, for messages.

    Raises:
        ArgumentError: it is no number, as of `real_number`.
        FeedError: it is 0, negative or NaN; infinity is allowed.
    """
    number = real_number(where, name, x)
    if not number > 0:
        raise FeedError(f"{where} needs {name} above 0, got {shown(x)}")
    return number


def applied(where: str, *values: Value, **params: Hashable) -> Array:
    """Apply the operation ``nn.`` + ``where``, which has one result, to values.

    ``params`` are its parameters. Raises: PasskitError, mostly ShapeError or DTypeError, if they do
    not fit.
    """
    return wrap(apply(operation(f"nn.{where}", **params), *values))


def checked_rank(where: str, x: Any, rank: int, layout: str) -> Array:
    """Return an operand of ``rank`` axes as an array: itself if it is an `Array`.

    ``where`` is the function and ``layout`` the shape that it needs, for messages.

    Raises:
        ArgumentError: it is neither an array nor a number.
        ShapeError: it has another number of axes.
    """
    array = array_of(x)
    if array.ndim != rank:
        raise ShapeError(f"{where} needs x of shape {layout}, got shape {array.shape}")
    return array
