"""Plans of stitched kernels on GPUs: the threads of a block, and the maps of its parts.

What is planned is a matter of instructions: a product needs a load of shared memory for each
operand of a fused multiply-add, and register blocks share these loads among many. So the maps are
those with the fewest instructions of all warps. The order in which the elements of a row are summed
follows from its length alone, and a product adds in the order of its steps, whatever the map.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice

from attrs import evolve

from passkit.analysis.group import Group
from passkit.diagnostics import Diagnostic
from passkit.ir.loop import WARP
from passkit.ir.pack import STATIC_SHARED_NBYTES
from passkit.planner.block_maps import POINT, UNROLL, map_of
from passkit.planner.multi_nest import first, multi_nest_schedules
from passkit.schedule.block import BlockMap, BlockSchedule, PointMap, ProductMap
from passkit.schedule.block_legality import check_block
from passkit.schedule.block_memory import copies_of, with_arrays
from passkit.schedule.block_nest import (
    VECTOR,
    BlockNest,
    ProductPart,
    RowPart,
)
from passkit.schedule.limits import resident_blocks
from passkit.schedule.schedule import Schedule
from passkit.target import Target
from passkit.transforms.block_parts import block_nest
from passkit.values.memo import UncachedArgument

THREADS = tuple(range(2 * WARP, 8 * WARP + 1, WARP))
"""The numbers of threads of a block that are tried."""
EARLY_NBYTES = 32 << 10
"""The bytes of shared memory of a block up to which all operands have memory of their own."""
MULTIPROCESSOR_NBYTES = 160 << 10
"""The bytes of shared memory of a multiprocessor that schedules count on."""
TILINGS = 24
"""The tilings that are tried where that of the model has no maps."""
SLOWER = 1.5
"""How many times the seconds of the model's tiling one of these may take, both with a launch."""
OF_LARGE_TILES = ("block.registers", "memory.shared")
"""The codes of reasons against maps that smaller tiles can remove."""
FEW_WARPS = 3
"""With so many warps on a multiprocessor half of the instructions wait for others."""
CHUNKS = (128, 64, 32, 16, 8, 4)
"""The steps of a product of which operands may be copied at a time, where all have no room."""
COPIED_NBYTES = (32 << 10, 24 << 10, 16 << 10, 8 << 10, 4 << 10)
"""The bytes of such copies that are tried."""

Rule = Callable[[BlockNest, Target], "BlockSchedule | Diagnostic"]
"""A rule for the maps of the parts of a kernel."""


def mapped(group: Group, schedule: Schedule, target: Target) -> Schedule:
    """Return the schedule of a stitched group with the maps of its parts, for a GPU.

    Where there are none, ``no_nest`` is the reason.
    """
    return _with_block(group.key, schedule, target, UncachedArgument(group))


@lru_cache(maxsize=1024)
def _with_block(
    key: str, schedule: Schedule, target: Target, held: UncachedArgument[Group]
) -> Schedule:
    """Return the schedule with the maps of its parts; ``key`` is that of the group."""
    nest = block_nest(held.value, schedule)
    others: list[tuple[Schedule, BlockNest]] | None = None
    reason = nest if isinstance(nest, Diagnostic) else None
    for name, rule in RULES:
        if not isinstance(nest, Diagnostic):
            plan = _mapped(name, rule, schedule, nest, target)
            if not isinstance(plan, Diagnostic):
                return plan
            reason = reason or plan
            if plan.code not in OF_LARGE_TILES:
                break
        if others is None:
            others = list(_other_tilings(held.value, schedule, target))
        best: Schedule | None = None
        for other, own in others:
            if best is None or other.seconds < best.seconds:
                candidate = _mapped(name, rule, other, own, target)
                best = candidate if isinstance(candidate, Schedule) else best
        if best is not None:
            return best
    return evolve(schedule, no_nest=reason)


def _other_tilings(
    group: Group, schedule: Schedule, target: Target
) -> Iterator[tuple[Schedule, BlockNest]]:
    """Yield the schedules of other tilings that do not take much longer, with their parts."""
    most = SLOWER * (schedule.seconds + target.launch) - target.launch
    for other in islice(multi_nest_schedules(group, target, first), TILINGS):
        if not isinstance(other, Schedule) or other.seconds > most:
            continue
        nest = block_nest(group, other)
        if not isinstance(nest, Diagnostic):
            yield other, nest


def _mapped(
    name: str, rule: Rule, schedule: Schedule, nest: BlockNest, target: Target
) -> Schedule | Diagnostic:
    """Return a schedule with the maps of its parts, or why there are none for its tiling.

    Args:
        name: the name of the rule.
        rule: the rule for the maps.
        schedule: the schedule.
        nest: its parts.
        target: the GPU.
    """
    plan = rule(nest, target)
    reason = plan if isinstance(plan, Diagnostic) else check_block(plan, nest, target)
    if reason is not None:
        return reason
    assert isinstance(plan, BlockSchedule)
    return evolve(schedule, block=plan, rule=name)


