"""Fusion hints refer to their nodes, whatever passes change, or are errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.errors import SettingError
from tests.loops import while_loop
from tests.planned import plan

X = pk.var("x", ("n", 512))
EXP = pk.ops.exp(X)
SCALED = EXP * 2.0
GRAPH = pk.Graph([SCALED + 1.0])
SOFT = pk.ops.softmax(X)


def groups(graph: pk.Graph, **hints: Any) -> list[int]:
    """The number of operators in each group."""
    return sorted(len(g.ops) for g in plan(graph, "Fusion", **hints).attrs["subgraph"].values())


@pytest.mark.parametrize("hint", [EXP, EXP.node, "exp"], ids=["entry", "node", "name"])
def test_a_hint_may_be_an_entry_a_node_or_a_name(hint: Any) -> None:
    """A node is given as an entry, as a node, or by its name in the graph."""
    assert groups(GRAPH) == [3]
    assert groups(GRAPH, no_fuse=[hint]) == [1, 2]
    assert groups(GRAPH, keep_apart=[[hint, SCALED]]) == [1, 2]
    assert len(pk.compile(GRAPH, no_fuse=[hint]).kernels) == 2


def test_hints_of_a_context_in_force_apply() -> None:
    """Hints of a context in force refer to nodes of the graph."""
    with pk.PassContext(no_fuse=[EXP]):
        assert groups(GRAPH) == [1, 2]
        assert len(pk.compile(GRAPH).kernels) == 2


@pytest.mark.parametrize("hint", [SOFT, "softmax"], ids=["entry", "name"])
def test_the_last_operator_of_a_composite_stands_for_it(hint: Any) -> None:
    """A hint about a composite applies to the last operator of its expansion."""
    graph = pk.Graph([SOFT + 1.0])
    assert groups(graph, no_fuse=[hint]) == [1, 1, 4]
    log = plan(graph, "Fusion", no_fuse=[hint]).attrs["fusion_log"]
    assert {(d.producer, d.consumer) for d in log if d.code == "hint.no_fuse"} >= {
        ("softmax", "add")
    }


def test_hints_survive_renumbering_of_names() -> None:
    """The second of two equal names is the same node when the first is gone."""
    first, second = pk.ops.exp(X), pk.ops.exp(-X)
    graph = pk.Graph([first * 0.0 + pk.ops.exp(X), second + 1.0])
    assert graph.names[second.node] == "exp_2"
    for hint in (second, "exp_2"):
        fused = plan(graph, "Fusion", no_fuse=[hint])
        groups = fused.attrs["subgraph"].values()
        assert "exp_2" in [g.called(g.ops[0]) for g in groups if len(g.ops) == 1]
        assert len(groups) == 4


def test_hints_about_folded_nodes_are_ignored() -> None:
    """A hint about a node that is folded into a constant has no effect."""
    folded = pk.ops.exp(pk.constant(np.float32(1)))
    graph = pk.Graph([X * folded])
    assert groups(graph, no_fuse=[folded], keep_together=[[folded, "mul"]]) == [1]


def test_plans_for_specific_shapes_obey_the_same_hints() -> None:
    """A size that is 1 in a call requires another plan, for which the same hints apply."""
    y = pk.var("y", ("m", 512))
    total = pk.ops.exp(X + y)
    exe = pk.compile(pk.Graph([total + 1.0]), no_fuse=[total])
    x = np.zeros((3, 512), np.float32)
    np.testing.assert_allclose(exe(x=x, y=x)[0], np.full((3, 512), 2, np.float32))
    assert len(exe.steps) == 3
    calls = exe.stats["native_calls"]
    np.testing.assert_allclose(exe(x=x, y=x[:1])[0], np.full((3, 512), 2, np.float32))
    assert exe.stats["native_calls"] == calls + 1
    assert len(exe.profile(x=x, y=x[:1], runs=1, copies=False).rows) == 3


def test_hints_apply_to_nested_graphs() -> None:
    """A hint may name a node of a loop's body that the outer graph does not have."""
    loop = while_loop(
        lambda count, total: count < 3,
        lambda count, total: [count + 1, pk.ops.exp(total) * 0.5],
        [pk.var("i", (), "int32"), pk.var("x", ("n",))],
    )
    exe = pk.compile(pk.Graph([loop[1] + 1.0]), no_fuse=["exp", "loop"])
    got = exe(i=np.int32(2), x=np.zeros(4, np.float32))[0]
    np.testing.assert_allclose(got, np.full(4, 1.5, np.float32))
    assert len(exe.program.steps) > 1  # type: ignore[union-attr]


@pytest.mark.parametrize("option", ["no_fuse", "keep_together", "keep_apart"])
@pytest.mark.parametrize("fusion", ["stitch", "nnvm", "none"])
def test_a_hint_without_a_node_is_an_error(option: str, fusion: str) -> None:
    """The error for a name that no node has or had offers the nearest."""
    hints: Any = ["exq"] if option == "no_fuse" else [["exq", "mul"]]
    with pytest.raises(SettingError, match=f"{option}: the graph has no node 'exq'.*'exp'"):
        plan(GRAPH, "Fusion", fusion=fusion, **{option: hints})


def test_an_unnamed_node_of_another_graph_is_an_error() -> None:
    """A node without a name must be in the graph."""
    with pytest.raises(SettingError, match="no_fuse has tanh, which is not in the graph"):
        pk.compile(GRAPH, no_fuse=[pk.ops.tanh(X)])
