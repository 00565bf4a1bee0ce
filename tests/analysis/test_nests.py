"""Forming nests: those that are built one operator at a time are those analyzed at once."""

from __future__ import annotations

from functools import cache

import pytest

import passkit as pk
from passkit.analysis import nest_builder as growth
from passkit.analysis import nests as cutting
from passkit.analysis.nests import NestNodes, form_nests
from passkit.graph.graph import Graph
from passkit.program.planning import planned
from tests.random_stitches import random_stitch

SEEDS = range(24)


def bodies(pieces: list[NestNodes]) -> list[tuple[list[str], bool, list[str]]]:
    """Return the nodes of nests."""
    return [
        ([n.where for n in p.nodes], p.is_product, sorted(n.where for n in p.owns)) for p in pieces
    ]


@cache
def groups() -> list[Graph]:
    """Random groups of a dozen operators, and of more."""
    graphs = []
    for seed in SEEDS:
        graph, names = random_stitch(seed, None if seed % 2 else 24)
        fused = planned(graph, "Fusion", keep_together=names)
        graphs += [group.graph for group in fused.attrs["subgraph"].values()]
    return graphs


def at_once(graph: Graph) -> list[NestNodes]:
    """Return the nests if each is analyzed anew whenever an operator is added."""
    return cutting._NestForming(graph, incremental=False).run()


def test_nests_that_are_built() -> None:
    """Nests that are built one operator at a time are the same; most are not analyzed anew."""
    grown = 0
    for graph in groups():
        nests = form_nests(graph)
        assert bodies(nests) == bodies(at_once(graph))
        grown += sum(p.builder is not None for p in nests)

    assert grown > 20


def test_nests_that_were_built_wrongly_are_formed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """If builders accept operators that do not fit, nests are formed again, without builders."""
    monkeypatch.setattr(growth.NestBuilder, "add", lambda self, body, nodes: True)
    quick = [cutting._NestForming(graph, incremental=True).run() for graph in groups()]
    wrong = [k for k, graph in enumerate(groups()) if bodies(quick[k]) != bodies(at_once(graph))]

    assert wrong
    for k in wrong:
        assert bodies(form_nests(groups()[k])) == bodies(at_once(groups()[k]))


def test_nests_of_unrolled_reductions() -> None:
    """A sum of three elements is unrolled, so that its nest has no axis for it."""
    x = pk.var("x", (40, 3))
    s = pk.ops.reduce_sum(x, axis=1)
    graph = pk.Graph([pk.ops.tanh(pk.ops.concat(s, s, axis=0)) @ pk.var("w", (80, 5))])
    (product,) = [p for p in form_nests(graph) if p.is_product]

    assert bodies(form_nests(graph)) == bodies(at_once(graph)) and len(product.nodes) == 1
