"""CodeGen: lower each group to loop IR or a kernel AST, and print it in the target's dialect."""

from __future__ import annotations

import hashlib
from functools import lru_cache

from attrs import evolve

from passkit.analysis.domain_info import analyze_domain
from passkit.analysis.group import Group
from passkit.analysis.groups import groups_of
from passkit.analysis.size_arguments import pool_sizes
from passkit.analysis.slots import aligned
from passkit.ast.stage import Buffer, KernelAST, Place
from passkit.checks.ir_races import check_races
from passkit.checks.pack_races import check_pack_races
from passkit.checks.stage_races import check_stage_races
from passkit.diagnostics import Diagnostic
from passkit.dialects import dialect_of
from passkit.dialects.base import Dialect, ThreadFeatures, language_of
from passkit.dialects.c_printer import print_ir
from passkit.dialects.pack_printer import print_pack
from passkit.errors import CodeGenError, ScheduleError
from passkit.graph.graph import Annotation, Graph
from passkit.graph.kernel import Kernel, own_kernel_of
from passkit.graph.node import Node
from passkit.graph.storage import StoragePlan
from passkit.ir.loop import KernelIR
from passkit.ir.pack import PackIR
from passkit.ir.verify import IRForm, verify
from passkit.ir.verify_pack import verify_pack
from passkit.passes.base import register_pass
from passkit.passes.context import PassContext
from passkit.passes.options import Dump
from passkit.passes.plan_memory import storage_plan
from passkit.planner.blocks import with_block
from passkit.planner.plan import check_rules, plan_group
from passkit.schedule.schedule import Schedule
from passkit.schedule.shared_plan import ALIGN, ROOM, SharedPlan, largest, plan_shared
from passkit.schedule.tile_loops import tiles_of
from passkit.target import Target
from passkit.transforms.lower_group import lower
from passkit.transforms.packs import LoweredPack, lower_pack
from passkit.transforms.pipeline import LoweredNest, Observer, lower_block, lower_joined, lower_nest
from passkit.transforms.printing import print_kernel
from passkit.values.memo import UncachedArgument
from passkit.values.size import Extent, numel

DEFAULT_THREADS = ThreadFeatures()
FORMAT = 1
"""A part of every key, increased when the meaning of a kernel's arguments changes."""


@register_pass("CodeGen", depends=("subgraph",), provides=("kernel",), target_dependent=True)
def codegen(graph: Graph, context: PassContext) -> Graph:
    """Annotate each fused node with its `Kernel`, and so each operator that brings its own kernel.

    The annotations of SchedulePlan and SharedMemPlan are used; without them, default plans. Kernels
    are printed for the target of ``context``.

    Raises: ScheduleError if templates were given and SchedulePlan has not run, or if a group has no
    schedule on the target; CodeGenError if a group cannot be lowered or printed, or its kernel has
    a race; RuleError if FKernel returns something else than a kernel's text or None; RegistryError
    if the target's dialect is not registered; PassError if a shape or dtype is unknown; OSError if
    a file of ``dump`` cannot be written.
    """
    schedules, shared = graph.attrs.get("schedule"), graph.attrs.get("shared")
    if schedules is None and context.templates:
        names = ", ".join(name for name, _ in context.templates)
        raise ScheduleError(
            f"CodeGen: the option templates names {names}, and only SchedulePlan applies "
            f"templates; run SchedulePlan before CodeGen"
        )
    target = context.target
    kernels: dict[Node, Kernel] = {}
    storage = storage_plan(graph) if dialect_of(target.dialect).aliased else None
    for node, group in groups_of(graph).items():
        schedule = schedules[node] if schedules is not None else _default_schedule(group, target)
        plan = shared[node] if shared is not None else plan_shared(group, schedule)
        aliased = frozenset[int]() if storage is None else _aliased_positions(node, storage)
        threads = ThreadFeatures(target.access, target.simd, target.shuffles)
        kernels[node] = make_kernel(group, schedule, plan, target.dialect, aliased, threads)
        if context.dump is not None and schedule.is_mapped:
            printer = dialect_of(target.dialect).for_threads(threads)
            _dump_forms(group, schedule, aliased, kernels[node].name, printer, context.dump)
    for node in graph.nodes:
        kernel = operator_kernel(graph, node, target.dialect)
        if kernel is not None:
            kernels[node] = kernel
    if not dialect_of(target.dialect).compiled_here:  # on the CPU a tile is the work of one thread
        kernels = {
            n: evolve(k, block=target.block) if isinstance(k.ast, KernelAST) else k
            for n, k in kernels.items()
        }
    return graph.with_attrs(kernel=Annotation("kernel", kernels))


