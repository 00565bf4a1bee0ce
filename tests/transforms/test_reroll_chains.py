"""Long chains of one operation on a CPU: loops with the same bits, and those that stay chains."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit import ops
from passkit.graph.graph import Graph
from tests.together import compiled

pytestmark = pytest.mark.usefixtures("quick_kernels")
LOOP = re.compile(r"for \(int64_t (\w+)_operand = (\d+); \1_operand < (\d+); \+\+\1_operand\)")


def loops_of(executable: pk.Executable) -> list[tuple[int, int]]:
    """Return the first and last position of each loop over the operands of a chain."""
    return [(int(start), int(stop)) for _, start, stop in LOOP.findall(executable.source)]


def floats(*shape: int) -> Any:
    """Return random numbers."""
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def in_order(terms: Any) -> Any:
    """Return the sum of 0 and of terms along the first axis, one after the other."""
    total = np.zeros(terms.shape[1:], terms.dtype)
    for term in terms:
        total = total + term
    return total


def test_sums_of_products_are_loops_in_the_same_order() -> None:
    """A sum of 20 products is a loop, for columns of any number."""
    x, y = (pk.var(name, (20, 333)) for name in "xy")
    a, b = (pk.var(name, (20, "n")) for name in "ab")
    graphs = [Graph([ops.reduce_sum(p * q, axis=0)]) for p, q in ((x, y), (a, b))]
    left, right = floats(20, 333), floats(333, 20).T.copy()
    expected = in_order(left * right)

    literal, symbolic = compiled(graphs)
    assert loops_of(literal) == loops_of(symbolic) == [(0, 20)]
    assert literal(x=left, y=right)[0].tobytes() == expected.tobytes()
    assert symbolic(a=left, b=right)[0].tobytes() == expected.tobytes()


def test_a_chain_without_an_identity_begins_with_its_first_operand() -> None:
    """The greatest of 24 magnitudes is a loop over all but the first; NaN is the greatest."""
    data = floats(24, 200)
    data[3, 5], data[0, 7] = np.nan, np.nan
    exe = pk.compile(ops.reduce_max(ops.abs(pk.var("x", (24, 200))), axis=0))

    assert loops_of(exe) == [(1, 24)]
    np.testing.assert_array_equal(exe(x=data)[0], np.abs(data).max(axis=0))


def test_loads_of_a_kernel_with_several_results_move_into_the_loop() -> None:
    """Two sums of 16 squares in one kernel are two loops, and no load is in front of them."""
    x, y = pk.var("x", (16, 100)), pk.var("y", (16, 100))
    exe = pk.compile(Graph([ops.reduce_sum(v * v, axis=0) for v in (x, y)]))
    data = [floats(16, 100), floats(16, 100) + 1]

    assert len(exe.kernels) == 1
    assert loops_of(exe) == [(0, 16), (0, 16)]
    for actual, values in zip(exe(x=data[0], y=data[1]), data, strict=True):
        assert actual.tobytes() == in_order(values * values).tobytes()


def test_what_is_no_long_chain_of_operations_stays_an_expression() -> None:
    """Chains of loads alone, of 15 operands, and of rows of which some are guarded have no loop."""
    x, image = pk.var("x", (20, 90)), pk.var("image", (1, 40, 40, 16))
    pool = ops.avg_pool2d(ops.exp(image), (1, 17), strides=1, padding="SAME")
    graphs = [
        Graph([ops.reduce_sum(x, axis=0)]),
        Graph([ops.reduce_sum(ops.exp(pk.var("x", (15, 90))), axis=0)]),
        Graph([pool]),
    ]
    executables = compiled(graphs)
    assert [loops_of(e) for e in executables] == [[], [], []]

    data = floats(20, 90)
    assert executables[0](x=data)[0].tobytes() == in_order(data).tobytes()
    pixels = floats(1, 40, 40, 16)
    np.testing.assert_allclose(
        executables[2](image=pixels)[0], pk.interpret(graphs[2], {"image": pixels})[0], rtol=1e-5
    )
