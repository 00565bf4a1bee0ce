"""Space and depth, space and batch: blocks of an image as channels, or as more images.

Source: TensorFlow's operators of these names. All are reshapes and one transpose.
"""

from __future__ import annotations

from passkit.errors import GraphError, ShapeError, nearest
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.graph.op import REQUIRED
from passkit.ops.helpers import make, parse_extents
from passkit.ops.movement_composites import movement_composite
from passkit.ops.padding import PadWidths, parse_pad_widths
from passkit.values.size import Extent, divide_exactly

LAYOUTS = ("NHWC", "NCHW")


def _block(node: Node, x: Entry) -> tuple[int, bool]:
    """The block size, and whether channels are last."""
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


def _over(node: Node, n: Extent, d: int, what: str) -> Extent:
    """``n / d``. Raises: ShapeError where that is not known to be whole."""
    found = divide_exactly(n, d)
    if found is None:
        raise ShapeError(f"{node.where} needs {what} to be a multiple of {d}, got {n}")
    return found


def _space_to_depth(node: Node, x: Entry) -> Entry:
    s, last = _block(node, x)
    if not last:
        n, c, h, w = known_shape(x)
        h, w = _over(node, h, s, "the height"), _over(node, w, s, "the width")
        parts = make("reshape", x, shape=(n, c, h, s, w, s))
        moved = make("transpose", parts, axes=(0, 3, 5, 1, 2, 4))
        return make("reshape", moved, shape=(n, c * s * s, h, w))
    n, h, w, c = known_shape(x)
    h, w = _over(node, h, s, "the height"), _over(node, w, s, "the width")
    parts = make("reshape", x, shape=(n, h, s, w, s, c))
    moved = make("transpose", parts, axes=(0, 1, 3, 2, 4, 5))
    return make("reshape", moved, shape=(n, h, w, s * s * c))


def _depth_to_space(node: Node, x: Entry) -> Entry:
    s, last = _block(node, x)
    if not last:
        n, c, h, w = known_shape(x)
        c = _over(node, c, s * s, "the number of channels")
        parts = make("reshape", x, shape=(n, s, s, c, h, w))
        moved = make("transpose", parts, axes=(0, 3, 4, 1, 5, 2))
        return make("reshape", moved, shape=(n, c, h * s, w * s))
    n, h, w, c = known_shape(x)
    c = _over(node, c, s * s, "the number of channels")
    parts = make("reshape", x, shape=(n, h, w, s, s, c))
    moved = make("transpose", parts, axes=(0, 1, 3, 2, 4, 5))
    return make("reshape", moved, shape=(n, h * s, w * s, c))


_PARAMS = {"block_size": REQUIRED, "data_format": "NHWC"}
movement_composite("space_to_depth", ("x",), _space_to_depth,
     "blocks of block_size × block_size points become channels", _PARAMS)
movement_composite("depth_to_space", ("x",), _depth_to_space,
     "channels become blocks of block_size × block_size points", _PARAMS)


def _batch_blocks(node: Node, x: Entry, what: str) -> tuple[tuple[int, ...], PadWidths]:
    """The blocks of the axes after the first, and what is put around them or cut."""
    blocks = parse_extents(node, node.params["block_shape"], "block_shape")
    if any(not isinstance(b, int) or b < 1 for b in blocks) or len(blocks) >= x.ndim:
        raise ShapeError(
            f"{node.where} needs up to {x.ndim - 1} ints >= 1 as block_shape, got "
            f"{show_shape(blocks)}"
        )
    known = tuple(b for b in blocks if isinstance(b, int))
    return known, parse_pad_widths(node, len(known), node.params[what], what)


def _space_to_batch(node: Node, x: Entry) -> Entry:
    blocks, widths = _batch_blocks(node, x, "paddings")
    m, rest = len(blocks), x.ndim - 1 - len(blocks)
    x = make("pad_with", x, pad_width=((0, 0), *widths, *((0, 0),) * rest))
    n, *inner = known_shape(x)
    space = [_over(node, d, b, "a padded axis") for d, b in zip(inner, blocks, strict=False)]
    tail = tuple(inner[m:])
    pairs = tuple(e for d, b in zip(space, blocks, strict=True) for e in (d, b))
    parts = make("reshape", x, shape=(n, *pairs, *tail))
    order = (*range(2, 2 * m + 1, 2), 0, *range(1, 2 * m, 2), *range(2 * m + 1, 2 * m + 1 + rest))
    moved = make("transpose", parts, axes=order)
    count = 1
    for b in blocks:
        count *= b
    return make("reshape", moved, shape=(n * count, *space, *tail))


def _batch_to_space(node: Node, x: Entry) -> Entry:
    blocks, crops = _batch_blocks(node, x, "crops")
    m, rest = len(blocks), x.ndim - 1 - len(blocks)
    n, *inner = known_shape(x)
    count = 1
    for b in blocks:
        count *= b
    n = _over(node, n, count, "the batch")
    tail = tuple(inner[m:])
    parts = make("reshape", x, shape=(*blocks, n, *inner))
    pairs = tuple(e for k in range(m) for e in (m + 1 + k, k))
    moved = make("transpose", parts, axes=(m, *pairs, *range(2 * m + 1, 2 * m + 1 + rest)))
    space = tuple(d * b for d, b in zip(inner, blocks, strict=False))
    whole = make("reshape", moved, shape=(n, *space, *tail))
    back = tuple((-a, -b) for a, b in crops)
    return make("pad_with", whole, pad_width=((0, 0), *back, *((0, 0),) * rest))


movement_composite("space_to_batch", ("x",), _space_to_batch,
     "the axes after the first are padded, and the points of their blocks become images of their "
     "own", {"block_shape": REQUIRED, "paddings": 0}, aliases="space_to_batch_nd")
movement_composite("batch_to_space", ("x",), _batch_to_space,
     "images become the points of blocks of the axes after the first, which are cropped",
     {"block_shape": REQUIRED, "crops": 0}, aliases="batch_to_space_nd")
