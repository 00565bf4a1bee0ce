"""MoveTransposes moves transposes behind operators, where they cancel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit import ops

FIRST, LAST = (0, 3, 1, 2), (0, 2, 3, 1)
"""The axes by which images with channels last get channels first, and back."""


def first(x: pk.Entry) -> pk.Entry:
    """Return images with channels first."""
    return ops.transpose(x, axes=FIRST)


def last(x: pk.Entry) -> pk.Entry:
    """Return images with channels last."""
    return ops.transpose(x, axes=LAST)


def operators(graph: pk.Graph) -> list[str]:
    """Return the names of the operators of a graph, in order."""
    return [node.op.name for node in graph.nodes if node.op is not None]


Program = Callable[[pk.Entry, pk.Entry, pk.Entry], pk.Entry]
PROGRAMS: dict[str, tuple[Program, str]] = {
    "elementwise": (lambda x, y, v: last(ops.relu(first(x))), "relu"),
    "two operands": (lambda x, y, v: last(first(x) * ops.exp(first(y))), "exp mul"),
    "vector": (
        lambda x, y, v: last(first(x) + ops.reshape(v, shape=(8, 1, 1))),
        "reshape reshape add",
    ),
    "small operand": (
        lambda x, y, v: last(first(x) * ops.slice(first(y), begin=(0, 0, 1, 2), size=(2, 8, 1, 1))),
        "slice mul",
    ),
    "number": (lambda x, y, v: last(ops.maximum(first(x), 0.5)), "constant maximum"),
    "concat": (lambda x, y, v: last(ops.concat(first(x), first(y), axis=1)), "concat"),
    "slice": (
        lambda x, y, v: last(
            ops.slice(first(x), begin=(0, 2, 1, 0), size=(2, 4, 3, 5), step=(1, 1, 1, 1))
        ),
        "slice",
    ),
    "reduction": (
        lambda x, y, v: ops.reduce_max(ops.relu(first(x)), axis=(2, 3)),
        "relu reduce_max",
    ),
    "kept axes": (
        lambda x, y, v: last(first(x) - ops.reduce_max(first(x), axis=1, keepdims=True)),
        "reduce_max sub",
    ),
    "reduction of one axis": (
        lambda x, y, v: ops.transpose(ops.reduce_sum(first(x), axis=2), axes=(0, 2, 1)),
        "reduce_sum",
    ),
    "several readers": (
        lambda x, y, v: last(ops.relu(first(x))) + last(ops.exp(ops.relu(first(x)))),
        "relu relu exp add",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_transposes_cancel(name: str) -> None:
    """No transpose is left, and results are those of the graph as it was."""
    program, names = PROGRAMS[name]
    x, y, v = pk.var("x", (2, 5, 6, 8)), pk.var("y", (2, 5, 6, 8)), pk.var("v", (8,))
    graph = pk.Graph([program(x, y, v)])
    moved = pk.ApplyPasses(graph, ["MoveTransposes"])
    assert " ".join(operators(moved)) == names
    rng = np.random.default_rng(1)
    feeds = {n.name: rng.random(n.entries[0].shape, np.float32) for n in graph.inputs}
    expected = pk.interpret(graph, feeds)
    for actual in (pk.interpret(moved, feeds), pk.compile(graph)(feeds)):
        np.testing.assert_allclose(actual[0], expected[0], rtol=1e-6)


UNCHANGED: dict[str, Program] = {
    "nothing cancels": lambda x, y, v: ops.relu(first(x)),
    "large operand of another order": lambda x, y, v: last(
        first(x) + ops.broadcast_to(ops.reshape(v, shape=(8, 1, 1)), shape=(2, 8, 5, 6))
    ),
    "reduction of all": lambda x, y, v: ops.reduce_sum(ops.exp(first(x))),
}


@pytest.mark.parametrize("name", UNCHANGED)
def test_a_graph_stays_where_no_transpose_would_go(name: str) -> None:
    """A graph with as many transposes as before is returned itself, with its names."""
    x, y, v = pk.var("x", (2, 5, 6, 8)), pk.var("y", (2, 5, 6, 8)), pk.var("v", (8,))
    graph = pk.Graph([UNCHANGED[name](x, y, v)])
    assert pk.to_text(pk.ApplyPasses(graph, ["MoveTransposes"])) == pk.to_text(graph)


def test_each_move_takes_fuel() -> None:
    """Without fuel a transpose stays where it is, so that a bisection finds a wrong move."""
    x = pk.var("x", (2, 5, 6, 8))
    graph = pk.Graph([last(ops.exp(ops.relu(first(x))))])
    for fuel in range(3):
        moved = pk.ApplyPasses(graph, ["MoveTransposes"], fuel=fuel)
        expected = {
            0: "transpose relu exp transpose",
            1: "relu transpose exp transpose",
            2: "relu exp",
        }[fuel]
        assert " ".join(operators(moved)) == expected


TEXT = """x: f32[8, 16, 16, 4]; t = transpose(x, axes=(0, 3, 1, 2))
a = exp(t); b = sin(a); c = transpose(b, axes=(0, 2, 3, 1)); d = sqrt(c); return d"""


@pytest.mark.parametrize(
    ("hints", "kernels"),
    [
        ({}, 1),
        ({"keep_apart": [["a", "b"]]}, 2),
        ({"no_fuse": ["b"]}, 3),
        ({"keep_apart": [["t", "a"]]}, 3),  # t, then a b, then c d
        ({"keep_apart": [["c", "d"]]}, 2),
        ({"keep_together": [["t", "a", "b", "c", "d"]]}, 1),
    ],
)
def test_fusion_hints_hold_for_operators_that_are_passed(
    hints: dict[str, Any], kernels: int
) -> None:
    """Operators keep the names by which hints mean them; a transpose in a hint does not move."""
    graph = pk.parse(TEXT)
    run = pk.compile(graph, **hints)
    assert len(run.kernels) == kernels
    x = np.random.default_rng(2).random((8, 16, 16, 4), np.float32)
    np.testing.assert_allclose(run(x=x)[0], np.sqrt(np.sin(np.exp(x))), rtol=1e-5)


def test_symbolic_batches_move_too() -> None:
    """An operand that is small for each image is small for any number of images."""
    n = pk.Size.symbol("n")
    x, scale = pk.var("x", (n, 16, 16, 8)), pk.var("scale", (n, 8, 1, 1))
    graph = pk.Graph([last(first(x) * scale)])
    assert "transpose" not in operators(pk.ApplyPasses(graph, ["MoveTransposes", "Simplify"]))
