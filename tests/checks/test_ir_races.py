"""Races of threads in kernels of loop IR are reported; kernels without any pass."""

from __future__ import annotations

from typing import Any

import pytest

from passkit.checks.ir_races import check_races
from passkit.errors import CodeGenError
from passkit.ir.text import parse_kernel_ir
from passkit.values.size import Size
from tests.nest_kernels import programs

HEAD = """\
kernel 4x32 blocks 12 index 32
param x0: f32[65536]
param y0: f32[65536] written
register r: f32[4] written
shared s: f32[128] written
shared t: f32[128] written
size n0
{
  index block: i64 = @grid
  index ty: i64 = @thread_y
  index tx: i64 = @thread_x
  index id: i64 = ty * 32 + tx
"""


def check(body: str, blocks: Any = 16, sizes: tuple[int, ...] = (100,), head: str = HEAD) -> None:
    """Check a kernel of these statements. Raises: CodeGenError for a race."""
    check_races(parse_kernel_ir(f"{head}{body}\n}}\n"), "k", sizes, blocks)


def test_kernels_of_the_corpus_have_no_races() -> None:
    """The check accepts all kernels of the compiler."""
    for p in programs():
        check_races(p.ir, p.name, p.kernel.sizes, p.kernel.grid)


FREE = {
    "own elements": "s[id] = 1.0:f32\nt[id] = s[id]",
    "one barrier of the block": "s[id] = 1.0:f32\nbarrier block\nt[id] = s[127 - id]",
    "one barrier of the warp": "s[id] = 1.0:f32\nbarrier warp\nt[id] = s[ty * 32 + 31 - tx]",
    "one thread": "if tx == 0 {\ns[ty] = 1.0:f32\n}\nbarrier block\nt[id] = s[0]",
    "one thread of several warps": "if @thread_x % 32 == 0 {\ns[ty + tx // 32] = 1.0:f32\n}",
    "halves with a barrier between": "if tx < 16 {\ns[id] = 1.0:f32\n}\nbarrier warp\n"
    "if tx >= 16 {\nt[id] = s[id - 16]\n}",
    "two halves in alternate iterations": "for serial i = 0 to 4 {\nif id < 64 {\n"
    "t[id] = s[63 - id + (i + 1) % 2 * 64]\ns[id + i % 2 * 64] = 1.0:f32\n}\nbarrier block\n}",
    "any number of iterations": "for serial i = 0 to n0 {\ns[id] = 1.0:f32\nbarrier block\n"
    "t[id] = s[127 - id]\nbarrier block\n}",
    "a chosen row": "index row: i64 = select(tx < n0, tx, n0 - 1)\n"
    "if tx < n0 {\ns[ty * 32 + row] = 1.0:f32\n}",
    "uniform branches": "if block < 3 {\ns[id] = 1.0:f32\n} else {\ns[127 - id] = 1.0:f32\n}",
    "rows of blocks": "y0[block * 128 + id] = 1.0:f32",
    "columns of blocks": "y0[id * 16 + block % 16] = 1.0:f32",
    "tiles of rows and columns": "y0[block // 4 * 512 + block % 4 * 32 + ty * 128 + tx] = 0.0:f32",
    "three coordinates of a block": "y0[block // 12 * 1536 + block // 4 % 3 * 512 + block % 4 * 128"
    " + id] = 1.0:f32",
    "a loop that never runs": "for serial i = 4 to 4 {\ny0[i // 3 + i % 3] = 1.0:f32\n}",
    "a row or else the first one": "t[id] = 0.0:f32\nbarrier block\nfor serial i = 0 to 1 {\n"
    "index row: i64 = select(id < 1000 - block * 64, id, 0)\n"
    "let v: f32 = select(row % 4 < 2, t[row // 4 * 4 + row % 4 + 2], 0.0:f32)\n"
    "y0[block * 128 + id] = v\n}",
    "stores of the selected rows alone": "for serial i = 0 to 1 {\n"
    "index row: i64 = select(id < 1000 - block * 64 & id < 900 - block * 50, id, 0)\n"
    "if i < 1 & id < 1000 - block * 64 & id < 900 - block * 50 {\n"
    "y0[block * 128 + row] = 1.0:f32\n}\n}",
    "a condition with a name": "let holds: bool = id < 100\nif holds {\nt[id + 28] = 1.0:f32\n}",
    "a condition that does not hold": "let holds: bool = ~(id >= 100)\n"
    "let also: bool = x0[0] < 1.0:f32\nif holds & also {\nt[id + 28] = 1.0:f32\n}",
    "rows of warps": "index row: i64 = block * 4 + ty\n"
    "y0[row // 8 * 1024 + row % 8 * 16 + tx // 16 * 512 + tx % 16] = 1.0:f32",
    "a row in two parts": "index row: i64 = block * 128 + id\ny0[row // 7 * 7 + row % 7] = 0.0:f32",
    "rows with gaps": "index row: i64 = block * 128 + id\ny0[row // 7 * 10 + row % 7] = 0.0:f32",
    "many rows in many parts": "index row: i64 = block % 16384\nfor unroll u = 0 to 64 {\n"
    "y0[block // 16384 * 268435456 + (tx + u * 32) * 131072 + row * 4 + ty] = 0.0:f32\n}",
    "columns of tiles": "index column: i64 = block % 2 * 32 + tx\nif ty == 0 & column < 40 {\n"
    "y0[block // 2 * 40 + column] = 0.0:f32\n}",
    "rows between others": "index row: i64 = block * 4 + ty\nif row >= n0 {\nreturn\n}\n"
    "y0[tx // 4 * 400 + row * 4 + tx % 4] = 1.0:f32",
    "points up to the end of a block": "index end: i64 = select(block * 512 + 512 < n0, "
    "block * 512 + 512, n0)\nfor serial p = block * 512 + id to end step 128 {\ny0[p] = x0[p]\n}",
    "an element that data names": "s[id] = 1.0:f32\nbarrier block\n"
    "t[id] = s[minimum(maximum(cast(x0[id], i64), 0), 127)]",
    "rows that exist": "index row: i64 = block * 4 + ty\nif row >= n0 {\nreturn\n}\n"
    "for unroll u = 0 to 4 {\nif tx + u * 32 < 100 {\ny0[row * 100 + tx + u * 32] = 1.0:f32\n}\n}",
}


