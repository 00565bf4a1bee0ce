"""Ordered accesses: operators that read their inputs in the order in which they write.

The cost model does not predict other reads in a nest of a larger kernel well.
"""

from __future__ import annotations

from collections.abc import Iterable

from passkit.analysis.accesses import accesses_of
from passkit.ast import Read, Var
from passkit.ast.index import Known, ravel
from passkit.ast.walk import walk
from passkit.graph.node import Node, known_shape
from passkit.target import Target
from passkit.values import dtype as dt


def read_in_order(nodes: Iterable[Node], target: Target) -> bool:
    """Return whether operators read in the order in which they write.

    None of them transposes values, gathers them, or reads them with a stride. The order of rows
    does not matter if they are as long as ``long_row_nbytes`` of the target.
    """
    return all(_reads_in_order(n, target.fusion.long_row_nbytes) for n in nodes)


def _reads_in_order(node: Node, long_row_nbytes: int) -> bool:
    """Return whether an operator reads in order, or rows of so many bytes in any order."""
    assert node.op is not None
    if not node.op.has_attr("FElement"):
        return True
    shape = known_shape(node.entries[0])
    index = tuple(Var(f"i{k}", dt.int64) for k in range(len(shape)))
    extents = Known((v.name, n) for v, n in zip(index, shape, strict=True))
    for k, at in accesses_of(node, index, extents).at:
        access = ravel(at, known_shape(node.inputs[k]), extents)
        if any(isinstance(x, Read) for atom, _ in access.terms for x in walk(atom)):
            return False
        coefficients = dict(access.terms)
        strides = [c for v in index if isinstance(c := coefficients.get(v, 0), int) and c]
        if shape and shape[-1] != 1 and coefficients.get(index[-1], 1) != 1:
            return False
        if strides != sorted(strides, reverse=True) and _row_nbytes(node) < long_row_nbytes:
            return False
    return True


def _row_nbytes(node: Node) -> int:
    """Return the bytes of an output along its innermost axis, 0 for an unknown extent or dtype."""
    shape, dtype = known_shape(node.entries[0]), node.entries[0].dtype
    if not shape or not isinstance(shape[-1], int) or dtype is None:
        return 0
    return shape[-1] * dtype.nbytes
