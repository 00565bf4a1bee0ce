"""The fusion plan that a user's strategy returns, checked and made complete."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from passkit.diagnostics import Diagnostic
from passkit.errors import GraphError, PassError, nearest
from passkit.fusion.contract import quotient_of
from passkit.fusion.fusible import why_opaque
from passkit.fusion.fusion_plan import FusionPlan
from passkit.fusion.legality import Legality, Level
from passkit.fusion.options import FusionOptions
from passkit.fusion.strategy import Strategy
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node, is_leaf


def fusion_plan_of(graph: Graph, strategy: Strategy, context: FusionOptions) -> FusionPlan:
    """Return the fusion plan of a strategy; operators that it leaves out run alone.

    A strategy returns lists of nodes, one for each kernel, or a `FusionPlan`, as those of passkit
    do. Lists are checked: each node is an operator of the graph that a kernel can compute, and in
    one group; groups can be ordered, keep what no_fuse and keep_apart ask for, and have a schedule
    on the target.

    Raises: PassError naming the strategy, the group, and what is wrong with it.
    """
    returned = strategy(graph, context)
    if isinstance(returned, FusionPlan):
        return returned
    check = _GroupCheck(graph, strategy.name, context)
    groups = check.groups(returned)
    alone = [
        [n]
        for n in graph.nodes
        if n not in check.group_of and why_opaque(graph, n, context.target) is None
    ]
    fusion_plan = FusionPlan([*groups, *alone])
    check.check_legality(fusion_plan, len(groups))
    _explain(graph, strategy.name, fusion_plan, context)
    return fusion_plan


class _GroupCheck:
    """One check of the groups that a strategy returned.

    Attributes:
        group_of: the number of the group of each node that has been checked.
    """

    def __init__(self, graph: Graph, name: str, context: FusionOptions) -> None:
        self.graph, self.name, self.context = graph, name, context
        self.legality = Legality(graph, context)
        self.group_of: dict[Node, int] = {}

    def fail(self, problem: str) -> PassError:
        """Return an error that names the strategy."""
        return PassError(f"fusion strategy {self.name!r}: {problem}")

    def groups(self, returned: Any) -> list[list[Node]]:
        """Return the groups as lists of nodes in post-order, each node checked by itself.

        Raises: PassError for what is no list of groups of nodes.
        """
        if not _is_list(returned):
            raise self.fail(
                f"it must return a list of groups, each a list of nodes, got "
                f"{type(returned).__name__}; return [[node, …], …]"
            )
        groups = []
        for number, members in enumerate(returned):
            if not _is_list(members):
                raise self.fail(
                    f"group {number} must be a list of nodes, got {type(members).__name__}; "
                    f"return [[node, …], …]"
                )
            nodes = [self.node(number, m) for m in members]
            if not nodes:
                raise self.fail(f"group {number} is empty; leave it out")
            groups.append(sorted(nodes, key=self.graph.positions.__getitem__))
        return groups

    def node(self, number: int, member: Any) -> Node:
        """Return a member of a group as a node.

        Raises: PassError if it is no node of the graph, is in another group, or no kernel can
            compute it.
        """
        node = member.node if isinstance(member, Entry) else member
        if not isinstance(node, Node):
            names = self.graph.names.values()
            near = f"; {nearest(node, names)}" if isinstance(node, str) else ""
            raise self.fail(
                f"group {number} must hold nodes of the graph, got {member!r}{near}; "
                f"graph.nodes has them, and graph.names their names"
            )
        if node not in self.graph.positions:
            raise self.fail(
                f"group {number} has {node.where}, which is not in the graph that it was given; "
                f"take nodes from graph.nodes"
            )
        name = self.graph.names[node]
        if is_leaf(node):
            raise self.fail(
                f"group {number} has the input or constant {name!r}; leave it out: each group "
                f"takes along what it reads"
            )
        if node in self.group_of:
            raise self.fail(
                f"{name!r} is in group {self.group_of[node]} and in group {number}; a node is in "
                f"one group"
            )
        opaque = self.legality.operator(node)
        if opaque is not None:
            way_out = opaque.way_out or f"leave {name!r} out: it runs by itself"
            raise self.fail(
                f"group {number} has {name!r}, which no kernel computes: {opaque}; {way_out}"
            )
        self.group_of[node] = number
        return node

    def check_legality(self, fusion_plan: FusionPlan, count: int) -> None:
        """Check the first ``count`` groups against hints, each other, and the target.

        Raises: PassError if one of them cannot be a kernel.
        """
        groups = fusion_plan.groups[:count]
        try:
            quotient = quotient_of(self.graph, fusion_plan)
        except GraphError as error:
            raise self.fail(f"{error}; take in what lies between, or split one of them") from None
        numbers = [quotient.cluster_of[nodes[0]] for nodes in groups]
        for number, nodes in zip(numbers, groups, strict=True):
            problem = self.legality.check(quotient, [number])
            if problem is not None:
                raise self.fail(f"{self.describe(nodes)} cannot be one: {problem}")
        for number, nodes in zip(numbers, groups, strict=True):
            problem = self.legality.check(quotient, [number], Level.FULL)
            if problem is not None:
                raise self.fail(
                    f"{self.describe(nodes)} has no schedule on target "
                    f"{self.context.target.name}: {problem}; split it"
                )

    def describe(self, nodes: Sequence[Node]) -> str:
        """Return the number of a group, and names of its nodes."""
        names = [self.graph.names[n] for n in nodes]
        shown = ", ".join(names[:6]) + (", …" if len(names) > 6 else "")
        return f"group {self.group_of[nodes[0]]} ({shown})"


def _is_list(value: Any) -> bool:
    """Return whether a value can be iterated, and is no text, table, node or entry."""
    return isinstance(value, Iterable) and not isinstance(value, (str, Mapping, Node, Entry))


def _explain(graph: Graph, name: str, fusion_plan: FusionPlan, context: FusionOptions) -> None:
    """Give each edge between two operators its decision, for `pk.explain`."""
    group_of = {n: k for k, nodes in enumerate(fusion_plan.groups) for n in nodes}

    def decide(producer: Node, consumer: Node) -> Diagnostic:
        """Return the decision about an edge."""
        outside = [n for n in (producer, consumer) if n not in group_of]
        opaque = why_opaque(graph, outside[0], context.target) if outside else None
        if opaque is not None:
            return opaque
        are_fused = group_of[producer] == group_of[consumer]
        return Diagnostic("fused.strategy" if are_fused else "fusion.strategy", {"strategy": name})

    fusion_plan.note_all(graph, decide)
