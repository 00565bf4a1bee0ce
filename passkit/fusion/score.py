"""Scores: the seconds of the kernels and calls for some operators, by which plans are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from attrs import define, field, frozen

from passkit.analysis.group import Group
from passkit.analysis.nests import contract_of
from passkit.diagnostics import Diagnostic
from passkit.graph.attribute_calls import scan_of
from passkit.graph.node import Node
from passkit.planner.plan import outline_group
from passkit.planner.typical_sizes import typical
from passkit.schedule.cost import kernel_cost, library_cost, product_of
from passkit.target import Target

Seconds = Callable[[Group, Target], float]
"""Seconds of one thread for a group that has a plan, or for a library's product; 0 if unknown."""

MeasuredGain = Callable[[Group], float | None]
"""Seconds that a group saves over its clusters, if both were measured and clearly differ."""


@frozen(eq=False)
class Costs:
    """The source of the seconds of groups.

    Attributes:
        seconds: the seconds of groups.
        measured_gain: the measured gains of groups over their clusters; None if there are none.
    """

    seconds: Seconds
    measured_gain: MeasuredGain | None = None


def modelled(group: Group, target: Target) -> float:
    """Return the seconds of a group by the cost model, 0 if sizes are unknown."""
    product = product_of(group)
    if product is not None:
        return library_cost(group, product, target)
    plan = outline_group(group, target)
    return 0.0 if isinstance(plan, Diagnostic) else kernel_cost(group, plan, target)


MODEL = Costs(modelled)
"""The cost model."""


@define(eq=False)
class Scorer:
    """The seconds of groups, each asked for once for all that are alike.

    The number of operators that may be planned bounds the time of planning; other than seconds, it
    is the same on every machine.

    Attributes:
        target: the target.
        costs: the source of seconds.
        left: how many operators may still be planned.
    """

    target: Target
    costs: Costs
    left: int
    _cost_of: dict[str, float | Diagnostic] = field(factory=dict)

    def cost(self, group: Group) -> float | Diagnostic | None:
        """Return the seconds of a group with its launch, 0 if sizes are unknown.

        Return why it cannot be a kernel if so, and None if too few operators may be planned.
        """
        if group.key not in self._cost_of:
            if self.left < len(group.ops):
                return None
            self.left -= len(group.ops)
        return self.cost_beyond_budget(group)

    def cost_beyond_budget(self, group: Group) -> float | Diagnostic:
        """Return the same, however many operators may be planned."""
        cost = self._cost_of.get(group.key)
        if cost is None:
            cost = self._cost_of[group.key] = self._cost(group)
        return cost

    def total(
        self, groups: Iterable[Group], cost: Callable[[Group], float | Diagnostic | None]
    ) -> float | None:
        """Return the seconds of groups together, by `cost` or `cost_beyond_budget`.

        None if the cost of one is unknown.
        """
        total = 0.0
        for group in groups:
            seconds = cost(group)
            if not isinstance(seconds, float) or not seconds:
                return None
            total += seconds
        return total

    def measured(self, group: Group, apart: float) -> float | None:
        """Return the seconds of a group by measurements, which are its cost from now on.

        None if it was not measured beside its clusters, which take ``apart`` seconds.
        """
        measured_gain = self.costs.measured_gain
        gain = None if measured_gain is None else measured_gain(group)
        if gain is None:
            return None
        least = self.target.fusion.measured_share * apart
        self._cost_of[group.key] = seconds = max(apart - gain, least)
        return seconds

    def _cost(self, group: Group) -> float | Diagnostic:
        """Return the seconds of a group, or why it cannot be a kernel."""
        if product_of(group) is None:
            plan = outline_group(group, self.target)
            if isinstance(plan, Diagnostic):
                return plan
            if plan.multi_nest is not None and any(map(scan_of, group.ops)):
                return Diagnostic("domain.scan_nests")
        usual = typical(group)
        seconds = 0.0 if usual is None else self.costs.seconds(usual, self.target)
        return launched(seconds, self.target) if seconds else 0.0


def launched(seconds: float, target: Target) -> float:
    """Return the seconds of a kernel with those of its launch and of the barrier of its threads."""
    barrier = target.meeting if seconds > target.parallel else 0.0
    return seconds + target.launch + barrier


def is_small(node: Node, most: int) -> bool:
    """Return whether a node is a product of matrices with at most ``most`` steps for each."""
    product = contract_of(node)
    if product is None or not all(isinstance(n, int) for n in (product.m, product.n, product.k)):
        return False
    return 2 * product.m * product.n * product.k <= most  # type: ignore[operator]
