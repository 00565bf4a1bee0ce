"""Images: resized, cropped, and their colours changed."""

from __future__ import annotations

from typing import Any

import numpy as np

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.back import flow_back
from passkit.frontends.tf_graphdef.known import constant_of
from passkit.frontends.tf_graphdef.operators import ops
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.scaling import KERNELS, weights_of
from passkit.frontends.tf_graphdef.table import Result, row
from passkit.frontends.tf_graphdef.value import Call, Value
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry, constant
from passkit.ops.layouts import as_dtype, wide
from passkit.ops.resizing import weigh_axis
from passkit.values.dtype import dtype_of
from passkit.values.size import Size

SINGLE = dtype_of("float32")

RESIZED = {
    "ResizeNearestNeighbor": "resize_nearest",
    "ResizeBilinear": "resize_bilinear",
    "ResizeBicubic": "resize_bicubic",
    "ResizeArea": "resize_area",
}


def known_images(call: Call, x: Value) -> None:
    """Check that there are images of known size. Raises: ModelError where there are not."""
    shape = call.shape(x)
    if len(shape) != 4 or any(isinstance(n, Size) for n in shape[1:3]):
        raise ModelError(
            f"{call.where} needs images of rank 4 and known size, got {short(x.name)} of shape "
            f"{show_shape(shape)}; give load the shape of its input in shapes="
        )


def _flags(call: Call) -> dict[str, bool]:
    keys = ["align_corners"] + ["half_pixel_centers"] * (call.node.op != "ResizeArea")
    return {k: call.attr(k, "b", False) for k in keys}


@row(*RESIZED)
def _resize(call: Call, x: Value, size: Value) -> Result:
    """All but the nearest pixel give float32."""
    data = x.entry
    if call.node.op != "ResizeNearestNeighbor" and x.dtype is not SINGLE:
        data = ops.cast(data, dtype="float32")
    factors = _factors(call, x, size)
    if factors:
        return _enlarged(data, factors, call.node.op == "ResizeNearestNeighbor")
    known_images(call, x)
    wanted = call.ints(size, "size")
    op = getattr(ops, RESIZED[call.node.op])
    return op(data, size=wanted, **_flags(call), name=call.name)


def _factors(call: Call, x: Value, size: Value) -> list[int]:
    """By which whole numbers unknown rows and columns are multiplied; none where they are not."""
    shape, wanted, flags = call.shape(x), call.extents(size, "size"), _flags(call)
    methods = ("ResizeNearestNeighbor", "ResizeBilinear")
    if len(shape) != 4 or len(wanted) != 2 or call.node.op not in methods:
        return []
    if flags["align_corners"] or not any(isinstance(n, Size) for n in shape[1:3]):
        return []
    if call.node.op == "ResizeBilinear" and not flags["half_pixel_centers"]:
        return []
    found = [
        1 if new == old else new // old if old != 0 else 0
        for old, new in zip(shape[1:3], wanted, strict=True)
    ]
    whole = [f for f, n, m in zip(found, shape[1:3], wanted, strict=True) if f * n == m]
    return [f for f in whole if isinstance(f, int) and f > 0] if len(whole) == 2 else []


def _enlarged(x: Entry, factors: list[int], nearest: bool) -> Entry:
    """Images of unknown size, each pixel so many times as high and wide; half-pixel centres."""
    for axis, factor in ((2, factors[1]), (1, factors[0])):
        shape = x.shape
        assert shape is not None and x.dtype is not None
        at = ops.arange(shape[axis] * factor, dtype="float32")
        at = (at + 0.5) / float(factor)
        if nearest:
            x = ops.gather(x, ops.cast(ops.floor(at), dtype="int64"), axis=axis)
            continue
        low = ops.floor(at - 0.5)
        part = ops.expand_dims(at - 0.5 - low, axis=tuple(range(1, 4 - axis)))
        first = ops.maximum(ops.cast(low, dtype="int64"), 0)
        second = ops.cast(ops.ceil(at - 0.5), dtype="int64")  # a gather stops at the last one
        a, b = (ops.gather(x, i, axis=axis) for i in (first, second))
        x = a + (b - a) * part
    return x


@row("ResizeNearestNeighborGrad")
def _nearest_grad(call: Call, dy: Value, size: Value) -> Result:
    """What flows to each pixel that was read; the images themselves do not matter."""
    shape = call.shape(dy)
    known_images(call, dy)
    height, width = call.ints(size, "size")
    zero = constant(dy.dtype.numpy.type(0))
    x = ops.broadcast_to(zero, shape=(shape[0], height, width, shape[3]))
    y = ops.resize_nearest(x, size=shape[1:3], **_flags(call))
    return flow_back(y, x, dy.entry)


