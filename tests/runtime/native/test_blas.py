"""Matrix products through the built-in gemm kernels, with a library and without."""

from __future__ import annotations

from ctypes import CFUNCTYPE, c_int, c_void_p, cast
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.runtime.native import blas as module
from passkit.runtime.native import matrix_products
from passkit.runtime.native.blas import NO_BLAS, Blas, blas
from passkit.runtime.native.feeds import InputSpec
from passkit.runtime.native.launcher import builtin
from passkit.runtime.table_binder import batch_axes
from tests.runtime.native.sample import program
from tests.teams import team_of

CASES = [
    # batch, m, n, k, trans_a, trans_b, rows_per_tile, columns_per_tile
    (1, 7, 5, 3, 0, 0, 2, 5),
    (1, 64, 48, 100, 0, 1, 16, 20),
    (3, 33, 20, 17, 1, 0, 8, 8),
    (4, 10, 1, 40, 1, 1, 3, 1),
    (2, 70, 90, 200, 0, 0, 40, 64),
    (1, 1, 9, 9, 0, 0, 1, 4),
    (2, 5, 4, 0, 0, 0, 2, 4),
    (1, 0, 4, 3, 0, 0, 1, 4),
    (1, 4, 0, 3, 0, 0, 1, 4),
    (0, 4, 4, 3, 0, 0, 1, 4),
]


def libraries() -> list[Blas]:
    """The library of this machine, NumPy's own, and none."""
    actual = [blas(), NO_BLAS]
    for path, ilp64 in module._candidates():
        if ilp64:
            actual.append(module.load_openblas(path, ilp64))
    return actual


def product(lib: Blas, a: Any, b: Any, case: tuple[int, ...]) -> Any:
    """The batch of products a[k] @ b[k] by the built-in kernel."""
    batch, m, n, k, trans_a, trans_b, rows, columns = case
    single = a.dtype == np.float32
    entry = builtin("gemm_f32" if single else "gemm_f64")
    function = lib.sgemm if single else lib.dgemm
    sizes = (
        m,
        n,
        k,
        trans_a,
        trans_b,
        a.shape[2],
        b.shape[2],
        n,
        batch,
        m * k,
        k * n,
        m * n,
        rows,
        columns,
        lib.ilp64,
    )
    step = (
        "launch",
        entry,
        batch * -(-m // rows) * -(-n // columns),
        True,
        [("address", function), ("input", 0), ("input", 1), ("output", 0)],
        sizes,
    )
    inputs = [InputSpec("a", a.dtype, a.shape), InputSpec("b", b.dtype, b.shape)]
    return program([step], [(a.dtype.num, (batch, m, n))], inputs)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", CASES)
def test_products_agree_with_numpy(
    case: tuple[int, ...], dtype: str, rng: np.random.Generator
) -> None:
    """Batches, both transpositions, blocks of rows, and empty sizes agree with NumPy."""
    batch, m, n, k, trans_a, trans_b = case[:6]
    a = rng.standard_normal((batch, *((k, m) if trans_a else (m, k)))).astype(dtype)
    b = rng.standard_normal((batch, *((n, k) if trans_b else (k, n)))).astype(dtype)
    wide_a, wide_b = a.astype("float64"), b.astype("float64")
    expected = (wide_a.mT if trans_a else wide_a) @ (wide_b.mT if trans_b else wide_b)

    for lib in libraries():
        actual = product(lib, a, b, case)(a=a, b=b)[0]

        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=3e-5, err_msg=lib.name)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_single_rows_and_columns_agree_with_numpy(dtype: str, rng: np.random.Generator) -> None:
    """Products with a vector run by gemv, with both transpositions, in batches and in parts."""
    ops = pk.ops
    for m, n, k in ((1, 70, 40), (70, 1, 40), (40, 1, 9000), (9000, 1, 33), (1, 1, 5), (3, 1, 1)):
        for trans_a in (False, True):
            for trans_b in (False, True):
                a = rng.standard_normal((2, k, m) if trans_a else (2, m, k)).astype(dtype)
                b = rng.standard_normal((2, n, k) if trans_b else (2, k, n)).astype(dtype)
                wide_a, wide_b = a.astype("float64"), b.astype("float64")
                x, y = pk.var("x", a.shape, dtype), pk.var("y", b.shape, dtype)
                matmul = ops.matmul(x, y, transpose_a=trans_a, transpose_b=trans_b)
                first = ops.matmul(x[0], y[0], transpose_a=trans_a, transpose_b=trans_b)
                products = (wide_a.mT if trans_a else wide_a) @ (wide_b.mT if trans_b else wide_b)

                results = pk.compile(pk.Graph([matmul, first]))(x=a, y=b)

                scale = 1e-5 * np.sqrt(k)
                np.testing.assert_allclose(results[0], products, rtol=1e-5, atol=scale)
                np.testing.assert_allclose(results[1], products[0], rtol=1e-5, atol=scale)


def test_bits_do_not_depend_on_threads(rng: np.random.Generator) -> None:
    """A tile is one library call, whichever thread runs it."""
    a = rng.standard_normal((1, 200, 150)).astype("f4")
    b = rng.standard_normal((1, 150, 170)).astype("f4")
    run, seen = product(blas(), a, b, (1, 200, 170, 150, 0, 0, 25, 64)), set()
    for threads in (1, 2, 4):
        with team_of(threads):
            seen |= {run(a=a, b=b)[0].tobytes() for _ in range(5)}

    assert len(seen) == 1


