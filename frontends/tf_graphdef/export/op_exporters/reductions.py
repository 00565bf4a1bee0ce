"""Reductions over axes, running folds, and softmax."""

from __future__ import annotations

from passkit.frontends.tf_graphdef.export.table import Call, Result, row
from passkit.frontends.tf_graphdef.export.writer import FLOAT32, INT32, INT64, Tensor
from passkit.frontends.tf_graphdef.op_importers.reductions import REDUCTIONS
from passkit.frontends.tf_graphdef.op_importers.scans import SCANS
from passkit.ops.helpers import normalize_axes, normalize_axis

_OURS = {ours: theirs for theirs, ours in REDUCTIONS.items()}


@row(*_OURS)
def _reduction(call: Call, x: Tensor) -> Result:
    """TensorFlow folds floats of 16 bits in their own type: they are folded in float32 here."""
    op = _OURS[call.name]
    axes = call.const(list(normalize_axes(call.node, len(call.shape()), call.params["axis"])))
    more = {"keep_dims": bool(call.params["keepdims"]), "Tidx": INT32}
    if op in ("Any", "All"):
        return call.result(op, x, axes, **more)
    if x.dtype.is_float and x.dtype.nbytes == 2 and op in ("Sum", "Mean", "Prod", "EuclideanNorm"):
        wide = call.op(op, call.scope.cast(x, FLOAT32), axes, **more)
        return call.scope.cast(wide, x.dtype, last=True)
    return call.result(op, x, axes, **more)


@row("argmax", "argmin")
def _position(call: Call, x: Tensor) -> Result:
    """TensorFlow has no position of NaN, so floats are written by their folds."""
    axis = call.params["axis"]
    if not isinstance(axis, int) or call.params["keepdims"] or x.dtype.is_float:
        return None
    op = "ArgMax" if call.name == "argmax" else "ArgMin"
    at = call.const(normalize_axis(call.node, len(call.shape()), axis))
    return call.result(op, x, at, out=INT64, output_type=INT64, Tidx=INT32)


@row(*SCANS.values())
def _scan(call: Call, x: Tensor) -> Result:
    """The running fold along one axis; without one, of all elements in their order."""
    op = {ours: theirs for theirs, ours in SCANS.items()}[call.name]
    axis = call.params["axis"]
    flat = x if axis is not None else call.reshaped(x, call.out)
    at = call.const(normalize_axis(call.node, len(call.out), 0 if axis is None else axis))
    more = {k: bool(call.params[k]) for k in ("exclusive", "reverse")}
    if x.dtype.is_float and x.dtype.nbytes == 2:
        made = call.op(op, call.scope.cast(flat, FLOAT32), at, Tidx=INT32, **more)
        return call.scope.cast(made, x.dtype, last=True)
    return call.result(op, flat, at, Tidx=INT32, **more)


@row("softmax", "log_softmax")
def _softmax(call: Call, x: Tensor) -> Result:
    """Along the last axis; a scalar has none."""
    rank = len(call.out)
    if not rank or call.params["axis"] not in (-1, rank - 1):
        return None
    op = "Softmax" if call.name == "softmax" else "LogSoftmax"
    return call.result(op, x)
