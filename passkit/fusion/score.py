"""Scores: the seconds of the kernels and calls for some operators, by which plans are compared.

They are those of the cost model; where the performance library has measured a kernel, these are
multiplied by how much more it took than measured kernels usually do. Measured seconds are those of
launches on all threads, the model's are of one thread: so those of another kernel that threads
would share are divided by what threads gain in measured ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import median

from attrs import define, field, frozen

from passkit.analysis.group import Group
from passkit.analysis.nests import contract_of
from passkit.diagnostics import Diagnostic
from passkit.fusion.options import FusionOptions
from passkit.graph.attribute_calls import scan_of
from passkit.graph.node import Node
from passkit.library.evaluator import Evaluator, Record
from passkit.library.store import snapshot
from passkit.planner.plan import outline_group
from passkit.planner.typical_sizes import typical
from passkit.schedule.cost import (
    kernel_cost,
    launch_seconds,
    library_cost,
    product_of,
    schedule_cost,
)
from passkit.schedule.schedule import Source
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


def costs_of(context: FusionOptions) -> Costs:
    """Return the cost model of groups, corrected by measurements of this machine if there are any.

    The option ``evaluator`` has them, else the cache folder.

    Raises: CacheError if other users may write to the folder of the measurements.
    """
    evaluator = snapshot().evaluator if context.evaluator is None else context.evaluator
    if not isinstance(evaluator, Evaluator):
        return MODEL
    target = context.target
    return Costs(_seconds(evaluator, target), _measured_gain(evaluator, target))


def _seconds(evaluator: Evaluator, target: Target) -> Seconds:
    """Return the seconds of groups on the model's scale."""
    rows = [r for r in evaluator.records if r.can_scale_model]
    if not rows:
        return modelled
    shared = [r for r in rows if r.model > target.parallel]
    alone = [r for r in rows if r.model <= target.parallel]
    scale = _ratio(alone if alone and shared else rows)
    gained = max(1.0, scale / _ratio(shared)) if alone and shared else 1.0

    def seconds(group: Group, target: Target) -> float:
        """Return the seconds of a group, measured if possible."""
        usual = modelled(group, target)
        if product_of(group) is None:
            plan = evaluator.choose(group, target)
            estimate = evaluator.estimate(group, target)
            if estimate.source is Source.MEASURED and not isinstance(plan, Diagnostic):
                model = schedule_cost(group, plan, target)
                return usual * estimate.seconds / (model * scale) if model else usual
        return usual / gained if usual > target.parallel else usual

    return seconds


def _measured_gain(evaluator: Evaluator, target: Target) -> MeasuredGain | None:
    """Return the measured gains of groups over their clusters, if there are any."""
    if not evaluator.has_comparisons:
        return None

    def measured_gain(group: Group) -> float | None:
        """Return the seconds that a group gains over its clusters, None if not measured."""
        usual = typical(group)
        return None if usual is None else evaluator.fused_gain(usual, target)

    return measured_gain


def _ratio(rows: Iterable[Record]) -> float:
    """Return the median ratio of measured seconds to those of the model."""
    return median(r.seconds / r.model for r in rows)


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

    def cost(self, group: Group, bounded: bool = True) -> float | Diagnostic | None:
        """Return the seconds of a group with its launch, 0 if sizes are unknown.

        Return why it cannot be a kernel if so, and None if too few operators may be planned;
        ``bounded`` says whether their number counts.
        """
        if group.key not in self._cost_of:
            if bounded and self.left < len(group.ops):
                return None
            self.left -= len(group.ops) if bounded else 0
            self._cost_of[group.key] = self._cost(group)
        return self._cost_of[group.key]

    def total(self, groups: Iterable[Group], bounded: bool = True) -> float | None:
        """Return the seconds of groups together; None if those of one are unknown."""
        total = 0.0
        for group in groups:
            seconds = self.cost(group, bounded)
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
        return seconds + launch_seconds(seconds, self.target) if seconds else 0.0


def is_small(node: Node, most: int) -> bool:
    """Return whether a node is a product of matrices with at most ``most`` steps for each."""
    product = contract_of(node)
    if product is None or not all(isinstance(n, int) for n in (product.m, product.n, product.k)):
        return False
    return 2 * product.m * product.n * product.k <= most  # type: ignore[operator]
