"""Sums of what has equal ids, and counts of values.

How many segments there are must be known: Segment* and SparseSegment* say it by their last id.
"""

from __future__ import annotations

import numpy as np

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.operators import ops
from passkit.frontends.tf_graphdef.table import Result, row
from passkit.frontends.tf_graphdef.value import Call, Value
from passkit.graph.node import Entry
from passkit.values.size import Extent

MOST = 1 << 31
"""More segments are no model's."""

UNSORTED = {
    "UnsortedSegmentMax": "segment_max",
    "UnsortedSegmentMin": "segment_min",
    "UnsortedSegmentProd": "segment_prod",
    "UnsortedSegmentSum": "segment_sum",
}


def _count(call: Call, value: Value) -> Extent:
    (count,) = call.extents(value, "number of segments")[:1] or (-1,)
    if isinstance(count, int) and not 0 <= count < MOST:
        raise ModelError(f"{call.where} needs a number of segments from 0 to 2**31, got {count}")
    return count


@row(*UNSORTED)
def _unsorted(call: Call, x: Value, ids: Value, num_segments: Value) -> Result:
    op = getattr(ops, UNSORTED[call.node.op])
    count = _count(call, num_segments)
    if call.node.op in ("UnsortedSegmentMax", "UnsortedSegmentMin") and x.dtype.is_float:
        return _finite(op, x, ids, count)
    return op(x.entry, ids.entry, num_segments=count, name=call.name)


def _finite(op: object, x: Value, ids: Value, count: Extent) -> Entry:
    """Of no element the lowest or highest finite number, where passkit has an infinity."""
    assert callable(op)
    found: Entry = op(x.entry, ids.entry, num_segments=count)
    most = ops.nan_to_num(ops.full_like(found, np.inf))
    missing = op(ops.zeros_like(x.entry), ids.entry, num_segments=count)
    end = ops.where(missing > 0, most, -most)
    return ops.where(ops.isinf(missing), end, found)  # type: ignore[no-any-return]


def _last(call: Call, ids: Value) -> int:
    """How many segments known ids say. Raises: ModelError for others, and unsorted ones."""
    if ids.known is None or ids.known.dtype.kind not in "iu" or ids.known.ndim != 1:
        raise ModelError(
            f"{call.where} needs segment ids that are known when the model is loaded, since the "
            f"last one says how many rows there are, got {call.shown(ids)}; "
            f"UnsortedSegmentSum takes the number as an input"
        )
    found = ids.known
    if found.size and ((np.diff(found) < 0).any() or found[0] < 0 or found[-1] >= MOST):
        raise ModelError(
            f"{call.where} needs segment ids that rise from 0 on, got {call.shown(ids)}"
        )
    return int(found[-1]) + 1 if found.size else 0


def _folded(call: Call, kind: str, x: Entry, ids: Entry, count: Extent) -> Entry:
    """``kind`` of each segment; 0 for one without rows, or 1 where that is the product."""
    if kind == "SqrtN":
        total = ops.segment_sum(x, ids, num_segments=count)
        ones = ops.reshape(ops.full_like(ids, 1), shape=(-1, *(1,) * (x.ndim - 1)))
        each = ops.segment_sum(ops.cast(ones, dtype=str(x.dtype)), ids, num_segments=count)
        return ops.div(total, ops.sqrt(ops.maximum(each, 1)), name=call.name)  # type: ignore[no-any-return]
    if kind in ("Max", "Min"):
        found = getattr(ops, f"segment_{kind.lower()}")(x, ids, num_segments=count)
        rows = ops.segment_sum(ops.full_like(ids, 1), ids, num_segments=count)
        empty = ops.equal(ops.reshape(rows, shape=(-1, *(1,) * (x.ndim - 1))), 0)
        return ops.where(empty, ops.zeros_like(found), found, name=call.name)  # type: ignore[no-any-return]
    op = getattr(ops, f"segment_{kind.lower()}")
    return op(x, ids, num_segments=count, name=call.name)  # type: ignore[no-any-return]


