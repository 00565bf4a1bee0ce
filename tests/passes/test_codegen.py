"""CodeGen: kernels of groups, their keys, and the errors of groups without a kernel."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.diagnostics import Diagnostic
from passkit.errors import CodeGenError, PassError
from passkit.graph.graph import Annotation
from passkit.schedule.schedule import Schedule
from tests.lowered import element_of, lowered
from tests.planned import agrees, feeds_of, plan
from tests.raised import ROOT
from tests.row_programs import SOFTMAX
from tests.schedule.nests import rule

FIVE = [
    "x: f32[9]; return add(exp(x), x)",
    SOFTMAX.format("9, 300", 1),
    SOFTMAX.format("30, 9", 0),
    "x: f32[3]; y: f32[4]; return concat(neg(x), neg(y), axis=0)",
    "x: f32[n, 5]; return transpose(reduce_sum(x, axis=1, keepdims=true))",
]


@pytest.mark.parametrize("text", FIVE)
def test_default_schedules_equal_those_of_the_pipeline(text: str, rng: Any) -> None:
    """The passes Fusion, CodeGen and RTCGen alone give the kernels of the entire pipeline."""
    graph = pk.parse(text)
    short = pk.ApplyPasses(plan(graph, "Simplify"), ["Fusion", "CodeGen", "RTCGen"])
    whole = plan(graph, "RTCGen")
    keys = [{k.key for k in g.attrs["kernel"].values()} for g in (short, whole)]

    assert keys[0] == keys[1]
    assert all(rtc.entry for rtc in short.attrs["rtc"].values())
    feeds = feeds_of(graph, rng, n=6)
    agrees(graph, feeds, pk.compile(pk.ApplyPasses(graph, ["Fusion", "CodeGen", "RTCGen"]))(feeds))


def test_a_kernel_has_name_key_grid_and_text() -> None:
    """A kernel has name, key, grid, sizes, scratch, operators and text."""
    (kernel,) = (
        plan(pk.parse("x: f32[n]; return add(exp(x), 1)"), "CodeGen").attrs["kernel"].values()
    )

    assert kernel.name.startswith("add_") and kernel.name in kernel.source == str(kernel)
    assert (kernel.ops, kernel.dialect, kernel.shared_nbytes) == (("exp", "add"), "cxx", 0)
    assert isinstance(kernel.grid, pk.Size) and kernel.sizes[0] == pk.Size.symbol("n")


@pytest.mark.parametrize(
    "one, another, same",
    [
        ("a: f32[90]; b = exp(a); return b", "x: f32[90]; y = exp(x); return y", True),
        ("a: f32[90]; return exp(a)", "a: f32[190]; return exp(a)", True),
        ("a: f32[90]; return exp(a)", "a: f32[n, m]; return exp(a)", True),
        ("a: f32[90]; return exp(a)", "a: f64[90]; return exp(a)", False),
        ("a: f32[90]; return mul(a, 2.0)", "a: f32[90]; return mul(a, 3.0)", False),
        ("a: f32[90]; return mul(a, 0.0)", "a: f32[90]; return mul(a, -0.0)", False),
        (
            "a: f32[90]; b: f32[90]; return sub(a, b)",
            "a: f32[90]; b: f32[90]; return sub(b, a)",
            True,
        ),
    ],
)
def test_keys_depend_on_structure_and_not_on_names(one: str, another: str, same: bool) -> None:
    """A key depends on structure, dtypes and literals, not on names or sizes that are arguments."""
    a, b = (
        [k.key for k in plan(pk.parse(t), "CodeGen").attrs["kernel"].values()]
        for t in (one, another)
    )

    assert (a == b) is same


def test_keys_are_the_same_in_every_process() -> None:
    """Another hash seed gives the same texts."""
    program = (
        f"from tests.planned import plan\nfor t in {FIVE!r}:\n  for k in plan(t).attrs['kernel']"
        f".values(): print(k.key)"
    )
    output = [
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    ]

    assert output[0] == output[1] != ""


def test_codegen_without_fusion_is_an_error() -> None:
    """Without Fusion there are no groups to print."""
    with pytest.raises(PassError, match="CodeGen depends on graph attribute 'subgraph'.*Fusion"):
        pk.ApplyPasses(pk.parse("x: f32[2]; return exp(x)"), "CodeGen")


def test_a_group_without_a_common_iteration_space_is_refused() -> None:
    """Lowering names the operator that does not fit the iteration space of its group."""
    text = "x: f32[4, 5]; e = exp(x); return reduce_sum(e, axis=1), reduce_sum(e, axis=0)"
    group = pk.Group(pk.parse(text), kind_of("x: f32[9]; return reduce_sum(x)"))
    with pytest.raises(CodeGenError, match="Group.* cannot be one kernel: reduce_sum has 5 el"):
        lowered(group, "x: f32[9]; return exp(x)")


def kind_of(text: str) -> Any:
    """Return the kind of the only group of a graph."""
    (group,) = plan(text, "Fusion").attrs["subgraph"].values()
    return group.kind


def group_of(result: pk.Entry) -> pk.Group:
    """Return an elementwise group of a graph, without the checks of Fusion."""
    return pk.Group(pk.Graph([result]), kind_of("x: f32[4]; return exp(x)"))


def test_an_operator_with_wrong_code_is_refused() -> None:
    """No code, several results, and code of another dtype than the type rule are errors."""
    silent = pk.register_op("test_codegen_silent", num_inputs=1)
    wrong = pk.register_op("test_codegen_wrong", num_inputs=1)
    for op in (silent, wrong):
        op.set_attr("FInferShape", lambda node, s: (s,))
        op.set_attr("FInferType", lambda node, t: (t,))
    wrong.set_attr("FCodeGen", lambda node, x: pk.ast.cast(x, "int32"))
    both = pk.register_op("test_codegen_both", num_inputs=1, num_outputs=2)
    both.set_attr("FInferShape", lambda node, s: (s, s))
    both.set_attr("FInferType", lambda node, t: (t, t))
    both.set_attr("FCodeGen", lambda node, x: (x, x))
    x = pk.var("x", (4,))

    with pytest.raises(CodeGenError, match="test_codegen_silent.* has no code: set FCodeGen"):
        lowered(group_of(silent(x)))
    with pytest.raises(CodeGenError, match="wrong.*: its code gives int32, its type rule float32"):
        lowered(group_of(wrong(x)))
    with pytest.raises(CodeGenError, match="test_codegen_both.* has several results in one kernel"):
        lowered(group_of(both(x)[0]))
    with pytest.raises(CodeGenError, match="test_codegen_silent.* has no code"):
        element_of(silent(x).node)


def test_user_operators_fuse_with_others(rng: Any) -> None:
    """A user's FCodeGen, FElement and FReduce fuse with other operators."""
    swish = pk.register_op("test_codegen_swish", num_inputs=1)
    swish.set_attr("FCodeGen", lambda node, x: x / (1.0 + pk.ast.exp(-x)))
    swish.set_attr("TOpPattern", pk.OpPattern.ELEMWISE)
    graph = pk.parse("x: f32[5, 300]; y = test_codegen_swish(x); return reduce_sum(y, axis=1), y")
    exe, feeds = pk.compile(graph), feeds_of(graph, rng)

    assert len(exe.kernels) == 1
    agrees(graph, feeds, exe(feeds), 1e-5)
    assert np.array_equal(exe(feeds)[1], exe(feeds)[1])


