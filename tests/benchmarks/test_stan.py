"""Stan's comparison: its rows agree with NumPy, and a wrong one is said to be."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def stan(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The command, where pyopencl is here."""
    pytest.importorskip("pyopencl", reason="pyopencl is not installed")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    found = importlib.import_module("stan")
    monkeypatch.setattr(found, "ROUNDS", 1)
    monkeypatch.setattr(found, "RUNS", 1)
    return found


def test_rows(stan: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Three of them, small: fewer kernels than operators, equal results."""
    assert stan.main(["--size", "48", "--only", "tril"]) == 0
    assert " 3 " in capsys.readouterr().out
    known = {case.name: case for case in stan.cases()}
    assert len(known) == 13
    row = stan.measure(known["chain of 4"], 48, "float64")
    assert row["right"] and (row["basic kernels"], row["kernels"]) == (4, 1)
    assert min(row[k] for k in ("basic", "hand", "fused")) > 0


def test_a_wrong_kernel(stan: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One by hand that adds something else is told, and the command ends with 1."""
    (case,) = [c for c in stan.cases() if c.name == "a + b"]
    wrong = evolve(case, hand=(stan.elementwise("a[i] + b[i] + 1", "a", "b"),))
    monkeypatch.setattr(stan, "cases", lambda: [wrong])

    assert stan.main(["--size", "16"]) == 1
