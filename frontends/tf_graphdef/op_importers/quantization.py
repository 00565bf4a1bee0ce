"""Importers of simulated quantization: floats rounded to steps of a range."""

from __future__ import annotations

import numpy as np

from passkit import ops
from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.imported_value import ImportCall, ImportedValue
from passkit.frontends.tf_graphdef.registry import ImportResult, op_importer
from passkit.graph.node import Entry, constant
from passkit.ops.layouts import as_dtype, widened


def _levels(call: ImportCall) -> tuple[float, float]:
    """Return the lowest and highest quantization step: (0 or 1, 2**num_bits - 1).

    The lowest is 1 if the attribute ``narrow_range`` is set. ``call`` is the node.

    Raises:
        ModelError: If the attribute ``num_bits`` is not from 2 to 16, or an attribute is of another
            kind.
    """
    bits = call.attr("num_bits", "i", 8)
    if not 2 <= bits <= 16:
        raise ModelError(f"{call.where} needs num_bits from 2 to 16, got {bits}")
    return float(call.attr("narrow_range", "b", False)), float(2**bits - 1)


def _nudge_range(call: ImportCall, low: Entry, high: Entry) -> tuple[Entry, Entry, Entry]:
    """Return the range moved so that 0 is one of its steps, and the step size.

    Args:
        call: The node.
        low: Lower limit, a scalar or one for each channel.
        high: Upper limit.

    Returns:
        The moved lower and upper limit, and the step size.

    Raises:
        ModelError: If the attribute ``num_bits`` is not from 2 to 16, or an attribute is of another
            kind.
        ShapeError: If the limits do not broadcast together.
        DTypeError: If they are bools or complex; integers give float64.
    """
    min_step, max_step = _levels(call)
    scale = (high - low) / (max_step - min_step)
    zero_point = min_step - low / scale
    rounded_zero = ops.round_half_away(zero_point)
    zero_step = ops.where(
        zero_point < min_step, min_step, ops.where(zero_point > max_step, max_step, rounded_zero)
    )
    return (min_step - zero_step) * scale, (max_step - zero_step) * scale, scale


def _fake_quantize(call: ImportCall, x: ImportedValue, low: Entry, high: Entry) -> Entry:
    """Return ``x`` rounded to the steps of the range ``low`` to ``high``; elements are clipped.

    The range is moved so that 0 is a step; an empty range, whose limits are both 0, gives zeros.
    ``call`` is the node. Source: fake_quant_ops_functor.h.

    Raises:
        ModelError: If the attribute ``num_bits`` is not from 2 to 16, or an attribute is of another
            kind.
        ShapeError: If the limits do not broadcast with ``x``.
        DTypeError: If the dtypes differ or are not floats.
    """
    bottom, top, scale = _nudge_range(call, low, high)
    inverse = 1.0 / scale
    zero = ops.floor(-bottom * inverse + 0.5)
    shifted = ops.maximum(ops.minimum(x.entry, top), bottom) - bottom
    rounded = ops.floor(shifted * inverse - zero + 0.5) * scale
    result: Entry = ops.where(_is_empty_range(low, high), 0.0, rounded)
    return result


def _is_empty_range(low: Entry, high: Entry) -> Entry:
    """Return a bool array: whether both limits of a range, ``low`` and ``high``, are 0.

    Raises:
        ShapeError: If they do not broadcast together.
        DTypeError: If they are integers or bools.
    """
    is_empty: Entry = ops.logical_and(ops.equal(low, 0.0), ops.equal(high, 0.0))
    return is_empty


def _limits(call: ImportCall) -> tuple[Entry, Entry]:
    """Return the attributes ``min`` and ``max`` as two float32 constants: lower and upper limit.

    Their defaults are -6 and 6. ``call`` is the node.

    Raises:
        ModelError: If an attribute is of another kind.
    """
    low, high = (call.attr(k, "f", d) for k, d in (("min", -6.0), ("max", 6.0)))
    return constant(np.float32(low)), constant(np.float32(high))


@op_importer("FakeQuantWithMinMaxArgs")
def _fake_args(call: ImportCall, x: ImportedValue) -> ImportResult:
    """Import FakeQuantWithMinMaxArgs: round ``x`` to steps of a range given by attributes.

    They are ``min`` (-6), ``max`` (6), ``num_bits`` (8) and ``narrow_range`` (False). Elements
    outside the range are clipped. ``call`` is the node.

    Raises:
        ModelError: If ``num_bits`` is not from 2 to 16, or an attribute is of another kind.
        DTypeError: If ``x`` is not of float32.
    """
    return _fake_quantize(call, x, *_limits(call))


