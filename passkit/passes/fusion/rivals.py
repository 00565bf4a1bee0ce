"""Rivals: patterns that a selection chose, or nearly did, each with its units as a plan apart.

Complex ones, that is those whose kernel is stitched: what the model says of others is sure enough.
A tuner measures both, and the next selection goes by that.

Source: FusionStitching (2019), execution-based scores of complex patterns.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from passkit.graph.graph import Graph
from passkit.graph.node import Node
from passkit.passes.context import PassContext, evaluator_of
from passkit.passes.fusion.board import Board
from passkit.passes.fusion.contract import contract
from passkit.passes.fusion.explore import Members, Tried
from passkit.passes.fusion.greedy import greedy
from passkit.passes.fusion.partition import Partition, why_opaque
from passkit.passes.fusion.pricing import comparing, priced
from passkit.passes.fusion.select import Explored, explored
from passkit.passes.fusion.stitched import with_stitched
from passkit.passes.fusion.views import without_views
from passkit.plan.group import Group
from passkit.plan.planner import outline_group
from passkit.plan.schedule import Schedule
from passkit.plan.single import as_plan
from passkit.plan.typical import typical
from passkit.target import Target


@frozen(eq=False)
class Rival:
    """A group, and the graph of its units as they would run apart, with the same inputs.

    ``names`` are those of its operators, ``seconds`` what the model says of the units; it is
    ``chosen`` by the plan of now.
    """

    group: Group
    apart: Graph
    names: tuple[str, ...]
    seconds: float
    chosen: bool


def rivals(graph: Graph, context: PassContext, most: int) -> list[Rival]:
    """The longest so many complex patterns that are chosen, and the best that the model rejects.

    ``graph`` is as Fusion gets it. At most one of each kind: groups of one key are alike.
    """
    partition = with_stitched(graph, greedy(graph, context), context)
    evaluator, target = evaluator_of(context), context.target
    now = explored(graph, partition, context, priced(evaluator, target),
                   comparing(evaluator, target))  # fmt: skip
    if now is None:
        return []
    found: dict[str, Rival] = {}
    chosen = {now.problem.patterns[k].members for k in now.found.chosen}
    for members in sorted(chosen, key=lambda m: (-now.seconds(m), sorted(m))):
        if len(found) < most:
            _add(found, now, members, target, chosen=True)
    model = explored(graph, partition, context)
    if model is not None:
        own = {model.problem.patterns[k].members for k in model.found.chosen}
        wanted = most + len(found)
        for members in _rejected(model, own):
            if len(found) >= wanted:
                break
            _add(found, model, members, target, chosen=False)
    return list(found.values())


def _rejected(seen: Explored, own: set[Members]) -> Iterator[Members]:
    """Patterns that are not chosen, those that would gain most for what they take first."""

    def share(t: Tried) -> float:
        return t.promise / t.apart if t.apart else 0.0

    left = [
        t
        for t in seen.explorer.tried.values()
        if t.members not in own and (t.why is None or t.why.code == "cost.transposed")
    ]
    return (t.members for t in sorted(left, key=lambda t: (-share(t), sorted(t.members))))


def _add(
    found: dict[str, Rival], seen: Explored, members: Members, target: Target, chosen: bool
) -> None:
    """Take a pattern in where it is complex, and none like it is there."""
    board = seen.board
    group = typical(board.closed(members)[0])
    if group is None or group.key in found:
        return
    plan = outline_group(group, target)
    if not isinstance(plan, Schedule) or plan.stitching is None:
        return
    names = tuple(board.graph.names[n] for n in board.nodes(members)[0])
    apart = _apart(board, group, members, target)
    found[group.key] = Rival(group, apart, names, seen.seconds(members), chosen)


def _apart(board: Board, group: Group, members: Members, target: Target) -> Graph:
    """The plan in which the units of a group run by themselves."""
    node_of = {name: n for n, name in group.origin.items()}
    names, graph = board.graph.names, group.graph
    groups: list[list[Node]] = []
    clones: list[list[Node]] = []
    for k in sorted(members):
        own, copies = (
            [node_of[names[n]] for n in nodes if names[n] in node_of] for nodes in board.nodes([k])
        )
        if len(own) > 1 or why_opaque(graph, own[0], target) is None:
            groups.append(own)
            clones.append(copies)
    parted = contract(graph, without_views(graph, Partition(groups, clones)))
    return as_plan(parted)
