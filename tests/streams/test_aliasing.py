"""No result is stored over an array that somebody still has or reads otherwise."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from passkit import xp


def ramp(*shape: int) -> Any:
    """Return an array of rising numbers that only passkit refers to."""
    return xp.asarray(np.arange(np.prod(shape), dtype=np.float32).reshape(shape))


def test_an_array_with_another_name_is_not_overwritten() -> None:
    """A second array object of the same value keeps its bits."""
    x = ramp(40, 40)
    keep = x
    x = x + 1
    x.numpy()

    assert xp.stats()["aliases"] == 0
    np.testing.assert_array_equal(np.asarray(keep), np.arange(1600).reshape(40, 40))


def test_arrays_seen_by_numpy_are_not_overwritten() -> None:
    """Memory that a NumPy view refers to stays as it was, after the array is gone."""
    x = ramp(40, 40)
    view = np.asarray(x)
    x = x + 1
    x.numpy()

    assert view[39, 39] == 1599


def test_numpy_input_is_not_overwritten() -> None:
    """The user's own array is copied on the way in."""
    source = np.ones((40, 40), np.float32)
    x = xp.asarray(source)
    x = x * 2
    x.numpy()

    np.testing.assert_array_equal(source, 1)


def test_broadcast_operands_are_not_overwritten() -> None:
    """A row that is read for each row of the result gives no memory up."""
    x, row = ramp(40, 40), ramp(1, 40)
    keep = x
    result = x + row
    del row
    np.testing.assert_array_equal(
        np.asarray(result), np.asarray(keep) + np.arange(40, dtype=np.float32)
    )

    assert xp.stats()["aliases"] == 0


def test_assignments_in_place_change_no_other_array() -> None:
    """``+=`` gives one array a new value; another name of the same object sees it."""
    x = ramp(40, 40)
    same_object, y = x, x + 0
    x += 1

    assert same_object is x
    np.testing.assert_array_equal(np.asarray(y), np.arange(1600).reshape(40, 40))
    np.testing.assert_array_equal(np.asarray(x), np.arange(1600).reshape(40, 40) + 1)


def test_operands_of_a_result_that_stays_pending_are_kept() -> None:
    """A named intermediate result is computed again later, so its operand stays as it was.

    It is computed on the way to the result that is needed, but not written.
    """
    x = ramp(40, 40)
    t = x + 1
    o = t * 2
    del x
    expected = np.arange(1600, dtype=np.float32).reshape(40, 40) + 1

    np.testing.assert_array_equal(o.numpy(), expected * 2)
    np.testing.assert_array_equal(t.numpy(), expected)


def test_a_result_that_is_its_operand_gives_no_memory_up() -> None:
    """Where NumPy returns a view of an operand, neither is stored over."""
    with xp.config(max_explorations=0):
        x = ramp(40, 40)
        y = xp.reshape(x, (1600,))
        xp.eval(y)
    y = y + 1
    y.numpy()

    np.testing.assert_array_equal(np.asarray(x), np.arange(1600).reshape(40, 40))


def test_an_array_that_another_thread_reads_is_not_overwritten() -> None:
    """An operand of a pending array of another thread keeps its bits after its name is gone."""
    with ThreadPoolExecutor(1) as pool:
        shared = [ramp(40, 40)]
        theirs = pool.submit(lambda: shared[0] * 2).result()
        x = shared.pop() + 1
        np.testing.assert_array_equal(np.asarray(x), np.arange(1600).reshape(40, 40) + 1)

        np.testing.assert_array_equal(np.asarray(theirs), np.arange(1600).reshape(40, 40) * 2)
