"""Indices of stages: as sums, what range they have, and whether iterations share an element."""

from __future__ import annotations

import pytest

from passkit.ast import Expr, Load, Var, const, size_of, where
from passkit.ast.stage import Let, Level, Loop
from passkit.checks.mixed_radix import are_digits
from passkit.checks.stage_indices import ROW, THREAD, IndexScope, may_meet
from passkit.values import dtype as dt
from passkit.values.size import Extent, Size

COL, LINE, TILE = (Var(name, dt.int64) for name in ("col", "line", "tile"))
N, M = Size.symbol("n"), Size.symbol("m")


def number(n: int) -> Expr:
    """Return a literal index."""
    return const(n, dt.int64)


def scope(columns: Extent = 8, rows: Extent = 4, down: bool = False) -> IndexScope:
    """Return the scope inside a loop over rows and one over threads."""
    inside = IndexScope({})
    inside.enter(Loop(LINE, number(0), size_of(rows), Level.WARP), ROW)
    inside.enter(Loop(COL, number(0), size_of(columns), Level.CTA, down=down), THREAD)
    return inside


@pytest.mark.parametrize(
    "index, is_own",
    [
        (LINE * 8 + COL, True),
        (COL * 4 + LINE, True),
        (LINE * 7 + COL, False),
        (COL, False),
        (LINE // 2 * 16 + LINE % 2 * 8 + COL, True),
        (LINE // 2 * 8 + LINE % 2 * 8 + COL, False),
        (LINE % 2 * 8 + COL, False),
        (LINE * 16 + COL * 2 - COL, True),
        (Load("x", COL, dt.int64), False),
    ],
)
def test_elements_of_one_iteration(index: Expr, is_own: bool) -> None:
    """Iterations have elements of their own if they are digits of the index."""
    assert scope().element(index).is_injective(THREAD, ROW) == is_own


@pytest.mark.parametrize("columns, pitch, is_own", [(N, N, True), (N, M, False), (8, N + 8, True)])
def test_symbolic_sizes(columns: Extent, pitch: Extent, is_own: bool) -> None:
    """Rows of n elements lie apart at a distance of n; of m nobody knows."""
    element = scope(columns, N).element(LINE * size_of(pitch) + COL)

    assert element.is_injective(THREAD, ROW) == is_own
    assert (element.row_range == (pitch, ())) == is_own


def test_iterations_that_are_equal() -> None:
    """Threads of one row have elements of their own where two rows share them."""
    element = scope().element(COL)

    assert not element.is_injective(ROW) and element.is_injective(THREAD, fixed=frozenset([ROW]))
    assert scope(rows=1).element(COL).is_injective(ROW)


def test_loops_that_run_backwards() -> None:
    """The first thread has the last element of such a loop."""
    element = scope(down=True).element(COL)

    assert element.sum is not None and element.sum.constant == 7
    assert element.sum.coefficient(THREAD) == -1
    assert element.sum != scope(6, down=True).element(COL).sum


def test_ranges() -> None:
    """Halves of an array are apart; a step of unknown sign has no range."""
    low, high, over = (scope().element(COL + k) for k in (0, 8, 7))

    assert not may_meet(low, high) and may_meet(low, over) and may_meet(over, high)
    backwards = scope().element(number(15) - COL)
    assert not may_meet(low, backwards) and may_meet(high, backwards)
    assert scope().element(COL * size_of(N - M)).range() is None
    assert may_meet(low, scope().element(TILE * 8 + COL + 8))


def test_locals_and_choices() -> None:
    """Locals stand for their values, and equal choices are equal; a later local replaces one."""
    inside = scope()
    at = Var("at", dt.int64)
    inside.define(Let(at, where(TILE < 3, TILE, number(3)) * 8))

    element = inside.element(at + COL)
    assert element.sum == scope().element(where(TILE < 3, TILE, number(3)) * 8 + COL).sum
    assert element.depends_on(TILE) and element.is_injective(THREAD)
    inside.define(Let(at, number(0)))
    assert not inside.element(at + COL).depends_on(TILE)


def test_a_quotient_by_zero() -> None:
    """An index into an empty array is one that depends on its loops, not 0."""
    assert scope().element(LINE // number(0) * 8 + COL).depends_on(ROW)


def test_digits() -> None:
    """A term that has one value decides nothing, and only the largest may have any number."""
    assert are_digits([(1, 1), (1, 4), (4, None)])
    assert not are_digits([(1, None), (4, 2)])
    assert are_digits([(-5, 3)], reach=4) and not are_digits([(-5, 3)], reach=5)
