"""Gradient: outputs become their gradients, as annotations say."""

from __future__ import annotations

import numpy as np
import pytest

import passkit as pk

GRAPH = pk.parse("x: f64[3]; w: f64[3]; y = mul(mul(x, x), w); return y")
FEEDS = {"x": np.array([1.0, 2.0, 3.0]), "w": np.array([4.0, 5.0, 6.0])}


def test_outputs_become_gradients() -> None:
    """Outputs are replaced by their gradients by a variable given by name."""
    result = pk.ApplyPasses(GRAPH.with_attrs(grad_xs=["x", "w"]), "Gradient")

    dx, dw = pk.interpret(result, FEEDS)
    np.testing.assert_array_equal(dx, [8.0, 20.0, 36.0])
    np.testing.assert_array_equal(dw, [1.0, 4.0, 9.0])
    assert "grad_xs" not in result.attrs


def test_annotations_are_the_arguments() -> None:
    """Annotations give differentiated entries, their gradients, the sum and recomputed nodes."""
    y = GRAPH.outputs[0]
    square = y.node.inputs[0]
    graph = GRAPH.with_attrs(
        grad_xs=square.node.inputs[0],
        grad_ys=[y, square],
        grad_ys_out_grad=[np.full(3, 2.0), None],
        grad_aggregate_fun=lambda terms: sum(terms[1:], terms[0]),
        grad_mirror_fun=lambda node: True,
    )

    (dx,) = pk.interpret(pk.ApplyPasses(graph, ["Gradient", "Simplify"]), FEEDS)
    np.testing.assert_array_equal(dx, [2 * 8.0 + 2, 2 * 20.0 + 4, 2 * 36.0 + 6])


def test_updates_of_state_are_kept() -> None:
    """The graph of gradients has the updates of the graph."""
    a = pk.state("a", np.ones(2))
    x = pk.var("x", (2,), "float64")
    pure = pk.ApplyPasses(pk.Graph([a * x, pk.ops.assign(a, x)]), "Functionalize")
    result = pk.ApplyPasses(pure.with_attrs(grad_xs="x", grad_ys=pure.outputs[0]), "Gradient")
    state: dict[str, object] = {}

    (dx,) = pk.interpret(result, {"x": np.array([3.0, 4.0])}, state)
    np.testing.assert_array_equal(dx, [1.0, 1.0])
    np.testing.assert_array_equal(state["a"], [3.0, 4.0])


def test_an_unknown_or_missing_x_is_refused() -> None:
    """An x that is not in the graph, and a graph without grad_xs, are errors."""
    with pytest.raises(
        pk.PassError, match="Gradient: 'v' is not in the graph; known: mul, w, x, y"
    ):
        pk.ApplyPasses(GRAPH.with_attrs(grad_xs="v"), "Gradient")
    with pytest.raises(
        pk.PassError, match="Gradient: Entry.z.* is not in the graph; give an entry or"
    ):
        pk.ApplyPasses(GRAPH.with_attrs(grad_xs=pk.var("z", (3,))), "Gradient")
    with pytest.raises(pk.PassError, match="Gradient depends on graph attribute 'grad_xs'"):
        pk.ApplyPasses(GRAPH, "Gradient")
    with pytest.raises(pk.GraphError, match=r"no y depends on xs\[0\]"):
        graph = GRAPH.with_attrs(grad_xs="w", grad_ys=GRAPH.inputs[0], grad_unconnected="error")
        pk.ApplyPasses(graph, "Gradient")
