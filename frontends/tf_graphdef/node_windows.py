"""Strides, dilations and padding of TensorFlow's convolutions and pools, in passkit's form.

A node gives them for all axes in its ``data_format``; here they are reduced to the spatial axes of
a channels-last input.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import frozen

from passkit import ops
from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.imported_value import ImportCall, ImportedValue
from passkit.frontends.tf_graphdef.proto import short
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry
from passkit.values.size import Extent, Shape, Size

LAST = {1: "NWC", 2: "NHWC", 3: "NDHWC"}
FIRST = {1: "NCW", 2: "NCHW", 3: "NCDHW"}
"""Channels-first data formats by number of spatial axes; `LAST` has the channels-last ones."""

PaddingPairs = tuple[tuple[Extent, Extent], ...]


@frozen
class NodeWindows:
    """Windows of a node over the spatial axes."""

    size: Shape
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    padding: PaddingPairs
    """Padding before and after each axis; symbolic if it depends on an unknown size."""
    same: bool
    """Whether it is TensorFlow's SAME padding of known sizes."""

    @property
    def is_known(self) -> bool:
        """Whether the padding is known during import."""
        return all(isinstance(n, int) for pair in self.padding for n in pair)

    @property
    def padded_size(self) -> Shape:
        """Lengths of the spatial axes including padding."""
        return tuple(n + a + b for n, (a, b) in zip(self.size, self.padding, strict=True))

    @property
    def params(self) -> dict[str, Any]:
        """``strides``, ``dilations`` and ``padding`` of passkit's operators.

        The padding is "SAME", pairs of ints, or 0 if it is symbolic; `padded` adds it then.
        """
        padding: Any = "SAME" if self.same else self.padding if self.is_known else 0
        return {"strides": self.strides, "dilations": self.dilations, "padding": padding}

    def padded(self, x: Entry, value: float = 0) -> Entry:
        """Return channels-last ``x`` padded by ``value`` over the spatial axes.

        ``x`` itself is returned if the padding is known, since ``params`` has it then.

        Raises:
            DTypeError: If the padding is not known, and ``x`` of integers cannot hold ``value``.
        """
        if self.is_known:
            return x
        pairs = tuple(pair if pair != (0, 0) else (0, 0) for pair in self.padding)
        padded: Entry = ops.pad_with(x, pad_width=((0, 0), *pairs, (0, 0)), value=value)
        return padded


def channels_first(call: ImportCall, count: int) -> bool:
    """Return whether channels are the second axis, by the attribute ``data_format``.

    Without the attribute they are the last.

    Args:
        call: The node.
        count: Number of spatial axes, 1 to 3.

    Raises:
        ModelError: If the data format is another one, or no string.
    """
    formats = (LAST[count], FIRST[count])
    data_format = call.attr("data_format", "s", formats[0].encode())
    if data_format not in [f.encode() for f in formats]:
        raise ModelError(
            f"{call.where} needs the data_format {formats[0]} or {formats[1]}, got "
            f"{short(data_format.decode(errors='replace'))}"
        )
    return bool(data_format == formats[1].encode())


def inner_shape(call: ImportCall, x: ImportedValue, count: int) -> Shape:
    """Return the shape of input ``x`` with channels moved to the last axis.

    Args:
        call: The node, which has the data format.
        x: The input.
        count: Number of spatial axes, 1 to 3.

    Raises:
        ModelError: If its rank is unknown or not ``count`` + 2, or the data format is unknown.
    """
    shape = call.shape(x)
    if len(shape) != count + 2:
        raise ModelError(
            f"{call.where} needs {short(x.name)} of rank {count + 2}, got {show_shape(shape)}"
        )
    return (shape[0], *shape[2:], shape[1]) if channels_first(call, count) else shape


