"""References to the memory of arrays, and memory that NumPy may write to."""

from __future__ import annotations

import sys

import numpy as np

from passkit.frontends.xp.array import Array, wrap
from passkit.frontends.xp.runtime import from_numpy


def references(x: Array) -> tuple[int, int]:
    """Return the numbers of references to the value of an array and to its buffer.

    References of this function and its caller count.
    """
    return sys.getrefcount(x._value), sys.getrefcount(x._value.buffer)


UNSHARED = references(wrap(from_numpy(np.zeros(1))))
"""The numbers that `references` returns for a value of one array alone."""


def expose(x: Array) -> bool:
    """Let NumPy write to the memory of a computed array, if nothing else refers to it.

    Returns: Whether it may, which the value notes. Else it is the memory of several arrays or a
    part of another one, or pending operations read it, or the array has a triangular view.
    """
    if x._value.type.band is not None:
        return False
    if x._value.is_exposed:
        return True
    is_unshared = x._value.is_owned and references(x) == UNSHARED
    if not is_unshared or x._value.buffer.base is not None:
        return False
    x._value.is_exposed = True
    return True
