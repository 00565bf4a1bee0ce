"""Space to depth, space to batch: blocks of an image as channels, or as more images; and back.

Each is a transpose between reshapes. Source: TensorFlow's operators of these names.
"""

from __future__ import annotations

from math import prod

from passkit.errors import GraphError, ShapeError, nearest
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.graph.op import REQUIRED
from passkit.ops.helpers import make, parse_extents
from passkit.ops.movement_composites import movement_composite
from passkit.ops.padding import PadWidths, parse_pad_widths
from passkit.values.size import Extent, divide_exactly

LAYOUTS = ("NHWC", "NCHW")


def _divide(node: Node, n: Extent, divisor: int, name: str) -> Extent:
    """Return an extent divided by an int.

    Args:
        node: The node to name in errors.
        n: The extent.
        divisor: The int, 1 or more.
        name: The extent in errors, such as "the height".

    Raises:
        ShapeError: If ``n``, which may be symbolic, is not known to be a multiple of ``divisor``.
    """
    quotient = divide_exactly(n, divisor)
    if quotient is None:
        raise ShapeError(f"{node.where} needs {name} to be a multiple of {divisor}, got {n}")
    return quotient


# Blocks and channels.


def _block_params(node: Node, x: Entry) -> tuple[int, bool]:
    """Return the parameter ``block_size``, and whether the channels are the last axis of ``x``.

    ``node`` has the parameters ``block_size`` and ``data_format``.

    Raises:
        GraphError: If ``data_format`` is neither NHWC nor NCHW.
        ShapeError: If ``block_size`` is no int of at least 1, or ``x`` has not four axes or an
            unknown rank.
    """
    size, layout = node.params["block_size"], node.params["data_format"]
    if layout not in LAYOUTS:
        raise GraphError(f"{node.where} has no data_format {layout!r}; {nearest(layout, LAYOUTS)}")
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise ShapeError(f"{node.where} needs an int >= 1 as block_size, got {size!r}")
    if x.ndim != 4:
        raise ShapeError(
            f"{node.where} needs four axes, {layout}, got {show_shape(known_shape(x))}"
        )
    return size, layout == "NHWC"


def _space_to_depth(node: Node, x: Entry) -> Entry:
    """Expand space_to_depth: blocks of an image become channels.

    ``node`` has the parameters ``block_size`` and ``data_format``.

    Raises:
        ShapeError: If height or width is not known to be a multiple of the block, ``block_size`` is
            no int >= 1, or ``x`` is not known to have four axes.
        GraphError: If ``data_format`` is neither NHWC nor NCHW.
    """
    b, channels_last = _block_params(node, x)
    if not channels_last:
        n, c, h, w = known_shape(x)
        h, w = _divide(node, h, b, "the height"), _divide(node, w, b, "the width")
        blocks = make("reshape", x, shape=(n, c, h, b, w, b))
        moved = make("transpose", blocks, axes=(0, 3, 5, 1, 2, 4))
        return make("reshape", moved, shape=(n, c * b * b, h, w))
    n, h, w, c = known_shape(x)
    h, w = _divide(node, h, b, "the height"), _divide(node, w, b, "the width")
    blocks = make("reshape", x, shape=(n, h, b, w, b, c))
    moved = make("transpose", blocks, axes=(0, 1, 3, 2, 4, 5))
    return make("reshape", moved, shape=(n, h, w, b * b * c))


def _depth_to_space(node: Node, x: Entry) -> Entry:
    """Expand depth_to_space: channels become blocks of an image.

    ``node`` has the parameters ``block_size`` and ``data_format``.

    Raises:
        ShapeError: If the number of channels is not known to be a multiple of the block's area,
            ``block_size`` is no int >= 1, or ``x`` is not known to have four axes.
        GraphError: If ``data_format`` is neither NHWC nor NCHW.
    """
    b, channels_last = _block_params(node, x)
    if not channels_last:
        n, c, h, w = known_shape(x)
        c = _divide(node, c, b * b, "the number of channels")
        blocks = make("reshape", x, shape=(n, b, b, c, h, w))
        moved = make("transpose", blocks, axes=(0, 3, 4, 1, 5, 2))
        return make("reshape", moved, shape=(n, c, h * b, w * b))
    n, h, w, c = known_shape(x)
    c = _divide(node, c, b * b, "the number of channels")
    blocks = make("reshape", x, shape=(n, h, w, b, b, c))
    moved = make("transpose", blocks, axes=(0, 1, 3, 2, 4, 5))
    return make("reshape", moved, shape=(n, h * b, w * b, c))


BLOCK_PARAMS = {"block_size": REQUIRED, "data_format": "NHWC"}