@pytest.mark.parametrize("name", FREE)
def test_a_kernel_without_a_race_passes(name: str) -> None:
    """Shared elements are separated by barriers, or one thread has each of them."""
    check(FREE[name])


RACES = {
    "s[tx] = 1.0:f32": r"s\[0\], of threads \(0, 0\) and \(3, 0\)",
    "s[0] = 1.0:f32": r"s\[0\], of threads \(0, 0\) and \(3, 31\) \(y, x\), in 's\[0\] = 1.0:f32'",
    "s[id] = 1.0:f32\nt[id] = s[127 - id]": r"s\[0\], of threads \(0, 0\) and \(3, 31\) .* and in",
    "s[id] = 1.0:f32\nbarrier warp\nt[id] = s[127 - id]": r"s\[0\], of threads \(0, 0\) and",
    "t[id] = s[127 - id]\ns[id] = 1.0:f32": r"race at s\[0\]",
    "for serial i = 0 to n0 {\nt[id] = s[127 - id]\nbarrier block\ns[id] = 1.0:f32\n}": r"s\[0\]",
    "load r[0] = s[tx * 4] width 4 shared\nstore s[tx * 4] = r[0] width 4": r"s\[0\], of th",
    "s[id + 1] = 1.0:f32": r"s\[128\], which is not within its extent 128",
    "s[cast(x0[id], i64)] = 1.0:f32": r"s\[\?\]: an index is not understood, which is not within",
    "t[id] = s[minimum(maximum(cast(x0[id], i64), 0), 128)]": r"s\[128\], which is not within",
    "s[id] = 1.0:f32\nt[id] = s[minimum(maximum(cast(x0[id], i64), 0), 127)]": r"s\[0\], of thre",
    "y0[id] = 1.0:f32": r"y0\[0\], of all blocks",
    "y0[block * 128] = 1.0:f32": r"y0\[block \* 128 \+ 0\], of threads",
    "y0[block * 64 + id] = 1.0:f32": r"y0\[64\], of different blocks",
    "y0[block % 4 * 128 + id] = 1.0:f32": r"y0\[\?\] among blocks: quotients that do not give",
    "y0[block // 4 * 128 + block % 4 * 32 + id] = 1.0:f32": r"y0\[32\], of different blocks",
    "y0[block // 12 * 1536 + block // 4 % 2 * 512 + block % 4 * 128 + id] = 1.0:f32": (
        r"y0\[\?\] among blocks: quotients that do not give the block"
    ),
    "t[id] = 0.0:f32\nbarrier block\nfor serial i = 0 to 1 {\n"
    "index row: i64 = select(id < 1000 - block * 64, id, 0)\n"
    "let v: f32 = select(row % 4 < 3, t[row // 4 * 4 + row % 4 + 2], 0.0:f32)\n"
    "y0[block * 128 + id] = v\n}": r"t\[128\], which is not",
    "for serial i = 0 to 1 {\n"
    "index row: i64 = select(id < 1000 - block * 64 & id < 900 - block * 50, id, 0)\n"
    "if id < 1000 - block * 64 {\ny0[block * 128 + row] = 1.0:f32\n}\n}": (
        r"y0\[block \* 128 \+ 0\], of threads"
    ),
    "let holds: bool = id < 101\nif holds {\nt[id + 28] = 1.0:f32\n}": r"t\[128\], which is not",
    "for serial p = block * 512 + id to n0 * 64 step 128 {\ny0[p] = x0[p]\n}": r"y0\[\?\]: indi",
    "y0[block * 128 + id] = 1.0:f32\ny0[block * 256 + id] = 1.0:f32": r"y0\[\?\]: indices that",
    "y0[block * 128 + cast(x0[id], i64)] = 1.0:f32": r"y0\[\?\]: indices that are not understood",
    "index row: i64 = block * 4 + ty\nif row >= n0 {\nreturn\n}\n"
    "y0[tx // 4 * 200 + row * 4 + tx % 4] = 1.0:f32": r"y0\[\d+\], of different blocks",
    "index row: i64 = block * 128 + id\ny0[row // 7 * 6 + row % 7] = 0.0:f32": r"y0\[6\], of diff",
    "index column: i64 = block % 2 * 32 + tx\nif ty == 0 & column < 40 {\n"
    "y0[block // 2 * 39 + column] = 0.0:f32\n}": r"y0\[39\], of different blocks",
    "for serial i = tx to n0 {\nbarrier block\ns[id] = 1.0:f32\n}": "the loop over i has barriers",
}


