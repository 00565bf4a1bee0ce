"""Prices of groups for the selection: measured where the library has them, else the model's.

What was measured are seconds of launches on all threads, the model's are of one. Here all are of
launches on the model's scale: the seconds of a kernel that was measured are the model's, times by
how much more it took than measured kernels usually do; those of one that was not, and that threads
would share, are divided by what threads gain in measured ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median
from typing import Any

from passkit.diagnostics import Diagnostic
from passkit.passes.fusion.scores import Compared, Seconds, modelled
from passkit.plan.costs import model_seconds, product_of
from passkit.plan.evaluator import Evaluator, Record
from passkit.plan.group import Group
from passkit.plan.schedule import Source
from passkit.plan.typical import typical
from passkit.target import Target


def priced(evaluator: Any, target: Target) -> Seconds:
    """What tells the seconds of groups: the model, corrected by an evaluator that has records."""
    if not isinstance(evaluator, Evaluator):
        return modelled
    rows = [r for r in evaluator.records if r.tells]
    if not rows:
        return modelled
    shared = [r for r in rows if r.model > target.parallel]
    alone = [r for r in rows if r.model <= target.parallel]
    scale = _ratio(alone if alone and shared else rows)
    gained = max(1.0, scale / _ratio(shared)) if alone and shared else 1.0

    def seconds(group: Group, target: Target) -> float:
        usual = modelled(group, target)
        if product_of(group) is None:
            plan = evaluator.choose(group, target)
            found = evaluator.estimate(group, target)
            if found.source is Source.MEASURED and not isinstance(plan, Diagnostic):
                model = model_seconds(group, plan, target)
                return usual * found.seconds / (model * scale) if model else usual
        return usual / gained if usual > target.parallel else usual

    return seconds


def comparing(evaluator: Any, target: Target) -> Compared | None:
    """What tells how groups did beside their units, if an evaluator knows that of any."""
    if not isinstance(evaluator, Evaluator) or not evaluator.compares:
        return None
    known = evaluator

    def compared(group: Group) -> float | None:
        usual = typical(group)
        return None if usual is None else known.fused_gain(usual, target)

    return compared


def _ratio(rows: Iterable[Record]) -> float:
    """The median of what was measured over what the model said."""
    return median(r.seconds / r.model for r in rows)
