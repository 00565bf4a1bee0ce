"""Arguments that are numbers: what was given for them, or an error that says what it was."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from passkit.errors import SettingError, ShapeError
from passkit.graph.infer import show_shape
from passkit.values.size import Extent, Shape


def whole(where: str, what: str, value: Any) -> int:
    """An int, of a NumPy number or a known dimension, too. Raises: SettingError for others."""
    try:
        return operator.index(value)
    except TypeError:
        if isinstance(value, float) and value.is_integer():
            return int(value)
        raise SettingError(f"{where} needs an int as {what}, got {value!r}") from None


def wholes(where: str, what: str, values: Any) -> tuple[int, ...]:
    """Ints, of one or of several. Raises: SettingError for what is none."""
    several = isinstance(values, Iterable) and not isinstance(values, (str, bytes))
    return tuple(whole(where, what, v) for v in (values if several else (values,)))


def rows(where: str, what: str, values: Any) -> tuple[tuple[int, ...], ...]:
    """Ints for each axis. Raises: SettingError for what has no rows."""
    if not isinstance(values, Iterable) or isinstance(values, (str, bytes)):
        raise SettingError(f"{where} needs ints for each axis as {what}, got {values!r}")
    return tuple(wholes(where, what, row) for row in values)


def real(where: str, what: str, value: Any) -> float:
    """A float, of a NumPy number, too. Raises: SettingError for others."""
    try:
        return float(None if isinstance(value, (str, bytes)) else value)  # type: ignore[arg-type]
    except TypeError:
        raise SettingError(f"{where} needs a number as {what}, got {value!r}") from None


def length(where: str, shape: Shape, axis: Any) -> Extent:
    """The extent along an axis. Raises: ShapeError where there is no such axis."""
    k = whole(where, "axis", axis)
    if not -len(shape) <= k < len(shape):
        raise ShapeError(f"{where} needs an axis {k}, got shape {show_shape(shape)}")
    return shape[k]
