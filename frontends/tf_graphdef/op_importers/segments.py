"""Importers of segment reductions and of counts.

The number of segments must be known; for Segment* and SparseSegment* it follows from the last id.
"""

from __future__ import annotations

import numpy as np

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.imported_value import ImportCall, ImportedValue
from passkit.frontends.tf_graphdef.operators import ops
from passkit.frontends.tf_graphdef.registry import ImportResult, op_importer
from passkit.graph.node import Entry
from passkit.values.size import Extent

MOST = 1 << 31
"""Bound of the number of segments."""

UNSORTED = {
    "UnsortedSegmentMax": "segment_max",
    "UnsortedSegmentMin": "segment_min",
    "UnsortedSegmentProd": "segment_prod",
    "UnsortedSegmentSum": "segment_sum",
}


def _num_segments(call: ImportCall, value: ImportedValue) -> Extent:
    """Return the number of segments that the input ``value`` holds; it may be a symbolic size.

    Of a vector, the first element is taken. ``call`` is the node.

    Raises:
        ModelError: If it is not from 0 to 2**31 - 1, is an empty vector, or depends on data.
    """
    (count,) = call.extents(value, "number of segments")[:1] or (-1,)
    if isinstance(count, int) and not 0 <= count < MOST:
        raise ModelError(
            f"{call.where} needs a number of segments from 0 to 2**31 - 1, got {count}"
        )
    return count


@op_importer(*UNSORTED)
def _unsorted(
    call: ImportCall, x: ImportedValue, ids: ImportedValue, num_segments: ImportedValue
) -> ImportResult:
    """Import UnsortedSegmentMax, Min, Prod and Sum, whose ids need not be sorted.

    Rows with an id out of range are dropped. Empty segments are 0, 1 for products, and the least or
    largest finite number for a maximum or minimum.

    Args:
        call: The node.
        x: Data, whose first axes are those of ids.
        ids: For each row the segment to which it belongs.
        num_segments: Number of segments, known during import.

    Raises:
        ModelError: If the number of segments depends on data or is not from 0 to 2**31 - 1.
        ShapeError: If the first axes of ``x`` are not those of ``ids``.
        DTypeError: If ``ids`` are not integers, or ``x`` is of bools or complex.
    """
    op = getattr(ops, UNSORTED[call.node.op])
    count = _num_segments(call, num_segments)
    if call.node.op in ("UnsortedSegmentMax", "UnsortedSegmentMin") and x.dtype.is_float:
        return _reduce_to_finite(op, x, ids, count)
    return op(x.entry, ids.entry, num_segments=count, name=call.name)


def _reduce_to_finite(op: object, x: ImportedValue, ids: ImportedValue, count: Extent) -> Entry:
    """Return a segment maximum or minimum of floats; empty segments are the dtype's finite limit.

    Args:
        op: ``ops.segment_max`` or ``ops.segment_min``, for which empty segments are infinite.
        x: Data.
        ids: For each row its segment.
        count: Number of segments.

    Raises:
        ShapeError: If the first axes of ``x`` are not those of ``ids``.
        DTypeError: If ``ids`` are not integers.
    """
    assert callable(op)
    reduced: Entry = op(x.entry, ids.entry, num_segments=count)
    largest = ops.nan_to_num(ops.full_like(reduced, np.inf))
    zero_reduced = op(ops.zeros_like(x.entry), ids.entry, num_segments=count)
    limit = ops.where(zero_reduced > 0, largest, -largest)
    return ops.where(ops.isinf(zero_reduced), limit, reduced)  # type: ignore[no-any-return]


