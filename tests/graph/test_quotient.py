"""Quotient graphs: merges, paths and spans as brute force finds them, and contraction."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain

import numpy as np
import pytest

import passkit as pk
from passkit.errors import GraphError
from passkit.fusion.contract import contract, flatten
from passkit.fusion.fusion_plan import FusionPlan
from passkit.graph.merge_graph import MergeGraph
from passkit.graph.node import Node, is_leaf
from passkit.graph.quotient import QuotientGraph, live_ins, live_outs

Edges = Mapping[int, Collection[int]]


def random_predecessors(draw: random.Random) -> list[list[int]]:
    """Return up to twelve vertices in a topological order, each with up to three before it."""
    count = draw.randint(2, 12)
    return [draw.sample(range(k), min(k, draw.randint(0, 3))) for k in range(count)]


def reachable(edges: Edges, start: Iterable[int]) -> set[int]:
    """Return the vertices that edges lead to from some of them."""
    todo, reached = [w for v in start for w in edges[v]], set[int]()
    while todo:
        vertex = todo.pop()
        if vertex not in reached:
            reached.add(vertex)
            todo += edges[vertex]
    return reached


def merged_edges(edges: Edges, vertices: Collection[int]) -> dict[int, set[int]]:
    """Return the edges with some vertices as one, which has the smallest number of them."""
    name = {v: min(vertices) if v in vertices else v for v in edges}
    merged: dict[int, set[int]] = {name[v]: set() for v in edges}
    for v, others in edges.items():
        merged[name[v]] |= {name[w] for w in others}
    merged[min(vertices)].discard(min(vertices))
    return merged


def is_acyclic(edges: Edges) -> bool:
    """Return whether no vertex can be reached from itself."""
    return all(v not in reachable(edges, [v]) for v in edges)


def between(edges: Edges, vertices: Collection[int]) -> set[int]:
    """Return the vertices on paths between two of some vertices, found by trying each."""
    others = set(edges) - set(vertices)
    after = reachable(edges, vertices)
    return {v for v in others & after if reachable(edges, [v]) & set(vertices)}


def longest_path(edges: Edges, vertex: int) -> int:
    """Return the length of the longest path from a vertex."""
    return max((1 + longest_path(edges, w) for w in edges[vertex]), default=0)


def faults(kind: type[MergeGraph], count: int) -> list[str]:
    """Return in what a class differs from brute force on random graphs with random merges."""
    draw, differences = random.Random(0), list[str]()
    for number in range(count):
        graph = kind(random_predecessors(draw))
        for _ in range(4):
            vertices = sorted(graph.members)
            some = draw.sample(vertices, min(len(vertices), draw.randint(1, 3)))
            edges = {v: set(after) for v, after in graph.successors.items()}
            contracted = merged_edges(edges, some)
            can_merge = is_acyclic(contracted)
            no_path = all(not reachable(edges, [v]) & set(some) for v in some)
            if graph.can_merge(some) != can_merge:
                differences.append(f"{number}: can_merge({some})")
            if graph.are_independent(some) != no_path:
                differences.append(f"{number}: are_independent({some})")
            if graph.between(some) != between(edges, some):
                differences.append(f"{number}: between({some})")
            if graph.can_merge(some):
                first = graph.merge(some)
                assert first in some and graph.vertex_of[first] == first
                after = {v: set(w) for v, w in graph.successors.items()}
                renamed = merged_edges({**after, **{v: set() for v in some if v != first}}, some)
                if renamed != contracted:
                    differences.append(f"{number}: merge({some})")
            order = list(graph.order)
            place = {v: k for k, v in enumerate(order)}
            if any(place[v] >= place[w] for v in order for w in graph.successors[v]):
                differences.append(f"{number}: order")
                break
            if graph.spans() != {v: longest_path(graph.successors, v) for v in order}:
                differences.append(f"{number}: spans")
        originals = sorted(v for own in graph.members.values() for v in own)
        if originals != [*range(len(graph.vertex_of))]:
            differences.append(f"{number}: members")
    return differences


def test_merges_paths_and_spans_are_those_of_brute_force() -> None:
    """5,000 random graphs under random merges answer as brute force does."""
    assert faults(MergeGraph, 5000) == []


class WithoutConvexity(MergeGraph):
    """A merge graph that does not test whether a path leaves the merged vertices and returns."""

    def _walk(self, inside: Set[int], edges: Mapping[int, Set[int]]) -> Iterator[bool]:
        """Yield that no edge of a search returns."""
        return (False for _ in super()._walk(inside, edges))

    def _after(self, vertices: Collection[int]) -> set[int] | None:
        """Return the vertices after some, though they may lead back."""
        return super()._after(vertices) or set()


class WithoutPlace(MergeGraph):
    """A merge graph that takes only direct successors for paths between vertices."""

    def between(self, vertices: Collection[int]) -> set[int]:
        """Return the vertices between two adjacent ones."""
        after = {w for v in vertices for w in self.successors[v]}
        return (after & {w for v in vertices for w in self.predecessors[v]}) - set(vertices)


@pytest.mark.parametrize("kind, question", [(WithoutConvexity, "can_merge"), (WithoutPlace, "bet")])
def test_planted_faults_are_found(kind: type[MergeGraph], question: str) -> None:
    """A missing test for paths that return, and one for long paths, are found."""
    assert any(question in fault for fault in faults(kind, 200))


def test_merging_what_a_path_leaves_is_an_error() -> None:
    """Vertices with another one on a path between them are not merged."""
    graph = MergeGraph([(), (0,), (1,)])

    with pytest.raises(ValueError, match="a path between them passes others"):
        graph.merge([0, 2])
    assert graph.merge([0, 1, 2]) == 0 and list(graph.order) == [0]


def random_graph(draw: random.Random) -> pk.Graph:
    """Return a graph of up to eleven operators on vectors, some of which wait for others."""
    inputs = [pk.var(name, (4,)) for name in "ab"]
    values, operators = list(inputs), list[Node]()
    for _ in range(draw.randint(3, 11)):
        one, other = draw.choice(values), draw.choice(values)
        entry = pk.ops.add(one, other) if draw.random() < 0.5 else pk.ops.mul(one, 0.5)
        if operators and draw.random() < 0.3:
            entry = entry.node.replaced(control=(draw.choice(operators),)).entries[0]
        values.append(entry)
        operators.append(entry.node)
    return pk.Graph(draw.sample(values[2:], min(2, len(operators))))


def random_groups(
    draw: random.Random, nodes: Sequence[Node]
) -> tuple[list[list[Node]], list[list[Node]]]:
    """Return up to three random groups, and what each duplicates: producers of its own operators.

    Other groups may wait for each other.
    """
    left, groups = list(nodes), list[list[Node]]()
    for _ in range(draw.randint(1, 3)):
        group = [n for n in left if draw.random() < 0.4]
        if group:
            groups.append(group)
            left = [n for n in left if n not in group]
    duplicated = [
        [e.node for n in g for e in n.inputs if not is_leaf(e.node) and draw.random() < 0.2]
        for g in groups
    ]
    copies = [
        list(dict.fromkeys(n for n in nodes if n not in group))
        for group, nodes in zip(groups, duplicated, strict=True)
    ]
    return groups, copies


def dependences(body: Iterable[Node], own: Iterable[Node]) -> set[Node]:
    """Return the nodes that operators read from outside, and those that own ones wait for."""
    inside = set(body)
    read = {e.node for n in inside for e in n.inputs if e.node not in inside}
    return {n for n in read if not is_leaf(n)} | {c for n in own for c in n.control}


def test_clusters_are_ordered_or_refused() -> None:
    """Clusters of random groups are in an order in which they can run, unless there is none."""
    draw, refused, duplicates = random.Random(1), 0, 0
    for _ in range(2000):
        graph = random_graph(draw)
        nodes = [n for n in graph.nodes if not is_leaf(n)]
        groups, duplicated = random_groups(draw, nodes)
        grouped = {n for g in groups for n in g}
        alone = [[n] for n in nodes if n not in grouped]
        owns, copies = [*groups, *alone], [*duplicated, *([] for _ in alone)]
        home = {n: k for k, own in enumerate(owns) for n in own}
        edges = {
            k: {home[n] for n in dependences([*own, *copies[k]], own)} - {k}
            for k, own in enumerate(owns)
        }
        if not is_acyclic(edges):
            refused += 1
            with pytest.raises(GraphError, match="would make a cycle: '.*' and '.*' depend on"):
                QuotientGraph(graph, groups, duplicated)
            continue
        duplicates += any(duplicated)
        quotient = QuotientGraph(graph, groups, duplicated)
        number_of = {k: quotient.cluster_of[own[0]] for k, own in enumerate(owns)}
        assert list(quotient.order) == sorted(number_of.values())
        for k, before in edges.items():
            assert quotient.predecessors[number_of[k]] == {number_of[b] for b in before}
            assert all(number_of[b] < number_of[k] for b in before)
    assert refused > 200 and duplicates > 200


def test_names_of_a_cycle() -> None:
    """The error names two groups that depend on each other."""
    graph = pk.parse("x: f32[4]; a = exp(x); b = neg(a); c = exp(b); d = neg(c); return d")
    a, b, c, d = (n for n in graph.nodes if not is_leaf(n))

    with pytest.raises(GraphError, match="cycle: '[bc]' and '[bc]' depend on each other"):
        QuotientGraph(graph, [[a, c], [b]])
    assert len(QuotientGraph(graph, [[a, b, c], [d]]).clusters) == 2


def contracted_and_flattened(quotient: QuotientGraph) -> pk.Graph:
    """Return the graph with a fused node for each group, then these opened again."""
    groups = [c for c in quotient.clusters if c.is_group]
    plan = FusionPlan([list(c.nodes) for c in groups], [list(c.duplicated) for c in groups])
    return flatten(contract(quotient.graph, plan))


def test_contracted_graphs_compute_the_same() -> None:
    """Groups of random graphs are contracted and opened again: results are the same."""
    draw, rng, contracted = random.Random(2), np.random.default_rng(0), 0
    feeds = {name: rng.normal(size=4).astype(np.float32) for name in "ab"}
    for _ in range(300):
        graph = random_graph(draw)
        nodes = [n for n in graph.nodes if not is_leaf(n)]
        groups, duplicated = random_groups(draw, nodes)
        try:
            quotient = QuotientGraph(graph, groups, duplicated)
        except GraphError:
            continue
        contracted += 1
        results = [
            pk.interpret(g, {n.name: feeds[n.name] for n in g.inputs})
            for g in (contracted_and_flattened(quotient), graph)
        ]
        np.testing.assert_array_equal(*results)
    assert contracted > 100


def test_values_that_enter_and_leave_clusters() -> None:
    """Values read from outside have no literals; others read what leaves, or the caller."""
    graph = pk.parse(
        "x: f32[4]; a = exp(x); b = mul(a, 2.0); c = neg(b); d = abs(a); return c, d, b"
    )
    a, b, c, d = (n for n in graph.nodes if not is_leaf(n))
    quotient = QuotientGraph(graph, [[b, c], [a, d]])
    number = {n: quotient.cluster_of[n] for n in (a, b, c, d)}

    assert live_ins(graph, [b, c]) == list(quotient.live_ins([number[b]])) == [a.entries[0]]
    assert live_outs(graph, [b, c]) == quotient.live_outs({number[b]})
    assert quotient.live_outs({number[b]}) == [b.entries[0], c.entries[0]]
    assert quotient.live_outs({number[a]}) == [a.entries[0], d.entries[0]]
    assert quotient.live_outs({number[a], number[b]}) == [n.entries[0] for n in (b, c, d)]
    assert not quotient.leaves(a.entries[0], {number[a], number[b]})


def test_clusters_that_are_duplicated_entirely_are_not_live() -> None:
    """A group that all its readers compute as well has no results, and is not contracted."""
    graph = pk.parse("x: f32[4]; a = exp(x); b = neg(a); c = abs(a); return b, c")
    a, b, c = (n for n in graph.nodes if not is_leaf(n))
    quotient = QuotientGraph(graph, [[a], [b], [c]], [[], [a], [a]])

    assert quotient.live == {quotient.cluster_of[n] for n in (b, c)}
    assert quotient.live_outs({quotient.cluster_of[a]}) == []
    assert [n.op for n in contracted_and_flattened(quotient).nodes if n.op].count(a.op) == 2


def test_paths_after_predecessors_are_replaced() -> None:
    """A vertex may follow any vertices that precede it: paths and merges stay right."""
    draw, refused, replaced = random.Random(3), 0, 0
    for _ in range(500):
        predecessors = random_predecessors(draw)
        quotient = MergeGraph(predecessors)
        edges: dict[int, set[int]] = {v: set() for v in quotient.members}
        for v, before in enumerate(predecessors):
            for other in before:
                edges[other].add(v)
        for _ in range(6):
            vertex = draw.choice(list(quotient.members))
            earlier = sorted(v for v in quotient.members if vertex in reachable(edges, [v]))
            before = set(draw.sample(earlier, draw.randint(0, len(earlier))))
            quotient.set_predecessors(vertex, before)
            for v, others in edges.items():
                others.discard(vertex)
                others |= {vertex} if v in before else set()
            replaced += bool(before)
            some = draw.sample(list(quotient.members), min(2, len(quotient.members)))
            is_legal = not between(edges, some)
            refused += not is_legal
            assert quotient.can_merge(some) == is_legal
            if len(some) > 1 and is_legal:
                merged = merged_edges(edges, some)
                name = quotient.merge(some)
                edges = {name if v == min(some) else v: w for v, w in merged.items()}
                edges = {v: {name if u == min(some) else u for u in w} for v, w in edges.items()}
            place = {v: k for k, v in enumerate(quotient.order)}
            assert all(place[v] < place[w] for v, others in edges.items() for w in others)
    assert refused > 100 and replaced > 500


def test_searches_of_paths_end_where_either_direction_does() -> None:
    """A value that every layer reads does not make each test visit all layers before it."""
    count = 2000  # layers of two vertices, the second of which also reads vertex 0
    layers = ([[2 * k], [0, 2 * k + 1]] for k in range(count))
    predecessors = [[], *chain.from_iterable(layers)]
    steps = 0

    class Counting(MergeGraph):
        """Counts the edges that are looked at."""

        def _walk(self, inside: Set[int], edges: Mapping[int, Set[int]]) -> Iterator[bool]:
            """Yield as the graph does."""
            nonlocal steps
            for returns in super()._walk(inside, edges):
                steps += 1
                yield returns

    graph = Counting(predecessors)
    assert not any(graph.can_merge((0, 2 * k)) for k in range(2, count))
    assert steps < 20 * count
