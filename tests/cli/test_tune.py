"""``passkit tune``: measurements, changed templates, and executors."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from passkit.cli import main, tune
from passkit.errors import SettingError
from passkit.tuning.results import Tuned, Tuning

Capture = pytest.CaptureFixture[str]
THREADS = "concurrent.futures:ThreadPoolExecutor"


def answer(capsys: Capture, *arguments: str, code: int = 0) -> Any:
    """Return the JSON that a command prints."""
    assert main(["tune", *arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_a_second_run_measures_nothing(capsys: Capture, tmp_path: Path, fresh_cache: Path) -> None:
    """Kernels of a model are measured at the given sizes, and only once."""
    model = tmp_path / "m.txt"
    model.write_text("x: f32[n, 40]; return abs(x), reduce_max(x, axis=0)")
    options = [str(model), "--shape", "x=6,40", "--executor", THREADS, "--budget", "2"]
    first = answer(capsys, *options)
    assert main(["tune", *options]) == 0
    text = capsys.readouterr().out

    (name, *_) = (g["operators"] for g in first["groups"])
    assert name == "abs" and first["measured"] >= 4 and first["rounds"] == 1
    assert all(g["seconds"] > 0 and g["faults"] == {} for g in first["groups"])
    assert "0 templates measured; " in text and f"of {len(first['groups'])} kernels" in text


def test_the_table_has_times_gains_and_faults() -> None:
    """The text has seconds before and after, gain, template and faults."""
    other = Tuned("s", "sub, exp", "a[GRID];", "b[GRID];", 2e-6, 1e-6, 3, {"c[GRID];": "crashed"})
    same = Tuned("t", "neg", "a[GRID];", "a[GRID];", 0.0, 0.0, 0, {})
    text = str(Tuning((other, same), 3, 1, ("c[GRID]; crashed",)))

    assert "2 µs" in text and "2.00" in text and "b[GRID];" in text and "as before" in text
    assert text.endswith(
        "remark: c[GRID]; crashed\n3 templates measured; 1 of 2 kernels have another"
    )


def test_invalid_executors_are_errors(capsys: Capture, tmp_path: Path) -> None:
    """The error says what ``--executor`` needs."""
    model = tmp_path / "m.txt"
    model.write_text("x: f32[4]; return abs(x)")
    for name, message in (
        ("nowhere:Pool", "cannot be created: No module named 'nowhere'"),
        ("concurrent.futures:Nobody", "cannot be created: module 'concurrent.futures' has no"),
        (
            "os:getcwd",
            "a callable that returns an Executor, got 'os:getcwd', which returns",
        ),
        ("os", "needs MODULE:NAME of a callable that returns an Executor, got 'os'"),
    ):
        with pytest.raises(SettingError, match=re.escape(message)), tune.executor_of(name):
            pass
        result = answer(capsys, str(model), "--executor", name, code=1)
        assert result["kind"] == "SettingError" and message in result["error"]
