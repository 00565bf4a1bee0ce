"""Quantisation as it is simulated in training: floats rounded to steps of a range, and back."""

from __future__ import annotations

import numpy as np

from passkit import ops
from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.table import Result, row
from passkit.frontends.tf_graphdef.value import Call, Value
from passkit.graph.node import Entry, constant
from passkit.ops.layouts import as_dtype, wide


def _levels(call: Call) -> tuple[float, float]:
    """The least and the largest step of a range. Raises: ModelError for so many bits."""
    bits = call.attr("num_bits", "i", 8)
    if not 2 <= bits <= 16:
        raise ModelError(f"{call.where} needs num_bits from 2 to 16, got {bits}")
    return float(call.attr("narrow_range", "b", False)), float(2**bits - 1)


def _nudged(call: Call, low: Entry, high: Entry) -> tuple[Entry, Entry, Entry]:
    """The range moved so that 0 is one of its steps, and the size of a step."""
    least, most = _levels(call)
    scale = (high - low) / (most - least)
    zero = least - low / scale
    inner = ops.round_half_away(zero)
    nudged = ops.where(zero < least, least, ops.where(zero > most, most, inner))
    return (least - nudged) * scale, (most - nudged) * scale, scale


def _fake(call: Call, x: Value, low: Entry, high: Entry) -> Entry:
    """Source: TensorFlow's fake_quant_ops_functor.h; a range of nothing gives zeros."""
    bottom, top, scale = _nudged(call, low, high)
    inverse = 1.0 / scale
    zero = ops.floor(-bottom * inverse + 0.5)
    inside = ops.maximum(ops.minimum(x.entry, top), bottom) - bottom
    rounded = ops.floor(inside * inverse - zero + 0.5) * scale
    made: Entry = ops.where(_no_range(low, high), 0.0, rounded)
    return made


def _no_range(low: Entry, high: Entry) -> Entry:
    made: Entry = ops.logical_and(ops.equal(low, 0.0), ops.equal(high, 0.0))
    return made


def _limits(call: Call) -> tuple[Entry, Entry]:
    low, high = (call.attr(k, "f", d) for k, d in (("min", -6.0), ("max", 6.0)))
    return constant(np.float32(low)), constant(np.float32(high))


@row("FakeQuantWithMinMaxArgs")
def _fake_args(call: Call, x: Value) -> Result:
    return _fake(call, x, *_limits(call))


@row("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def _fake_vars(call: Call, x: Value, low: Value, high: Value) -> Result:
    return _fake(call, x, low.entry, high.entry)


def _inside(call: Call, x: Value, low: Entry, high: Entry) -> Entry:
    bottom, top, _ = _nudged(call, low, high)
    made: Entry = ops.logical_and(x.entry >= bottom, x.entry <= top)
    return made


@row("FakeQuantWithMinMaxArgsGradient")
def _fake_args_gradient(call: Call, dy: Value, x: Value) -> Result:
    return ops.where(_inside(call, x, *_limits(call)), dy.entry, 0.0)


@row("FakeQuantWithMinMaxVarsGradient", "FakeQuantWithMinMaxVarsPerChannelGradient")
def _fake_vars_gradient(call: Call, dy: Value, x: Value, low: Value, high: Value) -> Result:
    """What flows to the data inside of the range, and to the ends of the range from outside."""
    bottom, top, _ = _nudged(call, low.entry, high.entry)
    nothing = _no_range(low.entry, high.entry)
    below, above = x.entry < bottom, x.entry > top
    outside = ops.logical_or(below, above)
    to_x = ops.where(ops.logical_and(outside, ops.logical_not(nothing)), 0.0, dy.entry)
    rank = len(call.shape(x)) - (call.node.op != "FakeQuantWithMinMaxVarsGradient")
    axes = tuple(range(rank))
    ends = (ops.reduce_sum(ops.where(e, dy.entry, 0.0), axis=axes) for e in (below, above))
    return to_x, *(ops.where(nothing, 0.0, e) for e in ends)


@row("QuantizeAndDequantizeV2")
def _there_and_back(call: Call, x: Value, low: Value, high: Value) -> Result:
    return _quantised(call, x, low, high, call.attr("num_bits", "i", 8))


@row("QuantizeAndDequantizeV3")
def _there_and_back_v3(call: Call, x: Value, low: Value, high: Value, bits: Value) -> Result:
    return _quantised(call, x, low, high, call.integer(bits, "num_bits"))


@row("QuantizeAndDequantizeV4")
def _there_and_back_v4(call: Call, x: Value, low: Value, high: Value) -> Result:
    return _quantised(call, x, low, high, call.attr("num_bits", "i", 8))


def _quantised(call: Call, x: Value, low: Value, high: Value, bits: int) -> Entry:
    """Source: TensorFlow's quantize_and_dequantize_op.h: 0 stays 0, the wider side decides."""
    if not 1 <= bits <= 62:
        raise ModelError(f"{call.where} needs num_bits from 1 to 62, got {bits}")
    signed = call.attr("signed_input", "b", True)
    narrow = call.attr("narrow_range", "b", False)
    least = -(2 ** (bits - 1)) + narrow if signed else 0
    most = 2 ** (bits - 1) - 1 if signed else 2**bits - 1
    axis = call.attr("axis", "i", -1) if "axis" in call.node.attr else -1
    data, rank = wide(x.entry), len(call.shape(x))
    given = call.attr("range_given", "b", False)
    if given:
        if not low.dtype == high.dtype == x.dtype:
            raise ModelError(
                f"{call.where} needs a range of {x.dtype}, got {low.dtype} and {high.dtype}"
            )
        bottom, top = wide(low.entry), wide(high.entry)
    else:
        axes = tuple(k for k in range(rank) if k != axis)
        bottom, top = ops.reduce_min(data, axis=axes), ops.reduce_max(data, axis=axes)
    if axis != -1:
        rest = tuple(k for k in range(rank) if k != axis)
        bottom, top = ops.expand_dims(bottom, axis=rest), ops.expand_dims(top, axis=rest)
    assert data.dtype is not None
    largest = float(np.finfo(data.dtype.numpy).max)
    below = ops.where(bottom * float(least) > 0.0, float(least) / bottom, largest)
    above = ops.where(top * float(most) > 0.0, float(most) / top, largest)
    from_below = below < above
    scale = ops.where(from_below, below, above)
    step = ops.where(from_below, bottom / float(least or 1), top / float(most))
    if given:
        lowest = ops.where(from_below, bottom, step * float(least))
        highest = ops.where(from_below, step * float(most), top)
        data = ops.minimum(ops.maximum(data, lowest), highest)
    mode = call.attr("round_mode", "s", b"HALF_TO_EVEN")
    if mode not in (b"HALF_TO_EVEN", b"HALF_UP"):
        raise ModelError(f"{call.where} needs the round_mode HALF_TO_EVEN or HALF_UP, got {mode!r}")
    steps = data * scale
    rounded = ops.rint(steps) if mode == b"HALF_TO_EVEN" else ops.floor(steps + 0.5)
    return as_dtype(rounded * step, x.entry)
