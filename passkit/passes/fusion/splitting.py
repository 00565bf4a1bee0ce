"""Splitting: groups that take longer than their operators one by one are cut in two, or come apart.

Operators that run in one pass alone may need several together, or rows that are too short. Less
than ``min_split_share`` and ``min_gain`` of the target the model does not tell: softmax over few
rows takes as long in one kernel as in two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from passkit.graph.node import Node
from passkit.graph.op import OpPattern
from passkit.passes.fusion.board import Board
from passkit.passes.fusion.contract import group_of
from passkit.passes.fusion.scores import Scorer
from passkit.target import Target

Bodies = list[list[Node]]


def split(board: Board, scorer: Scorer) -> dict[int, Bodies]:
    """Units by number that had better be several, and those: operators in post-order.

    Half of what may be planned is left for whoever looks at larger ones.
    """
    found, kept = {}, scorer.left // 2
    for k, unit in enumerate(board.list):
        if scorer.left < kept:
            break
        if unit.open and not unit.silent and not unit.clones and may_differ(unit.nodes):
            whole = scorer.cost(board.group([k]))
            if isinstance(whole, float) and whole > 2 * scorer.target.fusion.min_gain:
                bodies = _best(board, scorer, unit.nodes, whole)
                if bodies is not None:
                    found[k] = bodies
    return found


def may_differ(nodes: Sequence[Node]) -> bool:
    """Whether operators may take longer together: not in one pass, point by point."""
    return len(nodes) > 1 and any(n.op and n.op.pattern > OpPattern.BROADCAST for n in nodes)


def _best(board: Board, scorer: Scorer, nodes: Sequence[Node], whole: float) -> Bodies | None:
    """The way apart that saves most; None where none does, or one by one they take much longer."""
    single = _cost(board, scorer, [[n] for n in nodes])
    if single is None or single > whole * (1 + scorer.target.fusion.min_split_share):
        return None
    ways = [(_cost(board, scorer, bodies), bodies) for bodies in _ways(nodes)]
    cost, bodies = min(((c, b) for c, b in ways if c is not None), key=lambda way: way[0])
    return bodies if _saves(whole, cost, scorer.target) else None


def _saves(whole: float, apart: float | None, target: Target) -> bool:
    least = max(target.fusion.min_gain, target.fusion.min_split_share * whole)
    return apart is not None and whole - apart > least


def _ways(nodes: Sequence[Node]) -> Iterator[Bodies]:
    """In two, at each place; and one by one."""
    for k in range(1, len(nodes)):
        yield [list(nodes[:k]), list(nodes[k:])]
    yield [[n] for n in nodes]


def _cost(board: Board, scorer: Scorer, bodies: Bodies) -> float | None:
    """What groups take together; None where that is not known."""
    total = 0.0
    for body in bodies:
        found = scorer.cost(group_of(board.graph, body))
        if not isinstance(found, float) or not found:
            return None
        total += found
    return total
