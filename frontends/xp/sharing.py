"""References to the memory of arrays, and memory that NumPy may write to."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np

from passkit.frontends.xp.aliases import root_of, views_of
from passkit.frontends.xp.array import Array, wrap
from passkit.frontends.xp.runtime import from_numpy


def references(x: Array) -> tuple[int, int]:
    """Return the numbers of Python references to the value of an array and to its buffer.

    They include those of this call, so that only a comparison with `UNSHARED` says something.
    """
    return sys.getrefcount(x._value), sys.getrefcount(x._value.buffer)


_lock = threading.Lock()

UNSHARED = references(wrap(from_numpy(np.zeros(1))))
"""The numbers that `references` returns for a value of one array alone."""


def expose(x: Array) -> bool:
    """Let NumPy write to the memory of a computed array, if nothing else refers to it.

    Returns: Whether it may; then the value is marked as exposed. False if it is the memory of
        several arrays or a part of another one, if pending operations read it, if the array has a
        triangular view, or if it is on a device.
    """
    if x._value.type.band is not None or x._value.type.device is not None:
        return False
    if x._value.is_exposed:
        return True
    is_unshared = x._value.is_owned and references(x) == UNSHARED
    if not is_unshared or x._value.buffer.base is not None:
        return False
    x._value.is_exposed = True
    return True


def expose_views(x: Array) -> bool:
    """Let NumPy write to the memory of an array, and so to the array it is a view of.

    The array that ``x`` is a view of, or ``x`` itself, is computed, and all views of it get parts
    of its memory, in place. Where other arrays or pending operations have that memory, they keep
    it, and this array and its views get a copy.

    Returns: Whether it may. False if the array has a triangular view, or ``x`` cannot be a NumPy
        view of the array that it is a part of.

    Raises: PasskitError if an operation that it needs fails; ConcretizationError if it depends on
    arguments of a function that is traced.
    """
    root = root_of(x)
    if root._value.type.band is not None:
        return False
    root._numpy()
    with _lock:  # threads may write to parts of one array
        if not expose(root):
            root._value = from_numpy(np.array(root._value.buffer, order="C"))
            root._value.is_exposed = True
        root._value.is_owned = False
        share(root)
        return x._value.is_exposed


def share(base: Array) -> None:
    """Give the views of a computed array, and views of these, parts of its memory, in place.

    NumPy may write to it from then on. A view that no part of the memory can be, such as a
    transposed array in another shape, stays as it is.
    """
    memory: Any = base._value.buffer
    for view, alias in views_of(base):
        part = alias.memory
        if view._value.buffer is not part or not np.may_share_memory(memory, part):
            part = alias.part(memory)
            if not np.may_share_memory(memory, part):
                continue  # a copy, such as that of a transposed array in another shape
            view._value = from_numpy(part)
            view._value.is_exposed = True
            alias.memory = part
        share(view)
