"""The text form of loop IR: what is printed is read again, and what is no kernel is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.ast import (
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    Fixed,
    Load,
    Read,
    Select,
    SizeOf,
    Unary,
    Var,
    const,
    dt,
)
from passkit.errors import CodeGenError, ParseError
from passkit.ir.loop import (
    Assign,
    Barrier,
    BarrierScope,
    Bind,
    CachePolicy,
    Declare,
    DivideVector,
    For,
    If,
    IsAligned,
    KernelIR,
    LaunchShape,
    LetStmt,
    LoopBuffer,
    PrepareDivisor,
    ReduceStmt,
    Return,
    Stmt,
    StorageScope,
    StoreStmt,
    ThreadIndex,
    VectorLoad,
    VectorStore,
    WarpReduce,
)
from passkit.ir.text import parse_kernel_ir, print_kernel_ir
from passkit.values.size import Size
from tests.nest_kernels import PASSES, program, programs

DTYPES = (
    dt.bool_,
    dt.int8,
    dt.uint16,
    dt.int64,
    dt.float16,
    dt.float32,
    dt.float64,
    dt.complex64,
)
NAMES = ("x0", "row", "load", "index", "peeled", "inf", "for_1", "f32")
CALLED = ("exp", "select", "cast", "own fn")
BINARY = ("+", "-", "*", "/", "//", "%", "&", "|", "^", "<", "<=", ">", ">=", "==", "!=")
HEAD = "kernel 4x32 blocks 12 index 32\nparam x0: f32[8]\nsize n0\n"
OWN_TEXT = """\
kernel 2x32 blocks 7 index 64 "two rows"
param x0: f32[32*n]
param y0: f32[n] written
register x0_r: f32[1] written
shared slots: f32[64] written
size n0
aliased x0, y0
{
  index row: i64 = @grid * 2 + @thread_y
  if row >= n0 {
    return
  }
  load x0_r[0] = x0[row * 32 + @thread_x] width 1 changing
  var total: f32 = -@inf:f32
  for unroll k = 0 to 1 {
    total = maximum(total, x0_r[k])
  }
  warp_reduce total: f32 by maximum(a, b) lanes 32
  barrier warp
  if @thread_x == 0 & row < n0 {
    y0[row] = select(total > 0.5:f32, total, cast(3, f32)) stream
  } else {
    slots[@thread_x] = -(total)
  }
}
"""


def test_texts_of_kernels_are_read_again() -> None:
    """Parsing the text of a kernel gives the kernel, for all kernels of the corpus."""
    for p in programs():
        assert parse_kernel_ir(str(p.ir)) == p.ir, p.name


def test_a_kernel_reads_as_it_is_written() -> None:
    """A text by hand is what is printed of its kernel; the comment is kept."""
    kernel = parse_kernel_ir(OWN_TEXT)

    assert print_kernel_ir(kernel) == str(kernel) == OWN_TEXT
    assert kernel.comment == "two rows" and kernel.launch == LaunchShape(2, 32, 7)
    assert kernel.params[0].extent == Size.symbol("n") * 32


def test_each_transform_is_dumped(tmp_path: Path) -> None:
    """With the option dump, CodeGen writes the text of every form of a kernel, in order."""
    p = program("softmax3x1000")
    pk.ApplyPasses(p.graph, PASSES, target="cuda", dump=tmp_path)

    files = sorted(tmp_path.glob("*.ir"))
    names = [f.stem.partition(f"{p.kernel.name}_")[2] for f in files]
    assert names[0] == "build_loops" and names[-1] == "guard_alignment" and len(names) > 4
    forms = [parse_kernel_ir(f.read_text()) for f in files]
    assert [print_kernel_ir(k) for k in forms] == [f.read_text() for f in files]
    assert forms[-1] == p.ir
    assert any("reduce reduce_max_1: f32 = " in f.read_text() for f in files)


# Random kernels.


class Generator:
    """Draws loop IR that need not make sense, with every class and odd values."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def pick(self, choices: Any) -> Any:
        """Return one of several values."""
        return choices[int(self.rng.integers(len(choices)))]

    def pick_call(self, *choices: Callable[[], Any]) -> Any:
        """Return the value of one of several functions; the others are not called."""
        return self.pick(choices)()

    def extent(self) -> Any:
        """Return an extent, with symbols and quotients."""
        n, m = Size.symbol("n"), Size.symbol("m_1")
        return self.pick_call(
            lambda: 1,
            lambda: 40,
            lambda: n,
            lambda: n * 4 - m * 2 - 1,
            lambda: (n * 6) // 4 * 3 + 1,
            lambda: (n * m + 1) // (m + n) - 7,
        )

    def literal(self) -> Const:
        """Return a literal: numbers, infinities, NaNs of several bits, and -0.0."""
        dtype = self.pick(DTYPES)
        values = (0, 1, -1, 7, 0.1, -0.0, 1e-6, 3e4, float("inf"), -float("inf"), float("nan"))
        if self.rng.random() < 0.2 and dtype.is_float:
            bits = self.rng.integers(0, 256, dtype.nbytes, dtype=np.uint8).tobytes()
            return Const(bits, dtype)
        value = self.pick(values if dtype.kind in "fc" else values[:4])
        return const(value if dtype.kind != "u" else abs(value), dtype)

    def expr(self, depth: int) -> Expr:
        """Return an expression."""
        rng, inner = self.rng, lambda: self.expr(depth - 1)
        dtype = self.pick(DTYPES)
        if depth == 0:
            return self.pick_call(  # type: ignore[no-any-return]
                self.literal,
                lambda: Var(self.pick(NAMES), dtype),
                lambda: ThreadIndex(self.pick(list(Bind)), self.pick((dt.int64, dt.int8))),
                lambda: SizeOf(self.extent(), self.pick(list(Fixed))),
                lambda: IsAligned(("x0", "y0")[: int(rng.integers(3))], 16),
            )
        operand = inner()
        own = self.pick((dtype, operand.dtype))
        return self.pick_call(  # type: ignore[no-any-return]
            lambda: Binary(self.pick(BINARY), operand, inner(), own),
            lambda: Binary(self.pick(("<", "!=")), operand, inner(), dt.bool_),
            lambda: Unary(self.pick("-~"), operand, own),
            lambda: Call(self.pick(CALLED), (operand, inner()), own),
            lambda: Call("none", (), own),
            lambda: Cast(operand, own),
            lambda: Select(inner(), operand, inner(), own),
            lambda: Load(self.pick(NAMES), operand, own),
        )

    def statement(self, depth: int) -> Stmt:
        """Return a statement."""
        rng = self.rng
        var = Var(self.pick(NAMES), self.pick(DTYPES))
        x, y, name = self.expr(2), self.expr(2), self.pick(NAMES)
        count = int(rng.integers(3)) if depth else 0
        body = tuple(self.statement(depth - 1) for _ in range(count))
        width = int(2 ** rng.integers(4))
        return self.pick_call(  # type: ignore[no-any-return]
            lambda: LetStmt(var, x, bool(rng.integers(2))),
            lambda: Declare(var, x),
            lambda: Assign(var, x),
            lambda: StoreStmt(name, x, y, bool(rng.integers(2))),
            lambda: VectorLoad(name, x, self.pick(NAMES), y, width, self.pick(list(CachePolicy))),
            lambda: VectorStore(name, x, self.pick(NAMES), y, width, bool(rng.integers(2))),
            lambda: ReduceStmt(var, x, self.literal(), y, width),
            lambda: WarpReduce(var, x, width),
            lambda: PrepareDivisor(name, var),
            lambda: DivideVector(name, self.pick(NAMES), self.pick(NAMES)),
            lambda: DivideVector(name, self.pick(NAMES), self.literal()),
            lambda: Barrier(self.pick(list(BarrierScope))),
            Return,
            lambda: For(var, x, y, self.pick(list(Bind)), body, width),
            lambda: For(Var(var.name, dt.int64), x, y, self.pick(list(Bind)), body),
            lambda: If(x, body, body[:1], bool(rng.integers(2))),
        )

    def kernel(self) -> KernelIR:
        """Return a kernel."""
        buffers = [
            LoopBuffer(name, self.pick(DTYPES), StorageScope.GLOBAL, self.extent(), k % 2 == 0)
            for k, name in enumerate(("x0", "y0", "row"))
        ]
        arrays = [
            evolve(
                b,
                name=f"{b.name}_r",
                scope=self.pick((StorageScope.SHARED, StorageScope.REGISTER)),
            )
            for b in buffers
        ]
        body = tuple(self.statement(3) for _ in range(6))
        sizes, aliased = self.pick(((), ("n0",), ("n0", "n1"))), self.pick(((), ("x0", "y0")))
        shape = LaunchShape(int(self.rng.integers(1, 9)), 32, 3)
        return KernelIR(
            tuple(buffers),
            sizes,
            tuple(arrays),
            body,
            shape,
            self.pick((32, 64)),
            frozenset(aliased),
            self.pick(("", 'a "comment"\nof two lines')),
        )


