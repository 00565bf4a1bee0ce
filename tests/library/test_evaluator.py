"""The evaluator: what was measured decides, else the model does; records of several merge."""

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
from passkit.library.evaluator import Evaluator, Record, Score, kernel_eval_update, merged, ranked
from passkit.planner.plan import plan_group
from passkit.program.planning import planned
from passkit.schedule.cost import schedule_cost
from passkit.schedule.schedule import Schedule, Source
from passkit.target import Target, cpu

CPU = cpu()
SOFTMAX = "x: f32[512, 64]; return softmax(x)"


def group_of(text: str) -> Group:
    """The only group of a graph in text."""
    (found,) = planned(pk.parse(text), "Fusion").attrs["subgraph"].values()
    return found  # type: ignore[no-any-return]


GROUP = group_of(SOFTMAX)
TEXTS = [str(v.template) for v in candidates_of(GROUP, CPU)]


def measured(template: str, *samples: float, **more: Any) -> Record:
    """A record of the softmax."""
    return Record(GROUP.key, template, source=Source.MEASURED, samples=samples, **more)


def test_without_records_the_model_decides() -> None:
    """The usual schedule, and the model's seconds of it."""
    nobody = Evaluator()
    plan = plan_group(GROUP, CPU)
    assert isinstance(plan, Schedule)

    assert nobody.choose(GROUP, CPU) == plan and len(nobody) == 0
    assert nobody.seconds(GROUP, CPU) == schedule_cost(GROUP, plan, CPU)
    assert nobody.estimate(GROUP, CPU, TEXTS[1]).source is Source.MODEL


def test_the_quickest_is_taken() -> None:
    """Each in turn; its seconds are those measured, its threads are still by the model's."""
    for favourite in TEXTS:
        known = Evaluator(measured(t, *[1e-6 if t == favourite else 2e-6] * 3) for t in TEXTS)
        plan = known.choose(GROUP, CPU)

        assert isinstance(plan, Schedule)
        assert (plan.source, plan.measured) == (Source.MEASURED, 1e-6)
        assert plan.seconds == plan_group(GROUP, CPU).seconds  # type: ignore[union-attr]
        assert known.seconds(GROUP, CPU) == known.seconds(GROUP, CPU, favourite) == 1e-6
        other = next(t for t in TEXTS if t != favourite)
        assert known.estimate(GROUP, CPU, other).seconds == 2e-6


def test_what_does_not_count() -> None:
    """A gain within the noise, other targets, faults, MODEL records and templates of others."""
    usual, other, third, *_ = TEXTS
    little = Evaluator([measured(usual, 1e-6), measured(other, 0.98e-6)])
    faulty = Evaluator([measured(usual, 1e-6), measured(other, 1e-7, fault="other bits")])
    model = Evaluator([measured(usual, 1e-6), Record(GROUP.key, other, model=1e-9)])
    foreign = Evaluator(
        [measured(usual, 3e-6), measured("nonsense", 1e-9), measured("exp_7[GRID];", 1e-9),
         measured(third, 1e-6)]
    )  # fmt: skip

    for known in (little, faulty, model):
        assert known.choose(GROUP, CPU) == Evaluator([measured(usual, 1e-6)]).choose(GROUP, CPU)
    assert foreign.estimate(GROUP, CPU).seconds == 1e-6
    blocks = Target("blocks", "cxx", 16, CPU.scratch)
    assert foreign.choose(GROUP, blocks) == plan_group(GROUP, blocks)
    assert Evaluator([measured(other, 1e-9)]).choose(GROUP, CPU).source is Source.MEASURED  # type: ignore[union-attr]


def test_a_usual_kernel_that_crashes_is_replaced() -> None:
    """Though nothing can be held against it."""
    known = Evaluator([measured(TEXTS[0], fault="crashed"), measured(TEXTS[1], 1.0)])

    assert known.seconds(GROUP, CPU) == 1.0
    nothing = Evaluator([measured(TEXTS[0], fault="crashed")])
    assert nothing.choose(GROUP, CPU) == plan_group(GROUP, CPU)


def test_several_sizes_count_together() -> None:
    """The best in the mean; one that is much slower anywhere is not taken."""
    small = {"a": measured("a", 1.0), "b": measured("b", 0.5), "c": measured("c", 0.9)}
    large = {"a": measured("a", 10.0), "b": measured("b", 11.0), "c": measured("c", 9.0)}

    assert ranked("a", [small]) == ["b", "c", "a"]
    assert ranked("a", [small, large]) == ["c", "a"]
    assert ranked("a", [small, {"a": measured("a", 1.0)}]) == ["a"]


