"""Views that stay parts of their arrays, with the setting ``aliasing``, against NumPy."""

from __future__ import annotations

from threading import Thread
from typing import Any
from weakref import ref

import numpy as np
import pytest

from passkit import xp
from passkit.errors import SettingError


def program(m: Any) -> list[Any]:
    """Return arrays that are changed through views, computed in NumPy or `passkit.xp`."""
    x = m.asarray(np.arange(24.0).reshape(4, 6))
    row, block = x[1], x[2:, 1:4]
    row += 100
    block[0] = -1
    block *= 2
    column = x.T[5]
    column[1:] = 7
    flat = m.reshape(x, (-1,))
    flat[:2] = 50
    first, second = m.reshape(m.asarray(np.arange(8.0)), (2, 4))
    pair = m.reshape(m.asarray(np.arange(8.0)), (2, 4))
    upper, lower = pair
    upper[upper > 2] = 9
    lower -= 1
    copied = x.copy()
    copied[...] = 0
    whole = x.flatten()
    whole += 1
    reverse = m.flip(x, axis=1)
    reverse[0, 0] = 33
    wide = m.expand_dims(x, axis=0)
    wide[0, 3] = 4
    later = x[3]
    x[3, 2:] = 11
    return [x, row, block, column, flat, first, second, pair, upper, lower, later, wide]


@pytest.mark.parametrize("small", [0, 256])
def test_views_are_parts_of_their_arrays(small: int) -> None:
    """Assignments through slices, reshaped and transposed arrays are NumPy's, in all names."""
    reference = program(np)
    with xp.config(aliasing=True, small=small):
        results = program(xp)
        xp.eval(results)
    for number, (result, expected) in enumerate(zip(results, reference, strict=True)):
        np.testing.assert_array_equal(np.asarray(result), expected, str(number))


@pytest.mark.parametrize("small", [0, 256])
def test_subscripts_of_numpy_integers_are_views(small: int) -> None:
    """NumPy's integers, and bounds of slices with ``__index__``, select views, as Python's do."""
    with xp.config(aliasing=True, small=small):
        x, reference = xp.zeros((3, 4)), np.zeros((3, 4))
        bound = xp.asarray(2)
        for y in (x, reference):
            row, columns, element = y[np.int64(1)], y[:, np.int64(2) :], y[0, 0, ...]
            row += 1
            columns *= 3
            block = y[: bound.__index__()] if y is reference else y[:bound]
            block -= 5
            element[...] = 8
        np.testing.assert_array_equal(np.asarray(x), reference)


def test_arrays_are_values_without_aliasing() -> None:
    """By default, an assignment changes one array, and the views of earlier settings are gone."""
    x = xp.asarray(np.zeros((3, 3)))
    y = x[1]
    y += 1
    assert float(xp.sum(x)) == 0.0
    with pytest.raises(SettingError, match="aliasing must be True or False, got 1"):
        xp.config(aliasing=1)


def test_views_keep_nothing_alive_when_they_are_gone() -> None:
    """A base lives as long as its views, and no longer."""
    with xp.config(aliasing=True):
        x = xp.asarray(np.zeros((8, 300)))
        for k in range(8):
            x[k][:] = k
        assert float(xp.sum(x)) == 300.0 * 28
        base, view = ref(x), x[2:, ::3]
        del x
        assert base() is not None
        view[...] = 1
        assert float(xp.sum(view)) == 600.0
        del view
        assert base() is None


@pytest.mark.parametrize("small", [0, 256])
def test_numpy_writes_to_views_and_their_arrays(small: int) -> None:
    """The NumPy array of a view has memory of its base: writes to one are seen by all of them."""
    with xp.config(aliasing=True, small=small):
        x = xp.asarray(np.zeros((4, 300)))
        threads = [Thread(target=lambda k=k: np.asarray(x[k, ...]).fill(k)) for k in range(4)]
        for thread in threads:
            thread.start()
            thread.join()
        assert float(xp.sum(x)) == 300.0 * 6

        base = xp.reshape(xp.arange(1024), (32, 32))
        doubled, transposed, reverse, row = 2 * base, base.T, xp.flip(base), base[3]
        before = row + 0
        np.multiply(base, 2, out=np.asarray(base))
        np.testing.assert_array_equal(np.asarray(doubled), np.asarray(base))
        memory = np.asarray(transposed)
        memory[0, 3] = -5
        assert [int(row[0]), int(reverse[-4, -1]), int(base[3, 0])] == [-5, -5, -5]
        assert int(before[0]) == 96

        row += 1
        assert [int(base[3, 0]), int(transposed[0, 3]), int(memory[0, 3])] == [-4, -4, -5]
        flat = xp.reshape(transposed, (-1,))
        assert not np.shares_memory(np.asarray(flat), np.asarray(base)), "it is in another order"


def test_numpy_writes_to_a_copy_of_shared_memory() -> None:
    """With the setting, an array whose memory others have is written to alone."""
    with xp.config(aliasing=True):
        x = xp.asarray(np.ones(300))
        y, later = xp.asarray(x, copy=True), x + 1
        np.asarray(x)[0] = 7.0
        assert [float(a[0]) for a in (x, y, later)] == [7.0, 1.0, 2.0]
        triangle = xp.tril(xp.ones((20, 20)))
        assert not np.asarray(triangle).flags.writeable, "it promises zeros"
