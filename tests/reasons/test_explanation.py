"""Explanations: every edge with its fate, found by name, as a table and as JSON."""

from __future__ import annotations

import json

import pytest
from attrs import evolve

import passkit as pk
from passkit.plan.group import Decision
from passkit.reasons.explanation import Explanation, explain

LOG = (
    Decision("x", "gelu", True, "fused", "one iteration space"),
    Decision("gelu", "dot", False, "opaque", "dot has no FCodeGen", {"op": "dot", "n": (1, 2)},
             "register FContract"),
    Decision("dot", "norm", False, "limit", "too many buffers", {"found": 49, "limit": 48}),
)  # fmt: skip


def test_the_table_is_aligned() -> None:
    """Each row starts its columns where the header does."""
    lines = str(Explanation(LOG)).splitlines()

    assert lines[0].split() == [
        "producer", "consumer", "fused", "code", "reason", "data", "way", "out",
    ]  # fmt: skip
    at = lines[0].index("reason")
    assert [line[at:].split("  ")[0] for line in lines[1:]] == [d.reason for d in LOG]
    assert "found=49, limit=48" in lines[3]
    assert "register FContract" in lines[2]


def test_filters() -> None:
    """By node, by edge, and by fate."""
    found = Explanation(LOG)

    assert [d.code for d in found.filter("gelu")] == ["fused", "opaque"]
    assert [d.code for d in found.why("dot", "norm")] == ["limit"]
    assert [d.code for d in found.apart] == ["opaque", "limit"]
    assert len(found) == 3
    assert found[1].consumer == "dot"


def test_an_unknown_node_offers_the_nearest() -> None:
    """A misspelt name is answered with the one that was meant."""
    with pytest.raises(pk.GraphError, match="begins or ends at 'gleu'; did you mean 'gelu'"):
        Explanation(LOG).filter("gleu")


def test_two_nodes_without_an_edge() -> None:
    """The answer has the edges of the path between them, in whichever order they are named."""
    path = Explanation(LOG).why("x", "norm")

    assert [(d.producer, d.consumer) for d in path] == [
        ("x", "gelu"),
        ("gelu", "dot"),
        ("dot", "norm"),
    ]
    assert list(Explanation(LOG).why("norm", "x")) == list(path)


def test_two_nodes_without_a_path() -> None:
    """The answer says that they are independent, and how to pack them."""
    log = (*LOG, evolve(LOG[0], producer="a", consumer="b"))
    (row,) = Explanation(log).why("x", "b")

    assert (row.code, row.fused) == ("independent", False)
    assert row.way_out == "keep_together=[['x', 'b']] packs them where it can"


def test_rows_are_json() -> None:
    """Data of any kind becomes something that JSON has."""
    rows = json.loads(json.dumps(Explanation(LOG).rows()))

    assert rows[1]["data"] == {"op": "dot", "n": [1, 2]}
    assert rows[1]["way_out"] == "register FContract"
    assert [r["fused"] for r in rows] == [True, False, False]


def test_no_edges() -> None:
    """A graph of one operator has nothing to explain, and says so."""
    assert str(Explanation(())) == "no edge joins two operators"


def test_a_graph_without_a_plan() -> None:
    """Without a plan and without a way to make one, the message names the pass."""
    graph = pk.Graph([pk.ops.exp(pk.var("x", (4,)))])

    with pytest.raises(pk.PassError, match=r"Graph\(1 operators.* run Fusion"):
        explain(graph)
    assert len(explain(graph, fuse=lambda g: g.with_attrs(fusion_log=LOG))) == 3
    assert len(explain(graph.with_attrs(fusion_log=LOG), "norm")) == 1


def test_every_edge_of_a_real_plan_has_a_reason() -> None:
    """The public face plans by itself; each edge between two operators is in the table."""
    x, w = pk.var("x", ("n", 64)), pk.var("w", (64, 32))
    h = pk.ops.exp(x) @ w
    found = pk.explain(pk.Graph([pk.ops.tanh(h + 1.0)]))

    assert {(d.producer, d.consumer) for d in found} >= {("exp", "matmul"), ("add", "tanh")}
    assert all(d.reason and d.code for d in found)
    assert found.why("add", "tanh")[0].fused
