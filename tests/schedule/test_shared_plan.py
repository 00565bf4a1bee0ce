"""Scratch memory of multi-nest kernels: live ranges, offsets, refusals and statistics."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.analysis.group import Group
from passkit.analysis.size_arguments import pool_sizes
from passkit.analysis.slots import Mode
from passkit.analysis.tile_layout import TileLayout, padded_to_vectors
from passkit.analysis.tilemap import Split, SplitKind, slab_map, whole_map
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
    """Return the softmax of 17 × 17 elements before a batched product, of FusionStitching."""
    batch = batch or (64, 8)
    x, v = pk.var("x", (batch[0] * batch[1] * 17, 17)), pk.var("v", (*batch, 17, 128))
    return [o.matmul(o.reshape(softmax_of(x), shape=(*batch, 17, 17)), v)]


def stitched(outputs: list[Any], target: Target | None = None) -> tuple[Group, Schedule]:
    """Return the only group of a program in one multi-nest kernel, and its schedule."""
    graph, names = together(outputs)
    plan = planned(graph, "SchedulePlan", keep_together=names, target=target or cpu())
    (group,), (schedule,) = plan.attrs["subgraph"].values(), plan.attrs["schedule"].values()
    assert schedule.multi_nest is not None
    return group, schedule


# Offsets and extents in printed kernels.

LET = re.compile(r"const (?:int64_t|long) (\w+) = (\d+);")
FOR = re.compile(r"for \(\w+ (\w+) = [^;]*; \1 < (\w+);")
FIXED = re.compile(r"(?:fixed|paired)_lanes<(\d+)>\(\[&\]\(int64_t (\w+)")
LANES = re.compile(r"lanes\(\w+, (\w+), \[&\]\(int64_t (\w+)")
PLACE = re.compile(r"\*const (s\d+) = \([^)]*\)\((?:\([^)]*\))?scratch \+ (\d+)\);")
INDEX = re.compile(r"\b(s\d+)(?:\[([^\]]+)\]| \+ ([^,)]+))")
TOTAL = re.compile(r"\((s\d+), (high - low)\)")


def last_iterations(text: str) -> dict[str, int]:
    """Return the values of loop variables in the last iteration, and constants of a text."""
    values = {name: int(n) for name, n in LET.findall(text)}
    ends = [(name, end) for name, end in FOR.findall(text)]
    ends += [(name, end) for end, name in FIXED.findall(text) + LANES.findall(text)]
    for name, end in ends:
        stop = int(end) if end.isdigit() else values.get(end)
        if stop is not None:
            values[name] = max(stop - 1, values.get(name, 0))
    return values


def elements(text: str) -> dict[str, range]:
    """Return the elements of scratch memory that each array of a text occupies."""
    last, reach = last_iterations(text), dict[str, int]()
    uses = [(name, a or b, 1) for name, a, b in INDEX.findall(text)]
    uses += [(name, count, 0) for name, count in TOTAL.findall(text)]
    for name, index, more in uses:
        if set(re.findall(r"[a-z]\w*", index)) <= last.keys():
            reach[name] = max(reach.get(name, 0), eval(index, {}, dict(last)) + more)
    places = {name: int(at) // 4 for name, at in PLACE.findall(text)}
    return {name: range(at, at + reach[name]) for name, at in places.items()}


@pytest.mark.parametrize("dialect", ["cxx", "opencl"])
def test_buffers_share_half_of_the_elements_in_every_dialect(dialect: str) -> None:
    """The printed kernel of the paper's figure has 612 elements in 306 places."""
    group, schedule = stitched(figure(), evolve(cpu(), scratch=2048))
    assert schedule.multi_nest is not None and schedule.multi_nest.tiles == 512
    places_by_mode = {}
    for mode in (Mode.NONE, Mode.SMALLER):
        kernel = make_kernel(group, schedule, plan_shared(group, schedule, mode), dialect)
        arrays = elements(kernel.source)
        assert sorted(map(len, arrays.values())) == [17, 17, 289, 289]
        places_by_mode[mode] = len(set().union(*arrays.values()))
        assert kernel.scratch_bytes({}) == (4 * 612, 4 * places_by_mode[mode])

    assert places_by_mode == {Mode.NONE: 612, Mode.SMALLER: 306}


