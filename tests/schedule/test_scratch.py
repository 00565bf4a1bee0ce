"""Scratch of stitched kernels: who shares bytes, in texts of every language, and what it costs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.analysis.group import Group
from passkit.analysis.regions import Region, alike, pitched
from passkit.analysis.size_arguments import pool_sizes
from passkit.analysis.slots import Mode
from passkit.ast.stage import KernelAST
from passkit.checks.stage_races import stage_races
from passkit.diagnostics import Diagnostic
from passkit.errors import BlocksError, CodeGenError
from passkit.passes.codegen import make_kernel
from passkit.planner.plan import plan_group
from passkit.program.planning import planned
from passkit.runtime.blocks import run_blocks
from passkit.schedule.schedule import Schedule
from passkit.schedule.shared_plan import SharedPlan, plan_shared
from passkit.schedule.tiling import Composition
from passkit.target import Target, cpu, target_of
from passkit.transforms.lower_group import lower
from passkit.values.size import numel
from tests.planner.test_multi_nest import agree, attention, feeds_of, softmax_of, together
from tests.random_stitches import random_stitch

o = pk.ops


def figure(*batch: int) -> list[Any]:
    """The softmax of 17 × 17 elements before a batched product, of FusionStitching."""
    batch = batch or (64, 8)
    x, v = pk.var("x", (batch[0] * batch[1] * 17, 17)), pk.var("v", (*batch, 17, 128))
    return [o.matmul(o.reshape(softmax_of(x), shape=(*batch, 17, 17)), v)]


def stitched(outputs: list[Any], target: Target | None = None) -> tuple[Group, Schedule]:
    """The only group of a program in one kernel, and its schedule."""
    graph, names = together(outputs)
    plan = planned(graph, "SchedulePlan", keep_together=names, target=target or cpu())
    (group,), (schedule,) = plan.attrs["subgraph"].values(), plan.attrs["schedule"].values()
    assert schedule.multi_nest is not None
    return group, schedule


# What texts say.

LET = re.compile(r"const (?:int64_t|long) (\w+) = (\d+);")
FOR = re.compile(r"for \(\w+ (\w+) = [^;]*; \1 < (\w+);")
FIXED = re.compile(r"fixed_lanes<(\d+)>\(\[&\]\(int64_t (\w+)")
LANES = re.compile(r"lanes\(\w+, (\w+), \[&\]\(int64_t (\w+)")
PLACE = re.compile(r"\*const (s\d+) = \([^)]*\)\((?:\([^)]*\))?scratch \+ (\d+)\);")
INDEX = re.compile(r"\b(s\d+)(?:\[([^\]]+)\]| \+ ([^,)]+))")
TOTAL = re.compile(r"\((s\d+), (high - low)\)")


def last_turns(text: str) -> dict[str, int]:
    """The variables of loops in their last turns, and locals that are numbers."""
    found = {name: int(n) for name, n in LET.findall(text)}
    ends = [(name, end) for name, end in FOR.findall(text)]
    ends += [(name, end) for end, name in FIXED.findall(text) + LANES.findall(text)]
    for name, end in ends:
        stop = int(end) if end.isdigit() else found.get(end)
        if stop is not None:
            found[name] = max(stop - 1, found.get(name, 0))
    return found


def elements(text: str) -> dict[str, range]:
    """The elements of scratch, counted from its begin, that each array of a text has."""
    last, reach = last_turns(text), dict[str, int]()
    uses = [(name, a or b, 1) for name, a, b in INDEX.findall(text)]
    uses += [(name, count, 0) for name, count in TOTAL.findall(text)]
    for name, index, more in uses:
        if set(re.findall(r"[a-z]\w*", index)) <= last.keys():
            reach[name] = max(reach.get(name, 0), eval(index, {}, dict(last)) + more)
    places = {name: int(at) // 4 for name, at in PLACE.findall(text)}
    return {name: range(at, at + reach[name]) for name, at in places.items()}


@pytest.mark.parametrize("dialect", ["cxx", "opencl", "cuda"])
def test_306_of_612_elements_in_every_language(dialect: str) -> None:
    """The text of the figure's kernel says how many elements it has, and in how many places."""
    group, schedule = stitched(figure(), evolve(cpu(), scratch=2048))
    assert schedule.multi_nest is not None and schedule.multi_nest.tiles == 512
    found = {}
    for mode in (Mode.NONE, Mode.SMALLER):
        kernel = make_kernel(group, schedule, plan_shared(group, schedule, mode), dialect)
        arrays = elements(kernel.source)
        assert sorted(map(len, arrays.values())) == [17, 17, 289, 289]
        found[mode] = len(set().union(*arrays.values()))
        assert kernel.scratch_bytes({}) == (4 * 612, 4 * found[mode])

    assert found == {Mode.NONE: 612, Mode.SMALLER: 306}


