"""Templates of schedules, and kernels with given templates."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.analysis.group import Group
from passkit.ast.stage import Level
from passkit.diagnostics import Diagnostic
from passkit.errors import ScheduleError
from passkit.graph.kernel import Kernel
from passkit.graph.node import known_shape
from passkit.library.candidates import candidates_of
from passkit.passes import codegen
from passkit.planner.plan import plan_group
from passkit.program.planning import planned
from passkit.runtime.blocks.kernels import _KernelRun
from passkit.schedule import tile_loops as loops
from passkit.schedule.schedule import Schedule, Source
from passkit.schedule.template import ValueTemplate, parse_template
from passkit.schedule.template_loops import ValueLoops, value_names
from passkit.schedule.template_of import leaf_schedules, template_of, values_of
from passkit.target import Target, cpu
from passkit.values.size import evaluate, numel
from tests.random_graphs import random_case
from tests.random_stitches import random_stitch
from tests.row_programs import SOFTMAX
from tests.template_cases import (
    Subject,
    candidates_by_group,
    check,
    native_plans,
    overrides,
    subject,
)

pytestmark = pytest.mark.usefixtures("quick_kernels")


def groups(graph: pk.Graph, **options: Any) -> list[Group]:
    """Return the groups of a graph."""
    return list(planned(graph, "Fusion", **options).attrs["subgraph"].values())


def group_of(text: str, **options: Any) -> Group:
    """Return the only group of a graph in text."""
    (group,) = groups(pk.parse(text), **options)
    return group


def template_text(text: str, target: Target | None = None) -> str:
    """Return the template of the only group of a graph in text."""
    group, target = group_of(text), target or cpu()
    plan = plan_group(group, target)
    assert isinstance(plan, Schedule)
    return str(template_of(group, plan, target))


@pytest.mark.parametrize(
    "text, expected",
    [
        ("x: f32[99999]; return exp(x)", "exp_1[GRID_/8192-CTA_8192];"),
        ("x: f32[n]; return exp(x)", "exp_1[GRID_/8192-CTA_8192];"),
        ("x: f32[100]; return exp(x)", "exp_1[CTA];"),
        ("x: f32[n, m]; y: f32[n, 1]; return add(x, y)", "add_1[GRID_~8192,CTA];"),
        ("x: f32[999, 512]; y: f32[999, 1]; return add(x, y)", "add_1[GRID_63-WARP_16,CTA];"),
        (
            "x: f32[640, 480]; return transpose(x)",
            "transpose_1[GRID_/64-THREAD_64,GRID_/256-CTA_256];",
        ),
        ("x: f32[9, 300]; return reduce_sum(exp(x), axis=1)", "reduce_sum_1[WARP,CTA];"),
        (
            "x: f32[999, 300]; return exp(reduce_sum(x, axis=1))",
            "reduce_sum_1[GRID_37-WARP_27,CTA]S; exp_1[GRID_37-WARP_27];",
        ),
        (
            SOFTMAX.format("4096, 1024", 1),
            (
                "reduce_max_1[GRID_512-WARP_8,CTA]S; exp_1[GRID_512-WARP_8,CTA]S; "
                "reduce_sum_1[GRID_512-WARP_8,CTA]S; div_1[GRID_512-WARP_8,CTA];"
            ),
        ),
        (
            SOFTMAX.format("4096, 17", 1),
            (
                "reduce_max_1[GRID_86-CTA_48,THREAD]S; exp_1[GRID_86-CTA_48,CTA]S; "
                "reduce_sum_1[GRID_86-CTA_48,THREAD]S; div_1[GRID_86-CTA_48,CTA];"
            ),
        ),
        ("x: f32[100, 4096]; return reduce_max(x, axis=0)", "reduce_max_1[THREAD,GRID_8-CTA_512];"),
        (
            "x: f32[5, 300, 1024]; return reduce_max(x, axis=1)",
            "reduce_max_1[GRID,THREAD,GRID_2-CTA_512];",
        ),
    ],
)
def test_templates_of_schedules(text: str, expected: str) -> None:
    """Rows of a tile are WARP, vectors CTA, serial loops THREAD; GRID has the number of tiles."""
    assert template_text(text) == expected


def test_targets_without_vectors_have_no_blocks_of_two_axes() -> None:
    """On a target without vectors tiles of a transpose are rows."""
    single = evolve(cpu(), lanes=1)

    assert template_text("x: f32[640, 480]; return transpose(x)", single) == (
        "transpose_1[GRID_40-WARP_12,CTA];"
    )


@cache
def cases() -> tuple[tuple[Group, Target], ...]:
    """Return groups of random graphs, for targets with and without vectors."""
    return tuple(_random_groups())


def _random_groups() -> Iterator[tuple[Group, Target]]:
    """Yield groups of random graphs with their targets, some of them kept together."""
    for seed in range(40):
        for group in groups(random_case(seed).graph):
            yield group, evolve(cpu(), tile=256, lanes=1 if seed % 3 == 0 else 16)
    for seed in range(20):
        graph, names = random_stitch(seed)
        for group in groups(graph, keep_together=names):
            yield group, cpu()


def test_templates_round_trip() -> None:
    """A candidate's template plans to a schedule that has this template."""
    count = 0
    for group, target in cases():
        candidates = candidates_of(group, target)
        assert 1 <= len(candidates) <= cpu().tiling.candidates
        assert len({c.template for c in candidates}) == len(candidates)
        for candidate in candidates:
            again = plan_group(group, target, parse_template(str(candidate.template)))
            assert isinstance(again, Schedule), (group, str(candidate.template), again)
            assert again.source is Source.USER
            assert template_of(group, again, target) == candidate.template
            count += 1
    assert count > 400


