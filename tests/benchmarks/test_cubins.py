"""Golden kernels compiled by NVRTC use as many registers as recorded, and spill none."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FEW = ("gelu", "layer_norm_last", "phased", "packed")
"""The others, and other architectures, by ``python benchmarks/cubins.py``."""


def test_registers_and_spills_are_those_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that need more registers, or spill some, differ; all for sm_90."""
    pytest.importorskip("cuda.bindings.nvrtc", reason="cuda-bindings is not installed")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    cubins = importlib.import_module("cubins")
    lines = cubins.table_lines([90], [p for p in cubins.golden_kernels() if p.stem in FEW])

    assert len(lines) == len(FEW) and cubins.differing_lines(lines) == []
    text = lines[0]
    assert cubins.differing_lines([text.replace(" 0 B spilled", " 8 B spilled")])
    if cubins.TABLE.read_text().startswith(f"{cubins.nvrtc()}\n"):
        assert cubins.differing_lines([text.replace(": ", ": 1")])