@row("ResizeBilinearGrad", "ResizeBicubicGrad")
def _between_grad(call: Call, dy: Value, x: Value) -> Result:
    known_images(call, dy)
    known_images(call, x)
    name = RESIZED[call.node.op.removesuffix("Grad")]
    like = ops.zeros_like(x.entry)
    data = ops.cast(like, dtype="float32") if x.dtype is not SINGLE else like
    y = getattr(ops, name)(data, size=call.shape(dy)[1:3], **_flags(call))
    return as_dtype(flow_back(y, data, dy.entry), x.entry)


@row("CropAndResize")
def _crop_and_resize(call: Call, x: Value, boxes: Value, images: Value, size: Value) -> Result:
    """Boxes of images, (y1, x1, y2, x2) from 0 to 1, each at one size; outside is one value."""
    known_images(call, x)
    if len(call.shape(boxes)) != 2:
        raise ModelError(
            f"{call.where} needs boxes (count, 4), got {show_shape(call.shape(boxes))}"
        )
    method = call.attr("method", "s", b"bilinear")
    if method not in (b"bilinear", b"nearest"):
        raise ModelError(f"{call.where} needs the method bilinear or nearest, got {method!r}")
    wanted = call.ints(size, "crop_size")
    if len(wanted) != 2 or min(wanted) < 1:
        raise ModelError(f"{call.where} needs a crop_size of 2 ints > 0, got {list(wanted)}")
    data = x.entry if x.dtype is SINGLE else ops.cast(x.entry, dtype="float32")
    places = [_crossings(call, boxes.entry, k, wanted[k], call.shape(x)[1 + k]) for k in (0, 1)]
    (y, there_y), (x_, there_x) = places
    y, there_y = (ops.expand_dims(e, axis=2) for e in (y, there_y))
    x_, there_x = (ops.expand_dims(e, axis=1) for e in (x_, there_x))
    image = ops.expand_dims(ops.cast(images.entry, dtype="int64"), axis=(1, 2))

    def pixel(rows: Entry, columns: Entry) -> Entry:
        like = ops.broadcast_arrays(image, *(ops.cast(e, dtype="int64") for e in (rows, columns)))
        made: Entry = ops.gather_nd(data, ops.stack(*like, axis=-1))
        return made

    if method == b"nearest":
        found = pixel(ops.round_half_away(y), ops.round_half_away(x_))
    else:
        left, right, top, bottom = ops.floor(x_), ops.ceil(x_), ops.floor(y), ops.ceil(y)
        across, down = (ops.expand_dims(e, axis=3) for e in (x_ - left, y - top))
        above, below = (
            first + (pixel(rows, right) - first) * across
            for rows, first in ((top, pixel(top, left)), (bottom, pixel(bottom, left)))
        )
        found = above + (below - above) * down
    there = ops.expand_dims(ops.logical_and(there_y, there_x), axis=3)
    return ops.where(there, found, call.attr("extrapolation_value", "f", 0.0))


def _crossings(call: Call, boxes: Entry, k: int, count: int, length: Any) -> tuple[Entry, Entry]:
    """Where rows (k = 0) or columns of crops lie in the image, and whether they are in it."""
    rows = boxes.shape[0]  # type: ignore[index]
    low, high = (ops.slice(boxes, begin=(0, k + 2 * j), size=(rows, 1)) for j in (0, 1))
    most = np.float32(length - 1)
    if count > 1:
        step = (high - low) * most / np.float32(count - 1)
        at = low * most + constant(call.positions(count, np.float32)) * step
    else:
        at = (low + high) * most * 0.5
    return at, ops.logical_and(at >= 0.0, at <= most)


@row("ScaleAndTranslate")
def _scale_and_translate(
    call: Call, x: Value, size: Value, scale: Value, translation: Value
) -> Result:
    """Columns and rows weighed, in float32; the factors are known when the model is loaded."""
    known_images(call, x)
    kernel = call.attr("kernel_type", "s", b"lanczos3").decode(errors="replace")
    if kernel not in KERNELS:
        raise ModelError(
            f"{call.where} needs the kernel_type {', '.join(KERNELS)}, got {short(kernel)}"
        )
    wanted = call.ints(size, "size")
    factors, moves = (_pair(call, v, what) for v, what in (
        (scale, "scale"), (translation, "translation")
    ))  # fmt: skip
    out = x.entry if x.dtype is SINGLE else ops.cast(x.entry, dtype="float32")
    for k, new in enumerate(wanted):
        old = call.shape(x)[1 + k]
        assert isinstance(old, int)
        call.budget.take(8 * old * new, call.where)
        anti = call.attr("antialias", "b", True)
        out = weigh_axis(out, 1 + k, weights_of(kernel, old, new, factors[k], moves[k], anti))
    return out


