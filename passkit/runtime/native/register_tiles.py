"""Direct convolutions by register tiles: how their work is cut, and how the filter is packed.

`convolution/direct.h` has the kernel. It reads images as they are, channels last, so that no layout
is converted between layers, and computes an epilogue on each range of results while that is in the
second-level cache.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import NamedTuple

from passkit.runtime.native.onednn import Geometry

RANGE_RESULTS = 96
"""Results of a tile of work, about: with a block of terms they stay in the second-level cache."""
BLOCK_TERMS = 288
"""Terms of a block, about: so many weights of a panel take half of the first-level cache."""
FEW_TILES = 8
"""Tiles of work below which the filters are shared out, too."""
TILE_PRODUCTS = 1 << 16
"""Multiplications of a tile of work, at least, where the filters are shared out."""
FEW_CHANNELS, MOST_TAPS = 8, 64
"""As in direct.h: with fewer channels, or more taps, windows are copied first."""
PLACE_NBYTES, RUN_NBYTES = 16, 12


class Cut(NamedTuple):
    """How the work of a convolution is cut.

    Attributes:
        panels: panels of filters, over all groups.
        tile_panels: panels of a tile of work.
        range_results: results of a tile of work.
        depth: terms of a block.
        tiles: tiles of work, over all images.
        packed_nbytes: bytes of the packed filter.
        scratch_nbytes: bytes of scratch memory of a thread.
    """

    panels: int
    tile_panels: int
    range_results: int
    depth: int
    tiles: int
    packed_nbytes: int
    scratch_nbytes: int


@lru_cache(maxsize=512)
def cut(c: Geometry, panel: int) -> Cut:
    """Cut a convolution of float32, whose panels have so many filters, by its shape only."""
    own, each = c.channels // c.groups, c.filters // c.groups
    taps, results = prod(c.window), prod(c.result)
    length = taps * own
    panels = c.groups * -(-each // panel)
    range_results = -(-results // max(1, round(results / RANGE_RESULTS)))
    ranges = -(-results // range_results) * c.batch
    products = range_results * length * c.filters
    parts = max(1, min(panels, -(-FEW_TILES // ranges), products // TILE_PRODUCTS))
    tile_panels = _even_panels(panels, parts, ranges)
    gathered = (own < FEW_CHANNELS and taps > 1) or taps > MOST_TAPS
    return Cut(
        panels=panels,
        tile_panels=tile_panels,
        range_results=range_results,
        depth=-(-length // max(1, round(length / BLOCK_TERMS))),
        tiles=ranges * -(-panels // tile_panels),
        packed_nbytes=4 * panels * panel * length,
        scratch_nbytes=_scratch_nbytes(own, taps, range_results, length if gathered else 0),
    )


def _even_panels(panels: int, parts: int, ranges: int) -> int:
    """Panels of a tile of work for about so many parts, which 2, 4 and 8 threads share alike."""
    if parts == 1:
        return panels

    def idle(tile_panels: int) -> float:
        tiles = -(-panels // tile_panels) * ranges
        return sum(-(-tiles // n) * n / tiles for n in (2, 4, 8)) + tile_panels / (8 * panels)

    usual = -(-panels // parts)
    return min(range(max(1, usual // 2), usual + 1), key=idle)


def _scratch_nbytes(own: int, taps: int, results: int, gathered_terms: int) -> int:
    """Zeros, offsets of taps, places, runs, and copied windows; each begins at a vector."""
    parts = (
        4 * own,
        8 * taps,
        PLACE_NBYTES * results,
        RUN_NBYTES * (results + 1),
        4 * gathered_terms * results,
    )
    return sum(-(-nbytes // 64) * 64 for nbytes in parts)
