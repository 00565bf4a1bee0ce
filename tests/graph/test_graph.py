"""Graphs: post-order, keys, replacement and rebuilding, also of 100,000 nodes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passkit as pk

ops = pk.ops


def names(graph: pk.Graph) -> list[str]:
    """Return the labels of a graph's nodes in order."""
    return [n.label for n in graph.nodes]


def chain(n: int) -> pk.Graph:
    """Return a graph that applies one operator ``n`` times."""
    op, y = pk.get_op("neg"), pk.var("x", (2,))
    for _ in range(n):
        y = op(y)
    return pk.Graph([y])


def test_nodes_are_in_post_order() -> None:
    """Inputs precede control dependencies, which precede the node; outputs in order (NNVM)."""
    graph = pk.parse("""a: f32[]; b: f32[]; e = exp(b); y = add(a, b) after(e); z = log(e)
                        return y, z""")

    assert names(graph) == ["a", "b", "e", "y", "z"]
    assert [n.label for n in graph.inputs] == ["a", "b"]
    assert list(graph) == list(graph.nodes)


def test_long_chains_take_seconds() -> None:
    """100,000 nodes are traversed, keyed and rebuilt without recursion, in seconds of CPU time."""
    start = time.process_time()
    graph = chain(100_000)
    again = graph.rebuild(lambda node, inputs: None)

    assert len(graph.nodes) == 100_001
    assert graph.key == again.key
    assert graph.names[graph.nodes[-1]] == "neg_99999"
    assert time.process_time() - start < 30


def test_cycles_are_refused() -> None:
    """A node that depends on itself is named in the error; NNVM ignores it."""
    node = ops.exp(pk.var("x", ()), name="e").node
    object.__setattr__(node, "control", (node,))

    with pytest.raises(pk.GraphError, match="exp 'e' depends on itself; a graph has no cycles"):
        _ = pk.Graph(node.entries).nodes


def test_keys_differ_with_everything_but_names() -> None:
    """Keys depend on structure, parameters, shapes, dtypes and constants, and not on names."""
    base = "x: f32[4]; y = softmax(x, axis=0); z = mul(y, 0.5); return z"
    key = pk.parse(base).key

    assert (
        pk.parse(base.replace("x", "q").replace("softmaq", "softmax").replace("aqis", "axis")).key
        == key
    )
    for old, new in [
        ("f32[4]", "f64[4]"),
        ("[4]", "[5]"),
        ("axis=0", "axis=-1"),
        ("0.5", "-0.0"),
        ("mul(y, 0.5)", "add(y, 0.5)"),
        ("return z", "return y"),
        ("0.5);", "0.5) after(x);"),
    ]:
        assert pk.parse(base.replace(old, new)).key != key


def test_keys_are_the_same_in_every_process() -> None:
    """A key does not depend on hash seeds."""
    code = (
        "import passkit as pk; print(pk.parse('x: f32[?]; y = reduce_sum(x, axis=(0,)); "
        "z = mul(y, 0.5); return z').key)"
    )
    root = str(Path(__file__).resolve().parents[2])

    def key(seed: str) -> str:
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": root}
        run = [sys.executable, "-c", code]
        return subprocess.run(run, env=env, capture_output=True, text=True, check=True).stdout

    assert key("1") == key("2") != ""


def test_keys_depend_on_the_values_of_parameters() -> None:
    """Arrays count by value, mappings without order, functions by module and name."""
    op = pk.register_op("test_graph_params", num_inputs=1, params={"p": None})

    def key(value: Any) -> str:
        return pk.Graph([op(pk.var("x", ()), p=value)]).key

    assert key({"b": [1], "a": len}) == key({"a": len, "b": (1,)})
    assert key(np.arange(3)) == key(np.arange(3))
    values = [{"a": len}, {"a": max}, {"a": 1}, {"b": 1}, np.arange(3), np.arange(3.0), np.ones(3)]
    assert len({key(value) for value in values}) == len(values)


def test_names_are_unique() -> None:
    """Repeated names get numbers, which avoid the names of other nodes."""
    x, y, z = pk.var("x", ()), pk.var("x", ()), pk.var("x_1", ())
    graph = pk.Graph([ops.add(x + y, z)])

    assert sorted(graph.names.values()) == ["add", "add_1", "x", "x_1", "x_2"]


def test_users_are_listed_once_for_each_operand() -> None:
    """A node that reads an entry twice is its user twice."""
    graph = pk.parse("x: f32[]; y = mul(x, x); z = add(y, x); return z")
    x, y = graph.inputs[0].entries[0], graph.nodes[1].entries[0]

    assert [n.label for n in graph.users[x]] == ["y", "y", "z"]
    assert len(graph.users[y]) == 1


def test_replace_changes_every_use_of_an_entry() -> None:
    """All users and outputs get the new entry in a new graph; the source graph stays."""
    graph = pk.parse("x: f32[]; y = exp(x); z = add(y, y); return z, y")
    y = graph.nodes[1].entries[0]
    key = graph.key
    again = graph.replace({y: graph.inputs[0].entries[0]})

    assert pk.to_text(again) == "x: f32[]\nz = add(x, x)\nreturn z, x"
    assert graph.key == key
    with pytest.raises(pk.GraphError, match="Graph.replace: q is not in this graph"):
        graph.replace({pk.var("q", ()): y})


