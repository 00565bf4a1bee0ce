"""NumPy's functions for entries: those of the methods of `Entry`, and others by NumPy's protocols.

They have NumPy's signatures and its rules for dtypes: integers are summed in 64 bits, and means of
integers are float64. NumPy's functions that are not here are refused with the operator to call.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, NoReturn

import numpy as np

from passkit.errors import DTypeError, GraphError
from passkit.graph.call import convert
from passkit.graph.node import Entry, as_entry, known_shape
from passkit.graph.op import TCounterparts, get_op, load_operators
from passkit.values import arguments
from passkit.values.dtype import DType, bool_, dtype_of, float64, int64, promote, uint64
from passkit.values.size import Extent, numel


def _op(name: str, *inputs: Any, **params: Any) -> Entry:
    """Return the output of the operator called ``name`` for ``inputs`` and ``params``.

    Raises: what the operator raises, such as ShapeError and DTypeError for inputs that do not fit.
    """
    return get_op(name)(*inputs, **params)  # type: ignore[no-any-return]


_MOST_DECIMALS = 308
"""Largest power of ten that is a float64."""


def _in_dtype(x: Any, dtype: Any) -> Entry:
    """Return ``x``, an entry or numbers, as an entry converted to ``dtype``; None keeps its own.

    An entry that has it, or an unknown dtype, is returned itself.

    Raises: DTypeError if passkit does not have ``dtype`` or that of ``x``, or one is complex and
    they differ; ArgumentError if ``x`` is neither an entry nor numbers, GraphError if it is a tuple
    of entries.
    """
    entry = as_entry(x)
    return entry if dtype is None else convert(entry, dtype_of(dtype))


def _floats(x: Any, dtype: Any) -> Entry:
    """Return ``x``, an entry or numbers, as an entry of floats or complex numbers.

    It is first converted to ``dtype``, unless that is None; then integers and bools become float64.
    An unknown dtype stays. An entry that needs no conversion is returned itself.

    Raises: DTypeError if passkit does not have ``dtype`` or that of ``x``, or one is complex and
    they differ; ArgumentError if ``x`` is neither an entry nor numbers, GraphError if it is a tuple
    of entries.
    """
    entry = _in_dtype(x, dtype)
    is_float = entry.dtype is None or entry.dtype.is_float or entry.dtype.kind == "c"
    return entry if is_float else convert(entry, float64)


def _truth(x: Any) -> Entry:
    """Return as bools whether each element of ``x``, an entry or numbers, is other than 0.

    An entry of bools is returned itself. Raises: ArgumentError if ``x`` is neither an entry nor
    numbers, GraphError if it is a tuple of entries, DTypeError for a dtype that passkit does not
    have.
    """
    entry = as_entry(x)
    return entry if entry.dtype is bool_ else _op("not_equal", entry, 0)


# Reductions.


def sum(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Entry:
    """Return the sum along ``axis``: one axis, several, or None for all.

    Without ``dtype``, bools and signed integers are summed as int64, unsigned ones as uint64,
    floats in their own dtype. ``keepdims`` keeps the axes with length 1.

    Raises: DTypeError for complex numbers and a dtype that passkit does not have, or if ``dtype``
    is bool or none; ShapeError for an axis that is no int, out of range or listed twice;
    ArgumentError if ``a`` is neither an entry nor numbers, GraphError if it is a tuple of entries,
    or ``keepdims`` is no bool.
    """
    return _op("reduce_sum", _accumulated(a, dtype), axis=axis, keepdims=keepdims)


def prod(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Entry:
    """Return the product along ``axis``: one axis, several, or None for all.

    Without ``dtype``, bools and signed integers are multiplied as int64, unsigned ones as uint64,
    floats in their own dtype. ``keepdims`` keeps the axes with length 1.

    Raises: DTypeError for complex numbers and a dtype that passkit does not have, or if ``dtype``
    is bool or none; ShapeError for an axis that is no int, out of range or listed twice;
    ArgumentError if ``a`` is neither an entry nor numbers, GraphError if it is a tuple of entries,
    or ``keepdims`` is no bool.
    """
    return _op("reduce_prod", _accumulated(a, dtype), axis=axis, keepdims=keepdims)


def _accumulated(x: Any, dtype: Any) -> Entry:
    """Return ``x``, an entry or numbers, as an entry converted to ``dtype``.

    None converts bools and signed integers to int64, unsigned ones to uint64, and keeps others. An
    entry that needs no conversion is returned itself.

    Raises: DTypeError if passkit does not have ``dtype`` or that of ``x``, or one is complex and
    they differ; ArgumentError if ``x`` is neither an entry nor numbers, GraphError if it is a tuple
    of entries.
    """
    entry = _in_dtype(x, dtype)
    if dtype is None and entry.dtype is not None and entry.dtype.kind in "biu":
        return convert(entry, uint64 if entry.dtype.kind == "u" else int64)
    return entry


def mean(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Entry:
    """Return the mean along ``axis``: one axis, several, or None for all; NaN of no elements.

    Elements are converted to ``dtype`` first, if it is not None; the mean of integers and bools is
    float64 in any case. ``keepdims`` keeps the axes with length 1.

    Raises: DTypeError for complex numbers and a dtype that passkit does not have; ShapeError for an
    axis that is no int, out of range or listed twice; ArgumentError if ``a`` is neither an entry
    nor numbers, GraphError if it is a tuple of entries, or ``keepdims`` is no bool.
    """
    return _op("reduce_mean", _floats(a, dtype), axis=axis, keepdims=keepdims)


def max(a: Any, axis: Any = None, *, keepdims: bool = False) -> Entry:
    """Return the largest element along ``axis``, one axis, several, or None for all; NaN if one is.

    Of bools it is whether any is true. ``keepdims`` keeps the axes with length 1.

    Raises: DTypeError for complex numbers and a dtype that passkit does not have; ShapeError for an
    axis that is empty, no int, out of range or listed twice; ArgumentError if ``a`` is neither an
    entry nor numbers, GraphError if it is a tuple of entries, or ``keepdims`` is no bool.
    """
    entry = as_entry(a)
    name = "reduce_any" if entry.dtype is bool_ else "reduce_max"
    return _op(name, entry, axis=axis, keepdims=keepdims)


def min(a: Any, axis: Any = None, *, keepdims: bool = False) -> Entry:
    """Return the least element along ``axis``, one axis, several, or None for all; NaN if one is.

    Of bools it is whether all are true. ``keepdims`` keeps the axes with length 1.

    Raises: DTypeError for complex numbers and a dtype that passkit does not have; ShapeError for an
    axis that is empty, no int, out of range or listed twice; ArgumentError if ``a`` is neither an
    entry nor numbers, GraphError if it is a tuple of entries, or ``keepdims`` is no bool.
    """
    entry = as_entry(a)
    name = "reduce_all" if entry.dtype is bool_ else "reduce_min"
    return _op(name, entry, axis=axis, keepdims=keepdims)


def any(a: Any, axis: Any = None, *, keepdims: bool = False) -> Entry:
    """Return whether any element is true along ``axis``: one axis, several, or None for all.

    Numbers, also complex ones and NaN, are true unless they are 0. ``keepdims`` keeps the axes with
    length 1.

    Raises: ShapeError for an axis that is no int, out of range or listed twice; ArgumentError if
    ``a`` is neither an entry nor numbers, GraphError if it is a tuple of entries or ``keepdims`` is
    no bool, DTypeError for a dtype that passkit does not have.
    """
    return _op("reduce_any", _truth(a), axis=axis, keepdims=keepdims)


def all(a: Any, axis: Any = None, *, keepdims: bool = False) -> Entry:
    """Return whether all elements are true along ``axis``: one axis, several, or None for all.

    Numbers, also complex ones and NaN, are true unless they are 0. ``keepdims`` keeps the axes with
    length 1.

    Raises: ShapeError for an axis that is no int, out of range or listed twice; ArgumentError if
    ``a`` is neither an entry nor numbers, GraphError if it is a tuple of entries or ``keepdims`` is
    no bool, DTypeError for a dtype that passkit does not have.
    """
    return _op("reduce_all", _truth(a), axis=axis, keepdims=keepdims)


def argmax(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Entry:
    """Return the position of the largest element along ``axis``, an int64.

    It is that of the first of equal ones, or of the first NaN. None is the position in row-major
    order. ``keepdims`` keeps the axes with length 1.

    Raises: DTypeError for complex numbers and a dtype that passkit does not have; ShapeError for an
    axis that is empty, no int or out of range; ArgumentError if ``a`` is neither an entry nor
    numbers, GraphError if it is a tuple of entries, or ``keepdims`` is no bool.
    """
    return _op("argmax", a, axis=axis, keepdims=keepdims)


def argmin(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Entry:
    """Return the position of the smallest element along ``axis``, an int64.

    It is that of the first of equal ones, or of the first NaN. None is the position in row-major
    order. ``keepdims`` keeps the axes with length 1.

    Raises: DTypeError for complex numbers and a dtype that passkit does not have; ShapeError for an
    axis that is empty, no int or out of range; ArgumentError if ``a`` is neither an entry nor
    numbers, GraphError if it is a tuple of entries, or ``keepdims`` is no bool.
    """
    return _op("argmin", a, axis=axis, keepdims=keepdims)


def var(
    a: Any, axis: Any = None, dtype: Any = None, *, ddof: float = 0, keepdims: bool = False
) -> Entry:
    """Return the variance along ``axis``: one axis, several, or None for all.

    It is the sum of squared distances to the mean, divided by the number of elements less ``ddof``.
    Elements are converted to ``dtype`` first, if it is not None, integers and bools to float64
    then. ``keepdims`` keeps the axes with length 1.

    Raises: DTypeError for complex numbers and a dtype that passkit does not have; ShapeError for an
    axis that is no int, out of range or listed twice, or a ``ddof`` that is no finite number;
    ArgumentError if ``a`` is neither an entry nor numbers, GraphError if it is a tuple of entries,
    or ``keepdims`` is no bool.
    """
    return _op("var", _floats(a, dtype), axis=axis, correction=ddof, keepdims=keepdims)


def std(
    a: Any, axis: Any = None, dtype: Any = None, *, ddof: float = 0, keepdims: bool = False
) -> Entry:
    """Return the standard deviation along ``axis``: one axis, several, or None for all.

    It is the root of the sum of squared distances to the mean, divided by the number of elements
    less ``ddof``. Elements are converted to ``dtype`` first, if it is not None, integers and bools
    to float64 then. ``keepdims`` keeps the axes with length 1.

    Raises: DTypeError for complex numbers and a dtype that passkit does not have; ShapeError for an
    axis that is no int, out of range or listed twice, or a ``ddof`` that is no finite number;
    ArgumentError if ``a`` is neither an entry nor numbers, GraphError if it is a tuple of entries,
    or ``keepdims`` is no bool.
    """
    return _op("std", _floats(a, dtype), axis=axis, correction=ddof, keepdims=keepdims)


# Scans.


def _scan(name: str, a: Any, axis: int | None, dtype: Any) -> Entry:
    """Return the scan of ``a`` by the operator called ``name``, along ``axis``.

    None scans all elements in row-major order. Without ``dtype``, bools and signed integers are
    accumulated as int64, unsigned ones as uint64.

    Raises: DTypeError for complex numbers and a dtype that passkit does not have, or if ``dtype``
    is bool or none; ShapeError for an axis that is no int or out of range; ArgumentError if ``a``
    is neither an entry nor numbers, GraphError if it is a tuple of entries.
    """
    entry = _accumulated(a, dtype)
    if axis is None:
        entry, axis = ravel(entry), 0
    return _op(name, entry, axis=axis)


def cumsum(a: Any, axis: int | None = None, dtype: Any = None) -> Entry:
    """Return the sum of all elements up to each one along ``axis``; None is row-major order.

    Without ``dtype``, bools and signed integers are accumulated as int64, unsigned ones as uint64.

    Raises: DTypeError for complex numbers and a dtype that passkit does not have, or if ``dtype``
    is bool or none; ShapeError for an axis that is no int or out of range; ArgumentError if ``a``
    is neither an entry nor numbers, GraphError if it is a tuple of entries.
    """
    return _scan("cumulative_sum", a, axis, dtype)


def cumprod(a: Any, axis: int | None = None, dtype: Any = None) -> Entry:
    """Return the product of all elements up to each one along ``axis``; None is row-major order.

    Without ``dtype``, bools and signed integers are accumulated as int64, unsigned ones as uint64.

    Raises: DTypeError for complex numbers and a dtype that passkit does not have, or if ``dtype``
    is bool or none; ShapeError for an axis that is no int or out of range; ArgumentError if ``a``
    is neither an entry nor numbers, GraphError if it is a tuple of entries.
    """
    return _scan("cumulative_prod", a, axis, dtype)


# Shapes.


def size(a: Any) -> Extent:
    """Return the number of elements, an int, or a Size if an extent is symbolic.

    Raises: ShapeError if the rank is unknown; ArgumentError if ``a`` is neither an entry nor
    numbers, GraphError if it is a tuple of entries, DTypeError for a dtype that passkit does not
    have.
    """
    return numel(known_shape(as_entry(a)))


def shape(a: Any) -> tuple[Extent, ...]:
    """Return the shape, a tuple of ints and sizes.

    Raises: ShapeError if the rank is unknown; ArgumentError if ``a`` is neither an entry nor
    numbers, GraphError if it is a tuple of entries, DTypeError for a dtype that passkit does not
    have.
    """
    return known_shape(as_entry(a))


def ndim(a: Any) -> int:
    """Return the rank, an int.

    Raises: ShapeError if it is unknown; ArgumentError if ``a`` is neither an entry nor numbers,
    GraphError if it is a tuple of entries, DTypeError for a dtype that passkit does not have.
    """
    return len(shape(a))


def reshape(a: Any, shape: Any) -> Entry:
    """Return the elements in row-major order in another shape.

    ``shape`` is an extent or a tuple or list of them; one may be -1, which is filled in.

    Raises: ShapeError if ``shape`` has other negative extents or no extents, or does not fit the
    number of elements; ArgumentError if ``a`` is neither an entry nor numbers, GraphError if it is
    a tuple of entries, DTypeError for a dtype that passkit does not have.
    """
    return _op("reshape", a, shape=shape if isinstance(shape, (tuple, list)) else (shape,))


def transpose(a: Any, axes: Any = None) -> Entry:
    """Return ``a`` with its axes in the order ``axes``, which names each once; None reverses them.

    Raises: ShapeError if ``axes`` does not name each axis once; ArgumentError if ``a`` is neither
    an entry nor numbers, GraphError if it is a tuple of entries, DTypeError for a dtype that
    passkit does not have.
    """
    return _op("transpose", a, axes=axes)


def matrix_transpose(x: Any) -> Entry:
    """Return matrices with their last two axes swapped.

    Raises: ShapeError for a rank below 2; ArgumentError if ``x`` is neither an entry nor numbers,
    GraphError if it is a tuple of entries, DTypeError for a dtype that passkit does not have.
    """
    return _op("matrix_transpose", x)


def swapaxes(a: Any, axis1: int, axis2: int) -> Entry:
    """Return ``a`` with the axes ``axis1`` and ``axis2``, which may be equal, swapped.

    Raises: ShapeError for an axis that is no int or out of range; ArgumentError if ``a`` is neither
    an entry nor numbers, GraphError if it is a tuple of entries, DTypeError for a dtype that
    passkit does not have.
    """
    return _op("swapaxes", a, axis1=axis1, axis2=axis2)


def moveaxis(a: Any, source: Any, destination: Any) -> Entry:
    """Return ``a`` with the axes ``source`` at the positions ``destination``; others keep order.

    Each is one int or as many as the other.

    Raises: ShapeError for another number of axes, or one that is no int, out of range or listed
    twice; ArgumentError if ``a`` is neither an entry nor numbers, GraphError if it is a tuple of
    entries, DTypeError for a dtype that passkit does not have.
    """
    return _op("moveaxis", a, source=source, destination=destination)


def squeeze(a: Any, axis: Any = None) -> Entry:
    """Return ``a`` without the axes of length 1 that ``axis`` names; None removes all of them.

    Raises: ShapeError if an axis is longer than 1, out of range, no int or listed twice, or
    ``axis`` is None and an extent is symbolic; ArgumentError if ``a`` is neither an entry nor
    numbers, GraphError if it is a tuple of entries, DTypeError for a dtype that passkit does not
    have.
    """
    return _op("squeeze", a, axis=axis)


def ravel(a: Any) -> Entry:
    """Return the elements in row-major order, along one axis.

    Raises: ArgumentError if ``a`` is neither an entry nor numbers, GraphError if it is a tuple of
    entries, DTypeError for a dtype that passkit does not have.
    """
    return _op("ravel", a)


def expand_dims(a: Any, axis: Any) -> Entry:
    """Return ``a`` with an axis of length 1 at the position ``axis`` of the result, or at several.

    Raises: ShapeError if ``axis`` is None, no int or ints, out of range or has a position twice;
    ArgumentError if ``a`` is neither an entry nor numbers, GraphError if it is a tuple of entries,
    DTypeError for a dtype that passkit does not have.
    """
    return _op("expand_dims", a, axis=axis)


def broadcast_to(array: Any, shape: Any) -> Entry:
    """Return ``array`` repeated to ``shape``, an extent or a tuple or list of them.

    Raises: ShapeError if ``array`` does not broadcast to it, or it has a negative extent or no
    extents; ArgumentError if ``array`` is neither an entry nor numbers, GraphError if it is a tuple
    of entries, DTypeError for a dtype that passkit does not have.
    """
    return _op("broadcast_to", array, shape=shape)


def flip(m: Any, axis: Any = None) -> Entry:
    """Return the elements in reverse order along ``axis``: one axis, several, or None for all.

    Raises: ShapeError for an axis that is no int, out of range or listed twice; ArgumentError if
    ``m`` is neither an entry nor numbers, GraphError if it is a tuple of entries, DTypeError for a
    dtype that passkit does not have.
    """
    return _op("flip", m, axis=axis)


def roll(a: Any, shift: Any, axis: Any = None) -> Entry:
    """Return the elements moved by ``shift`` positions; those that leave an end enter at the other.

    Each of one or several axes has its shift, or all have one. An ``axis`` of None moves them in
    row-major order.

    Raises: ShapeError for a shift that is no int, an axis that is no int or out of range, or
    another number of shifts; ArgumentError if ``a`` is neither an entry nor numbers, GraphError if
    it is a tuple of entries, DTypeError for a dtype that passkit does not have.
    """
    return _op("roll", a, shift=shift, axis=axis)


def tile(A: Any, reps: Any) -> Entry:  # noqa: N803 (NumPy's name)
    """Return ``A`` repeated ``reps`` times along axes: an int for the last one, or a tuple or list.

    A sequence is aligned at the last axis; more repetitions than axes add axes in front.

    Raises: ShapeError for a repetition that is negative or neither an int nor a Size; ArgumentError
    if ``A`` is neither an entry nor numbers, GraphError if it is a tuple of entries, DTypeError for
    a dtype that passkit does not have.
    """
    return _op("tile", A, repetitions=reps if isinstance(reps, (tuple, list)) else (reps,))


def repeat(a: Any, repeats: Any, axis: int | None = None) -> Entry:
    """Return each element ``repeats`` times along ``axis``; None repeats in row-major order.

    ``repeats`` is one int, or one for each element of the axis.

    Raises: ShapeError for repeats that are negative, no ints or of another number, or an axis that
    is no int or out of range; ArgumentError if ``a`` is neither an entry nor numbers, GraphError if
    it is a tuple of entries, DTypeError for a dtype that passkit does not have.
    """
    return _op("repeat", a, repeats=repeats, axis=axis)


def take(a: Any, indices: Any, axis: int | None = None) -> Entry:
    """Return the parts of ``a`` at ``indices`` along ``axis``; None is row-major order.

    Indices are integers; negative ones count from the end, and those out of range are clipped.

    Raises: DTypeError for other indices and a dtype that passkit does not have; ShapeError for an
    axis that is no int or out of range, or empty if there are indices; ArgumentError if ``a`` or
    ``indices`` is neither an entry nor numbers, GraphError if one is a tuple of entries.
    """
    return _op("take", a, indices, axis=axis)


def concatenate(arrays: Any, axis: int = 0) -> Entry:
    """Return entries and arrays joined along an existing ``axis``, in their common dtype.

    If a dtype is unknown, none is converted.

    Raises: ShapeError for no arrays, shapes that differ along another axis, or an axis that is no
    int, such as None, or out of range; DTypeError if an operand would be converted to or from a
    complex dtype, or passkit does not have its dtype; ArgumentError if one is neither an entry nor
    numbers, GraphError if one is a tuple of entries or ``arrays`` is a single entry; TypeError if
    that is no iterable.
    """
    return _op("concat", *_promoted(arrays), axis=axis)


def stack(arrays: Any, axis: int = 0) -> Entry:
    """Return entries and arrays of one shape along a new axis at ``axis``, in their common dtype.

    If a dtype is unknown, none is converted.

    Raises: ShapeError for no arrays, different shapes, or an axis that is no int or out of range;
    DTypeError if an operand would be converted to or from a complex dtype, or passkit does not have
    its dtype; ArgumentError if one is neither an entry nor numbers, GraphError if one is a tuple of
    entries or ``arrays`` is a single entry; TypeError if that is no iterable.
    """
    return _op("stack", *_promoted(arrays), axis=axis)


def _promoted(operands: Any) -> list[Entry]:
    """Return operands, an iterable of entries and numbers, as entries of their common dtype.

    It is NumPy's; entries that have it stay themselves. If a dtype is unknown, none is converted.

    Raises: DTypeError if an operand would be converted to or from a complex dtype, or passkit does
    not have its dtype; ArgumentError if one is neither an entry nor numbers, GraphError if one is a
    tuple of entries or ``operands`` is a single entry; TypeError if that is no iterable.
    """
    entries = [as_entry(x) for x in operands]
    dtypes = [e.dtype for e in entries if e.dtype is not None]
    if len(dtypes) < len(entries) or not entries:
        return entries
    if [d for d in dtypes if _is_foreign(d.numpy)]:  # NumPy does not promote it with all others
        dtype = reduce(promote, dtypes)
    else:
        dtype = dtype_of(np.result_type(*(d.numpy for d in dtypes)))
    return [convert(e, dtype) for e in entries]


# Elementwise, and products.


def astype(x: Any, dtype: Any) -> Entry:
    """Return ``x`` converted to ``dtype``; as bool, all but 0 is true.

    An entry that has the dtype, or an unknown one that is not converted to bool, is returned
    itself.

    Raises: DTypeError if passkit does not have ``dtype`` or that of ``x``, or complex numbers
    become others than bool, or others become complex; ArgumentError if ``x`` is neither an entry
    nor numbers, GraphError if it is a tuple of entries.
    """
    target = dtype_of(dtype)
    return _truth(x) if target is bool_ else convert(as_entry(x), target)


def clip(a: Any, a_min: Any = None, a_max: Any = None) -> Entry:
    """Return the elements limited to ``a_min`` and ``a_max``; None is no limit.

    Limits are numbers, arrays or entries. The dtype is NumPy's of np.maximum and np.minimum: an int
    entry with a float limit gives float64. Without limits an entry is returned itself.

    Raises: DTypeError for an int that does not fit the dtype, for complex numbers, and for a dtype
    that passkit does not have; ShapeError if a limit does not broadcast; ArgumentError if ``a`` or
    a limit is neither an entry nor numbers, GraphError for a tuple of entries.
    """
    entry = as_entry(a)
    if a_min is not None:
        entry = _binary("maximum", entry, a_min)
    return entry if a_max is None else _binary("minimum", entry, a_max)


def _binary(name: str, x: Any, y: Any) -> Entry:
    """Return the operator ``name``, which is NumPy's name too, of two operands in NumPy's dtype.

    A Python number takes the dtype of the other operand.

    Raises: DTypeError for an int that does not fit it, or dtypes that NumPy, passkit or the
    operator does not take; ShapeError if the shapes do not broadcast; ArgumentError for an operand
    that is neither an entry nor numbers, GraphError for a tuple of entries.
    """
    return _op(name, *_resolved(getattr(np, name), (x, y)))


def round(a: Any, decimals: int = 0) -> Entry:
    """Return the elements rounded to ``decimals`` digits after the point, halves to even.

    A negative number rounds to tens, hundreds and so on. Integers and bools stay, unless it is
    negative: then they are rounded in float64 and converted back. A power of ten that a float dtype
    cannot hold gives NaN, as in NumPy; above 308 elements stay, below -308 finite ones become 0.

    Raises: DTypeError for complex numbers and a dtype that passkit does not have; ArgumentError if
    ``a`` is neither an entry nor numbers, or ``decimals`` no int; GraphError if ``a`` is a tuple of
    entries.
    """
    entry = as_entry(a)
    arguments.instance("round: decimals", decimals, (int, np.integer), "an int")
    is_integer = entry.dtype is not None and entry.dtype.kind in "biu"
    if is_integer and decimals >= 0:
        return _op("identity", entry)
    if not decimals:
        return _op("rint", entry)
    if abs(decimals) > _MOST_DECIMALS:
        _op("rint", entry)  # which refuses complex numbers
        if decimals > 0:
            return _op("identity", entry)
        return _op("zeros_like", entry) if is_integer else entry * 0.0
    scale = 10.0 ** abs(decimals)
    if decimals > 0:
        return _op("rint", entry * scale) / scale
    rounded = _op("rint", _floats(entry, None) / scale) * scale
    return convert(rounded, entry.dtype) if is_integer and entry.dtype is not None else rounded


def dot(a: Any, b: Any) -> Entry:
    """Return the product of two vectors, matrices or numbers in their common dtype, as numpy.dot.

    It sums over the last axis of ``a`` and the last but one of ``b``, or the only one.

    Raises: ShapeError if these differ; DTypeError for bools, complex numbers and a dtype that
    passkit does not have; ArgumentError if one is neither an entry nor numbers, GraphError for a
    tuple of entries.
    """
    return _op("dot", *_promoted([a, b]))


def matmul(x1: Any, x2: Any) -> Entry:
    """Return the product of matrices in the last two axes, in their common dtype.

    A vector is a row on the left and a column on the right; its axis is removed from the result.

    Raises: ShapeError for a scalar, an unknown rank, or shapes that do not fit; DTypeError for
    bools, complex numbers and a dtype that passkit does not have; ArgumentError if one is neither
    an entry nor numbers, GraphError for a tuple of entries.
    """
    left, right = _promoted([x1, x2])
    is_row, is_column = len(known_shape(left)) == 1, len(known_shape(right)) == 1
    left = _op("expand_dims", left, axis=0) if is_row else left
    right = _op("expand_dims", right, axis=1) if is_column else right
    product = _op("matmul", left, right)
    product = _op("squeeze", product, axis=-1) if is_column else product
    return _op("squeeze", product, axis=-1 if is_column else -2) if is_row else product


def conj(x: Any) -> Entry:
    """Return the complex conjugates; real numbers stay.

    Raises: DTypeError for bools and a dtype that passkit does not have, ArgumentError if ``x`` is
    neither an entry nor numbers, GraphError if it is a tuple of entries.
    """
    return _op("conj", x)


def where(condition: Any, x: Any, y: Any) -> Entry:
    """Return the elements of ``x`` where ``condition`` is other than 0, else those of ``y``.

    ``x`` and ``y`` get the dtype of their sum in NumPy: int and float64 entries give float64.

    Raises: DTypeError for a Python int that does not fit it, or if an operand would be converted to
    or from a complex dtype, or passkit does not have its dtype; ShapeError if shapes do not
    broadcast; ArgumentError if one is neither an entry nor numbers, GraphError for a tuple of
    entries.
    """
    return _op("where", _truth(condition), *_resolved(np.add, (x, y)))


def zeros_like(a: Any) -> Entry:
    """Return zeros of the shape and dtype of ``a``.

    Raises: ArgumentError if ``a`` is neither an entry nor numbers, GraphError if it is a tuple of
    entries, DTypeError for a dtype that passkit does not have.
    """
    return _op("zeros_like", a)


def ones_like(a: Any) -> Entry:
    """Return ones of the shape and dtype of ``a``.

    Raises: ArgumentError if ``a`` is neither an entry nor numbers, GraphError if it is a tuple of
    entries, DTypeError for a dtype that passkit does not have.
    """
    return _op("ones_like", a)


def tril(m: Any, k: int = 0) -> Entry:
    """Return matrices with zeros above the diagonal ``k``; 0 is the main one, 1 the one above it.

    Raises: ShapeError for a rank below 2, or a ``k`` that is no int; ArgumentError if ``m`` is
    neither an entry nor numbers, GraphError if it is a tuple of entries, DTypeError for a dtype
    that passkit does not have.
    """
    return _op("tril", m, k=k)


def triu(m: Any, k: int = 0) -> Entry:
    """Return matrices with zeros below the diagonal ``k``; 0 is the main one, 1 the one above it.

    Raises: ShapeError for a rank below 2, or a ``k`` that is no int; ArgumentError if ``m`` is
    neither an entry nor numbers, GraphError if it is a tuple of entries, DTypeError for a dtype
    that passkit does not have.
    """
    return _op("triu", m, k=k)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "all": all,
    "amax": max,
    "amin": min,
    "any": any,
    "argmax": argmax,
    "argmin": argmin,
    "astype": astype,
    "broadcast_to": broadcast_to,
    "clip": clip,
    "concatenate": concatenate,
    "cumprod": cumprod,
    "cumsum": cumsum,
    "dot": dot,
    "expand_dims": expand_dims,
    "flip": flip,
    "matrix_transpose": matrix_transpose,
    "max": max,
    "mean": mean,
    "min": min,
    "moveaxis": moveaxis,
    "ndim": ndim,
    "ones_like": ones_like,
    "prod": prod,
    "ravel": ravel,
    "repeat": repeat,
    "reshape": reshape,
    "roll": roll,
    "round": round,
    "shape": shape,
    "size": size,
    "squeeze": squeeze,
    "stack": stack,
    "std": std,
    "sum": sum,
    "swapaxes": swapaxes,
    "take": take,
    "tile": tile,
    "transpose": transpose,
    "tril": tril,
    "triu": triu,
    "var": var,
    "where": where,
    "zeros_like": zeros_like,
}
"""The functions that NumPy calls for entries, by NumPy's names."""


