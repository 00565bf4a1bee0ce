"""Selection: what fusion="stitch" makes of greedy's groups, and what it says about the rest."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.passes.context import PassContext
from passkit.passes.fusion.board import Board
from passkit.passes.fusion.contract import contract
from passkit.passes.fusion.explore import Explorer
from passkit.passes.fusion.greedy import greedy
from passkit.passes.fusion.scores import Scorer, modelled
from passkit.passes.fusion.select import selected
from passkit.plan.costs import model_seconds
from passkit.plan.evaluator import Evaluator, Record
from passkit.plan.group import Group
from passkit.plan.planner import plan_group
from passkit.plan.schedule import Source
from passkit.plan.target import Target, cpu, target_of
from passkit.plan.typical import typical
from passkit.program.planning import DEFAULT_PIPELINE
from passkit.reporting.statistics import statistics
from passkit.selection.exact import exact
from passkit.selection.greedy import beam
from passkit.selection.greedy import greedy as by_gain
from passkit.selection.problem import problem_of
from passkit.templating.naming import template_of
from passkit.values.units import bytes_text, seconds_text
from tests.planned import agrees, feeds_of
from tests.selection.test_selection import best

pytestmark = pytest.mark.usefixtures("quick_kernels")

o = pk.ops
BEFORE = DEFAULT_PIPELINE[: DEFAULT_PIPELINE.index("Fusion")]
SOFTMAX = "mul add reduce_max sub exp reduce_sum div"


def attention(heads: int | str, rows: int, width: int) -> pk.Graph:
    """By primitives, with a mask."""
    q, k, v = (pk.var(n, (heads, rows, width)) for n in "qkv")
    s = o.matmul(q, k, transpose_b=True) * width**-0.5 + pk.var("mask", (rows, rows))
    e = o.exp(s - o.reduce_max(s, axis=-1, keepdims=True))
    return pk.Graph([o.matmul(e / o.reduce_sum(e, axis=-1, keepdims=True), v)])


def fused(graph: pk.Graph, **options: Any) -> pk.Graph:
    """The graph after Fusion."""
    return pk.ApplyPasses(graph, [*BEFORE, "Fusion"], **options)


def analysed(graph: pk.Graph) -> pk.Graph:
    """The graph as Fusion gets it."""
    return pk.ApplyPasses(graph, [*BEFORE, "Complete", "InferShape", "InferType"])


def kernels(graph: pk.Graph) -> list[str]:
    """The operators of each group."""
    return [" ".join(n.op.name for n in g.ops) for g in graph.attrs["subgraph"].values()]


def test_attention_is_one_kernel_by_itself() -> None:
    """Greedy leaves both products to a library; the selection takes them in, and it is right."""
    graph = attention(64, 94, 32)
    exe = pk.compile(graph)
    chosen = exe.graph.attrs["selection"]
    feeds = feeds_of(graph, np.random.default_rng(0))

    assert kernels(exe.graph) == [f"matmul {SOFTMAX} matmul"] and len(exe.steps) == 1
    assert (chosen.chosen, chosen.units, chosen.gap) == (1, 3, 0) and chosen.pool > 1
    assert chosen.after < 0.9 * chosen.before
    agrees(graph, feeds, exe(feeds))


def test_what_is_small_is_left_to_the_library() -> None:
    """The same of seventeen rows: one kernel would take longer, and the explanation says so."""
    found = fused(attention(4, 17, 32))
    (d,) = pk.explain(found).why("matmul", "mul")

    assert kernels(found) == [SOFTMAX] and found.attrs["selection"].chosen == 0
    assert (d.code, d.fused) == ("negative_score", False)
    assert d.data["gain"] < 0 and seconds_text(-d.data["gain"]) in d.reason
    assert d.way_out == "keep_together=[['matmul', 'mul']]"


def masked(rows: int) -> pk.Graph:
    """A softmax with a mask: rows of 17 do not fold side by side once a mask is read with them."""
    x = pk.var("x", (rows, 17, 17)) * 0.3 + pk.var("mask", (17, 17))
    e = o.exp(x - o.reduce_max(x, axis=-1, keepdims=True))
    return pk.Graph([e / o.reduce_sum(e, axis=-1, keepdims=True)])


def test_groups_come_apart_that_take_longer_together() -> None:
    """Not where that saves little, or the caller wants it otherwise; and edges say so."""
    found = fused(masked(64))
    (d,) = {d.code: d for d in pk.explain(found).apart}.values()
    named = [n for n in found.nodes if n.op is not None and n.op.name == "fused"]

    assert sorted(kernels(found)) == ["mul add", SOFTMAX.removeprefix("mul add ")]
    assert len(named) == 2
    assert (d.producer, d.code) == ("add", "negative_score") and d.data["gain"] < 0
    assert f"would take {seconds_text(-d.data['gain'])} more than" in d.reason
    assert d.way_out == f"keep_together=[['add', {d.consumer!r}]]"
    for graph, options in ((masked(2), {}), (masked(64), {"keep_together": [["add", "sub"]]})):
        assert kernels(fused(graph, **options)) == [SOFTMAX]


def refused() -> list[tuple[str, pk.Graph]]:
    """Codes, and graphs in which a kernel would save memory and yet had better not be."""
    q, k = pk.var("q", (64, 94, 32)), pk.var("k", (64, 32, 94))
    p = pk.state("p", np.zeros((64, 94, 94), "float32"))
    x = pk.var("x", (4, 16, 256, 256))
    return [
        ("alias_hazard", pk.Graph([o.assign(p, p - o.matmul(q, k) * 0.1)])),
        ("scan", pk.Graph([o.matmul(o.cumsum(q * 2.0, axis=1), k)])),
        ("turned", pk.Graph([o.exp(o.transpose(o.exp(x) + 1, axes=(0, 1, 3, 2))) + 1])),
    ]


@pytest.mark.parametrize("code, graph", refused())
def test_what_had_better_not_be_one(code: str, graph: pk.Graph) -> None:
    """State is updated in place, scans and what is turned have kernels of their own."""
    found = fused(graph)

    assert code in {d.code for d in pk.explain(found).apart}
    assert found.attrs["selection"].chosen == 0


@pytest.mark.parametrize(
    "options, wanted",
    [
        ({"fuel": 0}, []),
        ({"keep_apart": [["div", "matmul_1"]]}, [f"matmul {SOFTMAX}"]),
        ({"no_fuse": ["matmul"]}, [f"{SOFTMAX} matmul"]),
        ({"no_fuse": ["matmul", "matmul_1"]}, [SOFTMAX]),
        ({"keep_together": [["mul", "div"]]}, [SOFTMAX]),
    ],
)
def test_hints_and_fuel(options: dict[str, Any], wanted: list[str]) -> None:
    """What the caller wants apart stays apart; without fuel nothing is joined."""
    made = kernels(fused(attention(64, 94, 32), **options))

    assert [k for k in made if " " in k] == wanted


def side_by_side() -> pk.Graph:
    """Three steps of a recurrent network, whose product takes an input beside what was left."""
    x, w = pk.var("x", (64, 3, 16)), pk.var("w", (80, 64))
    h = pk.var("h", (64, 64))
    for t in range(3):
        h = o.tanh(o.matmul(o.concat(x[:, t], h, axis=1), w)) * o.sigmoid(h)
    return pk.Graph([h])


def test_what_a_cell_leaves_is_put_side_by_side_where_it_is_made() -> None:
    """A concatenation behind a recurrent cell is no kernel of its own, and the results stay."""
    graph = side_by_side()
    found = kernels(fused(graph))

    assert sum("tanh" in k for k in found) == 3 and len(found) == 4
    assert sum("tanh" in k and "concat" in k for k in found) == 2
    joined = next(
        g
        for g in fused(graph).attrs["subgraph"].values()
        if {"tanh", "concat"} <= {n.op.name for n in g.ops}
    )
    plan = plan_group(joined, cpu())
    assert plan.stitching is not None and modelled(joined, cpu()) < 0.3 * plan.seconds
    feeds = feeds_of(graph, np.random.default_rng(0))
    agrees(graph, feeds, pk.compile(graph)(feeds), rtol=1e-4)


def test_unknown_sizes_are_chosen_by_typical_ones() -> None:
    """Attention over an unknown batch is one kernel, right at every extent."""
    graph = attention("n", 94, 32)
    found = fused(graph)

    assert len(kernels(found)) == 1 and found.attrs["selection"].chosen == 1
    exe = pk.compile(graph)
    for n in (1, 0, 7, 33):
        feeds = feeds_of(graph, np.random.default_rng(n), n=n)
        agrees(graph, feeds, exe(feeds), rtol=1e-4)


def test_groups_at_typical_sizes() -> None:
    """A group of unknown sizes has numbers, another is itself; some have no typical size."""
    x = pk.var("x", ("n", 6))
    (group,) = fused(pk.Graph([o.exp(x)])).attrs["subgraph"].values()
    (known,) = fused(pk.Graph([o.exp(pk.var("x", (4, 6)))])).attrs["subgraph"].values()
    odd = pk.parse("x: f32[n, 3]; y = reshape(x, shape=(-1, 5)); return exp(y)")
    (never,) = fused(odd).attrs["subgraph"].values()
    made = typical(group)

    assert made is not None and made.graph.outputs[0].shape == (128, 6)
    assert typical(known) is known and typical(never) is None


def measured(group: Group, factor: float) -> Record:
    """A record of a clock by which a group takes so many times what the model says."""
    plan = plan_group(group, cpu())
    model = model_seconds(group, plan, cpu())
    text = str(template_of(group, plan, cpu()))
    samples = (factor * model,) * 5
    return Record(group.key, text, (), Source.MEASURED, samples, model)


def test_a_clock_overrules_the_model() -> None:
    """A pattern that measurements call slow is not chosen, one that they call quick still is."""
    graph = attention(64, 94, 32)
    (joined,) = fused(graph).attrs["subgraph"].values()
    apart = [
        *fused(graph, evaluator="model", keep_apart=[["matmul", "matmul_1"]])
        .attrs["subgraph"]
        .values()
    ]
    others = [fused(attention(64, n, 32)).attrs["subgraph"] for n in (90, 88, 86)]
    usual = [measured(g, 1.0) for found in others for g in found.values()]

    assert apart and usual
    for factor, count in ((0.8, 1), (1.0, 1), (5.0, 0)):
        evaluator = Evaluator([*usual, measured(joined, factor)])
        found = fused(graph, evaluator=evaluator).attrs["subgraph"].values()
        assert sum(g.key == joined.key for g in found) == count
        assert joined.key in evaluator.asked


GPU = target_of("cuda")
"""With the numbers of an H100."""


def test_a_device_with_numbers_selects() -> None:
    """Its products stay the library's; what stands between them is as few kernels as it can be."""
    graph = side_by_side()
    found = kernels(fused(graph, target=GPU))

    assert len(found) == 4 and not any("matmul" in k for k in found)
    assert len(kernels(fused(graph, target=evolve(GPU, costed=False)))) > 4
    blocks = evolve(GPU, name="blocks")
    feeds = feeds_of(graph, np.random.default_rng(0))
    agrees(graph, feeds, pk.compile(graph, target=blocks)(feeds), rtol=1e-4)


