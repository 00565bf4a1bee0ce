"""Rows that are reduced one by one: a row of up to 256 elements stays in registers.

Such rows are those that lie apart, as windows of images do: rows that follow each other come in
tiles (`test_rows`).
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.target import target_of
from tests.planned import prebuild

MOVES = """w = reshape(x, shape=(2, 3, 2, 3, 2, {length}))
v = transpose(w, axes=(0, 1, 3, 2, 4, 5))
u = reshape(v, shape=(18, 4, {length}))
"""
NORM = (
    "x: {dtype}[2, 6, 6, {length}]\n"
    + MOVES
    + """m = reduce_mean(u, axis=-1, keepdims=true)
d = sub(u, m)
s = reduce_mean(mul(d, d), axis=-1, keepdims=true)
return mul(d, rsqrt(add(s, {small})))"""
)
SOFTMAX = "x: {dtype}[2, 6, 6, {length}]\n" + MOVES + "return softmax(u, axis=-1)"
GELUS = "x: {dtype}[2, 6, 6, {length}]\n" + MOVES + "return softmax(gelu(tanh(u)), axis=-1)"
LENGTHS = (1, 2, 15, 16, 17, 33, 63, 64, 65, 80, 96, 100, 127, 128, 129, 160, 200, 255, 256, 257)
CASES = [(dtype, n) for dtype in ("f32", "f64") for n in LENGTHS]


def norm_graph(dtype: str, length: int) -> pk.Graph:
    """Return the layer norm of windows of 2 x 2 pixels."""
    return pk.parse(NORM.format(dtype=dtype, length=length, small=1e-5))


def norm(x: np.ndarray) -> np.ndarray:
    """Return the same by NumPy, in float64."""
    length = x.shape[-1]
    rows = x.astype(np.float64).reshape(2, 3, 2, 3, 2, length).transpose(0, 1, 3, 2, 4, 5)
    rows = rows.reshape(18, 4, length)
    centred = rows - rows.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)


def source_of(text: str, length: int, **heuristics: int) -> str:
    """Return the kernel of a graph of float32; ``heuristics`` are thresholds of its tiles."""
    target = target_of("cpu")
    own = evolve(target, tiling=evolve(target.tiling, **heuristics))
    graph = pk.parse(text.format(dtype="f32", length=length, small=1e-5))
    (kernel,) = pk.compile(graph, target=own).kernels
    return kernel.source


@pytest.fixture(scope="module", autouse=True)
def _built(quick_module: None) -> None:
    """Compile all kernels at once."""
    prebuild(norm_graph(dtype, n) for dtype, n in CASES)


@pytest.mark.parametrize(("dtype", "length"), CASES)
def test_rows_of_every_length_are_right(dtype: str, length: int, rng: Any) -> None:
    """Rows that end at any position of a vector, in registers or not."""
    exe = pk.compile(norm_graph(dtype, length))
    x = (rng.standard_normal((2, 6, 6, length)) * 3 + 1).astype(exe.inputs[0].dtype.numpy)

    tolerance = 2e-6 if dtype == "f32" else 1e-12
    np.testing.assert_allclose(exe(x=x)[0], norm(x), rtol=tolerance, atol=4 * tolerance)


@pytest.mark.parametrize("length", [65, 96, 100, 160, 192, 256])
def test_a_row_is_loaded_once(length: int) -> None:
    """All stages have the row in registers: it is loaded once, and no result is loaded again."""
    source = source_of(NORM, length)

    assert source.count("load(x0") == 1
    assert source.count("store(y0") == 1
    assert "load(y0" not in source
    assert "load(s" not in source
    assert source.count(f"fixed_lanes<{length}>(") == 3
    vectors = -(-length // 16)
    assert re.findall(r"vec<float> \w+\[(\d+)\];", source) == [str(vectors)] * 2


@pytest.mark.parametrize(
    ("length", "heuristics"), [(257, {}), (96, {"register_row": 64}), (65, {"register_row": 0})]
)
def test_longer_rows_are_in_memory(length: int, heuristics: dict[str, int]) -> None:
    """A row that exceeds the registers of a target is loaded by each stage, in loops."""
    source = source_of(NORM, length, **heuristics)

    assert "vec<float>" not in source
    assert "fixed_lanes" not in source
    assert source.count("load(x0") == 3


def test_many_functions_are_a_loop() -> None:
    """Rows of 192 are twelve vectors, each with a tanh, an erf, an exp and a division."""
    assert "vec<float>" in source_of(SOFTMAX, 192)
    assert "vec<float>" not in source_of(GELUS, 192)
    assert "vec<float>" in source_of(GELUS, 192, register_functions=48)
    assert "vec<float>" not in source_of(GELUS, 192, register_functions=47)
    assert "vec<float>" in source_of(GELUS, 64, register_functions=0)


def test_registers_are_not_cut(rng: Any) -> None:
    """The loop over a padded row is unrolled, and not partitioned at the padding."""
    text = "x: f32[3, 5, 4, 150]\nw = transpose(x, axes=(1, 0, 2, 3))\n"
    text += "p = pad(w, pad_width=((0, 0), (0, 0), (0, 0), (3, 9)))\nreturn softmax(p, axis=-1)"
    exe = pk.compile(pk.parse(text))
    (kernel,) = exe.kernels
    x = rng.standard_normal((3, 5, 4, 150)).astype(np.float32)
    padded = np.pad(x.transpose(1, 0, 2, 3).astype(np.float64), [(0, 0)] * 3 + [(3, 9)])
    powers = np.exp(padded - padded.max(-1, keepdims=True))

    assert "fixed_lanes<162>(" in kernel.source
    assert "vec<float>" in kernel.source
    np.testing.assert_allclose(
        exe(x=x)[0], powers / powers.sum(-1, keepdims=True), rtol=2e-6, atol=1e-9
    )
