"""Simplification of `where`: branches that are never taken are removed, and no others."""

from __future__ import annotations

import pytest

from passkit.ast import Binary, Expr, Load, Var, const, dt, equal, not_equal, size_of, where
from passkit.ast.choice import by_extents, settled, shortened

A, B = Var("i", dt.int64), Var("j", dt.int64)
X, Y = Var("x", dt.float32), Var("y", dt.float32)
KNOWN = by_extents({"i": 8, "j": 4})


@pytest.mark.parametrize(
    ("test", "outcome"),
    [
        (size_of(8) > A, True),
        (size_of(7) > A, None),
        (size_of(0) <= A, True),
        (A - size_of(1) >= size_of(0), None),
        (size_of(8) <= A, False),
        (A * size_of(2) + size_of(1) < size_of(16), True),
        (size_of(-3) <= A - B, True),
        (size_of(-3) > A - B, False),
        (size_of(7) > A - B, None),
        (Var("k", dt.int64) >= size_of(0), None),
        (A // size_of(2) < size_of(4), True),
        (A // size_of(2) >= size_of(3), None),
        ((A - size_of(4)) // size_of(2) >= size_of(0), None),
        (A % size_of(4) < size_of(4), True),
        ((A - size_of(4)) % size_of(4) >= size_of(0), None),
        (equal(A, size_of(8)), False),
        (not_equal(A, size_of(8)), True),
        (equal(A, size_of(7)), None),
        (equal(A * size_of(2) - A, A), True),
    ],
)
def test_extents_settle_comparisons(test: Expr, outcome: bool | None) -> None:
    """A comparison is decided if it has the same result at every index below the extents."""
    assert KNOWN(test) is outcome
    expected = {True: X, False: Y, None: where(test, X, Y)}[outcome]
    assert settled(where(test, X, Y), KNOWN) == expected


def test_operands_of_conditions_that_are_always_true_or_false_are_removed() -> None:
    """In and, or and not, an operand that is always true or false is removed or decides."""
    open_, holds, fails = size_of(5) > A, size_of(8) > A, size_of(8) <= A

    assert settled(where(holds & open_, X, Y), KNOWN) == where(open_, X, Y)
    assert settled(where(open_ & fails, X, Y), KNOWN) == Y
    assert settled(where(open_ | holds, X, Y), KNOWN) == X
    assert settled(where(fails | open_, X, Y), KNOWN) == where(open_, X, Y)
    assert settled(where(~holds, X, Y), KNOWN) == Y
    assert settled(const(1, dt.int64), KNOWN) == const(1, dt.int64)


def test_comparisons_of_indices_are_shortened() -> None:
    """Divisions that split an index into its axes are removed; loaded values stay as they are."""
    extents, position = {"i": 8, "j": 4}, A * size_of(4) + B
    two = const(0, dt.int64) + const(2, dt.int64)

    short = shortened(where(equal(position % size_of(4), two % size_of(4)), X, Y), extents)
    assert short == where(Binary("==", B, size_of(2), dt.bool_), X, Y)
    assert shortened(position // size_of(4) < two, extents) == Binary("<", A, size_of(2), dt.bool_)
    negative = equal((A - size_of(4)) % size_of(4), two)
    assert shortened(negative, extents) == negative
    data = Load("x0", A, dt.int64) + A - A < two
    assert shortened(data, extents) == data
