"""What NVRTC makes of golden kernels: as many registers as were noted, and nothing spilled."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FEW = ("gelu", "layer_norm_last", "phased", "whole_tile")
"""The others, and other architectures, by ``python benchmarks/cubins.py``."""


def test_cubins(monkeypatch: pytest.MonkeyPatch) -> None:
    """For sm_90; a kernel that needs more, or spills, is found."""
    pytest.importorskip("cuda.bindings.nvrtc", reason="cuda-bindings is not installed")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    cubins = importlib.import_module("cubins")
    lines = cubins.table_lines([90], [p for p in cubins.golden_kernels() if p.stem in FEW])

    assert len(lines) == len(FEW) and cubins.differing_lines(lines) == []
    text = lines[0]
    assert cubins.differing_lines([text.replace(" 0 B spilled", " 8 B spilled")])
    if cubins.TABLE.read_text().startswith(f"{cubins.nvrtc()}\n"):
        assert cubins.differing_lines([text.replace(": ", ": 1")])
