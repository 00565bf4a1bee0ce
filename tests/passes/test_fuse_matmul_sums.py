"""FuseMatmulSums: sums of matrix products become one operator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from tests.planned import feeds_of, use_cached_plans
from tests.teams import team_of

HEAD = "x: f32[300, 90]; u: f32[300, 70]; y: f32[40, 90]; v: f32[40, 70]; b: f32[90, 70]; "
PAIRS = "matmul(x, u, transpose_a=true), matmul(y, v, transpose_a=true)"

BOTH = "p = matmul(x, u, transpose_a=true); q = matmul(y, v, transpose_a=true)"


def names(text: str, **options: Any) -> str:
    """The operators of a graph behind the pass."""
    graph = pk.ApplyPasses(pk.parse(HEAD + text), ["Simplify", "FuseMatmulSums"], **options)
    return " ".join(n.op.name for n in graph.nodes if n.op and n.op.name != "constant")


JOINED = [
    (f"return add({PAIRS})", "matmul_sum"),
    (f"s = add({PAIRS}); return exp(sub(s, b))", "matmul_sum sub exp"),
    (f"s = add({PAIRS}); return add(matmul(x, exp(u), transpose_a=true), s)", "exp matmul_sum"),
    (f"s = add({PAIRS}); return add(exp(b), s)", "exp matmul_sum add"),
]
APART = [
    ("return add(matmul(x, u, transpose_a=true), b)", "matmul add"),
    ("p = matmul(x, u, transpose_a=true); return add(p, p)", "matmul add"),
    (f"s = add({PAIRS}); return add(exp(b), add(s, b)), s", "exp matmul_sum add add"),
    (f"{BOTH}; return add(p, q), q", "matmul matmul add"),
    (
        "return add(matmul(x, u, transpose_a=true), matmul(b, matmul(v, v, transpose_a=true)))",
        "matmul matmul matmul add",
    ),
    (
        "k: f32[90, 9]; l: f32[9, 70]; return add(matmul(k, l), matmul(exp(k), l))",
        "matmul exp matmul add",
    ),
]


@pytest.mark.parametrize("text, expected", [*JOINED, *APART])
def test_sums_of_matrix_products_are_found(text: str, expected: str) -> None:
    """Products of one kind are fused if only the sum reads them."""
    assert names(text) == expected


def test_hints_fuel_strategy_and_target_keep_products() -> None:
    """Products in hints are kept, without fuel, by other strategies and on devices."""
    text = f"return add({PAIRS})"

    assert names(text, fuel=0) == "matmul matmul add"
    assert names(text, no_fuse=["matmul"]) == "matmul matmul add"
    assert names(text, fusion="xla") == "matmul matmul add"
    assert names(text, target="cuda") == "matmul matmul add"
    once = pk.ApplyPasses(pk.parse(HEAD + text), "FuseMatmulSums")
    assert pk.ApplyPasses(once, "FuseMatmulSums").key == once.key


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_a_fused_sum_has_right_values_at_all_sizes(dtype: str, rng: np.random.Generator) -> None:
    """One launch serves any number of steps; the bits do not depend on threads."""
    text = (HEAD + f"return add(add({PAIRS}), b)").replace("300", "n").replace("f32", dtype)
    graph = pk.parse(text)
    exe, visited = pk.compile(graph), set()
    for n in (300, 17, 0):
        shapes = {"x": (n, 90), "u": (n, 70), "y": (40, 90), "v": (40, 70), "b": (90, 70)}
        real = np.float32 if dtype == "f32" else np.float64
        feeds = {k: rng.standard_normal(s).astype(real) for k, s in shapes.items()}
        (result,) = exe(feeds)
        expected = feeds["x"].T @ feeds["u"] + feeds["y"].T @ feeds["v"] + feeds["b"]

        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)
    for threads in (1, 2, 4):
        with team_of(threads):
            visited.add(exe(feeds)[0].tobytes())

    assert len(visited) == 1
    assert "2 products" in str(exe.steps[0])


def test_gradients_of_a_shared_weight(rng: np.random.Generator) -> None:
    """The gradient of a weight that three steps use is one sum, and has a gradient itself."""
    w = pk.var("w", (128, 128))
    h = pk.var("h", (200, 128))
    for _ in range(3):
        h = pk.ops.tanh(h @ w)
    (dw,) = pk.gradients(pk.ops.reduce_sum(h), [w])
    graph = pk.Graph([dw])
    exe = pk.compile(graph)

    assert sum("3 products" in str(s) for s in exe.steps) == 1
    feeds = {"h": rng.standard_normal((200, 128)), "w": rng.standard_normal((128, 128)) * 0.1}
    feeds = {k: v.astype(np.float32) for k, v in feeds.items()}
    np.testing.assert_allclose(exe(feeds)[0], pk.interpret(graph, feeds)[0], rtol=1e-3, atol=1e-3)


def test_a_cached_plan_has_a_fused_sum(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sum is written to the plan cache and linked to the library that this process has."""
    graph = pk.parse(HEAD + f"return add({PAIRS})")
    feeds = feeds_of(graph, rng)
    (expected,) = pk.compile(graph)(feeds)
    use_cached_plans(monkeypatch)
    exe = pk.compile(graph)

    assert exe(feeds)[0].tobytes() == expected.tobytes()


BAD = [
    ("return matmul_sum(x, u, y, transpose_a=true)", "got 3 operands"),
    ("return matmul_sum(x, u, y, v)", r"inner dimension must agree, got 90 and 300"),
    ("return matmul_sum(x, u, v, y, transpose_a=true)", "number of rows must agree, got 90 and 70"),
    ("k = reshape(x, shape=(300, 90, 1)); return matmul_sum(k, u)", r"rank 2.*\(300, 90, 1\)"),
]


@pytest.mark.parametrize("text, message", BAD)
def test_operands_that_are_no_pairs_of_matrices_are_refused(text: str, message: str) -> None:
    """Operands must be pairs of matrices that fit."""
    with pytest.raises(pk.ShapeError, match=message):
        pk.ApplyPasses(pk.parse(HEAD + text), "InferShape")
