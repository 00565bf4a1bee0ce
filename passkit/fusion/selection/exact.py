"""Selections of the largest gain: integer programs, and cuts for the cycles that they make.

Source: FusionStitching (2019), fusion plans by integer linear programming. Its rows for pairs of
patterns that overlap are one row for each operator here, which has the same integer solutions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from attrs import define, evolve, field

from passkit.fusion.selection.problem import Problem, Selection, cycles
from passkit.fusion.selection.solver import Program, Solution, searched, solve
from passkit.graph.components import connected_components
from passkit.graph.merge_graph import MergeGraph

ROUNDS = 50
"""How often constraints for cycles are added before patterns of small gain are dropped."""
MOST = 100
"""The most patterns of one program."""
SMALL = 2000
"""The most operators for which a selection that may not be the best is compared with greedy."""
SHARE = 4
"""A part of a component has at least this share of its patterns: one in so many."""
TIE = 1e-7
"""The gain of an operator in a larger pattern, relative to the largest gain: it decides ties."""


def exact(problem: Problem, few: int = 0) -> Selection:
    """Return the patterns of the largest gain that are disjoint and make no cycle.

    A component, patterns that overlap or are on a cycle together, is a program of its own.
    Components of more than `MOST` patterns are cut where that loses least; then, or if its program
    is not solved, the bound says how much may be lost. Equal components are solved once.

    Args:
        problem: the patterns.
        few: the most patterns of a component that is searched without a solver.
    """
    run = _Exact(problem, few)
    for _ in range(ROUNDS):
        new_cycles = cycles(problem, run.chosen())
        if not new_cycles:
            break
        run.cut(new_cycles)
    best = run.selection()
    if best.gap > TIE and len(problem.predecessors) <= SMALL:
        other = greedy(problem)
        if other.gain > best.gain:
            return evolve(best, chosen=other.chosen, gain=other.gain, solver=other.solver)
    return best


@define(eq=False)
class _Component:
    """Patterns that are chosen together.

    Attributes:
        patterns: the numbers of the patterns.
        cuts: sets of patterns of which not all can be chosen.
        chosen: the chosen patterns; None if the component has not been solved.
        bound: no choice gains more.
        rows: the number of constraints.
        solver: the name of the solver.
    """

    patterns: list[int]
    cuts: list[frozenset[int]] = field(factory=list)
    chosen: set[int] | None = None
    bound: float = 0.0
    rows: int = 0
    solver: str = ""


class _Exact:
    """One search: components, and the solutions of their programs."""

    def __init__(self, problem: Problem, few: int) -> None:
        self.problem, self.few = problem, few
        overlaps = ((k, j) for k, others in enumerate(problem.overlaps) for j in others)
        components = connected_components(range(len(problem.patterns)), overlaps)
        self.components = [_Component(c) for c in components]
        self.solutions: dict[Program, Solution | None] = {}

    def chosen(self) -> set[int]:
        """Return the patterns that components choose; changed components are solved again."""
        for c in self.components:
            if c.chosen is None:
                self._solve(c)
        return {k for c in self.components for k in c.chosen or ()}

    def cut(self, new_cycles: Iterable[frozenset[int]]) -> None:
        """Forbid that all patterns of a cycle are chosen; their components become one."""
        for cycle in new_cycles:
            parts = [c for c in self.components if not cycle.isdisjoint(c.patterns)]
            merged = _Component(sorted(k for c in parts for k in c.patterns))
            merged.cuts = [*(x for c in parts for x in c.cuts), cycle]
            self.components = [c for c in self.components if c not in parts] + [merged]

    def _solve(self, c: _Component) -> None:
        """Solve a component."""
        problem = self.problem
        if not c.cuts and is_nested(problem, c.patterns):
            c.chosen, c.solver = nested(problem, c.patterns), "nested"
            c.bound = problem.gain(c.chosen)
            return
        c.chosen, c.rows, c.solver = set(), 0, ""
        parts = partition(problem, c.patterns, MOST)
        for part in parts:
            program = _program(problem, part, c.cuts)
            solution = self._solution(program)
            if solution is None:
                solution = Solution(greedy(_part(problem, part)).chosen, "greedy")
            c.chosen |= {part[k] for k in solution.chosen}
            c.rows += len(program.rows)
            c.solver = solution.solver
        c.bound = problem.gain(c.chosen)
        if sum(map(len, parts)) < len(c.patterns) or c.solver == "greedy":
            c.bound = selection(_part(problem, c.patterns), (), "").bound

    def _solution(self, program: Program) -> Solution | None:
        """Return the solution of a program; None if no solver found one."""
        if program not in self.solutions:
            small = len(program.gains) <= self.few
            self.solutions[program] = searched(program) if small else solve(program)
        return self.solutions[program]

    def selection(self) -> Selection:
        """Return the selection; of a cycle that is left the pattern that gains least is dropped."""
        chosen = self.chosen()
        solvers = sorted({c.solver for c in self.components})
        while left := cycles(self.problem, chosen):
            for cycle in left:
                chosen.discard(min(cycle, key=lambda k: (self.problem.patterns[k].gain, k)))
            solvers = sorted({*solvers, "dropped"})
        return Selection(
            chosen=tuple(sorted(chosen)),
            gain=self.problem.gain(sorted(chosen)),
            bound=sum(c.bound for c in self.components),
            solver=", ".join(solvers),
            rows=sum(c.rows for c in self.components),
            cuts=sum(len(c.cuts) for c in self.components),
        )


def _part(problem: Problem, kept: Sequence[int]) -> Problem:
    """Return the problem of some patterns."""
    return Problem(problem.predecessors, [problem.patterns[k] for k in kept])


def _program(problem: Problem, kept: Sequence[int], cuts: Collection[frozenset[int]]) -> Program:
    """Return the program of some patterns; of equal gains those that leave fewer kernels win."""
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


def is_nested(problem: Problem, family: Collection[int]) -> bool:
    """Return whether of any two patterns that share an operator one has all of the other."""
    overlaps = problem.overlaps
    members = [p.members for p in problem.patterns]
    return all(
        members[k] <= members[j] or members[j] <= members[k] for k in family for j in overlaps[k]
    )


def nested(problem: Problem, family: Collection[int]) -> set[int]:
    """Return the disjoint patterns of a nested family that gain most.

    A pattern is compared with the best ones inside it; if both gain the same it is chosen.
    """
    members = [p.members for p in problem.patterns]
    best: dict[int, tuple[float, set[int]]] = {}
    tops: list[int] = []
    for k in sorted(family, key=lambda k: (len(members[k]), k)):
        inside = [j for j in tops if members[j] <= members[k]]
        gain = sum(best[j][0] for j in inside)
        own = problem.patterns[k].gain
        chosen = {i for j in inside for i in best[j][1]}
        best[k] = (own, {k}) if own >= gain else (gain, chosen)
        tops = [j for j in tops if j not in inside] + [k]
    return {i for j in tops for i in best[j][1]}


def partition(problem: Problem, patterns: Sequence[int], most: int) -> list[list[int]]:
    """Return patterns in parts that share no operator; some patterns may be in none.

    They are cut where the least gain is lost. The place of a cut depends on the patterns around it,
    not on their position in a graph: equal layers are cut equally.

    Args:
        problem: the problem.
        patterns: the numbers of the patterns.
        most: the most patterns of a part.
    """
    parts: list[list[int]] = []
    todo = [sorted(patterns)]
    while todo:
        part = todo.pop()
        if len(part) > most and len({min(problem.patterns[k].members) for k in part}) == 1:
            # All of them share an operator.
            part = sorted(sorted(part, key=lambda k: -problem.patterns[k].gain)[:most])
        if len(part) <= most:
            parts.append(part)
            continue
        before, behind = _cut(problem, part)
        todo += [half for half in (behind, before) if half]
    return parts


def _cut(problem: Problem, part: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the patterns before an operator, and those from it on."""
    first = {k: min(problem.patterns[k].members) for k in part}
    last = {k: max(problem.patterns[k].members) for k in part}
    by_first, by_last = sorted(part, key=first.__getitem__), sorted(part, key=last.__getitem__)
    least = len(part) // SHARE
    begin = first[by_first[0]]
    middle = {first[k] for k in by_first[least : len(part) - least]} - {begin}
    places = sorted(middle or set(first.values()) - {begin})
    begun = ended = 0
    lost, best = 0.0, (float("inf"), places[0])
    for place in places:
        while begun < len(part) and first[by_first[begun]] < place:
            lost += problem.patterns[by_first[begun]].gain
            begun += 1
        while ended < len(part) and last[by_last[ended]] < place:
            lost -= problem.patterns[by_last[ended]].gain
            ended += 1
        best = min(best, (lost, place))
    place = best[1]
    return [k for k in part if last[k] < place], [k for k in part if first[k] >= place]


