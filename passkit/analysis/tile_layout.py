"""Tile layouts: where the elements of a tile's part of a value lie in scratch memory."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve, frozen

from passkit.analysis.tilemap import TileMap
from passkit.ast import Expr, Var, size_of, where
from passkit.ast.index import Extents, Sum, ravel
from passkit.ast.stage import Let
from passkit.values.size import Extent, Shape, numel


@frozen
class TileLayout:
    """A tile's part of a value in scratch memory, in row-major order.

    Attributes:
        tile_map: the part of the value that a tile has.
        pitch: the elements from one row to the next; None if rows follow each other.
    """

    tile_map: TileMap
    pitch: Extent | None = None

    @property
    def extents(self) -> Shape:
        """The extents of the buffer, without padding, in the dimensions that are not fixed."""
        return tuple(self.tile_map.dims[k].chunk for k in self.tile_map.inner)

    @property
    def allocated(self) -> Shape:
        """The extents of the buffer with the padding of rows."""
        return self.extents if self.pitch is None else (*self.extents[:-1], self.pitch)

    @property
    def size(self) -> Extent:
        """The number of elements of the buffer."""
        return numel(self.allocated)

    def local(self, index: Sequence[Expr], first: Expr, extents: Extents) -> Sum:
        """Return the position in the buffer of the element at an index.

        Args:
            index: the index in the value.
            first: the first coordinate of the tile along the window.
            extents: the extents of variables in the index.
        """
        window = self.tile_map.window
        at = [index[k] - first if k == window else index[k] for k in self.tile_map.inner]
        return ravel(at, self.allocated, extents)

    def same_places(self, other: TileLayout) -> bool:
        """Return whether elements of one linear index lie at one position in both buffers."""
        if self == other or self.tile_map.is_column or other.tile_map.is_column:
            return self == other
        return self._measures() == other._measures()

    def _measures(self) -> tuple[Extent, ...]:
        """Return what determines the positions of consecutive elements."""
        shape, window = self.tile_map.shape, self.tile_map.window
        inner = numel(shape[k] for k in self.tile_map.inner if k != window)
        whole = inner if window is None else shape[window] * inner
        row = 0 if self.pitch is None else shape[-1]
        outer = numel(shape[k] for k in self.tile_map.outer)
        return outer, whole, self.size, self.tile_map.repeats, row


def window_bounds(tile_map: TileMap, first: Var, last: Var, scale: Extent = 1) -> list[Let]:
    """Return the definitions of the ends of a tile's window; none for a map without one.

    Args:
        tile_map: the map.
        first: the variable of the first coordinate.
        last: that of the coordinate behind the last one.
        scale: the steps that count as one coordinate.
    """
    window = tile_map.window
    if window is None:
        return []
    extent = size_of(tile_map.shape[window] * scale)
    step = size_of(tile_map.dims[window].chunk * scale)
    end = first + step
    return [
        Let(first, tile_map.chunk_number(window) * step),
        Let(last, where(end < extent, end, extent)),
    ]


def padded_to_vectors(layout: TileLayout, vector: int) -> TileLayout:
    """Return a layout whose rows are whole vectors, so that no vector reaches into the next row.

    A processor makes a load wait for a masked store that reaches there, whatever the mask.
    """
    tile_map = layout.tile_map
    last, inner = len(tile_map.shape) - 1, tile_map.inner
    if tile_map.is_column or len(inner) < 2 or last not in inner or tile_map.window == last:
        return layout
    length = tile_map.shape[last]
    if not isinstance(length, int) or length % vector == 0:
        return layout
    return evolve(layout, pitch=-(-length // vector) * vector)
