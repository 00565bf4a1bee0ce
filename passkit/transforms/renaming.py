"""Renaming: a kernel of loop IR with other names of variables and buffers."""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve

from passkit.ast.expr import Expr, Load, Var
from passkit.ast.tidy import replace_children
from passkit.ir.loop import (
    Assign,
    Declare,
    DivideVector,
    For,
    IsAligned,
    KernelIR,
    LetStmt,
    PrepareDivisor,
    ReduceStmt,
    Stmt,
    StoreStmt,
    VectorLoad,
    VectorStore,
    WarpReduce,
)
from passkit.ir.rewrite import map_bodies, map_expressions

Rename = Callable[[str], str]


def renamed_kernel(kernel: KernelIR, rename: Rename) -> KernelIR:
    """Return a kernel with other names of all variables, sizes and buffers.

    Args:
        kernel: the kernel.
        rename: returns the new name for a name. Operands of reductions are none of these.
    """

    def change(x: Expr) -> Expr:
        match x:
            case Var(name):
                return Var(rename(name), x.dtype)
            case Load(buffer, index):
                return Load(rename(buffer), change(index), x.dtype)
            case IsAligned(buffers, nbytes):
                return IsAligned(tuple(map(rename, buffers)), nbytes)
        return replace_children(x, change)

    def statements(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        changed = (_with_names(map_expressions(s, change), rename) for s in body)
        return tuple(map_bodies(s, statements) for s in changed)

    params, arrays = (
        tuple(evolve(b, name=rename(b.name)) for b in buffers)
        for buffers in (kernel.params, kernel.arrays)
    )
    return evolve(
        kernel,
        params=params,
        sizes=tuple(map(rename, kernel.sizes)),
        arrays=arrays,
        body=statements(kernel.body),
        aliased=frozenset(map(rename, kernel.aliased)),
    )


def _with_names(s: Stmt, rename: Rename) -> Stmt:
    """Return a statement with other names of what it defines, changes and accesses."""
    match s:
        case LetStmt() | Declare() | Assign() | ReduceStmt() | WarpReduce() | For():
            return evolve(s, var=Var(rename(s.var.name), s.var.dtype))
        case StoreStmt():
            return evolve(s, buffer=rename(s.buffer))
        case VectorLoad():
            return evolve(s, buffer=rename(s.buffer), target=rename(s.target))
        case VectorStore():
            return evolve(s, buffer=rename(s.buffer), source=rename(s.source))
        case PrepareDivisor():
            return evolve(s, name=rename(s.name), value=Var(rename(s.value.name), s.value.dtype))
        case DivideVector():
            divisor = rename(s.divisor) if isinstance(s.divisor, str) else s.divisor
            names = {"target": rename(s.target), "source": rename(s.source)}
            return evolve(s, divisor=divisor, **names)
    return s
