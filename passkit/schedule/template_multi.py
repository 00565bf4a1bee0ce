"""Templates of stitched kernels: each value that parts hand on has the loops of its dimensions."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from passkit.analysis.group import Group
from passkit.analysis.nest_partitions import nest_partitions
from passkit.analysis.regions import Region
from passkit.ast.stage import Level
from passkit.graph.node import Node, known_shape
from passkit.graph.quotient import live_ins
from passkit.schedule.schedule import Schedule
from passkit.schedule.template import NestPlan
from passkit.schedule.template_levels import dealt, settled
from passkit.schedule.template_loops import Nest, nests_of, value_names
from passkit.schedule.tiling import Composition
from passkit.values.size import Extent, numel

LEVELS = {
    Composition.ROW: (Level.WARP, Level.CTA),
    Composition.SHORT: (Level.CTA, Level.THREAD),
    Composition.COLUMN: (Level.WARP, Level.THREAD),
    Composition.THREAD: (Level.WARP, Level.CTA),
    Composition.BLOCK: (Level.THREAD, Level.CTA),
}
"""The levels that go through the rows of a tile, and through what is reduced."""


def values_of(group: Group, names: dict[Node, str]) -> dict[Node, Nest]:
    """The values that parts may leave for others, and the results."""
    graph = group.graph
    pieces = nest_partitions(graph)[0]
    read = {e.node for p in pieces for e in live_ins(graph, p.nodes)}
    shared = [n for p in pieces for n in p.nodes if n in p.owns and n in read]
    known = {name: node for node, name in value_names(group).items()}
    nests = ((known[nest.name], nest) for nest in nests_of(group, shared))
    return {node: evolve(nest, name=names[node]) for node, nest in nests}


def stage_of(node: Node, nest: Nest, region: Region, schedule: Schedule | None) -> NestPlan:
    """How a part deals out the loops of one of its results, of which a tile owns ``region``.

    A product of matrices has no schedule.
    """
    chunks = chunks_of(nest, region)
    inner = _inner(node, nest, schedule)
    attrs = (dealt(n, chunks.get(d, n), inner[d]) for d, n in enumerate(nest.dims))
    return NestPlan(nest.name, tuple(attrs), nest.shared)


def chunks_of(nest: Nest, region: Region) -> Mapping[int, Extent]:
    """The steps of a loop that a tile has, where it has not all."""
    if not nest.axes:
        return {}
    found = {nest.axes[k]: 1 for k in region.outside if nest.axes[k] not in nest.folded}
    if region.window is not None:
        return {**found, nest.axes[region.window]: region.chunk}
    return found


def _inner(node: Node, nest: Nest, schedule: Schedule | None) -> list[Level]:
    """The levels in a tile that go through each loop."""
    rank = len(nest.dims)
    if schedule is None:
        batch = [Level.THREAD] * (rank - 3)
        return [*batch, Level.WARP, Level.CTA, Level.THREAD]
    rows, folds = LEVELS[schedule.composition]
    if nest.whole:
        lane = nest.kept[-1] if nest.kept and schedule.composition is Composition.COLUMN else None
        kept = [Level.CTA if d == lane else rows for d in range(rank)]
        return [folds if d in nest.whole else kept[d] for d in range(rank)]
    domain = schedule.domain
    of_row = bool(domain.reduced) and numel(known_shape(node.entries[0])) != domain.size
    along = rows if of_row and schedule.composition is not Composition.COLUMN else Level.CTA
    return [*[rows] * (rank - 1), along]


def settle(stage: NestPlan, nest: Nest) -> NestPlan:
    """A stage that somebody wrote in the words of `stage_of`, as far as it can be."""
    pairs = zip(stage.attrs, nest.dims, strict=True)
    return NestPlan(stage.name, tuple(settled(a, n) for a, n in pairs), nest.shared)
