"""The registry: NNVM's semantics of attributes, levels, groups and aliases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import passkit as pk
from passkit.graph import registry
from passkit.graph.registry import Setting, calling_place
from passkit.passes.base import list_passes

pk.register_attr("TestLevel", str, "a word")
pk.register_attr("TestCount", int, "how many")


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
    add = op("twice").set_attr("TestCount", 1)

    with pytest.raises(
        pk.RegistryError,
        match=r"TestCount of op test_registry_twice is set at plevel=10 from two places: .*"
        r"test_registry.py:\d+ and .*test_registry.py:\d+; give one of them a higher plevel",
    ):
        add.set_attr("TestCount", 2)


def test_the_same_place_replaces() -> None:
    """A line that runs again, as a notebook cell does, replaces what it set."""
    for value in (1, 2):
        op("again").set_attr("TestCount", value)

    assert op("again").get_attr("TestCount") == 2


def test_cells_of_a_notebook_are_one_place() -> None:
    """Code from an interactive session counts as one place."""
    scope: dict[str, Any] = {"place": calling_place, "__name__": "__main__"}
    exec(compile("def cell(): return place(1)", "<stdin>", "exec"), scope)

    assert scope["cell"]() == "interactive session (__main__)"


@pytest.mark.parametrize("level", [0, -1])
def test_levels_are_positive(level: int) -> None:
    """A plevel of 0 or less is refused."""
    with pytest.raises(pk.RegistryError, match=f"TestCount for op .* greater than 0, got {level}"):
        op("sign").set_attr("TestCount", 1, plevel=level)


def test_values_have_one_type() -> None:
    """The message has both types, and what the attribute is."""
    with pytest.raises(pk.RegistryError, match="FCodeGen of op .* of type function, got int: .nod"):
        op("type").set_attr("FCodeGen", 3)
    with pytest.raises(pk.RegistryError, match="TOpCost of op .* of type str, got bool"):
        op("type").set_attr("TOpCost", True)


def test_values_are_known_ones() -> None:
    """Where there are few possible values, the message lists them."""
    with pytest.raises(pk.RegistryError, match="TOpCost of op .* of 'light', 'expensive', got 'ex"):
        op("choice").set_attr("TOpCost", "expnsive")
    with pytest.raises(pk.RegistryError, match="TLibraryCall of op .* of 'gemm', .*, got 'gem'"):
        op("choice").set_attr("TLibraryCall", "gem")


def test_attributes_of_your_own() -> None:
    """`register_attr` declares an attribute, twice if need be; all columns are listed."""
    for _ in range(2):
        pk.register_attr("FTestOwn", Callable, "(node) -> seconds")  # type: ignore[arg-type]
    pk.register_attr("TestOwn", (int, str), "a number or a word")
    op("own").set_attr("FTestOwn", len).set_attr("TestOwn", 3)

    assert registry.table("TestOwn").get("test_registry_own") == 3
    assert registry.table("TestOwn").get(None, "none") == "none"
    assert "TestOwn" in [t.key for t in registry.tables()]
    with pytest.raises(pk.RegistryError, match="TestOwn .* values of type int or str, and now with "
                       "str or float"):  # fmt: skip
        pk.register_attr("TestOwn", (str, float), "")
    with pytest.raises(pk.RegistryError, match="FTestOwn of op .* needs a value of type function, "
                       r"got int: \(node\) -> sec"):  # fmt: skip
        op("own").set_attr("FTestOwn", 3)
    with pytest.raises(pk.ArgumentError, match=r"register_attr\('T'\): kind must be a .*, got"):
        pk.register_attr("T", (int, 3), "")  # type: ignore[arg-type]


@pytest.mark.parametrize("owner", [op("typo"), pk.op_group("test_registry_typo")])
@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("FCodegen", "FCodeGen"),
        ("codegen", "FCodeGen"),
        ("FInferShapes", "FInferShape"),
        ("Schedule", "FSchedule"),
        ("TPattern", "TOpPattern"),
        ("FMyCompute", "FCompute"),
    ],
)
def test_misspelt_attributes(owner: pk.Op, key: str, meant: str) -> None:
    """A name that is nearly a declared one is refused, also by a group without members."""
    way_out = rf"did you mean '{meant}'\? pk.register_attr\('{key}', type, doc\) declares"
    message = f"'{key}' of op .*typo is not declared; {way_out}"
    with pytest.raises(pk.RegistryError, match=message):
        owner.set_attr(key, len)
    assert key not in [t.key for t in registry.tables()]


def test_names_that_are_near_on_purpose() -> None:
    """A declared attribute may have nearly the name of another."""
    pk.register_attr("FCodeGens", Callable, "(node) -> many")  # type: ignore[arg-type]

    assert op("near").set_attr("FCodeGens", len).get_attr("FCodeGens") is len


def test_the_first_value_declares() -> None:
    """An attribute that is declared by nobody and like no other has the type of its first value."""
    op("first").set_attr("TestFirst", 3)

    assert op("first").get_attr("TestFirst") == 3
    with pytest.raises(pk.RegistryError, match="TestFirst of op .* of type int, got str: an attri"):
        op("first").set_attr("TestFirst", "three")


def test_groups_without_members() -> None:
    """A group checks values and levels as an operator does, before it has members."""
    group = pk.op_group("test_registry_empty")
    with pytest.raises(pk.RegistryError, match="FCodeGen of op group .* of type function, got int"):
        group.set_attr("FCodeGen", 3)
    with pytest.raises(pk.RegistryError, match="TestCount for op group .* than 0, got 0"):
        group.set_attr("TestCount", 1, plevel=0)
    group.set_attr("TestCount", 1)
    with pytest.raises(pk.RegistryError, match="TestCount of op group .* plevel=1 from two places"):
        group.set_attr("TestCount", 2)
    group.set_attr("TestCount", 5, plevel=5)
    group.set_attr("TestCount", 4, plevel=4)

    assert op("grouped").include("test_registry_empty").get_attr("TestCount") == 5


@pytest.mark.parametrize("name", [None, "", "two words", 3])
def test_refused_names_leave_the_registry_as_it_was(name: Any) -> None:
    """What has no name is not registered: later calls work."""
    op("named")
    before = pk.list_ops(aliases=True), list_passes(), [t.key for t in registry.tables()]
    calls = {
        "register_op: name": lambda: pk.register_op(name),
        "op test_registry_named: alias": lambda: op("named").add_alias(name),
        "register_pass: name": lambda: pk.register_pass(name)(lambda graph: graph),
        "register_attr: key": lambda: pk.register_attr(name, int, ""),
    }
    for where, call in calls.items():
        with pytest.raises(pk.ArgumentError, match=f"{where} must be a name, such as .*{name!r}$"):
            call()
    assert (pk.list_ops(aliases=True), list_passes(), [t.key for t in registry.tables()]) == before


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

    assert registry.put("TestCount", "x", setting)
    assert not registry.put("TestCount", "x", Setting(2, 4, "there", "you"))
