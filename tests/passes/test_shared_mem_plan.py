"""SharedMemPlan: the scratch of each stage, from schedules."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

import passkit as pk
from passkit.errors import PassError
from tests.planned import plan
from tests.row_programs import SOFTMAX, VARIANCE


def shared(text: str) -> Any:
    """The scratch of the only group."""
    (result,) = plan(pk.parse(text), "SharedMemPlan").attrs["shared"].values()
    return result


@pytest.mark.parametrize(
    "text, arrays",
    [
        ("x: f32[900]; return exp(x)", []),
        (SOFTMAX.format("9, 300", 1), []),
        (VARIANCE, [300]),
        (SOFTMAX.format("30, 900", 0), [128, 128]),
        (SOFTMAX.format("30, 90", 0), [90, 90]),
    ],
)
def test_scratch_arrays_of_rows_and_columns(text: str, arrays: list[int]) -> None:
    """Rows keep values without other storage; columns have an element for each lane and total."""
    assert [a.extent for a in shared(text).arrays] == arrays


@pytest.mark.parametrize(
    "text", [VARIANCE, SOFTMAX.format("30, 900", 0), SOFTMAX.format("9, 30", 1)]
)
def test_arrays_lie_apart(text: str) -> None:
    """Arrays are aligned, follow each other, and the total covers them."""
    memory = shared(text)
    ends = [
        o + a.extent * a.dtype.nbytes for o, a in zip(memory.offsets, memory.arrays, strict=True)
    ]

    assert all(o % 64 == 0 for o in memory.offsets)
    assert all(a <= b for a, b in zip(ends, [*memory.offsets[1:], memory.nbytes], strict=True))
    assert memory.nbytes <= pk.PassContext().target.scratch


def test_scratch_of_unknown_sizes_is_an_expression() -> None:
    """The scratch of a row of unknown length is an expression of it."""
    memory = shared(VARIANCE.replace("7, 300", "n, m"))

    m = pk.Size.symbol("m")
    assert memory.nbytes == (m * 4 + 63) // 64 * 64


def test_the_scratch_of_a_kernel_is_that_of_the_plan() -> None:
    """A kernel's scratch is what the plan says."""
    for text in (VARIANCE, SOFTMAX.format("30, 900", 0), SOFTMAX.format("9, 30", 1)):
        graph = plan(pk.parse(text), "CodeGen")
        (memory,), (kernel,) = graph.attrs["shared"].values(), graph.attrs["kernel"].values()
        assert kernel.shared_nbytes == memory.nbytes
        buffers = [b for b in kernel.ast.scratch if b.place.value == "shared"]
        assert [b.extent for b in buffers] == [a.extent for a in memory.arrays]


def test_codegen_refuses_a_plan_without_a_needed_array() -> None:
    """A missing array, and a missing plan, are errors."""
    graph = plan(pk.parse(VARIANCE), "SharedMemPlan")
    empty = {
        node: evolve(memory, arrays=(), offsets=(), nbytes=0)
        for node, memory in graph.attrs["shared"].items()
    }

    with pytest.raises(pk.CodeGenError, match="Group.*erf.* needs scratch for its value .*, and"):
        pk.ApplyPasses(graph.with_attrs(shared=pk.Annotation("shared", empty)), "CodeGen")
    with pytest.raises(PassError, match="SharedMemPlan depends on graph attribute 'schedule'"):
        pk.ApplyPasses(plan(pk.parse(VARIANCE), "Fusion"), "SharedMemPlan")


def test_every_fused_node_has_a_plan() -> None:
    """Every fused node has an entry."""
    text: Any = "x: f32[4, 4]; a = exp(x); b = matmul(a, a); return reduce_sum(exp(b), axis=0)"
    graph = plan(pk.parse(text), "SharedMemPlan")

    assert set(graph.attrs["shared"]) == set(graph.attrs["subgraph"])
    assert len(graph.attrs["shared"]) == 2
