"""The parser of the text form of loop IR, which `passkit.ir.text` describes."""

from __future__ import annotations

import json

from passkit.ast.expr import Const, Expr, Var
from passkit.ast.folds import left, right
from passkit.ir.expression_parser import ExprParser
from passkit.ir.loop import (
    Assign,
    Barrier,
    BarrierScope,
    Bind,
    CachePolicy,
    Declare,
    DivideVector,
    Fence,
    For,
    If,
    KernelIR,
    LastBlock,
    LaunchShape,
    LetStmt,
    LoopBuffer,
    PrepareDivisor,
    ReduceStmt,
    Return,
    Stmt,
    StorageScope,
    StoreStmt,
    VectorLoad,
    VectorStore,
    WarpReduce,
)
from passkit.ir.tokens import ir_tokens
from passkit.values.dtype import DType, int64

KINDS = {"param": StorageScope.GLOBAL, **{s.value: s for s in StorageScope}}
"""The scope of a buffer by the word of its declaration."""


def parse_kernel_ir(text: str) -> KernelIR:
    """Return the kernel of a text that `passkit.ir.text.print_kernel_ir` may have written.

    Raises: ParseError with line and column where the text is no kernel.
    """
    parser = KernelParser(ir_tokens(text))
    kernel = parser.kernel()
    if parser.next.kind != "stop":
        raise parser.unexpected("the end of the text")
    return kernel


