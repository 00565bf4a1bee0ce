"""The command that kills programs and fills disks counts wrong results and raw errors as faults."""

from __future__ import annotations

import json
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


def test_the_record_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run writes its lines, faults and commit; the table requires one of the usual size."""
    import fault_injection
    from shows import middle

    record = tmp_path / "record.json"
    monkeypatch.setattr(fault_injection, "PROGRAM", RIGHT)
    monkeypatch.setattr(fault_injection, "RECORD", record)
    monkeypatch.setattr(fault_injection, "disks_of_their_own", lambda bench: None)
    assert not middle.recorded_faults(record).met

    assert fault_injection.main(["--kills", "1", "--processes", "2"]) == 0
    assert not record.exists()
    assert fault_injection.main(["--kills", "1", "--processes", "2", "--json", str(record)]) == 0
    small = middle.recorded_faults(record)
    assert not small.met and "the usual size is required" in small.text
    monkeypatch.setattr(fault_injection, "KILLS", 1)
    monkeypatch.setattr(fault_injection, "PROCESSES", 2)
    assert middle.recorded_faults(record).met

    monkeypatch.setattr(fault_injection, "PROGRAM", REFUSED)
    assert fault_injection.main(["--kills", "1", "--processes", "2"]) == 1
    faulty = middle.recorded_faults(record)
    assert json.loads(record.read_text())["faults"] >= 4
    assert not faulty.met and faulty.text.startswith("1 kills, 2 processes, full disks: ")
    assert "fault: process 0 of 2: {'error': 'CompilerError'}" in capsys.readouterr().out


def test_faults_on_full_disks_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines and the number of faults come from the process that mounts the disks."""
    import fault_injection

    (tmp_path / "unshare").write_text("#!/bin/sh\necho fault: a full disk\nexit 3\n")
    (tmp_path / "unshare").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    bench = fault_injection.FaultBench(tmp_path)
    fault_injection.disks_of_their_own(bench)
    assert bench.faults == 3 and bench.lines == ["fault: a full disk"]
