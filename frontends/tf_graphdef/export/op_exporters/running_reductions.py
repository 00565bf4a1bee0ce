"""Exporters of reductions and scans that TensorFlow has no operator for."""

from __future__ import annotations

from typing import Any

import numpy as np

from passkit.frontends.tf_graphdef.export.functions import compare
from passkit.frontends.tf_graphdef.export.graphdef_writer import BOOL, INT32, NodeOutput
from passkit.frontends.tf_graphdef.export.registry import ExportCall, ExportResult, op_exporter
from passkit.ops.helpers import make, normalize_axes, normalize_axis


@op_exporter("reduce_bitwise_and", "reduce_bitwise_or", "reduce_bitwise_xor")
def _bitwise(call: ExportCall, x: NodeOutput) -> ExportResult:
    """Write a bitwise reduction of integers by a new axis of bits.

    A result bit is 1 if all, any, or an odd number of the bits at its position are 1. Bools are
    reduced directly. ``axis=None`` reduces all axes. ``call`` is the node to write, ``x`` the
    tensor of its input.

    Raises:
        ShapeError: If the rank of the input is unknown.
    """
    shape = call.shape()
    axes = call.const(list(normalize_axes(call.node, len(shape), call.params["axis"])))
    attrs = {"keep_dims": bool(call.params["keepdims"]), "Tidx": INT32}
    if x.dtype is BOOL:
        return _of_truths(call, x, axes, attrs)
    width = 8 * x.dtype.nbytes
    expanded = call.op("ExpandDims", x, call.const(-1), Tdim=INT32)
    bit_numbers = call.const(np.arange(width), x.dtype)
    bits = call.op(
        "BitwiseAnd", call.op("RightShift", expanded, bit_numbers), call.const(1, x.dtype)
    )
    is_set = compare(call.scope, "NotEqual", bits, 0)
    if call.name == "reduce_bitwise_xor":
        counts = call.op("Sum", call.scope.cast(is_set, INT32), axes, **attrs)
        result_bits = call.op("BitwiseAnd", counts, call.const(1))
    else:
        op = "All" if call.name == "reduce_bitwise_and" else "Any"
        result_bits = call.op(op, is_set, axes, **attrs)
    shifted = call.op("LeftShift", call.scope.cast(result_bits, x.dtype), bit_numbers)
    return call.result("Sum", shifted, call.const([-1]), keep_dims=False, Tidx=INT32)


def _of_truths(
    call: ExportCall, x: NodeOutput, axes: NodeOutput, attrs: dict[str, Any]
) -> NodeOutput:
    """Write a bitwise reduction of the bools ``x`` over ``axes``, a tensor.

    ``call`` is the node to write; ``attrs`` are those of TensorFlow's reductions, ``keep_dims`` and
    ``Tidx``.
    """
    if call.name != "reduce_bitwise_xor":
        op = "All" if call.name == "reduce_bitwise_and" else "Any"
        return call.result(op, x, axes, **attrs)
    counts = call.op("Sum", call.scope.cast(x, INT32), axes, **attrs)
    return call.result("NotEqual", call.op("BitwiseAnd", counts, call.const(1)), call.const(0))


@op_exporter("cummax", "cummin")
def _running(call: ExportCall, x: NodeOutput) -> ExportResult:
    """Write a cumulative maximum or minimum by a Hillis-Steele scan.

    None for axes of symbolic length, and for dtypes other than integers and floats. ``axis=None``
    scans all elements in row-major order. ``call`` is the node to write, ``x`` the tensor of its
    input.

    Raises:
        ShapeError: If the rank of the result is unknown.
    """
    axis, shape = call.params["axis"], call.out
    position = normalize_axis(call.node, len(shape), 0 if axis is None else axis)
    length = shape[position]
    if not isinstance(length, int) or x.dtype.kind not in "iuf":
        return None
    combine = "maximum" if call.name == "cummax" else "minimum"
    identity_element = _identity_element(x, call.name == "cummax")

    def shifted(e: Any, by: int) -> Any:
        """Return ``e`` shifted ``by`` elements along the axis, filled with the identity element."""
        pads = tuple((by, 0) if k == position else (0, 0) for k in range(len(shape)))
        begin = (0,) * len(shape)
        shifted_part = make(
            "slice",
            e,
            begin=begin,
            size=tuple(n - by if k == position else n for k, n in enumerate(shape)),
        )
        return make("pad_with", shifted_part, pad_width=pads, value=identity_element)

    def running(e: Any) -> Any:
        e = make("reshape", e, shape=shape) if axis is None else e
        e = make("flip", e, axis=position) if call.params["reverse"] else e
        if call.params["exclusive"] and length:
            e = shifted(e, 1)
        step = 1
        while step < length:
            e = make(combine, e, shifted(e, step))
            step *= 2
        e = make("flip", e, axis=position) if call.params["reverse"] else e
        return make("identity", e)

    return call.expanded(running, x)


def _identity_element(x: NodeOutput, largest: bool) -> Any:
    """Return the identity element of a running maximum (``largest``) or minimum of x's dtype.

    ``x`` has floats or integers, else NumPy raises a ValueError. The result is a float, infinite,
    or an int.
    """
    if x.dtype.is_float:
        return -np.inf if largest else np.inf
    limits = np.iinfo(x.dtype.numpy)
    return int(limits.min if largest else limits.max)