ATTRS = (
    "GRID",
    "WARP",
    "CTA",
    "THREAD",
    "GRID_2",
    "GRID_/3",
    "GRID_~64",
    "GRID_4-CTA_8",
    "GRID_/16-WARP_16",
    "GRID_/16-CTA_16",
    "GRID_2-THREAD_9",
    "WARP_2-CTA_4",
    "GRID_99999",
)


def test_random_templates_are_applied_or_refused() -> None:
    """A random template has a schedule that it describes, or is refused."""
    rng = random.Random(0)
    applied = refused = 0
    for group, target in cases():
        values = list(candidates_of(group, target)[0].template.values)
        for _ in range(12):
            k = rng.randrange(len(values))
            attrs = ",".join(rng.choice(ATTRS) for _ in values[k].attrs)
            text = f"{values[k].name}[{attrs}]{'S' if values[k].shared else ''};"
            template = " ".join(text if j == k else str(v) for j, v in enumerate(values))
            try:
                plan = plan_group(group, target, parse_template(template))
            except ScheduleError:
                refused += 1
                continue
            if isinstance(plan, Diagnostic):
                refused += 1
                continue
            applied += 1
            again = plan_group(group, target, template_of(group, plan, target))
            assert again == plan, (template, str(template_of(group, plan, target)))
    assert applied > 100 and refused > 100


# The block of each element: the block interpreter against templates.


def values_of_group(group: Group, schedule: Schedule, target: Target) -> list[ValueLoops]:
    """Return the values that the templates of a group name, with their loops."""
    leaves = leaf_schedules(group, schedule, value_names(group))
    return [v for names, g, s in leaves for v in values_of(g, s, target, names).values()]


def owners_by_template(template: ValueTemplate, value: ValueLoops) -> np.ndarray:
    """Return the number of the block of each element of a result by its template."""
    shape = tuple(int(n) for n in value.result_shape)
    indices = np.indices(shape).reshape(len(shape), -1)
    block = np.zeros(indices.shape[1], np.int64)
    for d in value.unreduced:
        part, extent = template.part(d, Level.GRID), value.extents[d]
        assert isinstance(extent, int)
        if part is not None:
            index = indices[value.result_loops.index(d)]
            block = block * (extent + 1) + index // int(part.steps(extent))
    return block