@pytest.mark.parametrize("seed", range(8))
def test_texts_of_random_kernels_are_read_again(seed: int) -> None:
    """Parsing inverts printing for kernels of every class, also those without sense."""
    for k in range(40):
        kernel = Generator(1000 * seed + k).kernel()
        text = print_kernel_ir(kernel)
        again = parse_kernel_ir(text)

        assert again == kernel and again.comment == kernel.comment, text


# What is refused.


def test_an_expression_without_text_is_refused() -> None:
    """An expression that only planning has is named."""
    read = Read("x", (), dt.float32)
    kernel = parse_kernel_ir(OWN_TEXT)

    with pytest.raises(CodeGenError, match="loop IR has no expression Read"):
        print_kernel_ir(evolve(kernel, body=(LetStmt(Var("x", dt.float32), read),)))


START = "kernel 4x32 blocks 12 index 32"
REFUSED = {
    f"{START}\n{{\n  $\n}}": "line 3, column 3: unexpected character '\\$'",
    "kernel 4 blocks": "line 1, column 8: expected the threads of a block, such as 4x32, got '4'",
    "kernel 4x32 blocks x": "line 1, column 20: expected a whole number, got 'x'",
    "kernel 4x32 block 12": "line 1, column 13: expected 'blocks', got 'block'",
    f"{START}\n{{\n}}\nx": "line 4, column 1: expected the end of the text",
    f"{START} x": "line 1, column 32: expected the end of the line, got 'x'",
    f"{START}\n{{\n": "line 3, column 1: expected a statement, got the end of the text",
    f"{START}\nparam x0: f33[8]": "line 2, column 11: 'f33' is not an element",
    "let x: i64 = row": "line 5, column 14: variable 'row' is not defined; known: n0",
    "let x: f32 = x1[0]": "line 5, column 14: buffer 'x1' is not defined; known: x0",
    "row = 3": "line 5, column 1: variable 'row' is not defined",
    "let x: u8 = 300:u8": "line 5, column 13: 300 is not a value of u8",
    "let x: i64 = 0.5": "line 5, column 14: 0.5 is not a value of i64",
    'let x: f32 = bits("00"):f32': "line 5, column 19: '00' is not the value of a f32",
    "reduce x: f32 = 0.5:f32 from n0": "line 5, column 30: the identity of x is no literal",
    "divide x0 = x0 by 3 + n0": "line 5, column 19: a divisor is a name or a literal",
    "barrier grid": "line 5, column 9: expected 'warp' or 'block', got 'grid'",
    "let x: i64 = )": r"line 5, column 14: expected an expression, got '\)'",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_kernel_is_refused(text: str) -> None:
    """The error has line and column, what was needed and what was found."""
    with pytest.raises(ParseError, match=REFUSED[text]):
        parse_kernel_ir(text if text.startswith("kernel") else f"{HEAD}{{\n{text}\n}}\n")