@pytest.mark.parametrize("mode", [Mode.NONE, Mode.DOMINANCE, Mode.LIVENESS])
@pytest.mark.parametrize("barriers", ["loops", "waits"])
def test_the_figure_is_right_with_every_allocation(
    mode: Mode, barriers: str, rng: np.random.Generator
) -> None:
    """In the block interpreter no array is read where another one was stored."""
    group, schedule = stitched(figure(2, 3), evolve(cpu(), scratch=2048))
    ast, sizes = lowered(group, schedule, plan_shared(group, schedule, mode))
    x = rng.standard_normal((102, 17)).astype(np.float32)
    v = rng.standard_normal((2, 3, 17, 128)).astype(np.float32)
    y = np.zeros((2, 3, 17, 128), np.float32)
    flat = [a.reshape(-1) for a in (x, v, y)]
    run_blocks(ast, flat, dict(zip(ast.sizes, sizes, strict=True)), barriers=barriers)
    e = np.exp(x - x.max(1, keepdims=True))

    expected = (e / e.sum(1, keepdims=True)).reshape(2, 3, 17, 17) @ v
    np.testing.assert_allclose(y, expected, rtol=2e-5, atol=2e-6)


def lowered(
    group: Group, schedule: Schedule, shared: SharedPlan
) -> tuple[KernelAST, tuple[int, ...]]:
    """Return the AST of a kernel, and the values of its size arguments."""
    ast, sizes = pool_sizes(lower(group, schedule, shared)[0])
    return ast, sizes  # type: ignore[return-value]


# Buffers that share memory.


def places(group: Group, schedule: Schedule) -> dict[str, set[int]]:
    """Return the offsets of the buffers of each operator."""
    shared, nodes = plan_shared(group, schedule), group.graph.nodes
    offsets: dict[str, set[int]] = {}
    for a, offset in zip(shared.arrays, shared.offsets, strict=True):
        offsets.setdefault(nodes[a.number].label, set()).add(offset)  # type: ignore[arg-type]
    return offsets


def test_a_product_is_never_in_place() -> None:
    """The buffer of a product overlaps none of its operands, as each element reads many."""
    a, b, c = (pk.var(n, (16, 16)) for n in "abc")
    group, schedule = stitched([o.matmul(o.tanh(o.matmul(a, b)), c) + 1.0])
    arrays = plan_shared(group, schedule).arrays
    offsets = plan_shared(group, schedule).offsets

    assert [group.graph.nodes[x.number].label for x in arrays] == ["matmul", "tanh", "matmul"]
    assert offsets[0] == offsets[1] != offsets[2]  # tanh overwrites its operand


def test_a_transposed_square_is_not_overwritten() -> None:
    """A transpose reads other elements than it stores, so it does not overwrite its operand."""
    a, b, c = (pk.var(n, (16, 16)) for n in "abc")
    transposed = o.exp(o.transpose(o.matmul(a, b)) * 2.0)
    group, schedule = stitched([o.matmul(transposed, c)])
    straight, plan = stitched([o.matmul(o.exp(o.matmul(a, b) * 2.0), c)])

    assert len({*plan_shared(group, schedule).offsets}) == 2
    assert len({*plan_shared(straight, plan).offsets}) == 1


def test_live_ranges_end_at_the_last_reader() -> None:
    """A value that the nest after the next one reads is not overwritten before."""
    a, b, c = (pk.var(n, (16, 16)) for n in "abc")
    y = o.matmul(a, b)
    group, schedule = stitched([o.matmul(o.tanh(y), c) * y])
    offsets = places(group, schedule)

    assert offsets["matmul"] & offsets["tanh"] == set()


def test_other_widths_are_not_in_place() -> None:
    """A value of four bytes does not overwrite one of eight bytes."""
    a, b = (pk.var(n, (16, 16), "float64") for n in "ab")
    c = pk.var("c", (16, 16))
    group, schedule = stitched([o.matmul(o.cast(o.matmul(a, b), dtype="float32"), c)])

    assert len({*plan_shared(group, schedule).offsets}) == 2


