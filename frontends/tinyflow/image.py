"""``tf.image``: functions of images (height, width, channels), or of batches of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from passkit.errors import DTypeError, SettingError, ShapeError
from passkit.frontends.tinyflow import arrays, clipping, creation, elementwise, random_ops
from passkit.frontends.tinyflow.argument_checks import require_float, require_int
from passkit.frontends.tinyflow.dtypes import as_dtype
from passkit.frontends.tinyflow.missing_names import missing_name_handler
from passkit.frontends.tinyflow.reductions import FUNCTIONS as REDUCTIONS
from passkit.frontends.tinyflow.reductions import moments
from passkit.frontends.tinyflow.shapes import format_shape, parse_shape, require_shape
from passkit.frontends.tinyflow.tensors import Tensor, call_operator, convert_to_tensor
from passkit.ops.helpers import make

GREY = (0.2989, 0.587, 0.114)
"""The weights of red, green and blue in grey. Source: ITU-R BT.601."""


class ResizeMethod:
    """Interpolation methods of `resize_images`."""

    BILINEAR = 0
    NEAREST_NEIGHBOR = 1
    BICUBIC = 2
    AREA = 3


def _require_images(function: str, image: Any) -> tuple[Tensor, int]:
    """Convert images to a tensor, and check its rank.

    Args:
        function: The function's name, for the message.
        image: A tensor or an array.

    Returns:
        The tensor, ``image`` itself if it is one; and the axis of its rows: 0 for one image, 1 for
        a batch.

    Raises:
        ShapeError: If the rank is not 3 or 4, or unknown.
        ArgumentError: For a value that is neither a tensor nor numbers.
        DTypeError: For a tensor of text.
    """
    x = convert_to_tensor(image)
    rank = len(require_shape(x.entry, function))
    if rank not in (3, 4):
        raise ShapeError(f"{function} needs images of rank 3 or 4, got {x!r}")
    return x, rank - 3


def flip_left_right(image: Any) -> Tensor:
    """Reverse the columns of images.

    Args:
        image: An image of shape (height, width, channels), or a batch of images.

    Returns:
        A tensor of the shape and dtype of ``image``.

    Raises:
        ShapeError: If the rank is not 3 or 4.
        ArgumentError: For a value that is neither a tensor nor numbers.
        DTypeError: For a tensor of text.
    """
    x, row_axis = _require_images("flip_left_right", image)
    return arrays.reverse(x, [row_axis + 1])


def flip_up_down(image: Any) -> Tensor:
    """Reverse the rows of images.

    Args:
        image: An image of shape (height, width, channels), or a batch of images.

    Returns:
        A tensor of the shape and dtype of ``image``.

    Raises:
        ShapeError: If the rank is not 3 or 4.
        ArgumentError: For a value that is neither a tensor nor numbers.
        DTypeError: For a tensor of text.
    """
    x, row_axis = _require_images("flip_up_down", image)
    return arrays.reverse(x, [row_axis])


def random_flip_left_right(image: Any, seed: int | None = None) -> Tensor:
    """Reverse the columns of each image with probability 1/2, anew in each run.

    Args:
        image: An image of shape (height, width, channels), or a batch of images.
        seed: An int makes the draws the same in every process, as `tf.set_random_seed` does; None
            by default.

    Returns:
        A tensor of the shape and dtype of ``image``.

    Raises:
        ShapeError: If the rank is not 3 or 4.
        SettingError: If ``seed`` is no int.
        ArgumentError: For a value that is neither a tensor nor numbers.
        DTypeError: For a tensor of text.
    """
    x, row_axis = _require_images("random_flip_left_right", image)
    shape = [require_shape(x.entry)[0], 1, 1, 1] if row_axis else []
    is_flipped = random_ops.random_uniform(shape, seed=seed) < 0.5
    return elementwise.where(is_flipped, flip_left_right(x), x)


def transpose_image(image: Any, name: str | None = None) -> Tensor:
    """Exchange the rows and columns of images.

    Args:
        image: An image of shape (height, width, channels), or a batch of images.
        name: The name of the result; "transpose_image" by default.

    Returns:
        A tensor of shape (width, height, channels), or a batch of such images.

    Raises:
        ShapeError: If the rank is not 3 or 4.
        ArgumentError: For a value that is neither a tensor nor numbers.
        DTypeError: For a tensor of text.
    """
    x, row_axis = _require_images("transpose_image", image)
    return arrays.transpose(
        x, [*range(row_axis), row_axis + 1, row_axis, row_axis + 2], name or "transpose_image"
    )


def rgb_to_grayscale(images: Any, name: str | None = None) -> Tensor:
    """Convert three color channels to one of grey.

    Args:
        images: An image of shape (height, width, 3), or a batch of images. One channel counts as
            three equal ones.
        name: The name of the result; "rgb_to_grayscale" by default.

    Returns:
        Images of one channel, in the dtype of ``images``.

    Raises:
        ShapeError: If the rank is not 3 or 4, or the number of channels is neither 3 nor 1.
        DTypeError: If the elements are neither integers nor floats.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    x, row_axis = _require_images("rgb_to_grayscale", images)
    shades = creation.constant(np.array(GREY, np.float32))
    each = convert_image_dtype(x, "float32") * shades
    grey = REDUCTIONS["reduce_sum"](each, row_axis + 2, True)
    return convert_image_dtype(grey, x.dtype, name=name or "rgb_to_grayscale")


