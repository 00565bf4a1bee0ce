"""While loops built from graphs, as importers of control flow build them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import passkit as pk
from passkit.runtime.loop import INPUT_PREFIX
from passkit.runtime.loop import while_loop as runtime_loop


def while_loop(
    condition: Callable[..., pk.Entry],
    body: Callable[..., Sequence[pk.Entry]],
    initial: Sequence[pk.Entry],
    name: str = "loop",
) -> Sequence[pk.Entry]:
    """Return the values of a loop's state after its last iteration.

    ``condition`` and ``body`` get variables with the shapes and dtypes of the initial values; they
    become nested graphs of one node.
    """
    state = [pk.var(f"{INPUT_PREFIX}{k}", e.shape, e.dtype.name) for k, e in enumerate(initial)]
    graphs = pk.Graph([condition(*state)]), pk.Graph(list(body(*state)))
    return runtime_loop(*graphs, list(initial), [], name)
