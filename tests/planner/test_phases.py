"""Phased kernels: values that no tile can own cross a grid barrier in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.analysis.group import Group, Kind
from passkit.ast import const
from passkit.ast.stage import KernelAST, Phase
from passkit.checks.stage_races import check_stage_races
from passkit.diagnostics import Diagnostic
from passkit.errors import BlocksError, CodeGenError, ScheduleError
from passkit.graph.kernel import Kernel
from passkit.passes.check_storage import check_storage
from passkit.passes.codegen import make_kernel
from passkit.planner.phases import plan_phased
from passkit.planner.plan import inplace_pairs, plan_group
from passkit.program.executable import Executable
from passkit.program.planning import planned
from passkit.runtime.blocks.kernels import run_blocks
from passkit.schedule.phases import scheduled_parts
from passkit.schedule.schedule import Schedule
from passkit.schedule.shared_plan import plan_shared
from passkit.schedule.tiling import Composition
from passkit.target import Target, cpu, target_of
from passkit.transforms.lower_group import lower
from passkit.values import dtype as dt
from passkit.values.size import evaluate
from tests.planner.test_multi_nest import softmax_of, together
from tests.teams import team_of
from tests.together import prebuilt

pytestmark = pytest.mark.usefixtures("quick_kernels")
o = pk.ops
Program = Callable[[], list[Any]]


def normed(x: Any) -> Any:
    """Return a value normalized over all axes."""
    d = x - o.reduce_mean(x)
    return d / o.sqrt(o.reduce_mean(d * d) + 1e-6)


def batch_normed(x: Any) -> Any:
    """Return a matrix with normalized columns."""
    d = x - o.reduce_mean(x, axis=0)
    return d * o.rsqrt(o.reduce_mean(d * d, axis=0) + 1e-5)


def over_the_sum() -> list[Any]:
    """Return elements divided by the sum of all, of which there is a prime number."""
    x = pk.var("x", (1000003,))
    return [x / o.reduce_sum(x)]


def few_over_the_sum() -> list[Any]:
    """Return the same for a small matrix, which fits in one tile."""
    x = o.exp(pk.var("x", (7, 5)))
    return [x / o.reduce_sum(x)]


def softmax_of_all() -> list[Any]:
    """Return a softmax over two axes: two reductions of all elements."""
    x = pk.var("x", (300, 1003))
    e = o.exp(x - o.reduce_max(x))
    return [e / o.reduce_sum(e)]


def batch_then_rows() -> list[Any]:
    """Return a softmax of rows after the normalization of long columns."""
    return [softmax_of(batch_normed(pk.var("x", (20011, 37))))]


def standardised() -> list[Any]:
    """Return a matrix normalized over all elements."""
    return [normed(pk.var("x", (500, 601)))]


def rows_and_columns() -> list[Any]:
    """Return two results without a common number of tiles."""
    y = o.exp(pk.var("x", (5003, 257)))
    return [o.reduce_sum(y, axis=0), o.reduce_sum(y, axis=1)]


def chain() -> list[Any]:
    """Return alternating reductions of rows and columns, some of which are outputs."""
    x = pk.var("x", (613, 211))
    a = softmax_of(x)
    b = a / o.reduce_sum(a, axis=0)
    c = b - o.reduce_max(b, axis=1, keepdims=True)
    return [o.reduce_sum(c * c, axis=0), b, o.reduce_max(b, axis=1)]


def product_between() -> list[Any]:
    """Return a product of rows with normalized columns."""
    x, w = pk.var("x", (301, 16)), pk.var("w", (16, 24))
    return [batch_normed(o.tanh(softmax_of(x) @ w))]


def product_of_products() -> list[Any]:
    """Return a product with a product as both operands."""
    x = pk.var("x", (2, 96, 96))
    y = o.tanh((x @ x) * 0.1)
    return [o.tanh((y @ y) * 0.1)]


def doubles() -> list[Any]:
    """Return a float64 value normalized over three axes."""
    return [normed(pk.var("x", (3, 170, 251), "float64"))]


def halves() -> list[Any]:
    """Return a normalized float16 matrix."""
    return [normed(pk.var("x", (513, 300), "float16"))]


def brain_floats() -> list[Any]:
    """Return a bfloat16 matrix minus its greatest row sum."""
    x = pk.var("x", (1031, 300), "bfloat16")
    return [x - o.reduce_max(o.reduce_sum(x, axis=1))]


def integers() -> list[Any]:
    """Return integers minus their maximum, and a sum."""
    x = pk.var("x", (100003,), "int32")
    return [x - o.reduce_max(x), o.reduce_sum(x * x)]


PROGRAMS: tuple[Program, ...] = (
    over_the_sum,
    few_over_the_sum,
    softmax_of_all,
    batch_then_rows,
    standardised,
    rows_and_columns,
    chain,
    product_between,
    product_of_products,
    doubles,
    halves,
    brain_floats,
    integers,
)
SMALL = evolve(cpu(), scratch=32768)
"""A target with less scratch memory than a product of products needs."""
SLOW = (over_the_sum, softmax_of_all, batch_then_rows, standardised, rows_and_columns)
"""Programs large enough for several threads."""


def feeds_of(graph: pk.Graph, **sizes: int) -> dict[str, Any]:
    """Return normally distributed arrays for every input, or small integers."""
    rng = np.random.default_rng(0)
    feeds = {}
    for n in graph.inputs:
        entry = n.entries[0]
        shape = [k if isinstance(k, int) else evaluate(k, sizes) for k in entry.shape]
        values = rng.standard_normal(shape) * (3 if entry.dtype.is_integer else 1)
        feeds[n.name] = values.astype(entry.dtype.numpy)
    return feeds


def agree(graph: pk.Graph, exe: Any, feeds: dict[str, Any]) -> None:
    """Compare an executable with the interpreter, to a few units of the largest value."""
    with np.errstate(all="ignore"):
        expected_results = pk.interpret(graph, feeds)
    for result, expected in zip(exe(feeds), expected_results, strict=True):
        assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
        if expected.dtype.kind == "i":
            np.testing.assert_array_equal(result, expected)
            continue
        tolerance = {2: 2e-2, 4: 1e-5, 8: 1e-12}[expected.dtype.itemsize]
        a, b = (np.asarray(v, np.float64) for v in (result, expected))
        np.testing.assert_allclose(a, b, atol=tolerance * np.abs(b).max(initial=1e-9), rtol=0)


def phased(graph: pk.Graph, names: Any, **options: Any) -> tuple[pk.Graph, Any, Group, Schedule]:
    """Return the plan of a graph that is one kernel, and its node, group and schedule."""
    plan = planned(graph, "CodeGen", keep_together=names, **options)
    ((node, group),) = plan.attrs["subgraph"].items()
    return plan, node, group, plan.attrs["schedule"][node]


def kernel_of(graph: pk.Graph, names: Any, **options: Any) -> Kernel:
    """Return the kernel of a graph that is one kernel."""
    plan, node, _, _ = phased(graph, names, **options)
    kernel: Kernel = plan.attrs["kernel"][node]
    return kernel


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_one_kernel(program: Program) -> None:
    """A program is one launch with equal bits on any number of threads."""
    graph, names = together(program())
    options = {"keep_together": names, "target": SMALL}
    (ready,) = prebuilt([graph], [options])
    exe = pk.compile(ready, **options)
    feeds, bits = feeds_of(graph), []
    for threads in (1, 2, 4):
        with team_of(threads):
            bits.append([x.tobytes() for x in exe(feeds)])

    assert len(exe.steps) == len(exe.kernels) == 1
    assert (exe.stats["kernels"], exe.stats["native_calls"]) == (1, 3)
    assert bits[0] == bits[1] == bits[2]
    agree(graph, exe, feeds)
    check_storage(exe.graph, exe.graph.attrs["storage"])


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_block_by_block(program: Program) -> None:
    """In the block interpreter, no tile reads a value that another tile of its phase stores."""
    graph, names = together(program())
    small = evolve(SMALL, name="blocks")
    exe = pk.compile(graph, target=small, keep_together=names)

    assert len(exe.kernels) == 1
    agree(graph, exe, feeds_of(graph))


@pytest.mark.parametrize(
    "program, phases",
    [
        (over_the_sum, 3),
        (few_over_the_sum, 1),
        (softmax_of_all, 5),
        (batch_then_rows, 5),
        (standardised, 5),
        (rows_and_columns, 2),
    ],
)
def test_groups_have_few_phases(program: Program, phases: int) -> None:
    """A long reduction takes two phases; a small group is one tile."""
    graph, names = together(program())
    _, _, group, plan = phased(graph, names)

    assert max(1, len(plan.phase_outputs)) == phases
    assert (plan.composition is Composition.PHASED) == (phases > 1)
    if phases > 1:
        assert group.kind is Kind.PHASED and str(plan).startswith("phased[")


def test_long_reductions_have_tiles_for_all_threads() -> None:
    """Each phase that reads the input of a reduction to one element divides it among tiles."""
    graph, names = together(softmax_of_all())
    kernel = kernel_of(graph, names)
    tiles = [n for n, seconds in kernel.phases if seconds > 1e-5]

    assert len(tiles) == 3 and min(tiles) > 8  # type: ignore[type-var]
    assert kernel.grid == sum(n for n, _ in kernel.phases)


def test_values_between_phases_lie_in_the_arena() -> None:
    """A value between phases is an output of the group in temporary memory."""
    graph, names = together(over_the_sum())
    exe = pk.compile(graph, target="blocks", keep_together=names)
    ((node, group),) = exe.graph.attrs["subgraph"].items()
    storage = exe.graph.attrs["storage"]

    assert [e.shape for e in node.entries] == [(1000003,), (31,), ()]
    assert [str(storage[e]) for e in node.entries] == ["output 0", "arena 0", "arena 1"]
    assert storage.bind({})[1] == 192 and inplace_pairs(node) == []
    assert [b.extent for b in exe.kernels[0].ast.params] == [1000003, 1000003, 31, 1]
    assert group.called(group.graph.outputs[1].node).endswith("_part")


def test_outputs_between_phases_are_stored_once() -> None:
    """A result that a later phase reads is stored once."""
    x = pk.var("x", (20011, 37))
    mean = o.reduce_mean(x, axis=0)
    graph, names = together([x - mean, mean])
    _, node, group, plan = phased(graph, names)
    read = {k - 1 for part in scheduled_parts(group, plan) for k in part.inputs if k > 0}
    shapes = [e.shape for e in node.entries]

    assert len(shapes) == 3 and read == {shapes.index((37,)), 2}
    agree(graph, pk.compile(graph, target="blocks", keep_together=names), feeds_of(graph))


def test_expensive_values_are_stored_and_cheap_ones_recomputed() -> None:
    """A value that two phases need is stored if the cost model finds that faster."""
    x = pk.var("x", (1 << 20,))
    cheap, expensive = x * 2.0, o.tgamma(o.exp(o.tanh(o.exp(x))))
    for value, crosses in ((cheap, False), (expensive, True)):
        graph, names = together([value / o.reduce_sum(value)])
        _, node, _, _ = phased(graph, names)
        assert ((1 << 20,) in [e.shape for e in node.entries[1:]]) == crosses


@pytest.mark.parametrize("target", ["blocks", "cpu"])
def test_batches_of_any_size(target: str) -> None:
    """One kernel computes batches of any size, with zero rows, too."""
    x = pk.var("x", (None, 37))
    y = softmax_of(batch_normed(x))
    graph, names = together([y, o.reduce_sum(y)])
    exe = pk.compile(graph, target=target, keep_together=names)
    (plan,) = exe.graph.attrs["schedule"].values()
    for n in (1000, 1, 3, 0):
        feeds = feeds_of(graph, **{str(x.shape[0]): n})
        agree(graph, exe, feeds)
        check_storage(exe.graph, exe.graph.attrs["storage"], {str(x.shape[0]): n})

    assert len(exe.kernels) == 1 and plan.composition is Composition.PHASED


def test_empty_arrays_are_not_fused() -> None:
    """A value without elements is in no kernel with others."""
    x = pk.var("x", (0, 5))
    graph, names = together([batch_normed(x)])
    exe = pk.compile(graph, target="blocks", keep_together=names)

    assert exe.kernels and all(not k.phases for k in exe.kernels)
    agree(graph, exe, feeds_of(graph))


def test_fusion_alone_makes_no_phases() -> None:
    """Without keep_together no kernel has phases."""
    for program in SLOW:
        plan = planned(pk.Graph(program()), "SchedulePlan")
        assert all(not s.phase_outputs for s in plan.attrs["schedule"].values())
        assert all(g.kind is not Kind.PHASED for g in plan.attrs["subgraph"].values())


def test_fused_twice() -> None:
    """A phased group can be fused again, and stored as JSON."""
    graph, names = together(over_the_sum())
    once = planned(graph, "Fusion", keep_together=names)
    again = pk.ApplyPasses(once, "Fusion")
    ((node, group),) = once.attrs["subgraph"].items()
    read = pk.from_json(pk.to_json(pk.Graph(once.outputs)))
    (other,) = (n.params["body"] for n in read.nodes if "body" in n.params)

    assert len(again.attrs["subgraph"]) == 3
    assert (other.key, other.kind) == (group.key, Kind.PHASED)
    assert len(node.entries) == 3


# Checks find missing barriers.


def merged(ast: KernelAST) -> KernelAST:
    """Return a kernel with all phases as one."""
    parts = tuple(part for phase in ast.phases for part in phase.parts)
    last = ast.phases[-1]
    return evolve(ast, phases=(Phase(last.tile, parts),))


def side_by_side(ast: KernelAST) -> KernelAST:
    """Return a kernel with the phases as packed parts, without barriers in between."""
    first, parts = const(0, dt.int64), []
    for phase in ast.phases:
        end = first + phase.tile.stop
        parts += [evolve(part, span=(first, end)) for part in phase.parts]
        first = end
    return evolve(ast, phases=(Phase(evolve(ast.phases[0].tile, stop=first), tuple(parts)),))


@pytest.mark.parametrize("program", [over_the_sum, softmax_of_all, batch_then_rows, standardised])
def test_missing_barriers_are_found(program: Program) -> None:
    """The race check finds that a tile reads a value that another tile stores."""
    graph, names = together(program())
    kernel = kernel_of(graph, names)
    check_stage_races(kernel.ast, "whole", kernel.sizes)
    for broken in (merged(kernel.ast), side_by_side(kernel.ast)):
        with pytest.raises(CodeGenError, match="kernel broken has a race: .* in a tile before"):
            check_stage_races(broken, "broken", kernel.sizes)


def test_missing_barriers_are_found_block_by_block() -> None:
    """The block interpreter finds a load of a value that another tile stores, or of none."""
    graph, names = together(standardised())
    kernel = kernel_of(graph, names)
    sizes = dict(zip(kernel.ast.sizes, (evaluate(n, {}) for n in kernel.sizes), strict=True))
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(b.extent).astype(b.dtype.numpy) for b in kernel.ast.params]
    run_blocks(kernel.ast, arrays, sizes)
    with pytest.raises(BlocksError, match="tiles run in any order|where nothing is stored"):
        run_blocks(side_by_side(kernel.ast), arrays, sizes)


# Scratch memory, and schedules of other groups.


def test_scratch_of_phases_overlaps() -> None:
    """The scratch memory of phases overlaps; a kernel has that of the largest phase."""
    graph, names = together(product_of_products())
    graph, node, _, plan = phased(graph, names, target=SMALL)
    shared, kernel = graph.attrs["shared"][node], graph.attrs["kernel"][node]
    needs = [p.nbytes for p in shared.parts]

    assert len(plan.phase_outputs) == 2 and all(n > 0 for n in needs)
    assert shared.nbytes == max(needs) and kernel.shared_nbytes < sum(needs)


def test_a_schedule_is_for_its_group() -> None:
    """Lowering refuses the schedule of another group and the scratch plan of another schedule."""
    graph, names = together(over_the_sum())
    _, _, group, plan = phased(graph, names)
    shared = plan_shared(group, plan)
    other = Group(pk.Graph(group.graph.outputs[:2]), Kind.PHASED)
    with pytest.raises(CodeGenError, match=r"has 2 results, and the phases .* \(\(1,\), \(2,\), "):
        lower(other, plan, shared)
    with pytest.raises(CodeGenError, match="has 3 phases, its schedule 3 and its scratch 2; run"):
        lower(group, plan, evolve(shared, parts=shared.parts[:2]))


def one_by_one(group: Group, target: Target) -> Schedule | Diagnostic:
    """Plan a group of one output, and refuse others."""
    if len(group.graph.outputs) > 1:
        return Diagnostic("pack.dependence")
    return plan_group(group, target)


def test_values_between_phases_must_be_outputs() -> None:
    """A reduction that two phases need is refused unless it is an output."""
    x = pk.var("x", (9, 70))
    total = o.reduce_sum(x)
    more, less = x + total, x - total
    refusal = plan_phased(Group(pk.Graph([more, less]), Kind.PHASED), cpu(), one_by_one)
    assert isinstance(refusal, Diagnostic) and refusal.code == "phase.repeated_reduction"
    assert str(refusal).startswith("reduce_sum would be reduced in two phases")

    plan = plan_phased(Group(pk.Graph([more, less, total]), Kind.PHASED), cpu(), one_by_one)
    assert isinstance(plan, Schedule) and plan.phase_outputs == ((2,), (0,), (1,))


def test_an_input_is_no_output() -> None:
    """An output that is an input is refused."""
    x = pk.var("x", (9,))
    refusal = plan_phased(Group(pk.Graph([x, -x]), Kind.PHASED), cpu(), one_by_one)

    assert isinstance(refusal, Diagnostic) and refusal.code == "graph.output_is_input"


def test_a_dialect_without_phases() -> None:
    """A dialect without phases refuses a phased kernel."""
    from passkit.dialects import OPENCL, register_dialect

    register_dialect(evolve(OPENCL, name="test_one_phase", phases=None))
    target = evolve(target_of("opencl"), name="test_one_phase", dialect="test_one_phase")
    graph, names = together(over_the_sum())
    with pytest.raises(CodeGenError, match="dialect test_one_phase has no .* a kernel of 3 phases"):
        planned(graph, "CodeGen", keep_together=names, target=target)


def test_equal_groups_have_equal_kernels() -> None:
    """Kernels are memoised without regard to names."""
    kernels = []
    for name in ("x", "y"):
        x = pk.var(name, (1000003,))
        graph, names = together([x / o.reduce_sum(x, name=f"of_{name}")])
        _, _, group, plan = phased(graph, names)
        shared = plan_shared(group, plan)
        kernels.append(make_kernel(group, plan, shared, "cxx"))

    assert kernels[0] is kernels[1]


# Templates, pictures and pages.


def test_templates() -> None:
    """Each phase has the distribution of loops that a template describes."""
    graph, names = together(standardised())
    ranked = pk.templates(graph, keep_together=names)[0]

    assert ranked.composition == "phased" and len(ranked.others) > 2
    assert ranked.template.count("GRID") >= 3
    feeds, tiles = feeds_of(graph), set()
    for text in [ranked.template, *(str(v.template) for v in ranked.others[:4])]:
        options = {"keep_together": names, "templates": {ranked.name: text}}
        exe = pk.compile(graph, target="blocks", **options)
        (plan,) = exe.graph.attrs["schedule"].values()
        assert plan.source.value == "user" and plan.composition is Composition.PHASED
        tiles.add(exe.kernels[0].phases)
        agree(graph, exe, feeds)
    assert len(tiles) > 2


def test_a_template_of_one_phase() -> None:
    """A template can change the tiles of one phase; an impossible one is refused."""
    graph, names = together(over_the_sum())
    ranked = pk.templates(graph, keep_together=names)[0]
    assert "div_1[GRID_/8192-CTA_8192]" in ranked.template or "div_1[" in ranked.template
    before = kernel_of(graph, names).phases
    stages = [s.strip() for s in ranked.template.rstrip(";").split(";")]
    (last,) = [s for s in stages if s.startswith("div_1")]
    text = ranked.template.replace(last, "div_1[GRID_/4096-CTA_4096]")
    after = kernel_of(graph, names, templates={ranked.name: text}).phases

    assert [n for n, _ in after] == [before[0][0], before[1][0], -(-1000003 // 4096)]
    text = ranked.template.replace(last, "div_1[GRID_3-WARP_2-THREAD_2]")
    with pytest.raises(ScheduleError, match=r"div_1\[GRID"):
        kernel_of(graph, names, templates={ranked.name: text})


def test_pictures_and_pages() -> None:
    """A picture has a frame for each phase."""
    graph, names = together(batch_then_rows())
    exe: Executable = pk.compile(graph, target="blocks", keep_together=names)
    text = str(pk.viz.plan(exe.graph))
    (plan,) = exe.graph.attrs["schedule"].values()

    assert "phased, 5 phases" in text and text.count('label="phase 4') == 1
    assert len(plan.parts) == 5
    assert "div: fused" in str(pk.explain(exe.graph)) or "fused" in str(pk.explain(exe.graph))
