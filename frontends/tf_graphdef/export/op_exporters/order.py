"""Sorting and searching, by TensorFlow's TopKV2: stable, with NaN as the largest number."""

from __future__ import annotations

from typing import Any

import numpy as np

from passkit.frontends.tf_graphdef.export.functions import select, truth
from passkit.frontends.tf_graphdef.export.table import Call, Result, row
from passkit.frontends.tf_graphdef.export.writer import FLOAT32, INT32, INT64, Scope, Tensor
from passkit.ops.helpers import make, normalize_axis
from passkit.values.dtype import dtype_of
from passkit.values.size import Extent, Shape, numel


def _key(scope: Scope, x: Tensor) -> Tensor:
    """Integers in the order of ``x``: those of floats are their bits, turned where negative."""
    if not x.dtype.is_float:
        return scope.cast(x, dtype_of("uint8")) if x.dtype.kind == "b" else x
    wide = scope.cast(x, FLOAT32) if x.dtype.nbytes == 2 else x
    whole = dtype_of("int64" if wide.dtype.nbytes == 8 else "int32")
    plain = scope.op("AddV2", wide, scope.const(0, wide.dtype))  # -0 is 0
    bits = scope.op("Bitcast", plain, out=whole, type=whole)
    turned = scope.op("BitwiseXor", bits, scope.const(np.iinfo(whole.numpy).max, whole))
    ordered = select(scope, truth(scope, "Less", bits, 0), turned, bits)
    most = scope.const(np.iinfo(whole.numpy).max, whole)
    return select(scope, truth(scope, "NotEqual", wide, wide), most, ordered)


def _swap(call: Call, x: Tensor, axis: int, last: bool = False) -> Tensor:
    """``x`` with an axis and the last one exchanged."""
    rank = len(call.shape())
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]
    if order == list(range(rank)):
        return call.scope.op("Identity", x, last=True) if last else x
    return call.scope.op("Transpose", x, call.const(order), Tperm=INT32, last=last)


def _sorted(call: Call, x: Tensor, count: Extent, descending: bool) -> tuple[Tensor, Tensor, int]:
    """The first elements in order along the last axis, where they stood, and the true axis."""
    shape = call.shape()
    axis = normalize_axis(call.node, len(shape), call.params["axis"])
    moved = _swap(call, x, axis)
    key = _key(call.scope, moved)
    if not descending:
        key = call.op("Invert", key)
    k = call.scope.cast(call.size(count), INT32)
    attrs = {"T": key.dtype, "sorted": True}
    _, at = call.scope.nodes("TopKV2", [key, k], [key.dtype, INT32], False, **attrs)
    best = call.op(
        "GatherV2", moved, at, call.const(-1), like="Tparams", Tindices=INT32, Taxis=INT32,
        batch_dims=len(shape) - 1,
    )  # fmt: skip
    return best, at, axis


def _length(call: Call) -> Extent:
    shape: Shape = call.shape()
    return shape[normalize_axis(call.node, len(shape), call.params["axis"])]


@row("sort")
def _sort(call: Call, x: Tensor) -> Result:
    best, _, axis = _sorted(call, x, _length(call), bool(call.params["descending"]))
    return _swap(call, best, axis, last=True)


@row("argsort")
def _argsort(call: Call, x: Tensor) -> Result:
    _, at, axis = _sorted(call, x, _length(call), bool(call.params["descending"]))
    return _swap(call, call.scope.cast(at, INT64), axis, last=True)


@row("top_k")
def _top_k(call: Call, x: Tensor) -> Result:
    best, at, axis = _sorted(call, x, call.params["k"], True)
    return _swap(call, best, axis, last=True), _swap(call, at, axis)


@row("searchsorted")
def _search(call: Call, sequence: Tensor, values: Tensor) -> Result:
    """One sequence for all values, or one for each row of them; NaN has its place by its bits."""
    op = "LowerBound" if call.params["side"] == "left" else "UpperBound"
    shape, wanted = call.shape(0), call.shape(1)
    rows = 1 if len(shape) == 1 else int(np.prod([n for n in shape[:-1] if isinstance(n, int)]))
    if any(not isinstance(n, int) for n in shape[:-1]) or rows == 0:
        return None
    if any(n == 0 for n in (*shape, *wanted)):
        return None
    each = numel(wanted) if len(shape) == 1 else wanted[-1]
    a = call.reshaped(_key(call.scope, sequence), (rows, shape[-1]))
    b = call.reshaped(_key(call.scope, values), (rows, each))
    found = call.op(op, a, b, out=INT64, out_type=INT64)
    return call.reshaped(found, call.out, last=True)


@row("isin")
def _isin(call: Call, x: Tensor, among: Tensor) -> Result:
    """Each against each."""
    invert, total = call.params["invert"], call.shape(1)

    def each(x: Any, among: Any) -> Any:
        rank = len(call.shape(0))
        flat = among if len(total) == 1 else make("reshape", among, shape=(-1,))
        one = make("expand_dims", x, axis=rank)
        found = make("reduce_any", make("equal", one, flat), axis=rank)
        return make("logical_not", found) if invert else found

    return call.expanded(each, x, among)


@row("bincount")
def _bincount(call: Call, x: Tensor) -> Result:
    """Sums of ones by segments, of which negative ones are dropped."""
    length = call.params["length"]
    if len(call.shape()) != 1:
        return None
    wide = call.scope.cast(x, INT64)
    beyond = truth(call.scope, "GreaterEqual", wide, call.size(length))
    at = select(call.scope, beyond, call.const(-1, INT64), wide)
    ones = call.op("OnesLike", wide)
    count = call.scope.cast(call.size(length), INT32)
    return call.result("UnsortedSegmentSum", ones, at, count, Tindices=INT64, Tnumsegments=INT32)
