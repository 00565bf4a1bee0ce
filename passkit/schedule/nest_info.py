"""Parts of stitched kernels: nodes of a group that have a common iteration space of their own."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from attrs import frozen

from passkit.analysis.closed_nest import closed
from passkit.analysis.domain import Axis, Role, Space
from passkit.analysis.domain_info import Layout, lay_apart
from passkit.analysis.group import Group
from passkit.analysis.recompute import is_expensive
from passkit.analysis.regions import Region
from passkit.analysis.tilemap import Split, guessed
from passkit.analysis.tracts import Tract, boundary, tract_along, tract_of
from passkit.analysis.transposed_accesses import block_axis
from passkit.ast import Var
from passkit.diagnostics import Diagnostic
from passkit.graph.attribute_calls import reduce_of
from passkit.graph.node import Entry, Node, known_shape
from passkit.schedule.schedule import Schedule, estimate, levels_of, stages_of
from passkit.schedule.tiling import Composition, is_short
from passkit.target import Target
from passkit.values import dtype as dt
from passkit.values.size import Extent, numel

USUAL = 128
"""What an extent that only a call knows is taken for where seconds are compared."""


@frozen(eq=False)
class LaidPart:
    """A part as a group of its own, what feeds it, its space, and what of that a tile owns."""

    group: Group
    feeds: tuple[Entry, ...]
    layout: Layout
    region: Region
    tract: Tract


def lay_part(
    group: Group, nodes: Sequence[Node], results: Sequence[Node], regions: Mapping[Node, Region]
) -> LaidPart | Diagnostic:
    """A part's space, of which a tile owns what it owns of the part's results."""
    part, feeds = closed(group.graph, tuple(nodes), tuple(results))
    passed = [regions[n] for n in (*results, *(e.node for e in feeds)) if n in regions]
    layout = lay_apart(part.graph, lambda space: [x for r in passed for x in boundary(space, r)])
    if isinstance(layout, Diagnostic):
        return layout
    follows = all(n not in regions for n in results)
    owned = _followed(layout, feeds, regions) if follows else _owned(layout, results, regions)
    if isinstance(owned, Diagnostic):
        return owned
    governs, tract = owned
    if layout.chunks is not None:
        return Diagnostic("tile.reduced_chunks", {"value": governs.label}, (governs.label,))
    if layout.space.axes[-1] in tract.fixed and len(layout.space.axes) > 1:
        return Diagnostic("tile.single_column", {"value": governs.label}, (governs.label,))
    return LaidPart(part, feeds, layout, regions[governs], tract)


def _owned(
    layout: Layout, results: Sequence[Node], regions: Mapping[Node, Region]
) -> tuple[Node, Tract] | Diagnostic:
    """The result that governs a part's loops, and what of its space a tile owns."""
    owned = []
    for node, entry in zip(results, layout.graph.outputs, strict=True):
        full = reduce_of(node) is None and Role.FULL in layout.roles[entry.node]
        found = tract_of(layout.space, regions[node], Role.FULL if full else Role.ROW)
        if found is None:
            return Diagnostic("tile.window_axis", {"value": node.label}, (node.label,))
        owned.append(found)
    governs = max(results, key=_points)
    tract = owned[results.index(governs)]
    for node, found in zip(results, owned, strict=True):
        if not found.same_points(tract):  # its array would be written in part only
            return Diagnostic(
                "tile.parts", {"value": node.label, "other": governs.label}, (node.label,)
            )
    return governs, tract


def _followed(
    layout: Layout, feeds: Sequence[Entry], regions: Mapping[Node, Region]
) -> tuple[Node, Tract] | Diagnostic:
    """The same where results lie as a tile's part of what is read falls: of a value moved."""
    pairs = zip(layout.graph.inputs, feeds, strict=True)
    read = [(n, e) for n, e in pairs if e.node in regions and n in layout.input_reads]
    if not read:  # of inputs whose shapes alone count, such as those of a bias by positions
        where = layout.graph.outputs[0].node
        return Diagnostic("tile.window_elements", {"value": where.label}, (where.label,))
    node, feed = read[0]
    reads, region = layout.input_reads[node], regions[feed.node]
    found = [tract_along(layout.space, access, region) for access in reads]
    tract = found[0]
    if tract and all(t and t.same_points(tract) for t in found):
        return feed.node, tract
    return Diagnostic("tile.window_reader", {"value": feed.name}, (feed.node.label,))