STITCHED = "x: f32[64, 32]; y: f32[32, 40]; a = matmul(x, y); b = tanh(a); return b"
TOGETHER = {"keep_together": [["a", "b"]]}


def with_schedule(planned: pk.Graph, schedule: Schedule) -> pk.Graph:
    """Return a planned graph of one kernel with another schedule of it."""
    (node,) = planned.attrs["schedule"]
    return planned.with_attrs(schedule=Annotation("schedule", {node: schedule}))


def test_a_schedule_without_maps_has_no_kernel_on_cuda() -> None:
    """The error has the reason why there are no maps, or says which pass makes some."""
    planned = plan(STITCHED, "SchedulePlan", target="cuda", **TOGETHER)
    (own,) = planned.attrs["schedule"].values()
    assert own.block is not None
    (other,) = (
        plan(STITCHED, "SchedulePlan", target="opencl", **TOGETHER).attrs["schedule"].values()
    )
    reason = Diagnostic("block.threads", {"part": "dot0", "needed": 320, "threads": 256})
    head = r"Group\(gemm: matmul, tanh\): dialect cuda has kernels of loop nests only: "

    for schedule, text in (
        (evolve(own, block=None, no_nest=reason), "dot0 needs 320 threads, and a block has 256"),
        (other, "its schedule is for another target; run SchedulePlan for this one"),
    ):
        with pytest.raises(CodeGenError, match=head + text):
            pk.ApplyPasses(with_schedule(planned, schedule), "CodeGen", target="cuda")


def test_rules_that_have_no_schedule_leave_no_kernel_on_cuda() -> None:
    """If all rules decline a loop nest, the error says why the last one does."""

    def none(nest: Any, gpu: Any) -> Any:
        return Diagnostic("domain.axes")

    text = "dialect cuda has kernels of loop nests only: it reduces other axes than its kernel"
    with (
        rule(none, "rows_read_once"),
        rule(none, "rows"),
        rule(none, "single_elements"),
        pytest.raises(CodeGenError, match=rf"Group\(reduction: reduce_sum\): {text}"),
    ):
        plan(
            "x: f32[40, n]; return reduce_sum(x, axis=1)",
            target="cuda",
            disabled=["SplitReduce"],
        )
