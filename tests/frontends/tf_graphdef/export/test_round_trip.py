"""Saving and loading every operator keeps its results.

The operators and their specimens are those of the registry. TensorFlow's own results for the same
models are in docs/tf_save.md, which `reference/saved.py` writes.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import passkit as pk
from passkit.errors import ModelError
from passkit.frontends import tf_graphdef
from tests.frontends.tf_graphdef.reference.case import FIXTURES, difference, stored
from tests.frontends.tf_graphdef.reference.saved import (
    CANNOT,
    IN_PART,
    PAGE,
    RESULTS,
    feeds_of,
    page,
)
from tests.ops.specimens import SPECIMENS, Specimen, Trial
from tests.ops.test_values import NAMES, chosen

NETWORKS = sorted((FIXTURES / "networks").glob("*.npz"))


def specimens_by_operator(name: str) -> list[tuple[Specimen, Trial]]:
    """Return the specimens of an operator: all for the first of its dtypes, some for one more."""
    return [
        (specimen, trial)
        for specimen in SPECIMENS[name]
        for number, dtype in enumerate(chosen(specimen, False) or specimen.dtypes())
        for trial in specimen.drawn(dtype)[:: 4 if number else 1]
    ]


@pytest.mark.parametrize("name", [n for n in NAMES if n in SPECIMENS and n not in CANNOT])
def test_saved_operators_load_to_equal_results(name: str) -> None:
    """The loaded graph has the same inputs, except unread ones, and the same results."""
    for specimen, trial in specimens_by_operator(name):
        graph = pk.Graph(specimen.build(trial, "x"))
        where = f"{name} {dict(trial.params)}"
        try:
            message = tf_graphdef.save(graph)
        except ModelError:
            assert name in IN_PART, where
            continue
        back = tf_graphdef.load(message)
        feeds, names = feeds_of(graph, trial.feeds[-1]), [n.name for n in back.inputs]
        assert set(names) <= set(feeds), where
        expected = pk.interpret(graph, feeds)
        results = pk.interpret(back, {name: feeds[name] for name in names})
        for got, want in zip(results, expected, strict=True):
            assert difference(got, want) <= 1, where


@pytest.mark.parametrize("name", sorted(CANNOT))
def test_operators_without_equivalent_are_refused(name: str) -> None:
    """Operators that TensorFlow has no equivalent of are refused by name."""
    specimen, trial = specimens_by_operator(name)[0]

    with pytest.raises(ModelError, match=f"1 node.* of 1 operator.*{name} × 1 \\('{name}'\\)"):
        tf_graphdef.save(pk.Graph(specimen.build(trial, "x")))


def test_the_page_equals_the_stored_results() -> None:
    """docs/tf_save.md equals TensorFlow's stored results, for this version of passkit."""
    results = json.loads(RESULTS.read_text())

    assert PAGE.read_text() == page(results)
    assert set(results["operators"]) - {"digits.pb"} <= set(NAMES)
    assert results["operators"]["digits.pb"]["float32"][:2] == [1, 0]
    assert not [
        op
        for op, cells in results["operators"].items()
        if op not in CANNOT and not any(good for good, _, _ in cells.values())
    ]


@pytest.mark.parametrize("path", NETWORKS, ids=lambda path: path.stem)
def test_saved_networks_equal_tensorflow(path: Path) -> None:
    """Networks that TensorFlow wrote are loaded and saved, and still give its results."""
    (case,) = stored(path)
    graph = tf_graphdef.load(case.model, outputs=list(case.outputs))
    back = tf_graphdef.load(tf_graphdef.save(graph))
    results = pk.interpret(back, dict(case.inputs))
    for got, want in zip(results, case.outputs.values(), strict=True):
        assert difference(got, want) <= 10  # 1e-4 of the largest value
