"""Selections: exact ones are as good as any, none makes a cycle, and all say what they know."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from passkit.fusion.selection import exact as exact_module
from passkit.fusion.selection import solver
from passkit.fusion.selection.exact import exact, greedy, is_nested, nested, partition
from passkit.fusion.selection.problem import Pattern, Problem, Selection, cycles
from passkit.fusion.selection.solver import Program, solve
from passkit.graph.merge_graph import MergeGraph
from tests.fusion.beam_search import beam, problem_of

Needs = list[set[int]]


def patterns(*given: tuple[Iterable[int], float]) -> list[Pattern]:
    """Patterns of members and gains."""
    return [Pattern(frozenset(members), gain) for members, gain in given]


def random_problem(seed: int, ops: int = 12, count: int = 9) -> Problem:
    """A graph of some operators, and patterns of two to five of them."""
    draw = random.Random(seed)
    n = draw.randint(4, ops)
    needs: Needs = [set(draw.sample(range(k), min(k, draw.randint(0, 2)))) for k in range(n)]
    candidates = (
        (draw.sample(range(n), draw.randint(2, min(5, n))), draw.choice((1.0, 2.0, draw.random())))
        for _ in range(count)
    )
    return problem_of(needs, patterns(*candidates))


def best(problem: Problem) -> float:
    """The largest gain of all disjoint patterns without a cycle, each of them tried."""
    largest = 0.0

    def search(k: int, chosen: tuple[int, ...], taken: frozenset[int]) -> None:
        """Try all selections that have ``chosen`` of the first patterns."""
        nonlocal largest
        if k == len(problem.patterns):
            if problem.gain(chosen) > largest and not cycles(problem, chosen):
                largest = problem.gain(chosen)
            return
        search(k + 1, chosen, taken)
        members = problem.patterns[k].members
        if taken.isdisjoint(members):
            search(k + 1, (*chosen, k), taken | members)

    search(0, (), frozenset())
    return largest


def is_legal(problem: Problem, selected: Selection) -> bool:
    """Whether patterns are disjoint and make no cycle, and gain what is said."""
    members = [problem.patterns[k].members for k in selected.chosen]
    disjoint = len(frozenset().union(*members)) == sum(map(len, members))
    return (
        disjoint and not cycles(problem, selected.chosen) and selected.gain <= selected.bound + 1e-9
    )


def test_exact_is_as_good_as_any() -> None:
    """400 graphs of up to twelve operators: nothing gains more; the others no more than that."""
    strict = cut = 0
    for seed in range(400):
        problem = random_problem(seed)
        selected, other, third = exact(problem), greedy(problem), beam(problem)

        assert selected.gain == pytest.approx(best(problem)), seed
        assert selected.gap == pytest.approx(0)
        assert all(is_legal(problem, s) for s in (selected, other, third))
        assert max(other.gain, third.gain) <= selected.gain + 1e-9
        strict += other.gain < selected.gain - 1e-9
        cut += selected.cuts
    assert strict > 10 and cut > 10


CROSSED: Needs = [set(), {0}, set(), {2}]
"""a1 -> b1, b2 -> a2."""


def test_two_patterns_that_would_wait_for_each_other() -> None:
    """Each could be one kernel; both together get exactly one cut."""
    problem = problem_of(CROSSED, patterns(((0, 3), 2.0), ((1, 2), 3.0)))
    selected = exact(problem)

    assert len(problem.patterns) == 2
    assert cycles(problem, (0, 1)) == [frozenset((0, 1))]
    assert (selected.chosen, selected.gain, selected.cuts) == ((1,), 3.0, 1)


def test_cycles_of_chosen_patterns() -> None:
    """Cycles are found where merging patterns one by one fails, and each is one of its own."""
    met = [0, 0]
    for seed in range(300):
        problem = random_problem(seed, ops=24, count=16)
        graph, chosen, taken = MergeGraph(problem.predecessors), set[int](), set[int]()
        for k in random.Random(seed).sample(range(len(problem.patterns)), len(problem.patterns)):
            members = problem.patterns[k].members
            if taken.isdisjoint(members):
                closed = cycles(problem, {*chosen, k})
                assert bool(closed) != graph.can_merge(members), (seed, k)
                assert all(cycles(problem, cycle) == [cycle] for cycle in closed)
                met[bool(closed)] += 1
                if not closed:
                    graph.merge(members)
                    chosen.add(k)
                    taken |= members
    assert met[0] > 500 and met[1] > 30, met


def test_greed_is_strictly_worse_where_it_must_be() -> None:
    """A large pattern in the middle of two that gain more together, many times over."""
    needs: Needs = [set()] + [{k} for k in range(39)]
    given = []
    for k in range(0, 40, 8):
        given += patterns(
            (range(k, k + 4), 3.0),
            ((k + 4, k + 5, k + 6, k + 7), 3.0),
            ((k + 2, k + 3, k + 4, k + 5), 4.0),
            ((k, k + 1), 0.5),
            ((k + 6, k + 7), 0.5),
        )
    problem = problem_of(needs, given)

    assert exact(problem).gain == 30.0
    assert 25.0 <= greedy(problem).gain < 30.0
    assert beam(problem).gain == 30.0


def test_nested_families() -> None:
    """Nested patterns need no solver: each is chosen itself, or the best patterns within it."""
    needs: Needs = [set()] + [{k} for k in range(7)]
    given = patterns(
        (range(8), 5.0),
        (range(4), 3.0),
        (range(4, 8), 2.0),
        ((0, 1), 2.0),
        ((2, 3), 1.5),
        ((4, 5), 0.5),
    )
    problem = problem_of(needs, given)
    everything = range(len(problem.patterns))

    assert is_nested(problem, everything)
    assert problem.gain(nested(problem, everything)) == 5.5 == exact(problem).gain
    assert exact(problem).solver == "nested"
    assert exact(problem_of(needs, given[:3])).chosen == (1,)  # 5.0 twice: one kernel, not two


def test_ties_leave_fewer_kernels() -> None:
    """Among selections of equal gain, the one with more operators is chosen, then the first."""
    needs: Needs = [set(), {0}, {1}, {2}]
    given = patterns(((0, 1), 1.0), ((1, 2, 3), 1.0), ((2, 3), 1.0), ((0, 1, 2), 1.0))
    selected = exact(problem_of(needs, given))

    assert selected.gain == 2.0 and selected.solver == solver.solver_name()


@pytest.mark.parametrize("way", [exact, greedy, beam])
def test_selections_do_not_depend_on_the_order_given(way: Callable[[Problem], Selection]) -> None:
    """The same patterns in another order are chosen as before."""
    for seed in range(20):
        problem = random_problem(seed)
        turned = problem_of(problem.predecessors, reversed(problem.patterns))
        assert way(turned).chosen == way(problem).chosen


def test_without_a_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    """The greedy way serves, is named, and says how much may be lost."""
    monkeypatch.setattr(solver, "solver_name", lambda: None)
    lost = 0
    for seed in range(60):
        problem = random_problem(seed)
        selected = exact(problem)
        assert is_legal(problem, selected) and selected.bound >= best(problem) - 1e-9
        assert set(selected.solver.split(", ")) <= {"greedy", "nested", ""}
        lost += selected.gap > 0
    assert solve(Program([1.0], [])) is None and lost > 0


def test_many_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patterns beyond the limit are left out; the gap is reported, and greedy is no better."""
    monkeypatch.setattr(exact_module, "MOST", 4)
    for seed in range(40):
        problem = random_problem(seed)
        selected = exact(problem)
        assert is_legal(problem, selected) and selected.bound >= best(problem) - 1e-9
        assert selected.gain >= greedy(problem).gain