def _count_known_segments(call: ImportCall, ids: ImportedValue) -> int:
    """Return the number of segments, the last of the known, sorted ids plus 1.

    It is 0 without ids. ``call`` is the node.

    Raises:
        ModelError: If ids are not a vector of known integers, not sorted, negative, or 2**31 or
            more.
    """
    if ids.array is None or ids.array.dtype.kind not in "iu" or ids.array.ndim != 1:
        raise ModelError(
            f"{call.where} needs a vector of segment ids that are known when the model is loaded, "
            f"since the last one gives the number of rows, got {call.shown(ids)}; "
            f"UnsortedSegmentSum takes the number as an input"
        )
    known_ids = ids.array
    if known_ids.size and (
        (np.diff(known_ids) < 0).any() or known_ids[0] < 0 or known_ids[-1] >= MOST
    ):
        raise ModelError(
            f"{call.where} needs segment ids of at least 0 in ascending order, got "
            f"{call.shown(ids)}"
        )
    return int(known_ids[-1]) + 1 if known_ids.size else 0


def _reduce_segments(call: ImportCall, kind: str, x: Entry, ids: Entry, count: Extent) -> Entry:
    """Return a segment reduction over the first axis; empty segments are 0, or 1 for products.

    Args:
        call: The node.
        kind: Max, Mean, Min, Prod, Sum, or SqrtN, the sum divided by the root of the count.
        x: Data.
        ids: For each row its segment.
        count: Number of segments.

    Raises:
        ShapeError: If the first axes of ``x`` are not those of ``ids``, or the rank of ``x`` is
            unknown for Max, Min or SqrtN.
        DTypeError: If ``ids`` are not integers, or ``x`` is of bools or complex, or for Mean and
            SqrtN not of floats.
    """
    if kind == "SqrtN":
        sums = ops.segment_sum(x, ids, num_segments=count)
        ones = ops.reshape(ops.full_like(ids, 1), shape=(-1, *(1,) * (x.ndim - 1)))
        counts = ops.segment_sum(ops.cast(ones, dtype=str(x.dtype)), ids, num_segments=count)
        return ops.div(sums, ops.sqrt(ops.maximum(counts, 1)), name=call.name)  # type: ignore[no-any-return]
    if kind in ("Max", "Min"):
        reduced = getattr(ops, f"segment_{kind.lower()}")(x, ids, num_segments=count)
        row_counts = ops.segment_sum(ops.full_like(ids, 1), ids, num_segments=count)
        is_empty = ops.equal(ops.reshape(row_counts, shape=(-1, *(1,) * (x.ndim - 1))), 0)
        return ops.where(is_empty, ops.zeros_like(reduced), reduced, name=call.name)  # type: ignore[no-any-return]
    op = getattr(ops, f"segment_{kind.lower()}")
    return op(x, ids, num_segments=count, name=call.name)  # type: ignore[no-any-return]


@op_importer(*(f"Segment{kind}" for kind in ("Max", "Mean", "Min", "Prod", "Sum")))
def _segment(call: ImportCall, x: ImportedValue, ids: ImportedValue) -> ImportResult:
    """Import SegmentMax, Mean, Min, Prod and Sum over sorted ids that are known during import.

    Segments without a row are 0, or 1 for products. ``call`` is the node.

    Raises:
        ModelError: If ids are not a vector of known integers, not sorted or negative, or a mean is
            taken of integers.
        ShapeError: If ``x`` has not as many rows as there are ids, or an unknown rank for Max and
            Min.
        DTypeError: If ``x`` is of bools or complex.
    """
    kind = call.node.op.removeprefix("Segment")
    count = _count_known_segments(call, ids)
    if kind == "Mean" and x.dtype.is_integer:
        raise ModelError(f"{call.where} needs floats for a mean, got {x.dtype}; cast the data")
    return _reduce_segments(call, kind, x.entry, ids.entry, count)


@op_importer(*(f"SparseSegment{kind}" for kind in ("Mean", "SqrtN", "Sum")))
def _sparse(
    call: ImportCall, x: ImportedValue, indices: ImportedValue, ids: ImportedValue
) -> ImportResult:
    """Import SparseSegmentMean, SqrtN and Sum: gather rows of ``x`` and reduce them by known ids.

    Args:
        call: The node.
        x: Data.
        indices: Numbers of the rows to gather.
        ids: For each of these its segment; sorted and known during import.

    Returns:
        A row for each segment; those without a row are 0.

    Raises:
        ModelError: If ids are not a vector of known integers, not sorted or negative.
        ShapeError: If ``indices`` are not as many as ids, ``x`` has no rows, or an unknown rank for
            SqrtN.
        DTypeError: If ``indices`` are not integers, or ``x`` is of bools or complex, or for Mean
            and SqrtN not of floats.
    """
    kind = call.node.op.removeprefix("SparseSegment")
    rows = ops.gather(x.entry, indices.entry)
    return _reduce_segments(call, kind, rows, ids.entry, _count_known_segments(call, ids))