def dot_tile(nest: BlockNest, target: Target) -> BlockSchedule | Diagnostic:
    """Return the schedule with the fewest instructions, or why there is none.

    Args:
        nest: the parts of a stitched kernel.
        target: the GPU.
    """
    return _fewest_instructions(nest, target, (None,))


def dot_tile_in_chunks(nest: BlockNest, target: Target) -> BlockSchedule | Diagnostic:
    """Return the one in which products copy some steps of their operands at a time.

    The arguments are those of `dot_tile`.
    """
    return _fewest_instructions(nest, target, COPIED_NBYTES)


def dot_tile_flat(nest: BlockNest, target: Target) -> BlockSchedule | Diagnostic:
    """Return the one in which arrays have no room for more rows and columns than there are.

    So few rows of many elements take less memory. The arguments are those of `dot_tile`.
    """
    plan = _fewest_instructions(nest.with_flat_arrays(), target, (None, *COPIED_NBYTES))
    if isinstance(plan, Diagnostic):
        return plan
    return evolve(plan, is_flat=True)


def dot_tile_serial(nest: BlockNest, target: Target) -> BlockSchedule | Diagnostic:
    """Return the one in which warps go through rows that registers have no room for.

    The arguments are those of `dot_tile`.
    """
    most_copied = (None, *COPIED_NBYTES)
    plan = _fewest_instructions(nest, target, most_copied, may_be_serial=True)
    if isinstance(plan, BlockSchedule):
        return plan
    nest = nest.with_flat_arrays()
    plan = _fewest_instructions(nest, target, most_copied, may_be_serial=True)
    return plan if isinstance(plan, Diagnostic) else evolve(plan, is_flat=True)


def _fewest_instructions(
    nest: BlockNest,
    target: Target,
    most_copied: Sequence[int | None],
    may_be_serial: bool = False,
) -> BlockSchedule | Diagnostic:
    """Return the schedule with the fewest instructions, or why there is none.

    Args:
        nest: the parts of a stitched kernel.
        target: the GPU.
        most_copied: the bytes of the operands that a product copies at a time, None for all of
            them. The first of these that fits is taken.
        may_be_serial: whether threads may go through long rows in serial loops.
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
            candidate = map_of(part, threads, may_be_serial)
            if candidate is None:
                break
            total += candidate[0]
            maps.append(candidate[1])
        if len(maps) < len(nest.parts):
            continue
        for nbytes in most_copied:
            plan = _with_memory(nest, threads, _in_chunks(nest, maps, nbytes), target)
            if isinstance(plan, BlockSchedule):
                warps = plan.blocks * threads // WARP
                cost = total * (warps + FEW_WARPS) / warps
                if best is None or cost < best[0]:
                    best = cost, plan
                break
            problem = plan
    return problem if best is None else best[1]


def _in_chunks(
    nest: BlockNest, maps: Sequence[BlockMap], nbytes: int | None
) -> tuple[BlockMap, ...]:
    """Return maps in which a product copies as many steps at a time as ``nbytes`` have room for.

    None is room for all. A product of several heads copies all.
    """
    if nbytes is None:
        return tuple(maps)
    shared = {b.name for b in nest.shared} - nest.flat
    changed: list[BlockMap] = []
    for number, (part, own) in enumerate(zip(nest.parts, maps, strict=True)):
        if isinstance(own, ProductMap) and isinstance(part, ProductPart) and part.heads == 1:
            steps = (None, *(n for n in CHUNKS if n < part.steps))
            ways = [evolve(own, chunk=n) for n in steps]
            copied = ((x, copies_of(number, part, x, shared)) for x in ways)
            fits = (
                x for x, own in copied if part.dtype.nbytes * sum(c.extent for c in own) <= nbytes
            )
            own = next(fits, ways[-1])
        changed.append(own)
    return tuple(changed)


# Memory.


def _with_memory(
    nest: BlockNest, threads: int, maps: tuple[BlockMap, ...], target: Target
) -> BlockSchedule | Diagnostic:
    """Return the schedule of these maps, or that a block has too little shared memory."""
    plan = with_arrays(nest, BlockSchedule(threads, 1, maps, is_early=True))
    if plan.shared_nbytes > EARLY_NBYTES:
        plan = with_arrays(nest, evolve(plan, is_early=False))
    limit = min(STATIC_SHARED_NBYTES, target.scratch)
    if plan.shared_nbytes > limit:
        data = {"nbytes": plan.shared_nbytes, "limit": limit}
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
            assert isinstance(part, ProductPart)
            elements = own.rows * own.columns + VECTOR * (own.rows + own.columns)
            yield part.dtype.nbytes // 4 * elements + 40
        elif isinstance(own, PointMap):
            yield POINT
        else:
            assert isinstance(part, RowPart)
            vectors = -(-part.length // (part.vector * own.lanes))
            yield 3 * VECTOR * (UNROLL if own.is_serial else vectors) + 48


RULES: tuple[tuple[str, Rule], ...] = (
    ("dot_tile", dot_tile),
    ("dot_tile_in_chunks", dot_tile_in_chunks),
    ("dot_tile_flat", dot_tile_flat),
    ("dot_tile_serial", dot_tile_serial),
)
"""The rules for stitched kernels by name, in the order in which they are tried."""
