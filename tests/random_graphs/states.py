"""Kinds of state: variables to read, and writes to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from passkit.graph.node import Entry, known_shape, state
from passkit.graph.op import get_op
from passkit.values.size import Size
from tests.error_bounds import Value
from tests.random_graphs.arrays import draw
from tests.random_graphs.kinds import kind

if TYPE_CHECKING:
    from tests.random_graphs.growth import Growth


@kind(0.5)
def _state(g: Growth) -> Entry | None:
    """A state variable to read."""
    x = g.pick(lambda e: not any(isinstance(n, Size) for n in known_shape(e)))
    if x is None or len(g.pool) < 2:
        return None
    assert x.dtype is not None
    rng = np.random.default_rng(g.rng.randrange(1 << 30))
    entry = state(f"s{len(g.pool)}", draw(rng, g.style(x.dtype), g.shape_of(x), x.dtype))
    g.values[entry] = Value(entry.node.params["initial"])
    g.pool.append(entry)
    return None


@kind(0.6)
def _assign(g: Growth) -> Entry | None:
    """A state variable is written."""
    target = g.pick(lambda e: bool(e.node.is_variable and e.node.params.get("state")))
    if target is None:
        return None
    shape, dtype = known_shape(target), target.dtype
    value = g.pick(lambda e: known_shape(e) == shape and e.dtype is dtype and e is not target)
    if value is None:
        return None
    entry = get_op("assign")(target, value, **g.control())
    g.values[entry] = g.values[value]
    g.pool.append(entry)
    g.writes.append(entry)
    return None
