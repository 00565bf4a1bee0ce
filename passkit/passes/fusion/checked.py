"""The partition that a fusion strategy of a user's returns, checked and made complete."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from passkit.diagnostics import Diagnostic
from passkit.errors import GraphError, PassError, nearest
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node
from passkit.passes.context import PassContext
from passkit.passes.fusion.contract import contract, group_of
from passkit.passes.fusion.limits import Limits
from passkit.passes.fusion.partition import Partition, why_opaque
from passkit.plan.planner import outline_group
from passkit.plan.strategy import Strategy
from passkit.space.space import is_free
from passkit.stitching.cutting import contract_of


def partition_of(graph: Graph, strategy: Strategy, context: PassContext) -> Partition:
    """The partition that a strategy makes of a graph; operators that it leaves out run alone.

    A strategy returns lists of nodes, one for each kernel, or a `Partition`, as those of passkit
    do. Lists are checked: each node is an operator of the graph that a kernel can compute, and in
    one group; groups can be ordered, keep what no_fuse and keep_apart ask for, and have a schedule
    on the target.

    Raises: PassError naming the strategy, the group, and what is wrong with it.
    """
    returned = strategy(graph, context)
    if isinstance(returned, Partition):
        return returned
    check = _Check(graph, strategy.name, context)
    groups = check.groups(returned)
    alone = [
        [n]
        for n in graph.nodes
        if n not in check.home and why_opaque(graph, n, context.target) is None
    ]
    out = Partition([*groups, *alone])
    check.plannable(out, len(groups))
    _explain(graph, strategy.name, out, context)
    return out


class _Check:
    """One check of the groups that a strategy returned."""

    def __init__(self, graph: Graph, name: str, context: PassContext) -> None:
        self.graph, self.name, self.context = graph, name, context
        self.home: dict[Node, int] = {}

    def fail(self, problem: str) -> PassError:
        return PassError(f"fusion strategy {self.name!r}: {problem}")

    def groups(self, returned: Any) -> list[list[Node]]:
        """The groups as lists of nodes in post-order, each node checked by itself."""
        if isinstance(returned, (str, Mapping, Node, Entry)) or not isinstance(returned, Iterable):
            raise self.fail(
                f"it must return a list of groups, each a list of nodes, got "
                f"{type(returned).__name__}; return [[node, …], …]"
            )
        groups = []
        for number, members in enumerate(returned):
            if isinstance(members, (str, Mapping, Node, Entry)) or not isinstance(
                members, Iterable
            ):
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
        """A member of a group, which no other group has, and which a kernel can compute."""
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
        called = self.graph.names[node]
        if is_free(node):
            raise self.fail(
                f"group {number} has the input or constant {called!r}; leave it out: each group "
                f"takes along what it reads"
            )
        if node in self.home:
            raise self.fail(
                f"{called!r} is in group {self.home[node]} and in group {number}; a node is in "
                f"one group"
            )
        opaque = None if contract_of(node) else why_opaque(self.graph, node, self.context.target)
        if opaque is not None:
            way_out = opaque.way_out or f"leave {called!r} out: it runs by itself"
            raise self.fail(
                f"group {number} has {called!r}, which no kernel computes: {opaque}; {way_out}"
            )
        self.home[node] = number
        return node

    def plannable(self, partition: Partition, count: int) -> None:
        """Check the first ``count`` groups against hints, each other, and the target."""
        limits = Limits(self.graph, self.context)
        for number, nodes in enumerate(partition.groups[:count]):
            misfit = limits.all(nodes) if len(nodes) > 1 else None
            if misfit is not None:
                raise self.fail(f"{self.called(number, nodes)} cannot be one: {misfit}")
        try:
            contract(self.graph, partition)
        except GraphError as error:
            raise self.fail(f"{error}; take in what lies between, or split one of them") from None
        for number, nodes in enumerate(partition.groups[:count]):
            plan = outline_group(group_of(self.graph, nodes), self.context.target)
            if isinstance(plan, Diagnostic):
                raise self.fail(
                    f"{self.called(number, nodes)} has no schedule on target "
                    f"{self.context.target.name}: {plan}; split it"
                )

    def called(self, number: int, nodes: Sequence[Node]) -> str:
        """How a message calls a group."""
        names = [self.graph.names[n] for n in nodes]
        shown = ", ".join(names[:6]) + (", …" if len(names) > 6 else "")
        return f"group {number} ({shown})"


def _explain(graph: Graph, name: str, partition: Partition, context: PassContext) -> None:
    """Give each edge between two operators its decision, for `pk.explain`."""
    home = {n: k for k, nodes in enumerate(partition.groups) for n in nodes}
    for node in graph.nodes:
        for producer in dict.fromkeys(e.node for e in node.inputs):
            if is_free(producer) or is_free(node):
                continue
            note = (graph.names, producer, node)
            ends = [n for n in (producer, node) if n not in home]
            opaque = why_opaque(graph, ends[0], context.target) if ends else None
            if opaque is not None:
                partition.note(*note, opaque)
            elif home[producer] == home[node]:
                partition.note(*note, Diagnostic("fused.strategy", {"strategy": name}))
            else:
                partition.note(*note, Diagnostic("fusion.strategy", {"strategy": name}))
