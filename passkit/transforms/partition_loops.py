"""partition_loops: a vector loop is cut where a choice changes; each piece has one case of it.

Both cases of a concatenation or a padding along the loop would else be loaded, vector by vector.
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
from passkit.ir.strides import stride_of
from passkit.values import dtype as dt

MAX_PIECES = 4
"""The most loops that one is cut into."""
MAX_PARTS = 160
"""The most subexpressions of a body that is repeated."""


def partition_stage(stage: Stage, name: str) -> tuple[list[Let], list[Stage]]:
    """Cut the vector loop of a stage where comparisons with its variable change.

    Args:
        stage: a stage with one loop.
        name: the stem of the names of the cuts.

    Returns:
        The definitions of the cuts, and the stages between them, which together do what ``stage``
        does: it alone where it has reductions or scans, is too long, or no comparison changes.
    """
    if any(isinstance(s, (Fold, Running)) for s in stage.body) or stage.after:
        return [], [stage]
    if sum(parts(x) for s in stage.body for x in expressions(s)) > MAX_PARTS:
        return [], [stage]
    lets: list[Let] = []
    pieces: list[Stage] = []
    todo = [stage]
    while todo:
        piece = todo.pop()
        cut = _first_cut(piece) if len(pieces) + len(todo) + 2 <= MAX_PIECES else None
        if cut is None:
            pieces.append(piece)
            continue
        test, at, holds_before = cut
        lane = _lane(piece)
        middle = Var(f"{name}_cut{len(lets)}", dt.int64)
        high = where(at < lane.stop, at, lane.stop)
        lets.append(Let(middle, where(at < lane.start, lane.start, high)))
        todo.append(_piece(piece, middle, lane.stop, test, not holds_before))
        todo.append(_piece(piece, lane.start, middle, test, holds_before))
    return lets, pieces


def _lane(stage: Stage) -> Loop:
    """Return the vector loop of a stage."""
    return next(x for x in stage.loops if x.level is Level.CTA)


def _first_cut(stage: Stage) -> tuple[Expr, Expr, bool] | None:
    """Return a comparison that changes along the loop, where, and whether it holds before."""
    lane = _lane(stage).var
    values = {s.var: s.value for s in stage.body if isinstance(s, Let)}
    for s in stage.body:
        for value in expressions(s):
            for test in _tests(value):
                cut = _cut_of(test, lane, values)
                if cut is not None:
                    return test, *cut
    return None


def _tests(x: Expr) -> Iterator[Binary]:
    """Yield the comparisons in conditions of choices, outer ones first."""
    if isinstance(x, Select):
        yield from _comparisons(x.condition)
    for child in children(x):
        yield from _tests(child)


def _comparisons(x: Expr) -> Iterator[Binary]:
    """Yield the comparisons that a condition consists of."""
    if isinstance(x, Binary) and x.op in ("<", ">="):
        yield x
    elif isinstance(x, Binary) and x.op in ("&", "|"):
        yield from _comparisons(x.a)
        yield from _comparisons(x.b)


def _cut_of(test: Binary, lane: Var, values: dict[Var, Expr]) -> tuple[Expr, bool] | None:
    """Return where a comparison changes along the loop, and whether it holds before.

    It is ``lane + a < b``, or the same with ``>=``; None for another one.
    """
    a, b = (_inlined(side, values) for side in (test.a, test.b))
    if a.dtype is not dt.int64 or lane in set(variables(b)):
        return None
    if stride_of(a, lane, lambda x: lane in set(variables(x))) != 1:
        return None
    if any(v in values for side in (a, b) for v in variables(side)):
        return None
    start = expression(normal(_at_zero(a, lane), {}))
    return expression(normal(b - start, {})), test.op == "<"


def _at_zero(x: Expr, lane: Var) -> Expr:
    """Return ``x`` where ``lane`` is 0."""
    if x == lane:
        return const(0, dt.int64)
    return replace_children(x, lambda child: _at_zero(child, lane))


def _inlined(x: Expr, values: dict[Var, Expr]) -> Expr:
    """Return ``x`` with the values of int64 locals in their place."""
    if isinstance(x, Var):
        value = values.get(x)
        return x if value is None or x.dtype is not dt.int64 else _inlined(value, values)
    return replace_children(x, lambda child: _inlined(child, values))


def _piece(stage: Stage, start: Expr, stop: Expr, test: Expr, holds: bool) -> Stage:
    """Return the part of a stage from ``start`` to ``stop``, where ``test`` has one outcome."""
    loops = tuple(
        evolve(x, start=start, stop=stop) if x.level is Level.CTA else x for x in stage.loops
    )

    def outcome(x: Expr) -> bool | None:
        return holds if x == test else None

    body = [map_statement(s, lambda x: settled(x, outcome)) for s in stage.body]
    used = {v for s in body for x in expressions(s) for v in variables(x)}
    rest = (s for s in body if not isinstance(s, Let) or s.var in used)
    return evolve(stage, loops=loops, body=tuple(rest))
