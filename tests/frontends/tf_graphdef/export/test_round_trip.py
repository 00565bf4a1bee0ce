"""What is saved and loaded again gives what the graph gives: every operator of the library.

The walk is over the registry and its specimens. TensorFlow's own results for the same models are
in docs/tf_save.md, which `reference/saved.py` writes.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import passkit as pk
from passkit.errors import ModelError
from passkit.frontends import tf_graphdef
from passkit.frontends.tf_graphdef.export import graph_def
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


def trials(name: str) -> list[tuple[Specimen, Trial]]:
    """Every specimen of an operator, for the first of its dtypes and one more."""
    return [
        (specimen, trial)
        for specimen in SPECIMENS[name]
        for dtype in chosen(specimen, False) or specimen.dtypes()
        for trial in specimen.drawn(dtype)
    ]


@pytest.mark.parametrize("name", [n for n in NAMES if n in SPECIMENS and n not in CANNOT])
def test_saved_and_loaded(name: str) -> None:
    """What comes back has the inputs, but for those of which nothing is read, and the results."""
    for specimen, trial in trials(name):
        graph = pk.Graph(specimen.build(trial, "x"))
        where = f"{name} {dict(trial.params)}"
        try:
            message = graph_def(graph)
        except ModelError:
            assert name in IN_PART, where
            continue
        back = tf_graphdef.load(message)
        feeds, names = feeds_of(graph, trial.feeds[-1]), [n.name for n in back.inputs]
        assert set(names) <= set(feeds), where
        wanted = pk.interpret(graph, feeds)
        found = pk.interpret(back, {name: feeds[name] for name in names})
        for got, want in zip(found, wanted, strict=True):
            assert difference(got, want) <= 1, where


@pytest.mark.parametrize("name", sorted(CANNOT))
def test_what_cannot_be_written_is_refused(name: str) -> None:
    """The operators that have no meaning in TensorFlow are refused by name."""
    specimen, trial = trials(name)[0]

    with pytest.raises(ModelError, match=f"1 node.* of 1 operator.*{name} × 1 \\('{name}'\\)"):
        graph_def(pk.Graph(specimen.build(trial, "x")))


def test_the_page_is_made_of_the_results() -> None:
    """docs/tf_save.md says what TensorFlow gave, and of this version of passkit."""
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
def test_networks_come_back(path: Path) -> None:
    """Whole networks that TensorFlow wrote are saved, and still give its results."""
    (case,) = stored(path)
    graph = tf_graphdef.load(case.model, outputs=list(case.outputs))
    back = tf_graphdef.load(tf_graphdef.save(graph))
    found = pk.interpret(back, dict(case.inputs))
    for got, want in zip(found, case.outputs.values(), strict=True):
        assert difference(got, want) <= 10  # 1e-4 of the largest value