def kept(width: int) -> pk.Graph:
    """A product of something wide, whose result waits for what is made of something as wide."""
    x, z = pk.var("x", (8, 32, width)), pk.var("z", (8, 32, width))
    y = o.matmul(o.cumsum(x, axis=1), pk.var("w", (8, width, 4)))
    later = o.reduce_sum(o.cumsum(o.cumsum(z, axis=1), axis=2), axis=2, keepdims=True)
    return pk.Graph([o.tanh(y + o.cumsum(later, axis=1))])


def test_what_keeps_memory_is_worth_less() -> None:
    """A kernel that saves time but needs what is wide for longer: bytes at the peak decide.

    Those that caches have no room for. They are estimated as storage is planned; explanations and
    the selection's numbers tell them.
    """
    slow = evolve(cpu(), launch=1e-4, bandwidth=2e8, meeting=0.0)
    made, arenas, room = {}, {}, 300 << 10
    for weight in (0.0, 2.0):
        target = evolve(slow, rates=evolve(slow.rates, far=room, kept=weight))
        made[weight] = fused(kept(256), target=target)
        storage = pk.ApplyPasses(made[weight], "PlanMemory").attrs["storage"]
        arenas[weight] = storage.bind({})[1]

    free, dear = (made[w].attrs["selection"] for w in (0.0, 2.0))
    assert (free.chosen, dear.chosen) == (1, 0)
    assert "matmul add tanh" in kernels(made[0.0]) and "add tanh" in kernels(made[2.0])
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
    (d,) = pk.explain(made[2.0]).why("matmul", "add")
    assert d.code == "negative_score" and d.data["peak_nbytes"] == free.peaks[1] - room
    assert f"{bytes_text(d.data['peak_nbytes'])} more memory at the peak" in d.reason


