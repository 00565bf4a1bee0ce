"""The padding of windows: the parameter, and padding in front of them, which they take over.

Then no kernel writes a padded copy: Keras pads images by an operator of its own wherever a
convolution has a stride. A max pool never reads padding of its own, so it can take any constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from passkit.errors import ShapeError
from passkit.graph.node import Entry, Node, known_shape
from passkit.ops.helpers import make, normalize_axes
from passkit.ops.movement import axes_order, expand_dims, transpose
from passkit.ops.padding import Widths, pad_with, widths_of
from passkit.values.size import Extent

MOVES = (transpose, expand_dims)
"""Operators through which padding is found: they put axes in another order, or add some."""


def each(
    node: Node, what: str, count: int, least: int = 1, given: Any = None
) -> tuple[int, ...]:
    """A parameter as one int for each spatial axis.

    Raises: ShapeError for another number of them, and for one below ``least``.
    """
    given = node.params[what] if given is None else given
    values = given if isinstance(given, tuple) else (given,) * count
    fits = len(values) == count and all(type(n) is int and n >= least for n in values)
    if not fits:
        raise ShapeError(
            f"{node.where} needs an int >= {least} as {what}, or {count}, one for each spatial "
            f"axis, got {given!r}"
        )
    return values


def paddings(
    node: Node, size: Sequence[Extent], reach: Sequence[int], stride: Sequence[int]
) -> list[tuple[int, int]]:
    """The parameter ``padding`` as a pair for each spatial axis.

    Raises: ShapeError where that is no padding, or 'SAME' of what depends on an unknown size.
    """
    given = node.params["padding"]
    if given == "VALID":
        return [(0, 0)] * len(size)
    if given == "SAME":
        return [_same(node, n, r, s) for n, r, s in zip(size, reach, stride, strict=True)]
    return explicit_pairs(node, given, len(size))


def _same(node: Node, n: Extent, reach: int, stride: int) -> tuple[int, int]:
    """Padding for ``ceil(n / stride)`` windows."""
    if stride == 1:
        total = reach - 1
    elif isinstance(n, int):
        total = max((-(-n // stride) - 1) * stride + reach - n, 0)
    else:
        raise ShapeError(
            f"{node.where} cannot tell the padding 'SAME' at stride {stride} for the unknown size "
            f"{n}; give the size, or the padding as numbers"
        )
    return total // 2, total - total // 2


def explicit_pairs(node: Node, given: Any, count: int) -> list[tuple[int, int]]:
    """Explicit padding as pairs. Raises: ShapeError for what is none."""
    many = given if isinstance(given, tuple) else (given,) * count
    pairs = [p if isinstance(p, tuple) else (p, p) for p in many]
    if len(pairs) != count or any(
        len(p) != 2 or any(type(n) is not int or n < 0 for n in p) for p in pairs
    ):
        raise ShapeError(
            f"{node.where} needs 'SAME', 'VALID' or ints >= 0 as padding, a number or a pair for "
            f"each of {count} spatial axes, got {given!r}"
        )
    return pairs


class Padded(NamedTuple):
    """An entry as padding around another one: ``widths`` of ``value`` around ``inner``."""

    inner: Entry
    widths: Widths
    value: Any


def _padded(entry: Entry) -> Padded | None:
    """Find the padding that makes an entry, also in front of transposes and new axes.

    transpose(pad_with(x, (1, 0)), (1, 0))    is    (0, 1) around transpose(x, (1, 0))
    """
    moves: list[Node] = []
    node = entry.node
    while node.op in MOVES and not node.control:
        moves.append(node)
        node = node.inputs[0].node
    if node.op is not pad_with or node.control:
        return None
    inner = node.inputs[0]
    widths = widths_of(node, len(known_shape(inner)), node.params["pad_width"])
    for move in reversed(moves):
        rank = len(known_shape(move.entries[0]))
        if move.op is transpose:
            widths = tuple(widths[axis] for axis in axes_order(move, rank))
        else:
            added, rest = normalize_axes(move, rank, move.params["axis"]), iter(widths)
            widths = tuple((0, 0) if k in added else next(rest) for k in range(rank))
        inner = move.alone((inner,)).entries[0]
    return Padded(inner, widths, node.params["value"])


def absorb(node: Node, window: tuple[int, ...], fill: Any = 0) -> Entry | None:
    """Let windows pad by themselves what is padded in front of them, bit for bit.

    Each end of each spatial axis is taken over by itself. The rest stays in front: a width that is
    no number or negative, one so wide that a window would see padding only, that of batch and
    channels. A node without a parameter ``fill`` pads with positive zeros, as convolutions do.

    convolution(pad_with(x, ((0, 0), (0, 1), (9, 0), (0, 0))), f)    becomes
    convolution(pad_with(x, ((0, 0), (0, 0), (9, 0), (0, 0))), f, padding=((0, 1), (0, 0)))

    Args:
        node: It takes windows of its first input, (batch, *size, channels).
        window: The extent of a window along each spatial axis.
        fill: What its own padding holds.

    Returns:
        An entry to take the place of the node's, or None where nothing can be taken over.
    """
    padded = _padded(node.inputs[0])
    if padded is None:
        return None
    count, params = len(window), dict(node.params)
    stride, dilation = each(node, "strides", count), each(node, "dilations", count)
    reach = [(w - 1) * d + 1 for w, d in zip(window, dilation, strict=True)]
    own = paddings(node, known_shape(node.inputs[0])[1:-1], reach, stride)
    if "fill" in params and own == [(0, 0)] * count:
        params["fill"] = padded.value
    elif _bytes(node, padded.value) != _bytes(node, fill):
        return None

    def taken(axis: int, end: int) -> int:
        width = padded.widths[1 + axis][end]
        return width if isinstance(width, int) and 0 < width < reach[axis] - own[axis][end] else 0

    takes = [(taken(k, 0), taken(k, 1)) for k in range(count)]
    if takes == [(0, 0)] * count:
        return None
    params["padding"] = tuple(_both(own, takes, 1))
    left = _both(padded.widths, [(0, 0), *takes, (0, 0)], -1)
    data = padded.inner
    if left != [(0, 0)] * len(left):
        data = make("pad_with", data, pad_width=tuple(left), value=padded.value)
    assert node.op is not None
    absorbed = node.op(data, *node.inputs[1:], **params)
    return absorbed.node.replaced(name=node.name).entries[0]  # type: ignore[no-any-return]


def _both(pairs: Sequence[Any], others: Sequence[Any], sign: int) -> list[tuple[Any, Any]]:
    """Pairs plus, or minus, others."""
    return [
        (a + sign * c, b + sign * d) for (a, b), (c, d) in zip(pairs, others, strict=True)
    ]


def _bytes(node: Node, value: Any) -> bytes:
    """A number in the dtype of a node's input, by which zeros of either sign differ."""
    dtype = node.inputs[0].dtype
    assert dtype is not None
    return dtype.numpy.type(value).tobytes()  # type: ignore[no-any-return]
