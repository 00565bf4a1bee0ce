"""Values that a model computes from constants alone: known when it is loaded, like shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from passkit.frontends.tf_graphdef.value import Array, Value
from passkit.graph import Graph
from passkit.lazy import Lazy
from passkit.size import Shape, Size

if TYPE_CHECKING:
    from passkit.runtime import interpret
else:
    interpret = Lazy("passkit.runtime.interpret")

MOST_NODES = 200
MOST_ELEMENTS = 256
"""Arithmetic that says sizes and factors is small; more of it, or of larger values, is data."""


def constant_of(value: Value) -> Array | None:
    """The array that a value is for certain; None where it depends on an input, or is large."""
    if value.known is not None:
        return None if value.known.dtype == object else value.known
    shape = value.shape
    if shape is None or not _is_small(shape):
        return None
    assert value.made is not None
    pending, seen = [value.made.node], {value.made.node}
    while pending:
        node = pending.pop()
        if node.op is None or any(e.shape is None or not _is_small(e.shape) for e in node.entries):
            return None
        before = {e.node for e in node.inputs} - seen
        seen |= before
        pending += before
        if len(seen) > MOST_NODES:
            return None
    found: Array = interpret.interpret(Graph([value.made]))[0]
    return found


def _is_small(shape: Shape) -> bool:
    count = 1
    for n in shape:
        if isinstance(n, Size):
            return False
        count *= n
    return count <= MOST_ELEMENTS
