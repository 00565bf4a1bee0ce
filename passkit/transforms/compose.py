"""Kernels of several independently lowered bodies: packs of components, and phases.

The components of a pack have tiles of their own, numbered one component after the other. The phases
of a kernel follow each other, and a later one loads outputs that earlier ones stored. In both cases
the scratch arrays of one body occupy the same memory as those of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

from attrs import evolve

from passkit.analysis.components import Component
from passkit.analysis.group import Group
from passkit.analysis.params import params_of
from passkit.analysis.slots import aligned
from passkit.ast import Expr, Fixed, size_of
from passkit.ast.renaming import renamed
from passkit.ast.stage import Buffer, KernelAST, Level, Loop, Part, Phase, Place
from passkit.errors import CodeGenError
from passkit.schedule.phases import groups_of_parts, scheduled_parts
from passkit.schedule.schedule import Schedule
from passkit.schedule.shared_plan import ALIGN, SharedPlan
from passkit.schedule.tile_loops import TILE
from passkit.values.memo import UncachedArgument
from passkit.values.size import Extent

Lowered = tuple[KernelAST, Extent]
"""A kernel AST and its number of tiles."""
Lower = Callable[[Group, Schedule, SharedPlan], Lowered]
"""The function that lowers a group."""


def compose_pack(group: Group, schedule: Schedule, shared: SharedPlan, lower: Lower) -> Lowered:
    """Return one kernel of the group's independent components.

    Components that share a tile are computed in it one after the other.

    Args:
        group: the group.
        schedule: its schedule, with one for each component.
        shared: its scratch memory, with a plan for each component.
        lower: lowers a component.

    Raises: CodeGenError if the schedule or the plan was made for another group.
    """
    if not len(group.parts) == len(schedule.parts) == len(shared.parts):
        raise CodeGenError(
            f"{group} has {len(group.parts)} parts, its schedule {len(schedule.parts)} and its "
            f"scratch {len(shared.parts)}; run SchedulePlan and SharedMemPlan on this graph"
        )
    plans = zip(group.alone(), schedule.parts, shared.parts, strict=True)
    kernels = [_lowered(part.key, s, m, lower, UncachedArgument(part)) for part, s, m in plans]
    phases, scratch = _renamed_bodies(group, group.parts, [ast for ast, _ in kernels])
    parts: list[Part] = []
    first: Extent = 0
    for numbers in schedule.shared_tiles:
        tiles = kernels[numbers[0]][1]
        assert len(numbers) == 1 or all(kernels[k][1] == 1 for k in numbers)
        span = _tile_number(first), _tile_number(first + tiles)
        parts += [evolve(part, span=span) for k in numbers for part in phases[k].parts]
        first = first + tiles
    grid = Loop(TILE, size_of(0), _tile_number(first), Level.GRID)
    return KernelAST(params_of(group.graph), (), scratch, (Phase(grid, tuple(parts)),)), first


@lru_cache(maxsize=1024)
def _lowered(
    key: str, schedule: Schedule, shared: SharedPlan, lower: Lower, held: UncachedArgument[Group]
) -> Lowered:
    """Return the kernel of a component; equal components, by their ``key``, are lowered once."""
    return lower(held.value, schedule, shared)


def _tile_number(tile: Extent) -> Expr:
    """Return the number of a tile, which is an argument unless 0, so that shapes share a text."""
    return size_of(0) if isinstance(tile, int) and tile == 0 else size_of(tile, Fixed.ARGUMENT)


def compose_phases(group: Group, schedule: Schedule, shared: SharedPlan, lower: Lower) -> Lowered:
    """Return one kernel of the group's phases; its tiles are those of all phases together.

    Args:
        group: the group.
        schedule: its schedule, with one for each phase.
        shared: its scratch memory, with a plan for each phase.
        lower: lowers a phase.

    Raises: CodeGenError if the schedule or the plan was made for another group.
    """
    outputs = len(group.graph.outputs)
    if sorted(k for numbers in schedule.phase_outputs for k in numbers) != list(range(outputs)):
        raise CodeGenError(
            f"{group} has {outputs} results, and the phases of its schedule make those numbered "
            f"{schedule.phase_outputs}; run SchedulePlan on this graph"
        )
    parts = scheduled_parts(group, schedule)
    if not len(parts) == len(schedule.parts) == len(shared.parts):
        raise CodeGenError(
            f"{group} has {len(parts)} phases, its schedule {len(schedule.parts)} and its scratch "
            f"{len(shared.parts)}; run SchedulePlan and SharedMemPlan on this graph"
        )
    plans = zip(groups_of_parts(group, schedule), schedule.parts, shared.parts, strict=True)
    kernels = [lower(*plan) for plan in plans]
    phases, scratch = _renamed_bodies(group, parts, [ast for ast, _ in kernels])
    tiles: Extent = 0
    for _, own_tiles in kernels:
        tiles = tiles + own_tiles
    return KernelAST(params_of(group.graph), (), scratch, tuple(phases)), tiles


def parameter_names(group: Group, part: Component) -> dict[str, str]:
    """Return the names in the group's kernel of the parameters of a component or phase.

    Outputs of earlier phases that a phase loads are numbered after the group's inputs.
    """
    inputs = len(group.graph.inputs)
    names = {
        f"x{j}": f"x{k}" if k < inputs else f"y{k - inputs}" for j, k in enumerate(part.inputs)
    }
    return names | {f"y{j}": f"y{k}" for j, k in enumerate(part.outputs)}


def _renamed_bodies(
    group: Group, parts: Iterable[Component], kernels: Iterable[KernelAST]
) -> tuple[list[Phase], tuple[Buffer, ...]]:
    """Return the phases of kernels with the names that buffers have in the group's kernel.

    Args:
        group: the group.
        parts: its components or phases.
        kernels: the kernel of each, which has one phase.

    Returns: the phases, and the scratch arrays of all.
    """
    phases: list[Phase] = []
    scratch: list[Buffer] = []
    for part, ast in zip(parts, kernels, strict=True):
        arrays = _placed_scratch(ast, len(scratch))
        names = parameter_names(group, part)
        names |= {b.name: new.name for b, new in zip(ast.scratch, arrays, strict=True)}
        (phase,) = ast.phases
        phases.append(renamed(phase, names))
        scratch += arrays
    return phases, tuple(scratch)


def _placed_scratch(ast: KernelAST, number: int) -> list[Buffer]:
    """Return the scratch arrays of a kernel with offsets from 0, numbered from ``number`` on."""
    ends: dict[bool, Extent] = {True: 0, False: 0}
    arrays: list[Buffer] = []
    for b in ast.scratch:
        is_shared, offset = b.place is Place.SHARED, b.offset
        if is_shared and offset is None:
            offset = ends[b.of_row]
            ends[b.of_row] += aligned(b.extent * b.dtype.nbytes, ALIGN)
        name = f"{'s' if is_shared else 'r'}{number + len(arrays)}"
        arrays.append(evolve(b, name=name, offset=offset))
    return arrays
