"""Operators that only move elements."""

from __future__ import annotations

from typing import Any

from passkit.frontends.tf_graphdef.export.table import Call, Result, row
from passkit.frontends.tf_graphdef.export.writer import INT32, INT64, Tensor
from passkit.ops.helpers import normalize_axes, normalize_axis
from passkit.ops.slicing import slice_params
from passkit.values.size import Extent, Shape, Size


@row("reshape", "squeeze", "expand_dims", "flatten", "atleast_1d", "atleast_2d", "atleast_3d")
def _reshape(call: Call, x: Tensor) -> Result:
    shape, out = call.shape(), call.out
    if call.name == "expand_dims" and len(out) == len(shape) + 1:
        axis = normalize_axes(call.node, len(out), call.params["axis"])[0]
        return call.result("ExpandDims", x, call.const(axis), Tdim=INT32)
    return call.reshaped(x, out, last=True)


@row("transpose")
def _transpose(call: Call, x: Tensor) -> Result:
    rank, axes = len(call.out), call.params["axes"]
    given = tuple(reversed(range(rank))) if axes is None else axes
    listed = given if isinstance(given, tuple) else (given,)
    order = [normalize_axis(call.node, rank, a) for a in listed]
    return call.result("Transpose", x, call.const(order), Tperm=INT32)


@row("broadcast_to", "full", "zeros", "ones")
def _broadcast_to(call: Call, *x: Tensor) -> Result:
    """A scalar, or an array, all over a shape."""
    fill = {"zeros": 0, "ones": 1}.get(call.name, call.params.get("fill_value"))
    value = x[0] if x else call.const(fill, call.dtype)
    if x and call.shape() != ():
        return call.result("BroadcastTo", value, call.sizes(call.out), Tidx=INT64)
    return call.result("Fill", call.sizes(call.out), value, T=value.dtype, index_type=INT64,
                       out=value.dtype)  # fmt: skip


@row("concat")
def _concat(call: Call, *x: Tensor) -> Result:
    axis = normalize_axis(call.node, len(call.out), call.params["axis"])
    if len(x) == 1:
        return call.result("Identity", x[0])
    return call.result("ConcatV2", *x, call.const(axis), N=len(x), Tidx=INT32)


@row("stack")
def _stack(call: Call, *x: Tensor) -> Result:
    axis = normalize_axis(call.node, len(call.out), call.params["axis"])
    return call.result("Pack", *x, N=len(x), axis=axis)


@row("slice")
def _slice(call: Call, x: Tensor) -> Result:
    begin, size, step = slice_params(call.node, call.shape())
    if all(s == 1 for s in step):
        return call.result("Slice", x, call.sizes(begin), call.sizes(size), Index=INT64)
    if any(n == 0 for n in size):
        return None
    return _strided(call, x, begin, size, step)


def _strided(call: Call, x: Tensor, begin: Shape, size: Shape, step: Shape) -> Result:
    """An end of -1, before the first element, is said by a mask: for TensorFlow it is the last."""
    end: list[Extent] = []
    mask = 0
    for k, (b, n, s) in enumerate(zip(begin, size, step, strict=True)):
        last = b + (n - 1) * s
        stop = last + (1 if isinstance(s, int) and s > 0 else -1)
        if isinstance(s, int) and s < 0 and stop == -1:
            stop, mask = 0, mask | 1 << k
        elif isinstance(s, int) and s < 0 and isinstance(stop, Size):
            return None  # it may become -1 in a call
        end.append(stop)
    bounds = [call.sizes(part) for part in (begin, tuple(end), step)]
    return call.result(
        "StridedSlice", x, *bounds, Index=INT64, begin_mask=0, end_mask=mask, ellipsis_mask=0,
        new_axis_mask=0, shrink_axis_mask=0,
    )  # fmt: skip


