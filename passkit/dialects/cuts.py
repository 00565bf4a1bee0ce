"""Lane loops cut where a choice changes: before and behind, every lane of a loop chooses alike.

Arms of a concatenation or a padding along the lanes would else both be loaded, vector by vector.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve

from passkit.ast import Binary, Expr, Select, Var, const, where
from passkit.ast.choice import settled
from passkit.ast.index import expression, normal
from passkit.ast.stage import Fold, Let, Level, Loop, Running, Stage
from passkit.ast.tidy import expressions, map_statement, parts, replace_children
from passkit.ast.walk import children, variables
from passkit.dialects.strides import stride_of
from passkit.values import dtype as dt

MOST, LONGEST = 4, 160
"""Loops that one is cut into, and the parts of a body that is repeated, at most."""


def cut_stage(stage: Stage, name: str) -> tuple[list[Let], list[Stage]]:
    """Stages that together do what ``stage`` does, and where one ends and the next begins."""
    if any(isinstance(s, (Fold, Running)) for s in stage.body) or stage.after:
        return [], [stage]
    if sum(parts(x) for s in stage.body for x in expressions(s)) > LONGEST:
        return [], [stage]
    lets: list[Let] = []
    done: list[Stage] = []
    todo = [stage]
    while todo:
        piece = todo.pop()
        found = _first_cut(piece) if len(done) + len(todo) + 2 <= MOST else None
        if found is None:
            done.append(piece)
            continue
        test, at, below = found
        lane = _lane(piece)
        middle = Var(f"{name}_cut{len(lets)}", dt.int64)
        high = where(at < lane.stop, at, lane.stop)
        lets.append(Let(middle, where(at < lane.start, lane.start, high)))
        todo.append(_piece(piece, middle, lane.stop, test, not below))
        todo.append(_piece(piece, lane.start, middle, test, below))
    return lets, done


def _lane(stage: Stage) -> Loop:
    return next(x for x in stage.loops if x.level is Level.CTA)


def _first_cut(stage: Stage) -> tuple[Expr, Expr, bool] | None:
    """A comparison that changes along the lanes, where, and whether it holds before."""
    lane = _lane(stage).var
    locals_ = {s.var: s.value for s in stage.body if isinstance(s, Let)}
    for s in stage.body:
        for value in expressions(s):
            for test in _tests(value):
                found = _cut_of(test, lane, locals_)
                if found is not None:
                    return test, *found
    return None


def _tests(x: Expr) -> Iterator[Binary]:
    """The comparisons in conditions of selects, outer ones first."""
    if isinstance(x, Select):
        yield from _comparisons(x.condition)
    for child in children(x):
        yield from _tests(child)


def _comparisons(x: Expr) -> Iterator[Binary]:
    if isinstance(x, Binary) and x.op in ("<", ">="):
        yield x
    elif isinstance(x, Binary) and x.op in ("&", "|"):
        yield from _comparisons(x.a)
        yield from _comparisons(x.b)


def _cut_of(test: Binary, lane: Var, locals_: dict[Var, Expr]) -> tuple[Expr, bool] | None:
    """Where ``lane + a < b`` begins to fail, or ``>=`` to hold."""
    a, b = (_written_out(side, locals_) for side in (test.a, test.b))
    if a.dtype is not dt.int64 or lane in set(variables(b)):
        return None
    if stride_of(a, lane, lambda x: lane in set(variables(x))) != 1:
        return None
    if any(v in locals_ for side in (a, b) for v in variables(side)):
        return None
    start = expression(normal(_without(a, lane), {}))
    return expression(normal(b - start, {})), test.op == "<"


def _without(x: Expr, lane: Var) -> Expr:
    if x == lane:
        return const(0, dt.int64)
    return replace_children(x, lambda child: _without(child, lane))


def _written_out(x: Expr, values: dict[Var, Expr]) -> Expr:
    """``x`` with whole-number locals replaced by what they are."""
    if isinstance(x, Var):
        known = values.get(x)
        return x if known is None or x.dtype is not dt.int64 else _written_out(known, values)
    return replace_children(x, lambda child: _written_out(child, values))


def _piece(stage: Stage, start: Expr, stop: Expr, test: Expr, holds: bool) -> Stage:
    """The part of a stage from ``start`` to ``stop``, where a comparison has one outcome."""
    loops = tuple(
        evolve(x, start=start, stop=stop) if x.level is Level.CTA else x for x in stage.loops
    )

    def outcome(x: Expr) -> bool | None:
        return holds if x == test else None

    body = [map_statement(s, lambda x: settled(x, outcome)) for s in stage.body]
    used = {v for s in body for x in expressions(s) for v in variables(x)}
    kept = (s for s in body if not isinstance(s, Let) or s.var in used)
    return evolve(stage, loops=loops, body=tuple(kept))
