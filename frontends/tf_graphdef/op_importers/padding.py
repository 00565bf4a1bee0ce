"""Padding, and blocks of space as channels or images."""

from __future__ import annotations

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.operators import ops
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.table import Result, row
from passkit.frontends.tf_graphdef.value import Call, Value
from passkit.graph.node import Entry
from passkit.values.size import Extent

Widths = tuple[tuple[Extent, Extent], ...]
MODES = {b"REFLECT": "reflect", b"SYMMETRIC": "symmetric"}


def pairs(call: Call, value: Value, what: str) -> Widths:
    """Known numbers before and after, for each axis. Raises: ModelError for anything else."""
    if value.shape is None or len(value.shape) != 2 or value.shape[1] != 2:
        raise ModelError(f"{call.where} needs {what} of shape (axes, 2), got {call.shown(value)}")
    if value.known is None:
        call.extents(value, what)
    assert value.known is not None
    row = Value(value.name, value.dtype, known=value.known.reshape(-1))
    flat = call.extents(row, what)
    return tuple(zip(flat[::2], flat[1::2], strict=True))


def _widths(call: Call, x: Value, paddings: Value) -> Widths:
    found = pairs(call, paddings, "paddings")
    if len(found) != len(call.shape(x)) or any(
        isinstance(n, int) and n < 0 for pair in found for n in pair
    ):
        raise ModelError(
            f"{call.where} needs paddings >= 0 for each of {len(call.shape(x))} axes, got "
            f"{call.shown(paddings)}"
        )
    return found


@row("Pad")
def _pad(call: Call, x: Value, paddings: Value) -> Result:
    return ops.pad_with(x.entry, pad_width=_widths(call, x, paddings), name=call.name)


@row("PadV2")
def _pad_v2(call: Call, x: Value, paddings: Value, value: Value) -> Result:
    """With a number that is known, or is data: then where the padding lies is."""
    widths = _widths(call, x, paddings)
    if value.known is not None and value.known.dtype != object and x.dtype.kind != "c":
        number = value.known.ravel().tolist()[0]
        return ops.pad_with(x.entry, pad_width=widths, value=number, name=call.name)
    inside = ops.full(call.shape(x), True, dtype="bool")
    there = ops.pad_with(inside, pad_width=widths, value=False)
    return ops.where(there, ops.pad_with(x.entry, pad_width=widths), value.entry, name=call.name)


def _said(found: bytes) -> str:
    return short(found.decode(errors="replace"))


def _mode(call: Call) -> str:
    found = call.attr("mode", "s")
    if found not in MODES:
        raise ModelError(f"{call.where} needs the mode REFLECT or SYMMETRIC, got {_said(found)}")
    return MODES[found]


@row("MirrorPad")
def _mirror_pad(call: Call, x: Value, paddings: Value) -> Result:
    widths = _widths(call, x, paddings)
    return ops.pad(x.entry, pad_width=widths, mode=_mode(call), name=call.name)


@row("MirrorPadGrad")
def _mirror_pad_grad(call: Call, dy: Value, paddings: Value) -> Result:
    """What was padded flows back to the elements that it mirrors."""
    out, skip = dy.entry, _mode(call) == "reflect"
    for axis, (a, b) in enumerate(_widths(call, dy, paddings)):
        out = _unmirrored(out, axis, a, b, int(skip))
    return out


def _unmirrored(dy: Entry, axis: int, a: Extent, b: Extent, skip: int) -> Entry:
    """The inner part of one axis, plus both ends, turned around and moved by ``skip``."""
    shape = dy.shape
    assert shape is not None
    n = shape[axis] - a - b

    def part(begin: Extent, size: Extent) -> Entry:
        first = tuple(begin if k == axis else 0 for k in range(len(shape)))
        sizes = tuple(size if k == axis else m for k, m in enumerate(shape))
        return ops.slice(dy, begin=first, size=sizes)  # type: ignore[no-any-return]

    def at(x: Entry, before: Extent, size: Extent) -> Entry:
        width = tuple(
            (before, n - before - size) if k == axis else (0, 0) for k in range(len(shape))
        )
        return ops.pad_with(ops.flip(x, axis=axis), pad_width=width)  # type: ignore[no-any-return]

    out = part(a, n)
    if a != 0:
        out = out + at(part(0, a), skip, a)
    if b != 0:
        out = out + at(part(a + n, b), n - b - skip, b)
    return out


@row("SpaceToDepth", "DepthToSpace")
def _depth(call: Call, x: Value) -> Result:
    layout = call.attr("data_format", "s", b"NHWC")
    if layout not in (b"NHWC", b"NCHW"):
        raise ModelError(
            f"{call.where} needs the data_format NHWC or NCHW, got {_said(layout)}"
        )
    op = ops.space_to_depth if call.node.op == "SpaceToDepth" else ops.depth_to_space
    return op(
        x.entry,
        block_size=call.attr("block_size", "i"),
        data_format=layout.decode(),
        name=call.name,
    )


@row("SpaceToBatchND")
def _space_to_batch(call: Call, x: Value, block: Value, paddings: Value) -> Result:
    blocks, widths = call.ints(block, "block_shape"), pairs(call, paddings, "paddings")
    return ops.space_to_batch(x.entry, block_shape=blocks, paddings=widths, name=call.name)


@row("BatchToSpaceND")
def _batch_to_space(call: Call, x: Value, block: Value, crops: Value) -> Result:
    blocks, widths = call.ints(block, "block_shape"), pairs(call, crops, "crops")
    return ops.batch_to_space(x.entry, block_shape=blocks, crops=widths, name=call.name)


@row("SpaceToBatch")
def _space_to_batch_images(call: Call, x: Value, paddings: Value) -> Result:
    blocks = (call.attr("block_size", "i"),) * 2
    widths = pairs(call, paddings, "paddings")
    return ops.space_to_batch(x.entry, block_shape=blocks, paddings=widths, name=call.name)


@row("BatchToSpace")
def _batch_to_space_images(call: Call, x: Value, crops: Value) -> Result:
    blocks = (call.attr("block_size", "i"),) * 2
    widths = pairs(call, crops, "crops")
    return ops.batch_to_space(x.entry, block_shape=blocks, crops=widths, name=call.name)
