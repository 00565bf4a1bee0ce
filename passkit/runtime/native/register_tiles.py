"""Direct convolutions by register tiles: how their work is tiled, and the size of their buffers.

``convolution/direct.h`` has the kernel. It reads images channels last, as they are, so that layers
need no layout conversion, and runs an epilogue on each range of results while that range is in the
second-level cache.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import NamedTuple

from passkit.runtime.native.onednn import Geometry

RANGE_RESULTS = 96
"""Results of a work tile, about: with a block of terms they fit in the second-level cache."""
BLOCK_TERMS = 288
"""Terms of a block, about: this many weights of a panel take half of the first-level cache."""
MIN_TILES = 8
"""With fewer work tiles than this, the filters are divided among tiles, too."""
MIN_TILE_PRODUCTS = 1 << 16
"""The least multiplications of a work tile where the filters are divided."""
FEW_CHANNELS = 8
"""With fewer channels per group, and several taps, windows are copied (im2col) first.

`convolution_unit.constants_text` passes this number and `MAX_TAPS` to the kernel.
"""
MAX_TAPS = 64
"""With more taps windows are copied first: the kernel has one bit per tap for padding."""
WINDOW_NBYTES = 16
"""The size of a ``WindowStart`` in direct.h."""
RUN_NBYTES = 12
"""The size of a ``TileRun`` in direct.h."""


class RegisterTiling(NamedTuple):
    """How the work of a direct convolution is divided.

    Attributes:
        panels: panels of filters, over all groups.
        tile_panels: panels of a work tile.
        range_results: results of a work tile.
        depth: terms of a block of the reduction.
        tiles: work tiles, over all images.
        packed_nbytes: the size of the packed filter in bytes.
        scratch_nbytes: scratch memory of a thread in bytes.
    """

    panels: int
    tile_panels: int
    range_results: int
    depth: int
    tiles: int
    packed_nbytes: int
    scratch_nbytes: int


@lru_cache(maxsize=512)
def register_tiling(c: Geometry, panel: int) -> RegisterTiling:
    """Tile a float32 convolution whose panels have ``panel`` filters.

    The tiling depends on the shape only, and so do the bits of the result.
    """
    group_channels, group_filters = c.channels // c.groups, c.filters // c.groups
    taps, results = prod(c.window), prod(c.result)
    length = taps * group_channels
    panels = c.groups * -(-group_filters // panel)
    range_results = -(-results // max(1, round(results / RANGE_RESULTS)))
    ranges = -(-results // range_results) * c.batch
    products = range_results * length * c.filters
    parts = max(1, min(panels, -(-MIN_TILES // ranges), products // MIN_TILE_PRODUCTS))
    tile_panels = _balanced_panels(panels, parts, ranges)
    copies_windows = (group_channels < FEW_CHANNELS and taps > 1) or taps > MAX_TAPS
    return RegisterTiling(
        panels=panels,
        tile_panels=tile_panels,
        range_results=range_results,
        depth=-(-length // max(1, round(length / BLOCK_TERMS))),
        tiles=ranges * -(-panels // tile_panels),
        packed_nbytes=4 * panels * panel * length,
        scratch_nbytes=_scratch_nbytes(
            group_channels, taps, range_results, length if copies_windows else 0
        ),
    )


def _balanced_panels(panels: int, parts: int, ranges: int) -> int:
    """Return the number of panels per work tile, for about ``parts`` tiles of each range.

    It is chosen so that 2, 4 and 8 threads get nearly equal numbers of tiles.

    Args:
        panels: the number of panels to divide.
        parts: the number of tiles of a range to aim at.
        ranges: the number of ranges of results, over all images; each is divided like that.
    """
    if parts == 1:
        return panels

    def imbalance(tile_panels: int) -> float:
        tiles = -(-panels // tile_panels) * ranges
        return sum(-(-tiles // n) * n / tiles for n in (2, 4, 8)) + tile_panels / (8 * panels)

    usual = -(-panels // parts)
    return min(range(max(1, usual // 2), usual + 1), key=imbalance)


def _scratch_nbytes(group_channels: int, taps: int, results: int, window_terms: int) -> int:
    """Return the bytes of scratch memory of a thread, as ``direct`` in direct.h lays it out.

    It holds a pixel of zeros, offsets of taps, window starts, tile runs, and copied windows; every
    array begins at a cache line.

    Args:
        group_channels: the channels of a group.
        taps: the taps of a window.
        results: the results of a work tile.
        window_terms: the elements of a copied window; 0 where windows are not copied.
    """
    arrays = (
        4 * group_channels,
        8 * taps,
        WINDOW_NBYTES * results,
        RUN_NBYTES * (results + 1),
        4 * window_terms * results,
    )
    return sum(-(-nbytes // 64) * 64 for nbytes in arrays)
