"""The evaluator: choices and seconds by measurements, else by the cost model."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

import passkit as pk
from passkit.analysis.group import Group
from passkit.errors import SettingError
from passkit.library import store
from passkit.library.candidates import candidates_of
from passkit.library.evaluator import Evaluator, Record, merged, ranked
from passkit.planner.plan import plan_group
from passkit.program.planning import planned
from passkit.schedule.cost import schedule_cost
from passkit.schedule.schedule import Schedule, Source
from passkit.target import Target, cpu

CPU = cpu()
SOFTMAX = "x: f32[512, 64]; return softmax(x)"


def group_of(text: str) -> Group:
    """Return the only group of a graph in text."""
    (group,) = planned(pk.parse(text), "Fusion").attrs["subgraph"].values()
    return group  # type: ignore[no-any-return]


GROUP = group_of(SOFTMAX)
TEXTS = [str(v.template) for v in candidates_of(GROUP, CPU)]


def measured(template: str, *samples: float, **more: Any) -> Record:
    """Return a record of the softmax."""
    return Record(GROUP.key, template, source=Source.MEASURED, samples=samples, **more)


def test_without_records_the_model_decides() -> None:
    """An evaluator without records returns the default schedule and its cost."""
    empty = Evaluator()
    plan = plan_group(GROUP, CPU)
    assert isinstance(plan, Schedule)

    assert empty.choose(GROUP, CPU) == plan and len(empty) == 0
    assert empty.seconds(GROUP, CPU) == schedule_cost(GROUP, plan, CPU)
    assert empty.estimate(GROUP, CPU, TEXTS[1]).source is Source.MODEL


def test_the_fastest_template_is_chosen() -> None:
    """Any template can be chosen; the schedule keeps the seconds of the cost model."""
    for favourite in TEXTS:
        evaluator = Evaluator(measured(t, *[1e-6 if t == favourite else 2e-6] * 3) for t in TEXTS)
        plan = evaluator.choose(GROUP, CPU)

        assert isinstance(plan, Schedule)
        assert (plan.source, plan.measured) == (Source.MEASURED, 1e-6)
        assert plan.seconds == plan_group(GROUP, CPU).seconds  # type: ignore[union-attr]
        assert evaluator.seconds(GROUP, CPU) == evaluator.seconds(GROUP, CPU, favourite) == 1e-6
        other = next(t for t in TEXTS if t != favourite)
        assert evaluator.estimate(GROUP, CPU, other).seconds == 2e-6


def test_records_that_do_not_count() -> None:
    """Small gains, other targets, faults, MODEL records and foreign templates change nothing."""
    usual, other, third, *_ = TEXTS
    little = Evaluator([measured(usual, 1e-6), measured(other, 0.98e-6)])
    faulty = Evaluator([measured(usual, 1e-6), measured(other, 1e-7, fault="other bits")])
    model = Evaluator([measured(usual, 1e-6), Record(GROUP.key, other, model=1e-9)])
    foreign = Evaluator(
        [
            measured(usual, 3e-6),
            measured("nonsense", 1e-9),
            measured("exp_7[GRID];", 1e-9),
            measured(third, 1e-6),
        ]
    )

    for evaluator in (little, faulty, model):
        assert evaluator.choose(GROUP, CPU) == Evaluator([measured(usual, 1e-6)]).choose(GROUP, CPU)
    assert foreign.estimate(GROUP, CPU).seconds == 1e-6
    blocks = Target("blocks", "cxx", 16, CPU.scratch)
    assert foreign.choose(GROUP, blocks) == plan_group(GROUP, blocks)
    assert Evaluator([measured(other, 1e-9)]).choose(GROUP, CPU).source is Source.MEASURED  # type: ignore[union-attr]


def test_a_default_kernel_that_crashes_is_replaced() -> None:
    """Another measured template is chosen, though there is no comparison."""
    evaluator = Evaluator([measured(TEXTS[0], fault="crashed"), measured(TEXTS[1], 1.0)])

    assert evaluator.seconds(GROUP, CPU) == 1.0
    nothing = Evaluator([measured(TEXTS[0], fault="crashed")])
    assert nothing.choose(GROUP, CPU) == plan_group(GROUP, CPU)


def test_several_sizes_count_together() -> None:
    """The geometric mean decides; a template that is much slower at one size is left out."""
    small = {"a": measured("a", 1.0), "b": measured("b", 0.5), "c": measured("c", 0.9)}
    large = {"a": measured("a", 10.0), "b": measured("b", 11.0), "c": measured("c", 9.0)}

    assert ranked("a", [small]) == ["b", "c", "a"]
    assert ranked("a", [small, large]) == ["c", "a"]
    assert ranked("a", [small, {"a": measured("a", 1.0)}]) == ["a"]


def test_rounds_are_compared_one_by_one() -> None:
    """A template that is slower in many rounds, or in the last ones, is not faster.

    A load of the machine during some rounds has no effect.
    """
    busy = (1.0, 1.0, 9.0, 9.0)
    usual = measured("a", *busy, beside=busy)

    def ratio(*samples: float) -> float | None:
        return measured("b", *samples, beside=busy).ratio

    assert ratio(0.5, 0.5, 4.5, 4.5) == 0.5
    assert ratio(0.5, 0.5, 8.1, 8.1) == pytest.approx(0.9)
    assert ratio(0.1, 0.1, 9.9, 9.9) == pytest.approx(1.1)
    assert ratio(0.5, 1.5, 4.5, 9.9) == pytest.approx(1.0)
    assert measured("b", 1.0).ratio is None
    by = {"a": usual, "b": measured("b", 0.9, 0.9, 8.0, 8.0, beside=busy), "c": measured("c", 0.1)}
    assert ranked("a", [by]) == ["b", "a"]
    assert ranked("a", [by | {"c": measured("c", 0.1, 0.1)}]) == ["c", "b", "a"]


def test_equal_templates_are_ordered_by_text() -> None:
    """The order of measurements does not matter."""
    records = [measured(text, 0.5) for text in ("c", "a", "b")]

    for order in (records, records[::-1]):
        by_template = {r.template: r for r in [*order, measured("z", 1.0)]}
        assert ranked("z", [by_template]) == ["a", "b", "c", "z"]


def test_records_merge() -> None:
    """Samples are joined, measurements replace the model, and a later run clears a crash."""
    parts = [
        Record(GROUP.key, "a", model=5.0),
        measured("a", 1.0),
        measured("a", 3.0, 3.0),
        Record(GROUP.key, "a", model=5.0),
        measured("b", fault="crashed"),
        measured("b", 1.0),
        measured("c", 1.0),
        measured("c", 1.0, fault="other bits"),
    ]
    for given in (parts, [*reversed(parts)]):
        by_template = {t: r for (_, _, t), r in merged(given).items()}
        assert by_template["a"].seconds == 3.0 and by_template["a"].measured
        assert by_template["b"].measured and not by_template["c"].measured


def test_measurements_scale_the_model() -> None:
    """Costs of other groups are multiplied by the median ratio of measured to modelled seconds."""
    evaluator = Evaluator([measured(TEXTS[0], 4e-6, model=1e-6)])
    other = group_of("x: f32[4096]; return exp(x)")
    plan = plan_group(other, CPU)
    assert isinstance(plan, Schedule)

    assert evaluator.scale == 4.0
    assert evaluator.seconds(other, CPU) == 4 * schedule_cost(other, plan, CPU)
    assert evaluator.used_groups == set()


def test_groups_without_a_kernel_take_forever() -> None:
    """A group that cannot be one kernel has infinite seconds."""
    x = pk.var("x", (4096, 4096))
    rows = pk.ops.exp(x - pk.ops.reduce_max(x, axis=1, keepdims=True))
    both = pk.Graph([rows - pk.ops.reduce_max(rows, axis=0, keepdims=True)])

    assert Evaluator().seconds(Group(both, GROUP.kind), evolve(CPU, scratch=1024)) == inf


def test_a_tuned_template_is_an_optional_decision(fresh_cache: Path) -> None:
    """Without fuel kernels have their default templates, so bisecting finds a bad one."""
    graph = pk.parse("x: f32[100000]; return exp(x)")
    (ranked_,) = pk.templates(graph)
    best = str(ranked_.others[0].template)
    (group,) = planned(graph, "Fusion").attrs["subgraph"].values()
    store.add([Record(group.key, best, source=Source.MEASURED, samples=(1e-6,))])
    for fuel, template in ((0, ranked_.template), (1, best)):
        with pk.PassContext(fuel=fuel) as context:
            assert pk.templates(graph)[0].template == template
        assert context.fuel.spent == ["tuned exp"] * fuel


def test_evaluators_of_users() -> None:
    """An evaluator is an object with two methods, or "model"; others are refused."""

    class LastTemplate(Evaluator):
        """Chooses the last template."""

        def choose(self, group: Group, target: Target) -> Any:
            return plan_group(group, target, candidates_of(group, target)[-1].template)

    graph = pk.parse(SOFTMAX)
    last = pk.templates(graph, evaluator=LastTemplate())[0]
    assert last.template == TEXTS[-1]
    assert pk.templates(graph, evaluator="model")[0].template == TEXTS[0]
    with pytest.raises(SettingError, match="must be 'model' or have the methods .* got 'fast'"):
        pk.PassContext(evaluator="fast")