@pytest.mark.parametrize("body", RACES)
def test_a_race_is_named(body: str) -> None:
    """The error names the buffer, the element, the threads or blocks, and the statements."""
    with pytest.raises(CodeGenError, match=RACES[body]):
        check(body)


def test_any_number_of_blocks_is_checked() -> None:
    """With an unknown number of blocks, blocks at any distance are compared."""
    blocks = Size.symbol("n")

    check(FREE["rows of warps"], blocks)
    with pytest.raises(CodeGenError, match=r"y0\[64 \+ a multiple of 64\], of different blocks"):
        check("y0[block * 64 + id] = 1.0:f32", blocks)


def test_one_block_has_no_others() -> None:
    """With one block the rows are literals, and no other block stores."""
    body = "if block * 4 + ty >= n0 {\nreturn\n}\nif tx == 0 {\ny0[0] = 1.0:f32\n}"

    check(body, blocks=1, sizes=(1,))
    with pytest.raises(CodeGenError, match=r"y0\[0\], of threads \(0, 0\) and \(1, 0\)"):
        check(body, blocks=1, sizes=(2,))


def test_an_input_that_shares_memory_with_an_output() -> None:
    """Such buffers are accessed by one thread for each element, or with a barrier between."""
    head = HEAD.replace("size n0\n", "size n0\naliased x0, y0\n")
    own = "y0[block * 128 + id] = x0[block * 128 + id]"
    other = "y0[block * 128 + id] = x0[block * 128 + 127 - id]"
    apart = f"let v: f32 = x0[block * 128 + 127 - id]\nbarrier block\n{own.partition('=')[0]} = v"

    check(own, head=head)
    check(apart, head=head)
    check(other)
    with pytest.raises(CodeGenError, match=r"block \* 128 \+ 0\], of threads \(0, 0\) and \(3, 31"):
        check(other, head=head)


