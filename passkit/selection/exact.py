"""Selections of the largest gain: integer programs, and cuts for the cycles that they make.

Source: FusionStitching (2019), fusion plans by integer linear programming. Its rows for pairs of
patterns that overlap are one row for each operator here, which has the same integer solutions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from attrs import define, evolve, field

from passkit.selection.cycles import cycles
from passkit.selection.greedy import greedy, selection
from passkit.selection.nested import is_nested, nested
from passkit.selection.pieces import pieces_of
from passkit.selection.problem import Problem, Selection
from passkit.selection.solver import Program, Solution, searched, solve

ROUNDS = 50
"""How often cycles are cut before patterns of small gain are given up for them."""
MOST = 100
"""Patterns of one program at most."""
SMALL = 2000
"""Operators up to which a selection that may not be the best is held against a greedy one."""
TIE = 1e-7
"""What an operator less to launch counts beside the largest gain, where gains are equal."""


def exact(problem: Problem, few: int = 0) -> Selection:
    """The patterns of the largest gain that are disjoint and make no cycle.

    A component, patterns that overlap or are on a cycle together, is a program of its own; one of
    at most a ``few`` patterns is searched through, without a solver. Where a component has over
    `MOST` patterns, it is cut where that loses least; then, or where its program is not solved, the
    bound says what may be lost. Components that are alike are solved once.
    """
    run = _Exact(problem, few)
    for k in range(ROUNDS):
        found = cycles(problem, run.chosen())
        if not found:
            break
        run.rounds = k + 1
        run.cut(found)
    chosen = run.selection()
    if chosen.gap > TIE and len(problem.needs) <= SMALL:
        other = greedy(problem)
        if other.gain > chosen.gain:
            return evolve(chosen, chosen=other.chosen, gain=other.gain, solver=other.solver)
    return chosen


@define(eq=False)
class _Component:
    """Patterns that are chosen together, the cuts among them, and what was found last."""

    patterns: list[int]
    cuts: list[frozenset[int]] = field(factory=list)
    chosen: set[int] | None = None
    bound: float = 0.0
    rows: int = 0
    solver: str = ""


class _Exact:
    def __init__(self, problem: Problem, few: int) -> None:
        self.problem, self.few, self.rounds = problem, few, 0
        self.components = [_Component(c) for c in _components(problem)]
        self.known: dict[Program, Solution | None] = {}

    def chosen(self) -> set[int]:
        """What all components choose; those that changed are solved again."""
        for c in self.components:
            if c.chosen is None:
                self._solve(c)
        return {k for c in self.components for k in c.chosen or ()}

    def cut(self, found: Iterable[frozenset[int]]) -> None:
        """Forbid that all patterns of a cycle are chosen; their components become one."""
        for cycle in found:
            met = [c for c in self.components if not cycle.isdisjoint(c.patterns)]
            merged = _Component(sorted(k for c in met for k in c.patterns))
            merged.cuts = [*(x for c in met for x in c.cuts), cycle]
            self.components = [c for c in self.components if c not in met] + [merged]

    def _solve(self, c: _Component) -> None:
        problem = self.problem
        if not c.cuts and is_nested(problem, c.patterns):
            c.chosen, c.solver = nested(problem, c.patterns), "nested"
            c.bound = problem.gain(c.chosen)
            return
        c.chosen, c.rows, c.solver = set(), 0, ""
        pieces = pieces_of(problem, c.patterns, MOST)
        for kept in pieces:
            program = _program(problem, kept, c.cuts)
            found = self._solved(program)
            if found is None:
                found = Solution(greedy(_part(problem, kept)).chosen, "greedy")
            c.chosen |= {kept[k] for k in found.chosen}
            c.rows += len(program.rows)
            c.solver = found.solver
        c.bound = problem.gain(c.chosen)
        if sum(map(len, pieces)) < len(c.patterns) or c.solver == "greedy":
            c.bound = selection(_part(problem, c.patterns), (), "").bound

    def _solved(self, program: Program) -> Solution | None:
        if program not in self.known:
            small = len(program.gains) <= self.few
            self.known[program] = searched(program) if small else solve(program)
        return self.known[program]

    def selection(self) -> Selection:
        """What is chosen in the end; what would still make cycles gives up what gains least."""
        chosen = self.chosen()
        solvers = sorted({c.solver for c in self.components})
        while found := cycles(self.problem, chosen):
            for cycle in found:
                chosen.discard(min(cycle, key=lambda k: (self.problem.patterns[k].gain, k)))
            solvers = sorted({*solvers, "dropped"})
        return Selection(
            chosen=tuple(sorted(chosen)),
            gain=self.problem.gain(sorted(chosen)),
            bound=sum(c.bound for c in self.components),
            solver=", ".join(solvers),
            rows=sum(c.rows for c in self.components),
            cuts=sum(len(c.cuts) for c in self.components),
            rounds=self.rounds,
        )


def _part(problem: Problem, kept: Sequence[int]) -> Problem:
    """The problem of some patterns."""
    return Problem(problem.needs, [problem.patterns[k] for k in kept])


def _components(problem: Problem) -> list[list[int]]:
    """Patterns by whether they overlap, or overlap what overlaps them."""
    overlaps = problem.overlaps
    seen: set[int] = set()
    found = []
    for k in range(len(problem.patterns)):
        if k in seen:
            continue
        seen.add(k)
        todo, inside = [k], [k]
        while todo:
            for j in overlaps[todo.pop()] - seen:
                seen.add(j)
                todo.append(j)
                inside.append(j)
        found.append(sorted(inside))
    return found


def _program(problem: Problem, kept: Sequence[int], cuts: Collection[frozenset[int]]) -> Program:
    """The program of some patterns; among equal gains those that leave fewer kernels win."""
    place = {k: j for j, k in enumerate(kept)}
    patterns = [problem.patterns[k] for k in kept]
    most = max(p.gain for p in patterns)
    sizes = max(len(p.members) for p in patterns)
    gains = [
        p.gain / most + TIE * (len(p.members) - 1) / sizes - TIE / 10 * j / len(kept)
        for j, p in enumerate(patterns)
    ]
    owners: dict[int, list[int]] = {}
    for j, p in enumerate(patterns):
        for v in sorted(p.members):
            owners.setdefault(v, []).append(j)
    rows = {tuple(js): 1 for js in owners.values() if len(js) > 1}
    for cycle in cuts:
        if all(k in place for k in cycle):
            row = tuple(sorted(place[k] for k in cycle))
            rows[row] = min(rows.get(row, len(row)), len(row) - 1)
    return Program(tuple(gains), tuple(rows.items()))
