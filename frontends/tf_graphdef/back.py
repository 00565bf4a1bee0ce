"""Gradients that TensorFlow has as operators: the reverse of the operator they belong to."""

from __future__ import annotations

from passkit.frontends.tf_graphdef.operators import ops
from passkit.graph.adjoint import gradients
from passkit.graph.node import Entry
from passkit.values.size import Size


def flow_back(y: Entry, x: Entry, dy: Entry) -> Entry:
    """What flows to ``x`` where ``dy`` flows to ``y``.

    Sizes that only a call knows are equal then. Raises: ShapeError where shapes differ.
    """
    pairs = list(zip(dy.shape or (), y.shape or (), strict=False))
    unsure = any(n != m and (isinstance(n, Size) or isinstance(m, Size)) for n, m in pairs)
    wrong = any(n != m and isinstance(n, int) and isinstance(m, int) for n, m in pairs)
    flow = ops.reshape(dy, shape=y.shape) if unsure and not wrong else dy
    found = gradients([y], [x], [flow])[0]
    assert found is not None
    return found
