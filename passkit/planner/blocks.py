"""Plans of stitched kernels on GPUs: the threads of a block, and the maps of its parts.

What is planned is a matter of instructions: a product needs a load of shared memory for each
operand of a fused multiply-add, and register blocks share these loads among many. So the maps are
those with the fewest instructions of all warps. The order in which the elements of a row are summed
follows from its length alone, and a product adds in the order of its steps, whatever the map.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice

from attrs import evolve, frozen

from passkit.analysis.group import Group
from passkit.diagnostics import Diagnostic
from passkit.ir.loop import WARP
from passkit.planner.multi_nest import first, multi_nest_schedules
from passkit.schedule.block import BlockMap, BlockSchedule, PointMap, ProductMap, RowMap
from passkit.schedule.block_legality import SHARED_NBYTES, check_block
from passkit.schedule.block_memory import vector_of, with_arrays
from passkit.schedule.block_nest import (
    VECTOR,
    BlockNest,
    BlockPart,
    PointPart,
    ProductPart,
    RowPart,
)
from passkit.schedule.limits import resident_blocks
from passkit.schedule.schedule import Schedule, Source
from passkit.target import Target
from passkit.transforms.block_parts import block_nest
from passkit.values.memo import UncachedArgument

THREADS = tuple(range(2 * WARP, 8 * WARP + 1, WARP))
"""The numbers of threads of a block that are tried."""
EARLY_NBYTES = 32 << 10
"""The bytes of shared memory of a block up to which all operands have memory of their own."""
MULTIPROCESSOR_NBYTES = 160 << 10
"""The bytes of shared memory of a multiprocessor that schedules count on."""
REGISTERS = 112
"""The registers of a thread for the elements of a product and its operands, at most."""
STEP_PRODUCTS = 128
"""The fused multiply-adds of a thread in an iteration of the loop, at least."""
ROW_VECTORS = 6
"""The vectors of a row that a thread has, if more threads can share it."""
MOST_VECTORS = 8
"""The vectors of a row that a thread has at most."""
SIDES = (1, 2, 3, 4, 6, 8, 12)
"""The rows, or columns, of a register block."""
TILINGS = 24
"""The tilings that are tried where that of the model has no maps."""
SLOWER = 1.5
"""How many times the seconds of the model's tiling one of these may take, by the model."""
OF_LARGE_TILES = ("block.registers", "memory.shared")
"""The codes of reasons that smaller tiles can remove."""
FEW_WARPS = 3
"""With so many warps on a multiprocessor half of the instructions wait for others."""
POINT = 64
"""The instructions, and the registers, of a thread for one point of its own, about."""
STEP = 8
"""The instructions of an iteration of a point's serial loop, about."""
MOST_POINTS = 4096
"""The points of a tile that threads compute one by one, at most."""
LATENCY = 256
"""The instructions in the time of which the accesses of a point's values return, about."""
POINT_STEPS = 8
"""The iterations of such a loop that a thread has at least."""
IDLE = 8
"""An idle thread counts as this fraction of one that computes."""


def with_block(group: Group, schedule: Schedule, target: Target) -> Schedule:
    """Return the schedule of a stitched group with the maps of its parts, for a GPU.

    Where there are none, ``no_nest`` is the reason. Any other schedule is returned as it is, and so
    is one that was measured or is the user's.

    Args:
        group: the group.
        schedule: its schedule.
        target: the target.
    """
    if not target.nests or target.name == "blocks" or schedule.multi_nest is None:
        return schedule
    if schedule.source is not Source.MODEL:
        return schedule
    return _with_block(group.key, schedule, target, UncachedArgument(group))


