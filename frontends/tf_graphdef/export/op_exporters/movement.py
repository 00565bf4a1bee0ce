"""Exporters of operators that only move elements."""

from __future__ import annotations

from typing import Any

from passkit.frontends.tf_graphdef.export.graphdef_writer import INT32, INT64, NodeOutput
from passkit.frontends.tf_graphdef.export.registry import ExportCall, ExportResult, op_exporter
from passkit.ops.helpers import normalize_axes, normalize_axis
from passkit.ops.slicing import slice_params
from passkit.values.size import Extent, Shape, Size


@op_exporter(
    "reshape", "squeeze", "expand_dims", "flatten", "atleast_1d", "atleast_2d", "atleast_3d"
)
def _reshape(call: ExportCall, x: NodeOutput) -> ExportResult:
    """Write operators that only change the shape: one added axis as ExpandDims, else Reshape.

    ``call`` is the node to write, ``x`` the tensor of its input. ExpandDims is for `expand_dims`
    only.

    Raises:
        ModelError: If a symbolic extent has a symbol without a source, unless Reshape infers it.
        ShapeError: If the rank of an input is unknown.
    """
    shape, out = call.shape(), call.out
    if call.name == "expand_dims" and len(out) == len(shape) + 1:
        axis = normalize_axes(call.node, len(out), call.params["axis"])[0]
        return call.result("ExpandDims", x, call.const(axis), Tdim=INT32)
    return call.reshaped(x, out, is_result=True)


@op_exporter("transpose")
def _transpose(call: ExportCall, x: NodeOutput) -> ExportResult:
    """Write `transpose` as Transpose; ``axes=None`` reverses the axes.

    ``call`` is the node to write, ``x`` the tensor of its input.

    Raises:
        ShapeError: If the rank of the result is unknown.
    """
    rank, axes = len(call.out), call.params["axes"]
    order_or_none = tuple(reversed(range(rank))) if axes is None else axes
    listed = order_or_none if isinstance(order_or_none, tuple) else (order_or_none,)
    order = [normalize_axis(call.node, rank, a) for a in listed]
    return call.result("Transpose", x, call.const(order), Tperm=INT32)


@op_exporter("broadcast_to", "full", "zeros", "ones")
def _broadcast_to(call: ExportCall, *x: NodeOutput) -> ExportResult:
    """Write `broadcast_to` as BroadcastTo; that of a scalar, `full`, `zeros` and `ones` as Fill.

    ``call`` is the node to write, and ``x`` are the tensors of its inputs.

    Raises:
        ModelError: If an extent has a symbol without a source.
        ShapeError: If the rank of an input is unknown.
    """
    fill = {"zeros": 0, "ones": 1}.get(call.name, call.params.get("fill_value"))
    value = x[0] if x else call.const(fill, call.dtype)
    if x and call.shape() != ():
        return call.result("BroadcastTo", value, call.sizes(call.out), Tidx=INT64)
    return call.result(
        "Fill", call.sizes(call.out), value, T=value.dtype, index_type=INT64, out=value.dtype
    )


@op_exporter("concat")
def _concat(call: ExportCall, *x: NodeOutput) -> ExportResult:
    """Write `concat` as ConcatV2, or Identity for one input.

    ``call`` is the node to write, and ``x`` are the tensors of its inputs.

    Raises:
        ShapeError: If the rank of the result is unknown.
    """
    axis = normalize_axis(call.node, len(call.out), call.params["axis"])
    if len(x) == 1:
        return call.result("Identity", x[0])
    return call.result("ConcatV2", *x, call.const(axis), N=len(x), Tidx=INT32)


@op_exporter("stack")
def _stack(call: ExportCall, *x: NodeOutput) -> ExportResult:
    """Write `stack` as Pack.

    ``call`` is the node to write, and ``x`` are the tensors of its inputs.

    Raises:
        ShapeError: If the rank of the result is unknown.
    """
    axis = normalize_axis(call.node, len(call.out), call.params["axis"])
    return call.result("Pack", *x, N=len(x), axis=axis)


