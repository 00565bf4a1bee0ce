"""Gradients of normalisations and activations are fused as their forward passes are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import passkit as pk

ops = pk.ops
X, DY = pk.var("x", ("n", 96)), pk.var("dy", ("n", 96))
GAMMA, BETA = pk.var("gamma", (96,)), pk.var("beta", (96,))


def written_out(x: Any) -> Any:
    """Return a softmax in primitive operators."""
    e = ops.exp(x - ops.reduce_max(x, axis=-1, keepdims=True))
    return e / ops.reduce_sum(e, axis=-1, keepdims=True)


# by name: the forward pass, the variables to differentiate by, and the number of kernels
FORWARDS: dict[str, tuple[Callable[[], Any], list[Any], int]] = {
    "softmax": (lambda: ops.softmax(X), [X], 1),
    "softmax over columns": (lambda: ops.softmax(X, axis=0), [X], 1),
    "softmax in primitives": (lambda: written_out(X), [X], 1),
    "log_softmax": (lambda: ops.log_softmax(X), [X], 1),
    "gelu": (lambda: ops.gelu(X), [X], 1),
    "gelu by tanh": (lambda: ops.gelu(X, approximate="tanh"), [X], 1),
    "silu": (lambda: ops.silu(X), [X], 1),
    "layer_norm": (lambda: ops.layer_norm(X, GAMMA, BETA), [X], 1),
    "layer_norm with sums": (lambda: ops.layer_norm(X, GAMMA, BETA), [X, GAMMA, BETA], 3),
}


@pytest.mark.parametrize("name", FORWARDS)
def test_gradients_are_few_kernels(name: str) -> None:
    """A gradient is one kernel; the sums over rows for gamma and beta are kernels of their own."""
    build, xs, kernels = FORWARDS[name]
    graph = pk.Graph(pk.gradients(build(), xs, [DY]))
    fused = pk.ApplyPasses(graph, ["Functionalize", "Expand", "Simplify", "Fusion"])

    assert len(fused.attrs["subgraph"]) == kernels


def test_compiled_gradients_are_right() -> None:
    """All gradients in one graph equal those of the interpreter."""
    outs = [g for build, xs, _ in FORWARDS.values() for g in pk.gradients(build(), xs, [DY])]
    graph = pk.Graph(outs)
    rng = np.random.default_rng(1)
    feeds = {
        n.name: rng.normal(size=(37, 96) if n.name in ("x", "dy") else 96).astype("float32")
        for n in graph.inputs
    }

    for a, b in zip(pk.compile(graph)(feeds), pk.interpret(graph, feeds), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)
