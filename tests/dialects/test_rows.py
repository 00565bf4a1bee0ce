"""Tiles of short rows: sixteen rows are reduced together, and each is independent of others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from tests.planned import prebuild

SHARE = "x: {dtype}[n, {length}]; s = reduce_sum(x, axis=1, keepdims=true); return div(x, s), s"
GRAPHS = {
    f"{name} {dtype} {length}": pk.parse(text.format(dtype=dtype, length=length))
    for name, text, dtypes in [
        ("max", "x: {dtype}[n, {length}]; return reduce_max(x, axis=1)", ["f32", "f64", "i32"]),
        ("min", "x: {dtype}[n, {length}]; return reduce_min(x, axis=1)", ["f32", "u8"]),
        ("any", "x: {dtype}[n, {length}]; return reduce_any(x, axis=1)", ["bool"]),
        ("share", SHARE, ["f32", "f64"]),
    ]
    for dtype in dtypes
    for length in (1, 7, 16, 40, 64, 88, 128)
}


@pytest.fixture(scope="module", autouse=True)
def _built(quick_module: None) -> None:
    """Compile all kernels at once."""
    prebuild(GRAPHS.values())


@pytest.mark.parametrize("name", GRAPHS)
def test_a_row_is_alone(name: str, rng: Any) -> None:
    """A row has the bits of a single row, for any number of rows."""
    exe = pk.compile(GRAPHS[name])
    dtype, length = exe.inputs[0].dtype.numpy, exe.inputs[0].shape[1]
    x = (rng.standard_normal((70, length)) * 5).astype(dtype)
    whole, *_ = exe(x=x)

    for first, last in [(0, 1), (3, 4), (0, 15), (5, 21), (16, 33), (1, 70)]:
        assert exe(x=x[first:last])[0].tobytes() == whole[first:last].tobytes()


@pytest.mark.parametrize("most", ["max", "min"])
@pytest.mark.parametrize("length", [40, 64, 88, 128])
def test_nan_stays_in_its_row(most: str, length: int, rng: Any) -> None:
    """A NaN anywhere in a row is the row's result, and no other row's."""
    exe = pk.compile(GRAPHS[f"{most} f32 {length}"])
    x = rng.standard_normal((length, length)).astype(np.float32)
    x[np.arange(0, length, 3), np.arange(0, length, 3)] = np.nan
    x[1], x[2] = np.inf, -np.inf

    np.testing.assert_array_equal(exe(x=x)[0], getattr(np, most)(x, axis=1))


@pytest.mark.parametrize("most", ["max", "min"])
def test_several_rows_are_reduced_to_one(most: str, rng: Any) -> None:
    """If outer axes are reduced, too, only the first row starts from the identity."""
    exe = pk.compile(pk.parse(f"x: f32[5, 40, 33]; return reduce_{most}(x, axis=(0, 2))"))
    x = rng.standard_normal((5, 40, 33)).astype(np.float32)
    x[4, :7, 16], x[0, 9:12, 32], x[2, 20:30, 3] = np.nan, np.nan, np.nan
    assert "fixed_lanes<33>(" in exe.source

    np.testing.assert_array_equal(exe(x=x)[0], getattr(np, most)(x, axis=(0, 2)))


@pytest.mark.parametrize("most", ["max", "min"])
@pytest.mark.parametrize("length", [64, 88, 101, 127])
def test_rows_in_pairs_of_vectors(most: str, length: int, rng: Any) -> None:
    """A row whose loop has two vectors in an iteration keeps each NaN, wherever it is."""
    text = f"x: f32[n, {length}]; return reduce_{most}(abs(sub(mul(x, x), 2.0)), axis=1)"
    exe = pk.compile(pk.parse(text))
    x = rng.standard_normal((length + 2, length)).astype(np.float32)
    x[np.arange(length), np.arange(length)] = np.nan
    assert f"paired_lanes<{length}>(" in exe.source

    result = exe(x=x)[0]

    np.testing.assert_array_equal(result, getattr(np, most)(np.abs(x * x - np.float32(2)), axis=1))


@pytest.mark.parametrize(
    ("value", "length", "is_paired"),
    [
        ("concat(x, y, axis=1)", 61, False),
        (
            "add(pad(x, pad_width=((0, 0), (3, 58))), pad(y, pad_width=((0, 0), (61, 0))))",
            61,
            False,
        ),
        ("where(greater(x, y), x, exp(y))", 122, True),
    ],
)
def test_selections_by_position_have_no_loop(
    value: str, length: int, is_paired: bool, rng: Any
) -> None:
    """A row of several arrays has no loop: the compiler knows which vectors are of which array."""
    inputs = f"x: f32[n, {length}]; y: f32[n, {length}]"
    graph = pk.parse(f"{inputs}; a = {value}; return reduce_max(exp(sub(a, tanh(a))), axis=1)")
    feeds = {name: rng.standard_normal((19, length)).astype(np.float32) for name in "xy"}

    exe = pk.compile(graph)

    assert ("paired_lanes<122>" in exe.source) == is_paired
    assert ("fixed_lanes<122>" in exe.source) != is_paired
    np.testing.assert_allclose(exe(feeds)[0], pk.interpret(graph, feeds)[0], 1e-5)


def test_divisors_of_every_kind() -> None:
    """Rows are divided as by NumPy, with or without a reciprocal of twice the precision."""
    sums = [1, 3, 0.1, 1e-40, 0, -7, np.inf, np.nan, 2.0**33, 3e38, 4, 5, 1e30, -0.0, 7, 9, 11, 1.5]
    x = np.zeros((len(sums), 7), np.float32)
    x[:, 0], x[:, 3:5] = np.float32(sums), [1e-30, -1e-30]

    actual, total = pk.compile(GRAPHS["share f32 7"])(x=x)

    with np.errstate(all="ignore"):
        expected = x / total
    assert actual[~np.isnan(expected)].tobytes() == expected[~np.isnan(expected)].tobytes()
    assert np.array_equal(np.isnan(actual), np.isnan(expected))


def test_both_stand_outside_the_rows() -> None:
    """Operations of sixteen rows together are before or behind the loop over rows."""
    (kernel,) = pk.compile(GRAPHS["share f32 64"]).kernels
    lines = [line.strip() for line in kernel.source.splitlines()]
    rows = [k for k, line in enumerate(lines) if line.startswith("for (int64_t i0")]

    (folds,) = (k for k, line in enumerate(lines) if "reductions_of_rows<16>" in line)
    (results,) = (k for k, line in enumerate(lines) if ".results(" in line)
    (divisors,) = (k for k, line in enumerate(lines) if "divisors_of_rows<float, 16>" in line)
    assert folds < rows[0] < results < divisors < rows[1]


def test_only_the_lanes_of_a_row_are_divided() -> None:
    """Masked elements of a row of 7 are not 0, which would need the slow division."""
    (short,) = pk.compile(GRAPHS["share f32 7"]).kernels

    assert "/ by0.among(m, k)" in short.source