@pytest.mark.parametrize("mode", [Mode.NONE, Mode.DOMINANCE, Mode.LIVENESS])
@pytest.mark.parametrize("barriers", ["loops", "waits"])
def test_the_figure_is_right_in_every_way(
    mode: Mode, barriers: str, rng: np.random.Generator
) -> None:
    """Block by block, in C++ and as on a GPU: no array is read where another one is."""
    group, schedule = stitched(figure(2, 3), evolve(cpu(), scratch=2048))
    ast, sizes = lowered(group, schedule, plan_shared(group, schedule, mode))
    x = rng.standard_normal((102, 17)).astype(np.float32)
    v = rng.standard_normal((2, 3, 17, 128)).astype(np.float32)
    y = np.zeros((2, 3, 17, 128), np.float32)
    flat = [a.reshape(-1) for a in (x, v, y)]
    run_blocks(ast, flat, dict(zip(ast.sizes, sizes, strict=True)), barriers=barriers)
    e = np.exp(x - x.max(1, keepdims=True))

    wanted = (e / e.sum(1, keepdims=True)).reshape(2, 3, 17, 17) @ v
    np.testing.assert_allclose(y, wanted, rtol=2e-5, atol=2e-6)


def lowered(
    group: Group, schedule: Schedule, shared: SharedPlan
) -> tuple[KernelAST, tuple[int, ...]]:
    """The AST of a kernel, and the values of its size arguments."""
    ast, sizes = pool_sizes(lower(group, schedule, shared)[0])
    return ast, sizes  # type: ignore[return-value]


# Which buffers share memory.


def places(group: Group, schedule: Schedule) -> dict[str, set[int]]:
    """For each operator that has arrays, where they begin."""
    shared, nodes = plan_shared(group, schedule), group.graph.nodes
    found: dict[str, set[int]] = {}
    for a, offset in zip(shared.arrays, shared.offsets, strict=True):
        found.setdefault(nodes[a.number].label, set()).add(offset)  # type: ignore[arg-type]
    return found


def test_a_product_is_never_in_place() -> None:
    """Each element of a product reads many of its operands', so it lies beside them."""
    a, b, c = (pk.var(n, (16, 16)) for n in "abc")
    group, schedule = stitched([o.matmul(o.tanh(o.matmul(a, b)), c) + 1.0])
    arrays = plan_shared(group, schedule).arrays
    offsets = plan_shared(group, schedule).offsets

    assert [group.graph.nodes[x.number].label for x in arrays] == ["matmul", "tanh", "matmul"]
    assert offsets[0] == offsets[1] != offsets[2]  # tanh in place of what it reads


def test_a_turned_square_is_not_overwritten() -> None:
    """The transpose of a square has all bytes of the square, but not in their places."""
    a, b, c = (pk.var(n, (16, 16)) for n in "abc")
    turned = o.exp(o.transpose(o.matmul(a, b)) * 2.0)
    group, schedule = stitched([o.matmul(turned, c)])
    straight, plan = stitched([o.matmul(o.exp(o.matmul(a, b) * 2.0), c)])

    assert len({*plan_shared(group, schedule).offsets}) == 2
    assert len({*plan_shared(straight, plan).offsets}) == 1


def test_what_is_read_later_stays() -> None:
    """A value that a part after the next one reads keeps its bytes until then."""
    a, b, c = (pk.var(n, (16, 16)) for n in "abc")
    y = o.matmul(a, b)
    group, schedule = stitched([o.matmul(o.tanh(y), c) * y])
    found = places(group, schedule)

    assert found["matmul"] & found["tanh"] == set()


def test_other_widths_are_not_in_place() -> None:
    """An element of four bytes does not lie where one of eight was, though there would be room."""
    a, b = (pk.var(n, (16, 16), "float64") for n in "ab")
    c = pk.var("c", (16, 16))
    group, schedule = stitched([o.matmul(o.cast(o.matmul(a, b), dtype="float32"), c)])

    assert len({*plan_shared(group, schedule).offsets}) == 2


