"""Inputs whose memory a result may take: planned, and used by streams of arrays."""

from __future__ import annotations

import numpy as np

import passkit as pk


def donors(graph: pk.Graph) -> tuple[int, ...]:
    """Return the input of each output over which it may be stored, -1 for none."""
    passes = ["Fusion", "SchedulePlan", "SharedMemPlan", "CodeGen", "PlanMemory"]
    return pk.ApplyPasses(graph, passes).attrs["storage"].donors  # type: ignore[no-any-return]


def test_an_elementwise_result_may_replace_one_operand() -> None:
    """Each input serves at most one output, and only of its size."""
    x, y, short = pk.var("x", (40, 8)), pk.var("y", (40, 8)), pk.var("short", (8,))

    assert donors(pk.Graph([x + y, x * y])) == (0, 1)
    assert donors(pk.Graph([x + short])) == (0,)
    assert donors(pk.Graph([short + 1, x * 2])) == (0, 1)


def test_operands_that_are_read_otherwise_are_kept() -> None:
    """A transposed, reduced or later operand gives its memory to no result."""
    x = pk.var("x", (8, 8))

    assert donors(pk.Graph([pk.ops.transpose(x) + x])) == (-1,)
    assert donors(pk.Graph([x @ x])) == (-1,)
    assert donors(pk.Graph([x])) == (-1,)


def test_results_over_their_donors_are_right() -> None:
    """A native program that stores results over donors gives the same numbers."""
    x, y = pk.var("x", ("n", 8)), pk.var("y", ("n", 8))
    run = pk.compile(pk.Graph([x * 2 + y, x - y]))
    a = np.arange(160, dtype=np.float32).reshape(20, 8)
    b = a[::-1].copy()
    expected = run(x=a.copy(), y=b.copy())

    arrays = {"x": a, "y": b}
    operands = [arrays[i.name] for i in run.inputs]
    out = [operands[k] if k >= 0 else None for k in run.donors]
    results = run.run_into(out, *operands)

    assert any(array is not None for array in out)
    for result, array, value in zip(results, out, expected, strict=True):
        assert array is None or result is array
        np.testing.assert_array_equal(result, value)
