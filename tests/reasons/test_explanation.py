"""Explanations: every edge with its decision, found by name, as a table and as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from attrs import evolve

import passkit as pk
from passkit.diagnostics import Diagnostic

LOG = (
    pk.Decision("x", "gelu", Diagnostic("fused.domain")),
    pk.Decision("gelu", "dot", Diagnostic("op.results", {"op": "dot", "count": 2})),
    pk.Decision("dot", "norm", Diagnostic("domain.shapes", {"shape": (1,), "wanted": (2,)})),
)


def explained(*log: pk.Decision, name: str | None = None) -> Any:
    """The explanation of a graph for which Fusion took these decisions."""
    graph = pk.Graph([pk.ops.exp(pk.var("x", (4,)))])
    return pk.explain(graph.with_attrs(fusion_log=log), name)


def test_columns_of_the_table_are_aligned() -> None:
    """Each row starts its columns where the header does."""
    lines = str(explained(*LOG)).splitlines()

    header = ["producer", "consumer", "fused", "rule", "reason", "what", "to", "do"]
    assert lines[0].split() == header
    at = lines[0].index("reason")
    assert [line[at:].split("  ")[0] for line in lines[1:]] == [d.reason for d in LOG]
    assert "(1,) is not (2,)" in lines[3]
    assert "set FExpand on dot" in lines[2]


def test_decisions_are_found_by_node_edge_and_outcome() -> None:
    """Decisions can be filtered by a node, by an edge, and by whether it is fused."""
    explanation = explained(*LOG)

    assert [d.code for d in explanation.filter("gelu")] == ["fused.domain", "op.results"]
    assert [d.code for d in explained(*LOG, name="norm")] == ["domain.shapes"]
    assert [d.code for d in explanation.why("dot", "norm")] == ["domain.shapes"]
    assert [d.code for d in explanation.apart] == ["op.results", "domain.shapes"]
    assert len(explanation) == 3
    assert explanation[1].consumer == "dot"


def test_an_unknown_node_offers_the_nearest() -> None:
    """The error for a misspelt name has the nearest name."""
    with pytest.raises(pk.GraphError, match="begins or ends at 'gleu'; did you mean 'gelu'"):
        explained(*LOG).filter("gleu")


def test_two_nodes_without_an_edge_have_a_path() -> None:
    """The answer has the edges of the path between two nodes, in whichever order they are named."""
    path = explained(*LOG).why("x", "norm")

    assert [(d.producer, d.consumer) for d in path] == [
        ("x", "gelu"),
        ("gelu", "dot"),
        ("dot", "norm"),
    ]
    assert list(explained(*LOG).why("norm", "x")) == list(path)


def test_two_nodes_without_a_path_are_independent() -> None:
    """The answer says that two nodes are independent, and how to pack them."""
    log = (*LOG, evolve(LOG[0], producer="a", consumer="b"))
    (decision,) = explained(*log).why("x", "b")

    assert (decision.code, decision.fused) == ("graph.independent", False)
    assert decision.reason == "neither node depends on the other"
    assert decision.way_out == "keep_together=[['x', 'b']] packs them into one kernel if possible"


def test_rows_are_json() -> None:
    """Data of any kind is converted to values that JSON has."""
    rows = json.loads(json.dumps(explained(*LOG).rows()))

    assert rows[1]["data"] == {"op": "dot", "count": 2}
    assert rows[2]["data"] == {"shape": [1], "wanted": [2]}
    assert rows[1]["way_out"].startswith("set FExpand on dot")
    assert [r["fused"] for r in rows] == [True, False, False]


def test_a_graph_of_one_operator_has_no_edges() -> None:
    """A graph of one operator has nothing to explain, and the text says so."""
    graph = pk.Graph([pk.ops.exp(pk.var("x", (4,)))])

    assert str(pk.explain(graph)) == "there are no edges between operators"


def test_every_edge_of_a_plan_has_a_reason() -> None:
    """A graph without a plan is planned; each edge between two operators is in the table."""
    x, w = pk.var("x", ("n", 64)), pk.var("w", (64, 32))
    h = pk.ops.exp(x) @ w
    explanation = pk.explain(pk.Graph([pk.ops.tanh(h + 1.0)]))

    edges = {(d.producer, d.consumer) for d in explanation}
    assert edges >= {("exp", "matmul"), ("add", "tanh")}
    assert all(d.reason and d.code for d in explanation)
    assert explanation.why("add", "tanh")[0].fused