@op_importer("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def _fake_vars(
    call: ImportCall, x: ImportedValue, low: ImportedValue, high: ImportedValue
) -> ImportResult:
    """Import FakeQuantWithMinMaxVars and its PerChannel variant: the limits are inputs.

    Args:
        call: The node; its attributes are ``num_bits`` (8) and ``narrow_range`` (False).
        x: Floats to round.
        low: Lower limit, a scalar or, PerChannel, one for each element of the last axis.
        high: Upper limit, likewise.

    Raises:
        ModelError: If ``num_bits`` is not from 2 to 16, or an attribute is of another kind.
        ShapeError: If the limits do not broadcast with ``x``.
        DTypeError: If the dtypes differ or are not floats.
    """
    return _fake_quantize(call, x, low.entry, high.entry)


def _is_inside_range(call: ImportCall, x: ImportedValue, low: Entry, high: Entry) -> Entry:
    """Return for each element of ``x`` whether it is inside the range, as a bool array.

    The range from ``low`` to ``high`` is moved by `_nudge_range` first; its limits are inside. In
    the empty range, whose limits are both 0, nothing is. ``call`` is the node.

    Raises:
        ModelError: If the attribute ``num_bits`` is not from 2 to 16, or an attribute is of another
            kind.
        ShapeError: If the limits do not broadcast with ``x``.
        DTypeError: If ``x`` is complex.
    """
    bottom, top, _ = _nudge_range(call, low, high)
    result: Entry = ops.logical_and(x.entry >= bottom, x.entry <= top)
    return result


@op_importer("FakeQuantWithMinMaxArgsGradient")
def _fake_args_gradient(call: ImportCall, dy: ImportedValue, x: ImportedValue) -> ImportResult:
    """Import FakeQuantWithMinMaxArgsGradient: ``dy`` where ``x`` is inside the range, else 0.

    ``call`` is the node.

    Raises:
        ModelError: If the attribute ``num_bits`` is not from 2 to 16, or an attribute is of another
            kind.
        ShapeError: If ``dy`` and ``x`` do not broadcast.
        DTypeError: If ``dy`` is of integers or bools, or ``x`` is complex.
    """
    return ops.where(_is_inside_range(call, x, *_limits(call)), dy.entry, 0.0)


@op_importer("FakeQuantWithMinMaxVarsGradient", "FakeQuantWithMinMaxVarsPerChannelGradient")
def _fake_vars_gradient(
    call: ImportCall, dy: ImportedValue, x: ImportedValue, low: ImportedValue, high: ImportedValue
) -> ImportResult:
    """Import the gradients of FakeQuantWithMinMaxVars and its PerChannel variant.

    Args:
        call: The node; its attributes are ``num_bits`` (8) and ``narrow_range`` (False).
        dy: Gradient of the result.
        x: Input of the operator.
        low: Lower limit, a scalar or, PerChannel, one for each element of the last axis.
        high: Upper limit, likewise.

    Returns:
        Gradients of the input, which is ``dy`` inside the range and else 0; of the lower limit, the
        sum of ``dy`` below the range; and of the upper limit, the sum above it. For an empty range,
        0 to 0, they are ``dy``, 0 and 0.

    Raises:
        ModelError: If ``num_bits`` is not from 2 to 16, the rank of ``x`` is unknown, or an
            attribute is of another kind.
        ShapeError: If the shapes do not broadcast.
        DTypeError: If ``dy`` or the limits are not of floats, or ``x`` is complex.
    """
    bottom, top, _ = _nudge_range(call, low.entry, high.entry)
    is_empty = _is_empty_range(low.entry, high.entry)
    below, above = x.entry < bottom, x.entry > top
    is_outside = ops.logical_or(below, above)
    gradient_x = ops.where(ops.logical_and(is_outside, ops.logical_not(is_empty)), 0.0, dy.entry)
    rank = len(call.shape(x)) - (call.node.op != "FakeQuantWithMinMaxVarsGradient")
    axes = tuple(range(rank))
    range_gradients = (
        ops.reduce_sum(ops.where(e, dy.entry, 0.0), axis=axes) for e in (below, above)
    )
    return gradient_x, *(ops.where(is_empty, 0.0, e) for e in range_gradients)


@op_importer("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4")
def _quantize_dequantize_v2(
    call: ImportCall, x: ImportedValue, low: ImportedValue, high: ImportedValue
) -> ImportResult:
    """Import QuantizeAndDequantizeV2 and V4: round floats to the steps of a range.

    0 is one of the steps. The number of bits of a step is the attribute ``num_bits`` (8). The
    inputs are floats ``x``, and the limits ``low`` and ``high``, read if the attribute
    ``range_given`` is set; else the limits are those of ``x``. ``call`` is the node.

    Raises:
        ModelError: If the bits are not from 1 to 62, ``x`` is not of floats or of unknown rank,
            limits that are read have another dtype, ``axis`` is below -1 or not one of ``x``,
            ``round_mode`` is unknown, or an attribute is of another kind.
        ShapeError: If the limits do not broadcast with ``x``, or are taken of no elements.
    """
    return _quantize_dequantize(call, x, low, high, call.attr("num_bits", "i", 8))