def test_scipy_openblas_is_preferred() -> None:
    """scipy-openblas32 serves where it is installed; its functions take 32-bit integers."""
    assert blas().name == "libscipy_openblas.so" and blas().ilp64 == 0


def test_a_library_that_does_not_load_is_skipped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without any library the launcher's own loops are used."""
    torn = tmp_path / "libscipy_openblas.so"
    torn.write_bytes(b"\x7fELF")
    monkeypatch.setattr(module, "_candidates", lambda: iter([(torn, 0)]))

    assert blas.__wrapped__() == NO_BLAS


def test_tiles_are_equal_and_pack_little() -> None:
    """Tiles depend on the shape: small products are one tile, thin ones are divided by rows."""
    for m, n, k in ((20_000, 1, 50), (50, 1, 20_000), (7, 1, 900_000)):
        is_tall = k > m
        expected = {20_000: (5_000, 1), 50: (32, 1), 7: (7, 1)}[m]
        assert matrix_products.gemm_tiles(m, n, k, 1, is_tall, False) == expected, (m, n, k)
    for m, n, k, batch, trans_b, tiles in [
        (64, 512, 784, 1, False, (32, 128)),
        (64, 512, 784, 1, True, (64, 256)),
        (100, 256, 784, 1, False, (56, 128)),
        (784, 256, 100, 1, False, (200, 128)),
        (128, 10, 784, 1, False, (32, 10)),
        (1, 500, 800, 1, False, (1, 256)),
        (512, 32, 32, 1, False, (256, 32)),
        (32, 128, 128, 1, False, (16, 128)),
        (30, 40, 50, 1, False, (30, 40)),
        (512, 512, 512, 9, False, (512, 512)),
    ]:
        assert matrix_products.gemm_tiles(m, n, k, batch, False, trans_b) == tiles, (m, n, k)
    for m, n, k in (
        (0, 512, 784),
        (64, 0, 784),
        (64, 512, 0),
    ):  # empty products have a library name, too
        assert (
            matrix_products.library_name(m, n, k, False, False, True) == matrix_products.blas().name
        )


def test_axes_of_a_batch_merge_where_strides_allow() -> None:
    """Each axis has an extent and the strides of a, b and c; the last axis is one launch."""
    assert batch_axes((2, 3), (2, 3), 4, 5, 6) == [(6, 4, 5, 6)]
    assert batch_axes((2, 1), (1, 3), 4, 5, 6) == [(2, 4, 0, 18), (3, 0, 5, 6)]
    assert batch_axes((2, 3), (1, 1), 4, 5, 6) == [(6, 4, 0, 6)]
    assert batch_axes((1,), (1,), 4, 5, 6) == [(1, 0, 0, 0)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_single_rows_are_multiplied_in_parts(rng: np.random.Generator, dtype: str) -> None:
    """A row times a matrix is exact, with the same bits for any number of threads."""
    row = rng.standard_normal((1, 1280)).astype(dtype)
    w = rng.standard_normal((1280, 1000)).astype(dtype)
    x, y = pk.var("x", row.shape, dtype), pk.var("y", (1280, 1), dtype)
    turned = np.ascontiguousarray(w.T)
    exe = pk.compile(
        [
            pk.ops.matmul(x, w),
            pk.ops.matmul(x, turned, transpose_b=True),
            pk.ops.matmul(y, w, transpose_a=True),
        ]
    )
    feeds = {"x": row, "y": np.ascontiguousarray(row.T)}
    bits = []
    for threads in (1, 2, 4):
        with team_of(threads):
            bits.append([result.tobytes() for result in exe(feeds)])

    assert bits[0] == bits[1] == bits[2]
    tolerance = 2e-4 if dtype == "float32" else 1e-12
    for result in exe(feeds):
        np.testing.assert_allclose(result, row.astype("f8") @ w, rtol=0, atol=tolerance)


def test_onednn_multiplies_where_it_is_faster(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """oneDNN multiplies large products; if it fails BLAS does, and it is reported once."""
    if matrix_products._onednn_table() is None:
        pytest.skip("onednn-cpu-gomp is not installed")
    table = matrix_products._onednn_table().copy()
    monkeypatch.setattr(matrix_products, "_onednn_table", lambda: table)
    failing = CFUNCTYPE(c_int)(lambda: 3)
    for address in (table[0], cast(failing, c_void_p).value):
        table[0] = address
        for trans_a, trans_b in ((0, 0), (1, 0), (0, 1)):
            a = rng.standard_normal((300, 90) if trans_a else (90, 300)).astype("f4")
            b = rng.standard_normal((520, 300) if trans_b else (300, 520)).astype("f4")
            assert matrix_products.prefers_onednn(90, 260, 300, bool(trans_a), bool(trans_b))
            x, y = pk.var("x", a.shape), pk.var("y", b.shape)
            flips = {"transpose_a": bool(trans_a), "transpose_b": bool(trans_b)}
            exe = pk.compile(pk.ops.matmul(x, y, **flips))
            assert "oneDNN" in str(exe.steps)
            expected = (a.T if trans_a else a).astype("f8") @ (b.T if trans_b else b)
            np.testing.assert_allclose(exe(x=a, y=b)[0], expected, rtol=1e-4, atol=1e-4)
    assert capfd.readouterr().err.count("oneDNN failed with status 3 in a product") == 1
