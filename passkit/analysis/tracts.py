"""Tracts: what a tile of a stitched kernel owns of the iteration space of one of its parts."""

from __future__ import annotations

from attrs import frozen

from passkit.analysis.domain import Axis, Domain, ValueKind
from passkit.analysis.regions import Region
from passkit.ast.index import Sum, ravel
from passkit.values.size import Extent, divide_exactly, numel


@frozen
class DomainTile:
    """Axes that a tile has one coordinate of, and the one that it has a window of.

    The window is ``chunk`` steps of its axis: those of the region's dimension times ``scale``.
    ``by_tile`` says that the number of the tile counts the points of the fixed axes.
    """

    fixed: tuple[Axis, ...]
    window: Axis | None = None
    chunk: Extent = 1
    scale: Extent = 1
    by_tile: bool = False

    def same_points(self, other: DomainTile) -> bool:
        """Whether a tile owns the same points of the space, whatever they are counted by."""
        mine, others = ((t.fixed, t.window, t.chunk, t.by_tile) for t in (self, other))
        return mine == others

    def length(self, axis: Axis) -> Extent:
        """How many steps a tile takes along an axis, at most."""
        return 1 if axis in self.fixed else self.chunk if axis is self.window else axis.extent


def domain_tile_of(domain: Domain, region: Region, role: ValueKind) -> DomainTile | None:
    """The tract of a tile that owns a region of a FULL or ROW value; None where no axis fits."""
    axes = list(domain.points if role is ValueKind.FULL else domain.kept)
    if region.backwards:
        axes.reverse()
    left = numel(region.shape[k] for k in region.outside)
    fixed: list[Axis] = []
    while left != 1:
        if not axes:
            return None
        fixed.append(axes.pop(0))
        rest = divide_exactly(left, fixed[-1].extent)
        if rest is None:
            return None
        left = rest
    while axes and axes[0].extent == 1 and len(axes) > 1:
        axes.pop(0)
    ordered = tuple(reversed(fixed) if region.backwards else fixed)
    if any(a.reduced or a.counting for a in ordered):
        return None
    if region.window is None or region.chunk == region.shape[region.window]:
        return DomainTile(ordered)
    if not axes:
        return None
    window = axes[0]
    inside = numel(region.shape[k] for k in region.inside if k != region.window)
    behind = numel(a.extent for a in axes[1:])
    scale = divide_exactly(inside, behind)  # of one step of the dimension in steps of the axis
    if region.backwards and scale != 1:
        scale = None  # a window of columns is no range of rows and columns together
    if scale is None or window.reduced or window.extent != region.shape[region.window] * scale:
        return _coarser(tuple(fixed), window, region, inside, behind)
    return DomainTile(ordered, window, region.chunk * scale, scale)


def access_tile_of(domain: Domain, access: Sum, region: Region) -> DomainTile | None:
    """The tract of a tile that owns a region of an input, of which each point reads an element.

    ``access`` says where. None where two points may read one element, or a region is no box.
    """
    window = None if region.window is None else region.shape[region.window]
    inside = numel(region.shape[k] for k in region.inside)
    left = [a for a in domain.axes if a.extent != 1]
    if region.backwards or any(a.reduced or a.counting for a in left):
        return None
    walked: Extent = 1
    fixed: list[Axis] = []
    last: Axis | None = None
    while left:
        axis = next((a for a in left if access.coefficient(a.var) == walked), None)
        if axis is None:
            return None
        left.remove(axis)
        if fixed or walked == inside:
            fixed.insert(0, axis)
        else:
            last = axis
        walked = walked * axis.extent
    if walked != numel(region.shape) or numel(a.extent for a in fixed) * inside != walked:
        return None
    if window is None or region.chunk == window:
        return DomainTile(tuple(fixed))
    if last is None or last.extent != window:
        return None
    return DomainTile(tuple(fixed), last, region.chunk)


def _coarser(
    fixed: tuple[Axis, ...], window: Axis, region: Region, inside: Extent, behind: Extent
) -> DomainTile | None:
    """The tract where an axis has one step for several of the dimension, which windows respect."""
    per = divide_exactly(behind, inside)
    if per is None or window.reduced or region.window is None:
        return None
    chunk = divide_exactly(region.chunk, per)
    if chunk is None or window.extent * per != region.shape[region.window]:
        return None
    axes = (*fixed, window)
    return (
        None if chunk != 1 else DomainTile(axes[::-1] if region.backwards else axes, by_tile=True)
    )


def tile_boundaries(domain: Domain, region: Region) -> list[Sum]:
    """Where an element lies in a tile's part, so that no axis is of it and outside as well."""
    total = numel(region.shape)
    for role, size in ((ValueKind.FULL, domain.size), (ValueKind.ROW, domain.rows)):
        if total == size:
            index = domain.index(role, region.shape)
            at = [index[k] for k in region.inside]
            return [ravel(at, region.room, domain.extents)]
    return []