# NumPy's protocols.


def apply_function(function: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Return what a function of NumPy that is no ufunc returns for entries.

    Args:
        function: The function of NumPy, such as ``numpy.sum``.
        args: Its positional arguments.
        params: Its keyword arguments.

    Returns:
        What the function of the same name in `FUNCTIONS` returns: an entry, or an extent or shape.

    Raises: GraphError if it is none of `FUNCTIONS`, or is called with an argument that these lack;
    the message names the operator to call. Else what that function raises.
    """
    own = FUNCTIONS.get(function.__name__) if function.__module__ == "numpy" else None
    name = f"{function.__module__}.{function.__name__}"
    if own is None:
        _refuse(name, "")
    try:
        return own(*args, **params)
    except TypeError as error:
        if f"{function.__name__}()" not in str(error) and f"{own.__name__}()" not in str(error):
            raise
        _refuse(name, f": {str(error).partition('() ')[2]}")


def apply_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Return what a ufunc of NumPy returns for entries: an operator on operands of NumPy's dtypes.

    Args:
        ufunc: The ufunc, such as ``numpy.add``.
        method: How it is called; only "__call__" is accepted.
        inputs: Its operands: entries, arrays and numbers.
        params: Its keyword arguments; none is accepted.

    Raises: GraphError for other methods than calls, for further arguments, and for ufuncs without
    an operator; the message names the operator to call, if there is one. DTypeError for dtypes that
    the ufunc, passkit or the operator does not take, ShapeError for shapes that do not broadcast,
    ArgumentError for an operand that is neither an entry nor numbers.
    """
    name = f"numpy.{ufunc.__name__}"
    if method != "__call__":
        _refuse(f"{name}.{method}", "")
    if params:
        _refuse(name, f": it takes no argument {next(iter(params))!r} here")
    if ufunc is np.matmul:
        return matmul(*inputs)
    operator = _operators().get(_ALIASES.get(ufunc.__name__, name))
    if operator is None or ufunc.nout > 1:
        _refuse(name, "")
    return _op(operator, *_resolved(ufunc, inputs))


_ALIASES = {"remainder": "numpy.mod", "degrees": "numpy.rad2deg", "radians": "numpy.deg2rad"}
"""Names under which operators list NumPy's ufuncs, where these have others."""


def _resolved(ufunc: Any, operands: tuple[Any, ...]) -> list[Entry]:
    """Return operands as entries of the dtypes in which NumPy computes a ufunc of them.

    Python bools, ints and floats follow the dtypes of the others. Entries that have their dtype
    stay themselves; if that of one is unknown, all operands are returned as they are.

    Raises: DTypeError if NumPy's ufunc does not take the dtypes, an int does not fit, or an operand
    would be converted to or from a complex dtype, or passkit does not have its dtype; ArgumentError
    for an operand that is neither an entry nor numbers, GraphError for a tuple of entries.
    """
    numbers = [type(x) if type(x) in (bool, int, float) else None for x in operands]
    entries = [as_entry(x) if n is None else None for x, n in zip(operands, numbers, strict=True)]
    kinds: list[Any] = [
        number if entry is None else (None if entry.dtype is None else entry.dtype.numpy)
        for number, entry in zip(numbers, entries, strict=True)
    ]
    if [k for k in kinds if k is None]:  # a float64 equals None
        return list(operands)
    dtypes = _loop(ufunc, kinds)
    return [
        _number(x, dtype) if entry is None else convert(entry, dtype)
        for x, entry, dtype in zip(operands, entries, dtypes, strict=True)
    ]


def _number(value: Any, dtype: DType) -> Entry:
    """Return a Python number as a constant of ``dtype``.

    Raises: DTypeError if an int is out of the range of ``dtype``.
    """
    try:
        if dtype.is_float and _is_foreign(dtype.numpy):  # does not take ints beyond 64 bits
            value = float(value)
        return as_entry(np.asarray(value, dtype.numpy))
    except OverflowError:
        raise DTypeError(
            f"{arguments.shown(value)} does not fit {dtype}; cast the array to a wider type first"
        ) from None


def _is_foreign(dtype: Any) -> bool:
    """Return whether a NumPy dtype is none of NumPy's own, such as bfloat16."""
    return bool(dtype.num > 255)


def _loop(ufunc: Any, kinds: list[Any]) -> list[DType]:
    """Return the dtypes of the operands for which NumPy has a loop of a ufunc.

    If one is foreign to NumPy, such as bfloat16, all have the promoted dtype of the arrays.

    Args:
        ufunc: the ufunc.
        kinds: for each operand its NumPy dtype, or the type of a Python number: bool, int or float.

    Raises: DTypeError if there is no loop, such as that of np.invert for floats.
    """
    of_arrays = [k for k in kinds if not isinstance(k, type)]
    if [k for k in of_arrays if _is_foreign(k)]:
        return [reduce(promote, map(dtype_of, of_arrays))] * len(kinds)
    weak = [
        {bool: np.dtype(bool), int: int, float: float}[k] if isinstance(k, type) else k
        for k in kinds
    ]
    try:
        dtypes = ufunc.resolve_dtypes((*weak, *[None] * ufunc.nout))
    except TypeError:
        names = " and ".join(k.__name__ if isinstance(k, type) else str(k) for k in kinds)
        raise DTypeError(
            f"np.{ufunc.__name__} does not take {names}; x.astype(dtype) converts an entry"
        ) from None
    return [dtype_of(d) for d in dtypes[: len(kinds)]]


_operators_by_name: dict[str, str] = {}


def _operators() -> dict[str, str]:
    """Return the names of operators by the full names of NumPy's equivalents, such as "numpy.add".

    Of several operators with one equivalent it is the one of that name, else the first. The first
    call imports all operators; all return the same dict.
    """
    if not _operators_by_name:
        load_operators()
        for operator, setting in TCounterparts.rows.items():
            name = setting.value.get("NumPy")
            if name and (name not in _operators_by_name or operator == name.partition(".")[2]):
                _operators_by_name[name] = operator
    return _operators_by_name


_REPLACEMENTS = {
    "numpy.add.reduce": "reduce_sum",
    "numpy.linalg.norm": "vector_norm",
    "numpy.maximum.reduce": "reduce_max",
    "numpy.minimum.reduce": "reduce_min",
    "numpy.multiply.reduce": "reduce_prod",
}
"""Operators to call in place of functions of NumPy that are no equivalent of one."""


def _refuse(name: str, reason: str) -> NoReturn:
    """Raise a GraphError for the function ``name`` of NumPy, with the operator to call instead.

    ``reason`` follows in the message what an Entry is refused as; "" for none.
    """
    operator = _REPLACEMENTS.get(name) or _operators().get(name)
    short = name.replace("numpy", "np", 1)
    way_out = f"call pk.ops.{operator}" if operator else "docs/operators.md lists the operators"
    raise GraphError(f"{short} does not take an Entry of a graph like this{reason}; {way_out}")
