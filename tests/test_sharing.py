"""Arrays of a tile: who asks for one, who shares, who gives up, and that nobody is overwritten."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from attrs import evolve, field, frozen

from passkit import sharing
from passkit.dominance import Dominance
from passkit.sharing import Mode, Need, Sharing, Value, Work, need_of, requests, share, with_uses
from passkit.size import Size
from passkit.space import Infeasible

REDUCE_1, BROADCAST_1, SUBTRACT_1, EXP_1 = range(4)
REDUCE_2, BROADCAST_2, DIVIDE_1, BITCAST_1, DOT_1 = range(4, 9)


def softmax_dot() -> tuple[Value, ...]:
    """The softmax of 17 × 17 elements before a batched dot, of which a tile has one matrix."""
    rows = [
        (Work.REDUCE, 17, ()),
        (Work.FREE, 289, (REDUCE_1,)),
        (Work.LIGHT, 289, (BROADCAST_1,)),
        (Work.EXPENSIVE, 289, (SUBTRACT_1,)),
        (Work.REDUCE, 17, (EXP_1,)),
        (Work.FREE, 289, (REDUCE_2,)),
        (Work.EXPENSIVE, 289, (EXP_1, BROADCAST_2)),
        (Work.FREE, 289, (DIVIDE_1,)),
        (Work.DOT, 17 * 128, (BITCAST_1,)),
    ]
    return with_uses(
        [Value(work, 4 * n, 4, p, root=k == DOT_1) for k, (work, n, p) in enumerate(rows)]
    )


def same_in_softmax(user: int, value: int) -> bool:
    """Rows are broadcast to matrices; all else but folds is element by element."""
    return (user, value) not in {(BROADCAST_1, REDUCE_1), (BROADCAST_2, REDUCE_2)}


def shared(*args: Any, **kwargs: Any) -> Sharing:
    """What `share` gives where it is possible."""
    found = share(*args, **kwargs)
    assert isinstance(found, Sharing), found
    return found


def test_who_asks() -> None:
    """Two folds must have arrays; a value read twice and one a dot reads ask for theirs."""
    values = softmax_dot()

    assert [v.span for v in values] == [8, 7, 6, 5, 4, 3, 2, 1, 0]
    assert requests(values) == {
        REDUCE_1: Need.MANDATORY, EXP_1: Need.EXPENSIVE_SHARED,
        REDUCE_2: Need.MANDATORY, DIVIDE_1: Need.DOT_OPERAND,
    }
    assert [values[v].nbytes for v in requests(values)] == [4 * n for n in (17, 289, 17, 289)]


@pytest.mark.parametrize("mode", [Mode.DOMINANCE, Mode.LIVENESS, Mode.SMALLER])
def test_half_of_the_bytes(mode: Mode) -> None:
    """306 of 612 elements: the second fold lies over the first, the quotient over the exp."""
    found = shared(softmax_dot(), same_in_softmax, 1 << 20, mode)

    assert [(s.values, s.nbytes) for s in found.slots] == [
        ((REDUCE_1, REDUCE_2), 4 * 17), ((EXP_1, DIVIDE_1), 4 * 289),
    ]
    assert (found.requested, found.allocated, found.ratio) == (4 * 612, 4 * 306, 0.5)
    assert (found.nbytes, found.offsets()[DIVIDE_1], found.dropped) == (80 + 1168, 80, ())


def test_a_smaller_limit_takes_the_exp_away() -> None:
    """Within 400 elements and without sharing the exp is computed where it is read: 323 stay."""
    found = shared(softmax_dot(), same_in_softmax, 4 * 400, Mode.NONE)

    assert (found.dropped, found.allocated) == ((EXP_1,), 4 * 323)
    assert shared(softmax_dot(), same_in_softmax, 4 * 400).dropped == ()


def test_users_look_through_index_maps() -> None:
    """Two users of an index map are users of what it reads; so is the output that it is."""
    values = with_uses([
        Value(Work.LIGHT, 4, 4),
        Value(Work.FREE, 4, 4, (0,)),
        Value(Work.LIGHT, 4, 4, (1,), root=True),
        Value(Work.EXPENSIVE, 4, 4, (1, 1)),
        Value(Work.LIGHT, 4, 4, (3,)),
        Value(Work.FREE, 4, 4, (4,), root=True),
        Value(Work.DOT, 4, 4, (5,), root=True),
    ])

    assert [v.users for v in values] == [2, 2, 0, 1, 2, 1, 0]
    assert [v.feeds_dot for v in values] == [False, False, False, False, True, True, False]
    assert [need_of(v) for v in values] == [
        Need.LIGHT_SHARED, None, None, None, Need.LIGHT_SHARED, None, None
    ]


def test_an_expensive_value_before_a_light_one_before_a_dot() -> None:
    """What a dot reads over again through light operators is kept; before an array it is not."""
    through = with_uses([
        Value(Work.EXPENSIVE, 4, 4), Value(Work.LIGHT, 4, 4, (0,)),
        Value(Work.DOT, 4, 4, (1,), root=True),
    ])
    before = with_uses([
        Value(Work.EXPENSIVE, 4, 4), Value(Work.EXPENSIVE, 4, 4, (0,)),
        Value(Work.DOT, 4, 4, (1,), root=True),
    ])

    assert requests(through) == {0: Need.DOT_OPERAND}
    assert requests(before) == {1: Need.DOT_OPERAND}


def one_of_each() -> tuple[Value, ...]:
    """A chain in which all classes ask, several of some; arrays of equal spans differ in bytes."""
    row = [
        # work, bytes, users, feeds a dot, span
        (Work.REDUCE, 160, 1, False, 9),
        (Work.EXPENSIVE, 64, 1, True, 8),
        (Work.EXPENSIVE, 32, 2, False, 7),
        (Work.LIGHT, 32, 2, False, 6),
        (Work.LIGHT, 16, 2, False, 3),
        (Work.LIGHT, 48, 2, False, 3),
        (Work.LIGHT, 48, 2, True, 3),
        (Work.EXPENSIVE, 96, 3, True, 2),
        (Work.EXPENSIVE, 80, 1, True, 1),
        (Work.DOT, 16, 1, False, 4),
    ]
    return tuple(
        Value(work, n, 4, (k - 1,) if k else (), k == 9, users, dot, span)
        for k, (work, n, users, dot, span) in enumerate(row)
    )


def test_the_order_of_giving_up() -> None:
    """As the limit sinks: light and read twice, expensive and read twice, before a dot; then none.

    Within a class the nearest to a result goes first, then the largest, then the first.
    """
    values = one_of_each()
    whole = shared(values, lambda u, v: False, 1 << 20, Mode.NONE).nbytes
    assert isinstance(whole, int)
    order: list[int] = []
    limit = whole
    while isinstance(found := share(values, lambda u, v: False, limit, Mode.NONE), Sharing):
        assert found.dropped[: len(order)] == tuple(order) and found.nbytes <= limit  # type: ignore[operator]
        order = list(found.dropped)
        limit -= 16

    assert order == [5, 6, 4, 3, 7, 2, 8, 1]
    assert (found.code, found.data) == ("shared_over_limit", {"need": 176, "limit": 160})
    assert found.reason == "its arrays take 176 bytes of shared memory a tile, above 160"


def test_sharing_comes_before_giving_up() -> None:
    """A limit that sharing keeps costs no array, one byte less costs two.

    Without the exp the quotient reads the first fold again, which can share no more: 1,328 bytes.
    """
    values = softmax_dot()

    assert shared(values, same_in_softmax, 1248).dropped == ()
    assert shared(values, same_in_softmax, 1247).dropped == (EXP_1, DIVIDE_1)


def test_the_smaller_of_both_is_taken() -> None:
    """An output that others read holds its bytes by dominance for ever, by liveness until read."""
    values = with_uses([
        Value(Work.REDUCE, 64, 4, (), root=True),
        Value(Work.REDUCE, 64, 4, (0,)),
        Value(Work.REDUCE, 64, 4, (1,)),
        Value(Work.LIGHT, 64, 4, (2,), root=True),
    ])
    sizes = {m: shared(values, lambda u, v: False, 1 << 20, m).nbytes for m in Mode}

    assert sizes == {Mode.NONE: 192, Mode.DOMINANCE: 192, Mode.LIVENESS: 128, Mode.SMALLER: 128}
    assert shared(values, lambda u, v: False, 1 << 20).mode is Mode.LIVENESS


def transposed(same: bool, width: int = 4) -> tuple[tuple[Value, ...], Callable[[int, int], bool]]:
    """``y = f(x)`` of which both are arrays, and whether y reads x where it writes."""
    values = with_uses([
        Value(Work.REDUCE, 64, 4),
        Value(Work.EXPENSIVE, 64, width, (0,)),
        Value(Work.DOT, 64, 4, (1,), root=True),
    ])
    return values, lambda u, v: same


@pytest.mark.parametrize("mode", [Mode.DOMINANCE, Mode.LIVENESS])
def test_only_the_same_bytes_are_overwritten(mode: Mode) -> None:
    """A transposed read in place is refused, and so is an element of another width."""
    assert len(shared(*transposed(True), 1 << 20, mode).slots) == 1
    assert len(shared(*transposed(False), 1 << 20, mode).slots) == 2
    assert len(shared(*transposed(True, width=2), 1 << 20, mode).slots) == 2


def test_sizes_that_only_a_call_knows() -> None:
    """What is certain is used: n elements hold n others, m do not; a limit may be undecided."""
    n, m = Size.symbol("n"), Size.symbol("m")
    chain = [
        Value(Work.REDUCE, size, 4, (k - 1,) if k else (), root=k == 4)
        for k, size in enumerate([n * 4, m * 16, n * 4, m * 32, 4])
    ]
    found = shared(with_uses(chain), lambda u, v: False, 64)

    assert [s.values for s in found.slots] == [(0, 2), (1,), (3,)]
    rows = (n * 4 + 15) // 16 * 16
    assert (found.nbytes, found.allocated) == (rows + m * 48, n * 4 + m * 48)
    assert (found.slots[2].offset, found.ratio) == (rows + m * 16, None)
    wide = [Value(Work.REDUCE, m * 48, 4), Value(Work.LIGHT, 4, 4, (0,), root=True)]
    assert shared(with_uses(wide), lambda u, v: False, 48).nbytes == m * 48
    refused = share(with_uses(wide), lambda u, v: False, 47)
    assert isinstance(refused, Infeasible) and refused.data == {"need": m * 48, "limit": 47}


def test_bytes_left_over_by_alignment_are_used() -> None:
    """A slot of 20 bytes ends at 32, so 28 fit; a slot is as large as what it must hold."""
    values = with_uses([
        Value(Work.REDUCE, n, 4, (k - 1,) if k else (), root=k == 3)
        for k, n in enumerate([20, 16, 28, 4])
    ])
    found = shared(values, lambda u, v: False, 1 << 20)

    assert [(s.nbytes, s.values) for s in found.slots] == [(28, (0, 2)), (16, (1,))]
    assert found.offsets() == {0: 0, 1: 32, 2: 0}


def test_long_chains() -> None:
    """10,000 values between two arrays take no recursion."""
    values = [Value(Work.REDUCE, 4, 4)]
    values += [Value(Work.LIGHT, 4, 4, (k,)) for k in range(10_000)]
    values += [Value(Work.REDUCE, 4, 4, (10_000,)), Value(Work.LIGHT, 4, 4, (10_001,), root=True)]
    found = shared(with_uses(values), lambda u, v: True, 1 << 20)

    assert found.allocated == 8


def diamond(together: bool) -> tuple[Value, ...]:
    """A value that two others read, which a third one joins, or which are outputs themselves."""
    values = [
        Value(Work.EXPENSIVE, 64, 4),
        Value(Work.LIGHT, 64, 4, (0,), root=not together),
        Value(Work.LIGHT, 64, 4, (0,), root=not together),
        Value(Work.LIGHT, 64, 4, (1, 2), root=True),
    ]
    return with_uses(values if together else values[:3])


def test_registers_save_arrays() -> None:
    """What one closure reads twice where it writes is no array; turned, or in two, it is one."""
    inside = shared(diamond(together=True), lambda u, v: True, 1 << 20)
    turned = shared(diamond(together=True), lambda u, v: (u, v) != (1, 0), 1 << 20)
    apart = shared(diamond(together=False), lambda u, v: True, 1 << 20)

    assert (inside.slots, inside.registers) == ((), {0})
    assert (turned.needs, turned.registers) == ({0: Need.EXPENSIVE_SHARED}, frozenset())
    assert (apart.needs, apart.registers) == ({0: Need.EXPENSIVE_SHARED}, frozenset())


def test_what_was_in_registers_asks_again() -> None:
    """Where a closure gives up its array, what it had in registers is read by several others."""
    values = with_uses([
        Value(Work.EXPENSIVE, 16, 4),
        Value(Work.LIGHT, 16, 4, (0,)),
        Value(Work.LIGHT, 16, 4, (0,)),
        Value(Work.EXPENSIVE, 160, 4, (1, 2)),
        Value(Work.REDUCE, 16, 4, (3,)),
        Value(Work.LIGHT, 16, 4, (3, 4), root=True),
    ])
    roomy = shared(values, lambda u, v: True, 1 << 20)
    tight = shared(values, lambda u, v: True, 64)

    assert (set(roomy.needs), roomy.registers) == ({3, 4}, {0})
    assert (set(tight.needs), tight.registers, tight.dropped) == ({0, 4}, frozenset(), (3,))


def test_many_arrays_that_have_no_room() -> None:
    """Values that are too large by themselves are given up without a plan for each."""
    ladder = [Value(Work.REDUCE, 64, 4)]
    ladder += [Value(Work.LIGHT, 4096, 4, tuple({k - 1, max(0, k - 2)})) for k in range(1, 250)]
    ladder += [Value(Work.REDUCE, 16, 4, (249,)), Value(Work.LIGHT, 16, 4, (250,), root=True)]
    found = shared(with_uses(ladder), lambda u, v: False, 80)

    assert len(found.dropped) == 247 and set(found.needs) == {0, 250}


@frozen
class Pattern:
    """A random group: values with elements, and which elements an element reads."""

    values: tuple[Value, ...]
    numel: tuple[int, ...]
    edges: dict[tuple[int, int], str] = field(factory=dict)

    def read(self, user: int, i: int, value: int) -> Iterator[int]:
        """The elements of ``value`` that element ``i`` of ``user`` reads."""
        n = self.numel[value]
        how = self.edges[user, value]
        yield from range(n) if how == "all" else [n - 1 - i if how == "turned" else i % n]

    def same_place(self, user: int, value: int) -> bool:
        """As the planner asks."""
        return self.edges[user, value] == "same"


def random_pattern(rng: random.Random) -> Pattern:
    """3 to 12 values of 1 to 6 elements of 4 to 16 bytes; what nobody reads is a root."""
    n = rng.randint(3, 12)
    values: list[Value] = []
    numel: list[int] = []
    edges: dict[tuple[int, int], str] = {}
    works = [*Work, Work.LIGHT, Work.EXPENSIVE, Work.EXPENSIVE]
    for k in range(n):
        work, count = rng.choice(works), rng.choice((1, 4, 4, 6))
        nearby = range(max(0, k - 4), k)
        operands = tuple({rng.choice(nearby) for _ in range(rng.randint(1, 2))} if k else ())
        for p in operands:
            if work in (Work.REDUCE, Work.DOT):
                edges[k, p] = "all"
            elif numel[p] == count:
                edges[k, p] = rng.choice(("same", "same", "turned"))
            else:
                edges[k, p] = "broadcast"
        itemsize = rng.choice((4, 4, 8, 16))
        root = rng.random() < 0.1
        values.append(Value(work, count * itemsize, itemsize, operands, root))
        numel.append(count)
    read = {p for value in values for p in value.operands}
    live = [evolve(value, root=value.root or k not in read) for k, value in enumerate(values)]
    return Pattern(with_uses(live), tuple(numel), edges)


def array_reads(pattern: Pattern, kept: set[int], v: int, i: int) -> set[tuple[int, int]]:
    """The elements of arrays that it takes to compute element ``i`` of ``v``."""
    found: set[tuple[int, int]] = set()
    seen, todo = {(v, i)}, [(v, i)]
    while todo:
        user, k = todo.pop()
        for p in pattern.values[user].operands:
            for j in pattern.read(user, k, p):
                if p in kept:
                    found.add((p, j))
                elif (p, j) not in seen:
                    seen.add((p, j))
                    todo.append((p, j))
    return found


def hazards(pattern: Pattern, offsets: dict[int, int]) -> int:
    """The reads that find other bytes than they need, by where arrays begin and nothing else.

    Goes through the closures one after another, their elements at the same time: what one of them
    writes, no other one may read.
    """
    memory: dict[int, tuple[int, int, int]] = {}  # address -> value, element, its byte

    def place(v: int, i: int) -> range:
        size = pattern.values[v].itemsize
        return range(offsets[v] + i * size, offsets[v] + (i + 1) * size)

    bad = 0
    for v, value in enumerate(pattern.values):
        if v not in offsets and not value.root:
            continue
        reads = [array_reads(pattern, {*offsets}, v, i) for i in range(pattern.numel[v])]
        writer: dict[int, int] = {}
        if v in offsets:
            writer = {b: i for i in range(pattern.numel[v]) for b in place(v, i)}
        for i, found in enumerate(reads):
            for p, j in found:
                here = place(p, j)
                whole = all(memory.get(b) == (p, j, b - here.start) for b in here)
                bad += not whole or any(writer.get(b, i) != i for b in here)
        for b, i in writer.items():
            memory[b] = (v, i, b - place(v, i).start)
    return bad


def total_hazards(count: int, mode: Mode) -> tuple[int, float]:
    """Hazards in so many random patterns, and bytes allocated over bytes requested in all."""
    rng = random.Random(0)
    bad, allocated, requested = 0, 0, 0
    for k in range(count):
        pattern = random_pattern(rng)
        limit = 1 << 20 if k % 3 else rng.choice((96, 160, 256))
        found = share(pattern.values, pattern.same_place, limit, mode)
        if isinstance(found, Sharing):
            assert isinstance(found.allocated, int) and isinstance(found.requested, int)
            bad += hazards(pattern, found.offsets())  # type: ignore[arg-type]
            allocated, requested = allocated + found.allocated, requested + found.requested
    return bad, allocated / requested


@pytest.mark.parametrize("mode", [Mode.DOMINANCE, Mode.LIVENESS, Mode.SMALLER])
def test_nothing_is_overwritten_that_is_read(mode: Mode) -> None:
    """Random patterns, 21,000 in all, tight limits among them: all reads find what was written."""
    bad, ratio = total_hazards(7000, mode)

    assert bad == 0
    assert 0.8 < ratio < 0.99  # there is sharing that could go wrong


@pytest.mark.parametrize("mode", [Mode.DOMINANCE, Mode.LIVENESS])
def test_without_the_test_of_overwriting_there_are_hazards(
    mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check finds closures that overwrite what they read once nothing prevents them."""
    monkeypatch.setattr(sharing, "safe_to_overwrite", lambda flow, v, p: True)

    assert total_hazards(500, mode)[0] > 0


def test_without_dominance_there_are_hazards(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check finds late readers of bytes that are given away too early."""
    monkeypatch.setattr(Dominance, "dominates", lambda tree, a, b: True)

    assert total_hazards(500, Mode.DOMINANCE)[0] > 0


def test_widths_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check finds an element that is overwritten by a neighbour of another width."""
    original = sharing.safe_to_overwrite

    def blind(flow: Any, v: int, p: int) -> bool:
        values = [evolve(value, itemsize=4) for value in flow.values]
        return original(evolve(flow, values=values), v, p)

    monkeypatch.setattr(sharing, "safe_to_overwrite", blind)

    assert total_hazards(2000, Mode.LIVENESS)[0] > 0
