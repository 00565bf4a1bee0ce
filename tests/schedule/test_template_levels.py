"""The distribution of loops in templates and in splits."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

from passkit.analysis.tilemap import Split, SplitKind, TileMap
from passkit.ast.stage import Level
from passkit.schedule.template import Template, ValueTemplate, check, parse_template
from passkit.schedule.template_levels import (
    chunks_of,
    distribute,
    normalize_attr,
    pieces_of,
    split_of,
)
from passkit.schedule.template_loops import ValueLoops
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
    """Return whether two distributions put the same elements together."""
    return len({*a.values()}) == len({*b.values()}) == len({(a[i], b[i]) for i in a})


def small_nests(extents: tuple[int, ...]) -> Iterator[ValueLoops]:
    """Yield all reductions of loops of these extents, and loops without a reduction."""
    for rank in (1, 2, 3):
        for shape in product(extents, repeat=rank):
            for bits in product((False, True), repeat=rank):
                reduced = tuple(d for d in range(rank) if bits[d])
                for keep in (False, True) if reduced else (False,):
                    yield ValueLoops("v_1", shape, reduced, keepdims=keep, is_output=True)


def all_splits(shape: tuple[int, ...]) -> Iterator[Split]:
    """All splits of a shape."""
    for kind in SplitKind:
        for d, extent in enumerate(shape):
            yield from (Split(d, chunk, kind) for chunk in range(1, extent + 1))


def stage_of(value: ValueLoops, tile_map: TileMap) -> ValueTemplate:
    """Return the template of a value of which a tile has a part."""
    chunks = chunks_of(value, tile_map)
    attrs = (distribute(k, chunks.get(d, k), Level.CTA) for d, k in enumerate(value.extents))
    return ValueTemplate("v_1", tuple(attrs))


def test_templates_and_splits_distribute_the_same_elements() -> None:
    """Each split has a template with the same blocks, from which the split can be derived.

    The test covers every reduction of up to three loops of 1, 2 and 5 iterations.
    """
    count = 0
    for nest in small_nests((1, 2, 5)):
        shape = tuple(int(k) for k in nest.result_shape)
        for split in all_splits(shape):
            stage = stage_of(nest, split.tile_map(shape))
            check(Template((stage,)), [nest])
            expected = owners_by_split(split, shape)
            owners = owners_by_split(split_of(stage, nest), shape)
            assert same_blocks(expected, owners), (nest, split)
            count += 1

    assert count > 1000


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
    """The number of chunks determines their length, for unknown extents if that is certain."""
    assert pieces_of(extent, chunk) == pieces


@pytest.mark.parametrize(
    "extent, chunk, text",
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
def test_canonical_form(extent: int | Size, chunk: int | Size, text: str) -> None:
    """The canonical form is parsed back, and normalizing does not change it."""
    canonical = distribute(extent, chunk, Level.CTA, m)
    (attr,) = parse_template(f"v[{text}];").values[0].attrs

    assert canonical == attr
    steps = attr[0].steps(extent, m) if attr[0].level is Level.GRID else extent
    assert normalize_attr(attr, extent, m) == distribute(extent, steps, attr[-1].level, m)


@pytest.mark.parametrize(
    "attr, extent, text",
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
def test_normalization(attr: str, extent: int, text: str) -> None:
    """Equal distributions have one form; one that no kernel has stays as it is."""

    def read(attr_text: str) -> object:
        return parse_template(f"v[{attr_text}];").values[0].attrs[0]

    assert normalize_attr(read(attr), extent, 5) == read(text)  # type: ignore[arg-type]


def test_unknown_extents() -> None:
    """A chunk of an unknown number of rows is a quotient."""
    rows = ValueLoops("reduce_sum_1", (n, 1024), (1,), is_output=True)
    stage = parse_template("reduce_sum_1[GRID_128-WARP_8,CTA];").values[0]

    assert split_of(stage, rows) == Split(0, (n + 127) // 128)