def owners_by_interpreter(kernel: Kernel) -> dict[str, np.ndarray]:
    """Return the tile that stored each element of each result."""
    rng = np.random.default_rng(0)
    sizes = [evaluate(n, {}) for n in kernel.sizes]
    arrays = [
        rng.random(int(b.extent)).astype(b.dtype.numpy)  # type: ignore[arg-type]
        for b in kernel.ast.params
    ]
    run = _KernelRun(
        kernel.ast, arrays, dict(zip(kernel.ast.sizes, sizes, strict=True)), kernel.name, True, 0
    )
    run.run()
    return {m.buffer.name: m.region.stores.tile for m in run.params if m.buffer.written}


OWNED = (
    "x: f32[50000]; return exp(x)",
    "x: f32[99, 51]; y: f32[99, 1]; return add(x, y)",
    "x: f32[99, 51]; return transpose(x)",
    "x: f32[4, 20, 9, 40]; return transpose(x, axes=(0, 3, 1, 2))",
    "x: f32[600, 3]; b: f32[3]; return mul(x, b)",
    SOFTMAX.format("99, 70", 1),
    SOFTMAX.format("99, 300", 1),
    "x: f32[40, 999]; return reduce_max(x, axis=0)",
    "x: f32[5, 30, 90]; r = reduce_sum(x, axis=1); return r, exp(r)",
    "x: f32[300, 7]; y: f32[300, 1]; z = mul(x, y); return z, reduce_sum(z, axis=1)",
)


@pytest.mark.parametrize("text", OWNED)
def test_tiles_have_the_elements_of_templates(text: str) -> None:
    """Two elements of a result are stored by one tile if and only if the template has one block."""
    graph = pk.parse(text)
    ((node, group),) = planned(graph, "Fusion").attrs["subgraph"].items()
    seen = set()
    for candidate in candidates_of(group, cpu()):
        plan = planned(graph, "CodeGen", templates={node.name: candidate.template})
        (kernel,) = plan.attrs["kernel"].values()
        marks = owners_by_interpreter(kernel)
        loops = {v.name: v for v in values_of_group(group, candidate.schedule, cpu())}
        outputs = [v for v in candidate.template.values if loops[v.name].is_output]
        assert len(outputs) == len(marks)
        for template in outputs:
            blocks = owners_by_template(template, loops[template.name])
            assert any(_same_blocks(blocks, m) for m in marks.values()), (str(template), text)
        seen.add((kernel.source, kernel.sizes, kernel.grid))
    assert len(seen) == len(candidates_of(group, cpu())) > 1


def _same_blocks(a: np.ndarray, b: np.ndarray) -> bool:
    if a.shape != b.shape:
        return False
    pairs = np.unique(np.stack([a, b]), axis=1).shape[1]
    return pairs == len(np.unique(a)) == len(np.unique(b))


def test_attention_under_all_its_templates() -> None:
    """A multi-nest kernel has equal results under all its templates."""
    q, k, v = (pk.var(name, (2, 33, 8)) for name in "qkv")
    graph = pk.Graph([pk.ops.softmax(pk.ops.matmul(q, k, transpose_b=True) * 0.3) @ v])
    names = [[n for node, n in graph.names.items() if node.op is not None]]
    rng = np.random.default_rng(0)
    feeds = {n: rng.standard_normal((2, 33, 8)).astype(np.float32) for n in "qkv"}
    (expected,) = pk.interpret(graph, feeds)
    ranked = pk.templates(graph, keep_together=names)[0]
    texts = [ranked.template, *(str(o.template) for o in ranked.others)]
    tiles = set()
    for text in texts[:8]:
        for target in ("blocks", "cpu"):
            run = pk.compile(
                graph, target=target, keep_together=names, templates={ranked.name: text}
            )
            np.testing.assert_allclose(run(feeds)[0], expected, rtol=2e-5, atol=1e-6)
        tiles.add(run.kernels[0].grid)
    assert len(texts) > 4 and len(tiles) > 2


