"""Importers of image operators: resizing, cropping, and colors."""

from __future__ import annotations

from typing import Any

import numpy as np

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.constant_values import constant_array
from passkit.frontends.tf_graphdef.imported_value import ImportCall, ImportedValue
from passkit.frontends.tf_graphdef.input_gradient import input_gradient
from passkit.frontends.tf_graphdef.operators import ops
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.registry import ImportResult, op_importer
from passkit.frontends.tf_graphdef.resampling import KERNELS, resampling_weights
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry, constant
from passkit.ops.layouts import as_dtype, widened
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


def check_images(call: ImportCall, x: ImportedValue) -> None:
    """Raise ModelError unless input ``x`` has rank 4 and a known height and width (axes 1, 2).

    An unknown rank is refused, too. ``call`` is the node.
    """
    shape = call.shape(x)
    if len(shape) != 4 or any(isinstance(n, Size) for n in shape[1:3]):
        raise ModelError(
            f"{call.where} needs images of rank 4 with known height and width, got "
            f"{short(x.name)} of shape {show_shape(shape)}; give load the shape of its input in "
            f"shapes="
        )


def image_size(call: ImportCall, value: ImportedValue, role: str) -> tuple[int, int]:
    """Return the input ``value`` as a known, positive height and width, in a tuple.

    ``role`` names it in errors. ``call`` is the node.

    Raises:
        ModelError: If it is not two integers of at least 1 that are known during import.
    """
    size = call.ints(value, role)
    if len(size) != 2 or min(size) < 1:
        raise ModelError(f"{call.where} needs two positive ints as its {role}, got {list(size)}")
    return size[0], size[1]


def _alignment_flags(call: ImportCall) -> dict[str, bool]:
    """Return the bool attributes of a resize that say how pixels are aligned, by name.

    They are ``align_corners`` and, for all but ResizeArea, ``half_pixel_centers``; False by
    default. ``call`` is the node.

    Raises:
        ModelError: If one of them is no bool.
    """
    keys = ["align_corners"] + ["half_pixel_centers"] * (call.node.op != "ResizeArea")
    return {k: call.attr(k, "b", False) for k in keys}


@op_importer(*RESIZED)
def _resize(call: ImportCall, x: ImportedValue, size: ImportedValue) -> ImportResult:
    """Import a resize of images (batch, height, width, channels) to ``size``, (height, width).

    All methods but the nearest pixel return float32. Unknown heights and widths are supported where
    they grow by integer factors. ``call`` is the node, ``x`` one of its inputs.

    Raises:
        ModelError: If the images have another rank than 4, a height or width that is unknown in
            other cases, ``size`` is not known during import, or an attribute is of another kind.
        ShapeError: If ``size`` is not two numbers of at least 0, or the images have no pixels.
        GraphError: If ``align_corners`` and ``half_pixel_centers`` are both set.
        DTypeError: If the images are complex, except for ResizeNearestNeighbor.
    """
    data = x.entry
    if call.node.op != "ResizeNearestNeighbor" and x.dtype is not SINGLE:
        data = ops.cast(data, dtype="float32")
    factors = _integer_factors(call, x, size)
    if factors:
        return _enlarge(data, factors, call.node.op == "ResizeNearestNeighbor")
    check_images(call, x)
    new_size = call.ints(size, "size")
    op = getattr(ops, RESIZED[call.node.op])
    return op(data, size=new_size, **_alignment_flags(call), name=call.name)


