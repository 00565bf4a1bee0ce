"""Subscripts: the key of ``x[key]`` as parts, and its basic part as an operation."""

from __future__ import annotations

import operator
from math import prod
from typing import Any

import numpy as np
from attrs import field, frozen

from passkit.errors import SubscriptError
from passkit.frontends.xp.array import Array, wrap
from passkit.frontends.xp.extents import extents_input, position_inputs
from passkit.frontends.xp.indexing_operations import SlicedAxis
from passkit.frontends.xp.runtime import from_numpy, operation
from passkit.graph.node import MOST_AXES
from passkit.streams.operation import MAX_MEMO, Operation
from passkit.streams.recorder import Value
from passkit.values.arguments import shown

ALL = slice(None)
FEW = 4
"""An element of last axes with at most so many elements together is selected by a constant."""


@frozen
class BasicIndex:
    """The part of a subscript that consists of ints, slices and new axes.

    Attributes:
        axes: what is selected of each axis.
        new_axes: axes of the result for None.
        extents: the extents of the result that are not those of whole axes.
        inputs: the values that give extents and positions at run time, see `extents`.
        shape: the shape of the result.
        is_everything: whether the index selects the whole array as it is.
    """

    axes: tuple[SlicedAxis, ...]
    new_axes: tuple[int, ...]
    extents: tuple[int, ...]
    inputs: tuple[Value, ...]
    shape: tuple[int, ...]
    is_everything: bool
    _operations: dict[str, Operation] = field(factory=dict, init=False, eq=False, repr=False)

    def operation(self, name: str) -> Operation:
        """Return the operation ``name``, "slice" or "slice_assign", with this index as parameters.

        The same object is returned at the next call.
        """
        result = self._operations.get(name)
        if result is None:
            params = {"axes": self.axes, "new_axes": self.new_axes, "shape": self.extents}
            result = self._operations[name] = operation(name, **params)
        return result


_indices: dict[Any, BasicIndex] = {}


def plain_index(key: Any, shape: tuple[int, ...]) -> BasicIndex | None:
    """Return the index of a key of ints, slices, None and ``...``; equal ones are built once.

    ``shape`` is that of the array.

    Returns: None if the key has something else, such as bools, NumPy's integers or slices with
        them.

    Raises: SubscriptError if there are too many parts, several ``...``, an int is out of range, or
        a step is 0.
    """
    listed = key if type(key) is tuple else (key,)
    items: list[Any] = []
    for part in listed:
        if type(part) is slice:
            start, stop, step = bounds = part.start, part.stop, part.step
            if (
                (start is not None and type(start) is not int)
                or (stop is not None and type(stop) is not int)
                or (step is not None and type(step) is not int)
            ):
                return None
            items.append(bounds)
        elif part is None or part is Ellipsis or type(part) is int:
            items.append(part)
        else:
            return None
    memo = *items, shape
    index = _indices.get(memo)
    if index is None:
        index = basic_index(subscript_parts(key, shape), shape)
        if len(_indices) >= MAX_MEMO:
            _indices.clear()
        _indices[memo] = index
    return index


def subscript_parts(key: Any, shape: tuple[int, ...]) -> list[Any]:
    """Return the parts of a key of an array of ``shape``.

    They are ints, slices, None and arrays of integers or bools. There is a part for each axis,
    except that a mask stands for as many as it has. ``...`` and axes that are left out are written
    as slices; a ``...`` for no axes stays.

    Raises: SubscriptError if the key has something else, too many parts, or several ``...``.
    """
    listed = [*key] if isinstance(key, tuple) else [key]
    parts = [_part(p) for p in listed]
    consumed = [_consumed(p) for p in parts]
    missing = len(shape) - sum(consumed)
    dots = sum(p is Ellipsis for p in parts)
    if missing < 0:
        raise SubscriptError(
            f"an array of shape {shape} takes {len(shape)} indices, got {sum(consumed)}"
        )
    if dots > 1:
        raise SubscriptError(f"an index has at most one '...', got {dots}")
    position = next((k for k, p in enumerate(parts) if p is Ellipsis), len(parts))
    # Dots without axes stay, since they separate arrays.
    parts[position : position + 1] = [ALL] * missing if missing or not dots else [Ellipsis]
    return parts