def test_rows_on_both_sides_of_a_reduction() -> None:
    """Staged values have the blocks of the reductions beside them."""
    graph = pk.Graph([pk.ops.softmax(pk.var("x", (2, 5, 700)), axis=1)])
    x = np.random.default_rng(0).standard_normal((2, 5, 700)).astype(np.float32)
    (expected,) = pk.interpret(graph, {"x": x})
    ranked = pk.templates(graph)[0]
    texts = [ranked.template, *(str(o.template) for o in ranked.others)]
    for text in texts:
        assert "exp_1[GRID,THREAD," in text
        for target in ("blocks", "cpu"):
            run = pk.compile(graph, target=target, templates={ranked.name: text})
            np.testing.assert_allclose(run(x=x)[0], expected, rtol=1e-5, atol=1e-7)
    assert len(texts) > 2
    wrong = re.sub(r"exp_1\[GRID,THREAD,[^]]*\]", "exp_1[GRID,GRID,CTA]", texts[0])
    with pytest.raises(ScheduleError, match="exp_1: loop 1 is reduced and cannot be GRID; a block"):
        pk.compile(graph, templates={ranked.name: wrong})


def test_derived_outputs() -> None:
    """An output that only moves a value has no loops of its own."""
    q, k, v = (pk.var(name, (2, 3, 17, 8)) for name in "qkv")
    heads = pk.ops.softmax(pk.ops.matmul(q, k, transpose_b=True)) @ v
    graph = pk.Graph([pk.ops.reshape(pk.ops.transpose(heads, (0, 2, 1, 3)), shape=(2, 17, 24))])
    names = [[n for node, n in graph.names.items() if node.op is not None]]
    rng = np.random.default_rng(0)
    feeds = {n: rng.standard_normal((2, 3, 17, 8)).astype(np.float32) for n in "qkv"}
    (expected,) = pk.interpret(graph, feeds)
    ranked = pk.templates(graph, keep_together=names)[0]
    texts = [ranked.template, *(str(o.template) for o in ranked.others)]

    assert "reshape" not in texts[0] and any("reshape" in text for text in texts)
    for text in texts[:6]:
        run = pk.compile(graph, target="blocks", keep_together=names, templates={ranked.name: text})
        np.testing.assert_allclose(run(feeds)[0], expected, rtol=2e-5, atol=1e-6)


def test_a_packed_group_with_two_values_of_one_operator() -> None:
    """The names of values in a part of a packed group are those of the group."""
    assert check(subject(744))[2] == []


def test_templates_of_phases_may_leave_out_recomputed_values() -> None:
    """A template need not name values that a multi-nest phase computes again."""
    graph = pk.parse(
        "x: f32[33, 2, 33]; y: f32[33, 33, 2]; z: f32[33, 33, 33]; s = sub(x, x);"
        "t = tanh(matmul(s, y)); u = tanh(matmul(s, z, transpose_b=true));"
        "m = neg(reduce_max(u, axis=(0, 1, 2))); f = sigmoid(flip(s, axis=0));"
        "return f, reshape(t, shape=(-1,)), transpose(t, axes=(0, 2, 1)), m, u"
    )
    names = [[graph.names[n] for n in graph.nodes if n.op is not None]]
    candidates = candidates_by_group(
        planned(graph, "Fusion", keep_together=names), keep_together=names
    )
    ((name, own),) = candidates.items()
    named = [{s.name for s in v.template.values} for v in own]

    assert any(others < named[0] for others in named)
    for candidate in own:
        templates = {name: candidate.template}
        plan = planned(graph, "CodeGen", keep_together=names, templates=templates)
        (schedule,) = plan.attrs["schedule"].values()
        (group,) = plan.attrs["subgraph"].values()
        assert template_of(group, schedule, cpu()) == candidate.template


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, 7])
def test_random_groups_under_all_their_templates(first: int) -> None:
    """C++ and the block interpreter agree with NumPy for all templates.

    A graph has several groups. `benchmarks/fuzz_templates.py` checks thousands.
    """
    subjects = [subject(seed) for seed in range(first, first + 7)]
    plans = native_plans(subjects)
    results = [check(one, ready=own) for one, own in zip(subjects, plans, strict=True)]
    faults = [fault for _, _, several in results for fault in several]

    assert not faults, "\n\n".join(faults[:3])
    assert sum(groups for groups, _, _ in results) >= 15