def test_what_runs_beside_it_is_what_counts() -> None:
    """Rounds are compared one by one; what is slower in many of them, or in the end, is not taken.

    So whatever else the machine does in some of them changes nothing.
    """
    busy = (1.0, 1.0, 9.0, 9.0)
    usual = measured("a", *busy, beside=busy)

    def share(*samples: float) -> float | None:
        return measured("b", *samples, beside=busy).ratio

    assert share(0.5, 0.5, 4.5, 4.5) == 0.5
    assert share(0.5, 0.5, 8.1, 8.1) == pytest.approx(0.9)
    assert share(0.1, 0.1, 9.9, 9.9) == pytest.approx(1.1)
    assert share(0.5, 1.5, 4.5, 9.9) == pytest.approx(1.0)
    assert measured("b", 1.0).ratio is None
    by = {"a": usual, "b": measured("b", 0.9, 0.9, 8.0, 8.0, beside=busy), "c": measured("c", 0.1)}
    assert ranked("a", [by]) == ["b", "a"]
    assert ranked("a", [by | {"c": measured("c", 0.1, 0.1)}]) == ["c", "b", "a"]


def test_equal_kernels_go_by_their_text() -> None:
    """So that the order in which they were measured does not matter."""
    a, b = Score(1.0, "a"), Score(1.0, "b")

    assert kernel_eval_update(a, None) == kernel_eval_update(a, b) == kernel_eval_update(b, a) == a
    assert kernel_eval_update(Score(0.5, "z"), a).template == "z"


def test_records_merge() -> None:
    """Samples come together; measuring replaces the model; what ran after a crash may run."""
    parts = [
        Record(GROUP.key, "a", model=5.0), measured("a", 1.0), measured("a", 3.0, 3.0),
        Record(GROUP.key, "a", model=5.0), measured("b", fault="crashed"), measured("b", 1.0),
        measured("c", 1.0), measured("c", 1.0, fault="other bits"),
    ]  # fmt: skip
    for given in (parts, [*reversed(parts)]):
        found = {t: r for (_, _, t), r in merged(given).items()}
        assert found["a"].seconds == 3.0 and found["a"].measured
        assert found["b"].measured and not found["c"].measured


def test_the_model_is_scaled_by_what_was_measured() -> None:
    """So that groups that were measured and others can be held against each other."""
    known = Evaluator([measured(TEXTS[0], 4e-6, model=1e-6)])
    other = group_of("x: f32[4096]; return exp(x)")
    plan = plan_group(other, CPU)
    assert isinstance(plan, Schedule)

    assert known.scale == 4.0
    assert known.seconds(other, CPU) == 4 * schedule_cost(other, plan, CPU)
    assert known.used_groups == set()


def test_no_kernel_takes_forever() -> None:
    """What cannot be one kernel is infinitely slow."""
    x = pk.var("x", (4096, 4096))
    rows = pk.ops.exp(x - pk.ops.reduce_max(x, axis=1, keepdims=True))
    both = pk.Graph([rows - pk.ops.reduce_max(rows, axis=0, keepdims=True)])

    assert Evaluator().seconds(Group(both, GROUP.kind), evolve(CPU, scratch=1024)) == inf


def test_a_tuned_template_is_an_optional_decision(fresh_cache: Path) -> None:
    """Without fuel kernels are the usual ones, so that bisecting finds a bad template."""
    graph = pk.parse("x: f32[100000]; return exp(x)")
    (ranked_,) = pk.templates(graph)
    best = str(ranked_.others[0].template)
    (group,) = planned(graph, "Fusion").attrs["subgraph"].values()
    store.add([Record(group.key, best, source=Source.MEASURED, samples=(1e-6,))])
    for fuel, template in ((0, ranked_.template), (1, best)):
        with pk.PassContext(fuel=fuel) as context:
            assert pk.templates(graph)[0].template == template
        assert context.fuel.spent == ["tuned exp"] * fuel


def test_what_can_evaluate() -> None:
    """An object with its two methods, or "model"; errors about others say what is missing."""

    class Mine(Evaluator):
        """Takes the last template."""

        def choose(self, group: Group, target: Target) -> Any:
            return plan_group(group, target, candidates_of(group, target)[-1].template)

    graph = pk.parse(SOFTMAX)
    last = pk.templates(graph, evaluator=Mine())[0]
    assert last.template == TEXTS[-1]
    assert pk.templates(graph, evaluator="model")[0].template == TEXTS[0]
    with pytest.raises(SettingError, match="must be 'model' or have the methods .* got 'fast'"):
        pk.PassContext(evaluator="fast")
