"""The invariants of loop IR, which hold after every transform.

In both forms:

- A name is defined once on a path, before it is used. The variable of a loop over blocks or threads
  is defined in the whole kernel, the result of a `ReduceStmt` behind the loops around it; several
  of them may add to one result. `Assign` and `WarpReduce` change variables of `Declare` only.
- Buffers are declared; arrays have a literal extent; only buffers that are written are stored to.
- The index of a REGISTER array consists of literals and unrolled variables, and is within the
  extent for all their values.
- A vector access has a width that is a power of two, at most 16 bytes, and an index that the width
  divides, which `passkit.ir.divisors` proves.
- Dtypes agree: those of operands, of a variable and its value, of an element and its buffer.

In the final form also:

- Loops are SERIAL or UNROLL; there is no `ReduceStmt`.
- A vector access to a parameter stands in a branch that `IsAligned` guards.
- All threads of a warp come to a `WarpReduce` and to a barrier of the warp, all threads of a block
  to a barrier of the block: neither an `If` or loop around it nor a `Return` in front of it may
  depend on the index of a thread in the warp, or in the block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum

from passkit.ast.expr import Binary, Const, Expr, Load, Select, Unary, Var, const
from passkit.ast.walk import walk
from passkit.errors import CodeGenError
from passkit.ir.divisors import divisor_of
from passkit.ir.loop import (
    ACCESS_NBYTES,
    WARP,
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
    ReduceStmt,
    Return,
    Stmt,
    StorageScope,
    StoreStmt,
    ThreadIndex,
    VectorLoad,
    VectorStore,
    WarpReduce,
    expressions_of,
    walk_statements,
)
from passkit.ir.plain_index import is_plain, plain_values
from passkit.ir.rewrite import variable_names
from passkit.ir.scope import VerifierScope, alignment_of
from passkit.ir.text import print_statement
from passkit.ir.uniformity import Varies, varies_among
from passkit.values.dtype import DType, bool_, int64

_THREADS = (Bind.GRID, Bind.THREAD_Y, Bind.THREAD_X)
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


class IRForm(Enum):
    """A form of loop IR, see `passkit.ir.loop`. What is not final yet counts as scalar."""

    SCALAR = "scalar"
    FINAL = "final"


def verify(kernel: KernelIR, form: IRForm, where: str) -> None:
    """Check the invariants of loop IR.

    Args:
        kernel: the kernel.
        form: the form that it has.
        where: the name of the transform that made it, for the error.

    Raises: CodeGenError with the first violation, and the statement where it is.
    """
    problem = next(violations(kernel, form), None)
    if problem is not None:
        raise CodeGenError(f"{where}: {form.value} form of loop IR: {problem}")


def violations(kernel: KernelIR, form: IRForm) -> Iterator[str]:
    """Yield the violations of the invariants of a form, each with its statement."""
    return _Verifier(kernel, form).violations()


class _Verifier:
    """The walk over one kernel.

    ``left`` says among which threads it differs whether they have returned, ``reduced`` has the
    results of `ReduceStmt` so far.
    """

    def __init__(self, kernel: KernelIR, form: IRForm) -> None:
        self.kernel, self.form = kernel, form
        self.buffers = {b.name: b for b in (*kernel.params, *kernel.arrays)}
        self.left = Varies.BLOCKS
        self.reduced: set[str] = set()

    def violations(self) -> Iterator[str]:
        """Yield the violations."""
        kernel = self.kernel
        names = [b.name for b in (*kernel.params, *kernel.arrays)] + list(kernel.sizes)
        for name in sorted({n for n in names if names.count(n) > 1}):
            yield f"{name} is declared twice"
        for b in kernel.arrays:
            if not isinstance(b.extent, int) or b.extent <= 0:
                yield f"{b.scope.value} array {b.name} has the extent {b.extent}, not a literal"
        scope = VerifierScope()
        for name in kernel.sizes:
            scope.dtypes[name], scope.varies[name] = int64, Varies.BLOCKS
        for s in walk_statements(kernel.body):
            if isinstance(s, For) and s.bind in _THREADS:
                scope.dtypes[s.var.name] = int64
                scope.varies[s.var.name] = self._varies(ThreadIndex(s.bind), scope)
        yield from self._body(kernel.body, scope)

    def _body(self, body: Sequence[Stmt], scope: VerifierScope) -> Iterator[str]:
        """Yield the violations of statements, whose definitions are added to ``scope``."""
        for statement in body:
            for problem in self._statement(statement, scope):
                is_new = "\n" not in problem
                yield f"{problem}, in\n{self._shown(statement, scope)}" if is_new else problem
            inside = walk_statements((statement,)) if self.form is IRForm.SCALAR else ()
            for s in inside:
                if isinstance(s, ReduceStmt) and s is not statement:
                    scope.dtypes[s.var.name] = s.var.dtype
                    scope.varies[s.var.name] = Varies.THREADS

    def _shown(self, statement: Stmt, scope: VerifierScope) -> str:
        """Return the first lines of a statement's text."""
        lines = print_statement(statement, self.kernel, scope.dtypes).splitlines()
        return "\n".join(lines[:6] + ["…"] * (len(lines) > 6))

    def _statement(self, s: Stmt, scope: VerifierScope) -> Iterator[str]:
        """Yield the violations of a statement; its definition is added to ``scope``."""
        for x in expressions_of(s):
            yield from self._expression(x, scope)
        match s:
            case LetStmt(var, value) | Declare(var, value):
                if var.dtype is not value.dtype:
                    yield f"{var.name} is {var.dtype}, its value {value.dtype}"
                yield from self._defined(var, scope, self._varies(value, scope))
                if isinstance(s, LetStmt) and s.is_index and var.dtype is not int64:
                    yield f"the index {var.name} is {var.dtype}"
                if isinstance(s, LetStmt):
                    scope.values[var.name] = value
                else:
                    scope.changing.add(var.name)
                    scope.varies[var.name] = Varies.THREADS
            case Assign(var, value):
                yield from self._changed(var, value.dtype, scope)
            case StoreStmt(name, index, value):
                yield from self._access(name, index, 1, value.dtype, scope, is_store=True)
            case VectorLoad() | VectorStore():
                yield from self._vector(s, scope)
            case ReduceStmt(var):
                yield from self._reduce(s, scope)
            case WarpReduce(var, combine, lanes):
                yield from self._changed(var, combine.dtype, scope)
                yield from self._warp_reduce(lanes, scope)
            case PrepareDivisor(name, value):
                yield from self._defined(Var(name, value.dtype), scope, Varies.THREADS)
                scope.divisors.add(name)
            case DivideVector():
                yield from self._divide(s, scope)
            case Barrier(barrier):
                yield from self._meeting(f"a barrier of the {barrier.value}", barrier, scope)
            case Fence():
                yield from self._meeting("a fence", BarrierScope.BLOCK, scope)
            case LastBlock():
                yield from self._last_block(s, scope)
            case Return():
                self.left = max(self.left, scope.control)
            case For() | If():
                yield from self._nested(s, scope)

    def _nested(self, s: For | If, scope: VerifierScope) -> Iterator[str]:
        """Yield the violations of a loop or a branch."""
        if isinstance(s, If):
            if s.condition.dtype is not bool_:
                yield f"a condition is {s.condition.dtype}"
            varies = self._varies(s.condition, scope)
            before = self.left
            yield from self._body(s.body, scope.inner(varies, alignment_of(s.condition)))
            after, self.left = self.left, before
            yield from self._body(s.otherwise, scope.inner(varies))
            self.left = max(self.left, after)
            return
        if self.form is IRForm.FINAL and s.bind not in (Bind.SERIAL, Bind.UNROLL):
            yield f"a loop is bound to {s.bind.value}"
        varies = max(self._varies(s.start, scope), self._varies(s.stop, scope))
        if s.bind in _THREADS:
            varies = self._varies(ThreadIndex(s.bind), scope)
        if (s.var.dtype, s.start.dtype, s.stop.dtype) != (int64, int64, int64) or s.step < 1:
            yield f"the bounds of {s.var.name} are no indices, or its step {s.step} not positive"
        inner = scope.inner(Varies.BLOCKS if s.bind in _THREADS else varies)
        if s.bind not in _THREADS:
            yield from self._defined(s.var, inner, varies)
        if s.bind in (Bind.UNROLL, Bind.VECTOR):
            if isinstance(s.start, Const) and isinstance(s.stop, Const):
                values = range(s.start.integer, s.stop.integer, max(1, s.step))
                inner.unrolled[s.var.name] = values
            else:
                yield f"the {s.bind.value} loop over {s.var.name} has bounds that are no literals"
        else:
            inner.values[s.var.name] = Binary("+", s.start, const(s.step, int64), int64)
        yield from self._body(s.body, inner)

    def _last_block(self, s: LastBlock, scope: VerifierScope) -> Iterator[str]:
        """Yield the violations of a place where all blocks but the last one end."""
        yield from self._meeting("a count of blocks", BarrierScope.BLOCK, scope)
        if s.counter.dtype is not int64 or s.count < 1:
            yield f"{s.count} blocks are counted at a number of {s.counter.dtype}"
        if not self.kernel.counters:
            yield "blocks are counted, and the kernel has no counters"
        if self._varies(s.counter, scope) > Varies.BLOCKS:
            yield "threads of a block count it at different counters"

    # Variables.

    def _defined(self, var: Var, scope: VerifierScope, varies: Varies) -> Iterator[str]:
        """Add a definition to ``scope``; yield a violation if the name is taken."""
        if var.name in scope.dtypes:
            yield f"{var.name} is defined twice on a path"
        if var.name in self.buffers:
            yield f"{var.name} is also the name of a buffer"
        scope.dtypes[var.name] = var.dtype
        scope.varies[var.name] = varies
        scope.values.pop(var.name, None)

    def _changed(self, var: Var, dtype: DType, scope: VerifierScope) -> Iterator[str]:
        """Yield the violations of a new value of dtype ``dtype`` for a variable."""
        if var.name not in scope.changing:
            yield f"{var.name} changes, and no Declare in front of it defines it"
        elif not scope.dtypes[var.name] is var.dtype is dtype:
            yield f"{var.name} is {scope.dtypes[var.name]}, its new value {dtype}"

    def _varies(self, x: Expr, scope: VerifierScope) -> Varies:
        """Return among which threads the value of an expression may differ."""
        return varies_among(x, self.kernel.launch, self.buffers, scope.varies, scope.values)

    # Expressions.

    def _expression(self, x: Expr, scope: VerifierScope) -> Iterator[str]:
        """Yield the violations in an expression, those of an operation before its operands'."""
        dtypes = scope.dtypes
        for y in walk(x):
            if isinstance(y, Const):
                continue
            if isinstance(y, Var):
                if y.name not in dtypes:
                    yield f"{y.name} is used before it is defined"
                elif dtypes[y.name] is not y.dtype:
                    yield f"{y.name} is {dtypes[y.name]}, and used as {y.dtype}"
                continue
            if isinstance(y, Binary):
                kind = y.a.dtype
                result = bool_ if y.op in _COMPARISONS else kind
                if kind is not y.b.dtype or y.dtype is not result:
                    yield f"'{y.op}' of {kind} and {y.b.dtype} gives {y.dtype}"
                continue
            match y:
                case Load(buffer, index, dtype):
                    yield from self._access(buffer, index, 1, dtype, scope)
                case Unary(op, a, dtype) if a.dtype is not dtype:
                    yield f"'{op}' of {a.dtype} gives {dtype}"
                case Select(c, a, b, dtype):
                    if c.dtype is not bool_ or not a.dtype is b.dtype is dtype:
                        yield f"select of {c.dtype}, {a.dtype} and {b.dtype} gives {dtype}"
                case IsAligned(names):
                    params = {b.name for b in self.kernel.params}
                    for name in names:
                        if name not in params:
                            yield f"{name} is no parameter"

    def _access(
        self,
        name: str,
        index: Expr,
        width: int,
        dtype: DType,
        scope: VerifierScope,
        is_store: bool = False,
    ) -> Iterator[str]:
        """Yield the violations of an access to ``width`` elements of a buffer."""
        buffer = self.buffers.get(name)
        if buffer is None:
            yield f"buffer {name} is not declared"
            return
        if buffer.dtype is not dtype:
            yield f"{name} is {buffer.dtype}, and accessed as {dtype}"
        if index.dtype is not int64:
            yield f"an index of {name} is {index.dtype}"
        if is_store and not buffer.written:
            yield f"{name} is not declared as written"
        if buffer.scope is StorageScope.REGISTER:
            yield from self._register(buffer, index, width, scope)

    def _register(
        self, buffer: LoopBuffer, index: Expr, width: int, scope: VerifierScope
    ) -> Iterator[str]:
        """Yield the violations of an access to a register array."""
        names = sorted(variable_names(index))
        if any(n not in scope.unrolled for n in names) or not is_plain(index):
            yield f"the index of the register array {buffer.name} is not known after unrolling"
            return
        values = plain_values(index, {name: scope.unrolled[name] for name in names})
        if not values:
            return
        first, last = min(values), max(values) + width - 1
        extent = buffer.extent
        if isinstance(extent, int) and not (first >= 0 and last < extent):
            yield f"{buffer.name}[{first} … {last}] exceeds its extent {extent}"
        if width > 1 and any(k % width for k in values):
            yield f"{width} does not divide an index of {buffer.name}"

    def _vector(self, s: VectorLoad | VectorStore, scope: VerifierScope) -> Iterator[str]:
        """Yield the violations of a vector access."""
        is_load = isinstance(s, VectorLoad)
        array = s.target if isinstance(s, VectorLoad) else s.source
        for name in (array, s.buffer):
            if name not in self.buffers:
                yield f"buffer {name} is not declared"
                return
        own, buffer = self.buffers[array], self.buffers[s.buffer]
        if own.scope is not StorageScope.REGISTER or buffer.scope is StorageScope.REGISTER:
            yield f"a vector access moves from {buffer.scope.value} to {own.scope.value} memory"
            return
        yield from self._access(array, s.at, s.width, buffer.dtype, scope, is_store=is_load)
        yield from self._access(s.buffer, s.index, s.width, own.dtype, scope, is_store=not is_load)
        nbytes = s.width * buffer.dtype.nbytes
        if s.width & (s.width - 1) or s.width < 1 or nbytes > ACCESS_NBYTES:
            yield f"an access of {s.width} elements of {nbytes} bytes together"
        elif divisor_of(s.index, scope.values) % s.width:
            yield f"{s.width} does not divide the index of {s.buffer} by proof"
        is_param = buffer.scope is StorageScope.GLOBAL and s.width > 1
        if is_param and self.form is IRForm.FINAL and scope.aligned.get(s.buffer, 0) < nbytes:
            yield f"no branch tests that {s.buffer} is aligned to {nbytes} bytes"

    def _divide(self, s: DivideVector, scope: VerifierScope) -> Iterator[str]:
        """Yield the violations of the division of a register array."""
        if isinstance(s.divisor, Const):
            dtype: DType | None = s.divisor.dtype
        else:
            dtype = scope.dtypes[s.divisor] if s.divisor in scope.divisors else None
        if dtype is None:
            yield f"{s.divisor} divides, and no PrepareDivisor in front of it defines it"
        arrays = [self.buffers.get(name) for name in (s.target, s.source)]
        kinds = {(b.scope, b.dtype, b.extent) if b else None for b in arrays}
        own = {(b.scope, b.dtype) for b in arrays if b}
        if dtype is not None and (len(kinds) > 1 or own != {(StorageScope.REGISTER, dtype)}):
            yield f"{s.target} and {s.source} are no register arrays of one extent and of {dtype}"

    # Threads that meet.

    def _reduce(self, s: ReduceStmt, scope: VerifierScope) -> Iterator[str]:
        """Yield the violations of a reduction."""
        if self.form is IRForm.FINAL:
            yield f"{s.var.name} is a Reduce"
        if not s.var.dtype is s.value.dtype is s.identity.dtype is s.combine.dtype:
            yield f"{s.var.name} is {s.var.dtype}, its value {s.value.dtype}"
        if s.var.name not in self.reduced:
            yield from self._defined(s.var, scope, Varies.THREADS)
        self.reduced.add(s.var.name)

    def _warp_reduce(self, lanes: int, scope: VerifierScope) -> Iterator[str]:
        """Yield the violations of a butterfly among ``lanes`` threads."""
        launch = self.kernel.launch
        if lanes < 2 or lanes & (lanes - 1) or WARP % lanes or launch.x % lanes:
            yield f"{lanes} lanes of a warp, in rows of {launch.x} threads"
        if launch.threads % WARP:
            yield f"a block of {launch.threads} threads has a warp that is not whole"
        yield from self._meeting("a shuffle", BarrierScope.WARP, scope)

    def _meeting(self, what: str, who: BarrierScope, scope: VerifierScope) -> Iterator[str]:
        """Yield the violations of a place that all threads of a warp or block come to."""
        if self.form is not IRForm.FINAL:
            return
        most = Varies.BLOCKS if who is BarrierScope.BLOCK else Varies.WARPS
        if scope.control > most:
            yield f"only a part of the {who.value} comes to {what}"
        elif self.left > most:
            yield f"a part of the {who.value} may have returned in front of {what}"
