"""Templates and splits say the same, and a group has a few templates that all fit."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from attrs import evolve

from passkit.nest import Nest
from passkit.sharing import Work
from passkit.size import Size
from passkit.split import Split, SplitKind
from passkit.stage import Level
from passkit.template import NestPlan, Part, Template, check, parse_template
from passkit.variants import (
    blocks,
    blocks_of,
    composition,
    default_splits,
    grid_of,
    pieces_of,
    plans,
    split_of,
    splits_of,
    templates,
)

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


def owners_by_grid(grid: dict[int, Part], nest: Nest) -> Owners:
    """The block of each element of a result, by what blocks take of each loop."""
    found: Owners = {}
    for i in product(*map(range, nest.result)):
        at = dict(zip(nest.axes, i, strict=True)) if nest.axes else {}
        block = []
        for d, part in sorted(grid.items()):
            extent = nest.dims[d]
            assert isinstance(extent, int)
            chunk = -(-extent // part.pieces) if part.pieces is not None else part.chunk or 1
            block.append(at[d] // chunk)
        found[i] = tuple(block)
    return found


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
                    work = Work.REDUCE if folded else Work.LIGHT
                    yield Nest("v_1", shape, work, folded, keepdims=keep, root=True)


def all_splits(shape: tuple[int, ...]) -> Iterator[Split]:
    """All splits of a shape."""
    for kind in SplitKind:
        for d, extent in enumerate(shape):
            yield from (Split(d, chunk, kind) for chunk in range(1, extent + 1))


def all_grids(nest: Nest) -> Iterator[dict[int, Part]]:
    """All that blocks may take of the loops of a nest by the rules of templates."""
    rank = len(nest.dims)
    for order in (range(rank), range(rank - 1, -1, -1)):
        for count in range(rank + 1):
            loops = list(order)[:count]
            if {*loops} & {*nest.folded}:
                break
            extent = nest.dims[loops[-1]] if loops else 1
            assert isinstance(extent, int)
            for chunk in range(1, extent + 1):
                grid = {d: Part(Level.GRID) for d in loops}
                if loops:
                    grid[loops[-1]] = Part(Level.GRID, chunk=chunk)
                yield grid


def test_grids_own_what_splits_own() -> None:
    """Whatever a split says in a template, it means the same elements, and so it does back again.

    Every fold of up to three loops of 1, 2 and 5 steps, every split of its result.
    """
    said = 0
    for nest in small_nests((1, 2, 5)):
        shape = tuple(k for k in nest.result if isinstance(k, int))
        for split in all_splits(shape):
            grid = grid_of(split, nest)
            if grid is None:
                continue
            said += 1
            wanted = owners_by_split(split, shape)
            assert same_blocks(wanted, owners_by_grid(grid, nest)), (nest, split)
            attrs = tuple((grid.get(d, Part(Level.CTA)),) for d in range(len(nest.dims)))
            stage = NestPlan("v_1", attrs)
            check(Template((stage,)), [nest])
            assert same_blocks(wanted, owners_by_split(split_of(stage, nest), shape)), (nest, split)
            assert blocks(split, shape) == len({*wanted.values()})

    assert said > 500


def test_what_has_no_template() -> None:
    """Where a split cannot be said, no template has its blocks: all of them were tried."""
    refused = 0
    for nest in small_nests((2, 4)):
        shape = tuple(k for k in nest.result if isinstance(k, int))
        owned = [owners_by_grid(grid, nest) for grid in all_grids(nest)]
        for split in all_splits(shape):
            if grid_of(split, nest) is None:
                wanted = owners_by_split(split, shape)
                refused += 1
                assert not any(same_blocks(wanted, o) for o in owned), (nest, split)

    assert refused > 50


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


def test_unknown_extents() -> None:
    """A piece of n rows is a row, or what 128 blocks share; templates of it check."""
    rows = Nest("reduce_sum_1", (n, 1024), Work.REDUCE, (1,), root=True)
    stage = parse_template("reduce_sum_1[GRID_128-WARP_8,CTA];").stages[0]

    assert split_of(stage, rows) == Split(0, (n + 127) // 128)
    assert grid_of(split_of(stage, rows), rows) == {0: Part(Level.GRID, 128)}
    assert grid_of(Split(0, 4), rows) == {0: Part(Level.GRID, chunk=4)}
    assert grid_of(Split(0, n + m), rows) is None
    assert [(str(t), t.cta_num) for t in templates([rows], most=4)] == [
        ("reduce_sum_1[GRID,CTA];", n),
        ("reduce_sum_1[GRID,CTA];", n),
        ("reduce_sum_1[GRID_/8,CTA];", (n + 7) // 8),
        ("reduce_sum_1[GRID,CTA];", n),
    ]


def softmax(rows: int, row: int) -> list[Nest]:
    """The loops of a softmax that keeps three values."""
    shape = rows, row
    return [
        Nest("reduce_max_1", shape, Work.REDUCE, (1,), keepdims=True, shared=True),
        Nest("exp_1", shape, Work.EXPENSIVE, shared=True),
        Nest("reduce_sum_1", shape, Work.REDUCE, (1,), shared=True),
        Nest("divide_1", shape, Work.EXPENSIVE, root=True),
    ]


@pytest.mark.parametrize(
    "row, first",
    [
        (
            17,
            (
                "reduce_max_1[GRID_16-CTA_256,THREAD]S; exp_1[GRID_16-CTA_256,CTA]S; "
                "reduce_sum_1[GRID_16-CTA_256,THREAD]S; divide_1[GRID_16-CTA_256,CTA];"
            ),
        ),
        (
            200,
            (
                "reduce_max_1[GRID_512-WARP_8,CTA]S; exp_1[GRID_512-CTA_8,CTA]S; "
                "reduce_sum_1[GRID_512-WARP_8,CTA]S; divide_1[GRID_512-CTA_8,CTA];"
            ),
        ),
        (
            1024,
            (
                "reduce_max_1[GRID,CTA]S; exp_1[GRID,CTA]S; reduce_sum_1[GRID,CTA]S; "
                "divide_1[GRID,CTA];"
            ),
        ),
    ],
)
def test_the_first_choice_goes_by_the_length_of_a_row(row: int, first: str) -> None:
    """A thread folds up to 32 elements, a warp up to 512, a block more; 24 templates at most."""
    found = templates(softmax(4096, row))

    assert str(found[0]) == first
    assert 12 < len(found) <= 24 and len({*found}) == len(found)
    assert {composition(t.stages[0], softmax(4096, row)[0]) for t in found} == {
        Level.THREAD,
        Level.WARP,
        Level.CTA,
    }


GROUPS = {
    "softmax": softmax(4096, 1000),
    "few rows": softmax(3, 17),
    "columns": [
        Nest("reduce_sum_1", (1000, 300), Work.REDUCE, (0,), shared=True),
        Nest("subtract_1", (1000, 300), root=True),
    ],
    "packed": [
        Nest("add_1", (1000,), root=True),
        Nest("reduce_sum_1", (33, 77), Work.REDUCE, (1,), root=True),
        Nest("tanh_1", (), Work.EXPENSIVE, root=True),
    ],
    "whole": [Nest("reduce_sum_1", (33, 77), Work.REDUCE, (0, 1), root=True)],
    "dot": [
        Nest("reduce_max_1", (64, 8, 17, 17), Work.REDUCE, (3,), shared=True),
        Nest("divide_1", (64, 8, 17, 17), Work.EXPENSIVE, shared=True),
        Nest("matmul_1", (64, 8, 17, 128, 17), Work.DOT, (4,), root=True),
    ],
    "scan": [Nest("cumsum_1", (40, 50), scanned=(0,), root=True)],
    "unknown": [
        Nest("reduce_sum_1", (n, m), Work.REDUCE, (1,), shared=True),
        Nest("subtract_1", (n, m), root=True),
    ],
    "nothing in common": [
        Nest("matmul_1", (5, 6, 7), Work.DOT, (2,), shared=True),
        Nest("reduce_sum_1", (5, 6), Work.REDUCE, (0,), root=True),
    ],
    "middle": [Nest("reduce_sum_1", (3, 40, 5), Work.REDUCE, (1,), root=True)],
}


@pytest.mark.parametrize("name", GROUPS)
def test_templates_fit_their_group(name: str) -> None:
    """Every template checks, reads back from its text, and shares blocks out as its splits do."""
    nests = GROUPS[name]
    found = templates(nests)

    assert 1 <= len(found) <= 24 and found == templates(nests)
    for template in found:
        check(template, nests)
        assert parse_template(str(template), template.cta_num, template.cta_size) == template
        assert blocks_of(nests, splits_of(template, nests)) == template.cta_num
        turned = evolve(template, stages=template.stages[::-1])
        assert splits_of(turned, nests) == splits_of(template, nests)


def test_ways_that_nobody_needs_are_few() -> None:
    """A light value is dealt out in one way, a fold in three, where a block has several rows."""
    fold = Nest("reduce_sum_1", (64, 100), Work.REDUCE, (1,), root=True)
    split = Split(0, 8)

    assert [str(p) for p in plans(Nest("add_1", (64, 100), root=True), split, 256)] == [
        "add_1[GRID_8-CTA_8,CTA];"
    ]
    assert [str(p) for p in plans(fold, split, 256)] == [
        "reduce_sum_1[GRID_8-WARP_8,CTA];",
        "reduce_sum_1[GRID_8,CTA];",
        "reduce_sum_1[GRID_8-CTA_8,THREAD];",
    ]
    assert [str(p) for p in plans(fold, Split(0, 1), 256)] == ["reduce_sum_1[GRID,CTA];"]
    assert [str(p) for p in plans(fold, Split(0, 40), 256)][1] == "reduce_sum_1[GRID_/40,CTA];"
    assert plans(fold, Split(0, n), 256) == ()


def test_columns_lie_side_by_side() -> None:
    """Threads take neighbouring columns; warps take rows of them, where they fold."""
    fold = Nest("reduce_sum_1", (1000, 256), Work.REDUCE, (0,), root=True)

    assert [str(p) for p in plans(fold, Split(0, 64, COLUMN), 256)] == [
        "reduce_sum_1[THREAD,GRID_4-CTA_64];",
        "reduce_sum_1[WARP,GRID_4-CTA_32];",
        "reduce_sum_1[CTA,GRID_4];",
    ]
    assert [composition(p, fold) for p in plans(fold, Split(0, 64, COLUMN), 256)] == [
        Level.THREAD,
        Level.CTA,
        Level.CTA,
    ]


def test_given_splits() -> None:
    """Splits that were found elsewhere are taken; blocks beyond a number are taken by fewer."""
    nests = softmax(4096, 1024)
    one = templates(nests, [[Split(0, 64)] * 4], most_blocks=48)

    assert {str(t.stages[0].attrs[0][0]) for t in one} == {"GRID_64"}
    assert {t.cta_num for t in one} == {48} and {t.cta_size for t in one} == {128, 256, 512}
    assert templates(nests, [[Split(0, 64)] * 3 + [Split(0, 32)]]) == ()  # they do not agree
    assert len(templates(nests, most=5)) == 5
    assert templates([Nest("add_1", (0, 5), root=True)]) == ()  # nothing to do


def test_splits_that_suit_most() -> None:
    """Rows by the first loops that nothing folds, columns by the last, else one block."""
    assert next(s[0] for s in default_splits(GROUPS["dot"])) == Split(1, 1)
    assert [s[0] for s in default_splits(GROUPS["columns"])] == [
        Split(0, 30, COLUMN),
        Split(0, 100, COLUMN),
        Split(0, 300, COLUMN),
    ]
    assert default_splits(GROUPS["nothing in common"]) == ((Split(0, 5), Split(0, 6)),)
    assert default_splits(GROUPS["whole"]) == ((Split(0, 1),),)