def test_outputs_are_stored_before_they_are_overwritten(rng: np.random.Generator) -> None:
    """An output that is also in scratch memory is stored before another value overwrites it."""
    q, k, v = (pk.var(n, (4, 20, 8)) for n in "qkv")
    scores = o.matmul(q, k, transpose_b=True)
    p = softmax_of(scores)
    graph, names = together([p @ v, p, scores])
    for target in ("cpu", "blocks"):
        exe = pk.compile(graph, keep_together=names, target=target)
        assert len(exe.kernels) == 1
        agree(graph, exe, feeds_of(graph, rng))


# Recomputation and refusals.


def two_ways() -> list[Any]:
    """Return reductions and a product that read a light value and an expensive one."""
    x, c, w = pk.var("x", (12, 40)), pk.var("c", (40,)), pk.var("w", (40, 6))
    light, expensive = x * c + 1.0, o.exp(x)
    r = o.reduce_sum(light + expensive, axis=1, keepdims=True)
    return [o.tanh(light * r) @ w, o.reduce_sum((light - expensive) * r, axis=0)]


def test_values_are_recomputed_before_a_tiling_is_refused(rng: np.random.Generator) -> None:
    """Later nests recompute values; operands and reductions stay, or the group has phases."""
    graph, names = together(two_ways())
    arrays = []
    for limit, kind in ((4096, "MULTI_NEST"), (3000, "MULTI_NEST"), (2000, "PHASED")):
        target = evolve(target_of("blocks"), scratch=limit)
        exe = pk.compile(graph, keep_together=names, target=target)
        agree(graph, exe, feeds_of(graph, rng))
        (plan,) = exe.graph.attrs["schedule"].values()
        assert plan.composition is Composition[kind]
        assert exe.stats["scratch_allocated"] <= limit
        arrays.append(exe.stats["scratch_requested"])

    assert arrays[0] > arrays[1] > arrays[2]


def test_refusals_name_the_bytes() -> None:
    """A group that does not fit has a diagnostic with the least bytes and the limit."""
    rows, columns = two_ways()
    results = [o.reduce_max(rows, axis=(0, 1)), o.reduce_max(columns, axis=0)]
    group, _ = stitched(results, evolve(cpu(), scratch=1 << 14))
    refusal = plan_group(group, evolve(cpu(), scratch=2000))

    assert isinstance(refusal, Diagnostic) and refusal.code == "memory.least"
    assert refusal.data == {"need": 2208, "limit": 2000}
    assert str(refusal) == "its arrays take at least 2208 bytes of shared memory a tile, above 2000"


def test_staged_values_are_recomputed(rng: np.random.Generator) -> None:
    """Each reader of a long row of exponentials recomputes it if scratch memory is small."""
    x, w = pk.var("x", (6, 700)), pk.var("w", (6, 5))
    e = o.exp(x - o.reduce_max(x, axis=1, keepdims=True))
    total = o.reduce_sum(e, axis=1, keepdims=True)
    spread = o.reduce_max(e * e / total, axis=1, keepdims=True)
    graph, names = together([o.transpose(spread) @ w])
    staged = []
    for limit in (1 << 16, 1 << 10):
        target = evolve(target_of("blocks"), scratch=limit)
        exe = pk.compile(graph, keep_together=names, target=target)
        (kernel,) = exe.kernels
        agree(graph, exe, feeds_of(graph, rng))
        staged.append([b.extent for b in kernel.ast.scratch if b.of_row])

    assert staged == [[700], []]


# Checks that find wrong offsets.


def at_zero(shared: SharedPlan) -> SharedPlan:
    """Return a plan in which all arrays begin at the same byte."""
    parts = tuple(evolve(p, offsets=(0,) * len(p.offsets)) for p in shared.parts)
    return evolve(shared, offsets=(0,) * len(shared.offsets), parts=parts)


def random_kernels() -> Iterator[tuple[Group, Schedule]]:
    """Yield multi-nest kernels of random graphs, with and without vectors."""
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


