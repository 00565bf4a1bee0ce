"""What a node makes of known values, computed when the model is loaded.

Models compute shapes in floats too, and with comparisons; these have no sizes to stay open, so the
interpreter says what they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passkit.errors import PasskitError
from passkit.frontends.tf_graphdef.value import Value
from passkit.graph import Graph
from passkit.size import Size, numel

LIMIT = 256
"""Results of more elements are left to the compiler."""


def settled(inputs: Sequence[Value], results: tuple[Value, ...]) -> tuple[Value, ...]:
    """The results as known values, where all inputs are known and all is small."""
    if not inputs or not all(map(_is_number, inputs)) or not all(map(_is_small, results)):
        return results
    open_ones = [v.entry for v in results if v.known is None]
    if not open_ones:
        return results
    from passkit.runtime.interpret import interpret

    try:
        with np.errstate(all="ignore"):
            found = iter(interpret(Graph(open_ones), {}))
    except PasskitError:  # the same again in a call, which can say more
        return results
    return tuple(
        v if v.known is not None else Value(v.name, v.dtype, known=np.asarray(next(found)))
        for v in results
    )


def _is_number(value: Value) -> bool:
    known = value.known
    return known is not None and known.dtype != object and known.size <= LIMIT


def _is_small(value: Value) -> bool:
    count = numel(value.shape) if value.shape is not None else LIMIT + 1
    return not isinstance(count, Size) and count <= LIMIT
