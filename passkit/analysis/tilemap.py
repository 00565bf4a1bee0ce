"""Tile maps: which part of a value each tile of a kernel has.

A `TileMap` says it for any value, dimension by dimension. `Split` is FusionStitching's notation
(2018) for the maps that give each element to one tile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from functools import lru_cache
from math import gcd, isqrt, log2

from attrs import frozen

from passkit.ast import Binary, Expr, Var, size_of
from passkit.errors import ScheduleError
from passkit.graph.infer import show_shape
from passkit.values import dtype as dt
from passkit.values.size import Extent, Shape, Size, at_least, divide_exactly, evaluate, numel

TILE = Var("tile", dt.int64)
"""The number of a tile."""


@frozen(cache_hash=True)
class TileDim:
    """How a dimension is divided among tiles: tile ``t`` has chunk ``(t // stride) % count``.

    Attributes:
        chunk: the elements of a chunk. The last chunk of a dimension may be shorter.
        count: the chunks. Where it is 1, a tile has the whole dimension.
        stride: the tiles in a row that have the same chunk; 0 where ``count`` is 1.
    """

    chunk: Extent
    count: Extent = 1
    stride: Extent = 0


@frozen(cache_hash=True)
class TileMap:
    """The part of a value that each tile has: a chunk of every dimension.

    Equal objects are equal maps. At most one dimension, the window, is divided into chunks of
    several elements; the others are whole, or a tile has one coordinate of them. Chunks are
    numbered in row-major order, and all chunks belong to as many tiles.

    >>> tile_map = Split(1, 4).tile_map((3, 10))
    >>> tile_map.tiles, tile_map.part, str(tile_map)
    (9, (1, 4), '(1, 4, Row)')

    Attributes:
        shape: the shape of the value.
        dims: how each dimension is divided.
        tiles: the tiles of the kernel.
    """

    shape: Shape
    dims: tuple[TileDim, ...]
    tiles: Extent

    @property
    def split_dims(self) -> tuple[int, ...]:
        """The dimensions of which a tile does not have all."""
        return tuple(k for k, d in enumerate(self.dims) if d.count != 1)

    @property
    def window(self) -> int | None:
        """The dimension that is divided into chunks of several elements; None without one."""
        return next((k for k in self.split_dims if self.dims[k].chunk != 1), None)

    @property
    def outer(self) -> tuple[int, ...]:
        """The dimensions of which a tile has one coordinate."""
        return tuple(k for k, d in enumerate(self.dims) if d.chunk == 1)

    @property
    def inner(self) -> tuple[int, ...]:
        """The dimensions of which a tile has more than one coordinate."""
        return tuple(k for k, d in enumerate(self.dims) if d.chunk != 1)

    @property
    def part(self) -> Shape:
        """The shape of what a tile has; that of the last tile along the window may be smaller."""
        return tuple(d.chunk for d in self.dims)

    @property
    def elements(self) -> Extent:
        """The number of elements that a tile has."""
        return numel(self.part)

    @property
    def is_partition(self) -> bool:
        """Whether each element belongs to one tile. Otherwise tiles have copies of elements."""
        return numel(d.count for d in self.dims) == self.tiles

    @property
    def repeats(self) -> Extent:
        """The tiles in a row that have the same part; 1 where all tiles have everything."""
        split_dims = self.split_dims
        return self.dims[split_dims[-1]].stride if split_dims else 1

    @property
    def is_column(self) -> bool:
        """Whether the dimensions that are divided follow those that are whole, not the reverse."""
        inner = self.inner
        outer = [k for k in self.split_dims if self.dims[k].chunk == 1]
        if not inner:
            return False
        return outer[0] > inner[0] if outer else self.window not in (None, inner[0])

    def triple(self) -> Split | None:
        """Return the map in the 2018 paper's notation; None where tiles have copies of elements."""
        if not self.is_partition:
            return None
        split_dims = self.split_dims
        if not split_dims:
            return Split(0, self.shape[0] if self.shape else 1)
        kind = SplitKind.COLUMN if self.is_column else SplitKind.ROW
        dim = split_dims[0 if self.is_column else -1]
        return Split(dim, self.dims[dim].chunk, kind)

    def chunk_number(self, dim: int) -> Expr:
        """Return the number of the chunk of a dimension that tile `TILE` has."""
        own = self.dims[dim]
        return self._remainder(own.stride, own.count)

    def outer_number(self) -> Expr:
        """Return the row-major index of the coordinates that tile `TILE` has of `outer`."""
        own = [self.dims[k] for k in self.outer if self.dims[k].count != 1]
        return self._remainder(own[-1].stride, numel(d.count for d in own)) if own else size_of(0)

    def _remainder(self, stride: Extent, count: Extent) -> Expr:
        """Return ``tile // stride % count``, without operations that change nothing."""
        number: Expr = TILE
        if stride != 1:
            number = Binary("//", number, size_of(stride), dt.int64)
        return number if stride * count == self.tiles else number % size_of(count)

    def joined(self, other: TileMap) -> TileMap:
        """Return what a tile has that has the parts of both maps.

        These are the leading coordinates on which the maps agree, with all that follows.
        """
        if self == other:
            return self
        prefix = 0
        for own, others in zip(self.dims, other.dims, strict=True):
            if own != others or own.chunk != 1:
                break
            prefix += 1
        whole = (TileDim(n) for n in self.shape[prefix:])
        return TileMap(self.shape, (*self.dims[:prefix], *whole), self.tiles)

    def __str__(self) -> str:
        split = self.triple()
        if split is not None:
            return str(split)
        return f"WHOLE({self.split_dims[-1] + 1})" if self.split_dims else "WHOLE"


def whole_map(shape: Shape, tiles: Extent = 1) -> TileMap:
    """Return the map in which every tile has all of a value."""
    return TileMap(shape, tuple(map(TileDim, shape)), tiles)


def slab_map(shape: Shape, prefix: int, tiles: Extent, repeats: Extent = 1) -> TileMap:
    """Return the map in which a tile has all elements with its ``prefix`` leading coordinates.

    Args:
        shape: the shape of the value.
        prefix: the number of these dimensions.
        tiles: the tiles of the kernel.
        repeats: the tiles in a row that have the same coordinates.
    """
    chunks = ((n, 1 if k < prefix else n) for k, n in enumerate(shape))
    return _numbered(shape, chunks, tiles, repeats)


def _numbered(
    shape: Shape,
    chunks: Iterable[tuple[Extent, Extent]],
    tiles: Extent | None = None,
    repeats: Extent = 1,
) -> TileMap:
    """Return the map with a chunk of each extent, whose chunks are numbered in row-major order."""
    dims: list[TileDim] = []
    stride = repeats
    for extent, chunk in reversed(list(chunks)):
        count = 1 if at_least(chunk, extent) else _num_chunks(extent, chunk)
        dims.append(TileDim(extent) if count == 1 else TileDim(chunk, count, stride))
        stride = stride * count
    return TileMap(shape, tuple(reversed(dims)), stride if tiles is None else tiles)


class SplitKind(Enum):
    """ROW keeps the dimensions after the split one whole in a tile, COLUMN those before it."""

    ROW = "Row"
    COLUMN = "Column"


@frozen(cache_hash=True)
class Split:
    """The 2018 triple: ``split_dim`` in chunks of ``chunk`` elements; the last may be short.

    ``sword``, the number of chunks, is ``ceil(extent / chunk)``. The dimensions after it (ROW) or
    before it (COLUMN) are whole in a tile; of the others a tile has one coordinate. What cannot be
    decided for extents that only a call knows is taken not to hold.
    """

    split_dim: int
    chunk: Extent
    kind: SplitKind = SplitKind.ROW

    def sword(self, extent: Extent) -> Extent:
        """Return the number of chunks of an extent."""
        return (extent + self.chunk - 1) // self.chunk

    def tile_map(self, shape: Shape) -> TileMap:
        """Return the map of a value with that shape.

        Raises: ScheduleError for a split that does not fit the shape.
        """
        return _tile_map(self, shape)

    def _check(self, shape: Shape) -> None:
        """Raise ScheduleError for a split that does not fit a shape of rank 1 or more."""
        if not 0 <= self.split_dim < len(shape):
            raise ScheduleError(
                f"the split {self} needs a dimension {self.split_dim}; the shape "
                f"{show_shape(shape)} has {len(shape)}; split_dim counts from 0"
            )
        if not at_least(self.chunk, 1):
            raise ScheduleError(
                f"the split {self} needs a chunk of 1 or more elements, got {self.chunk}"
            )
        if any(n == 0 for n in shape):
            raise ScheduleError(
                f"the shape {show_shape(shape)} has no elements that the split {self} could share "
                "out; a value without elements needs no blocks"
            )

    def __str__(self) -> str:
        return f"({self.split_dim}, {self.chunk}, {self.kind.value})"


@lru_cache(maxsize=1 << 14)
def _tile_map(split: Split, shape: Shape) -> TileMap:
    """Return `Split.tile_map`, which searches ask for the same values again and again."""
    split._check(shape or (1,))
    if not shape:
        return whole_map(shape)
    dim, is_row = split.split_dim, split.kind is SplitKind.ROW

    def chunk(k: int, extent: Extent) -> Extent:
        if k == dim:
            return split.chunk
        return 1 if (k < dim) is is_row else extent

    return _numbered(shape, ((n, chunk(k, n)) for k, n in enumerate(shape)))


def _num_chunks(extent: Extent, chunk: Extent) -> Extent:
    """Return the number of chunks of an extent in lowest terms: of 512*n in 2048s, of n in 4s."""
    common = chunk if isinstance(chunk, int) else 1
    for _, factor in extent.terms if isinstance(extent, Size) else (((), extent),):
        common = gcd(common, factor)
    n, c = divide_exactly(extent, common), divide_exactly(chunk, common)
    assert n is not None and c is not None
    exact = divide_exactly(n, c)
    return (n + c - 1) // c if exact is None else exact


def rows_with(points: int, length: Extent) -> Extent:
    """Return how many rows of ``length`` have about so many points."""
    if isinstance(length, int):
        return max(1, points // max(1, length))
    return points // (length + 1) + 1  # the length may turn out to be 0


@frozen
class Whole:
    """An operator's rule for an operand of which every tile may need everything."""

    def __str__(self) -> str:
        return "WHOLE"


WHOLE = Whole()
"""Every tile may need all of an operand."""


@frozen
class Reject:
    """An operator's rule: it cannot run in such tiles, for a reason."""

    reason: str


MAX_CANDIDATES = 64
"""How many maps of one value are tried at most."""
MAX_TILES = 65_535
"""The most tiles that a launch has."""
GUESS = 4096
"""The value of unknown extents by which candidates are sorted and memory is reserved."""


def candidate_tilings(
    shape: Shape, most: int = MAX_CANDIDATES, tiles: int = MAX_TILES
) -> tuple[TileMap, ...]:
    """Return maps that give each element of a value to one tile, those with the most tiles first.

    Chunks are divisors and powers of two. Where there are more maps than ``most``, those by rows
    and by columns have half each, spread evenly over the logarithms of their numbers of tiles.
    Equal numbers come in a fixed order, rows first and strided columns last. There is none of a
    shape that may have no elements, as where an extent is a number of chunks, and none of more than
    ``tiles`` tiles.
    """
    if not all(at_least(n, 1) for n in shape):
        return ()
    if not shape:
        return (whole_map(shape),)
    candidates: dict[TileMap, None] = {}
    for kind in SplitKind:
        for dim, n in enumerate(shape):
            for chunk in _chunks(n):
                tile_map = Split(dim, chunk, kind).tile_map(shape)
                if isinstance(tile_map.tiles, Size) or tile_map.tiles <= tiles:
                    candidates[tile_map] = None
    ordered = sorted(candidates, key=_order)
    if len(ordered) <= most:
        return tuple(ordered)
    columns = [m for m in ordered if m.is_column]
    rows = [m for m in ordered if not m.is_column]
    few = min(len(columns), most // 2)
    chosen = _spread(rows, most - few)
    chosen |= _spread(columns, most - len(chosen))
    return tuple(m for m in ordered if m in chosen)


def _chunks(extent: Extent) -> Sequence[Extent]:
    """Return divisors and powers of two; of an unknown extent powers of two and all of it."""
    powers = [1 << k for k in range(17)]
    if isinstance(extent, Size):
        return [*powers, extent]
    below = min(isqrt(extent), GUESS)
    small = [d for d in range(1, below + 1) if extent % d == 0]
    divisors = {*small, *(extent // d for d in small), *(p for p in powers if p < extent)}
    return sorted(divisors)


def guessed(size: Extent, guess: int = GUESS) -> int:
    """Return a size as if every extent that only a call knows were ``guess``."""
    return evaluate(size, dict.fromkeys(size.symbols, guess)) if isinstance(size, Size) else size


def _order(tile_map: TileMap) -> tuple[int, bool, bool, int, str]:
    """Return the place of a map among candidates."""
    split = tile_map.triple()
    assert split is not None
    column = split.kind is SplitKind.COLUMN
    strided = column and split.split_dim < len(tile_map.shape) - 1
    return -guessed(tile_map.tiles), column, strided, split.split_dim, str(split.chunk).zfill(20)


def _spread(tile_maps: list[TileMap], most: int) -> set[TileMap]:
    """Return at most ``most`` maps, at even steps of the logarithm of their numbers of tiles.

    Both ends are taken. Of those at one step the first whose chunks are all equal is taken.
    """
    if len(tile_maps) <= most:
        return set(tile_maps)
    places = [log2(max(1, guessed(m.tiles))) for m in tile_maps]
    uneven = [not _is_even(m) for m in tile_maps]
    top, end = max(places), min(places)
    chosen: set[int] = set()
    for j in range(most):
        aim = top - (top - end) * j / max(1, most - 1)
        rest = (k for k in range(len(tile_maps)) if k not in chosen)
        chosen.add(min((abs(places[k] - aim), uneven[k], k) for k in rest)[-1])
    return {tile_maps[k] for k in chosen}


def _is_even(tile_map: TileMap) -> bool:
    """Return whether all chunks of the window have the same length."""
    dim = tile_map.window
    return dim is None or divide_exactly(tile_map.shape[dim], tile_map.dims[dim].chunk) is not None
