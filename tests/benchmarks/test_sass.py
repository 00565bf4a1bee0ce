"""The instructions of golden kernels: accesses of 16 bytes, and nothing in local memory."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FEW = ("gelu", "softmax_last")
"""The others, and other architectures, by ``python benchmarks/sass.py``."""
SPILLING = """extern "C" __global__ void spilling(const int *x, int *y, int n) {
  int a[64];
  for (int k = 0; k < 64; ++k) a[k] = x[k * threadIdx.x];
  for (int k = 0; k < n; ++k) a[x[k] & 63] += a[x[k + 1] & 63];
  y[threadIdx.x] = a[n & 63];
}
"""


@pytest.fixture
def sass(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the script; skip the test without NVRTC or nvdisasm."""
    pytest.importorskip("cuda.bindings.nvrtc", reason="cuda-bindings is not installed")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    module = importlib.import_module("sass")
    try:
        module.nvdisasm()
    except module.NoDisassemblerError as error:
        pytest.skip(str(error))
    return module


def test_accesses_are_wide_and_local_memory_is_unused(
    sass: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels that use local memory, or lost accesses of 16 bytes, differ; all for sm_90."""
    lines = sass.table_lines([90], [p for p in sass.cubins.golden_kernels() if p.stem in FEW])

    assert len(lines) == len(FEW) and sass.differing_lines(lines) == []
    assert all(sass.numbers(x)["LDG.E.128"] and sass.numbers(x)["STG.E.128"] for x in lines)
    assert sass.differing_lines([lines[0].replace("2 LDG.E.128", "0 LDG.E.128")])
    path = tmp_path / "spilling.cu"
    path.write_text(SPILLING)
    monkeypatch.setattr(sass.cubins, "GOLDEN", tmp_path)
    (line,) = sass.table_lines([90], [path])
    assert sass.numbers(line)["LDL"] and sass.differing_lines([line]) == [line]


def test_a_missing_disassembler_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has the command that installs nvdisasm."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    sass = importlib.import_module("sass")
    monkeypatch.setattr(sass.shutil, "which", lambda name: None)
    monkeypatch.setattr(sass, "files", lambda name: ())
    monkeypatch.setattr(sass, "TOOLKIT", "/nowhere/nvdisasm")

    with pytest.raises(sass.NoDisassemblerError, match="pip install nvidia-cuda-nvdisasm"):
        sass.nvdisasm()
