"""Matrix products on the CPU: which library multiplies, and in which tiles.

Both are selected by the shape only, so that the bits of a result depend on nothing else. A tile is
one library call on one thread. OpenBLAS is always available, and multiplies single rows and single
columns by gemv, which reads the matrix once: a column of 20,000 x 50 takes 0.26 ms instead of 0.46,
transposed 0.25 ms instead of 0.77 (Zen 1).
For float32, oneDNN's sgemm is used where it is installed and faster, which it is except for small
and thin products and those with two transposed operands. Zen 4, one thread, GF/s of OpenBLAS and
oneDNN:

- 64 x 512 x 784: 101 and 116
- 16 x 500 x 800: 80 and 112
- 64 x 64 x 64: 102 and 88
- 64 x 512 x 784, right operand transposed: 96 and 107
- 128 x 96 x 512, right operand transposed: 97 and 66
"""

from __future__ import annotations

from enum import Enum
from functools import cache
from typing import Any

import numpy as np

from passkit.runtime.native.blas import Blas, blas
from passkit.runtime.native.onednn import load_library

ONEDNN_KIND = 2
"""The kind of a gemm launch whose function is a table of oneDNN's; see ``gemm.h``."""
GEMV_KIND = 4
"""Added to the kind of a gemm launch whose function is cblas_?gemv, for tiles of one row or one
column."""

SMALL_PRODUCTS = 1_000_000
"""Up to this many multiplications OpenBLAS has kernels that do not pack their operands."""
TILE_PRODUCTS = 250_000
"""The least multiplications of a tile, which take 5 microseconds."""
TILE_NBYTES = 1 << 19
"""The least bytes of a tile, if it has fewer multiplications."""
MAX_TILES = 8
"""The most tiles of a batch of products."""
MIN_COLUMNS = 16
"""With fewer columns, libraries pad."""
ONEDNN_TRANSPOSED_COLUMNS = 256
"""The least columns for which oneDNN is faster with a transposed right operand."""
SMALL_TILE_ROWS = 16
"""The least rows of a tile where nothing is packed."""
TILE_ROWS = 32
"""The least rows of a tile; twice as many with a transposed right operand, which is packed."""
TILE_COLUMNS = 128
"""The least columns of a tile; twice as many with a transposed right operand."""
ROW_TILE = 2048
"""The rows of a tile of a product of a vector with a long matrix; `LongMatrix` has the kinds."""
MAX_LONG_COLUMNS = 256
"""The most columns of a long matrix: a tile of float64 is then 4 MiB."""


class LongMatrix(Enum):
    """The rows of a long matrix in a product with a vector; it has many rows and few columns.

    Attributes:
        MAPPED: the result has an element for each row of the matrix.
        SUMMED: the result has an element for each column, a sum over the rows.
    """

    MAPPED = "mapped"
    SUMMED = "summed"


def long_matrix(m: int, n: int, k: int, trans_a: bool, trans_b: bool) -> LongMatrix | None:
    """Return how a product (m, k) x (k, n) uses a long matrix: it maps its rows, or sums them.

    None if it is no product of a vector with a matrix of at least two tiles of `ROW_TILE` rows
    and at most `MAX_LONG_COLUMNS` columns. ``trans_a`` and ``trans_b`` are whether an operand is
    stored transposed; rows and columns of the matrix are those of its memory.
    """
    is_mapped = (n == 1 and not trans_a) or (m == 1 and trans_b)
    if is_mapped and max(m, n) >= 2 * ROW_TILE and k <= MAX_LONG_COLUMNS:
        return LongMatrix.MAPPED
    is_summed = (m == 1 and not trans_b) or (n == 1 and trans_a)
    if is_summed and k >= 2 * ROW_TILE and max(m, n) <= MAX_LONG_COLUMNS:
        return LongMatrix.SUMMED
    return None


@cache
def _onednn_table() -> Any:
    """Return the int64 array of functions that the kernel "gemm_f32" reads, None without oneDNN.

    It has oneDNN's sgemm, BLAS's sgemm for the case that the former fails, and a flag that the
    kernel sets when it has reported a failure. It is created once. Raises: CompilerError,
    CacheError or SettingError where the launcher, which loads BLAS, cannot be compiled or loaded.
    """
    library, fallback = load_library(), blas()
    if library is None:
        return None
    names = ("dnnl_sgemm", "omp_get_max_threads", "omp_set_num_threads")
    addresses = [library.address(name) for name in names]
    return np.array([*addresses, fallback.sgemm, fallback.ilp64, 0], np.int64)


def prefers_onednn(m: int, n: int, k: int, trans_a: bool, trans_b: bool) -> bool:
    """Return whether oneDNN multiplies float32 matrices (m, k) x (k, n) faster than OpenBLAS.

    The answer is a rule by the shape; oneDNN need not be installed. ``trans_a`` and ``trans_b`` are
    whether the left and the right operand are stored transposed.
    """
    if trans_a and trans_b:
        return False
    if m == 1 or m * n * k <= SMALL_PRODUCTS or n < MIN_COLUMNS:
        return False
    return not trans_b or n >= ONEDNN_TRANSPOSED_COLUMNS


