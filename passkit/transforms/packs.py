"""The passes from a group with a schedule of several loop nests to one kernel of loop IR.

Each part is lowered as a kernel by itself. Parts of equal kernels, which differ in the extents of
buffers alone, are computed by one body then.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from attrs import field, frozen

from passkit.analysis.components import Component
from passkit.analysis.domain_info import DomainInfo, analyze_domain
from passkit.analysis.group import Group
from passkit.ir.loop import KernelIR, LoopBuffer, StorageScope
from passkit.ir.pack import PackedNest, PackIR, PackPart, without_extents
from passkit.schedule.nest import NestSchedule
from passkit.schedule.schedule import Schedule
from passkit.transforms.pipeline import LoweredNest, Observer, lower_nest
from passkit.values.memo import UncachedArgument
from passkit.values.size import Extent, numel


@frozen
class LoweredPack:
    """A kernel of several nests in final form.

    Attributes:
        kernel: the kernel.
        sizes: the values of its size arguments.
        part_blocks: how many blocks each part has of its nest, in the order of the kernel's parts.
        blocks: the number of thread blocks.
    """

    kernel: PackIR
    sizes: tuple[Extent, ...]
    part_blocks: tuple[Extent, ...]
    blocks: Extent


def lower_pack(
    group: Group,
    schedule: Schedule,
    aliased: frozenset[int],
    observe: Observer | None = None,
) -> LoweredPack:
    """Lower a group of several loop nests for a GPU.

    Args:
        group: the group.
        schedule: the stages of its parts, and how their points are distributed, as ``pack``.
        aliased: the positions of parameters that may share memory with another.
        observe: called with the name of each transform and the kernel behind it, for each part.
    """
    assert schedule.pack is not None
    params = _params(group)
    names = frozenset(params[k].name for k in aliased)
    builder = _PackBuilder(params, names)
    plans = zip(group.alone(), group.parts, schedule.parts, schedule.pack.parts, strict=True)
    bodies: dict[KernelIR, list[int]] = {}
    body_of: dict[int, list[int]] = {}  # by the identity of what equal parts are lowered to
    parts: list[tuple[LoweredNest, tuple[str, ...]]] = []
    for number, (own, part, plan, nest) in enumerate(plans):
        buffers = _buffers(part)
        positions = frozenset(k for k, name in enumerate(buffers) if name in names)
        held = UncachedArgument(own)
        if observe is None:
            lowered = _lowered(own.key, plan, nest, positions, held)
        else:
            lowered = _lower_part(own, plan, nest, positions, observe)
        if id(lowered) not in body_of:
            body_of[id(lowered)] = bodies.setdefault(without_extents(lowered.kernel), [])
        body_of[id(lowered)].append(number)
        parts.append((lowered, buffers))
    return builder.pack([[parts[k] for k in numbers] for numbers in bodies.values()], schedule)


@lru_cache(maxsize=1024)
def _lowered(
    key: str,
    plan: Schedule,
    nest: NestSchedule,
    aliased: frozenset[int],
    held: UncachedArgument[Group],
) -> LoweredNest:
    """Return the kernel of a part, made once where many are alike."""
    return _lower_part(held.value, plan, nest, aliased)


def _lower_part(
    part: Group,
    plan: Schedule,
    nest: NestSchedule,
    aliased: frozenset[int],
    observe: Observer | None = None,
) -> LoweredNest:
    """Return the kernel of a part."""
    info = analyze_domain(part.graph)
    assert isinstance(info, DomainInfo)  # the schedule was made from it
    return lower_nest(part, plan, nest, info, aliased, observe)


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
        values: the values of its size arguments so far.
    """

    params: tuple[LoopBuffer, ...]
    aliased: frozenset[str]
    values: list[Extent] = field(factory=list)

    def pack(
        self, bodies: Sequence[Sequence[tuple[LoweredNest, tuple[str, ...]]]], schedule: Schedule
    ) -> LoweredPack:
        """Return the kernel of parts, given by body: each lowered, with its buffers.

        The first blocks of all parts follow each other among the size arguments, and so does each
        size argument of a nest for its parts.
        """
        pack = schedule.pack
        assert pack is not None
        own_sizes = [self._sizes_of([lowered for lowered, _ in body]) for body in bodies]
        firsts: list[Extent] = []
        counts: list[Extent] = []
        end: Extent = 0
        for body in bodies:
            for lowered, _ in body:
                together = pack.launch.threads // lowered.kernel.launch.threads
                firsts.append(end)
                counts.append(lowered.blocks)
                end = end + (lowered.blocks + (together - 1)) // together
        first_names = [self._argument(n) for n in firsts]
        nests: list[PackedNest] = []
        at = 0
        for body, sizes in zip(bodies, own_sizes, strict=True):
            kernel = body[0][0].kernel
            blocks: list[str | None] = [None] * len(body)
            if kernel.launch.threads < pack.launch.threads:
                blocks = [self._argument(lowered.blocks) for lowered, _ in body]
            parts = tuple(
                PackPart(buffers, sizes[k], first_names[at + k], blocks[k])
                for k, (_, buffers) in enumerate(body)
            )
            nests.append(PackedNest(kernel, parts))
            at += len(body)
        names = tuple(f"n{k}" for k in range(len(self.values)))
        kernel_ir = PackIR(self.params, names, tuple(nests), pack.launch, self.aliased)
        return LoweredPack(kernel_ir, tuple(self.values), tuple(counts), end)

    def _sizes_of(self, body: Sequence[LoweredNest]) -> list[tuple[str, ...]]:
        """Return the names of the size arguments of each part of a nest, which are added."""
        by_size = zip(*(lowered.sizes for lowered in body), strict=True)
        columns = [[self._argument(n) for n in sizes] for sizes in by_size]
        return [tuple(column[k] for column in columns) for k in range(len(body))]

    def _argument(self, value: Extent) -> str:
        """Add a size argument, and return its name."""
        self.values.append(value)
        return f"n{len(self.values) - 1}"