def _part(part: Any) -> Any:
    """Return a part of a key; lists, NumPy arrays and bools become arrays, other integers ints.

    A computed 0-dimensional array of an integer becomes an int. An empty list becomes an array of
    integers. None, ``...`` and slices are returned as they are.

    Raises: SubscriptError if it is nothing that selects elements, such as a float, or a list whose
    items have different lengths.
    """
    if part is None or part is Ellipsis or type(part) is slice:
        return part
    if isinstance(part, (bool, np.bool_)):
        return wrap(from_numpy(np.asarray(part)))
    if isinstance(part, (list, np.ndarray)):
        try:
            array = np.array(part)
        except ValueError as error:
            raise SubscriptError(f"{shown(part)} is no array of indices: {error}") from None
        if array.size == 0 and isinstance(part, list):
            array = array.astype(np.int64)
        part = wrap(from_numpy(array))
    if isinstance(part, Array):
        if part.dtype.kind not in "iub":
            raise SubscriptError(f"arrays of integers or bools select elements, got {part.dtype}")
        is_number = not part.ndim and part.dtype.kind != "b" and part._value.operation is None
        return int(part) if is_number else part
    try:
        return operator.index(part)
    except TypeError:
        raise SubscriptError(
            f"an array is indexed by ints, slices, '...', None and arrays, got {shown(part)}"
        ) from None


def _consumed(part: Any) -> int:
    """Return the number of axes of the array that ``part``, a result of `_part`, stands for.

    It is 0 for None and ``...``, that of its axes for a mask, and 1 for others.
    """
    if part is None or part is Ellipsis:
        return 0
    return part.ndim if isinstance(part, Array) and part.dtype.kind == "b" else 1


def basic_index(parts: list[Any], shape: tuple[int, ...]) -> BasicIndex:
    """Return the index of parts that are ints, slices and None, of an array of ``shape``.

    There is an int or slice for each axis; a ``...`` among them is ignored.

    Raises: SubscriptError if an int is out of range, a slice has other bounds than integers or the
    step 0, or the result has more than `MOST_AXES` axes.
    """
    axes: list[SlicedAxis] = []
    new_axes: list[int] = []
    extents: list[int] = []
    positions: list[int] = []
    result: list[int] = []
    for part in parts:
        if part is Ellipsis:
            continue
        if part is None:
            new_axes.append(len(result))
            result.append(1)
            continue
        n = shape[len(axes)]
        if type(part) is int:
            if not -n <= part < n:
                raise SubscriptError(
                    f"index {part} is out of range for axis {len(axes)} of shape {shape}"
                )
            if prod(shape[len(axes) :]) <= FEW:
                axes.append(("in", part % n))
            else:
                axes.append(("at", 1))
                positions.append(part % n)
            continue
        selected = _selected(part, n)
        count, step = len(selected), selected.step
        result.append(count)
        if count == n and (step == 1 or n == 0):
            axes.append(("all", 1))
            continue
        extents.append(count)
        begin = selected.start if count else 0
        step = step if count > 1 else 1
        if begin == 0:
            axes.append(("first", step))
        elif begin == n - 1:
            axes.append(("last", step))
        else:
            axes.append(("from", step))
            positions.append(begin)
    if len(result) > MOST_AXES:
        raise SubscriptError(
            f"an index with {len(new_axes)} new axes gives an array of shape {shown(shape)} "
            f"{len(result)} axes; arrays have at most {MOST_AXES}"
        )
    sizes = (extents_input(tuple(extents)),) if extents else ()
    return BasicIndex(
        axes=tuple(axes),
        new_axes=tuple(new_axes),
        extents=tuple(extents),
        inputs=(*sizes, *position_inputs(positions)),
        shape=tuple(result),
        is_everything=not new_axes and all(kind == "all" for kind, _ in axes),
    )


def _selected(part: slice, n: int) -> range:
    """Return the positions that ``part``, a slice, selects of an axis of length n.

    Raises: SubscriptError if a bound is no integer, or the step is 0.
    """
    try:
        return range(*part.indices(n))
    except (TypeError, ValueError) as error:
        raise SubscriptError(f"{part} selects no elements: {error}") from None
