"""Several statements in one kernel: shared expressions, several results, and updated operands."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from passkit import xp

RNG = np.random.default_rng(11)


@pytest.mark.usefixtures("xp_queue")
def test_equal_expressions_of_several_statements_are_computed_once() -> None:
    """Expressions that are equal but were written twice are one in the kernel."""
    x, y = RNG.uniform(1, 2, (2, 8, 40))
    a, b = xp.asarray(x), xp.asarray(y)
    first = a / b + 1
    second = (a / b) * 2
    third = xp.sum(a / b, axis=1)
    with xp.inspect() as runs:
        xp.eval(first, second, third)
    text = "".join(map(str, runs[0].kernels))
    assert len(re.findall(r"x\d_\d / x\d_\d", text)) == 1
    for result, expected in ((first, x / y + 1), (second, x / y * 2), (third, (x / y).sum(1))):
        np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-12)


@pytest.mark.usefixtures("xp_queue")
def test_several_results_of_one_sum_and_its_transposed_operand() -> None:
    """``d = a + b`` and ``e = d * a.T`` are one run, which computes the sum once."""
    x, y = RNG.normal(size=(2, 40, 40))
    a, b = xp.asarray(x), xp.asarray(y)
    d = a + b
    e = d * a.T
    with xp.inspect() as runs:
        xp.eval(d, e)
    (kernel,) = runs[0].kernels
    assert str(kernel).count("x0_0 + x1_1") == 1
    assert runs[0].bytes_read == x.nbytes + y.nbytes
    np.testing.assert_array_equal(np.asarray(d), x + y)
    np.testing.assert_array_equal(np.asarray(e), (x + y) * x.T)


def transpose(a: Any) -> None:
    """Replace a matrix by its transpose."""
    a[...] = a.T


def shift(a: Any) -> None:
    """Move all rows up; source and destination overlap."""
    a[:-1] = a[1:]


def reverse(a: Any) -> None:
    """Reverse the rows."""
    a[...] = a[::-1]


def gather(a: Any) -> None:
    """Replace rows by other rows of the same matrix."""
    a[[0, 1, 2]] = a[[2, 0, 1]]


def add_transpose(a: Any) -> None:
    """Add the transpose in place."""
    a += a.T


def accumulate(a: Any) -> None:
    """Add a row, which is updated first, to all rows."""
    a += a[0]


@pytest.mark.parametrize("is_queued", [False, True])
@pytest.mark.parametrize("n", [5, 40])
def test_operands_that_are_updated_are_read_before(n: int, is_queued: bool) -> None:
    """An assignment whose source is the destination, read elsewhere, equals NumPy's result."""
    updates: list[Callable[[Any], None]] = [
        transpose,
        shift,
        reverse,
        gather,
        add_transpose,
        accumulate,
    ]
    with xp.config(small=0 if is_queued else 256):
        for update in updates:
            expected = RNG.normal(size=(n, n))
            a = xp.asarray(expected) + 0  # its memory may be taken
            xp.eval(a)
            update(a)
            update(a)
            for _ in range(2):
                # NumPy buffers overlapping operands of one assignment.
                update(expected)
            np.testing.assert_allclose(np.asarray(a), expected, err_msg=update.__name__)
