"""The search for splits that all outputs agree on: common numbers of blocks, early stops."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

import passkit as pk
from passkit.consistency import Conflict, consistent
from passkit.graph import Graph
from passkit.node import Entry, known_shape
from passkit.split import Split, SplitKind, State, legal_splits
from passkit.split_search import COMBINATIONS, Chosen, combinations, is_light, roots_of, search

ROW, COLUMN = SplitKind

TWO = "x: f32[16]; y: f32[12]; return exp(x), tanh(y)"
ROWS = """
x: f32[48, 10]; e = exp(x); s = reduce_sum(e, axis=1);
return div(e, expand_dims(s, axis=1)), log(s), tanh(reshape(e, shape=(12, 40)))
"""
ACROSS = "x: f32[24, 24]; e = exp(x); return tanh(e), sigmoid(transpose(e))"


def dividing(shape: Any) -> list[Split]:
    """Rows in pieces that divide, the most blocks first."""
    n = shape[0]
    return [Split(0, c) for c in range(1, n + 1) if n % c == 0]


def uneven(entry: Entry, state: State) -> float:
    """Seconds that are different for all operators and splits, and not monotonic in the blocks."""
    text = f"{entry.node.op} {state}"
    return 1.0 + sum(map(ord, text)) % 37 / 37


def exhaustive(
    graph: Graph, held: list[Entry], candidates: Any
) -> tuple[dict[Entry, Split] | None, int]:
    """The best of all combinations of all splits, and how many costs that takes."""
    roots, best, least, asked = roots_of(graph), None, 0.0, 0
    choices = [sorted(candidates(known_shape(e)), key=lambda s, e=e: -s.blocks(known_shape(e)))
               for e in roots]
    for splits in product(*choices):
        given = dict(zip(roots, splits, strict=True))
        states = consistent(graph, given, held)
        costs = [uneven(e, s) for e, s in states.items() if not is_light(e)] if isinstance(
            states, dict) else [uneven(e, s) for e, s in given.items()]
        asked += len(costs)
        if isinstance(states, dict) and (best is None or sum(costs) < least):
            best, least = given, sum(costs)
    return best, asked


def held_in(graph: Graph) -> list[Entry]:
    """Values named in the text, but for outputs."""
    return [n.entries[0] for n in graph.nodes if n.name and n.op is not None
            and n.entries[0] not in graph.outputs]


def test_only_common_numbers_of_blocks_are_tried() -> None:
    """{1, 2, 4, 8, 16} and {1, 2, 3, 4, 6, 12} blocks: 4, 2 and 1, one combination each."""
    graph, asked = pk.parse(TWO), []

    def cost(entry: Entry, state: State) -> float:
        assert isinstance(state, Split)
        asked.append(state.blocks(known_shape(entry)))
        return uneven(entry, state)

    found = search(graph, [], cost, candidates=dividing)
    _, everything = exhaustive(graph, [], dividing)

    assert isinstance(found, Chosen)
    assert set(asked) == {4, 2, 1} and found.tried == 3
    assert found.evaluated == len(asked) <= 6 < everything == 2 * 5 * 6


@pytest.mark.parametrize("text", [TWO, ROWS, ACROSS])
@pytest.mark.parametrize("candidates", [dividing, lambda s: legal_splits(s, most=12)])
def test_the_search_finds_what_trying_everything_finds(text: str, candidates: Any) -> None:
    """With fewer costs looked up."""
    graph = pk.parse(text)
    held = held_in(graph)
    found = search(graph, held, uneven, candidates=candidates)
    best, everything = exhaustive(graph, held, candidates)

    assert isinstance(found, Chosen) and best is not None
    assert found.splits == best
    assert found.evaluated < everything
    assert found.seconds == sum(uneven(e, s) for e, s in found.states.items() if not is_light(e))


def test_a_sum_is_given_up_where_it_cannot_win() -> None:
    """Where the most blocks are the cheapest by far, nothing after them is added up whole."""
    graph = pk.parse(ROWS)
    rising = search(graph, held_in(graph), by_blocks(lambda n: 100.0 / n), candidates=dividing)
    falling = search(graph, held_in(graph), by_blocks(lambda n: n), candidates=dividing)

    assert isinstance(rising, Chosen) and isinstance(falling, Chosen)
    assert (rising.blocks, falling.blocks) == (12, 1)
    assert rising.tried == falling.tried == 6
    assert falling.evaluated == 6 * len([e for e in falling.states if not is_light(e)])
    assert rising.evaluated < falling.evaluated
    same = search(graph, held_in(graph), by_blocks(lambda n: 1.0), candidates=dividing)
    assert isinstance(same, Chosen) and same.blocks == 12


def by_blocks(seconds: Callable[[Any], float]) -> Callable[[Entry, State], float]:
    """A cost that a number of blocks has."""

    def cost(entry: Entry, state: State) -> float:
        assert isinstance(state, Split)
        return seconds(state.blocks(known_shape(entry)))

    return cost


def test_light_operators_are_not_looked_up() -> None:
    """Their seconds do not depend on the split; what is left is nothing, and most blocks win."""
    graph = pk.parse("x: f32[64]; return add(x, x), neg(x)")
    found = search(graph, [], lambda e, s: pytest.fail("asked for a light operator"))

    assert isinstance(found, Chosen) and (found.blocks, found.evaluated) == (64, 0)


def test_rows_agree_with_columns_of_a_transpose() -> None:
    """One root by rows, the other by columns: the value between them is cut once."""
    graph = pk.parse(ACROSS)
    found = search(graph, held_in(graph), lambda e, s: 0.0)

    assert isinstance(found, Chosen) and found.blocks > 1
    (inner,) = held_in(graph)
    assert isinstance(found.states[inner], Split)


def test_outputs_that_are_read_are_no_roots() -> None:
    """Their splits follow."""
    graph = pk.parse("x: f32[12, 5]; e = exp(x); return e, tanh(reduce_sum(e, axis=1))")
    found = search(graph, [], uneven)

    assert roots_of(graph) == (graph.outputs[1],)
    assert isinstance(found, Chosen) and set(found.states) == set(graph.outputs)


def test_no_common_schedule() -> None:
    """The conflict of the fewest blocks is told, or that there are none in common."""
    graph = pk.parse(TWO)
    odd = search(graph, [], uneven, candidates=lambda s: [Split(0, 1)])
    assert isinstance(odd, Conflict) and odd.code == "block_count"
    assert odd.reason == "the outputs have no number of blocks in common"
    empty = pk.parse("x: f32[0, 3]; return exp(x)")
    assert isinstance(search(empty, [], uneven), Conflict)
    opaque = pk.parse("x: f32[6, 4]; return exp(sort(x))")
    none = search(opaque, [], uneven, candidates=lambda s: [Split(0, 1), Split(0, 2)])
    assert isinstance(none, Conflict) and none.code == "schedule_reject"
    assert "sort rejects (0, 2, Row)" in none.reason
    one = search(opaque, [], uneven)
    assert isinstance(one, Chosen) and one.blocks == 1


def test_combinations_are_bounded() -> None:
    """Thirty roots with three splits each: those alike come first, then others, not 3**30."""
    roots = [pk.var(f"x{k}", (64, 4 + k % 2)) for k in range(30)]
    choices = [[Split(0, 1), Split(0, 2), Split(0, 4)]] * 30
    found = list(combinations(roots, choices))
    alike = [len(set(c.values())) for c in found[:3]]

    assert len(found) == COMBINATIONS and alike[0] == 1
    assert len({tuple(c.values()) for c in found}) == COMBINATIONS
    assert {c[roots[0]] for c in found[:9]} == set(choices[0])
