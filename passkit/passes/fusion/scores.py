"""Scores: the seconds of what would run for some operators, by which plans are compared."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field

from passkit.diagnostics import Diagnostic
from passkit.graph.attribute_calls import scan_of
from passkit.graph.node import Node
from passkit.plan.costs import kernel_seconds, library_seconds, product_of
from passkit.plan.group import Group
from passkit.plan.planner import outline_group
from passkit.plan.typical import typical
from passkit.stitching.cutting import contract_of
from passkit.target import Target

Seconds = Callable[[Group, Target], float]
"""Seconds of one thread for a group that has a plan, or for a library's product; 0 if unknown."""

Compared = Callable[[Group], float | None]
"""Seconds that a group saves over its units, if both were measured and clearly differ."""


def modelled(group: Group, target: Target) -> float:
    """The seconds by the model, 0 where sizes are unknown."""
    product = product_of(group)
    if product is not None:
        return library_seconds(group, product, target)
    plan = outline_group(group, target)
    return 0.0 if isinstance(plan, Diagnostic) else kernel_seconds(group, plan, target)


@define(eq=False)
class Scorer:
    """What groups cost, each asked once for all that are alike; ``left`` operators may be planned.

    Counting operators bounds the time of planning, and is the same on every machine.
    """

    target: Target
    seconds: Seconds
    left: int
    known: dict[str, float | Diagnostic] = field(factory=dict)
    compared: Compared | None = None

    def cost(self, group: Group) -> float | Diagnostic | None:
        """Seconds of a group with its launch; or why it is none, or None if nobody may ask.

        So it is 0 where sizes are unknown.
        """
        found = self.known.get(group.key)
        if found is None:
            if self.left < len(group.ops):
                return None
            self.left -= len(group.ops)
        return self.sure(group)

    def sure(self, group: Group) -> float | Diagnostic:
        """The same, whatever is left."""
        found = self.known.get(group.key)
        if found is None:
            found = self.known[group.key] = self._cost(group)
        return found

    def measured(self, group: Group, apart: float) -> float | None:
        """Seconds of a group whose units take ``apart``, if both were measured; known from now."""
        gain = None if self.compared is None else self.compared(group)
        if gain is None:
            return None
        least = self.target.fusion.measured_share * apart
        self.known[group.key] = seconds = max(apart - gain, least)
        return seconds

    def _cost(self, group: Group) -> float | Diagnostic:
        if product_of(group) is None:
            plan = outline_group(group, self.target)
            if isinstance(plan, Diagnostic):
                return plan
            if plan.stitching is not None and any(map(scan_of, group.ops)):
                return Diagnostic("domain.scan_nests")
        usual = typical(group)
        seconds = 0.0 if usual is None else self.seconds(usual, self.target)
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
