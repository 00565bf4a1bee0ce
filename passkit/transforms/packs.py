"""The passes from a group of several loop nests, or of several phases, to one kernel of loop IR.

Each part is lowered as a kernel by itself. Parts of a phase that have equal kernels, which differ
in the extents of buffers alone, are computed by one body then. What a phase reads of an earlier one
is a buffer that may change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from attrs import evolve, field, frozen

from passkit.analysis.components import Component
from passkit.analysis.domain_info import DomainInfo, analyze_domain
from passkit.analysis.group import Group
from passkit.ir.loop import KernelIR, LaunchShape, LoopBuffer, StorageScope
from passkit.ir.pack import (
    PackedNest,
    PackIR,
    PackPart,
    PackPhase,
    blocks_side_by_side,
    without_extents,
)
from passkit.schedule.pack import PackSchedule
from passkit.schedule.phases import planned_phases
from passkit.schedule.schedule import Schedule
from passkit.schedule.shared_plan import largest
from passkit.transforms.compose import parameter_names
from passkit.transforms.pipeline import LoweredNest, Observer, lower_block, lower_nest
from passkit.values.memo import UncachedArgument
from passkit.values.size import Extent, numel


@frozen
class LoweredPack:
    """A kernel of several nests in final form.

    Attributes:
        kernel: the kernel.
        sizes: the values of its size arguments.
        part_blocks: how many blocks each part has of its nest, in the order of the kernel's parts.
        phase_blocks: the number of blocks of each phase.
    """

    kernel: PackIR
    sizes: tuple[Extent, ...]
    part_blocks: tuple[Extent, ...]
    phase_blocks: tuple[Extent, ...]

    @property
    def blocks(self) -> Extent:
        """Return the number of blocks of the grid, with which every phase has one for each."""
        blocks: Extent = 0
        for count in self.phase_blocks:
            blocks = largest(blocks, count)
        return blocks


@frozen
class _Part:
    """A part of a pack before it is lowered.

    Attributes:
        group: the part as a group.
        plan: its schedule, with that of its loop nest or of the nests of its tiles.
        buffers: the parameters of the kernel that it reads and writes, in its order.
        changing: the parameters that it reads and other phases write.
    """

    group: Group
    plan: Schedule
    buffers: tuple[str, ...]
    changing: frozenset[str] = frozenset()


@frozen
class _LoweredPart:
    """A part in final form, with the parameters of the kernel in its order."""

    nest: LoweredNest
    buffers: tuple[str, ...]


def lower_pack(
    group: Group,
    schedule: Schedule,
    aliased: frozenset[int],
    observe: Observer | None = None,
) -> LoweredPack:
    """Lower a group of several loop nests, or of several phases, for a GPU.

    Args:
        group: the group.
        schedule: the schedules of its parts as ``pack``, or those of its phases.
        aliased: the positions of parameters that may share memory with another.
        observe: called with the name of each transform and the kernel behind it, for each part.

    Raises: CodeGenError if the schedule of a stitched phase was made for another group.
    """
    params = _params(group)
    names = frozenset(params[k].name for k in aliased)
    phases = [_bodies_of(parts, names, observe) for parts in _phases_of(group, schedule)]
    assert schedule.launch is not None  # the planner saw to that
    return _PackBuilder(params, names, schedule.launch).pack(phases)


def _phases_of(group: Group, schedule: Schedule) -> list[list[_Part]]:
    """Return the parts of each phase of a group; a pack has one phase."""
    if schedule.pack is not None:
        own_names = {b.name: b.name for b in _params(group)}
        return [_parts_of(group, schedule, schedule.pack, own_names, frozenset())]
    phases: list[list[_Part]] = []
    for component, own, plan in planned_phases(group, schedule):
        names = parameter_names(group, component)
        read = frozenset(names[f"x{k}"] for k in range(len(component.inputs)))
        changing = frozenset(name for name in read if name.startswith("y"))
        if plan.pack is not None:
            phases.append(_parts_of(own, plan, plan.pack, names, changing))
        else:
            phases.append([_Part(own, plan, tuple(names.values()), changing)])
    return phases


def _parts_of(
    group: Group,
    schedule: Schedule,
    pack: PackSchedule,
    names: Mapping[str, str],
    changing: frozenset[str],
) -> list[_Part]:
    """Return the independent parts of a group that is a kernel, or one phase of it.

    Args:
        group: the group.
        schedule: its schedule.
        pack: the schedules of the loop nests of its parts.
        names: what the kernel calls the parameters of the group.
        changing: the parameters of the kernel that the group reads and other phases write.
    """
    plans = zip(group.alone(), group.parts, schedule.parts, pack.parts, strict=True)
    return [
        _Part(
            own,
            evolve(plan, nest=nest),
            tuple(names[name] for name in _buffers(part)),
            changing,
        )
        for own, part, plan, nest in plans
    ]


def _bodies_of(
    parts: Sequence[_Part], aliased: frozenset[str], observe: Observer | None
) -> list[list[_LoweredPart]]:
    """Return the parts of a phase in final form, those that one body computes together.

    Args:
        parts: the parts.
        aliased: the parameters that may share memory with another.
        observe: called with the name of each transform and the kernel behind it, for each part.
    """
    bodies: dict[KernelIR, list[_LoweredPart]] = {}
    body_of: dict[int, list[_LoweredPart]] = {}  # by the identity of what equal parts become
    for part in parts:
        may_change = aliased | part.changing
        positions = frozenset(k for k, name in enumerate(part.buffers) if name in may_change)
        if observe is None:
            held = UncachedArgument(part.group)
            lowered = _lowered(part.group.key, part.plan, positions, held)
        else:
            lowered = _lower_part(part.group, part.plan, positions, observe)
        if id(lowered) not in body_of:
            body_of[id(lowered)] = bodies.setdefault(without_extents(lowered.kernel), [])
        body_of[id(lowered)].append(_LoweredPart(lowered, part.buffers))
    return list(bodies.values())


@lru_cache(maxsize=1024)
def _lowered(
    key: str, plan: Schedule, aliased: frozenset[int], held: UncachedArgument[Group]
) -> LoweredNest:
    """Return the kernel of a part, made once where many are alike."""
    return _lower_part(held.value, plan, aliased)


def _lower_part(
    part: Group, plan: Schedule, aliased: frozenset[int], observe: Observer | None = None
) -> LoweredNest:
    """Return the kernel of a part. Raises: CodeGenError if its schedule is for another group."""
    if plan.block is not None:
        return lower_block(part, plan, plan.block, aliased, observe)
    info = analyze_domain(part.graph)
    assert isinstance(info, DomainInfo) and plan.nest is not None  # the planner saw to that
    return lower_nest(part, plan, plan.nest, info, aliased, observe)


def _params(group: Group) -> tuple[LoopBuffer, ...]:
    """Return the parameters of the kernel of a group: its inputs, then its outputs."""
    graph = group.graph
    sides = (("x", [n.entries[0] for n in graph.inputs]), ("y", graph.outputs))
    return tuple(
        LoopBuffer(
            f"{side}{k}", graph.dtype(e), StorageScope.GLOBAL, numel(graph.shape(e)), side == "y"
        )
        for side, entries in sides
        for k, e in enumerate(entries)
    )


def _buffers(part: Component) -> tuple[str, ...]:
    """Return the names of the kernel's parameters that a part reads and writes, in its order."""
    return (*(f"x{k}" for k in part.inputs), *(f"y{k}" for k in part.outputs))


