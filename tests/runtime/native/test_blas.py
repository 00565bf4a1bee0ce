"""Matrix products through the built-in gemm kernels, with a library and without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from passkit.runtime.native import blas as module
from passkit.runtime.native.blas import NONE, Blas, blas
from passkit.runtime.native.feeds import InputSpec
from passkit.runtime.native.launcher import builtin
from tests.runtime.native.sample import program
from tests.teams import team_of

CASES = [
    # batch, m, n, k, trans_a, trans_b, rows_per_tile
    (1, 7, 5, 3, 0, 0, 2),
    (1, 64, 48, 100, 0, 1, 16),
    (3, 33, 20, 17, 1, 0, 8),
    (4, 10, 1, 40, 1, 1, 3),
    (1, 1, 9, 9, 0, 0, 1),
    (2, 5, 4, 0, 0, 0, 2),
    (1, 0, 4, 3, 0, 0, 1),
    (1, 4, 0, 3, 0, 0, 1),
    (0, 4, 4, 3, 0, 0, 1),
]


def libraries() -> list[Blas]:
    """The library of this machine, NumPy's own, and none."""
    found = [blas(), NONE]
    for path, ilp64 in module._libraries():
        if ilp64:
            found.append(module.load(path, ilp64))
    return found


def product(lib: Blas, a: Any, b: Any, case: tuple[int, ...]) -> Any:
    """The batch of products a[k] @ b[k] by the built-in kernel."""
    batch, m, n, k, trans_a, trans_b, rows = case
    single = a.dtype == np.float32
    entry = builtin("gemm_f32" if single else "gemm_f64")
    function = lib.sgemm if single else lib.dgemm
    sizes = (m, n, k, trans_a, trans_b, a.shape[2], b.shape[2], n, batch, m * k, k * n, m * n,
             rows, lib.ilp64)  # fmt: skip
    step = ("launch", entry, batch * -(-m // rows), True,
            [("address", function), ("input", 0), ("input", 1), ("output", 0)], sizes)  # fmt: skip
    inputs = [InputSpec("a", a.dtype, a.shape), InputSpec("b", b.dtype, b.shape)]
    return program([step], [(a.dtype.num, (batch, m, n))], inputs)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", CASES)
def test_products(case: tuple[int, ...], dtype: str, rng: np.random.Generator) -> None:
    """Batches, both transpositions, blocks of rows, and empty sizes agree with NumPy."""
    batch, m, n, k, trans_a, trans_b, _ = case
    a = rng.standard_normal((batch, *((k, m) if trans_a else (m, k)))).astype(dtype)
    b = rng.standard_normal((batch, *((n, k) if trans_b else (k, n)))).astype(dtype)
    wanted = (a.mT if trans_a else a) @ (b.mT if trans_b else b)

    for lib in libraries():
        found = product(lib, a, b, case)(a=a, b=b)[0]

        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5, err_msg=lib.name)


def test_bits_do_not_depend_on_threads(rng: np.random.Generator) -> None:
    """A tile is one call of the library, whoever runs it."""
    a = rng.standard_normal((1, 200, 150)).astype("f4")
    b = rng.standard_normal((1, 150, 170)).astype("f4")
    run, seen = product(blas(), a, b, (1, 200, 170, 150, 0, 0, 25)), set()
    for threads in (1, 2, 4):
        with team_of(threads):
            seen |= {run(a=a, b=b)[0].tobytes() for _ in range(5)}

    assert len(seen) == 1


def test_the_library_of_the_package_is_preferred() -> None:
    """scipy-openblas32 serves where it is installed; its functions take 32-bit integers."""
    assert blas().name == "libscipy_openblas.so" and blas().ilp64 == 0


def test_a_library_that_cannot_be_loaded_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without any library there are the launcher's own loops."""
    torn = tmp_path / "libscipy_openblas.so"
    torn.write_bytes(b"\x7fELF")
    monkeypatch.setattr(module, "_libraries", lambda: iter([(torn, 0)]))

    assert blas.__wrapped__() == NONE
