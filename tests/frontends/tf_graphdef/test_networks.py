"""Entire networks equal TensorFlow: interpreted, compiled, and for other batch sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.frontends import tf_graphdef
from tests.frontends.tf_graphdef.reference.case import NETWORKS, Stored, stored
from tests.together import compiled
from tests.widened import allowed, in_float64, ulps

Array = np.ndarray[Any, Any]

NAMES = sorted(path.stem for path in NETWORKS.glob("*.npz"))
TOLERANCE = 1e-4
PARTS = 4


def network_named(name: str) -> Stored:
    """Return the network of a name, with TensorFlow's results."""
    (results,) = stored(NETWORKS / f"{name}.npz")
    return results


def loaded(case: Stored) -> pk.Graph:
    """Return its graph."""
    return tf_graphdef.load(case.model, outputs=list(case.outputs))


def error(got: Array, want: Array) -> float:
    """Return the largest error relative to the largest value; integers must be exact."""
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    if want.dtype.kind != "f":
        return 0.0 if np.array_equal(got, want) else np.inf
    return float(np.abs(got - want).max() / np.abs(want).max())


def check_accuracy(case: Stored, graph: pk.Graph, outputs: list[Array]) -> None:
    """Compare the errors of compiled and interpreted outputs against float64."""
    feeds = dict(case.inputs)
    every = zip(outputs, pk.interpret(graph, feeds), in_float64(graph, feeds), strict=True)
    for got, meaning, exact in every:
        if exact.dtype == np.float64:
            assert ulps(got, exact) <= allowed(ulps(meaning, exact)), case.name


@pytest.mark.parametrize("name", NAMES)
def test_interpreted_networks_equal_tensorflow(name: str) -> None:
    """Every output equals TensorFlow's, and the batch size is free."""
    case = network_named(name)
    graph = loaded(case)

    results = pk.interpret(graph, dict(case.inputs))

    shapes = [n.entries[0].shape for n in graph.inputs]
    assert all(shape is not None and not isinstance(shape[0], int) for shape in shapes)
    for got, want in zip(results, case.outputs.values(), strict=True):
        assert error(got, want) <= TOLERANCE


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.usefixtures("quick_kernels")
def test_compiled(part: int, request: pytest.FixtureRequest) -> None:
    """Compiled networks equal TensorFlow; the first example alone gives its own row of each result.

    Their error against float64 is at most twice the interpreter's, or that of a few roundings.
    Every second network is compiled, or with --every-dtype each.
    """
    every = request.config.getoption("--every-dtype")
    cases = [network_named(name) for name in NAMES[part :: PARTS if every else 2 * PARTS]]
    graphs = [loaded(c) for c in cases]
    for case, graph, exe in zip(cases, graphs, compiled(graphs), strict=True):
        outputs = exe(dict(case.inputs))
        for got, want in zip(outputs, case.outputs.values(), strict=True):
            assert error(got, want) <= TOLERANCE, case.name
        check_accuracy(case, graph, outputs)
        alone = exe({k: v[:1] for k, v in case.inputs.items()})
        for got, want in zip(alone, case.outputs.values(), strict=True):
            assert np.abs(got[0] - want[0]).max() <= TOLERANCE * np.abs(want).max(), case.name


def test_the_measure_detects_wrong_results() -> None:
    """The measure detects a wrong float and a wrong integer."""
    want = np.array([1.0, -2.0], np.float32)

    assert error(want + np.float32(1e-3), want) > TOLERANCE
    assert ulps(want + np.float32(3e-6), want.astype(np.float64)) > allowed(4.0)
    assert error(np.array([1, 2]), np.array([1, 3])) == np.inf
    assert len(NAMES) >= 25
