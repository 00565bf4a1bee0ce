"""The gradient of a convolution by its image, by a convolution or by a matrix product."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk

CASES: list[tuple[str, tuple[int, int], dict[str, Any], bool]] = [
    ("small result", (9, 7), {}, True),
    ("strides", (9, 8), {"strides": 2, "padding": 1}, True),
    ("strides and dilations", (11, 10), {"strides": (2, 3), "dilations": (1, 2)}, True),
    ("result of the size of the image", (9, 7), {"padding": 1}, False),
    ("groups", (9, 7), {"strides": 2, "groups": 2}, False),
]
"""Name, size of the image, parameters, and whether a matrix product computes the gradient."""


def simplified(*outputs: pk.Entry) -> pk.Graph:
    """Return the graph with composites expanded and simplified."""
    return pk.ApplyPasses(pk.Graph(outputs), ["Expand", "Simplify"])


def op_names(graph: pk.Graph) -> set[str]:
    """Return the names of the operators of a graph."""
    return {node.op.name for node in graph.nodes if node.op is not None}


@pytest.mark.parametrize(
    "size, params, products", [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_both_expansions_are_the_adjoint_of_the_convolution(
    size: tuple[int, int], params: dict[str, Any], products: bool, rng: Any
) -> None:
    """sum(conv(x) * dy) equals sum(x * dx); where dy would be zeros mostly, products compute dx."""
    x = pk.var("x", (2, *size, 4), "float64")
    w = pk.var("w", (3, 3, 4 // params.get("groups", 1), 6), "float64")
    y = pk.ops.convolution(x, w, **params)
    dy = pk.var("dy", y.shape, "float64")
    dx = pk.ops.convolution_backprop_input(w, dy, size=size, **params)
    graph = simplified(pk.ops.reduce_sum(y * dy), pk.ops.reduce_sum(x * dx))
    names = op_names(simplified(dx))
    feeds = {e.node.name: rng.standard_normal(e.shape) for e in (x, w, dy)}
    forward, backward = pk.interpret(graph, feeds)

    assert ("matmul" in names, "convolution" in names) == (products, not products)
    np.testing.assert_allclose(forward, backward, rtol=1e-10)


def test_products_of_large_or_unknown_size_are_not_used() -> None:
    """A matrix product that needs too much memory, or an unknown amount, stays a convolution."""
    for batch in (1000, None):
        w, dy = pk.var("w", (3, 3, 64, 8)), pk.var("dy", (batch, 30, 30, 8))
        dx = pk.ops.convolution_backprop_input(w, dy, size=(60, 60), strides=2, padding=1)
        names = op_names(simplified(dx))

        assert "convolution" in names and "matmul" not in names
