"""CodeGen: each fused node's group becomes a kernel AST, and its text in the target's dialect."""

from __future__ import annotations

import hashlib
from functools import lru_cache

from passkit.dialects import dialect_of, print_kernel
from passkit.errors import ScheduleError
from passkit.graph import Annotation, Graph
from passkit.group import Group
from passkit.kernel import Kernel
from passkit.lowering import lower, pool_sizes
from passkit.passes.base import register_pass
from passkit.passes.context import PassContext
from passkit.schedule import Schedule, plan_group
from passkit.shared import SharedPlan, plan_shared
from passkit.size import Extent
from passkit.space import Infeasible
from passkit.stage import KernelAST, Place
from passkit.target import Target

FORMAT = 1
"""Part of every key: raised when the meaning of a kernel's arguments changes."""


@register_pass("CodeGen", depends=("subgraph",), provides=("kernel",), target_dependent=True)
def codegen(graph: Graph, context: PassContext) -> Graph:
    """Annotate each fused node with its `Kernel`.

    Obeys the annotations of SchedulePlan and SharedMemPlan; without them it takes default plans.
    """
    schedules, shared = graph.attrs.get("schedule"), graph.attrs.get("shared")
    kernels = {}
    for node, group in graph.attrs["subgraph"].items():
        schedule = schedules[node] if schedules is not None else _default(group, context.target)
        plan = shared[node] if shared is not None else plan_shared(group, schedule)
        kernels[node] = make_kernel(group, schedule, plan, context.target.dialect)
    return graph.with_attrs(kernel=Annotation("kernel", kernels))


def _default(group: Group, target: Target) -> Schedule:
    plan = plan_group(group, target)
    if isinstance(plan, Infeasible):
        raise ScheduleError(f"{group} has no schedule on {target.name}: {plan.reason}")
    return plan


def make_kernel(group: Group, schedule: Schedule, shared: SharedPlan, dialect: str) -> Kernel:
    """The kernel of one group. Equal groups, schedules and dialects give one text and key."""
    return _kernel(group.key, schedule, shared, dialect, _Unhashed(group))


class _Unhashed:
    """A group whose key already takes part in the memo."""

    def __init__(self, group: Group) -> None:
        self.group = group

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Unhashed)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=8192)
def _kernel(
    key: str, schedule: Schedule, shared: SharedPlan, dialect: str, held: _Unhashed
) -> Kernel:
    group = held.group
    raw, tiles = lower(group, schedule, shared)
    ast, sizes = pool_sizes(raw)
    spoken = dialect_of(dialect)
    text = print_kernel(ast, "KERNEL", spoken)
    digest = hashlib.sha256(f"{FORMAT} {dialect}\n{text}".encode()).hexdigest()
    name = f"{_stem(group)}_{digest[:8]}"
    return Kernel(
        name=name,
        key=digest,
        ast=ast,
        source=text.replace("KERNEL", name, 1),
        grid=tiles,
        block=1,
        shared_nbytes=_scratch_nbytes(raw),
        sizes=sizes,
        ops=tuple(n.op.name for n in group.ops if n.op is not None),
        dialect=dialect,
        seconds=schedule.seconds,
    )


def _stem(group: Group) -> str:
    last = group.ops[-1]
    assert last.op is not None
    return "".join(c if c.isascii() and c.isalnum() else "_" for c in last.op.name)


def _scratch_nbytes(ast: KernelAST) -> Extent:
    total: Extent = 0
    for b in ast.scratch:
        if b.place is Place.SHARED:
            total = total + (b.extent * b.dtype.nbytes + 63) // 64 * 64
    return total
