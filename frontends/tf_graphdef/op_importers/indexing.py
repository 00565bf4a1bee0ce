"""Reads and writes at indices that are data."""

from __future__ import annotations

from passkit import ops
from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.table import Result, row
from passkit.frontends.tf_graphdef.value import Call, Value

SCATTERS = {
    "TensorScatterAdd": "tensor_scatter_nd_add",
    "TensorScatterMax": "tensor_scatter_nd_max",
    "TensorScatterMin": "tensor_scatter_nd_min",
    "TensorScatterSub": "tensor_scatter_nd_sub",
    "TensorScatterUpdate": "tensor_scatter_nd_update",
}


@row("Gather")
def _gather(call: Call, x: Value, indices: Value) -> Result:
    return ops.gather(x.entry, indices.entry, name=call.name)


@row("GatherV2")
def _gather_v2(call: Call, x: Value, indices: Value, axis: Value) -> Result:
    """The leading axes that both share are counted from the end where they are negative."""
    shared = call.attr("batch_dims", "i", 0)
    shared += len(call.shape(indices)) if shared < 0 else 0
    at = call.integer(axis, "axis")
    return ops.gather(x.entry, indices.entry, axis=at, batch_dims=shared, name=call.name)


@row("GatherNd")
def _gather_nd(call: Call, x: Value, indices: Value) -> Result:
    return ops.gather_nd(x.entry, indices.entry, name=call.name)


@row("ScatterNd")
def _scatter_nd(call: Call, indices: Value, updates: Value, shape: Value) -> Result:
    wanted = tuple(call.extents(shape, "shape"))
    if updates.dtype.kind == "b":
        raise ModelError(f"{call.where} needs numbers to add up, got {updates.dtype}")
    return ops.scatter_nd(indices.entry, updates.entry, shape=wanted, name=call.name)


@row(*SCATTERS)
def _tensor_scatter(call: Call, x: Value, indices: Value, updates: Value) -> Result:
    op = getattr(ops, SCATTERS[call.node.op])
    return op(x.entry, indices.entry, updates.entry, name=call.name)


@row("InvertPermutation")
def _invert_permutation(call: Call, x: Value) -> Result:
    found = ops.invert_permutation(x.entry)
    return ops.cast(found, dtype=x.dtype.name, name=call.name)
