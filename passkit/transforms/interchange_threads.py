"""Reductions of threads along other loops: these go inside the loop over threads.

Totals are registers then, and a thread reads some rows at a time; with each of its totals in memory
between two rows it would wait for one after the other. Elements are combined in the order of the
loops either way: no bit depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from attrs import evolve

from passkit.ast import Load, Var
from passkit.ast.stage import Fold, Let, Loop, Prefetch, Stage, Statement, Store
from passkit.ast.tidy import loads_of
from passkit.ast.walk import variables
from passkit.ir.features import Features
from passkit.ir.loop import Assign, Declare
from passkit.ir.rewrite import substitute
from passkit.ir.threads import (
    AccessFor,
    ElementFor,
    OpenArray,
    SequentialFor,
    StoreArray,
    ThreadFor,
    ThreadStmt,
    element_of,
)
from passkit.transforms.thread_accesses import ThreadAccesses, access_for, element_loop
from passkit.transforms.vector_shape import vector_variables

UNROLL = 4
"""How many iterations of the innermost loop a compiler is asked to execute at a time."""


def can_interchange(stage: Stage, serial: Sequence[Loop], features: Features) -> bool:
    """Return whether the loops around the threads' loop of a stage can go inside it.

    It must reduce at places of memory that are each thread's own, and read nothing that it writes.
    ``serial`` are those loops; ``features`` says what the language offers.
    """
    accesses = features.accesses
    statements = [s for s in stage.body if not isinstance(s, Prefetch)]
    if accesses is None or accesses.vector_functions is not None:
        return False
    if not serial or any(x.down for x in serial):
        return False
    reductions = [s for s in statements if isinstance(s, Fold)]
    moving = {x.var for x in serial} | {s.var for s in statements if isinstance(s, Let)}
    if not all(isinstance(s, (Fold, Let, Store)) for s in statements):
        return False
    indices = [f.index for f in reductions]
    if not reductions or any(i is None or not moving.isdisjoint(variables(i)) for i in indices):
        return False
    written = [s.buffer for s in statements if isinstance(s, (Fold, Store))]
    read = {x.buffer for x in loads_of(statements)}
    return len(set(written)) == len(written) and read.isdisjoint(written)


def interchanged(
    loop: Loop,
    statements: Sequence[Statement],
    serial: Sequence[Loop],
    accesses_of: Callable[[Iterable[Statement]], ThreadAccesses | None],
) -> list[ThreadStmt]:
    """Return the loop over threads, each with all iterations of the loops inside.

    Elements of vector accesses come first, then the rest.

    Args:
        loop: the loop over threads.
        statements: the statements, without hints.
        serial: the loops that go inside.
        accesses_of: returns the vector accesses of the loop with some statements.
    """
    plain = ThreadFor(loop, _of_one_element(statements, serial))
    accesses = accesses_of([_stored(s) for s in statements])
    if accesses is None or not _are_totals_in_arrays(accesses, statements):
        return [plain]
    return [_with_accesses(accesses, statements, serial, plain)]


def _of_one_element(
    statements: Sequence[Statement], serial: Sequence[Loop]
) -> tuple[ThreadStmt, ...]:
    """Return the statements of an iteration: totals, the loops inside, and stores of totals."""
    reductions = [s for s in statements if isinstance(s, Fold)]
    totals = {f.var: Var(f"{f.var.name}_total", f.var.dtype) for f in reductions}
    inner: list[ThreadStmt] = []
    for s in statements:
        if isinstance(s, Fold):
            total = totals[s.var]
            inner.append(Assign(total, substitute(s.combine, {"a": total, "b": s.value})))
        else:
            inner.append(_local_or_store(s))
    stores = [
        Store(f.buffer, f.index, totals[f.var])
        for f in reductions
        if f.buffer is not None and f.index is not None
    ]
    return (
        *(Declare(totals[f.var], f.identity) for f in reductions),
        *_inside(serial, inner),
        *stores,
    )


def _with_accesses(
    accesses: ThreadAccesses,
    statements: Sequence[Statement],
    serial: Sequence[Loop],
    plain: ThreadFor,
) -> AccessFor:
    """Return the loop with vector accesses; ``plain`` is the loop without.

    Locals that all elements have in common come first: accesses may lie where they say.
    """
    element, varying = element_of(accesses.loop), vector_variables(statements, accesses.loop.var)
    reduced = {s.buffer for s in statements if isinstance(s, Fold)}
    totals = [a for a in accesses.arrays if a.buffer in reduced]
    others = [a for a in accesses.arrays if a.buffer not in reduced]
    begin: list[ThreadStmt] = []
    shared: list[ThreadStmt] = []
    steps: list[ThreadStmt] = []
    for s, moved in zip(statements, accesses.statements, strict=True):
        if isinstance(s, Fold) and isinstance(moved, Store):
            begin.append(evolve(moved, value=s.identity))
            old = Load(moved.buffer, element, s.var.dtype)
            step = substitute(s.combine, {"a": old, "b": moved.value})
            steps.append(evolve(moved, value=step))
        elif isinstance(s, Let) and s.var not in varying:
            shared.append(s)
        else:
            steps.append(_local_or_store(moved))
    inner: list[ThreadStmt] = [
        *shared,
        *(OpenArray(a, a.is_loaded) for a in others),
        _elements(accesses, steps),
        *(StoreArray(a) for a in others if a.is_stored),
    ]
    body: list[ThreadStmt] = [
        *(OpenArray(a, False) for a in totals),
        _elements(accesses, begin),
        *_inside(serial, inner),
        *(StoreArray(a) for a in totals),
    ]
    return access_for(accesses, body, plain)


def _elements(accesses: ThreadAccesses, body: Iterable[ThreadStmt]) -> ElementFor:
    return element_loop(accesses.loop, body, accesses.is_ragged)


def _are_totals_in_arrays(accesses: ThreadAccesses, statements: Iterable[Statement]) -> bool:
    """Return whether totals are in arrays, and sizes alone decide; addresses change with rows."""
    reduced = {s.buffer for s in statements if isinstance(s, Fold)}
    return accesses.is_by_size and reduced <= {a.buffer for a in accesses.arrays}


def _local_or_store(s: Statement) -> ThreadStmt:
    assert isinstance(s, (Let, Store))
    return s


def _inside(serial: Sequence[Loop], body: Iterable[ThreadStmt]) -> tuple[ThreadStmt, ...]:
    """Return the loops inside an iteration, of which the innermost is unrolled."""
    statements, unroll = tuple(body), UNROLL
    for x in reversed(serial):
        statements, unroll = (SequentialFor(x, statements, unroll),), 0
    return statements


def _stored(s: Statement) -> Statement:
    """Return a reduction as if its place were stored, and not read."""
    if not isinstance(s, Fold):
        return s
    assert s.buffer is not None and s.index is not None
    return Store(s.buffer, s.index, s.value)
