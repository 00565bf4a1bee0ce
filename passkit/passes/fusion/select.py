"""Selection: the strategy "stitch" chooses which groups become one, by what that gains.

Greedy's groups are the start. Larger patterns are explored from there, and those are chosen that
gain most together: by a tree where they are nested, else by integer programming. What comes of it
is never slower than the start, by whoever tells the seconds.

Source: FusionStitching (2019), fusion plans.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from passkit.graph import Graph
from passkit.passes.context import PassContext
from passkit.passes.fusion.board import Board
from passkit.passes.fusion.chosen import Chosen, Verdicts, recorded
from passkit.passes.fusion.explore import Explorer
from passkit.passes.fusion.partition import Partition
from passkit.passes.fusion.scores import Scorer, Seconds, modelled
from passkit.selection.exact import exact
from passkit.selection.problem import Pattern, Problem, Selection, problem_of
from passkit.space import Infeasible

BUDGET, SOME, EACH = 4000, 64, 2
"""Operators of the groups that are planned to see what they would gain: in all; and in graphs that
are smaller, some and so many for each operator."""
FEW = 12
"""Patterns that are searched through without a solver, which takes longer to be imported."""


def selected(
    graph: Graph, partition: Partition, context: PassContext, seconds: Seconds = modelled
) -> tuple[Partition, Chosen | None]:
    """The partition with groups joined, with each other and with products, where that pays.

    Beside it what was chosen from what; None where nothing could be chosen, as the model does not
    know the target.
    """
    if context.target.lanes == 1:
        return partition, None
    board = Board(graph, partition, context)
    budget = min(BUDGET, SOME + EACH * len(board.of))
    explorer = Explorer(board, Scorer(context.target, seconds, budget))
    problem = problem_of(board.needs, explorer.run())
    found = exact(problem, FEW)
    patterns = _affordable(board, problem, found)
    made = partition
    before = after = float(sum(explorer.costs))
    if patterns:
        made = _joined(board, partition, patterns)
        total = _total(Board(graph, made, context), explorer.scorer)
        if total is None or total >= before:
            patterns, made = [], partition
        else:
            after = total
    log = list(Verdicts(board, explorer, patterns).settled(partition.log))
    chosen = recorded(board, explorer, problem, found, patterns, after)
    return evolve(made, log=log), chosen


def _affordable(board: Board, problem: Problem, found: Selection) -> list[Pattern]:
    """The patterns that were chosen, as far as there is fuel for them."""
    names, kept = board.graph.names, []
    for k in found.chosen:
        first = board.list[min(problem.patterns[k].members)].nodes[0]
        if board.context.spend(f"stitch {names[first]}"):
            kept.append(problem.patterns[k])
    return kept


def _joined(board: Board, partition: Partition, patterns: Sequence[Pattern]) -> Partition:
    """The partition with a group for each pattern."""
    taken = {n for p in patterns for k in p.members for n in board.list[k].nodes}
    clones = partition.clones or [[] for _ in partition.groups]
    pairs = [
        (g, c) for g, c in zip(partition.groups, clones, strict=True) if taken.isdisjoint(g)
    ] + [board.nodes(p.members) for p in patterns]
    position = board.graph.positions
    pairs.sort(key=lambda pair: position[pair[0][0]])
    return evolve(partition, groups=[g for g, _ in pairs], clones=[c for _, c in pairs])


def _total(board: Board, scorer: Scorer) -> float | None:
    """The seconds of all units that are open; None where one is no kernel after all."""
    total = 0.0
    for k, unit in enumerate(board.list):
        if unit.open and not unit.silent:
            found = scorer.sure(board.group([k]))
            if isinstance(found, Infeasible) and len(unit.nodes) > 1:
                return None
            total += found if isinstance(found, float) else 0.0
    return total