def spatial(call: ImportCall, attribute: str, values: Sequence[int], count: int) -> tuple[int, ...]:
    """Return the numbers of the spatial axes from a list that has a number for each axis.

    Args:
        call: The node, whose ``data_format`` says which axes are spatial.
        attribute: Name of the list in errors, such as "strides".
        values: The list; ones are returned if it is empty.
        count: Number of spatial axes, 1 to 3.

    Raises:
        ModelError: If the length differs, a number is below 1, batch or channels have another
            number than 1, or the data format is unknown.
    """
    if not values:
        return (1,) * count
    first = channels_first(call, count)
    spatial_values = tuple(values[2:] if first else values[1:-1])
    if len(values) != count + 2 or any(n < 1 for n in values):
        raise ModelError(
            f"{call.where} needs {count + 2} {attribute} of at least 1, got {list(values)}"
        )
    if values[0] != 1 or values[1 if first else -1] != 1:
        raise ModelError(
            f"{call.where} needs {attribute} of 1 for images and channels, got {list(values)}"
        )
    return spatial_values


def windows_of_node(
    call: ImportCall, size: Shape, window: Sequence[int], strides: Sequence[int] | None = None
) -> NodeWindows:
    """Return the windows of a node over spatial axes of lengths ``size``.

    Missing strides and dilations are 1.

    Args:
        call: The node.
        size: Lengths of the spatial axes, 1 to 3 of them.
        window: Extents of a window along them.
        strides: Steps for all axes including batch and channels; None for the attribute
            ``strides``.

    Raises:
        ModelError: If ``padding`` is missing or unknown, strides, dilations or explicit paddings
            are invalid, or SAME padding depends on unknown sizes in a way that is not supported.
    """
    count = len(size)
    step = spatial(call, "strides", strides or call.integers("strides"), count)
    dilation = spatial(call, "dilations", call.integers("dilations"), count)
    reach = [(w - 1) * d + 1 for w, d in zip(window, dilation, strict=True)]
    mode = call.attr("padding", "s")
    if mode == b"VALID":
        padding: PaddingPairs = ((0, 0),) * count
    elif mode == b"EXPLICIT":
        padding = _explicit(call, count)
    elif mode == b"SAME":
        padding = tuple(_same(call, n, r, s) for n, r, s in zip(size, reach, step, strict=True))
    else:
        raise ModelError(f"{call.where} needs the padding SAME, VALID or EXPLICIT, got {mode!r}")
    same = mode == b"SAME" and all(isinstance(n, int) for n in size)
    return NodeWindows(size, step, dilation, padding, same)


def _explicit(call: ImportCall, count: int) -> PaddingPairs:
    """Return the padding (before, after) of each spatial axis, for EXPLICIT padding.

    Args:
        call: The node; its attribute ``explicit_paddings`` has a pair for each axis.
        count: Number of spatial axes, 1 to 3.

    Raises:
        ModelError: If the number of paddings is wrong, one is negative, or batch or channels are
            padded, or an attribute is of another kind.
    """
    paddings = call.integers("explicit_paddings")
    first = channels_first(call, count)
    pairs = tuple(zip(paddings[::2], paddings[1::2], strict=False))
    other_axes = (0, 1) if first else (0, -1)
    is_valid = len(paddings) == 2 * (count + 2) and all(n >= 0 for n in paddings)
    if not is_valid or any(pairs[k] != (0, 0) for k in other_axes):
        raise ModelError(
            f"{call.where} needs a pair of paddings for each axis, (0, 0) for images and "
            f"channels, got {list(paddings)}"
        )
    return pairs[2:] if first else pairs[1:-1]


def _same(call: ImportCall, n: Extent, window_extent: int, stride: int) -> tuple[Extent, Extent]:
    """Return the SAME padding (before, after) of one axis, for ``ceil(n / stride)`` windows.

    If the total is odd, the further element is added behind. For a known length, a total below 0,
    where windows leave gaps, becomes 0.

    Args:
        call: The node, for errors.
        n: Length of the axis.
        window_extent: Elements that a window spans, with dilation.
        stride: Distance of windows.

    Raises:
        ModelError: If the length is unknown, and a window spans more than two elements and less
            than the stride.
    """
    count = (n + (stride - 1)) // stride
    if isinstance(n, Size) and 2 < window_extent < stride:
        raise ModelError(
            f"{call.where} needs a known size for the padding SAME of a window over "
            f"{window_extent} elements at stride {stride}, got the unknown size {n}; give load the "
            f"size in shapes="
        )
    if isinstance(n, Size) and window_extent < stride:
        return (0, 0) if window_extent == 1 else (0, count * stride - n)
    total = (count - 1) * stride + window_extent - n
    if isinstance(total, int):
        total = max(total, 0)
    return total // 2, total - total // 2
