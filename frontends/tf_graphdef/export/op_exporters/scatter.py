"""Writes at indices that are data, which all expand to one operator: updates of rows."""

from __future__ import annotations

from passkit.frontends.tf_graphdef.export.functions import both, select, truth
from passkit.frontends.tf_graphdef.export.table import Call, Result, row
from passkit.frontends.tf_graphdef.export.writer import INT32, INT64, Tensor
from passkit.values.size import Shape

_KINDS = {
    **{"update": "TensorScatterUpdate", "add": "TensorScatterAdd", "sub": "TensorScatterSub"},
    **{"min": "TensorScatterMin", "max": "TensorScatterMax"},
}


@row("scatter_rows")
def _scatter_rows(call: Call, x: Tensor, rows: Tensor, updates: Tensor) -> Result:
    """All rows one below the other, and in front of them one that takes what is dropped."""
    kind = call.params["kind"]
    if kind not in _KINDS:
        return None
    outer, middle, count, length = call.shape()
    many = call.shape(1)[1]
    width = middle * length
    zero = call.op("Fill", call.sizes((1, width)), call.const(0, x.dtype), like="T",
                   out=x.dtype, index_type=INT64, T=x.dtype)  # fmt: skip
    lines = _lines(call, x, (outer * count, width))
    whole = call.op("ConcatV2", zero, lines, call.const(0), N=2, Tidx=INT32)
    inside = both(
        call.scope,
        truth(call.scope, "GreaterEqual", rows, 0),
        truth(call.scope, "Less", rows, call.size(count)),
    )
    at = call.op("AddV2", rows, call.const(1, INT64))
    if outer != 1:
        step = (call.const(0, INT64), call.size(outer), call.const(1, INT64))
        first = call.op("Mul", call.op("Range", *step, like="Tidx"), call.size(count))
        at = call.op("AddV2", at, call.reshaped(first, (outer, 1)))
    at = select(call.scope, inside, at, call.const(0, INT64))
    at = call.reshaped(at, (outer * many, 1))
    new = _lines(call, updates, (outer * many, width))
    made = call.op(_KINDS[kind], whole, at, new, Tindices=INT64)
    kept = call.op("Slice", made, call.const([1, 0]), call.const([-1, -1]), Index=INT32)
    if middle == 1:
        return call.reshaped(kept, call.out, last=True)
    apart = call.reshaped(kept, (outer, count, middle, length))
    return call.result("Transpose", apart, call.const([0, 2, 1, 3]), Tperm=INT32)


def _lines(call: Call, x: Tensor, shape: Shape) -> Tensor:
    """(a, b, n, c) as a row of b * c for each of the n rows of each a."""
    if call.shape()[1] != 1:
        x = call.op("Transpose", x, call.const([0, 2, 1, 3]), Tperm=INT32)
    return call.reshaped(x, shape)
