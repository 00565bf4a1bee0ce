"""Races among many packed kernels are found by comparing two branches of each class."""

from __future__ import annotations

import pytest

import passkit as pk
from passkit.ast.stage import KernelAST, Place
from passkit.checks.equivalent_branches import Branches, equivalent_branches, representatives
from passkit.checks.stage_races import stage_races
from passkit.program.planning import DEFAULT_PIPELINE
from passkit.transforms import insert_barriers as barriers
from tests.random_stages import barrier_places, has_barrier, with_barrier

o = pk.ops


def packed() -> KernelAST:
    """Return a kernel of twelve normalizations of one shape and twelve of another."""
    outputs = []
    for k in range(24):
        x = pk.var(f"x{k}", (32, 64) if k % 2 else (17, 33))
        d = x - o.reduce_mean(x, axis=-1, keepdims=True)
        s = o.reduce_mean(d * d, axis=-1, keepdims=True)
        outputs.append(o.tanh(d * o.rsqrt(s + 1e-5) * (k + 1.0)))
    passes = DEFAULT_PIPELINE[: DEFAULT_PIPELINE.index("CodeGen") + 1]
    lowered = pk.ApplyPasses(pk.Graph(outputs), passes)
    (kernel,) = lowered.attrs["kernel"].values()
    return kernel.ast


def test_classes() -> None:
    """Branches with equal accesses are of one class, which has two representatives."""
    ast = packed()
    (phase,) = ast.phases
    scratch = {b.name: b for b in ast.scratch if b.place is Place.SHARED}
    facts = [(k, "", len(p.stages)) for k, p in enumerate(phase.parts)]
    classes = equivalent_branches(phase.parts, scratch, facts)
    first = classes[0]
    assert len(first) > 3 and len(classes) < len(phase.parts) / 3
    assert representatives([first]) == {*first[0], *first[1]}

    odd = [*facts, (first[2][0], next(iter(scratch)), "writes")]
    assert equivalent_branches(phase.parts, scratch, odd)[0] == first[:2] + first[3:]
    shared = [(k, "y0", "writes") for k in (0, len(phase.parts) - 1)]
    assert equivalent_branches(phase.parts, scratch, shared) == [[range(len(phase.parts))]]


def test_a_missing_barrier_in_any_branch_is_reported() -> None:
    """A barrier that one of many equivalent branches has lost is reported."""
    ast = packed()
    assert not list(stage_races(ast))
    present = [p for p in barrier_places(ast) if has_barrier(ast, p)]
    assert len(present) > 6
    for place in present:
        assert list(stage_races(with_barrier(ast, place, False)))


def test_barriers_are_those_of_all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The barriers are those that a comparison of all branches with each other gives."""
    ast = packed()
    bare = ast
    for place in barrier_places(ast):
        bare = with_barrier(bare, place, False)
    inserted = barriers.insert_barriers(bare)
    monkeypatch.setattr(barriers, "representatives", _all)
    assert barriers.insert_barriers(bare) == inserted == ast


def _all(classes: list[Branches]) -> frozenset[int]:
    """Return the parts of all branches."""
    return frozenset(part for branches in classes for branch in branches for part in branch)