@op_exporter("slice")
def _slice(call: ExportCall, x: NodeOutput) -> ExportResult:
    """Write `slice` as Slice, or with steps as StridedSlice; None for empty strided slices.

    ``call`` is the node to write, ``x`` the tensor of its input.

    Raises:
        ModelError: If an extent has a symbol without a source.
        ShapeError: If the rank of an input is unknown.
    """
    begin, size, step = slice_params(call.node, call.shape())
    if all(s == 1 for s in step):
        return call.result("Slice", x, call.sizes(begin), call.sizes(size), Index=INT64)
    if any(n == 0 for n in size):
        return None
    return _strided(call, x, begin, size, step)


def _strided(
    call: ExportCall, x: NodeOutput, begin: Shape, size: Shape, step: Shape
) -> ExportResult:
    """Write a StridedSlice; None if a symbolic end may become -1 in a call.

    An end before element 0 needs a mask, since TensorFlow counts -1 from the end.

    Args:
        call: The node.
        x: The array.
        begin: First position along each axis.
        size: Number of elements along each axis.
        step: Distance of elements along each axis, which may be negative, but not 0.

    Raises:
        ModelError: If an extent has a symbol without a source.
    """
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
        "StridedSlice",
        x,
        *bounds,
        Index=INT64,
        begin_mask=0,
        end_mask=mask,
        ellipsis_mask=0,
        new_axis_mask=0,
        shrink_axis_mask=0,
    )


@op_exporter("tile")
def _tile(call: ExportCall, x: NodeOutput) -> ExportResult:
    """Write `tile` as Tile; missing leading axes are added to the input.

    ``call`` is the node to write, ``x`` the tensor of its input.

    Raises:
        ModelError: If an extent has a symbol without a source.
        ShapeError: If the rank of an input is unknown.
    """
    repetitions = call.params["repetitions"]
    counts = repetitions if isinstance(repetitions, tuple) else (repetitions,)
    rank = len(call.out)
    leading: Shape = (1,) * (rank - len(call.shape()))
    padded_input = call.reshaped(x, (*leading, *call.shape())) if leading else x
    multiples = (*(1,) * (rank - len(counts)), *counts)
    return call.result("Tile", padded_input, call.sizes(multiples), Tmultiples=INT64)


@op_exporter("flip")
def _flip(call: ExportCall, x: NodeOutput) -> ExportResult:
    """Write `flip` along the parameter ``axis``, None for all axes, as ReverseV2.

    ``call`` is the node to write, ``x`` the tensor of its input.

    Raises:
        ShapeError: If the rank of the result is unknown.
    """
    axes = normalize_axes(call.node, len(call.out), call.params["axis"])
    return call.result("ReverseV2", x, call.const(list(axes)), Tidx=INT32)


def _pads(widths: Any, rank: int) -> tuple[tuple[int, int], ...] | None:
    """Return the padding (before, after) of each axis; None if a width is negative or symbolic.

    Args:
        widths: A width for all sides, one pair for all axes, or a pair for each. Anything else
            gives None.
        rank: Number of axes; for 0 the result is empty.
    """
    if isinstance(widths, int):
        widths = ((widths, widths),) * rank
    pairs = widths if widths and isinstance(widths[0], tuple) else ((widths),) * rank
    if len(pairs) == 1:
        pairs = pairs * rank
    is_plain = all(len(p) == 2 and all(type(n) is int and n >= 0 for n in p) for p in pairs)
    return tuple(pairs) if is_plain and len(pairs) == rank else None


@op_exporter("pad_with")
def _pad_with(call: ExportCall, x: NodeOutput) -> ExportResult:
    """Write `pad_with` as PadV2 of the parameter ``value``.

    None for negative or symbolic padding, and for scalars.

    ``call`` is the node to write, ``x`` the tensor of its input.

    Raises:
        ShapeError: If the rank of the result is unknown.
    """
    pads = _pads(call.params["pad_width"], len(call.out))
    if pads is None or not pads:
        return None
    value = call.const(call.params["value"], x.dtype)
    return call.result("PadV2", x, call.const(pads), value, Tpaddings=INT32)


