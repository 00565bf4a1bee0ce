"""What goes back to the input of a convolution, by a convolution or by products of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.program.planning import planned

CASES = [
    ("few results", (9, 7), {}, True),
    ("strides", (9, 8), {"strides": 2, "padding": 1}, True),
    ("strides and dilations", (11, 10), {"strides": (2, 3), "dilations": (1, 2)}, True),
    ("as many results", (9, 7), {"padding": 1}, False),
    ("groups", (9, 7), {"strides": 2, "groups": 2}, False),
]


@pytest.mark.parametrize(
    "size, params, products", [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_both_ways_are_the_transpose(
    size: tuple[int, int], params: dict[str, Any], products: bool, rng: Any
) -> None:
    """Where most would be zeros, products do it; sum(conv(x) dy) = sum(x back(dy))."""
    x = pk.var("x", (2, *size, 4), "float64")
    w = pk.var("w", (3, 3, 4 // params.get("groups", 1), 6), "float64")
    y = pk.ops.convolution(x, w, **params)
    dy = pk.var("dy", y.shape, "float64")
    back = pk.ops.convolution_backprop_input(w, dy, size=size, **params)
    graph = pk.Graph([pk.ops.reduce_sum(y * dy), pk.ops.reduce_sum(x * back)])
    names = {n.op.name for n in planned(pk.Graph([back]), "Simplify").nodes if n.op is not None}
    feeds = {e.node.name: rng.standard_normal(e.shape) for e in (x, w, dy)}
    one, other = pk.interpret(planned(graph, "Simplify"), feeds)

    assert ("matmul" in names, "convolution" in names) == (products, not products)
    np.testing.assert_allclose(one, other, rtol=1e-10)


def test_products_that_are_too_many() -> None:
    """What would take too much memory, or is not known, stays a convolution."""
    for batch in (1000, None):
        w, dy = pk.var("w", (3, 3, 64, 8)), pk.var("dy", (batch, 30, 30, 8))
        back = pk.ops.convolution_backprop_input(w, dy, size=(60, 60), strides=2, padding=1)
        names = {n.op.name for n in planned(pk.Graph([back]), "Simplify").nodes if n.op}
        assert "convolution" in names and "matmul" not in names
