"""Selection: fusion="stitch" joins or splits greedy groups where that gains time, with reasons."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.analysis.group import Group
from passkit.fusion.cluster_groups import ClusterGroups
from passkit.fusion.contract import contract, extract
from passkit.fusion.explore import Explorer
from passkit.fusion.score import Costs, Scorer, modelled
from passkit.fusion.seed import seed_plan
from passkit.fusion.select import selected
from passkit.fusion.selection.exact import exact
from passkit.fusion.selection.exact import greedy as by_gain
from passkit.library.evaluator import Evaluator, Record
from passkit.passes.context import PassContext
from passkit.planner.plan import plan_group
from passkit.planner.typical_sizes import typical
from passkit.program.planning import DEFAULT_PIPELINE
from passkit.reporting.statistics import statistics
from passkit.schedule.cost import schedule_cost
from passkit.schedule.schedule import Source
from passkit.schedule.template_of import template_of
from passkit.target import Target, cpu, target_of
from passkit.values.units import bytes_text, seconds_text
from tests.fusion.beam_search import beam
from tests.fusion.test_selection import best
from tests.planned import agrees, feeds_of

pytestmark = pytest.mark.usefixtures("quick_kernels")

o = pk.ops
BEFORE = DEFAULT_PIPELINE[: DEFAULT_PIPELINE.index("Fusion")]
SOFTMAX = "mul add reduce_max sub exp reduce_sum div"


def attention(heads: int | str, rows: int, width: int) -> pk.Graph:
    """Return attention in primitive operators, with a mask."""
    q, k, v = (pk.var(n, (heads, rows, width)) for n in "qkv")
    s = o.matmul(q, k, transpose_b=True) * width**-0.5 + pk.var("mask", (rows, rows))
    e = o.exp(s - o.reduce_max(s, axis=-1, keepdims=True))
    return pk.Graph([o.matmul(e / o.reduce_sum(e, axis=-1, keepdims=True), v)])


def fused(graph: pk.Graph, **options: Any) -> pk.Graph:
    """Return the graph after Fusion."""
    return pk.ApplyPasses(graph, [*BEFORE, "Fusion"], **options)


def analysed(graph: pk.Graph) -> pk.Graph:
    """Return the graph after the passes before Fusion, with shapes and dtypes."""
    return pk.ApplyPasses(graph, [*BEFORE, "Complete", "InferShape", "InferType"])


def kernels(graph: pk.Graph) -> list[str]:
    """Return the operators of each group, as text."""
    return [" ".join(n.op.name for n in g.ops) for g in graph.attrs["subgraph"].values()]


def test_attention_is_one_kernel_by_itself() -> None:
    """The selection joins both products with the softmax between them, and results are right."""
    graph = attention(64, 94, 32)
    exe = pk.compile(graph)
    chosen = exe.graph.attrs["selection"]
    feeds = feeds_of(graph, np.random.default_rng(0))

    assert kernels(exe.graph) == [f"matmul {SOFTMAX} matmul"] and len(exe.steps) == 1
    assert (chosen.chosen, chosen.units, chosen.gap) == (1, 3, 0) and chosen.pool > 1
    assert chosen.after < 0.9 * chosen.before
    agrees(graph, feeds, exe(feeds))


def test_small_products_are_library_calls() -> None:
    """For 17 rows one kernel would take longer; the explanation has the difference."""
    planned = fused(attention(4, 17, 32))
    (d,) = pk.explain(planned).why("matmul", "mul")

    assert kernels(planned) == [SOFTMAX] and planned.attrs["selection"].chosen == 0
    assert (d.code, d.fused) == ("cost.slower", False)
    assert d.data["loss"] > 0 and seconds_text(d.data["loss"]) in d.reason
    assert d.way_out == "keep_together=[['matmul', 'mul']]"


def masked(rows: int) -> pk.Graph:
    """Return a softmax with a mask, whose rows of 17 cannot be reduced in vector lanes."""
    x = pk.var("x", (rows, 17, 17)) * 0.3 + pk.var("mask", (17, 17))
    e = o.exp(x - o.reduce_max(x, axis=-1, keepdims=True))
    return pk.Graph([e / o.reduce_sum(e, axis=-1, keepdims=True)])


def test_groups_are_split_where_that_gains_time() -> None:
    """A split has its gain as reason; small gains and `keep_together` prevent it."""
    planned = fused(masked(64))
    (d,) = {d.code: d for d in pk.explain(planned).apart}.values()
    named = [n for n in planned.nodes if n.op is not None and n.op.name == "fused"]

    assert sorted(kernels(planned)) == ["mul add", SOFTMAX.removeprefix("mul add ")]
    assert len(named) == 2
    assert (d.producer, d.code) == ("add", "cost.slower") and d.data["loss"] > 0
    assert f"would take {seconds_text(d.data['loss'])} more than" in d.reason
    assert d.way_out == f"keep_together=[['add', {d.consumer!r}]]"
    for graph, options in ((masked(2), {}), (masked(64), {"keep_together": [["add", "sub"]]})):
        assert kernels(fused(graph, **options)) == [SOFTMAX]


def refused() -> list[tuple[str, pk.Graph]]:
    """Return codes of reasons, and graphs in which they prevent a kernel that saves memory."""
    q, k = pk.var("q", (64, 94, 32)), pk.var("k", (64, 32, 94))
    p = pk.state("p", np.zeros((64, 94, 94), "float32"))
    x = pk.var("x", (4, 16, 256, 256))
    return [
        ("graph.state_hazard", pk.Graph([o.assign(p, p - o.matmul(q, k) * 0.1)])),
        ("domain.scan_nests", pk.Graph([o.matmul(o.cumsum(q * 2.0, axis=1), k)])),
        ("cost.transposed", pk.Graph([o.exp(o.transpose(o.exp(x) + 1, axes=(0, 1, 3, 2))) + 1])),
    ]


@pytest.mark.parametrize("code, graph", refused())
def test_hazards_scans_and_transposes_are_not_joined(code: str, graph: pk.Graph) -> None:
    """Products with updates in place, scans or transposes around them are not joined."""
    planned = fused(graph)

    assert code in {d.diagnostic.causes[-1].code for d in pk.explain(planned).apart}
    assert planned.attrs["selection"].chosen == 0


@pytest.mark.parametrize(
    "options, expected",
    [
        ({"fuel": 0}, []),
        ({"keep_apart": [["div", "matmul_1"]]}, [f"matmul {SOFTMAX}"]),
        ({"no_fuse": ["matmul"]}, [f"{SOFTMAX} matmul"]),
        ({"no_fuse": ["matmul", "matmul_1"]}, [SOFTMAX]),
        ({"keep_together": [["mul", "div"]]}, [SOFTMAX]),
    ],
)
def test_selection_obeys_hints_and_fuel(options: dict[str, Any], expected: list[str]) -> None:
    """Operators in hints are not joined, and without fuel none are."""
    groups = kernels(fused(attention(64, 94, 32), **options))

    assert [k for k in groups if " " in k] == expected


def side_by_side() -> pk.Graph:
    """Return three steps of a recurrent network, whose product reads an input and the state."""
    x, w = pk.var("x", (64, 3, 16)), pk.var("w", (80, 64))
    h = pk.var("h", (64, 64))
    for t in range(3):
        h = o.tanh(o.matmul(o.concat(x[:, t], h, axis=1), w)) * o.sigmoid(h)
    return pk.Graph([h])


def test_concatenations_join_the_kernel_of_their_operand() -> None:
    """A concatenation after a recurrent cell is in the cell's kernel, and results are right."""
    graph = side_by_side()
    groups = kernels(fused(graph))

    assert sum("tanh" in k for k in groups) == 3 and len(groups) == 4
    assert sum("tanh" in k and "concat" in k for k in groups) == 2
    joined = next(
        g
        for g in fused(graph).attrs["subgraph"].values()
        if {"tanh", "concat"} <= {n.op.name for n in g.ops}
    )
    plan = plan_group(joined, cpu())
    assert plan.multi_nest is not None and modelled(joined, cpu()) < 0.3 * plan.seconds
    feeds = feeds_of(graph, np.random.default_rng(0))
    agrees(graph, feeds, pk.compile(graph)(feeds), rtol=1e-4)