@op_exporter("pad")
def _pad(call: ExportCall, x: NodeOutput) -> ExportResult:
    """Write `pad` as MirrorPad, which mirrors once.

    ``call`` is the node to write, ``x`` the tensor of its input. None for modes other than
    "reflect" and "symmetric", scalars, symbolic extents, symbolic or negative widths, and widths
    that need more than one mirror image.

    Raises:
        ShapeError: If the rank of the result is unknown.
    """
    pads, mode = _pads(call.params["pad_width"], len(call.out)), call.params["mode"]
    shape = call.shape()
    if mode not in ("reflect", "symmetric") or not pads:
        return None
    limits = [n if mode == "symmetric" else n - 1 for n in shape]
    if any(not isinstance(n, int) or max(p) > n for n, p in zip(limits, pads, strict=True)):
        return None  # TensorFlow mirrors once
    return call.result("MirrorPad", x, call.const(pads), Tpaddings=INT32, mode=mode.upper())


@op_exporter("one_hot")
def _one_hot(call: ExportCall, indices: NodeOutput) -> ExportResult:
    """Write `one_hot` as OneHot; None for a symbolic depth, and for some dtypes of indices.

    TensorFlow's has kernels for int32, int64, uint8 and int8. ``call`` is the node to write,
    ``indices`` the tensor of its input.

    Raises:
        ShapeError: If the rank of the result is unknown.
    """
    axis, depth = call.params["axis"], call.params["depth"]
    if not isinstance(depth, int) or indices.dtype.name not in ("int32", "int64", "uint8", "int8"):
        return None
    on, off = (call.const(call.params[k], call.dtype) for k in ("on_value", "off_value"))
    position = normalize_axis(call.node, len(call.out), axis)
    position = -1 if position == len(call.out) - 1 else position
    return call.result(
        "OneHot",
        indices,
        call.const(depth),
        on,
        off,
        T=on.dtype,
        TI=indices.dtype,
        axis=position,
        out=on.dtype,
    )


@op_exporter("gather")
def _gather(call: ExportCall, x: NodeOutput, indices: NodeOutput) -> ExportResult:
    """Write `gather` as GatherV2 of clamped indices, since TensorFlow fails outside of the array.

    None for modes other than clip, indices that are no signed integers, and axes of symbolic or
    zero length. Negative indices count from the end. The parameters are ``axis``, ``mode`` and
    ``batch_dims``. ``call`` is the node to write, ``x`` the array.

    Raises:
        ShapeError: If the rank of an input is unknown.
    """
    axis = normalize_axis(call.node, len(call.shape()), call.params["axis"])
    extent = call.shape()[axis]
    if call.params["mode"] != "clip" or not indices.dtype.is_integer:
        return None
    if not isinstance(extent, int) or extent == 0 or indices.dtype.kind == "u":
        return None
    positions = call.scope.cast(indices, INT64)
    batch = call.params["batch_dims"]
    clamped = call.op(
        "Minimum",
        call.op("Maximum", _counted(call, positions, extent), call.const(0, INT64)),
        call.const(extent - 1, INT64),
    )
    return call.result(
        "GatherV2",
        x,
        clamped,
        call.const(axis),
        like="Tparams",
        Tindices=INT64,
        Taxis=INT32,
        batch_dims=batch,
    )


def _counted(call: ExportCall, indices: NodeOutput, extent: int) -> NodeOutput:
    """Write int64 indices of an axis with ``extent`` added to negative ones.

    ``call`` is the node to write.
    """
    from_end = call.op("AddV2", indices, call.const(extent, INT64))
    negative = call.op("Less", indices, call.const(0, INT64))
    return call.op("SelectV2", negative, from_end, indices, T=INT64, out=INT64)
