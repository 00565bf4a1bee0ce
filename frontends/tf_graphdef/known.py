"""Small values computed when the model is loaded: conditions of loops, counters, choices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from passkit.frontends.tf_graphdef.shape_arithmetic import LIMIT
from passkit.frontends.tf_graphdef.value import Array, Call, Value
from passkit.graph import Graph
from passkit.lazy import Lazy
from passkit.node import CONSTANT, Entry
from passkit.size import numel

if TYPE_CHECKING:
    from passkit.runtime import interpret as runtime
else:
    runtime = Lazy("passkit.runtime.interpret")


def settled(call: Call, inputs: Sequence[Value], results: Sequence[Value]) -> Sequence[Value]:
    """The results as known values, where they follow from small values that are known.

    Floats of a shape are left to run: they are data, and no loop or shape depends on them.
    """
    if not inputs or not all(map(_is_small, inputs)) or not all(map(_can_be_known, results)):
        return results
    entries = [r.made for r in results if r.made is not None]
    if not entries:
        return results
    arrays = iter(_computed(entries))
    return [r if r.made is None else Value(call.name, r.dtype, known=next(arrays)) for r in results]


def _computed(entries: Sequence[Entry]) -> list[Array]:
    """The values of entries that read constants only."""
    node = entries[0].node
    read = [e.node for e in node.inputs]
    if len(entries) == 1 == len(node.entries) and all(n.op is CONSTANT for n in read):
        with np.errstate(all="ignore"):
            return [np.array(runtime.compute(node, [n.params["value"] for n in read], {})[0])]
    return runtime.interpret(Graph(entries))


def _is_small(value: Value) -> bool:
    known = value.known
    return known is not None and known.dtype != object and known.size <= LIMIT


def _can_be_known(value: Value) -> bool:
    if value.made is None:
        return True
    shape = value.made.shape
    if shape is None or (shape and value.dtype.kind not in "biu"):
        return False
    count = numel(shape)
    return isinstance(count, int) and count <= LIMIT
