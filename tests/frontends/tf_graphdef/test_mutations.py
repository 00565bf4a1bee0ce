"""Loading any model ends soon, with a graph or a PasskitError."""

from __future__ import annotations

import importlib.util
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from passkit.errors import ModelError, PasskitError
from passkit.frontends import tf_graphdef
from tests.frontends.tf_graphdef.models import const, function, model, node, with_functions
from tests.frontends.tf_graphdef.mutations import mutant
from tests.frontends.tf_graphdef.test_functions import X, call
from tests.frontends.tf_graphdef.test_loops import TWICE, loop, model_with_loop
from tests.pace import within


def outcome(seed: int, folder: Path) -> str:
    """Return the outcome of loading the model of a seed, and the CPU seconds taken."""
    with within(2):
        try:
            mutant(seed).load(folder)
        except PasskitError as error:
            assert len(str(error)) < 10_000
            return type(error).__name__
    return "loaded"


@pytest.mark.parametrize("part", range(4))
def test_mutated_models_give_errors_or_graphs(part: int, tmp_path: Path) -> None:
    """Two hundred mutated models give errors or graphs.

    The benchmark of this name tries thousands.
    """
    results = Counter(outcome(50 * part + k, tmp_path / str(k)) for k in range(50))

    assert results["ModelError"] > 2
    assert results["loaded"] > 2


def test_mutants_are_reproducible_and_differ() -> None:
    """Seeds give different models, and a seed always the same one."""
    models = [mutant(k) for k in range(30)]

    assert len({m.name for m in models}) >= 6
    assert models == [mutant(k) for k in range(30)]


def load_within_two_seconds(source: Any, output: str, message: str | None) -> None:
    """Load a model that would take long without limits."""
    refused = pytest.raises(ModelError, match=message) if message else nullcontext()
    with within(2), refused:
        tf_graphdef.load(source, output)


FOREVER = function("until", "i n v", {"r": "c:output:0"}, const("c", value=True))


def test_exponential_calls_and_nested_loops_end() -> None:
    """Trees of calls and nested loops end at the limit of nodes."""
    tree, loops = [], [FOREVER, TWICE]
    for k in range(40):
        inner = [call("c", f"f{k + 1}", "a"), call("d", f"f{k + 1}", "c:output:0")]
        tree.append(function(f"f{k}", "a", {"r": "d:output:0"}, *inner))
        again = loop("until", f"n{k - 1}" if k else "twice", "i", "n", "v")
        loops.append(function(f"n{k}", "i n v", {"i": "i", "n": "n", "v": "y:output:2"}, again))
    tree.append(function("f40", "a", {"r": "a"}))
    load_within_two_seconds(
        with_functions([X, call("y", "f0", "x")], *tree), "y", "exceeds the limit of 30,002"
    )
    nodes = [const("n", 3), loop("until", "n39")]
    load_within_two_seconds(
        model_with_loop(*nodes, bodies=loops), "y:2", "exceeds the limit of 30,004 nodes"
    )


def test_an_endless_loop_loads() -> None:
    """An endless loop is loaded as a loop that runs at run time."""
    load_within_two_seconds(
        model_with_loop(const("n", 3), loop(), bodies=(FOREVER, TWICE)), "y:2", None
    )


def test_giant_lists_are_refused() -> None:
    """The length of a list is taken from the budget before the list is created."""
    far, shape = const("far", 2**31 - 1), const("any", -1)
    item = const("item", [1.0])
    reserve = node("TensorListReserve", "l", "any", "far", element_dtype=np.dtype("float32"))
    load_within_two_seconds(model(far, shape, reserve), "l", r"'l' of 2,147,483,647 items needs")
    reserve.input[1] = "any"
    empty = node("EmptyTensorList", "e", "any", "far", element_dtype=np.dtype("float32"))
    put = node("TensorListSetItem", "m", "e", "far", "item", resize_if_index_out_of_bounds=True)
    load_within_two_seconds(
        model(far, shape, item, empty, put), "m", r"TensorListSetItem 'm' needs 2"
    )


def test_growing_names_are_refused() -> None:
    """Names prefixed by their callers are taken from the budget."""
    name = "n" * 50_000
    chain = [
        function(f"f{k}", "a", {"r": f"{name}:output:0"}, call(name, f"f{k + 1}", "a"))
        for k in range(60)
    ]
    chain.append(function("f60", "a", {"r": "a"}))
    source = with_functions([X, call("y", "f0", "x")], *chain)
    graph = source.SerializeToString()
    with within(2), pytest.raises(ModelError, match=r"node 'nnn.* needs [\d,]+ bytes"):
        tf_graphdef.load(graph, max_nbytes=len(graph) * 5)


def benchmark(name: str) -> Any:
    """Return a benchmark as a module."""
    path = Path(__file__).resolve().parents[3] / "benchmarks" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_planted_fault_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of another kind is reported."""

    def load(*args: Any, **kwargs: Any) -> None:
        raise KeyError("planted")

    monkeypatch.setattr("passkit.frontends.tf_graphdef.load", load)
    with pytest.raises(KeyError, match="planted"):
        outcome(3, tmp_path)