@op_importer(*(f"SparseSegment{kind}WithNumSegments" for kind in ("Mean", "SqrtN", "Sum")))
def _sparse_counted(
    call: ImportCall,
    x: ImportedValue,
    indices: ImportedValue,
    ids: ImportedValue,
    num_segments: ImportedValue,
) -> ImportResult:
    """Import SparseSegment*WithNumSegments: gather rows at ``indices``, then reduce them by ids.

    Args:
        call: The node; its name says how rows are reduced: Mean, SqrtN or Sum.
        x: Data.
        indices: Numbers of the rows to gather.
        ids: For each of these its segment; may depend on data.
        num_segments: Number of segments, known during import.

    Returns:
        A row for each segment; those without a row are 0.

    Raises:
        ModelError: If the number of segments depends on data or is not from 0 to 2**31 - 1.
        ShapeError: If ``indices`` are not as many as ids, ``x`` has no rows, or an unknown rank for
            SqrtN.
        DTypeError: If ``indices`` or ids are not integers, or ``x`` is of bools or complex, or for
            Mean and SqrtN not of floats.
    """
    kind = call.node.op.removeprefix("SparseSegment").removesuffix("WithNumSegments")
    rows = ops.gather(x.entry, indices.entry)
    return _reduce_segments(call, kind, rows, ids.entry, _num_segments(call, num_segments))


@op_importer("Bincount", "DenseBincount")
def _bincount(
    call: ImportCall, x: ImportedValue, size: ImportedValue, weights: ImportedValue
) -> ImportResult:
    """Import Bincount and DenseBincount: count or sum weights of each number below ``size``.

    Numbers below 0 or of at least ``size`` are not counted.

    Args:
        call: The node; the attribute ``binary_output`` marks presence, 1 or 0, instead of counting.
        x: Integers, in a vector or, for DenseBincount, rows that are counted separately.
        size: Number of counts, known during import.
        weights: Weight of each element; empty for 1.

    Returns:
        Shape (size,), or (rows, size), in the dtype of the weights. With ``binary_output`` the
        weights give only the dtype.

    Raises:
        ModelError: If ``x`` is not of integers, or its rank is unknown or too large, ``size``
            depends on data or is out of range, or the rank of ``weights`` is unknown, or an
            attribute is of another kind.
        ShapeError: If ``weights`` that are read have neither as many elements as a vector ``x`` nor
            the shape of rows ``x``.
        DTypeError: If ``weights`` are complex, or bools without ``binary_output``.
    """
    if not x.dtype.is_integer:
        raise ModelError(f"{call.where} needs integers to count, got {x.dtype}; cast the input")
    shape = call.shape(x)
    length = _num_segments(call, size)
    has_weights = 0 not in call.shape(weights)
    dtype = weights.dtype.name
    if len(shape) > 2 or (len(shape) == 2 and call.node.op == "Bincount"):
        raise ModelError(
            f"{call.where} needs integers of rank at most "
            f"{1 if call.node.op == 'Bincount' else 2}, got rank {len(shape)}"
        )
    if call.attr("binary_output", "b", False):
        is_value = ops.one_hot(x.entry, depth=length, dtype="bool", on_value=True, off_value=False)
        return ops.cast(ops.reduce_any(is_value, axis=-2), dtype=dtype, name=call.name)
    weight_entries = (
        weights.entry if has_weights else ops.cast(ops.full_like(x.entry, 1), dtype=dtype)
    )
    if len(shape) < 2:
        flat, weight_entries = (ops.reshape(e, shape=(-1,)) for e in (x.entry, weight_entries))
        return ops.segment_sum(weight_entries, flat, num_segments=length, name=call.name)
    rows = ops.reshape(ops.arange(0, shape[0], dtype="int64"), shape=(-1, 1))
    values = ops.cast(x.entry, dtype="int64")
    row_length = length if isinstance(length, int) else _extent_entry(length)
    in_range = ops.logical_and(values >= 0, values < row_length)
    ids = ops.where(in_range, rows * row_length + values, -1)
    sums = ops.segment_sum(weight_entries, ids, num_segments=shape[0] * length)
    return ops.reshape(sums, shape=(shape[0], length), name=call.name)