def test_results_that_are_read_are_kept_for_the_caller(rng: np.random.Generator) -> None:
    """A result that lies in scratch, too, is stored before another value takes its place there."""
    q, k, v = (pk.var(n, (4, 20, 8)) for n in "qkv")
    scores = o.matmul(q, k, transpose_b=True)
    p = softmax_of(scores)
    graph, names = together([p @ v, p, scores])
    for target in ("cpu", "blocks"):
        exe = pk.compile(graph, keep_together=names, target=target)
        assert len(exe.kernels) == 1
        agree(graph, exe, feeds_of(graph, rng))


# Shrinking.


def two_ways() -> list[Any]:
    """A light value and an expensive one that rows, columns and a product are made of."""
    x, c, w = pk.var("x", (12, 40)), pk.var("c", (40,)), pk.var("w", (40, 6))
    light, dear = x * c + 1.0, o.exp(x)
    r = o.reduce_sum(light + dear, axis=1, keepdims=True)
    return [o.tanh(light * r) @ w, o.reduce_sum((light - dear) * r, axis=0)]


def test_arrays_are_given_up_before_a_split_is_refused(rng: np.random.Generator) -> None:
    """What a later part can compute again it does; operands and folds stay, or cross phases."""
    graph, names = together(two_ways())
    arrays = []
    for limit, kind in ((4096, "STITCHED"), (3000, "STITCHED"), (2000, "PHASED")):
        target = evolve(target_of("blocks"), scratch=limit)
        exe = pk.compile(graph, keep_together=names, target=target)
        agree(graph, exe, feeds_of(graph, rng))
        (plan,) = exe.graph.attrs["schedule"].values()
        assert plan.composition is Composition[kind]
        assert exe.stats["scratch_allocated"] <= limit
        arrays.append(exe.stats["scratch_requested"])

    assert arrays[0] > arrays[1] > arrays[2]


def test_groups_that_need_too_much_say_how_much() -> None:
    """The bytes that are needed, the limit, and why; the caller splits the group then."""
    rows, columns = two_ways()
    results = [o.reduce_max(rows, axis=(0, 1)), o.reduce_max(columns, axis=0)]
    group, _ = stitched(results, evolve(cpu(), scratch=1 << 14))
    found = plan_group(group, evolve(cpu(), scratch=2000))

    assert isinstance(found, Diagnostic) and found.code == "memory.least"
    assert found.data == {"need": 2208, "limit": 2000}
    assert str(found) == "its arrays take at least 2208 bytes of shared memory a tile, above 2000"


def test_kept_values_are_computed_again(rng: np.random.Generator) -> None:
    """The exp of long rows that have no room for it; its fold and its quotient have one each."""
    x, w = pk.var("x", (6, 700)), pk.var("w", (6, 5))
    e = o.exp(x - o.reduce_max(x, axis=1, keepdims=True))
    total = o.reduce_sum(e, axis=1, keepdims=True)
    spread = o.reduce_max(e * e / total, axis=1, keepdims=True)
    graph, names = together([o.transpose(spread) @ w])
    kept = []
    for limit in (1 << 16, 1 << 10):
        target = evolve(target_of("blocks"), scratch=limit)
        exe = pk.compile(graph, keep_together=names, target=target)
        (kernel,) = exe.kernels
        agree(graph, exe, feeds_of(graph, rng))
        kept.append([b.extent for b in kernel.ast.scratch if b.of_row])

    assert kept == [[700], []]


# What finds a wrong plan.


def at_zero(shared: SharedPlan) -> SharedPlan:
    """A plan in which all arrays begin at the same byte."""
    parts = tuple(evolve(p, offsets=(0,) * len(p.offsets)) for p in shared.parts)
    return evolve(shared, offsets=(0,) * len(shared.offsets), parts=parts)


def random_kernels() -> Iterator[tuple[Group, Schedule]]:
    """Stitched kernels of random graphs with several arrays, for the CPU and as on a GPU."""
    for seed in range(60):
        graph, names = random_stitch(seed)
        target = cpu() if seed % 2 else evolve(cpu(), lanes=1)
        plan = planned(graph, "SchedulePlan", keep_together=names, target=target)
        for node, schedule in plan.attrs["schedule"].items():
            if schedule.multi_nest is not None and len(schedule.multi_nest.nests) > 2:
                yield plan.attrs["subgraph"][node], schedule


def test_no_races_and_a_control_that_has_some() -> None:
    """The race check accepts all plans, and refuses plans where arrays overlap."""
    good = bad = count = 0
    for group, schedule in random_kernels():
        count += 1
        for mode in (Mode.DOMINANCE, Mode.LIVENESS):
            shared = plan_shared(group, schedule, mode)
            good += len(list(stage_races(*lowered(group, schedule, shared))))
        wrong = at_zero(plan_shared(group, schedule))
        bad += bool(list(stage_races(*lowered(group, schedule, wrong))))

    assert count > 10 and good == 0 and bad > count // 2


