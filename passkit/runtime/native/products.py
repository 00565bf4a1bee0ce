"""Who multiplies matrices, and in which tiles: by shape alone, so that bits depend on nothing else.

A tile is one call of a library on one thread. OpenBLAS always serves, single rows by its gemv; for
float32 oneDNN's sgemm does where it is installed and quicker, which it is for all but small, thin
and twice transposed products (Zen 4, one thread, GF/s, OpenBLAS / oneDNN: 64 x 512 x 784 101 / 116,
16 x 500 x 800 80 / 112; small: 64 x 64 x 64 102 / 88; right factor transposed: 64 x 512 x 784
96 / 107, 128 x 96 x 512 97 / 66).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from passkit.runtime.native.blas import Blas, blas
from passkit.runtime.native.onednn import library

ONEDNN, GEMV = 2, 4
"""The numbers that stand for oneDNN's table, and for the product of a row with a matrix, where the
size of cblas integers does; the latter is added to that."""

SMALL = 1_000_000
"""Products of that many multiplications OpenBLAS has kernels for that copy nothing."""
TILE, TILE_NBYTES, MOST = 250_000, 1 << 19, 8
"""Multiplications, which take 5 us, or bytes of a tile; there are at most so many tiles."""
THIN, ACROSS_TRANSPOSED = 16, 256
"""Columns below which a library pads, and those that oneDNN needs of a transposed right factor."""
FEW, ROWS, COLUMNS = 16, 32, 128
"""Of a tile, at least, few where nothing is copied; twice as many where the right factor is
transposed, which copies it."""


@cache
def _table() -> Any:
    """What the kernel "gemm_f32" reads of oneDNN, and of BLAS should that fail; None without."""
    found, other = library(), blas()
    if found is None:
        return None
    names = ("dnnl_sgemm", "omp_get_max_threads", "omp_set_num_threads")
    addresses = [found.address(name) for name in names]
    return np.array([*addresses, other.sgemm, other.ilp64, 0], np.int64)


def quicker(m: int, n: int, k: int, trans_a: bool, trans_b: bool) -> bool:
    """Whether oneDNN multiplies float32 matrices of this shape quicker than OpenBLAS."""
    if trans_a and trans_b:
        return False
    if m == 1 or m * n * k <= SMALL or n < THIN:
        return False
    return not trans_b or n >= ACROSS_TRANSPOSED


def multiplier(
    name: str, m: int, n: int, k: int, trans_a: bool, trans_b: bool
) -> tuple[Any, int]:
    """What runs tiles of this shape: a reference for buf[0] of ``gemm.h``, and its kind."""
    if name == "gemm_f32" and quicker(m, n, k, trans_a, trans_b):
        table = _table()
        if table is not None:
            return ("address", table.ctypes.data, table), ONEDNN
    found = blas()
    row = found.sgemv if name == "gemm_f32" else found.dgemv
    if m == 1 and row:
        return ("address", row), found.ilp64 + GEMV
    return ("address", _function(found, name)), found.ilp64


def library_name(m: Any, n: Any, k: Any, trans_a: bool, trans_b: bool, single: bool) -> str:
    """Who multiplies, for reports: where sizes are known what is meant for their tiles."""
    known = isinstance(m, int) and isinstance(n, int) and isinstance(k, int)
    if single and known and m * n * k > 0:
        rows, columns = tiles_of(m, n, k, 1, trans_b)
        if quicker(rows, columns, k, trans_a, trans_b) and _table() is not None:
            return "oneDNN"
    return blas().name


def _function(found: Blas, name: str) -> int:
    return found.sgemm if name == "gemm_f32" else found.dgemm


def tiles_of(m: int, n: int, k: int, batch: int, trans_b: bool) -> tuple[int, int]:
    """Rows and columns of the tiles of each product of a batch.

    Of the cuts into about as many tiles as are worth it, the one that copies least: each tile lays
    out its own part of both factors.
    """
    if n < THIN:
        return _even(m, min(m * n * k // TILE, MOST), 8), n
    work = max(m * n * k // TILE, 4 * (m * k + k * n + m * n) // TILE_NBYTES)
    wanted = min(work, -(-MOST // batch))
    rows, columns = (FEW if m * n * k <= SMALL else ROWS), COLUMNS
    if trans_b:
        rows, columns = 2 * rows, 2 * columns
    most = max(1, m // rows), max(1, n // columns)
    cuts = [(d, c) for d in (1, 2, 4, 8) for c in (1, 2, 4, 8)
            if d <= most[0] and c <= most[1] and d * c <= max(wanted, 1)]
    down, across = max(cuts, key=lambda cut: (cut[0] * cut[1], -cut[0] / m - cut[1] / n))
    return _even(m, down, 8), _even(n, across, 16)


def _even(length: int, parts: int, step: int) -> int:
    """The length of parts that are alike, in steps; all of it where there is one."""
    return length if parts <= 1 else min(length, -(-length // (parts * step)) * step)