COUNTED = HEAD.replace("size n0\n", "size n0\ncounters 4\n")
"""A kernel that counts blocks, with 16 of them in these tests."""
STORED = "y0[block * 128 + id] = 1.0:f32\nbarrier block\nfence\n"
"""The stores of each block before it is counted."""
LAST_BLOCKS = {
    "all blocks": "last_block of 16 at 0\nif id < 16 {\ny0[id * 128] = y0[id * 128] + 1.0:f32\n}",
    "blocks of a column": "last_block of 4 at block % 4\n"
    "y0[block % 4 * 128 + id] = y0[block % 4 * 128 + 512 + id]",
    "blocks of a row": "last_block of 4 at block // 4\nr[0] = y0[block // 4 * 512 + 127 - id]",
}


@pytest.mark.parametrize("name", LAST_BLOCKS)
def test_last_blocks_may_access_elements_of_counted_blocks(name: str) -> None:
    """The last block of a counter may access all that the others stored and fenced."""
    check(STORED + LAST_BLOCKS[name], head=COUNTED)


LAST_BLOCK_RACES = {
    "too few blocks": (
        STORED + "last_block of 15 at 0\ny0[id] = y0[id + 128]",
        16,
        r"y0: counter 0 counts 16 blocks, not 15",
    ),
    "a counter that does not exist": (
        STORED + "last_block of 2 at block % 8\ny0[block % 8 * 128 + id] = 0.0:f32",
        16,
        r"y0: counter 7 of 4",
    ),
    "a counter by an unknown number": (
        STORED + "last_block of 16 at n0\ny0[id] = 0.0:f32",
        16,
        r"y0: the counter of a block is not understood",
    ),
    "any number of blocks": (
        STORED + "last_block of 16 at 0\ny0[id] = 0.0:f32",
        Size.symbol("n"),
        r"y0: the number of blocks that are counted is not known",
    ),
    "no fence": (
        STORED.replace("fence\n", "") + "last_block of 16 at 0\ny0[id] = y0[id + 128]",
        16,
        r"y0: no barrier and fence stand between stores and the count of blocks",
    ),
    "another column": (
        STORED + "last_block of 4 at block % 4\nr[0] = y0[(block + 1) % 4 * 128 + id]",
        16,
        r"y0\[\d+\], of blocks with other counters",
    ),
    "one result of all columns": (
        STORED + "last_block of 4 at block % 4\ny0[2048 + id] = 1.0:f32",
        16,
        r"y0\[2048\], of the last blocks of two counters",
    ),
    "a result that another column reads": (
        STORED + "last_block of 4 at block % 4\n"
        "y0[2048 + block % 4 * 128 + id] = 1.0:f32\nbarrier block\nr[0] = y0[2048 + id]",
        16,
        r"y0\[2048\], of the last blocks of two counters",
    ),
    "a result of the block itself": (
        STORED + "last_block of 4 at block % 4\ny0[block * 128 + id] = 0.0:f32",
        16,
        r"y0\[\?\] behind a count: what a block does there depends on which one it is",
    ),
    "an index that is not understood": (
        STORED + "last_block of 16 at 0\nr[0] = y0[id * n0]",
        16,
        r"y0\[\?\] behind a count: indices that are not understood",
    ),
    "two counts": (
        STORED + "last_block of 16 at 0\ny0[id] = 0.0:f32\nlast_block of 16 at 0\ny0[id] = 0.0:f32",
        16,
        r"y0: blocks are counted twice",
    ),
}


@pytest.mark.parametrize("name", LAST_BLOCK_RACES)
def test_races_behind_a_count_are_reported(name: str) -> None:
    """The message names the error in the count, or the element of two counters."""
    body, blocks, message = LAST_BLOCK_RACES[name]
    sizes: Any = (Size.symbol("m"),) if "n0" in body else (100,)
    with pytest.raises(CodeGenError, match=message):
        check(body, blocks, sizes, head=COUNTED)
