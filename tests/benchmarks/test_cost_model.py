"""The cost model beside measured kernels: rows of kernels, and how well ranks agree."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import passkit as pk

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "benchmarks" / "cost_model.py"


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the modules of benchmarks/ importable, as its scripts see them."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


def test_kernels_are_modelled_and_measured(tmp_path: Path) -> None:
    """Each kernel has its kind and both times; a folder without graphs is refused."""
    (tmp_path / "graphs").mkdir()
    (tmp_path / "together.json").write_text("{}")
    command = [sys.executable, str(SCRIPT), str(tmp_path), "--seconds", "0.001"]
    command += ["--json", str(tmp_path / "rows.json")]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 2 and "has no graphs with kernels of known" in refused.stderr

    texts = {
        "sums": "x: f32[2000, 1000]; return reduce_sum(exp(x), axis=1)",
        "points": "x: f32[1000000]; return exp(x)",
        "unknown": "x: f32[n, 10]; return exp(x)",
    }
    for name, text in texts.items():
        (tmp_path / "graphs" / f"{name}.json").write_text(pk.to_json(pk.parse(text)))
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]

    assert {(r["graph"], r["kind"]) for r in rows} == {("sums", "row"), ("points", "thread")}
    assert all(r["modelled"] > 0 and r["measured"] >= 1e-6 for r in rows)
    assert lines[0].startswith("row ") and "    1 kernels, modelled / measured" in lines[0]
    assert lines[2].startswith("all ") and len(lines) == 3 + 2


def test_ranks_are_compared() -> None:
    """Equal orders have correlation 1, opposite ones -1."""
    from cost_model import rank_correlation

    rising = [{"modelled": k, "measured": k * k} for k in range(5)]
    falling = [{"modelled": k, "measured": -k} for k in range(5)]
    assert rank_correlation(rising) == 1 and rank_correlation(falling) == -1
    assert rank_correlation(rising[:2]) == 1
