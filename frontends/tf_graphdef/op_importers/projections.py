"""Images seen from elsewhere: each new pixel is read where a projective map says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.op_importers.images import SINGLE, known_images
from passkit.frontends.tf_graphdef.operators import ops
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.table import Result, row
from passkit.frontends.tf_graphdef.value import Call, Value
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry, constant


def _reflected(at: Entry, length: int) -> Entry:
    """Of abcd: dcba|abcd|dcba."""
    below = at + ops.trunc(-at / (2.0 * length)) * (2.0 * length)
    below = ops.where(below < -float(length), below + 2.0 * length, -below - 1.0)
    above = at - ops.trunc(at / (2.0 * length)) * (2.0 * length)
    above = ops.where(above >= float(length), 2.0 * length - above - 1.0, above)
    return _by_side(at, length, below, above)


def _wrapped(at: Entry, length: int) -> Entry:
    """Of abcd: abcd|abcd|abcd, where between the last and the first there is nothing."""
    span = max(length - 1.0, 1.0)
    below = at + (ops.trunc(-at / span) + 1.0) * float(length)
    above = at - ops.trunc(at / span) * float(length)
    return _by_side(at, length, below, above)


def _by_side(at: Entry, length: int, below: Entry, above: Entry) -> Entry:
    if length == 1:
        return _clipped(at, 1)
    last = ops.where(at > length - 1.0, above, at)
    return _clipped(ops.where(at < 0.0, below, last), length)


def _clipped(at: Entry, length: int) -> Entry:
    made: Entry = ops.clip(at, 0.0, length - 1.0)
    return made


MODES: dict[str, Callable[[Entry, int], Entry]] = {
    "CONSTANT": lambda at, length: at,
    "NEAREST": _clipped,
    "REFLECT": _reflected,
    "WRAP": _wrapped,
}
"""What becomes of a coordinate outside an image of some length."""


@row("ImageProjectiveTransformV2", "ImageProjectiveTransformV3")
def _transform(call: Call, *inputs: Value) -> Result:
    """Coordinates, and what lies between pixels, in float32; outside is one value, 0 in V2."""
    count = 3 + call.node.op.endswith("3")
    if len(inputs) != count:
        raise ModelError(f"{call.where} needs {count} input(s), got {len(inputs)}")
    x, transforms, size = inputs[:3]
    known_images(call, x)
    mode, method = (_choice(call, key, names) for key, names in (
        ("fill_mode", tuple(MODES)), ("interpolation", ("NEAREST", "BILINEAR"))
    ))  # fmt: skip
    wanted = call.ints(size, "output_shape")
    if len(wanted) != 2 or min(wanted) < 1:
        raise ModelError(f"{call.where} needs an output_shape of 2 ints > 0, got {list(wanted)}")
    fill = ops.cast(inputs[3].entry if count == 4 else constant(0, SINGLE), dtype=x.dtype.name)
    down, across, projection = _places(call, transforms, wanted)
    lengths = [n for n in call.shape(x)[1:3] if isinstance(n, int)]
    pair = [MODES[mode](at, n) for at, n in zip((down, across), lengths, strict=True)]
    read = _Pixels(x.entry, lengths, fill)
    found = read.nearest(*pair) if method == "NEAREST" else read.between(*pair)
    return ops.where(ops.equal(projection, 0.0), fill, found, name=call.name)


def _choice(call: Call, key: str, names: tuple[str, ...]) -> str:
    """An attribute that is one of some names; the first unless the model says so."""
    found: str = call.attr(key, "s", names[0].encode()).decode(errors="replace").upper()
    if found not in names:
        raise ModelError(f"{call.where} needs the {key} {', '.join(names)}, got {short(found)}")
    return found


def _places(call: Call, transforms: Value, size: tuple[int, ...]) -> list[Entry]:
    """Where new pixels lie, row and column, and what both were divided by: (count, *size, 1)."""
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
    """Pixels of images at rows and columns that are floats; ``fill`` outside."""

    def __init__(self, images: Entry, lengths: list[int], fill: Entry) -> None:
        self.images, self.lengths, self.fill = images, lengths, fill
        count = images.shape[0]  # type: ignore[index]
        self.number = ops.reshape(ops.arange(count, dtype="int64"), shape=(count, 1, 1))

    def at(self, rows: Entry, columns: Entry) -> Entry:
        """Pixels at whole numbers."""
        places = [ops.squeeze(e, axis=3) for e in (rows, columns)]
        index = [ops.cast(e, dtype="int64") for e in places]
        found = ops.gather_nd(
            self.images, ops.stack(*ops.broadcast_arrays(self.number, *index), axis=-1)
        )
        there = [
            ops.logical_and(e >= 0.0, e < float(n))
            for e, n in zip((rows, columns), self.lengths, strict=True)
        ]
        made: Entry = ops.where(ops.logical_and(*there), found, self.fill)
        return made

    def nearest(self, rows: Entry, columns: Entry) -> Entry:
        """The pixel that is nearest."""
        return self.at(ops.round_half_away(rows), ops.round_half_away(columns))

    def between(self, rows: Entry, columns: Entry) -> Entry:
        """What lies between four pixels, in float32; cut for integers."""
        top, left = ops.floor(rows), ops.floor(columns)
        bottom, right = top + 1.0, left + 1.0
        above, below = (
            (right - columns) * ops.cast(self.at(line, left), dtype="float32")
            + (columns - left) * ops.cast(self.at(line, right), dtype="float32")
            for line in (top, bottom)
        )
        found = (bottom - rows) * above + (rows - top) * below
        made: Entry = ops.cast(found, dtype=str(self.images.dtype))
        return made