@lru_cache(maxsize=1024)
def _with_block(
    key: str, schedule: Schedule, target: Target, held: UncachedArgument[Group]
) -> Schedule:
    """Return the schedule with the maps of its parts; ``key`` is that of the group."""
    plan = _planned(held.value, schedule, target)
    if not isinstance(plan, Diagnostic):
        return plan
    if plan.code not in OF_LARGE_TILES:
        return evolve(schedule, no_nest=plan)
    best: Schedule | None = None
    for other in islice(multi_nest_schedules(held.value, target, first), TILINGS):
        if not isinstance(other, Schedule) or other.seconds > SLOWER * schedule.seconds:
            continue
        if best is None or other.seconds < best.seconds:
            candidate = _planned(held.value, other, target)
            best = candidate if isinstance(candidate, Schedule) else best
    return evolve(schedule, no_nest=plan) if best is None else best


def _planned(group: Group, schedule: Schedule, target: Target) -> Schedule | Diagnostic:
    """Return a schedule with the maps of its parts, or why there are none for its tiling."""
    nest = block_nest(group, schedule)
    if isinstance(nest, Diagnostic):
        return nest
    problem = Diagnostic("block.registers")
    for name, rule in RULES:
        plan = rule(nest, target)
        reason = plan if isinstance(plan, Diagnostic) else check_block(plan, nest, target)
        if reason is None:
            assert isinstance(plan, BlockSchedule)
            return evolve(schedule, block=plan, rule=name)
        problem = reason
    return problem


def dot_tile(nest: BlockNest, target: Target) -> BlockSchedule | Diagnostic:
    """Return the schedule with the fewest instructions, or why there is none.

    Args:
        nest: the parts of a stitched kernel.
        target: the GPU.
    """
    for b in nest.shared:
        if not isinstance(b.extent, int):
            return Diagnostic("domain.extent", {"axis": b.name, "extent": b.extent})
    best: tuple[float, BlockSchedule] | None = None
    problem = Diagnostic("block.registers")
    for threads in THREADS:
        maps: list[BlockMap] = []
        total = 0.0
        for part in nest.parts:
            candidate = _map_of(nest, part, threads)
            if candidate is None:
                break
            total += candidate[0]
            maps.append(candidate[1])
        if len(maps) < len(nest.parts):
            continue
        plan = _with_memory(nest, threads, tuple(maps), target)
        if isinstance(plan, Diagnostic):
            problem = plan
            continue
        warps = plan.blocks * threads // WARP
        cost = total * (warps + FEW_WARPS) / warps
        if best is None or cost < best[0]:
            best = cost, plan
    return problem if best is None else best[1]


def _map_of(nest: BlockNest, part: BlockPart, threads: int) -> tuple[float, BlockMap] | None:
    """Return the map of a part for so many threads, and its instructions; None if it has none."""
    if isinstance(part, ProductPart):
        return _product_map(nest, part, threads)
    if isinstance(part, RowPart):
        return _row_map(part, threads)
    return _point_map(part, threads)


