"""Gradients of what a random graph computes, by what it is fed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import passkit as pk
from passkit.graph.graph import Graph
from passkit.graph.node import Entry
from tests.random_graphs.kinds import is_real

if TYPE_CHECKING:
    from tests.random_graphs.growth import Growth


def differentiated(g: Growth) -> list[Entry]:
    """The gradients of a few values that are worth comparing."""
    computed = [e for e in g.pool if is_real(e) and not e.node.is_variable]
    if not computed:
        return []
    ys = list(
        dict.fromkeys([*g.preferred_outputs[-2:], *g.rng.sample(computed, min(2, len(computed)))])
    )
    ys = [y for y in ys if is_real(y)]
    below = {n.entries[0] for n in Graph(ys).nodes if n.is_variable}
    xs = [e for e in g.inputs if e in below and is_real(e)][:6]
    if not xs:
        return []
    try:
        slopes = pk.gradients(ys, xs)
    except pk.CodeGenError as error:  # such as an incomplete gamma function by its first input
        if "no kernel function is the derivative" not in str(error):
            raise
        return []
    return [e for e in slopes if e is not None and g.taken(e)]
