"""Races in kernels with strides that only a call knows: elements that belong to one thread."""

from __future__ import annotations

import pytest

from passkit.checks.ir_races import check_races
from passkit.errors import CodeGenError
from passkit.ir.text import parse_kernel_ir
from passkit.values.size import Extent, Size

N, M = Size.symbol("n"), Size.symbol("m")
HEAD = """\
kernel 4x32 blocks 12 index 64
param x0: f32[65536]
param y0: f32[65536] written
register r: f32[4] written
size n0, n1, n2
{
  index block: i64 = @grid
  index ty: i64 = @thread_y
  index tx: i64 = @thread_x
  index row: i64 = block * 4 + ty
  index column: i64 = block % n2 * 32 + tx
"""
SIZES: tuple[Extent, ...] = (M, N, (N + 31) // 32)


ROWS = (M + 3) // 4
"""The blocks of ``M`` rows, of which a block has four."""
TILES = (N + 31) // 32 * M
"""The blocks of ``M`` rows of ``N`` columns, of which a block has 32."""
GUARD = "if row >= n0 {\nreturn\n}\n"
FREE = {
    "rows": GUARD + "for serial j = tx to n1 step 32 {\ny0[row * n1 + j] = 1.0:f32\n}",
    "whole steps and a rest": GUARD
    + (
        "index whole: i64 = n1 // 64 * 64\n"
        "for serial b = 0 to whole step 64 {\nfor unroll u = 0 to 2 {\n"
        "y0[row * n1 + b + u * 32 + tx] = 1.0:f32\n}\n}\n"
        "for serial b = whole to n1 step 64 {\nfor unroll u = 0 to 2 {\n"
        "if b + u * 32 + tx < n1 {\ny0[row * n1 + b + u * 32 + tx] = 1.0:f32\n"
        "}\n}\n}"
    ),
    "vectors": GUARD
    + (
        "for serial b = 0 to n1 * 4 step 128 {\nif b + tx * 4 < n1 * 4 {\n"
        "store y0[row * (n1 * 4) + b + tx * 4] = r[0] width 4\n}\n}"
    ),
    "columns of a row": "if ty == 0 & column < n1 {\ny0[block // n2 * n1 + column] = 1.0:f32\n}",
    "rows of columns": "if column < n1 {\nfor serial i = ty to n0 step 4 {\n"
    "y0[block // n2 * (n0 * n1) + i * n1 + column] = 1.0:f32\n}\n}",
    "axes apart": GUARD
    + (
        "for serial j = tx to n1 * n2 step 32 {\n"
        "y0[j // n2 * (n0 * n2) + row * n2 + j % n2] = 1.0:f32\n}"
    ),
    "axes apart behind rows": GUARD
    + (
        "for serial j = tx to n1 * n2 step 32 {\n"
        "y0[row * (n1 * n2) + j // n2 * n2 + j % n2] = 1.0:f32\n}"
    ),
    "three coordinates": GUARD
    + (
        "if tx == 0 {\n"
        "y0[row // (n1 * n2) * (n1 * n2) + row // n2 % n1 * n2 + row % n2] = 1.0:f32\n"
        "}"
    ),
    "the end of a chunk": "index end: i64 = select(block * 128 + 128 < n0, block * 128 + 128, n0)\n"
    "for serial p = block * 128 + ty * 32 + tx to end step 128 {\n"
    "y0[p * n1] = 1.0:f32\n}",
    "its own element, read before": GUARD
    + ("for serial j = tx to n1 step 32 {\ny0[row * n1 + j] = y0[row * n1 + j] + 1.0:f32\n}"),
    "uniform branches of other threads": GUARD
    + (
        "if block < n2 {\nfor serial j = tx to n1 step 32 {\n"
        "y0[row * n1 + j] = 1.0:f32\n}\n} else {\nfor serial i = 0 to n1 {\n"
        "if tx == 0 {\ny0[row * n1 + i] = 1.0:f32\n}\n}\n}"
    ),
}


def check(body: str) -> None:
    """Check a kernel of these statements. Raises: CodeGenError for a race."""
    blocks = TILES if "column" in body else ROWS
    check_races(parse_kernel_ir(f"{HEAD}{body}\n}}\n"), "k", SIZES, blocks)


@pytest.mark.parametrize("name", FREE)
def test_elements_that_follow_from_bounds_are_free_of_races(name: str) -> None:
    """Guards, bounds of loops, quotients and remainders give the thread of an element."""
    check(FREE[name])


RACES = {
    "no end of the row": GUARD
    + "for serial j = tx to n1 + 1 step 32 {\ny0[row * n1 + j] = 1.0:f32\n}",
    "a shorter stride": GUARD + "for serial j = tx to n1 step 32 {\ny0[row * n2 + j] = 1.0:f32\n}",
    "steps that overlap": GUARD
    + "for serial j = tx to n1 step 16 {\ny0[row * n1 + j] = 1.0:f32\n}",
    "no thread of several": GUARD + "y0[row * n1] = 1.0:f32",
    "no guard of columns": "y0[block // n2 * n1 + column] = 1.0:f32",
    "all rows of threads": "if column < n1 {\ny0[block // n2 * n1 + column] = 1.0:f32\n}",
    "a neighbour's element": GUARD
    + (
        "for serial j = tx to n1 - 1 step 32 {\n"
        "y0[row * n1 + j] = y0[row * n1 + j + 1] + 1.0:f32\n}"
    ),
    "another distribution": GUARD
    + (
        "for serial j = tx to n1 step 32 {\ny0[row * n1 + j] = 1.0:f32\n}\n"
        "for serial b = 0 to n1 step 64 {\nif tx * 2 + b < n1 - 1 {\n"
        "for unroll u = 0 to 2 {\ny0[row * n1 + b + tx * 2 + u] = 1.0:f32\n}\n"
        "}\n}"
    ),
    "an index of data": GUARD
    + ("index j: i64 = cast(x0[tx], i64)\nif j < n1 {\ny0[row * n1 + j] = 1.0:f32\n}"),
    "a store in front of a return": GUARD
    + (
        "for serial j = tx to n1 step 32 {\ny0[row * n1 + j] = 1.0:f32\n}\n"
        "if tx < n2 {\ny0[row * n1] = 2.0:f32\nreturn\n}"
    ),
    "a remainder without its quotient": GUARD
    + ("for serial j = tx to n1 * n2 step 32 {\ny0[row * n2 + j % n2] = 1.0:f32\n}"),
}


@pytest.mark.parametrize("name", RACES)
def test_elements_of_several_threads_are_a_race(name: str) -> None:
    """Where bounds do not show that an element has one thread, the kernel is refused."""
    with pytest.raises(CodeGenError, match=r"kernel k has a race at y0\["):
        check(RACES[name])