def crooked(laid: LaidPart, regions: Mapping[Node, Region], results: Sequence[Node]) -> set[Node]:
    """Values whose pitch bends a part's way through them: they are met otherwise than row by row.

    A part must read them at its own points, with a row of them in its lanes.
    """
    space, graph = laid.layout.space, laid.group.graph
    wide = {n: r for n, r in regions.items() if r.pitch is not None}
    sides = [(n, e.node) for n, e in zip(results, graph.outputs, strict=True)]
    sides += [(e.node, own) for own, e in zip(graph.inputs, laid.feeds, strict=True)]
    return {
        node
        for node, own in sides
        if node in wide
        and not (
            all(at == space.full for at in laid.layout.input_reads.get(own, ()))
            and _is_even(space, wide[node], own)
        )
    }


def _is_even(space: Space, region: Region, node: Node) -> bool:
    """Whether a value's rows are the lanes', and its places sums of steps along the axes."""
    if numel(region.shape) != space.size or reduce_of(node) is not None:
        return False
    lane = space.axes[-1]
    index = space.index(Role.FULL, region.shape)
    place = region.local(index, Var("first", dt.int64), space.extents)
    along = lane.extent == region.shape[-1] and place.coefficient(lane.var) == 1
    return along and all(isinstance(atom, Var) for atom, _ in place.terms)


def _points(node: Node) -> int:
    """How many elements a value has, as far as that is known: a row value has fewer than others."""
    size = numel(known_shape(node.entries[0]))
    return size if isinstance(size, int) else 1 << 62


def part_schedules(
    laid: LaidPart, target: Target, without: Collection[Node] = ()
) -> list[Schedule] | Diagnostic:
    """How a part can run inside a tile, the best way as a rule first.

    Values that it is to do ``without`` are computed again wherever a later stage reads them.
    Seconds are those of `USUAL` extents where only a call knows these.
    """
    layout, space, tract = laid.layout, laid.layout.space, laid.tract
    lane = space.axes[-1]
    rows = [a for a in space.kept if a not in tract.fixed and a is not lane]
    across = block_axis(layout) if target.lanes > 1 else None
    ways: list[tuple[Composition, Split, Extent | None]] = []
    if lane.reduced:
        many = tract.length(rows[0]) if len(rows) == 1 else 0
        most = target.tiling.short_rows
        if isinstance(many, int) and 1 < many <= most and is_short(space, target):
            ways.append((Composition.SHORT, Split(0, many), None))
        ways.append((Composition.ROW, Split(0, 1), None))
    elif space.reduced:
        ways.append((Composition.COLUMN, Split(0, 1), tract.length(lane)))
    else:
        if across in rows and across is not None:
            ways.append((Composition.BLOCK, Split(space.axes.index(across), 1), None))
        ways.append((Composition.THREAD, Split(0, 1), None))
    stages, kept = stages_of(layout, levels_of(layout), None, without)
    points = guessed(space.size, USUAL)
    again = [target.expensive if is_expensive(n) else target.light for n in without]
    seconds = estimate(layout, target, points) + sum(again) * points
    found = []
    for composition, split, width in ways:
        inner = [a for a in rows if composition is not Composition.BLOCK or a is not across]
        if tract.window not in inner[1:]:
            plan = Schedule(composition, space.axes, split, width, stages, kept, seconds=seconds)
            found.append(plan)
    if not found:
        return Diagnostic("tile.window_rows")
    return found


def row_axes(space: Space, schedule: Schedule, tract: Tract) -> list[Axis]:
    """The axes that the rows of a tile go along: neither its lanes' nor those it has one step of.

    Short rows are lanes themselves where row values are computed.
    """
    blocked = schedule.composition is Composition.BLOCK
    across = space.axes[schedule.split.split_dim] if blocked else None
    held = (*tract.fixed, space.axes[-1], across)
    return [a for a in space.kept if a not in held]


def has_rows(space: Space, schedule: Schedule, tract: Tract) -> bool:
    """Whether a part is a loop over rows, which may run side by side."""
    short = schedule.composition is Composition.SHORT
    return not short and bool(row_axes(space, schedule, tract))
