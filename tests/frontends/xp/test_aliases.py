"""Views that stay parts of their arrays, with the setting ``aliasing``, against NumPy."""

from __future__ import annotations

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
