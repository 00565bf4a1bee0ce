"""The invariants of loop IR hold after every transform, and what breaks one is named."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import passkit as pk
from passkit.errors import CodeGenError
from passkit.ir.text import parse_kernel_ir
from passkit.ir.verify import IRForm, verify
from tests.nest_kernels import PASSES, graphs, program_of, programs

HEAD = """\
kernel 4x32 blocks 12 index 32
param x0: f32[4096]
param y0: f32[4096] written
register r: f32[8] written
shared s: f32[128] written
size n0
counters 4
{
  index ty: i64 = @thread_y
  index tx: i64 = @thread_x
  var total: f32 = 0.0:f32
"""


def test_kernels_of_the_corpus_are_valid() -> None:
    """The final form of every kernel has all invariants."""
    for p in programs():
        verify(p.ir, IRForm.FINAL, p.name)


def test_every_transform_keeps_the_invariants(tmp_path: Path) -> None:
    """Each form on the way, as CodeGen dumps it, has the invariants of its form."""
    for name, outputs in list(graphs())[::5]:
        folder = tmp_path / re.sub(r"\W", "_", name)
        pk.ApplyPasses(pk.Graph(outputs), PASSES, target="cuda", dump=folder)
        files = sorted(folder.glob("*.ir"))
        assert files, name
        for file in files:
            form = IRForm.FINAL if file == files[-1] else IRForm.SCALAR
            verify(parse_kernel_ir(file.read_text()), form, file.stem)


@pytest.mark.parametrize("columns", [5, "n"])
def test_a_number_of_columns_need_not_be_known(columns: Any) -> None:
    """A variance along the first axis, which shifts by the first row, has several stages."""
    x = pk.var("x", (200, columns))

    assert program_of("variance", [pk.ops.reduce_variance(x, axis=0)]) is not None
    assert program_of("sum", [pk.ops.reduce_sum(x, axis=0)]) is not None


def test_blocks_are_counted_by_counters_of_the_kernel() -> None:
    """A kernel without counters counts no blocks."""
    text = HEAD.replace("counters 4\n", "") + "  last_block of 4 at 1\n}\n"

    with pytest.raises(CodeGenError, match="blocks are counted, and the kernel has no counters"):
        verify(parse_kernel_ir(text), IRForm.FINAL, "test")


BROKEN = {
    "last_block of 0 at 0": "0 blocks are counted at a number of int64",
    "last_block of 4 at 1.0:f32": "4 blocks are counted at a number of float32",
    "last_block of 4 at tx": "threads of a block count it at different counters",
    "if tx < 3 {\n    last_block of 4 at 0\n  }": "only a part of the block comes to a count of bl",
    "if tx < 3 {\n    fence\n  }": "only a part of the block comes to a fence",
    "index k: i64 = m:i64": "m is used before it is defined",
    "index tx: i64 = 3": "tx is defined twice on a path",
    "index x0: i64 = 3": "x0 is also the name of a buffer",
    "let v: f32 = 3": "v is float32, its value int64",
    "index v: f32 = 3.0:f32": "the index v is float32",
    "let v: f32 = tx:f32": "tx is int64, and used as float32",
    "tx = 3": "tx changes, and no Declare in front of it defines it",
    "total = 3": "total is float32, its new value int64",
    "total = total + 3": r"'\+' of float32 and int64 gives float32",
    "total = -(total):f64": "'-' of float32 gives float64",
    "total = select(total, total, total)": "select of float32, float32 and float32 gives float32",
    "if tx {\n  }": "a condition is int64",
    "if aligned(16, s) {\n  }": "s is no parameter",
    "y0[tx] = x0[tx]:f64": "x0 is float32, and accessed as float64",
    "y0[total] = total": "an index of y0 is float32",
    "x0[tx] = total": "x0 is not declared as written",
    "z[tx] = total": "buffer z is not declared",
    "load z[0] = x0[tx * 4] width 4 keep": "buffer z is not declared",
    "r[tx] = total": "the index of the register array r is not known after unrolling",
    "for unroll k = 0 to 9 {\n    r[k] = total\n  }": r"r\[0 … 8\] exceeds its extent 8",
    "for unroll k = 0 to n0 {\n  }": "the unroll loop over k has bounds that are no literals",
    "for thread_x k = 0 to 32 {\n  }": "a loop is bound to thread_x",
    "for serial k: i32 = 0 to 32 {\n  }": "the bounds of k are no indices, or its step 1 not",
    "load s[0] = x0[tx * 4] width 4 keep": "a vector access moves from global to shared memory",
    "load r[0] = x0[tx * 4] width 4 keep": "no branch tests that x0 is aligned to 16 bytes",
    "load r[0] = s[tx * 2] width 4 shared": "4 does not divide the index of s by proof",
    "load r[1] = s[tx * 4] width 4 shared": "4 does not divide an index of r",
    "load r[0] = s[tx * 8] width 8 shared": "an access of 8 elements of 32 bytes together",
    "load r[0] = s[tx * 3] width 3 shared": "an access of 3 elements of 12 bytes together",
    "divide r = r by total": "total divides, and no PrepareDivisor in front of it defines it",
    "divisor d = total\n  divide r = x0 by d": "r and x0 are no register arrays of one extent and",
    "reduce m: f32 = total from 0.0:f32 by a + b lanes 32": "m is a Reduce",
    "warp_reduce total: f32 by a + b lanes 3": "3 lanes of a warp, in rows of 32 threads",
    "if tx < 4 {\n    warp_reduce total: f32 by a + b lanes 32\n  }": "only a part of the warp "
    "comes to a shuffle",
    "if tx < n0 {\n    return\n  }\n  barrier warp": "a part of the warp may have returned in "
    "front of a barrier of the warp",
    "if ty < n0 {\n    return\n  }\n  barrier block": "a part of the block may have returned in "
    "front of a barrier of the block",
    "for serial k = tx to n0 step 32 {\n    barrier warp\n  }": "only a part of the warp comes to",
    "if ty < n0 {\n    barrier block\n  }": "only a part of the block comes to a barrier of the",
}
ALLOWED = (
    "if ty < n0 {\n    return\n  }\n  barrier warp\n  warp_reduce total: f32 by a + b lanes 32",
    "if @grid < n0 {\n    return\n  }\n  barrier block",
    "for serial k = 0 to n0 {\n    barrier block\n  }",
    "if aligned(16, x0) {\n    load r[4] = x0[tx * 4] width 4 keep\n  }",
    "load r[0] = s[select(tx < n0, tx, n0) * 4] width 4 shared",
)


@pytest.mark.parametrize("line", BROKEN)
def test_a_violation_is_named(line: str) -> None:
    """The error says which pass, which form, what is wrong, and the statement."""
    kernel = parse_kernel_ir(HEAD + f"  {line}\n}}\n")

    with pytest.raises(CodeGenError, match=f"simplify: final form of loop IR: {BROKEN[line]}") as e:
        verify(kernel, IRForm.FINAL, "simplify")
    assert str(e.value).splitlines()[1] in {part.strip() for part in line.splitlines()}


@pytest.mark.parametrize("line", ALLOWED)
def test_what_all_threads_do_is_allowed(line: str) -> None:
    """Conditions that are the same in all threads that meet, and proven vectors, are no faults."""
    verify(parse_kernel_ir(HEAD + f"  {line}\n}}\n"), IRForm.FINAL, "simplify")


DECLARATIONS = {
    "register x0: f32[8] written": "x0 is declared twice",
    "shared t: f32[n] written": "shared array t has the extent n, not a literal",
    "size x0": "x0 is declared twice",
}


@pytest.mark.parametrize("line", DECLARATIONS)
def test_a_wrong_declaration_is_named(line: str) -> None:
    """Names are declared once, and arrays have literal extents."""
    text = f"kernel 4x32 blocks 12 index 32\nparam x0: f32[4]\n{line}\n{{\n}}\n"

    with pytest.raises(CodeGenError, match=f"build: scalar form of loop IR: {DECLARATIONS[line]}"):
        verify(parse_kernel_ir(text), IRForm.SCALAR, "build")


def test_a_block_that_is_no_whole_warps_has_no_shuffles() -> None:
    """A shuffle needs all lanes of a warp."""
    text = HEAD.replace("4x32", "3x16") + "  warp_reduce total: f32 by a + b lanes 16\n}\n"

    with pytest.raises(CodeGenError, match="a block of 48 threads has a warp that is not whole"):
        verify(parse_kernel_ir(text), IRForm.FINAL, "CodeGen")