def over_what_is_read() -> tuple[Group, Schedule]:
    """Two products of which the second is multiplied by what the first was."""
    a, b, c = (pk.var(n, (16, 16)) for n in "abc")
    y = o.matmul(a, b)
    return stitched([o.matmul(o.tanh(y), c) * y])


def test_codegen_refuses_arrays_over_what_is_still_read() -> None:
    """It names the stages and both arrays."""
    group, schedule = over_what_is_read()
    wrong = at_zero(plan_shared(group, schedule))

    with pytest.raises(CodeGenError, match=r"kernel mul_\w+ has a race: stage \w+ \w+ s\d, whose"):
        make_kernel(group, schedule, wrong, "cxx")


@pytest.mark.parametrize("barriers", ["loops", "waits"])
def test_blocks_find_what_was_overwritten(barriers: str) -> None:
    """A load of bytes that hold another array's value is an error, whatever the values are."""
    group, schedule = over_what_is_read()
    good = plan_shared(group, schedule)
    arrays = [np.ones(numel(n.entries[0].shape), np.float32) for n in group.graph.inputs]
    arrays.append(np.zeros(256, np.float32))

    def call(shared: SharedPlan) -> None:
        ast, sizes = lowered(group, schedule, shared)
        values = dict(zip(ast.sizes, sizes, strict=True))
        run_blocks(ast, arrays, values, barriers=barriers)

    call(good)
    with pytest.raises(BlocksError, match=r"loads s0\[0\], where another array's value is stored"):
        call(evolve(good, offsets=(0, 0, 2048)))


# Rows, and what stats say.


def test_long_rows_begin_at_whole_vectors() -> None:
    """Rows of 94 lie 96 apart on the CPU, so that no masked store reaches into the next row."""
    schedules = [stitched(attention(94), evolve(cpu(), lanes=n))[1] for n in (16, 1)]
    scores, close = (s.multi_nest.regions[0][1] for s in schedules if s.multi_nest is not None)

    assert (scores.pitch, scores.size) == (96, scores.chunk * 96)
    assert (close.pitch, close.size) == (None, close.chunk * 94)
    assert pitched(Region((4, 96), 0), 16).pitch is None
    assert pitched(Region((94,), 0, 0, 16), 16).pitch is None
    assert pitched(Region((4, 94), 0, 1, 16, backwards=True), 16).pitch is None


def test_regions_that_are_alike() -> None:
    """Elements of one linear index lie at one place, whatever the shapes."""
    flat, matrix = Region((8704, 17), 0, 0, 17), Region((512, 17, 17), 1)

    assert alike(flat, flat) and alike(Region((4, 6), 1), Region((4, 2, 3), 1))
    assert not alike(flat, Region((8704, 17), 0, 0, 34)) and not alike(flat, matrix)
    assert not alike(Region((4, 94), 0, pitch=96), Region((8, 47), 0, pitch=48))
    assert not alike(Region((6, 4), 1, backwards=True), Region((6, 4), 1))


def test_stats_say_what_was_asked_for_and_given(rng: np.random.Generator) -> None:
    """The figure's kernel asks for 612 elements and gets 306; what needs no scratch gets none."""
    graph, names = together(figure())
    exe = pk.compile(graph, keep_together=names, target=evolve(target_of("blocks"), scratch=2048))
    plain = pk.compile(pk.Graph([o.exp(pk.var("x", (5,)))]))

    assert (exe.stats["scratch_requested"], exe.stats["scratch_allocated"]) == (2448, 1224)
    assert (plain.stats["scratch_requested"], plain.stats["scratch_allocated"]) == (0, 0)


def test_stats_of_unknown_sizes(rng: np.random.Generator) -> None:
    """Scratch of rows whose length a call gives is counted once it is known."""
    x = pk.var("x", (None, None))
    d = o.erf(x) - o.reduce_mean(o.erf(x), axis=1, keepdims=True)
    exe = pk.compile(pk.Graph([o.reduce_sum(d * d, axis=1)]))
    before = exe.stats["scratch_requested"]
    exe(x=rng.standard_normal((3, 700)).astype(np.float32))

    assert before == 0 and exe.stats["scratch_requested"] == exe.stats["scratch_allocated"] == 2800
