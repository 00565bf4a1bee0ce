"""The text form of loop IR.

    kernel 4x32 blocks 12 index 32
    param x0: f32[1024*n]
    param y0: f32[1024*n] written
    register x0_r: f32[32] written
    size n0
    {
      index row: i64 = @grid * 4 + @thread_y
      if row >= n0 {
        return
      }
      for unroll u = 0 to 8 {
        load x0_r[u * 4] = x0[row * 1024 + u * 128] width 4 stream
      }
    }

A statement ends with its line. ``let`` and ``index`` are `LetStmt`, the latter of index arithmetic,
and ``var`` is `Declare`. Literals without a dtype are int64 or bool; variables, elements and
results have the dtype that their definition, buffer or operands give, where none is written behind
a colon. ``@inf`` and ``@nan`` are floats, ``@grid``, ``@thread_y`` and ``@thread_x`` indices of
block and thread, ``bits(…)`` a literal by the bytes of its value.

`print_kernel_ir` and `parse_kernel_ir` are inverse to each other: ``parse(print(k)) == k``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from passkit.ast.expr import (
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    Fixed,
    Load,
    Select,
    SizeOf,
    Unary,
    Var,
    const,
)
from passkit.ast.folds import left, right
from passkit.errors import CodeGenError
from passkit.ir.expression_parser import COMPARISONS, LEVELS, WORDS
from passkit.ir.loop import (
    Assign,
    Barrier,
    Declare,
    DivideVector,
    Fence,
    For,
    If,
    IsAligned,
    KernelIR,
    LastBlock,
    LetStmt,
    LoopBuffer,
    PrepareDivisor,
    ReduceStmt,
    Return,
    Stmt,
    StoreStmt,
    ThreadIndex,
    VectorLoad,
    VectorStore,
    WarpReduce,
)
from passkit.ir.parser import parse_kernel_ir
from passkit.values.dtype import DType, bool_, int64
from passkit.values.size import Extent, Quotient

__all__ = ["parse_kernel_ir", "print_kernel_ir"]

ATOM = 9
NAME = re.compile(r"[A-Za-z_]\w*")


def print_kernel_ir(kernel: KernelIR) -> str:
    """Return the text form of a kernel, in any form.

    Raises: CodeGenError for an expression that loop IR does not have.
    """
    return _KernelPrinter(kernel).text()


def print_statement(statement: Stmt, kernel: KernelIR, scope: Mapping[str, DType]) -> str:
    """Return the text of one statement of a kernel, with that of the statements inside it.

    Variables that ``scope``, dtypes by name, does not have are written with their dtypes. Raises:
    CodeGenError for an expression that loop IR does not have.
    """
    printer = _KernelPrinter(kernel)
    printer.scope.update(scope)
    printer.statement(statement)
    return "\n".join(printer.lines)


def extent_text(extent: Extent) -> str:
    """Return an extent as text, in which each quotient stands in parentheses."""
    if isinstance(extent, int):
        return str(extent)
    terms = []
    for monomial, coefficient in extent.terms:
        factors = [] if coefficient == 1 and monomial else [str(coefficient)]
        factors += [_factor(a) for a in monomial]
        terms.append("*".join(factors))
    return " + ".join(terms)


def buffer_text(kind: str, b: LoopBuffer) -> str:
    """Return the declaration of a buffer; ``kind`` is "param" or the scope of an array."""
    written = " written" if b.written else ""
    return f"{kind} {b.name}: {b.dtype.short}[{extent_text(b.extent)}]{written}"


def _factor(atom: str | Quotient) -> str:
    """Return a factor of a term of an extent as text."""
    if isinstance(atom, str):
        return atom
    return f"(({extent_text(atom.numerator)})//({extent_text(atom.denominator)}))"


def literal_text(x: Const) -> str:
    """Return the text of a literal, of which the same bits are read again."""
    dtype = x.dtype
    suffix = "" if dtype in (int64, bool_) else f":{dtype.short}"
    if dtype is bool_ and x.bits in (b"\0", b"\1"):
        return "true" if x.bits == b"\1" else "false"
    if dtype.is_integer:
        return f"{int(x.value)}{suffix}"
    if dtype.is_float:
        text = str(x.value)
        if const(float(text), dtype) == x:
            return f"{text.replace('inf', '@inf').replace('nan', '@nan')}{suffix}"
    return f"bits({x.bits.hex()!r}):{dtype.short}".replace("'", '"')


class _KernelPrinter:
    """The text of one kernel while it grows.

    ``scope`` has the dtypes of the variables that are defined at the current statement.
    """

    def __init__(self, kernel: KernelIR) -> None:
        self.kernel = kernel
        self.buffers = {b.name: b.dtype for b in (*kernel.params, *kernel.arrays)}
        self.scope: dict[str, DType] = dict.fromkeys(kernel.sizes, int64)
        self.lines: list[str] = []
        self.depth = 0

    def text(self) -> str:
        """Return the text of the kernel."""
        kernel, launch = self.kernel, self.kernel.launch
        comment = f" {json.dumps(kernel.comment)}" if kernel.comment else ""
        head = f"kernel {launch.y}x{launch.x} blocks {launch.blocks} index {kernel.index_bits}"
        self._line(head + comment)
        for b in kernel.params:
            self._line(buffer_text("param", b))
        for b in kernel.arrays:
            self._line(buffer_text(b.scope.value, b))
        for words in ("size", kernel.sizes), ("aliased", sorted(kernel.aliased)):
            if words[1]:
                self._line(f"{words[0]} {', '.join(words[1])}")
        if kernel.counters:
            self._line(f"counters {kernel.counters}")
        self._line("{")
        self._body(kernel.body)
        self._line("}")
        return "\n".join(self.lines) + "\n"

    def _line(self, text: str) -> None:
        """Add a line."""
        self.lines.append("  " * self.depth + text)

    def _body(self, body: Iterable[Stmt]) -> None:
        """Print the statements of a body, whose definitions end with it."""
        outer = dict(self.scope)
        self.depth += 1
        for statement in body:
            self.statement(statement)
        self.depth -= 1
        self.scope = outer

    def statement(self, s: Stmt) -> None:
        """Print a statement with those inside it."""
        match s:
            case LetStmt(var, value) | Declare(var, value):
                is_index = isinstance(s, LetStmt) and s.is_index
                word = "index" if is_index else "let" if isinstance(s, LetStmt) else "var"
                self._line(f"{word} {var.name}: {var.dtype.short} = {self.expr(value)}")
                self.scope[var.name] = var.dtype
            case Assign(var, value):
                self._line(f"{self.expr(var)} = {self.expr(value)}")
            case StoreStmt(buffer, index, value, stream):
                text = f"{buffer}[{self.expr(index)}] = {self.expr(value)}"
                self._line(text + (" stream" if stream else ""))
            case VectorLoad():
                to, source = self.expr(s.at), self.expr(s.index)
                text = f"load {s.target}[{to}] = {s.buffer}[{source}]"
                self._line(f"{text} width {s.width} {s.access.value}")
            case VectorStore():
                to, source = self.expr(s.index), self.expr(s.at)
                text = f"store {s.buffer}[{to}] = {s.source}[{source}] width {s.width}"
                self._line(text + (" stream" if s.stream else ""))
            case ReduceStmt() | WarpReduce():
                self._reduction(s)
            case PrepareDivisor(name, value):
                self._line(f"divisor {name} = {self.expr(value)}")
            case DivideVector(target, source, divisor):
                by = literal_text(divisor) if isinstance(divisor, Const) else divisor
                self._line(f"divide {target} = {source} by {by}")
            case Barrier(scope):
                self._line(f"barrier {scope.value}")
            case Fence():
                self._line("fence")
            case LastBlock(counter, count):
                self._line(f"last_block of {count} at {self.expr(counter)}")
            case Return():
                self._line("return")
            case For() | If():
                self._nested(s)

    def _reduction(self, s: ReduceStmt | WarpReduce) -> None:
        """Print a reduction."""
        dtype = s.var.dtype
        operands = {v.name: v.dtype for v in (left(dtype), right(dtype))}
        if isinstance(s, ReduceStmt):
            value, identity = self.expr(s.value), literal_text(s.identity)
            text = f"reduce {s.var.name}: {dtype.short} = {value} from {identity}"
            self.scope[s.var.name] = dtype
        else:
            text = f"warp_reduce {s.var.name}: {dtype.short}"
        outer, self.scope = self.scope, operands
        self._line(f"{text} by {self.expr(s.combine)} lanes {s.lanes}")
        self.scope = outer

    def _nested(self, s: For | If) -> None:
        """Print a loop or a branch."""
        if isinstance(s, For):
            kind = "" if s.var.dtype is int64 else f": {s.var.dtype.short}"
            step = "" if s.step == 1 else f" step {s.step}"
            bounds = f"{self.expr(s.start)} to {self.expr(s.stop)}{step}"
            self._line(f"for {s.bind.value} {s.var.name}{kind} = {bounds} {{")
            outer = dict(self.scope)
            self.scope[s.var.name] = s.var.dtype
            self._body(s.body)
            self.scope = outer
        else:
            self._line(f"if {'peeled ' if s.is_peeled else ''}{self.expr(s.condition)} {{")
            self._body(s.body)
            if s.otherwise:
                self._line("} else {")
                self._body(s.otherwise)
        self._line("}")

    def expr(self, x: Expr, outer: int = 0) -> str:
        """Return the text of an expression inside one of precedence ``outer``."""
        text, level, dtype = self._leveled(x)
        if dtype is not x.dtype:
            enclosed = f"({text})" if level < ATOM else text
            return f"{enclosed}:{x.dtype.short}"
        return f"({text})" if level < outer else text

    def _leveled(self, x: Expr) -> tuple[str, int, DType | None]:
        """Return the text of an expression, its precedence and the dtype that is read from it."""
        match x:
            case Const():
                return literal_text(x), ATOM, x.dtype
            case Var(name):
                return name, ATOM, self.scope.get(name)
            case ThreadIndex(bind):
                return f"@{bind.value}", ATOM, int64
            case Binary(op, a, b):
                level = LEVELS[op]
                text = f"{self.expr(a, level)} {op} {self.expr(b, level + 1)}"
                return text, level, bool_ if op in COMPARISONS else a.dtype
            case Unary(op, operand):
                return f"{op}({self.expr(operand)})", ATOM, operand.dtype
            case Load(buffer, index):
                return f"{buffer}[{self.expr(index)}]", ATOM, self.buffers.get(buffer)
        return self._call(x), ATOM, _dtype_of_call(x)

    def _call(self, x: Expr) -> str:
        """Return the text of an expression that is written like a call.

        Raises: CodeGenError for an expression that loop IR does not have.
        """
        match x:
            case Cast(value, dtype):
                return f"cast({self.expr(value)}, {dtype.short})"
            case Select(c, a, b):
                return f"select({', '.join(map(self.expr, (c, a, b)))})"
            case SizeOf(size, fixed):
                suffix = "" if fixed is Fixed.AUTO else f", {fixed.value}"
                return f"size({extent_text(size)}{suffix})"
            case IsAligned(buffers, nbytes):
                return f"aligned({', '.join((str(nbytes), *buffers))})"
            case Call(name, args):
                plain = NAME.fullmatch(name) and name not in WORDS
                return f"{name if plain else json.dumps(name)}({', '.join(map(self.expr, args))})"
        raise CodeGenError(f"loop IR has no expression {type(x).__name__}")


def _dtype_of_call(x: Expr) -> DType | None:
    """Return the dtype that is read from an expression that is written like a call."""
    match x:
        case Cast():
            return x.dtype
        case Select(_, a):
            return a.dtype
        case SizeOf():
            return int64
        case IsAligned():
            return bool_
        case Call(_, args) if args:
            return args[0].dtype
    return None
