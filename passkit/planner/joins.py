"""Plans of sums in one launch: the last block joins the partial results of chunks.

SplitReduce splits a long reduction into partial reductions of chunks and their join. On a GPU both
are one kernel where a block of chunks has the columns of a block of the join.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve

from passkit.analysis.domain_info import DomainInfo, analyze_domain
from passkit.analysis.group import Group
from passkit.analysis.partial import COMBINE_PARTIALS, PARTIAL_REDUCE
from passkit.diagnostics import Diagnostic
from passkit.graph.graph import Graph
from passkit.ir.loop import WARP, Bind
from passkit.planner.gpu import in_registers
from passkit.planner.nests import loop_nest
from passkit.schedule.actions import Action, LaunchBlocks
from passkit.schedule.apply import apply, distribution
from passkit.schedule.build import phased_schedule
from passkit.schedule.loop_nest import ONE_ROW, AxisRole, LoopNest
from passkit.schedule.nest import AxisPart, NestSchedule
from passkit.schedule.phases import phase_group, phases_of
from passkit.schedule.schedule import Schedule
from passkit.target import Target
from passkit.values.size import at_least, numel


def joined_phases(graph: Graph) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return the numbers of the outputs that are partial results, and of the others.

    None if a graph joins no partial results, or some that are no outputs.
    """
    number = {e: k for k, e in enumerate(graph.outputs)}
    joined = [n.inputs[0] for n in graph.nodes if n.op is COMBINE_PARTIALS]
    if not joined or any(e not in number or e.node.op is not PARTIAL_REDUCE for e in joined):
        return None
    first = tuple(sorted({number[e] for e in joined}))
    rest = tuple(k for k in range(len(graph.outputs)) if k not in first)
    return (first, rest) if rest else None


def plan_joined(group: Group, target: Target, plans: tuple[Schedule, Schedule]) -> Schedule | None:
    """Return the schedule of a group whose last blocks join partial results.

    Args:
        group: the group, whose outputs are the partial results and what is made of them.
        target: a GPU.
        plans: the schedules of the chunks, and of what joins them, as kernels of their own.

    Returns: None if their blocks do not have the same columns, or an extent is not known.
    """
    phase_outputs = joined_phases(group.graph)
    assert phase_outputs is not None
    own = plans[0].nest
    layouts = [
        analyze_domain(phase_group(group, p).graph) for p in phases_of(group.graph, phase_outputs)
    ]
    nests = [
        loop_nest(info, plan)
        for info, plan in zip(layouts, plans, strict=True)
        if isinstance(info, DomainInfo)
    ]
    if own is None or len(nests) < 2:
        return None
    chunks, joins = nests
    if isinstance(chunks, Diagnostic) or isinstance(joins, Diagnostic):
        return None
    actions = _join_actions(chunks, own, joins, target)
    schedule = None if actions is None else apply(joins, target, actions)
    if not isinstance(schedule, NestSchedule):
        return None
    if not _have_same_columns(chunks, own, joins, schedule):
        return None
    whole = phased_schedule(plans, phase_outputs, target)
    parts = (evolve(whole.parts[0], nest=own), evolve(whole.parts[1], nest=schedule))
    return evolve(whole, parts=parts, rule="last_block", is_joined=True)


def _join_actions(
    chunks: LoopNest, schedule: NestSchedule, joins: LoopNest, target: Target
) -> tuple[Action, ...] | None:
    """Return the actions by which a block of chunks joins partial results.

    Args:
        chunks: the nest of the chunks.
        schedule: its schedule.
        joins: the nest of the joins; None is the result if it has rows of another kind.
        target: the GPU.
    """
    extents = [a.extent for a in (*chunks.axes, *joins.axes)]
    if not all(isinstance(n, int) for n in extents) or not chunks.axes[0].is_chunk_axis:
        return None
    kept = numel(a.extent for a in chunks.axes if a.role is not AxisRole.REDUCED)
    if joins.is_chunked or not at_least(target.rules.max_partial, kept):
        return None
    if joins.is_column != (schedule.columns is not None) and joins.is_reduced:
        return None
    if joins.is_column:
        maps = _column_maps(schedule, joins, target)
    elif joins.is_reduced:
        maps = _row_maps(schedule, joins, target)
    elif schedule.columns is not None:
        maps = _point_maps(schedule, joins)
    else:
        return None
    if maps is None:
        return None
    return (*maps, *in_registers(joins), LaunchBlocks(schedule.launch.blocks))