def test_planted_bugs_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test finds kernels with missing tiles, and templates with equal kernels."""
    graph = pk.parse("x: f32[64, 300]; return reduce_sum(exp(x), axis=1)")
    rng = np.random.default_rng(0)
    feeds = {"x": rng.standard_normal((64, 300)).astype(np.float32)}

    def judge(run: Any) -> None:
        np.testing.assert_allclose(run(feeds)[0], np.exp(feeds["x"]).sum(1), rtol=1e-5)

    one = Subject(0, graph, {}, {"target": "blocks"}, judge)
    assert check(one)[2] == []
    codegen._kernel.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(loops, "_ceil", lambda a, b: a // b)
        faults = check(one)[2]
    codegen._kernel.cache_clear()
    assert any("BlocksError" in fault for fault in faults)
    with monkeypatch.context() as patch:
        patch.setattr("tests.template_cases.overrides", lambda c: [*overrides(c)][:1] * 2)
        assert "has one kernel for" in check(one)[2][0]


def test_sizes_that_are_related_otherwise() -> None:
    """A kernel that is planned again for a call has templates of its own."""
    graph = pk.parse("x: f32[?, 8]; y: f32[?, 8]; s = add(x, y); return s")
    run = pk.compile(graph, templates={"s": "add_1[GRID_/16-CTA_16];"})
    x, y = np.ones((5, 8), np.float32), np.ones((1, 8), np.float32)

    assert run(x=x, y=x)[0].sum() == run(x=x, y=y)[0].sum() == 80
    assert "add_1[GRID_/16-CTA_16];" in str(pk.templates(run.graph))


# Templates without a kernel.


@pytest.mark.parametrize(
    "text, template, message",
    [
        (SOFTMAX.format("99, 300", 1), "x_1[CTA];", "the group has no value 'x_1' with loops"),
        (
            "x: f32[9, 300]; return reduce_sum(exp(x), axis=1)",
            "reduce_sum_1[CTA,WARP];",
            r"has reduce_sum_1\[CTA,WARP\]; here; one like it has reduce_sum_1\[WARP,CTA\];",
        ),
        (
            "x: f32[9, 300]; return reduce_sum(exp(x), axis=1)",
            "reduce_sum_1[GRID_3-WARP_2,CTA];",
            r"has reduce_sum_1\[GRID_3-WARP_2,CTA\]; here; one like it has .*GRID_3-WARP_3,CTA\]",
        ),
        (
            "x: f32[9, 300]; return reduce_sum(exp(x), axis=1)",
            "reduce_sum_1[CTA,THREAD];",
            r"no kernel of it has reduce_sum_1\[CTA,THREAD\];",
        ),
        (
            "x: f32[99, 300]; return reduce_max(x, axis=0)",
            "reduce_max_1[THREAD,GRID_2-CTA_100];",
            r"one like it has reduce_max_1\[THREAD,GRID_2-CTA_150\];",
        ),
        (
            "x: f32[99, n]; return reduce_max(x, axis=0)",
            "reduce_max_1[THREAD,CTA];",
            "a tile of n lanes has no known size; write GRID_/N",
        ),
        (
            SOFTMAX.format("9999, 200", 1),
            (
                "reduce_max_1[GRID_3-CTA_3333,THREAD]S; exp_1[GRID_3-CTA_3333,CTA]S; "
                "reduce_sum_1[GRID_3-CTA_3333,THREAD]S; div_1[GRID_3-CTA_3333,CTA];"
            ),
            "a tile needs [0-9]+ bytes of scratch, and there are [0-9]+; give blocks fewer rows",
        ),
    ],
)
def test_templates_without_a_kernel(text: str, template: str, message: str) -> None:
    """The error names the template and the nearest possible one."""
    (name,) = [n.name for n in planned(pk.parse(text), "Fusion").attrs["subgraph"]]
    with pytest.raises(ScheduleError, match=message):
        planned(pk.parse(text), "SchedulePlan", templates={name: template})


@pytest.mark.parametrize("launch, shown", [({"cta_num": 7}, "cta_num 7"), ({"cta_size": 64}, "64")])
def test_launches_are_those_of_the_target(launch: dict[str, int], shown: str) -> None:
    """A template cannot change the number of blocks, nor their threads."""
    group = group_of("x: f32[999]; return exp(x)")
    template = evolve(parse_template("exp_1[GRID_4-CTA_250];"), **launch)

    with pytest.raises(ScheduleError, match=f"of 256 threads; got .*{shown}"):
        plan_group(group, cpu(), template)


def test_tiles_of_results_must_agree() -> None:
    """The outputs of a multi-nest kernel need equal numbers of tiles."""
    x, w = pk.var("x", (8, 16, 4)), pk.var("w", (8, 4, 16))
    y = x @ w
    graph = pk.Graph([pk.ops.tanh(y), pk.ops.reduce_sum(pk.ops.exp(y), axis=2)])
    names = [[n for node, n in graph.names.items() if node.op is not None]]
    ranked = pk.templates(graph, keep_together=names)[0]
    stages = parse_template(ranked.template).values
    text = " ".join(
        str(s) if not s.name.startswith("reduce") else "reduce_sum_1[GRID,GRID,CTA];"
        for s in stages
    )

    with pytest.raises(ScheduleError, match="tanh has 8 blocks, reduce_sum has 128"):
        planned(graph, "SchedulePlan", keep_together=names, templates={ranked.name: text})


def test_the_template_of_the_default() -> None:
    """The template of the default schedule gives this schedule, with another source."""
    group = group_of(SOFTMAX.format("99, 300", 1))
    plan = plan_group(group, cpu())
    assert isinstance(plan, Schedule)

    again = plan_group(group, cpu(), template_of(group, plan, cpu()))

    assert again == evolve(plan, source=Source.USER)


@pytest.mark.parametrize(
    "attrs",
    [
        "GRID_/64-WARP_64,CTA",
        "GRID_~4096,CTA",
        "GRID_/64-THREAD_64,GRID_/512-CTA_512",
    ],
)
def test_compositions_for_unknown_sizes(attrs: str) -> None:
    """A composition that needs no number is used if the tile size is unknown."""
    group = group_of("x: f32[m, n]; return transpose(x)")
    template = parse_template(f"transpose_1[{attrs}];")

    plan = plan_group(group, cpu(), template)

    assert isinstance(plan, Schedule) and template_of(group, plan, cpu()) == template


def test_equal_templates_of_different_texts() -> None:
    """Templates with equal distributions have one schedule."""
    group = group_of("x: f32[1000, 300]; return reduce_sum(x, axis=1)")
    plans = {
        plan_group(group, cpu(), parse_template(f"reduce_sum_1[{attrs}];"))
        for attrs in (
            "GRID_10-WARP_100,CTA",
            "GRID_/100,CTA",
            "GRID_10,CTA",
            "GRID_/100-WARP_200,CTA",
            "GRID_~30000,CTA",
            "GRID_10-WARP_100,CTA_300",
        )
    }

    assert len(plans) == 1 and not isinstance(plans.pop(), Diagnostic)


def test_templates_of_packed_groups() -> None:
    """A template of a packed group has the values of all parts."""
    x, y = pk.var("x", (99, 7)), pk.var("y", (40, 300))
    graph = pk.Graph([pk.ops.reduce_sum(x, axis=1), pk.ops.reduce_sum(y, axis=1)])
    names = [[n for node, n in graph.names.items() if node.op is not None]]
    ranked = pk.templates(graph, keep_together=names)[0]
    first, second = parse_template(ranked.template).values
    changed = parse_template(f"{first} {second.name}[GRID_20-WARP_2,CTA];")

    plan = planned(graph, "SchedulePlan", keep_together=names, templates={ranked.name: changed})

    ((node, group),) = plan.attrs["subgraph"].items()
    assert template_of(group, plan.attrs["schedule"][node], cpu()) == changed
    assert ranked.composition == "packed"


def test_outputs_have_loops() -> None:
    """Each output has loops with as many elements."""
    for group, target in list(cases())[::7]:
        plan = plan_group(group, target)
        assert isinstance(plan, Schedule)
        sizes = [numel(n.result_shape) for n in values_of_group(group, plan, target) if n.is_output]
        results = {e.node: numel(known_shape(e)) for e in group.graph.outputs}
        assert sorted(map(str, sizes)) == sorted(map(str, results.values()))
