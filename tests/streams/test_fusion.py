"""Operations that fuse in a graph fuse in a stream: elementwise, reductions, products, gathers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from passkit import xp

RNG = np.random.default_rng(0)


def normal(*shape: int) -> Any:
    """Return an array of normal float32 numbers."""
    return xp.asarray(RNG.standard_normal(shape, dtype=np.float32))


def erf_positive(x: Any) -> Any:
    """Return erf of non-negative numbers by a polynomial (Abramowitz and Stegun 7.1.26)."""
    t = 1 / (abs(x) * 0.3275911 + 1)
    series = (((t * 1.061405429 + -1.453152027) * t) + 1.421413741) * t + -0.284496736
    return -((series * t + 0.254829592) * t * xp.exp(-x * x)) + 1


def custom_erf(x: Any) -> Any:
    """Return erf as a user would write it, of both signs."""
    return xp.where(x > 0, erf_positive(x), -erf_positive(-x))


def reference_gelu(x: Any) -> Any:
    """Return GELU in its usual form."""
    return 0.5 * x * (1 + xp.special.erf(x / 2**0.5))


def mixed_gelu(x: Any) -> Any:
    """Return GELU in the form of Burn's article, with the library's erf."""
    return x * (xp.special.erf(x / 2**0.5) + 1) / 2


def custom_gelu(x: Any) -> Any:
    """Return GELU in the form of Burn's article, with the user's erf."""
    return x * (custom_erf(x / 2**0.5) + 1) / 2


@pytest.mark.parametrize("gelu", [reference_gelu, mixed_gelu, custom_gelu])
def test_gelu_is_one_kernel_with_two_passes(gelu: Callable[[Any], Any]) -> None:
    """Each form reads the array once and writes the result once."""
    x = normal(64, 128)
    y = gelu(x)
    with xp.inspect() as runs:
        xp.eval(y)

    (run,) = runs
    assert len(run.kernels) == 1
    assert (run.bytes_read, run.bytes_written) == (x.nbytes, x.nbytes)
    exact = np.asarray(x).astype(np.float64)
    expected = exact * (1 + np.vectorize(_erf)(exact / 2**0.5)) / 2
    np.testing.assert_allclose(np.asarray(y), expected, atol=1e-6)


def _erf(x: float) -> float:
    """Return erf of a number."""
    from math import erf

    return erf(x)


def test_reductions_fuse_with_what_they_read() -> None:
    """A sum of squared differences reads its operands and writes the sums.

    Its second kernel adds the parts of a row that threads summed, for rows of unknown length.
    """
    x, y = normal(64, 200), normal(64, 200)
    with xp.inspect() as runs:
        total = np.asarray(xp.sum((x - y) ** 2, axis=1))

    assert len(runs[0].kernels) <= 2
    assert runs[0].bytes_written == 64 * 4
    np.testing.assert_allclose(total, ((np.asarray(x) - np.asarray(y)) ** 2).sum(1), rtol=1e-5)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax_is_one_kernel(axis: int) -> None:
    """Maximum, exponential, sum and quotient along any axis need one kernel."""
    x = normal(60, 70)
    with xp.inspect() as runs:
        e = xp.exp(x - xp.max(x, axis=axis, keepdims=True))
        result = np.asarray(e / xp.sum(e, axis=axis, keepdims=True))

    assert len(runs[0].kernels) == 1
    np.testing.assert_allclose(result.sum(axis), 1, rtol=1e-5)


def test_layer_norm_is_one_kernel() -> None:
    """Mean, variance and the normalized rows need one kernel."""
    x, scale = normal(60, 70), normal(70)
    with xp.inspect() as runs:
        mean = xp.mean(x, axis=-1, keepdims=True)
        variance = xp.mean((x - mean) ** 2, axis=-1, keepdims=True)
        result = np.asarray((x - mean) / xp.sqrt(variance + 1e-5) * scale)

    assert len(runs[0].kernels) == 1
    rows = np.asarray(x)
    expected = (rows - rows.mean(1, keepdims=True)) / np.sqrt(rows.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(result, expected * np.asarray(scale), rtol=1e-4, atol=1e-5)


def test_products_keep_their_neighbours_in_few_kernels() -> None:
    """A product of matrices with bias and ReLU is the library's call and one kernel."""
    x, w, b = normal(64, 48), normal(48, 80), normal(80)
    with xp.inspect() as runs:
        result = np.asarray(xp.maximum(x @ w + b, 0))

    assert len(runs[0].kernels) <= 1
    expected = np.maximum(np.asarray(x) @ np.asarray(w) + np.asarray(b), 0)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


def test_float16_sums_accumulate_in_float32() -> None:
    """A sum of 70,000 ones in float16 is the nearest float16, not where additions stick."""
    x = xp.ones((4, 8192), dtype=xp.float16)
    np.testing.assert_array_equal(np.asarray(xp.sum(x * 1, axis=1)), np.float16(8192))


def test_reading_an_element_computes_that_element_only() -> None:
    """Slices move before pending operations: one kernel, and no array of all results."""
    a = np.random.default_rng(0).random((300, 400))
    x = xp.asarray(a)
    with xp.inspect() as runs:
        element = float((xp.exp(x) * 2 + x)[3, -4])
        row = np.asarray(xp.sum(xp.exp(x), axis=1)[7:9])
        product = float((x @ x.T)[5, 6])

    np.testing.assert_allclose(element, np.exp(a[3, -4]) * 2 + a[3, -4], rtol=1e-12)
    np.testing.assert_allclose(row, np.exp(a).sum(1)[7:9], rtol=1e-12)
    np.testing.assert_allclose(product, a[5] @ a[6], rtol=1e-12)
    (kernel,) = runs[0].kernels
    assert kernel.source.count("exp(x0_0)") == 1, "no loop over the array"
    assert runs[1].bytes_written == 16 and runs[2].bytes_written == 8
