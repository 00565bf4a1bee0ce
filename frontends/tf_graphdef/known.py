"""What follows from constants alone: known when the model is loaded, like shapes.

Each operator's results are computed at once where they may decide a loop, a branch or a shape:
whole numbers, bools and lone floats. Other floats are data and left to run; where an operator needs
such a value all the same, as the factors of images are, `constant_of` computes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from passkit.frontends.tf_graphdef.shape_arithmetic import LIMIT
from passkit.frontends.tf_graphdef.value import Array, Call, Value
from passkit.graph.graph import Graph
from passkit.graph.node import CONSTANT, Entry, Node
from passkit.values.lazy import Lazy
from passkit.values.size import numel

if TYPE_CHECKING:
    from passkit.runtime import interpret as runtime
else:
    runtime = Lazy("passkit.runtime.interpret")

MOST_NODES = 200
"""Arithmetic that says sizes and factors is small; more of it is data."""


def settled(call: Call, inputs: Sequence[Value], results: Sequence[Value]) -> Sequence[Value]:
    """The results as known values, where they follow from small values that are known."""
    if not inputs or not all(map(_is_known, inputs)) or not all(map(_may_decide, results)):
        return results
    entries = [r.made for r in results if r.made is not None]
    if not entries:
        return results
    arrays = iter(_computed(entries))
    return [r if r.made is None else Value(call.name, r.dtype, known=next(arrays)) for r in results]


def constant_of(value: Value) -> Array | None:
    """The array that a value is for certain; None where it depends on an input, or is large."""
    if value.known is not None:
        return None if value.known.dtype == object else value.known
    assert value.made is not None
    if not _is_small(value.made) or not _is_constant(value.made.node):
        return None
    return _computed([value.made])[0]


def _is_constant(node: Node) -> bool:
    """Whether a node is computed from constants, by few nodes of small results."""
    pending, seen = [node], {node}
    while pending:
        found = pending.pop()
        if found.op is None or not all(map(_is_small, found.entries)):
            return False
        before = {e.node for e in found.inputs} - seen
        seen |= before
        pending += before
        if len(seen) > MOST_NODES:
            return False
    return True


def _computed(entries: Sequence[Entry]) -> list[Array]:
    """The values of entries that are computed from constants; one node of these takes no graph."""
    node = entries[0].node
    read = [e.node for e in node.inputs]
    if len(entries) == 1 == len(node.entries) and all(n.op is CONSTANT for n in read):
        with np.errstate(all="ignore"):
            return [np.array(runtime.compute(node, [n.params["value"] for n in read], {})[0])]
    return runtime.interpret(Graph(entries))


def _is_known(value: Value) -> bool:
    known = value.known
    return known is not None and known.dtype != object and known.size <= LIMIT


def _may_decide(value: Value) -> bool:
    if value.made is None:
        return True
    return _is_small(value.made) and (not value.made.shape or value.dtype.kind in "biu")


def _is_small(entry: Entry) -> bool:
    if entry.shape is None:
        return False
    count = numel(entry.shape)
    return isinstance(count, int) and count <= LIMIT
