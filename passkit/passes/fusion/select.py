"""Selection: the strategy "stitch" chooses which groups become one, by what that gains.

Greedy's groups are the start. Larger patterns are explored from there, and those are chosen that
gain most together: by a tree where they are nested, else by integer programming. What comes of it
is never slower than the start, by whoever tells the seconds.

Source: FusionStitching (2019), fusion plans.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import evolve, frozen

from passkit.diagnostics import Diagnostic
from passkit.graph.graph import Graph
from passkit.graph.node import CONSTANT
from passkit.passes.context import PassContext
from passkit.passes.fusion.board import Board
from passkit.passes.fusion.chosen import Chosen, Verdicts, recorded
from passkit.passes.fusion.explore import Explorer
from passkit.passes.fusion.memory import Memory, penalty
from passkit.passes.fusion.partition import Partition
from passkit.passes.fusion.scores import Compared, Scorer, Seconds, modelled
from passkit.passes.fusion.splitting import Bodies, may_differ, split
from passkit.selection.exact import exact
from passkit.selection.problem import Pattern, Problem, Selection, problem_of


@frozen(eq=False)
class Explored:
    """A partition whose groups had better not come apart, and patterns of them."""

    partition: Partition
    board: Board
    explorer: Explorer
    problem: Problem
    found: Selection

    def seconds(self, units: Iterable[int]) -> float:
        """What units take by themselves."""
        return sum(self.explorer.costs[k] for k in units)


def explored(
    graph: Graph,
    partition: Partition,
    context: PassContext,
    seconds: Seconds = modelled,
    compared: Compared | None = None,
) -> Explored | None:
    """What could be chosen, and what had better be; None as in `selected`."""
    if not context.target.costed or _is_settled(graph, partition):
        return None
    board = Board(graph, partition, context)
    limits = context.target.fusion
    budget = min(
        limits.planned_ops, limits.planned_ops_base + limits.planned_ops_each * len(board.of)
    )
    scorer = Scorer(context.target, seconds, budget, compared=compared)
    apart = {k: b for k, b in split(board, scorer).items() if _may_split(board, k)}
    if apart:
        partition = _split(board, partition, apart)
        board = Board(graph, partition, context)
    explorer = Explorer(board, scorer)
    problem = problem_of(board.needs, explorer.run())
    return Explored(partition, board, explorer, problem, exact(problem, limits.enumerated_patterns))


def selected(
    graph: Graph,
    partition: Partition,
    context: PassContext,
    seconds: Seconds = modelled,
    compared: Compared | None = None,
) -> tuple[Partition, Chosen | None]:
    """The partition with groups joined, with each other and with products, where that pays.

    Beside it what was chosen from what; None where nothing could be chosen: one kernel goes through
    all operators point by point, or the numbers of the target are no machine's.
    """
    seen = explored(graph, partition, context, seconds, compared)
    if seen is None:
        return partition, None
    board, explorer, partition = seen.board, seen.explorer, seen.partition
    patterns = _affordable(board, seen.problem, seen.found)
    made = partition
    before = after = float(sum(explorer.costs))
    peaks = (explorer.memory.peak,) * 2
    if patterns:
        made = _joined(board, partition, patterns)
        other = Board(graph, made, context)
        total, memory = _total(other, explorer), Memory(other)
        lost = penalty(explorer.memory.beyond(memory.peak), context.target)
        if total is None or total + lost >= before:
            patterns, made = [], partition
        else:
            after, peaks = total, (peaks[0], memory.peak)
    log = list(Verdicts(board, explorer, patterns).settled(partition.log))
    chosen = recorded(board, explorer, seen.problem, seen.found, patterns, (after, peaks))
    return evolve(made, log=log), chosen


def _is_settled(graph: Graph, partition: Partition) -> bool:
    """Whether all operators are in one group, which had better not come apart."""
    nodes = [n for n in graph.nodes if n.op not in (None, CONSTANT)]
    grouped = sum(map(len, partition.groups))
    return len(partition.groups) == 1 and grouped == len(nodes) and not may_differ(nodes)


def _may_split(board: Board, k: int) -> bool:
    """Whether there is fuel to split a unit."""
    return board.context.spend(f"split at {board.graph.names[board.list[k].nodes[0]]}")


def _split(board: Board, partition: Partition, apart: dict[int, Bodies]) -> Partition:
    """The partition with the bodies that units come apart into, and what it says of them."""
    gone = {n for k in apart for n in board.list[k].nodes}
    clones = partition.clones or [[] for _ in partition.groups]
    kept = [(g, c) for g, c in zip(partition.groups, clones, strict=True) if gone.isdisjoint(g)]
    made: Bodies = [b for bodies in apart.values() for b in bodies]
    names = board.graph.names
    home = {names[n]: j for j, b in enumerate(made) for n in b}
    log = [
        evolve(
            d,
            diagnostic=Diagnostic(
                "cost.apart", {"producer": d.producer, "consumer": d.consumer}
            ),
        )
        if d.fused and home.get(d.producer, -1) != home.get(d.consumer, -1)
        and {d.producer, d.consumer} <= home.keys()
        else d
        for d in partition.log
    ]  # fmt: skip
    groups, copies = [*(g for g, _ in kept), *made], [*(c for _, c in kept), *([] for _ in made)]
    return evolve(partition, groups=groups, clones=copies, log=log)


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


def _total(board: Board, explorer: Explorer) -> float | None:
    """The seconds of all units that are open; None where one is no kernel after all.

    Those that are as they were take what they took.
    """
    first = explorer.board
    known = {
        (*u.nodes, *left): cost
        for u, left, cost in zip(first.list, first.left, explorer.costs, strict=True)
        if u.open and cost
    }
    total = 0.0
    for k, unit in enumerate(board.list):
        if unit.open and not unit.silent:
            cost = known.get((*unit.nodes, *board.left[k]))
            found = explorer.scorer.sure(board.group([k])) if cost is None else cost
            if isinstance(found, Diagnostic) and len(unit.nodes) > 1:
                return None
            total += found if isinstance(found, float) else 0.0
    return total
