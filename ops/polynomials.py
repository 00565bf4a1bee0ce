"""Polynomials of given coefficients, computed by Horner's rule in one kernel."""

from __future__ import annotations

from passkit.errors import ShapeError
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.ops.composites import composite
from passkit.ops.helpers import common_dtype, make


def _polyval(node: Node, p: Entry, x: Entry) -> Entry:
    """Expand to one multiplication and addition for each coefficient, as numpy.polyval does.

    ``p`` has the coefficients, highest power first; without any the result is 0. Errors name
    ``node``.

    Raises:
        ShapeError: If the coefficients are no vector of known length.
    """
    shape = known_shape(p)
    if len(shape) != 1 or not isinstance(shape[0], int):
        raise ShapeError(
            f"{node.where} needs a vector of coefficients of known length, got {show_shape(shape)}"
        )
    out = make("zeros_like", x)
    for k in range(shape[0]):
        c = make("reshape", make("slice", p, begin=(k,), size=(1,)), shape=())
        out = out * x + c if k else out + c
    return out


composite(
    name="polyval",
    inputs=["p", "x"],
    expand=_polyval,
    types=common_dtype("f"),
    doc="the polynomial with coefficients p, highest power first, at each element of x",
)
