"""The evaluator: seconds of groups under templates, measured where somebody did, else the model's.

Records come from the performance library; nothing is measured here. So a plan is a function of
graph, target, options and records. Source: FusionStitching's performance library (2018, schedule
tuning) and its Algorithm 3 (2019), whose last line is `kernel_eval_update`.
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
from passkit.schedule.cost import model_seconds
from passkit.schedule.schedule import Schedule, Source
from passkit.schedule.template import Template, parse_template
from passkit.schedule.template_of import template_of
from passkit.target import Target

MARGIN, NEVER = 0.95, 1.05
"""A template replaces the usual one where it takes less than so much of its seconds in the mean of
the sizes that both were measured at, and nowhere more than so much."""

WINS = 0.75
"""Of the rounds in which both ran it must be the quicker one in so many."""

SURE = 40
"""Samples that tell enough of a template, however many the usual one has."""

APART = "apart"
"""What stands for a template in the record of a group's units, run as kernels of their own."""

Sizes = tuple[tuple[str, int], ...]
"""The numbers that a group's unknown sizes had when it was measured, by their names."""


@frozen
class Record:
    """What is known of a group, given by its key, under a template at some sizes.

    ``samples`` are seconds of single runs where the ``source`` is MEASURED, and ``beside`` those of
    the usual template in the same rounds, or nothing. ``model`` are the seconds that the model had
    for it, 0 where sizes are unknown. A template with a ``fault`` is not
    to be taken: its kernel crashed, hung, was refused, or gave other bits than the usual one.
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
        """The median of the samples, else what the model says."""
        return median(self.samples) if self.samples else self.model

    @property
    def measured(self) -> bool:
        """Whether its kernel was run, and may be."""
        return self.source is Source.MEASURED and bool(self.samples) and not self.fault

    @property
    def tells(self) -> bool:
        """Whether it tells how much longer a kernel takes than the model says."""
        return self.measured and self.template != APART and bool(self.model and self.seconds)

    @property
    def fused_share(self) -> float | None:
        """Of a record of units `APART`: the seconds of the usual kernel of all over theirs.

        None where the clock sees no difference: in both halves of the rounds, and in `WINS` of all,
        the same one must be the quicker, and by `MARGIN` in the worse half.
        """
        if not self.measured or len(self.beside) != len(self.samples) or not all(self.samples):
            return None
        shares = [b / a for a, b in zip(self.samples, self.beside, strict=True)]
        half = (len(shares) + 1) // 2
        halves = median(shares[:half]), median(shares[-half:])
        quicker = sum(s < 1.0 for s in shares)
        if max(halves) < MARGIN and quicker >= WINS * len(shares):
            return max(halves)
        if min(halves) > 1 / MARGIN and len(shares) - quicker >= WINS * len(shares):
            return min(halves)
        return None

    @property
    def share(self) -> float | None:
        """Its seconds over those of the usual template; None where none ran beside it.

        With doubt in favour of the usual one: of both halves of the rounds the worse median counts,
        and what is not quicker in `WINS` of all rounds is not quicker.
        """
        if not self.beside or len(self.beside) != len(self.samples) or not all(self.beside):
            return None
        shares = [a / b for a, b in zip(self.samples, self.beside, strict=True)]
        half = (len(shares) + 1) // 2
        worse = max(median(shares[:half]), median(shares[-half:]))
        wins = sum(s < 1.0 for s in shares) >= WINS * len(shares)
        return worse if wins else max(worse, 1.0)


@frozen
class Estimate:
    """Seconds of a group, and whether they were measured."""

    seconds: float
    source: Source


@frozen
class Score:
    """How a template does beside the others of its group; less is better."""

    value: float
    template: str


def kernel_eval_update(found: Score, best: Score | None) -> Score:
    """The better of the kernel that was just evaluated and the best before it.

    Equal ones go by their text, so that the order in which kernels come does not matter.
    """
    if best is None:
        return found
    return min(found, best, key=lambda s: (s.value, s.template))


MOST_SAMPLES = 128
"""Samples that are kept of one template: the newest."""


def merged(records: Iterable[Record]) -> dict[tuple[str, Sizes, str], Record]:
    """One record for each group, sizes and template, from those that several wrote.

    Samples are taken together. What was measured replaces what the model said; a fault stays, but
    a kernel that crashed or hung and later ran has none.
    """
    found: dict[tuple[str, Sizes, str], Record] = {}
    for one in records:
        key = one.group, one.sizes, one.template
        known = found.pop(key, None)  # so that the newest stand last
        if known is None or known.source is Source.MODEL:
            found[key] = one
        elif one.source is Source.MEASURED:
            samples = (*known.samples, *one.samples)[-MOST_SAMPLES:]
            beside = (*known.beside, *one.beside)[-MOST_SAMPLES:]
            fault = known.fault or one.fault
            if fault in PASSING and samples:
                fault = ""
            found[key] = evolve(one, samples=samples, beside=beside, fault=fault)
        else:
            found[key] = known
    return found


PASSING = ("crashed", "hung")
"""Faults that may have been the machine's."""