def _integer_factors(call: ImportCall, x: ImportedValue, size: ImportedValue) -> list[int]:
    """Return the integer factors by which unknown heights and widths grow.

    Args:
        call: The resize.
        x: Images.
        size: New height and width.

    Returns:
        Two factors, for height and width. Empty if height and width of ``x`` are known, a factor is
        no integer, ``x`` has not four axes, ``size`` not two numbers, or the resize is neither
        ResizeNearestNeighbor without ``align_corners`` nor ResizeBilinear with
        ``half_pixel_centers``.

    Raises:
        ModelError: If the rank of ``x`` is unknown, ``size`` is not known during import, or an
            attribute is of another kind.
    """
    shape, new_size, flags = call.shape(x), call.extents(size, "size"), _alignment_flags(call)
    methods = ("ResizeNearestNeighbor", "ResizeBilinear")
    if len(shape) != 4 or len(new_size) != 2 or call.node.op not in methods:
        return []
    if flags["align_corners"] or not any(isinstance(n, Size) for n in shape[1:3]):
        return []
    if call.node.op == "ResizeBilinear" and not flags["half_pixel_centers"]:
        return []
    factors = [
        1 if new == old else new // old if old != 0 else 0
        for old, new in zip(shape[1:3], new_size, strict=True)
    ]
    exact_factors = [f for f, n, m in zip(factors, shape[1:3], new_size, strict=True) if f * n == m]
    return (
        [f for f in exact_factors if isinstance(f, int) and f > 0]
        if len(exact_factors) == 2
        else []
    )


def _enlarge(x: Entry, factors: list[int], nearest: bool) -> Entry:
    """Enlarge images of unknown size by integer factors, with half-pixel centers.

    The shape of ``x`` must be known up to symbolic extents.

    Args:
        x: Images (batch, height, width, channels).
        factors: Factors of height and width.
        nearest: Whether to repeat pixels; else they are interpolated bilinearly.
    """
    for axis, factor in ((2, factors[1]), (1, factors[0])):
        shape = x.shape
        assert shape is not None and x.dtype is not None
        coordinates = ops.arange(shape[axis] * factor, dtype="float32")
        coordinates = (coordinates + 0.5) / float(factor)
        if nearest:
            x = ops.gather(x, ops.cast(ops.floor(coordinates), dtype="int64"), axis=axis)
            continue
        low = ops.floor(coordinates - 0.5)
        fraction = ops.expand_dims(coordinates - 0.5 - low, axis=tuple(range(1, 4 - axis)))
        first = ops.maximum(ops.cast(low, dtype="int64"), 0)
        second = ops.cast(
            ops.ceil(coordinates - 0.5), dtype="int64"
        )  # gather clamps it to the last pixel
        a, b = (ops.gather(x, i, axis=axis) for i in (first, second))
        x = a + (b - a) * fraction
    return x


@op_importer("ResizeNearestNeighborGrad")
def _nearest_grad(call: ImportCall, dy: ImportedValue, size: ImportedValue) -> ImportResult:
    """Import the gradient of a nearest-pixel resize, which does not depend on the image.

    Args:
        call: The node.
        dy: Gradient of the resized images (batch, height, width, channels).
        size: Height and width of the images before the resize, known during import.

    Returns:
        The gradient of the images before the resize.

    Raises:
        ModelError: If ``dy`` is not of rank 4 with known height and width, ``size`` is not two
            known, positive integers, or an attribute is of another kind.
        GraphError: If ``align_corners`` and ``half_pixel_centers`` are both set.
        DTypeError: If ``dy`` is not of floats.
    """
    shape = call.shape(dy)
    check_images(call, dy)
    height, width = image_size(call, size, "size")
    zero = constant(dy.dtype.numpy.type(0))
    x = ops.broadcast_to(zero, shape=(shape[0], height, width, shape[3]))
    y = ops.resize_nearest(x, size=shape[1:3], **_alignment_flags(call))
    return input_gradient(y, x, dy.entry)


