"""What a selection chose, from what, and what it says about each edge that stays apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from attrs import frozen

from passkit.diagnostics import Diagnostic
from passkit.graph.node import Node
from passkit.passes.fusion.board import Board
from passkit.passes.fusion.explore import Explorer, Tried
from passkit.plan.group import Decision
from passkit.selection.problem import Pattern, Problem, Selection
from passkit.values.units import bytes_text, percent_text, seconds_text

FEW = 6
"""Operators of a pattern that are named at most."""


@frozen
class Chosen:
    """A selection in numbers: of how many patterns what was chosen, by whom, and what that saves.

    ``before`` and ``after`` are the seconds of all that runs, as far as anybody knows them; ``gap``
    is the share of what could be gained at most that was not. What so many of the patterns gain was
    ``measured``. ``peaks`` are the bytes of values between kernels at most, before and after.
    """

    operators: int
    units: int
    tried: int
    pool: int
    rows: int
    cuts: int
    rounds: int
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


def recorded(
    board: Board,
    explorer: Explorer,
    problem: Problem,
    found: Selection,
    chosen: Sequence[Pattern],
    left: tuple[float, tuple[int, int]],
) -> Chosen:
    """The selection in numbers; ``left`` are the seconds afterwards, and both peaks of memory."""
    after, peaks = left
    return Chosen(
        operators=len(board.of), units=len(board.list), tried=len(explorer.tried),
        pool=len(problem.patterns), rows=found.rows, cuts=found.cuts, rounds=found.rounds,
        solver=found.solver, gap=found.gap, chosen=len(chosen), before=sum(explorer.costs),
        after=after, measured=sum(t.measured for t in explorer.tried.values()), peaks=peaks,
    )  # fmt: skip


class Verdicts:
    """What became of edges between units, where that was decided by what they would gain."""

    def __init__(self, board: Board, explorer: Explorer, chosen: Sequence[Pattern]) -> None:
        self.board, self.explorer, self.chosen = board, explorer, chosen
        self.home = {k: p for p in chosen for k in p.members}
        self.tried: dict[int, list[Tried]] = {}
        for t in explorer.tried.values():
            for k in t.members:
                self.tried.setdefault(k, []).append(t)
        self.node_of = {name: n for n, name in board.graph.names.items()}
        self.copied: dict[Node, list[Pattern]] = {}
        for p in chosen:
            for n in dict.fromkeys(n for k in p.members for n in board.list[k].clones):
                self.copied.setdefault(n, []).append(p)

    def settled(self, log: Iterable[Decision]) -> Iterator[Decision]:
        """Decisions about edges, those of the selection in the place of what was said before."""
        for d in log:
            one, another = (self._unit(name) for name in (d.producer, d.consumer))
            is_open = not d.fused and d.diagnostic.causes[-1].code != "fuel"
            if is_open and self._is_repeated(d):
                yield Decision(d.producer, d.consumer, Diagnostic("fused.repeated"))
            elif not is_open or one is None or another is None or one == another:
                yield d
            else:
                yield self._decided(d, one, another)

    def _is_repeated(self, d: Decision) -> bool:
        """Return whether a chosen kernel has the producer and a copy of the consumer."""
        producer, consumer = (self.node_of.get(name) for name in (d.producer, d.consumer))
        if producer is None or consumer is None:
            return False
        unit = self.board.of.get(producer)
        kernels = self.copied.get(consumer, ())
        return any(unit in p.members or p in self.copied.get(producer, ()) for p in kernels)

    def _unit(self, name: str) -> int | None:
        return self.board.of.get(self.node_of[name]) if name in self.node_of else None

    def _decided(self, d: Decision, one: int, another: int) -> Decision:
        ends = d.producer, d.consumer
        home = self.home.get(one)
        if home is not None and home is self.home.get(another):
            tried = self.explorer.tried[home.members]
            gain = {"gain": home.gain, "measured": tried.measured, "grown": tried.grown}
            return Decision(*ends, Diagnostic("fused.gain", gain))
        both = [t for t in self.tried.get(one, ()) if another in t.members]
        if not both:
            return d
        best = max(both, key=lambda t: (t.pays, t.why is None, t.gain, -len(t.members)))
        name = self._called(best.members)
        opaque = d.diagnostic.causes[-1].code.startswith("op.")
        if best.why is not None and not opaque and best.why.code != "cost.transposed":
            return d  # which is of these two; what a library computes only the selection has tried
        if best.why is not None:
            refused = {"operators": name, "reason": best.why}
            return Decision(*ends, Diagnostic("group.refused", refused))
        return Decision(*ends, self._priced(d, best, name))

    def _priced(self, d: Decision, best: Tried, name: str) -> Diagnostic:
        """Return why a kernel that is possible was not chosen: its seconds, or better ones."""
        told = {
            "operators": name,
            "measured": best.measured,
            "grown": best.grown,
            "producer": d.producer,
            "consumer": d.consumer,
        }
        if not best.pays and best.gain < 0:
            return Diagnostic("cost.slower", {**told, "loss": -best.gain, "apart": best.apart})
        if not best.pays:
            return Diagnostic("cost.gain", {**told, "gain": best.gain, "apart": best.apart})
        won = [p for p in self.chosen if not p.members.isdisjoint(best.members)]
        if not won:
            return Diagnostic("cost.fuel", {**told, "gain": best.gain})
        winners = "; ".join(self._called(p.members) for p in won)
        gains = {"gain": best.gain, "winners_gain": sum(p.gain for p in won)}
        return Diagnostic("cost.others", {**told, **gains, "winners": winners})

    def _called(self, members: Iterable[int]) -> str:
        """The names of some operators of units."""
        names = [self.board.graph.names[n] for n in self.board.nodes(members)[0]]
        more = len(names) - FEW
        return ", ".join(names[:FEW]) + (f" and {more} more" if more > 0 else "")
