"""Orderly reads: what a loop finds side by side in memory, so that lanes load it at once."""

from __future__ import annotations

from collections.abc import Iterable

from passkit.ast import Read, Var
from passkit.ast.index import Known, ravel
from passkit.ast.walk import walk
from passkit.graph.node import Node, known_shape
from passkit.space.reads import reads_of
from passkit.values import dtype as dt

LONG_ROW = 256
"""The fewest bytes of consecutive elements for which their order among rows does not matter.

These are four cache lines: a row costs one line that no prefetcher expected, and streams then."""


def are_orderly(nodes: Iterable[Node]) -> bool:
    """Whether all read in the order in which they write: none turns values round or gathers them.

    The seconds of such reads in a part of a larger kernel are little known.
    """
    return all(map(_is_orderly, nodes))


def _is_orderly(node: Node) -> bool:
    assert node.op is not None
    if not node.op.has_attr("FElement"):
        return True
    shape = known_shape(node.entries[0])
    index = tuple(Var(f"i{k}", dt.int64) for k in range(len(shape)))
    extents = Known((v.name, n) for v, n in zip(index, shape, strict=True))
    for k, at in reads_of(node, index, extents).at:
        place = ravel(at, known_shape(node.inputs[k]), extents)
        if any(isinstance(x, Read) for atom, _ in place.terms for x in walk(atom)):
            return False
        found = dict(place.terms)
        steps = [c for v in index if isinstance(c := found.get(v, 0), int) and c]
        if shape and shape[-1] != 1 and found.get(index[-1], 1) != 1:
            return False
        if steps != sorted(steps, reverse=True) and not _has_long_rows(node):
            return False
    return True


def _has_long_rows(node: Node) -> bool:
    """Return whether the innermost axis of a node's output has at least `LONG_ROW` bytes."""
    shape, dtype = known_shape(node.entries[0]), node.entries[0].dtype
    if not shape or not isinstance(shape[-1], int) or dtype is None:
        return False
    return shape[-1] * dtype.nbytes >= LONG_ROW