@op_importer("ResizeBilinearGrad", "ResizeBicubicGrad")
def _interpolated_grad(call: ImportCall, dy: ImportedValue, x: ImportedValue) -> ImportResult:
    """Import ResizeBilinearGrad and ResizeBicubicGrad: the gradient of the images ``x``.

    Args:
        call: The node.
        dy: Gradient of the resized images.
        x: Images before the resize, of which only shape and dtype matter.

    Returns:
        The gradient, in the shape and dtype of ``x``.

    Raises:
        ModelError: If ``dy`` or ``x`` is not of rank 4 with known height and width, or an attribute
            is of another kind.
        ShapeError: If their numbers of images or channels differ, or ``x`` has no pixels.
        GraphError: If ``align_corners`` and ``half_pixel_centers`` are both set.
        DTypeError: If ``dy`` is not of float32, or ``x`` is complex.
    """
    check_images(call, dy)
    check_images(call, x)
    name = RESIZED[call.node.op.removesuffix("Grad")]
    like = ops.zeros_like(x.entry)
    data = ops.cast(like, dtype="float32") if x.dtype is not SINGLE else like
    y = getattr(ops, name)(data, size=call.shape(dy)[1:3], **_alignment_flags(call))
    return as_dtype(input_gradient(y, data, dy.entry), x.entry)


@op_importer("CropAndResize")
def _crop_and_resize(
    call: ImportCall,
    x: ImportedValue,
    boxes: ImportedValue,
    images: ImportedValue,
    size: ImportedValue,
) -> ImportResult:
    """Import CropAndResize: crop boxes from images and resize them to one size.

    Args:
        call: The node; its attributes are ``method``, bilinear (the default) or nearest, and
            ``extrapolation_value`` (0 by default), that of pixels outside the image.
        x: Images (batch, height, width, channels), of known height and width.
        boxes: Corners (y1, x1, y2, x2) relative to the image, 0 to 1, of shape (boxes, 4).
        images: For each box the number of its image; numbers out of range are not refused.
        size: Height and width of all crops, known during import.

    Returns:
        Crops of shape (boxes, height, width, channels), in float32.

    Raises:
        ModelError: If ``x`` is not of rank 4 with known height and width, ``boxes`` not of rank 2,
            ``images`` not of rank 1, the method or the size is invalid, the size exceeds the memory
            budget of the import, or an attribute is of another kind.
        ShapeError: If boxes have fewer than 4 columns, boxes and ``images`` differ in number and
            neither is a single one, or ``x`` has no pixels.
        DTypeError: If ``x`` or ``images`` is complex, or the boxes are bools or complex.
    """
    check_images(call, x)
    call.rank(images, 1)
    if len(call.shape(boxes)) != 2:
        raise ModelError(
            f"{call.where} needs boxes (count, 4), got {show_shape(call.shape(boxes))}"
        )
    method = call.attr("method", "s", b"bilinear")
    if method not in (b"bilinear", b"nearest"):
        raise ModelError(f"{call.where} needs the method bilinear or nearest, got {method!r}")
    crop_size = image_size(call, size, "crop_size")
    data = x.entry if x.dtype is SINGLE else ops.cast(x.entry, dtype="float32")
    axis_positions = [
        _crop_coordinates(call, boxes.entry, k, crop_size[k], call.shape(x)[1 + k]) for k in (0, 1)
    ]
    (y, inside_y), (x_, inside_x) = axis_positions
    y, inside_y = (ops.expand_dims(e, axis=2) for e in (y, inside_y))
    x_, inside_x = (ops.expand_dims(e, axis=1) for e in (x_, inside_x))
    image = ops.expand_dims(ops.cast(images.entry, dtype="int64"), axis=(1, 2))

    def pixel(rows: Entry, columns: Entry) -> Entry:
        like = ops.broadcast_arrays(image, *(ops.cast(e, dtype="int64") for e in (rows, columns)))
        pixels: Entry = ops.gather_nd(data, ops.stack(*like, axis=-1))
        return pixels

    if method == b"nearest":
        pixels = pixel(ops.round_half_away(y), ops.round_half_away(x_))
    else:
        left, right, top, bottom = ops.floor(x_), ops.ceil(x_), ops.floor(y), ops.ceil(y)
        across, down = (ops.expand_dims(e, axis=3) for e in (x_ - left, y - top))
        above, below = (
            first + (pixel(rows, right) - first) * across
            for rows, first in ((top, pixel(top, left)), (bottom, pixel(bottom, left)))
        )
        pixels = above + (below - above) * down
    is_inside = ops.expand_dims(ops.logical_and(inside_y, inside_x), axis=3)
    return ops.where(is_inside, pixels, call.attr("extrapolation_value", "f", 0.0))


