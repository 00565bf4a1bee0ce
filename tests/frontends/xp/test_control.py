"""Evaluation, settings, counters and inspection of streams."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit import xp
from passkit.errors import ArgumentError, SettingError


def ones(*shape: int) -> Any:
    """Return a float32 array of ones."""
    return xp.asarray(np.ones(shape, np.float32))


def test_eval_computes_several_arrays_in_one_run() -> None:
    """Two results of one expression are written by one kernel, and others stay pending."""
    x = ones(64, 64)
    a = x + 1
    b, other = a * 2, x * 7
    with xp.config(compile_at=0), xp.inspect() as runs:
        xp.eval(a, b)

    assert [(r.reason, len(r.kernels), r.written) for r in runs] == [("eval", 1, (0, 1))]
    assert runs[0].pending == (2,)
    np.testing.assert_array_equal(np.asarray(other), 7)


def test_eval_without_arrays_computes_all_that_live() -> None:
    """Everything that has a name is computed, and the queue is empty."""
    x = ones(64, 64)
    a, b = x + 1, x * 3
    x + 5

    xp.eval()

    assert xp.pending_operations() == 0
    assert "pending" not in repr(a) + repr(b)


def test_eval_takes_nested_results() -> None:
    """Lists, tuples and dicts of arrays are computed, at any depth."""
    x = ones(64, 64)
    a, b, c = x + 1, x * 3, x - 2

    xp.eval((a, [b]), {"c": c})

    assert "pending" not in repr(a) + repr(b) + repr(c)


def test_eval_needs_arrays() -> None:
    """A NumPy array has nothing to evaluate."""
    with pytest.raises(ArgumentError, match="eval: argument 1 .* got an array float64"):
        xp.eval(ones(2), np.ones(2))  # type: ignore[arg-type]


def test_settings_are_restored_after_a_block() -> None:
    """As a context manager, `config` is undone at the end of its block, also by an error."""
    with pytest.raises(ZeroDivisionError), xp.config(max_ops=3) as settings:
        assert settings.max_ops == 3
        raise ZeroDivisionError
    with xp.config() as settings:
        assert settings.max_ops == 768


def test_unknown_settings_and_values_are_refused() -> None:
    """The message names the setting, what it may be, and what it got; nothing is changed."""
    with pytest.raises(SettingError, match="no setting 'max_op'.*max_ops"):
        xp.config(max_op=3)
    with pytest.raises(SettingError, match="materialize must be one of 'demand', 'live', got 'a'"):
        xp.config(materialize="a")
    with pytest.raises(SettingError, match="inplace must be True or False, got 1"):
        xp.config(inplace=1)
    with pytest.raises(SettingError, match="max_ops must be an integer of at least 1, got 0"):
        xp.config(small=7, max_ops=0)
    with xp.config() as settings:
        assert settings.small == 256


@pytest.mark.parametrize("max_ops", [1, 2, 3])
@pytest.mark.parametrize("compile_at", [0, 1 << 18])
def test_full_queues_with_operations_of_several_results(max_ops: int, compile_at: int) -> None:
    """A queue may be full when the results of an operation are selected."""
    matrix = np.array([[2.0, 1.0], [1.0, 3.0]])
    with xp.config(max_ops=max_ops, compile_at=compile_at, small=0):
        x = xp.asarray(matrix)
        values, vectors = xp.linalg.eigh(x + 0)
        loss, gradient = pk.value_and_grad(lambda x: xp.sum(x * x))(x + 0)
        np.testing.assert_allclose(vectors @ xp.diag(values) @ vectors.T, matrix, rtol=1e-12)
        assert float(loss) == 15
        np.testing.assert_array_equal(gradient, 2 * matrix)


def test_eager_blocks_execute_operations_with_several_results() -> None:
    """All their results are there at the end of the block."""
    with xp.eager():
        values, vectors = xp.linalg.eigh(xp.asarray([[2.0, 0.0], [0.0, 1.0]]))
    assert xp.pending_operations() == 0
    assert values.tolist() == [1, 2]
    assert np.abs(vectors).tolist() == [[0, 1], [1, 0]]


def test_eager_blocks_execute_each_operation() -> None:
    """Inside `eager`, every operation is a run of its own."""
    x = ones(64, 64)
    with xp.inspect() as runs, xp.eager():
        y = (x + 1) * 2 - x

    assert x.shape == y.shape
    assert [r.operations for r in runs] == [("add",), ("multiply",), ("subtract",)]
    np.testing.assert_array_equal(np.asarray(y), 3)


def test_a_stream_of_its_own_is_executed_apart() -> None:
    """Arrays that are pending outside stay pending when a result of the block is needed."""
    x = ones(64, 64)
    outside = x + 1
    with xp.stream():
        inside = x * 2
        np.testing.assert_array_equal(np.asarray(inside), 2)

    assert "pending" in repr(outside)


def test_arrays_of_an_inner_stream_can_be_used_outside() -> None:
    """An array that a block left pending is computed when the outer stream reads it."""
    x = ones(64, 64)
    with xp.stream():
        inside = x * 2

    np.testing.assert_array_equal(np.asarray(inside + x), 3)


def test_inspection_tells_what_ran_and_why() -> None:
    """The text of a run names its reason, operations, bytes and what stays pending."""
    x = ones(64, 64)
    with xp.config(compile_at=0), xp.inspect() as runs:
        y = x + 1
        z = y * 2
        np.asarray(z)

    text = str(runs[0])
    assert text.startswith("numpy: ran add, multiply (")
    assert "1 kernel), read 16,384 and wrote 16,384 bytes" in text
    assert text.endswith("add stay pending")


def test_counters_begin_at_the_reset() -> None:
    """`stats` counts since `reset_stats`."""
    xp.reset_stats()
    assert set(xp.stats().values()) == {0}

    np.asarray(ones(64, 64) + 1)

    assert xp.stats()["recorded"] == 1
