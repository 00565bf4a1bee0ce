"""Propagation of facts over a graph."""

from __future__ import annotations

import passkit as pk
from passkit.passes.propagation import Propagation

ops = pk.ops


def test_facts_reach_everything_once() -> None:
    """From one known entry a chain is inferred, with two visits of a node at most."""
    x = pk.var("x", None)
    y = x
    for _ in range(100):
        y = ops.exp(y)
    graph = pk.Graph([y])
    facts: dict[pk.Entry, int | None] = {e: None for v in graph.nodes for e in v.entries}
    facts[y] = 7
    propagation = Propagation(graph, facts)
    visits: list[pk.Node] = []

    def visit(node: pk.Node) -> None:
        visits.append(node)
        propagation.set_fact(node.inputs[0], facts[node.entries[0]])

    propagation.run(visit, lambda node: None)

    assert set(facts.values()) == {7}
    assert len(visits) <= 2 * 100


def test_guesses_come_last() -> None:
    """Everything that can be inferred is inferred before a guess, and again after it."""
    a, b = pk.var("a", None), pk.var("b", None)
    y = ops.add(ops.exp(a), ops.exp(b))
    graph = pk.Graph([y])
    facts: dict[pk.Entry, str | None] = {e: None for v in graph.nodes for e in v.entries}
    facts[a] = "sure"
    propagation = Propagation(graph, facts)

    def visit(node: pk.Node) -> None:
        if len(node.inputs) == 1:
            propagation.set_fact(node.entries[0], facts[node.inputs[0]])
            propagation.set_fact(node.inputs[0], facts[node.entries[0]])

    def guess(node: pk.Node) -> None:
        if len(node.inputs) == 2:
            propagation.set_fact(node.inputs[1], "guess")

    propagation.run(visit, guess)

    assert facts[a] == facts[y.node.inputs[0]] == "sure"
    assert facts[b] == facts[y.node.inputs[1]] == "guess"
    assert facts[y] is None


def test_a_fact_is_set_once() -> None:
    """Later facts do not replace the first."""
    x = pk.var("x", None)
    facts: dict[pk.Entry, int | None] = {x: None}
    propagation = Propagation(pk.Graph([x]), facts)
    propagation.set_fact(x, None)
    propagation.set_fact(x, 1)
    propagation.set_fact(x, 2)

    assert facts[x] == 1
