"""PushSlices moves slices before the operators that compute what they read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit import ops

RANDOM = np.random.default_rng(7)


def read(entry: pk.Entry, *ranges: tuple[int, int, int]) -> pk.Entry:
    """Return a slice: begin, size and step for each axis."""
    begin, size, step = zip(*ranges, strict=True)
    return ops.slice(entry, begin=begin, size=size, step=step)


def operators(graph: pk.Graph) -> list[str]:
    """Return the names of the operators of a graph, in order."""
    return [node.op.name for node in graph.nodes if node.op is not None]


PROGRAMS: dict[str, tuple[Callable[[Any, Any, Any], Any], str]] = {
    "elementwise": (
        lambda x, y, v: read(ops.exp(x) * 2 + y, (1, 3, 2), (4, 2, 1)),
        "slice exp mul slice add",
    ),
    "broadcast": (
        lambda x, y, v: read(ops.tanh(v) + ops.exp(x), (2, 1, 1), (7, 4, -2)),
        "slice tanh slice exp add",
    ),
    "column": (
        lambda x, y, v: read(
            ops.exp(x) - ops.reduce_max(x, axis=1, keepdims=True), (3, 2, 1), (0, 8, 1)
        ),
        "slice exp slice reduce_max sub",
    ),
    "transpose": (
        lambda x, y, v: read(ops.transpose(ops.exp(x)), (5, 2, 1), (0, 3, 2)),
        "slice exp transpose",
    ),
    "broadcast_to": (
        lambda x, y, v: read(ops.broadcast_to(ops.exp(v), shape=(6, 8)), (5, 1, 1), (1, 3, 2)),
        "slice exp broadcast_to",
    ),
    "expand_dims": (
        lambda x, y, v: read(ops.expand_dims(ops.exp(x), axis=1), (1, 2, 1), (0, 1, 1), (2, 2, 1)),
        "slice exp expand_dims",
    ),
    "reduction": (
        lambda x, y, v: read(ops.reduce_sum(ops.exp(x), axis=0), (2, 3, 1)),
        "slice exp reduce_sum",
    ),
    "kept axis": (
        lambda x, y, v: read(
            ops.reduce_max(ops.exp(x), axis=1, keepdims=True), (2, 3, 1), (0, 1, 1)
        ),
        "slice exp reduce_max",
    ),
    "product": (
        lambda x, y, v: read(ops.matmul(ops.exp(x), y, transpose_b=True), (2, 1, 1), (1, 2, 3)),
        "slice exp slice matmul",
    ),
    "transposed product": (
        lambda x, y, v: read(ops.matmul(x, y, transpose_a=True), (2, 2, 1), (1, 2, 3)),
        "slice slice matmul",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_slices_move_to_what_is_read(name: str) -> None:
    """The slice reads inputs only, and the results are those of the whole computation."""
    build, expected = PROGRAMS[name]
    x, y, v = pk.var("x", (6, 8)), pk.var("y", (6, 8)), pk.var("v", (8,))
    graph = pk.Graph([build(x, y, v)])

    pushed = pk.ApplyPasses(graph, "PushSlices")

    names = operators(pushed)
    assert sorted(n for n in names if n != "constant") == sorted(expected.split())
    assert names.index("slice") == min(k for k, n in enumerate(names) if n != "constant")
    shapes = {"x": (6, 8), "y": (6, 8), "v": (8,)}
    feeds = {n.name: RANDOM.random(shapes[n.name], np.float32) for n in graph.inputs}
    (whole,), (part,) = pk.interpret(graph, feeds), pk.interpret(pushed, feeds)
    np.testing.assert_allclose(part, whole, rtol=1e-6)


KEPT: dict[str, Callable[[Any], Any]] = {
    "a second reader": lambda e: [read(e, (0, 2, 1), (0, 2, 1)), ops.tanh(e)],
    "an output": lambda e: [read(e, (0, 2, 1), (0, 2, 1)), e],
    "a scan": lambda e: [read(ops.cumsum(e, axis=0), (0, 2, 1), (0, 2, 1))],
    "an inserted axis that is repeated": lambda e: [
        read(ops.reshape(e, shape=(8, 6)), (0, 2, 1), (0, 2, 1))
    ],
}


@pytest.mark.parametrize("name", KEPT)
def test_slices_stay_behind_what_is_needed_whole(name: str) -> None:
    """Results that something else reads, and operators that mix elements, are computed whole."""
    x = pk.var("x", (6, 8))
    graph = pk.Graph(KEPT[name](ops.exp(x)))

    assert operators(pk.ApplyPasses(graph, "PushSlices")) == operators(graph)


def test_symbolic_extents_are_kept() -> None:
    """A slice of symbolic extents and positions moves like any other."""
    n = pk.Size.symbol("n")
    x = pk.var("x", (n, 8))
    graph = pk.Graph([ops.slice(ops.exp(x), begin=(n - 1, 3), size=(1, 2), step=(1, 1))])

    pushed = pk.ApplyPasses(graph, "PushSlices")

    assert operators(pushed) == ["slice", "exp"]
    feed = RANDOM.random((5, 8), np.float32)
    (part,) = pk.interpret(pushed, {"x": feed})
    np.testing.assert_allclose(part, np.exp(feed[4:, 3:5]), rtol=1e-6)
