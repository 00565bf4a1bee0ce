"""Regions: what of a value a tile of a stitched kernel owns, and where that lies in its scratch."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve, frozen

from passkit.analysis.tilemap import SplitKind, SplitState, Whole
from passkit.ast import Binary, Expr, Var, dt, size_of, where
from passkit.ast.index import Extents, Sum, ravel
from passkit.ast.stage import Let
from passkit.values.size import Extent, Shape, numel

TILE = Var("tile", dt.int64)


@frozen
class Region:
    """The dimensions of which a tile has one coordinate, and the one of which it has a window.

    Dimensions before the window are ``fixed`` (or behind it, ``backwards``); the others are whole.
    Without a window (None) all but the fixed ones are, and ``per`` tiles in a row have the same.
    ``chunk`` is the window's length; the last one of a dimension may be shorter. In scratch its
    rows are ``pitch`` elements apart, if that is more than they have.
    """

    shape: Shape
    fixed: int
    window: int | None = None
    chunk: Extent = 1
    backwards: bool = False
    per: Extent = 1
    pitch: Extent | None = None

    @property
    def inside(self) -> tuple[int, ...]:
        """The dimensions that a tile has more than one coordinate of, the window among them."""
        rank = len(self.shape)
        return tuple(range(rank - self.fixed) if self.backwards else range(self.fixed, rank))

    @property
    def outside(self) -> tuple[int, ...]:
        """The dimensions that a tile has one coordinate of."""
        inside = self.inside
        return tuple(k for k in range(len(self.shape)) if k not in inside)

    def length(self, dim: int) -> Extent:
        """How many coordinates of a dimension a tile has, at most."""
        if dim in self.outside:
            return 1
        return self.chunk if dim == self.window else self.shape[dim]

    @property
    def swords(self) -> Extent:
        """How many windows the dimension has."""
        if self.window is None:
            return 1
        return (self.shape[self.window] + (self.chunk - 1)) // self.chunk

    @property
    def extents(self) -> Shape:
        """What a tile's part measures, in the dimensions that are not fixed."""
        return tuple(self.chunk if k == self.window else self.shape[k] for k in self.inside)

    @property
    def room(self) -> Shape:
        """What that takes in scratch."""
        return self.extents if self.pitch is None else (*self.extents[:-1], self.pitch)

    @property
    def size(self) -> Extent:
        """The elements of scratch that a tile's part takes, at most."""
        return numel(self.room)

    def local(self, index: Sequence[Expr], first: Expr, extents: Extents) -> Sum:
        """The place in a tile's part of the element at ``index``; its window is from ``first``."""
        at = [index[k] - first if k == self.window else index[k] for k in self.inside]
        return ravel(at, self.room, extents)


def region_of(shape: tuple[Extent, ...], state: SplitState) -> Region:
    """What a tile owns of a value in that state."""
    if isinstance(state, Whole):
        return Region(shape, state.prefix, per=state.per)
    digits = state.digits(shape)
    if not digits:
        return Region(shape, 0)
    single = state.chunk == 1
    backwards = state.kind is SplitKind.COLUMN
    fixed = (len(shape) - 1 - state.split_dim if backwards else state.split_dim) + single
    window = None if single else state.split_dim
    return Region(shape, fixed, window, state.chunk, backwards)


def bounds(region: Region, tiles: Extent, first: Var, last: Var, scale: Extent = 1) -> list[Let]:
    """The ends of a tile's window, in steps of which the dimension's are ``scale``."""
    if region.window is None:
        return []
    extent = size_of(region.shape[region.window] * scale)
    step, piece = size_of(region.chunk * scale), piece_of(region, tiles)
    end = first + step
    return [Let(first, piece * step), Let(last, where(end < extent, end, extent))]


def piece_of(region: Region, tiles: Extent) -> Expr:
    """Which window of its dimension a tile has."""
    if region.backwards:
        return _over(TILE, numel(region.shape[k] for k in region.outside))
    return TILE if region.swords == tiles else TILE % size_of(region.swords)


def place_of(region: Region, tiles: Extent) -> Expr:
    """The linear index of a tile's coordinates in the fixed dimensions."""
    count = numel(region.shape[k] for k in region.outside)
    if region.backwards:
        return TILE if count == tiles else TILE % size_of(count)
    per = region.swords if region.window is not None else region.per
    found = _over(TILE, per)
    return found if count * per == tiles else found % size_of(count)


def _over(x: Expr, by: Extent) -> Expr:
    return x if by == 1 else Binary("//", x, size_of(by), dt.int64)


def alike(a: Region, b: Region) -> bool:
    """Whether elements of one linear index lie at one place in a tile's part of either value."""
    if a == b or a.backwards or b.backwards:
        return a == b
    return _measures(a) == _measures(b)


def _measures(r: Region) -> tuple[Extent, ...]:
    """What a region of consecutive elements is like: how many a tile has, and from where on."""
    inner = numel(r.shape[k] for k in r.inside if k != r.window)
    whole = inner if r.window is None else r.shape[r.window] * inner
    row = 0 if r.pitch is None else r.shape[-1]
    return numel(r.shape[k] for k in r.outside), whole, r.size, r.per, row


def pitched(region: Region, vector: int) -> Region:
    """The region with rows of whole vectors, so that no vector reaches into the next row.

    A processor makes a load wait for a masked store that reaches there, whatever the mask.
    """
    last, inside = len(region.shape) - 1, region.inside
    if region.backwards or len(inside) < 2 or region.window == last:
        return region
    length = region.shape[last]
    if not isinstance(length, int) or length < 2 or length % vector == 0:
        return region
    return evolve(region, pitch=-(-length // vector) * vector)
