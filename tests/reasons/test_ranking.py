"""Ranking: the template of a group, the reason for it, and the other templates."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

import passkit as pk

SUMS = "x: f32[4096, 300]; e = exp(x); t = reduce_sum(e, axis=1); return t"


def ranked(text: str, name: str | None = None, **options: Any) -> Any:
    """The only group of a graph in text, or the one of a name."""
    (group,) = pk.templates(pk.parse(text), name, **options)
    return group


def test_a_group_lists_operators_costs_and_other_templates() -> None:
    """A group has the names of its operators, tiles, bytes, seconds and other templates."""
    group = ranked(SUMS)

    assert (group.name, group.operators, group.composition) == ("t", ("e", "t"), "row")
    assert group.source.value == "model"
    assert group.nbytes == 4096 * 301 * 4 and group.seconds > 0
    assert group.as_dict()["others"] and len(group.as_dict()) == 12
    assert str(group).count("reduce_sum_1[") == 4
    assert ranked(SUMS, templates={"t": group.template}).template == group.template


def test_the_reason_for_a_template_is_a_sentence() -> None:
    """A template was specified, is the only one, is ranked first, or follows a rule."""
    group = ranked(SUMS)
    others = group.others
    specified = ranked(SUMS, templates={"t": str(others[0].template)})

    assert specified.why == "it was specified in the option templates"
    assert evolve(group, others=()).why == "it is the only possible template"
    unknown = evolve(group, seconds=0.0).why
    assert unknown == (
        f"sizes are unknown, so a rule prefers this kind of template to {len(others)} others"
    )
    fastest = evolve(group, seconds=1e-9)
    assert fastest.why == f"the cost model ranks it before {len(others)} others"
    assert evolve(fastest, others=others[:1]).why.endswith("before the other one")
    slow = evolve(group, seconds=2 * others[0].seconds)
    assert slow.why == (
        "a rule prefers templates of the kind row here, although the cost model estimates another "
        "template at 0.50 times its seconds"
    )


def test_a_group_is_found_by_the_name_of_an_operator() -> None:
    """The name of an operator selects its group; an unknown name offers the nearest."""
    two = f"{SUMS.removesuffix('return t')} b = matmul(x, x, transpose_b=true); "
    two += "m = reduce_max(b, axis=1); return t, m"

    assert ranked(two, "e").name == "t"
    assert len(pk.templates(pk.parse(two))) == 2
    with pytest.raises(pk.GraphError, match="no group has 'T'; known: e, m, t"):
        pk.templates(pk.parse(two), "T")


def test_a_graph_of_library_calls_has_no_groups() -> None:
    """A graph of a library's product has no group."""
    assert str(pk.templates(pk.parse("x: f32[99, 99]; return matmul(x, x)"))) == (
        "no operators are fused"
    )
