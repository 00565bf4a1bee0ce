"""Extents and positions as run-time inputs of plans: arrays without elements, by their shapes.

Plans take the extents of their inputs at run time, so an input of shape ``(k, 0)`` gives them the
number k and no data. Creation functions take the extents of their result this way, and slices the
positions where they begin. Positions get a large offset, so that they never equal an extent: equal
extents share a symbol, and 0 and 1 stand for themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import passkit.ops as ops
from passkit.errors import ShapeError
from passkit.frontends.xp.runtime import apply, from_numpy, on_host
from passkit.graph.node import MOST_AXES, Entry
from passkit.streams.device import StreamDevice
from passkit.streams.operation import MAX_MEMO, Operation, banded_type, common_device, placed_type
from passkit.streams.recorder import ArrayType, Value
from passkit.streams.settings import settings
from passkit.values.lazy import Lazy
from passkit.values.size import Extent

if TYPE_CHECKING:
    from passkit.frontends.xp import views
else:
    views = Lazy("passkit.frontends.xp.views")

OFFSET = 1 << 40
"""Position p of the k-th position input has the extent p + (k + 1) * OFFSET."""

_extents: dict[Any, Value] = {}
_positions: dict[tuple[int, int], Value] = {}


def check_axes(where: str, shape: tuple[int, ...]) -> None:
    """Check the number of axes of a shape; ``where`` is the function, for messages.

    Raises: ShapeError if there are more than `MOST_AXES`.
    """
    if len(shape) > MOST_AXES:
        raise ShapeError(
            f"{where}: a shape of {len(shape)} axes was given; arrays have at most {MOST_AXES}"
        )


def extents_input(extents: tuple[int, ...], device: StreamDevice | None = None) -> Value:
    """Return a value without elements that gives plans extents: its shape is ``(*extents, 0)``.

    For `MOST_AXES` extents, those of 0 and 1 are left out, which plans take as numbers. The type of
    the value says that it is on ``device``, None for the CPU, so that results of it are, too. It is
    the same object for equal arguments, unless the memo was cleared between.
    """
    key: Any = extents if device is None else (extents, device)
    value = _extents.get(key)
    if value is None:
        if len(_extents) >= MAX_MEMO:
            _extents.clear()
        is_full = len(extents) == MOST_AXES  # they leave no room for one more
        given = tuple([n for n in extents if n > 1]) if is_full else extents
        value = _extents[key] = from_numpy(np.empty((*given, 0), np.int8))
        value.type = placed_type(value.type, device)
    return value


def position_inputs(positions: Sequence[int]) -> tuple[Value, ...]:
    """Return a value without elements for each position, which gives it to plans by its shape.

    Value k has the extent position + (k + 1) * OFFSET along its first axis; see `position_of`.
    """
    return tuple([_position_input(k, p) for k, p in enumerate(positions)])


def _position_input(number: int, position: int) -> Value:
    """Return the value that gives plans a position as their position input ``number``, from 0 on.

    It is the same object for equal arguments, unless the memo was cleared between.
    """
    value = _positions.get((number, position))
    if value is None:
        if len(_positions) >= MAX_MEMO:
            _positions.clear()
        array = np.empty((position + (number + 1) * OFFSET, 0), np.int8)
        value = _positions[number, position] = from_numpy(array)
    return value


def position_of(source: Any, number: int) -> Any:
    """Return the position that ``source``, position input ``number``, gives by its shape.

    It is an extent, which may be symbolic, for an entry, and an int for an array or its type.
    """
    extent: Extent = source.shape[0]
    return extent - (number + 1) * OFFSET


def with_inputs(result: Entry, inputs: Sequence[Entry]) -> Entry:
    """Return an entry of the value of ``result`` whose node also reads these inputs.

    So they stay inputs of the graph, since its operators refer to their shapes. Without inputs
    ``result`` is returned itself.
    """
    return ops.sized_by(result, *inputs) if inputs else result


def apply_typed(operation: Operation, type: ArrayType, *operands: Value) -> Value:
    """Apply an operation with one result like `runtime.apply`, but with a known type of the result.

    This saves inferring the type for every position and extent. A small result is computed at once
    if all operands are computed, although they may be large: the operation must read few elements
    for it, and have a function of NumPy arrays. A complex one is computed at once, too.

    Args:
        operation: the operation.
        type: the dtype and shape of the result. Its device becomes that of the operands. If the
            first operand has a band, its band becomes that of the rule in `view_rules`.
        *operands: the operands, one at least.

    Raises: DeviceError if the operands are on several devices; ArgumentError in a function that is
    vectorized, if the operation cannot be.
    """
    if operands[0].type.device is not None or operands[-1].type.device is not None:
        type = placed_type(type, common_device(operation, [v.type for v in operands]))
    if operands[0].type.band is not None:
        type = views.with_band(operation, operands, type)
    if type.dtype.kind == "c":
        return on_host(operation, operands)[0]
    is_small = type.size <= settings.small and type.device is None
    if is_small and all(v.operation is None for v in operands):
        (array,) = operation.evaluate([v.buffer for v in operands])
        value = from_numpy(array, is_owned=True)
        value.type = banded_type(value.type, type.band)
        return value
    # With a known type, the recorder does the rest.
    types = tuple([v.type for v in operands])
    if types not in operation.result_types:
        if len(operation.result_types) >= MAX_MEMO:
            operation.result_types.clear()
        operation.result_types[types] = type
    return apply(operation, *operands)
