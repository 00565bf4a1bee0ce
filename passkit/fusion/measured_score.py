"""Costs of groups for the selection: measured seconds if the library has them, else the model's.

Measured seconds are those of launches on all threads, the model's are of one thread. Here all are
on the model's scale: the seconds of a measured kernel are the model's, multiplied by how much more
it took than measured kernels usually do; those of another kernel that threads would share are
divided by what threads gain in measured ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from passkit.analysis.group import Group
from passkit.diagnostics import Diagnostic
from passkit.fusion.options import FusionOptions
from passkit.fusion.score import MODEL, Costs, MeasuredGain, Seconds, modelled
from passkit.library.evaluator import Evaluator, Record
from passkit.library.store import snapshot
from passkit.planner.typical_sizes import typical
from passkit.schedule.cost import product_of, schedule_cost
from passkit.schedule.schedule import Source
from passkit.target import Target


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
