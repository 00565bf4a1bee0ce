"""The selection problem: a graph of operators, patterns of them, and the gain of each pattern."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from functools import cached_property

from attrs import frozen


@frozen
class Pattern:
    """Operators that one kernel could compute.

    Attributes:
        members: the numbers of the operators.
        gain: the seconds that the kernel saves.
    """

    members: frozenset[int]
    gain: float


@frozen(eq=False, slots=False)
class Problem:
    """Patterns of a graph, in the order of their members, each of which could be chosen alone.

    Attributes:
        predecessors: for each operator, in a topological order, those that must run before it.
        patterns: the patterns.
    """

    predecessors: Sequence[Set[int]]
    patterns: Sequence[Pattern]

    def gain(self, chosen: Iterable[int]) -> float:
        """Return the seconds that patterns save together."""
        return sum(self.patterns[k].gain for k in chosen)

    @cached_property
    def overlaps(self) -> Sequence[Set[int]]:
        """For each pattern those that share an operator with it."""
        patterns_with: dict[int, set[int]] = {}
        for k, p in enumerate(self.patterns):
            for v in p.members:
                patterns_with.setdefault(v, set()).add(k)
        return [
            frozenset().union(*(patterns_with[v] for v in p.members)) - {k}
            for k, p in enumerate(self.patterns)
        ]


@frozen(eq=False)
class Selection:
    """A selection of patterns.

    Attributes:
        chosen: the numbers of the patterns.
        gain: the seconds that they save.
        bound: no selection saves more seconds than this.
        solver: the names of the solvers that chose them.
        rows: the number of constraints of all programs together, one for each operator that several
            patterns have.
        cuts: the number of constraints that cycles added.
    """

    chosen: tuple[int, ...]
    gain: float
    bound: float
    solver: str
    rows: int = 0
    cuts: int = 0

    @property
    def gap(self) -> float:
        """How much more another selection might gain, as a share of the bound."""
        return 0.0 if self.bound <= 0 else max(0.0, 1 - self.gain / self.bound)