def grayscale_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """Repeat one channel as three equal ones.

    Args:
        images: An image of shape (height, width, 1), or a batch of images.
        name: The name of the result; "grayscale_to_rgb" by default.

    Returns:
        Images of three channels, in the dtype of ``images``.

    Raises:
        ShapeError: If the rank is not 3 or 4, or the number of channels is known and not 1.
        ArgumentError: For a value that is neither a tensor nor numbers.
        DTypeError: For a tensor of text.
    """
    x, row_axis = _require_images("grayscale_to_rgb", images)
    channels = require_shape(x.entry)[-1]
    if isinstance(channels, int) and channels != 1:
        raise ShapeError(f"grayscale_to_rgb needs images of one channel, got {x!r}")
    return arrays.tile(x, [*(1 for _ in range(row_axis + 2)), 3], name or "grayscale_to_rgb")


def convert_image_dtype(
    image: Any, dtype: Any, saturate: bool = False, name: str | None = None
) -> Tensor:
    """Convert images to another dtype, and scale them: the largest integer is 1.0 as a float.

    Args:
        image: A tensor of any shape.
        dtype: The dtype of the result.
        saturate: Without effect: floats out of range become the nearest integer in range anyway.
        name: The name of the result; "convert_image" by default.

    Returns:
        A tensor of the shape of ``image``.

    Raises:
        SettingError: Between two different integer dtypes.
        DTypeError: If a dtype is neither an integer nor a float, or ``dtype`` is no element type.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    x, target_dtype = convert_to_tensor(image), as_dtype(dtype)
    full_name = name or "convert_image"
    for kind in (x.dtype, target_dtype):
        if not (kind.is_float or kind.is_integer):
            raise DTypeError(f"convert_image_dtype needs integers or floats, got {kind}")
    if target_dtype is x.dtype:
        return elementwise.identity(x, full_name)
    if x.dtype.is_float and target_dtype.is_float:
        return elementwise.cast(x, target_dtype, full_name)
    if x.dtype.is_integer and target_dtype.is_integer:
        raise SettingError(
            f"convert_image_dtype needs floats on one side, got {x.dtype} and {target_dtype}; "
            f"tf.cast converts without scaling"
        )
    if target_dtype.is_float:
        largest = np.iinfo(x.dtype.numpy).max
        return elementwise.FUNCTIONS["multiply"](
            elementwise.cast(x, target_dtype), 1.0 / largest, full_name
        )
    bounds = np.iinfo(target_dtype.numpy)
    scaled = x * (bounds.max + 0.5)
    if saturate:
        scaled = clipping.clip_by_value(scaled, float(bounds.min), float(bounds.max))
    return elementwise.cast(scaled, target_dtype, full_name)


def adjust_brightness(image: Any, delta: Any) -> Tensor:
    """Add a number to all pixels; results beyond the range of an integer dtype are cut off.

    The sum is computed in float32.

    Args:
        image: A tensor of any shape.
        delta: The number or tensor to add, where 1 is the full range of integers.

    Returns:
        A tensor in the dtype of ``image``, of its shape broadcast with that of ``delta``.

    Raises:
        DTypeError: If the elements are neither integers nor floats, or ``delta`` is complex.
        ShapeError: If a tensor ``delta`` does not broadcast.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    x = convert_to_tensor(image)
    return convert_image_dtype(convert_image_dtype(x, "float32") + delta, x.dtype, saturate=True)


