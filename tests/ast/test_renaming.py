"""Buffers and sizes of a kernel AST are renamed."""

from __future__ import annotations

import pytest

from passkit.ast import Load, Var, const, dt
from passkit.ast.renaming import names_in, renamed
from passkit.ast.stage import Dot, Fold, Let, Level, Loop, Matrix, Part, Prefetch, Stage, Store
from tests.dialects.test_printer import GOLDENS, kernel_of

N, LANE = Var("n0", dt.int64), Var("i", dt.int64)
ZERO = const(0, dt.int64)
SUM = Var("s", dt.float32)


def test_every_statement_is_renamed() -> None:
    """Loads, stores, reductions in memory, prefetches, matrices and sizes get new names."""
    load = Load("a", LANE + N, dt.float32)
    fold = Fold(SUM, load, const(0.0, dt.float32), SUM, "b", LANE)
    body = (fold, Store("c", N, load), Prefetch("a", N), Let(SUM, load))
    stage = Stage("one", (Loop(LANE, ZERO, N, Level.CTA, N),), body, after=(Store("b", N, SUM),))
    matrices = [Matrix(b, ZERO, N, ZERO) for b in "abc"]
    dot = Dot("two", (), *matrices, N, N, N, dt.float32)
    part = Part((Let(LANE, N),), None, (), (stage, dot))
    names = {"a": "x", "b": "y", "c": "z", "n0": "n7"}
    changed = renamed(part, names)

    assert {"a", "b", "c", "n0"} <= set(names_in(part))
    assert set(names_in(changed)) == {names.get(n, n) for n in names_in(part)}
    assert renamed(changed, {new: old for old, new in names.items()}) == part


@pytest.mark.parametrize("name", GOLDENS)
def test_equal_names_change_nothing(name: str) -> None:
    """Renaming every buffer to its own name returns an equal AST."""
    ast = kernel_of(GOLDENS[name], "cpu").ast
    same = {b.name: b.name for b in (*ast.params, *ast.scratch)}

    assert renamed(ast.phases, same) == ast.phases
    assert same.keys() <= set(names_in(ast.phases))
