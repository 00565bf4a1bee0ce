"""wait_in_blocks: all threads of a block wait, for languages in which warps do not by themselves.

A butterfly of shuffles becomes one through shared memory, with the same steps and the same bits,
and a barrier of a warp one of the block. To such a barrier all threads of a block must come. So a
thread without points does not return, and a branch for some warps does not contain the barrier:
what the threads do between barriers stands in branches instead.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve

from passkit.ast import Binary, Expr, Load, Select, Unary, Var
from passkit.ast.expr import const
from passkit.ast.walk import walk
from passkit.errors import CodeGenError
from passkit.ir.index import literal, plus, times
from passkit.ir.loop import (
    Assign,
    Barrier,
    BarrierScope,
    Bind,
    Declare,
    Fence,
    For,
    If,
    KernelIR,
    LastBlock,
    LetStmt,
    LoopBuffer,
    PrepareDivisor,
    Return,
    Stmt,
    StorageScope,
    StoreStmt,
    ThreadIndex,
    WarpReduce,
    expressions_of,
    walk_statements,
)
from passkit.ir.rewrite import combined
from passkit.ir.uniformity import Varies, varies_among
from passkit.values import dtype as dt
from passkit.values.dtype import DType

OPPOSITES = {">=": "<", ">": "<=", "<": ">=", "<=": ">", "==": "!=", "!=": "=="}
"""The comparison that holds where another does not, by operator."""


def wait_in_blocks(kernel: KernelIR) -> KernelIR:
    """Return a kernel in final form without shuffles and barriers of warps.

    A kernel that has none of them, and whose threads all come to its barriers, stays as it is.

    Raises: CodeGenError if only some threads go through a loop, or through one of two branches, in
    which they wait.
    """
    return _Rewriting(kernel).rewritten()


def _waits(statements: Iterable[Stmt]) -> bool:
    """Return whether threads wait for each other in some statements."""
    kinds = (Barrier, WarpReduce, Fence, LastBlock)
    return any(isinstance(s, kinds) for s in walk_statements(tuple(statements)))


def _opposite(condition: Expr) -> Expr:
    """Return the condition that holds where another one does not."""
    if (
        isinstance(condition, Binary)
        and condition.op in OPPOSITES
        and condition.a.dtype is dt.int64
    ):
        return Binary(OPPOSITES[condition.op], condition.a, condition.b, dt.bool_)
    return Unary("~", condition, dt.bool_)


def _both(a: Expr | None, b: Expr) -> Expr:
    """Return the condition that two hold; None is one that always does."""
    return b if a is None else Binary("&", a, b, dt.bool_)


class _Rewriting:
    """The rewriting of one kernel, with the shared arrays that it adds."""

    def __init__(self, kernel: KernelIR) -> None:
        self.kernel = kernel
        self.buffers = {b.name: b for b in (*kernel.params, *kernel.arrays)}
        self.exchanged: dict[DType, tuple[str, str]] = {}
        self.count = 0
        self.varies: dict[str, Varies] = dict.fromkeys(kernel.sizes, Varies.BLOCKS)
        self.values: dict[str, Expr] = {}

    def rewritten(self) -> KernelIR:
        """Return the rewritten kernel."""
        if not _waits(self.kernel.body):
            return self.kernel
        body = self._body(self.kernel.body, None)
        names = [(n, dtype) for dtype, pair in self.exchanged.items() for n in pair]
        threads = self.kernel.launch.threads
        new = (LoopBuffer(n, dtype, StorageScope.SHARED, threads, True) for n, dtype in names)
        return evolve(self.kernel, body=tuple(body), arrays=(*self.kernel.arrays, *new))

    def _body(self, body: tuple[Stmt, ...], active: Expr | None) -> list[Stmt]:
        """Return statements that all threads come to, and those where ``active`` holds execute.

        None is a condition that always holds.
        """
        out: list[Stmt] = []
        run: list[Stmt] = []

        def end_run() -> None:
            if run and active is not None:
                out.append(If(active, tuple(run)))
                run.clear()

        for number, s in enumerate(body):
            if _waits((s,)):
                end_run()
                out += self._waiting(s, active)
            elif self._is_return(s) and _waits(body[number + 1 :]):
                end_run()
                assert isinstance(s, If)
                active = _both(active, _opposite(s.condition))
            elif active is None:
                self._define(s)
                out.append(s)
            elif isinstance(s, (LetStmt, Declare)):
                self._define(s)
                end_run()
                if self._reads_parameters(s):
                    out.append(Declare(s.var, const(0, s.var.dtype)))
                    run.append(Assign(s.var, s.value))
                else:
                    out.append(s)
            elif isinstance(s, PrepareDivisor):
                out.append(s)
            else:
                run.append(s)
        end_run()
        return out

    def _waiting(self, s: Stmt, active: Expr | None) -> list[Stmt]:
        """Return a statement in which threads wait, as one that all threads come to.

        Raises: CodeGenError if only some go through a loop, or through one of two branches.
        """
        match s:
            case Barrier():
                return [Barrier(BarrierScope.BLOCK)]
            case WarpReduce():
                return self._exchange(s)
            case For(var, start, stop) if self._is_of_block(start) and self._is_of_block(stop):
                self.varies[var.name] = Varies.BLOCKS
                return [evolve(s, body=tuple(self._body(s.body, active)))]
            case If(condition, body, otherwise) if self._is_of_block(condition):
                inside, instead = (tuple(self._body(x, active)) for x in (body, otherwise))
                return [evolve(s, body=inside, otherwise=instead)]
            case If(condition, body, ()):
                return self._body(body, _both(active, condition))
        raise CodeGenError(f"only some threads of a block wait in a {type(s).__name__}")

    def _exchange(self, s: WarpReduce) -> list[Stmt]:
        """Return the steps of a butterfly through shared memory, of the whole block.

        Two arrays take turns, so that a step has one barrier; behind an odd number of steps there
        is another one, as the next butterfly begins with the first array again.
        """
        launch, dtype, out = self.kernel.launch, s.var.dtype, list[Stmt]()
        arrays = self._arrays(dtype)
        x = ThreadIndex(Bind.THREAD_X)
        line = times(ThreadIndex(Bind.THREAD_Y), launch.x) if launch.y > 1 else None
        step = 0
        while s.lanes >> step > 1:
            bit = s.lanes >> step + 1
            array, partner = arrays[step % 2], Binary("^", x, literal(bit), dt.int64)
            own, theirs = (x, partner) if line is None else (plus(line, x), plus(line, partner))
            other = self._variable("other", dtype)
            out += [
                StoreStmt(array, own, s.var),
                Barrier(BarrierScope.BLOCK),
                LetStmt(other, Load(array, theirs, dtype)),
            ]
            a: Expr = s.var
            b: Expr = other
            if not (isinstance(s.combine, Binary) and s.combine.op in ("+", "*")):
                high = Binary(
                    ">=", Binary("%", x, literal(2 * bit), dt.int64), literal(bit), dt.bool_
                )
                lower, upper = self._variable("lower", dtype), self._variable("upper", dtype)
                out.append(LetStmt(lower, Select(high, other, s.var, dtype)))
                out.append(LetStmt(upper, Select(high, s.var, other, dtype)))
                a, b = lower, upper
            out.append(Assign(s.var, combined(s.combine, a, b)))
            step += 1
        return [*out, Barrier(BarrierScope.BLOCK)] if step % 2 else out

    def _arrays(self, dtype: DType) -> tuple[str, str]:
        """Return the names of the shared arrays through which values of a dtype are exchanged."""
        if dtype not in self.exchanged:
            self.exchanged[dtype] = f"exchanged0_{dtype.short}", f"exchanged1_{dtype.short}"
        return self.exchanged[dtype]

    def _variable(self, name: str, dtype: DType) -> Var:
        """Return a new variable."""
        self.count += 1
        return Var(f"{name}{self.count}", dtype)

    @staticmethod
    def _is_return(s: Stmt) -> bool:
        """Return whether a statement ends some threads."""
        return isinstance(s, If) and s.body == (Return(),) and not s.otherwise

    def _define(self, s: Stmt) -> None:
        """Note among which threads the variable of a definition differs."""
        if isinstance(s, LetStmt):
            self.varies[s.var.name] = self._varies(s.value)
            self.values[s.var.name] = s.value

    def _varies(self, x: Expr) -> Varies:
        """Return among which threads the value of an expression differs."""
        return varies_among(x, self.kernel.launch, self.buffers, self.varies, self.values)

    def _is_of_block(self, x: Expr) -> bool:
        """Return whether an expression has one value in all threads of a block."""
        return self._varies(x) is Varies.BLOCKS

    def _reads_parameters(self, s: Stmt) -> bool:
        """Return whether a definition loads from a parameter, perhaps beyond its end."""
        loads = (y for x in expressions_of(s) for y in walk(x) if isinstance(y, Load))
        return any(self.buffers[y.buffer].scope is StorageScope.GLOBAL for y in loads)