def _crop_coordinates(
    call: ImportCall, boxes: Entry, k: int, count: int, length: Any
) -> tuple[Entry, Entry]:
    """Return the image rows (k = 0) or columns of crops, and whether they are inside the image.

    Args:
        call: The node.
        boxes: Shape (boxes, 4), as (y1, x1, y2, x2) from 0 to 1.
        k: 0 for rows, 1 for columns.
        count: Number of rows or columns of a crop.
        length: Number of rows or columns of the image.

    Returns:
        Float coordinates in pixels and bools, of shape (boxes, count); for a count of 1, the
        middle.

    Raises:
        ModelError: If ``count`` exceeds the memory budget of the import.
        ShapeError: If boxes have fewer than ``k`` + 3 columns.
        DTypeError: If they are bools or complex.
    """
    rows = boxes.shape[0]  # type: ignore[index]
    low, high = (ops.slice(boxes, begin=(0, k + 2 * j), size=(rows, 1)) for j in (0, 1))
    last_index = np.float32(length - 1)
    if count > 1:
        step = (high - low) * last_index / np.float32(count - 1)
        positions = low * last_index + constant(call.positions(count, np.float32)) * step
    else:
        positions = (low + high) * last_index * 0.5
    return positions, ops.logical_and(positions >= 0.0, positions <= last_index)


@op_importer("ScaleAndTranslate")
def _scale_and_translate(
    call: ImportCall,
    x: ImportedValue,
    size: ImportedValue,
    scale: ImportedValue,
    translation: ImportedValue,
) -> ImportResult:
    """Import ScaleAndTranslate as products with weight matrices, in float32.

    Args:
        call: The node; its attributes are ``kernel_type`` (lanczos1, 3 or 5, gaussian, box,
            triangle, keyscubic or mitchellcubic; lanczos3 by default) and ``antialias`` (True by
            default).
        x: Images (batch, height, width, channels), of known height and width.
        size: New height and width, known during import.
        scale: Factors of height and width, positive and known during import.
        translation: Shifts of height and width in new pixels, known during import.

    Raises:
        ModelError: If the images have another rank or an unknown size, the kernel is unknown,
            ``size`` is not two known, positive integers, ``scale`` or ``translation`` is not two
            known numbers, or the matrices exceed the memory budget of the import, or an attribute
            is of another kind.
        DTypeError: If the images are complex.
    """
    check_images(call, x)
    kernel = call.attr("kernel_type", "s", b"lanczos3").decode(errors="replace")
    if kernel not in KERNELS:
        raise ModelError(
            f"{call.where} needs one of the kernel_types {', '.join(KERNELS)}, got {short(kernel)}"
        )
    new_size = image_size(call, size, "size")
    factors, translations = (
        _known_pair(call, v, role) for v, role in ((scale, "scale"), (translation, "translation"))
    )
    image = x.entry if x.dtype is SINGLE else ops.cast(x.entry, dtype="float32")
    for k, new in enumerate(new_size):
        old = call.shape(x)[1 + k]
        assert isinstance(old, int)
        call.budget.take(8 * old * new, call.where)
        antialias = call.attr("antialias", "b", True)
        image = weigh_axis(
            image,
            1 + k,
            resampling_weights(kernel, old, new, factors[k], translations[k], antialias),
        )
    return image


