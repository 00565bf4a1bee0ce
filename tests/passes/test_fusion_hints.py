"""Hints find the nodes that they speak of, whatever passes made of them, or say that none is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.errors import SettingError
from passkit.program.planning import planned
from passkit.runtime.loop import STATE, while_loop

X = pk.var("x", ("n", 512))
EXP = pk.ops.exp(X)
SCALED = EXP * 2.0
GRAPH = pk.Graph([SCALED + 1.0])
SOFT = pk.ops.softmax(X)


def groups(graph: pk.Graph, **hints: Any) -> list[int]:
    """The number of operators in each group."""
    return sorted(len(g.ops) for g in planned(graph, "Fusion", **hints).attrs["subgraph"].values())


@pytest.mark.parametrize("what", [EXP, EXP.node, "exp"], ids=["entry", "node", "name"])
def test_a_node_is_given_in_three_ways(what: Any) -> None:
    """As an entry, as a node, or by the name that it has in the graph."""
    assert groups(GRAPH) == [3]
    assert groups(GRAPH, no_fuse=[what]) == [1, 2]
    assert groups(GRAPH, keep_apart=[[what, SCALED]]) == [1, 2]
    assert len(pk.compile(GRAPH, no_fuse=[what]).kernels) == 2


def test_hints_in_force() -> None:
    """Nodes that a context in force names are found too."""
    with pk.PassContext(no_fuse=[EXP]):
        assert groups(GRAPH) == [1, 2]
        assert len(pk.compile(GRAPH).kernels) == 2


@pytest.mark.parametrize("what", [SOFT, "softmax"], ids=["entry", "name"])
def test_the_last_operator_of_a_composite_stands_for_it(what: Any) -> None:
    """What a composite becomes goes by its name at the end."""
    graph = pk.Graph([SOFT + 1.0])
    assert groups(graph, no_fuse=[what]) == [1, 1, 4]
    log = planned(graph, "Fusion", no_fuse=[what]).attrs["fusion_log"]
    assert {(d.producer, d.consumer) for d in log if d.code == "no_fuse"} >= {("softmax", "add")}


def test_numbers_of_names_move_and_hints_stay() -> None:
    """The second of two equal names is the same node when the first is gone."""
    first, second = pk.ops.exp(X), pk.ops.exp(-X)
    graph = pk.Graph([first * 0.0 + pk.ops.exp(X), second + 1.0])
    assert graph.names[second.node] == "exp_2"
    for what in (second, "exp_2"):
        fused = planned(graph, "Fusion", no_fuse=[what])
        groups = fused.attrs["subgraph"].values()
        assert "exp_2" in [g.called(g.ops[0]) for g in groups if len(g.ops) == 1]
        assert len(groups) == 4


def test_nodes_that_passes_take_away_need_no_hint() -> None:
    """A hint about what is folded into a constant is met by that."""
    folded = pk.ops.exp(pk.constant(np.float32(1)))
    graph = pk.Graph([X * folded])
    assert groups(graph, no_fuse=[folded], keep_together=[[folded, "mul"]]) == [1]


def test_other_shapes_are_planned_with_the_same_hints() -> None:
    """A size that is 1 in a call asks for another plan: its nodes are others, by equal names."""
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


def test_graphs_inside() -> None:
    """A hint may speak of a node of a loop's body, where the loop's own graph has none such."""
    count, total = pk.var(f"{STATE}0", (), "int32"), pk.var(f"{STATE}1", ("n",))
    body = pk.Graph([count + 1, pk.ops.exp(total) * 0.5])
    begin = [pk.var("i", (), "int32"), pk.var("x", ("n",))]
    loop = while_loop(pk.Graph([count < 3]), body, begin, [], "loop")
    exe = pk.compile(pk.Graph([loop[1] + 1.0]), no_fuse=["exp", "loop"])
    got = exe(i=np.int32(2), x=np.zeros(4, np.float32))[0]
    np.testing.assert_allclose(got, np.full(4, 1.5, np.float32))
    assert len(exe.program.steps) > 1  # type: ignore[union-attr]


@pytest.mark.parametrize("option", ["no_fuse", "keep_together", "keep_apart"])
@pytest.mark.parametrize("fusion", ["stitch", "nnvm", "none"])
def test_names_of_nothing(option: str, fusion: str) -> None:
    """A name that no node has or had is told, with the nearest."""
    hints: Any = ["exq"] if option == "no_fuse" else [["exq", "mul"]]
    with pytest.raises(SettingError, match=f"{option}: the graph has no node 'exq'.*'exp'"):
        planned(GRAPH, "Fusion", fusion=fusion, **{option: hints})


def test_nodes_of_another_graph() -> None:
    """A node without a name means nothing in a graph that it is not in."""
    with pytest.raises(SettingError, match="no_fuse has tanh, which is not in the graph"):
        pk.compile(GRAPH, no_fuse=[pk.ops.tanh(X)])
