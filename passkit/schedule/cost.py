"""The model's seconds of kernels and of libraries' products, from the numbers of a target.

`Schedule.seconds` is what the work takes on any thread. `model_seconds` adds tiles and rows that
have to begin and end, lanes that stand idle, and threads that have nothing left to do: by that
schedules of one group are held against each other. `kernel_seconds` holds groups against each
other: what is too much in all schedules of a group counts there, and is corrected by the target's
`MachineModel`.
"""

from __future__ import annotations

from passkit.analysis.domain import reduced_axes_of
from passkit.analysis.domain_info import DomainInfo, analyze_domain
from passkit.analysis.group import Group
from passkit.analysis.nests import contract_of
from passkit.analysis.ordered_accesses import are_orderly
from passkit.analysis.recompute import is_expensive
from passkit.analysis.register_pressure import registers_of
from passkit.analysis.tilemap import guessed
from passkit.ast.folds import Contract
from passkit.graph.node import Node, is_leaf, known_shape
from passkit.schedule.nest_info import USUAL
from passkit.schedule.phases import scheduled_groups
from passkit.schedule.schedule import MultiNest, Schedule, TileNest, least_bytes
from passkit.schedule.tile_costs import imbalance, row_seconds
from passkit.schedule.tile_loops import TileLoops, tiles_of
from passkit.schedule.tiling import Composition
from passkit.target import Target
from passkit.values.size import numel


def model_seconds(group: Group, schedule: Schedule, target: Target) -> float:
    """Seconds of a schedule by the model, 0 where sizes are unknown."""
    if schedule.multi_nest is not None:
        return schedule.seconds
    if schedule.parts:
        pairs = zip(scheduled_groups(group, schedule), schedule.parts, strict=True)
        found = [model_seconds(part, plan, target) for part, plan in pairs]
        meetings = max(0, len(schedule.phase_outputs) - 1) * target.meeting
        return sum(found) + meetings if all(found) else 0.0
    info, tiles = analyze_domain(group.graph), tiles_of(schedule)
    assert isinstance(info, DomainInfo)
    if not schedule.seconds or not isinstance(tiles, int) or not tiles:
        return 0.0
    work = schedule.seconds * _idle(schedule, target)
    total = work + tiles * target.machine.tile_seconds + _between(schedule, target)
    return total * imbalance(tiles) if total >= target.parallel else total


def kernel_seconds(group: Group, plan: Schedule, target: Target) -> float:
    """Seconds of one thread for a kernel beside other kernels, 0 where sizes are unknown."""
    machine = target.machine
    raw = model_seconds(group, plan, target)
    if not raw or plan.parts:
        return machine.reduction_factor * raw
    if plan.multi_nest is None:
        work = _work(group, plan, target) * _crowded(group, target)
        if target.limits.shared:
            waiting = target.slowdown(registers_of(group.graph), 0)
            return waiting * max(work, _from_memory(group, target))
    elif _is_plain(group, plan.multi_nest, target):
        return _stitched_seconds(group, plan, target)
    else:
        return _joined_seconds(group, plan, plan.multi_nest, target)
    return max(work, _from_memory(group, target))


def _work(group: Group, plan: Schedule, target: Target) -> float:
    """Of a kernel of one iteration space, what its bytes and operations take in truth.

    Where one pass over rows computes more than it reads, the fold at its end hides behind that:
    its operations take as long as where nothing is folded.
    """
    machine, between = target.machine, _between(plan, target)
    if plan.composition is Composition.THREAD:
        return machine.elementwise_factor * (plan.seconds + between)
    if plan.composition is Composition.ROW and len(plan.stages) == 1:
        moved = machine.reduction_factor * target.moving(least_bytes(group.graph))
        return (
            max(machine.elementwise_factor * plan.seconds, moved)
            + machine.reduction_factor * between
        )
    return machine.reduction_factor * (plan.seconds + between)


def _joined_seconds(group: Group, plan: Schedule, multi_nest: MultiNest, target: Target) -> float:
    """Of a stitched kernel with products: what one thread takes, as of those that it stands for.

    How evenly tiles are shared out is left out, as libraries' products and rows are in tiles too.
    """
    machine, tiles = target.machine, multi_nest.tiles
    work = plan.seconds / imbalance(tiles) if isinstance(tiles, int) and tiles else plan.seconds
    own = sum(p.schedule.seconds for p in multi_nest.parts if p.schedule is not None)
    work -= (1 - machine.reduction_factor) * min(own, work)
    work += sum(matrices_of(n) for n in group.ops) * machine.matrix_seconds
    return work + machine.memory_factor * _from_memory(group, target)


def _stitched_seconds(group: Group, plan: Schedule, target: Target) -> float:
    """Of a stitched kernel without products: its operations, or what it moves, as of any kernel.

    What its parts pass on stays in a core's first cache. Too few tiles leave threads without work.
    """
    assert plan.multi_nest is not None
    machine, parts, tiles = target.machine, plan.multi_nest.parts, plan.multi_nest.tiles
    if not isinstance(tiles, int) or not tiles:
        return 0.0
    work = sum(_part_seconds(group, p, plan.multi_nest, target) for p in parts)
    folds = any(_folds(group, p) for p in parts)
    moved = (machine.reduction_factor if folds else machine.elementwise_factor) * target.moving(
        least_bytes(group.graph)
    )
    total = (
        max(work, moved, _from_memory(group, target)) + tiles * len(parts) * machine.nest_seconds
    )
    total *= target.slowdown(target.tiling.free_registers, guessed(plan.multi_nest.scratch, USUAL))
    return total * max(1.0, machine.min_tiles / tiles) if total >= target.parallel else total