def test_unknown_sizes_are_chosen_by_typical_ones() -> None:
    """Attention over an unknown batch is one kernel, whose results are right at every size."""
    graph = attention("n", 94, 32)
    planned = fused(graph)

    assert len(kernels(planned)) == 1 and planned.attrs["selection"].chosen == 1
    exe = pk.compile(graph)
    for n in (1, 0, 7, 33):
        feeds = feeds_of(graph, np.random.default_rng(n), n=n)
        agrees(graph, feeds, exe(feeds), rtol=1e-4)


def test_unknown_sizes_have_typical_values() -> None:
    """A group of unknown sizes gets typical ones; None if no typical sizes fit its operators."""
    x = pk.var("x", ("n", 6))
    (group,) = fused(pk.Graph([o.exp(x)])).attrs["subgraph"].values()
    (sized,) = fused(pk.Graph([o.exp(pk.var("x", (4, 6)))])).attrs["subgraph"].values()
    odd = pk.parse("x: f32[n, 3]; y = reshape(x, shape=(-1, 5)); return exp(y)")
    (never,) = fused(odd).attrs["subgraph"].values()
    sized_group = typical(group)

    assert sized_group is not None and sized_group.graph.outputs[0].shape == (128, 6)
    assert typical(sized) is sized and typical(never) is None


