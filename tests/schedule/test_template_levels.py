"""Loops dealt out: templates and splits say the same, in one way of saying it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

from passkit.analysis.regions import Region, region_of
from passkit.analysis.tilemap import Split, SplitKind
from passkit.ast.stage import Level
from passkit.schedule.template import NestPlan, Template, check, parse_template
from passkit.schedule.template_levels import dealt, pieces_of, settled, split_of
from passkit.schedule.template_loops import Nest
from passkit.schedule.template_multi import chunks_of
from passkit.values.size import Size

n, m = Size.symbol("n"), Size.symbol("m")
ROW, COLUMN = SplitKind.ROW, SplitKind.COLUMN
Owners = dict[tuple[int, ...], object]


def owners_by_split(split: Split, shape: tuple[int, ...]) -> Owners:
    """The block of each element of a result, by the definition of a split."""
    d, chunk = split.split_dim, split.chunk
    assert isinstance(chunk, int)
    return {
        i: (i[:d] if split.kind is ROW else i[d + 1 :], i[d] // chunk)
        for i in product(*map(range, shape))
    }


def same_blocks(a: Owners, b: Owners) -> bool:
    """Whether two ways to own elements put the same ones together."""
    return len({*a.values()}) == len({*b.values()}) == len({(a[i], b[i]) for i in a})


def small_nests(extents: tuple[int, ...]) -> Iterator[Nest]:
    """All folds of loops of these extents, with and without keepdims, and no fold at all."""
    for rank in (1, 2, 3):
        for shape in product(extents, repeat=rank):
            for bits in product((False, True), repeat=rank):
                folded = tuple(d for d in range(rank) if bits[d])
                for keep in (False, True) if folded else (False,):
                    yield Nest("v_1", shape, folded, keepdims=keep, root=True)


def all_splits(shape: tuple[int, ...]) -> Iterator[Split]:
    """All splits of a shape."""
    for kind in SplitKind:
        for d, extent in enumerate(shape):
            yield from (Split(d, chunk, kind) for chunk in range(1, extent + 1))


def stage_of(nest: Nest, region: Region) -> NestPlan:
    """A template's words for a tile that owns a region of a result."""
    chunks = chunks_of(nest, region)
    attrs = (dealt(k, chunks.get(d, k), Level.CTA) for d, k in enumerate(nest.dims))
    return NestPlan("v_1", tuple(attrs))


def test_templates_own_what_splits_own() -> None:
    """Each split can be said in a template, which means the same elements, and so it does back.

    Every fold of up to three loops of 1, 2 and 5 steps, every split of its result.
    """
    said = 0
    for nest in small_nests((1, 2, 5)):
        shape = tuple(int(k) for k in nest.result)
        for split in all_splits(shape):
            stage = stage_of(nest, region_of(shape, split.canonical(shape)))
            check(Template((stage,)), [nest])
            wanted = owners_by_split(split, shape)
            assert same_blocks(wanted, owners_by_split(split_of(stage, nest), shape)), (nest, split)
            said += 1

    assert said > 1000


@pytest.mark.parametrize(
    "extent, chunk, pieces",
    [
        (10, 4, 3),
        (10, 6, None),
        (10, 5, 2),
        (10, 10, 1),
        (10, 99, 1),
        (4097, 2, 2049),
        (0, 1, 0),
        (n * 128, n, 128),
        (n, (n + 127) // 128, 128),
        (n, (m + 127) // 128, None),
        (n, 4, None),
        (n, n, 1),
        (n, (n + 1) // 128, None),
        (7, n, None),
        (n, n + m, None),
    ],
)
def test_pieces(extent: int | Size, chunk: int | Size, pieces: int | None) -> None:
    """Numbers of pieces give chunks back, of unknown extents where that is certain."""
    assert pieces_of(extent, chunk) == pieces


@pytest.mark.parametrize(
    "extent, chunk, said",
    [
        (1, 1, "THREAD"),
        (10, 1, "GRID"),
        (10, 10, "CTA"),
        (10, 16, "CTA"),
        (10, 4, "GRID_3-CTA_4"),
        (10, 6, "GRID_/6-CTA_6"),
        (n, 4, "GRID_/4-CTA_4"),
        (n, n, "CTA"),
        (n, (n + 127) // 128, "GRID_128"),
        (n, 8192 // (m + 1) + 1, "GRID_~8192"),
        (0, 4, "CTA"),
    ],
)
def test_one_way_to_say_it(extent: int | Size, chunk: int | Size, said: str) -> None:
    """What is said reads back as what it was, and stays as it is."""
    found = dealt(extent, chunk, Level.CTA, m)
    (attr,) = parse_template(f"v[{said}];").stages[0].attrs

    assert found == attr
    steps = attr[0].steps(extent, m) if attr[0].level is Level.GRID else extent
    assert settled(attr, extent, m) == dealt(extent, steps, attr[-1].level, m)


@pytest.mark.parametrize(
    "attr, extent, said",
    [
        ("GRID_/4-CTA_4", 10, "GRID_3-CTA_4"),
        ("GRID_3-CTA_9", 10, "GRID_3-CTA_4"),
        ("GRID_3", 10, "GRID_3-WARP_4"),
        ("GRID_10-CTA_5", 10, "GRID"),
        ("GRID_99", 10, "GRID"),
        ("GRID_1-CTA_10", 10, "CTA"),
        ("CTA_16", 10, "CTA"),
        ("GRID_~20-WARP_4", 10, "GRID_3-WARP_4"),
        ("WARP", 1, "THREAD"),
        ("GRID_3-CTA_2", 10, "GRID_3-CTA_2"),
        ("GRID_2-WARP_2-CTA_3", 10, "GRID_2-WARP_2-CTA_3"),
        ("CTA_4", 10, "CTA_4"),
    ],
)
def test_other_ways_to_say_it(attr: str, extent: int, said: str) -> None:
    """Spellings of one thing become one; what no kernel does stays as it was written."""

    def read(text: str) -> object:
        return parse_template(f"v[{text}];").stages[0].attrs[0]

    assert settled(read(attr), extent, 5) == read(said)  # type: ignore[arg-type]


def test_unknown_extents() -> None:
    """A piece of n rows is a row, or what 128 blocks share."""
    rows = Nest("reduce_sum_1", (n, 1024), (1,), root=True)
    stage = parse_template("reduce_sum_1[GRID_128-WARP_8,CTA];").stages[0]

    assert split_of(stage, rows) == Split(0, (n + 127) // 128)
