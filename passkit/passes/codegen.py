"""CodeGen: lower each group to loop IR or a kernel AST, and print it in the target's dialect."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from attrs import evolve

from passkit.analysis.group import Group
from passkit.analysis.groups import groups_of
from passkit.analysis.size_arguments import pool_sizes
from passkit.analysis.slots import aligned
from passkit.ast.stage import Buffer, KernelAST, Place
from passkit.checks.stage_races import check_stage_races
from passkit.diagnostics import Diagnostic
from passkit.dialects import dialect_of
from passkit.dialects.base import ThreadFeatures, language_of
from passkit.errors import CodeGenError, ScheduleError
from passkit.graph.graph import Annotation, Graph
from passkit.graph.kernel import Kernel, own_kernel_of
from passkit.graph.node import Node
from passkit.graph.storage import StoragePlan
from passkit.passes.base import register_pass
from passkit.passes.context import PassContext
from passkit.passes.kernels.names import named
from passkit.passes.plan_memory import storage_plan
from passkit.planner.plan import check_rules, plan_group, with_block
from passkit.schedule.schedule import Schedule
from passkit.schedule.shared_plan import ALIGN, ROOM, SharedPlan, largest, plan_shared
from passkit.schedule.tile_loops import tiles_of
from passkit.target import Target
from passkit.transforms.lower_group import lower
from passkit.transforms.printing import print_kernel
from passkit.values.lazy import Lazy
from passkit.values.memo import UncachedArgument
from passkit.values.size import Extent, numel

if TYPE_CHECKING:
    from passkit.passes.kernels import loops as loop_kernels
else:  # loop IR has 70 modules, which a CPU's kernels do not need
    loop_kernels = Lazy("passkit.passes.kernels.loops")

DEFAULT_THREADS = ThreadFeatures()


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
            loop_kernels.dump_forms(
                group, schedule, aliased, kernels[node].name, printer, context.dump
            )
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
        return loop_kernels.kernel_of(group, schedule, printer, aliased)
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
    name, digest, source = named(text, ops[-1], dialect)
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
    name, digest, source = named(own.source, node.op.name, dialect)
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