def _column_maps(
    schedule: NestSchedule, joins: LoopNest, target: Target
) -> tuple[Action, ...] | None:
    """Return how a block joins its columns: its threads read several partial results at a time."""
    assert schedule.columns is not None
    widest = max(joins.traffic.nbytes, *joins.total_nbytes)
    vector = min(schedule.columns.size_of(Bind.VECTOR), max(1, target.access // widest))
    wide = schedule.columns.chunk // vector
    down = schedule.launch.threads // wide
    if not down:
        return None
    unroll = max(1, min(target.rules.join_unroll, joins.row_length // down))
    rows = ((Bind.UNROLL, unroll), (Bind.THREAD_Y, down))
    columns = ((Bind.THREAD_X, wide), (Bind.VECTOR, vector))
    return (
        *distribution(joins, AxisRole.KEPT, ()),
        *distribution(joins, AxisRole.REDUCED, (AxisPart(Bind.SERIAL, None), *_sized(rows))),
        *distribution(joins, AxisRole.COLUMN, _sized(columns)),
    )


def _row_maps(schedule: NestSchedule, joins: LoopNest, target: Target) -> tuple[Action, ...] | None:
    """Return how a block joins all partial results, as those of one row."""
    threads = schedule.launch.threads
    if schedule.launch.y > 1 or joins.axis_names(AxisRole.KEPT) != (ONE_ROW,):
        return None
    own = -(-joins.row_length // threads)
    parts = _sized(((Bind.UNROLL, min(own, target.rules.join_unroll)), (Bind.THREAD_X, threads)))
    if own > target.rules.join_unroll:
        parts = (AxisPart(Bind.SERIAL, None), *parts)
    return (
        *distribution(joins, AxisRole.KEPT, ()),
        *distribution(joins, AxisRole.REDUCED, parts),
    )


def _point_maps(schedule: NestSchedule, joins: LoopNest) -> tuple[Action, ...] | None:
    """Return how a block joins its columns, for few chunks: a thread has a column, or more."""
    assert schedule.columns is not None
    across, threads = schedule.columns.chunk, schedule.launch.threads
    points = numel(a.extent for a in joins.axes)
    if across < WARP and at_least(across, points):
        across = WARP
    wide = min(across, threads)
    if wide % WARP:
        return None
    columns = ((Bind.THREAD_X, wide), (Bind.VECTOR, across // wide))
    return distribution(joins, AxisRole.KEPT, _sized(columns))


def _sized(parts: Iterable[tuple[Bind, int]]) -> tuple[AxisPart, ...]:
    """Return the parts of an axis map that have more than one step."""
    return tuple(AxisPart(bind, size) for bind, size in parts if size > 1)


def _have_same_columns(
    chunks: LoopNest, first: NestSchedule, joins: LoopNest, then: NestSchedule
) -> bool:
    """Return whether the join of number ``k`` reads what blocks ``k``, ``k + joins``, … store."""
    count = chunks.axes[0].extent
    blocks = first.blocks([a.extent for a in chunks.axes])
    of_join = then.blocks([a.extent for a in joins.axes])
    assert isinstance(blocks, int) and isinstance(of_join, int) and isinstance(count, int)
    if blocks != of_join * count or (joins.is_reduced and joins.row_length != count):
        return False
    if first.columns is None or of_join == 1:
        return of_join == 1
    last = chunks.axes[-1].extent
    assert isinstance(last, int)
    return joins.axes[-1].extent == last or last % first.columns.chunk == 0
