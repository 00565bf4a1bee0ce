"""Columns of a few elements in registers, and groups of rows as whole vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

import passkit as pk
from tests.planned import agrees, feeds_of, prebuild

COLUMNS = {
    "pool": "x: f32[3, 4, 6, 20]; y = windows(x, window=(2, 2), strides=(2, 2)); "
    "m = reduce_max(y, axis=(3, 4), keepdims=true); return equal(y, m), m",
    "integers": "x: i32[5, 3, 20]; s = reduce_sum(x, axis=1, keepdims=true); return sub(x, s), s",
    "truth": "x: f32[5, 3, 20]; a = reduce_any(less(x, 0.0), axis=1, keepdims=true); "
    "return where(a, x, neg(x))",
    "half": "x: f16[5, 4, 20]; s = reduce_sum(x, axis=1, keepdims=true); return mul(x, s)",
    "double": "x: f64[5, 4, 20]; s = reduce_prod(x, axis=1, keepdims=true); return div(x, s), s",
    "wide": "x: f32[2, 3, 700]; s = reduce_max(x, axis=1, keepdims=true); return div(x, s)",
}
OTHERS = {
    "kept": "x: f32[5, 3, 20]; a = reduce_any(less(x, 0.0), axis=1, keepdims=true); "
    "return where(a, x, exp(x))",
    "softmax": "x: f32[5, 4, 37]; e = exp(sub(x, reduce_max(x, axis=1, keepdims=true))); "
    "return div(e, reduce_sum(e, axis=1, keepdims=true))",
    "long": "x: f32[5, 40, 20]; s = reduce_max(x, axis=1, keepdims=true); return sub(x, s)",
}
"""Programs that stage other values than results, or reduce many elements."""
BUNDLES = {
    **{
        f"{n} f32": f"x: f32[n, {n}]; b: f32[{n}]; return add(x, b), mul(x, b)"
        for n in (9, 10, 12, 20, 24, 50, 52)
    },
    "20 f64": "x: f64[n, 20]; b: f64[20]; return add(x, b)",
    "20 i32": "x: i32[n, 20]; b: i32[20]; return where(less(x, b), x, b)",
    "apart": "x: f32[n, 30]; b: f32[12]; y = slice(x, begin=(0, 8), size=(-1, 12)); "
    "return add(exp(y), b)",
    "by three": "x: f32[n, 20]; b: f32[20]; return div(add(x, b), 3.0)",
}
GRAPHS = {name: pk.parse(text) for name, text in (COLUMNS | BUNDLES | OTHERS).items()}


def test_columns_and_row_groups_agree_with_the_interpreter(rng: Any) -> None:
    """Results of all kinds in registers, and rows of all lengths with a remainder."""
    prebuild(GRAPHS.values())
    for name, graph in GRAPHS.items():
        exe = pk.compile(graph)
        feeds = feeds_of(graph, rng, n=83)
        agrees(graph, feeds, exe(feeds), 1e-2 if name == "half" else 2e-6)
        assert ("groups_of_rows<" in exe.source) == (name in BUNDLES), name
        assert ("_lanes = splat<" in exe.source) == (name in COLUMNS), name


def test_rows_have_the_same_bits_in_and_out_of_groups(rng: Any) -> None:
    """A row by itself has the bits of the row in a group."""
    exe = pk.compile(GRAPHS["20 f32"])
    x, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((83, 20), (20,)))
    for whole, *alone in zip(exe(x=x, b=b), *(exe(x=row[None], b=b) for row in x), strict=True):
        assert whole.tobytes() == np.concatenate(alone).tobytes()
