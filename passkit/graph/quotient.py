"""Quotient graphs: the operators of a graph in clusters that can be merged and contracted."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Container, Iterable, Mapping, Sequence, Set
from functools import cached_property
from typing import Protocol

from attrs import frozen

from passkit.errors import GraphError
from passkit.graph.graph import Graph
from passkit.graph.merge_graph import MergeGraph
from passkit.graph.node import CONSTANT, Entry, Node, is_leaf
from passkit.values.size import numel


@frozen(eq=False)
class Cluster:
    """Operators of a graph that run together.

    Attributes:
        nodes: the operators that no other cluster has.
        duplicated: operators of other clusters that it computes as well.
        is_group: whether it was given as a group; otherwise it is a single operator.
        body: all operators that it computes, in post-order.
        live_ins: the values that it reads from outside, without literals.
    """

    nodes: Sequence[Node]
    duplicated: Sequence[Node]
    is_group: bool
    body: Sequence[Node]
    live_ins: Sequence[Entry]

    @property
    def control(self) -> list[Node]:
        """The nodes that its operators must run after, though they read nothing of them."""
        return [c for n in self.nodes for c in n.control]

    @property
    def dependences(self) -> list[Node]:
        """The nodes that it reads, then those that it must run after."""
        return [*(e.node for e in self.live_ins), *self.control]


class Extraction(Protocol):
    """A function that makes the node which replaces a group in a contracted graph."""

    def __call__(
        self, number: int, new: Mapping[Entry, Entry], control: tuple[Node, ...]
    ) -> tuple[Node, Sequence[Entry]]:
        """Return the node, and the values of the graph that its results replace.

        Args:
            number: the number of the cluster of the group.
            new: the values of the contracted graph by those that they replace.
            control: the nodes of the contracted graph that the node must run after.
        """


class QuotientGraph(MergeGraph):
    """The operators of a graph in clusters: groups, and single operators that are in no group.

    Clusters are numbered in a topological order, in which of those that can be next the one whose
    first operator is first comes first. Merging clusters leaves `clusters` as they are.

    Attributes:
        graph: the graph.
        clusters: the clusters by number.
        cluster_of: the number of the cluster of each operator; inputs and constants have none.
    """

    def __init__(
        self,
        graph: Graph,
        groups: Iterable[Sequence[Node]] = (),
        duplicated: Iterable[Sequence[Node]] = (),
    ) -> None:
        """Make a cluster of each group, and of each operator that is in none.

        Args:
            graph: the graph.
            groups: disjoint groups of operators.
            duplicated: for each group operators that it computes as well, though others do, too;
                empty if no group has any.

        Raises: GraphError if groups depend on each other in a cycle; the message names two.
        """
        self.graph = graph
        clusters = _clusters(graph, list(groups), list(duplicated))
        index_of = {n: k for k, c in enumerate(clusters) for n in c.nodes}
        before = [
            {index_of[n] for n in c.dependences if n in index_of} - {k}
            for k, c in enumerate(clusters)
        ]
        order = _topological_order(graph, clusters, before)
        number_of = {k: number for number, k in enumerate(order)}
        self.clusters = [clusters[k] for k in order]
        self.cluster_of = {n: number_of[k] for n, k in index_of.items()}
        super().__init__([{number_of[b] for b in before[k]} for k in order])

    @cached_property
    def live(self) -> Set[int]:
        """The clusters that results of the graph depend on; others were duplicated entirely."""
        todo = [e.node for e in self.graph.heads] + [v for v, _ in self.graph.updates]
        reached: set[int] = set()
        while todo:
            number = self.cluster_of.get(todo.pop())
            if number is not None and number not in reached:
                reached.add(number)
                todo += self.clusters[number].dependences
        return reached

    @cached_property
    def readers(self) -> Mapping[Entry, Set[int]]:
        """The live clusters that read each value from outside."""
        readers: dict[Entry, set[int]] = {}
        for number in self.live:
            for entry in self.clusters[number].live_ins:
                readers.setdefault(entry, set()).add(number)
        return readers

    @cached_property
    def heads(self) -> Set[Entry]:
        """The values that a run of the graph must compute."""
        return set(self.graph.heads)

    def nodes(self, numbers: Iterable[int]) -> tuple[list[Node], list[Node]]:
        """Return the operators of clusters, and what these duplicate besides, in post-order."""
        chosen = [self.clusters[k] for k in numbers]
        own = {n for c in chosen for n in c.nodes}
        duplicated = {n for c in chosen for n in c.duplicated} - own
        position = self.graph.positions.__getitem__
        return sorted(own, key=position), sorted(duplicated, key=position)

    def body(self, numbers: Collection[int]) -> Sequence[Node]:
        """Return all operators that clusters compute, in post-order."""
        bodies = [self.clusters[k].body for k in numbers]
        if len(bodies) == 1:
            return bodies[0]
        return sorted({n for body in bodies for n in body}, key=self.graph.positions.__getitem__)

    def live_ins(self, numbers: Collection[int]) -> Sequence[Entry]:
        """Return the values that clusters read from outside, each once, without literals."""
        if len(numbers) == 1:
            return self.clusters[next(iter(numbers))].live_ins
        return live_ins(self.graph, self.body(numbers))

    def live_outs(self, numbers: Set[int]) -> list[Entry]:
        """Return the values of clusters that others read, or that are results of the graph."""
        nodes = {n: None for k in numbers for n in self.clusters[k].nodes}
        if len(numbers) > 1:
            nodes = dict.fromkeys(sorted(nodes, key=self.graph.positions.__getitem__))
        return [e for n in nodes for e in n.entries if self.leaves(e, numbers)]

    def results(self, numbers: Set[int]) -> list[Entry]:
        """Return the values that leave clusters; that of their last operator if none does.

        None does if all that read them compute these values, too.
        """
        results = self.live_outs(numbers)
        return results or [self.nodes(numbers)[0][-1].entries[0]]

    def leaves(self, entry: Entry, numbers: Set[int]) -> bool:
        """Return whether a value is a result of the graph, or read outside of clusters."""
        return entry in self.heads or not self.readers.get(entry, numbers) <= numbers

    def contract(self, extract: Extraction) -> Graph:
        """Return the graph in which a node replaces each live group.

        Operators that are in no group stay as they are.

        Args:
            extract: makes the node that replaces a group.
        """
        graph = self.graph
        leaves = [n for n in graph.nodes if is_leaf(n)]
        new = {e: e for n in leaves for e in n.entries}
        moved = {n: n for n in leaves}
        for number, cluster in enumerate(self.clusters):
            if number not in self.live:
                continue
            inside = set(cluster.nodes) if cluster.is_group else set[Node]()
            control = tuple(dict.fromkeys(moved[c] for c in cluster.control if c not in inside))
            node: Node
            replaced: Sequence[Entry]
            if cluster.is_group:
                node, replaced = extract(number, new, control)
            else:
                node = _with_inputs(cluster.nodes[0], new, control)
                replaced = cluster.nodes[0].entries
            new.update(zip(replaced, node.entries, strict=True))
            moved.update(dict.fromkeys(cluster.nodes, node))
        updates = [(moved[v], new[e]) for v, e in graph.updates]
        return Graph([new[e] for e in graph.outputs], updates)


def is_literal(graph: Graph, entry: Entry) -> bool:
    """Return whether a value is a constant of one element, which is written into code."""
    return entry.node.op is CONSTANT and numel(graph.shape(entry)) == 1


def live_ins(graph: Graph, nodes: Collection[Node]) -> list[Entry]:
    """Return the values that nodes read from outside, each once, without literals."""
    inside = set(nodes)
    entries = dict.fromkeys(e for n in nodes for e in n.inputs if e.node not in inside)
    return [e for e in entries if not is_literal(graph, e)]


def live_outs(graph: Graph, nodes: Collection[Node]) -> list[Entry]:
    """Return the values of nodes that other nodes read, or that are results of the graph."""
    inside, heads = set(nodes), set(graph.heads)
    return [
        e
        for n in nodes
        for e in n.entries
        if e in heads or any(u not in inside for u in graph.users.get(e, ()))
    ]


def producers_within(nodes: Iterable[Node], inside: Container[Node]) -> dict[Node, None]:
    """Return nodes and the nodes that they depend on, as far as ``inside`` has them."""
    todo = [n for n in nodes if n in inside]
    reached = dict.fromkeys(todo)
    while todo:
        for e in todo.pop().inputs:
            if e.node in inside and e.node not in reached:
                reached[e.node] = None
                todo.append(e.node)
    return reached


def _clusters(
    graph: Graph, groups: Sequence[Sequence[Node]], duplicated: Sequence[Sequence[Node]]
) -> list[Cluster]:
    """Return a cluster of each group, then one of each operator that is in none."""
    position = graph.positions.__getitem__
    clusters = []
    for nodes, copies in zip(groups, duplicated or [()] * len(groups), strict=True):
        body = sorted({*nodes, *copies}, key=position)
        clusters.append(Cluster(nodes, copies, True, body, live_ins(graph, body)))
    grouped = {n for nodes in groups for n in nodes}
    for node in graph.nodes:
        if node not in grouped and not is_leaf(node):
            nodes = (node,)
            clusters.append(Cluster(nodes, (), False, nodes, live_ins(graph, nodes)))
    return clusters


def _topological_order(
    graph: Graph, clusters: Sequence[Cluster], before: Sequence[Set[int]]
) -> list[int]:
    """Return the clusters in a topological order; of those that can be next the first is taken.

    Raises: GraphError for a cycle.
    """
    after: list[list[int]] = [[] for _ in clusters]
    for k, others in enumerate(before):
        for other in others:
            after[other].append(k)
    waiting = [len(others) for others in before]
    first = [graph.positions[c.nodes[0]] for c in clusters]
    ready = [(first[k], k) for k, count in enumerate(waiting) if not count]
    heapq.heapify(ready)
    order = []
    while ready:
        k = heapq.heappop(ready)[1]
        order.append(k)
        for other in after[k]:
            waiting[other] -= 1
            if not waiting[other]:
                heapq.heappush(ready, (first[other], other))
    if len(order) < len(clusters):
        raise _cycle_error(graph, clusters, before, set(range(len(clusters))) - set(order))
    return order


def _cycle_error(
    graph: Graph, clusters: Sequence[Cluster], before: Sequence[Set[int]], left: Set[int]
) -> GraphError:
    """Return an error with two clusters on a cycle of those that are ``left``."""
    path = [min(left)]
    while path[-1] not in path[:-1]:
        path.append(min(before[path[-1]] & left))
    reader, read = (f"'{graph.names[clusters[k].nodes[-1]]}'" for k in path[-2:])
    return GraphError(f"fusing would make a cycle: {read} and {reader} depend on each other")


def _with_inputs(node: Node, new: Mapping[Entry, Entry], control: tuple[Node, ...]) -> Node:
    """Return an operator with the new values of its inputs; itself if these are the same."""
    inputs = tuple(new[e] for e in node.inputs)
    same = inputs == node.inputs and control == node.control
    return node if same else node.replaced(inputs, control)