def _point_map(part: PointPart, threads: int) -> tuple[float, PointMap] | None:
    """Return the map of a part whose points belong to threads, and its instructions.

    None if there are so many points that accesses of single elements would take long. The threads
    of a point, at most a warp for rows of few points, are as many in any tile: they follow from the
    length of a whole row.
    """
    if part.rows * part.columns > MOST_POINTS:
        return None
    lanes = 1
    length = part.length if isinstance(part.length, int) else WARP
    most = min(WARP // length, part.steps // POINT_STEPS)
    while lanes * 2 <= most:
        lanes *= 2
    passes = -(-part.rows * part.columns * lanes // threads)
    each = threads / WARP * (POINT + part.steps // lanes * STEP)
    return passes * (each + LATENCY), PointMap(lanes)


# Products.


@frozen
class _Side:
    """The rows or columns of a register block: how many, and the loads for one step."""

    size: int
    loads: float
    registers: int


def _sides(is_along: bool, steps: int) -> Iterator[_Side]:
    """Yield the sides of a register block for an operand.

    ``is_along`` says that its elements follow each other along ``steps``.
    """
    for size in SIDES:
        if is_along:
            at_once = min(VECTOR, steps)
            yield _Side(size, size / at_once if steps >= VECTOR else size, size * at_once)
        else:
            yield _Side(size, size / vector_of(size), size)


def _product_map(
    nest: BlockNest, part: ProductPart, threads: int
) -> tuple[float, ProductMap] | None:
    """Return the map of a product with the fewest instructions, and their number."""
    best: tuple[float, ProductMap] | None = None
    steps = part.steps
    for rows in _sides(part.a.is_along, steps):
        for columns in _sides(part.b.is_along, steps):
            down, across = -(-part.rows // rows.size), -(-part.columns // columns.size)
            products = rows.size * columns.size
            if products + rows.registers + columns.registers > REGISTERS:
                continue
            used_threads = part.heads * down * across
            if used_threads > threads:
                continue
            step = min(steps, max(VECTOR, -(-STEP_PRODUCTS // products // VECTOR) * VECTOR))
            warps = -(-used_threads // WARP)
            used = warps + (threads / WARP - warps) / IDLE
            each = steps * (products + rows.loads + columns.loads) + 6 * steps / step
            cost = used * (each + products / vector_of(columns.size) + 25)
            if best is None or cost < best[0]:
                best = cost, ProductMap(rows.size, columns.size, down, across, step)
    return best


# Rows.


def _row_map(part: RowPart, threads: int) -> tuple[float, RowMap] | None:
    """Return the map of a part with rows and its instructions; None if rows are too long.

    A row that is reduced has as many threads in any tile.
    """
    vector = part.vector
    vectors = -(-part.length // vector)
    counts = [n for n in (1, 2, 4, 8, 16, WARP) if n < 2 * vectors]
    if part.is_reduced:
        lanes = next((n for n in counts if vectors <= n * ROW_VECTORS), WARP)
        if vectors > lanes * MOST_VECTORS:
            return None
        counts = [lanes]
    costs = []
    for lanes in counts:
        used = min(threads, -(-part.rows * lanes // WARP) * WARP)
        own, passes = -(-vectors // lanes), -(-part.rows * lanes // used)
        each = own * vector * 16 + 70 if part.is_reduced else own * 14
        if own <= 4 * MOST_VECTORS:
            costs.append((passes * used / WARP * each, -lanes))  # side by side, if it may be
    if not costs:
        return None
    cost, lanes = min(costs)
    return cost, RowMap(-lanes, vector)


# Memory.


def _with_memory(
    nest: BlockNest, threads: int, maps: tuple[BlockMap, ...], target: Target
) -> BlockSchedule | Diagnostic:
    """Return the schedule of these maps, or that a block has too little shared memory."""
    plan = with_arrays(nest, BlockSchedule(threads, 1, maps, is_early=True))
    if plan.shared_nbytes > EARLY_NBYTES:
        plan = with_arrays(nest, evolve(plan, is_early=False))
    if plan.shared_nbytes > SHARED_NBYTES:
        data = {"nbytes": plan.shared_nbytes, "limit": SHARED_NBYTES}
        return Diagnostic("memory.shared", data)
    blocks = min(
        MULTIPROCESSOR_NBYTES // (plan.shared_nbytes + 1024),
        resident_blocks(threads, max(_registers(nest, maps)), target.limits),
    )
    return evolve(plan, blocks=max(1, blocks))


def _registers(nest: BlockNest, maps: Iterable[BlockMap]) -> Iterator[int]:
    """Yield the registers of a thread that each part needs, about."""
    for part, own in zip(nest.parts, maps, strict=True):
        if isinstance(own, ProductMap):
            yield own.rows * own.columns + VECTOR * (own.rows + own.columns) + 40
        elif isinstance(own, PointMap):
            yield POINT
        else:
            assert isinstance(part, RowPart)
            yield 3 * VECTOR * -(-part.length // (part.vector * own.lanes)) + 48


RULES = (("dot_tile", dot_tile),)
"""The rules for stitched kernels by name, in the order in which they are tried."""
