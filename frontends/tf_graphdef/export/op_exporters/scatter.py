"""Exporter of scatter_rows, to which all scatters expand."""

from __future__ import annotations

from passkit.frontends.tf_graphdef.export.functions import compare, logical_and, select
from passkit.frontends.tf_graphdef.export.graphdef_writer import INT32, INT64, NodeOutput
from passkit.frontends.tf_graphdef.export.registry import ExportCall, ExportResult, op_exporter
from passkit.values.size import Shape

_KINDS = {
    "update": "TensorScatterUpdate",
    "add": "TensorScatterAdd",
    "sub": "TensorScatterSub",
    "min": "TensorScatterMin",
    "max": "TensorScatterMax",
}


@op_exporter("scatter_rows")
def _scatter_rows(
    call: ExportCall, x: NodeOutput, rows: NodeOutput, updates: NodeOutput
) -> ExportResult:
    """Write `scatter_rows` as an update of matrix rows.

    Row 0 of the matrix receives the updates that are dropped, and is cut off afterwards.

    Args:
        call: The node; other kinds than update, add, sub, min and max give None.
        x: Shape (outer, middle, count, length).
        rows: int64 row numbers (outer, many); those out of range are dropped.
        updates: Shape (outer, middle, many, length).

    Raises:
        ModelError: If TensorFlow has no kernel for the dtype, or a size has a symbol without a
            source.
        ShapeError: If the rank of an input is unknown.
    """
    kind = call.params["kind"]
    if kind not in _KINDS:
        return None
    outer, middle, count, length = call.shape()
    many = call.shape(1)[1]
    width = middle * length
    dropped_row = call.op(
        "Fill",
        call.sizes((1, width)),
        call.const(0, x.dtype),
        like="T",
        out=x.dtype,
        index_type=INT64,
        T=x.dtype,
    )
    matrix = _as_matrix(call, x, (outer * count, width))
    padded_matrix = call.op("ConcatV2", dropped_row, matrix, call.const(0), N=2, Tidx=INT32)
    in_range = logical_and(
        call.scope,
        compare(call.scope, "GreaterEqual", rows, 0),
        compare(call.scope, "Less", rows, call.size(count)),
    )
    targets = call.op("AddV2", rows, call.const(1, INT64))
    if outer != 1:
        step = (call.const(0, INT64), call.size(outer), call.const(1, INT64))
        first = call.op("Mul", call.op("Range", *step, like="Tidx"), call.size(count))
        targets = call.op("AddV2", targets, call.reshaped(first, (outer, 1)))
    targets = select(call.scope, in_range, targets, call.const(0, INT64))
    targets = call.reshaped(targets, (outer * many, 1))
    new_rows = _as_matrix(call, updates, (outer * many, width))
    updated = call.op(_KINDS[kind], padded_matrix, targets, new_rows, Tindices=INT64)
    result_rows = call.op("Slice", updated, call.const([1, 0]), call.const([-1, -1]), Index=INT32)
    if middle == 1:
        return call.reshaped(result_rows, call.out, is_result=True)
    transposed = call.reshaped(result_rows, (outer, count, middle, length))
    return call.result("Transpose", transposed, call.const([0, 2, 1, 3]), Tperm=INT32)


def _as_matrix(call: ExportCall, x: NodeOutput, shape: Shape) -> NodeOutput:
    """Write ``x`` of shape (a, b, n, c) as a matrix of the given ``shape``, (a * n, b * c).

    ``call`` is the node to write, whose first input has the same b.

    Raises:
        ModelError: If a symbolic extent has a symbol without a source, unless Reshape infers it.
        ShapeError: If the rank of an input is unknown.
    """
    if call.shape()[1] != 1:
        x = call.op("Transpose", x, call.const([0, 2, 1, 3]), Tperm=INT32)
    return call.reshaped(x, shape)
