"""Graphs: order, names, keys, replacement, annotations; long chains are ordinary."""

from __future__ import annotations

import pytest

import passkit as pk
from passkit.errors import GraphError, PassError
from passkit.graph import Annotation, freeze, graph_of, post_order


def chain(length: int) -> pk.Entry:
    """exp of exp of … x."""
    x = pk.var("x", (4,))
    for _ in range(length):
        x = pk.ops.exp(x)
    return x


def test_nodes_stand_in_post_order() -> None:
    """Inputs before their users, control dependences before the node, shared nodes once."""
    x = pk.var("x", (4,))
    first = pk.ops.exp(x, name="first")
    y = pk.ops.tanh(x, name="second", control=[first.node])
    graph = pk.Graph([y + y])

    assert [n.label for n in graph] == ["x", "first", "second", "add"]
    assert graph.users[y] == (graph.nodes[-1], graph.nodes[-1])


def test_names_are_unique() -> None:
    """A name that several nodes have, and one that looks numbered, stay apart."""
    x = pk.var("x", (4,))
    a, b = pk.ops.exp(x, name="y"), pk.ops.exp(x, name="y")
    c = pk.ops.exp(x, name="y_1")
    names = pk.Graph([a + b + c]).names

    assert len(set(names.values())) == len(names)
    assert names[c.node] == "y_1"


def test_the_key_is_of_the_structure() -> None:
    """Names do not matter; operators, parameters, shapes, dtypes and order do."""

    def key(shape: object = ("n", 4), dtype: str = "float32", name: str = "", axis: int = 0) -> str:
        x = pk.var("x" + name, shape, dtype)  # type: ignore[arg-type]
        return pk.Graph([pk.ops.reduce_sum(x, axis=axis, name=name)]).key

    assert key() == key(name="other")
    assert len({key(), key((3, 4)), key(dtype="float64"), key(axis=1)}) == 4
    x, y = pk.var("x", (4,)), pk.var("y", (4,))
    assert pk.Graph([x - y]).key != pk.Graph([y - x, x]).key


def test_long_chains_are_ordinary() -> None:
    """100,000 nodes: order, names, key, replacement, and the end of it all, without recursion."""
    y = chain(100_000)
    graph = pk.Graph([y])

    assert len(graph.nodes) == 100_001
    assert len(graph.names) == 100_001
    assert len(graph.key) == 64
    assert len(graph.replace({y: pk.ops.tanh(y.node.inputs[0])}).nodes) == 100_001


def test_replacement_keeps_the_rest() -> None:
    """Users of a replaced entry read the new one; untouched nodes are the same objects."""
    x = pk.var("x", (4,))
    e = pk.ops.exp(x)
    t = pk.ops.tanh(x)
    graph = pk.Graph([e + t, e]).replace({e: pk.ops.log(x)})

    assert [n.label for n in graph] == ["x", "log", "tanh", "add"]
    assert t.node in graph.nodes
    assert e.node not in graph.nodes


def test_what_is_not_in_the_graph_cannot_be_replaced() -> None:
    """A foreign entry is named."""
    foreign = pk.ops.exp(pk.var("x", (4,)), name="foreign")

    with pytest.raises(GraphError, match="foreign is not in this graph"):
        pk.Graph([chain(2)]).replace({foreign: chain(1)})


def test_outputs_are_entries() -> None:
    """Anything else is refused with its type and position; `graph_of` takes arrays too."""
    with pytest.raises(GraphError, match="output 1 of a graph must be an Entry, got float"):
        pk.Graph([chain(1), 1.0])  # type: ignore[list-item]
    assert graph_of([1.0, chain(1)]).outputs[0].shape == ()


def test_rebuilding_needs_every_result() -> None:
    """A change that loses one of several results names the node."""
    three = pk.register_op("graph_two", num_inputs=1, num_outputs=2)
    three.set_attr("FCodeGen", lambda node, x: (x, x))
    three.set_attr("TOpPattern", pk.OpPattern.ELEMWISE)
    graph = pk.Graph(list(three(pk.var("x", (4,)))))

    with pytest.raises(GraphError, match=r"graph_two has 2 result\(s\) and was replaced by 1"):
        graph.rebuild(lambda node, inputs: None if node.op is None else [inputs[0]])


def test_a_cycle_is_found() -> None:
    """A node that depends on itself through control dependences is named."""
    y = chain(2)
    object.__setattr__(y.node.inputs[0].node, "control", (y.node,))

    with pytest.raises(GraphError, match="exp depends on itself"):
        post_order([y.node])


def test_annotations_belong_to_one_graph() -> None:
    """Asking for a foreign node names the annotation instead of returning nothing."""
    x = chain(1)
    graph = pk.Graph([x]).with_attrs(cost=Annotation("cost", {x.node: 3}))

    assert graph.attrs["cost"][x.node] == 3
    assert "cost" not in graph.without_attrs().attrs
    assert graph.without_attrs(keep=["cost"]).attrs["cost"][x.node] == 3
    with pytest.raises(PassError, match="'cost' has nothing for Node"):
        graph.attrs["cost"][chain(1).node]
    with pytest.raises(TypeError, match="item assignment"):
        graph.attrs["cost"] = {}  # type: ignore[index]


def test_unknown_shapes_and_dtypes_name_the_pass() -> None:
    """What is asked too early says what to run."""
    x = pk.var("x", None, None)
    graph = pk.Graph([x])

    with pytest.raises(PassError, match="the shape of x is not known; run InferShape"):
        graph.shape(x)
    with pytest.raises(PassError, match="the dtype of x is not known; run InferType"):
        graph.dtype(x)


def test_parameters_freeze_to_the_same_text_in_every_process() -> None:
    """Arrays by content, mappings in order, functions by name."""
    import numpy as np

    assert freeze({"b": [1, 2], "a": (3,)}) == freeze({"a": [3], "b": (1, 2)})
    assert freeze(np.ones(3)) == freeze(np.ones(3))
    assert freeze(np.ones(3)) != freeze(np.ones(3, np.float32))
    assert "freeze" in str(freeze(freeze))
