"""Propagation of splits: every accepted state of every operator class, against what is read."""

from __future__ import annotations

import random
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import astuple

import passkit as pk
import passkit.ops as ops
from passkit.analysis import propagate
from passkit.analysis.propagate import operand_tile_maps
from passkit.analysis.tilemap import (
    WHOLE,
    Reject,
    Split,
    SplitKind,
    TileDim,
    TileMap,
    slab_map,
    whole_map,
)
from passkit.diagnostics import Diagnostic
from passkit.graph.describe import example
from passkit.graph.node import known_shape
from passkit.graph.op import FElement, FReduce, FScan
from passkit.values.dtype import dtype_of
from passkit.values.size import Size, substitute
from tests import paper_rules
from tests.probing import all_splits, allowed, blocks_of, dependence, slabs, violations
from tests.split_cases import CASES, Case, accepted, case

ROW, COLUMN = SplitKind


@pytest.mark.parametrize("name", CASES)
def test_no_block_reads_what_its_state_does_not_give(name: str) -> None:
    """All triples, short last blocks included, element by element."""
    answers = list(accepted(CASES[name]))

    assert [(str(s), k, str(state), n) for s, k, state, n in answers if n] == []
    assert answers


def by_literal_rule(node: Any, split: Split, shapes: Any) -> list[Any]:
    """The paper's own rule for a reduction of dimension 1, as an FSchedule."""
    out = known_shape(node.entries[0])
    pieces = -(-out[split.split_dim] // split.chunk)
    triple = paper_rules.literal_reduce((1,))((split.split_dim, pieces, split.kind))
    if not isinstance(triple, tuple):
        return [Reject("the table says no")]
    k, count, kind = triple
    operand = Split(k, -(-shapes[0][k] // count), kind)
    if operand.tile_map(shapes[0]).tiles != split.tile_map(out).tiles:
        return [Reject("no such pieces")]
    return [operand]


def test_the_paper_s_literal_rule_is_found_wrong() -> None:
    """(4, 6, 8) over dimension 1: a block would own half of what it reduces."""
    literal = pk.register_op("folded_literally", num_inputs=1)
    literal.set_attr("FInferShape", lambda node, shape: (shape[0], shape[2]))
    literal.set_attr("FInferType", lambda node, dtype: dtype)
    literal.set_attr("FCompute", lambda node, x: x.sum(1))
    literal.set_attr("FSchedule", by_literal_rule)
    answers = list(accepted(case(literal, (4, 6, 8))))
    wrong = {str(s) for s, *_, n in answers if n}

    assert {"(1, 4, Row)", "(1, 3, Row)"} <= wrong
    rows = [n for s, *_, n in answers if s.kind is ROW and s.split_dim == 0 and 4 % s.chunk == 0]
    assert rows == [0, 0, 0]


@pytest.mark.parametrize(
    "part, lie, caught",
    [
        ("owns", lambda self, tile_map, index: True, "transpose last"),
        ("owns", lambda self, tile_map, index: True, "reverse"),
        ("_shared", lambda self, linear, count: 1, "broadcast_to"),
        ("_shared", lambda self, linear, count: 1, "gather"),
    ],
)
def test_a_derivation_that_proves_nothing_is_found(
    part: str, lie: Any, caught: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the proof of a split, or of a slab, blocks are seen to read what others have."""
    monkeypatch.setattr(propagate.Block, part, lie)
    monkeypatch.setattr(propagate, "_equivalent", {})
    monkeypatch.setattr(propagate, "_broadcast_map", propagate._broadcast_map.__wrapped__)

    assert any(n for *_, n in accepted(CASES[caught]))


TABLE = {
    "elementwise": paper_rules.elementwise,
    "transpose last": paper_rules.transpose((0, 2, 1)),
    "transpose first": paper_rules.transpose((1, 0, 2)),
    "reduce last": paper_rules.reduce(3, (2,)),
    "reduce middle": paper_rules.reduce(3, (1,)),
    "reduce first": paper_rules.reduce(3, (0,)),
    "product of a batch": paper_rules.batch_dot(4),
    "product turned": paper_rules.batch_dot(3),
    "reshape joins": paper_rules.reshape((2, 3, 5), (6, 5)),
    "reshape splits": paper_rules.reshape((6, 4), (2, 3, 4)),
    "reshape across": paper_rules.reshape((4, 6), (6, 4)),
    "reshape flat": paper_rules.reshape((3, 7), (21,)),
    "reshape up": paper_rules.reshape((21,), (3, 7)),
    "broadcast_to": paper_rules.broadcast((5,), (12, 5)),
    "broadcast_to middle": paper_rules.broadcast((3, 1, 5), (3, 4, 5)),
    "broadcast_to last": paper_rules.broadcast((6, 1), (6, 4)),
    "concat first": paper_rules.untouched(0, 0),
    "concat last": paper_rules.untouched(1, 1),
    "pad": paper_rules.untouched(1, 1),
    "slice middle": paper_rules.untouched(1, 1),
    "scan": paper_rules.untouched(1, 1),
}


@pytest.mark.parametrize("name", TABLE)
def test_what_the_table_accepts_is_accepted(name: str) -> None:
    """The derivation gives each operand what the corrected Table 1 gives it, or finds more."""
    _, (output,) = CASES[name].built()
    shape = known_shape(output)
    accepts = 0
    for split in all_splits(shape):
        if shape[split.split_dim] % split.chunk:
            continue
        tile_map = split.tile_map(shape)
        triple = Split(0, shape[0]) if tile_map.tiles == 1 else canonical(split, shape)
        d, chunk, kind = astuple(triple)
        expected = TABLE[name]((d, shape[d] // chunk, kind))
        if expected is None:
            continue
        accepts += 1
        for x, state in zip(output.node.inputs, operand_tile_maps(output, tile_map), strict=True):
            source = known_shape(x)
            if expected == paper_rules.FULL:
                assert state == whole_map(source, tile_map.tiles)
            else:
                k, pieces, kind = expected
                assert Split(k, source[k] // pieces, kind).tile_map(source) == state, (split, state)
    assert accepts > 1


# Operators of a user's own, and what is known of operators that no kernel has


def test_a_movement_of_one_s_own_needs_no_rule() -> None:
    """Its FElement says which elements it reads: here the rows in pairs, exchanged."""
    swap = pk.register_op("swapped_pairs", num_inputs=1)
    swap.set_attr("FInferShape", lambda node, shape: shape)
    swap.set_attr("FInferType", lambda node, dtype: dtype)
    swap.set_attr("FElement", lambda node, i, read: read(i[0] // 2 * 2 + (1 - i[0] % 2), i[1]))
    answers = list(accepted(case(swap, (6, 5))))

    assert [n for *_, n in answers if n] == []
    by_pairs = {str(s): state for s, _, state, _ in answers}
    assert str(by_pairs["(1, 2, Column)"]) == "(1, 2, Column)"
    assert by_pairs["(0, 3, Row)"] == whole_map((6, 5), 2)


def test_a_rule_wins_and_must_fit() -> None:
    """FSchedule is asked first; an answer for another number of operands is an error."""
    ruled = pk.register_op("ruled_by_hand", num_inputs=2)
    ruled.set_attr("FInferShape", lambda node, a, b: a)
    ruled.set_attr("FInferType", lambda node, a, b: a)
    answers = [
        [Split(0, 2)],
        [Split(0, 2), WHOLE],
        [Reject("no"), Split(0, 3)],
        [Split(0, 1), WHOLE],
    ]
    ruled.set_attr("FSchedule", lambda node, split, shapes: answers[split.chunk - 1])
    y = ruled(pk.var("x", (4, 5)), pk.var("y", (4, 5)))

    with pytest.raises(
        pk.RuleError,
        match=r"FSchedule of ruled_by_hand must give a sequence of 2, "
        r"a Split, WHOLE or a Reject for each operand, got \[Split",
    ):
        needs(y, Split(0, 1))
    assert needs(y, Split(0, 2)) == (Split(0, 2).tile_map((4, 5)), whole_map((4, 5), 2))
    assert needs(y, Split(0, 3)) == (
        Diagnostic("tile.refused", {"op": "ruled_by_hand", "reason": "no"}),
        Split(0, 3).tile_map((4, 5)),
    )
    assert operand_tile_maps(y, slab_map((4, 5), 1, 8, 2)) == (whole_map((4, 5), 8),) * 2
    assert needs(y, Split(0, 8)) == (whole_map((4, 5)),) * 2
    with pytest.raises(
        pk.RuleError,
        match=r"FSchedule of ruled_by_hand must give for operand 0 a Split into 2 tiles, as many "
        r"as its result has, got '\(0, 1, Row\), 4 tiles'",
    ):
        needs(y, Split(1, 4, COLUMN))


def test_what_is_not_read_needs_nothing() -> None:
    """An input of which only the shape is read, and one without elements."""
    x, like, empty = pk.var("x", (4, 5)), pk.var("y", (7,)), pk.var("z", (4, 0))

    for split in (Split(0, 2), Split(1, 2, COLUMN)):
        assert needs(ops.sized_by(x, like), split) == (split.tile_map((4, 5)), None)
    for split in (Split(0, 2), Split(0, 4)):
        assert needs(ops.concat(x, empty, axis=1), split) == (split.tile_map((4, 5)), None)


def test_needs_of_a_slab() -> None:
    """A result of which a block needs a slab needs slabs of its operands, or all of them."""
    x, y = pk.var("x", (3, 4, 5)), pk.var("y", (3, 5, 2))
    slab = slab_map((3, 4, 5), 1, 18, 6)
    tiles = slab.tiles

    assert operand_tile_maps(ops.exp(x), slab) == (slab,)
    assert operand_tile_maps(x @ y, slab_map((3, 4, 2), 1, tiles, 6)) == (
        slab,
        slab_map((3, 5, 2), 1, tiles, 6),
    )
    rows = slab_map((3, 4), 2, 24, 2)
    assert operand_tile_maps(ops.reduce_sum(x, axis=2), rows) == (slab_map((3, 4, 5), 2, 24, 2),)
    rows = slab_map((3, 5), 2, 30, 2)
    assert operand_tile_maps(ops.reduce_sum(x, axis=1), rows) == (slab_map((3, 4, 5), 1, 30, 10),)
    turned = slab_map((5, 4, 3), 1, tiles, 6)
    assert operand_tile_maps(ops.transpose(x), turned) == (whole_map((3, 4, 5), tiles),)
    flat = ops.reshape(x, shape=(12, 5))
    assert operand_tile_maps(flat, slab_map((12, 5), 1, 24, 2)) == (slab_map((3, 4, 5), 2, 24, 2),)
    assert operand_tile_maps(flat, whole_map((12, 5), 7)) == (whole_map((3, 4, 5), 7),)


def needs(result: pk.Entry, split: Split) -> tuple[Any, ...]:
    """Return what tiles of a result need of its operands."""
    return operand_tile_maps(result, split.tile_map(known_shape(result)))


@pytest.mark.parametrize("name", [n for n in CASES if n != "elementwise scalar"])
def test_slabs_are_enough(name: str) -> None:
    """No tile that has a slab of a result reads elements outside of its part of an operand."""
    inputs, outputs = CASES[name].built()
    needs = dependence(outputs, CASES[name].feeds(2))
    for o, output in enumerate(outputs):
        shape = tuple(map(int, known_shape(output)))
        tiles = 12 * int(np.prod(shape))
        for slab in slabs(shape, tiles):
            states = dict(zip(output.node.inputs, operand_tile_maps(output, slab), strict=True))
            for x in inputs:
                if x in states and not isinstance(states[x], Diagnostic):
                    own = allowed(slab, shape, tiles)
                    read = own @ needs[x.node.name][o].T
                    assert not (read & ~allowed(states[x], known_shape(x), tiles)).any(), (slab, x)


def test_state_is_never_split() -> None:
    """Operators that read or write state have no tiles."""
    y = ops.assign(pk.state("s", np.zeros((4, 2), "f4")), pk.var("x", (4, 2)))

    assert needs(y, Split(0, 4)) == (Diagnostic("op.state", {"op": "assign"}),) * 2


@pytest.mark.parametrize("seed", range(40))
def test_random_shapes(seed: int) -> None:
    """Movement and reductions of random shapes: prime extents, ones, many dimensions."""
    rng = random.Random(seed)
    shape = tuple(rng.choice([1, 2, 3, 4, 5, 6]) for _ in range(rng.randint(1, 4)))
    while prod(shape) > 60:
        shape = shape[1:]
    axis = rng.randrange(len(shape))
    axes = rng.sample(range(len(shape)), len(shape))
    shapes = [s for s in factored(prod(shape)) if s != shape] or [shape]
    begin = [rng.randrange(n) for n in shape]
    size = [rng.randint(1, n - b) for n, b in zip(shape, begin, strict=True)]
    builds: list[Callable[[Any], Any]] = [
        lambda x: ops.transpose(x, axes=tuple(axes)),
        lambda x: ops.reduce_sum(x, axis=axis, keepdims=seed % 2 == 0),
        lambda x: ops.reshape(x, shape=rng.choice(shapes)),
        lambda x: ops.broadcast_to(x, shape=tuple(2 if n == 1 else n for n in (1, *shape))),
        lambda x: ops.slice(x, begin=tuple(begin), size=tuple(size)),
    ]
    cases = [case(build, shape) for build in builds]
    cases.append(case(lambda x, y: ops.concat(x, y, axis=0), shape, (2, *shape[1:])))
    for each in cases:
        answers = list(accepted(each))
        assert [(str(s), k, str(state), n) for s, k, state, n in answers if n] == []


def factored(n: int) -> list[tuple[int, ...]]:
    """The shapes of n elements in two or three dimensions."""
    pairs = [(a, n // a) for a in range(1, n + 1) if n % a == 0]
    return pairs + [(a, c, b // c) for a, b in pairs for c in range(1, b + 1) if b % c == 0]


DECLARED = (FElement, FReduce, FScan)
"""Attributes by which accesses of operators are known, without those of composites."""


def test_every_operator_that_declares_its_reads() -> None:
    """The example of each in the documentation, whatever it is called: none is read too much."""
    folder, seen, wrong = str(Path(ops.__file__).parent), set(), []
    for op in map(pk.get_op, pk.list_ops()):
        if not op.place.startswith(folder) or not any(op.has_attr(c.key) for c in DECLARED):
            continue
        call = example(op, dtype_of("float32"))
        inputs = () if call is None else call.results[0].node.inputs
        if not 0 < sum(prod(known_shape(e)) for e in inputs) <= 40 * len(inputs):
            continue
        seen.add(op.name)
        assert call is not None
        answers = accepted(called(op, call.results[0].node))
        wrong += [(op.name, str(s), k, str(state)) for s, k, state, n in answers if n]

    assert wrong == []
    assert len(seen) > 35


def called(op: pk.Op, node: pk.Node) -> Case:
    """A call like that of a node."""
    below = tuple(0 if e.dtype is not None and e.dtype.is_float else 3 for e in node.inputs)
    shapes = tuple(known_shape(e) for e in node.inputs)
    return Case(lambda *x: op(*x, **node.params), shapes, below)


# Extents that only a call knows: what is derived for any must hold for each


N = Size.symbol("n")
SYMBOLIC: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "elementwise": (lambda x, y: x * y, ((N, 3), (N, 3))),
    "broadcasting": (lambda x, y: x + y, ((N, 2, 3), (2, 1))),
    "broadcasting of a row": (lambda x, y: x + y, ((2, N), (N,))),
    "reduce": (lambda x: ops.reduce_sum(x, axis=1), ((N, 4, 2),)),
    "reduce unknown": (lambda x: ops.reduce_sum(x, axis=1), ((4, N, 3),)),
    "transpose": (ops.transpose, ((N, 4),)),
    "flat": (lambda x: ops.reshape(x, shape=(-1,)), ((N, 4),)),
    "joined": (lambda x: ops.reshape(x, shape=(-1, 4)), ((N, 2, 4),)),
    "split": (lambda x: ops.reshape(x, shape=(-1, 4)), ((4 * N,),)),
    "split across": (lambda x: ops.reshape(x, shape=(-1, 6)), ((3 * N, 4),)),
    "concat": (lambda x, y: ops.concat(x, y, axis=0), ((N, 3), (4, 3))),
    "concat last": (lambda x, y: ops.concat(x, y, axis=1), ((N, 3), (N, 2))),
    "slice": (lambda x: x[:, 1:], ((N, 4),)),
    "slice by steps": (lambda x: x[:, ::2], ((N, 8),)),
    "product": (lambda x, y: x @ y, ((N, 3), (3, 4))),
    "product of a batch": (lambda x, y: x @ y, ((2, N, 3), (2, 3, 2))),
    "scan": (lambda x: ops.cumsum(x, axis=1), ((N, 4),)),
    "softmax": (lambda x: ops.softmax(x, axis=-1), ((2, N, 4),)),
}


@pytest.mark.parametrize("name", SYMBOLIC)
def test_what_holds_for_any_extent_holds_for_each(name: str) -> None:
    """States over n, with numbers put in, against what is read at these numbers."""
    build, shapes = SYMBOLIC[name]
    sources = [pk.var(f"x{k}", s) for k, s in enumerate(shapes)]
    output = build(*sources)
    shape = known_shape(output)
    splits = [s for s in every_split(shape) if s.tile_map(shape).tiles != 1]
    states = [dict(zip(output.node.inputs, needs(output, s), strict=True)) for s in splits]
    for n in (1, 2, 5, 8):
        given = case(build, *(tuple(substitute(e, {"n": n}) for e in s) for s in shapes))
        inputs, (result,) = given.built()
        read = dependence([result], given.feeds(n))
        shape = known_shape(result)
        for split, operand_maps in zip(splits, states, strict=True):
            own = Split(split.split_dim, substitute(split.chunk, {"n": n}), split.kind)
            owner = blocks_of(own, shape)
            for x, y in zip(sources, inputs, strict=True):
                if not isinstance(operand_maps[x], Diagnostic):
                    state = numbers_in(operand_maps[x], n)
                    wrong = violations(state, known_shape(y), owner, read[y.node.name][0])
                    assert wrong == 0, (n, str(split), str(operand_maps[x]))
    assert any(
        isinstance(x, TileMap) and x.is_partition
        for operand_maps in states
        for x in operand_maps.values()
    )


def every_split(shape: Any) -> list[Split]:
    """Splits of a shape with unknown extents: small chunks, all of it, and multiples."""
    chunks = (1, 2, 3, 4, 6, 8, N, 2 * N, 4 * N)
    return [Split(d, c, k) for d in range(len(shape)) for c in chunks for k in SplitKind]


def numbers_in(tile_map: TileMap | None, n: int) -> TileMap | None:
    """Return a map with a number for n."""
    if tile_map is None:
        return None

    def number(size: Any) -> Any:
        return substitute(size, {"n": n})

    dims = (TileDim(number(d.chunk), number(d.count), number(d.stride)) for d in tile_map.dims)
    return TileMap(tuple(map(number, tile_map.shape)), tuple(dims), number(tile_map.tiles))


def canonical(split: Split, shape: tuple[int, ...]) -> Split:
    """Return the triple of the same kind for a partition that may have both."""
    split_dims = split.tile_map(shape).split_dims
    dim = split_dims[-1 if split.kind is ROW else 0]
    return Split(dim, split.tile_map(shape).dims[dim].chunk, split.kind)
