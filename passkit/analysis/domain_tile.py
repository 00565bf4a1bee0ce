"""Tiles of iteration domains: which points of a loop nest a tile computes."""

from __future__ import annotations

from attrs import frozen

from passkit.analysis.domain import Axis, Domain, ValueKind
from passkit.analysis.tile_layout import TileLayout
from passkit.analysis.tilemap import TileMap
from passkit.ast.index import Sum, ravel
from passkit.values.size import Extent, divide_exactly, numel


@frozen
class DomainTile:
    """The points of a domain that a tile computes.

    Attributes:
        fixed: the axes of which a tile has one coordinate.
        window: the axis of which it has a chunk, if there is one.
        chunk: the steps of that chunk: those of the value's dimension times ``scale``.
        scale: the steps of the axis that count as one coordinate of the value's dimension.
        by_tile: whether the number of the tile itself counts the points of the fixed axes.
    """

    fixed: tuple[Axis, ...]
    window: Axis | None = None
    chunk: Extent = 1
    scale: Extent = 1
    by_tile: bool = False

    def same_points(self, other: DomainTile) -> bool:
        """Return whether a tile has the same points of the domain, whatever counts them."""
        own, others = ((t.fixed, t.window, t.chunk, t.by_tile) for t in (self, other))
        return own == others

    def length(self, axis: Axis) -> Extent:
        """Return how many steps a tile takes along an axis, at most."""
        return 1 if axis in self.fixed else self.chunk if axis is self.window else axis.extent


def domain_tile_of(domain: Domain, tile_map: TileMap, kind: ValueKind) -> DomainTile | None:
    """Return the points of a tile that has a part of a value which the nest computes.

    Args:
        domain: the iteration domain.
        tile_map: the part of the value.
        kind: whether the value has an element for each point, or for each row.

    Returns: None if the part is no range of axes.
    """
    axes = list(domain.points if kind is ValueKind.POINT else domain.kept)
    is_column, shape, window = tile_map.is_column, tile_map.shape, tile_map.window
    if is_column:
        axes.reverse()
    count = numel(shape[k] for k in tile_map.outer)
    fixed: list[Axis] = []
    while count != 1:
        if not axes:
            return None
        fixed.append(axes.pop(0))
        rest = divide_exactly(count, fixed[-1].extent)
        if rest is None:
            return None
        count = rest
    while axes and axes[0].extent == 1 and len(axes) > 1:
        axes.pop(0)
    ordered = tuple(reversed(fixed) if is_column else fixed)
    if any(a.reduced or a.is_chunk_axis for a in ordered):
        return None
    if window is None:
        return DomainTile(ordered)
    if not axes:
        return None
    axis, chunk = axes[0], tile_map.dims[window].chunk
    inside = numel(shape[k] for k in tile_map.inner if k != window)
    behind = numel(a.extent for a in axes[1:])
    scale = divide_exactly(inside, behind)
    if is_column and scale != 1:
        scale = None  # a window of columns is no range of rows and columns together
    if scale is None or axis.reduced or axis.extent != shape[window] * scale:
        return _coarser(tuple(fixed), axis, tile_map, inside, behind)
    return DomainTile(ordered, axis, chunk * scale, scale)


def _coarser(
    fixed: tuple[Axis, ...], axis: Axis, tile_map: TileMap, inside: Extent, behind: Extent
) -> DomainTile | None:
    """Return the tile where one step of an axis is several coordinates of the value's window.

    Args:
        fixed: the axes before it, of which a tile has one coordinate.
        axis: the axis.
        tile_map: the part of the value.
        inside: the elements of one coordinate of the window.
        behind: the points of one step of the axis.

    Returns: None if a chunk is not one step.
    """
    steps, window = divide_exactly(behind, inside), tile_map.window
    if steps is None or axis.reduced or window is None:
        return None
    chunk = divide_exactly(tile_map.dims[window].chunk, steps)
    if chunk != 1 or axis.extent * steps != tile_map.shape[window]:
        return None
    axes = (*fixed, axis)
    return DomainTile(axes[::-1] if tile_map.is_column else axes, by_tile=True)


def access_tile_of(domain: Domain, access: Sum, tile_map: TileMap) -> DomainTile | None:
    """Return the points of a tile that has a part of an input, of which each reads an element.

    Args:
        domain: the iteration domain.
        access: the linear index of the element that a point reads.
        tile_map: the part of the input.

    Returns: None where two points may read one element, or another tile has the element of one, or
    the part is no range of axes.
    """
    shape, window = tile_map.shape, tile_map.window
    inside = numel(shape[k] for k in tile_map.inner)
    axes = [a for a in domain.axes if a.extent != 1]
    if tile_map.is_column or any(a.reduced or a.is_chunk_axis for a in axes):
        return None
    if access.constant != 0 or {a.var for a in axes} != {x for x, _ in access.terms}:
        return None
    stride: Extent = 1
    fixed: list[Axis] = []
    last: Axis | None = None
    while axes:
        axis = next((a for a in axes if access.coefficient(a.var) == stride), None)
        if axis is None:
            return None
        axes.remove(axis)
        if fixed or stride == inside:
            fixed.insert(0, axis)
        else:
            last = axis
        stride = stride * axis.extent
    if stride != numel(shape) or numel(a.extent for a in fixed) * inside != stride:
        return None
    if window is None:
        return DomainTile(tuple(fixed))
    if last is None or last.extent != shape[window]:
        return None
    return DomainTile(tuple(fixed), last, tile_map.dims[window].chunk)


def tile_boundaries(domain: Domain, layout: TileLayout) -> list[Sum]:
    """Return the positions of elements in a tile's part, for values with an element for each point.

    No axis may be merged that lies inside of the part and outside of it: the positions say so.
    """
    shape = layout.tile_map.shape
    total = numel(shape)
    for kind, size in ((ValueKind.POINT, domain.size), (ValueKind.REDUCED, domain.rows)):
        if total == size:
            index = domain.index(kind, shape)
            at = [index[k] for k in layout.tile_map.inner]
            return [ravel(at, layout.allocated, domain.extents)]
    return []
