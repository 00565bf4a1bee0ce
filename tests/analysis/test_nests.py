"""Cutting: parts that are laid out as they grow are those that are laid out at once."""

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


def test_parts_that_grow() -> None:
    """Nests that are built one operator at a time are the same; most are not analyzed anew."""
    grown = 0
    for graph in groups():
        nests = form_nests(graph)
        assert bodies(nests) == bodies(at_once(graph))
        grown += sum(p.builder is not None for p in nests)

    assert grown > 20


def test_a_part_that_grew_wrongly_is_cut_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were anything let into a part, the parts would be others; so they are laid out in the end."""
    monkeypatch.setattr(growth.NestBuilder, "add", lambda self, body, nodes: True)
    quick = [cutting._NestForming(graph, incremental=True).run() for graph in groups()]
    wrong = [k for k, graph in enumerate(groups()) if bodies(quick[k]) != bodies(at_once(graph))]

    assert wrong
    for k in wrong:
        assert bodies(form_nests(groups()[k])) == bodies(at_once(groups()[k]))


def test_small_folds_need_all_of_a_part() -> None:
    """A sum of three elements is written out, so that its part has no axis for it."""
    x = pk.var("x", (40, 3))
    s = pk.ops.reduce_sum(x, axis=1)
    graph = pk.Graph([pk.ops.tanh(pk.ops.concat(s, s, axis=0)) @ pk.var("w", (80, 5))])
    (product,) = [p for p in form_nests(graph) if p.is_product]

    assert bodies(form_nests(graph)) == bodies(at_once(graph)) and len(product.nodes) == 1