def _default_schedule(group: Group, target: Target) -> Schedule:
    """Return the planner's schedule of a group on a target, without looking at measurements.

    It is for a graph without the annotation of SchedulePlan.

    Raises: ScheduleError with the reason if there is none, or if a rule of the user makes one that
    is not legal.
    """
    plan = plan_group(group, target)
    if isinstance(plan, Diagnostic):
        raise ScheduleError(f"{group} has no schedule on {target.name}: {plan}")
    check_rules(str(group), plan)
    return with_block(group, plan, target)


def _aliased_positions(node: Node, storage: StoragePlan) -> frozenset[int]:
    """Return the positions of a kernel's inputs and outputs that share storage with each other.

    Two inputs in one storage do not count. Positions count all inputs of ``node`` and then its
    outputs. ``storage`` is the memory plan.
    """
    entries = (*node.inputs, *node.entries)
    shared = {storage[e] for e in node.inputs} & {storage[e] for e in node.entries}
    return frozenset(k for k, e in enumerate(entries) if storage[e] in shared)


def make_kernel(
    group: Group,
    schedule: Schedule,
    shared: SharedPlan,
    dialect: str,
    aliased: frozenset[int] = frozenset(),
    threads: ThreadFeatures = DEFAULT_THREADS,
) -> Kernel:
    """Return the kernel of a group; equal groups, schedules and dialects give equal text and key.

    Args:
        group: The group.
        schedule: How its loops run.
        shared: The scratch arrays of a tile.
        dialect: The name of the language to print.
        aliased: Positions of inputs and outputs that share memory; dialects declare that all other
            buffers do not overlap.
        threads: The features of the device's threads.

    Raises:
        CodeGenError: If the group cannot be lowered or printed in the dialect, or its kernel has a
            race.
        RegistryError: If there is no such dialect.
    """
    return _kernel(group.key, schedule, shared, dialect, aliased, threads, UncachedArgument(group))


@lru_cache(maxsize=8192)
def _kernel(
    key: str,
    schedule: Schedule,
    shared: SharedPlan,
    dialect: str,
    aliased: frozenset[int],
    threads: ThreadFeatures,
    held: UncachedArgument[Group],
) -> Kernel:
    """Return the kernel of the group ``held.value``: lower its schedule and print the AST.

    Args:
        key: the group's key; with the other arguments it identifies the kernel in the cache.
        schedule: the loops to run.
        shared: the plan of the shared memory.
        dialect: the dialect to print in.
        aliased: the positions of parameters that share storage with another.
        threads: the features of the device's threads.
        held: the group, which is no part of the cache's key.

    Raises: CodeGenError if the group cannot be lowered or printed, or its kernel has a race;
    RegistryError if there is no such dialect.
    """
    group, printer = held.value, dialect_of(dialect).for_threads(threads)
    if schedule.is_mapped:
        if _has_several_bodies(schedule):
            return _pack_kernel(group, schedule, dialect, aliased)
        return _nest_kernel(group, schedule, printer, aliased)
    if not printer.grid:
        reason = (
            schedule.no_nest or "its schedule is for another target; run SchedulePlan for this one"
        )
        raise CodeGenError(f"{group}: dialect {dialect} has kernels of loop nests only: {reason}")
    raw, tiles = lower(group, schedule, shared)
    ast, sizes = pool_sizes(raw)
    ops = tuple(n.op.name for n in group.ops if n.op is not None)
    aliased_names = frozenset(ast.params[k].name for k in aliased)
    text = print_kernel(ast, "KERNEL", printer, aliased_names, sizes)
    name, digest, source = _named(text, ops[-1], dialect)
    check_stage_races(ast, name, sizes)
    return Kernel(
        name=name,
        key=digest,
        ast=ast,
        source=source,
        grid=tiles,
        block=1,
        shared_nbytes=_scratch_nbytes(raw),
        sizes=sizes,
        ops=ops,
        dialect=dialect,
        seconds=schedule.seconds,
        phases=tuple((tiles_of(p), p.seconds) for p in schedule.parts)
        if schedule.phase_outputs
        else (),
    )


