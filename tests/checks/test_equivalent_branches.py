"""Alike: races among many packed kernels are found by looking at two of each kind."""

from __future__ import annotations

import pytest

import passkit as pk
from passkit.ast.stage import KernelAST, Place
from passkit.checks import equivalent_branches as alike
from passkit.checks.equivalent_branches import equivalent_branches, two_of_each_kind
from passkit.checks.hazards import hazards
from passkit.program.planning import DEFAULT_PIPELINE
from passkit.transforms import insert_barriers as barriers
from tests.random_stages import places, waiting, waits_at

o = pk.ops


def packed() -> KernelAST:
    """Twelve normalisations of one shape and twelve of another in one kernel."""
    outputs = []
    for k in range(24):
        x = pk.var(f"x{k}", (32, 64) if k % 2 else (17, 33))
        d = x - o.reduce_mean(x, axis=-1, keepdims=True)
        s = o.reduce_mean(d * d, axis=-1, keepdims=True)
        outputs.append(o.tanh(d * o.rsqrt(s + 1e-5) * (k + 1.0)))
    passes = DEFAULT_PIPELINE[: DEFAULT_PIPELINE.index("CodeGen") + 1]
    made = pk.ApplyPasses(pk.Graph(outputs), passes)
    (kernel,) = made.attrs["kernel"].values()
    return kernel.ast


def test_kinds() -> None:
    """Spans that touch memory alike are of one kind; two of each are looked at."""
    ast = packed()
    (phase,) = ast.phases
    scratch = {b.name: b for b in ast.scratch if b.place is Place.SHARED}
    facts = [(k, "", len(p.stages)) for k, p in enumerate(phase.parts)]
    kinds = equivalent_branches(phase.parts, scratch, facts)
    first = kinds[0]
    assert len(first) > 3 and len(kinds) < len(phase.parts) / 3
    assert two_of_each_kind([first]) == {*first[0], *first[1]}

    odd = [*facts, (first[2][0], next(iter(scratch)), "writes")]
    assert equivalent_branches(phase.parts, scratch, odd)[0] == first[:2] + first[3:]
    shared = [(k, "y0", "writes") for k in (0, len(phase.parts) - 1)]
    assert equivalent_branches(phase.parts, scratch, shared) == [[range(len(phase.parts))]]


def test_each_wait_of_each_span_is_missed() -> None:
    """A wait that one of many alike has lost is reported."""
    ast = packed()
    assert not list(hazards(ast))
    needed = [p for p in places(ast) if waits_at(ast, p)]
    assert len(needed) > 6
    for place in needed:
        assert list(hazards(waiting(ast, place, False)))


def test_waits_are_those_of_all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as if each span were compared with each."""
    ast = packed()
    bare = ast
    for place in places(ast):
        bare = waiting(bare, place, False)
    few = barriers.insert_barriers(bare)
    monkeypatch.setattr(barriers, "two_of_each_kind", lambda kinds: _all(kinds))
    assert barriers.insert_barriers(bare) == few == ast


def _all(kinds: list[alike.Spans]) -> frozenset[int]:
    return frozenset(part for spans in kinds for span in spans for part in span)
