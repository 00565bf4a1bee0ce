"""Consistency of a group over what its parts leave: the paper's figure, conflicts, soundness."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
import pytest

import passkit as pk
import passkit.ops as ops
from passkit.analysis.infer import NestResults, TileMaps, infer_tile_maps
from passkit.analysis.nest_partitions import nest_partitions
from passkit.analysis.nests import nest_outputs
from passkit.analysis.tilemap import (
    Split,
    SplitKind,
    TileMap,
    candidate_tilings,
    slab_map,
    whole_map,
)
from passkit.diagnostics import Diagnostic
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, is_leaf, known_shape
from passkit.values.size import Size
from tests.probing import allowed, dependence

ROW, COLUMN = SplitKind

FIGURE = """
x: f32[8704, 17]; v: f32[64, 8, 17, 128];
most = reduce_max(x, axis=1); e = exp(sub(x, broadcast_to(expand_dims(most, axis=1), shape=(8704, 17))));
total = reduce_sum(e, axis=1); p = div(e, broadcast_to(expand_dims(total, axis=1), shape=(8704, 17)));
return matmul(reshape(p, shape=(64, 8, 17, 17)), v)
"""  # noqa: E501


def named(graph: Graph, *ops: str) -> list[Entry]:
    """The results of all operators with these names."""
    return [n.entries[0] for n in graph.nodes if n.op is not None and n.op.name in ops]


def operators(graph: Graph) -> list[Entry]:
    """All values but inputs and constants."""
    return [e for n in graph.nodes if not is_leaf(n) for e in n.entries]


def parts_of(graph: Graph, held: Collection[Entry]) -> list[NestResults]:
    """A part for each held value and each output; others belong to all who read them."""
    alone = {*held, *graph.outputs}
    parts = []
    for node in graph.nodes:
        for result in (e for e in node.entries if e in alone and not is_leaf(node)):
            inside, todo = {node}, [*node.inputs]
            while todo:
                e = todo.pop()
                if not is_leaf(e.node) and e not in alone and e.node not in inside:
                    inside.add(e.node)
                    todo += e.node.inputs
            parts.append(NestResults([n for n in graph.nodes if n in inside], [result]))
    return parts


def maps_of(splits: Mapping[Entry, Split | TileMap]) -> TileMaps:
    """Return the tile maps of values that are split so."""
    return {e: s.tile_map(known_shape(e)) if isinstance(s, Split) else s for e, s in splits.items()}


def states_of(
    graph: Graph, roots: Mapping[Entry, Split | TileMap], held: Collection[Entry]
) -> TileMaps | Diagnostic:
    """Return what follows from splits where these values are computed once."""
    return infer_tile_maps(graph, maps_of(roots), parts_of(graph, held))


def tiles(maps: TileMaps | Diagnostic) -> set[Any]:
    """Return the numbers of tiles that maps have; WHOLE for one that is no partition."""
    assert not isinstance(maps, Diagnostic), str(maps)
    return {m.tiles if m.is_partition else str(m) for m in maps.values()}


def test_the_figure() -> None:
    """Softmax between a reshape and a product: every operator has 512 blocks."""
    graph = pk.parse(FIGURE)
    (root,) = graph.outputs
    strict = states_of(graph, {root: Split(2, 17)}, operators(graph))

    assert isinstance(strict, dict)
    assert tiles(strict) == {512} and set(strict) == set(operators(graph))
    splits = {str(s) for e, s in strict.items() if known_shape(e)[0] == 8704}
    assert splits == {"(0, 17, Row)"}
    held = named(graph, "reduce_max", "reduce_sum", "exp", "div")
    loose = states_of(graph, {root: Split(2, 17)}, held)
    assert tiles(loose) == {512} and set(loose) == {*held, root}


def test_a_product_may_cut_its_rows() -> None:
    """Rows of the left operand are a block's own; the right one is whole in its batch."""
    graph = pk.parse(
        "q: f32[2, 64, 16]; k: f32[2, 94, 16]; v: f32[2, 94, 32];"
        "s = matmul(q, k, transpose_b=true); m = reduce_max(s, axis=2, keepdims=true);"
        "return matmul(exp(sub(s, m)), v)"
    )
    held = named(graph, "matmul", "reduce_max")
    maps = states_of(graph, {graph.outputs[0]: Split(1, 8)}, held)

    assert isinstance(maps, dict)
    assert {str(s) for s in maps.values()} == {"(1, 8, Row)"} and tiles(maps) == {16}


BIAS = "x: f32[7, 5]; y: f32[12, 5]; s = reduce_sum(x, axis=0); return add(y, mul(s, 2.0))"


