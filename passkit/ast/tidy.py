"""Cleanup of stages: inline locals that are used once, hoist loop-invariant ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from operator import is_
from typing import Any

from attrs import evolve

from passkit.ast import (
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    Load,
    Read,
    Select,
    SizeOf,
    Unary,
    Var,
    const,
)
from passkit.ast.stage import Let, Prefetch, Running, Stage, Statement, Store
from passkit.ast.walk import children, loads, variables, walk

LONGEST = 12
"""Locals whose expressions have more operators and leaves than this are not inlined."""


def replace_children(x: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """Return ``x`` with ``change`` applied to its direct operands.

    It is ``x`` itself where no operand changes, as for a leaf: a variable, literal or size.
    """
    replace = _REPLACE.get(type(x))
    return x if replace is None else replace(x, change)


def _replace_binary(x: Binary, change: Callable[[Expr], Expr]) -> Expr:
    """Return a binary operation with ``change`` applied to its operands."""
    a, b = change(x.a), change(x.b)
    return x if a is x.a and b is x.b else Binary(x.op, a, b, x.dtype)


def _replace_unary(x: Unary, change: Callable[[Expr], Expr]) -> Expr:
    """Return a unary operation with ``change`` applied to its operand."""
    a = change(x.x)
    return x if a is x.x else Unary(x.op, a, x.dtype)


def _replace_call(x: Call, change: Callable[[Expr], Expr]) -> Expr:
    """Return a call with ``change`` applied to its arguments."""
    args = tuple(map(change, x.args))
    return x if all(map(is_, args, x.args)) else Call(x.name, args, x.dtype)


def _replace_cast(x: Cast, change: Callable[[Expr], Expr]) -> Expr:
    """Return a conversion with ``change`` applied to its operand."""
    a = change(x.x)
    return x if a is x.x else Cast(a, x.dtype)


def _replace_select(x: Select, change: Callable[[Expr], Expr]) -> Expr:
    """Return a choice with ``change`` applied to its condition and both values."""
    c, a, b = change(x.condition), change(x.a), change(x.b)
    is_same = c is x.condition and a is x.a and b is x.b
    return x if is_same else Select(c, a, b, x.dtype)


def _replace_load(x: Load, change: Callable[[Expr], Expr]) -> Expr:
    """Return a load with ``change`` applied to its index."""
    index = change(x.index)
    return x if index is x.index else Load(x.buffer, index, x.dtype)


def _replace_read(x: Read, change: Callable[[Expr], Expr]) -> Expr:
    """Return a read with ``change`` applied to its indices."""
    index = tuple(map(change, x.index))
    return x if all(map(is_, index, x.index)) else Read(x.source, index, x.dtype)


_REPLACE: dict[type[Expr], Callable[[Any, Callable[[Expr], Expr]], Expr]] = {
    Binary: _replace_binary,
    Unary: _replace_unary,
    Call: _replace_call,
    Cast: _replace_cast,
    Select: _replace_select,
    Load: _replace_load,
    Read: _replace_read,
}


def map_statement(s: Statement, change: Callable[[Expr], Expr]) -> Statement:
    """Return a statement with ``change`` applied to its expressions, value and index."""
    match s:
        case Let(var, value):
            return Let(var, change(value))
        case Store(buffer, index, value, stream):
            return Store(buffer, change(index), change(value), stream)
        case Prefetch(buffer, index):
            return Prefetch(buffer, change(index))
    return evolve(s, value=change(s.value), index=None if s.index is None else change(s.index))


def expressions(s: Statement) -> Iterator[Expr]:
    """Yield the expressions of a statement: its value, then its index, as far as it has them."""
    if not isinstance(s, Prefetch):
        yield s.value
    if not isinstance(s, Let) and s.index is not None:
        yield s.index


def loads_of(statements: Iterable[Statement]) -> Iterator[Load]:
    """Yield the loads in statements, in order; partial results in memory are none."""
    for s in statements:
        for x in expressions(s):
            yield from loads(x)


def parts(x: Expr) -> int:
    """Return the number of operators and leaves of an expression."""
    count, todo = 0, [x]
    while todo:
        todo += children(todo.pop())
        count += 1
    return count


def tidy_stage(stage: Stage, lane: Var | None, visible: frozenset[Var] = frozenset()) -> Stage:
    """Return a stage with single-use locals inlined and loop-invariant ones hoisted.

    In a stage whose loop is known to be empty, loads are replaced by 0 first.

    Args:
        stage: the stage.
        lane: the variable of its vectorized or parallel loop; None disables hoisting.
        visible: locals that other stages read, which stay.
    """
    if any(isinstance(x.stop, SizeOf) and x.stop.size == 0 for x in stage.loops):
        # A loop without iterations: what is hoisted out of it is executed, so it must not load.
        stage = evolve(stage, body=tuple(map_statement(s, _without_loads) for s in stage.body))
    tidied = _inline(stage, lane, visible)
    return tidied if lane is None else _hoist(tidied)


def _without_loads(x: Expr) -> Expr:
    """Return ``x`` with 0 in place of loads, of their dtypes."""
    return const(0, x.dtype) if isinstance(x, Load) else replace_children(x, _without_loads)


def _inline(stage: Stage, lane: Var | None, visible: frozenset[Var]) -> Stage:
    """Return a stage in which short locals that are read once, and all literals, are inlined.

    Locals that the body does not read are removed. Reads are counted before that, so that a local
    that only a removed one reads counts as read. A local that does not vary along the vectorized
    loop is inlined only if it is a leaf, so that it can be hoisted. In a stage with several stores,
    no local that loads is inlined.

    Args:
        stage: the stage.
        lane: the variable of its vectorized loop; None if all locals count as varying.
        visible: locals that are read outside the body, which are neither inlined nor removed.
    """
    uses: Counter[Var] = Counter()
    for s in stage.body:
        for x in expressions(s):
            uses.update(v for v in variables(x))
    writes = sum(isinstance(s, Store) for s in stage.body)
    values: dict[Var, Expr] = {}
    body: list[Statement] = []
    varying = {lane}
    uses.update(visible)

    def change(x: Expr) -> Expr:
        """Return an expression with the values of inlined locals in their place."""
        if isinstance(x, Var):
            return values.get(x, x)
        return replace_children(x, change)

    for s in stage.body:
        s = map_statement(s, change) if values else s
        if isinstance(s, Running):
            varying.add(s.var)
        if isinstance(s, Let):
            if uses[s.var] == 0:
                continue
            varies = lane is None or not varying.isdisjoint(variables(s.value))
            if varies:
                varying.add(s.var)
            # A load may not move past the first of several stores: buffers may share memory.
            movable = writes <= 1 or not any(isinstance(x, Load) for x in walk(s.value))
            short = parts(s.value) <= LONGEST if varies else not children(s.value)
            once = uses[s.var] == 1 and movable and short
            if s.var not in visible and (once or isinstance(s.value, Const)):
                values[s.var] = s.value
                continue
        body.append(s)
    return evolve(stage, body=tuple(body))


def _hoist(stage: Stage) -> Stage:
    """Return a stage with locals that depend on no loop of it moved in front, to ``before``.

    A local that loads from a buffer to which a statement of the body stores stays.
    """
    moving = {loop.var for loop in stage.loops}
    before: list[Let] = list(stage.before)
    body: list[Statement] = []
    written = {s.buffer for s in stage.body if isinstance(s, Store)}
    for s in stage.body:
        fixed = (
            isinstance(s, Let)
            and moving.isdisjoint(variables(s.value))
            and not any(isinstance(x, Load) and x.buffer in written for x in walk(s.value))
        )
        if fixed:
            assert isinstance(s, Let)
            before.append(s)
        else:
            if isinstance(s, (Let, Running)):
                moving.add(s.var)
            body.append(s)
    return evolve(stage, before=tuple(before), body=tuple(body))
