"""Graphs: post-order, keys, replacing, rebuilding, and graphs of 100,000 nodes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import passkit as pk
from passkit.graph.graph import freeze, graph_of, post_order

ops = pk.ops


def names(graph: pk.Graph) -> list[str]:
    """The labels of nodes in order."""
    return [n.label for n in graph.nodes]


def chain(n: int) -> pk.Graph:
    """A long chain of one operator."""
    op, y = pk.get_op("neg"), pk.var("x", (2,))
    for _ in range(n):
        y = op(y)
    return pk.Graph([y])


def test_post_order() -> None:
    """Inputs come first, then control dependences, then the node; heads in turn (NNVM)."""
    graph = pk.parse("""a: f32[]; b: f32[]; e = exp(b); y = add(a, b) after(e); z = log(e)
                        return y, z""")

    assert names(graph) == ["a", "b", "e", "y", "z"]
    assert [n.label for n in graph.inputs] == ["a", "b"]
    assert list(graph) == list(graph.nodes)


def test_long_chains() -> None:
    """100,000 nodes are walked, keyed and rebuilt without recursion, in seconds."""
    start = time.perf_counter()
    graph = chain(100_000)
    again = graph.rebuild(lambda node, inputs: None)

    assert len(graph.nodes) == 100_001
    assert graph.key == again.key
    assert graph.names[graph.nodes[-1]] == "neg_99999"
    assert time.perf_counter() - start < 30


def test_a_cycle_is_found() -> None:
    """A node that depends on itself is named; NNVM ignores it."""
    node = ops.exp(pk.var("x", ()), name="e").node
    object.__setattr__(node, "control", (node,))

    with pytest.raises(pk.GraphError, match="exp 'e' depends on itself; a graph has no cycles"):
        post_order([node])


def test_keys() -> None:
    """Names do not matter; structure, parameters, shapes, dtypes and constants do."""
    base = "x: f32[4]; y = softmax(x, axis=0); z = mul(y, 0.5); return z"
    key = pk.parse(base).key

    assert pk.parse(base.replace("x", "q").replace("softmaq", "softmax").replace("aqis", "axis")
                    ).key == key
    for old, new in [("f32[4]", "f64[4]"), ("[4]", "[5]"), ("axis=0", "axis=-1"), ("0.5", "-0.0"),
                     ("mul(y, 0.5)", "add(y, 0.5)"), ("return z", "return y"),
                     ("0.5);", "0.5) after(x);")]:
        assert pk.parse(base.replace(old, new)).key != key


def test_keys_are_the_same_in_every_process() -> None:
    """A key does not depend on hash seeds."""
    code = ("import passkit as pk; print(pk.parse('x: f32[?]; y = reduce_sum(x, axis=(0,)); "
            "z = mul(y, 0.5); return z').key)")
    root = str(Path(__file__).resolve().parents[2])

    def key(seed: str) -> str:
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": root}
        run = [sys.executable, "-c", code]
        return subprocess.run(run, env=env, capture_output=True, text=True, check=True).stdout

    assert key("1") == key("2") != ""


def test_freezing_parameters() -> None:
    """Arrays are frozen by value, mappings by sorted keys, functions by name."""
    assert freeze({"b": [1], "a": len}) == (("a", "builtins.len"), ("b", ("1",)))


def test_names_are_unique() -> None:
    """Repeated names are numbered, and never meet a name that is given."""
    x, y, z = pk.var("x", ()), pk.var("x", ()), pk.var("x_1", ())
    graph = pk.Graph([ops.add(x + y, z)])

    assert sorted(graph.names.values()) == ["add", "add_1", "x", "x_1", "x_2"]


def test_users() -> None:
    """Each reader counts as often as it reads."""
    graph = pk.parse("x: f32[]; y = mul(x, x); z = add(y, x); return z")
    x, y = graph.inputs[0].entries[0], graph.nodes[1].entries[0]

    assert [n.label for n in graph.users[x]] == ["y", "y", "z"]
    assert len(graph.users[y]) == 1


def test_replace() -> None:
    """Every use of an entry reads another; the source graph stays as it was."""
    graph = pk.parse("x: f32[]; y = exp(x); z = add(y, y); return z, y")
    y = graph.nodes[1].entries[0]
    key = graph.key
    again = graph.replace({y: graph.inputs[0].entries[0]})

    assert pk.to_text(again) == "x: f32[]\nz = add(x, x)\nreturn z, x"
    assert graph.key == key
    with pytest.raises(pk.GraphError, match="q is not in this graph, so it cannot be replaced"):
        graph.replace({pk.var("q", ()): y})


def test_replace_inside_of_what_is_replaced() -> None:
    """A replaced node is rebuilt on changed inputs where another key needs it."""
    graph = pk.parse("x: f32[]; q: f32[]; y = exp(x); z = log(y); s = add(q, z); return s")
    x, y = graph.nodes[1].entries[0], graph.nodes[2].entries[0]
    again = graph.replace({x: graph.inputs[0].entries[0], y: graph.inputs[1].entries[0]})

    assert len(again.nodes) <= len(graph.nodes)


def test_rebuild_checks_results() -> None:
    """A node is replaced by as many results as it has; control dependences follow."""
    graph = pk.parse("x: f32[]; y = exp(x); z = log(x) after(y); return z")
    again = graph.rebuild(
        lambda node, inputs: [ops.tanh(*inputs, name="t")] if node.name == "y" else None
    )

    assert pk.to_text(again).splitlines()[1:3] == ["t = tanh(x)", "z = log(x) after(t)"]
    with pytest.raises(pk.GraphError, match=r"exp 'y' has 1 result\(s\) and was replaced by 0"):
        graph.rebuild(lambda node, inputs: [] if node.name == "y" else None)


def test_annotations_belong_to_one_graph() -> None:
    """An annotation raises for a node of another graph; attributes are added to copies."""
    graph = pk.parse("x: f32[]; y = exp(x); return y")
    marked = graph.with_attrs(count=pk.Annotation("count", {graph.nodes[0]: 1}), other=2)

    assert graph.attrs == {}
    assert marked.attrs["count"][graph.nodes[0]] == 1
    assert list(marked.without_attrs(keep=["other"]).attrs) == ["other"]
    assert repr(marked) == "Graph(1 operators, 1 outputs, attrs: count, other)"
    with pytest.raises(pk.PassError, match=r"annotation 'count' has nothing for Node\(exp 'y'\)"):
        _ = marked.attrs["count"][graph.nodes[1]]


def test_shapes_and_dtypes_of_entries() -> None:
    """What InferShape found comes first; what nobody knows raises."""
    u = pk.var("u", None, None)
    graph = pk.Graph([u])

    with pytest.raises(pk.PassError, match="the shape of u is not known; run InferShape"):
        graph.shape(u)
    with pytest.raises(pk.PassError, match="the dtype of u is not known; run InferType"):
        graph.dtype(u)
    assert graph.with_attrs(shape={u: (2,)}).shape(u) == (2,)


@pytest.mark.parametrize("outputs", [[3], [None], ["x"]])
def test_outputs_are_entries(outputs: Any) -> None:
    """Anything else is named by its place and type."""
    with pytest.raises(pk.GraphError, match=f"output 0 .* got {outputs[0]!r}"):
        pk.Graph(outputs)


def test_graphs_of_arrays() -> None:
    """`graph_of` takes an entry, a sequence, or arrays."""
    assert len(graph_of(pk.var("x", ())).outputs) == 1
    assert [e.node.op.name for e in graph_of([1.5]).outputs] == ["constant"]


def test_importing_is_cheap() -> None:
    """``import passkit`` loads neither NumPy nor the operators until a name is used."""
    root = str(Path(__file__).resolve().parents[2])
    code = "import sys, passkit; print('numpy' in sys.modules, 'passkit.ops' in sys.modules)"
    env = {**os.environ, "PYTHONPATH": root}
    found = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )

    assert found.stdout.split() == ["False", "False"]


def test_a_node_alone() -> None:
    """Its results are its own; they are inferred again only where its inputs differ."""
    x = pk.var("x", (2, 1), "float64")
    node = pk.ops.add(x, pk.var("y", (3,), "float64"), name="sum").node
    like, other = pk.var("a", (2, 1), "float64"), pk.var("b", (5, 1), "float64")

    for first, shape in ((like, (2, 3)), (other, (5, 3))):
        made = node.isolated((first, node.inputs[1]))
        (entry,) = made.entries
        assert entry.node is made and made.inputs[0] is first and made.name == ""
        assert (entry.shape, entry.dtype) == (shape, x.dtype)
    assert node.name == "sum" and node.entries[0].node is node
