"""Calls on a CUDA driver that does nothing: what they ask of it, and how long they take."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIMITS = {
    "one kernel": 5.0,
    "one kernel, out=[array]": 5.0,
    "three kernels": 5.0,
    "xp.eval(a * b + 2.5)": 25.0,
    "Adam of 30 tensors": 10.0,
}
"""The most microseconds of a call: several times what calls take on an idle machine."""
LAUNCHES = {
    "one kernel": {"cuLaunchKernel": 1},
    "one kernel, out=[array]": {"cuLaunchKernel": 1},
    "one kernel, NumPy in and out": {
        "cuMemcpyHtoDAsync_v2": 1,
        "cuLaunchKernel": 1,
        "cuMemcpyDtoHAsync_v2": 1,
        "cuStreamSynchronize": 1,
    },
    "three kernels": {"cuGraphLaunch": 1},
    "xp.eval(a * b + 2.5)": {"cuLaunchKernel": 1, "cuStreamSynchronize": 1},
}
"""How often a call uses each function of the driver, but for those of contexts."""


def test_calls_are_short_and_only_enqueue(tmp_path: Path) -> None:
    """Each row has the driver's calls that it needs, and takes microseconds."""
    pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    report = tmp_path / "report.json"
    environ = {k: v for k, v in os.environ.items() if not k.startswith("PASSKIT")}
    command = (sys.executable, str(ROOT / "benchmarks/host_path.py"), "--json", str(report))
    done = subprocess.run(
        (*command, "--rounds", "2000"), env=environ, capture_output=True, text=True
    )
    assert not done.returncode, done.stdout + done.stderr

    rows = json.loads(report.read_text())
    for name, expected in LAUNCHES.items():
        calls = {k: n for k, n in rows[name]["driver"].items() if not k.startswith("cuCtx")}
        assert calls == expected, name
    assert set(rows["Adam of 30 tensors"]["driver"]) <= {"cuCtxGetCurrent", "cuLaunchKernel"}
    slow = {
        name: rows[name]["least"] for name, most in LIMITS.items() if rows[name]["least"] > most
    }
    assert not slow
