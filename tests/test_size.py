"""Sizes: exact arithmetic on extents that only a call knows."""

from __future__ import annotations

import pytest

from passkit.errors import ShapeError
from passkit.size import Size, at_least, divide_exactly, evaluate, numel, substitute, symbols_of

N, M = Size.symbol("n"), Size.symbol("m")


def test_equal_sizes_are_equal_however_they_were_made() -> None:
    """Polynomials have one form, so that equality and hashes are those of values."""
    assert (N + 1) * (N - 1) == N * N - 1
    assert hash(N * M * 2) == hash(M * 2 * N)
    assert N - N == 0
    assert (N + 3) - N == 3
    assert N != M


def test_division_is_exact_where_it_can_be() -> None:
    """Known factors cancel; the rest stays a quotient, and a remainder is what is left."""
    assert (N * 64) // 64 == N
    assert (N * M) // M == N
    assert (N * N + N) // (N + 1) == N
    assert divide_exactly(N * 6, 4) is None
    assert evaluate((N * 6) // 4, {"n": 3}) == 4
    assert evaluate((N * 6) % 4, {"n": 3}) == 2
    assert evaluate(10 // N, {"n": 3}) == 3
    assert divide_exactly(7, 2) is None
    assert divide_exactly(0, N) == 0


def test_what_a_size_depends_on() -> None:
    """Symbols are found in sums, products and quotients."""
    assert symbols_of((4, N * M, (N + 1) // (M + 2))) == {"n", "m"}
    assert substitute(N * M + N, {"m": 3}) == N * 4
    assert numel((N, 3, M)) == N * M * 3
    assert numel(()) == 1


def test_what_is_certain_for_every_positive_size() -> None:
    """a >= b is certain only when no size of at least 1 breaks it."""
    assert at_least(N * 2, N + 1)
    assert at_least(N, 1)
    assert not at_least(N, 2)
    assert not at_least(N, M)


def test_an_unknown_size_is_no_number() -> None:
    """Where Python needs a bool or an int, the message names the size."""
    with pytest.raises(ShapeError, match="the size 2\\*n is not known before a call; compare"):
        bool(N * 2)
    with pytest.raises(ShapeError, match="the size n is not known before a call; give the var"):
        range(N)  # type: ignore[arg-type]


def test_values_that_are_missing_or_zero() -> None:
    """Evaluation names the symbol that has no value, and the size that divides by zero."""
    with pytest.raises(ShapeError, match=r"size m \+ n needs a value for 'm', got {'n': 2}"):
        evaluate(N + M, {"n": 2})
    with pytest.raises(ShapeError, match=r"divides by zero at {'n': 0, 'm': 5}"):
        evaluate(M // N, {"n": 0, "m": 5})
