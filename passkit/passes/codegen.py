"""CodeGen: each fused node's group becomes a kernel AST, and its text in the target's dialect."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache

from attrs import evolve

from passkit.ast.stage import Buffer, KernelAST, Place
from passkit.checks.hazards import check_hazards
from passkit.dialects import dialect_of, print_kernel
from passkit.dialects.base import Reach
from passkit.dialects.row_lanes import has_rows, row_lanes
from passkit.errors import ScheduleError
from passkit.graph.graph import Annotation, Graph
from passkit.graph.node import Node
from passkit.lowering import lower, pool_sizes
from passkit.lowering.loops import tiles_of
from passkit.passes.base import register_pass
from passkit.passes.context import PassContext
from passkit.passes.plan_memory import storage_plan
from passkit.plan.group import Group
from passkit.plan.groups import groups_of
from passkit.plan.kernel import Kernel, own_kernel_of
from passkit.plan.planner import plan_group
from passkit.plan.schedule import Schedule
from passkit.plan.storage import StoragePlan
from passkit.plan.target import Target
from passkit.runtime.cuda.figures import USUAL
from passkit.sharing.shared import ALIGN, ROOM, SharedPlan, largest, plan_shared
from passkit.sharing.sharing import aligned
from passkit.space.space import Infeasible
from passkit.values.memo import Held
from passkit.values.size import Extent, numel, substitute

USUAL_REACH = Reach()
FORMAT = 1
"""Part of every key: raised when the meaning of a kernel's arguments changes."""


@register_pass("CodeGen", depends=("subgraph",), provides=("kernel",), target_dependent=True)
def codegen(graph: Graph, context: PassContext) -> Graph:
    """Annotate each fused node with its `Kernel`, and what brings one of its own.

    Obeys the annotations of SchedulePlan and SharedMemPlan; without them it takes default plans.
    """
    schedules, shared = graph.attrs.get("schedule"), graph.attrs.get("shared")
    if schedules is None and context.templates:
        names = ", ".join(name for name, _ in context.templates)
        raise ScheduleError(f"SchedulePlan obeys templates, here of {names}; run it before CodeGen")
    kernels = {}
    places = storage_plan(graph) if dialect_of(context.target.dialect).aliased else None
    for node, group in groups_of(graph).items():
        schedule = schedules[node] if schedules is not None else _default(group, context.target)
        plan = shared[node] if shared is not None else plan_shared(group, schedule)
        met = frozenset[int]() if places is None else _aliased(node, places)
        target = context.target
        reach = Reach(target.access, target.simd, target.shuffles)
        kernels[node] = make_kernel(group, schedule, plan, target.dialect, met, reach)
    for node in graph.nodes:
        made = own_kernel(graph, node, context.target.dialect)
        if made is not None:
            kernels[node] = made
    if context.target.dialect != "cxx":  # whose tile is the work of one thread
        kernels = {n: _of_blocks(k, context.target) for n, k in kernels.items()}
    return graph.with_attrs(kernel=Annotation("kernel", kernels))


def _of_blocks(kernel: Kernel, target: Target) -> Kernel:
    """The kernel with the threads of a block, and the scratch of all rows that it has at a time.

    Where sizes are known and rows need more than is usual, a block has fewer of them; a launch
    looks again. Source: `passkit.runtime.cuda.figures`.
    """
    if not dialect_of(kernel.dialect).scratch_of_row or not has_rows(kernel.ast):
        return evolve(kernel, block=target.block)
    values = dict(zip(kernel.ast.sizes, kernel.sizes, strict=True))
    lanes = row_lanes(kernel.ast, values)
    rows = target.block // lanes
    nbytes = _scratch_nbytes(kernel.ast, rows, values)
    while rows * lanes > target.warp and isinstance(nbytes, int) and nbytes > USUAL:
        rows //= 2
        nbytes = _scratch_nbytes(kernel.ast, rows, values)
    return evolve(kernel, block=rows * lanes, shared_nbytes=nbytes)


def _default(group: Group, target: Target) -> Schedule:
    plan = plan_group(group, target)
    if isinstance(plan, Infeasible):
        raise ScheduleError(f"{group} has no schedule on {target.name}: {plan.reason}")
    return plan


