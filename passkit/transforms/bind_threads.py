"""bind_threads: replaces loops over blocks and threads by definitions of their variables."""

from __future__ import annotations

from attrs import evolve

from passkit.ast import Var
from passkit.ir.loop import Bind, For, KernelIR, LetStmt, Stmt, ThreadIndex, index_let
from passkit.ir.rewrite import map_bodies

_THREADS = (Bind.GRID, Bind.THREAD_Y, Bind.THREAD_X)


def bind_threads(kernel: KernelIR) -> KernelIR:
    """Return the kernel with each loop over blocks or threads replaced by its body.

    Their variables are defined once, at the begin of the kernel, as indices of block and thread.
    Loops of the same variable have the same extent, which is that of the launch.
    """
    bound: dict[str, LetStmt] = {}

    def statements(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for statement in body:
            if isinstance(statement, For) and statement.bind in _THREADS:
                var: Var = statement.var
                bound.setdefault(var.name, index_let(var, ThreadIndex(statement.bind)))
                out += statements(statement.body)
            else:
                out.append(map_bodies(statement, statements))
        return tuple(out)

    body = statements(kernel.body)
    return evolve(kernel, body=(*bound.values(), *body))
