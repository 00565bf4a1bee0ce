"""Node views: what attribute functions get in place of a node with other inputs or results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk


def differentiate(build: Any, x: pk.Entry, name: str) -> tuple[Any, pk.Entry, pk.Entry]:
    """Return the view that FGradient received last, the gradient by ``x``, and its entry y.

    ``build`` is called with a new operator, the square of its input, and returns y.
    """
    received: list[Any] = []

    def gradient(node: Any, dy: pk.Entry) -> list[pk.Entry]:
        received.append(node)
        return [dy * node.inputs[0] * 2.0]

    op = pk.register_op(f"test_node_view_{name}", num_inputs=1, params={"rate": 0.5})
    op.set_attr("FCodeGen", lambda node, x: x * x)
    op.set_attr("TOpPattern", pk.OpPattern.ELEMWISE)
    op.set_attr("FGradient", gradient)
    y = build(op)
    (dx,) = pk.gradients(y, [x])
    assert dx is not None
    return received[-1], dx, y


def test_a_gradient_gets_a_view_with_inputs_in_float32() -> None:
    """For a 16-bit node FGradient gets a view of it, whose input is a float32 cast.

    The view has the node's operator, parameters and name.
    """
    x = pk.var("x", (2,), "float16")
    view, dx, y = differentiate(lambda op: op(x, rate=0.25, name="y"), x, "narrow")

    assert (view.op, view.name, dict(view.params)) == (y.node.op, "y", {"rate": 0.25})
    assert (view.label, view.where) == ("y", "test_node_view_narrow 'y'")
    assert not view.is_variable and view.control == ()
    (wide,) = view.inputs
    assert wide is not x and wide.dtype is pk.ast.dt.float32
    assert wide.node.op is pk.ops.cast and wide.node.inputs == (x,)
    assert y.node.inputs == (x,)
    (value,) = pk.interpret(pk.Graph([dx]), {"x": np.array([3, -1], np.float16)})
    assert value.tolist() == [6, -2]


def test_a_gradient_gets_a_view_that_reads_state_as_the_node_did() -> None:
    """The input of the view is the state variable as it was when the node read it."""
    w = pk.state("w", np.array([2.0, 3.0]))
    view, dw, y = differentiate(lambda op: op(w), w, "state")
    step = pk.ops.assign(w, w - dw)

    assert y.node.inputs == (w,)
    assert view.inputs != (w,) and view.inputs[0].node.op is not None
    assert pk.interpret(pk.Graph([y, step]))[1].tolist() == [2 - 4.0, 3 - 6.0]


def test_views_are_immutable_and_no_nodes() -> None:
    """A view refuses assignment, is no `pk.Node`, and is hashed and compared by identity."""
    x = pk.var("x", (2,), "float16")
    view, _, y = differentiate(lambda op: op(x, name="y"), x, "immutable")

    assert repr(view) == "NodeView(test_node_view_immutable 'y')"
    assert not isinstance(view, pk.Node) and view is not y.node
    assert view == view and view != y.node and len({view, y.node}) == 2
    for field in ("op", "inputs", "params", "name", "control", "entries", "other"):
        with pytest.raises(AttributeError, match=f"a NodeView is immutable; cannot set '{field}'"):
            setattr(view, field, None)
    with pytest.raises(TypeError):
        view.params["rate"] = 1.0


def test_views_belong_to_no_graph() -> None:
    """The entries of a view are those of other nodes, so no graph contains the view."""
    x = pk.var("x", (2,), "float16")
    view, dx, y = differentiate(lambda op: op(x), x, "graph")

    assert all(entry.node is not view for entry in view.entries)
    for graph in (pk.Graph([y, dx]), pk.Graph(view.entries), pk.Graph(view.inputs)):
        assert view not in graph.nodes
        assert all(isinstance(node, pk.Node) for node in graph.nodes)
    graph = pk.Graph([y])
    with pytest.raises(pk.PassError, match=r"annotation 'cost' has no value for NodeView\("):
        _ = pk.Annotation("cost", {node: 1 for node in graph.nodes})[view]


def test_a_view_of_a_view_replaces_inputs_and_results_again() -> None:
    """`view` keeps the fields that are not replaced, and leaves the first view as it is."""
    x, z = pk.var("x", (2,), "float16"), pk.var("z", (2,))
    view, _, _ = differentiate(lambda op: op(x, rate=2.0), x, "twice")
    again = view.view([z], [z])
    inputs_only = view.view([z])

    assert (again.inputs, again.entries, dict(again.params)) == ((z,), (z,), {"rate": 2.0})
    assert inputs_only.entries == view.entries
    assert view.inputs != (z,)