def measured(group: Group, factor: float) -> Record:
    """Return a measurement of a group: ``factor`` times the seconds of the cost model."""
    plan = plan_group(group, cpu())
    model = schedule_cost(group, plan, cpu())
    text = str(template_of(group, plan, cpu()))
    samples = (factor * model,) * 5
    return Record(group.key, text, (), Source.MEASURED, samples, model)


def test_measurements_overrule_the_model() -> None:
    """A kernel that was measured as slow is not chosen; one measured as fast is."""
    graph = attention(64, 94, 32)
    (joined,) = fused(graph).attrs["subgraph"].values()
    apart = [
        *fused(graph, evaluator="model", keep_apart=[["matmul", "matmul_1"]])
        .attrs["subgraph"]
        .values()
    ]
    others = [fused(attention(64, n, 32)).attrs["subgraph"] for n in (90, 88, 86)]
    usual = [measured(g, 1.0) for groups in others for g in groups.values()]

    assert apart and usual
    for factor, count in ((0.8, 1), (1.0, 1), (5.0, 0)):
        evaluator = Evaluator([*usual, measured(joined, factor)])
        groups = fused(graph, evaluator=evaluator).attrs["subgraph"].values()
        assert sum(g.key == joined.key for g in groups) == count
        assert joined.key in evaluator.used_groups


GPU = target_of("cuda")
"""A target with the numbers of an H100."""


def test_selection_on_a_gpu_leaves_products_to_the_library() -> None:
    """Products are library calls, and the operators between them are as few kernels as possible."""
    graph = side_by_side()
    groups = kernels(fused(graph, target=GPU))

    assert len(groups) == 4 and not any("matmul" in k for k in groups)
    assert len(kernels(fused(graph, target=evolve(GPU, costed=False)))) > 4
    blocks = evolve(GPU, name="blocks", dialect="opencl", nests=False)
    feeds = feeds_of(graph, np.random.default_rng(0))
    agrees(graph, feeds, pk.compile(graph, target=blocks)(feeds), rtol=1e-4)


def kept(width: int) -> pk.Graph:
    """Return a product of a wide operand, whose result waits for another wide computation."""
    x, z = pk.var("x", (8, 32, width)), pk.var("z", (8, 32, width))
    y = o.matmul(o.cumsum(x, axis=1), pk.var("w", (8, width, 4)))
    later = o.reduce_sum(o.cumsum(o.cumsum(z, axis=1), axis=2), axis=2, keepdims=True)
    return pk.Graph([o.tanh(y + o.cumsum(later, axis=1))])


def test_kernels_that_raise_the_peak_of_memory_are_worth_less() -> None:
    """A kernel that saves time is not chosen if it raises the peak of memory beyond the caches.

    The estimated peak equals that of planned storage, and explanations contain it.
    """
    slow = evolve(cpu(), launch=1e-4, bandwidth=2e8, meeting=0.0)
    planned, arenas, room = {}, {}, 300 << 10
    for weight in (0.0, 2.0):
        target = evolve(slow, machine=evolve(slow.machine, llc_bytes=room, peak_byte_weight=weight))
        planned[weight] = fused(kept(256), target=target)
        storage = pk.ApplyPasses(planned[weight], "PlanMemory").attrs["storage"]
        arenas[weight] = storage.bind({})[1]

    free, dear = (planned[w].attrs["selection"] for w in (0.0, 2.0))
    assert (free.chosen, dear.chosen) == (1, 0)
    assert "matmul add tanh" in kernels(planned[0.0]) and "add tanh" in kernels(planned[2.0])
    assert free.peaks[0] == dear.peaks[0] == dear.peaks[1]
    for (_, after), arena in ((free.peaks, arenas[0.0]), (dear.peaks, arenas[2.0])):
        assert after == pytest.approx(arena, rel=0.02)
    wide = 8 * 32 * 256 * 4
    assert free.peaks[1] - free.peaks[0] == pytest.approx(wide, rel=0.05)
    assert f"{bytes_text(free.peaks[0])} between kernels become {bytes_text(free.peaks[1])}" in str(
        free
    )
    text = str(statistics(kept(256), target=target))
    assert "memory between kernels" in text and bytes_text(dear.peaks[1]) in text
    (d,) = pk.explain(planned[2.0]).why("matmul", "add")
    assert d.code == "cost.slower" and d.data["grown"] == free.peaks[1] - room
    assert f"{bytes_text(d.data['grown'])} more memory at the peak" in d.reason


