"""Operators that only move elements."""

from __future__ import annotations

from collections.abc import Sequence

from passkit import ops
from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.shape_arithmetic import numpy_index, squeezed
from passkit.frontends.tf_graphdef.table import NODE_NBYTES, Result, row
from passkit.frontends.tf_graphdef.value import Call, Value
from passkit.infer import show_shape
from passkit.node import Entry


@row("Reshape")
def _reshape(call: Call, x: Value, shape: Value) -> Result:
    wanted = tuple(call.extents(shape, "shape"))
    return ops.reshape(x.entry, shape=wanted, name=call.name)


@row("Transpose")
def _transpose(call: Call, x: Value, axes: Value) -> Result:
    return ops.transpose(x.entry, axes=call.ints(axes, "permutation"), name=call.name)


@row("BroadcastTo")
def _broadcast_to(call: Call, x: Value, shape: Value) -> Result:
    wanted = tuple(call.extents(shape, "shape"))
    return ops.broadcast_to(x.entry, shape=wanted, name=call.name)


@row("Fill")
def _fill(call: Call, shape: Value, x: Value) -> Result:
    wanted = tuple(call.extents(shape, "shape"))
    return ops.broadcast_to(x.entry, shape=wanted, name=call.name)


@row("ExpandDims")
def _expand_dims(call: Call, x: Value, axis: Value) -> Result:
    at = call.integer(axis, "axis")
    return ops.expand_dims(x.entry, axis=at, name=call.name)


@row("Squeeze")
def _squeeze(call: Call, x: Value) -> Result:
    return ops.squeeze(x.entry, axis=squeezed(call, x), name=call.name)


@row("ConcatV2")
def _concat_v2(call: Call, *values: Value) -> Result:
    return _concat(call, values[:-1], values[-1])


@row("Concat")
def _concat_v1(call: Call, *values: Value) -> Result:
    return _concat(call, values[1:], values[0])


def _concat(call: Call, values: Sequence[Value], axis: Value) -> Result:
    at = call.integer(axis, "axis")
    return ops.concat(*(v.entry for v in values), axis=at, name=call.name)


@row("Pack")
def _pack(call: Call, *values: Value) -> Result:
    axis = call.attr("axis", "i", 0)
    call.budget.take(NODE_NBYTES * len(values), call.where)
    rows = [ops.expand_dims(v.entry, axis=axis) for v in values]
    return ops.concat(*rows, axis=axis, name=call.name)


@row("Slice")
def _slice(call: Call, x: Value, begin: Value, size: Value) -> Result:
    return ops.slice(
        x.entry,
        begin=tuple(call.extents(begin, "begin")),
        size=tuple(call.extents(size, "size")),
        name=call.name,
    )


@row("StridedSlice")
def _strided_slice(call: Call, x: Value, begin: Value, end: Value, strides: Value) -> Result:
    call.shape(x)
    return x.entry[numpy_index(call, begin, end, strides)]


@row("Split")
def _split(call: Call, axis: Value, x: Value) -> Result:
    parts = call.attr("num_split", "i")
    return _parts(call, x, call.integer(axis, "axis"), parts)


@row("Unpack")
def _unpack(call: Call, x: Value) -> Result:
    axis = call.attr("axis", "i", 0)
    parts = _parts(call, x, axis, call.attr("num", "i"))
    return tuple(ops.squeeze(part, axis=axis) for part in parts)


def _parts(call: Call, x: Value, axis: int, count: int) -> tuple[Entry, ...]:
    """``count`` equal parts. Raises: ModelError for more of them than TensorFlow would make."""
    shape = call.shape(x)
    extent = shape[axis] if -len(shape) <= axis < len(shape) else 0
    if not 0 < count <= (extent if isinstance(extent, int) else 0):
        raise ModelError(
            f"{call.where} needs {count} part(s) of axis {axis}, and the shape of "
            f"{short(x.name)} is {show_shape(shape)}"
        )
    call.budget.take(2 * NODE_NBYTES * count, call.where)
    return ops.split(x.entry, count, axis)
