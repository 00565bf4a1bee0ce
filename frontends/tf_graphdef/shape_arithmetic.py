"""Arithmetic on shapes, done when the model is loaded.

TensorFlow computes shapes at run time, from the operator Shape on. passkit computes them here, with
sizes for the dimensions that are not known yet, so that a Reshape learns what it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from passkit.errors import ModelError, PasskitError
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.value import Array, Call, Value

LIMIT = 256
"""Known values of more elements are data, not shapes."""


def is_shape(value: Value) -> bool:
    """Whether a value is known, of integers, and small."""
    known = value.known
    return known is not None and value.dtype.is_integer and known.size <= LIMIT


def fold(call: Call, inputs: Sequence[Value]) -> Value | None:
    """The result of a node that works on shapes; None where it works on data.

    Raises: ModelError when the shapes do not fit the operator.
    """
    rule = FOLDS.get(call.node.op)
    if rule is None or not inputs or not all(map(is_shape, inputs)):
        return None
    dtype = call.dtype("DstT") if call.node.op == "Cast" else inputs[0].dtype
    if not dtype.is_integer or sum(v.known.size for v in inputs if v.known is not None) > LIMIT:
        return None
    arrays = [np.asarray(v.known, dtype=object) for v in inputs]
    try:
        return call.known(dtype, rule(call, inputs, *arrays))
    except PasskitError:
        raise
    except (ArithmeticError, IndexError, TypeError, ValueError) as error:
        shown = ", ".join(f"{short(v.name)} = {_shown(v)}" for v in inputs[:4])
        raise ModelError(f"{call.where} cannot work on the shapes {shown}: {error}") from None


def _shown(value: Value) -> str:
    assert value.known is not None
    flat = ", ".join(map(str, value.known.ravel()[:8]))
    return f"[{flat}{', …' if value.known.size > 8 else ''}]"


def squeezed(call: Call, x: Value) -> tuple[int, ...]:
    """The axes that go; without any in the model, those of a length that is 1 for certain.

    Raises: ModelError when an unknown dimension could be 1.
    """
    axes = call.integers("squeeze_dims") or call.integers("axis")
    if axes:
        return axes
    shape = call.shape(x)
    for axis, extent in enumerate(shape):
        if not isinstance(extent, int):
            raise ModelError(
                f"{call.where} drops dimensions of length 1, and axis {axis} of "
                f"{short(x.name)} has the unknown size {extent}; "
                f"give load the whole shape of its input in shapes="
            )
    return tuple(axis for axis, extent in enumerate(shape) if extent == 1)


def numpy_index(call: Call, begin: Value, end: Value, strides: Value) -> tuple[Any, ...]:
    """The NumPy index that the masks of a StridedSlice spell out."""
    begins, ends = call.extents(begin, "begin"), call.extents(end, "end")
    steps = call.ints(strides, "strides")
    if not len(begins) == len(ends) == len(steps):
        raise ModelError(
            f"{call.where} needs begin, end and strides of one length, got {len(begins)}, "
            f"{len(ends)} and {len(steps)}"
        )
    masks = {
        what: call.attr(f"{what}_mask", "i", 0)
        for what in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    }
    index: list[Any] = []
    for k, (first, stop, step) in enumerate(zip(begins, ends, steps, strict=True)):
        bits = {what for what, mask in masks.items() if mask >> k & 1}
        if "ellipsis" in bits:
            index.append(Ellipsis)
        elif "new_axis" in bits:
            index.append(None)
        elif "shrink_axis" in bits:
            index.append(first)
        else:
            low = None if "begin" in bits else first
            index.append(slice(low, None if "end" in bits else stop, step))
    if sum(part is Ellipsis for part in index) > 1:
        raise ModelError(
            f"{call.where} has more than one ellipsis, ellipsis_mask={masks['ellipsis']}"
        )
    return tuple(index)


def _strided(call: Call, values: Sequence[Value], x: Array, *rest: Array) -> Any:
    return x[numpy_index(call, *values[1:])]


def _sliced(call: Call, values: Sequence[Value], x: Array, begin: Array, size: Array) -> Any:
    starts, counts = call.ints(values[1], "begin"), call.ints(values[2], "size")
    pairs = list(zip(starts, counts, x.shape, strict=True))
    if any(not 0 <= b <= n or not -1 <= count <= n - b for b, count, n in pairs):
        raise ModelError(f"{call.where} cannot take {counts} from {starts} of the shape {x.shape}")
    return x[tuple(slice(b, n if count < 0 else b + count) for b, count, n in pairs)]


def _gathered(call: Call, values: Sequence[Value], x: Array, at: Array, *axis: Array) -> Any:
    if x.ndim != 1 or any(not 0 <= k < x.size for k in at.ravel()):
        raise ModelError(f"{call.where} cannot take {at.tolist()} of the shape {x.shape}")
    return x[at.astype(np.int64)]


def _range(call: Call, values: Sequence[Value], *bounds: Array) -> Any:
    found = range(*(call.integer(v, "bounds") for v in values))
    if len(found) > LIMIT:
        raise ModelError(f"{call.where} needs at most {LIMIT} elements, got {len(found)}")
    return list(found)


def _concatenated(call: Call, values: Sequence[Value], *x: Array) -> Any:
    return np.concatenate(x[:-1], axis=call.integer(values[-1], "axis"))


def _product(call: Call, values: Sequence[Value], x: Array, axes: Array) -> Any:
    keepdims = call.attr("keep_dims", "b", False)
    return np.prod(x, axis=call.ints(values[1], "axes"), keepdims=keepdims)


FOLDS: dict[str, Callable[..., Any]] = {
    "Add": lambda call, values, x, y: x + y,
    "AddV2": lambda call, values, x, y: x + y,
    "Cast": lambda call, values, x: x,
    "ConcatV2": _concatenated,
    "ExpandDims": lambda call, values, x, _: np.expand_dims(x, call.integer(values[1], "axis")),
    "FloorDiv": lambda call, values, x, y: x // y,
    "Gather": _gathered,
    "GatherV2": _gathered,
    "Mul": lambda call, values, x, y: x * y,
    "Neg": lambda call, values, x: -x,
    "Pack": lambda call, values, *x: np.stack(x, call.attr("axis", "i", 0)),
    "Prod": _product,
    "Range": _range,
    "Reshape": lambda call, values, x, _: x.reshape(call.ints(values[1], "shape")),
    "Slice": _sliced,
    "Squeeze": lambda call, values, x: np.squeeze(x, squeezed(call, values[0])),
    "StridedSlice": _strided,
    "Sub": lambda call, values, x, y: x - y,
}
"""What each operator is on arrays of ints and sizes; NumPy checks the rest."""
