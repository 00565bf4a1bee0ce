"""The registry of attributes: levels, groups and declarations, with NNVM's semantics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import passkit as pk
from tests.command import passkit

pk.register_attr("TestLevel", str, "a word")
pk.register_attr("TestCount", int, "how many")


def op(name: str) -> pk.Op:
    """Return an operator of this file."""
    return pk.register_op(f"test_registry_{name}", num_inputs=1)


def is_declared(key: Any) -> bool:
    """Return whether an attribute is declared, as messages tell."""
    with pytest.raises(pk.RegistryError) as caught:
        op("without_attributes").get_attr(key)
    return "is not declared" not in str(caught.value)


def test_higher_levels_win() -> None:
    """A higher plevel replaces, a lower one is ignored."""
    add = op("levels").set_attr("TestLevel", "ten")
    add.set_attr("TestLevel", "twelve", plevel=12)
    add.set_attr("TestLevel", "one", plevel=1)

    assert add.get_attr("TestLevel") == "twelve"


def test_two_values_at_the_same_level_are_refused() -> None:
    """The message names attribute, operator, level and both source positions."""
    add = op("twice").set_attr("TestCount", 1)

    with pytest.raises(
        pk.RegistryError,
        match=r"TestCount of op test_registry_twice is set at plevel=10 from two places: .*"
        r"test_registry.py:\d+ and .*test_registry.py:\d+; give one of them a higher plevel",
    ):
        add.set_attr("TestCount", 2)


def test_the_same_line_replaces_its_value() -> None:
    """A line that runs again, as a notebook cell does, replaces the value that it set."""
    for value in (1, 2):
        op("again").set_attr("TestCount", value)

    assert op("again").get_attr("TestCount") == 2


def test_cells_of_a_notebook_may_replace_each_others_values() -> None:
    """All code of an interactive session counts as one source position."""
    for value in (1, 2):
        code = f"pk.register_op('test_registry_cell').set_attr('TestCount', {value})\n"
        scope: dict[str, Any] = {"pk": pk, "__name__": "__main__"}
        exec(compile("\n" * value + code, "<stdin>", "exec"), scope)

    assert op("cell").get_attr("TestCount") == 2
    assert op("cell").place == "interactive session (__main__)"


@pytest.mark.parametrize("level", [0, -1])
def test_levels_below_1_are_refused(level: int) -> None:
    """A plevel must be positive."""
    with pytest.raises(pk.RegistryError, match=f"TestCount for op .* greater than 0, got {level}"):
        op("sign").set_attr("TestCount", 1, plevel=level)


def test_values_of_another_type_are_refused() -> None:
    """The message has both types, and the documentation of the attribute."""
    with pytest.raises(pk.RegistryError, match="FCodeGen of op .* of type function, got int: .nod"):
        op("type").set_attr("FCodeGen", 3)
    with pytest.raises(pk.RegistryError, match="TOpCost of op .* of type str, got bool"):
        op("type").set_attr("TOpCost", True)


def test_values_that_are_no_choice_are_refused() -> None:
    """Where an attribute has few possible values, the message lists them."""
    with pytest.raises(pk.RegistryError, match="TOpCost of op .* of 'light', 'expensive', got 'ex"):
        op("choice").set_attr("TOpCost", "expnsive")
    with pytest.raises(pk.RegistryError, match="TLibraryCall of op .* of 'gemm', .*, got 'gem'"):
        op("choice").set_attr("TLibraryCall", "gem")


def test_custom_attributes_are_declared_with_a_type() -> None:
    """`register_attr` may be repeated; another type is refused, as are values of another type."""
    for _ in range(2):
        pk.register_attr("FTestOwn", Callable, "(node) -> seconds")  # type: ignore[arg-type]
    pk.register_attr("TestOwn", (int, str), "a number or a word")
    op("own").set_attr("FTestOwn", len).set_attr("TestOwn", 3)

    assert op("own").get_attr("TestOwn") == 3
    assert op("without_attributes").get_attr("TestOwn", "none") == "none"
    assert is_declared("TestOwn")
    message = "TestOwn .* values of type int or str, and now with str or float"
    with pytest.raises(pk.RegistryError, match=message):
        pk.register_attr("TestOwn", (str, float), "")
    message = r"FTestOwn of op .* needs a value of type function, got int: \(node\) -> sec"
    with pytest.raises(pk.RegistryError, match=message):
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
def test_misspelled_attributes_are_refused(owner: pk.Op, key: str, meant: str) -> None:
    """A name similar to a declared one is refused, also by a group without members."""
    way_out = rf"did you mean '{meant}'\? pk.register_attr\('{key}', type, doc\) declares"
    message = f"'{key}' of op .*typo is not declared; {way_out}"
    with pytest.raises(pk.RegistryError, match=message):
        owner.set_attr(key, len)
    assert not is_declared(key)


def test_declared_attributes_may_have_similar_names() -> None:
    """`register_attr` accepts a name similar to that of another attribute."""
    pk.register_attr("FCodeGens", Callable, "(node) -> many")  # type: ignore[arg-type]

    assert op("near").set_attr("FCodeGens", len).get_attr("FCodeGens") is len


def test_the_first_value_declares_an_attribute() -> None:
    """An undeclared attribute of a new name gets the type of its first value."""
    op("first").set_attr("TestFirst", 3)

    assert op("first").get_attr("TestFirst") == 3
    with pytest.raises(pk.RegistryError, match="TestFirst of op .* of type int, got str: an attri"):
        op("first").set_attr("TestFirst", "three")


def test_groups_without_members_check_values_and_levels() -> None:
    """A group refuses values and levels as an operator does, before it has members."""
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

    member = op("grouped").include("test_registry_empty")
    assert member.get_attr("TestCount") == 5
    group.set_attr("TestCount", 3, plevel=3)
    assert member.get_attr("TestCount") == 5


@pytest.mark.parametrize("name", [None, "", "two words", 3])
def test_refused_names_do_not_change_the_registry(
    name: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """An invalid name is not registered as operator, alias, pass or attribute."""
    op("named")

    def registered() -> tuple[list[str], str]:
        assert passkit("passes") == 0
        return pk.list_ops(aliases=True), capsys.readouterr().out

    before = registered()
    calls = {
        "register_op: name": lambda: pk.register_op(name),
        "op test_registry_named: alias": lambda: op("named").add_alias(name),
        "register_pass: name": lambda: pk.register_pass(name)(lambda graph: graph),
        "register_attr: key": lambda: pk.register_attr(name, int, ""),
    }
    for where, call in calls.items():
        with pytest.raises(pk.ArgumentError, match=f"{where} must be a name, such as .*{name!r}$"):
            call()
    assert registered() == before
    with pytest.raises(pk.PasskitError, match=r"is not declared|must be a string"):
        op("named").get_attr(name)


def test_unknown_attributes_and_missing_values_are_refused() -> None:
    """The message has the nearest attribute, or how to set the value."""
    with pytest.raises(pk.RegistryError, match="'FCodGen' is not declared; did you mean 'FCodeGen"):
        op("unknown").get_attr("FCodGen")
    with pytest.raises(
        pk.RegistryError,
        match=r"FGradient is not registered for operator test_registry_unknown; set_attr\('FGrad",
    ):
        op("unknown").get_attr("FGradient")
    assert op("unknown").get_attr("FGradient", None) is None
