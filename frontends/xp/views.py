"""Triangular views: arrays that know which diagonals of their matrices may differ from 0.

`tril`, `triu`, `eye`, `cholesky` and `as_lower` return arrays with a view, and operations propagate
it by the rules of `view_rules`. Outside of its view an array is exactly 0, whatever is in the
memory that it was declared over: kernels do not read there.
"""

from __future__ import annotations

from typing import Any, Literal

from attrs import frozen

from passkit.errors import ShapeError
from passkit.frontends.xp.array import Array, array_of, wrap
from passkit.frontends.xp.runtime import (
    apply,
    current_stream,
    evaluated,
    on_host,
    operation,
)
from passkit.frontends.xp.view_rules import (
    DiagonalBand,
    band_of,
    diagonals_of,
    needs_mask,
    result_band,
)
from passkit.streams.operation import HOST, Operation, banded_type
from passkit.streams.recorder import ArrayType, Value
from passkit.streams.settings import settings

MOST_DIAGONALS = 1 << 62
"""Diagonals beyond this lie outside of all matrices. NumPy and kernels take numbers up to it."""


@frozen
class View:
    """Which diagonals of the matrices of an array may differ from 0.

    Diagonal d holds the elements with column - row = d: 0 is the main one.

    Attributes:
        kind: "lower" if there are diagonals below the main one and none above it, "upper" the
            other way round, "diagonal" if there are neither, "entire" if there are both.
        bottom: the lowest diagonal that may differ from 0.
        top: the highest one. It is below ``bottom`` if all elements are 0.
    """

    kind: Literal["lower", "upper", "diagonal", "entire"]
    bottom: int
    top: int


def view_of(x: Array, /) -> View:
    """Return which diagonals of the matrices of an array may differ from 0.

    This executes nothing and reads no elements: operations propagate views when they are recorded.
    Of an array that no operation has limited, all diagonals count.

    Args:
        x: an array of at least two axes; matrices lie in the last two.

    Raises: ShapeError if the array has fewer axes; ArgumentError if it is no array or number.

    >>> from passkit import xp
    >>> x = xp.ones((3, 3))
    >>> xp.view_of(xp.tril(x) * xp.triu(x))
    View(kind='diagonal', bottom=0, top=0)
    >>> xp.view_of(xp.tril(x).T + xp.eye(3))
    View(kind='upper', bottom=0, top=2)
    """
    array = _matrices("view_of", x)
    diagonals = diagonals_of(array._value.type)
    bottom, top = int(diagonals.bottom), int(diagonals.top)
    return View(_kind(bottom < 0, top > 0), bottom, top)


def _kind(has_lower: bool, has_upper: bool) -> Literal["lower", "upper", "diagonal", "entire"]:
    """Return `View.kind`.

    ``has_lower`` and ``has_upper`` say whether there are diagonals below and above the main one.
    """
    if has_lower:
        return "entire" if has_upper else "lower"
    return "upper" if has_upper else "diagonal"


def as_lower(x: Array, /) -> Array:
    """Declare that matrices are lower triangles: what is above the main diagonal counts as 0.

    The upper half may hold anything, such as NaNs or the other factor of a decomposition. Kernels
    that read the result do not read it, and nothing is copied before. The result is a new array;
    ``x`` stays as it is.

    Args:
        x: an array of at least two axes; matrices lie in the last two.

    Raises: ShapeError if the array has fewer axes; ArgumentError if it is no array or number.

    >>> from passkit import xp
    >>> packed = xp.asarray([[2.0, xp.nan], [3.0, 4.0]])
    >>> xp.sum(xp.as_lower(packed))
    Array(9., dtype=float64)
    """
    return triangle("as_lower", "tril", x, 0)


def as_upper(x: Array, /) -> Array:
    """Declare that matrices are upper triangles: what is below the main diagonal counts as 0.

    The lower half may hold anything, which is not read. The result is a new array; ``x`` stays as
    it is.

    Args:
        x: an array of at least two axes; matrices lie in the last two.

    Raises: ShapeError if the array has fewer axes; ArgumentError if it is no array or number.
    """
    return triangle("as_upper", "triu", x, 0)


