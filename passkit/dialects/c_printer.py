"""The printer of loop IR: one walk over the final form, one method per kind of statement.

It takes no decisions: the text follows from the IR alone, and is not edited afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from attrs import evolve, field, frozen

from passkit.ast import Binary, Call, Const, Expr, Load, Var, left, right
from passkit.ast.walk import walk
from passkit.dialects.base import Dialect
from passkit.dialects.expressions import ATOM, PRECEDENCE, UNARY, Scalars
from passkit.dialects.templates import QuotientTemplates
from passkit.errors import CodeGenError
from passkit.ir.loop import (
    Assign,
    Barrier,
    BarrierScope,
    Bind,
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
    Return,
    Stmt,
    StoreStmt,
    ThreadIndex,
    VectorLoad,
    VectorStore,
    WarpReduce,
    walk_statements,
)
from passkit.ir.rewrite import substitute
from passkit.values.dtype import int64

INDENT = "  "


@frozen
class LoopExpressions(Scalars):
    """Expressions of loop IR.

    Attributes:
        indices: the variables of index arithmetic, of 32 or 64 bits. Where one is a value,
            it is converted to 64 bits.
        threads: the texts of thread and block indices.
        as_integer: the template of the address of a pointer, as an integer.
    """

    indices: frozenset[str] = field(kw_only=True)
    threads: Mapping[Bind, str] = field(kw_only=True)
    as_integer: str = field(kw_only=True)

    @cached_property
    def of_values(self) -> LoopExpressions:
        """Return the printer of expressions outside of an index."""
        return evolve(self, inside=False) if self.inside else self

    def leveled(self, x: Expr) -> tuple[str, int]:
        """Return the text of an expression and its precedence."""
        match x:
            case Const() | Binary():
                pass
            case ThreadIndex(bind):
                text = self.threads[bind]
                return (text, ATOM) if self.inside else (self._as_value(text), UNARY)
            case IsAligned(buffers, nbytes):
                bits = " | ".join(self.as_integer.format(name=b) for b in buffers)
                return f"(({bits}) & {nbytes - 1}) == 0", PRECEDENCE["=="]
            case Call("near_reciprocal" | "reciprocal" as name, (a,)):
                return f"{name}({self.expr(a)})", ATOM
            case Var(name) if name in self.indices and not self.inside:
                return self._as_value(name), UNARY
        return super().leveled(x)

    def _as_value(self, text: str) -> str:
        """Return an index as a value of 64 bits."""
        return f"({self.dialect.type_of(int64)}){text}"

    def index(self, x: Expr, outer: int = 0) -> str:
        """Return the text of an index inside an expression of precedence ``outer``.

        One with a function or a load is computed with int64_t, as values are.
        """
        is_plain = not any(isinstance(part, (Call, Load)) for part in walk(x))
        return (self.of_indices if is_plain else self.of_values).expr(x, outer)

    def condition(self, x: Expr) -> str:
        """Return the text of a condition on indices."""
        return self.of_indices.expr(x)

    def pointer(self, buffer: str, index: Expr) -> str:
        """Return a pointer to an element of a buffer.

        A sum of two parts is added part by part: the first is a base that several accesses share.
        """
        if isinstance(index, Binary) and index.op == "+":
            a, b = self.index(index.a, PRECEDENCE["*"]), self.index(index.b, PRECEDENCE["*"])
            return f"{buffer} + {a} + {b}"
        text = self.index(index, PRECEDENCE["*"])
        return buffer if text == "0" else f"{buffer} + {text}"


def print_ir(kernel: KernelIR, name: str, dialect: Dialect) -> str:
    """Return the text of a kernel in final form.

    Args:
        kernel: the kernel.
        name: the name of its function.
        dialect: the language; it has types, literals and functions.

    Raises: CodeGenError for a statement that the final form, or the language, does not have.
    """
    return IRPrinter(kernel, dialect).text(name)


class IRPrinter:
    """The text of one kernel while it grows.

    Args:
        kernel: the kernel.
        dialect: the language.
        threads: the texts of thread and block indices; None for those of the language.
        barriers: the texts of barriers; None for those of the language.

    Raises: CodeGenError if the language has no loop IR.
    """

    def __init__(
        self,
        kernel: KernelIR,
        dialect: Dialect,
        threads: Mapping[Bind, str] | None = None,
        barriers: Mapping[BarrierScope, str] | None = None,
    ) -> None:
        self.kernel, self.dialect, self.loops = kernel, dialect, dialect.loop_templates
        self.barriers = self.loops.barriers if barriers is None else barriers
        self.index_type = self.loops.index_types[kernel.index_bits]
        self.scopes = {b.name: b.scope for b in (*kernel.params, *kernel.arrays)}
        self.dtypes = {b.name: b.dtype for b in (*kernel.params, *kernel.arrays)}
        indices = frozenset(_index_variables(kernel))
        self.exprs = LoopExpressions(
            dialect,
            kernel.sizes,
            frozenset(),
            {},
            indices=indices,
            threads=self.loops.threads if threads is None else threads,
            as_integer=self.loops.address,
        )
        self.exprs.positions.update(indices)
        self.lines: list[str] = []
        self.depth = 0

    def text(self, name: str) -> str:
        """Return the text of the function."""
        kernel, launch, loops = self.kernel, self.kernel.launch, self.loops
        params = [self._param(b) for b in kernel.params]
        params += [self._of_language("counters", loops.counters)] if kernel.counters else []
        params += [loops.size.format(name=n) for n in kernel.sizes]
        shape = {"threads": launch.threads, "x": launch.x, "y": launch.y, "blocks": launch.blocks}
        head = loops.kernel.format(name=name, params=", ".join(params), **shape)
        self._line(f"{head} {{")
        self.depth += 1
        for n in kernel.sizes:
            self._line(f"const {self.index_type} {n} = ({self.index_type}){n}_arg;")
        for b in kernel.arrays:
            self._line(self.array(b))
        self._body(kernel.body)
        self.depth -= 1
        self._line("}")
        return "\n".join(self.lines) + "\n"

    def body_lines(self) -> list[str]:
        """Return the lines of the statements alone."""
        self._body(self.kernel.body)
        return self.lines

    def _param(self, b: LoopBuffer) -> str:
        """Return the declaration of a parameter."""
        template = self.dialect.aliased if b.name in self.kernel.aliased else self.dialect.buffer
        const = "" if b.written else "const "
        return template.format(const=const, type=self.dialect.type_of(b.dtype), name=b.name)

    def array(self, b: LoopBuffer) -> str:
        """Return the declaration of an array."""
        kind = self.dialect.type_of(b.dtype)
        return self.loops.arrays[b.scope].format(type=kind, name=b.name, extent=b.extent)

    def _of_language(self, what: str, template: str) -> str:
        """Return a template. Raises: CodeGenError if the language has none of ``what``."""
        if not template:
            raise CodeGenError(f"dialect {self.dialect.name} has no {what} in loop IR")
        return template

    def _line(self, text: str) -> None:
        """Add a line."""
        self.lines.append(INDENT * self.depth + text)

    def _block(self, head: str, body: tuple[Stmt, ...]) -> None:
        """Print statements in braces behind a head."""
        self._line(f"{head} {{")
        self.depth += 1
        self._body(body)
        self.depth -= 1
        self._line("}")

    def _body(self, body: tuple[Stmt, ...]) -> None:
        """Print statements in order."""
        for statement in body:
            self._statement(statement)

    def _statement(self, s: Stmt) -> None:
        """Print a statement. Raises: CodeGenError if the final form does not have it."""
        x = self.exprs
        match s:
            case LetStmt(var, value) if var.name in x.indices:
                self._line(f"const {self.index_type} {var.name} = {x.index(value)};")
            case LetStmt(var, value):
                kind = self.dialect.type_of(var.dtype)
                self._line(f"const {kind} {var.name} = {x.expr(value)};")
            case Declare(var, value):
                kind = self.dialect.type_of(var.dtype)
                self._line(f"{kind} {var.name} = {x.expr(value)};")
            case Assign(var, value):
                self._line(f"{var.name} = {x.expr(value)};")
            case StoreStmt(buffer, index, value, stream):
                self._store(buffer, index, value, stream)
            case VectorLoad(target, to, buffer, index, width, access):
                template = (self.loops.load_one if width == 1 else "") or self.loops.loads[access]
                self._vector(template, buffer, index, width, to=x.pointer(target, to))
            case VectorStore(buffer, index, source, at, width, stream):
                several = self.loops.store_stream if stream else self.loops.store
                template = (self.loops.store_one if width == 1 else "") or several
                self._vector(template, buffer, index, width, source=x.pointer(source, at))
            case PrepareDivisor(name, value):
                self._line(self._quotients.prepare.format(name=name, value=value.name))
            case DivideVector(target, source, divisor):
                text = divisor if isinstance(divisor, str) else self.exprs.literal_divisor(divisor)
                texts = {"name": target, "x": source, "divisor": text}
                self._line(self._quotients.over_array.format(**texts))
            case WarpReduce():
                self._warp_reduce(s)
            case Barrier(scope):
                barrier = self.barriers.get(scope, "")
                self._line(self._of_language(f"barriers of a {scope.value}", barrier))
            case Fence():
                self._line(self.loops.fence)
            case LastBlock(counter, count):
                self._last_block(x.index(counter), count)
            case Return():
                self._line("return;")
            case For():
                self._loop(s)
            case If(condition, body, otherwise):
                self._branch(condition, body, otherwise)
            case _:
                raise CodeGenError(f"the final form of loop IR has no {type(s).__name__}")

    @property
    def _quotients(self) -> QuotientTemplates:
        """Return the templates of quotients. Raises: CodeGenError if the dialect has none."""
        if self.dialect.quotients is None:
            raise CodeGenError(f"dialect {self.dialect.name} has no templates of quotients")
        return self.dialect.quotients

    def _store(self, buffer: str, index: Expr, value: Expr, stream: bool) -> None:
        """Print the store of one element."""
        text = self.exprs.expr(value)
        if stream:
            at = self.exprs.pointer(buffer, index)
            self._line(self.loops.stream_one.format(at=at, value=text))
        else:
            self._line(f"{buffer}[{self.exprs.index(index)}] = {text};")

    def _vector(self, template: str, buffer: str, index: Expr, width: int, **texts: str) -> None:
        """Print a vector access to a buffer; ``texts`` have the pointer to the registers."""
        kind = self.dialect.type_of(self.dtypes[buffer])
        space, at = self.loops.spaces[self.scopes[buffer]], self.exprs.pointer(buffer, index)
        self._line(template.format(type=kind, space=space, at=at, width=width, **texts))

    def _warp_reduce(self, s: WarpReduce) -> None:
        """Print a butterfly of shuffles.

        A sum or product does not depend on the order of two numbers; any other function gets them
        in the same order in both threads, so that they have the same bits.
        """
        name, dtype = s.var.name, s.var.dtype
        kind, a, b = self.dialect.type_of(dtype), left(dtype), right(dtype)
        is_symmetric = isinstance(s.combine, Binary) and s.combine.op in ("+", "*")
        other = Var("other", dtype)
        operands: dict[str, Expr] = {a.name: s.var, b.name: other}
        self._line("#pragma unroll")
        self._line(f"for (int o = {s.lanes // 2}; o; o /= 2) {{")
        self.depth += 1
        shuffle = self._of_language("shuffles", self.loops.shuffle).format(name=name, o="o")
        self._line(f"const {kind} other = {shuffle};")
        if not is_symmetric:
            lower, upper = Var("lower", dtype), Var("upper", dtype)
            thread = self.exprs.threads[Bind.THREAD_X]
            self._line(f"const {kind} lower = {thread} & o ? other : {name};")
            self._line(f"const {kind} upper = {thread} & o ? {name} : other;")
            operands = {a.name: lower, b.name: upper}
        self._line(f"{name} = {self.exprs.expr(substitute(s.combine, operands))};")
        self.depth -= 1
        self._line("}")

    def _last_block(self, counter: str, count: int) -> None:
        """Print the end of all blocks but the last one.

        The fence behind the atomic addition, and the barrier, let all threads see what other blocks
        stored before they fenced and added.
        """
        for line in self.loops.last_block.format(
            counter=counter, count=f"{count - 1}u"
        ).splitlines():
            self._line(line)

    def _loop(self, s: For) -> None:
        """Print a loop. Raises: CodeGenError if it is neither serial nor unrolled."""
        if s.bind is Bind.UNROLL:
            self._line("#pragma unroll")
        elif s.bind is Bind.SERIAL:  # as many loads at a time as the schedule says, and no more
            self._line("#pragma unroll 1")
        else:
            raise CodeGenError(f"the final form of loop IR has no loop over {s.bind.value}")
        x, name = self.exprs, s.var.name
        step = f"++{name}" if s.step == 1 else f"{name} += {s.step}"
        start, stop = x.index(s.start), x.index(s.stop, PRECEDENCE["<"] + 1)
        head = f"for ({self.index_type} {name} = {start}; {name} < {stop}; {step})"
        self._block(head, s.body)

    def _branch(self, condition: Expr, body: tuple[Stmt, ...], otherwise: tuple[Stmt, ...]) -> None:
        """Print a branch; a single return stands in its line."""
        text = self.exprs.condition(condition)
        if body == (Return(),) and not otherwise:
            self._line(f"if ({text}) return;")
            return
        self._line(f"if ({text}) {{")
        self.depth += 1
        self._body(body)
        self.depth -= 1
        if otherwise:
            self._line("} else {")
            self.depth += 1
            self._body(otherwise)
            self.depth -= 1
        self._line("}")


def _index_variables(kernel: KernelIR) -> set[str]:
    """Return the names of the variables of index arithmetic."""
    names = set(kernel.sizes)
    for s in walk_statements(kernel.body):
        if isinstance(s, For) or (isinstance(s, LetStmt) and s.is_index):
            names.add(s.var.name)
    return names
