"""Rivals: patterns are compared with their units, and the next plan uses the result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.errors import SettingError
from tests import measurements
from tests.fusion.test_select import attention, fused, kernels
from tests.planned import agrees, feeds_of
from tests.tuning.executors import SAMPLES, UNFUSED, Inline, ScriptedExecutor


@pytest.fixture
def graph() -> pk.Graph:
    """Two products and what is between them: three patterns, of which the largest is chosen."""
    return attention(64, 94, 32)


def operators(graph: pk.Graph) -> dict[str, str]:
    """The operators of each kernel of the plan of now, by the keys of their groups."""
    groups = fused(graph).attrs["subgraph"].values()
    return {g.key: " ".join(n.op.name for n in g.ops) for g in groups}


def test_the_fastest_rival_is_chosen(graph: pk.Graph, fresh_cache: Path) -> None:
    """The pattern that the clock favours is chosen, if any; nothing is measured twice."""

    def tune_by(executor: ScriptedExecutor) -> list[str]:
        result = pk.tune(graph, executor=executor, budget=1)
        assert (result.measured == 0) is (executor.count == 0)
        return executor.pairs

    (usual,) = operators(graph)
    pairs = tune_by(ScriptedExecutor())
    assert usual == pairs[0] and len(set(pairs)) == 3
    assert kernels(fused(graph)) == ["mul add reduce_max sub exp reduce_sum div"]
    for k in set(pairs):
        measurements.forget()
        tune_by(ScriptedExecutor(k))
        plan = fused(graph)

        assert [g.key for g in plan.attrs["subgraph"].values() if g.key in pairs] == [k]
        assert "3 patterns were measured" in str(plan.attrs["selection"])
        output = [d.reason for d in plan.attrs["fusion_log"] if "matmul" in d.producer + d.consumer]
        assert any("as measured" in reason for reason in output)
    assert tune_by(ScriptedExecutor(k)) == []
    assert next(iter(fused(graph, evaluator="model").attrs["subgraph"].values())).key == usual


def test_without_a_difference_the_model_decides(graph: pk.Graph, fresh_cache: Path) -> None:
    """Equal patterns are not measured again; with rivals=0 none are measured."""
    (usual,) = operators(graph)
    executor = ScriptedExecutor(equal=True)
    pk.tune(graph, executor=executor, budget=1, rivals=0)
    assert executor.pairs == []
    pk.tune(graph, executor=executor, budget=1, rivals=1)

    assert [*operators(graph)] == [usual] and len(executor.pairs) == 2
    assert fused(graph).attrs["selection"].measured == 0
    assert pk.tune(graph, executor=executor, budget=1, rivals=1).measured == 0
    with pytest.raises(SettingError, match="needs rivals of at least 0, got -1"):
        pk.tune(graph, rivals=-1)


def test_a_contradiction_of_the_plan_is_confirmed(graph: pk.Graph, fresh_cache: Path) -> None:
    """A chosen pattern that is slower is measured again in a new process."""
    executor = ScriptedExecutor()
    pk.tune(graph, executor=executor, budget=1)
    (usual,) = {g.key for g in fused(graph, evaluator="model").attrs["subgraph"].values()}

    assert executor.pairs.count(usual) == 2
    assert all(executor.pairs.count(k) == 1 for k in set(executor.pairs) - {usual})
    (units,) = [
        r for r in measurements.merged_records() if r.template == UNFUSED and r.group == usual
    ]
    assert len(units.samples) == 2 * SAMPLES and units.fused_ratio == 2.0


def test_a_pattern_that_crashes_is_not_chosen(graph: pk.Graph, fresh_cache: Path) -> None:
    """A crash is not tried again; a plan whose kernels crash is not chosen."""
    (usual,) = operators(graph)
    for bad, plan in ((UNFUSED, [usual]), ("kernels", [])):
        measurements.forget()
        pk.tune(graph, executor=ScriptedExecutor(usual, bad=bad), budget=1)

        assert [k for k in operators(graph) if k == usual] == plan
        faults = {r.template == UNFUSED for r in measurements.merged_records() if r.fault}
        assert faults == {bad == UNFUSED}
        idle = ScriptedExecutor(usual)
        assert pk.tune(graph, executor=idle, budget=1).measured == idle.count == 0


def test_rivals_are_measured_with_real_kernels(fresh_cache: Path) -> None:
    """Real kernels of both are run, and results are right."""
    graph = attention(4, 17, 32)
    executor = Inline()

    def clock(run: Any, times: int, template: str) -> float:
        run()
        return 9e-6 if template == UNFUSED else 1e-6

    result = pk.tune(graph, executor=executor, clock=clock, budget=1, rivals=1)
    plan = fused(graph)
    (pair, *_) = [r for r in executor.requests if r.apart]
    units = pk.from_json(pair.apart)

    assert pair.templates[1:] == (UNFUSED,) and units.inputs[0].name == "x0"
    assert isinstance(units, pk.Graph) and sum(n.op is not None for n in units.nodes) > 1
    assert plan.attrs["selection"].chosen == 1 and "apart" not in result.groups[0].template
    assert not any(g.faults for g in result.groups)
    feeds = feeds_of(graph, np.random.default_rng(0))
    agrees(graph, feeds, pk.compile(graph)(feeds))


def test_a_share_needs_a_consistent_difference(fresh_cache: Path) -> None:
    """A share needs the same sign in both halves of the rounds, and in most rounds."""
    graph_key = "0" * 64

    def share(units: tuple[float, ...], fused: tuple[float, ...]) -> float | None:
        measurements.forget()
        measurements.record(graph_key, UNFUSED, *units, model=3.0, beside=fused)
        (units_apart,) = measurements.merged_records()
        return units_apart.fused_ratio  # type: ignore[no-any-return]

    assert share((2.0,) * 4, (1.0,) * 4) == 0.5 and share((1.0,) * 4, (2.0, 2.0, 3.0, 3.0)) == 2.0
    assert share((2.0,) * 4, (1.0, 1.0, 1.5, 1.5)) == 0.75
    assert share((2.0,) * 4, (1.97,) * 4) is None
    assert share((2.0,) * 4, (1.0, 1.0, 3.0, 3.0)) is None
    assert share((2.0,) * 4, ()) is None


def test_units_that_are_slower_than_estimated_slow_the_model(fresh_cache: Path) -> None:
    """Measured units scale the estimates of the model, of which nothing else is measured."""
    measurements.record("0" * 64, UNFUSED, 2.0, model=3.0, beside=(1.0,))
    evaluator = measurements.evaluator()
    assert evaluator.has_comparisons and evaluator.model_ratio == 1.5 and evaluator.scale == 1.0
    measurements.forget()
    assert (
        not measurements.evaluator().has_comparisons and measurements.evaluator().model_ratio == 1.0
    )