def test_replacements_may_depend_on_each_other() -> None:
    """An entry and an entry computed from it are replaced in one call."""
    graph = pk.parse("x: f32[]; q: f32[]; y = exp(x); z = log(y); s = add(q, z); return s")
    x, y = graph.nodes[1].entries[0], graph.nodes[2].entries[0]
    again = graph.replace({x: graph.inputs[0].entries[0], y: graph.inputs[1].entries[0]})

    assert len(again.nodes) <= len(graph.nodes)


def test_rebuild_checks_the_number_of_results() -> None:
    """A node is replaced by as many results as it has; control dependencies follow."""
    graph = pk.parse("x: f32[]; y = exp(x); z = log(x) after(y); return z")
    again = graph.rebuild(
        lambda node, inputs: [ops.tanh(*inputs, name="t")] if node.name == "y" else None
    )

    assert pk.to_text(again).splitlines()[1:3] == ["t = tanh(x)", "z = log(x) after(t)"]
    with pytest.raises(pk.GraphError, match=r"each of the 1 result\(s\) of exp 'y', got 0"):
        graph.rebuild(lambda node, inputs: [] if node.name == "y" else None)


def test_transform_checks_the_number_of_results() -> None:
    """A function that returns more or fewer results than its node has is refused."""
    graph = pk.parse("x: f32[4]; y = exp(x); return y")

    for results, count in (([], 0), (list(graph.outputs) * 3, 3)):
        with pytest.raises(pk.GraphError, match=rf"1 result\(s\) of variable 'x', got {count}"):
            graph.transform(lambda node, results=results: results)


@pytest.mark.parametrize("result, shown", [("y", r"Entry\(.*; put it into a list"), ([3], "3")])
def test_replacements_are_lists_of_entries(result: Any, shown: str) -> None:
    """An entry without a list around it, and a list of something else, are refused."""
    graph = pk.parse("x: f32[4]; y = exp(x); return y")
    replacement = graph.outputs[0] if result == "y" else result

    for method in (graph.rebuild, graph.transform):
        with pytest.raises(pk.GraphError, match=rf"result\(s\) of variable 'x', got {shown}"):
            method(lambda *_: replacement)


def test_unread_names_are_a_sequence_of_names() -> None:
    """One name in place of a sequence is refused."""
    graph = pk.parse("x: f32[4]; y = exp(x); return y")

    assert graph.with_unread(["x", "z", "z"]).unread == ("z",)
    with pytest.raises(pk.ArgumentError, match="names must be a sequence of names, got 'zeta'"):
        graph.with_unread("zeta")


def test_functions_without_a_name_are_parameters() -> None:
    """The key of a graph with a partial function as parameter is its repr."""
    op = pk.register_op("test_partial", num_inputs=1, params={"f": None})
    x = pk.var("x", (2,))
    keys = {pk.Graph([op(x, f=partial(pow, n))]).key for n in (2, 2, 3)}

    assert len(keys) == 2


def test_annotations_belong_to_one_graph() -> None:
    """An annotation raises for a node of another graph; attributes are added to copies."""
    graph = pk.parse("x: f32[]; y = exp(x); return y")
    marked = graph.with_attrs(count=pk.Annotation("count", {graph.nodes[0]: 1}), other=2)

    assert graph.attrs == {}
    assert marked.attrs["count"][graph.nodes[0]] == 1
    assert list(marked.without_attrs(keep=["other"]).attrs) == ["other"]
    assert repr(marked) == "Graph(1 operators, 1 outputs, attrs: count, other)"
    with pytest.raises(pk.PassError, match=r"annotation 'count' has no value for Node\(exp 'y'\)"):
        _ = marked.attrs["count"][graph.nodes[1]]


def test_unknown_shapes_and_dtypes_raise() -> None:
    """Annotations of InferShape take precedence; an unknown shape or dtype raises."""
    u = pk.var("u", None, None)
    graph = pk.Graph([u])

    with pytest.raises(pk.PassError, match="the shape of u is not known; run InferShape"):
        graph.shape(u)
    with pytest.raises(pk.PassError, match="the dtype of u is not known; run InferType"):
        graph.dtype(u)
    assert graph.with_attrs(shape={u: (2,)}).shape(u) == (2,)


@pytest.mark.parametrize("outputs", [[3], [None], ["x"]])
def test_outputs_are_entries(outputs: Any) -> None:
    """Anything else is refused by its position and value."""
    with pytest.raises(pk.GraphError, match=f"output 0 .* got {outputs[0]!r}"):
        pk.Graph(outputs)


def test_importing_is_cheap() -> None:
    """``import passkit`` loads neither NumPy nor the operators until a name is used."""
    root = str(Path(__file__).resolve().parents[2])
    code = "import sys, passkit; print('numpy' in sys.modules, 'passkit.ops' in sys.modules)"
    env = {**os.environ, "PYTHONPATH": root}
    run = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )

    assert run.stdout.split() == ["False", "False"]


def test_isolated_nodes_infer_their_results_for_other_inputs() -> None:
    """An isolated node has new entries; their shapes are inferred where inputs differ."""
    x = pk.var("x", (2, 1), "float64")
    node = pk.ops.add(x, pk.var("y", (3,), "float64"), name="sum").node
    like, other = pk.var("a", (2, 1), "float64"), pk.var("b", (5, 1), "float64")

    for first, shape in ((like, (2, 3)), (other, (5, 3))):
        isolated = node.isolated((first, node.inputs[1]))
        (entry,) = isolated.entries
        assert entry.node is isolated and isolated.inputs[0] is first and isolated.name == ""
        assert (entry.shape, entry.dtype) == (shape, x.dtype)
    assert node.name == "sum" and node.entries[0].node is node
