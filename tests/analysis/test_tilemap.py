"""Splits: canonical forms, equal partitions, owners of elements, wholes, and the legal ones."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from passkit.analysis.tilemap import (
    WHOLE,
    Split,
    SplitKind,
    SplitState,
    Whole,
    candidate_tilings,
    covering,
    join,
    single_block,
)
from passkit.ast import Var, dt
from passkit.errors import ScheduleError
from passkit.runtime.evaluate import evaluate
from passkit.values.size import Size, numel
from tests.probing import all_splits, allowed, blocks_of

ROW, COLUMN = SplitKind
N, M = Size.symbol("n"), Size.symbol("m")
SHAPES = [(), (1,), (7,), (4, 6), (1, 5), (5, 1), (3, 1, 4), (2, 3, 5), (1, 1), (2, 1, 3, 2)]


def swords(shape: tuple[int, ...]) -> list[Split]:
    """The triples of the paper: pieces that divide their dimension."""
    return [s for s in all_splits(shape) if shape[s.split_dim] % s.chunk == 0]


def test_the_triples_of_4_by_6() -> None:
    """14 triples, 11 canonical ones, of which two are one partition: each element a block."""
    canonical = {s.canonical((4, 6)) for s in swords((4, 6))}

    assert (len(swords((4, 6))), len(canonical)) == (14, 11)
    assert len({s.digits((4, 6)) for s in canonical}) == 10
    assert Split(1, 1, ROW).same(Split(0, 1, COLUMN), (4, 6))


@pytest.mark.parametrize("shape", SHAPES)
def test_canonical_forms_stand_for_partitions(shape: tuple[int, ...]) -> None:
    """Splits have equal digits just where they number every element's block alike."""
    alike: dict[Any, set[bytes]] = {}
    for split in all_splits(shape):
        owner = blocks_of(split, shape)
        alike.setdefault(split.digits(shape), set()).add(owner.tobytes())
        canonical = split.canonical(shape)
        assert (blocks_of(canonical, shape) == owner).all()
        assert canonical.canonical(shape) == canonical
        assert split.blocks(shape) == owner.max() + 1
        assert split.same(canonical, shape)
    assert all(len(owners) == 1 for owners in alike.values())
    assert len(set.union(*alike.values())) == len(alike)


@pytest.mark.parametrize("shape", SHAPES)
def test_owners(shape: tuple[int, ...]) -> None:
    """The block of an element, as a number and as an expression, is what the triple says."""
    index = [Var(f"i{k}", dt.int64) for k in range(len(shape))]
    where = np.indices(shape).reshape(len(shape), int(np.prod(shape)))
    grid = {i.name: at for i, at in zip(index, where, strict=True)}
    for split in all_splits(shape):
        wanted = blocks_of(split, shape)
        found = evaluate(split.owner(index, shape), grid)
        assert (np.broadcast_to(found, wanted.shape) == wanted).all()
        assert [split.number(at, shape) for at in np.ndindex(*shape)] == list(wanted)


@pytest.mark.parametrize("shape", [(7,), (4, 6), (2, 3, 5), (1, 5)])
def test_places_in_a_block(shape: tuple[int, ...]) -> None:
    """Elements of a block have different places in its part, all inside of it."""
    index = [Var(f"i{k}", dt.int64) for k in range(len(shape))]
    where = np.indices(shape).reshape(len(shape), -1)
    grid = {i.name: at for i, at in zip(index, where, strict=True)}
    for split in all_splits(shape):
        owner, part = blocks_of(split, shape), split.part(shape)
        at = [np.broadcast_to(evaluate(x, grid), owner.shape) for x in split.local(index, shape)]
        assert all((a >= 0).all() and (a < n).all() for a, n in zip(at, part, strict=True))
        assert len(set(zip(owner, *at, strict=True))) == owner.size
        assert np.bincount(owner).max() == split.elements(shape) == np.prod(part)


