"""The problem: operators with what each needs, patterns of them, and what each pattern gains."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from functools import cached_property

from attrs import frozen

from passkit.selection.units import Units


@frozen
class Pattern:
    """Operators by number that one kernel could compute, and the seconds that it would save."""

    members: frozenset[int]
    gain: float


@frozen(eq=False, slots=False)
class Problem:
    """Patterns in the order of their members, each of which could be chosen by itself.

    ``needs`` has for each operator those that it reads or waits for, in an order in which they can
    run.
    """

    needs: Sequence[Set[int]]
    patterns: Sequence[Pattern]

    def gain(self, chosen: Iterable[int]) -> float:
        """The seconds that patterns save together."""
        return sum(self.patterns[k].gain for k in chosen)

    @cached_property
    def overlaps(self) -> Sequence[Set[int]]:
        """For each pattern those that share an operator with it."""
        of: dict[int, set[int]] = {}
        for k, p in enumerate(self.patterns):
            for v in p.members:
                of.setdefault(v, set()).add(k)
        return [
            frozenset().union(*(of[v] for v in p.members)) - {k}
            for k, p in enumerate(self.patterns)
        ]

    @cached_property
    def users(self) -> Sequence[Sequence[int]]:
        """For each operator those that need it."""
        found: list[list[int]] = [[] for _ in self.needs]
        for v, needs in enumerate(self.needs):
            for n in needs:
                found[n].append(v)
        return found


@frozen(eq=False)
class Selection:
    """Patterns by number, what they gain, and what no selection gains more than.

    ``solver`` says who chose them; ``rows`` are the constraints of all programs together, one for
    each operator that several patterns have; ``cuts`` those that cycles added, in so many
    ``rounds``.
    """

    chosen: tuple[int, ...]
    gain: float
    bound: float
    solver: str
    rows: int = 0
    cuts: int = 0
    rounds: int = 0

    @property
    def gap(self) -> float:
        """How much more another selection might gain, as a share of the bound."""
        return 0.0 if self.bound <= 0 else max(0.0, 1 - self.gain / self.bound)


def problem_of(needs: Sequence[Set[int]], patterns: Iterable[Pattern]) -> Problem:
    """The problem without patterns that gain nothing, that others stand between, or met before."""
    units = Units(needs)
    best: dict[frozenset[int], Pattern] = {}
    for p in patterns:
        known = best.get(p.members)
        if p.gain > 0 and len(p.members) > 1 and (known is None or known.gain < p.gain):
            best[p.members] = p
    kept = [p for p in best.values() if units.can_join(p.members)]
    return Problem(needs, tuple(sorted(kept, key=lambda p: sorted(p.members))))
