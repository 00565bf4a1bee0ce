"""Groups of unknown batch, unknown length of rows, or both are one kernel each."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import passkit as pk
from tests.planner.test_multi_nest import lstm_step, softmax_of, together
from tests.together import prebuilt

pytestmark = pytest.mark.usefixtures("quick_kernels")
o = pk.ops
Dim = int | str | None
Program = Callable[[Any, Any], list[Any]]
EXTENTS = (1, 5, 17, 33, 128, 600)
KINDS: dict[str, tuple[Dim, Dim]] = {
    "batch": ("B", 33),
    "length": (6, "T"),
    "both": ("B", "T"),
}


def softmax(b: Dim, t: Dim) -> list[Any]:
    """Return a softmax of rows."""
    return [softmax_of(pk.var("x", (b, t)))]


def log_softmax(b: Dim, t: Dim) -> list[Any]:
    """Return a log-softmax of rows."""
    x = pk.var("x", (b, t))
    d = x - o.reduce_max(x, axis=-1, keepdims=True)
    return [d - o.log(o.reduce_sum(o.exp(d), axis=-1, keepdims=True))]


def softmax_among_others(b: Dim, t: Dim) -> list[Any]:
    """Return a softmax, and a product that reads a statistic of its rows."""
    x, y = pk.var("x", (b, t)), pk.var("y", (b, 12))
    p = softmax_of(x)
    scale = o.reduce_max(p * x, axis=-1, keepdims=True)
    return [o.tanh((y + scale) @ pk.var("w", (12, 12))), p]


def norm(x: Any, width: Dim) -> Any:
    """Return a layer norm with a weight for each column."""
    d = x - o.reduce_mean(x, axis=-1, keepdims=True)
    variance = o.reduce_mean(d * d, axis=-1, keepdims=True)
    return d * o.rsqrt(variance + 1e-5) * pk.var("g", (width,))


def layer_norm(b: Dim, t: Dim) -> list[Any]:
    """Return a layer norm of rows."""
    return [norm(pk.var("x", (b, t)), t)]


def layer_norm_into_product(b: Dim, t: Dim) -> list[Any]:
    """Return a product of a layer norm, added to its input."""
    x = pk.var("x", (b, t))
    return [x + o.tanh(norm(x, t) @ pk.var("w", (t, t)) * 0.1)]


def batch_norm(b: Dim, t: Dim) -> list[Any]:
    """Return mean and variance of columns, and the normalized matrix."""
    x = pk.var("x", (b, t))
    mean = o.reduce_mean(x, axis=0)
    d = x - mean
    variance = o.reduce_mean(d * d, axis=0)
    return [mean, variance, d * o.rsqrt(variance + 1e-5)]


def reduction_into_product(b: Dim, t: Dim) -> list[Any]:
    """Return a product of rows minus their means."""
    x = pk.var("x", (b, t))
    return [o.tanh(x - o.reduce_mean(x, axis=-1, keepdims=True)) @ pk.var("w", (t, 6))]


def attention(b: Dim, t: Dim) -> list[Any]:
    """Return attention with a mask."""
    q, k, v = (pk.var(n, (b, t, 8)) for n in "qkv")
    scores = o.matmul(q, k, transpose_b=True) * 0.3
    return [softmax_of(o.where(pk.var("mask", (t, t)) > 0.0, scores, -1e9)) @ v]


def cross_attention(b: Dim, t: Dim) -> list[Any]:
    """Return attention to as many keys as a batch has rows."""
    q, k, v = pk.var("q", (2, t, 8)), pk.var("k", (2, b, 8)), pk.var("v", (2, b, 8))
    return [softmax_of(o.matmul(q, k, transpose_b=True) * 0.3 + pk.var("mask", (t, b))) @ v]


def figure1(b: Dim, t: Dim) -> list[Any]:
    """Return two products and two reductions with four results."""
    q, k, v = pk.var("q", (b, t, 4)), pk.var("k", (b, 4, t)), pk.var("v", (b, t, 5))
    add = (q @ k) * 0.125 + pk.var("m", (t,))
    scale = o.reduce_max(add, axis=-1, keepdims=True)
    e = o.exp(add - scale)
    total = o.reduce_sum(e, axis=-1, keepdims=True)
    log, divide = o.log(total), 1 / total
    return [divide, log, ((e * divide) @ v) * pk.var("g", (5,)), scale + log]


def lstm_cell(b: Dim, t: Dim) -> list[Any]:
    """Return an LSTM cell with its products, for inputs of any length."""
    x, h, c = pk.var("x", (b, t)), pk.var("h", (b, 16)), pk.var("c", (b, 16))
    z = x @ pk.var("w", (t, 64)) * 0.1 + h @ pk.var("r", (16, 64)) + pk.var("bias", (64,))
    return lstm_step(z, c)


PROGRAMS: tuple[Program, ...] = (
    softmax,
    log_softmax,
    softmax_among_others,
    layer_norm,
    layer_norm_into_product,
    batch_norm,
    reduction_into_product,
    attention,
    cross_attention,
    figure1,
    lstm_cell,
)
CASES = {f"{p.__name__} {kind}": (p, dims) for p in PROGRAMS for kind, dims in KINDS.items()}
CASES["softmax None"] = softmax, (None, None)
CASES["batch_norm None"] = batch_norm, (None, None)


@cache
def built() -> dict[str, pk.Graph]:
    """Return the plans of all cases by name; their kernels are compiled together."""
    cases = {name: together(p(*dims)) for name, (p, dims) in CASES.items()}
    graphs = [graph for graph, _ in cases.values()]
    planned = prebuilt(graphs, [{"keep_together": names} for _, names in cases.values()])
    return dict(zip(cases, planned, strict=True))


def extent_of(size: Any, sizes: dict[str, int]) -> int:
    """Return the extent of an axis: a number, or the value of its symbol."""
    return size if isinstance(size, int) else sizes[str(size)]


def agree(exe: pk.Executable, graph: pk.Graph, sizes: dict[str, int]) -> None:
    """Compare an executable with the interpreter for these values of symbols."""
    rng = np.random.default_rng(sum(sizes.values()))
    feeds = {
        n.name: rng.standard_normal([extent_of(k, sizes) for k in n.entries[0].shape]).astype(
            np.float32
        )
        for n in graph.inputs
    }
    for expected, result in zip(pk.interpret(graph, feeds), exe(feeds), strict=True):
        scale = np.abs(expected).max(initial=1)
        np.testing.assert_allclose(np.asarray(result), expected, rtol=0, atol=2e-5 * scale)


@pytest.mark.parametrize("name", CASES)
def test_one_kernel_of_unknown_sizes(name: str) -> None:
    """A group is one launch, and right for each size or pair of sizes."""
    program, dims = CASES[name]
    graph = pk.Graph(program(*dims))
    exe = pk.compile(built()[name])
    symbols = sorted(
        {
            s
            for n in graph.inputs
            for k in n.entries[0].shape
            if not isinstance(k, int)
            for s in k.symbols
        }
    )

    assert len(exe.kernels) == 1 and len(exe.steps) == 1
    for n in EXTENTS:
        for m in EXTENTS if len(symbols) == 2 else (n,):
            if n * m <= 1 << 13 or len(symbols) == 1:
                agree(exe, graph, dict(zip(symbols, (n, m), strict=False)))
