"""Loop nests of graphs in text, for tests of schedules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from attrs import evolve

import passkit as pk
from passkit.analysis.domain_info import DomainInfo, analyze_domain
from passkit.planner.cpu import tile_nest
from passkit.planner.nests import loop_nest
from passkit.schedule.loop_nest import LoopNest
from passkit.schedule.nest import NestSchedule
from passkit.schedule.rules import remove_schedule_rule
from passkit.schedule.schedule import Schedule
from tests.planned import plan

CUDA = pk.PassContext(target="cuda").target
CPU = pk.PassContext(target="cpu").target
SOFTMAX = (
    "x: f32[65536, 1024]; e = exp(sub(x, reduce_max(x, axis=1, keepdims=true)));"
    "return div(e, reduce_sum(e, axis=1, keepdims=true))"
)
GRAPHS = (
    SOFTMAX,
    "x: f32[n, 64]; return div(x, reduce_sum(x, axis=1, keepdims=true))",
    "x: f32[7, 40]; e = exp(x); return div(e, reduce_sum(e, axis=1, keepdims=true)), neg(e)",
    "x: f32[9, 16384]; b: f32[16384]; return sub(mul(x, b), reduce_max(x, axis=1, keepdims=true))",
    "x: f32[300]; return reduce_sum(x, axis=0)",
    "x: f64[5, 6, 7]; y: f64[6, 1]; return add(mul(x, x), y)",
    "x: f16[n, 33]; b: f16[33]; return add(exp(x), b)",
    "x: f32[4, 6, 8, 16]; return sub(x, reduce_mean(x, axis=(1, 3), keepdims=true))",
    "x: f32[1000000]; return reduce_sum(x, axis=0)",
    "x: f32[4096, 1000]; return reduce_sum(x, axis=0)",
    "x: f32[3, 70, 64]; return reduce_max(exp(x), axis=1)",
    "x: f32[5, 9001]; return reduce_sum(exp(x), axis=1)",
    "x: f16[3, 70, 33]; return softmax(x, axis=1)",
    "x: f32[2, 33000]; e = exp(x); return div(e, reduce_sum(e, axis=1, keepdims=true))",
    (
        "x: f32[4, 6, 5, 3, 16]; b: f32[6, 1, 1, 16];"
        "m = reduce_mean(add(x, b), axis=(1, 3, 4), keepdims=true); return sub(x, m)"
    ),
    "x: f32[96, 200]; y: f32[200, 96]; return add(transpose(x, axes=(1, 0)), y)",
    (
        "x: f16[6, 94, n]; y: f16[n, 94, 6]; z: f16[n, 6, 94];"
        "return add(mul(transpose(x, axes=(2, 0, 1)), z), transpose(y, axes=(0, 2, 1)))"
    ),
)
"""Graphs whose first kernel is one loop nest."""


def nest_of(graph: Any, **options: Any) -> tuple[LoopNest, NestSchedule]:
    """Return the loop nest of the first kernel of a graph, and its schedule for CUDA.

    Chunks of a reduction are a nest of their own: no last block joins them.
    """
    apart = evolve(CUDA, rules=evolve(CUDA.rules, max_partial=0))
    planned = plan(graph, "SchedulePlan", target=apart, **options)
    node, schedule = next(iter(planned.attrs["schedule"].items()))
    info = analyze_domain(planned.attrs["subgraph"][node].graph)
    assert isinstance(info, DomainInfo)
    nest = loop_nest(info, schedule)
    assert isinstance(nest, LoopNest) and schedule.nest is not None
    return nest, schedule.nest


def tile_nest_of(graph: Any) -> tuple[LoopNest, Schedule]:
    """Return the loop nest of the first kernel of a graph, and its schedule for the CPU."""
    planned = plan(graph, "SchedulePlan")
    node, schedule = next(iter(planned.attrs["schedule"].items()))
    info = analyze_domain(planned.attrs["subgraph"][node].graph)
    assert isinstance(info, DomainInfo)
    return tile_nest(info), schedule


@contextmanager
def rule(
    function: Callable[..., Any], name: str = "test_rule", target: str = "cuda"
) -> Iterator[None]:
    """Register a rule for a target inside the `with` block."""
    pk.register_schedule_rule(target, name, function)
    try:
        yield
    finally:
        remove_schedule_rule(target, name)
