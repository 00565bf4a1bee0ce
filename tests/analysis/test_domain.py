"""Iteration domains: the axes of a group, and the kind of each of its values."""

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
    """Return the domain of a graph in text that is one group."""
    result = analyze_domain(pk.parse(text))
    assert isinstance(result, DomainInfo), result
    return result


def axes(text: str) -> list[tuple[Any, bool]]:
    """Return the extent of each axis, and whether it is reduced."""
    return [
        (a.extent if isinstance(a.extent, int) else str(a.extent), a.reduced)
        for a in info(text).domain.axes
    ]


@pytest.mark.parametrize(
    "text, expected",
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
def test_axes_are_as_few_as_reads_allow(text: str, expected: list[tuple[Any, bool]]) -> None:
    """Neighbouring axes that every access steps through as one are merged."""
    assert axes(text) == expected


def test_kinds() -> None:
    """Values are POINT, REDUCED after a reduction, or INLINE where they are read elsewhere."""
    softmax_like = info(
        "x: f32[6, 8]; e = exp(x); s = reduce_sum(e, axis=1, keepdims=true);"
        "r = log(s); return add(sub(e, r), neg(transpose(transpose(x))))"
    )
    kinds = {n.op.name: kind for n, kind in softmax_like.kinds.items() if n.op is not None}

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
def test_groups_without_a_domain(text: str, code: str, message: str) -> None:
    """A group without a common domain has a diagnostic with the node and the reason."""
    diagnostic = analyze_domain(pk.parse(text))

    assert isinstance(diagnostic, Diagnostic) and diagnostic.at
    assert not code or (diagnostic.code, message in str(diagnostic)) == (code, True)


def test_fused_groups_have_a_domain() -> None:
    """Every group of Fusion has a domain, in which each reduction is REDUCED."""
    graph = planned(
        pk.parse("x: f32[5, 30]; return softmax(x), layer_norm(x, scale=false, center=false)"),
        "Fusion",
    )
    for group in graph.attrs["subgraph"].values():
        result = analyze_domain(group.graph)
        assert isinstance(result, DomainInfo)
        assert all(
            result.kinds[n] is ValueKind.REDUCED for n in group.ops if reduce_of(n) is not None
        )