def overwritten_operand() -> tuple[Group, Schedule]:
    """Return two products of which the second is multiplied by the first."""
    a, b, c = (pk.var(n, (16, 16)) for n in "abc")
    y = o.matmul(a, b)
    return stitched([o.matmul(o.tanh(y), c) * y])


def test_codegen_refuses_overlapping_arrays() -> None:
    """The error names the stages and the array."""
    group, schedule = overwritten_operand()
    wrong = at_zero(plan_shared(group, schedule))

    with pytest.raises(CodeGenError, match=r"kernel mul_\w+ has a race: stage \w+ \w+ s\d, whose"):
        make_kernel(group, schedule, wrong, "cxx")


@pytest.mark.parametrize("barriers", ["loops", "waits"])
def test_the_block_interpreter_finds_overwritten_values(barriers: str) -> None:
    """A load of bytes that hold another array's value is an error for any values."""
    group, schedule = overwritten_operand()
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


# Row pitch and statistics.


def test_long_rows_begin_at_whole_vectors() -> None:
    """Rows of 94 have a pitch of 96 on the CPU, so no masked store reaches the next row."""
    schedules = [stitched(attention(94), evolve(cpu(), lanes=n))[1] for n in (16, 1)]
    padded, dense = (s.multi_nest.layouts[0][1] for s in schedules if s.multi_nest is not None)

    assert (padded.pitch, padded.size) == (96, padded.extents[0] * 96)
    assert (dense.pitch, dense.size) == (None, dense.extents[0] * 94)
    columns = Split(1, 16, SplitKind.COLUMN).tile_map((4, 94))
    for tile_map in (whole_map((4, 96)), Split(0, 16).tile_map((94,)), columns):
        assert padded_to_vectors(TileLayout(tile_map), 16).pitch is None


def test_layouts_with_the_same_places() -> None:
    """Elements of one linear index lie at one place, whatever the shapes."""
    flat = TileLayout(Split(0, 17).tile_map((8704, 17)))
    matrix = TileLayout(Split(0, 1).tile_map((512, 17, 17)))
    rows = TileLayout(Split(0, 1).tile_map((4, 6)))
    longer = TileLayout(Split(0, 34).tile_map((8704, 17)))

    assert flat.same_places(flat)
    assert rows.same_places(TileLayout(Split(0, 1).tile_map((4, 2, 3))))
    assert not flat.same_places(longer) and not flat.same_places(matrix)
    wide, narrow = TileLayout(whole_map((4, 94)), 96), TileLayout(whole_map((8, 47)), 48)
    assert not wide.same_places(narrow)
    columns = TileLayout(Split(1, 1, SplitKind.COLUMN).tile_map((6, 4)))
    assert not columns.same_places(TileLayout(Split(0, 1).tile_map((6, 4))))
    assert not rows.same_places(TileLayout(slab_map((4, 6), 1, 8, 2)))


def test_statistics_have_requested_and_allocated_bytes(rng: np.random.Generator) -> None:
    """The figure's kernel requests 612 elements and gets 306; an elementwise one has none."""
    graph, names = together(figure())
    exe = pk.compile(graph, keep_together=names, target=evolve(target_of("blocks"), scratch=2048))
    plain = pk.compile(pk.Graph([o.exp(pk.var("x", (5,)))]))

    assert (exe.stats["scratch_requested"], exe.stats["scratch_allocated"]) == (2448, 1224)
    assert (plain.stats["scratch_requested"], plain.stats["scratch_allocated"]) == (0, 0)


def test_statistics_of_unknown_sizes(rng: np.random.Generator) -> None:
    """Scratch memory of rows of unknown length counts after the first call."""
    x = pk.var("x", (None, None))
    d = o.erf(x) - o.reduce_mean(o.erf(x), axis=1, keepdims=True)
    exe = pk.compile(pk.Graph([o.reduce_sum(d * d, axis=1)]))
    before = exe.stats["scratch_requested"]
    exe(x=rng.standard_normal((3, 700)).astype(np.float32))

    assert before == 0 and exe.stats["scratch_requested"] == exe.stats["scratch_allocated"] == 2800