def test_a_value_that_all_blocks_need() -> None:
    """[5] to [12, 5] by rows: WHOLE, which each block computes; no result can be so."""
    graph = pk.parse(BIAS)
    (root,), held = graph.outputs, named(graph, "reduce_sum")

    assert states_of(graph, {root: Split(0, 4)}, held) == maps_of(
        {root: Split(0, 4), held[0]: whole_map((5,), 3)}
    )
    assert tiles(states_of(graph, {root: Split(0, 12)}, held)) == {1}
    by_columns = states_of(graph, {root: Split(1, 2, COLUMN)}, held)
    assert by_columns == maps_of({root: Split(1, 2, COLUMN), held[0]: Split(0, 2, COLUMN)})
    two = pk.parse(BIAS + ", s")
    root, total = two.outputs
    diagnostic = states_of(two, {root: Split(0, 4)}, [])
    assert isinstance(diagnostic, Diagnostic) and diagnostic.code == "tile.whole"
    assert str(diagnostic) == (
        "s is needed as WHOLE by mul in each of 3 blocks, and each element of a result is written "
        "by one"
    )
    assert diagnostic.data == {
        "value": "s",
        "state": whole_map((5,), 3),
        "user": "mul",
        "blocks": 3,
    }
    assert diagnostic.at == (total.node.label,)
    assert tiles(states_of(two, {root: Split(0, 12)}, [])) == {1}


def test_two_users_that_need_different_parts() -> None:
    """A value that is computed once covers both, and a value that is read twice each; no result."""
    graph = pk.parse("x: f32[8, 8]; e = exp(x); return add(e, transpose(e))")
    (root,), held = graph.outputs, named(graph, "exp")

    assert states_of(graph, {root: Split(0, 2)}, held) == maps_of(
        {root: Split(0, 2), held[0]: whole_map((8, 8), 4)}
    )
    assert states_of(graph, {root: Split(0, 2)}, []) == maps_of({root: Split(0, 2)})
    both = pk.parse("x: f32[8, 8]; e = exp(x); return add(e, transpose(e)), e")
    diagnostic = states_of(both, {both.outputs[0]: Split(0, 2)}, [])
    assert isinstance(diagnostic, Diagnostic) and diagnostic.code == "tile.conflict"
    assert str(diagnostic) == (
        "e is needed as (0, 2, Row) by add and as (1, 2, Column) by transpose"
    )
    assert (diagnostic.data["user"], diagnostic.data["other_user"]) == ("add", "transpose")
    turned = pk.parse("x: f32[8, 8]; e = exp(x); return e, transpose(e)")
    two = states_of(turned, dict.fromkeys(turned.outputs, Split(0, 2)), [])
    assert isinstance(two, Diagnostic)
    assert str(two) == (
        "e is needed as (0, 2, Row) by the caller and as (1, 2, Column) by transpose"
    )
    across = dict(zip(turned.outputs, [Split(0, 2), Split(1, 2, COLUMN)], strict=True))
    assert states_of(turned, across, []) == maps_of(across)


def test_what_a_part_reads_of_its_own_results_is_no_reading() -> None:
    """It computes that where it needs it, so the other readers' part is what a block has."""
    graph = pk.parse("x: f32[8, 8]; e = exp(x); t = transpose(e); return t, add(e, x)")
    turned, added = graph.outputs
    e, t, add = (n for n in graph.nodes if not is_leaf(n))
    roots = maps_of({turned: Split(0, 2), added: Split(0, 2)})
    apart = [
        NestResults([e], e.entries),
        NestResults([t], t.entries),
        NestResults([add], add.entries),
    ]
    joined = [NestResults([e, t], [e.entries[0], turned]), NestResults([add], add.entries)]

    assert infer_tile_maps(graph, roots, apart) == {
        **roots,
        e.entries[0]: whole_map((8, 8), 4),
    }
    assert infer_tile_maps(graph, roots, joined) == maps_of({**roots, e.entries[0]: Split(0, 2)})


def test_an_output_that_others_read_follows_from_them() -> None:
    """It may have no split of its own, or the same; never another."""
    graph = pk.parse("x: f32[12, 5]; e = exp(x); return e, reduce_sum(e, axis=1)")
    e, total = graph.outputs

    assert states_of(graph, {total: Split(0, 4)}, []) == maps_of(
        {total: Split(0, 4), e: Split(0, 4)}
    )
    other = states_of(graph, {total: Split(0, 3), e: Split(1, 5)}, [])
    assert isinstance(other, Diagnostic) and other.code == "tile.count"
    assert str(other) == "reduce_sum has 4 blocks, e has 12"
    assert (other.data["blocks"], other.data["other_blocks"]) == (4, 12)
    third = states_of(graph, {total: Split(0, 3), e: Split(0, 4)}, [])
    assert isinstance(third, Diagnostic) and third.code == "tile.count"
    assert states_of(graph, {e: Split(0, 4)}, []) == maps_of({e: Split(0, 4)})