@frozen
class _PackBuilder:
    """The arguments of a pack while they are collected.

    Attributes:
        params: its parameters.
        aliased: those that may share memory with another.
        launch: the threads of a block.
        values: the values of its size arguments so far.
        part_blocks: how many blocks each part so far has of its nest.
    """

    params: tuple[LoopBuffer, ...]
    aliased: frozenset[str]
    launch: LaunchShape
    values: list[Extent] = field(factory=list)
    part_blocks: list[Extent] = field(factory=list)

    def pack(self, phases: Sequence[Sequence[Sequence[_LoweredPart]]]) -> LoweredPack:
        """Return the kernel of parts, given by phase and body."""
        has_one_phase = len(phases) == 1
        packed: list[PackPhase] = []
        ends: list[Extent] = []
        for bodies in phases:
            nests, end = self._phase(bodies)
            packed.append(PackPhase(nests, None if has_one_phase else self._argument(end)))
            ends.append(end)
        names = tuple(f"n{k}" for k in range(len(self.values)))
        kernel = PackIR(self.params, names, tuple(packed), self.launch, self.aliased)
        return LoweredPack(kernel, tuple(self.values), tuple(self.part_blocks), tuple(ends))

    def _phase(
        self, bodies: Sequence[Sequence[_LoweredPart]]
    ) -> tuple[tuple[PackedNest, ...], Extent]:
        """Return the nests of a phase, and the number of its blocks.

        The first blocks of all parts follow each other among the size arguments, and so does each
        size argument of a nest for its parts.
        """
        own_sizes = [self._sizes_of([part.nest for part in body]) for body in bodies]
        firsts: list[Extent] = []
        end: Extent = 0
        for body in bodies:
            for part in body:
                kernel = part.nest.kernel
                together = blocks_side_by_side(self.launch, kernel.launch, kernel.shared_nbytes)
                firsts.append(end)
                self.part_blocks.append(part.nest.blocks)
                end = end + (part.nest.blocks + (together - 1)) // together
        first_names = [self._argument(n) for n in firsts]
        nests: list[PackedNest] = []
        at = 0
        for body, sizes in zip(bodies, own_sizes, strict=True):
            kernel = body[0].nest.kernel
            blocks: list[str | None] = [None] * len(body)
            if kernel.launch.threads < self.launch.threads:
                blocks = [self._argument(part.nest.blocks) for part in body]
            parts = tuple(
                PackPart(part.buffers, sizes[k], first_names[at + k], blocks[k])
                for k, part in enumerate(body)
            )
            nests.append(PackedNest(kernel, parts))
            at += len(body)
        return tuple(nests), end

    def _sizes_of(self, body: Sequence[LoweredNest]) -> list[tuple[str, ...]]:
        """Return the names of the size arguments of each part of a nest, which are added."""
        by_size = zip(*(lowered.sizes for lowered in body), strict=True)
        columns = [[self._argument(n) for n in sizes] for sizes in by_size]
        return [tuple(column[k] for column in columns) for k in range(len(body))]

    def _argument(self, value: Extent) -> str:
        """Add a size argument, and return its name."""
        self.values.append(value)
        return f"n{len(self.values) - 1}"
