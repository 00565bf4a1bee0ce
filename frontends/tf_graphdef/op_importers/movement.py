"""Operators that only move elements."""

from __future__ import annotations

from collections.abc import Sequence

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.operators import ops
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.shape_arithmetic import squeezed
from passkit.frontends.tf_graphdef.table import NODE_NBYTES, Result, row
from passkit.frontends.tf_graphdef.value import Call, Value
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry


@row("Reshape")
def _reshape(call: Call, x: Value, shape: Value) -> Result:
    wanted = tuple(call.extents(shape, "shape"))
    return ops.reshape(x.entry, shape=wanted, name=call.name)


@row("Transpose", "ConjugateTranspose")
def _transpose(call: Call, x: Value, axes: Value) -> Result:
    wanted = call.ints(axes, "permutation")
    entry = ops.conj(x.entry) if call.node.op == "ConjugateTranspose" else x.entry
    return ops.transpose(entry, axes=wanted, name=call.name)


@row("BroadcastTo")
def _broadcast_to(call: Call, x: Value, shape: Value) -> Result:
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


@row("ParallelConcat")
def _parallel_concat(call: Call, *values: Value) -> Result:
    return ops.concat(*(v.entry for v in values), axis=0, name=call.name)


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


@row("Split")
def _split(call: Call, axis: Value, x: Value) -> Result:
    parts = call.attr("num_split", "i")
    return _parts(call, x, call.integer(axis, "axis"), parts)


@row("SplitV")
def _split_v(call: Call, x: Value, sizes: Value, axis: Value) -> Result:
    """Parts of the given sizes; one of them may be -1: what the others leave."""
    wanted = call.extents(sizes, "sizes")
    at = call.integer(axis, "axis")
    shape = call.shape(x)
    open_ones = [k for k, n in enumerate(wanted) if n == -1]
    if len(open_ones) == 1 and -len(shape) <= at < len(shape):
        wanted[open_ones[0]] = shape[at] - sum(n for n in wanted if n != -1)
    if any(isinstance(n, int) and n < 0 for n in wanted):
        raise ModelError(
            f"{call.where} needs sizes >= 0 and at most one -1, got {call.shown(sizes)}"
        )
    call.budget.take(2 * NODE_NBYTES * len(wanted), call.where)
    return ops.split(x.entry, wanted, at)


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
    parts: tuple[Entry, ...] = ops.split(x.entry, count, axis)
    return parts


@row("Reverse")
def _reverse_marked(call: Call, x: Value, marks: Value) -> Result:
    """Along each axis whose mark is True."""
    if marks.known is None or marks.dtype.kind != "b":
        raise ModelError(f"{call.where} needs known bools as its axes, got {call.shown(marks)}")
    axes = tuple(k for k, mark in enumerate(marks.known.ravel().tolist()) if mark)
    return ops.flip(x.entry, axis=axes, name=call.name)


@row("ReverseV2")
def _reverse(call: Call, x: Value, axes: Value) -> Result:
    return ops.flip(x.entry, axis=call.ints(axes, "axes"), name=call.name)


@row("ReverseSequence")
def _reverse_sequence(call: Call, x: Value, lengths: Value) -> Result:
    axes = {"axis": call.attr("seq_dim", "i"), "batch_axis": call.attr("batch_dim", "i", 0)}
    return ops.reverse_sequence(x.entry, lengths.entry, name=call.name, **axes)


@row("Roll")
def _roll(call: Call, x: Value, shift: Value, axis: Value) -> Result:
    by, along = call.ints(shift, "shift"), call.ints(axis, "axis")
    return ops.roll(x.entry, shift=by, axis=along, name=call.name)


@row("Tile")
def _tile(call: Call, x: Value, repetitions: Value) -> Result:
    many = tuple(call.extents(repetitions, "multiples"))
    return ops.tile(x.entry, repetitions=many, name=call.name)
