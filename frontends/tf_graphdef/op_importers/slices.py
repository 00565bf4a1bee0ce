"""Slices: their reading, and what is written into them."""

from __future__ import annotations

from passkit import ops
from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.shape_arithmetic import numpy_index
from passkit.frontends.tf_graphdef.table import Result, row
from passkit.frontends.tf_graphdef.tensor import shape_from
from passkit.frontends.tf_graphdef.value import Call, Value
from passkit.graph.infer import show_shape


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


@row("StridedSliceGrad")
def _strided_slice_grad(
    call: Call, shape: Value, begin: Value, end: Value, strides: Value, dy: Value
) -> Result:
    """Zeros of a shape, with dy in a slice of them."""
    wanted = tuple(call.extents(shape, "shape"))
    zeros = ops.zeros(wanted, dtype=dy.dtype.name)
    return ops.assign_index(zeros, numpy_index(call, begin, end, strides), dy.entry)


@row("TensorStridedSliceUpdate")
def _strided_slice_update(
    call: Call, x: Value, begin: Value, end: Value, strides: Value, value: Value
) -> Result:
    call.shape(x)
    return ops.assign_index(x.entry, numpy_index(call, begin, end, strides), value.entry)


def _shown(shape: tuple[int | None, ...]) -> str:
    return "(" + ", ".join("?" if n is None else str(n) for n in shape) + ")"


@row("EnsureShape")
def _ensure_shape(call: Call, x: Value) -> Result:
    """Sizes that the input leaves open become those of the model; a call checks them."""
    wanted = shape_from(call.attr("shape", "shape"), call.where)
    found = call.shape(x)
    if wanted is None:
        return x
    fits = len(wanted) == len(found) and all(
        n is None or n == m or not isinstance(m, int) for n, m in zip(wanted, found, strict=True)
    )
    if not fits:
        raise ModelError(
            f"{call.where} needs the shape {_shown(wanted)}, got {show_shape(found)}"
        )
    shape = tuple(m if n is None else n for n, m in zip(wanted, found, strict=True))
    if shape == found:
        return x
    return ops.reshape(x.entry, shape=shape, name=call.name)