@row("tile")
def _tile(call: Call, x: Tensor) -> Result:
    given = call.params["repetitions"]
    counts = given if isinstance(given, tuple) else (given,)
    rank = len(call.out)
    front: Shape = (1,) * (rank - len(call.shape()))
    whole = call.reshaped(x, (*front, *call.shape())) if front else x
    times = (*(1,) * (rank - len(counts)), *counts)
    return call.result("Tile", whole, call.sizes(times), Tmultiples=INT64)


@row("flip")
def _flip(call: Call, x: Tensor) -> Result:
    axes = normalize_axes(call.node, len(call.out), call.params["axis"])
    return call.result("ReverseV2", x, call.const(list(axes)), Tidx=INT32)


def _pads(given: Any, rank: int) -> tuple[tuple[int, int], ...] | None:
    """(before, after) for each axis; None where they cut, or are not said by plain numbers."""
    if isinstance(given, int):
        given = ((given, given),) * rank
    pairs = given if given and isinstance(given[0], tuple) else ((given),) * rank
    if len(pairs) == 1:
        pairs = pairs * rank
    plain = all(len(p) == 2 and all(type(n) is int and n >= 0 for n in p) for p in pairs)
    return tuple(pairs) if plain and len(pairs) == rank else None


@row("pad_with")
def _pad_with(call: Call, x: Tensor) -> Result:
    pads = _pads(call.params["pad_width"], len(call.out))
    if pads is None or not pads:
        return None
    value = call.const(call.params["value"], x.dtype)
    return call.result("PadV2", x, call.const(pads), value, Tpaddings=INT32)


@row("pad")
def _pad(call: Call, x: Tensor) -> Result:
    pads, mode = _pads(call.params["pad_width"], len(call.out)), call.params["mode"]
    shape = call.shape()
    if mode not in ("reflect", "symmetric") or not pads:
        return None
    most = [n if mode == "symmetric" else n - 1 for n in shape]
    if any(not isinstance(n, int) or max(p) > n for n, p in zip(most, pads, strict=True)):
        return None  # TensorFlow mirrors once
    return call.result("MirrorPad", x, call.const(pads), Tpaddings=INT32, mode=mode.upper())


@row("one_hot")
def _one_hot(call: Call, indices: Tensor) -> Result:
    axis, depth = call.params["axis"], call.params["depth"]
    if not isinstance(depth, int) or indices.dtype.name not in ("int32", "int64", "uint8", "int8"):
        return None
    on, off = (call.const(call.params[k], call.dtype) for k in ("on_value", "off_value"))
    at = normalize_axis(call.node, len(call.out), axis)
    at = -1 if at == len(call.out) - 1 else at
    return call.result(
        "OneHot", indices, call.const(depth), on, off, T=on.dtype, TI=indices.dtype, axis=at,
        out=on.dtype,
    )  # fmt: skip


@row("gather")
def _gather(call: Call, x: Tensor, indices: Tensor) -> Result:
    """Positions are moved into the array first: TensorFlow fails outside, and where it is empty."""
    axis = normalize_axis(call.node, len(call.shape()), call.params["axis"])
    extent = call.shape()[axis]
    if call.params["mode"] != "clip" or not indices.dtype.is_integer:
        return None
    if not isinstance(extent, int) or extent == 0 or indices.dtype.kind == "u":
        return None
    wide = call.scope.cast(indices, INT64)
    batch = call.params["batch_dims"]
    at = call.op("Minimum", call.op("Maximum", _counted(call, wide, extent), call.const(0, INT64)),
                 call.const(extent - 1, INT64))  # fmt: skip
    return call.result("GatherV2", x, at, call.const(axis), like="Tparams", Tindices=INT64,
                       Taxis=INT32, batch_dims=batch)  # fmt: skip


def _counted(call: Call, indices: Tensor, extent: int) -> Tensor:
    """Negative positions counted from the end."""
    from_end = call.op("AddV2", indices, call.const(extent, INT64))
    negative = call.op("Less", indices, call.const(0, INT64))
    return call.op("SelectV2", negative, from_end, indices, T=INT64, out=INT64)
