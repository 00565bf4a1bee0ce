"""MatchLibrary: gradients of filters become one call of a convolution library."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.runtime.native import filter_gradients, onednn
from passkit.runtime.native.blas import NO_BLAS
from passkit.runtime.native.onednn import Geometry
from tests.teams import team_of

HEAD = "x: f32[2, 9, 8, 3]; g: f32[2, 7, 6, 5]; "
VIEW = "w = windows(x, window=(3, 3)); l = reshape(w, shape=(84, 27)); "
LARGE = "w = windows(x, window=(1, 1)); l = reshape(w, shape=(144, 3));"
OTHER = "w = windows(x, window=(3, 3)); l = reshape(w, shape=(28, 81));"
PRODUCT = "matmul(l, reshape(g, shape=(84, 5)), transpose_a=true)"


def names(text: str, dtype: str = "f32", **options: Any) -> str:
    """The operators of a graph behind the pass, but for those that rename bytes."""
    parsed = pk.parse((HEAD + text).replace("f32", dtype))
    graph = pk.ApplyPasses(parsed, ["Simplify", "MatchLibrary"], **options)
    kept = [n.op.name for n in graph.nodes if n.op and n.op.name not in ("constant", "reshape")]
    return " ".join(kept)


@pytest.mark.parametrize(
    "text, expected",
    [
        (f"{VIEW}return {PRODUCT}", "window_products"),
        (f"{VIEW}return exp({PRODUCT})", "window_products exp"),
        (
            f"{VIEW}u = exp(g); return matmul(l, reshape(u, shape=(84, 5)), transpose_a=true)",
            "exp window_products",
        ),
        (f"h: f32[84, 5]; {VIEW}return matmul(l, h, transpose_a=true)", "window_products"),
        (f"{VIEW}return matmul(l, l, transpose_a=true)", "windows window_products"),
        (f"f: f32[27, 5]; {VIEW}return matmul(l, f)", "windows matmul"),
        (VIEW.replace("3)", '3), fill="least"', 1) + f"return {PRODUCT}", "windows matmul"),
        (f"h: f32[144, 5]; {LARGE} return matmul(l, h, transpose_a=true)", "windows matmul"),
        (f"h: f32[28, 5]; {OTHER} return matmul(l, h, transpose_a=true)", "windows matmul"),
    ],
)
def test_products_of_windows_become_library_calls(text: str, expected: str) -> None:
    """Transposed products of float32 windows match; a single tap and other rows do not."""
    assert names(text) == expected


def test_hints_strategy_and_target_keep_products() -> None:
    """Products in hints stay; other strategies and OpenCL match no patterns."""
    text = f"{VIEW}return {PRODUCT}"

    assert names(text, target="cuda") == "window_products"
    assert names(text, fuel=0) == names(text, no_fuse=["matmul"]) == "windows matmul"
    assert names(text, fusion="xla") == names(text, target="opencl") == "windows matmul"
    assert names(text, "f64") == "windows matmul"


GEOMETRIES = [
    ((16, 12, 12, 20), (5, 5), 50, {}),
    ((1, 40, 34, 32), (3, 3), 64, {"padding": "SAME"}),
    ((3, 9, 10, 5), (3, 2), 7, {"padding": ((1, 0), (0, 2)), "strides": (2, 1), "dilations": 2}),
    ((2, 60, 16), (9,), 32, {"padding": "SAME"}),
    ((2, 6, 7, 8, 4), (3, 2, 3), 6, {"strides": 2}),
]


@pytest.mark.parametrize("ways", ["library", "windows", "loops"])
def test_sums_are_right_and_their_bits_do_not_depend_on_threads(
    ways: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values are right with oneDNN, with windows in BLAS, and with loops."""
    if ways != "library":
        monkeypatch.setattr(filter_gradients, "load_library", lambda: None)
    if ways == "loops":
        monkeypatch.setattr(filter_gradients, "blas", lambda: NO_BLAS)
    filter_gradients._table.cache_clear()
    rng = np.random.default_rng(5)
    graphs, feeds = [], {}
    for k, (shape, window, count, params) in enumerate(GEOMETRIES):
        x = pk.var(f"x{k}", shape)
        result = pk.ops.convolution(x, pk.var("f", (*window, shape[-1], count)), **params).shape
        y = pk.var(f"y{k}", result)
        graphs.append(pk.ops.window_products(x, y, window=window, **params))
        feeds |= {v.node.name: rng.normal(size=v.shape).astype("f4") for v in (x, y)}
    exe, visited = pk.compile(pk.Graph(graphs)), set()
    for threads in (1, 2):
        with team_of(threads):
            outcome = exe(feeds)
        visited.add(b"".join(a.tobytes() for a in outcome))
    for array, expected in zip(outcome, pk.interpret(pk.Graph(graphs), feeds), strict=True):
        assert np.abs(array - expected).max() <= 3e-6 * np.abs(expected).max()
    assert len(visited) == 1
    filter_gradients._table.cache_clear()


