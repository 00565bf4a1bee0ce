"""The cost model: seconds of schedules, kernels and library calls on one thread.

`Schedule.seconds` is the roofline time of the work of a group. `schedule_cost` adds the starts of
tiles and rows, idle vector positions, idle threads and idle multiprocessors; it compares schedules
of one group. `kernel_cost` compares groups: it applies the correction factors of the target's
`MachineModel`, which cancel out between schedules of one group.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from passkit.analysis.domain import reduced_axes_of
from passkit.analysis.group import Group
from passkit.analysis.nests import contract_of
from passkit.analysis.ordered_accesses import read_in_order
from passkit.analysis.recompute import is_expensive
from passkit.analysis.register_pressure import register_pressure
from passkit.analysis.tilemap import guessed
from passkit.ast.folds import Contract
from passkit.graph.node import Node, is_leaf, known_shape
from passkit.schedule.idle import NO_WORK, Grid, Work, busy_seconds, grid_of, tile_grid, total_work
from passkit.schedule.nest_info import USUAL
from passkit.schedule.phases import groups_of_parts
from passkit.schedule.roofline import least_bytes, operations_seconds, waiting_seconds
from passkit.schedule.schedule import MultiNest, Schedule, TileNest
from passkit.schedule.tile_costs import imbalance, row_seconds
from passkit.schedule.tile_loops import TileLoops, tiles_of
from passkit.schedule.tiling import Composition
from passkit.target import Target
from passkit.values.size import numel


def schedule_cost(group: Group, schedule: Schedule, target: Target) -> float:
    """Return the seconds of a schedule of ``group``, 0 if sizes are unknown."""
    if schedule.multi_nest is not None:
        return schedule.seconds
    if schedule.phase_outputs:
        pairs = zip(groups_of_parts(group, schedule), schedule.parts, strict=True)
        costs = [schedule_cost(part, plan, target) for part, plan in pairs]
        barriers = (len(schedule.phase_outputs) - 1) * target.meeting
        return sum(costs) + barriers if all(costs) else 0.0
    if schedule.parts:
        return _pack_cost(group, schedule, target)
    load = _load(group, schedule, target)
    return 0.0 if load is None else busy_seconds(*load, target)


def _load(group: Group, schedule: Schedule, target: Target) -> tuple[Work, float, Grid] | None:
    """Return the work of one loop nest, the seconds of its bytes, and its blocks.

    None if sizes are unknown.
    """
    tiles = tiles_of(schedule)
    if not schedule.seconds or not isinstance(tiles, int) or not tiles:
        return None
    work = schedule.seconds * _vector_waste(schedule, target)
    total = work + tiles * target.machine.tile_seconds + _row_overhead(schedule, target)
    if total >= target.parallel and not target.machine.in_flight_bytes:
        total *= imbalance(tiles)
    waiting = waiting_seconds(group.graph, target)
    return Work(total, waiting), _moving(group, target), grid_of(group, schedule, target)


def _pack_cost(group: Group, schedule: Schedule, target: Target) -> float:
    """Return the seconds of parts that run side by side, 0 if sizes are unknown.

    Their blocks keep a GPU busy together; a part takes no less than it does by itself.
    """
    pairs = zip(groups_of_parts(group, schedule), schedule.parts, strict=True)
    works, moving, grid, longest = list[Work](), 0.0, Grid(0, 0), 0.0
    for part, plan in pairs:
        load = _load(part, plan, target)
        if load is None:
            return 0.0
        works.append(load[0])
        moving, grid = moving + load[1], grid + load[2]
        longest = max(longest, busy_seconds(*load, target))
    return max(longest, busy_seconds(total_work(works), moving, grid, target))


def kernel_cost(group: Group, schedule: Schedule, target: Target) -> float:
    """Return the seconds of a kernel for comparison with other groups, 0 if sizes are unknown."""
    machine, multi_nest = target.machine, schedule.multi_nest
    seconds = schedule_cost(group, schedule, target)
    if not seconds or schedule.parts:
        return machine.reduction_factor * seconds
    if multi_nest is not None:
        if _reads_in_order(group, multi_nest, target):
            return _nests_seconds(group, multi_nest, target)
        return _nests_seconds_with_products(group, schedule, multi_nest, target)
    work = _work(group, schedule, target) * _stream_slowdown(group, target)
    work = max(work, _memory_seconds(group, target))
    if target.limits.shared:
        work *= target.slowdown(register_pressure(group.graph), 0)
    own = Work(work, waiting_seconds(group.graph, target))
    return busy_seconds(own, _moving(group, target), grid_of(group, schedule, target), target)


def _work(group: Group, schedule: Schedule, target: Target) -> float:
    """Return the corrected seconds of the bytes and operations of a single-nest kernel.

    A single traversal of rows that computes longer than it loads hides the reduction at its end.
    """
    machine, overhead = target.machine, _row_overhead(schedule, target)
    if schedule.composition is Composition.THREAD:
        return machine.elementwise_factor * (schedule.seconds + overhead)
    if schedule.composition is Composition.ROW and len(schedule.stages) == 1:
        moved = machine.reduction_factor * target.moving(least_bytes(group.graph))
        return (
            max(machine.elementwise_factor * schedule.seconds, moved)
            + machine.reduction_factor * overhead
        )
    return machine.reduction_factor * (schedule.seconds + overhead)


def _nests_seconds_with_products(
    group: Group, schedule: Schedule, multi_nest: MultiNest, target: Target
) -> float:
    """Return the seconds of a multi-nest kernel that has matrix products or reads out of order.

    Idle threads of a CPU are left out, as the costs of library products and of rows leave them out,
    too. Idle multiprocessors count, also in the seconds of the schedule.
    """
    machine, tiles = target.machine, multi_nest.tiles
    work = schedule.seconds
    if isinstance(tiles, int) and tiles and not machine.in_flight_bytes:
        work /= imbalance(tiles)
    nests = sum(p.schedule.seconds for p in multi_nest.nests if p.schedule is not None)
    work -= (1 - machine.reduction_factor) * min(nests, work)
    grid = tile_grid(tiles, target)
    matrices = Work(sum(matrices_of(n) for n in group.ops) * machine.matrix_seconds)
    work += busy_seconds(matrices, 0.0, grid, target)
    far = machine.memory_factor * _memory_seconds(group, target)
    return work + busy_seconds(Work(far, waiting=far), far, grid, target)


def _nests_seconds(group: Group, multi_nest: MultiNest, target: Target) -> float:
    """Return the seconds of a multi-nest kernel without matrix products that reads in order.

    Values between the nests stay in the first-level cache. A kernel of few tiles leaves threads
    idle. What the blocks of a GPU read again, for values that several compute, comes from its
    second cache.
    """
    machine, nests, tiles = target.machine, multi_nest.nests, multi_nest.tiles
    if not isinstance(tiles, int) or not tiles:
        return 0.0
    work = total_work(_nest_work(group, p, multi_nest, target) for p in nests)
    has_reductions = any(_reduces(group, p) for p in nests)
    factor = machine.reduction_factor if has_reductions else machine.elementwise_factor
    moved = factor * target.moving(least_bytes(group.graph))
    seconds = max(work.seconds, moved, _memory_seconds(group, target))
    seconds += sum(_rereading(group, p, multi_nest, target) for p in nests)
    waiting = seconds - (work.seconds - work.waiting)
    total = seconds + tiles * len(nests) * machine.nest_seconds
    slowdown = target.slowdown(target.tiling.free_registers, guessed(multi_nest.scratch, USUAL))
    total *= slowdown
    if machine.in_flight_bytes:
        own = Work(total, waiting * slowdown)
        return busy_seconds(own, _moving(group, target), tile_grid(tiles, target), target)
    return total * max(1.0, machine.min_tiles / tiles) if total >= target.parallel else total


def _nest_work(group: Group, nest: TileNest, multi_nest: MultiNest, target: Target) -> Work:
    """Return the work of one nest, with the values that several tiles compute.

    What blocks of a GPU read again is left out: see `_rereading`.
    """
    assert nest.schedule is not None
    repeats = _repeats(group, nest, multi_nest)
    if _reduces(group, nest):
        seconds = nest.schedule.seconds + _row_overhead(nest.schedule, target)
        waiting = target.machine.reduction_factor * _waiting(group, nest, target)
        repeated = Work(seconds).times(repeats * target.machine.reduction_factor)
        return repeated + Work(-(repeats - 1.0) * waiting, waiting)
    points = numel(a.extent for a in nest.schedule.axes)
    nodes = [n for k in nest.nodes if not is_leaf(n := group.graph.nodes[k])]
    per_point = sum(target.expensive if is_expensive(n) else target.light for n in nodes)
    per_point *= _vector_waste(nest.schedule, target)
    if not isinstance(points, int):
        return NO_WORK
    return Work(repeats * target.machine.elementwise_factor * per_point * points)


def _repeats(group: Group, nest: TileNest, multi_nest: MultiNest) -> float:
    """Return how often all tiles together compute the values of a nest."""
    repeats = 1.0
    for k in nest.results:
        layout, size = multi_nest.layout(k), numel(known_shape(group.graph.nodes[k].entries[0]))
        if layout is not None and isinstance(size, int) and size:
            points = layout.tile_map.elements * multi_nest.tiles
            repeats = max(repeats, points / size if isinstance(points, int) else 1.0)
    return repeats


def _waiting(group: Group, nest: TileNest, target: Target) -> float:
    """Return the seconds in which a nest of several only waits for memory; 0 but on GPUs."""
    assert nest.schedule is not None
    if not target.machine.in_flight_bytes:
        return 0.0
    operations = operations_seconds((group.graph.nodes[k] for k in nest.nodes), target)
    return max(0.0, nest.schedule.seconds - operations)


def _rereading(group: Group, nest: TileNest, multi_nest: MultiNest, target: Target) -> float:
    """Return the seconds in which blocks of a GPU read again what others read for a nest."""
    return (_repeats(group, nest, multi_nest) - 1.0) * _waiting(group, nest, target)


def _reads_in_order(group: Group, multi_nest: MultiNest, target: Target) -> bool:
    """Return whether no nest is a matrix product, and all read in the order in which they write."""
    return all(p.schedule is not None for p in multi_nest.nests) and read_in_order(
        group.ops, target
    )


def _reduces(group: Group, nest: TileNest) -> bool:
    """Return whether a nest has a reduction."""
    return any(reduced_axes_of(group.graph.nodes[k]) is not None for k in nest.nodes)


def _stream_slowdown(group: Group, target: Target) -> float:
    """Return the factor of a loop that accesses more arrays at a time than the machine prefetches.

    Scalars and empty arrays do not count.
    """
    entries = [*(n.entries[0] for n in group.graph.inputs), *group.graph.outputs]
    arrays = sum(numel(known_shape(e)) not in (0, 1) for e in entries)
    return 1.0 + target.machine.stream_cost * max(0, arrays - target.machine.streams)


def launch_seconds(seconds: float, target: Target) -> float:
    """Return the seconds of a kernel's launch, and of the barrier of its threads if it is long.

    ``seconds`` are those of the kernel.
    """
    return target.launch + (target.meeting if seconds > target.parallel else 0.0)


def most_saved(costs: Iterable[float], nbytes: int, target: Target) -> float:
    """Return what one kernel in place of several saves at most: launches, and bytes between them.

    Args:
        costs: the seconds of the kernels.
        nbytes: the bytes that they write and read for each other.
        target: the machine.
    """
    launches = sorted(launch_seconds(c, target) for c in costs)
    return sum(launches[:-1]) + nbytes / target.bandwidth


def saved_by_packing(costs: Sequence[float], target: Target) -> float:
    """Return the seconds that short kernels save side by side: launches, barriers, and time.

    Values in caches take less to read than by the cost model, and each of the kernels alone is too
    short for several threads. ``costs`` are the seconds of the kernels.
    """
    saved = (len(costs) - 1) * target.launch
    if sum(costs) > 2 * target.parallel:
        short = [s for s in costs if s <= target.parallel]
        saved += (len(costs) - len(short)) * target.meeting
        saved += sum(short) / target.fusion.pack_cache_factor
    return saved


def peak_seconds(growth: int, target: Target) -> float:
    """Return the seconds that ``growth`` more bytes at the peak count: caches do not hold them."""
    return target.machine.peak_byte_weight * target.moving(growth) if growth else 0.0


def product_of(group: Group) -> Contract | None:
    """Return the matrix product that a group consists of; None for another group."""
    return contract_of(group.ops[0]) if len(group.ops) == 1 else None


def library_cost(group: Group, product: Contract, target: Target) -> float:
    """Return the seconds of a library for a matrix product, 0 if sizes are unknown.

    A batch with one right operand is one call.

    Args:
        group: the group, which consists of the product.
        product: its sizes.
        target: the machine.
    """
    node, machine = group.ops[0], target.machine
    rows, columns, steps = (
        n if isinstance(n, int) else 0 for n in (product.m, product.n, product.k)
    )
    matrices = matrices_of(node)
    if not matrices * steps:
        return 0.0
    calls = 1 if len(known_shape(node.inputs[1])) == 2 else matrices
    padded_columns = -(-columns // machine.library_columns) * machine.library_columns
    nbytes = least_bytes(group.graph)
    share = next(share for limit, share in machine.library_caches if nbytes < limit)
    return (
        matrices * rows * padded_columns * steps / machine.library_steps
        + calls * machine.library_call_seconds
        + nbytes / (target.bandwidth * share)
    )


def matrices_of(node: Node) -> int:
    """Return the number of matrices that a product computes; 0 for others and unknown sizes."""
    contract = contract_of(node)
    if contract is None:
        return 0
    points, size = numel(known_shape(node.entries[0])), contract.m * contract.n
    return points // size if isinstance(points, int) and isinstance(size, int) and size else 0


def _memory_seconds(group: Group, target: Target) -> float:
    """Return the seconds to move the bytes of a group from memory; 0 if caches hold them."""
    nbytes, machine = least_bytes(group.graph), target.machine
    return (
        nbytes / (machine.memory_factor * target.bandwidth) if nbytes >= machine.llc_bytes else 0.0
    )


def _moving(group: Group, target: Target) -> float:
    """Return the seconds to move the bytes of a group, from caches if they hold them."""
    return max(target.moving(least_bytes(group.graph)), _memory_seconds(group, target))


def _vector_loop(schedule: Schedule) -> tuple[int, int]:
    """Return how often the vector loop of a single-nest kernel runs, and its iterations."""
    loops = TileLoops(schedule.domain, schedule)
    axis = loops.vector_axis
    others = [
        a for a in schedule.axes if a not in (axis, loops.unrolled_axis) and not a.is_chunk_axis
    ]
    runs = numel(a.length for a in others)
    width = axis.length if schedule.width is None else schedule.width
    assert isinstance(runs, int) and isinstance(axis.length, int) and isinstance(width, int)
    iterations = min(max(1, width), max(1, axis.length))
    return runs * -(-axis.length // iterations), iterations


def _vector_waste(schedule: Schedule, target: Target) -> float:
    """Return the factor of work that the empty positions of the last vector of a loop add."""
    _, iterations = _vector_loop(schedule)
    if schedule.composition is Composition.SHORT:
        return 1.0
    return -(-iterations // target.lanes) * target.lanes / iterations


def _row_overhead(schedule: Schedule, target: Target) -> float:
    """Return the seconds between the stages of rows, and at the ends of their reductions."""
    runs, _ = _vector_loop(schedule)
    return runs * row_seconds(schedule, schedule.domain.axes[-1].reduced, target)
