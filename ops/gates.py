"""Gated linear units: one half of an axis gates the other."""

from __future__ import annotations

from passkit.errors import ShapeError
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.ops.composites import composite
from passkit.ops.helpers import make, normalize_axis
from passkit.values.size import divide_exactly


def gated(name: str, gate: str, second: bool, doc: str) -> None:
    """Register ``name``: halves a and b, of which ``gate`` is applied to the second or first.

    Source: Dauphin and others, Language Modeling with Gated Convolutional Networks; the variants
    are of Shazeer, GLU Variants Improve Transformer.
    """

    def expand(node: Node, x: Entry) -> Entry:
        shape = known_shape(x)
        axis = normalize_axis(node, len(shape), node.params["axis"])
        half = divide_exactly(shape[axis], 2)
        if half is None:
            raise ShapeError(
                f"{node.where} needs an even length at axis {axis}, got {show_shape(shape)}"
            )
        size = (*shape[:axis], half, *shape[axis + 1 :])
        zero = [0] * len(shape)
        begin = [*zero[:axis], half, *zero[axis + 1 :]]
        a = make("slice", x, begin=zero, size=size)
        b = make("slice", x, begin=begin, size=size)
        return a * make(gate, b) if second else make(gate, a) * b

    composite(name, 1, expand, doc, {"axis": -1})


gated("glu", "sigmoid", True, "a * sigmoid(b) of the halves a and b of x along axis")
gated("reglu", "relu", False, "relu(a) * b of the halves a and b of x along axis")
gated("geglu", "gelu", False, "gelu(a) * b of the halves a and b of x along axis")
gated("swiglu", "silu", False, "silu(a) * b of the halves a and b of x along axis")
