"""Kernels of several phases: each is lowered by itself, and reads what earlier ones stored."""

from __future__ import annotations

from attrs import evolve

from passkit.analysis.components import Component
from passkit.analysis.group import Group
from passkit.analysis.params import params_of
from passkit.analysis.slots import aligned
from passkit.ast.renaming import renamed
from passkit.ast.stage import Buffer, KernelAST, Phase, Place
from passkit.errors import CodeGenError
from passkit.schedule.phases import groups_of_parts, scheduled_parts
from passkit.schedule.schedule import Schedule
from passkit.schedule.shared_plan import ALIGN, SharedPlan
from passkit.transforms.build_pack import Lower, Lowered
from passkit.values.size import Extent


def build_phases(group: Group, schedule: Schedule, shared: SharedPlan, lower: Lower) -> Lowered:
    """One kernel of the group's phases, each made by ``lower``; and the tiles of all together.

    Scratch of one phase lies over that of the others. Raises: CodeGenError when the schedule was
    made for another group.
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
    scratch: list[Buffer] = []
    phases: list[Phase] = []
    total: Extent = 0
    plans = zip(groups_of_parts(group, schedule), schedule.parts, shared.parts, strict=True)
    for part, own in zip(parts, plans, strict=True):
        ast, tiles = lower(*own)
        arrays = _laid_over(ast, len(scratch))
        names = names_in_whole(group, part)
        names |= {b.name: new.name for b, new in zip(ast.scratch, arrays, strict=True)}
        (phase,) = ast.phases
        phases.append(renamed(phase, names))
        scratch += arrays
        total = total + tiles
    return KernelAST(params_of(group.graph), (), tuple(scratch), tuple(phases)), total


def names_in_whole(group: Group, part: Component) -> dict[str, str]:
    """What the whole kernel calls the parameters of a phase."""
    inputs = len(group.graph.inputs)
    names = {
        f"x{j}": f"x{k}" if k < inputs else f"y{k - inputs}" for j, k in enumerate(part.inputs)
    }
    return names | {f"y{j}": f"y{k}" for j, k in enumerate(part.outputs)}


def _laid_over(ast: KernelAST, number: int) -> list[Buffer]:
    """The scratch of a phase, told where it lies; numbers go on there."""
    ends: dict[bool, Extent] = {True: 0, False: 0}
    found: list[Buffer] = []
    for b in ast.scratch:
        shared = b.place is Place.SHARED
        offset = b.offset
        if shared and offset is None:
            offset = ends[b.of_row]
            ends[b.of_row] += aligned(b.extent * b.dtype.nbytes, ALIGN)
        name = f"{'s' if shared else 'r'}{number + len(found)}"
        found.append(evolve(b, name=name, offset=offset))
    return found