@row(*(f"Segment{kind}" for kind in ("Max", "Mean", "Min", "Prod", "Sum")))
def _segment(call: Call, x: Value, ids: Value) -> Result:
    kind = call.node.op.removeprefix("Segment")
    count = _last(call, ids)
    if kind == "Mean" and x.dtype.is_integer:
        raise ModelError(f"{call.where} needs floats to take the mean of, got {x.dtype}")
    return _folded(call, kind, x.entry, ids.entry, count)


@row(*(f"SparseSegment{kind}" for kind in ("Mean", "SqrtN", "Sum")))
def _sparse(call: Call, x: Value, indices: Value, ids: Value) -> Result:
    kind = call.node.op.removeprefix("SparseSegment")
    rows = ops.gather(x.entry, indices.entry)
    return _folded(call, kind, rows, ids.entry, _last(call, ids))


@row(*(f"SparseSegment{kind}WithNumSegments" for kind in ("Mean", "SqrtN", "Sum")))
def _sparse_counted(
    call: Call, x: Value, indices: Value, ids: Value, num_segments: Value
) -> Result:
    kind = call.node.op.removeprefix("SparseSegment").removesuffix("WithNumSegments")
    rows = ops.gather(x.entry, indices.entry)
    return _folded(call, kind, rows, ids.entry, _count(call, num_segments))


@row("Bincount", "DenseBincount")
def _bincount(call: Call, x: Value, size: Value, weights: Value) -> Result:
    """How often, or with which weight in all, each number below size occurs, in each row."""
    shape = call.shape(x)
    length = _count(call, size)
    has_weights = 0 not in call.shape(weights)
    dtype = weights.dtype.name
    if len(shape) > 2 or (len(shape) == 2 and call.node.op == "Bincount"):
        raise ModelError(f"{call.where} needs a vector, or rows of them, got rank {len(shape)}")
    if call.attr("binary_output", "b", False):
        hit = ops.one_hot(x.entry, depth=length, dtype="bool", on_value=True, off_value=False)
        return ops.cast(ops.reduce_any(hit, axis=-2), dtype=dtype, name=call.name)
    each = weights.entry if has_weights else ops.cast(ops.full_like(x.entry, 1), dtype=dtype)
    if len(shape) < 2:
        flat, each = (ops.reshape(e, shape=(-1,)) for e in (x.entry, each))
        return ops.segment_sum(each, flat, num_segments=length, name=call.name)
    rows = ops.reshape(ops.arange(0, shape[0], dtype="int64"), shape=(-1, 1))
    wide = ops.cast(x.entry, dtype="int64")
    inside = ops.logical_and(wide >= 0, wide < length)
    ids = ops.where(inside, rows * length + wide, -1)
    total = ops.segment_sum(each, ids, num_segments=shape[0] * length)
    return ops.reshape(total, shape=(shape[0], length), name=call.name)


@row("InTopK")
def _in_top_k_attribute(call: Call, predictions: Value, targets: Value) -> Result:
    return _in_top(call, predictions, targets, call.attr("k", "i"))


@row("InTopKV2")
def _in_top_k(call: Call, predictions: Value, targets: Value, k: Value) -> Result:
    return _in_top(call, predictions, targets, call.integer(k, "k"))


def _in_top(call: Call, predictions: Value, targets: Value, k: int) -> Entry:
    """Whether fewer than k classes beat the target; a row with infinities or NaN says no."""
    classes = call.rank(predictions, 2)[1]
    x, wanted = predictions.entry, ops.cast(targets.entry, dtype="int64")
    at = ops.expand_dims(wanted, axis=1)
    mine = ops.take_along_axis(x, at, axis=1)
    better = ops.reduce_sum(ops.cast(x > mine, dtype="int32"), axis=1)
    good = ops.reduce_all(ops.isfinite(x), axis=1)
    there = ops.logical_and(wanted >= 0, ops.less(wanted, _as_data(classes)))
    return ops.logical_and(ops.logical_and(better < k, good), there, name=call.name)  # type: ignore[no-any-return]


def _as_data(n: Extent) -> Entry:
    """An extent as a number that is computed with."""
    if isinstance(n, int):
        return ops.full((), n, dtype="int64")  # type: ignore[no-any-return]
    return ops.reduce_max(ops.arange(0, n + 1, dtype="int64"))  # type: ignore[no-any-return]


