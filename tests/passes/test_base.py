"""The registry of passes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import passkit as pk
from tests.command import passkit

GRAPH = pk.Graph([pk.ops.exp(pk.var("x", (3,)))])


def keep(graph: pk.Graph) -> pk.Graph:
    """Return the graph."""
    return graph


def test_a_registered_function_becomes_a_pass() -> None:
    """The decorator gives a Pass that can be called like the function."""

    @pk.register_pass("TestCountNodes", provides=("count",))
    def count(graph: pk.Graph) -> pk.Graph:
        """How many nodes there are."""
        return graph.with_attrs(count=len(graph.nodes))

    assert isinstance(count, pk.Pass)
    assert count(GRAPH).attrs["count"] == 2
    assert pk.ApplyPasses(GRAPH, "TestCountNodes").attrs["count"] == 2
    assert count.doc == "How many nodes there are."


def test_registering_again_from_the_same_place_replaces_the_pass() -> None:
    """A notebook cell that runs again registers its pass again."""
    for body in (keep, lambda graph: graph.with_attrs(ran="again")):
        pk.register_pass("TestAgain")(body)

    assert pk.ApplyPasses(GRAPH, "TestAgain").attrs["ran"] == "again"


def test_two_places_clash_and_are_named() -> None:
    """Two passes of one name are an error that names both files and lines."""
    pk.register_pass("TestTwice")(keep)

    with pytest.raises(
        pk.RegistryError, match=r"TestTwice is registered at \S+test_base.py:\d+"
    ) as e:
        pk.register_pass("TestTwice")(keep)
    assert str(e.value).count("test_base.py:") == 2


def test_a_pass_has_a_name_and_a_function() -> None:
    """A Pass is not created of another name than a string, or without a function."""
    with pytest.raises(pk.ArgumentError, match="Pass: name must be a string, got 3"):
        pk.Pass(3, keep)  # type: ignore[arg-type]
    with pytest.raises(pk.ArgumentError, match="Pass P: body must be a function, got 'keep'"):
        pk.Pass("P", "keep")  # type: ignore[arg-type]


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
        pk.ApplyPasses(GRAPH, "InferShap")


def test_bundled_passes_are_imported_from_the_file_of_their_name(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Looking up a pass imports the file that is named like it; a registered pass needs none."""
    pk.register_pass("TestByHand")(keep)
    folder = Path(pk.__file__).parent / "passes"
    bundled = ["InferShape", "InferType", "Simplify", "PlanMemory", "Functionalize", "Expand"]
    assert passkit("passes", "--json", *bundled, "TestByHand") == 0
    *places, by_hand = (row["place"] for row in json.loads(capsys.readouterr().out))

    assert {Path(place.rpartition(":")[0]).parent for place in places} == {folder}
    assert Path(by_hand.rpartition(":")[0]).name == "test_base.py"
    assert passkit("passes", "--json") == 0
    assert {row["name"] for row in json.loads(capsys.readouterr().out)} >= set(bundled)


def test_a_body_with_two_parameters_gets_the_context() -> None:
    """A body with a second parameter is called with the context."""
    visited: list[str] = []

    def body(graph: pk.Graph, context: pk.PassContext) -> pk.Graph:
        visited.append(context.fusion)
        return graph

    takes = pk.register_pass("TestTakesContext")(body)
    takes(GRAPH, fusion="nnvm")

    assert takes.takes_context and not pk.register_pass("TestTakesNone")(keep).takes_context
    assert visited == ["nnvm"]


def test_one_string_stands_for_a_tuple() -> None:
    """depends="shape" is depends=("shape",), not five letters."""
    created = pk.register_pass("TestOneString", depends="shape", provides="x")(keep)

    assert (created.depends, created.provides) == (("shape",), ("x",))


def test_an_analysis_is_preferred_as_provider() -> None:
    """If two passes provide an annotation, the implied one runs."""

    def colour(name: str, **declared: Any) -> None:
        body = lambda graph: graph.with_attrs(test_colour=name)  # noqa: E731
        pk.register_pass(name, provides="test_colour", **declared)(body)

    colour("TestAProvider")
    colour("TestZProvider", implied=True)
    painting = pk.register_pass("TestPainting", depends="test_colour")(keep)

    assert pk.ApplyPasses(GRAPH, painting).attrs["test_colour"] == "TestZProvider"


def test_an_annotation_without_a_provider_is_an_error() -> None:
    """The error names an annotation that no pass provides, and the nearest that one does."""
    reads = pk.register_pass("TestReadsShap", depends="shap")(keep)
    with pytest.raises(pk.PassError, match=r"TestReadsShap depends on graph .* 'shap'.*'shape'"):
        pk.ApplyPasses(GRAPH, reads)


@pytest.mark.parametrize("body", [lambda: None, lambda graph, context, more: graph])
def test_a_body_that_cannot_take_a_graph_is_refused(body: Any) -> None:
    """A pass or strategy that cannot be called with a graph is refused when it is registered."""
    shape = r"a function of a graph, or of a graph and the PassContext, got one of \(.*\)"
    with pytest.raises(pk.ArgumentError, match=f"Pass TestParameters: body must be {shape}"):
        pk.register_pass("TestParameters")(body)
    with pytest.raises(
        pk.ArgumentError, match=f"fusion strategy 'test_parameters' must be {shape}"
    ):
        pk.register_fusion("test_parameters")(body)
    with pytest.raises(pk.RegistryError, match="'TestParameters' is not registered"):
        pk.ApplyPasses(GRAPH, "TestParameters")


def test_a_body_may_have_optional_parameters() -> None:
    """Parameters with defaults and variadic parameters are accepted."""
    assert not pk.register_pass("TestVariadic")(lambda *graphs: graphs[0]).takes_context
    assert pk.register_pass("TestDefault")(lambda graph, context, n=3: graph).takes_context
