"""Fusion plans: which operators share a kernel, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from attrs import define, evolve, field

from passkit.analysis.group import Decision
from passkit.diagnostics import Diagnostic
from passkit.graph.graph import Graph
from passkit.graph.node import Node, is_leaf


@define(eq=False)
class FusionPlan:
    """The groups of a graph, each of which becomes a kernel.

    Attributes:
        groups: disjoint lists of nodes in post-order.
        duplicated: for each group nodes that it computes as well, though others do, too; empty if
            no group has any.
        log: the decision about each edge between operators.
        selection: how larger groups were chosen, if they were.
        packs: whether small kernels that do not depend on each other may be put side by side in
            one.
    """

    groups: list[list[Node]] = field(factory=list)
    duplicated: list[list[Node]] = field(factory=list)
    log: list[Decision] = field(factory=list)
    selection: Any = None
    packs: bool = False

    @property
    def pairs(self) -> list[tuple[list[Node], list[Node]]]:
        """Each group with the nodes that it computes as well."""
        duplicated = self.duplicated or [[] for _ in self.groups]
        return list(zip(self.groups, duplicated, strict=True))

    def with_pairs(self, pairs: Iterable[tuple[Sequence[Node], Sequence[Node]]]) -> FusionPlan:
        """Return the plan with other groups, each with the nodes that it computes as well."""
        listed = [(list(nodes), list(copies)) for nodes, copies in pairs]
        return evolve(
            self, groups=[g for g, _ in listed], duplicated=[copies for _, copies in listed]
        )

    def with_groups(self, pairs: Iterable[tuple[Sequence[Node], Sequence[Node]]]) -> FusionPlan:
        """Return the plan in which other groups replace those that have operators of them."""
        pairs = list(pairs)
        replaced = {n for nodes, _ in pairs for n in nodes}
        return self.with_pairs([*(p for p in self.pairs if replaced.isdisjoint(p[0])), *pairs])

    def with_log(
        self,
        graph: Graph,
        fused: Diagnostic,
        apart: Callable[[Decision], Diagnostic] | None = None,
    ) -> FusionPlan:
        """Return the plan with a log that agrees with its groups.

        Args:
            graph: the graph.
            fused: the reason for edges in a group that the log says to stay apart.
            apart: returns the reason for an edge between groups that the log says to be fused; None
                if there is none.
        """
        groups_with: dict[str, set[int]] = {}
        for k, (nodes, copies) in enumerate(self.pairs):
            for n in (*nodes, *copies):
                groups_with.setdefault(graph.names[n], set()).add(k)
        log = []
        for d in self.log:
            common = groups_with.get(d.producer, set()) & groups_with.get(d.consumer, set())
            if common and not d.fused:
                log.append(Decision(d.producer, d.consumer, fused))
            elif d.fused and not common and apart is not None:
                log.append(Decision(d.producer, d.consumer, apart(d)))
            else:
                log.append(d)
        return evolve(self, log=log)

    def note_all(self, graph: Graph, decide: Callable[[Node, Node], Diagnostic]) -> None:
        """Record the decision about each edge between two operators of a graph."""
        for node in graph.nodes:
            for producer in dict.fromkeys(e.node for e in node.inputs):
                if not is_leaf(producer) and not is_leaf(node):
                    self.note(graph.names, producer, node, decide(producer, node))

    def note(
        self,
        names: Mapping[Node, str],
        producer: Node,
        consumer: Node,
        diagnostic: Diagnostic,
    ) -> None:
        """Record why an edge stays apart, or that it is fused (a code "fused.…")."""
        self.log.append(Decision(names[producer], names[consumer], diagnostic))
