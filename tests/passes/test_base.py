"""The registry of passes."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

import passkit as pk
from passkit.passes.base import find_pass, list_passes, provider, providers


def keep(graph: pk.Graph) -> pk.Graph:
    """Return the graph."""
    return graph


def test_a_registered_function_becomes_a_pass() -> None:
    """The decorator gives a Pass that can be called like the function."""

    @pk.register_pass("TestCountNodes", provides=("count",))
    def count(graph: pk.Graph) -> pk.Graph:
        """How many nodes there are."""
        return graph.with_attrs(count=len(graph.nodes))

    graph = pk.Graph([pk.ops.exp(pk.var("x", (3,)))])

    assert isinstance(count, pk.Pass)
    assert find_pass("TestCountNodes") is count
    assert count(graph).attrs["count"] == 2
    assert count.doc == "How many nodes there are."


def test_registering_again_from_the_same_place_replaces_the_pass() -> None:
    """A notebook cell that runs again registers its pass again."""
    created = [pk.register_pass("TestAgain")(keep) for _ in range(2)]

    assert find_pass("TestAgain") is created[1] is not created[0]


def test_two_places_clash_and_are_named() -> None:
    """Two passes of one name are an error that names both files and lines."""
    pk.register_pass("TestTwice")(keep)

    with pytest.raises(
        pk.RegistryError, match=r"TestTwice is registered at \S+test_base.py:\d+"
    ) as e:
        pk.register_pass("TestTwice")(keep)
    assert str(e.value).count("test_base.py:") == 2


def test_names_of_bundled_passes_are_reserved() -> None:
    """A user's pass cannot take the name of a bundled pass that has not been imported yet."""
    with pytest.raises(
        pk.RegistryError, match=r"pass InferShape is registered at .*infer_shape.py"
    ):
        pk.register_pass("InferShape")(keep)


def test_an_unknown_pass_offers_the_nearest() -> None:
    """The error for a misspelt name has the nearest name."""
    with pytest.raises(
        pk.RegistryError, match="'InferShap' is not registered; did you mean 'InferShape'"
    ):
        find_pass("InferShap")


def test_bundled_passes_are_imported_from_the_file_of_their_name() -> None:
    """Looking up a pass imports the file that is named like it."""
    folder = Path(pk.__file__).parent / "passes"
    for name in ("InferShape", "InferType", "Simplify", "PlanMemory", "Functionalize", "Expand"):
        place = find_pass(name).place

        assert Path(place.rpartition(":")[0]).parent == folder
        assert name in list_passes()


def test_a_body_with_two_parameters_gets_the_context() -> None:
    """A body with a second parameter is called with the context."""
    visited: list[str] = []

    def body(graph: pk.Graph, context: pk.PassContext) -> pk.Graph:
        visited.append(context.fusion)
        return graph

    takes = pk.register_pass("TestTakesContext")(body)
    takes(pk.Graph([pk.var("x", (3,))]), fusion="nnvm")

    assert takes.takes_context and not pk.register_pass("TestTakesNone")(keep).takes_context
    assert visited == ["nnvm"]


def test_one_string_stands_for_a_tuple() -> None:
    """depends="shape" is depends=("shape",), not five letters."""
    created = pk.register_pass("TestOneString", depends="shape", provides="x")(keep)

    assert (created.depends, created.provides) == (("shape",), ("x",))


def test_an_analysis_is_preferred_as_provider() -> None:
    """Of two providers the one that may be run for the user is named."""
    pk.register_pass("TestAProvider", provides="test_colour")(keep)
    analysis = pk.register_pass("TestZProvider", provides="test_colour", implied=True)(keep)

    assert len(providers("test_colour")) == 2
    assert provider("test_colour", "Painting") is analysis


def test_an_annotation_without_a_provider_is_an_error() -> None:
    """The error names an annotation that no pass provides, and the nearest that one does."""
    with pytest.raises(pk.PassError, match=r"Painting depends on graph attribute 'shap'.*'shape'"):
        provider("shap", "Painting")


def test_a_registered_pass_needs_no_file() -> None:
    """A pass that was registered is found without a file of its name."""
    pk.register_pass("TestByHand")(keep)

    assert importlib.util.find_spec("passkit.passes.testbyhand") is None
    assert find_pass("TestByHand").name == "TestByHand"


@pytest.mark.parametrize("body", [lambda: None, lambda graph, context, more: graph])
def test_a_body_that_cannot_take_a_graph_is_refused(body: Any) -> None:
    """A pass or strategy that cannot be called with a graph is refused when it is registered."""
    shape = r"a function of a graph, or of a graph and the PassContext, got one of \(.*\)"
    with pytest.raises(pk.ArgumentError, match=f"Pass TestParameters: body must be {shape}"):
        pk.register_pass("TestParameters")(body)
    with pytest.raises(pk.ArgumentError, match=f"fusion strategy 'test_more' must be {shape}"):
        pk.register_fusion("test_more")(body)
    assert "TestParameters" not in list_passes()


def test_a_body_may_have_optional_parameters() -> None:
    """Parameters with defaults and variadic parameters are accepted."""
    assert not pk.register_pass("TestVariadic")(lambda *graphs: graphs[0]).takes_context
    assert pk.register_pass("TestDefault")(lambda graph, context, n=3: graph).takes_context
