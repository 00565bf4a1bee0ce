"""Lanes of one number that fold other loops: these go inside them, and totals are registers.

Rows are read some at a time then, which a lane that has each of its totals in memory between two
rows would wait for one by one. Elements are joined in the order of the loops either way: no bit
depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrs import evolve

from passkit.ast import Load, Var
from passkit.ast.stage import Fold, Let, Loop, Prefetch, Statement, Store
from passkit.ast.tidy import expressions
from passkit.ast.walk import loads, variables
from passkit.dialects.bundles import Bundles, bundles_of
from passkit.ir.rewrite import substitute

if TYPE_CHECKING:
    from passkit.dialects.inner_loop import InnerLoop

TURNS = 4
"""How many turns of the innermost loop a compiler is asked to take at a time."""


def folds_inside(loop: InnerLoop, serial: Sequence[Loop]) -> bool:
    """Whether the loops around the lanes of a stage can go inside them.

    It must fold at places of memory that are each lane's own, and read nothing that it writes.
    """
    templates, statements = loop.dialect.bundles, _statements(loop)
    if templates is None or templates.computes or loop.body.aliased:
        return False
    if not serial or any(x.down for x in serial):
        return False
    folds = [s for s in statements if isinstance(s, Fold)]
    moving = {x.var for x in serial} | {s.var for s in statements if isinstance(s, Let)}
    if not all(isinstance(s, (Fold, Let, Store)) for s in statements):
        return False
    indices = [f.index for f in folds]
    if not folds or any(i is None or not moving.isdisjoint(variables(i)) for i in indices):
        return False
    written = [s.buffer for s in statements if isinstance(s, (Fold, Store))]
    read = {x.buffer for s in statements for e in expressions(s) for x in loads(e)}
    return len(set(written)) == len(written) and read.isdisjoint(written)


def print_folded(loop: InnerLoop, serial: Sequence[Loop]) -> None:
    """The lanes, each with all turns of the loops inside: bundles of them first, then the rest."""
    body, statements = loop.body, _statements(loop)
    stored = [_stored(s) for s in statements]
    found, rest = bundles_of(loop.loop, stored, body), None
    bundles = found if found is not None and _may_be(found, loop) else None
    if bundles is not None:
        rest = _print_bundles(evolve(bundles, turns=1), statements, loop, serial)
    loop.open(rest)
    folds = [s for s in statements if isinstance(s, Fold)]
    totals = {f.var: Var(f"{f.var.name}_total", f.var.dtype) for f in folds}
    for f in folds:
        kind, identity = loop.dialect.type_of(f.var.dtype), loop.scalars.expr(f.identity)
        body.line(f"{kind} {totals[f.var].name} = {identity};")
    _open(serial, loop)
    for s in statements:
        if isinstance(s, Fold):
            total = totals[s.var]
            joined = substitute(s.combine, {"a": total, "b": s.value})
            body.line(f"{total.name} = {loop.scalars.expr(joined)};")
        else:
            _print(s, loop)
    for _ in serial:
        body.close()
    for f in folds:
        assert f.buffer is not None and f.index is not None
        body.store(Store(f.buffer, f.index, totals[f.var]))
    body.close()
    if bundles is not None:
        body.close()


def _print_bundles(
    bundles: Bundles, statements: Sequence[Statement], loop: InnerLoop, serial: Sequence[Loop]
) -> Loop:
    """The lanes that have bundles; those that are left, whose scope is still open."""
    body, element = loop.body, _element(loop)
    folded = {s.buffer for s in statements if isinstance(s, Fold)}
    totals = [b for b in bundles.found if b.buffer in folded]
    turning = [b for b in bundles.found if b.buffer not in folded]
    pairs = list(zip(statements, bundles.statements, strict=True))

    bundles.open_lanes()
    for b in totals:
        bundles.declare(b)
    bundles.open_elements()
    for s, moved in pairs:
        if isinstance(s, Fold) and isinstance(moved, Store):
            body.store(evolve(moved, value=s.identity))
    bundles.close_elements()
    _open(serial, loop)
    for b in turning:
        bundles.take(b)
    bundles.open_elements()
    for s, moved in pairs:
        if isinstance(s, Fold) and isinstance(moved, Store):
            old = Load(moved.buffer, element, s.var.dtype)
            joined = substitute(s.combine, {"a": old, "b": moved.value})
            body.store(evolve(moved, value=joined))
        else:
            _print(moved, loop)
    bundles.close_elements()
    for b in turning:
        if b.stored:
            bundles.put(b)
    for _ in serial:
        body.close()
    for b in totals:
        bundles.put(b)
    return bundles.close_lanes()


def _may_be(bundles: Bundles, loop: InnerLoop) -> bool:
    """Whether totals are in bundles too, and sizes alone decide: what is loaded moves with rows."""
    folded = {s.buffer for s in _statements(loop) if isinstance(s, Fold)}
    apart = folded - {b.buffer for b in bundles.found}
    return bundles.by_size and not apart


def _element(loop: InnerLoop) -> Var:
    """The number of an element of a bundle."""
    return Var(f"{loop.loop.var.name}_k", loop.loop.var.dtype)


def _print(s: Statement, loop: InnerLoop) -> None:
    """A local of a lane, or what it stores."""
    if isinstance(s, Store):
        loop.body.store(s)
    else:
        assert isinstance(s, Let)
        loop.body.let(s)


def _open(serial: Sequence[Loop], loop: InnerLoop) -> None:
    """Begin the loops inside a lane, of which the innermost takes several turns at a time."""
    body, templates = loop.body, loop.dialect.bundles
    assert templates is not None
    for x in serial:
        if x is serial[-1]:
            body.line(f"{templates.unroll} {TURNS}")
        body.loop(loop.dialect.thread, x)


def _statements(loop: InnerLoop) -> list[Statement]:
    """What a stage does, without hints."""
    return [s for s in loop.stage.body if not isinstance(s, Prefetch)]


def _stored(s: Statement) -> Statement:
    """A fold as if its place were stored, and not read."""
    if not isinstance(s, Fold):
        return s
    assert s.buffer is not None and s.index is not None
    return Store(s.buffer, s.index, s.value)