@op_importer("QuantizeAndDequantizeV3")
def _quantize_dequantize_v3(
    call: ImportCall, x: ImportedValue, low: ImportedValue, high: ImportedValue, bits: ImportedValue
) -> ImportResult:
    """Import QuantizeAndDequantizeV3: round floats to the steps of a range, in which 0 is a step.

    The number of ``bits`` of a step is known during import. The other inputs are floats ``x``, and
    the limits ``low`` and ``high``, read if the attribute ``range_given`` is set; else the limits
    are those of ``x``. ``call`` is the node.

    Raises:
        ModelError: If the bits are not one known integer from 1 to 62, ``x`` is not of floats or of
            unknown rank, limits that are read have another dtype, ``axis`` is below -1 or not one
            of ``x``, ``round_mode`` is unknown, or an attribute is of another kind.
        ShapeError: If the limits do not broadcast with ``x``, or are taken of no elements.
    """
    return _quantize_dequantize(call, x, low, high, call.integer(bits, "num_bits"))


def _quantize_dequantize(
    call: ImportCall, x: ImportedValue, low: ImportedValue, high: ImportedValue, bits: int
) -> Entry:
    """Return ``x`` quantized and dequantized, so that 0 stays 0 and the wider side sets the scale.

    Source: TensorFlow's quantize_and_dequantize_op.h.

    Args:
        call: The node; its attributes are ``signed_input`` (True), ``narrow_range`` (False),
            ``range_given`` (False), ``round_mode`` (HALF_TO_EVEN, or HALF_UP) and ``axis``, along
            which each element has limits of its own (-1 for one range).
        x: Floats.
        low: Lower limit, read if the attribute ``range_given`` is set; else it is the minimum of x.
        high: Upper limit, likewise.
        bits: Number of bits of a step.

    Raises:
        ModelError: If ``bits`` are not from 1 to 62, ``x`` is not of floats or of unknown rank,
            limits that are read have another dtype, ``axis`` is below -1 or not one of ``x``,
            ``round_mode`` is unknown, or an attribute is of another kind.
        ShapeError: If the limits do not broadcast with ``x``, or a range is taken of no elements.
    """
    if not 1 <= bits <= 62:
        raise ModelError(f"{call.where} needs num_bits from 1 to 62, got {bits}")
    if not x.dtype.is_float:
        raise ModelError(f"{call.where} needs floats, got {x.dtype}; cast the input to floats")
    signed = call.attr("signed_input", "b", True)
    narrow = call.attr("narrow_range", "b", False)
    min_step = -(2 ** (bits - 1)) + narrow if signed else 0
    max_step = 2 ** (bits - 1) - 1 if signed else 2**bits - 1
    axis = call.attr("axis", "i", -1) if "axis" in call.node.attr else -1
    data, rank = widened(x.entry), len(call.shape(x))
    if not -1 <= axis < rank:
        raise ModelError(f"{call.where} needs an axis from -1 to {rank - 1}, got {axis}")
    has_range = call.attr("range_given", "b", False)
    if has_range:
        if not low.dtype == high.dtype == x.dtype:
            raise ModelError(
                f"{call.where} needs a range of {x.dtype}, got {low.dtype} and {high.dtype}"
            )
        bottom, top = widened(low.entry), widened(high.entry)
    else:
        axes = tuple(k for k in range(rank) if k != axis)
        bottom, top = ops.reduce_min(data, axis=axes), ops.reduce_max(data, axis=axes)
    if axis != -1:
        other_axes = tuple(k for k in range(rank) if k != axis)
        bottom, top = (
            ops.expand_dims(bottom, axis=other_axes),
            ops.expand_dims(top, axis=other_axes),
        )
    assert data.dtype is not None
    largest = float(np.finfo(data.dtype.numpy).max)
    below = ops.where(bottom * float(min_step) > 0.0, float(min_step) / bottom, largest)
    above = ops.where(top * float(max_step) > 0.0, float(max_step) / top, largest)
    from_below = below < above
    scale = ops.where(from_below, below, above)
    step = ops.where(from_below, bottom / float(min_step or 1), top / float(max_step))
    if has_range:
        lowest = ops.where(from_below, bottom, step * float(min_step))
        highest = ops.where(from_below, step * float(max_step), top)
        data = ops.minimum(ops.maximum(data, lowest), highest)
    mode = call.attr("round_mode", "s", b"HALF_TO_EVEN")
    if mode not in (b"HALF_TO_EVEN", b"HALF_UP"):
        raise ModelError(f"{call.where} needs the round_mode HALF_TO_EVEN or HALF_UP, got {mode!r}")
    steps = data * scale
    rounded = ops.rint(steps) if mode == b"HALF_TO_EVEN" else ops.floor(steps + 0.5)
    return as_dtype(rounded * step, x.entry)
