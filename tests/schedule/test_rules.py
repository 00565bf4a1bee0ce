"""Schedule rules: those of operators, of users and of passkit, and what happens if one is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.diagnostics import Diagnostic
from passkit.schedule.actions import (
    Bind,
    CacheRead,
    Fuse,
    LaunchBlocks,
    SplitAxis,
    StorageScope,
    Tile,
)
from tests.emulator.device import EmulatedDevice
from tests.emulator.programs import emulated
from tests.planned import plan
from tests.schedule.nests import SOFTMAX, rule

ADD = "x: f32[1000]; return add(x, 1)"


def kernel(graph: Any) -> pk.Kernel:
    """Return the only kernel of a graph for CUDA."""
    (only,) = plan(graph, target="cuda").attrs["kernel"].values()
    return only  # type: ignore[no-any-return]


def rule_of(graph: str) -> str:
    """Return the name of the rule that schedules the only kernel of a graph for CUDA."""
    (group,) = pk.templates(pk.parse(graph), target="cuda")
    return group.nest.rule  # type: ignore[no-any-return]


def wide_threads(nest: Any, target: Any) -> Any:
    """Return actions for one axis: 64 threads with four vectors each."""
    if len(nest.axes) > 1 or nest.is_reduced:
        return None
    axis = nest.axes[0].name
    return [
        Tile(axis, 1024),
        SplitAxis(axis, 4, Bind.VECTOR),
        SplitAxis(axis, 64, Bind.THREAD_X),
        SplitAxis(axis, None, Bind.UNROLL),
        CacheRead("x0", StorageScope.REGISTER),
    ]


def square_plus(name: str, **attributes: Any) -> pk.Op:
    """Return an operator x * x + x with attributes."""
    op = pk.register_op(name, num_inputs=1)
    op.set_attr("FCodeGen", lambda node, x: x * x + x)
    op.set_attr("TOpPattern", pk.OpPattern.ELEMWISE)
    for key, value in attributes.items():
        op.set_attr(key, value)
    return op


def test_the_rule_of_an_operator_makes_its_kernel() -> None:
    """FScheduleRule changes threads and unrolling; the kernel computes the same."""
    asked: list[tuple[str, str]] = []

    def narrow(node: Any, nest: Any, target: Any) -> Any:
        asked.append((node.op.name, target.name))
        return wide_threads(nest, target)

    usual = square_plus("test_rules_usual")
    own = square_plus("test_rules_own", FScheduleRule=narrow)
    x = pk.var("x", (3000,))
    graphs = [pk.Graph([op(x)]) for op in (usual, own)]
    kernels = [kernel(g) for g in graphs]

    assert [k.block for k in kernels] == [128, 64]
    assert set(asked) == {("test_rules_own", "cuda")}
    assert "__launch_bounds__(64" in kernels[1].source
    data = np.random.default_rng(0).standard_normal(3000, dtype=np.float32)
    with emulated(EmulatedDevice()):
        (output,) = pk.compile(graphs[1], target="cuda")({"x": data})
    np.testing.assert_allclose(output, data * data + data, rtol=1e-6)


def test_an_operator_may_leave_a_nest_to_other_rules() -> None:
    """With None from FScheduleRule the built-in rules apply, with which `show` names the rule."""
    op = square_plus("test_rules_none", FScheduleRule=lambda node, nest, target: None)
    graph = pk.Graph([op(pk.var("x", (3000,)))])
    (group,) = pk.templates(graph, target="cuda")

    assert group.nest.rule == "elementwise" and group.nest.resources.threads == 128


def test_a_registered_rule_comes_before_the_built_in_ones() -> None:
    """A rule of the user is tried first; without it the kernel is as before."""
    before = kernel(ADD)
    with rule(wide_threads):
        assert rule_of(ADD) == "test_rule"
        assert kernel(ADD).block == 64
        assert kernel(SOFTMAX).block == 128
    assert kernel(ADD).source == before.source


def test_a_rule_replaces_a_built_in_one_of_its_name() -> None:
    """The name of a built-in rule takes its place; the rules before it are tried first."""
    with rule(wide_threads, "elementwise"):
        assert kernel(ADD).block == 64
    with rule(wide_threads, "rows"):
        assert kernel(ADD).block == 128


def test_a_kernel_without_a_rule_has_no_nest() -> None:
    """A diagnostic in place of actions is the reason if no other rule applies."""

    def none(nest: Any, target: Any) -> Any:
        return Diagnostic("domain.axes")

    def nothing(nest: Any, target: Any) -> Any:
        return None

    with rule(none, "elementwise"), rule(none, "single_elements"):
        (group,) = pk.templates(pk.parse(ADD), target="cuda")
    assert group.nest.rule == "" and group.nest.resources is None
    assert "no schedule of a nest: it reduces other axes than its kernel" in str(group)
    with rule(nothing, "elementwise"), rule(nothing, "single_elements"):
        (group,) = pk.templates(pk.parse(ADD), target="cuda")
    assert group.nest.as_dict()["code"] == "rule.none"
    with rule(nothing, "elementwise"):
        (group,) = pk.templates(pk.parse(ADD), target="cuda")
    assert group.nest.rule == "single_elements"


def test_a_rule_must_make_a_legal_schedule() -> None:
    """The error has the name of the rule, the reason, and the axes and values of the nest."""

    def too_many(nest: Any, target: Any) -> Any:
        return [*wide_threads(nest, target), LaunchBlocks(33)]

    message = r"schedule rule test_rule: 33 blocks of 64 .* the axes i0:1000 and computes add_1"
    with rule(too_many), pytest.raises(pk.ScheduleError, match=message):
        kernel(ADD)
    op = square_plus(
        "test_rules_fused", FScheduleRule=lambda node, nest, target: [Fuse("i0", "i1")]
    )
    message = r"FScheduleRule of test_rules_fused: fuse i0 i1: the nest has no axis i1"
    with pytest.raises(pk.ScheduleError, match=message):
        kernel(pk.Graph([op(pk.var("x", (3000,)))]))


def test_a_rule_is_not_refused_for_kernels_that_fusion_only_considers() -> None:
    """A rule whose actions fit one kernel needs not look at the operators alone."""
    row = [
        Tile("i0", 8),
        SplitAxis("i0", 8, Bind.THREAD_Y),
        SplitAxis("i1", 32, Bind.THREAD_X),
        SplitAxis("i1", None, Bind.UNROLL),
    ]
    graph = "x: f32[64, 300]; return reduce_sum(exp(x), axis=1)"
    with rule(lambda nest, target: row):
        assert kernel(graph).block == 256


def test_a_rule_must_give_actions() -> None:
    """Another result is refused with the name of the rule."""
    with (
        rule(lambda nest, target: "wide"),
        pytest.raises(pk.RuleError, match=r"schedule rule test_rule must give .* got 'wide'"),
    ):
        kernel(ADD)


def test_a_rule_needs_a_known_target() -> None:
    """A misspelt target is refused with the nearest name."""
    with pytest.raises(
        pk.SettingError, match=r"target 'cudo' is neither .*; did you mean 'cuda'\?"
    ):
        pk.register_schedule_rule("cudo", "wide", wide_threads)
    with pytest.raises(pk.ArgumentError, match=r"register_schedule_rule: target .* got 3"):
        pk.register_schedule_rule(3, "wide", wide_threads)  # type: ignore[arg-type]