def test_what_blocks_of_the_figure_hold() -> None:
    """17 and 289 elements, as scratch is asked for; of a slab what is behind its prefix."""
    assert [Split(0, 17).elements(s) for s in ((8704,), (8704, 17))] == [17, 289]
    assert Split(1, 1).part((64, 8, 17, 128)) == (1, 1, 17, 128)
    assert Split(0, 4, COLUMN).part((N, 8)) == (4, 1)
    assert Whole(1).part((4, 5, N)) == (1, 5, N) and Whole(1).elements((4, 5, N)) == 5 * N
    assert Split(0, 1).part(()) == (1,)
    i, j = Var("i", dt.int64), Var("j", dt.int64)
    assert Whole(1).local((i, j), (4, 5))[1] == j


def test_numbers_of_blocks() -> None:
    """As the formulas have it: 512 in the figure, short last blocks counted."""
    assert Split(2, 17).blocks((64, 8, 17, 128)) == 512
    assert Split(2, 17).canonical((64, 8, 17, 128)) == Split(1, 1)
    assert Split(0, 4, COLUMN).blocks((10, 3)) == 9
    assert Split(1, 5, COLUMN).canonical((4, 5)) == Split(0, 4, ROW) == single_block((4, 5))
    assert Split(0, 3, COLUMN).canonical((3, 5)) == Split(1, 1, COLUMN)


def test_unknown_extents() -> None:
    """Sizes stay in numbers of blocks; what cannot be decided is not taken to hold."""
    assert str(Split(0, 4).blocks((N, 512))) == "(3 + n)//(4)"
    assert Split(0, 2048).blocks((512 * N,)) == Split(0, 4).blocks((N, 512))
    assert Split(1, 512).canonical((N, 512)) == Split(0, 1)
    assert Split(1, N).canonical((4, N)) == Split(0, 1)
    assert Split(0, N).canonical((N, 3)) == single_block((N, 3)) == Split(0, N)
    assert Split(1, 8).canonical((4, N)) == Split(1, 8)
    assert Split(0, 8).blocks((16 * N, 3)) == 2 * N
    assert not Split(0, 8).same(Split(0, 4), (N, 3))


@pytest.mark.parametrize(
    "split, shape, message",
    [
        (
            Split(2, 1),
            (4, 6),
            r"the split \(2, 1, Row\) needs a dimension 2; the shape \(4, 6\) has 2",
        ),
        (Split(-1, 1), (4,), r"\(-1, 1, Row\) needs a dimension -1"),
        (Split(0, 0), (4,), r"\(0, 0, Row\) needs a chunk of 1 or more elements, got 0"),
        (Split(1, N - M, COLUMN), (4, N), "needs a chunk of 1 or more elements, got -m . n"),
        (Split(0, 1), (4, 0), r"the shape \(4, 0\) has no elements that the split \(0, 1, Row\)"),
    ],
)
def test_splits_that_do_not_fit(split: Split, shape: Any, message: str) -> None:
    """Each says what the split needs and what the shape has."""
    with pytest.raises(ScheduleError, match=message):
        split.blocks(shape)


# MatchLibrary


def states(shape: tuple[int, ...]) -> list[SplitState]:
    """Splits of a shape, and wholes of several prefixes and repetitions."""
    wholes = [Whole(p, per) for p in range(len(shape) + 1) for per in (1, 2, 3, 6)]
    return [*all_splits(shape), *wholes]


@pytest.mark.parametrize("shape", [(3,), (1, 4), (2, 3), (2, 1, 3)])
def test_a_whole_covers_what_it_joins(shape: tuple[int, ...]) -> None:
    """What two states need is in what their join gives, for each of many blocks."""
    for a, b in product(states(shape), repeat=2):
        found = join(a, b, shape)
        blocks = max([int(numel(shape)), 12])
        both = allowed(a, shape, blocks) | allowed(b, shape, blocks)
        assert not (both & ~allowed(found, shape, blocks)).any(), (a, b, found)


