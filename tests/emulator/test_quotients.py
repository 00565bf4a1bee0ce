"""Quotients in CUDA C: no kernel divides by one number, and all bits are those of the division."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import passkit as pk
from tests.emulator.device import EmulatedDevice
from tests.emulator.graph_checks import compiled
from tests.planned import plan

F = np.float32


def special_numbers(rng: np.random.Generator) -> Any:
    """Return floats of all sizes and both signs, and those next to the limits."""
    bits = rng.integers(0, 2**32, 3000, np.uint32)
    near = np.array([0, 2**31, 1, 2, 0x7F7FFFFF, 0x7F800000, 0x7FC00000, 0xFF800000], np.uint32)
    tiny = rng.integers(0, 2**24, 500, np.uint32) | rng.integers(0, 2, 500, np.uint32) << 31
    return np.concatenate([near, tiny, bits])[:3500].view(F)


def source(text: str, **options: Any) -> str:
    """Return the text of a graph's only CUDA kernel."""
    (kernel,) = plan(text, target="cuda", **options).attrs["kernel"].values()
    return str(kernel.source)


def divides(text: str) -> bool:
    """Return whether a kernel's text has a quotient of floats; integers are divided by literals."""
    return re.search(r" / (?!\d+;|\d+ )", re.sub(r" / \d+( :|\))", "", text)) is not None


WITHOUT_DIVISION = {
    "x: f32[n]; return div(x, 3.0)": "over(quotient0, dividend0, known_divisor(3.0f",
    "x: f32[n]; return exp(div(add(x, 1.0), -3.0))": "known_divisor(-3.0f, -0.3333333",
    "x: f32[n]; return mul(x, add(erf(div(x, 1.5)), 1.0))": "near_over(x0_0, known_divisor(1.5f",
    "x: f32[40, 1000]; return div(x, reduce_sum(x, axis=1, keepdims=true))": (
        "const divisor by_reduce_sum_1("
    ),
    "x: f32[n]; return div(1.0, add(exp(x), 1.0))": "= reciprocal(",
    "x: f32[n]; return add(div(1.0, add(exp(x), 1.0)), 2.0)": "= near_reciprocal(",
}


@pytest.mark.parametrize("text", WITHOUT_DIVISION)
def test_no_division_by_one_number(text: str) -> None:
    """A literal, a value of a row, and a number from 1 on below 1."""
    kernel = source(text)

    assert WITHOUT_DIVISION[text] in kernel
    assert not divides(kernel)


DIVIDED = {
    "x: f32[n]; return div(x, 0.0)": "/ 0.0f",
    "x: f32[n]; y: f32[n]; return div(x, y)": " / x1",
    "x: f32[n]; return div(1.0, x)": "1.0f / ",
    "x: f32[n]; return div(1.0, add(x, 1.0))": "1.0f / ",
    "x: f64[n]; return div(x, 3.0)": "/ 3.0",
    "x: f32[n]; return div(x, 1e-30)": "/ 1.0e-30f",
}


@pytest.mark.parametrize("text", DIVIDED)
def test_other_numbers_divide(text: str) -> None:
    """Elements, literals without a reciprocal in two parts, and doubles divide."""
    assert DIVIDED[text] in source(text)


@pytest.mark.parametrize(
    "text, near",
    [
        ("mul(x, add(erf(div(x, 1.5)), 1.0))", True),
        ("where(greater(div(x, 1.5), 0.0), 1.0, 2.0)", True),
        ("where(greater(div(x, 2.5), 0.0), 1.0, 2.0)", False),
        ("where(greater(div(x, 1.5), 1e-38), 1.0, 2.0)", False),
        ("where(greater(div(x, 2.5), 1e-3), 1.0, 2.0)", True),
        ("mul(x, erf(div(x, 1.5)))", False),
        ("add(x, div(x, 1.5))", False),
        ("sub(1.0, mul(x, div(x, 1.5)))", False),
        ("sub(1.0, mul(tanh(x), div(x, 1.5)))", True),
        ("add(mul(div(x, 1.5), 1e30), 1.0)", False),
        ("exp(neg(square(div(x, 1.5))))", True),
        ("log(div(x, 1.5))", False),
    ],
)
def test_bits_next_to_0_are_left_out_where_nothing_depends_on_them(text: str, near: bool) -> None:
    """They are where a literal far above them is added, and where a sign alone is asked for."""
    assert ("near_over(" in source(f"x: f32[n]; return {text}")) == near


GRAPHS = {
    "by a literal": "x: f32[n]; return div(x, 3.0), div(x, 0.1), div(x, -7.0), div(x, 1e9)",
    "unaligned": "x: f32[n]; return div(slice(x, begin=(3,), size=(-1,)), 255.0)",
    "twice": "x: f32[n]; return div(add(div(x, 255.0), -0.485), 0.229), div(div(x, 3.0), 7.0)",
    "chosen": "x: f32[n]; return where(less(x, 1.0), div(x, 3.0), div(x, 7.0))",
    "absorbed": "x: f32[n]; return add(div(x, 1.5), 1.0), where(greater(div(x, 1.5), 0.0), x, 2.0)",
    "reciprocal": (
        "x: f32[n]; y = div(1.0, add(abs(x), 1.0)); z = div(1.0, add(mul(x, x), 2.0))\n"
        "return y, add(z, 1.0)"
    ),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_bits_are_those_of_the_division(name: str, rng: Any) -> None:
    """Of floats of all sizes, denormal and infinite ones; also in the rest of vectors."""
    text = GRAPHS[name]
    graph = pk.parse(text)
    (exe,) = compiled([graph], [{}], EmulatedDevice())
    assert isinstance(exe, pk.Executable), exe
    x = special_numbers(rng)
    for n in (x.size, 37, 1027):
        if "slice" in text and n == x.size:
            n -= 1
        feeds = {"x": x[:n]}
        with np.errstate(all="ignore"):
            expected = pk.interpret(graph, feeds)
        for a, b in zip(exe(feeds), expected, strict=True):
            np.testing.assert_array_equal(a, b)
            finite = b == b
            assert (np.signbit(a) == np.signbit(b))[finite].all()


@pytest.mark.parametrize("shape", [(9, 1000), (70, 40), (3, 4097)])
def test_bits_of_quotients_by_a_row_s_value(shape: tuple[int, int], rng: Any) -> None:
    """Divisors are numbers of all sizes, 0, infinite and NaN; one kernel divides all of a row."""
    x, s = pk.var("x", shape), pk.var("s", (shape[0], 1))
    largest = pk.ops.reduce_max(s, axis=1, keepdims=True)
    graph = pk.Graph([pk.ops.div(x, largest)])
    (exe,) = compiled([graph], [{}], EmulatedDevice())
    assert isinstance(exe, pk.Executable), exe
    numbers = special_numbers(rng)
    divisors = rng.choice(numbers, (shape[0], 1))
    some = np.array([3, 1, 0, -0.0, np.inf, np.nan, 1e-42, -5, 777], F)[: shape[0]]
    divisors[: some.size, 0] = some
    feeds = {"x": rng.choice(numbers, shape), "s": divisors}
    feeds["x"][0] = rng.standard_normal(shape[1]).astype(F)

    with np.errstate(all="ignore"):
        (expected,) = pk.interpret(graph, feeds)
    (result,) = exe(feeds)

    np.testing.assert_array_equal(result, expected)
    finite = expected == expected
    assert (np.signbit(result) == np.signbit(expected))[finite].all()