def _has_several_bodies(schedule: Schedule) -> bool:
    """Return whether the kernel of a mapped schedule is a pack: of several parts, or of phases."""
    return schedule.pack is not None or (bool(schedule.phase_outputs) and not schedule.is_joined)


def _lowered(
    group: Group,
    schedule: Schedule,
    aliased: frozenset[int],
    dialect: Dialect,
    observe: Observer | None = None,
) -> LoweredNest:
    """Return a group of one loop nest, of joined chunks, or a stitched one, in final form.

    Args:
        group: the group.
        schedule: its schedule.
        aliased: the positions of parameters that share storage with another.
        dialect: the language, for the threads of the device.
        observe: called with the name of each transform and the kernel behind it; None for no call.

    Raises: CodeGenError if the group cannot be lowered.
    """
    if schedule.is_joined:
        return lower_joined(group, schedule, aliased, observe)
    features = dialect.features
    if schedule.block is not None:
        return lower_block(group, schedule, schedule.block, aliased, observe, features)
    assert schedule.nest is not None
    info = analyze_domain(group.graph)
    assert not isinstance(info, Diagnostic)  # the schedule was made from it
    return lower_nest(group, schedule, schedule.nest, info, aliased, observe, features)


def _dump_forms(
    group: Group,
    schedule: Schedule,
    aliased: frozenset[int],
    name: str,
    dialect: Dialect,
    dump: Dump,
) -> None:
    """Write the text of loop IR after each transform, for the kernel ``name`` of a group.

    Those of a pack are of each part, and then of the whole kernel. ``dump`` gives the paths of the
    files, ``aliased`` are the positions of parameters that share storage with another, ``dialect``
    is the language. Raises: OSError if a file cannot be written, CodeGenError if the group cannot
    be lowered.
    """

    def write(transform: str, form: KernelIR | PackIR) -> None:
        path = dump.path(f"{name}_{transform}").with_suffix(".ir")
        path.write_text(str(form), encoding="utf-8")

    if _has_several_bodies(schedule):
        write("pack", lower_pack(group, schedule, aliased, write).kernel)
    else:
        _lowered(group, schedule, aliased, dialect, write)


def _pack_kernel(group: Group, schedule: Schedule, dialect: str, aliased: frozenset[int]) -> Kernel:
    """Return the kernel of a group of several loop nests or phases, lowered through loop IR.

    ``aliased`` are the positions of parameters that share storage with another. Raises:
    CodeGenError if the group cannot be lowered or printed, or its kernel has a race.
    """
    lowered = lower_pack(group, schedule, aliased)
    verify_pack(lowered.kernel, "CodeGen")
    text = print_pack(lowered.kernel, "KERNEL", dialect_of(dialect))
    kernel = _kernel_of_text(text, lowered, group, schedule, dialect)
    check_pack_races(
        lowered.kernel, kernel.name, lowered.sizes, lowered.part_blocks, lowered.blocks
    )
    if not schedule.phase_outputs:
        return kernel
    seconds = (phase.seconds for phase in schedule.parts)
    return evolve(kernel, phases=tuple(zip(lowered.phase_blocks, seconds, strict=True)))


