"""Lane loops in C with a few turns of another loop inside: what those fold stays in registers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve

from passkit.ast import Binary, Expr, Load, Var, size_of
from passkit.ast.stage import Fold, Let, Loop, Prefetch, Running, Statement, Store
from passkit.ast.walk import variables, walk
from passkit.dialects.totals import extreme_of, memory_of, partial_of, replaced
from passkit.ir.strides import Stride, moves_with, stride_of

if TYPE_CHECKING:
    from passkit.dialects.lane_loop import LaneLoop

BLOCK, SEVERAL, ASKING, WAITING = 16, 4, 4, 8
"""How many turns of a loop over a folded axis a vector takes at a time: of one array; of several,
whose rows must not push each other out of the first cache; where the rows of the next turns are
asked for meanwhile, and rows a power of two apart share its few places; and where they are known
not to, and each turn waits longer for the one before, as extremes do. Sums take their rows in the
same order wherever they are."""
SHARING = 4096
"""Rows so many bytes apart have the same places of the first cache."""


def may_block(loop: LaneLoop, serial: Loop) -> bool:
    """Whether a few turns of ``serial`` can go inside the lanes.

    What is divided by a number of its own in each turn had better not: its reciprocal would be
    taken for each vector. Nor had long rows of several arrays that are only folded: those are
    often a power of two apart, and would push each other out of the first cache.
    """
    body = loop.stage.body
    buffers = [f.buffer for f in body if isinstance(f, (Fold, Running))]
    if loop.lanes is None or not buffers or None in buffers or serial.down:
        return False
    if loop.loop.wide and not any(isinstance(s, Store) for s in body):
        rows = (x for x in _read_anew(loop, serial) if loop.lanes.step(x.index) != 0)
        if len({x.buffer for x in rows}) > 1:
            return False
    moving = {serial.var}
    for s in body:
        if isinstance(s, Let) and not moving.isdisjoint(variables(s.value)):
            moving.add(s.var)
    moving -= loop.varying
    values = (s.value for s in body if not isinstance(s, Prefetch))
    return not any(
        isinstance(x, Binary) and x.op == "/" and not moving.isdisjoint(variables(x.b))
        for value in values
        for x in walk(value)
    )


def print_blocked(loop: LaneLoop, serial: Loop) -> None:
    """The lanes, each with a few turns of the loop over a folded axis inside it."""
    assert loop.lanes is not None
    body, v, var = loop.body, loop.lanes.vectors, serial.var.name
    start, stop = loop.scalars.expr(serial.start), loop.scalars.expr(serial.stop)
    folds = {f.var: f for f in loop.stage.body if isinstance(f, Fold)}
    totals = {var: memory_of(f) for var, f in folds.items()}
    loop.lanes = evolve(loop.lanes, varying=loop.lanes.varying | totals.keys())
    turns = _num_turns(loop, serial)
    if not turns.isdigit():
        body.line(v.local.format(name=f"{var}_turns", value=turns))
        turns = f"{var}_turns"
    body.open(v.block.format(var=var, start=start, stop=stop, turns=turns))
    body.line(v.block_end.format(var=var, stop=stop, turns=turns))
    front = len(body.lines)
    loop.open([])
    for total in totals:
        identity = loop.lanes.splat(folds[total].identity)
        body.line(v.total.format(name=total.name, value=identity))
    scans = [s for s in loop.stage.body if isinstance(s, Running)]
    for s in scans:
        value = loop.lanes.expr(memory_of(s))
        body.line(v.total.format(name=partial_of(s).name, value=value))
    loop.lanes = evolve(loop.lanes, varying=loop.lanes.varying | set(map(partial_of, scans)))
    body.open(loop.dialect.thread.format(var=var, start=f"{var}_low", stop=f"{var}_high"))
    for statement in loop.stage.body:
        _turn(loop, statement)
    body.close()
    for s in scans:
        assert s.buffer is not None and s.index is not None
        loop.store(Store(s.buffer, s.index, partial_of(s)))
    for total, memory in totals.items():
        joined = replaced(folds[total].combine, {"a": memory, "b": total})
        loop.store(Store(memory.buffer, memory.index, joined))
    loop.close(front)
    body.close()


def _num_turns(loop: LaneLoop, serial: Loop) -> str:
    """How many turns a vector takes at a time."""
    body, rows = loop.stage.body, _read_anew(loop, serial)
    arrays = {x.buffer for x in rows}
    if len(arrays | {s.buffer for s in body if isinstance(s, Store)}) > 1:
        return str(SEVERAL)
    if not any(isinstance(s, Prefetch) for s in body):
        return str(BLOCK)
    if not any(isinstance(s, Fold) and extreme_of(s) for s in body):
        return str(ASKING)
    strides = {stride_of(x.index, serial.var, moves_with(serial.var)) for x in rows}
    return _of_extremes(loop, strides, SHARING // rows[0].dtype.nbytes)


def _of_extremes(loop: LaneLoop, strides: set[Stride | None], page: int) -> str:
    """The turns of extremes of rows, by how far these are from each other."""
    stride, *others = strides
    if others or stride is None or (isinstance(stride, int) and stride % page == 0):
        return str(ASKING)
    if isinstance(stride, int):
        return str(WAITING)
    step = stride if isinstance(stride, Expr) else size_of(stride)
    return f"{loop.scalars.expr(step % page)} ? {WAITING} : {ASKING}"


def _read_anew(loop: LaneLoop, serial: Loop) -> list[Load]:
    """The loads that read something else in each turn of a loop."""
    values = (s.value for s in loop.stage.body if not isinstance(s, Prefetch))
    loads = (x for value in values for x in walk(value) if isinstance(x, Load))
    return [x for x in loads if serial.var in variables(x.index)]


def _turn(loop: LaneLoop, s: Statement) -> None:
    """A statement of a turn whose totals are in registers."""
    assert loop.lanes is not None
    match s:
        case Fold():
            step = loop.lanes.splat(replaced(s.combine, {"a": s.var, "b": s.value}))
            loop.body.line(f"{s.var.name} = {step};")
        case Running():
            _scan_step(loop, s, partial_of(s))
        case _:
            loop.statement(s, loop.varying)


def _scan_step(loop: LaneLoop, s: Running, total: Var) -> None:
    """One step of a scan in each lane by itself, its total in a register."""
    assert loop.lanes is not None
    step = loop.lanes.splat(replaced(s.combine, {"a": total, "b": s.value}))
    if s.exclusive:
        loop.let(Let(s.var, total))
    loop.body.line(f"{total.name} = {step};")
    if not s.exclusive:
        loop.let(Let(s.var, total))