movement_composite(
    name="space_to_depth",
    inputs=("x",),
    expand=_space_to_depth,
    params=BLOCK_PARAMS,
    doc="images in which each block of block_size × block_size points has become block_size^2 "
    "times the channels",
)
movement_composite(
    name="depth_to_space",
    inputs=("x",),
    expand=_depth_to_space,
    params=BLOCK_PARAMS,
    doc="images in which each group of block_size^2 channels has become a block of block_size × "
    "block_size points",
)


# Blocks and images.


def _batch_block_params(node: Node, x: Entry, widths: str) -> tuple[tuple[int, ...], PadWidths]:
    """Return the lengths of a block, and the widths that are padded or cropped.

    There is a length and a pair (before, after) for each axis of a block, the axes after the first.

    Args:
        node: The node, with the parameter ``block_shape``.
        x: Its input.
        widths: The name of the parameter with the widths: "paddings" or "crops".

    Raises:
        ShapeError: If ``block_shape`` is not ints of at least 1, or has not fewer than ``x`` has
            axes, the widths are no ints or pairs, or the rank of ``x`` is unknown.
    """
    lengths = parse_extents(node, node.params["block_shape"], "block_shape")
    if any(not isinstance(b, int) or b < 1 for b in lengths) or len(lengths) >= x.ndim:
        raise ShapeError(
            f"{node.where} needs up to {x.ndim - 1} ints >= 1 as block_shape, got "
            f"{show_shape(lengths)}"
        )
    block = tuple(b for b in lengths if isinstance(b, int))
    return block, parse_pad_widths(node, len(block), node.params[widths], widths)


def _space_to_batch(node: Node, x: Entry) -> Entry:
    """Expand space_to_batch: the pixels of each block of a padded image go to different images.

    ``node`` has the parameters ``block_shape`` and ``paddings``.

    Raises: ShapeError if a padded axis is not known to be a multiple of the block, negative
    paddings cut off more than there is, ``block_shape`` or ``paddings`` is invalid, or the rank of
    ``x`` is unknown.
    """
    block, widths = _batch_block_params(node, x, "paddings")
    m, rest = len(block), x.ndim - 1 - len(block)
    x = make("pad_with", x, pad_width=((0, 0), *widths, *((0, 0),) * rest))
    n, *inner = known_shape(x)
    space = [_divide(node, d, b, "a padded axis") for d, b in zip(inner, block, strict=False)]
    tail = tuple(inner[m:])
    pairs = tuple(e for d, b in zip(space, block, strict=True) for e in (d, b))
    blocks = make("reshape", x, shape=(n, *pairs, *tail))
    block_axes, space_axes = range(2, 2 * m + 1, 2), range(1, 2 * m, 2)
    tail_axes = range(2 * m + 1, 2 * m + 1 + rest)
    moved = make("transpose", blocks, axes=(*block_axes, 0, *space_axes, *tail_axes))
    return make("reshape", moved, shape=(n * prod(block), *space, *tail))


def _batch_to_space(node: Node, x: Entry) -> Entry:
    """Expand batch_to_space: images become the pixels of blocks of larger ones, which are cropped.

    ``node`` has the parameters ``block_shape`` and ``crops``.

    Raises: ShapeError if the batch is not known to be a multiple of the block's area, more is
    cropped than there is, ``block_shape`` or ``crops`` is invalid, or the rank of ``x`` is unknown.
    """
    block, crops = _batch_block_params(node, x, "crops")
    m, rest = len(block), x.ndim - 1 - len(block)
    n, *inner = known_shape(x)
    n = _divide(node, n, prod(block), "the batch")
    tail = tuple(inner[m:])
    blocks = make("reshape", x, shape=(*block, n, *inner))
    pairs = tuple(e for k in range(m) for e in (m + 1 + k, k))
    moved = make("transpose", blocks, axes=(m, *pairs, *range(2 * m + 1, 2 * m + 1 + rest)))
    space = tuple(d * b for d, b in zip(inner, block, strict=False))
    uncropped = make("reshape", moved, shape=(n, *space, *tail))
    widths = tuple((-before, -after) for before, after in crops)
    return make("pad_with", uncropped, pad_width=((0, 0), *widths, *((0, 0),) * rest))


movement_composite(
    name="space_to_batch",
    aliases="space_to_batch_nd",
    inputs=("x",),
    expand=_space_to_batch,
    params={"block_shape": REQUIRED, "paddings": 0},
    doc="x with the axes after the first padded, and each point of their blocks moved to an "
    "example of its own",
)
movement_composite(
    name="batch_to_space",
    aliases="batch_to_space_nd",
    inputs=("x",),
    expand=_batch_to_space,
    params={"block_shape": REQUIRED, "crops": 0},
    doc="the inverse of space_to_batch: examples become the points of blocks of the axes after "
    "the first, which are then cropped",
)
