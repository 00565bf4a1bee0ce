"""Maxima of rows in CUDA C: they leave out NaN where all results get it back from a sum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from tests.emulator.device import EmulatedDevice
from tests.emulator.graph_checks import compiled

HEAD = "x: f32[40, 200]; m = reduce_max(x, axis=1, keepdims=true)\n"
SUM = "e = exp(sub(x, m)); s = reduce_sum(e, axis=1, keepdims=true)\n"
LEFT_OUT = {
    "softmax": "x: f32[40, 200]; return softmax(x)",
    "short rows": "x: f32[300, 7]; return softmax(x)",
    "twice": HEAD + SUM + "return mul(div(e, s), 2.0), sub(1.0, div(e, s))",
    "the maximum is added": HEAD + SUM + "return add(m, log(s))",
    "after an operation": "x: f32[40, 200]; return exp(softmax(mul(x, 0.25)))",
}
KEPT = {
    "the maximum is a result": HEAD + SUM + "return div(e, s), m",
    "the exponential is a result": HEAD + SUM + "return div(e, s), e",
    "a choice": HEAD + SUM + "return where(greater(s, 1.0), e, div(e, s))",
    "no exponential": HEAD + "return div(x, reduce_sum(sub(x, m), axis=1, keepdims=true))",
    "a sum of others": (
        HEAD + "y = mul(x, 0.5); s = reduce_sum(exp(sub(y, m)), axis=1, keepdims=true)\n"
        "return div(exp(sub(y, m)), reduce_sum(exp(y), axis=1, keepdims=true)), s"
    ),
    "an integer": HEAD + SUM + "return cast(e, dtype=dtype(i32)), div(e, s)",
}


def run(text: str, rng: Any) -> str:
    """Compare a graph's results with `interpret` where rows have NaN, and return the kernels."""
    graph = pk.parse(text)
    (exe,) = compiled([graph], [{}], EmulatedDevice())
    assert isinstance(exe, pk.Executable), exe
    x = rng.standard_normal(graph.inputs[0].entries[0].shape).astype(np.float32)
    x[1, 3] = x[2, 0] = x[3, -1] = np.nan
    x[4] = np.nan
    x[5, 2], x[6, 2] = np.inf, -np.inf
    x[7] = -np.inf
    x[8], x[8, 1] = -0.0, 0.0
    with np.errstate(all="ignore"):
        expected = pk.interpret(graph, {"x": x})
    for a, b in zip(exe(x=x), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    return "\n".join(k.source for k in exe.kernels)


@pytest.mark.parametrize("name", LEFT_OUT)
def test_a_softmax_has_the_instruction(name: str, rng: Any) -> None:
    """Rows with NaN are NaN through the sum of exponentials."""
    source = run(LEFT_OUT[name], rng)

    assert "fmaxf(" in source and "maximum(" not in source


@pytest.mark.parametrize("name", KEPT)
def test_other_maxima_keep_nan(name: str, rng: Any) -> None:
    """Each differs in one thing from a softmax."""
    source = run(KEPT[name], rng)

    assert "fmaxf(" not in source and "maximum(" in source


def test_the_other_targets_keep_nan() -> None:
    """Only CUDA C has the function."""
    for name in ("opencl", "cpu"):
        graph = pk.ApplyPasses(
            pk.parse(LEFT_OUT["softmax"]),
            ["Fusion", "SchedulePlan", "SharedMemPlan", "CodeGen"],
            target=name,
        )
        assert not any("fmaxf" in k.source for k in graph.attrs["kernel"].values())
