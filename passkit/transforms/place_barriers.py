"""place_barriers: all threads of a block wait where one part reads or replaces another's values.

A barrier stands between two statements of the kernel's outermost level of which one writes a buffer
that the other one reads or writes. Inside such a statement threads meet in no element; the check of
races says so.
"""

from __future__ import annotations

from attrs import evolve

from passkit.ast.walk import loads
from passkit.ir.loop import (
    Barrier,
    BarrierScope,
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
        reads, writes = accessed(statement)
        if not written.isdisjoint(reads | writes) or not read.isdisjoint(writes):
            out.append(Barrier(BarrierScope.BLOCK))
            read, written = set(), set()
        read |= reads & watched
        written |= writes & watched
        out.append(statement)
    return evolve(kernel, body=tuple(out))


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
