"""Constants, shapes, and what passes its inputs on."""

from __future__ import annotations

from passkit.dtype import dtype_of
from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.shape_arithmetic import is_shape
from passkit.frontends.tf_graphdef.table import Result, row
from passkit.frontends.tf_graphdef.tensor import array_from
from passkit.frontends.tf_graphdef.value import Call, Value
from passkit.infer import show_shape
from passkit.size import numel


@row("Identity", "StopGradient", "PreventGradient", "Snapshot")
def _identity(call: Call, x: Value) -> Result:
    return x


@row("IdentityN")
def _identity_n(call: Call, *values: Value) -> Result:
    return values


@row("PlaceholderWithDefault")
def _default(call: Call, x: Value) -> Result:
    """The default: an input of a compiled program has to be given in every call."""
    return x


@row("Const")
def _const(call: Call) -> Result:
    array = array_from(call.attr("value", "tensor"), call.where, call.budget)
    return Value(call.name, dtype_of(array.dtype), known=array)


@row("Shape")
def _shape(call: Call, x: Value) -> Result:
    return call.known(call.index_type("out_type"), list(call.shape(x)))


@row("Size")
def _size(call: Call, x: Value) -> Result:
    return call.known(call.index_type("out_type"), numel(call.shape(x)))


@row("Rank")
def _rank(call: Call, x: Value) -> Result:
    return call.known(dtype_of("int32"), len(call.shape(x)))


@row("Gather", "GatherV2", "Range")
def _only_shapes(call: Call, *values: Value) -> Result:
    unknown = next((v for v in values if not is_shape(v)), values[0])
    raise ModelError(
        f"{call.where} is read only as arithmetic on shapes, and {short(unknown.name)} is not "
        f"that: it is {unknown.dtype} of shape {show_shape(unknown.shape)}"
    )