def _nest_kernel(
    group: Group, schedule: Schedule, dialect: Dialect, aliased: frozenset[int]
) -> Kernel:
    """Return the kernel of a group of one loop nest, of two, or a stitched one, in loop IR.

    ``aliased`` are the positions of parameters that share storage with another. Raises:
    CodeGenError if the group cannot be lowered or printed, or its kernel has a race.
    """
    lowered = _lowered(group, schedule, aliased, dialect)
    verify(lowered.kernel, IRForm.FINAL, "CodeGen")
    text = print_ir(lowered.kernel, "KERNEL", dialect)
    kernel = _kernel_of_text(text, lowered, group, schedule, dialect.name)
    check_races(lowered.kernel, kernel.name, lowered.sizes, lowered.blocks)
    return kernel


def _kernel_of_text(
    text: str, lowered: LoweredNest | LoweredPack, group: Group, schedule: Schedule, dialect: str
) -> Kernel:
    """Return the kernel of a group whose function is called KERNEL in ``text``.

    Args:
        text: the text of the kernel.
        lowered: its loop IR.
        group: the group.
        schedule: its schedule.
        dialect: the name of the language of the text.
    """
    ops = tuple(n.op.name for n in group.ops if n.op is not None)
    name, digest, source = _named(text, ops[-1], dialect)
    return Kernel(
        name=name,
        key=digest,
        ast=lowered.kernel,
        source=source,
        grid=lowered.blocks,
        block=lowered.kernel.launch.threads,
        shared_nbytes=lowered.kernel.shared_nbytes,
        sizes=lowered.sizes,
        ops=ops,
        dialect=dialect,
        seconds=schedule.seconds,
    )


def operator_kernel(graph: Graph, node: Node, dialect: str) -> Kernel | None:
    """Return the kernel that a plug-in's FKernel gives for a node in a dialect.

    ``graph`` has the shapes and dtypes of its inputs and outputs, which become parameters of the
    kernel: x0, x1, … and y0, y1, ….

    Returns: None for a variable, or if the operator has no FKernel for that dialect.

    Raises: RuleError if FKernel returns something else; PassError if a shape or dtype is unknown.
    Other errors of FKernel propagate.
    """
    own = own_kernel_of(node, language_of(dialect))
    if own is None:
        return None
    assert node.op is not None
    sides = (("x", node.inputs), ("y", node.entries))
    params = [
        Buffer(f"{side}{k}", graph.dtype(e), Place.GLOBAL, numel(graph.shape(e)), side == "y")
        for side, entries in sides
        for k, e in enumerate(entries)
    ]
    name, digest, source = _named(own.source, node.op.name, dialect)
    return Kernel(
        name=name,
        key=digest,
        ast=KernelAST(tuple(params), tuple(f"n{k}" for k in range(len(own.sizes))), (), ()),
        source=source,
        grid=own.grid,
        block=1,
        shared_nbytes=0,
        sizes=own.sizes,
        ops=(node.op.name,),
        dialect=dialect,
    )


def _named(text: str, op: str, dialect: str) -> tuple[str, str, str]:
    """Return name, key and final text of a kernel whose function is called KERNEL in ``text``.

    The key is a SHA-256 digest of dialect and text; the name consists of ``op``, the name of an
    operator, and the digest's first eight digits, and takes the place of KERNEL.
    """
    digest = hashlib.sha256(f"{FORMAT} {dialect}\n{text}".encode()).hexdigest()
    stem = "".join(c if c.isascii() and c.isalnum() else "_" for c in op)
    name = f"{stem}_{digest[:8]}"
    return name, digest, text.replace("KERNEL", name)


def _scratch_nbytes(ast: KernelAST) -> Extent:
    """Return the scratch bytes of a tile: its own arrays, followed by those of its rows.

    They are an int, or a Size if a symbol is left.
    """
    total: Extent = 0
    for of_row in (False, True):
        end: Extent = 0
        for b in ast.scratch:
            if b.place is Place.SHARED and b.of_row == of_row:
                nbytes = b.extent * b.dtype.nbytes
                if b.offset is None:
                    end = end + aligned(nbytes, ALIGN)
                else:
                    end = largest(end, b.offset + aligned(nbytes, ROOM))
        total = total + end
    return total