def test_what_cannot_be_split_is_rejected() -> None:
    """An operator of which nothing is known, with its reason; one block is always legal."""
    graph = pk.parse("x: f32[6, 4]; return exp(sort(x))")
    (root,) = graph.outputs
    diagnostic = states_of(graph, {root: Split(0, 2)}, [])

    assert isinstance(diagnostic, Diagnostic) and diagnostic.code == "tile.operator"
    assert str(diagnostic) == (
        "sort rejects (0, 2, Row): what an element of sort reads is not known; set FSchedule on it"
    )
    assert isinstance(states_of(graph, {root: Split(0, 6)}, named(graph, "sort")), dict)
    square = pk.parse("x: f32[6, 4]; y: f32[4, 8]; return matmul(x, y)")
    cut = states_of(square, {square.outputs[0]: Split(1, 2)}, [])
    assert isinstance(cut, Diagnostic)
    assert str(cut) == (
        "matmul rejects (1, 2, Row): a product is cut into rows, or into columns, not into both"
    )


def test_empty_values() -> None:
    """A result without elements has no split; an operand may have none."""
    empty = pk.parse("x: f32[0, 4]; return exp(x)")
    diagnostic = states_of(empty, {empty.outputs[0]: whole_map((0, 4))}, [])
    assert isinstance(diagnostic, Diagnostic)
    assert (diagnostic.code, str(diagnostic)) == ("tile.empty", "exp has no elements")
    inner = pk.parse("x: f32[6, 0]; y: f32[0, 5]; return matmul(exp(x), y)")
    held = named(inner, "exp")
    assert isinstance(states_of(inner, {inner.outputs[0]: Split(0, 2)}, held), dict)


