"""Exporters of reductions over axes, scans, and softmax."""

from __future__ import annotations

from passkit.frontends.tf_graphdef.export.graphdef_writer import FLOAT32, INT32, INT64, NodeOutput
from passkit.frontends.tf_graphdef.export.registry import ExportCall, ExportResult, op_exporter
from passkit.frontends.tf_graphdef.op_importers.reductions import REDUCTIONS
from passkit.frontends.tf_graphdef.op_importers.scans import SCANS
from passkit.ops.helpers import normalize_axes, normalize_axis

_OURS = {ours: theirs for theirs, ours in REDUCTIONS.items()}


@op_exporter(*_OURS)
def _reduction(call: ExportCall, x: NodeOutput) -> ExportResult:
    """Write a reduction as TensorFlow's.

    Sums, means, products and Euclidean norms of 16-bit floats are computed in float32, unlike in
    TensorFlow. The axes are the parameter ``axis``, None for all. ``call`` is the node to write,
    ``x`` the tensor of its input.

    Raises:
        ShapeError: If the rank of the input is unknown.
    """
    op = _OURS[call.name]
    axes = call.const(list(normalize_axes(call.node, len(call.shape()), call.params["axis"])))
    attrs = {"keep_dims": bool(call.params["keepdims"]), "Tidx": INT32}
    if op in ("Any", "All"):
        return call.result(op, x, axes, **attrs)
    if x.dtype.is_float and x.dtype.nbytes == 2 and op in ("Sum", "Mean", "Prod", "EuclideanNorm"):
        result = call.op(op, call.scope.cast(x, FLOAT32), axes, **attrs)
        return call.scope.cast(result, x.dtype, is_result=True)
    return call.result(op, x, axes, **attrs)


@op_exporter("argmax", "argmin")
def _position(call: ExportCall, x: NodeOutput) -> ExportResult:
    """Write `argmax` or `argmin` of integers or bools along one axis.

    None for ``axis=None``, for ``keepdims``, and for floats, of which TensorFlow ignores NaN.
    ``call`` is the node to write, ``x`` the tensor of its input.

    Raises:
        ShapeError: If the rank of the input is unknown.
    """
    axis = call.params["axis"]
    if not isinstance(axis, int) or call.params["keepdims"] or x.dtype.is_float:
        return None
    op = "ArgMax" if call.name == "argmax" else "ArgMin"
    axis_operand = call.const(normalize_axis(call.node, len(call.shape()), axis))
    return call.result(op, x, axis_operand, out=INT64, output_type=INT64, Tidx=INT32)


@op_exporter(*SCANS.values())
def _scan(call: ExportCall, x: NodeOutput) -> ExportResult:
    """Write a scan along one axis, or for ``axis=None`` over all elements in row-major order.

    16-bit floats are scanned in float32. ``call`` is the node to write, ``x`` the tensor of its
    input.

    Raises:
        ShapeError: If the rank of the result is unknown.
    """
    op = {ours: theirs for theirs, ours in SCANS.items()}[call.name]
    axis = call.params["axis"]
    operand = x if axis is not None else call.reshaped(x, call.out)
    axis_operand = call.const(normalize_axis(call.node, len(call.out), 0 if axis is None else axis))
    attrs = {k: bool(call.params[k]) for k in ("exclusive", "reverse")}
    if x.dtype.is_float and x.dtype.nbytes == 2:
        result = call.op(op, call.scope.cast(operand, FLOAT32), axis_operand, Tidx=INT32, **attrs)
        return call.scope.cast(result, x.dtype, is_result=True)
    return call.result(op, operand, axis_operand, Tidx=INT32, **attrs)


@op_exporter("softmax", "log_softmax")
def _softmax(call: ExportCall, x: NodeOutput) -> ExportResult:
    """Write `softmax` or `log_softmax` along the last axis; None for scalars and other axes.

    ``call`` is the node to write, ``x`` the tensor of its input.

    Raises:
        ShapeError: If the rank of the result is unknown.
    """
    rank = len(call.out)
    if not rank or call.params["axis"] not in (-1, rank - 1):
        return None
    op = "Softmax" if call.name == "softmax" else "LogSoftmax"
    return call.result(op, x)