class Evaluator:
    """Answers what groups cost on the target ``target`` from ``records``, else from the model.

    ``digest`` tells libraries apart. Passes ask `choose` and `seconds`; an object of your own with
    these two serves as well.
    """

    def __init__(
        self, records: Iterable[Record] = (), digest: str = "", target: str = "cpu"
    ) -> None:
        self.digest, self.target = digest, target
        self._groups: dict[str, dict[Sizes, dict[str, Record]]] = {}
        for (group, sizes, template), one in merged(records).items():
            self._groups.setdefault(group, {}).setdefault(sizes, {})[template] = one
        self._chosen: dict[tuple[str, bool, Target], Schedule | Diagnostic] = {}
        self.asked: set[str] = set()

    def __len__(self) -> int:
        return sum(1 for _ in self.records)

    @property
    def records(self) -> Iterable[Record]:
        """All records, each template of a group once for all sizes that it was measured at."""
        return (r for by in self._groups.values() for one in by.values() for r in one.values())

    def known(self, group: Group, sizes: Sizes = ()) -> Mapping[str, Record]:
        """The records of a group at some sizes, by the texts of templates."""
        return self._groups.get(group.key, {}).get(sizes, {})

    def choose(self, group: Group, target: Target) -> Schedule | Diagnostic:
        """The schedule of a group: of the template measured as the quickest, else the usual one.

        A template must be quicker than the usual one by `MARGIN` at all sizes taken together. One
        that the planner refuses is passed over.
        """
        found = self._found(group, target)
        if not found:
            return plan_group(group, target)
        key = group.key, group.kind is Kind.PHASED, target
        if key not in self._chosen:
            self._chosen[key] = self._best(group, target, found)
        return self._chosen[key]

    def estimate(
        self, group: Group, target: Target, template: str | Template | None = None
    ) -> Estimate:
        """Seconds of a group under a template, by default the one that `choose` takes.

        They are 0 where sizes are unknown, and infinite where no kernel of the target can be it.
        The model's are scaled as what was measured is to what the model said of that.

        Raises: ScheduleError for a template that does not fit the loops of the group.
        """
        if template is None:
            has_records = bool(self._found(group, target))
            plan = self.choose(group, target) if has_records else outline_group(group, target)
        else:
            parsed = parse_template(template) if isinstance(template, str) else template
            plan = plan_group(group, target, parsed)
        if isinstance(plan, Diagnostic):
            return Estimate(inf, Source.MODEL)
        known = self._found(group, target).get((), {})
        if known:
            text = str(template_of(group, plan, target))
            record = known.get(text)
            if record is not None and record.measured:
                return Estimate(record.seconds, Source.MEASURED)
        return Estimate(model_seconds(group, plan, target) * self.scale, Source.MODEL)

    def fused_gain(self, group: Group, target: Target) -> float | None:
        """Seconds that a group saves as one kernel, on the model's scale; None if nobody can say.

        It was measured beside its units, and one of both was clearly the quicker; or all kernels of
        it that were tried are at fault, which is as if it took twice as long.
        """
        known = self._found(group, target).get((), {})
        units = known.get(APART)
        if units is None or not units.measured:
            return None
        tried = [r for t, r in known.items() if t != APART and r.source is Source.MEASURED]
        share = units.fused_share
        if tried and not any(r.measured for r in tried):
            share = 2.0
        return None if share is None else units.seconds * (1 - share) * self.slowness

    @cached_property
    def slowness(self) -> float:
        """What the model says of units over what they took apart, the median of all."""
        found = [r for r in self.records if r.template == APART and r.measured and r.model]
        return median(r.model / r.seconds for r in found if r.seconds) if found else 1.0

    @cached_property
    def compares(self) -> bool:
        """Whether units of any group were measured beside it."""
        return any(r.template == APART for r in self.records)

    def seconds(
        self, group: Group, target: Target, template: str | Template | None = None
    ) -> float:
        """Those of `estimate`."""
        return self.estimate(group, target, template).seconds

    @cached_property
    def scale(self) -> float:
        """What was measured over what the model said of it, the median of all; 1 without any."""
        both = [r for r in self.records if r.tells]
        return median(r.seconds / r.model for r in both) if both else 1.0

    def _found(self, group: Group, target: Target) -> dict[Sizes, dict[str, Record]]:
        if not self._groups or target.name != self.target:
            return {}
        found = self._groups.get(group.key, {})
        if found:
            self.asked.add(group.key)
        return found

    def _best(
        self, group: Group, target: Target, found: Mapping[Sizes, Mapping[str, Record]]
    ) -> Schedule | Diagnostic:
        default = plan_group(group, target)
        if isinstance(default, Diagnostic):
            return default
        usual = str(template_of(group, default, target))
        for text in ranked(usual, [*found.values()]):
            at = found.get((), {})
            seconds = at[text].seconds if text in at else 0.0
            if text == usual:
                return evolve(default, source=Source.MEASURED, measured=seconds)
            try:
                plan = plan_group(group, target, parse_template(text))
            except (ParseError, ScheduleError):
                continue  # of another version, or another group that happens to have its key
            if isinstance(plan, Schedule):
                return evolve(plan, source=Source.MEASURED, measured=seconds)
        return default


