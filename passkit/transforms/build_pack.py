"""Packed kernels: the kernels of parts become one, whose tiles are numbered one behind another."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from attrs import evolve

from passkit.analysis.group import Group
from passkit.analysis.params import params_of
from passkit.analysis.slots import aligned
from passkit.ast import Expr, Fixed, size_of
from passkit.ast.renaming import renamed
from passkit.ast.stage import Buffer, KernelAST, Level, Loop, Part, Phase, Place
from passkit.errors import CodeGenError
from passkit.schedule.schedule import Schedule
from passkit.schedule.shared_plan import ALIGN, SharedPlan
from passkit.schedule.tile_loops import TILE
from passkit.values.memo import UncachedArgument
from passkit.values.size import Extent

Lowered = tuple[KernelAST, Extent]
Lower = Callable[[Group, Schedule, SharedPlan], Lowered]


def build_pack(group: Group, schedule: Schedule, shared: SharedPlan, lower: Lower) -> Lowered:
    """One kernel of the group's parts, each made by ``lower``; and its number of tiles.

    Those that share one tile run in it one after the other. Scratch of one part lies over that of
    the others. Raises: CodeGenError when the schedule was made for another group.
    """
    parts = _parts(group, schedule, shared, lower)
    scratch: list[Buffer] = []
    bodies: list[tuple[Part, ...]] = []
    for places, (ast, _) in zip(group.parts, parts, strict=True):
        names = {f"x{j}": f"x{k}" for j, k in enumerate(places.inputs)}
        names |= {f"y{j}": f"y{k}" for j, k in enumerate(places.outputs)}
        own = _laid_over(ast, len(scratch))
        names |= {b.name: new.name for b, new in zip(ast.scratch, own, strict=True)}
        scratch += own
        (phase,) = ast.phases
        bodies.append(renamed(phase.parts, names))
    made: list[Part] = []
    first: Extent = 0
    for numbers in schedule.shared_tiles:
        tiles = parts[numbers[0]][1]
        assert len(numbers) == 1 or all(parts[k][1] == 1 for k in numbers)
        span = _number(first), _number(first + tiles)
        made += [evolve(part, span=span) for k in numbers for part in bodies[k]]
        first = first + tiles
    grid = Loop(TILE, size_of(0), _number(first), Level.GRID)
    return KernelAST(params_of(group.graph), (), tuple(scratch), (Phase(grid, tuple(made)),)), first


def _parts(group: Group, schedule: Schedule, shared: SharedPlan, lower: Lower) -> list[Lowered]:
    """Return the kernels of the components, each with its number of tiles.

    Raises: CodeGenError if the schedule or the plan of scratch memory was made for another group.
    """
    if not len(group.parts) == len(schedule.parts) == len(shared.parts):
        raise CodeGenError(
            f"{group} has {len(group.parts)} parts, its schedule {len(schedule.parts)} and its "
            f"scratch {len(shared.parts)}; run SchedulePlan and SharedMemPlan on this graph"
        )
    plans = zip(group.alone(), schedule.parts, shared.parts, strict=True)
    return [_part(part.key, s, m, lower, UncachedArgument(part)) for part, s, m in plans]


@lru_cache(maxsize=1024)
def _part(
    key: str, schedule: Schedule, shared: SharedPlan, lower: Lower, held: UncachedArgument[Group]
) -> Lowered:
    """The kernel of a part, made once where many are alike."""
    return lower(held.value, schedule, shared)


def _laid_over(ast: KernelAST, number: int) -> list[Buffer]:
    """The scratch of a part from the beginning of that of the kernel; numbers go on there."""
    ends: dict[bool, Extent] = {True: 0, False: 0}
    found: list[Buffer] = []
    for b in ast.scratch:
        shared = b.place is Place.SHARED
        name = f"{'s' if shared else 'r'}{number + len(found)}"
        found.append(evolve(b, name=name, offset=ends[b.of_row] if shared else None))
        if shared:
            ends[b.of_row] += aligned(b.extent * b.dtype.nbytes, ALIGN)
    return found


def _number(tile: Extent) -> Expr:
    """A number of tiles is an argument, so that shapes share a text; but for the first."""
    return size_of(0) if isinstance(tile, int) and tile == 0 else size_of(tile, Fixed.ARGUMENT)
