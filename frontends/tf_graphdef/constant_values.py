"""Constant folding during import.

Results that may decide a loop, a branch or a shape (integers, booleans and scalar floats) are
computed at once if their inputs are small constants. Other floats are data and left to run. Where
an importer needs such a value all the same, for example the scale factors of an image operator,
`constant_array` computes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from passkit.frontends.tf_graphdef.imported_value import ImportCall, ImportedValue
from passkit.frontends.tf_graphdef.shape_arithmetic import LIMIT
from passkit.graph.graph import Graph
from passkit.graph.node import CONSTANT, Entry, Node
from passkit.values.lazy import Lazy
from passkit.values.size import numel

if TYPE_CHECKING:
    from passkit.runtime import interpret as runtime
else:
    runtime = Lazy("passkit.runtime.interpret")

MOST_NODES = 200
"""Maximal number of nodes behind a constant: arithmetic on sizes and factors is small."""


def fold_constants(
    call: ImportCall, inputs: Sequence[ImportedValue], results: Sequence[ImportedValue]
) -> Sequence[ImportedValue]:
    """Return the results of a node as known arrays if its inputs are small known arrays.

    Args:
        call: The node, whose name the arrays get.
        inputs: Its inputs.
        results: Its results, as an importer built them.

    Returns:
        The computed results; those that are known arrays stay as they are. All are the unchanged
        ``results`` if there is no input, one is no known array, has symbolic sizes or more than
        256 elements, or if a result has an unknown size, more than 256 elements, or is an array of
        floats or complex numbers other than a scalar.
    """
    if not inputs or not all(map(_is_known, inputs)) or not all(map(_may_decide, results)):
        return results
    entries = [r.built_entry for r in results if r.built_entry is not None]
    if not entries:
        return results
    arrays = iter(_evaluate(entries))
    return [
        r if r.built_entry is None else ImportedValue(call.name, r.dtype, array=next(arrays))
        for r in results
    ]


def constant_array(value: ImportedValue) -> NDArray[Any] | None:
    """Return the array that a value always has, or None.

    A known array is returned itself, whatever its size is, or None if it has symbolic sizes. An
    entry is evaluated if it depends on at most 200 nodes, all of whose results have known sizes of
    at most 256 elements, and on no input or state; else None.
    """
    if value.array is not None:
        return None if value.array.dtype == object else value.array
    assert value.built_entry is not None
    if not _is_small(value.built_entry) or not _is_constant(value.built_entry.node):
        return None
    return _evaluate([value.built_entry])[0]


def _is_constant(node: Node) -> bool:
    """Return whether a node depends on no input or state, and on at most 200 nodes with itself.

    All results of these need known sizes of at most 256 elements.
    """
    pending, visited = [node], {node}
    while pending:
        current = pending.pop()
        if current.op is None or not all(map(_is_small, current.entries)):
            return False
        producers = {e.node for e in current.inputs} - visited
        visited |= producers
        pending += producers
        if len(visited) > MOST_NODES:
            return False
    return True


def _evaluate(entries: Sequence[Entry]) -> list[NDArray[Any]]:
    """Return the arrays of entries that depend on constants only.

    A single node whose inputs are all constants is computed without building a Graph.

    Args:
        entries: Entries, at least one.

    Raises: Whatever an operator raises, such as FeedError for a singular matrix.
    """
    node = entries[0].node
    producers = [e.node for e in node.inputs]
    if len(entries) == 1 == len(node.entries) and all(n.op is CONSTANT for n in producers):
        with np.errstate(all="ignore"):
            return [np.array(runtime.compute(node, [n.params["value"] for n in producers], {})[0])]
    return runtime.interpret(Graph(entries))


def _is_known(value: ImportedValue) -> bool:
    """Return whether a value is a known array of at most 256 elements, without symbolic sizes."""
    array = value.array
    return array is not None and array.dtype != object and array.size <= LIMIT


def _may_decide(value: ImportedValue) -> bool:
    """Return whether the result ``value`` may decide a branch.

    It may if it is a known array, or has a known size of at most 256 elements and is a scalar, or
    of integers or bools.
    """
    if value.built_entry is None:
        return True
    return _is_small(value.built_entry) and (
        not value.built_entry.shape or value.dtype.kind in "biu"
    )


def _is_small(entry: Entry) -> bool:
    """Return whether an entry has a known size of at most 256 elements."""
    if entry.shape is None:
        return False
    count = numel(entry.shape)
    return isinstance(count, int) and count <= LIMIT
