"""Row chains: products with a long matrix, and the kernels between them, block by block."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passkit as pk
from tests.teams import team_of

ROOT = Path(__file__).resolve().parents[3]
RNG = np.random.default_rng(7)
COLUMNS = 10


def logistic(dtype: str, rows: Any = "n", columns: int = COLUMNS) -> list[pk.Entry]:
    """The loss of a logistic regression, and its derivatives by weights and bias."""
    x, y = pk.var("x", (rows, columns), dtype), pk.var("y", (rows, 1), dtype)
    w, b = pk.var("w", (columns, 1), dtype), pk.var("b", (), dtype)
    z = pk.ops.matmul(x, w) + b
    loss = pk.ops.reduce_mean(pk.ops.log1p(pk.ops.exp(-pk.ops.abs(z))) + pk.ops.relu(z) - y * z)
    return [loss, *pk.gradients(loss, [w, b])]


def feeds(dtype: str, rows: int, columns: int = COLUMNS) -> dict[str, Any]:
    """Values of the inputs of `logistic`."""
    return {
        "x": RNG.standard_normal((rows, columns)).astype(dtype),
        "y": RNG.integers(0, 2, (rows, 1)).astype(dtype),
        "w": RNG.standard_normal((columns, 1)).astype(dtype),
        "b": np.asarray(0.25, dtype),
    }


def reference(values: dict[str, Any]) -> list[Any]:
    """The results of `logistic` by NumPy, in float64."""
    x, y, w, b = (values[name].astype("float64") for name in "xywb")
    z = x @ w + b
    loss = np.mean(np.log1p(np.exp(-np.abs(z))) + np.maximum(z, 0) - y * z)
    d = (1 / (1 + np.exp(-z)) - y) / len(x)
    return [loss, x.T @ d, np.sum(d)]


def check(results: list[Any], values: dict[str, Any]) -> None:
    """Compare results of `logistic` with NumPy's."""
    tolerance = 2e-4 if values["x"].dtype == np.float32 else 1e-10
    for actual, expected in zip(results, reference(values), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("columns", [2, 10, 200])
def test_a_linear_model_reads_its_matrix_once(dtype: str, columns: int) -> None:
    """Products and the kernel between them are one launch, for full and partial last blocks."""
    exe = pk.compile(logistic(dtype, columns=columns))
    for rows in (4 * 2048, 4 * 2048 + 1, 20_001):
        values = feeds(dtype, rows, columns)
        check(exe(values), values)
        assert exe.stats["row_chains"] == 1, rows


def test_short_matrices_have_separate_launches() -> None:
    """With few rows, or none, nothing is chained, and results are right."""
    exe = pk.compile(logistic("float64"))
    for rows in (1, 2047, 2 * 2048, 2 * 2048 + 5):
        values = feeds("float64", rows)
        check(exe(values), values)
        assert exe.stats["row_chains"] == 0, rows
    loss, by_weights, by_bias = exe(feeds("float64", 0))
    assert np.isnan(loss)
    assert not by_weights.any()
    assert not by_bias.any()


def bits(exe: Any, values: dict[str, Any]) -> list[bytes]:
    """The bytes of the results of a call."""
    return [result.tobytes() for result in exe(values)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_chained_results_have_the_bits_of_separate_launches(
    dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks are the tiles of the separate launches, for any number of threads."""
    values = feeds(dtype, 50_000)
    chained = []
    for count in (1, 2, 4):
        with team_of(count):
            exe = pk.compile(logistic(dtype))
            chained.append(bits(exe, values))
            assert exe.stats["row_chains"] == 1
    monkeypatch.setattr("passkit.runtime.table_binder.MIN_BLOCKS", 1 << 40)
    separate = pk.compile(logistic(dtype))
    expected = bits(separate, values)

    assert separate.stats["row_chains"] == 0
    assert all(results == expected for results in chained)


FORMS = {
    "columns": lambda x, w, d: (pk.ops.matmul(x, w), lambda z: pk.ops.matmul(x, d(z), True)),
    "rows": lambda x, w, d: (
        pk.ops.matmul(w, x, True, True),
        lambda z: pk.ops.matmul(d(z), x),
    ),
}
"""Products of a matrix x (n, k) with weights w (k, 1), and sums over its rows."""


@pytest.mark.parametrize("form", FORMS)
def test_both_orders_of_the_operands_are_chained(form: str) -> None:
    """The vector may be the right operand of both products, or the left one."""
    x, w = pk.var("x", ("n", 12), "float64"), pk.var("w", (12, 1), "float64")
    z, gradient = FORMS[form](x, w, pk.ops.tanh)
    exe = pk.compile([gradient(z)])
    values = RNG.standard_normal((30_000, 12)), RNG.standard_normal((12, 1))
    (actual,) = exe(x=values[0], w=values[1])

    expected = values[0].T @ np.tanh(values[0] @ values[1])
    np.testing.assert_allclose(actual.ravel(), expected.ravel(), rtol=1e-10, atol=1e-8)
    assert exe.stats["row_chains"] == 1


def test_products_without_a_kernel_between_are_chained() -> None:
    """The sum over rows may be weighted by the product itself, as in a power iteration."""
    x, w = pk.var("x", ("n", 12), "float64"), pk.var("w", (12, 1), "float64")
    exe = pk.compile([pk.ops.matmul(x, pk.ops.matmul(x, w), True)])
    values = RNG.standard_normal((30_000, 12)), RNG.standard_normal((12, 1))
    (actual,) = exe(x=values[0], w=values[1])

    np.testing.assert_allclose(actual, values[0].T @ (values[0] @ values[1]), rtol=1e-10)
    assert exe.stats["row_chains"] == 1


def test_kernels_that_need_all_rows_are_not_chained() -> None:
    """Weights that are normalized over all rows are computed before the rows are summed."""
    x, w = pk.var("x", ("n", 12), "float64"), pk.var("w", (12, 1), "float64")
    z = pk.ops.exp(pk.ops.matmul(x, w))
    shares = z / pk.ops.reduce_sum(z)
    exe = pk.compile([pk.ops.matmul(x, shares, True)])
    values = RNG.standard_normal((30_000, 12)), RNG.standard_normal((12, 1))
    (actual,) = exe(x=values[0], w=values[1])

    weights = np.exp(values[0] @ values[1])
    np.testing.assert_allclose(actual, values[0].T @ (weights / weights.sum()), rtol=1e-10)
    assert exe.stats["row_chains"] == 0


def test_neighbouring_rows_are_not_chained() -> None:
    """A kernel that reads the product at other rows than its own waits for the whole product."""
    x, w = pk.var("x", (30_000, 12), "float64"), pk.var("w", (12, 1), "float64")
    z = pk.ops.matmul(x, w)
    exe = pk.compile([pk.ops.matmul(x, pk.ops.flip(z, axis=0), True)])
    values = RNG.standard_normal((30_000, 12)), RNG.standard_normal((12, 1))
    (actual,) = exe(x=values[0], w=values[1])

    expected = values[0].T @ (values[0] @ values[1])[::-1]
    np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-8)
    assert exe.stats["row_chains"] == 0


DESCENT = f"""x: f64[n, 12]; y: f64[n, 1]; state w: f64[12, 1] = {[0] * 12}
d = sub(matmul(x, w), y)
gradient = matmul(x, d, transpose_a=true)
new = assign(w, sub(w, mul(gradient, 1e-05)))
return reduce_sum(mul(d, d)), new
"""


def test_a_step_of_descent_may_overwrite_its_weights() -> None:
    """New weights that are stored over the old ones are written after all blocks have read them."""
    exe = pk.compile(pk.parse(DESCENT))
    values, targets = RNG.standard_normal((30_000, 12)), RNG.standard_normal((30_000, 1))
    weights = np.zeros((12, 1))
    for _ in range(3):
        residual = values @ weights - targets
        weights = weights - values.T @ residual * 1e-5
        loss, new = exe(x=values, y=targets)
        np.testing.assert_allclose(loss, np.sum(residual**2), rtol=1e-10)
        np.testing.assert_allclose(new, weights, rtol=1e-10, atol=1e-12)
    assert exe.stats["row_chains"] == 1


def test_profiles_time_the_members_of_a_chain_separately() -> None:
    """A profile has a row for each product and kernel, and leaves the results as they are."""
    exe = pk.compile(logistic("float64"))
    values = feeds("float64", 30_000)
    before = bits(exe, values)
    report = str(exe.profile(values, runs=2))

    assert report.count("library") >= 2
    assert bits(exe, values) == before


SECOND_PROCESS = """
import numpy as np, passkit as pk
from tests.runtime.native.test_row_chain import logistic, feeds
exe = pk.compile(logistic("float64"))
print(exe.stats["compiled"])
results = exe(feeds("float64", 30_000))
print(exe.stats["row_chains"])
"""


def test_a_stored_plan_has_its_chains() -> None:
    """A second process, which reads the plan from the cache, chains as the first one does."""
    pk.compile(logistic("float64"))(feeds("float64", 30_000))
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", SECOND_PROCESS]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "1"]


LONG = [(1, 4096), (3, 5000), (10, 100_001), (256, 8192), (257, 8192)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("columns, rows", LONG)
def test_products_of_a_vector_and_a_long_matrix(dtype: str, columns: int, rows: int) -> None:
    """Products with each row, and sums over rows, are right for any number of rows and columns."""
    x, w, d = (RNG.standard_normal(s).astype(dtype) for s in ((rows, columns), columns, rows))
    v = pk.var("x", ("n", columns), dtype)
    u, e = pk.var("w", (1, columns), dtype), pk.var("d", (1, "n"), dtype)
    exe = pk.compile(
        [
            pk.ops.matmul(v, u, transpose_b=True),
            pk.ops.matmul(u, v, transpose_b=True),
            pk.ops.matmul(e, v),
            pk.ops.matmul(v, e, True, True),
            pk.ops.matmul(e, e, transpose_b=True),
        ]
    )
    results = exe(x=x, w=w[None], d=d[None])
    tolerance = 1e-3 if dtype == "float32" else 1e-10
    for actual, expected in zip(results, (x @ w, x @ w, d @ x, d @ x, d @ d), strict=True):
        scale = np.abs(expected).max()
        np.testing.assert_allclose(actual.ravel() / scale, expected / scale, atol=tolerance)
