"""Programs: a table of steps over sizes, and its binding to numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.errors import FeedError
from tests.planned import agrees, feeds_of


def program(text: str) -> Any:
    """The program of a graph in text."""
    built = pk.compile(pk.parse(text)).program
    assert built is not None
    return built


def test_sizes_are_read_or_solved() -> None:
    """Every size is read from a shape, or solved from a sum of sizes."""
    p = program("x: f32[n, 4]; y: f32[n + m, 4]; return concat(x, y, axis=0)")

    assert p.sizes([(3, 4), (5, 4)]) == {"n": 3, "m": 2}
    with pytest.raises(FeedError, match="input 'x' needs extent 4 at axis 1, got 5"):
        p.sizes([(3, 5), (5, 4)])


def test_expressions_of_sizes_are_checked() -> None:
    """An extent that is an expression must have its value."""
    p = program("x: f32[n]; y: f32[2*n + 1]; return concat(x, y, axis=0)")

    assert p.sizes([(3,), (7,)]) == {"n": 3}
    with pytest.raises(FeedError, match=r"input 'y' needs extent 7 at axis 0, got 8: size "):
        p.sizes([(3,), (8,)])


def test_the_first_violated_guard_is_described() -> None:
    """Sizes that were taken to be equal must be equal; the first violated pair is described."""
    p = program("x: f32[n, 4]; y: f32[m, 4]; return add(x, y)")

    assert p.broken({"n": 3, "m": 3}) is None
    assert str(p.broken({"n": 3, "m": 1})).startswith("input 'x': dimension 0")


def test_every_kind_of_step_has_a_text() -> None:
    """Each kind of step has a one-line text."""
    p = program(
        "x: f32[n, 8]; w: f32[8, 8]; a = matmul(x, w); b = exp(reshape(a, shape=(n*8,)));"
        "return b, x"
    )
    lines = {type(s).__name__: str(s) for s in p.steps}

    assert lines["LaunchStep"].startswith("launch exp_")
    assert lines["LibraryCall"].startswith("library ") and "(8, 8)" in lines["LibraryCall"]
    assert lines["CopyStep"] == "copy input 0 -> output 1"
    view = pk.parse("x: f32[4]; return exp(reshape(x, shape=(2, 2)))")
    aliases = pk.compile(view, fusion="none").steps
    assert "alias reshape" in map(str, aliases)


@pytest.mark.parametrize(
    "text",
    [
        "x: f32[n, 8]; y: f32[8, 5]; return matmul(x, y)",
        "x: f32[n, 8]; y: f32[5, 8]; return matmul(x, y, transpose_b=true)",
        "x: f64[8, n]; y: f64[8, 5]; return matmul(x, y, transpose_a=true)",
        "x: f32[3, n, 8]; y: f32[3, 8, 5]; return matmul(x, y)",
        "x: f32[3, n, 8]; y: f32[8, 5]; return matmul(x, y)",
        "x: f32[n, 8]; y: f32[3, 8, 5]; return matmul(x, y)",
        "x: f32[2, 1, n, 8]; y: f32[1, 3, 8, 5]; return matmul(x, y)",
        "x: i32[n, 8]; y: i32[8, 5]; return matmul(x, y)",
    ],
)
@pytest.mark.parametrize("n", [0, 1, 7, 40])
def test_matrix_products(text: str, n: int, rng: Any) -> None:
    """Products of every layout and batch, by a library where one serves, at every size.

    There is none for integers: their products are kernels.
    """
    graph = pk.parse(text)
    exe = pk.compile(graph)
    feeds = {k: (4 * a).astype(a.dtype) for k, a in feeds_of(graph, rng, n=n).items()}
    agrees(graph, feeds, exe(feeds), 1e-5)

    assert exe.stats["library_calls"] == ("i32" not in text)
    assert exe.stats["python_calls"] == 0


def test_outputs_do_not_share_memory() -> None:
    """An output that is an input twice is copied twice."""
    exe = pk.compile(pk.parse("x: f32[n]; return x, x"))
    x = np.arange(5, dtype=np.float32)
    a, b = exe(x=x)

    assert not any(np.shares_memory(p, q) for p, q in ((a, b), (a, x), (b, x)))
    assert a.tolist() == b.tolist() == x.tolist()
