"""Importers of projective image transforms."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.imported_value import ImportCall, ImportedValue
from passkit.frontends.tf_graphdef.op_importers.images import (
    SINGLE,
    check_images,
    check_scalar,
    image_size,
)
from passkit.frontends.tf_graphdef.operators import ops
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.registry import ImportResult, op_importer
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry, constant


def _reflect(coordinates: Entry, length: int) -> Entry:
    """Reflect float coordinates into an image of ``length`` pixels: dcba|abcd|dcba.

    The result is clipped to 0 and ``length`` - 1; with one pixel it is 0.
    """
    below = coordinates + ops.trunc(-coordinates / (2.0 * length)) * (2.0 * length)
    below = ops.where(below < -float(length), below + 2.0 * length, -below - 1.0)
    above = coordinates - ops.trunc(coordinates / (2.0 * length)) * (2.0 * length)
    above = ops.where(above >= float(length), 2.0 * length - above - 1.0, above)
    return _map_outside(coordinates, length, below, above)


def _wrap(coordinates: Entry, length: int) -> Entry:
    """Wrap float coordinates into an image of ``length`` pixels: abcd|abcd|abcd.

    The result is clipped to 0 and ``length`` - 1; with one pixel it is 0.
    """
    period = max(length - 1.0, 1.0)
    below = coordinates + (ops.trunc(-coordinates / period) + 1.0) * float(length)
    above = coordinates - ops.trunc(coordinates / period) * float(length)
    return _map_outside(coordinates, length, below, above)


def _map_outside(coordinates: Entry, length: int, below: Entry, above: Entry) -> Entry:
    """Return coordinates with those outside an image replaced, clipped to the image.

    In an image of one pixel, all coordinates become 0.

    Args:
        coordinates: Float coordinates along one axis, in pixels.
        length: Number of pixels of the axis.
        below: Replacement of coordinates below 0.
        above: Replacement of coordinates above ``length`` - 1.
    """
    if length == 1:
        return _clip(coordinates, 1)
    upper_done = ops.where(coordinates > length - 1.0, above, coordinates)
    return _clip(ops.where(coordinates < 0.0, below, upper_done), length)


def _clip(coordinates: Entry, length: int) -> Entry:
    """Clip coordinates to an image of ``length`` pixels: to 0 and ``length`` - 1."""
    clipped: Entry = ops.clip(coordinates, 0.0, length - 1.0)
    return clipped


MODES: dict[str, Callable[[Entry, int], Entry]] = {
    "CONSTANT": lambda at, length: at,
    "NEAREST": _clip,
    "REFLECT": _reflect,
    "WRAP": _wrap,
}
"""Maps coordinates to those inside an image of a length, by ``fill_mode``."""


@op_importer("ImageProjectiveTransformV2", "ImageProjectiveTransformV3")
def _transform(call: ImportCall, *inputs: ImportedValue) -> ImportResult:
    """Import ImageProjectiveTransformV2 and V3: transformed images, computed in float32.

    Pixels from outside the images are a constant, which is 0 in V2.

    Args:
        call: The node; its attributes are ``fill_mode`` (CONSTANT by default, or NEAREST, REFLECT
            or WRAP) and ``interpolation`` (NEAREST by default, or BILINEAR), in any case of
            letters.
        inputs: Images (batch, height, width, channels); transforms, float32 of shape (images or 1,
            8); new height and width, known during import; and in V3 the constant.

    Returns:
        Images of the new size, in the dtype of the images. Pixels whose projective divisor is 0 are
        the constant, too.

    Raises:
        ModelError: If the number of inputs, an attribute, the new size, or shape or dtype of the
            transforms is invalid, the images are not of rank 4 with known height and width, the
            constant has axes, or the size exceeds the memory budget of the import.
        ShapeError: If the number of transforms is neither 1 nor that of images, or images have no
            pixels.
        DTypeError: If the images or the constant are complex.
    """
    count = 3 + call.node.op.endswith("3")
    if len(inputs) != count:
        raise ModelError(f"{call.where} needs {count} input(s), got {len(inputs)}")
    x, transforms, size = inputs[:3]
    check_images(call, x)
    for constant_pixel in inputs[3:]:
        check_scalar(call, constant_pixel)
    mode, method = (
        _choose(call, key, names)
        for key, names in (("fill_mode", tuple(MODES)), ("interpolation", ("NEAREST", "BILINEAR")))
    )
    output_shape = image_size(call, size, "output_shape")
    fill = ops.cast(inputs[3].entry if count == 4 else constant(0, SINGLE), dtype=x.dtype.name)
    down, across, projection = _source_coordinates(call, transforms, output_shape)
    lengths = [n for n in call.shape(x)[1:3] if isinstance(n, int)]
    mapped = [MODES[mode](at, n) for at, n in zip((down, across), lengths, strict=True)]
    pixels = _Pixels(x.entry, lengths, fill)
    sampled = pixels.nearest(*mapped) if method == "NEAREST" else pixels.interpolate(*mapped)
    return ops.where(ops.equal(projection, 0.0), fill, sampled, name=call.name)


def _choose(call: ImportCall, key: str, names: tuple[str, ...]) -> str:
    """Return the string attribute ``key``, upper case, which must be one of ``names``.

    The first of the names is its default. ``call`` is the node.

    Raises:
        ModelError: If it is none of them, or not a string, or an attribute is of another kind.
    """
    choice: str = call.attr(key, "s", names[0].encode()).decode(errors="replace").upper()
    if choice not in names:
        raise ModelError(
            f"{call.where} needs the {key} to be one of {', '.join(names)}, got {short(choice)}"
        )
    return choice


def _source_coordinates(
    call: ImportCall, transforms: ImportedValue, size: tuple[int, ...]
) -> list[Entry]:
    """Return the source row, the source column and the projective divisor of each new pixel.

    Each is a float32 array of shape (transforms, height, width, 1).

    Args:
        call: The node.
        transforms: float32 of shape (transforms, 8), as (a0, a1, a2, b0, b1, b2, c0, c1) of
            TensorFlow: column = (a0 x + a1 y + a2) / (c0 x + c1 y + 1), row with b.
        size: New height and width.

    Raises:
        ModelError: If the transforms have another shape or dtype, or the size exceeds the memory
            budget of the import.
    """
    shape = call.rank(transforms, 2)
    if shape[1] != 8 or transforms.dtype is not SINGLE:
        raise ModelError(
            f"{call.where} needs transforms float32(count, 8), got {transforms.dtype}"
            f"{show_shape(shape)}"
        )
    numbers = [ops.expand_dims(e, axis=(2, 3)) for e in ops.split(transforms.entry, 8, 1)]
    y, x = (
        constant(call.positions(n, np.float32).reshape(shape))
        for n, shape in zip(size, ((1, -1, 1, 1), (1, 1, -1, 1)), strict=True)
    )
    projection = numbers[6] * x + numbers[7] * y + 1.0
    down, across = (
        (numbers[k] * x + numbers[k + 1] * y + numbers[k + 2]) / projection for k in (3, 0)
    )
    return [down, across, projection]


class _Pixels:
    """Reads pixels of images at float coordinates; outside of an image it reads ``fill``."""

    def __init__(self, images: Entry, lengths: list[int], fill: Entry) -> None:
        """Store the images to read.

        Args:
            images: Shape (images, height, width, channels).
            lengths: Height and width.
            fill: Scalar that is read outside the images.
        """
        self.images, self.lengths, self.fill = images, lengths, fill
        count = images.shape[0]  # type: ignore[index]
        self.number = ops.reshape(ops.arange(count, dtype="int64"), shape=(count, 1, 1))

    def pixels_at(self, rows: Entry, columns: Entry) -> Entry:
        """Return the pixels at float coordinates without fraction; ``fill`` outside the image.

        The result has shape (images, height, width, channels) and the dtype of the images.

        Args:
            rows: Rows of shape (images, height, width, 1).
            columns: Columns of the same shape.

        Raises:
            ShapeError: If they are for another number of images, neither that nor 1, or the images
                have no pixels.
        """
        coordinates = [ops.squeeze(e, axis=3) for e in (rows, columns)]
        index = [ops.cast(e, dtype="int64") for e in coordinates]
        values = ops.gather_nd(
            self.images, ops.stack(*ops.broadcast_arrays(self.number, *index), axis=-1)
        )
        is_inside = [
            ops.logical_and(e >= 0.0, e < float(n))
            for e, n in zip((rows, columns), self.lengths, strict=True)
        ]
        result: Entry = ops.where(ops.logical_and(*is_inside), values, self.fill)
        return result

    def nearest(self, rows: Entry, columns: Entry) -> Entry:
        """Return the pixels nearest to coordinates; halves round away from 0, outside is ``fill``.

        The result has shape (images, height, width, channels).

        Args:
            rows: Float rows of shape (images, height, width, 1).
            columns: Float columns of the same shape.

        Raises:
            ShapeError: If they are for another number of images, neither that nor 1, or the images
                have no pixels.
        """
        return self.pixels_at(ops.round_half_away(rows), ops.round_half_away(columns))

    def interpolate(self, rows: Entry, columns: Entry) -> Entry:
        """Return pixels interpolated bilinearly in float32, in the dtype of the images.

        Pixels outside are ``fill``. Results of integer images are truncated.

        Args:
            rows: Float rows of shape (images, height, width, 1).
            columns: Float columns of the same shape.

        Raises:
            ShapeError: If they are for another number of images, neither that nor 1, or the images
                have no pixels.
        """
        top, left = ops.floor(rows), ops.floor(columns)
        bottom, right = top + 1.0, left + 1.0
        above, below = (
            (right - columns) * ops.cast(self.pixels_at(line, left), dtype="float32")
            + (columns - left) * ops.cast(self.pixels_at(line, right), dtype="float32")
            for line in (top, bottom)
        )
        interpolated = (bottom - rows) * above + (rows - top) * below
        result: Entry = ops.cast(interpolated, dtype=str(self.images.dtype))
        return result