def _part_seconds(group: Group, part: TileNest, multi_nest: MultiNest, target: Target) -> float:
    """Of a part of a stitched kernel: as a kernel, but for memory; as often as tiles compute it."""
    assert part.schedule is not None
    again = 1.0
    for k in part.results:
        region, whole = multi_nest.region(k), numel(known_shape(group.graph.nodes[k].entries[0]))
        if region is not None and isinstance(whole, int) and whole:
            points = numel(region.length(j) for j in range(len(region.shape))) * multi_nest.tiles
            again = max(again, points / whole if isinstance(points, int) else 1.0)
    if _folds(group, part):
        own = part.schedule.seconds + _between(part.schedule, target)
        return again * target.machine.reduction_factor * own
    points = numel(a.extent for a in part.schedule.axes)
    nodes = [n for k in part.nodes if not is_leaf(n := group.graph.nodes[k])]
    each = sum(target.expensive if is_expensive(n) else target.light for n in nodes)
    each *= _idle(part.schedule, target)
    return (
        again * target.machine.elementwise_factor * each * points
        if isinstance(points, int)
        else 0.0
    )


def _is_plain(group: Group, multi_nest: MultiNest, target: Target) -> bool:
    """Return whether parts have no products, and read in the order in which they write."""
    return all(p.schedule is not None for p in multi_nest.parts) and are_orderly(group.ops, target)


def _folds(group: Group, part: TileNest) -> bool:
    return any(reduced_axes_of(group.graph.nodes[k]) is not None for k in part.nodes)


def _crowded(group: Group, target: Target) -> float:
    """How much longer a loop takes that walks through many arrays at a time."""
    found = [*(n.entries[0] for n in group.graph.inputs), *group.graph.outputs]
    large = sum(numel(known_shape(e)) not in (0, 1) for e in found)
    return 1.0 + target.machine.stream_cost * max(0, large - target.machine.streams)


def product_of(group: Group) -> Contract | None:
    """The product of matrices that a group is, if it is one of a library."""
    return contract_of(group.ops[0]) if len(group.ops) == 1 else None


def library_seconds(group: Group, product: Contract, target: Target) -> float:
    """Seconds that a library takes for a product of matrices, 0 where sizes are unknown.

    Where all have the same right operand, they are one.
    """
    node, machine = group.ops[0], target.machine
    rows, columns, steps = (
        n if isinstance(n, int) else 0 for n in (product.m, product.n, product.k)
    )
    matrices = matrices_of(node)
    if not matrices * steps:
        return 0.0
    calls = 1 if len(known_shape(node.inputs[1])) == 2 else matrices
    wide = -(-columns // machine.library_columns) * machine.library_columns
    nbytes = least_bytes(group.graph)
    moved = nbytes / (
        target.bandwidth * next(f for most, f in machine.library_caches if nbytes < most)
    )
    return (
        matrices * rows * wide * steps / machine.library_steps
        + calls * machine.library_call_seconds
        + moved
    )


def matrices_of(node: Node) -> int:
    """How many matrices a product makes; none where sizes are unknown."""
    found = contract_of(node)
    if found is None:
        return 0
    points, each = numel(known_shape(node.entries[0])), found.m * found.n
    return points // each if isinstance(points, int) and isinstance(each, int) and each else 0


def _from_memory(group: Group, target: Target) -> float:
    """Seconds until what is too much for caches has been read and written."""
    nbytes, machine = least_bytes(group.graph), target.machine
    return (
        nbytes / (machine.memory_factor * target.bandwidth) if nbytes >= machine.llc_bytes else 0.0
    )


def _lanes(schedule: Schedule) -> tuple[int, int]:
    """How often lanes run through a row, or a tile's part of it, and how many points that has."""
    loops = TileLoops(schedule.domain, schedule)
    lane = loops.lane
    aside = (lane, loops.few)
    times = numel(a.steps for a in schedule.axes if a not in aside and not a.counting)
    width = lane.steps if schedule.width is None else schedule.width
    assert isinstance(times, int) and isinstance(lane.steps, int) and isinstance(width, int)
    length = min(max(1, width), max(1, lane.steps))
    return times * -(-lane.steps // length), length


def _idle(schedule: Schedule, target: Target) -> float:
    """How much longer the work takes because vectors of lanes are not full."""
    _, length = _lanes(schedule)
    if schedule.composition is Composition.SHORT:
        return 1.0
    return -(-length // target.lanes) * target.lanes / length


def _between(schedule: Schedule, target: Target) -> float:
    """Seconds between the passes of a kernel over its rows, and at the ends of their folds."""
    return _lanes(schedule)[0] * row_seconds(schedule, schedule.domain.axes[-1].reduced, target)
