"""Constants, shapes, and what passes its inputs on."""

from __future__ import annotations

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.table import Result, row
from passkit.frontends.tf_graphdef.tensor import array_from
from passkit.frontends.tf_graphdef.value import Call, Value
from passkit.values.dtype import dtype_of
from passkit.values.size import Extent, numel


@row("Identity", "StopGradient", "PreventGradient", "Snapshot")
def _identity(call: Call, x: Value) -> Result:
    return x


@row("CheckNumerics", "CheckNumericsV2")
def _check_numerics(call: Call, x: Value) -> Result:
    """The value as it is: kernels go on with NaN and infinities, as they do after an Assert."""
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


@row("ShapeN")
def _shape_n(call: Call, *values: Value) -> Result:
    dtype = call.index_type("out_type")
    return tuple(call.known(dtype, list(call.shape(v))) for v in values)


@row("ConcatOffset")
def _concat_offset(call: Call, axis: Value, *shapes: Value) -> Result:
    """Where each part begins in what is concatenated."""
    at, out = call.integer(axis, "axis"), []
    begin: Extent = 0
    for value in shapes:
        parts = call.extents(value, "shape")
        if not -len(parts) <= at < len(parts):
            raise ModelError(f"{call.where} needs an axis of {call.shown(value)}, got {at}")
        place = [begin if k == at % len(parts) else 0 for k in range(len(parts))]
        out.append(call.known(value.dtype, place))
        begin = begin + parts[at]
    return tuple(out)


def _two_shapes(call: Call, a: Value, b: Value) -> list[tuple[Extent, Extent]]:
    """Two shapes as pairs of extents, aligned at the last axis."""
    left, right = call.extents(a, "shape"), call.extents(b, "shape")
    rank = max(len(left), len(right))
    wide: list[list[Extent]] = [[*[1] * (rank - len(s)), *s] for s in (left, right)]
    for n, m in zip(*wide, strict=True):
        if n != m and 1 not in (n, m):
            raise ModelError(
                f"{call.where} needs shapes that broadcast, with sizes known to be equal, got "
                f"{call.shown(a)} and {call.shown(b)}; give load the whole shapes in shapes="
            )
    return list(zip(*wide, strict=True))


@row("BroadcastArgs")
def _broadcast_args(call: Call, a: Value, b: Value) -> Result:
    pairs = _two_shapes(call, a, b)
    return call.known(a.dtype, [m if n == 1 else n for n, m in pairs])


@row("BroadcastGradientArgs")
def _broadcast_gradient_args(call: Call, a: Value, b: Value) -> Result:
    """The axes along which each of two shapes is stretched."""
    pairs = _two_shapes(call, a, b)
    ranks = [len(call.extents(v, "shape")) for v in (a, b)]
    out = []
    for side in (0, 1):
        lack = len(pairs) - ranks[side]
        axes = [k for k, pair in enumerate(pairs) if k < lack or pair[side] == 1]
        if all(pair == (1, 1) for pair in pairs) and ranks[0] == ranks[1]:
            axes = []
        out.append(call.known(a.dtype, axes))
    return tuple(out)
