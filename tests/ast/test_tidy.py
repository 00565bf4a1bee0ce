"""Stages are tidied: locals are inlined into their user and loop invariants are hoisted."""

from __future__ import annotations

from passkit.ast import Load, Var, const, dt, exp, left, where
from passkit.ast.stage import Fold, Let, Level, Loop, Prefetch, Stage, Store
from passkit.ast.tidy import expressions, map_statement, parts, tidy_stage
from passkit.ast.walk import children, walk

i, n = Var("i", dt.int64), Var("n", dt.int64)
LOOP = Loop(i, const(0, dt.int64), n, Level.CTA)


def load(name: str) -> Load:
    """Return a load of a buffer's element at the loop's index."""
    return Load(name, i, dt.float32)


def tidied(*body: object) -> Stage:
    """Return a stage of one loop with these statements, tidied."""
    return tidy_stage(Stage("s", (LOOP,), body), i)  # type: ignore[arg-type]


def var(name: str) -> Var:
    """Return a local float variable."""
    return Var(name, dt.float32)


def test_locals_used_once_are_inlined() -> None:
    """Single uses are inlined, unused locals dropped, shared ones kept."""
    stage = tidied(
        Let(var("a"), load("x")),
        Let(var("b"), exp(var("a"))),
        Let(var("c"), load("z")),
        Let(var("d"), load("w")),
        Store("y", i, var("b") * var("d") + var("d")),
    )

    assert [s.var.name for s in stage.body if isinstance(s, Let)] == ["d"]
    (store,) = [s for s in stage.body if isinstance(s, Store)]
    assert exp(load("x")) in list(walk(store.value))


def test_loop_invariants_are_hoisted() -> None:
    """A local that does not depend on the loop index is computed once, before the loop."""
    stage = tidied(
        Let(var("a"), exp(var("r")) + var("q")),
        Let(var("b"), load("x") * var("a")),
        Store("y", i, var("b") + var("b")),
    )

    assert [s.var.name for s in stage.before] == ["a"]
    assert [s.var.name for s in stage.body if isinstance(s, Let)] == ["b"]


def test_loads_stay_before_several_stores() -> None:
    """With more than one store a load does not move past the first: buffers may share memory."""
    stage = tidied(
        Let(var("a"), load("x")), Store("y", i, const(0.0, dt.float32)), Store("z", i, var("a"))
    )

    assert [type(s).__name__ for s in stage.body] == ["Let", "Store", "Store"]


def test_long_expressions_are_not_inlined() -> None:
    """An expression of more than twelve operations keeps its local."""
    long = load("x")
    for _ in range(8):
        long = exp(long) + long  # type: ignore[assignment]
    stage = tidied(Let(var("a"), long), Store("y", i, var("a")))

    assert parts(long) > 12 and isinstance(stage.body[0], Let)


def test_operands_of_every_kind_of_expression_are_its_children() -> None:
    """A choice, a variable, an operator, a call and a load list their operands in order."""
    x = var("x")

    assert children(where(x > 0, x, 1)) == (x > 0, x, const(1, dt.float32))
    assert [children(e) for e in (x, -x, exp(x), load("b"))] == [(), (x,), (x,), (i,)]


def test_expressions_of_every_kind_of_statement_are_listed_and_mapped() -> None:
    """Let, Store, Fold and Prefetch list their expressions; mapping to the same returns them."""
    fold = Fold(var("f"), load("x"), const(0.0, dt.float32), left(dt.float32), "s", i)
    for s, count in (
        (Let(var("a"), load("x")), 1),
        (Store("y", i, load("x")), 2),
        (fold, 2),
        (Prefetch("x", i), 1),
    ):
        assert len(list(expressions(s))) == count
        assert map_statement(s, lambda x: x) == s
