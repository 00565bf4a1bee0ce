"""The command that kills programs and fills disks counts wrong results and raw errors as faults."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WRONG = 'print(\'{"right": false, "bits": "", "kernels": 2}\')'
INTERPRETED = 'print(\'{"right": true, "bits": "", "kernels": 0}\')'
RIGHT = 'print(\'{"right": true, "bits": "a", "kernels": 2}\')'
REFUSED = 'print(\'{"error": "CompilerError"}\')'
RAW = "raise OSError('a raw error')"
CRASHED = "import os; os.kill(os.getpid(), 11)"


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the modules of benchmarks/ importable, as its scripts see them."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


@pytest.mark.parametrize(
    ("program", "refusal", "faults"),
    [
        (RIGHT, False, 0),
        (REFUSED, True, 0),
        (REFUSED, False, 1),
        (WRONG, True, 1),
        (INTERPRETED, True, 1),
        (RAW, True, 1),
        (CRASHED, True, 1),
    ],
)
def test_faults_of_a_program(
    program: str, refusal: bool, faults: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Right results and allowed refusals are no faults; everything else is one."""
    import fault_injection

    monkeypatch.setattr(fault_injection, "PROGRAM", program)
    bench = fault_injection.FaultBench(tmp_path)

    bench.end(bench.begin(0.5), "here", refusal)

    assert bench.faults == faults


def test_different_results_are_faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that share a cache have to give equal bits."""
    import fault_injection

    process = (
        'import json, os; print(json.dumps({"right": True, "bits": os.getpid(), "kernels": 2}))'
    )
    bench = fault_injection.FaultBench(tmp_path)
    for program, faults in ((RIGHT, 0), (process, 1)):
        monkeypatch.setattr(fault_injection, "PROGRAM", program)
        fault_injection.crowd(bench, 2)
        assert bench.faults == faults