def test_other_strategies_and_unmeasured_devices_select_nothing() -> None:
    """There is no selection with other strategies, or on devices without a cost model."""
    graph = attention(64, 94, 32)

    assert fused(graph, fusion="deep").attrs["selection"] is None
    assert fused(graph, target="opencl").attrs["selection"] is None


SLOW = evolve(cpu(), launch=1e-4, bandwidth=1e6, meeting=0.0)
"""A target on which launches and memory are so slow that every fusion gains time."""


def priced(seed: int) -> Any:
    """Return an evaluator that multiplies the model's seconds of each group by a random factor."""

    def seconds(group: Group, target: Target) -> float:
        draw = random.Random(f"{seed} {group.key}")
        return modelled(group, target) * draw.choice((0.3, 1.0, 3.0))

    return seconds


def layers(seed: int) -> pk.Graph:
    """Return a chain of products with elementwise operators, with a random second output."""
    draw = random.Random(seed)
    values = [pk.var("x", (32, 16))]
    for k in range(5):
        y = o.matmul(values[-1], pk.var(f"w{k}", (16, 16)))
        values.append(o.tanh(y + draw.choice(values)) if draw.random() < 0.8 else y)
    return pk.Graph([values[-1], *draw.sample(values[1:-1], 1)])


def test_a_selection_is_never_slower_than_the_start() -> None:
    """With random costs, exact selections are optimal, and no worse than greedy ones and beams.

    Graphs are contracted without cycles, and each pattern that lost names those chosen instead.
    """
    joined = crossing = strict = 0
    lost = []
    for seed in range(6):
        graph = analysed(layers(seed))
        with PassContext(target=SLOW) as context:
            start = seed_plan(graph, context)
            clusters = ClusterGroups(graph, start, context)
            explorer = Explorer(clusters, Scorer(SLOW, Costs(priced(seed)), 200))
            problem = explorer.run()
            optimum, other = exact(problem, 12), max(by_gain(problem).gain, beam(problem).gain)
            partition, chosen = selected(graph, start, context, Costs(priced(seed)))

        assert chosen is not None and chosen.after <= chosen.before
        assert other <= optimum.gain + 1e-12
        if len(problem.patterns) <= 10:
            assert optimum.gain == pytest.approx(best(problem))
        contract(graph, partition)
        joined += chosen.chosen
        crossing += optimum.rows > 0
        strict += by_gain(problem).gain < optimum.gain - 1e-12
        lost += [d for d in partition.log if d.code == "cost.others"]

    assert joined > 5 and crossing > 3 and strict > 0
    for d in lost[:3]:
        assert d.data["winners"] in d.reason and d.data["winners_gain"] > 0 and not d.fused
        assert seconds_text(d.data["gain"]) in d.reason
    assert lost


def test_equivalent_units_share_a_group() -> None:
    """Equivalent units of layers share one group, equal to the group of each by itself."""
    shared_groups: set[Group] = set()
    met = 0
    repeated = [attention(4, 17, 32), pk.Graph([o.tanh(side_by_side().outputs[0])])]
    for graph in map(analysed, [*repeated, *map(layers, range(20)), scaled(40)]):
        with PassContext() as context:
            clusters = ClusterGroups(graph, seed_plan(graph, context), context)
        units = clusters.quotient
        for k in range(len(clusters)):
            for other in sorted(units.successors[k]):
                members = {k, other} | units.between({k, other})
                own_group, _ = extract(units, members)
                group = clusters.group(members)
                assert group.key == own_group.key
                shared_groups.add(group)
                met += 1
    assert met > 2 * len(shared_groups)


def scaled(count: int) -> pk.Graph:
    """Layers with what broadcasts repeat in them."""
    x = pk.var("x", (16, 32))
    for k in range(count):
        d = x - o.reduce_mean(x, axis=-1, keepdims=True)
        y = d * o.rsqrt(o.reduce_mean(d * d, axis=-1, keepdims=True)) * pk.var(f"g{k}", (32,))
        x = x + o.tanh(o.matmul(y, pk.var(f"w{k}", (32, 32))) + pk.var(f"b{k}", (32,)))
    return pk.Graph([x])


def test_plans_do_not_depend_on_names() -> None:
    """The same graph under other names has the same kernels."""
    one, other = (fused(attention(64, 94, 32)) for _ in range(2))

    assert [g.key for g in one.attrs["subgraph"].values()] == [
        g.key for g in other.attrs["subgraph"].values()
    ]
