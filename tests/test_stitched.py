"""Stitched kernels: groups of several iteration spaces, products of matrices among them, as one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.errors import CodeGenError
from passkit.lowering import lower
from passkit.planner import plan_group
from passkit.region import Region
from passkit.shared import plan_shared
from passkit.space import Infeasible
from passkit.stage import Dot
from passkit.target import cpu, target_of
from passkit.tiling import Composition
from tests.teams import team_of
from tests.together import compiled

o = pk.ops
EXTENTS = (1, 5, 17, 33, 128, 1000, 4097)
Program = Callable[[int], list[Any]]


def together(outputs: list[Any]) -> tuple[pk.Graph, list[list[str]]]:
    """A graph, and all its operators as what is wanted in one kernel."""
    graph = pk.Graph(outputs)
    nodes = [n for n in graph.nodes if n.op is not None and n.op.name != "constant"]
    return graph, [[graph.names[n] for n in nodes]]


def softmax_of(x: Any) -> Any:
    """By primitives, over the last axis."""
    e = o.exp(x - o.reduce_max(x, axis=-1, keepdims=True))
    return e / o.reduce_sum(e, axis=-1, keepdims=True)


def softmax(n: int) -> list[Any]:
    return [softmax_of(pk.var("x", (5, n)))]


def log_softmax(n: int) -> list[Any]:
    x = pk.var("x", (5, n))
    d = x - o.reduce_max(x, axis=-1, keepdims=True)
    return [d - o.log(o.reduce_sum(o.exp(d), axis=-1, keepdims=True))]


def layer_norm(n: int) -> list[Any]:
    x, g = pk.var("x", (5, n)), pk.var("g", (n,))
    d = x - o.reduce_mean(x, axis=-1, keepdims=True)
    return [d * o.rsqrt(o.reduce_mean(d * d, axis=-1, keepdims=True) + 1e-5) * g]


def batch_norm(n: int) -> list[Any]:
    x = pk.var("x", (n, 7))
    mean = o.reduce_mean(x, axis=0)
    d = x - mean
    variance = o.reduce_mean(d * d, axis=0)
    return [mean, variance, d * o.rsqrt(variance + 1e-5)]


def image_norm(n: int) -> list[Any]:
    x = pk.var("x", (3, n, 2, 20))
    mean = o.reduce_mean(x, axis=(0, 1, 2))
    d = x - mean
    variance = o.reduce_mean(d * d, axis=(0, 1, 2))
    return [mean, variance, d * o.rsqrt(variance + 1e-5)]


def into_product(n: int) -> list[Any]:
    x, w = pk.var("x", (9, n)), pk.var("w", (n, 6))
    return [o.tanh(x - o.reduce_mean(x, axis=-1, keepdims=True)) @ w]


def rows_into_product(n: int) -> list[Any]:
    x, w = pk.var("x", (n, 24)), pk.var("w", (24, 6))
    return [o.relu(softmax_of(x) @ w + 1.0)]


def attention(n: int) -> list[Any]:
    q, k, v, m = pk.var("q", (3, n, 8)), pk.var("k", (3, n, 8)), pk.var("v", (3, n, 8)), (n,)
    return [softmax_of(o.matmul(q, k, transpose_b=True) * 0.3 + pk.var("m", m)) @ v]


def figure1(n: int) -> list[Any]:
    q, k, v = pk.var("q", (3, n, 4)), pk.var("k", (3, 4, n)), pk.var("v", (3, n, 5))
    add = (q @ k) * 0.125 + pk.var("m", (n,))
    most = o.reduce_max(add, axis=-1, keepdims=True)
    e = o.exp(add - most)
    total = o.reduce_sum(e, axis=-1, keepdims=True)
    log, divide = o.log(total), 1 / total
    return [divide, log, ((e * divide) @ v) * pk.var("g", (5,)), most + log]


def rows_and_columns(n: int) -> list[Any]:
    x = o.exp(pk.var("x", (6, n)))
    y = x / o.reduce_sum(x, axis=-1, keepdims=True)
    return [o.reduce_sum(y, axis=0), y]


def rows_of_rows(n: int) -> list[Any]:
    x = pk.var("x", (4, 3, n))
    r = o.reduce_sum(x * x, axis=-1)
    return [o.reduce_max(r, axis=-1), o.sqrt(r)]


def lstm_cell(n: int) -> list[Any]:
    z, c = pk.var("z", (n, 64)), pk.var("c", (n, 16))
    i, j, f, out = o.split(z, 4, axis=1)
    state = c * o.sigmoid(f + 1.0) + o.sigmoid(i) * o.tanh(j)
    return [state, o.tanh(state) * o.sigmoid(out)]


PROGRAMS: tuple[Program, ...] = (
    softmax, log_softmax, layer_norm, batch_norm, image_norm, into_product, rows_into_product,
    attention, figure1, rows_and_columns, rows_of_rows, lstm_cell,
)  # fmt: skip


def feeds_of(graph: pk.Graph, rng: Any) -> dict[str, Any]:
    """Normal numbers for every input."""
    return {
        n.name: rng.standard_normal(n.entries[0].shape).astype(n.entries[0].dtype.numpy)
        for n in graph.inputs
    }


def agree(graph: pk.Graph, exe: Any, feeds: dict[str, Any]) -> None:
    """Compiled is what is interpreted, to a few units of the largest value."""
    for found, wanted in zip(exe(feeds), pk.interpret(graph, feeds), strict=True):
        scale = np.abs(wanted).max(initial=1e-9)
        np.testing.assert_allclose(found, wanted, atol=4e-6 * scale, rtol=0)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_one_kernel_each_at_every_extent(program: Program, rng: np.random.Generator) -> None:
    """One launch and nothing else, whatever the extent."""
    made = [together(program(n)) for n in EXTENTS]
    planned = [pk.ApplyPasses(g, LADDER, target="cpu", keep_together=names) for g, names in made]
    for (graph, _), exe in zip(made, map(pk.compile, planned), strict=True):
        assert len(exe.steps) == 1 and len(exe.kernels) == 1
        agree(graph, exe, feeds_of(graph, rng))


LADDER = ["Fusion", "SchedulePlan", "SharedMemPlan", "CodeGen"]
