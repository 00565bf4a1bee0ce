"""Products of matrices, and what is added to them."""

from __future__ import annotations

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.operators import ops
from passkit.frontends.tf_graphdef.table import Result, row
from passkit.frontends.tf_graphdef.value import Call, Value


@row("MatMul")
def _matmul(call: Call, a: Value, b: Value) -> Result:
    return ops.matmul(
        a.entry,
        b.entry,
        transpose_a=call.attr("transpose_a", "b", False),
        transpose_b=call.attr("transpose_b", "b", False),
        name=call.name,
    )


@row("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def _batch_matmul(call: Call, a: Value, b: Value) -> Result:
    """V3 says the type of the result, in which products are summed."""
    wanted = call.dtype("Tout") if call.node.op == "BatchMatMulV3" else a.dtype
    left, right = (
        v.entry if v.dtype is wanted else ops.cast(v.entry, dtype=wanted.name) for v in (a, b)
    )
    return ops.matmul(
        left,
        right,
        transpose_a=call.attr("adj_x", "b", False),
        transpose_b=call.attr("adj_y", "b", False),
        name=call.name,
    )


@row("Einsum")
def _einsum(call: Call, *values: Value) -> Result:
    equation = call.attr("equation", "s").decode(errors="replace")
    return ops.einsum(*(v.entry for v in values), equation=equation, name=call.name)


@row("Cross")
def _cross(call: Call, a: Value, b: Value) -> Result:
    return ops.cross(a.entry, b.entry, name=call.name)


@row("BiasAdd")
def _bias_add(call: Call, x: Value, bias: Value) -> Result:
    added, rank = bias.entry, len(call.shape(x))
    data_format = call.attr("data_format", "s", b"NHWC")
    if data_format not in (b"NHWC", b"NCHW"):
        raise ModelError(f"{call.where} needs the data_format NHWC or NCHW, got {data_format!r}")
    if data_format == b"NCHW" and rank > 2:
        added = ops.expand_dims(added, axis=tuple(range(1, rank - 1)))
    return ops.add(x.entry, added, name=call.name)