def adjust_contrast(images: Any, contrast_factor: Any) -> Tensor:
    """Multiply the differences of pixels to their channel's mean by a factor, in float32.

    Results beyond the range of an integer dtype are cut off.

    Args:
        images: An image of shape (height, width, channels), or a batch of images.
        contrast_factor: The factor, a number or a tensor.

    Returns:
        A tensor in the dtype of ``images``, of their shape broadcast with that of the factor.

    Raises:
        ShapeError: If the rank is not 3 or 4, or a tensor ``contrast_factor`` does not broadcast.
        DTypeError: If the elements are neither integers nor floats, or ``contrast_factor`` is
            complex.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    x, row_axis = _require_images("adjust_contrast", images)
    floats = convert_image_dtype(x, "float32")
    mean = REDUCTIONS["reduce_mean"](floats, [row_axis, row_axis + 1], True)
    return convert_image_dtype((floats - mean) * contrast_factor + mean, x.dtype, saturate=True)


def per_image_standardization(image: Any) -> Tensor:
    """Scale each image to mean 0 and standard deviation 1.

    The deviation is taken to be 1 / sqrt(elements) at least, so that uniform images are not divided
    by 0.

    Args:
        image: An image of shape (height, width, channels), or a batch of images.

    Returns:
        A tensor of the shape and dtype of ``image``, float32 for integers and bools.

    Raises:
        ShapeError: If the rank is not 3 or 4.
        DTypeError: If the elements are complex numbers.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    x, row_axis = _require_images("per_image_standardization", image)
    floats = x if x.dtype.is_float else elementwise.to_float(x)
    axes = [row_axis, row_axis + 1, row_axis + 2]
    mean, variance = moments(floats, axes, keep_dims=True)
    count = REDUCTIONS["reduce_sum"](creation.ones_like(floats), axes, True)
    min_deviation = elementwise.FUNCTIONS["rsqrt"](count)
    deviation = elementwise.FUNCTIONS["sqrt"](variance)
    return (floats - mean) / elementwise.FUNCTIONS["maximum"](deviation, min_deviation)


def _static_size(function: str, x: Tensor, row_axis: int) -> tuple[int, int]:
    """Return the height and the width of images.

    Args:
        function: The function's name, for the message.
        x: Images of rank 3 or 4.
        row_axis: The axis of the rows.

    Raises:
        ShapeError: If one is known only in a run.
    """
    sizes = require_shape(x.entry)[row_axis : row_axis + 2]
    if not all(isinstance(n, int) for n in sizes):
        raise ShapeError(f"{function} needs images of known height and width, got {x!r}")
    return int(sizes[0]), int(sizes[1])


