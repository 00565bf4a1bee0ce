"""MatchLibrary: gradients of filters become one call of a convolution library."""

from __future__ import annotations

from typing import Any

import pytest

import passkit as pk

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
