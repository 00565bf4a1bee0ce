"""Parts of stitched kernels: nodes of a group that have a common iteration space of their own."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from attrs import frozen

from passkit.analysis.closed_nest import extract_nest
from passkit.analysis.domain import Axis, Domain, ValueKind
from passkit.analysis.domain_info import DomainInfo, analyze_bounded_domain
from passkit.analysis.domain_tile import (
    DomainTile,
    access_tile_of,
    domain_tile_of,
    tile_boundaries,
)
from passkit.analysis.group import Group
from passkit.analysis.recompute import is_expensive
from passkit.analysis.tile_layout import TileLayout
from passkit.analysis.tilemap import Split, TileMap, guessed
from passkit.analysis.transposed_accesses import block_axis
from passkit.ast import Var
from passkit.diagnostics import Diagnostic
from passkit.graph.attribute_calls import reduce_of
from passkit.graph.node import Entry, Node, known_shape
from passkit.schedule.roofline import roofline_seconds
from passkit.schedule.schedule import Schedule
from passkit.schedule.stages import split_stages
from passkit.schedule.tiling import Composition, has_short_rows
from passkit.target import Target
from passkit.values import dtype as dt
from passkit.values.size import Extent, numel

USUAL = 128
"""What an extent that only a call knows is taken for where seconds are compared."""


@frozen(eq=False)
class NestInfo:
    """A part as a group of its own, what feeds it, its space, and what of that a tile owns."""

    group: Group
    feeds: tuple[Entry, ...]
    info: DomainInfo
    tile_map: TileMap
    domain_tile: DomainTile


def analyze_nest(
    group: Group, nodes: Sequence[Node], results: Sequence[Node], layouts: Mapping[Node, TileLayout]
) -> NestInfo | Diagnostic:
    """A part's space, of which a tile owns what it owns of the part's results."""
    part, feeds = extract_nest(group.graph, tuple(nodes), tuple(results))
    passed = [layouts[n] for n in (*results, *(e.node for e in feeds)) if n in layouts]
    info = analyze_bounded_domain(
        part.graph, lambda domain: [x for r in passed for x in tile_boundaries(domain, r)]
    )
    if isinstance(info, Diagnostic):
        return info
    follows = all(n not in layouts for n in results)
    owned = _followed(info, feeds, layouts) if follows else _owned(info, results, layouts)
    if isinstance(owned, Diagnostic):
        return owned
    governs, domain_tile = owned
    if info.chunks is not None:
        return Diagnostic("tile.reduced_chunks", {"value": governs.label}, (governs.label,))
    if info.domain.axes[-1] in domain_tile.fixed and len(info.domain.axes) > 1:
        return Diagnostic("tile.single_column", {"value": governs.label}, (governs.label,))
    return NestInfo(part, feeds, info, layouts[governs].tile_map, domain_tile)


def _owned(
    info: DomainInfo, results: Sequence[Node], layouts: Mapping[Node, TileLayout]
) -> tuple[Node, DomainTile] | Diagnostic:
    """The result that governs a part's loops, and what of its space a tile owns."""
    owned = []
    for node, entry in zip(results, info.graph.outputs, strict=True):
        full = reduce_of(node) is None and ValueKind.FULL in info.roles[entry.node]
        found = domain_tile_of(
            info.domain, layouts[node].tile_map, ValueKind.FULL if full else ValueKind.ROW
        )
        if found is None:
            return Diagnostic("tile.window_axis", {"value": node.label}, (node.label,))
        owned.append(found)
    governs = max(results, key=_points)
    domain_tile = owned[results.index(governs)]
    for node, found in zip(results, owned, strict=True):
        if not found.same_points(domain_tile):  # its array would be written in part only
            return Diagnostic(
                "tile.parts", {"value": node.label, "other": governs.label}, (node.label,)
            )
    return governs, domain_tile


def _followed(
    info: DomainInfo, feeds: Sequence[Entry], layouts: Mapping[Node, TileLayout]
) -> tuple[Node, DomainTile] | Diagnostic:
    """The same where results lie as a tile's part of what is read falls: of a value moved."""
    pairs = zip(info.graph.inputs, feeds, strict=True)
    read = [(n, e) for n, e in pairs if e.node in layouts and n in info.input_accesses]
    if not read:  # of inputs whose shapes alone count, such as those of a bias by positions
        where = info.graph.outputs[0].node
        return Diagnostic("tile.window_elements", {"value": where.label}, (where.label,))
    node, feed = read[0]
    accesses, tile_map = info.input_accesses[node], layouts[feed.node].tile_map
    found = [access_tile_of(info.domain, access, tile_map) for access in accesses]
    domain_tile = found[0]
    if domain_tile and all(t and t.same_points(domain_tile) for t in found):
        return feed.node, domain_tile
    return Diagnostic("tile.window_reader", {"value": feed.name}, (feed.node.label,))


