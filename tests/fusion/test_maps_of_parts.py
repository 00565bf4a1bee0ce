"""Stitched groups that GPUs have no maps of, and loop nests without a schedule, stay apart."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

import passkit as pk
from passkit.schedule.schedule import Schedule
from tests.planned import plan
from tests.schedule.nests import rule

o = pk.ops


def shares() -> pk.Graph:
    """The sums of a softmax over two axes, as one kernel of which a part keeps rows of two axes."""
    rows = pk.var("a", (3, 17, 5))
    powers = o.exp(rows - o.reduce_max(rows, axis=(0, 2), keepdims=True))
    share = powers / o.reduce_sum(powers, axis=(0, 2), keepdims=True)
    return pk.Graph([o.softmax(o.reduce_max(share, axis=1))])


UNKNOWN = (
    "x: f64[5, 40, 33]; y: f64[m, 40, 1]; r = reduce_max(abs(x), axis=(0, 2), keepdims=true);"
    "b = broadcast_to(r, shape=(m, 40, 3)); return r, add(tanh(b), y), mul(b, b)"
)
GRAPHS = {
    "keeps points of rows along several axes": shares(),
    "no rows of known number and length": pk.parse(UNKNOWN),
}


def schedules(graph: pk.Graph, fusion: str, target: str = "cuda") -> list[Schedule]:
    """The schedules of the kernels of a graph."""
    return list(
        plan(graph, "SchedulePlan", target=target, fusion=fusion).attrs["schedule"].values()
    )


@pytest.mark.parametrize(
    ("reason", "fusion"),
    [
        ("keeps points of rows along several axes", "stitch"),
        ("keeps points of rows along several axes", "deep"),
        ("no rows of known number and length", "deep"),
    ],
)
def test_groups_without_maps_are_several_kernels(reason: str, fusion: str) -> None:
    """Each kernel is made of loop nests, and the decisions say why one is not."""
    graph = GRAPHS[reason]
    own = schedules(graph, fusion)
    log = plan(graph, "Fusion", target="cuda", fusion=fusion).attrs["fusion_log"]

    assert len(own) > 1 and all(s.no_nest is None for s in own)
    assert any(reason in str(d.diagnostic) for d in log)


def test_other_targets_fuse_as_before() -> None:
    """On targets whose kernels are not made of these loop nests all is one kernel."""
    assert len(schedules(shares(), "stitch", "cpu")) == 1


def test_a_kernel_without_a_nest_is_not_packed() -> None:
    """The others are one kernel of loop nests; on other targets all are packed."""
    graph = pk.parse(
        "a: f32[40]; b: f32[70]; c: f32[4, 5, 6, 7];"
        "return tanh(a), exp(b), reduce_sum(c, axis=(0, 2))"
    )
    with ExitStack() as stack:
        for name in ("columns", "columns_in_passes", "single_elements"):
            stack.enter_context(rule(lambda nest, target: None, name))
        pack, single = schedules(graph, "stitch")

    assert pack.pack is not None and len(pack.parts) == 2
    assert single.no_nest is not None and single.nest is None
    (whole,) = schedules(graph, "stitch")
    assert len(whole.parts) == 3
    assert len(schedules(graph, "stitch", "opencl")) == 1