def test_cycles_that_rounds_do_not_settle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no round is left, the pattern of least gain on each cycle is given up."""
    monkeypatch.setattr(exact_module, "ROUNDS", 0)
    selected = exact(problem_of(CROSSED, patterns(((0, 3), 2.0), ((1, 2), 3.0))))

    assert (selected.chosen, selected.solver) == ((1,), "dropped, nested")


def test_small_programs_are_searched_through() -> None:
    """Without a solver, and as well as by one: 200 problems, with their cuts."""
    cut = 0
    for seed in range(200):
        problem = random_problem(seed)
        selected = exact(problem, few=20)
        assert selected.gain == pytest.approx(best(problem)), seed
        assert set(selected.solver.split(", ")) <= {"search", "nested", ""}
        cut += selected.cuts
    assert cut > 5


def test_components_are_cut_where_least_is_lost() -> None:
    """A long chain of patterns: parts share no operator, and only weak links are left out."""
    needs: Needs = [set()] + [{k} for k in range(79)]
    weak = {k for k in range(79) if k % 16 == 15}
    given = patterns(*(((k, k + 1), 0.1 if k in weak else 1.0) for k in range(79)))
    problem = problem_of(needs, given)
    parts = partition(problem, range(79), 20)
    left_out = set(range(79)).difference(*parts)

    assert all(len(p) <= 20 for p in parts) and left_out <= weak and left_out
    members = [frozenset().union(*(problem.patterns[k].members for k in p)) for p in parts]
    assert sum(map(len, members)) == len(frozenset().union(*members))


def test_around_one_operator_the_best_are_kept() -> None:
    """Patterns that all have one operator cannot be cut: those of largest gain stay."""
    needs: Needs = [set()] + [{0} for _ in range(9)]
    problem = problem_of(needs, patterns(*(((0, k), float(k)) for k in range(1, 10))))

    assert partition(problem, range(9), 4) == [[5, 6, 7, 8]]


def test_solvers_say_nothing() -> None:
    """A compilation prints no name and no licence of what it asks, in a process that asks first."""
    code = (
        "from passkit.fusion.selection.solver import Program, solve\n"
        "print(solve(Program((1.0, 2.0, 1.5), (((0, 1), 1), ((1, 2), 1)))).chosen)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert (done.stdout, done.stderr) == ("(0, 2)\n", "")


@pytest.mark.parametrize(
    "status, is_optimal",
    [
        (1, True),
        (0, False),
        (-1, False),
        (SimpleNamespace(status="optimal"), True),
        (SimpleNamespace(status="infeasible"), False),
        (SimpleNamespace(status=1, status_str="Optimal"), True),
        (SimpleNamespace(status=-3, status_str="Undefined"), False),
    ],
)
def test_statuses_of_all_versions_of_pulp(status: Any, is_optimal: bool) -> None:
    """A number, a record with a word, and a record with a number and its name are understood."""
    assert solver._is_optimal(status) is is_optimal


def test_nothing_to_choose() -> None:
    """No patterns, no kernels."""
    selected = exact(problem_of([], []))

    assert (selected.chosen, selected.gain, selected.bound, selected.gap) == ((), 0, 0, 0.0)