def _pair(call: Call, value: Value, what: str) -> list[float]:
    """Two numbers that are known. Raises: ModelError where they are not."""
    found = constant_of(value)
    if found is None or found.shape != (2,) or (what == "scale" and not (found > 0).all()):
        shown = "what only a call knows" if found is None else found.tolist()
        raise ModelError(
            f"{call.where} needs two known numbers as its {what}, above 0 to scale, got {shown}; "
            f"give load the whole shape of its input in shapes="
        )
    return [float(n) for n in found]


# Colours


def _channels(call: Call, x: Value) -> list[Entry]:
    """The three colours of each pixel, computed in float32 at least."""
    shape = call.shape(x)
    if not shape or shape[-1] != 3:
        raise ModelError(
            f"{call.where} needs three channels in the last axis, got {show_shape(shape)}"
        )
    return list(ops.split(wide(x.entry), 3, len(shape) - 1))


def _joined(x: Value, *channels: Entry) -> Entry:
    return as_dtype(ops.concat(*channels, axis=len(channels[0].shape or ()) - 1), x.entry)


def _hue(red: Entry, green: Entry, blue: Entry) -> tuple[Entry, Entry, Entry]:
    """Hue from 0 to 1, the largest of the colours and how far they are spread."""
    top = ops.maximum(ops.maximum(red, green), blue)
    spread = top - ops.minimum(ops.minimum(red, green), blue)
    norm = (1.0 / 6.0) / spread
    other = ops.where(
        ops.equal(green, top),
        norm * (blue - red) + 2.0 / 6.0,
        norm * (red - green) + 4.0 / 6.0,
    )
    hue = ops.where(ops.equal(red, top), norm * (green - blue), other)
    hue = ops.where(spread > 0.0, hue, 0.0)
    return ops.where(hue < 0.0, hue + 1.0, hue), top, spread


def _colours(hue: Entry, top: Entry, spread: Entry) -> list[Entry]:
    """The other way round."""
    sixth = hue * 6.0
    parts = (
        ops.abs(sixth - 3.0) - 1.0,
        2.0 - ops.abs(sixth - 2.0),
        2.0 - ops.abs(sixth - 4.0),
    )
    return [top - spread + spread * ops.clip(p, 0.0, 1.0) for p in parts]


def _saturation(top: Entry, spread: Entry) -> Entry:
    made: Entry = ops.where(top > 0.0, spread / top, 0.0)
    return made


@row("RGBToHSV")
def _rgb_to_hsv(call: Call, x: Value) -> Result:
    hue, top, spread = _hue(*_channels(call, x))
    return _joined(x, hue, _saturation(top, spread), top)


@row("HSVToRGB")
def _hsv_to_rgb(call: Call, x: Value) -> Result:
    hue, saturation, top = _channels(call, x)
    return _joined(x, *_colours(hue, top, saturation * top))


@row("AdjustHue")
def _adjust_hue(call: Call, x: Value, delta: Value) -> Result:
    hue, top, spread = _hue(*_channels(call, x))
    turned = hue + wide(delta.entry)
    return _joined(x, *_colours(turned - ops.floor(turned), top, spread))


@row("AdjustSaturation")
def _adjust_saturation(call: Call, x: Value, scale: Value) -> Result:
    hue, top, spread = _hue(*_channels(call, x))
    saturation = ops.clip(_saturation(top, spread) * wide(scale.entry), 0.0, 1.0)
    return _joined(x, *_colours(hue, top, saturation * top))


@row("AdjustContrastv2")
def _adjust_contrast(call: Call, x: Value, factor: Value) -> Result:
    """Distances to the mean of each channel, scaled."""
    rank = len(call.shape(x))
    if rank < 3:
        raise ModelError(
            f"{call.where} needs (…, height, width, channels), got {show_shape(call.shape(x))}"
        )
    data = wide(x.entry)
    mean = ops.reduce_mean(data, axis=(rank - 3, rank - 2), keepdims=True)
    return as_dtype((data - mean) * wide(factor.entry) + mean, x.entry)
