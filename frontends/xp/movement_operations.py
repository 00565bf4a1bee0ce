"""The operations that move elements: reshapes, permutations, joins and repetitions.

Functions of NumPy arrays return arrays of their own memory, never views of an operand.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import passkit.ops as ops
from passkit.frontends.xp.elementwise_operations import converted, promoted
from passkit.frontends.xp.extents import position_of, with_inputs
from passkit.frontends.xp.runtime import OPERATIONS
from passkit.graph.node import Entry, known_shape
from passkit.values.dtype import dtype_of
from passkit.values.size import Extent, Shape, numel

JoinedAxes = tuple[int, int, int]
"""Neighbouring axes of a reshape: their number before and after, and which of the latter takes what
the others leave."""


def _copied(array: Any) -> Any:
    """Return a copy of an array in row-major order."""
    return np.array(array, order="C")


def _build_astype(x: Entry, dtype: str) -> Entry:
    """Build a conversion of ``x``, which is not complex, to the dtype of this name; or a copy.

    A copy is for its own dtype. As bool, all but 0 are true.
    """
    return ops.identity(x) if x.dtype is dtype_of(dtype) else ops.cast(x, dtype=dtype)


def _build_reshape(x: Entry, groups: tuple[JoinedAxes, ...], shape: Shape) -> Entry:
    """Build a reshape. ``shape`` has the extents of the result that are not left to be filled in.

    ``groups`` are neighbouring axes that become others, see `JoinedAxes`. So a plan serves other
    extents: where axes are joined, their product is filled in.
    """
    source, given = list(known_shape(x)), iter(shape)
    target: list[Extent] = []
    for count, new_count, filled in groups:
        total = numel(source[:count])
        del source[:count]
        extents = [None if k == filled else next(given) for k in range(new_count)]
        rest = numel([n for n in extents if n is not None])
        target += [
            total if n is None and rest == 1 else total // rest if n is None else n for n in extents
        ]
    return ops.reshape(x, shape=tuple(target))


def _reshape(x: Any, groups: tuple[JoinedAxes, ...], shape: tuple[int, ...]) -> Any:
    """Return a reshaped copy of the NumPy array ``x``.

    ``shape`` has the extents of the result that are not filled in, ``groups`` the neighbouring axes
    that become others, see `JoinedAxes`.
    """
    source, given = list(x.shape), iter(shape)
    target: list[int] = []
    for count, new_count, filled in groups:
        total = int(np.prod(source[:count], dtype=object))
        del source[:count]
        extents = [None if k == filled else next(given) for k in range(new_count)]
        rest = int(np.prod([n for n in extents if n is not None], dtype=object))
        target += [total // rest if n is None else n for n in extents]
    return _copied(x.reshape(target))


def _build_broadcast(x: Entry, *extents: Entry, shape: Shape) -> Entry:
    """Build a broadcast of ``x`` to ``shape``.

    ``extents`` is empty, or one entry: the placeholder of an `extents_input`, from whose shape a
    plan takes the symbolic extents in ``shape``. The node of the result reads it, see
    `with_inputs`, so that it stays an input of the graph.
    """
    return with_inputs(ops.broadcast_to(x, shape=shape), extents)


def _broadcast(x: Any, *extents: Any, shape: tuple[int, ...]) -> Any:
    """Return a copy of the NumPy array ``x`` broadcast to ``shape``; ``extents`` have no effect."""
    return _copied(np.broadcast_to(x, shape))


def _build_concat(*xs: Entry, axis: int) -> Entry:
    """Build a concatenation along ``axis`` of arrays that are converted to their common dtype."""
    return ops.concat(*converted(xs), axis=axis)


def _build_stack(*xs: Entry, axis: int) -> Entry:
    """Build a stack along a new ``axis`` of arrays that are converted to their common dtype."""
    return ops.stack(*converted(xs), axis=axis)


def _build_roll(x: Entry, *cuts: Entry, axes: tuple[int, ...]) -> Entry:
    """Build a roll: along each axis, what follows the cut comes before what precedes it.

    ``cuts`` has a position input for each of ``axes``.
    """
    result = x
    for k, axis in enumerate(axes):
        cut = position_of(cuts[k], k)
        n = known_shape(x)[axis]
        begin: list[Extent] = [0] * x.ndim
        size = list(known_shape(x))
        size[axis] = cut
        head = ops.slice(result, begin=tuple(begin), size=tuple(size))
        begin[axis], size[axis] = cut, n - cut
        tail = ops.slice(result, begin=tuple(begin), size=tuple(size))
        result = ops.concat(tail, head, axis=axis)
    return with_inputs(result, cuts)


def _roll(x: Any, *cuts: Any, axes: tuple[int, ...]) -> Any:
    """Return a rolled copy of a NumPy array; ``cuts`` has a position input for each of ``axes``.

    What follows the cut comes before what precedes it.
    """
    return np.roll(x, [-position_of(c, k) for k, c in enumerate(cuts)], axes)


OPERATIONS.define("astype", _build_astype, lambda x, dtype: x.astype(dtype_of(dtype).numpy))
OPERATIONS.define("broadcast_to", _build_broadcast, _broadcast)
OPERATIONS.define("concat", _build_concat, lambda *xs, axis: np.concatenate(promoted(*xs), axis))
OPERATIONS.define("copy", ops.identity, _copied)
OPERATIONS.define("expand_dims", ops.expand_dims, lambda x, axis: _copied(np.expand_dims(x, axis)))
OPERATIONS.define("flip", ops.flip, lambda x, axis: _copied(np.flip(x, axis)))
OPERATIONS.define(
    "permute_dims",
    lambda x, axes: ops.transpose(x, axes=axes),
    lambda x, axes: _copied(np.transpose(x, axes)),
)
OPERATIONS.define("repeat", ops.repeat, lambda x, repeats, axis: np.repeat(x, repeats, axis))
OPERATIONS.define("reshape", _build_reshape, _reshape)
OPERATIONS.define("roll", _build_roll, _roll)
OPERATIONS.define("squeeze", ops.squeeze, lambda x, axis: _copied(np.squeeze(x, axis)))
OPERATIONS.define("stack", _build_stack, lambda *xs, axis: np.stack(promoted(*xs), axis))
OPERATIONS.define(
    "tile",
    lambda x, repetitions: ops.tile(x, repetitions=repetitions),
    lambda x, repetitions: _copied(np.tile(x, repetitions)),
)