def crooked(
    laid: NestInfo, layouts: Mapping[Node, TileLayout], results: Sequence[Node]
) -> set[Node]:
    """Values whose pitch bends a part's way through them: they are met otherwise than row by row.

    A part must read them at its own points, with a row of them in its lanes.
    """
    domain, graph = laid.info.domain, laid.group.graph
    wide = {n: layout for n, layout in layouts.items() if layout.pitch is not None}
    sides = [(n, e.node) for n, e in zip(results, graph.outputs, strict=True)]
    sides += [(e.node, own) for own, e in zip(graph.inputs, laid.feeds, strict=True)]
    return {
        node
        for node, own in sides
        if node in wide
        and not (
            all(at == domain.full for at in laid.info.input_accesses.get(own, ()))
            and _is_even(domain, wide[node], own)
        )
    }


def _is_even(domain: Domain, layout: TileLayout, node: Node) -> bool:
    """Whether a value's rows are the lanes', and its places sums of steps along the axes."""
    shape = layout.tile_map.shape
    if numel(shape) != domain.size or reduce_of(node) is not None:
        return False
    lane = domain.axes[-1]
    index = domain.index(ValueKind.FULL, shape)
    place = layout.local(index, Var("first", dt.int64), domain.extents)
    along = lane.extent == shape[-1] and place.coefficient(lane.var) == 1
    return along and all(isinstance(atom, Var) for atom, _ in place.terms)


def _points(node: Node) -> int:
    """How many elements a value has, as far as that is known: a row value has fewer than others."""
    size = numel(known_shape(node.entries[0]))
    return size if isinstance(size, int) else 1 << 62


def part_schedules(
    laid: NestInfo, target: Target, without: Collection[Node] = ()
) -> list[Schedule] | Diagnostic:
    """How a part can run inside a tile, the best way as a rule first.

    Values that it is to do ``without`` are computed again wherever a later stage reads them.
    Seconds are those of `USUAL` extents where only a call knows these.
    """
    info, domain, domain_tile = laid.info, laid.info.domain, laid.domain_tile
    lane = domain.axes[-1]
    rows = [a for a in domain.kept if a not in domain_tile.fixed and a is not lane]
    across = block_axis(info) if target.lanes > 1 else None
    ways: list[tuple[Composition, Split, Extent | None]] = []
    if lane.reduced:
        many = domain_tile.length(rows[0]) if len(rows) == 1 else 0
        most = target.tiling.short_rows
        if isinstance(many, int) and 1 < many <= most and has_short_rows(domain, target):
            ways.append((Composition.SHORT, Split(0, many), None))
        ways.append((Composition.ROW, Split(0, 1), None))
    elif domain.reduced:
        ways.append((Composition.COLUMN, Split(0, 1), domain_tile.length(lane)))
    else:
        if across in rows and across is not None:
            ways.append((Composition.BLOCK, Split(domain.axes.index(across), 1), None))
        ways.append((Composition.THREAD, Split(0, 1), None))
    stages, kept = split_stages(info, None, without)
    points = guessed(domain.size, USUAL)
    again = [target.expensive if is_expensive(n) else target.light for n in without]
    seconds = roofline_seconds(info, target, points) + sum(again) * points
    found = []
    for composition, split, width in ways:
        inner = [a for a in rows if composition is not Composition.BLOCK or a is not across]
        if domain_tile.window not in inner[1:]:
            plan = Schedule(composition, domain.axes, split, width, stages, kept, seconds=seconds)
            found.append(plan)
    if not found:
        return Diagnostic("tile.window_rows")
    return found


def row_axes(domain: Domain, schedule: Schedule, domain_tile: DomainTile) -> list[Axis]:
    """The axes that the rows of a tile go along: neither its lanes' nor those it has one step of.

    Short rows are lanes themselves where row values are computed.
    """
    blocked = schedule.composition is Composition.BLOCK
    across = domain.axes[schedule.split.split_dim] if blocked else None
    held = (*domain_tile.fixed, domain.axes[-1], across)
    return [a for a in domain.kept if a not in held]


def has_rows(domain: Domain, schedule: Schedule, domain_tile: DomainTile) -> bool:
    """Whether a part is a loop over rows, which may run side by side."""
    short = schedule.composition is Composition.SHORT
    return not short and bool(row_axes(domain, schedule, domain_tile))
