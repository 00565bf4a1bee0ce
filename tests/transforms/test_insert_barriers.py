"""Barriers are inserted where they are needed and hardly ever elsewhere, in any thread order."""

from __future__ import annotations

from collections import Counter

import pytest
from attrs import evolve

import passkit as pk
from passkit.ast import Expr, Var
from passkit.ast.stage import KernelAST, Loop, Part, Stage, Store
from passkit.checks.stage_races import stage_races
from passkit.transforms.insert_barriers import insert_barriers
from passkit.values import dtype as dt
from tests.dialects.test_printer import GOLDENS
from tests.opencl import BLOCKS, target_with_block
from tests.planned import plan
from tests.random_stages import RandomKernel, barrier_places, has_barrier, with_barrier
from tests.stitched import COL, STITCHED, array, kernel, lanes, load, number, rows_of_tile
from tests.threads import has_race

SIZES = {"n0": 64, "n1": 2, "n2": 5}
BARRIERS = {
    "softmax_dot": {(1, 0), (2, 0)},
    "turned_rows": {(0, 1), (0, 2)},
    "short_rows": {(0, 1), (0, 2)},
    "column_means": {(1, 0), (2, -1)},
    "one_place": {(0, 0), (0, 1), (0, 2), (0, 3)},
    "whole_tile": {(0, 1), (0, 2)},
}
"""The barriers of each stitched kernel: a part, and a stage or -1 for the part itself."""


def barriers_of(ast: KernelAST) -> set[tuple[int, int]]:
    """Return the places of barriers in an AST."""
    return {p for p in barrier_places(ast) if has_barrier(ast, p)}


@pytest.mark.parametrize("name", STITCHED)
def test_stitched_kernels_have_barriers(name: str) -> None:
    """Each barrier is needed: without it some order of threads is a race, with all of them none."""
    ast = STITCHED[name]()

    assert barriers_of(ast) == BARRIERS[name]
    assert not has_race(ast, SIZES)
    assert all(has_race(with_barrier(ast, p, False), SIZES) for p in barriers_of(ast))


@pytest.mark.parametrize("text", GOLDENS.values(), ids=GOLDENS.keys())
def test_own_elements_need_no_barrier(text: str) -> None:
    """Threads that load only elements that they stored need no barrier, on any target."""
    for kind in ("cpu", *map(target_with_block, BLOCKS)):
        for k in plan(text, target=kind).attrs["kernel"].values():
            assert barriers_of(k.ast) == set()


def test_short_rows_have_barriers_for_their_sums() -> None:
    """Sums of rows are read by one thread for each row, and then by the threads of rows again."""
    x = pk.var("x", (4096, 7))
    graph = pk.Graph([x / pk.ops.reduce_sum(x, axis=1, keepdims=True)])
    (k,) = plan(graph).attrs["kernel"].values()

    assert len(barriers_of(k.ast)) == 2 and not has_race(_small(k.ast), {"n0": 64, "n1": 2})


def _small(ast: KernelAST) -> KernelAST:
    """Return an AST with two tiles."""
    (phase,) = ast.phases
    tile = evolve(phase.tile, stop=number(2))
    return evolve(ast, phases=(evolve(phase, tile=tile),))


def test_barriers_are_replaced() -> None:
    """Barriers that an AST has and does not need are removed."""
    ast = STITCHED["softmax_dot"]()
    more = with_barrier(with_barrier(ast, (0, 0), True), (1, -1), True)

    assert insert_barriers(more) == ast


@pytest.mark.parametrize("length, is_known", [(1, True), (80, False)])
def test_a_long_index_is_unknown(length: int, is_known: bool) -> None:
    """An index that is too long to be analyzed may be any: a barrier is inserted."""
    first: Expr = Var("tile", dt.int64)
    for k in range(length):
        first = (first + k) % (k + 5)
    at = first * 8 + COL
    put = Stage("put", (lanes(COL, number(8)),), (Store("s0", at, load("x0", COL)),))
    out = Stage("out", (lanes(COL, number(8)),), (Store("y0", COL, load("s0", at)),))
    barriers = barriers_of(kernel((Part((), None, (), (put, out)),), 1, (array("s0", 40),)))

    assert (0, 0) in barriers and ((0, 1) not in barriers) == is_known


def test_packed_parts_follow_each_other_by_tiles() -> None:
    """Parts of different tiles need barriers only where their scratch arrays overlap."""

    def part(span: int, buffer: str) -> Part:
        """Return a part of one tile that stores to an array and loads it in reverse."""
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
    assert barriers_of(apart) == barriers_of(shared) == {(0, 0), (0, 1), (1, 0), (1, 1)}
    assert not list(stage_races(shared))
    assert list(stage_races(with_barrier(shared, (1, 0), False)))


def test_parts_over_equal_rows() -> None:
    """A thread's own elements need no barrier between two parts; a reversed row does."""
    here = Var("row", dt.int64) * 8 - Var("tile", dt.int64) * 32
    put = Stage("put", (lanes(COL, number(8)),), (Store("s0", here + COL, load("x0", COL)),))
    results = []
    for index in (COL, number(7) - COL):
        out = Stage(
            "out",
            (lanes(COL, number(8)),),
            (Store("y0", Var("row", dt.int64) * 8 + COL, load("s0", here + index)),),
        )
        parts = rows_of_tile(4, (put,)), rows_of_tile(4, (out,))
        results.append(barriers_of(kernel(parts, 1, (array("s0", 32),))))

    assert results == [set(), {(0, 0), (1, 0)}]


def outcome(seed: int) -> Counter[str]:
    """Return counts for the barriers of a random AST, or for its races if no barrier helps."""
    raw, count = RandomKernel(seed).ast(), Counter[str]()
    full = raw
    for p in barrier_places(raw):
        full = with_barrier(full, p, True)
    if has_race(full, {}):
        count["racing despite barriers"] = 1
        count["unseen"] = not list(stage_races(full))
        return count
    ast = insert_barriers(raw)
    count["races"] = has_race(ast, {})
    if next(stage_races(ast), None) is not None:
        count["reported in vain"] = 1
        return count
    for p in barriers_of(ast):
        less = with_barrier(ast, p, False)
        needed, reported = has_race(less, {}), next(stage_races(less), None) is not None
        count.update(barriers=1, needed=needed, unseen=needed and not reported)
    return count


def test_random_kernels() -> None:
    """150 ASTs: no race is left, each planted one is reported, few barriers are superfluous."""
    total: Counter[str] = sum(map(outcome, range(150)), Counter())

    assert total["races"] == total["unseen"] == 0
    assert total["barriers"] > 150 and total["racing despite barriers"] > 12
    assert total["needed"] >= 0.9 * total["barriers"]
    assert total["reported in vain"] < 18


def test_the_simulation_finds_a_missing_barrier() -> None:
    """More than 10 of 40 random ASTs have a race if they have no barriers."""
    results = [has_race(RandomKernel(seed).ast(), {}) for seed in range(40)]

    assert sum(results) > 10


def test_a_single_stage_is_returned() -> None:
    """An AST without shared memory is returned unchanged."""
    (k,) = plan("x: f32[n]; return exp(x)").attrs["kernel"].values()

    assert insert_barriers(k.ast) == k.ast
    assert isinstance(k.ast.phases[0].tile, Loop)
