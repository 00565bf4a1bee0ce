"""Barriers: threads wait where they must and hardly ever elsewhere, as all their orders show."""

from __future__ import annotations

from collections import Counter

import pytest
from attrs import evolve

import passkit as pk
from passkit.ast import Var
from passkit.ast.stage import KernelAST, Let, Loop, Part, Stage, Store
from passkit.checks.hazards import hazards
from passkit.transforms.insert_barriers import insert_barriers
from passkit.values import dtype as dt
from tests.dialects.test_printer import GOLDENS
from tests.planned import plan, target
from tests.random_stages import Maker, places, waiting, waits_at
from tests.stitched import COL, STITCHED, array, kernel, lanes, load, number, rows_of_tile
from tests.threads import has_race

SIZES = {"n0": 64, "n1": 2, "n2": 5}
WAITS = {
    "softmax_dot": {(1, 0), (2, 0)},
    "turned_rows": {(0, 1), (0, 2)},
    "short_rows": {(0, 1), (0, 2)},
    "column_means": {(1, 0), (2, -1)},
    "one_place": {(0, 0), (0, 1), (0, 2), (0, 3)},
    "whole_tile": {(0, 1), (0, 2)},
}
"""Where each stitched kernel waits: its part, and its stage or -1 for the part itself."""


def waits(ast: KernelAST) -> set[tuple[int, int]]:
    """Where an AST waits."""
    return {p for p in places(ast) if waits_at(ast, p)}


@pytest.mark.parametrize("name", STITCHED)
def test_stitched_kernels_wait(name: str) -> None:
    """Each waits where it must: no order of its threads is a race, and without any wait some is."""
    ast = STITCHED[name]()

    assert waits(ast) == WAITS[name]
    assert not has_race(ast, SIZES)
    assert all(has_race(waiting(ast, p, False), SIZES) for p in waits(ast))


@pytest.mark.parametrize("text", GOLDENS.values(), ids=GOLDENS.keys())
def test_own_elements_need_no_wait(text: str) -> None:
    """Rows and columns whose lanes read back what is theirs do not wait, for any target."""
    for kind in ("cpu", target("cuda", nests=False)):
        for k in plan(text, target=kind).attrs["kernel"].values():
            assert waits(k.ast) == set()


def test_short_rows_wait_for_their_sums() -> None:
    """What rows fold to is read by the lanes that rows are, and then by the rows again."""
    x = pk.var("x", (4096, 7))
    graph = pk.Graph([x / pk.ops.reduce_sum(x, axis=1, keepdims=True)])
    (k,) = plan(graph).attrs["kernel"].values()

    assert len(waits(k.ast)) == 2 and not has_race(_small(k.ast), {"n0": 64, "n1": 2})


def _small(ast: KernelAST) -> KernelAST:
    """An AST with its tiles counted down to two."""
    (phase,) = ast.phases
    tile = evolve(phase.tile, stop=number(2))
    return evolve(ast, phases=(evolve(phase, tile=tile),))


def test_waits_are_set_anew() -> None:
    """Waits that an AST has already and does not need are taken away."""
    ast = STITCHED["softmax_dot"]()
    more = waiting(waiting(ast, (0, 0), True), (1, -1), True)

    assert insert_barriers(more) == ast


def test_a_long_index_is_not_looked_into() -> None:
    """What is too long to be told from the text counts as anything: threads wait for it."""
    index, at = COL, Var("at", dt.int64)
    for k in range(40):
        index = (index + k) // 1 + number(0)
    put = Stage("put", (lanes(COL, number(8)),), (Let(at, index), Store("s0", at, load("x0", COL))))
    out = Stage("out", (lanes(COL, number(8)),), (Store("y0", COL, load("s0", COL)),))

    assert (0, 1) in waits(kernel((Part((), None, (), (put, out)),), 1, (array("s0", 8),)))


def test_packed_parts_follow_each_other_by_tiles() -> None:
    """Parts of other tiles meet only from tile to tile: scratch of another place needs no wait."""

    def part(span: int, buffer: str) -> Part:
        back = number(7) - COL
        put = Stage("put", (lanes(COL, number(8)),), (Store(buffer, COL, load("x0", COL)),))
        out = Stage("out", (lanes(COL, number(8)),), (Store("y0", COL, load(buffer, back)),))
        return Part((), None, (), (put, out), span=(number(span), number(span + 1)))

    apart = kernel(
        (part(0, "s0"), part(1, "s1")), 1, (array("s0", 8, offset=0), array("s1", 8, offset=32))
    )
    shared = kernel(
        (part(0, "s0"), part(1, "s1")), 1, (array("s0", 8, offset=0), array("s1", 8, offset=0))
    )
    assert waits(apart) == waits(shared) == {(0, 0), (0, 1), (1, 0), (1, 1)}
    assert not list(hazards(shared))
    assert list(hazards(waiting(shared, (1, 0), False)))


def test_a_row_of_no_lanes_of_its_own() -> None:
    """Two parts over the same rows hand on what a lane has without a wait, a turned row with it."""
    here = Var("row", dt.int64) * 8 - Var("tile", dt.int64) * 32
    put = Stage("put", (lanes(COL, number(8)),), (Store("s0", here + COL, load("x0", COL)),))
    found = []
    for index in (COL, number(7) - COL):
        out = Stage(
            "out",
            (lanes(COL, number(8)),),
            (Store("y0", Var("row", dt.int64) * 8 + COL, load("s0", here + index)),),
        )
        parts = rows_of_tile(4, (put,)), rows_of_tile(4, (out,))
        found.append(waits(kernel(parts, 1, (array("s0", 32),))))

    assert found == [set(), {(0, 0), (1, 0)}]


def outcome(seed: int) -> Counter[str]:
    """What becomes of the waits of a random AST; those no wait can save are only reported."""
    raw, count = Maker(seed).ast(), Counter[str]()
    full = raw
    for p in places(raw):
        full = waiting(full, p, True)
    if has_race(full, {}):
        count["beyond help"] = 1
        count["unseen"] = not list(hazards(full))
        return count
    ast = insert_barriers(raw)
    count["races"] = has_race(ast, {})
    if next(hazards(ast), None) is not None:
        count["not told apart, or lost"] = 1
        return count
    for p in waits(ast):
        less = waiting(ast, p, False)
        needed, reported = has_race(less, {}), next(hazards(less), None) is not None
        count.update(waits=1, needed=needed, unseen=needed and not reported)
    return count


def test_random_kernels() -> None:
    """150 ASTs: no race is left, none is made without a report, few waits are made in vain."""
    total: Counter[str] = sum(map(outcome, range(150)), Counter())

    assert total["races"] == total["unseen"] == 0
    assert total["waits"] > 150 and total["beyond help"] > 12
    assert total["needed"] >= 0.9 * total["waits"]
    assert total["not told apart, or lost"] < 18


def test_the_simulation_finds_a_missing_wait() -> None:
    """Random ASTs of several stages without any wait race more often than not."""
    found = [has_race(Maker(seed).ast(), {}) for seed in range(40)]

    assert sum(found) > 10


def test_nothing_is_watched_in_a_single_stage() -> None:
    """An AST that shares no memory comes back as it was."""
    (k,) = plan("x: f32[n]; return exp(x)").attrs["kernel"].values()

    assert insert_barriers(k.ast) == k.ast
    assert isinstance(k.ast.phases[0].tile, Loop)