def as_diagonal(x: Array, /) -> Array:
    """Declare that matrices are diagonal: what is not on the main diagonal counts as 0.

    The other elements may hold anything, which is not read. The result is a new array; ``x`` stays
    as it is.

    Args:
        x: an array of at least two axes; matrices lie in the last two.

    Raises: ShapeError if the array has fewer axes; ArgumentError if it is no array or number.
    """
    return triangle("as_diagonal", "triu", triangle("as_diagonal", "tril", x, 0), 0)


def _matrices(where: str, x: Any) -> Array:
    """Return ``x`` as an array of matrices, itself if it is an `Array`.

    ``where`` is the function, for messages. Raises: ShapeError if it has fewer than two axes,
    ArgumentError if it is neither an array nor a number.
    """
    array = array_of(x)
    if array.ndim < 2:
        raise ShapeError(f"{where} needs matrices in the last two axes, got shape {array.shape}")
    return array


def triangle(where: str, name: str, x: Any, k: int) -> Array:
    """Return the triangles of matrices, with their view, in a new array.

    Args:
        where: the function, for messages.
        name: the operation, "tril" or "triu".
        x: an array of matrices in the last two axes.
        k: the highest diagonal that "tril" keeps, or the lowest one that "triu" keeps; any int.

    Raises: ShapeError if the array has fewer than two axes; ArgumentError if it is no array or
        number.
    """
    k = max(-MOST_DIAGONALS, min(k, MOST_DIAGONALS))
    (value,) = apply_viewed(operation(name, k=k), (_matrices(where, x)._value,))
    return wrap(value)


def declare(x: Array, bottom: float, top: float) -> Array:
    """Give an array, which is 0 outside of some diagonals, their view, in place; return it.

    ``bottom`` and ``top`` are the lowest and the highest of these diagonals, infinite for no limit;
    narrower limits that its view has already stay.
    """
    own = diagonals_of(x._value.type)
    limits = type(own)(max(own.bottom, bottom), min(own.top, top))
    x._value.type = banded_type(x._value.type, band_of(limits, x.shape))
    return x


def is_triangular(x: Array) -> bool:
    """Return whether the view of an array says that its matrices are lower or upper triangles.

    Elements are not read. Diagonal matrices count.
    """
    diagonals = diagonals_of(x._value.type)
    return x._value.type.band is not None and (diagonals.bottom >= 0 or diagonals.top <= 0)


def with_band(operation: Operation, operands: tuple[Value, ...], type: ArrayType) -> ArrayType:
    """Return ``type``, that of the result of an operation on ``operands``, with its band."""
    return banded_type(type, result_band(operation, operands, type.shape))


def apply_viewed(operation: Operation, operands: tuple[Value, ...]) -> tuple[Value, ...]:
    """Apply an operation to values of which some may have a band; return all results.

    They are queued, or computed at once if operands and result are small and computed, or if the
    operation has no kernel. A single result gets the band of its rule in `view_rules`, several get
    none. Where the operation alone would not be 0 outside of the band, a triangle of its result is
    taken in the same kernel.

    Raises: PasskitError if the operands do not fit.
    """
    types = tuple([banded_type(v.type, None) for v in operands])
    result_types: Any = operation.result_types.get(types) or operation.infer(types)
    if result_types is HOST:
        results = on_host(operation, operands)
    elif type(result_types) is tuple:
        stream = current_stream()
        value = stream.record(operation, operands, result_types)  # type: ignore[arg-type]
        return tuple(stream.project(value, k) for k in range(len(result_types)))
    elif (
        all(v.operation is None and v.type.size <= settings.small for v in operands)
        and result_types.size <= settings.small
        and result_types.device is None
    ):
        results = (evaluated(operation, operands, result_types),)
    else:
        results = (current_stream().record(operation, operands, result_types),)
    if len(results) > 1:
        return results
    (result,) = results
    band = result_band(operation, operands, result.type.shape)
    if band is not None and needs_mask(operation, operands, band, result.type):
        result = _masked(result, band)
    result.type = banded_type(result.type, band)
    return (result,)


def _masked(value: Value, band: DiagonalBand) -> Value:
    """Return a new value with zeros outside of a band; a limit of None cuts nothing off."""
    if band.top is not None:
        value = apply(operation("tril", k=band.top), value)
    return value if band.bottom is None else apply(operation("triu", k=band.bottom), value)
