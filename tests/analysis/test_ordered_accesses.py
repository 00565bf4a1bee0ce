"""Ordered accesses: operators that read in the order in which they write."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import passkit as pk
from passkit.analysis.ordered_accesses import read_in_order
from passkit.graph.node import Entry
from passkit.target import cpu

o = pk.ops


def rows(x: Entry, length: int) -> Entry:
    """Return a (2, 3, length) array of the first elements of ``x``."""
    return o.broadcast_to(o.reshape(x[:1, :1], shape=(1, 1, 1)), shape=(2, 3, length))


@pytest.mark.parametrize(
    "apply, is_ordered",
    [
        (o.exp, True),
        (lambda x: o.reduce_sum(x, axis=0), True),
        (lambda x: x[2:5, 1:3], True),
        (lambda x: o.concat(x, x, axis=1), True),
        (lambda x: o.reshape(x, shape=(3, 8)), True),
        (lambda x: o.broadcast_to(x[:, :1], shape=(6, 4)), True),
        (lambda x: o.expand_dims(x[:, 1], axis=1), True),
        (o.transpose, False),
        (lambda x: o.transpose(o.reshape(x, shape=(2, 3, 4)), axes=(1, 0, 2)), False),
        (lambda x: o.transpose(rows(x, 63), axes=(1, 0, 2)), False),
        (lambda x: o.transpose(rows(x, 64), axes=(1, 0, 2)), True),
        (lambda x: o.transpose(rows(x, 64), axes=(0, 2, 1)), False),
        (lambda x: x[:, ::2], False),
        (lambda x: o.gather(x, pk.var("i", (6,), "int64")), False),
    ],
)
def test_ordered_accesses(apply: Callable[[Entry], Entry], is_ordered: bool) -> None:
    """Pieces and long rows are read in order; transposed, strided and gathered values are not."""
    graph = pk.ApplyPasses(pk.Graph([apply(pk.var("x", (6, 4)))]), "Complete")
    nodes = [n for n in graph.nodes if not n.is_variable]

    assert read_in_order(nodes, cpu()) is is_ordered