def crop_to_bounding_box(
    image: Any, offset_height: int, offset_width: int, target_height: int, target_width: int
) -> Tensor:
    """Return a rectangular part of images.

    Args:
        image: An image of shape (height, width, channels), or a batch of images.
        offset_height: The first row of the part, an int.
        offset_width: The first column of the part, an int.
        target_height: The height of the part, an int.
        target_width: The width of the part, an int.

    Returns:
        Images of the target size.

    Raises:
        ShapeError: If the part does not lie inside the image or is empty, the image's size is known
            only in a run, or its rank is not 3 or 4.
        SettingError: If a number is no int.
        ArgumentError: For a value that is neither a tensor nor numbers.
        DTypeError: For a tensor of text.
    """
    x, row_axis = _require_images("crop_to_bounding_box", image)
    height, width = _static_size("crop_to_bounding_box", x, row_axis)
    top, left, h, w = (
        require_int("crop_to_bounding_box", "an offset or a size", n)
        for n in (offset_height, offset_width, target_height, target_width)
    )
    if min(top, left, h - 1, w - 1) < 0 or top + h > height or left + w > width:
        raise ShapeError(
            f"crop_to_bounding_box needs a part inside images {format_shape((height, width))}, got "
            f"{format_shape((h, w))} at {format_shape((top, left))}"
        )
    at = (slice(None),) * row_axis
    return x[(*at, slice(top, top + h), slice(left, left + w))]


def pad_to_bounding_box(
    image: Any, offset_height: int, offset_width: int, target_height: int, target_width: int
) -> Tensor:
    """Pad images with zeros to a size.

    Args:
        image: An image of shape (height, width, channels), or a batch of images.
        offset_height: The number of rows of zeros above, an int.
        offset_width: The number of columns of zeros on the left, an int.
        target_height: The height of the result, an int.
        target_width: The width of the result, an int.

    Returns:
        Images of the target size.

    Raises:
        ShapeError: If the image does not fit, its size is known only in a run, or its rank is not 3
            or 4.
        SettingError: If a number is no int.
        ArgumentError: For a value that is neither a tensor nor numbers.
        DTypeError: For a tensor of text.
    """
    x, row_axis = _require_images("pad_to_bounding_box", image)
    height, width = _static_size("pad_to_bounding_box", x, row_axis)
    top, left, h, w = (
        require_int("pad_to_bounding_box", "an offset or a size", n)
        for n in (offset_height, offset_width, target_height, target_width)
    )
    below, right = h - top - height, w - left - width
    if min(top, left, below, right) < 0:
        raise ShapeError(
            f"pad_to_bounding_box needs a target that holds images {format_shape((height, width))} "
            f"at {format_shape((top, left))}, got {format_shape((h, w))}; enlarge the target, or "
            f"crop the images first"
        )
    around = [[0, 0]] * row_axis + [[top, below], [left, right], [0, 0]]
    return arrays.pad(x, around)


