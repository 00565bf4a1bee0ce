"""Why a group runs as it does: its template beside the others."""

from __future__ import annotations

import pytest
from attrs import evolve

import passkit as pk
from passkit.plan.schedule import Source
from passkit.reasons.ranking import Ranked, rank
from passkit.templating.template import parse_template


def ranked(text: str, name: str | None = None) -> Ranked:
    """The only group of a graph in text, or the one of a name."""
    (found,) = pk.templates(pk.parse(text), name)
    return found  # type: ignore[no-any-return]


SUMS = "x: f32[4096, 300]; e = exp(x); t = reduce_sum(e, axis=1); return t"


def test_what_is_told() -> None:
    """Operators by their names, tiles, bytes, seconds, and others that could be."""
    found = ranked(SUMS)

    assert (found.name, found.operators, found.composition) == ("t", ("e", "t"), "row")
    assert parse_template(found.template) and found.source is Source.MODEL
    assert found.nbytes == 4096 * 301 * 4 and found.seconds > 0
    assert found.as_dict()["others"] and len(found.as_dict()) == 11
    assert str(found).count("reduce_sum_1[") == 4


def test_why() -> None:
    """It was given, is alone, is the quickest, is the rule, or nobody knows."""
    found = ranked(SUMS)
    others = found.others

    assert evolve(found, source=Source.USER).why == "it was given"
    assert evolve(found, others=()).why == "it is the only one"
    assert evolve(found, seconds=0.0).why.startswith("sizes are unknown, so it stands before")
    assert evolve(found, seconds=1e-9).why == f"the model has it before {len(others)} others"
    assert evolve(found, seconds=1e-9, others=others[:1]).why.endswith("before the other one")
    slow = evolve(found, seconds=2 * others[0].seconds)
    assert slow.why == "row is the rule here; the model has one at 0.50 of its seconds"


def test_by_name() -> None:
    """The group of an operator; an unknown name offers the nearest."""
    two = f"{SUMS.removesuffix('return t')} b = matmul(x, x, transpose_b=true); "
    two += "m = reduce_max(b, axis=1); return t, m"

    assert ranked(two, "e").name == "t"
    assert len(pk.templates(pk.parse(two))) == 2
    with pytest.raises(pk.GraphError, match="no group has 'T'; known: e, m, t"):
        pk.templates(pk.parse(two), "T")


def test_without_schedules() -> None:
    """Ranking reads what SchedulePlan left."""
    with pytest.raises(pk.PassError, match=r"Graph\(.* has no attribute 'schedule', which t"):
        rank(pk.parse(SUMS))


def test_nothing_to_rank() -> None:
    """A graph of a library's product has no group."""
    assert str(pk.templates(pk.parse("x: f32[99, 99]; return matmul(x, x)"))) == (
        "no operators are fused"
    )