def _known_pair(call: ImportCall, value: ImportedValue, role: str) -> list[float]:
    """Return the two numbers of an input that must be known during import.

    Args:
        call: The node, for errors.
        value: Vector of two numbers, for height and width.
        role: Name of the input; a "scale" must be positive.

    Raises:
        ModelError: If they are not known, not a vector of two, complex, or a scale is not positive.
    """
    numbers = constant_array(value)
    if (
        numbers is None
        or numbers.shape != (2,)
        or numbers.dtype.kind == "c"
        or (role == "scale" and not (numbers > 0).all())
    ):
        shown = "numbers known only at run time" if numbers is None else numbers.tolist()
        raise ModelError(
            f"{call.where} needs two known {'positive ' if role == 'scale' else ''}numbers as its "
            f"{role}, got {shown}; give load the full shape of its input in shapes="
        )
    return [float(n) for n in numbers]


# Colors


def _channels(call: ImportCall, x: ImportedValue) -> list[Entry]:
    """Return the three color channels, each with a last axis of 1; 16-bit floats as float32.

    ``call`` is the node.

    Raises:
        ModelError: If the rank is unknown, or the last axis does not have three channels.
    """
    shape = call.shape(x)
    if not shape or shape[-1] != 3:
        raise ModelError(
            f"{call.where} needs three channels in the last axis, got {show_shape(shape)}"
        )
    return list(ops.split(widened(x.entry), 3, len(shape) - 1))


def _join_channels(x: ImportedValue, *channels: Entry) -> Entry:
    """Concatenate channels along the last axis, in the dtype of ``x``.

    Raises:
        DTypeError: If the channels differ in dtype.
    """
    return as_dtype(ops.concat(*channels, axis=len(channels[0].shape or ()) - 1), x.entry)


def _to_hue(red: Entry, green: Entry, blue: Entry) -> tuple[Entry, Entry, Entry]:
    """Return hue, maximum and chroma of colors, as a tuple in this order.

    Args:
        red: Red channel, of real numbers; integers are divided as floats.
        green: Green channel, of the same shape and dtype.
        blue: Blue channel.

    Returns:
        The hue from 0 to 1, which is 0 for gray; the maximum of the channels; and the chroma, the
        maximum minus the minimum.

    Raises:
        DTypeError: If the channels are complex or bools.
    """
    maximum = ops.maximum(ops.maximum(red, green), blue)
    chroma = maximum - ops.minimum(ops.minimum(red, green), blue)
    norm = (1.0 / 6.0) / chroma
    other = ops.where(
        ops.equal(green, maximum),
        norm * (blue - red) + 2.0 / 6.0,
        norm * (red - green) + 4.0 / 6.0,
    )
    hue = ops.where(ops.equal(red, maximum), norm * (green - blue), other)
    hue = ops.where(chroma > 0.0, hue, 0.0)
    return ops.where(hue < 0.0, hue + 1.0, hue), maximum, chroma


def _to_rgb(hue: Entry, maximum: Entry, chroma: Entry) -> list[Entry]:
    """Return a list of red, green and blue from hue (0 to 1), maximum and chroma of colors.

    A channel is the maximum minus the chroma, plus the chroma times a factor from 0 to 1 of the
    hue.

    Raises:
        ShapeError: If the shapes do not broadcast.
        DTypeError: If an input is of bools or complex.
    """
    sixth = hue * 6.0
    parts = (
        ops.abs(sixth - 3.0) - 1.0,
        2.0 - ops.abs(sixth - 2.0),
        2.0 - ops.abs(sixth - 4.0),
    )
    return [maximum - chroma + chroma * ops.clip(p, 0.0, 1.0) for p in parts]


def check_scalar(call: ImportCall, value: ImportedValue) -> None:
    """Raise ModelError if ``value``, an input of the node ``call``, is known to have axes."""
    if value.shape:
        raise ModelError(
            f"{call.where} needs a scalar as {short(value.name)}, got {show_shape(value.shape)}"
        )


