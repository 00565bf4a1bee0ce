"""The benchmark for GPUs: what it does without one, and that it runs."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest

from passkit.errors import DeviceError
from passkit.runtime.cuda import device as devices
from tests.emulator.fake import faked

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import importlib

    module = importlib.import_module("gpu")
    monkeypatch.setattr(module, "BATCH_SECONDS", 0.0)
    monkeypatch.setattr(module, "ROUNDS", 1)
    return module


def test_without_a_device(
    gpu: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says so, and measures nothing."""

    def missing() -> None:
        raise DeviceError("no CUDA device: none today")

    monkeypatch.setattr(devices, "_device", missing)
    assert gpu.main([]) == 1
    assert capsys.readouterr().out == (
        "no CUDA device, so nothing was measured: no CUDA device: none today\n"
    )


def test_on_a_fake_device(
    gpu: ModuleType, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Small arrays: results are verified, and a wrong one is no figure."""
    with faked():
        assert gpu.main(["--mib", "0", "--rows", "gelu_erf", "--output", str(tmp_path / "f")]) == 0
        report = json.loads((tmp_path / "f").read_text())
        (row,) = report["rows"]
        assert report["gpu"] == "Fake" and row["passkit"]["error"] < 5e-6
        assert row["passkit"]["kernels"] == 1 and row["passkit"]["of copy"] > 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].startswith("Fake (sm_90, a fake), CUDA 13.0; a copy moves")
        assert lines[2].startswith("gelu_erf 1 ")
        (work,) = (w for w in gpu.rows(0) if w.name == "gelu_erf")
        assert gpu.shown({"row": work.label, "passkit": {"wrong": 1.0}})[1] == "wrong"