def greedy(problem: Problem) -> Selection:
    """Return patterns in the order of their gain, as long as they are disjoint and make no cycle.

    No pattern that is left out gains more than those that it overlaps, as these came before it.
    """
    vertices, taken = MergeGraph(problem.predecessors), set[int]()
    chosen: set[int] = set()
    order = sorted(range(len(problem.patterns)), key=lambda k: (-problem.patterns[k].gain, k))
    for k in order:
        members = problem.patterns[k].members
        if taken.isdisjoint(members) and vertices.can_merge(members):
            vertices.merge(members)
            taken |= members
            chosen.add(k)
    return selection(problem, chosen, "greedy")


def selection(problem: Problem, chosen: Iterable[int], solver: str) -> Selection:
    """Return the selection of some patterns, with a bound that holds for any selection.

    An operator gains at most the largest equal part of the gain of a pattern that it has.

    Args:
        problem: the patterns.
        chosen: the numbers of some.
        solver: who chose them.
    """
    parts: dict[int, float] = {}
    for p in problem.patterns:
        for v in p.members:
            parts[v] = max(parts.get(v, 0.0), p.gain / len(p.members))
    numbers = tuple(sorted(chosen))
    return Selection(numbers, problem.gain(numbers), sum(parts[v] for v in sorted(parts)), solver)