def resize_image_with_crop_or_pad(image: Any, target_height: int, target_width: int) -> Tensor:
    """Return the middle of images, padded with zeros where they are smaller than the target.

    Args:
        image: An image of shape (height, width, channels), or a batch of images.
        target_height: The height of the result, an int.
        target_width: The width of the result, an int.

    Returns:
        Images of the target size.

    Raises:
        ShapeError: If the image's size is known only in a run, its rank is not 3 or 4, or a target
            is below 1.
        SettingError: If a target is no int.
        ArgumentError: For a value that is neither a tensor nor numbers.
        DTypeError: For a tensor of text.
    """
    x, row_axis = _require_images("resize_image_with_crop_or_pad", image)
    height, width = _static_size("resize_image_with_crop_or_pad", x, row_axis)
    target_h, target_w = (
        require_int("resize_image_with_crop_or_pad", "a size", n)
        for n in (target_height, target_width)
    )
    h, w = min(height, target_h), min(width, target_w)
    x = crop_to_bounding_box(x, (height - h) // 2, (width - w) // 2, h, w)
    top, left = (target_h - h) // 2, (target_w - w) // 2
    return pad_to_bounding_box(x, top, left, target_h, target_w)


def central_crop(image: Any, central_fraction: float) -> Tensor:
    """Return the middle of images.

    Args:
        image: An image of shape (height, width, channels), or a batch of images.
        central_fraction: The fraction of height and width to keep, above 0 and up to 1.

    Returns:
        Images of the height and width times the fraction, in whole rows and columns on each side.

    Raises:
        SettingError: For a fraction out of range, or that is no number.
        ShapeError: If the image's size is known only in a run, or its rank is not 3 or 4.
        ArgumentError: For a value that is neither a tensor nor numbers.
        DTypeError: For a tensor of text.
    """
    part = require_float("central_crop", "central_fraction", central_fraction)
    if not 0 < part <= 1:
        raise SettingError(f"central_crop needs a fraction above 0 and up to 1, got {part}")
    x, row_axis = _require_images("central_crop", image)
    height, width = _static_size("central_crop", x, row_axis)
    top, left = (int((n - n * part) / 2) for n in (height, width))
    return crop_to_bounding_box(x, top, left, height - 2 * top, width - 2 * left)


def _resize(op: str, images: Any, size: Any, name: str, flags: dict[str, bool]) -> Tensor:
    """Resize images with an operator of passkit; a single image as a batch of one.

    Args:
        op: Name of the operator; all but ``resize_nearest`` return float32.
        images: Images of rank 3 or 4, channels last.
        size: New height and width.
        name: Name of the function in errors, and of the result.
        flags: Parameters of the operator that say how pixels are aligned, by name.

    Returns:
        Images of the new size; one image if ``images`` is one.

    Raises:
        ShapeError: If the rank is not 3 or 4, ``size`` has not two numbers of at least 0, or the
            height or width of ``images`` is 0 or known only in a run.
        GraphError: If a flag is no bool, or both `align_corners` and `half_pixel_centers` are set.
        DTypeError: For complex numbers, unless ``op`` is ``resize_nearest``.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    x, row_axis = _require_images(name, images)
    entry = x.entry if row_axis else make("expand_dims", x.entry, axis=0)
    if op != "resize_nearest" and entry.dtype is not None and entry.dtype.name != "float32":
        entry = make("cast", entry, dtype="float32")
    resized = call_operator(op, name, name, entry, size=parse_shape(size, name), **flags)
    return resized if row_axis else arrays.squeeze(resized, 0)


def resize_bilinear(
    images: Any,
    size: Any,
    align_corners: bool = False,
    name: str | None = None,
    half_pixel_centers: bool = False,
) -> Tensor:
    """Resize images by bilinear interpolation; the result is float32.

    Args:
        images: An image of shape (height, width, channels), or a batch of images.
        size: The new (height, width), ints or sizes.
        align_corners: Whether the corner pixels of input and output coincide; False by default.
        name: The name of the result; "ResizeBilinear" by default.
        half_pixel_centers: Whether pixels are sampled at their centers; False by default.

    Returns:
        A float32 tensor of images of the new size.

    Raises:
        ShapeError: If the rank is not 3 or 4, ``size`` has not two numbers of at least 0, or the
            height or width of ``images`` is 0 or known only in a run.
        GraphError: If a flag is no bool, or both ``align_corners`` and ``half_pixel_centers`` are
            set.
        DTypeError: If the elements are complex numbers.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    flags = {"align_corners": align_corners, "half_pixel_centers": half_pixel_centers}
    return _resize("resize_bilinear", images, size, name or "ResizeBilinear", flags)


def resize_nearest_neighbor(
    images: Any,
    size: Any,
    align_corners: bool = False,
    name: str | None = None,
    half_pixel_centers: bool = False,
) -> Tensor:
    """Resize images by nearest-neighbor interpolation.

    Args:
        images: An image of shape (height, width, channels), or a batch of images.
        size: The new (height, width), ints or sizes.
        align_corners: Whether the corner pixels of input and output coincide; False by default.
        name: The name of the result; "ResizeNearestNeighbor" by default.
        half_pixel_centers: Whether pixels are sampled at their centers; False by default.

    Returns:
        Images of the new size, in the dtype of ``images``.

    Raises:
        ShapeError: If the rank is not 3 or 4, ``size`` has not two numbers of at least 0, or the
            height or width of ``images`` is 0 or known only in a run.
        GraphError: If a flag is no bool, or both ``align_corners`` and ``half_pixel_centers`` are
            set.
        ArgumentError: For a value that is neither a tensor nor numbers.
        DTypeError: For a tensor of text.
    """
    flags = {"align_corners": align_corners, "half_pixel_centers": half_pixel_centers}
    return _resize("resize_nearest", images, size, name or "ResizeNearestNeighbor", flags)


RESIZE_OPERATORS = {
    0: "resize_bilinear",
    1: "resize_nearest",
    2: "resize_bicubic",
    3: "resize_area",
}
"""The operator for each `ResizeMethod`."""


def resize_images(
    images: Any,
    size: Any,
    method: int = ResizeMethod.BILINEAR,
    align_corners: bool = False,
    preserve_aspect_ratio: bool = False,
    name: str | None = None,
) -> Tensor:
    """Resize images by a chosen interpolation.

    Args:
        images: An image of shape (height, width, channels), or a batch of images.
        size: The new (height, width), ints or sizes.
        method: One of `ResizeMethod`; bilinear by default.
        align_corners: Whether the corner pixels of input and output coincide; False by default.
        preserve_aspect_ratio: Whether to choose the largest size within ``size`` of the same ratio
            of height and width; False by default.
        name: The name of the result; "resize" by default.

    Returns:
        Images of the new size: ``images`` itself if it has that size; else float32, but in the
        dtype of ``images`` for NEAREST_NEIGHBOR.

    Raises:
        SettingError: For an unknown method.
        ShapeError: If the rank is not 3 or 4, ``size`` has not two numbers of at least 0, or the
            height or width of ``images`` is 0 or known only in a run.
        GraphError: If ``align_corners`` is no bool.
        DTypeError: If the elements are complex numbers, unless the method is NEAREST_NEIGHBOR.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    if not isinstance(method, int) or method not in RESIZE_OPERATORS:
        raise SettingError(f"resize_images needs a method of tf.image.ResizeMethod, got {method!r}")
    x, row_axis = _require_images("resize_images", images)
    new_size: Any = parse_shape(size, "resize_images")
    height, width = require_shape(x.entry)[row_axis : row_axis + 2]
    if preserve_aspect_ratio:
        height, width = _static_size("resize_images", x, row_axis)
        if len(new_size) != 2 or not all(isinstance(n, int) for n in new_size):
            raise ShapeError(
                f"resize_images needs two ints as size to preserve the aspect ratio, got "
                f"{format_shape(new_size)}"
            )
        if 0 in (height, width):
            raise ShapeError(f"resize_images needs pixels to preserve the aspect ratio, got {x!r}")
        scale = min(new_size[0] / height, new_size[1] / width)
        new_size = (round(height * scale), round(width * scale))
    if (height, width) == tuple(new_size):
        return x
    flags = {"align_corners": align_corners}
    if RESIZE_OPERATORS[method] != "resize_area":
        flags["half_pixel_centers"] = False
    return _resize(RESIZE_OPERATORS[method], x, new_size, name or "resize", flags)


__all__ = [
    "ResizeMethod",
    "adjust_brightness",
    "adjust_contrast",
    "central_crop",
    "convert_image_dtype",
    "crop_to_bounding_box",
    "flip_left_right",
    "flip_up_down",
    "grayscale_to_rgb",
    "pad_to_bounding_box",
    "per_image_standardization",
    "random_flip_left_right",
    "resize_bilinear",
    "resize_image_with_crop_or_pad",
    "resize_images",
    "resize_nearest_neighbor",
    "rgb_to_grayscale",
    "transpose_image",
]
__getattr__ = missing_name_handler("tf.image", lambda: dict.fromkeys(__all__))