def test_wholes() -> None:
    """Canonical forms, texts, sizes and coordinates."""
    assert Whole(2, 3).canonical((4, 1, 5)) == Whole(1, 3)
    assert Whole(1, 3).canonical((1, 5)) == WHOLE
    assert [str(WHOLE), str(Whole(2)), Whole(1).elements((4, 5, 6))] == ["WHOLE", "WHOLE(2)", 30]
    assert covering(Split(1, 2), (3, 4)) == Whole(1, 2)
    assert covering(Split(1, 2, COLUMN), (3, 4)) == WHOLE
    assert join(Split(0, 1), Split(1, 4), (3, 4)) == Split(0, 1)
    assert join(Whole(1, 6), Whole(2, 2), (2, 3, 4)) == Whole(1, 6)
    assert join(Whole(1, 2), Whole(2, 2), (2, 3, 4)) == WHOLE


@pytest.mark.parametrize(
    "whole, shape",
    [
        (Whole(1, 2), (3, 4)),
        (Whole(2, 3), (2, 3, 4)),
        (Whole(2), (3, 1, 2)),
        (WHOLE, (2, 2)),
        (Whole(1, 4), (1, 3)),
    ],
)
def test_coordinates_of_a_whole(whole: Whole, shape: tuple[int, ...]) -> None:
    """As expressions of the block's number, and as a question about one element."""
    blocks = np.arange(40)
    lead = whole.coordinates(Var("b", dt.int64), shape)
    found = [np.broadcast_to(evaluate(x, {"b": blocks}), blocks.shape) for x in lead]
    wanted = allowed(whole, shape, 40)
    for block in blocks:
        for k, at in enumerate(np.ndindex(*shape)):
            inside = all(f[block] == i for f, i in zip(found, at, strict=False))
            assert inside == wanted[block, k] == whole.needs(int(block), at, shape)


# Legal splits


def test_legal_splits_of_what_may_be_empty() -> None:
    """An extent that is not known to be any, as a number of chunks, has no splits."""
    chunks = (Size.symbol("n") + 884) // 885

    assert candidate_tilings((chunks, 4)) == () and candidate_tilings((Size.symbol("n"), 4))


@pytest.mark.parametrize("shape", [*SHAPES, (64, 8, 17, 128), (4096, 1024), (30_030, 1000)])
def test_legal_splits_are_few_and_all_different(shape: tuple[int, ...]) -> None:
    """Canonical, no partition twice, at most 64, most blocks first, one block among them."""
    found = candidate_tilings(shape)
    blocks = [s.blocks(shape) for s in found]

    assert len({s.digits(shape) for s in found}) == len(found) <= 64
    assert all(s.canonical(shape) == s for s in found)
    assert blocks == sorted(blocks, reverse=True) and blocks[-1] == 1 and blocks[0] <= 65_535
    assert found[-1] == single_block(shape)


def test_many_legal_splits_are_spread_out() -> None:
    """Of hundreds, half are Columns, and no wide gap is left between their numbers of blocks."""
    shape = (30_030, 1000)
    every = candidate_tilings(shape, most=10_000)
    found = candidate_tilings(shape)
    rows = [s.blocks(shape) for s in found if s.kind is ROW]
    gaps = [a / b for a, b in pairwise(rows) if b > 16]

    assert len(every) > 120 and len(found) == 64 and len(rows) in range(30, 35)
    assert max(gaps) < 3
    assert candidate_tilings(shape, most=3)[-1] == single_block(shape)


def test_legal_splits_of_awkward_shapes() -> None:
    """Nothing of nothing; a prime splits; unknown extents are cut by powers of two."""
    assert candidate_tilings((0, 3)) == ()
    assert candidate_tilings(()) == (Split(0, 1),)
    assert [s.chunk for s in candidate_tilings((4099,)) if s.kind is ROW][:3] == [1, 2, 4]
    symbolic = candidate_tilings((N, 512))
    assert Split(0, 64) in symbolic and Split(0, N) in symbolic and len(symbolic) <= 64
    assert {s.blocks((N, 512)) for s in symbolic} >= {N, 1, (N + 63) // 64}
