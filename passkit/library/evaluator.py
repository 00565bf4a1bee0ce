"""The evaluator: measured seconds of groups under templates, or those of the cost model.

The records come from the performance library; the evaluator measures nothing. So a plan is a
function of graph, target, options and records. Source: FusionStitching's performance library (2018,
schedule tuning) and the evaluation of kernels in its Algorithm 3 (2019).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from math import exp, inf, log
from statistics import median

from attrs import evolve, frozen

from passkit.analysis.group import Group, Kind
from passkit.diagnostics import Diagnostic
from passkit.errors import ParseError, ScheduleError
from passkit.planner.plan import outline_group, plan_group
from passkit.schedule.cost import schedule_cost
from passkit.schedule.schedule import Schedule, Source
from passkit.schedule.template import Template, parse_template
from passkit.schedule.template_of import template_of
from passkit.target import Target

MARGIN = 0.95
"""A template replaces the default one if it takes less than this factor of its seconds, in the
geometric mean of the sizes at which both were measured."""

MAX_SLOWDOWN = 1.05
"""The factor by which a chosen template may be slower than the default one at any of the sizes."""

WINS = 0.75
"""The share of the rounds with both templates in which the faster one must be faster."""

ENOUGH_SAMPLES = 40
"""The samples of a template that suffice, for any number of samples of the default one."""

UNFUSED = "apart"
"""The template in records of the units of a group, measured as separate kernels."""

MAX_SAMPLES = 128
"""The samples that are kept of one template: the newest."""

TRANSIENT_FAULTS = ("crashed", "hung")
"""Faults that the machine may have caused."""

FAULTY_SLOWDOWN = 2.0
"""The ratio of the seconds of a group to those of its units if all its kernels are at fault."""

MIN_SECONDS = 1e-12
"""The least seconds in ratios."""

Sizes = tuple[tuple[str, int], ...]
"""The names of the unknown sizes of a group, with the numbers at which it was measured."""


@frozen
class Record:
    """The measurements of a group under a template at some sizes.

    Attributes:
        group: the key of the group.
        template: the text of the template, or `UNFUSED`.
        sizes: the numbers of the unknown sizes.
        source: MEASURED if the kernel was run, else MODEL.
        samples: the seconds of single runs.
        model: the seconds of the cost model, 0 if sizes are unknown.
        fault: the reason why the template must not be used: the kernel crashed, hung, was refused,
            or had other bits than that of the default template.
        operators: the names of the operators, for reports.
        beside: the seconds of the default template in the same rounds as ``samples``, or nothing.
    """

    group: str
    template: str
    sizes: Sizes = ()
    source: Source = Source.MODEL
    samples: tuple[float, ...] = ()
    model: float = 0.0
    fault: str = ""
    operators: str = ""
    beside: tuple[float, ...] = ()

    @property
    def seconds(self) -> float:
        """The median of the samples, else the seconds of the cost model."""
        return median(self.samples) if self.samples else self.model

    @property
    def measured(self) -> bool:
        """Whether the kernel was run and has no fault."""
        return self.source is Source.MEASURED and bool(self.samples) and not self.fault

    @property
    def can_scale_model(self) -> bool:
        """Whether the record has both measured seconds of a kernel and those of the cost model."""
        return self.measured and self.template != UNFUSED and bool(self.model and self.seconds)

    @property
    def fused_ratio(self) -> float | None:
        """For a record of `UNFUSED`: the seconds of the fused kernel over those of the units.

        None if the difference is not significant: one of both must be faster in both halves of the
        rounds, in `WINS` of all rounds, and by `MARGIN` in the half where it gains less.
        """
        if not self.measured or len(self.beside) != len(self.samples) or not all(self.samples):
            return None
        ratios = [b / a for a, b in zip(self.samples, self.beside, strict=True)]
        halves = _medians_of_halves(ratios)
        faster = sum(r < 1.0 for r in ratios)
        if max(halves) < MARGIN and faster >= WINS * len(ratios):
            return max(halves)
        if min(halves) > 1 / MARGIN and len(ratios) - faster >= WINS * len(ratios):
            return min(halves)
        return None

    @property
    def ratio(self) -> float | None:
        """The seconds over those of the default template; None if they were not run together.

        The worse median of both halves of the rounds counts. A template that is not faster in
        `WINS` of all rounds is not faster.
        """
        if not self.beside or len(self.beside) != len(self.samples) or not all(self.beside):
            return None
        ratios = [a / b for a, b in zip(self.samples, self.beside, strict=True)]
        worse = max(_medians_of_halves(ratios))
        is_faster = sum(r < 1.0 for r in ratios) >= WINS * len(ratios)
        return worse if is_faster else max(worse, 1.0)


def _medians_of_halves(ratios: Sequence[float]) -> tuple[float, float]:
    """Return the medians of the first and of the last half of some numbers."""
    half = (len(ratios) + 1) // 2
    return median(ratios[:half]), median(ratios[-half:])


@frozen
class Estimate:
    """The seconds of a group, and whether they were measured."""

    seconds: float
    source: Source


def merged(records: Iterable[Record]) -> dict[tuple[str, Sizes, str], Record]:
    """Return one record for each group, sizes and template, the latest last.

    Samples are joined. Measurements replace records of the cost model. A fault stays, unless it is
    one of `TRANSIENT_FAULTS` and the kernel has run.
    """
    results: dict[tuple[str, Sizes, str], Record] = {}
    for record in records:
        key = record.group, record.sizes, record.template
        earlier = results.pop(key, None)
        if earlier is None or earlier.source is Source.MODEL:
            results[key] = record
        elif record.source is Source.MEASURED:
            samples = (*earlier.samples, *record.samples)[-MAX_SAMPLES:]
            beside = (*earlier.beside, *record.beside)[-MAX_SAMPLES:]
            fault = earlier.fault or record.fault
            if fault in TRANSIENT_FAULTS and samples:
                fault = ""
            results[key] = evolve(record, samples=samples, beside=beside, fault=fault)
        else:
            results[key] = earlier
    return results


class Evaluator:
    """Chooses schedules and returns their seconds, by records and by the cost model.

    Passes call `choose` and `seconds`; any object with these two methods can replace an evaluator.

    Args:
        records: the records.
        digest: a digest of the performance library, which is part of the cache key of plans.
        target: the name of the target of the records.

    Attributes:
        digest: the same.
        target: the same.
        used_groups: the keys of the groups with records that were evaluated.
    """

    def __init__(
        self, records: Iterable[Record] = (), digest: str = "", target: str = "cpu"
    ) -> None:
        self.digest, self.target = digest, target
        self._groups: dict[str, dict[Sizes, dict[str, Record]]] = {}
        for (group, sizes, template), record in merged(records).items():
            self._groups.setdefault(group, {}).setdefault(sizes, {})[template] = record
        self._chosen: dict[tuple[str, bool, Target], Schedule | Diagnostic] = {}
        self.used_groups: set[str] = set()

    def __len__(self) -> int:
        return sum(1 for _ in self.records)

    @property
    def records(self) -> Iterable[Record]:
        """All records, one for each group, sizes and template."""
        return (
            record
            for by_sizes in self._groups.values()
            for by_template in by_sizes.values()
            for record in by_template.values()
        )

    def records_of(self, group: Group, sizes: Sizes = ()) -> Mapping[str, Record]:
        """Return the records of a group at some sizes, by the texts of templates."""
        return self._groups.get(group.key, {}).get(sizes, {})

    def choose(self, group: Group, target: Target) -> Schedule | Diagnostic:
        """Return the schedule of a group: of the fastest measured template, else the default one.

        A template must be faster than the default one by `MARGIN`, at all sizes together.
        Templates that the planner refuses are skipped.
        """
        by_sizes = self._records_by_sizes(group, target)
        if not by_sizes:
            return plan_group(group, target)
        key = group.key, group.kind is Kind.PHASED, target
        if key not in self._chosen:
            self._chosen[key] = self._fastest(group, target, by_sizes)
        return self._chosen[key]

    def estimate(
        self, group: Group, target: Target, template: str | Template | None = None
    ) -> Estimate:
        """Return the seconds of a group under a template.

        Args:
            group: the group.
            target: the machine.
            template: the template; None for the one that `choose` takes.

        Returns: the measured seconds, else those of the cost model times `scale`; 0 if sizes are
        unknown, and infinite if the group has no kernel.

        Raises: ScheduleError for a template that does not fit the loops of the group.
        """
        if template is None:
            has_records = bool(self._records_by_sizes(group, target))
            plan = self.choose(group, target) if has_records else outline_group(group, target)
        else:
            parsed = parse_template(template) if isinstance(template, str) else template
            plan = plan_group(group, target, parsed)
        if isinstance(plan, Diagnostic):
            return Estimate(inf, Source.MODEL)
        records = self._records_by_sizes(group, target).get((), {})
        if records:
            record = records.get(str(template_of(group, plan, target)))
            if record is not None and record.measured:
                return Estimate(record.seconds, Source.MEASURED)
        return Estimate(schedule_cost(group, plan, target) * self.scale, Source.MODEL)

    def fused_gain(self, group: Group, target: Target) -> float | None:
        """Return the seconds that a group saves as one kernel, in seconds of the cost model.

        If all kernels of the group are at fault, it counts `FAULTY_SLOWDOWN` times the seconds of
        its units.

        Returns: the seconds; None if the group was not measured beside its units, or if the
        difference is not significant.
        """
        records = self._records_by_sizes(group, target).get((), {})
        units = records.get(UNFUSED)
        if units is None or not units.measured:
            return None
        kernels = [r for t, r in records.items() if t != UNFUSED and r.source is Source.MEASURED]
        ratio = units.fused_ratio
        if kernels and not any(r.measured for r in kernels):
            ratio = FAULTY_SLOWDOWN
        return None if ratio is None else units.seconds * (1 - ratio) * self.model_ratio

    @cached_property
    def model_ratio(self) -> float:
        """The median ratio of modelled to measured seconds of units; 1 without measurements."""
        units = [r for r in self.records if r.template == UNFUSED and r.measured and r.model]
        return median(r.model / r.seconds for r in units if r.seconds) if units else 1.0

    @cached_property
    def has_comparisons(self) -> bool:
        """Whether the units of any group were measured beside it."""
        return any(r.template == UNFUSED for r in self.records)

    def seconds(
        self, group: Group, target: Target, template: str | Template | None = None
    ) -> float:
        """Return the seconds of `estimate`."""
        return self.estimate(group, target, template).seconds

    @cached_property
    def scale(self) -> float:
        """The median ratio of measured to modelled seconds; 1 without measurements."""
        records = [r for r in self.records if r.can_scale_model]
        return median(r.seconds / r.model for r in records) if records else 1.0

    def _records_by_sizes(self, group: Group, target: Target) -> dict[Sizes, dict[str, Record]]:
        """Return the records of a group by sizes and template; none for other targets."""
        if not self._groups or target.name != self.target:
            return {}
        by_sizes = self._groups.get(group.key, {})
        if by_sizes:
            self.used_groups.add(group.key)
        return by_sizes

    def _fastest(
        self, group: Group, target: Target, by_sizes: Mapping[Sizes, Mapping[str, Record]]
    ) -> Schedule | Diagnostic:
        """Return the schedule of the best ranked template that the planner accepts.

        A template can be refused if another version of passkit measured it, or a group that has
        the same key by chance.
        """
        default = plan_group(group, target)
        if isinstance(default, Diagnostic):
            return default
        usual = str(template_of(group, default, target))
        records = by_sizes.get((), {})
        for text in ranked(usual, [*by_sizes.values()]):
            seconds = records[text].seconds if text in records else 0.0
            if text == usual:
                return evolve(default, source=Source.MEASURED, measured=seconds)
            try:
                plan = plan_group(group, target, parse_template(text))
            except (ParseError, ScheduleError):
                continue
            if isinstance(plan, Schedule):
                return evolve(plan, source=Source.MEASURED, measured=seconds)
        return default


def ranked(usual: str, records_at_sizes: Sequence[Mapping[str, Record]]) -> list[str]:
    """Return the templates that may be chosen, the best first.

    Templates measured at all sizes with measurements are compared by the geometric mean of the
    ratios of their seconds to those of the default template. A template is left out if it is not
    faster than the default one by `MARGIN`, if it is slower by `MAX_SLOWDOWN` at any of the sizes,
    or if it has fewer samples than half of those of the default one and than `ENOUGH_SAMPLES`: of
    many templates with few samples one is fast by chance. Equal templates are ordered by text.

    Args:
        usual: the text of the default template.
        records_at_sizes: for each of several sizes the records by the texts of templates.
    """
    measured = [
        records
        for records in records_at_sizes
        if any(r.measured for t, r in records.items() if t != UNFUSED)
    ]
    texts = {
        t
        for records in measured
        for t in records
        if t != UNFUSED and all(t in other and other[t].measured for other in measured)
    }
    ratios = {t: [_ratio(t, usual, records) for records in measured] for t in texts}
    means = {t: exp(sum(map(log, own)) / len(own)) for t, own in ratios.items()}

    def may_be_chosen(text: str) -> bool:
        """Return whether a template is the default one or may replace it."""
        if text == usual or usual not in texts:
            return True
        has_enough_samples = (
            len(records[text].samples) >= min(len(records[usual].samples) / 2, ENOUGH_SAMPLES)
            for records in measured
        )
        is_faster = means[text] < MARGIN and max(ratios[text]) <= MAX_SLOWDOWN
        return is_faster and all(has_enough_samples)

    return sorted(filter(may_be_chosen, texts), key=lambda text: (means[text], text))


def _ratio(template: str, usual: str, records: Mapping[str, Record]) -> float:
    """Return the seconds of a template over those of the default one.

    Returns: the seconds themselves if the default template was not measured.
    """
    record, default = records[template], records.get(usual)
    if default is None or not default.measured:
        return max(record.seconds, MIN_SECONDS)
    if record.ratio is not None and default.ratio is not None:
        return record.ratio / default.ratio
    return max(record.seconds, MIN_SECONDS) / max(default.seconds, MIN_SECONDS)
