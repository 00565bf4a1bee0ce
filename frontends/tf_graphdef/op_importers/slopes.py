"""Gradients of elementwise operators, which TensorFlow has as operators of their own.

Those of functions whose slope is cheaper to say by the result take that; the others the input.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from passkit.frontends.tf_graphdef.operators import ops
from passkit.frontends.tf_graphdef.table import Result, row
from passkit.frontends.tf_graphdef.value import Call, Value
from passkit.graph.node import Entry

SCALE, ALPHA = 1.0507009873554805, 1.6732632423543772
"""Of SELU. Source: Klambauer et al., Self-Normalizing Neural Networks."""


def _gated(gate: Entry, dy: Entry) -> Entry:
    """``dy`` where the gate is open, else 0."""
    return ops.where(gate, dy, ops.zeros_like(dy))  # type: ignore[no-any-return]


def _selu(dy: Entry, y: Entry) -> Entry:
    return ops.where(y < 0, dy * (y + SCALE * ALPHA), dy * SCALE)  # type: ignore[no-any-return]


OF_DY_FIRST: dict[str, Callable[[Entry, Entry], Entry]] = {
    "EluGrad": lambda dy, y: ops.where(y < 0, dy * (y + 1.0), dy),
    "Relu6Grad": lambda dy, x: _gated((x > 0) & (x < 6), dy),
    "ReluGrad": lambda dy, x: _gated(x > 0, dy),
    "SeluGrad": _selu,
    "SoftplusGrad": lambda dy, x: dy / (ops.exp(-x) + 1.0),
    "SoftsignGrad": lambda dy, x: dy / ops.square(ops.abs(x) + 1.0),
}
"""Inputs: what flows back, then the input or the result."""

OF_DY_LAST: dict[str, Callable[[Entry, Entry], Entry]] = {
    "InvGrad": lambda y, dy: -dy * ops.square(y),
    "ReciprocalGrad": lambda y, dy: -dy * ops.square(y),
    "RsqrtGrad": lambda y, dy: dy * (y * y * y) * -0.5,
    "SigmoidGrad": lambda y, dy: dy * y * (1.0 - y),
    "SqrtGrad": lambda y, dy: dy * 0.5 / y,
    "TanhGrad": lambda y, dy: dy * (1.0 - y * y),
}
"""Inputs: the result, then what flows back."""


def _enter(name: str, slope: Callable[[Entry, Entry], Any]) -> None:
    def gradient(call: Call, a: Value, b: Value) -> Result:
        return slope(a.entry, b.entry)

    row(name)(gradient)


for _name, _slope in (OF_DY_FIRST | OF_DY_LAST).items():
    _enter(_name, _slope)


@row("LeakyReluGrad")
def _leaky_relu(call: Call, dy: Value, x: Value) -> Result:
    alpha = call.attr("alpha", "f", 0.2)
    return ops.where(x.entry > 0, dy.entry, dy.entry * alpha, name=call.name)
