"""The registry and the operators in it: levels, places, groups, aliases, and re-opening."""

from __future__ import annotations

import copy
import pickle
import re

import pytest

import passkit as pk
from passkit import registry
from passkit.errors import RegistryError


def code(node: object, x: pk.ast.Expr) -> pk.ast.Expr:
    """The operator that changes nothing."""
    return x


def test_an_operator_is_made_once_and_re_opened() -> None:
    """Registering a name again is the same operator, with more attributes and parameters."""
    first = pk.register_op("reg_once", num_inputs=1, params={"a": 1})
    again = pk.register_op("reg_once", params={"b": 2}, doc="a thing")

    assert again is first is pk.get_op("reg_once") is pk.ops.reg_once
    assert first.params == {"a": 1, "b": 2}
    assert first.doc == "a thing"
    assert copy.deepcopy(first) is first is pickle.loads(pickle.dumps(first))


def test_re_opening_with_other_counts_names_the_first_place() -> None:
    """An operator has one number of inputs and one of results."""
    pk.register_op("reg_counts", num_inputs=2)

    with pytest.raises(RegistryError, match=r"at .*test_registry.py:\d+ with num_inputs=2, now"):
        pk.register_op("reg_counts", num_inputs=3)


def test_the_higher_level_wins_whenever_it_comes() -> None:
    """A lower level is ignored silently, before and after."""
    op = pk.register_op("reg_levels", num_inputs=1)
    op.set_attr("TOpCost", "first", plevel=5).set_attr("TOpCost", "high", plevel=11)
    op.set_attr("TOpCost", "low", plevel=2)

    assert op.get_attr("TOpCost") == "high"


def test_one_level_from_two_places_names_both() -> None:
    """Neither place wins by being imported later."""
    op = pk.register_op("reg_twice", num_inputs=1)
    op.set_attr("FCodeGen", code)

    with pytest.raises(RegistryError, match=r"py:\d+ and op reg_twice at .*py:\d+; give one"):
        op.set_attr("FCodeGen", code)


def test_the_same_place_replaces() -> None:
    """A notebook's cell, or a loop, may run again."""
    op = pk.register_op("reg_again", num_inputs=1)
    for cost in ("one", "two"):
        op.set_attr("TOpCost", cost)

    assert op.get_attr("TOpCost") == "two"


def test_levels_are_positive_and_values_have_a_type() -> None:
    """What an attribute takes is said in the message."""
    op = pk.register_op("reg_types", num_inputs=1)

    with pytest.raises(RegistryError, match="TOpCost for op reg_types must be greater.*got 0"):
        op.set_attr("TOpCost", "x", plevel=0)
    with pytest.raises(RegistryError, match="FCodeGen of op reg_types needs .* got int"):
        op.set_attr("FCodeGen", 3)


def test_attributes_of_ones_own() -> None:
    """Any name can be an attribute; its first value decides the type."""
    op = pk.register_op("reg_own", num_inputs=1)
    op.set_attr("TMyColour", "red")

    assert registry.table("TMyColour").get("reg_own") == "red"
    assert registry.table("TMyColour").get(None, "none") == "none"
    with pytest.raises(RegistryError, match="TMyColour of op reg_own needs .*str, got int"):
        op.set_attr("TMyColour", 3, plevel=11)
    with pytest.raises(RegistryError, match="TMyColour is declared with .*str, and now with int"):
        registry.declare("TMyColour", int, "a number")


def test_what_is_not_registered_offers_the_nearest() -> None:
    """Operators, attributes, and attributes of an operator."""
    op = pk.register_op("reg_bare", num_inputs=1)

    with pytest.raises(RegistryError, match="'reg_bear' is not registered; did you mean 'reg_b"):
        pk.get_op("reg_bear")
    with pytest.raises(RegistryError, match="'FCodegen' is not declared; did you mean 'FCodeGen"):
        registry.table("FCodegen")
    with pytest.raises(RegistryError, match="FGradient is not registered for operator reg_bare"):
        op.get_attr("FGradient")
    with pytest.raises(AttributeError, match="'reg_bear' is not registered"):
        pk.ops.reg_bear  # noqa: B018
    with pytest.raises(AttributeError, match="'passkit' has no attribute 'complie'"):
        pk.complie  # type: ignore[attr-defined]  # noqa: B018
    assert op.get_attr("FGradient", None) is None
    assert op.pattern is pk.OpPattern.OPAQUE


def test_aliases_are_other_names_of_the_same_operator() -> None:
    """They are found, but listed only on request; a name that is taken is refused."""
    op = pk.register_op("reg_named", num_inputs=1).add_alias("reg_alias")

    assert pk.get_op("reg_alias") is op
    assert "reg_alias" in pk.list_ops(aliases=True)
    assert "reg_alias" not in pk.list_ops()
    with pytest.raises(RegistryError, match="'erf' of op reg_named is already the name of op erf"):
        op.add_alias("erf")


def test_groups_give_attributes_to_members_present_and_future() -> None:
    """In either order; a member's own attribute is stronger."""
    early, late = pk.register_op("reg_early"), pk.register_op("reg_late")
    early.include("reg_group")
    pk.op_group("reg_group").set_attr("TOpCost", "shared").set_attr("FCodeGen", code)
    late.set_attr("TOpCost", "own")
    late.include("reg_group").include("reg_group")

    assert early.get_attr("TOpCost") == "shared"
    assert late.get_attr("TOpCost") == "own"
    assert early.has_attr("FCodeGen")
    assert late.has_attr("FCodeGen")


def test_the_place_of_a_registration_is_known() -> None:
    """It is the line that called, so that a conflict leads there."""
    op = pk.register_op("reg_placed", num_inputs=1)

    assert re.search(r"test_registry\.py:\d+$", op.place)
