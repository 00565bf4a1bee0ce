"""The result of a selection in numbers, and what it says about each edge that stays apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from attrs import frozen

from passkit.analysis.group import Decision
from passkit.diagnostics import Diagnostic
from passkit.fusion.explore import Candidate, Explorer
from passkit.fusion.selection.problem import Pattern
from passkit.graph.node import Node
from passkit.values.units import bytes_text, percent_text, seconds_text

MAX_NAMES = 6
"""The most operators of a pattern that are named."""


@frozen
class SelectionReport:
    """A selection in numbers.

    Attributes:
        operators: the number of operators.
        units: the number of clusters that the selection began with.
        tried: the number of sets of clusters that were examined.
        pool: the number of sets that pay.
        rows: the number of constraints of integer programs.
        cuts: the number of constraints for cycles among them.
        solver: the names of the solvers.
        gap: the share of the largest possible gain that the chosen sets do not gain.
        chosen: the number of chosen sets.
        before: the seconds of all kernels and calls before, as far as they are known.
        after: the seconds afterwards.
        measured: the number of sets whose gain was measured.
        peaks: the largest bytes of values between kernels, before and after.
    """

    operators: int
    units: int
    tried: int
    pool: int
    rows: int
    cuts: int
    solver: str
    gap: float
    chosen: int
    before: float
    after: float
    measured: int = 0
    peaks: tuple[int, int] = (0, 0)

    def __str__(self) -> str:
        who = f" by {self.solver}" if self.solver else ""
        return (
            f"{self.operators} operators in {self.units} units: {self.tried} patterns looked at, "
            f"{self.pool} of them pay, {self.chosen} chosen{who} ({self.rows} rows, {self.cuts} "
            f"cuts, gap {percent_text(self.gap)}); {seconds_text(self.before)} become "
            f"{seconds_text(self.after)} by the model"
            + (f", of which {self.measured} patterns were measured" if self.measured else "")
            + f"; at most {bytes_text(self.peaks[0])} between kernels become "
            + bytes_text(self.peaks[1])
        )


class EdgeDecisions:
    """The decisions about edges between clusters that depend on what a selection gains.

    Attributes:
        explorer: the exploration.
        patterns: the patterns that were chosen.
    """

    def __init__(self, explorer: Explorer, patterns: Sequence[Pattern]) -> None:
        self.explorer, self.patterns = explorer, patterns
        self._quotient = explorer.groups.quotient
        self._names = explorer.groups.graph.names
        self._pattern_of = {k: p for p in patterns for k in p.members}
        self._candidates_with: dict[int, list[Candidate]] = {}
        for candidate in explorer.candidates.values():
            for k in candidate.members:
                self._candidates_with.setdefault(k, []).append(candidate)
        self._node_of = {name: n for n, name in self._names.items()}
        self._duplicating: dict[Node, list[Pattern]] = {}
        for p in patterns:
            copies = (n for k in p.members for n in self._quotient.clusters[k].duplicated)
            for n in dict.fromkeys(copies):
                self._duplicating.setdefault(n, []).append(p)

    def final(self, log: Iterable[Decision]) -> Iterator[Decision]:
        """Yield the decisions about edges, those of the selection in place of earlier ones."""
        for d in log:
            one, another = (self._cluster(name) for name in (d.producer, d.consumer))
            is_open = not d.fused and d.diagnostic.causes[-1].code != "fuel"
            if is_open and self._is_repeated(d):
                yield Decision(d.producer, d.consumer, Diagnostic("fused.repeated"))
            elif not is_open or one is None or another is None or one == another:
                yield d
            else:
                yield self._decide(d, one, another)

    def _is_repeated(self, d: Decision) -> bool:
        """Return whether a chosen kernel has the producer and a copy of the consumer."""
        producer, consumer = (self._node_of.get(name) for name in (d.producer, d.consumer))
        if producer is None or consumer is None:
            return False
        cluster = self._quotient.cluster_of.get(producer)
        kernels = self._duplicating.get(consumer, ())
        copies = self._duplicating.get(producer, ())
        return any(cluster in p.members or p in copies for p in kernels)

    def _cluster(self, name: str) -> int | None:
        """Return the cluster of the operator of a name, if there is one."""
        return self._quotient.cluster_of.get(self._node_of[name]) if name in self._node_of else None

    def _decide(self, d: Decision, one: int, another: int) -> Decision:
        """Return the decision about an edge between two clusters."""
        ends = d.producer, d.consumer
        pattern = self._pattern_of.get(one)
        if pattern is not None and pattern is self._pattern_of.get(another):
            candidate = self.explorer.candidates[pattern.members]
            gain = {
                "gain": pattern.gain,
                "measured": candidate.is_measured,
                "grown": candidate.growth,
            }
            return Decision(*ends, Diagnostic("fused.gain", gain))
        both = [c for c in self._candidates_with.get(one, ()) if another in c.members]
        if not both:
            return d
        best = max(both, key=lambda c: (c.pays, c.problem is None, c.gain, -len(c.members)))
        name = self._describe(best.members)
        is_opaque = d.diagnostic.causes[-1].code.startswith("op.")
        is_last = is_opaque or best.members in self.explorer.unmapped
        if best.problem is not None and not is_last and best.problem.code != "cost.transposed":
            return d  # other than for operators in no group, the first reason is as good
        if best.problem is not None:
            refused = {"operators": name, "reason": best.problem}
            return Decision(*ends, Diagnostic("group.refused", refused))
        return Decision(*ends, self._priced(d, best, name))

    def _priced(self, d: Decision, best: Candidate, name: str) -> Diagnostic:
        """Return why a kernel that is possible was not chosen: its seconds, or better ones."""
        values = {
            "operators": name,
            "measured": best.is_measured,
            "grown": best.growth,
            "producer": d.producer,
            "consumer": d.consumer,
        }
        if not best.pays and best.gain < 0:
            return Diagnostic("cost.slower", {**values, "loss": -best.gain, "apart": best.apart})
        if not best.pays:
            return Diagnostic("cost.gain", {**values, "gain": best.gain, "apart": best.apart})
        better = [p for p in self.patterns if not p.members.isdisjoint(best.members)]
        if not better:
            return Diagnostic("cost.fuel", {**values, "gain": best.gain})
        winners = "; ".join(self._describe(p.members) for p in better)
        gains = {"gain": best.gain, "winners_gain": sum(p.gain for p in better)}
        return Diagnostic("cost.others", {**values, **gains, "winners": winners})

    def _describe(self, members: Iterable[int]) -> str:
        """Return the names of some operators of clusters."""
        names = [self._names[n] for n in self._quotient.nodes(members)[0]]
        more = len(names) - MAX_NAMES
        return ", ".join(names[:MAX_NAMES]) + (f" and {more} more" if more > 0 else "")
