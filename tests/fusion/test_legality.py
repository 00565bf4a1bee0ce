"""Legality: why clusters cannot be one kernel, at both levels."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

import passkit as pk
from passkit.diagnostics import Diagnostic
from passkit.fusion.legality import Legality, Level
from passkit.graph.quotient import QuotientGraph
from passkit.passes.context import PassContext
from passkit.program.planning import DEFAULT_PIPELINE
from passkit.target import cpu

BEFORE = [*DEFAULT_PIPELINE[: DEFAULT_PIPELINE.index("Fusion")], "Complete", "InferShape"]
CHAIN = "x: f32[4, 5]; a = exp(x); b = tanh(a); c = sqrt(b); return c"
SORTED = "x: f32[4]; a = sort(x); b = neg(a); return b"
EMPTY = "x: f32[0, 4]; a = exp(x); b = neg(a); return b"
PRODUCT = "x: f32[4, 4]; a = exp(x); p = matmul(a, a); c = neg(p); return c"
BOTH_AXES = """x: f32[n, m]; t = reduce_sum(x, axis=0, keepdims=true); y = div(x, t)
z = reduce_max(y, axis=1); return z, y"""


def problem(
    text: str, names: str, level: Level, in_phases: bool = False, **options: Any
) -> Diagnostic | None:
    """Return why the operators of some names cannot be one kernel."""
    with PassContext(**options) as context:
        graph = pk.ApplyPasses(pk.parse(text), [*BEFORE, "InferType"])
        quotient = QuotientGraph(graph)
        node_of = {name: n for n, name in graph.names.items()}
        numbers = [quotient.cluster_of[node_of[name]] for name in names.split()]
        return Legality(graph, context).check(quotient, numbers, level, in_phases)


CASES: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "a path that returns": (CHAIN, "a c", {}, "graph.cycle"),
    "no kernel code": (
        "x: f32[4]; a = sort(x); b = neg(a); return b",
        "a b",
        {},
        "op.host_library",
    ),
    "an option for one": (CHAIN, "a b", {"no_fuse": ["b"]}, "hint.no_fuse"),
    "an option for two": (CHAIN, "a b", {"keep_apart": [["a", "b"]]}, "hint.keep_apart"),
    "no elements": (
        "x: f32[0, 4]; a = exp(x); b = neg(a); return b",
        "a b",
        {},
        "graph.empty_member",
    ),
    "many operators": (
        CHAIN,
        "a b c",
        {"target": evolve(cpu(), max_ops=2, light_ops=1)},
        "limit.ops",
    ),
    "many arrays": (
        "x: f32[4]; y: f32[4]; z: f32[4]; a = add(x, y); b = add(a, z); return b",
        "a b",
        {"target": evolve(cpu(), max_buffers=2)},
        "limit.buffers",
    ),
}


@pytest.mark.parametrize("label", CASES)
def test_illegal_clusters_have_a_reason(label: str) -> None:
    """The cheap test says why, and the full one says the same."""
    text, names, options, code = CASES[label]

    for level in Level:
        diagnostic = problem(text, names, level, **options)
        assert diagnostic is not None and diagnostic.code == code


@pytest.mark.parametrize(
    "text, names, options",
    [
        (CHAIN, "a b", {}),
        (CHAIN, "a b c", {}),
        (CHAIN, "a", {"no_fuse": ["a"]}),
        (PRODUCT, "a p c", {}),
        ("x: f32[0, 4]; a = exp(x); return a", "a", {}),
    ],
)
def test_legal_clusters(text: str, names: str, options: dict[str, Any]) -> None:
    """Connected operators, products and any single operator can be kernels."""
    assert [problem(text, names, level, **options) for level in Level] == [None, None, None]


def test_the_full_test_asks_for_a_schedule() -> None:
    """A GPU computes reductions of both axes of unknown length only in phases."""
    hints = {"keep_together": [["t", "y", "z"]], "target": "opencl"}

    assert problem(BOTH_AXES, "t y z", Level.CHEAP, **hints) is None
    diagnostic = problem(BOTH_AXES, "t y z", Level.FULL, **hints)
    assert diagnostic is not None and diagnostic.code.startswith("domain.")
    assert problem(BOTH_AXES, "t y z", Level.FULL, in_phases=True, **hints) is None
