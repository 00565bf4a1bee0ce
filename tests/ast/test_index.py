"""Index algebra: sums in normal form, and mixed-radix indices split and joined."""

from __future__ import annotations

import itertools
import random

import pytest

import passkit as pk
from passkit.ast import Binary, Const, Expr, SizeOf, Unary, Var, const, dt
from passkit.ast.index import (
    Known,
    add,
    common_refinement,
    divide,
    expression,
    modulo,
    normal,
    ravel,
    simplify,
    times,
    unravel,
)

i, j, k = (Var(n, dt.int64) for n in "ijk")
EXTENTS = {"i": 3, "j": 4, "k": 5}


def whole(n: int) -> Expr:
    """Return an int64 literal."""
    return const(n, dt.int64)


def test_equal_indices_have_equal_sums() -> None:
    """Order and grouping of terms do not matter; opposite terms cancel."""
    assert normal(i * whole(4) + j, EXTENTS) == normal(j + i + i * whole(3), EXTENTS)
    assert normal(i - i, EXTENTS).terms == ()
    assert normal(-i, EXTENTS).coefficient(i) == -1
    assert normal(i, {"i": 1}).terms == ()


def test_division_splits_mixed_radix_indices() -> None:
    """With j < 4, ``(i*4 + j) // 4`` is i and the remainder is j."""
    both = normal(i * whole(4) + j, EXTENTS)

    assert divide(both, 4, EXTENTS) == normal(i, EXTENTS)
    assert modulo(both, 4, EXTENTS) == normal(j, EXTENTS)
    assert divide(both, 1, EXTENTS) == both and modulo(both, 1, EXTENTS).terms == ()
    assert divide(both, 8, EXTENTS) == normal(i // whole(2), EXTENTS)


def test_quotient_and_remainder_join() -> None:
    """``x // d * d + x % d`` becomes x, including its constant."""
    x = i + whole(11)
    parts = normal(x // whole(7) * whole(7) + x % whole(7), EXTENTS)

    assert parts == normal(x, EXTENTS)


def test_quotient_and_another_remainder_join() -> None:
    """Dividends may differ by a multiple of the divisor, as what is 3 rows on among 7 of 56."""
    x = (i * whole(4) + j + whole(53)) % whole(56)
    parts = x // whole(7) * whole(7) + (i * whole(4) + j + whole(4)) % whole(7)
    other = x // whole(7) * whole(7) + (i * whole(4) + j + whole(5)) % whole(7)

    assert normal(parts, EXTENTS) == normal(x, EXTENTS)
    assert len(normal(other, EXTENTS).terms) == 2


def test_a_roll_back_is_nothing() -> None:
    """Remainders of a multiple of the divisor are left out of a dividend."""
    n = Var("n", dt.int64)
    extents = {**EXTENTS, "n": 56}
    rolled = (n + whole(53)) % whole(56)

    assert normal((rolled + whole(3)) % whole(56), extents) == normal(n, extents)
    assert normal(rolled % whole(7), extents) == normal((n + whole(4)) % whole(7), extents)
    assert normal((rolled * whole(2)) % whole(14), extents) == normal(
        (n + whole(4)) % whole(7) * whole(2), extents
    )
    assert repr(simplify(rolled % whole(9), extents)).count("op='%'") == 2
    windows = rolled // whole(7) * whole(7) + rolled % whole(7)
    assert normal((windows + whole(3)) % whole(56), extents) == normal(n, extents)


def test_remainders_stay_where_a_dividend_may_be_negative() -> None:
    """C rounds toward 0: a dividend with a negative coefficient is not put in place of it."""
    x = (whole(5) - k) % whole(8)

    assert repr(simplify((x + i) % whole(4), EXTENTS)).count("op='%'") == 2


@pytest.mark.parametrize("seed", range(8))
def test_simplifying_keeps_the_value(seed: int) -> None:
    """A random index has the same value at every point as its simplified form."""
    rng = random.Random(seed)

    def tree(depth: int) -> Expr:
        if depth == 0:
            return rng.choice([i, j, k, whole(rng.randrange(12))])
        op = rng.choice("++**/%")
        a = tree(depth - 1)
        if op in "/%":
            d = whole(rng.choice([1, 2, 3, 4, 5, 6, 12, 20, 60]))
            return a // d if op == "/" else a % d
        return a + tree(depth - 1) if op == "+" else a * whole(rng.randrange(1, 7))

    points = itertools.product(range(3), range(4), range(5))
    at = [dict(zip("ijk", map(int, point), strict=True)) for point in points]
    for _ in range(60):
        x = tree(4)
        simple = simplify(x, EXTENTS)
        assert [value_at(simple, values) for values in at] == [value_at(x, values) for values in at]


@pytest.mark.parametrize("shape", [(3, 4, 5), (12, 5), (60,), (3, 20), (1, 3, 1, 20, 1)])
def test_unravel_and_ravel(shape: tuple[int, ...]) -> None:
    """A linear index becomes one into any shape of as many elements, and back."""
    linear = ravel([i, j, k], (3, 4, 5), EXTENTS)

    assert ravel(unravel(linear, shape, EXTENTS), shape, EXTENTS) == linear


def test_refinement_leaves_no_division() -> None:
    """Axes that refine all shapes make every index a plain sum."""
    fine = common_refinement([(12, 10), (3, 40), (120,)])
    assert fine == (3, 4, 10)
    axes = [Var(f"a{n}", dt.int64) for n in range(3)]
    extents = {f"a{n}": e for n, e in enumerate(fine)}
    linear = ravel(axes, fine, extents)
    for shape in ((12, 10), (3, 40), (120,)):
        text = str([expression(normal(x, extents)) for x in unravel(linear, shape, extents)])
        assert "//" not in text and "%" not in text
    assert common_refinement([(2, 3), (3, 2)]) is None


def test_symbolic_extents_divide_exactly() -> None:
    """Indices are raveled and unraveled over extents that only a call knows."""
    n = pk.Size.symbol("n")
    extents = {"i": n, "j": 4}
    linear = ravel([i, j], (n, 4), extents)

    assert unravel(linear, (n * 4,), extents) == (expression(linear),)
    assert ravel(unravel(linear, (n, 2, 2), extents), (n, 2, 2), extents) == linear


def test_extents_that_are_sums_divide_exactly() -> None:
    """Indices over several extents such as n + 1 are found again after they were made one."""
    n, m = pk.Size.symbol("n") + 1, pk.Size.symbol("m") + 1
    extents = {"i": 3, "j": n, "k": m}
    k = Var("k", dt.int64)
    linear = ravel([i, j, k], (3, n, m), extents)

    assert unravel(linear, (3, n, m), extents) == (i, j, k)


def test_sums_are_added_and_scaled() -> None:
    """x + x is 2x; a quotient by 0, of an empty space, has no terms."""
    x = normal(i * whole(2) + whole(3), EXTENTS)

    assert add(x, x) == times(x, 2)
    assert divide(x, 0, EXTENTS).terms == ()


def value_at(x: Expr, values: dict[str, int], truncate: bool = False) -> int:
    """Evaluate an index; quotients are rounded down, or towards zero as in C."""
    if isinstance(x, Binary):
        a, b = value_at(x.a, values, truncate), value_at(x.b, values, truncate)
        if x.op in ("//", "%"):
            quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if truncate else a // b
            return quotient if x.op == "//" else a - quotient * b
        return a + b if x.op == "+" else a - b if x.op == "-" else a * b
    if isinstance(x, Unary):
        return -value_at(x.x, values, truncate)
    if isinstance(x, Var):
        return values[x.name]
    assert isinstance(x, (Const, SizeOf))
    return int(x.value if isinstance(x, Const) else x.size)  # type: ignore[call-overload]


@pytest.mark.parametrize("seed", range(8))
def test_quotients_are_right_where_division_truncates(seed: int) -> None:
    """Decreasing indices, divided repeatedly, are right in C, which rounds quotients to zero."""
    draw = random.Random(seed)
    for _ in range(100):
        steps = [draw.choice((-6, -4, -2, -1, 1, 2, 3, 8)) for _ in "ijk"]
        most = [n - 1 for n in EXTENTS.values()]
        lowest = -sum(min(0, c * m) for c, m in zip(steps, most, strict=True))
        a = normal(whole(lowest + draw.randint(0, 9)), EXTENTS)
        for v, c in zip((i, j, k), steps, strict=True):
            a = add(a, times(normal(v, EXTENTS), c))
        result, divisions = a, list[tuple[str, int]]()
        for _ in range(draw.randint(1, 3)):
            op, d = draw.choice("//%"), draw.choice((2, 3, 4, 8))
            result = divide(result, d, EXTENTS) if op == "/" else modulo(result, d, EXTENTS)
            divisions.append((op, d))
        for values in itertools.product(*map(range, EXTENTS.values())):
            at = dict(zip(EXTENTS, values, strict=True))
            exact = value_at(expression(a), at, truncate=True)
            for op, d in divisions:
                exact = exact // d if op == "/" else exact % d
            assert value_at(expression(result), at, truncate=True) == exact


def test_memoized_sums_belong_to_their_extents() -> None:
    """Each set of extents has a memo table of its own, of limited size."""
    i, j = Var("i", dt.int64), Var("j", dt.int64)
    x = Binary("//", i * 4 + j, const(4, dt.int64), dt.int64)
    few, many = Known([("i", 9), ("j", 4)]), Known([("i", 9), ("j", 8)])

    for extents in (few, many):
        assert normal(x, extents) == normal(x, dict(extents)) == normal(x, extents)
        assert extents.sums[x] is normal(x, extents)
    assert normal(x, few) != normal(x, many)
    for k in range(2 * Known.MOST):
        normal(i + const(k + 2, dt.int64), few)
    assert len(few.sums) == Known.MOST
