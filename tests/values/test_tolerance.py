"""Results are compared with references by shape, NaN, infinity and size of the difference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passkit as pk
from tests.command import json_of, text_of

NAN, INF = float("nan"), float("inf")


def write_model(
    folder: Path, result: list[Any], output: str = "y", dtype: str = "float32", **references: Any
) -> Path:
    """Write a model whose only output is ``result``, and references; return the model's path."""
    path = folder / "m.json"
    x = pk.var("x", np.shape(result), dtype)
    path.write_text(pk.to_json(pk.Graph([pk.ops.identity(x, name=output)])))
    arrays = {name: np.array(value, dtype) for name, value in references.items()}
    np.savez(folder / "m.npz", x=np.array(result, dtype), **arrays)
    return path


def deviations(model: Path) -> Any:
    """Return how the model's results differ from stored references."""
    errors = json_of("run", model, "--target", "interpret")["errors"]
    return [e for e in errors if e["against"] != "the interpreter"]


@pytest.fixture(autouse=True)
def _time_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("passkit.cli.run.TIMING_SECONDS", 0.001)


def test_values_within_the_tolerance_agree(tmp_path: Path) -> None:
    """Equal values, NaN beside NaN, equal infinities and small differences are in tolerance."""
    model = write_model(tmp_path, [1.00005, NAN, INF, 100.0], y=[1.0, NAN, INF, 100.0])
    (deviation,) = deviations(model)

    assert deviation["good"]
    assert 4e-5 < deviation["largest"] < 6e-5
    assert "too much" not in text_of("run", model, "--target", "interpret")


@pytest.mark.parametrize(
    "wrong", [[1.1, 2.0], [NAN, 2.0], [INF, 2.0], [[1.0, 2.0]]], ids=["large", "NaN", "inf", "2-D"]
)
def test_values_outside_the_tolerance_are_reported(wrong: list[Any], tmp_path: Path) -> None:
    """A large difference, a lone NaN, another infinity and another shape are out of tolerance."""
    model = write_model(tmp_path, wrong, y=[1.0, 2.0])
    (deviation,) = deviations(model)

    assert not deviation["good"]
    assert deviation["output"] == "y" and "stored results" in deviation["against"]
    text = text_of("run", model, "--target", "interpret", "--compare", code=1)
    assert "in y against stored results" in text and "too much" in text


@pytest.mark.parametrize("result", [3.0, -INF])
def test_only_the_same_infinity_agrees_with_an_infinite_reference(
    result: float, tmp_path: Path
) -> None:
    """A finite result and the other infinity are out of tolerance."""
    (deviation,) = deviations(write_model(tmp_path, [result, 2.0], y=[INF, 2.0]))

    assert not deviation["good"]


def test_imaginary_parts_are_compared(tmp_path: Path) -> None:
    """Complex numbers that differ in their imaginary part are out of tolerance."""
    model = write_model(tmp_path, [1 + 1j], dtype="complex64", y=[1 + 5j])
    (deviation,) = deviations(model)

    assert not deviation["good"]
    assert deviation["largest"] == 4


def test_results_without_a_reference_are_skipped(tmp_path: Path) -> None:
    """A result ``a:0`` has the reference ``a``; one without a reference is not compared."""
    model = write_model(tmp_path, [0.0, 0.0], output="a:0", a=[0.0, 0.0])

    assert [d["output"] for d in deviations(model)] == ["a:0"]
    assert deviations(write_model(tmp_path, [0.0, 0.0], output="b", a=[0.0, 0.0])) == []
