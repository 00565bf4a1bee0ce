"""place_barriers: all threads of a block wait where one part reads or replaces another's values.

A barrier stands between two statements of the kernel's outermost level of which one writes a buffer
that the other one reads or writes. Inside such a statement threads meet in no element, or barriers
are there already; the check of races says so. A barrier without an access in front of it, since the
barrier before, orders nothing and is left out.
"""

from __future__ import annotations

from attrs import evolve

from passkit.ast.expr import Const
from passkit.ast.walk import loads
from passkit.ir.loop import (
    Barrier,
    BarrierScope,
    For,
    KernelIR,
    Stmt,
    StorageScope,
    StoreStmt,
    VectorLoad,
    VectorStore,
    expressions_of,
    walk_statements,
)


def place_barriers(kernel: KernelIR) -> KernelIR:
    """Return the kernel with the barriers between statements of its outermost level."""
    shared = {b.name for b in kernel.arrays if b.scope is StorageScope.SHARED}
    watched = shared | {b.name for b in kernel.params if b.written}
    read: set[str] = set()
    written: set[str] = set()
    out: list[Stmt] = []
    for statement in kernel.body:
        if isinstance(statement, Barrier):
            if read or written:
                out.append(statement)
            read, written = set(), set()
            continue
        reads, writes = accessed(statement)
        if not written.isdisjoint(reads | writes) or not read.isdisjoint(writes):
            out.append(Barrier(BarrierScope.BLOCK))
            read, written = set(), set()
        out.append(statement)
        if _ends_with_barrier(statement):
            read, written = set(), set()
            continue
        read |= reads & watched
        written |= writes & watched
    return evolve(kernel, body=tuple(out))


def _ends_with_barrier(statement: Stmt) -> bool:
    """Return whether all threads wait for each other at the end of a loop, which has iterations."""
    if not isinstance(statement, For) or not isinstance(statement.body[-1], Barrier):
        return False
    start, stop = statement.start, statement.stop
    if not isinstance(start, Const) or not isinstance(stop, Const):
        return False
    return start.integer < stop.integer


def accessed(statement: Stmt) -> tuple[set[str], set[str]]:
    """Return the names of the buffers that a statement reads, and of those that it writes."""
    reads: set[str] = set()
    writes: set[str] = set()
    for s in walk_statements((statement,)):
        reads |= {load.buffer for x in expressions_of(s) for load in loads(x)}
        if isinstance(s, VectorLoad):
            reads.add(s.buffer)
            writes.add(s.target)
        elif isinstance(s, VectorStore):
            reads.add(s.source)
            writes.add(s.buffer)
        elif isinstance(s, StoreStmt):
            writes.add(s.buffer)
    return reads, writes
