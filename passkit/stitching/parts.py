"""Parts of stitched kernels: nodes of a group that have a common iteration space of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve, frozen

from passkit.closing import make_group
from passkit.group import Group
from passkit.layout import Layout, lay_apart
from passkit.node import Entry, Node, known_shape
from passkit.schedule import Schedule, estimate, levels_of, stages_of
from passkit.size import Extent, numel
from passkit.space import Infeasible, Role, reduce_of
from passkit.split import Split
from passkit.stitching.cutting import reads_of_part
from passkit.stitching.regions import Region
from passkit.stitching.tracts import Tract, boundary, tract_along, tract_of
from passkit.target import Target
from passkit.tiling import Composition, is_short
from passkit.turning import block_axis

MOST_ROWS = 256
"""How many short rows a tile folds together at most."""


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
) -> LaidPart | Infeasible:
    """A part's space, of which a tile owns what it owns of the part's results."""
    reads = reads_of_part(group.graph, nodes)
    part, feeds = make_group(group.graph, nodes, reads, [n.entries[0] for n in results])
    passed = [regions[n] for n in (*results, *(e.node for e in feeds)) if n in regions]
    layout = lay_apart(part.graph, lambda space: [x for r in passed for x in boundary(space, r)])
    if isinstance(layout, Infeasible):
        return layout
    follows = all(n not in regions for n in results)
    owned = _followed(layout, feeds, regions) if follows else _owned(layout, results, regions)
    if isinstance(owned, Infeasible):
        return owned
    governs, tract = owned
    if layout.chunks is not None:
        return Infeasible("chunks", f"{governs.label} is folded in chunks", governs)
    if layout.space.axes[-1] in tract.fixed and len(layout.space.axes) > 1:
        return Infeasible("lanes", f"a tile owns one column of {governs.label}", governs)
    return LaidPart(part, tuple(feeds), layout, regions[governs], tract)


def _owned(
    layout: Layout, results: Sequence[Node], regions: Mapping[Node, Region]
) -> tuple[Node, Tract] | Infeasible:
    """The result that governs a part's loops, and what of its space a tile owns."""
    owned = []
    for node, entry in zip(results, layout.graph.outputs, strict=True):
        full = reduce_of(node) is None and Role.FULL in layout.roles[entry.node]
        found = tract_of(layout.space, regions[node], Role.FULL if full else Role.ROW)
        if found is None:
            return Infeasible(
                "window", f"no axis of {node.label} goes along what a tile owns of it", node
            )
        owned.append(found)
    governs = max(results, key=_points)
    tract = owned[results.index(governs)]
    for node, found in zip(results, owned, strict=True):
        if not found.same_points(tract):  # its array would be written in part only
            return Infeasible(
                "schedule_conflict",
                f"a tile needs another part of {node.label} than of {governs.label}, which are "
                f"computed together",
                node,
            )
    return governs, tract


def _followed(
    layout: Layout, feeds: Sequence[Entry], regions: Mapping[Node, Region]
) -> tuple[Node, Tract] | Infeasible:
    """The same where results lie as a tile's part of what is read falls: of a value moved."""
    for node, feed in zip(layout.graph.inputs, feeds, strict=True):
        if feed.node in regions:
            reads, region = layout.input_reads[node], regions[feed.node]
            found = [tract_along(layout.space, access, region) for access in reads]
            tract = found[0]
            if tract and all(t and t.same_points(tract) for t in found):
                return feed.node, tract
            return Infeasible("window", f"{feed.name} is moved out of its tiles", feed.node)
    raise AssertionError("a part that follows nothing")


def _points(node: Node) -> int:
    """How many elements a value has, as far as that is known: a row value has fewer than others."""
    size = numel(known_shape(node.entries[0]))
    return size if isinstance(size, int) else 1 << 62


def part_schedules(laid: LaidPart, target: Target) -> list[Schedule] | Infeasible:
    """How a part can run inside a tile, the best way as a rule first."""
    layout, space, tract = laid.layout, laid.layout.space, laid.tract
    lane = space.axes[-1]
    rows = [a for a in space.kept if a not in tract.fixed and a is not lane]
    across = block_axis(layout) if target.lanes > 1 else None
    ways: list[tuple[Composition, Split, Extent | None]] = []
    if lane.reduced:
        many = tract.length(rows[0]) if len(rows) == 1 else 0
        if isinstance(many, int) and 1 < many <= MOST_ROWS and is_short(space, target):
            ways.append((Composition.SHORT, Split(0, -(-many // 16) * 16), None))
        ways.append((Composition.ROW, Split(0, 1), None))
    elif space.reduced:
        ways.append((Composition.COLUMN, Split(0, 1), tract.length(lane)))
    else:
        if across in rows and across is not None:
            ways.append((Composition.BLOCK, Split(space.axes.index(across), 1), None))
        ways.append((Composition.THREAD, Split(0, 1), None))
    stages, kept = stages_of(layout, levels_of(layout), None)
    found = []
    for composition, split, width in ways:
        inner = [a for a in rows if composition is not Composition.BLOCK or a is not across]
        if tract.window not in inner[1:]:
            found.append(Schedule(composition, space.axes, split, width, stages, kept))
    if not found:
        return Infeasible("window", "a tile owns a window of an axis inside those of its rows")
    return [evolve(plan, seconds=estimate(layout, target)) for plan in found]
