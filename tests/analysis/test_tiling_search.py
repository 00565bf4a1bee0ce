"""The search for splits that all results agree on: common numbers of blocks, bounds, order."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

import passkit as pk
from passkit.analysis import tiling_search
from passkit.analysis.infer import NestResults, TileMaps, infer_tile_maps
from passkit.analysis.tilemap import Split, TileMap
from passkit.analysis.tiling_search import (
    COMBINATIONS,
    TilingSearch,
    by_tiles,
    completed,
    roots_of,
)
from passkit.diagnostics import Diagnostic
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, known_shape
from passkit.values.size import Extent
from tests.analysis.test_infer import maps_of, parts_of

TWO = "x: f32[16]; y: f32[12]; return exp(x), tanh(y)"
ROWS = """
x: f32[48, 10]; e = exp(x); s = reduce_sum(e, axis=1);
return div(e, expand_dims(s, axis=1)), log(s), tanh(reshape(e, shape=(12, 40)))
"""
ACROSS = "x: f32[24, 24]; e = exp(x); return tanh(e), sigmoid(transpose(e))"


def uneven(states: TileMaps, blocks: Extent) -> float:
    """Seconds that are different for all operators and splits, and grow with the states."""
    return sum(1.0 + sum(map(ord, f"{e.node.op} {s}")) % 37 / 37 for e, s in states.items())


def held_in(graph: Graph) -> list[NestResults]:
    """A part for each value that has a name in the text, and for each output."""
    return parts_of(graph, [n.entries[0] for n in graph.nodes if n.name and n.op is not None])


def search(text: str, least: Any = uneven) -> TilingSearch:
    """The search of a graph in text."""
    graph = pk.parse(text)
    parts = held_in(graph)
    return TilingSearch(graph, roots_of(graph, parts), parts, least)


def exhaustive(graph: Graph, parts: list[NestResults]) -> list[tuple[float, dict[Entry, TileMap]]]:
    """All splits of the roots that are consistent, of whatever numbers of blocks."""
    roots, tilings = roots_of(graph, parts), []
    choices = [[s for n in by_tiles(known_shape(e)).values() for s in n] for e in roots]
    for splits in product(*choices):
        given = dict(zip(roots, splits, strict=True))
        states = infer_tile_maps(graph, given, parts)
        if not isinstance(states, Diagnostic):
            tilings.append((uneven(states, 1), given))
    return tilings


def test_only_common_numbers_of_blocks_are_asked_for() -> None:
    """{1, 2, 4, 8, 16} and {1, 2, 3, 4, 6, 12} blocks: 4, 2 and 1."""
    asked = []

    def least(states: TileMaps, blocks: Extent) -> float:
        asked.append((len(states), blocks))
        return uneven(states, blocks)

    tilings = search(TWO, least)
    splits = [[m.part[0] for m in way.roots.values()] for way in tilings]

    assert [blocks for count, blocks in asked if count == 0] == [4, 2, 1]
    assert {blocks for _, blocks in asked} == {4, 2, 1}
    assert sorted(splits) == [[4, 3], [8, 6], [8, 8], [16, 12]]


@pytest.mark.parametrize("text", [TWO, ROWS, ACROSS])
def test_the_search_finds_what_trying_everything_finds(text: str) -> None:
    """All of it, the cheapest first; of what is dearer it need not ask, if that is enough."""
    tilings = search(text)
    ways = list(tilings)
    every = exhaustive(tilings.graph, list(tilings.nests))

    assert [w.bound for w in ways] == sorted(w.bound for w in ways)
    assert ways[0].bound == min(cost for cost, _ in every)
    keys = [str(sorted(map(str, w.roots.values()))) + str(w.tiles) for w in ways]
    assert len(keys) == len(every) and tilings.tried <= COMBINATIONS
    first = search(text)
    assert next(iter(first)).bound == ways[0].bound
    assert first.tried <= tilings.tried


def test_what_is_dear_is_not_asked_about() -> None:
    """Where a number of blocks alone costs more than the best, no splits of it are tried."""
    tilings = search(ROWS, lambda states, blocks: abs(blocks - 12))
    best = next(iter(tilings))

    assert best.tiles == 12 and best.bound == 0
    assert tilings.tried == sum(len(by_tiles(known_shape(e))[12]) for e in tilings.roots)


def test_rows_agree_with_columns_of_a_transpose() -> None:
    """One root by rows, the other by columns: the value between them is cut once."""

    def shared(states: TileMaps, blocks: Extent) -> float:
        return sum(not m.is_partition for m in states.values()) - (blocks == 3) / 2

    best = next(iter(search(ACROSS, shared)))
    first, second = best.roots.values()

    assert best.tiles == 3 and first.is_column != second.is_column
    assert all(m.is_partition for m in best.maps.values()) and len(best.maps) == 3


def test_equal_ones_come_in_a_fixed_order() -> None:
    """The most blocks first, Row before Column."""
    ways = list(search("x: f32[4, 6]; return exp(x)", lambda states, blocks: 0.0))
    splits = [str(s) for w in ways for s in w.roots.values()]

    assert [w.tiles for w in ways] == sorted((w.tiles for w in ways), reverse=True)
    assert splits[:3] == ["(1, 1, Row)", "(1, 2, Row)", "(0, 2, Column)"]
    assert splits[-1] == "(0, 4, Row)"


def test_outputs_that_other_parts_read_are_no_roots() -> None:
    """Their splits follow."""
    tilings = search("x: f32[12, 5]; e = exp(x); return e, tanh(reduce_sum(e, axis=1))")
    ways = list(tilings)

    assert tilings.roots == (tilings.graph.outputs[1],)
    assert all(set(w.maps) == set(tilings.graph.outputs) for w in ways) and ways


def test_diagnostics_of_a_search() -> None:
    """Diagnostics say which splits are rejected, not common to all results, or too expensive."""
    opaque = search("x: f32[6, 4]; return exp(sort(x))")
    (one,) = opaque
    assert one.tiles == 1
    assert {r.code for r in opaque.refused} == {"tile.operator"}
    assert "sort rejects (0, 2, Row)" in " ".join(str(r) for r in opaque.refused)
    empty = search("x: f32[0, 3]; y: f32[3]; return exp(y), tanh(x)")
    assert list(empty) == []
    assert [str(r) for r in empty.refused] == ["exp and tanh have no number of blocks in common"]
    dear = Diagnostic("tile.window_rows")
    most = search(TWO, lambda states, blocks: dear if states else 0.0)
    assert list(most) == [] and set(most.refused) == {dear}


def test_few_combinations_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve results with up to four splits each: one way is found at once, not 4**12 at last."""
    x = pk.var("x", (64, 4, 32))
    graph = Graph([pk.ops.exp(x * k) for k in range(12)])
    parts = parts_of(graph, [])
    tilings = TilingSearch(graph, roots_of(graph, parts), parts, uneven)
    first = next(iter(tilings))

    assert len(first.roots) == 12 and tilings.tried < 12 * 12 * 4
    assert list(tilings) and tilings.tried <= 2 * COMBINATIONS
    monkeypatch.setattr(tiling_search, "COMBINATIONS", 0)
    least = TilingSearch(graph, roots_of(graph, parts), parts, uneven)
    assert len(list(least)) == 1


def test_what_nobody_reads_an_element_of_is_split_all_the_same() -> None:
    """A value of which others want but the shape is stored as any, if it can be."""
    graph = pk.parse("x: f32[12, 5]; y: f32[7]; e = exp(y); s = sized_by(tanh(x), e); return s, e")
    parts = held_in(graph)
    sized, e = graph.outputs

    assert roots_of(graph, parts) == (sized,)
    roots = maps_of({sized: Split(0, 4)})
    assert infer_tile_maps(graph, roots, parts) == roots
    one = completed(graph, maps_of({sized: Split(0, 12)}), 1, parts)
    assert one == maps_of({sized: Split(0, 12), e: Split(0, 7)})
    four = completed(graph, maps_of({sized: Split(0, 3)}), 4, parts)
    assert isinstance(four, dict) and four[e] == Split(0, 2).tile_map((7,))
    many = completed(graph, maps_of({sized: Split(1, 1)}), 60, parts)
    assert isinstance(many, Diagnostic) and str(many) == "e has no split into 60 blocks"
