"""Tile maps: equal partitions, parts of tiles, copies of elements, and candidates."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from passkit.analysis.tile_layout import TileLayout
from passkit.analysis.tilemap import (
    TILE,
    Split,
    SplitKind,
    TileMap,
    candidate_tilings,
    slab_map,
    whole_map,
)
from passkit.ast import Var, dt
from passkit.ast.index import expression
from passkit.errors import ScheduleError
from passkit.runtime.evaluate import evaluate
from passkit.values.size import Size
from tests.probing import all_splits, allowed, blocks_of, slabs

ROW, COLUMN = SplitKind
N, M = Size.symbol("n"), Size.symbol("m")
SHAPES = [(), (1,), (7,), (4, 6), (1, 5), (5, 1), (3, 1, 4), (2, 3, 5), (1, 1), (2, 1, 3, 2)]


def swords(shape: tuple[int, ...]) -> list[Split]:
    """The triples of the paper: pieces that divide their dimension."""
    return [s for s in all_splits(shape) if shape[s.split_dim] % s.chunk == 0]


def test_the_triples_of_4_by_6() -> None:
    """14 triples are 10 partitions: some can be written in two ways."""
    maps = {s.tile_map((4, 6)) for s in swords((4, 6))}

    assert (len(swords((4, 6))), len(maps)) == (14, 10)
    assert Split(1, 1, ROW).tile_map((4, 6)) == Split(0, 1, COLUMN).tile_map((4, 6))


@pytest.mark.parametrize("shape", SHAPES)
def test_equal_maps_are_equal_partitions(shape: tuple[int, ...]) -> None:
    """Maps are equal just where they give every element to a tile of the same number."""
    alike: dict[TileMap, set[bytes]] = {}
    for split in all_splits(shape):
        owner, tile_map = blocks_of(split, shape), split.tile_map(shape)
        alike.setdefault(tile_map, set()).add(owner.tobytes())
        triple = tile_map.triple()
        assert triple is not None and triple.tile_map(shape) == tile_map
        assert tile_map.is_partition and tile_map.tiles == owner.max() + 1
        tiles = np.arange(tile_map.tiles)
        assert (allowed(tile_map, shape, tile_map.tiles) == (tiles[:, None] == owner)).all()
    assert all(len(owners) == 1 for owners in alike.values())
    assert len(set.union(*alike.values())) == len(alike)


@pytest.mark.parametrize("shape", [(7,), (4, 6), (2, 3, 5), (1, 5)])
def test_expressions_of_a_tile(shape: tuple[int, ...]) -> None:
    """Chunks and outer coordinates as expressions of the tile's number; places in its buffer."""
    index = [Var(f"i{k}", dt.int64) for k in range(len(shape))]
    where = np.indices(shape).reshape(len(shape), -1)
    maps = [s.tile_map(shape) for s in all_splits(shape)] + slabs(shape, 6 * int(np.prod(shape)))
    for tile_map in maps:
        layout, size = TileLayout(tile_map), int(tile_map.elements)  # type: ignore[arg-type]
        extents = {f"i{k}": n for k, n in enumerate(shape)} | {"first": 1 << 20}
        place = expression(layout.local(index, Var("first", dt.int64), extents))
        has = allowed(tile_map, shape, tile_map.tiles)  # type: ignore[arg-type]
        for tile, mask in enumerate(has):
            tiles = {TILE.name: np.array([tile])}
            inside = where[:, mask]
            first = 0
            for k in tile_map.split_dims:
                number = int(evaluate(tile_map.chunk_number(k), tiles)[0])
                assert (inside[k] // tile_map.dims[k].chunk == number).all()
                first = number * tile_map.dims[k].chunk if k == tile_map.window else first
            outer = [k for k in tile_map.outer if shape[k] != 1]
            linear = (
                np.ravel_multi_index([inside[k] for k in outer], [shape[k] for k in outer])
                if outer
                else np.zeros(inside.shape[1], int)
            )
            own = np.broadcast_to(evaluate(tile_map.outer_number(), tiles), linear.shape)
            assert (own == linear).all()
            grid = {i.name: at for i, at in zip(index, inside, strict=True)}
            places = np.broadcast_to(
                evaluate(place, {**grid, "first": np.full(linear.shape, first)}), linear.shape
            )
            assert len(set(places.tolist())) == places.size
            assert places.size == 0 or (places.min() >= 0 and places.max() < size)


def test_parts_of_tiles() -> None:
    """17 and 289 elements, as scratch is asked for; of a slab all behind its prefix."""
    assert [Split(0, 17).tile_map(s).elements for s in ((8704,), (8704, 17))] == [17, 289]
    assert Split(1, 1).tile_map((64, 8, 17, 128)).part == (1, 1, 17, 128)
    assert Split(0, 4, COLUMN).tile_map((N, 8)).part == (4, 1)
    assert slab_map((4, 5, N), 1, 4).part == (1, 5, N)
    assert slab_map((4, 5, N), 1, 4).elements == 5 * N
    assert Split(0, 1).tile_map(()).part == ()


def test_numbers_of_tiles() -> None:
    """As the formulas have it: 512 in the figure, short last chunks counted."""
    assert Split(2, 17).tile_map((64, 8, 17, 128)).tiles == 512
    assert str(Split(2, 17).tile_map((64, 8, 17, 128))) == "(1, 1, Row)"
    assert Split(0, 4, COLUMN).tile_map((10, 3)).tiles == 9
    assert Split(1, 5, COLUMN).tile_map((4, 5)) == whole_map((4, 5))
    assert str(whole_map((4, 5))) == "(0, 4, Row)"
    assert str(Split(0, 3, COLUMN).tile_map((3, 5))) == "(1, 1, Column)"


def test_unknown_extents() -> None:
    """Sizes stay in numbers of tiles; what cannot be decided is not taken to hold."""
    assert str(Split(0, 4).tile_map((N, 512)).tiles) == "(3 + n)//(4)"
    assert Split(0, 2048).tile_map((512 * N,)).tiles == Split(0, 4).tile_map((N, 512)).tiles
    assert Split(1, 512).tile_map((N, 512)) == Split(0, 1).tile_map((N, 512))
    assert Split(1, N).tile_map((4, N)) == Split(0, 1).tile_map((4, N))
    assert Split(0, N).tile_map((N, 3)) == whole_map((N, 3))
    assert Split(1, 8).tile_map((4, N)).triple() == Split(1, 8)
    assert Split(0, 8).tile_map((16 * N, 3)).tiles == 2 * N
    assert Split(0, 8).tile_map((N, 3)) != Split(0, 4).tile_map((N, 3))


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
        split.tile_map(shape)


# Maps that give an element to several tiles


def maps(shape: tuple[int, ...], tiles: int) -> list[TileMap]:
    """Return partitions into so many tiles, and slabs."""
    splits = [s.tile_map(shape) for s in all_splits(shape)]
    return [*(m for m in splits if m.tiles == tiles), *slabs(shape, tiles)]


@pytest.mark.parametrize("shape", [(3,), (1, 4), (2, 3), (2, 1, 3)])
def test_a_joined_map_has_both_parts(shape: tuple[int, ...]) -> None:
    """The parts that two maps give a tile are within the part of the joined map."""
    for tiles in (1, 2, 3, 4, 6, 12):
        for a, b in product(maps(shape, tiles), repeat=2):
            joined = a.joined(b)
            both = allowed(a, shape, tiles) | allowed(b, shape, tiles)
            assert not (both & ~allowed(joined, shape, tiles)).any(), (a, b, joined)


def test_slabs() -> None:
    """Equal slabs, texts, sizes and joins."""
    assert slab_map((4, 1, 5), 2, 12, 3) == slab_map((4, 1, 5), 1, 12, 3)
    assert slab_map((1, 5), 1, 12, 3) == whole_map((1, 5), 12)
    assert slab_map((4, 5), 1, 4) == Split(0, 1).tile_map((4, 5))
    texts = [whole_map((4, 5), 7), slab_map((4, 5), 1, 12, 3), slab_map((4, 5, 2), 2, 99)]
    assert [str(m) for m in texts] == ["WHOLE", "WHOLE(1)", "WHOLE(2)"]
    rows, windows = Split(0, 1).tile_map((3, 4)), Split(1, 2).tile_map((3, 4))
    assert windows.joined(slab_map((3, 4), 1, 6, 2)) == slab_map((3, 4), 1, 6, 2)
    assert windows.joined(slab_map((3, 4), 1, 6)) == whole_map((3, 4), 6)
    assert Split(1, 2, COLUMN).tile_map((3, 4)).joined(whole_map((3, 4), 2)).split_dims == ()
    assert rows.joined(rows) is rows
    shape = (2, 3, 4)
    assert slab_map(shape, 1, 12, 6).joined(slab_map(shape, 2, 12, 2)) == slab_map(shape, 1, 12, 6)
    assert slab_map(shape, 1, 12, 2).joined(slab_map(shape, 2, 12, 2)) == whole_map(shape, 12)


# Candidates


def test_candidates_of_what_may_be_empty() -> None:
    """An extent that is not known to be any, as a number of chunks, has no maps."""
    chunks = (Size.symbol("n") + 884) // 885

    assert candidate_tilings((chunks, 4)) == () and candidate_tilings((Size.symbol("n"), 4))


@pytest.mark.parametrize("shape", [*SHAPES, (64, 8, 17, 128), (4096, 1024), (30_030, 1000)])
def test_candidates_are_few_and_all_different(shape: tuple[int, ...]) -> None:
    """No partition twice, at most 64, those with the most tiles first, one tile among them."""
    candidates = candidate_tilings(shape)
    tiles = [m.tiles for m in candidates]

    assert len(set(candidates)) == len(candidates) <= 64
    assert all(m.is_partition for m in candidates)
    assert tiles == sorted(tiles, reverse=True) and tiles[-1] == 1 and tiles[0] <= 65_535
    assert candidates[-1] == whole_map(shape)


def test_many_candidates_are_spread_out() -> None:
    """Half of 64 candidates are by columns, and their numbers of tiles have no wide gaps."""
    shape = (30_030, 1000)
    every = candidate_tilings(shape, most=10_000)
    candidates = candidate_tilings(shape)
    rows = [m.tiles for m in candidates if not m.is_column]
    gaps = [a / b for a, b in pairwise(rows) if b > 16]

    assert len(every) > 120 and len(candidates) == 64 and len(rows) in range(30, 35)
    assert max(gaps) < 3
    assert candidate_tilings(shape, most=3)[-1] == whole_map(shape)


def test_candidates_of_awkward_shapes() -> None:
    """Nothing of nothing; a prime is divided; unknown extents are divided by powers of two."""
    assert candidate_tilings((0, 3)) == ()
    assert candidate_tilings(()) == (whole_map(()),)
    assert [m.part[0] for m in candidate_tilings((4099,))][:3] == [1, 2, 4]
    symbolic = candidate_tilings((N, 512))
    triples = {m.triple() for m in symbolic}
    assert Split(0, 64) in triples and Split(0, N) in triples and len(symbolic) <= 64
    assert {m.tiles for m in symbolic} >= {N, 1, (N + 63) // 64}
