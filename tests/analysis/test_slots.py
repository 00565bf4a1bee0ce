"""Arrays of a tile: who shares, who gives up, and that nobody is overwritten."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from attrs import evolve, frozen

from passkit.analysis import slots as sharing
from passkit.analysis.slots import (
    Mode,
    Need,
    SlotAssignment,
    TileArray,
    assign_offsets,
    fit,
    next_to_recompute,
)
from passkit.diagnostics import Diagnostic
from passkit.values.size import Size

MAX, EXP, SUM, DIVIDE = range(4)
SHARING = [Mode.DOMINANCE, Mode.LIVENESS, Mode.SMALLER]


def softmax_dot() -> list[TileArray]:
    """The arrays of a softmax of 17 × 17 elements before a product: folds behind their passes."""
    return [
        TileArray(0, 68, 0, 2, is_root=False),
        TileArray(1, 1156, 2, 4, operands=(MAX,), need=Need.EXPENSIVE_SHARED, span=3),
        TileArray(2, 68, 2, 4, frozenset([MAX]), (EXP,)),
        TileArray(3, 1156, 4, 6, frozenset([EXP]), (EXP, SUM), True, Need.DOT_OPERAND, 1),
    ]


@pytest.mark.parametrize("mode", SHARING)
def test_half_of_the_bytes(mode: Mode) -> None:
    """306 of 612 elements: the second fold lies over the first, the quotient over the exp."""
    assignment = assign_offsets(softmax_dot(), 16, mode)

    assert [(s.arrays, s.nbytes) for s in assignment.slots] == [
        ((MAX, SUM), 68),
        ((EXP, DIVIDE), 1156),
    ]
    assert (assignment.requested, assignment.allocated) == (4 * 612, 4 * 306)
    assert (assignment.nbytes, assignment.offsets()[DIVIDE]) == (80 + 1168, 80)


def chain(sizes: Sequence[Any], **more: Any) -> list[TileArray]:
    """Arrays of so many bytes, each made of the one before, in a moment of its own."""
    return [
        TileArray(
            k, n, k, k + 1, operands=(k - 1,) if k else (), is_root=k == len(sizes) - 1, **more
        )
        for k, n in enumerate(sizes)
    ]


def test_the_smaller_of_both_is_taken() -> None:
    """A result that others read holds its bytes by dominance for ever, by liveness until read."""
    arrays = chain([64, 64, 64])
    arrays[0] = evolve(arrays[0], is_root=True)
    sizes = {m: assign_offsets(arrays, 16, m).nbytes for m in Mode}

    assert sizes == {Mode.NONE: 192, Mode.DOMINANCE: 192, Mode.LIVENESS: 128, Mode.SMALLER: 128}
    assert assign_offsets(arrays, 16).mode is Mode.LIVENESS


@pytest.mark.parametrize("mode", SHARING)
def test_only_what_is_read_in_its_own_place_is_overwritten(mode: Mode) -> None:
    """An operand of the operator that writes an array overlaps it only element by element."""
    arrays = chain([64, 64])
    over = [arrays[0], evolve(arrays[1], may_overlay=frozenset([0]))]

    assert len(assign_offsets(arrays, 16, mode).slots) == 2
    assert len(assign_offsets(over, 16, mode).slots) == 1


def test_rooms_are_apart() -> None:
    """Arrays of a row and arrays of a tile share no memory; both are counted."""
    arrays = [evolve(a, room=k % 2) for k, a in enumerate(chain([64, 32, 64, 32]))]
    assignment = assign_offsets(arrays, 16)

    assert [(s.room, s.offset, s.arrays) for s in assignment.slots] == [
        (0, 0, (0, 2)),
        (1, 0, (1, 3)),
    ]
    assert (assignment.nbytes, assignment.allocated, assignment.requested) == (96, 96, 192)


def test_slots_grow_before_new_ones_are_opened() -> None:
    """By liveness a slot that is free and too small grows."""
    assignment = assign_offsets(chain([16, 64, 48]), 16, Mode.LIVENESS)

    assert [(s.nbytes, s.arrays) for s in assignment.slots] == [(48, (0, 2)), (64, (1,))]


def test_bytes_left_over_by_alignment_are_used() -> None:
    """A slot of 20 bytes ends at 32, so 28 fit; a slot is as large as what it must hold."""
    assignment = assign_offsets(chain([20, 16, 28]), 16, Mode.DOMINANCE)

    assert [(s.nbytes, s.arrays) for s in assignment.slots] == [(28, (0, 2)), (16, (1,))]
    assert assignment.offsets() == {0: 0, 1: 32, 2: 0}


def test_sizes_that_only_a_call_knows() -> None:
    """Symbolic sizes are compared if that is certain: n elements hold n others, m do not."""
    n, m = Size.symbol("n"), Size.symbol("m")
    assignment = assign_offsets(chain([n * 4, m * 16, n * 4, m * 32]), 16, Mode.DOMINANCE)

    assert [s.arrays for s in assignment.slots] == [(0, 2), (1,), (3,)]
    rows = (n * 4 + 15) // 16 * 16
    assert (assignment.nbytes, assignment.allocated) == (rows + m * 48, n * 4 + m * 48)
    wide = fit(lambda dropped: chain([m * 48]), 48, 16)
    assert isinstance(wide, SlotAssignment) and wide.nbytes == m * 48
    refused = fit(lambda dropped: chain([m * 48]), 47, 16)
    assert isinstance(refused, Diagnostic) and refused.data == {"need": m * 48, "limit": 47}


def one_of_each() -> list[TileArray]:
    """Arrays of all classes, several of some; those of equal spans differ in bytes."""
    light, dear, dot = Need.LIGHT_SHARED, Need.EXPENSIVE_SHARED, Need.DOT_OPERAND
    rows = [
        (Need.MANDATORY, 160, 9),
        (dot, 64, 8),
        (dear, 32, 7),
        (light, 32, 6),
        (light, 16, 3),
        (light, 48, 3),
        (light, 48, 3),
        (dear, 96, 2),
        (dot, 80, 1),
        (Need.MANDATORY, 16, 4),
    ]
    return [TileArray(k, n, k, 99, need=need, span=span) for k, (need, n, span) in enumerate(rows)]


def without(arrays: Sequence[TileArray], dropped: tuple[int, ...]) -> list[TileArray]:
    """The arrays of other values."""
    return [a for a in arrays if a.value not in dropped]


def test_the_order_of_giving_up() -> None:
    """As the limit sinks: light and read twice, expensive and read twice, before a dot; then none.

    Within a class the nearest to a result goes first, then the largest, then the first.
    """
    arrays = one_of_each()
    limit = 592
    order: list[int] = []
    while isinstance(assignment := fit(lambda d: without(arrays, d), limit, 16), SlotAssignment):
        assert assignment.dropped[: len(order)] == tuple(order)
        assert isinstance(assignment.nbytes, int) and assignment.nbytes <= limit
        order = list(assignment.dropped)
        limit -= 16

    assert order == [5, 6, 4, 3, 7, 2, 8, 1]
    assert (assignment.code, assignment.data) == ("memory.arrays", {"need": 176, "limit": 160})
    assert str(assignment) == "its arrays take 176 bytes of shared memory a tile, above 160"


def test_what_cannot_be_given_up_is_passed_over() -> None:
    """A value that some part must find in memory stays, and the next one is asked."""
    arrays = one_of_each()

    def planned(dropped: tuple[int, ...]) -> list[TileArray] | Diagnostic:
        return Diagnostic("tile.window_rows") if 5 in dropped else without(arrays, dropped)

    assignment = fit(planned, 592 - 16, 16)
    assert isinstance(assignment, SlotAssignment) and assignment.dropped == (6,)
    assert next_to_recompute(arrays, {5, 6, 4, 3}) == 7
    refused = fit(lambda dropped: Diagnostic("tile.window_rows"), 16, 16)
    assert isinstance(refused, Diagnostic) and refused.code == "tile.window_rows"


def test_sharing_comes_before_giving_up() -> None:
    """A limit that sharing keeps costs no array, one byte less costs two; without it one."""
    for limit, mode, dropped in (
        (1248, Mode.SMALLER, ()),
        (1247, Mode.SMALLER, (EXP, DIVIDE)),
        (1600, Mode.NONE, (EXP,)),
    ):
        assignment = fit(lambda d: _renumbered(without(softmax_dot(), d)), limit, 16, mode)
        assert isinstance(assignment, SlotAssignment) and assignment.dropped == dropped


def _renumbered(arrays: list[TileArray]) -> list[TileArray]:
    """Arrays whose positions are what is left of them."""
    at = {a.value: k for k, a in enumerate(arrays)}
    return [
        evolve(
            a,
            may_overlay=frozenset(at[p] for p in a.may_overlay if p in at),
            operands=tuple(at[p] for p in a.operands if p in at),
        )
        for a in arrays
    ]


def test_long_chains() -> None:
    """Two thousand arrays lie in two slots, without recursion."""
    assignment = assign_offsets(chain([4] * 2000), 16)

    assert assignment.allocated == 8


@frozen
class Pattern:
    """A random group: arrays with elements, and which elements an element reads."""

    arrays: tuple[TileArray, ...]
    numel: tuple[int, ...]
    itemsize: tuple[int, ...]
    edges: dict[tuple[int, int], str]

    def read(self, user: int, i: int, array: int) -> Sequence[int]:
        """The elements of ``array`` that element ``i`` of ``user`` reads."""
        n, how = self.numel[array], self.edges[user, array]
        return range(n) if how == "all" else [n - 1 - i if how == "turned" else i % n]


def random_pattern(rng: random.Random) -> Pattern:
    """3 to 12 arrays of 1 to 6 elements of 4 to 16 bytes, of which some are written together."""
    count = rng.randint(3, 12)
    moments = sorted(rng.randrange(count) for _ in range(count))
    numel = [rng.choice((1, 4, 4, 6)) for _ in range(count)]
    itemsize = [rng.choice((4, 4, 8, 16)) for _ in range(count)]
    edges: dict[tuple[int, int], str] = {}
    for v in range(count):
        earlier = [p for p in range(max(0, v - 5), v) if moments[p] < moments[v]]
        for p in rng.sample(earlier, min(len(earlier), rng.randint(1, 2))):
            alike = numel[p] == numel[v]
            edges[v, p] = rng.choice(("same", "same", "turned", "all") if alike else ("all",))
    dies = [max([moments[v], *(moments[u] for u, p in edges if p == v)]) for v in range(count)]

    def may_lie_over(v: int, p: int) -> bool:
        readers = [u for u, q in edges if q == p and moments[u] == moments[v]]
        alike = all(edges[u, p] == "same" for u in readers) and numel[v] == numel[p]
        return alike and dies[p] == moments[v] > moments[p] and itemsize[v] == itemsize[p]

    arrays = [
        TileArray(
            v,
            numel[v] * itemsize[v],
            moments[v],
            dies[v],
            frozenset(p for p in range(v) if may_lie_over(v, p)),
            tuple(p for u, p in edges if u == v),
            is_root=not any(p == v for _, p in edges) or rng.random() < 0.1,
        )
        for v in range(count)
    ]
    return Pattern(tuple(arrays), tuple(numel), tuple(itemsize), edges)


def hazards(pattern: Pattern, offsets: dict[int, Any]) -> int:
    """The reads that find other bytes than they need, by where arrays begin and nothing else.

    All that happens in a moment may happen in any order, but an element is written when everything
    has been read for elements of its number: one thread has them.
    """
    memory: dict[int, tuple[int, int, int]] = {}  # address -> array, element, its byte
    bad = 0
    for moment in sorted({a.start for a in pattern.arrays}):
        here = [v for v, a in enumerate(pattern.arrays) if a.start == moment]
        reads: dict[int, set[int]] = {}
        writes: dict[int, tuple[int, int, int]] = {}
        for v in here:
            for i in range(pattern.numel[v]):
                for p in (p for u, p in pattern.edges if u == v):
                    for j in pattern.read(v, i, p):
                        for b in range(pattern.itemsize[p]):
                            at = offsets[p] + j * pattern.itemsize[p] + b
                            bad += memory.get(at) != (p, j, b)
                            reads.setdefault(at, set()).add(i)
        for v in here:
            for i in range(pattern.numel[v]):
                for b in range(pattern.itemsize[v]):
                    at = offsets[v] + i * pattern.itemsize[v] + b
                    bad += bool(reads.get(at, set()) - {i}) or at in writes
                    writes[at] = v, i, b
        memory.update(writes)
    return bad


def total_hazards(count: int, mode: Mode) -> tuple[int, float]:
    """Hazards in so many random patterns, and bytes allocated over bytes requested in all."""
    rng = random.Random(0)
    bad, allocated, requested = 0, 0, 0
    for _ in range(count):
        pattern = random_pattern(rng)
        assignment = assign_offsets(pattern.arrays, 16, mode)
        assert isinstance(assignment.allocated, int) and isinstance(assignment.requested, int)
        bad += hazards(pattern, assignment.offsets())
        allocated, requested = allocated + assignment.allocated, requested + assignment.requested
    return bad, allocated / requested


@pytest.mark.parametrize("mode", SHARING)
def test_nothing_is_overwritten_that_is_read(mode: Mode) -> None:
    """Random patterns, 4,500 in all: all reads find what was written."""
    bad, ratio = total_hazards(1500, mode)

    assert bad == 0
    assert 0.4 < ratio < 0.95  # there is sharing that could go wrong


@pytest.mark.parametrize("mode", SHARING)
def test_without_the_test_of_overwriting_there_are_hazards(
    mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check finds arrays that lie over what is still read once nothing prevents them."""

    def blind(arrays: Sequence[TileArray], v: int, p: int) -> bool:
        return arrays[p].end <= arrays[v].start

    monkeypatch.setattr(sharing, "may_follow", blind)

    assert total_hazards(500, mode)[0] > 0


def test_without_lives_there_are_hazards(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check finds late readers of bytes that are given away too early."""
    monkeypatch.setattr(sharing, "may_follow", lambda arrays, v, p: True)

    assert total_hazards(500, Mode.LIVENESS)[0] > 0
