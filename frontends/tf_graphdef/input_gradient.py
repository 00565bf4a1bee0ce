"""Import of gradient operators, such as MaxPoolGrad, by differentiating the forward operator."""

from __future__ import annotations

from passkit.frontends.tf_graphdef.operators import ops
from passkit.graph.adjoint import gradients
from passkit.graph.node import Entry
from passkit.values.size import Size


def input_gradient(y: Entry, x: Entry, dy: Entry) -> Entry:
    """Return the gradient of ``x``, given the gradient ``dy`` of ``y``.

    ``y`` must be computed from ``x``. A symbolic dimension of ``dy`` or ``y`` is assumed to equal
    the other's.

    Raises:
        ShapeError: If known dimensions or known ranks of ``dy`` and ``y`` differ.
        DTypeError: If their dtypes differ, or ``x`` or ``y`` is not of floats.
        GraphError: If an operator between ``x`` and ``y`` has no gradient.
        CodeGenError: If no operator computes the derivative of one.
    """
    same_rank = len(dy.shape or ()) == len(y.shape or ())
    pairs = list(zip(dy.shape or (), y.shape or (), strict=False)) if same_rank else []
    needs_reshape = any(n != m and (isinstance(n, Size) or isinstance(m, Size)) for n, m in pairs)
    contradicts = any(n != m and isinstance(n, int) and isinstance(m, int) for n, m in pairs)
    gradient = ops.reshape(dy, shape=y.shape) if needs_reshape and not contradicts else dy
    result = gradients([y], [x], [gradient])[0]
    assert result is not None
    return result
