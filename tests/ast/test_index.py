"""Index algebra: sums in normal form, mixed radix taken apart and put together again."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

from passkit.ast import Binary, Const, Expr, SizeOf, Unary, Var, const
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
from passkit.runtime.evaluate import evaluate
from passkit.values import dtype as dt
from passkit.values.size import Size

i, j, k = (Var(n, dt.int64) for n in "ijk")
EXTENTS = {"i": 3, "j": 4, "k": 5}


def whole(n: int) -> Expr:
    """A literal."""
    return const(n, dt.int64)


def test_equal_indices_have_equal_sums() -> None:
    """Order and grouping do not matter; terms cancel."""
    assert normal(i * whole(4) + j, EXTENTS) == normal(j + i + i * whole(3), EXTENTS)
    assert normal(i - i, EXTENTS).terms == ()
    assert normal(-i, EXTENTS).coefficient(i) == -1
    assert normal(i, {"i": 1}).terms == ()


def test_mixed_radix_comes_apart() -> None:
    """``(i*4 + j) // 4`` is i, and the rest j; by 2 it is 2i + j // 2."""
    both = normal(i * whole(4) + j, EXTENTS)

    assert divide(both, 4, EXTENTS) == normal(i, EXTENTS)
    assert modulo(both, 4, EXTENTS) == normal(j, EXTENTS)
    assert divide(both, 1, EXTENTS) == both and modulo(both, 1, EXTENTS).terms == ()
    assert divide(both, 8, EXTENTS) == normal(i // whole(2), EXTENTS)


def test_quotient_and_rest_come_together() -> None:
    """``x // d * d + x % d`` is x again, with its constant."""
    x = i + whole(11)
    parts = normal(x // whole(7) * whole(7) + x % whole(7), EXTENTS)

    assert parts == normal(x, EXTENTS)


@pytest.mark.parametrize("seed", range(8))
def test_simplifying_keeps_the_value(seed: int) -> None:
    """Random indices at every point: as written and in normal form."""
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

    points = np.array(list(itertools.product(range(3), range(4), range(5)))).T
    values: Any = dict(zip("ijk", points, strict=True))
    for _ in range(60):
        x = tree(4)
        found, wanted = (evaluate(y, values) for y in (simplify(x, EXTENTS), x))
        assert (found == wanted).all()


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


def test_unknown_extents() -> None:
    """Sizes by name divide each other exactly."""
    n = Size.symbol("n")
    extents = {"i": n, "j": 4}
    linear = ravel([i, j], (n, 4), extents)

    assert unravel(linear, (n * 4,), extents) == (expression(linear),)
    assert ravel(unravel(linear, (n, 2, 2), extents), (n, 2, 2), extents) == linear


def test_arithmetic_of_sums() -> None:
    """Scaling and adding; an empty space divides to nothing."""
    x = normal(i * whole(2) + whole(3), EXTENTS)

    assert add(x, x) == times(x, 2)
    assert divide(x, 0, EXTENTS).terms == ()


def towards_zero(x: Expr, values: dict[str, int]) -> int:
    """What C makes of an index."""
    if isinstance(x, Binary):
        a, b = towards_zero(x.a, values), towards_zero(x.b, values)
        if x.op in ("//", "%"):
            quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            return quotient if x.op == "//" else a - quotient * b
        return a + b if x.op == "+" else a - b if x.op == "-" else a * b
    if isinstance(x, Unary):
        return -towards_zero(x.x, values)
    if isinstance(x, Var):
        return values[x.name]
    assert isinstance(x, (Const, SizeOf))
    return int(x.value if isinstance(x, Const) else x.size)  # type: ignore[call-overload]


@pytest.mark.parametrize("seed", range(8))
def test_no_negative_number_is_divided(seed: int) -> None:
    """Indices that count down, divided again and again, as C rounds quotients."""
    draw = random.Random(seed)
    for _ in range(100):
        steps = [draw.choice((-6, -4, -2, -1, 1, 2, 3, 8)) for _ in "ijk"]
        most = [n - 1 for n in EXTENTS.values()]
        lowest = -sum(min(0, c * m) for c, m in zip(steps, most, strict=True))
        a = normal(whole(lowest + draw.randint(0, 9)), EXTENTS)
        for v, c in zip((i, j, k), steps, strict=True):
            a = add(a, times(normal(v, EXTENTS), c))
        found, wanted = a, list[tuple[str, int]]()
        for _ in range(draw.randint(1, 3)):
            op, d = draw.choice("//%"), draw.choice((2, 3, 4, 8))
            found = divide(found, d, EXTENTS) if op == "/" else modulo(found, d, EXTENTS)
            wanted.append((op, d))
        for values in itertools.product(*map(range, EXTENTS.values())):
            at = dict(zip(EXTENTS, values, strict=True))
            exact = towards_zero(expression(a), at)
            for op, d in wanted:
                exact = exact // d if op == "/" else exact % d
            assert towards_zero(expression(found), at) == exact


def test_kept_sums_are_those_of_their_extents() -> None:
    """What is found under some extents is kept for them alone, and not without end."""
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
