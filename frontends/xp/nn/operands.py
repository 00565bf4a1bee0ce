"""How functions of `passkit.xp.nn` are defined and applied: operands of one float dtype."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from passkit.errors import ArgumentError, DTypeError, ShapeError
from passkit.frontends.xp.array import Array, array_of, operand_value, wrap
from passkit.frontends.xp.elementwise_operations import converted
from passkit.frontends.xp.nn.array_functions import in_floats
from passkit.frontends.xp.runtime import OPERATIONS, apply, operation
from passkit.graph.node import Entry
from passkit.streams.recorder import Value
from passkit.values.arguments import shown

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
        build: ``build(*entries, **params)`` returns the result.
        floats: how many operands, the first ones, are converted to a common float dtype; None: all.
            Integers become float64.
        on_arrays: the same function of NumPy arrays of one float dtype; None interprets.
    """

    def build_floats(*operands: Entry, **params: Any) -> Any:
        count = len(operands) if floats is None else floats
        return build(*converted(operands[:count], "special"), *operands[count:], **params)

    OPERATIONS.define(
        f"nn.{name}", build_floats, None if on_arrays is None else in_floats(on_arrays)
    )


def real_value(where: str, name: str, x: Any, like: np.dtype[Any] = FLOAT64) -> Value:
    """Return the value of an operand of real numbers.

    Args:
        where: the function, for messages.
        name: the parameter, for messages.
        x: an array; or a number, which takes the dtype ``like``.
        like: the dtype of another operand.

    Raises:
        ArgumentError: it is neither.
        DTypeError: it is complex.
    """
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
    """Return an operand of real numbers as an array: itself if it is one. Raises as `real_value`.

    The value of an array must not be wrapped a second time, since it belongs to one array.
    """
    value = real_value(where, name, x)
    return x if isinstance(x, Array) else wrap(value)


def real_values(where: str, **operands: Any) -> list[Value]:
    """Return the values of operands by their names; those that are None are left out.

    Python numbers take the dtype of the first operand. Raises as `real_value`.
    """
    values: list[Value] = []
    for name, x in operands.items():
        if x is not None:
            like = values[0].type.dtype if values else FLOAT64
            values.append(real_value(where, name, x, like))
    return values


def applied(where: str, *values: Value, **params: Hashable) -> Array:
    """Apply the operation of a function to values. Raises: PasskitError if they do not fit."""
    return wrap(apply(operation(f"nn.{where}", **params), *values))


def checked_rank(where: str, x: Any, rank: int, layout: str) -> Array:
    """Return an operand as an array. Raises: ShapeError unless it has ``rank`` axes."""
    array = array_of(x)
    if array.ndim != rank:
        raise ShapeError(f"{where} needs x of shape {layout}, got shape {array.shape}")
    return array
