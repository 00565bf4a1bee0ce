"""Blocks of lanes and another loop in C: inputs that lie across the lanes are turned there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from attrs import evolve

from passkit.ast import Expr, Load, Select, Var
from passkit.dialects.strides import moves_with, stride_of
from passkit.stage import Let, Loop, Statement, Store
from passkit.tidy import expressions, map_statement, replace_children
from passkit.turning import BLOCK
from passkit.walk import children, variables

if TYPE_CHECKING:
    from passkit.dialects.lane_loop import LaneLoop


def turned_loads(loop: LaneLoop, serial: Loop) -> list[Load]:
    """The loads that happen for every element and lie along ``serial``, across the lanes."""
    if loop.lanes is None:
        return []
    inner = {s.var for s in loop.stage.body if isinstance(s, Let)}
    found = dict.fromkeys(
        x
        for s in loop.stage.body
        for value in expressions(s)
        for x in _certain(value)
        if not (x.dtype.is_float and x.dtype.nbytes == 2)  # those are no vectors to the compiler
        and inner.isdisjoint(variables(x.index))
        and stride_of(x.index, serial.var, moves_with(serial.var)) == 1
        and loop.lanes.step(x.index) not in (None, 0, 1, 2, -1)
    )
    return list(found)


def _certain(x: Expr) -> Iterator[Load]:
    """The loads of an expression outside the arms of selects."""
    if isinstance(x, Load):
        yield x
        return
    for child in (x.condition,) if isinstance(x, Select) else children(x):
        yield from _certain(child)


def print_turned(loop: LaneLoop, serial: Loop, loads: list[Load]) -> None:
    """The lanes, each vector with a block of turns of ``serial`` inside it."""
    assert loop.lanes is not None
    v, body, var = loop.lanes.vectors, loop.body, serial.var
    names = {x: Var(f"{x.buffer}_turned_{k}", x.dtype) for k, x in enumerate(loads)}
    steps = {x: step for x in loads if (step := loop.lanes.step(x.index)) is not None}
    statements = [map_statement(s, lambda x: _named(x, names)) for s in loop.stage.body]
    inside = loop.varying | set(names.values())
    for s in statements:
        if isinstance(s, Let) and inside & set(variables(s.value)):
            inside |= {s.var}
    loop.lanes = evolve(loop.lanes, varying=inside)
    start, stop = loop.scalars.expr(serial.start), loop.scalars.expr(serial.stop)
    first = Var(f"{var.name}_low", var.dtype)
    body.open(v.block.format(var=var.name, start=start, stop=stop, turns=BLOCK))
    body.line(v.block_end.format(var=var.name, stop=stop, turns=BLOCK))
    front = len(body.lines)
    loop.open_block([_moved(s, {var: first}) for s in statements])
    for x, name in names.items():
        at = loop.scalars.address(x.buffer, _at_first(x.index, {var: first}))
        text = v.turn.format(
            type=loop.dialect.type_of(x.dtype),
            name=name.name,
            at=at,
            stride=loop.lanes.stride(steps[x]),
            var=var.name,
        )
        for line in text.splitlines():
            body.line(line)
    ends = {"start": f"{var.name}_low", "stop": f"{var.name}_high"}
    body.open(loop.dialect.thread.format(var=var.name, **ends))
    for name in names.values():
        body.line(v.turned.format(name=name.name, var=var.name))
    for s in statements:
        loop.statement(s, inside)
    body.close()
    loop.close_block(front)
    body.close()


def _named(x: Expr, names: dict[Load, Var]) -> Expr:
    if isinstance(x, Load) and x in names:
        return names[x]
    if isinstance(x, Select):  # its arms keep their loads
        return evolve(x, condition=_named(x.condition, names))
    return replace_children(x, lambda child: _named(child, names))


def _moved(s: Statement, values: dict[Var, Var]) -> Statement:
    if isinstance(s, Store):
        return evolve(s, index=_at_first(s.index, values))
    return s


def _at_first(x: Expr, values: dict[Var, Var]) -> Expr:
    if isinstance(x, Var):
        return values.get(x, x)
    return replace_children(x, lambda child: _at_first(child, values))
