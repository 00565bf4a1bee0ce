"""Tidying of stages: locals back into their user, invariants in front of the loops."""

from __future__ import annotations

from passkit.ast import Load, Var, const, exp, left
from passkit.ast.stage import Fold, Let, Level, Loop, Prefetch, Stage, Store
from passkit.ast.tidy import expressions, map_statement, parts, tidy_stage
from passkit.ast.walk import walk
from passkit.values import dtype as dt

i, n = Var("i", dt.int64), Var("n", dt.int64)
LOOP = Loop(i, const(0, dt.int64), n, Level.CTA)


def load(name: str) -> Load:
    """An element of a buffer at the current lane."""
    return Load(name, i, dt.float32)


def tidied(*body: object) -> Stage:
    """A stage of one loop, tidied."""
    return tidy_stage(Stage("s", (LOOP,), body), i)  # type: ignore[arg-type]


def var(name: str) -> Var:
    """A float local."""
    return Var(name, dt.float32)


def test_what_is_used_once_goes_into_its_user() -> None:
    """Single uses are inlined, unused locals dropped, shared ones kept."""
    stage = tidied(Let(var("a"), load("x")), Let(var("b"), exp(var("a"))), Let(var("c"), load("z")),
                   Let(var("d"), load("w")), Store("y", i, var("b") * var("d") + var("d")))

    assert [s.var.name for s in stage.body if isinstance(s, Let)] == ["d"]
    (store,) = [s for s in stage.body if isinstance(s, Store)]
    assert exp(load("x")) in list(walk(store.value))


def test_what_no_lane_changes_stands_in_front() -> None:
    """An invariant local is computed once, before the loop."""
    stage = tidied(Let(var("a"), exp(var("r")) + var("q")), Let(var("b"), load("x") * var("a")),
                   Store("y", i, var("b") + var("b")))

    assert [s.var.name for s in stage.before] == ["a"]
    assert [s.var.name for s in stage.body if isinstance(s, Let)] == ["b"]


def test_loads_stay_before_several_stores() -> None:
    """With more than one store a load does not move past the first: buffers may share memory."""
    stage = tidied(Let(var("a"), load("x")), Store("y", i, const(0.0, dt.float32)),
                   Store("z", i, var("a")))

    assert [type(s).__name__ for s in stage.body] == ["Let", "Store", "Store"]


def test_long_expressions_stay_on_lines_of_their_own() -> None:
    """What has more than a dozen parts is not put into its user."""
    long = load("x")
    for _ in range(8):
        long = exp(long) + long  # type: ignore[assignment]
    stage = tidied(Let(var("a"), long), Store("y", i, var("a")))

    assert parts(long) > 12 and isinstance(stage.body[0], Let)


def test_statements_and_their_expressions() -> None:
    """Every kind of statement shows its expressions, and can be mapped."""
    fold = Fold(var("f"), load("x"), const(0.0, dt.float32), left(dt.float32), "s", i)
    for s, count in ((Let(var("a"), load("x")), 1), (Store("y", i, load("x")), 2), (fold, 2),
                     (Prefetch("x", i), 1)):
        assert len(list(expressions(s))) == count
        assert map_statement(s, lambda x: x) == s
