"""Sizes: polynomials over symbolic extents."""

from __future__ import annotations

from typing import Any

import pytest

from passkit import Size
from passkit.errors import ShapeError
from passkit.values.size import (
    at_least,
    divide_exactly,
    evaluate,
    known_or_zero,
    numel,
    substitute,
    symbols_of,
)

n, m = Size.symbol("n"), Size.symbol("m")


def test_equal_polynomials_are_equal() -> None:
    """Equal polynomials have equal hashes; constant ones become ints."""
    assert (n + 1) * (n - 1) == n * n - 1
    assert hash(n * m) == hash(m * n)
    assert (n + 1 - n, n - n, 3 - (3 - n), 2 * n - n) == (1, 0, n, n)
    assert n != 1 and n != "n"


@pytest.mark.parametrize(
    "a, b, expected",
    [
        (n * 6, 3, n * 2),
        (n * 6, 4, None),
        (n * m, m, n),
        (n, m, None),
        (0, n, 0),
        (7, n, None),
        ((n + 1) * 4, n + 1, 4),
        (n * n + n, n + 1, n),
        (n * n, n + 1, None),
        ((n + 1) * (m + 1), n + 1, m + 1),
        ((n + 1) * (m + 1), m + 1, n + 1),
        (n * n - 1, n - 1, n + 1),
        ((n // 2 + 1) * (m // 2 + 1) * 12, (m // 2 + 1) * 4, (n // 2 + 1) * 3),
        ((n + 1) * (m + 1) + 1, n + 1, None),
        (n, 0, None),
        (6, 4, None),
        (6, 3, 2),
        (6, 0, None),
        (n, n, 1),
        (n * 4 + 2, 2, n * 2 + 1),
        (n * 4 + 1, 2, None),
    ],
)
def test_exact_division(a: Any, b: Any, expected: Any) -> None:
    """The quotient is returned if it is certainly whole, else None."""
    assert divide_exactly(a, b) == expected


@pytest.mark.parametrize("number", [1.5, "3", None, 2j])
def test_other_numbers_than_integers_are_refused(number: Any) -> None:
    """Arithmetic with a float is an error instead of being rounded."""
    for operation in (
        lambda: n + number,
        lambda: number * n,
        lambda: number - n,
        lambda: n // number,
        lambda: number // n,
    ):
        with pytest.raises(TypeError, match=type(number).__name__):
            operation()


def test_floor_division_keeps_inexact_quotients() -> None:
    """A quotient that is not exact stays symbolic; remainders are computed from it."""
    assert str((n * 6) // 4) == "(6*n)//(4)"
    assert (n * 4) % 4 == 0
    assert evaluate((n + 1) // 2 * 3 - n % 4, {"n": 6}) == 7
    assert evaluate(7 // n, {"n": 2}) == 3


def test_symbols_are_listed_and_substituted() -> None:
    """Symbols, also inside quotients, are replaced by numbers or other sizes."""
    size = n * 2 + (m + 1) // 4

    assert symbols_of([size, 3]) == {"n", "m"}
    assert symbols_of([((0, n), 2), None, "m"]) == {"n"}
    assert substitute(size, {"m": 7}) == n * 2 + 2
    assert substitute(n * n, {"n": m + 1}) == m * m + m * 2 + 1
    assert (numel(()), numel((2, n, 3)), numel((0, n))) == (1, n * 6, 0)


def test_quotients_by_zero_are_zero_where_there_is_no_work() -> None:
    """`known_or_zero` returns 0 for a division by zero, and raises for a symbol without value."""
    assert known_or_zero((n + 6) // m, {"n": 2, "m": 0}) == 0
    assert known_or_zero((n + 6) // m, {"n": 2, "m": 4}) == 2
    with pytest.raises(ShapeError, match="n needs a value for 'n', got {'m': 0}"):
        known_or_zero(n, {"m": 0})


def test_symbolic_sizes_have_no_value() -> None:
    """Truth, index and evaluation of a symbolic size raise, and the message has the size."""
    with pytest.raises(ShapeError, match="the size n is not known before a call; compare it with"):
        bool(n)
    with pytest.raises(ShapeError, match=r"the size 2\*n is not known before a call; give the var"):
        range(n * 2)
    with pytest.raises(ShapeError, match="the size m.* needs a value for 'm', got {'n': 2}"):
        evaluate(n * m, {"n": 2})
    with pytest.raises(ShapeError, match=r"divides by zero at {'n': 0}"):
        substitute(m // n, {"n": 0})


@pytest.mark.parametrize(
    "a, b, expected",
    [
        (n, 1, True),
        (n, 2, False),
        (n * 2, n, True),
        (n, n * 2, False),
        (n * m, n, True),
        (n + 3, n + 3, True),
        (5, 4, True),
        (4, n, False),
        (n, n // 2, False),
        (n + n // 2, n, True),
        ((n + 127) // 128 * 128, n, True),
        ((n * 24 + 127) // 128 * 128, n * 24 + 1, False),
        (n, n // 16 * 16, True),
        (n // 16 * 16, n, False),
        (n // 16 * 16, n - 15, True),
        (n * m, n // 4 * 4, True),
        ((n + 1) // 4 * m * 4, 0, True),
        (n, n // m * m, False),
    ],
)
def test_at_least_is_true_only_where_certain(a: Any, b: Any, expected: bool) -> None:
    """`at_least` is true if a >= b is proved for all symbols of at least 1."""
    assert at_least(a, b) is expected


def test_sizes_are_printed_as_formulas() -> None:
    """``str`` has the terms with constants first and negative terms last."""
    assert [str(s) for s in (n, n * 4 + 1, n - 1, n * -1, n * m)] == [
        "n",
        "1 + 4*n",
        "-1 + n",
        "-n",
        "m*n",
    ]