def gemm_function(
    name: str, m: int, n: int, k: int, trans_a: bool, trans_b: bool
) -> tuple[Any, int]:
    """Select the library function that multiplies tiles of a matrix product.

    Without any library the address is 0, and the launcher multiplies by its own loops.

    Args:
        name: "gemm_f32" or "gemm_f64".
        m: rows of a tile.
        n: columns of a tile.
        k: terms of each sum.
        trans_a: whether the left operand is stored transposed.
        trans_b: whether the right operand is stored transposed.

    Returns:
        The launcher's reference to the function, or to a table of functions, for buf[0] of
        ``gemm.h``; and the number of the kind of function, as ``gemm.h`` lists them.

    Raises:
        CompilerError: The launcher, which loads libraries, cannot be compiled.
        CacheError: The launcher is not loaded yet, and others can write to the cache folder.
        SettingError: The launcher is not loaded yet, and PASSKIT_THREADS is no number of threads.
    """
    if name == "gemm_f32" and prefers_onednn(m, n, k, trans_a, trans_b):
        table = _onednn_table()
        if table is not None:
            return ("address", table.ctypes.data, table), ONEDNN_KIND
    library = blas()
    gemv = library.sgemv if name == "gemm_f32" else library.dgemv
    if (m == 1 or n == 1) and gemv:
        return ("address", gemv), library.ilp64 + GEMV_KIND
    return ("address", _gemm(library, name)), library.ilp64


def library_name(m: Any, n: Any, k: Any, trans_a: bool, trans_b: bool, single: bool) -> str:
    """Return the name of the library that multiplies (m, k) x (k, n), for reports.

    ``single`` is whether the dtype is float32, ``trans_a`` and ``trans_b`` whether the operands are
    stored transposed. It is the BLAS library for products without terms or elements, and for
    symbolic sizes, for which the library is selected at run time. Raises: CompilerError, CacheError
    or SettingError where the launcher, which loads libraries, cannot be compiled or loaded.
    """
    is_known = isinstance(m, int) and isinstance(n, int) and isinstance(k, int)
    if single and is_known and m * n * k > 0:
        rows, columns = gemm_tiles(m, n, k, 1, trans_a, trans_b)
        if prefers_onednn(rows, columns, k, trans_a, trans_b) and _onednn_table() is not None:
            return "oneDNN"
    return blas().name


def _gemm(library: Blas, name: str) -> int:
    """Return the address of the library's sgemm for the kernel "gemm_f32", else of its dgemm."""
    return library.sgemm if name == "gemm_f32" else library.dgemm


def gemm_tiles(m: int, n: int, k: int, batch: int, trans_a: bool, trans_b: bool) -> tuple[int, int]:
    """Return rows and columns of the tiles of each product (m, k) x (k, n) of a batch.

    The number of tiles is proportional to the work, at most `MAX_TILES` for the batch. Of the grids
    with this number, the one that packs least is chosen: each tile packs its own part of both
    operands. With fewer than `MIN_COLUMNS` columns only the rows are divided; those of a transposed
    matrix times a column into 16 or more, which are columns in memory. ``batch`` is the number of
    products, ``trans_a`` and ``trans_b`` are whether an operand is stored transposed.
    """
    if n == 1 and trans_a:
        parts = min(m * k // TILE_PRODUCTS, MAX_TILES, m // SMALL_TILE_ROWS)
        return _part_length(m, parts, SMALL_TILE_ROWS), n
    if n < MIN_COLUMNS:
        return _part_length(m, min(m * n * k // TILE_PRODUCTS, MAX_TILES), 8), n
    work = max(m * n * k // TILE_PRODUCTS, 4 * (m * k + k * n + m * n) // TILE_NBYTES)
    most = max(1, min(work, -(-MAX_TILES // batch)))
    rows = SMALL_TILE_ROWS if m * n * k <= SMALL_PRODUCTS else TILE_ROWS
    columns = TILE_COLUMNS
    if trans_b:
        rows, columns = 2 * rows, 2 * columns
    max_down, max_across = max(1, m // rows), max(1, n // columns)
    grids = [
        (down, across)
        for down in (1, 2, 4, 8)
        for across in (1, 2, 4, 8)
        if down <= max_down and across <= max_across and down * across <= most
    ]
    down, across = max(grids, key=lambda g: (g[0] * g[1], -g[0] / m - g[1] / n))
    return _part_length(m, down, 8), _part_length(n, across, 16)


def _part_length(length: int, parts: int, step: int) -> int:
    """Return the length of each of ``parts`` parts: a multiple of ``step``, at most ``length``.

    It is ``length`` for one part or less.
    """
    return length if parts <= 1 else min(length, -(-length // (parts * step)) * step)
