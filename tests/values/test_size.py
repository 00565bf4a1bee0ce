"""Sizes: polynomials over unknown extents."""

from __future__ import annotations

from typing import Any

import pytest

from passkit.errors import ShapeError
from passkit.values.size import (
    Size,
    at_least,
    divide_exactly,
    evaluate,
    known_or_zero,
    numel,
    substitute,
    symbols_of,
)

n, m = Size.symbol("n"), Size.symbol("m")


def test_arithmetic() -> None:
    """Equal polynomials are equal and hash alike; constants come out as ints."""
    assert (n + 1) * (n - 1) == n * n - 1
    assert hash(n * m) == hash(m * n)
    assert (n + 1 - n, n - n, 3 - (3 - n), 2 * n - n) == (1, 0, n, n)
    assert n != 1 and n != "n"


@pytest.mark.parametrize("a, b, wanted", [
    (n * 6, 3, n * 2), (n * 6, 4, None), (n * m, m, n), (n, m, None), (0, n, 0), (7, n, None),
    ((n + 1) * 4, n + 1, 4), (n * n + n, n + 1, n), (n * n, n + 1, None), (n, 0, None),
    (6, 4, None),
    (6, 3, 2), (6, 0, None), (n, n, 1), (n * 4 + 2, 2, n * 2 + 1), (n * 4 + 1, 2, None),
])
def test_exact_division(a: Any, b: Any, wanted: Any) -> None:
    """A quotient is given where it is known to be whole."""
    assert divide_exactly(a, b) == wanted


def test_floor_division() -> None:
    """What does not divide stays a quotient; remainders follow."""
    assert str((n * 6) // 4) == "(6*n)//(4)"
    assert (n * 4) % 4 == 0
    assert evaluate((n + 1) // 2 * 3 - n % 4, {"n": 6}) == 7
    assert evaluate(7 // n, {"n": 2}) == 3


def test_numbers() -> None:
    """Symbols are found through quotients and replaced by numbers or other sizes."""
    size = n * 2 + (m + 1) // 4

    assert symbols_of([size, 3]) == {"n", "m"}
    assert symbols_of([((0, n), 2), None, "m"]) == {"n"}
    assert substitute(size, {"m": 7}) == n * 2 + 2
    assert substitute(n * n, {"n": m + 1}) == m * m + m * 2 + 1
    assert (numel(()), numel((2, n, 3)), numel((0, n))) == (1, n * 6, 0)


def test_numbers_of_what_has_no_work() -> None:
    """A division by zero is nothing there; a symbol without a value is told all the same."""
    assert known_or_zero((n + 6) // m, {"n": 2, "m": 0}) == 0
    assert known_or_zero((n + 6) // m, {"n": 2, "m": 4}) == 2
    with pytest.raises(ShapeError, match="n needs a value for 'n', got {'m': 0}"):
        known_or_zero(n, {"m": 0})


def test_what_is_not_known() -> None:
    """Truth, index and evaluation of an unknown size raise and name it."""
    with pytest.raises(ShapeError, match="the size n is not known before a call; compare it with"):
        bool(n)
    with pytest.raises(ShapeError, match=r"the size 2\*n is not known before a call; give the var"):
        range(n * 2)
    with pytest.raises(ShapeError, match="the size m.* needs a value for 'm', got {'n': 2}"):
        evaluate(n * m, {"n": 2})
    with pytest.raises(ShapeError, match=r"divides by zero at {'n': 0}"):
        substitute(m // n, {"n": 0})


@pytest.mark.parametrize("a, b, wanted", [
    (n, 1, True), (n, 2, False), (n * 2, n, True), (n, n * 2, False), (n * m, n, True),
    (n + 3, n + 3, True), (5, 4, True), (4, n, False), (n, n // 2, False), (n + n // 2, n, True),
    ((n + 127) // 128 * 128, n, True), ((n * 24 + 127) // 128 * 128, n * 24 + 1, False),
    (n, n // 16 * 16, True), (n // 16 * 16, n, False), (n // 16 * 16, n - 15, True),
    (n * m, n // 4 * 4, True), ((n + 1) // 4 * m * 4, 0, True), (n, n // m * m, False),
])
def test_certain_order(a: Any, b: Any, wanted: bool) -> None:
    """a >= b for all sizes of at least 1, as far as it is certain."""
    assert at_least(a, b) is wanted


def test_text() -> None:
    """Sizes read like formulas."""
    assert [str(s) for s in (n, n * 4 + 1, n - 1, n * -1, n * m)] == [
        "n", "1 + 4*n", "-1 + n", "-n", "m*n"
    ]