def test_other_strategies_select_nothing() -> None:
    """Nor do devices whose numbers nobody knows."""
    graph = attention(64, 94, 32)

    assert fused(graph, fusion="deep").attrs["selection"] is None
    assert fused(graph, target="opencl").attrs["selection"] is None


SLOW = evolve(cpu(), launch=1e-4, bandwidth=1e6, meeting=0.0)
"""A machine on which kernels begin, and memory moves, so slowly that all fusions pay."""


def priced(seed: int) -> Any:
    """An evaluator that thinks of each group what it likes."""

    def seconds(group: Group, target: Target) -> float:
        draw = random.Random(f"{seed} {group.key}")
        return modelled(group, target) * draw.choice((0.3, 1.0, 3.0))

    return seconds


def layers(seed: int) -> pk.Graph:
    """Products with something between, some of which are results, or are read again."""
    draw = random.Random(seed)
    values = [pk.var("x", (32, 16))]
    for k in range(5):
        y = o.matmul(values[-1], pk.var(f"w{k}", (16, 16)))
        values.append(o.tanh(y + draw.choice(values)) if draw.random() < 0.8 else y)
    return pk.Graph([values[-1], *draw.sample(values[1:-1], 1)])


def test_never_slower_than_the_start_whoever_tells_the_seconds() -> None:
    """Evaluators that like some kernels and not others: selections are as good as any.

    They are exact, no worse than greedy ones and beams; graphs are contracted without cycles; and
    what lost says to whom.
    """
    joined = crossing = strict = 0
    lost = []
    for seed in range(6):
        graph = analysed(layers(seed))
        with PassContext(target=SLOW) as context:
            start = greedy(graph, context)
            board = Board(graph, start, context)
            explorer = Explorer(board, Scorer(SLOW, priced(seed), 200))
            problem = problem_of(board.needs, explorer.run())
            found, other = exact(problem, 12), max(by_gain(problem).gain, beam(problem).gain)
            made, chosen = selected(graph, start, context, priced(seed))

        assert chosen is not None and chosen.after <= chosen.before
        assert other <= found.gain + 1e-12
        if len(problem.patterns) <= 10:
            assert found.gain == pytest.approx(best(problem))
        contract(graph, made)
        joined += chosen.chosen
        crossing += found.rows > 0
        strict += by_gain(problem).gain < found.gain - 1e-12
        lost += [d for d in made.log if d.code == "lost_in_ilp"]

    assert joined > 5 and crossing > 3 and strict > 0
    for d in lost[:3]:
        assert d.data["winner"] in d.reason and d.data["winner_gain"] > 0 and not d.fused
        assert seconds_text(d.data["gain"]) in d.reason
    assert lost


def test_what_is_alike_is_one_group() -> None:
    """Units of layers have the group that they would be by themselves, which is made once."""
    found: set[Group] = set()
    met = 0
    repeated = [attention(4, 17, 32), pk.Graph([o.tanh(side_by_side().outputs[0])])]
    for graph in map(analysed, [*repeated, *map(layers, range(20)), scaled(40)]):
        with PassContext() as context:
            board = Board(graph, greedy(graph, context), context)
        units = board.units
        for k in range(len(board.list)):
            for other in sorted(units.after[k]):
                members = {k, other} | units.between({k, other})
                made, _ = board.closed(members)
                group = board.group(members)
                assert group.key == made.key
                found.add(group)
                met += 1
    assert met > 2 * len(found)


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