@op_importer("InTopK")
def _in_top_k_attribute(
    call: ImportCall, predictions: ImportedValue, targets: ImportedValue
) -> ImportResult:
    """Import InTopK: whether the target of each row is among the ``k`` best classes.

    Args:
        call: The node, which has the attribute ``k``.
        predictions: Scores (batch, classes).
        targets: Class number of each row.

    Returns:
        Bools (batch,), False for rows with infinities or NaN, and for targets out of range.

    Raises:
        ModelError: If ``k`` is missing or of another kind, or ``predictions`` has another rank than
            2, or an unknown one.
        ShapeError: If ``targets`` is not a vector of the batch's length or 1, or there are no
            classes.
        DTypeError: If an input is complex, or ``predictions`` are bools.
    """
    return _is_in_top_k(call, predictions, targets, call.attr("k", "i"))


@op_importer("InTopKV2")
def _in_top_k(
    call: ImportCall, predictions: ImportedValue, targets: ImportedValue, k: ImportedValue
) -> ImportResult:
    """Import InTopKV2: whether the target of each row is among the ``k`` best classes.

    Args:
        call: The node.
        predictions: Scores (batch, classes).
        targets: Class number of each row.
        k: Number of best classes, known during import.

    Returns:
        Bools (batch,), False for rows with infinities or NaN, and for targets out of range.

    Raises:
        ModelError: If ``k`` is not one known integer, or ``predictions`` has another rank than 2,
            or an unknown one.
        ShapeError: If ``targets`` is not a vector of the batch's length or 1, or there are no
            classes.
        DTypeError: If an input is complex, or ``predictions`` are bools.
    """
    return _is_in_top_k(call, predictions, targets, call.integer(k, "k"))


def _is_in_top_k(
    call: ImportCall, predictions: ImportedValue, targets: ImportedValue, k: int
) -> Entry:
    """Return, for each row, whether fewer than k classes beat the target.

    Args:
        call: The node.
        predictions: Scores (batch, classes).
        targets: Class number of each row.
        k: Number of best classes; ties with the target do not count.

    Returns:
        Bools (batch,), False for rows with infinities or NaN, and for targets out of range.

    Raises:
        ModelError: If ``predictions`` has another rank than 2, or an unknown one.
        ShapeError: If ``targets`` is not a vector of the batch's length or 1, or there are no
            classes.
        DTypeError: If an input is complex, or ``predictions`` are bools.
    """
    classes = call.rank(predictions, 2)[1]
    x, target_ids = predictions.entry, ops.cast(targets.entry, dtype="int64")
    column = ops.expand_dims(target_ids, axis=1)
    target_score = ops.take_along_axis(x, column, axis=1)
    num_better = ops.reduce_sum(ops.cast(x > target_score, dtype="int32"), axis=1)
    is_finite = ops.reduce_all(ops.isfinite(x), axis=1)
    in_range = ops.logical_and(target_ids >= 0, ops.less(target_ids, _extent_entry(classes)))
    return ops.logical_and(ops.logical_and(num_better < k, is_finite), in_range, name=call.name)  # type: ignore[no-any-return]


def _extent_entry(n: Extent) -> Entry:
    """Return the extent ``n``, an int or a symbolic size, as an int64 scalar for kernels."""
    if isinstance(n, int):
        return ops.full((), n, dtype="int64")  # type: ignore[no-any-return]
    return ops.reduce_max(ops.arange(0, n + 1, dtype="int64"))  # type: ignore[no-any-return]