def test_unknown_extents() -> None:
    """A softmax of n rows has n blocks, or as many as chunks of 16; nothing is known of n."""
    graph = pk.parse(
        "x: f32[n, 512]; e = exp(sub(x, reduce_max(x, axis=1, keepdims=true)));"
        "return div(e, reduce_sum(e, axis=1, keepdims=true))"
    )
    n = Size.symbol("n")
    held = named(graph, "reduce_max", "reduce_sum", "exp")

    assert tiles(states_of(graph, {graph.outputs[0]: Split(0, 16)}, held)) == {(n + 15) // 16}
    assert tiles(states_of(graph, {graph.outputs[0]: Split(1, 512)}, held)) == {n}
    assert "WHOLE" not in tiles(states_of(graph, {graph.outputs[0]: Split(1, 512)}, held))
    rows = states_of(graph, {graph.outputs[0]: Split(1, 4)}, held)
    assert isinstance(rows, dict) and not rows[held[0]].is_partition


def test_long_chains() -> None:
    """As many operators in a row as one likes, in one part or each in its own."""
    x = pk.var("x", (12, 4))
    y = x
    for _ in range(20_000):
        y = -y
    graph = Graph([y])
    nodes = [n for n in graph.nodes if not is_leaf(n)]

    roots = maps_of({y: Split(0, 3)})
    assert infer_tile_maps(graph, roots, [NestResults(nodes, [y])]) == roots
    maps = infer_tile_maps(graph, roots, [NestResults([n], n.entries) for n in nodes])
    assert isinstance(maps, dict) and len(maps) == 20_000


# Soundness: of random groups, what each block reads of each value that other parts leave


SHAPES = [(4, 6), (6, 4), (4,), (6,), (2, 3, 4), (4, 1), (1, 6)]


def grown(rng: random.Random) -> Graph:
    """A small random group of all classes of operators."""
    values = [pk.var(f"x{k}", rng.choice(SHAPES)) for k in range(2)]
    for _ in range(rng.randint(3, 7)):
        x = rng.choice(values[-4:])
        like = [v for v in values if known_shape(v) == known_shape(x)]
        value = rng.choice(makers(x, rng.choice(like), rng))()
        if np.prod(known_shape(value)) <= 72:
            values.append(value)
    roots = [v for v in values[2:] if not any(v in u.node.inputs for u in values)]
    return pk.ApplyPasses(Graph(roots or [-values[-1]]), ["Expand"])


def makers(x: Entry, other: Entry, rng: random.Random) -> list[Callable[[], Entry]]:
    """Operators on ``x``, and on another value of its shape."""
    shape = known_shape(x)
    size, axis = int(np.prod(shape)), rng.randrange(max(1, len(shape)))
    equal = [s for s in SHAPES if np.prod(s) == size] or [(size,)]
    builders = [lambda: ops.tanh(x), lambda: x + other]
    builders.append(lambda: ops.reshape(x, shape=rng.choice(equal)))
    if shape:
        builders += [
            lambda: ops.reduce_sum(x, axis=axis, keepdims=rng.random() < 0.5),
            lambda: ops.reduce_max(x, axis=axis),
            lambda: ops.cumsum(x, axis=axis),
            lambda: ops.flip(x, axis=axis),
            lambda: ops.concat(x, other, axis=axis),
            lambda: ops.broadcast_to(x, shape=(rng.choice([2, 3]), *shape)),
            lambda: ops.roll(x, shift=1, axis=axis),
        ]
    if len(shape) > 1:
        builders += [
            lambda: ops.transpose(x),
            lambda: x - x[:1],
            lambda: ops.matmul(x, other, transpose_b=True),
        ]
    return builders


def cut_out(entry: Entry, outside: Collection[Entry]) -> tuple[Entry, dict[str, Entry]]:
    """A value as made of inputs and of those outside of its part, which are variables now."""
    copies: dict[Entry, Entry] = {}
    sources: dict[str, Entry] = {}

    def copy(e: Entry) -> Entry:
        if e not in copies:
            if e is not entry and (e in outside or e.node.is_variable):
                copies[e] = pk.var(f"v{len(sources)}", known_shape(e))
                sources[f"v{len(sources)}"] = e
            else:
                copies[e] = e.node.replaced([copy(i) for i in e.node.inputs]).entries[e.index]
        return copies[e]

    return copy(entry), sources


def misread(graph: Graph, states: TileMaps, parts: list[NestResults]) -> list[tuple[str, str]]:
    """Values of other parts of which some block, to have its part of another, reads too much."""
    rng, wrong = np.random.default_rng(3), []
    many = max(int(m.tiles) for m in states.values())  # type: ignore[arg-type]
    for part in parts:
        outside = set(states) - set(part.results)
        for entry in (e for e in part.results if e in states):
            copied, sources = cut_out(entry, outside)
            feeds = {
                n: rng.standard_normal(known_shape(e)).astype("f4") for n, e in sources.items()
            }
            held = {n: a for n, a in feeds.items() if sources[n] in states}
            needs = dependence([copied], feeds, held) if held else {}
            own = allowed(states[entry], known_shape(entry), many)
            for name, (need,) in needs.items():
                read = own @ need.T
                given = allowed(states[sources[name]], known_shape(sources[name]), many)
                if (read & ~given).any():
                    wrong.append((graph.names[sources[name].node], graph.names[entry.node]))
    return wrong


@pytest.mark.parametrize("seed", range(6))
def test_no_block_reads_another_s_part(seed: int) -> None:
    """Random groups, cut at random or as kernels are, every legal split: none reads too much."""
    rng = random.Random(seed)
    agreed = split = 0
    for _ in range(30):
        graph = grown(rng)
        root = rng.choice(graph.outputs)
        one = Graph([root])
        inner = [e for e in operators(one) if e is not root and rng.random() < 0.6]
        parts = parts_of(one, inner)
        if rng.random() < 0.5:
            pieces = rng.choice(nest_partitions(one))
            pairs = zip(pieces, nest_outputs(one, pieces), strict=True)
            parts = [NestResults(p.nodes, results) for p, results in pairs]
        for choice in rng.sample(
            candidates := candidate_tilings(known_shape(root)), min(5, len(candidates))
        ):
            states = infer_tile_maps(one, {root: choice}, parts)
            if isinstance(states, dict):
                agreed += 1
                split += len(states) > 1 and choice.tiles != 1
                assert misread(one, states, parts) == []
    assert agreed > 60 and split > 15


def test_the_check_of_reads_has_power() -> None:
    """States that are wrong are found to be."""
    graph = pk.parse(
        "x: f32[4, 6]; e = exp(x);return add(e, slice(e, begin=(3, 0), size=(4, 6), step=(-1, 1)))"
    )
    (root,), (e,) = graph.outputs, named(graph, "exp")
    parts = parts_of(graph, [e])

    def check(part: Split | TileMap) -> list[tuple[str, str]]:
        return misread(graph, maps_of({root: Split(0, 2), e: part}), parts)

    assert check(Split(0, 2)) == [("e", "add")]
    assert check(whole_map((4, 6), 2)) == []
    assert check(slab_map((4, 6), 1, 8, 2)) == [("e", "add")]
