"""Results that a run writes: those that are waited for, those needed later, and no others."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from passkit import xp

TENSOR = 32 * 32 * 4
"""The bytes of one array of the examples in Burn's article."""


def arrays(count: int) -> list[Any]:
    """Return arrays of 32 x 32 random numbers, of which nobody else has the memory."""
    rng = np.random.default_rng(0)
    return [xp.asarray(rng.random((32, 32), dtype=np.float32)) for _ in range(count)]


def traffic() -> tuple[int, int, int, int, int]:
    """Return bytes allocated, read and written, kernels, and results in place, since the reset."""
    counts = xp.stats()
    return (
        counts["bytes_allocated"],
        counts["bytes_read"],
        counts["bytes_written"],
        counts["launches"],
        counts["aliases"],
    )


def test_named_temporaries_are_not_written() -> None:
    """Burn's example: of three operations, one kernel writes only the last result."""
    x, y = arrays(2)
    t = x + y
    u = t * x
    o = u * y

    result = o.numpy()

    assert traffic() == (TENSOR, 2 * TENSOR, TENSOR, 1, 0)
    a, b = np.asarray(x), np.asarray(y)
    np.testing.assert_array_equal(result, (a + b) * a * b)
    np.testing.assert_array_equal(np.asarray(t), a + b)  # it is computed when it is needed
    np.testing.assert_array_equal(np.asarray(u), (a + b) * a)


def test_all_live_results_are_written_on_request() -> None:
    """With ``materialize="live"``, as in Burn, the same kernel writes the temporaries, too."""
    x, y = arrays(2)
    with xp.config(materialize="live"):
        t = x + y
        u = t * x
        o = u * y
        o.numpy()

    assert traffic() == (3 * TENSOR, 2 * TENSOR, 3 * TENSOR, 1, 0)
    assert t.shape == u.shape


def test_eager_operations_write_everything() -> None:
    """Inside `xp.eager`, each operation is a kernel, and reads and writes its arrays."""
    x, y = arrays(2)
    with xp.eager(), xp.config(inplace=False):
        o = (x + y) * x * y
        o.numpy()

    assert traffic() == (3 * TENSOR, 6 * TENSOR, 3 * TENSOR, 3, 0)


def test_a_result_takes_the_memory_of_a_dead_operand() -> None:
    """An input that nothing refers to any more gives its memory to the result."""
    x, y = arrays(2)
    o = x + y
    o = o * x
    del x
    o = o * y
    del y

    o.numpy()

    assert traffic() == (0, 2 * TENSOR, TENSOR, 1, 1)


def test_a_loop_runs_in_one_array() -> None:
    """Four iterations that replace an array allocate nothing."""
    (x,) = arrays(1)
    expected = np.array(x)
    for _ in range(4):
        x = x * 2
        x = x + 1
        x._numpy()
        expected = expected * np.float32(2) + np.float32(1)

    assert traffic() == (0, 4 * TENSOR, 4 * TENSOR, 4, 4)
    np.testing.assert_array_equal(np.asarray(x), expected)


def test_a_pending_result_keeps_its_operands() -> None:
    """An input of a result that is not computed yet is not overwritten."""
    (x,) = arrays(1)
    expected = np.array(x)
    t = x + 1
    o = x * 2
    del x

    first = o.numpy()

    assert xp.stats()["aliases"] == 0
    np.testing.assert_array_equal(first, expected * 2)
    np.testing.assert_array_equal(t.numpy(), expected + 1)


def _rebound(x: Any, y: Any) -> Any:
    """Compute with one name for all intermediate results."""
    x = x + y
    x = x * y
    return x - y


def _in_locals(x: Any, y: Any) -> Any:
    """Compute with a name for each intermediate result."""
    a = x + y
    b = a * y
    return b - y


def _nested(x: Any, y: Any) -> Any:
    """Compute in one expression."""
    return (x + y) * y - y


@pytest.mark.parametrize("function", [_rebound, _in_locals, _nested])
def test_intermediate_results_are_never_written(function: Callable[..., Any]) -> None:
    """Temporaries, rebound names and names of a function: one kernel writes one array."""
    x, y = arrays(2)

    result = function(x, y).numpy()

    assert traffic()[1:4] == (2 * TENSOR, TENSOR, 1)
    a, b = np.asarray(x), np.asarray(y)
    np.testing.assert_array_equal(result, (a + b) * b - b)


def test_results_survive_tracebacks_and_reference_cycles() -> None:
    """An array that only a kept traceback or a cycle refers to costs nothing but its memory."""
    x, y = arrays(2)
    kept = None
    try:
        t = x + y
        raise ValueError("kept")
    except ValueError as error:
        kept = error
    cycle = [x * y]
    cycle.append(cycle)  # type: ignore[arg-type]
    del cycle

    total = float(((x - y) * 0).numpy().sum())
    gc.collect()
    np.testing.assert_array_equal(np.asarray(t), np.asarray(x) + np.asarray(y))

    assert total == 0 and kept is not None


def test_what_only_stays_referred_to_is_not_written_from_then_on() -> None:
    """Two results that are read one after the other need no write of what both are made of."""

    def both(x: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        base = x + 1  # stays referred to while both are read
        first, second = base * 2, base * 3
        return np.asarray(first), np.asarray(second)

    (x,) = arrays(1)
    for _ in range(3):
        with xp.inspect() as runs:
            first, second = both(x)
        np.testing.assert_array_equal(first, (np.asarray(x) + 1) * 2)
        np.testing.assert_array_equal(second, (np.asarray(x) + 1) * 3)

    assert [run.bytes_written for run in runs] == [2 * TENSOR]


def test_a_result_that_was_needed_later_is_written_at_once_from_then_on() -> None:
    """In a loop that carries a value, the value is computed once in each iteration."""
    weights = xp.asarray(np.ones((64, 64), np.float32))
    expected = np.ones((64, 64), np.float32)
    with xp.inspect() as runs:
        for _ in range(8):
            loss = weights * weights
            weights = weights - weights * 0.25
            np.asarray(loss)
            expected = expected - expected * np.float32(0.25)

    assert [run.pending for run in runs[-2:]] == [(), ()]
    assert len(runs[-1].operations) == 3
    np.testing.assert_array_equal(np.asarray(weights), expected)


def test_dropped_arrays_leave_nothing_behind() -> None:
    """After all arrays are gone, the queue is empty and no buffer stays."""
    import weakref

    buffers = []
    for _ in range(20):
        x, y = arrays(2)
        z = x * y + x
        t = z + 1
        np.asarray(t)
        buffers += [weakref.ref(np.asarray(a).base) for a in (x, y, t)]
        del x, y, z, t
    xp.eval()
    gc.collect()

    assert [b for b in buffers if b() is not None] == []
    assert xp.pending_operations() == 0
