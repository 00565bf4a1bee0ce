"""Positions of the windows of convolutions and pools, and padding that windows absorb.

Parameters of such operators, with one to three spatial axes in (batch, *size, channels):

- ``window``: elements of each spatial axis that a window covers.
- ``dilations``: distance of two neighbouring elements of a window.
- ``strides``: distance of the first elements of two neighbouring windows.
- ``padding``: 0 or 'VALID' (none), 'SAME' (as many windows as elements, divided by the stride and
  rounded up; an odd total pads one more at the end, as in TensorFlow), or the padding before and
  after the elements: a number for all axes, one for each axis, or a pair for each axis.

`absorb_padding` moves a ``pad_with`` in front of windows into their parameter ``padding``, so that
no kernel writes a padded copy: Keras pads images by a separate operator wherever a convolution has
a stride. A max pool never reads padding of its own, so it can absorb padding by any constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from passkit.errors import CapacityError, ShapeError
from passkit.graph.infer import agree, demand, show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.ops.helpers import make, normalize_axes
from passkit.ops.movement import expand_dims, permutation, transpose
from passkit.ops.padding import PadWidths, pad_with, parse_pad_widths
from passkit.values.size import Extent, Shape, Size

WINDOW_PARAMS = {"strides": 1, "padding": 0, "dilations": 1}
"""The parameters that position windows, with their defaults."""


# Geometry.


class WindowGeometry(NamedTuple):
    """Positions of the windows along each spatial axis.

    Window k of an axis begins at element ``k * stride - before`` of the input.

    Attributes:
        size: length of the input.
        window: number of elements of a window.
        stride: distance of two neighbouring windows.
        dilation: distance of two neighbouring elements of a window.
        before: padding before the first element.
        after: padding after the last element, as far as windows read it.
        result: number of windows.
    """

    size: tuple[Extent, ...]
    window: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[Extent, ...]
    result: tuple[Extent, ...]

    @property
    def dilated_window(self) -> tuple[int, ...]:
        """Return the number of elements from the first to the last of a window, for each axis."""
        return dilated_lengths(self.window, self.dilation)

    @property
    def reads_no_padding(self) -> bool:
        """Return whether all windows are known to lie inside the input."""
        return not any(self.before) and all(n == 0 for n in self.after)


def dilated_lengths(window: Sequence[int], dilation: Sequence[int]) -> tuple[int, ...]:
    """Return the number of elements from the first to the last of a window, for each axis.

    ``window`` has the elements of a window along each axis, ``dilation`` their distance.
    """
    return tuple((w - 1) * d + 1 for w, d in zip(window, dilation, strict=True))


def spatial_sizes(node: Node, shape: Shape) -> tuple[Extent, ...]:
    """Return the extents of the spatial axes of ``shape``, (batch, *size, channels).

    Raises:
        ShapeError: If there are not one to three spatial axes; the error names ``node``.
    """
    if not 3 <= len(shape) <= 5:
        raise ShapeError(
            f"{node.where} needs (batch, *size, channels) with one to three spatial axes, got "
            f"{show_shape(shape)}; insert expand_dims"
        )
    return tuple(shape[1:-1])


def window_geometry(
    node: Node, size: tuple[Extent, ...], window: tuple[int, ...], strides: Any = None
) -> WindowGeometry:
    """Return the positions of the windows that the parameters of ``node`` describe.

    With padding 'SAME' an empty axis has no windows. That a window fits into a symbolic extent is
    recorded as a guard.

    Args:
        node: A node with the parameters ``strides``, ``dilations`` and ``padding``.
        size: Extents of the spatial axes.
        window: Elements of a window along each spatial axis.
        strides: Replaces the parameter of the node, unless it is None.

    Raises:
        ShapeError: If a window does not fit into the padded input, a parameter is invalid, or
            padding 'SAME' at a stride above 1 depends on a symbolic extent.
    """
    count = len(size)
    stride = per_axis(node, "strides", count, value=strides)
    dilation = per_axis(node, "dilations", count)
    lengths = dilated_lengths(window, dilation)
    padding = node.params["padding"]
    pairs = resolve_padding(node, size, lengths, stride)
    result: list[Extent] = []
    for k, (n, (low, high), r, s) in enumerate(zip(size, pairs, lengths, stride, strict=True)):
        last_begin = n + (low + high - r)
        if isinstance(last_begin, int) and last_begin < 0:
            if n != 0 or padding != "SAME":
                raise ShapeError(
                    f"{node.where} needs at least {r} elements with padding at spatial axis {k}, "
                    f"for its window to fit, got {n} + {low} + {high}; pad more"
                )
            result.append(0)
            continue
        demand(node, n, r - low - high, f"spatial axis {k} must be long enough for the window")
        result.append(last_begin + 1 if s == 1 else last_begin // s + 1)
    before = tuple(low for low, _ in pairs)
    after = tuple(
        _clamp_below(0, high) if high == 0 else _padding_read_after(n, o, s, low, r)
        for n, o, s, (low, high), r in zip(size, result, stride, pairs, lengths, strict=True)
    )
    return WindowGeometry(size, window, stride, dilation, before, after, tuple(result))


def _clamp_below(low: int, n: Extent) -> Extent:
    """Return ``n``, but at least ``low``; a symbolic extent is returned as it is."""
    return n if isinstance(n, Size) else max(low, n)


def _padding_read_after(n: Extent, count: Extent, stride: int, before: int, length: int) -> Extent:
    """Return how much padding windows read after the last element of an axis, at least 0.

    A symbolic amount is returned as it is.

    Args:
        n: The extent of the axis.
        count: The number of windows.
        stride: The distance between windows.
        before: The padding before the first element.
        length: The elements from the first to the last of a window.
    """
    needed = (count - 1) * stride + length - before - n
    return _clamp_below(0, needed)


def check_window_count(node: Node, geometry: WindowGeometry, result: Shape) -> None:
    """Check that an operand has as many windows as the geometry, along each spatial axis.

    For operators that map windows back to a given size: other sizes give other numbers of windows.
    Numbers that differ symbolically are recorded as guards.

    Args:
        node: The node to name in errors.
        geometry: The windows of that size.
        result: The number of windows of the operand along each spatial axis.

    Raises:
        ShapeError: If the numbers differ.
    """
    for k, (have, need) in enumerate(zip(result, geometry.result, strict=True)):
        agree(node, have, need, f"the windows given and those of the size at spatial axis {k}")


def pad_image(image: Any, geometry: WindowGeometry) -> Any:
    """Return a NumPy image (batch, *size, channels) in float64, with the padding of its windows.

    Args:
        image: The image.
        geometry: The windows, of known padding; it is filled with zeros.

    Raises:
        MemoryError: If there is no memory for it; a CapacityError for lengths beyond 64 bits.
    """
    widths = [(b, int(a)) for b, a in zip(geometry.before, geometry.after, strict=True)]
    try:
        return np.pad(image.astype(np.float64), ((0, 0), *widths, (0, 0)))
    except (TypeError, ValueError):  # NumPy's errors for lengths beyond 64 bits
        raise CapacityError(f"the padding {widths} is too large") from None


# Parameters.


def per_axis(
    node: Node, name: str, count: int, least: int = 1, value: Any = None
) -> tuple[int, ...]:
    """Return a parameter as one int for each spatial axis.

    Args:
        node: The node whose parameter it is.
        name: The parameter: an int for all axes or a tuple.
        count: Number of spatial axes.
        least: The smallest int that is valid.
        value: Replaces the parameter of the node, unless it is None.

    Raises:
        ShapeError: If a tuple has more or fewer than ``count`` members, or one is below ``least``
            or no int, such as a bool or a Size.
    """
    value = node.params[name] if value is None else value
    numbers = value if isinstance(value, tuple) else (value,) * count
    if len(numbers) != count or any(type(n) is not int or n < least for n in numbers):
        raise ShapeError(
            f"{node.where} needs an int >= {least} as {name}, or {count}, one for each spatial "
            f"axis, got {value!r}"
        )
    return numbers


def resolve_padding(
    node: Node, size: Sequence[Extent], lengths: Sequence[int], stride: Sequence[int]
) -> list[tuple[int, int]]:
    """Return the parameter ``padding`` of a node as (before, after) for each spatial axis.

    Args:
        node: The node whose parameter it is: 'VALID', 'SAME', or numbers as `padding_pairs` takes.
        size: Extents of the spatial axes.
        lengths: Dilated length of a window along each.
        stride: Distance of windows along each.

    Raises:
        ShapeError: If the parameter is no padding, or it is 'SAME' and depends on a symbolic
            extent, as it does where a stride is above 1.
    """
    padding = node.params["padding"]
    if padding == "VALID":
        return [(0, 0)] * len(size)
    if padding == "SAME":
        return [_same_padding(node, n, r, s) for n, r, s in zip(size, lengths, stride, strict=True)]
    return padding_pairs(node, padding, len(size))


def _same_padding(node: Node, n: Extent, length: int, stride: int) -> tuple[int, int]:
    """Return the padding before and after an axis for ``ceil(n / stride)`` windows.

    An odd total has one more after it.

    Args:
        node: The node, for messages.
        n: The extent of the axis.
        length: The elements from the first to the last of a window.
        stride: The distance between windows.

    Raises: ShapeError if ``n`` is symbolic and the stride is not 1.
    """
    if stride == 1:
        total = max(length - 1, 0)
    elif isinstance(n, int):
        total = max((-(-n // stride) - 1) * stride + length - n, 0)
    else:
        raise ShapeError(
            f"{node.where} cannot tell the padding 'SAME' at stride {stride} for the unknown size "
            f"{n}; give the size, or the padding as numbers"
        )
    return total // 2, total - total // 2


def padding_pairs(node: Node, padding: Any, count: int) -> list[tuple[int, int]]:
    """Return explicit padding as (before, after) for each of ``count`` spatial axes.

    Args:
        node: The node to name in errors.
        padding: An int >= 0 for all ends, or a tuple of an int or a pair of ints for each axis.
        count: Number of spatial axes.

    Raises:
        ShapeError: If ``padding`` is anything else, such as 'SAME' or 'VALID'.
    """
    items = padding if isinstance(padding, tuple) else (padding,) * count
    pairs = [p if isinstance(p, tuple) else (p, p) for p in items]
    if len(pairs) != count or any(
        len(p) != 2 or any(type(n) is not int or n < 0 for n in p) for p in pairs
    ):
        raise ShapeError(
            f"{node.where} needs 'SAME', 'VALID' or ints >= 0 as padding, a number or a pair for "
            f"each of {count} spatial axes, got {padding!r}"
        )
    return pairs


# Padding in front of windows.

PADDING_COMMUTES_WITH = (transpose, expand_dims)
"""Operators that may stand between a padding and the windows that absorb it."""


class PaddedEntry(NamedTuple):
    """An entry as padding around another one: ``widths`` of ``value`` around ``inner``."""

    inner: Entry
    widths: PadWidths
    value: Any


def _match_padding(entry: Entry) -> PaddedEntry | None:
    """Match a ``pad_with``, also in front of transposes and new axes, which move inside it.

    transpose(pad_with(x, (1, 0)), (1, 0))    is    (0, 1) around transpose(x, (1, 0))

    Returns:
        None where the entry is not padded, or a node has control dependencies.

    Raises:
        ShapeError: If the rank of the padded entry is unknown.
    """
    moves: list[Node] = []
    node = entry.node
    while node.op in PADDING_COMMUTES_WITH and not node.control:
        moves.append(node)
        node = node.inputs[0].node
    if node.op is not pad_with or node.control:
        return None
    inner = node.inputs[0]
    widths = parse_pad_widths(node, len(known_shape(inner)), node.params["pad_width"])
    for move in reversed(moves):
        rank = len(known_shape(move.entries[0]))
        if move.op is transpose:
            widths = tuple(widths[axis] for axis in permutation(move, rank))
        else:
            new_axes, rest = normalize_axes(move, rank, move.params["axis"]), iter(widths)
            widths = tuple((0, 0) if k in new_axes else next(rest) for k in range(rank))
        inner = move.isolated((inner,)).entries[0]
    return PaddedEntry(inner, widths, node.params["value"])


def absorb_padding(node: Node, window: tuple[int, ...], fill: Any = 0) -> Entry | None:
    """Move padding of the first input into the parameter ``padding`` of a node with windows.

    Results keep their bits. Each end of each spatial axis is absorbed by itself. The other widths
    stay in front: those that are negative or unknown, those so wide that a window would see padding
    only, and those of batch and channels. A node without a parameter ``fill`` pads with positive
    zeros, as convolutions do; one that has it, and no padding yet, gets the value of the padding as
    its ``fill``.

    convolution(pad_with(x, ((0, 0), (0, 1), (9, 0), (0, 0))), f)    becomes
    convolution(pad_with(x, ((0, 0), (0, 0), (9, 0), (0, 0))), f, padding=((0, 1), (0, 0)))

    Args:
        node: A node with windows over its first input, (batch, *size, channels), of known dtype.
        window: The extent of a window along each spatial axis.
        fill: The value of its own padding.

    Returns:
        An entry to replace the node's result, of a node of the same name; None where there is
        nothing to absorb, or the input is padded by another value than that of padding that the
        node has.

    Raises:
        ShapeError: If the rank of the input is unknown, or a parameter of the windows invalid; only
            where the input is padded.
    """
    padded = _match_padding(node.inputs[0])
    if padded is None:
        return None
    count, params = len(window), dict(node.params)
    stride, dilation = per_axis(node, "strides", count), per_axis(node, "dilations", count)
    lengths = dilated_lengths(window, dilation)
    padding = resolve_padding(node, known_shape(node.inputs[0])[1:-1], lengths, stride)
    if "fill" in params and padding == [(0, 0)] * count:
        params["fill"] = padded.value
    elif _value_bytes(node, padded.value) != _value_bytes(node, fill):
        return None

    def absorbed_width(axis: int, end: int) -> int:
        """Return how much padding of an end of an axis the parameter can take; 0 for none.

        ``axis`` counts spatial axes; ``end`` is 0 for the front, 1 for the back.
        """
        width = padded.widths[1 + axis][end]
        limit = lengths[axis] - padding[axis][end]
        return width if isinstance(width, int) and 0 < width < limit else 0

    absorbed = [(absorbed_width(k, 0), absorbed_width(k, 1)) for k in range(count)]
    if absorbed == [(0, 0)] * count:
        return None
    params["padding"] = tuple(_add_pairs(padding, absorbed, 1))
    remaining = _add_pairs(padded.widths, [(0, 0), *absorbed, (0, 0)], -1)
    data = padded.inner
    if remaining != [(0, 0)] * len(remaining):
        data = make("pad_with", data, pad_width=tuple(remaining), value=padded.value)
    assert node.op is not None
    replacement = node.op(data, *node.inputs[1:], **params)
    return replacement.node.replaced(name=node.name).entries[0]  # type: ignore[no-any-return]


def _add_pairs(pairs: Sequence[Any], others: Sequence[Any], sign: int) -> list[tuple[Any, Any]]:
    """Return pairs plus ``sign`` times the other pairs, elementwise."""
    return [(a + sign * c, b + sign * d) for (a, b), (c, d) in zip(pairs, others, strict=True)]


def _value_bytes(node: Node, value: Any) -> bytes:
    """Return the bytes of a number ``value`` in the dtype of a node's first input.

    So 0.0 and -0.0 differ. The dtype must be known.
    """
    dtype = node.inputs[0].dtype
    assert dtype is not None
    return dtype.numpy.type(value).tobytes()  # type: ignore[no-any-return]
