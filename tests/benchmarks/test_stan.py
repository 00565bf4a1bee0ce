"""Stan's comparison: its rows agree with NumPy, and a wrong one is reported."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def stan(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import the command with one round and one run; skip without pyopencl."""
    pytest.importorskip("pyopencl", reason="pyopencl is not installed")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    module = importlib.import_module("stan")
    monkeypatch.setattr(module, "ROUNDS", 1)
    monkeypatch.setattr(module, "RUNS", 1)
    return module


def test_rows_agree_with_numpy(stan: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Small rows have equal results, and fewer kernels than operators."""
    assert stan.main(["--size", "48", "--only", "tril"]) == 0
    assert " 3 " in capsys.readouterr().out
    cases = {case.name: case for case in stan.cases()}
    assert len(cases) == 13
    row = stan.measure(cases["chain of 4"], 48, "float64")
    assert row["right"] and (row["basic kernels"], row["kernels"]) == (4, 1)
    assert min(row[k] for k in ("basic", "hand", "fused")) > 0


def test_a_wrong_kernel_ends_the_command_with_1(stan: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hand-written kernel with a wrong result makes the command return 1."""
    (case,) = [c for c in stan.cases() if c.name == "a + b"]
    wrong = evolve(case, hand=(stan.elementwise("a[i] + b[i] + 1", "a", "b"),))
    monkeypatch.setattr(stan, "cases", lambda: [wrong])

    assert stan.main(["--size", "16"]) == 1