def _aliased(node: Node, places: StoragePlan) -> frozenset[int]:
    """The positions of a node's inputs and results, counted through, that have one place."""
    entries = (*node.inputs, *node.entries)
    both = {places[e] for e in node.inputs} & {places[e] for e in node.entries}
    return frozenset(k for k, e in enumerate(entries) if places[e] in both)


def make_kernel(
    group: Group,
    schedule: Schedule,
    shared: SharedPlan,
    dialect: str,
    aliased: frozenset[int] = frozenset(),
    reach: Reach = USUAL_REACH,
) -> Kernel:
    """The kernel of one group. Equal groups, schedules and dialects give one text and key.

    Where a dialect says that buffers are apart, those at the positions ``aliased`` are not. A
    lane of the device can do what is in its ``reach``.
    """
    return _kernel(group.key, schedule, shared, dialect, aliased, reach, Held(group))


@lru_cache(maxsize=8192)
def _kernel(
    key: str,
    schedule: Schedule,
    shared: SharedPlan,
    dialect: str,
    aliased: frozenset[int],
    reach: Reach,
    held: Held[Group],
) -> Kernel:
    group = held.value
    raw, tiles = lower(group, schedule, shared)
    ast, sizes = pool_sizes(raw)
    spoken = dialect_of(dialect).for_lanes(reach)
    ops = tuple(n.op.name for n in group.ops if n.op is not None)
    met = frozenset(ast.params[k].name for k in aliased)
    name, digest, text = _named(print_kernel(ast, "KERNEL", spoken, met), ops[-1], dialect)
    check_hazards(ast, name, sizes)
    return Kernel(
        name=name,
        key=digest,
        ast=ast,
        source=text,
        grid=tiles,
        block=1,
        shared_nbytes=_scratch_nbytes(raw),
        sizes=sizes,
        ops=ops,
        dialect=dialect,
        seconds=schedule.seconds,
        phases=tuple((tiles_of(p), p.seconds) for p in schedule.parts) if schedule.makes else (),
    )


def own_kernel(graph: Graph, node: Node, dialect: str) -> Kernel | None:
    """The kernel that an operator's FKernel brings for a dialect, if there is one."""
    made = own_kernel_of(node, dialect)
    if made is None:
        return None
    assert node.op is not None
    sides = (("x", node.inputs), ("y", node.entries))
    params = [
        Buffer(f"{side}{k}", graph.dtype(e), Place.GLOBAL, numel(graph.shape(e)), side == "y")
        for side, entries in sides
        for k, e in enumerate(entries)
    ]
    name, digest, text = _named(made.source, node.op.name, dialect)
    return Kernel(
        name=name,
        key=digest,
        ast=KernelAST(tuple(params), tuple(f"n{k}" for k in range(len(made.sizes))), (), ()),
        source=text,
        grid=made.grid,
        block=1,
        shared_nbytes=0,
        sizes=made.sizes,
        ops=(node.op.name,),
        dialect=dialect,
    )


def _named(text: str, op: str, dialect: str) -> tuple[str, str, str]:
    """Name, key and text of a kernel whose function is called KERNEL."""
    digest = hashlib.sha256(f"{FORMAT} {dialect}\n{text}".encode()).hexdigest()
    stem = "".join(c if c.isascii() and c.isalnum() else "_" for c in op)
    name = f"{stem}_{digest[:8]}"
    return name, digest, text.replace("KERNEL", name)


def _scratch_nbytes(
    ast: KernelAST, rows: int = 1, values: Mapping[str, Extent] | None = None
) -> Extent:
    """What a tile's arrays take, and behind them those of its rows, so many at a time.

    ``values`` are the sizes of the AST by their names, where its own are asked for.
    """
    total: Extent = 0
    for of_row in (False, True):
        end: Extent = 0
        for b in ast.scratch:
            if b.place is Place.SHARED and b.of_row == of_row:
                nbytes = substitute(b.extent, values or {}) * b.dtype.nbytes
                if b.offset is None:
                    end = end + aligned(nbytes, ALIGN)
                else:
                    offset = substitute(b.offset, values or {})
                    end = largest(end, offset + aligned(nbytes, ROOM))
        total = total + (rows * end if of_row else end)
    return total
