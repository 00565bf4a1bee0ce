"""The registry: NNVM's semantics of attributes, levels, groups and aliases."""

from __future__ import annotations

from typing import Any

import pytest

import passkit as pk
from passkit.graph import registry
from passkit.graph.registry import Setting, calling_place


def op(name: str) -> pk.Op:
    """An operator of this file."""
    return pk.register_op(f"test_registry_{name}", num_inputs=1)


def test_higher_levels_win() -> None:
    """A higher plevel replaces, a lower one is ignored."""
    add = op("levels").set_attr("TestLevel", "ten")
    add.set_attr("TestLevel", "twelve", plevel=12)
    add.set_attr("TestLevel", "one", plevel=1)

    assert add.get_attr("TestLevel") == "twelve"


def test_the_same_level_from_two_places() -> None:
    """The message names attribute, operator, level and both places."""
    add = op("twice").set_attr("TestTwice", 1)

    with pytest.raises(
        pk.RegistryError,
        match=r"TestTwice of op test_registry_twice is set at plevel=10 from two places: .*"
        r"test_registry.py:\d+ and .*test_registry.py:\d+; give one of them a higher plevel",
    ):
        add.set_attr("TestTwice", 2)


def test_the_same_place_replaces() -> None:
    """A line that runs again, as a notebook cell does, replaces what it set."""
    for value in (1, 2):
        op("again").set_attr("TestAgain", value)

    assert op("again").get_attr("TestAgain") == 2


def test_cells_of_a_notebook_are_one_place() -> None:
    """Code from an interactive session counts as one place."""
    scope: dict[str, Any] = {"place": calling_place, "__name__": "__main__"}
    exec(compile("def cell(): return place(1)", "<stdin>", "exec"), scope)

    assert scope["cell"]() == "interactive session (__main__)"


@pytest.mark.parametrize("level", [0, -1])
def test_levels_are_positive(level: int) -> None:
    """A plevel of 0 or less is refused."""
    with pytest.raises(pk.RegistryError, match=f"TestSign for op .* greater than 0, got {level}"):
        op("sign").set_attr("TestSign", 1, plevel=level)


def test_values_have_one_type() -> None:
    """The message has both types, and what the attribute is."""
    with pytest.raises(pk.RegistryError, match="FCodeGen of op .* of type function, got int: .nod"):
        op("type").set_attr("FCodeGen", 3)
    with pytest.raises(pk.RegistryError, match="TOpCost of op .* of type str, got bool"):
        op("type").set_attr("TOpCost", True)


def test_attributes_of_your_own() -> None:
    """An attribute is declared by its first value; all columns are listed."""
    op("own").set_attr("TestOwn", 3)

    assert registry.table("TestOwn").get("test_registry_own") == 3
    assert registry.table("TestOwn").get(None, "none") == "none"
    assert "TestOwn" in [t.key for t in registry.tables()]
    with pytest.raises(pk.RegistryError, match="TestOwn is declared with values of type int, and"):
        registry.declare("TestOwn", (str, float), "")


def test_unknown_attributes() -> None:
    """A wrong name offers the nearest; a missing value says how to give it."""
    with pytest.raises(pk.RegistryError, match="'FCodGen' is not declared; did you mean 'FCodeGen"):
        op("unknown").get_attr("FCodGen")
    with pytest.raises(
        pk.RegistryError,
        match=r"FGradient is not registered for operator test_registry_unknown; set_attr\('FGrad",
    ):
        op("unknown").get_attr("FGradient")
    assert op("unknown").get_attr("FGradient", None) is None


def test_lower_levels_do_not_take_effect() -> None:
    """`put` says whether it did."""
    setting = Setting(1, 5, "here", "me")

    assert registry.put("TestPut", "x", setting)
    assert not registry.put("TestPut", "x", Setting(2, 4, "there", "you"))