class KernelParser(ExprParser):
    """The parser of kernels and statements."""

    def kernel(self) -> KernelIR:
        """Read a kernel. Raises: ParseError where something else comes next."""
        self.ends()
        self.expect("kernel")
        launch = self.launch()
        self.expect("index")
        index_bits, comment = self.integer(), self.comment()
        self.end()
        self.buffers.clear()
        params: list[LoopBuffer] = []
        arrays: list[LoopBuffer] = []
        while word := self.accept(*KINDS):
            (params if word == "param" else arrays).append(self.buffer(KINDS[word]))
        sizes = self.listed("size")
        self.scope = dict.fromkeys(sizes, int64)
        aliased = frozenset(self.listed("aliased"))
        counters = self.integer() if self.accept("counters") else 0
        if counters:
            self.end()
        body = self._body()
        return KernelIR(
            tuple(params),
            sizes,
            tuple(arrays),
            body,
            launch,
            index_bits,
            aliased,
            comment,
            counters,
        )

    def launch(self) -> LaunchShape:
        """Read the threads of a block, and the blocks. Raises: ParseError for something else."""
        y, _, x = self.take("shape", "the threads of a block, such as 4x32").partition("x")
        self.expect("blocks")
        return LaunchShape(int(y), int(x), self.integer())

    def comment(self) -> str:
        """Read a comment in quotes; return an empty text if none comes next."""
        if self.next.kind != "string":
            return ""
        return str(json.loads(self.take("string", "")))

    def listed(self, word: str) -> tuple[str, ...]:
        """Read a line of names behind a word; it may be missing. Raises: ParseError otherwise."""
        if not self.accept(word):
            return ()
        names = self.names()
        self.end()
        return names

    def buffer(self, scope: StorageScope) -> LoopBuffer:
        """Read the declaration of a buffer. Raises: ParseError where something else comes next."""
        name = self.name()
        self.expect(":")
        dtype = self.dtype()
        self.expect("[")
        extent = self.extent()
        self.expect("]")
        is_written = bool(self.accept("written"))
        self.end()
        self.buffers[name] = dtype
        return LoopBuffer(name, dtype, scope, extent, is_written)

    def _body(self) -> tuple[Stmt, ...]:
        """Read statements in braces, whose definitions end with it.

        The line behind the closing brace ends, unless "else" follows. Raises: ParseError where
        something else comes next.
        """
        outer = dict(self.scope)
        self.expect("{")
        self.end()
        body: list[Stmt] = []
        while not self.accept("}"):
            body.append(self._statement())
        self.scope = outer
        if self.next.text != "else":
            self.end()
        return tuple(body)

    def _statement(self) -> Stmt:
        """Read a statement. Raises: ParseError where none comes next."""
        word, follows = self.next, self.tokens[min(self.at + 1, len(self.tokens) - 1)]
        is_line = word.kind == "name" and follows.text not in ("=", "[", ":")
        if is_line:
            if word.text == "for":
                return self._loop()
            if word.text == "if":
                return self._branch()
            statement = self._line(self.expect(*_LINES))
        else:
            statement = self._assignment()
        self.end()
        return statement

    def _line(self, word: str) -> Stmt:
        """Read a statement of one line that begins with a word.

        Raises: ParseError where something else comes next.
        """
        match word:
            case "let" | "index" | "var":
                var, value = self._definition()
                if word == "var":
                    return Declare(var, value)
                return LetStmt(var, value, is_index=word == "index")
            case "load":
                target, at = self._element()
                buffer, index, width = self._other_element()
                return VectorLoad(target, at, buffer, index, width, self.choice(CachePolicy))
            case "store":
                buffer, index = self._element()
                source, at, width = self._other_element()
                is_stream = bool(self.accept("stream"))
                return VectorStore(buffer, index, source, at, width, is_stream)
            case "reduce":
                return self._reduce()
            case "warp_reduce":
                var = self._variable()
                return WarpReduce(var, *self._combine(var.dtype))
            case "divisor":
                name = self.name()
                self.expect("=")
                return PrepareDivisor(name, self._used())
            case "divide":
                target = self.name()
                self.expect("=")
                source = self.name()
                self.expect("by")
                return DivideVector(target, source, self._divisor())
            case "barrier":
                return Barrier(self.choice(BarrierScope))
            case "fence":
                return Fence()
            case "last_block":
                self.expect("of")
                count = self.integer()
                self.expect("at")
                return LastBlock(self.expr(), count)
        return Return()

    def _assignment(self) -> Stmt:
        """Read an assignment or store. Raises: ParseError where something else comes next."""
        self.take("name", "a statement")
        self.at -= 1
        if self.tokens[self.at + 1].text == "[":
            buffer, index = self._element()
            self.expect("=")
            value = self.expr()
            return StoreStmt(buffer, index, value, bool(self.accept("stream")))
        var = self._used()
        self.expect("=")
        return Assign(var, self.expr())

    def _used(self) -> Var:
        """Read a variable that is defined, or has a dtype. Raises: ParseError otherwise."""
        token = self.next
        name = self.take("name", "a statement")
        dtype = self.dtype() if self.accept(":") else self.scope.get(name)
        if dtype is None:
            raise self.error(f"variable {name!r} is not defined", token)
        return Var(name, dtype)

    def _variable(self) -> Var:
        """Read a variable and its dtype. Raises: ParseError where something else comes next."""
        name = self.name()
        self.expect(":")
        return Var(name, self.dtype())

    def _definition(self) -> tuple[Var, Expr]:
        """Read the definition of a variable. Raises: ParseError for something else."""
        var = self._variable()
        self.expect("=")
        value = self.expr()
        self.scope[var.name] = var.dtype
        return var, value

    def _element(self) -> tuple[str, Expr]:
        """Read a buffer and an index. Raises: ParseError where something else comes next."""
        name = self.name()
        self.expect("[")
        index = self.expr()
        self.expect("]")
        return name, index

    def _other_element(self) -> tuple[str, Expr, int]:
        """Read the other side of a vector access and its width. Raises: ParseError otherwise."""
        self.expect("=")
        name, index = self._element()
        self.expect("width")
        return name, index, self.integer()

    def _reduce(self) -> ReduceStmt:
        """Read a reduction. Raises: ParseError where something else comes next."""
        var, value = self._definition()
        self.expect("from")
        token = self.next
        identity = self.expr()
        if not isinstance(identity, Const):
            raise self.error(f"the identity of {var.name} is no literal", token)
        return ReduceStmt(var, value, identity, *self._combine(var.dtype))

    def _divisor(self) -> str | Const:
        """Read a literal or the name of a divisor. Raises: ParseError for something else."""
        if self.next.kind == "name" and self.next.text not in ("true", "false", "bits"):
            return self.name()
        token = self.next
        divisor = self.expr()
        if not isinstance(divisor, Const):
            raise self.error("a divisor is a name or a literal, got an expression", token)
        return divisor

    def _combine(self, dtype: DType) -> tuple[Expr, int]:
        """Read how a reduction combines two values, and over how many threads.

        Raises: ParseError where something else comes next.
        """
        self.expect("by")
        outer, self.scope = self.scope, {v.name: dtype for v in (left(dtype), right(dtype))}
        combine = self.expr()
        self.scope = outer
        self.expect("lanes")
        return combine, self.integer()

    def _loop(self) -> For:
        """Read a loop. Raises: ParseError where something else comes next."""
        self.expect("for")
        bind = self.choice(Bind)
        name = self.name()
        dtype = self.dtype() if self.accept(":") else int64
        self.expect("=")
        start = self.expr()
        self.expect("to")
        stop = self.expr()
        step = self.integer() if self.accept("step") else 1
        outer = dict(self.scope)
        self.scope[name] = dtype
        body = self._body()
        self.scope = outer
        return For(Var(name, dtype), start, stop, bind, body, step)

    def _branch(self) -> If:
        """Read a branch. Raises: ParseError where something else comes next."""
        self.expect("if")
        follows = self.tokens[self.at + 1]
        is_condition = follows.kind == "mark" and follows.text not in ("(", "@", "-", "~")
        is_peeled = not is_condition and bool(self.accept("peeled"))
        condition = self.expr()
        body = self._body()
        otherwise = self._body() if self.accept("else") else ()
        return If(condition, body, otherwise, is_peeled)


_LINES = (
    "let",
    "index",
    "var",
    "load",
    "store",
    "reduce",
    "warp_reduce",
    "divisor",
    "divide",
    "barrier",
    "fence",
    "last_block",
    "return",
)
"""The first words of statements of one line."""