def ranked(usual: str, found: Sequence[Mapping[str, Record]]) -> list[str]:
    """Templates that may be taken, by records at each of several sizes, the best first.

    Only those measured wherever any was are compared, by the geometric means of their seconds as
    shares of those of the ``usual`` one. Behind that, which has to be beaten by `MARGIN`, none is,
    nor one that takes more than `NEVER` times as long at any of the sizes, or left the race early,
    before half of the usual one's rounds or `SURE`: of many with few samples one is quick by luck.
    """
    tried = [by for by in found if any(r.measured for t, r in by.items() if t != APART)]
    texts = {t for by in tried for t in by if all(t in o and o[t].measured for o in tried)}
    texts.discard(APART)
    shares = {t: [_share(t, usual, by) for by in tried] for t in texts}
    scores = [Score(exp(sum(map(log, own)) / len(own)), t) for t, own in shares.items()]
    if usual in texts:
        scores = [
            s
            for s in scores
            if s.template == usual
            or (
                s.value < MARGIN
                and max(shares[s.template]) <= NEVER
                and all(
                    len(o[s.template].samples) >= min(len(o[usual].samples) / 2, SURE)
                    for o in tried
                )
            )
        ]
    order: list[str] = []
    while scores:
        best: Score | None = None
        for one in scores:
            best = kernel_eval_update(one, best)
        assert best is not None
        order.append(best.template)
        scores.remove(best)
    return order


def _share(template: str, usual: str, by: Mapping[str, Record]) -> float:
    """Seconds of a template over those of the usual one; the former where that was not measured."""
    own, other = by[template], by.get(usual)
    if other is None or not other.measured:
        return max(own.seconds, 1e-12)
    if own.share is not None and other.share is not None:
        return own.share / other.share
    return max(own.seconds, 1e-12) / max(other.seconds, 1e-12)
