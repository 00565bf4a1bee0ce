"""Benchmarks of densities and of single operations: every competitor has NumPy's results."""

from __future__ import annotations

import importlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.opencl import require_pyopencl

ROOT = Path(__file__).resolve().parents[2]
DEVICES = ["cpu", pytest.param("opencl:0", marks=pytest.mark.opencl)]


def benchmark(name: str, device: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import a command; skip without a compiler or pyopencl."""
    if device != "cpu":
        require_pyopencl()
    elif shutil.which("g++") is None:
        pytest.skip("the kernels of the CPU need g++")
    pytest.importorskip("scipy", reason="counts need SciPy")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module(name)


@pytest.mark.parametrize("device", DEVICES)
def test_densities(device: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """All rows are right, with a size that leaves a part of a block, and are reported by device."""
    densities = benchmark("densities", device, monkeypatch)
    path = tmp_path / "densities.json"
    path.write_text('{"other": 1}')
    options = ["--device", device, "--size", "2316", "--columns", "7", "--rounds", "1"]
    densities.main([*options, "--json", str(path)])
    reports = json.loads(path.read_text())

    assert reports["other"] == 1 and len(reports[device]["rows"]) == 5
    for row in reports[device]["rows"].values():
        assert {"xp", "hand", "numpy"} <= row.keys()
    assert ("hand, as Stan" in row) == (device != "cpu")


@pytest.mark.parametrize("device", DEVICES)
def test_single_operations(device: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """All operations are right and are reported with their ratios; a wrong kernel is found."""
    single = benchmark("single_operations", device, monkeypatch)
    path = tmp_path / "single.json"
    options = ["--device", device, "--sizes", "1003", "--rounds", "1", "--json", str(path)]
    single.main(options)
    (report,) = json.loads(path.read_text()).values()
    assert {row["operation"] for row in report["rows"]} == {op.name for op in single.OPERATIONS}
    assert all(row["ratios"]["median"] > 0 for row in report["rows"])

    wrong = single.SingleOperation("add", "a[i] - b[i]", lambda xp, a, b, c: a + b)
    single.cpu_library.cache_clear()
    monkeypatch.setattr(single, "OPERATIONS", (wrong,))
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        single.measure(wrong, 100, np.dtype("float64"), device, 1)
    single.cpu_library.cache_clear()
