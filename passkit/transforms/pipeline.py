"""The passes from a group with a schedule of its nest to the text of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

from attrs import evolve, frozen

from passkit.analysis.domain_info import DomainInfo, analyze_domain
from passkit.analysis.group import Group
from passkit.analysis.params import params_of
from passkit.ast import Var
from passkit.ast.stage import Buffer, KernelAST, Level, Loop, Phase, Place, Stage, Store
from passkit.ast.stage import Part as StagePart
from passkit.diagnostics import Diagnostic
from passkit.errors import CodeGenError
from passkit.ir.features import Features
from passkit.ir.index import literal
from passkit.ir.loop import KernelIR, LoopBuffer, StorageScope
from passkit.schedule.block import BlockSchedule
from passkit.schedule.block_nest import BlockNest, BlockPart, PointPart, ProductPart, RowPart
from passkit.schedule.loop_nest import LoopNest
from passkit.schedule.nest import NestSchedule
from passkit.schedule.phases import planned_phases
from passkit.schedule.schedule import Schedule, StagedValue
from passkit.schedule.shared_plan import plan_shared
from passkit.transforms.bind_threads import bind_threads
from passkit.transforms.block_parts import block_nest
from passkit.transforms.build_block import BlockBuilder
from passkit.transforms.build_loops import LoopBuilder
from passkit.transforms.build_stages import lower_single_nest
from passkit.transforms.columns import ColumnBuilder
from passkit.transforms.compose import parameter_names
from passkit.transforms.joins import JoinPhase, joined_kernel
from passkit.transforms.legalize_floats import legalize_floats
from passkit.transforms.lost_nans import with_lost_nans
from passkit.transforms.lower_reductions import lower_reductions
from passkit.transforms.place_barriers import place_barriers
from passkit.transforms.quotients import divide_rows, mark_quotients
from passkit.transforms.short_rows import ShortRowBuilder
from passkit.transforms.simplify import simplify
from passkit.transforms.transposes import TransposeBuilder
from passkit.transforms.vectorize import guard_alignment, vectorize
from passkit.transforms.wait_in_blocks import wait_in_blocks
from passkit.values.dtype import int64, is_narrow
from passkit.values.size import Extent

Observer = Callable[[str, KernelIR], None]
Transform = Callable[[KernelIR], KernelIR]
TRANSFORMS = (
    bind_threads,
    vectorize,
    lower_reductions,
    divide_rows,
    simplify,
    guard_alignment,
)
"""The passes over loop IR, from the scalar form to the final one."""
BLOCK_TRANSFORMS = (
    place_barriers,
    vectorize,
    divide_rows,
    simplify,
    guard_alignment,
)
"""Those for stitched kernels, in which nothing is bound to threads any more."""


ALL = Features(name="all", has_warps=True, has_quotients=True)
"""The features of a language that needs no other transforms than these."""


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


def scalar_stages(
    group: Group,
    info: DomainInfo,
    schedule: Schedule,
    nest: NestSchedule,
    features: Features = ALL,
) -> KernelAST:
    """Return the stages of a group, with the values between them in registers.

    Args:
        group: the group.
        info: its iteration domain.
        schedule: its stages, with the usual storage of values between them.
        nest: which of these values stay in registers, and which are computed again.
        features: those of the language.
    """
    in_registers = tuple(StagedValue(value, Place.LANES) for value in nest.staged)
    loop_nest = LoopNest(info, schedule.stages, schedule.staged)
    stages, _ = loop_nest.stage_plan(None, frozenset(nest.recomputed))
    plain = evolve(schedule, stages=stages, staged=in_registers, nest=None)
    ast, _ = lower_single_nest(group, plain, plan_shared(group, plain))
    dtypes = [e.dtype for n in group.graph.nodes for e in n.entries]
    has_narrow = any(d is not None and is_narrow(d) for d in dtypes)
    ast = with_lost_nans(legalize_floats(ast) if has_narrow else ast)
    return mark_quotients(ast) if features.has_quotients else ast


def lower_nest(
    group: Group,
    schedule: Schedule,
    nest: NestSchedule,
    info: DomainInfo,
    aliased: frozenset[int],
    observe: Observer | None = None,
    features: Features = ALL,
) -> LoweredNest:
    """Lower a group of one loop nest for a GPU.

    Args:
        group: the group.
        schedule: its stages.
        nest: how its points are distributed.
        info: its iteration domain.
        aliased: the positions of parameters that may share memory with another.
        observe: called with the name of each transform and the kernel behind it.
        features: those of the language.
    """
    ast = scalar_stages(group, info, schedule, nest, features)
    names = frozenset(ast.params[k].name for k in aliased)
    builder = _builder_of(nest)(ast, info.domain, nest, names)
    kernel, sizes, blocks = builder.kernel(_index_bits(ast, info, nest))
    if observe is not None:
        observe("build_loops", kernel)
    transforms = transforms_for(TRANSFORMS, features)
    return LoweredNest(_transformed(kernel, transforms, observe), sizes, blocks)


def transforms_for(transforms: Sequence[Transform], features: Features) -> Sequence[Transform]:
    """Return the passes for a language: without quotients where it has none, and without warps."""
    own = [t for t in transforms if features.has_quotients or t is not divide_rows]
    return own if features.has_warps else [*own, wait_in_blocks]


def _transformed(
    kernel: KernelIR,
    transforms: Sequence[Transform],
    observe: Observer | None,
) -> KernelIR:
    """Return the kernel behind some passes; ``observe`` is called with the name of each."""
    for transform in transforms:
        kernel = transform(kernel)
        if observe is not None:
            observe(transform.__name__, kernel)
    return kernel


def lower_block(
    group: Group,
    schedule: Schedule,
    block: BlockSchedule,
    aliased: frozenset[int],
    observe: Observer | None = None,
    features: Features = ALL,
) -> LoweredNest:
    """Lower a stitched group for a GPU.

    Args:
        group: the group.
        schedule: the tiling of its values.
        block: how the threads of a block share out its parts.
        aliased: the positions of parameters that may share memory with another.
        observe: called with the name of each transform and the kernel behind it.
        features: those of the language.

    Raises: CodeGenError if the schedule was made for another group.
    """
    nest = block_nest(group, schedule)
    if isinstance(nest, Diagnostic) or len(nest.parts) != len(block.parts):
        raise CodeGenError(
            f"{group} has other parts than its schedule; run SchedulePlan on this graph"
        )
    nest = evolve(nest, parts=tuple(_with_short_forms(nest, p, features) for p in nest.parts))
    names = frozenset(nest.params[k].name for k in aliased)
    limit = (1 << 31) - max((n for _, _, n in block.arrays), default=0)
    extents = [*(b.extent for b in nest.params), nest.tiles]
    fits = all(isinstance(n, int) and n < limit for n in extents)
    kernel, sizes, blocks = BlockBuilder(nest, block, names).kernel(32 if fits else 64)
    if observe is not None:
        observe("build_block", kernel)
    transforms = transforms_for(BLOCK_TRANSFORMS, features)
    return LoweredNest(_transformed(kernel, transforms, observe), sizes, blocks)


def _with_short_forms(nest: BlockNest, part: BlockPart, features: Features) -> BlockPart:
    """Return a part with shorter forms of maxima and quotients, and without narrow floats.

    Quotients have none where the language has no ``features`` for them.
    """
    if isinstance(part, ProductPart):
        return part
    phase = Phase(
        Loop(Var("tile", int64), literal(0), literal(1), Level.GRID),
        (StagePart((), None, (), part.stages),),
    )
    arrays = (*nest.params, *nest.shared)
    ast = KernelAST(arrays, (), _registers_of(part, {b.name for b in arrays}), (phase,))
    ast = with_lost_nans(legalize_floats(ast))
    ast = mark_quotients(ast) if features.has_quotients else ast
    stages = [s for s in ast.phases[0].parts[0].stages if isinstance(s, Stage)]
    return evolve(part, stages=tuple(stages))


def _registers_of(part: RowPart | PointPart, arrays: Container[str]) -> tuple[Buffer, ...]:
    """Return the values of a part that stay in registers from one stage to the next.

    ``arrays`` are the names of all other buffers.
    """
    stored = (s for stage in part.stages for s in stage.body if isinstance(s, Store))
    return tuple(
        Buffer(s.buffer, s.value.dtype, Place.LANES, 1) for s in stored if s.buffer not in arrays
    )


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
    for part, own, plan in planned_phases(group, schedule):
        info = analyze_domain(own.graph)
        assert isinstance(info, DomainInfo) and plan.nest is not None  # the planner saw to that
        names = parameter_names(group, part)
        ast = scalar_stages(own, info, plan, plan.nest)
        inside = frozenset(name for name, whole in names.items() if whole in shared)
        builder = _builder_of(plan.nest)(ast, info.domain, plan.nest, inside)
        kernel, own_sizes, count = builder.kernel(_index_bits(ast, info, plan.nest))
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


def _index_bits(ast: KernelAST, info: DomainInfo, nest: NestSchedule) -> int:
    """Return the width of index arithmetic: 32 where every index and bound is known to fit."""
    limit = (1 << 31) - max(g.chunk for g in nest.groups)
    extents = [*(b.extent for b in ast.params), info.domain.size]
    fits = all(isinstance(n, int) and n < limit for n in extents)
    return 32 if fits else 64