def test_a_gradient_over_no_images_is_zero() -> None:
    """The result is zero, whatever was in its memory."""
    x, y = pk.var("x", (0, 9, 10, 16)), pk.var("y", (0, 7, 8, 24))
    exe = pk.compile(pk.Graph([pk.ops.window_products(x, y, window=(3, 3))]))
    feeds = {v.node.name: np.ones(v.shape, "f4") for v in (x, y)}
    out = np.full((3, 3, 16, 24), np.nan, "f4")

    exe(feeds, out=[out])

    assert not out.any()


def test_work_is_divided_by_images_or_lines() -> None:
    """Images are divided among threads, few large ones by lines; small work is one part."""

    def parts(batch: int, side: int, channels: int) -> list[tuple[int, ...]]:
        plane = (1, side, side)
        c = Geometry(
            batch, plane, channels, channels, (1, 3, 3), plane, (1, 1, 1), (0, 1, 1), (1, 1, 1), 1
        )
        return [tuple(p) for p in filter_gradients.parts_of(c)]

    assert parts(1, 8, 16) == [(0, 1, 0, 8)]
    assert parts(1, 32, 64) == [(0, 1, 0, 16), (0, 1, 16, 32)]
    assert parts(3, 32, 32) == [(0, 1, 0, 32), (1, 1, 0, 32), (2, 1, 0, 32)]
    assert [p[1] for p in parts(20, 32, 64)] == [2, 3, 2, 3, 2, 3, 2, 3]


@pytest.mark.skipif(onednn.load_library() is None, reason="onednn-cpu-gomp is not installed")
def test_a_failure_of_the_library_falls_back(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A failure is reported once, and the result is right."""
    created = filter_gradients._table.__wrapped__

    def broken(c: Geometry) -> Any:
        table, scratch = created(c)
        table[9] = 0  # the first part's primitive
        return table, scratch

    monkeypatch.setattr(filter_gradients, "_table", broken)
    x, y = (pk.var(n, s) for n, s in (("x", (4, 9, 8, 16)), ("y", (4, 7, 6, 16))))
    graph = pk.Graph([pk.ops.window_products(x, y, window=(3, 3))])
    rng = np.random.default_rng(6)
    feeds = {v.node.name: rng.normal(size=v.shape).astype("f4") for v in (x, y)}
    (outcome,), (expected,) = pk.compile(graph)(feeds), pk.interpret(graph, feeds)

    assert np.abs(outcome - expected).max() <= 3e-6 * np.abs(expected).max()
    assert capfd.readouterr().err.count("oneDNN failed with status") == 1


@pytest.mark.parametrize(
    "text, message",
    [
        ("return window_products(x, g, window=(3,))", r"int >= 1 as window, or 2, .* got \(3,\)"),
        ("return window_products(x, g, window=(2, 3))", "windows of spatial axis 0.* got 8 and 7"),
    ],
)
def test_windows_and_results_that_do_not_fit_are_errors(text: str, message: str) -> None:
    """A window without an extent for each axis, and a wrong number of results, are errors."""
    with pytest.raises(pk.PasskitError, match=message):
        pk.ApplyPasses(pk.parse(HEAD + text), "InferShape")
