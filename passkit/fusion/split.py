"""Splitting: groups that take longer than their parts are divided in two, or into operators.

Operators that run in one pass alone may need several together, or rows that are too short. The
cost model does not tell less than ``min_split_share`` and ``min_gain`` of the target: softmax of
few rows takes as long in one kernel as in two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from passkit.fusion.cluster_groups import ClusterGroups
from passkit.fusion.contract import group_of
from passkit.fusion.score import Scorer
from passkit.graph.node import Node
from passkit.graph.op import OpPattern
from passkit.target import Target

Bodies = list[list[Node]]


def splits(groups: ClusterGroups, scorer: Scorer) -> dict[int, Bodies]:
    """Return the clusters that are better split, each with its parts: operators in post-order.

    Half of the operators that may be planned are left for larger groups.
    """
    parts_of, reserve = {}, scorer.left // 2
    for k, cluster in enumerate(groups.quotient.clusters):
        if scorer.left < reserve:
            break
        if groups.is_open(k) and not groups.takes_no_time[k] and not cluster.duplicated:
            if not may_differ(cluster.nodes):
                continue
            whole = scorer.cost(groups.group([k]))
            if isinstance(whole, float) and whole > 2 * scorer.target.fusion.min_gain:
                bodies = _best_split(groups, scorer, cluster.nodes, whole)
                if bodies is not None:
                    parts_of[k] = bodies
    return parts_of


def may_differ(nodes: Sequence[Node]) -> bool:
    """Return whether operators may take longer together: not all of them are elementwise."""
    return len(nodes) > 1 and any(n.op and n.op.pattern > OpPattern.BROADCAST for n in nodes)


def _best_split(
    groups: ClusterGroups, scorer: Scorer, nodes: Sequence[Node], whole: float
) -> Bodies | None:
    """Return the parts that save most; None if none saves, or single operators take much longer."""
    single = _cost(groups, scorer, [[n] for n in nodes])
    if single is None or single > whole * (1 + scorer.target.fusion.min_split_share):
        return None
    candidates = [(_cost(groups, scorer, bodies), bodies) for bodies in _candidates(nodes)]
    cost, bodies = min(((c, b) for c, b in candidates if c is not None), key=lambda pair: pair[0])
    return bodies if _saves(whole, cost, scorer.target) else None


def _saves(whole: float, apart: float, target: Target) -> bool:
    """Return whether parts take clearly less than the whole."""
    least = max(target.fusion.min_gain, target.fusion.min_split_share * whole)
    return whole - apart > least


def _candidates(nodes: Sequence[Node]) -> Iterator[Bodies]:
    """Yield two parts for each place between operators, then each operator alone."""
    for k in range(1, len(nodes)):
        yield [list(nodes[:k]), list(nodes[k:])]
    yield [[n] for n in nodes]


def _cost(groups: ClusterGroups, scorer: Scorer, bodies: Bodies) -> float | None:
    """Return the seconds of groups together; None if the cost of one is unknown."""
    return scorer.total(group_of(groups.graph, body) for body in bodies)
