"""lower_reductions: reductions become partial results of threads, combined across threads.

Each thread reduces its own points in the order of its loops. The threads of a row then exchange
partial results by shuffles inside a warp; where a row has several warps, through shared memory. The
order depends on the number of threads of a row and nothing else.
"""

from __future__ import annotations

from attrs import evolve

from passkit.ast import Binary, Load
from passkit.ir.index import literal
from passkit.ir.loop import (
    WARP,
    Assign,
    Barrier,
    BarrierScope,
    Bind,
    Declare,
    For,
    If,
    KernelIR,
    LoopBuffer,
    ReduceStmt,
    Stmt,
    StorageScope,
    StoreStmt,
    ThreadIndex,
    WarpReduce,
    walk_statements,
)
from passkit.ir.rewrite import combined, map_bodies
from passkit.values import dtype as dt


def lower_reductions(kernel: KernelIR) -> KernelIR:
    """Return the kernel without `ReduceStmt`."""
    return _ReductionLowering(kernel).kernel_without_reductions()


class _ReductionLowering:
    """The rewriting of one kernel, which collects the shared arrays that it adds."""

    def __init__(self, kernel: KernelIR) -> None:
        self.kernel = kernel
        self.new_arrays: list[LoopBuffer] = []

    def kernel_without_reductions(self) -> KernelIR:
        """Return the rewritten kernel."""
        body = self._statements(self.kernel.body)
        return evolve(self.kernel, body=body, arrays=(*self.kernel.arrays, *self.new_arrays))

    def _statements(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Return statements of the kernel's outermost level, with reductions lowered.

        A reduction that several statements add to is combined behind the last one.
        """
        inside = [_reductions_in(statement) for statement in body]
        last = {r.var.name: k for k, reductions in enumerate(inside) for r in reductions}
        declared: set[str] = set()
        out: list[Stmt] = []
        for k, (statement, reductions) in enumerate(zip(body, inside, strict=True)):
            out += [Declare(r.var, r.identity) for r in reductions if r.var.name not in declared]
            declared |= {r.var.name for r in reductions}
            out.append(_accumulating(statement))
            for r in reductions:
                if last[r.var.name] == k:
                    out += self._combined(r)
        return tuple(out)

    def _combined(self, r: ReduceStmt) -> list[Stmt]:
        """Return the statements that combine the partial results of all threads of a row."""
        out: list[Stmt] = []
        if r.lanes > 1:
            out.append(WarpReduce(r.var, r.combine, min(r.lanes, WARP)))
        if r.lanes <= WARP:
            return out
        warps = r.lanes // WARP
        slots = f"{r.var.name}_warps"
        self.new_arrays.append(LoopBuffer(slots, r.var.dtype, StorageScope.SHARED, warps, True))
        warp = Binary("//", ThreadIndex(Bind.THREAD_X), literal(WARP), dt.int64)
        position = Binary("%", ThreadIndex(Bind.THREAD_X), literal(WARP), dt.int64)
        first = Binary("==", position, literal(0), dt.bool_)
        own = Binary("%", ThreadIndex(Bind.THREAD_X), literal(warps), dt.int64)
        out += [
            If(first, (StoreStmt(slots, warp, r.var),)),
            Barrier(BarrierScope.BLOCK),
            Assign(r.var, Load(slots, own, r.var.dtype)),
            WarpReduce(r.var, r.combine, warps),
        ]
        return out


def _reductions_in(statement: Stmt) -> list[ReduceStmt]:
    """Return the reductions in a statement, one for each variable."""
    reductions = [s for s in walk_statements((statement,)) if isinstance(s, ReduceStmt)]
    return list({r.var.name: r for r in reductions}.values())


def _accumulating(statement: Stmt) -> Stmt:
    """Return a statement with each `ReduceStmt` in it replaced by an assignment."""
    if isinstance(statement, ReduceStmt):
        return Assign(statement.var, combined(statement.combine, statement.var, statement.value))
    if isinstance(statement, (For, If)):
        return map_bodies(statement, lambda body: tuple(map(_accumulating, body)))
    return statement
