"""Iteration spaces: axes of a group, and where each of its values lies in them."""

from __future__ import annotations

from typing import Any

import pytest

import passkit as pk
from passkit.analysis.domain import ValueKind
from passkit.analysis.domain_info import DomainInfo, analyze_domain
from passkit.diagnostics import Diagnostic
from passkit.graph.attribute_calls import reduce_of
from passkit.program.planning import planned


def info(text: str) -> DomainInfo:
    """The layout of a graph in text that is one group."""
    found = analyze_domain(pk.parse(text))
    assert isinstance(found, DomainInfo), found
    return found


def axes(text: str) -> list[tuple[Any, bool]]:
    """Extents, and whether they are folded."""
    return [
        (a.extent if isinstance(a.extent, int) else str(a.extent), a.reduced)
        for a in info(text).domain.axes
    ]


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("x: f32[3, 4, 5]; return exp(x)", [(60, False)]),
        ("x: f32[3, 4, 5]; y: f32[5]; return add(x, y)", [(12, False), (5, False)]),
        ("x: f32[3, 4, 5]; y: f32[4, 1]; return add(x, y)", [(3, False), (4, False), (5, False)]),
        ("x: f32[3, 4, 5]; return reduce_sum(x, axis=2)", [(12, False), (5, True)]),
        ("x: f32[3, 4, 5]; return reduce_sum(x, axis=(1, 2))", [(3, False), (20, True)]),
        ("x: f32[3, 4, 5]; return reduce_sum(x, axis=1)", [(3, False), (4, True), (5, False)]),
        ("x: f32[3, 4, 5]; return reduce_sum(x)", [(60, True)]),
        (
            "x: f32[12, 5]; return reduce_sum(reshape(x, shape=(3, 20)), axis=1)",
            [(3, False), (20, True)],
        ),
        ("x: f32[n, m]; return transpose(exp(x))", [("m", False), ("n", False)]),
        ("x: f32[]; return exp(x)", [(1, False)]),
    ],
)
def test_axes_are_as_few_as_reads_allow(text: str, wanted: list[tuple[Any, bool]]) -> None:
    """Neighbouring axes that every access steps through as one are one."""
    assert axes(text) == wanted


def test_kinds() -> None:
    """Values of all points, of rows, and those that are computed where they are read."""
    found = info(
        "x: f32[6, 8]; e = exp(x); s = reduce_sum(e, axis=1, keepdims=true);"
        "r = log(s); return add(sub(e, r), neg(transpose(transpose(x))))"
    )
    kinds = {n.op.name: kind for n, kind in found.kinds.items() if n.op is not None}

    assert kinds["exp"] is kinds["sub"] is ValueKind.POINT
    assert kinds["reduce_sum"] is kinds["log"] is ValueKind.REDUCED
    lazy = info("x: f32[8]; y = neg(x); return sub(y, concat(y, axis=0))")
    assert all(ValueKind.POINT in r for r in lazy.kinds.values())


@pytest.mark.parametrize(
    "text, code, message",
    [
        (
            "x: f32[4, 5]; return transpose(x), x",
            "graph.output_is_input",
            "an output of the kernel is one of its inputs",
        ),
        (
            "x: f32[4, 5]; e = exp(x); return reduce_sum(e, axis=0), reduce_sum(e, axis=1)",
            "domain.output",
            "has 4 elements, the kernel's iteration domain 20",
        ),
        (
            "x: f32[4, 4]; e = exp(x); return reduce_sum(e, axis=0), reduce_sum(e, axis=1)",
            "domain.value_axes",
            "reduces other axes than its kernel",
        ),
        ("x: f32[4, 5]; s = reduce_sum(x, axis=1); return reduce_sum(s, axis=0)", "", ""),
        (
            "x: f32[4]; y: f32[5]; return exp(x), exp(y)",
            "domain.output",
            "elements, the kernel's iteration domain 5",
        ),
    ],
)
def test_what_has_no_common_space(text: str, code: str, message: str) -> None:
    """A group that cannot be one kernel says at which node, and why."""
    found = analyze_domain(pk.parse(text))

    assert isinstance(found, Diagnostic) and found.at
    assert not code or (found.code, message in str(found)) == (code, True)


def test_fused_groups_have_a_layout() -> None:
    """Every group that Fusion makes has one, in which each reduction is a row value."""
    graph = planned(
        pk.parse("x: f32[5, 30]; return softmax(x), layer_norm(x, scale=false, center=false)"),
        "Fusion",
    )
    for group in graph.attrs["subgraph"].values():
        found = analyze_domain(group.graph)
        assert isinstance(found, DomainInfo)
        assert all(
            found.kinds[n] is ValueKind.REDUCED for n in group.ops if reduce_of(n) is not None
        )