def _saturation(maximum: Entry, chroma: Entry) -> Entry:
    """Return the saturation: ``chroma`` relative to ``maximum`` of the channels, 0 for black.

    Raises:
        ShapeError: If the shapes do not broadcast.
        DTypeError: If an input is complex.
    """
    saturation: Entry = ops.where(maximum > 0.0, chroma / maximum, 0.0)
    return saturation


@op_importer("RGBToHSV")
def _rgb_to_hsv(call: ImportCall, x: ImportedValue) -> ImportResult:
    """Import RGBToHSV: hue from 0 to 1, saturation, and value, in the last axis.

    ``call`` is the node, ``x`` its input.

    Raises:
        ModelError: If the rank is unknown, or the last axis does not have three channels.
        DTypeError: If the colors are not floats.
    """
    hue, top, spread = _to_hue(*_channels(call, x))
    return _join_channels(x, hue, _saturation(top, spread), top)


@op_importer("HSVToRGB")
def _hsv_to_rgb(call: ImportCall, x: ImportedValue) -> ImportResult:
    """Import HSVToRGB: red, green and blue from hue from 0 to 1, saturation, and value.

    ``call`` is the node, ``x`` its input.

    Raises:
        ModelError: If the rank is unknown, or the last axis does not have three channels.
        DTypeError: If the colors are bools or complex.
    """
    hue, saturation, top = _channels(call, x)
    return _join_channels(x, *_to_rgb(hue, top, saturation * top))


@op_importer("AdjustHue")
def _adjust_hue(call: ImportCall, x: ImportedValue, delta: ImportedValue) -> ImportResult:
    """Import AdjustHue: add ``delta``, a scalar, to the hue of RGB images ``x``, modulo 1.

    The channels are in the last axis; the result has the dtype of ``x``. ``call`` is the node.

    Raises:
        ModelError: If the rank is unknown, the last axis does not have three channels, or ``delta``
            has axes.
        DTypeError: If the colors are bools or complex, or ``delta`` is complex.
    """
    check_scalar(call, delta)
    hue, top, spread = _to_hue(*_channels(call, x))
    new_hue = hue + widened(delta.entry)
    return _join_channels(x, *_to_rgb(new_hue - ops.floor(new_hue), top, spread))


@op_importer("AdjustSaturation")
def _adjust_saturation(call: ImportCall, x: ImportedValue, scale: ImportedValue) -> ImportResult:
    """Import AdjustSaturation: multiply the saturation of RGB images by ``scale``, a scalar.

    The product is clipped to 0 and 1. The channels are in the last axis of ``x``; the result has
    its dtype. ``call`` is the node.

    Raises:
        ModelError: If the rank is unknown, the last axis does not have three channels, or ``scale``
            has axes.
        DTypeError: If the colors are bools or complex, or ``scale`` is complex.
    """
    check_scalar(call, scale)
    hue, top, spread = _to_hue(*_channels(call, x))
    saturation = ops.clip(_saturation(top, spread) * widened(scale.entry), 0.0, 1.0)
    return _join_channels(x, *_to_rgb(hue, top, saturation * top))


@op_importer("AdjustContrastv2")
def _adjust_contrast(call: ImportCall, x: ImportedValue, factor: ImportedValue) -> ImportResult:
    """Import AdjustContrastv2: scale the distance to the mean of each channel by ``factor``.

    The mean is taken over height and width of each image of ``x``, (…, height, width, channels);
    ``factor`` is a scalar. ``call`` is the node.

    Raises:
        ModelError: If the rank is unknown or less than 3, or ``factor`` has axes.
        DTypeError: If the images are not floats, or ``factor`` is complex.
    """
    rank = len(call.shape(x))
    if rank < 3:
        raise ModelError(
            f"{call.where} needs (…, height, width, channels), got {show_shape(call.shape(x))}"
        )
    check_scalar(call, factor)
    data = widened(x.entry)
    mean = ops.reduce_mean(data, axis=(rank - 3, rank - 2), keepdims=True)
    return as_dtype((data - mean) * widened(factor.entry) + mean, x.entry)
