"""The passes from a group with a schedule of its nest to the text of a kernel."""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve, frozen

from passkit.ast.stage import KernelAST, Place
from passkit.dialects.lost_nans import with_lost_nans
from passkit.ir.loop import KernelIR, LoopBuffer, StorageScope
from passkit.lowering.lower import lower_plain
from passkit.lowering.narrow import without_narrow
from passkit.lowering.params import params_of
from passkit.lowering.phased import names_in_whole
from passkit.plan.group import Group
from passkit.plan.phases import alone, parts_by
from passkit.plan.schedule import Kept, Schedule
from passkit.schedule.nest import NestSchedule
from passkit.sharing.shared import plan_shared
from passkit.space.layout import Layout, lay_out
from passkit.transforms.bind_threads import bind_threads
from passkit.transforms.build_loops import LoopBuilder
from passkit.transforms.columns import ColumnBuilder
from passkit.transforms.joins import JoinPhase, joined_kernel
from passkit.transforms.lower_reductions import lower_reductions
from passkit.transforms.quotients import divide_rows, mark_quotients
from passkit.transforms.short_rows import ShortRowBuilder
from passkit.transforms.simplify import simplify
from passkit.transforms.transposes import TransposeBuilder
from passkit.transforms.vectorize import guard_alignment, vectorize
from passkit.values.dtype import is_narrow
from passkit.values.size import Extent

Observer = Callable[[str, KernelIR], None]
TRANSFORMS = (
    bind_threads,
    vectorize,
    lower_reductions,
    divide_rows,
    simplify,
    guard_alignment,
)
"""The passes over loop IR, from the scalar form to the final one."""


@frozen
class LoweredNest:
    """A kernel in final form.

    Attributes:
        kernel: the kernel.
        sizes: the values of its size arguments.
        blocks: the number of thread blocks.
    """

    kernel: KernelIR
    sizes: tuple[Extent, ...]
    blocks: Extent


def scalar_stages(group: Group, schedule: Schedule, staged: tuple[int, ...]) -> KernelAST:
    """Return the stages of a group, with the values between them in registers."""
    kept = tuple(Kept(value, Place.LANES) for value in staged)
    plain = evolve(schedule, kept=kept, nest=None)
    ast, _ = lower_plain(group, plain, plan_shared(group, plain))
    dtypes = [e.dtype for n in group.graph.nodes for e in n.entries]
    has_narrow = any(d is not None and is_narrow(d) for d in dtypes)
    return mark_quotients(with_lost_nans(without_narrow(ast) if has_narrow else ast))


def lower_nest(
    group: Group,
    schedule: Schedule,
    nest: NestSchedule,
    layout: Layout,
    aliased: frozenset[int],
    observe: Observer | None = None,
) -> LoweredNest:
    """Lower a group of one loop nest for a GPU.

    Args:
        group: the group.
        schedule: its stages.
        nest: how its points are distributed.
        layout: its iteration domain.
        aliased: the positions of parameters that may share memory with another.
        observe: called with the name of each transform and the kernel behind it.
    """
    ast = scalar_stages(group, schedule, nest.staged)
    names = frozenset(ast.params[k].name for k in aliased)
    builder = _builder_of(nest)(ast, layout.space, nest, names)
    kernel, sizes, blocks = builder.kernel(_index_bits(ast, layout, nest))
    if observe is not None:
        observe("build_loops", kernel)
    for transform in TRANSFORMS:
        kernel = transform(kernel)
        if observe is not None:
            observe(transform.__name__, kernel)
    return LoweredNest(kernel, sizes, blocks)


def lower_joined(
    group: Group,
    schedule: Schedule,
    aliased: frozenset[int],
    observe: Observer | None = None,
) -> LoweredNest:
    """Lower a group of chunks of a reduction and of what joins them, as one kernel for a GPU.

    Args:
        group: the group.
        schedule: its schedule, whose phases are loop nests.
        aliased: the positions of parameters that may share memory with another.
        observe: called with the name of each transform and the kernel behind it.
    """
    params = params_of(group.graph)
    shared = {params[k].name for k in aliased}
    phases: list[JoinPhase] = []
    sizes: list[Extent] = []
    blocks: list[Extent] = []
    plans = zip(parts_by(group, schedule), alone(group, schedule), schedule.parts, strict=True)
    for part, own, plan in plans:
        layout = lay_out(own.graph)
        assert isinstance(layout, Layout) and plan.nest is not None  # the planner saw to that
        names = names_in_whole(group, part)
        ast = scalar_stages(own, plan, plan.nest.staged)
        inside = frozenset(name for name, whole in names.items() if whole in shared)
        builder = _builder_of(plan.nest)(ast, layout.space, plan.nest, inside)
        kernel, own_sizes, count = builder.kernel(_index_bits(ast, layout, plan.nest))
        phases.append(JoinPhase(bind_threads(kernel), names))
        sizes += own_sizes
        blocks.append(count)
    first, then = phases
    chunks, joins = blocks
    assert isinstance(chunks, int) and isinstance(joins, int)
    buffers = (LoopBuffer(b.name, b.dtype, StorageScope.GLOBAL, b.extent) for b in params)
    kernel = joined_kernel(first, then, tuple(buffers), joins, chunks // joins)
    if observe is not None:
        observe("build_loops", kernel)
    for transform in TRANSFORMS[1:]:
        kernel = transform(kernel)
        if observe is not None:
            observe(transform.__name__, kernel)
    return LoweredNest(kernel, tuple(sizes), chunks)


def _builder_of(nest: NestSchedule) -> type[LoopBuilder]:
    """Return the builder of the scalar form for a kind of nest."""
    if nest.columns is not None:
        return ColumnBuilder
    if nest.transpose is not None:
        return TransposeBuilder
    return LoopBuilder if nest.tile is None else ShortRowBuilder


def _index_bits(ast: KernelAST, layout: Layout, nest: NestSchedule) -> int:
    """Return the width of index arithmetic: 32 where every index and bound is known to fit."""
    limit = (1 << 31) - max(g.chunk for g in nest.groups)
    extents = [*(b.extent for b in ast.params), layout.space.size]
    fits = all(isinstance(n, int) and n < limit for n in extents)
    return 32 if fits else 64
