"""Groups that a user's pass annotates: those that are not closed, or do not fit, are refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from attrs import frozen

import passkit as pk
from passkit.analysis.group import Group, Kind, fused_node
from passkit.fusion.fusion_plan import FusionPlan

ops = pk.ops
SHAPE = (3, 4)
GRAPH = pk.Graph([ops.exp(pk.var("x", SHAPE) * 2.0)])
(X,) = (n.entries[0] for n in GRAPH.inputs)
I = pk.var("i", SHAPE)  # noqa: E741
TABLE = pk.constant(np.arange(12, dtype=np.float32).reshape(SHAPE), name="table")

COUNTER = pk.register_op("test_groups_counter").set_attr("TStateful", True)
COUNTER.set_attr("FInferShape", lambda node, shape: shape)


@frozen
class Case:
    """The outputs of a group's graph, the inputs of the fused node, and the message."""

    outputs: Callable[[], Any]
    match: str
    reads: tuple[pk.Entry, ...] = (X,)
    groups: Callable[[pk.Node, Group], Mapping[pk.Node, Any]] = lambda node, group: {node: group}


TABLES = "has constant 'table', a constant of 12 elements, .* put a pk.var in its place"
CASES = {
    "a table": Case(lambda: ops.exp(I * TABLE), TABLES),
    "a table that moves": Case(lambda: I * ops.transpose(ops.transpose(TABLE)), TABLES),
    "a table that is folded": Case(lambda: I + ops.reduce_sum(TABLE), TABLES),
    "a table as an output": Case(lambda: [ops.exp(I), TABLE], TABLES),
    "a literal as an output": Case(
        lambda: [ops.exp(I), pk.constant(2.0, "float32", name="two")],
        "has constant 'two' as an output, which it does not compute; let those who read",
    ),
    "an input as an output": Case(lambda: I, "has variable 'i' as an output"),
    "a state variable": Case(
        lambda: I * pk.state("s", np.ones(SHAPE, np.float32)),
        "has variable 's', a state variable; make it an input",
    ),
    "a composite": Case(
        lambda: ops.softmax(I, name="soft"), "has softmax 'soft', a composite; run Expand first"
    ),
    "no code": Case(
        lambda: ops.sort(I, name="sorted"), "has sort 'sorted', which no kernel computes; leave it"
    ),
    "a write": Case(
        lambda: COUNTER(I, name="c"),
        "has test_groups_counter 'c', which reads or writes state; leave it out",
    ),
    "a group": Case(
        lambda: fused_node(Group(GRAPH, Kind.ELEMWISE), (I,), "inner").entries,
        "has fused 'inner', a group within a group",
    ),
    "too few inputs": Case(
        lambda: ops.exp(I), r"has 1 input\(s\) and the fused node 0; .* of group.inputs", reads=()
    ),
    "too many inputs": Case(
        lambda: ops.exp(I), r"has 1 input\(s\) and the fused node 2", reads=(X, X)
    ),
    "another shape": Case(
        lambda: ops.exp(pk.var("i", (4, 3))),
        r"has float32\(4, 3\) as input 0, and the fused node float32\(3, 4\)",
    ),
    "another dtype": Case(
        lambda: ops.exp(pk.var("i", SHAPE, "float64")),
        r"has float64\(3, 4\) as input 0, and the fused node float32\(3, 4\)",
    ),
    "no group": Case(
        lambda: ops.exp(I),
        "fused 'mine' has no group in annotation 'subgraph'",
        groups=lambda node, group: {},
    ),
    "a graph": Case(
        lambda: ops.exp(I),
        r"must have a Group for fused 'mine', got Graph\(1 operators",
        groups=lambda node, group: {node: group.graph},
    ),
}


@pytest.mark.parametrize("label", CASES)
@pytest.mark.parametrize("passes", [("SchedulePlan",), ("CodeGen",)])
def test_groups_that_are_not_closed(label: str, passes: tuple[str, ...]) -> None:
    """The first pass that reads the groups names the wrong one, the problem and the way out."""
    wrong = CASES[label]
    outputs = wrong.outputs()

    @pk.register_pass("TestWrap", changes_graph=True, provides="subgraph")
    def wrap(graph: pk.Graph) -> pk.Graph:
        entries = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        group = Group(pk.Graph(entries), Kind.ELEMWISE)
        node = fused_node(group, wrong.reads, "mine")
        groups = pk.Annotation("subgraph", wrong.groups(node, group))
        return pk.Graph(node.entries[:1]).with_attrs(subgraph=groups)

    with pytest.raises(pk.PassError, match=wrong.match):
        pk.ApplyPasses(GRAPH, [wrap, *passes])


def test_a_group_made_by_hand() -> None:
    """A closed group, with literals in it and a table as an input, runs."""

    @pk.register_pass("TestWrapWell", changes_graph=True, provides="subgraph")
    def wrap(graph: pk.Graph) -> pk.Graph:
        table = pk.var("t", SHAPE)
        group = Group(pk.Graph([ops.exp(I * 2.0) + table]), Kind.ELEMWISE)
        feeds = {"i": graph.inputs[0].entries[0], "t": TABLE}
        node = fused_node(group, tuple(feeds[n.name] for n in group.inputs), "mine")
        return pk.Graph(node.entries).with_attrs(subgraph=pk.Annotation("subgraph", {node: group}))

    run = pk.compile(pk.ApplyPasses(GRAPH, [wrap, "CodeGen"]))
    (result,) = run(x=np.zeros(SHAPE, np.float32))
    np.testing.assert_array_equal(result, np.arange(12).reshape(SHAPE) + 1)
    assert len(run.kernels) == 1


def test_constants_in_a_partition() -> None:
    """A strategy that returns a `FusionPlan` with a table in a group is refused, too."""

    @pk.register_fusion("test_tables")
    def everything(graph: pk.Graph) -> FusionPlan:
        return FusionPlan([[n for n in graph.nodes if n.op is not None]])

    graph = pk.Graph([ops.exp(pk.var("x", SHAPE) * TABLE)])
    with pytest.raises(pk.PassError, match="constant 'table', a constant of 12 elements"):
        pk.compile(graph, fusion="test_tables")
