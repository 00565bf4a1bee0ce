"""Templates of groups of one iteration space.

Their loops are those of the kernel: dimensions that it goes through as one are one loop, and so are
all that count rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto

from attrs import frozen

from passkit.analysis.domain import ValueKind
from passkit.analysis.domain_info import DomainInfo
from passkit.analysis.transposed_accesses import BLOCK
from passkit.ast.stage import Level
from passkit.graph.attribute_calls import reduce_of, scan_of
from passkit.graph.node import Node
from passkit.schedule.schedule import Schedule, reduction_depths, split_stages
from passkit.schedule.template import Attr, NestPlan
from passkit.schedule.template_levels import dealt, settled
from passkit.schedule.template_loops import Nest
from passkit.schedule.tiling import Composition, cut_axis
from passkit.target import Target
from passkit.values.size import Extent, at_least, numel


class Kind(Enum):
    """What a loop of a kernel goes over.

    Rows, another axis that tiles are cut along, what is folded, and the last axis.
    """

    ROWS = auto()
    CUT = auto()
    FOLD = auto()
    LAST = auto()


@frozen
class Run:
    """A loop of a kernel."""

    kind: Kind
    extent: Extent
    folded: bool = False


@frozen
class NestValue:
    """A value that templates name: the loops it has, and whether it folds or scans some."""

    nest: Nest
    runs: tuple[Run, ...]


def runs_of(info: DomainInfo, target: Target) -> tuple[Run, ...]:
    """The loops of a group's kernel, outermost first."""
    domain, last = info.domain, info.domain.axes[-1]
    cut = cut_axis(info, target)
    rows = [a for a in domain.kept if a is not last and a is not cut]
    found = [Run(Kind.ROWS, numel(a.extent for a in rows))] if rows else []
    if cut is not None:
        found.append(Run(Kind.CUT, cut.extent))
    found += [Run(Kind.FOLD, a.steps, True) for a in domain.reduced if a is not last]
    return (*found, Run(Kind.LAST, last.steps, last.reduced))


def inside(runs: Sequence[Run]) -> Extent:
    """The points of a row."""
    return numel(r.extent for r in runs if r.kind in (Kind.FOLD, Kind.LAST))


def values_of(
    info: DomainInfo, outputs: Sequence[Node], names: dict[Node, str], target: Target
) -> tuple[NestValue, ...]:
    """The values that a group's templates name: folds, what is kept between stages, and results.

    ``outputs`` are the nodes of the results, which the layout may have written out.
    """
    runs, graph = runs_of(info, target), info.graph
    own = {e.node: n for e, n in zip(graph.outputs, outputs, strict=True)}
    kept = {graph.nodes[k.value] for k in split_stages(info, reduction_depths(info), None)[1]}
    read = {e.node for n in graph.nodes for e in n.inputs}
    found = []
    for node in graph.nodes:
        folds, scans = reduce_of(node) is not None, scan_of(node) is not None
        if not (folds or scans or node in own or node in kept):
            continue
        full = folds or ValueKind.FULL in info.roles[node]
        mine = tuple(r for r in runs if full or not r.folded)
        whole = tuple(d for d, r in enumerate(mine) if r.folded)
        found.append(
            NestValue(
                Nest(
                    names[own.get(node, node)],
                    tuple(r.extent for r in mine),
                    folded=whole if folds else (),
                    scanned=whole if scans else (),
                    passed=() if folds or scans else whole,
                    shared=node in read and (folds or scans or node in kept),
                    root=node in own,
                ),
                mine,
            )
        )
    return tuple(found)


def stage_of(value: NestValue, schedule: Schedule, runs: Sequence[Run]) -> NestPlan:
    """How a schedule deals out the loops of a value."""
    folds = bool(value.nest.whole)
    attrs = tuple(_attr(r, schedule, folds, inside(runs)) for r in value.runs)
    return NestPlan(value.nest.name, attrs or (dealt(1, 1, Level.THREAD),), value.nest.shared)


def _attr(run: Run, schedule: Schedule, folds: bool, points: Extent) -> Attr:
    chunk, width = schedule.split.chunk, schedule.width
    whole = run.extent
    wide = whole if width is None else width
    match schedule.composition, run.kind:
        case Composition.ROW, Kind.ROWS:
            return dealt(run.extent, chunk, Level.WARP, points)
        case Composition.SHORT, Kind.ROWS:
            return dealt(run.extent, chunk, Level.CTA, points)
        case Composition.SHORT, Kind.LAST:
            return dealt(run.extent, whole, Level.THREAD if folds else Level.CTA)
        case Composition.THREAD, Kind.ROWS | Kind.CUT:
            return dealt(run.extent, chunk, Level.WARP, points)
        case Composition.BLOCK, Kind.CUT:
            return dealt(run.extent, chunk, Level.THREAD, points)
        case Composition.NARROW, Kind.CUT:
            return dealt(run.extent, wide, Level.CTA, points)
        case _, Kind.ROWS:
            return dealt(run.extent, 1, Level.WARP)
        case (_, Kind.FOLD) | (Composition.NARROW, Kind.LAST):
            return dealt(run.extent, whole, Level.THREAD)
        case _:
            return dealt(run.extent, wide, Level.CTA)


def settle(stage: NestPlan, value: NestValue, runs: Sequence[Run]) -> NestPlan:
    """A stage that somebody wrote in the words of `stage_of`, as far as it can be."""
    extents = [r.extent for r in value.runs] or [1]
    points = inside(runs)
    pairs = zip(stage.attrs, extents, strict=True)
    return NestPlan(stage.name, tuple(settled(a, n, points) for a, n in pairs), value.nest.shared)


def _extent(runs: Sequence[Run], kind: Kind) -> Extent:
    return next(r.extent for r in runs if r.kind is kind)


def _capped(chunk: Extent, extent: Extent) -> Extent:
    """Return a chunk that is no longer than its loop, so that one tile has one spelling."""
    if isinstance(chunk, int) and isinstance(extent, int):
        return min(chunk, max(extent, 1))
    return chunk


def sizes_of(
    stage: NestPlan, composition: Composition, runs: Sequence[Run]
) -> tuple[Extent, Extent | None]:
    """The chunk of a tile and its width that a stage over all loops asks for."""
    steps: dict[Kind, Extent] = {}
    for d, run in enumerate(runs):
        part = stage.part(d, Level.GRID)
        if part is not None:
            steps[run.kind] = _capped(part.steps(run.extent, inside(runs)), run.extent)
        elif run.kind is not Kind.FOLD:
            steps[run.kind] = run.extent
    last = steps[Kind.LAST]
    if composition is Composition.COLUMN:
        return 1, last
    if composition is Composition.NARROW:
        return steps[Kind.CUT], steps[Kind.CUT]
    if composition is Composition.BLOCK:
        few = at_least(BLOCK, cut := _extent(runs, Kind.CUT))
        return cut if few else steps[Kind.CUT], last
    if composition is Composition.THREAD and len(runs) == 1:
        return last, last
    return steps.get(Kind.ROWS, steps.get(Kind.CUT, 1)), None
