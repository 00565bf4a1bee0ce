"""Importers of gradients of elementwise operators, which TensorFlow has as operators.

Gradients that are cheaper to compute from the result take the result, others the input.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from passkit.frontends.tf_graphdef.imported_value import ImportCall, ImportedValue
from passkit.frontends.tf_graphdef.operators import ops
from passkit.frontends.tf_graphdef.registry import ImportResult, op_importer
from passkit.graph.node import Entry

SCALE, ALPHA = 1.0507009873554805, 1.6732632423543772
"""Constants of SELU. Source: Klambauer et al., Self-Normalizing Neural Networks."""


def _gate(gate: Entry, dy: Entry) -> Entry:
    """Return ``dy`` where the bool array ``gate`` is true, else 0.

    Raises:
        ShapeError: If the shapes do not broadcast.
    """
    return ops.where(gate, dy, ops.zeros_like(dy))  # type: ignore[no-any-return]


def _selu(dy: Entry, y: Entry) -> Entry:
    """Return the gradient of SELU's input, from the gradient ``dy`` of its result ``y``.

    Raises:
        ShapeError: If the shapes do not broadcast.
        DTypeError: If one is not of real numbers, or products of ``dy`` differ in dtype from each
            other.
    """
    return ops.where(y < 0, dy * (y + SCALE * ALPHA), dy * SCALE)  # type: ignore[no-any-return]


OF_DY_FIRST: dict[str, Callable[[Entry, Entry], Entry]] = {
    "EluGrad": lambda dy, y: ops.where(y < 0, dy * (y + 1.0), dy),
    "Relu6Grad": lambda dy, x: _gate((x > 0) & (x < 6), dy),
    "ReluGrad": lambda dy, x: _gate(x > 0, dy),
    "SeluGrad": _selu,
    "SoftplusGrad": lambda dy, x: dy / (ops.exp(-x) + 1.0),
    "SoftsignGrad": lambda dy, x: dy / ops.square(ops.abs(x) + 1.0),
}
"""Gradients that take dy, then the input or the result."""

OF_DY_LAST: dict[str, Callable[[Entry, Entry], Entry]] = {
    "InvGrad": lambda y, dy: -dy * ops.square(y),
    "ReciprocalGrad": lambda y, dy: -dy * ops.square(y),
    "RsqrtGrad": lambda y, dy: dy * (y * y * y) * -0.5,
    "SigmoidGrad": lambda y, dy: dy * y * (1.0 - y),
    "SqrtGrad": lambda y, dy: dy * 0.5 / y,
    "TanhGrad": lambda y, dy: dy * (1.0 - y * y),
}
"""Gradients that take the result, then dy."""


def _register_gradient(name: str, derivative: Callable[[Entry, Entry], Any]) -> None:
    """Register the importer of a gradient operator of two inputs.

    The importer raises ShapeError for shapes that do not broadcast and DTypeError for dtypes that
    the derivative does not take. Dtypes that differ are promoted where it computes with both, and
    refused only where `where` selects between them.

    Args:
        name: Operator name in TensorFlow.
        derivative: Computes the gradient from the operator's two inputs, in their order.
    """

    def gradient(call: ImportCall, a: ImportedValue, b: ImportedValue) -> ImportResult:
        return derivative(a.entry, b.entry)

    op_importer(name)(gradient)


for _name, _slope in (OF_DY_FIRST | OF_DY_LAST).items():
    _register_gradient(_name, _slope)


@op_importer("LeakyReluGrad")
def _leaky_relu(call: ImportCall, dy: ImportedValue, x: ImportedValue) -> ImportResult:
    """Import LeakyReluGrad: ``dy`` where ``x > 0``, else ``dy * alpha``, an attribute (0.2).

    ``call`` is the node.

    Raises:
        ModelError: If an attribute is of another kind.
        ShapeError: If the shapes do not broadcast.
        DTypeError: If ``x`` is complex, or ``dy`` of integers or bools.
    """
    alpha = call.attr("alpha", "f", 0.2)
    return ops.where(x.entry > 0, dy.entry, dy.entry * alpha, name=call.name)
