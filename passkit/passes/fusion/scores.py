"""Scores: the seconds of what would run for some operators, by which plans are compared."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field

from passkit.ast.folds import Contract
from passkit.graph.node import Node, known_shape
from passkit.plan.costs import model_seconds, work_seconds
from passkit.plan.group import Group
from passkit.plan.planner import plan_group
from passkit.plan.schedule import least_bytes
from passkit.plan.target import Target
from passkit.space.space import Infeasible, scan_of
from passkit.space.tiling import Composition
from passkit.stitching.cutting import contract_of
from passkit.values.size import numel

LIBRARY, COLUMNS, CALL = 5e10, 8, 2.5e-8
"""Steps that a library takes in a second on a core, columns that it takes at a time, and seconds
that it takes to begin with a matrix. Measured: OpenBLAS on Zen 4."""
POINTS, MOVED = 0.42, 0.25
"""What the work of kernels takes in truth, as a part of what schedules are compared by: with
folds, and of points alone. Measured: the median of 500 kernels of networks on Zen 4, one thread."""
FAR, MEMORY = 8 << 20, 1.25
"""Bytes from which on operands come from memory, and how much faster they are than the target says.
"""
CACHES = ((1 << 20, 8.0), (4 << 20, 2.0), (1 << 62, 1.0))
"""Below how many bytes a library finds its operands so much faster: in a core's own cache, in that
of all, in memory."""
MATRIX = 6e-8
"""Seconds that a kernel takes to begin with a matrix."""

Seconds = Callable[[Group, Target], float]
"""Seconds of one thread for a group that has a plan, or for a library's product; 0 if unknown."""


def modelled(group: Group, target: Target) -> float:
    """The seconds by the model, 0 where sizes are unknown.

    `model_seconds` compares schedules of one group. Here groups are compared with each other, so
    that what is too much in all schedules of a group counts: it is corrected by what was measured.
    """
    product = product_of(group)
    if product is not None:
        return library_seconds(group, product, target)
    plan = plan_group(group, target)
    if isinstance(plan, Infeasible):
        return 0.0
    raw = model_seconds(group, plan, target)
    if not raw or plan.parts:
        return POINTS * raw
    if plan.stitching is not None:
        own = sum(p.schedule.seconds for p in plan.stitching.parts if p.schedule is not None)
        work = plan.seconds - (1 - POINTS) * min(own, plan.seconds)
        matrices = sum(_matrices(n) for n in group.ops)
        return work + matrices * MATRIX + MEMORY * _from_memory(group, target)
    rate = MOVED if plan.composition is Composition.THREAD else POINTS
    return max(rate * work_seconds(plan), _from_memory(group, target))


def _matrices(node: Node) -> int:
    """How many matrices a product makes; none where sizes are unknown."""
    found = contract_of(node)
    if found is None:
        return 0
    points, each = numel(known_shape(node.entries[0])), found.m * found.n
    return points // each if isinstance(points, int) and isinstance(each, int) and each else 0


def _from_memory(group: Group, target: Target) -> float:
    """Seconds until what is too much for caches has been read and written."""
    nbytes = least_bytes(group.graph)
    return nbytes / (MEMORY * target.bandwidth) if nbytes >= FAR else 0.0


def product_of(group: Group) -> Contract | None:
    """The product of matrices that a group is, if it is one of a library."""
    return contract_of(group.ops[0]) if len(group.ops) == 1 else None


def library_seconds(group: Group, product: Contract, target: Target) -> float:
    """Seconds that a library takes for a product of matrices, 0 where sizes are unknown.

    Where all have the same right operand, they are one.
    """
    node = group.ops[0]
    rows, columns, steps = (
        n if isinstance(n, int) else 0 for n in (product.m, product.n, product.k)
    )
    matrices = _matrices(node)
    if not matrices * steps:
        return 0.0
    calls = 1 if len(known_shape(node.inputs[1])) == 2 else matrices
    wide = -(-columns // COLUMNS) * COLUMNS
    nbytes = least_bytes(group.graph)
    moved = nbytes / (target.bandwidth * next(f for most, f in CACHES if nbytes < most))
    return matrices * rows * wide * steps / LIBRARY + calls * CALL + moved


@define(eq=False)
class Scorer:
    """What groups cost, each asked once for all that are alike; ``left`` operators may be planned.

    Counting operators bounds the time of planning, and is the same on every machine.
    """

    target: Target
    seconds: Seconds
    left: int
    known: dict[str, float | Infeasible] = field(factory=dict)

    def cost(self, group: Group) -> float | Infeasible | None:
        """Seconds of a group with its launch; or why it is none, or None if nobody may ask.

        So it is 0 where sizes are unknown.
        """
        found = self.known.get(group.key)
        if found is None:
            if self.left < len(group.ops):
                return None
            self.left -= len(group.ops)
        return self.sure(group)

    def sure(self, group: Group) -> float | Infeasible:
        """The same, whatever is left."""
        found = self.known.get(group.key)
        if found is None:
            found = self.known[group.key] = self._cost(group)
        return found

    def _cost(self, group: Group) -> float | Infeasible:
        if product_of(group) is None:
            plan = plan_group(group, self.target)
            if isinstance(plan, Infeasible):
                return plan
            if plan.stitching is not None and any(map(scan_of, group.ops)):
                return Infeasible("scan", "scans have kernels of one iteration space")
        seconds = self.seconds(group, self.target)
        return launched(seconds, self.target) if seconds else 0.0


def launched(seconds: float, target: Target) -> float:
    """Seconds of a kernel with what it takes to launch it, and for its threads to meet."""
    meeting = target.meeting if seconds > target.parallel else 0.0
    return seconds + target.launch + meeting


def is_small(node: Node, most: int) -> bool:
    """Whether a kernel may compute a product of matrices: a matrix takes at most so many steps."""
    found = contract_of(node)
    if found is None or not all(isinstance(n, int) for n in (found.m, found.n, found.k)):
        return False
    return 2 * found.m * found.n * found.k <= most  # type: ignore[operator]
