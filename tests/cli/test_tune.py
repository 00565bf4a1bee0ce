"""``passkit tune``: measurements, changed templates, and executors."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from attrs import evolve

import passkit as pk
from passkit.errors import SettingError
from tests.command import json_of, raise_error_of, text_of

THREADS = "concurrent.futures:ThreadPoolExecutor"


def test_a_second_run_measures_nothing(tmp_path: Path, fresh_cache: Path) -> None:
    """Kernels of a model are measured at the given sizes, and only once."""
    model = tmp_path / "m.txt"
    model.write_text("x: f32[n, 40]; return abs(x), reduce_max(x, axis=0)")
    options = (model, "--shape", "x=6,40", "--executor", THREADS, "--budget", "2")
    first = json_of("tune", *options)
    text = text_of("tune", *options)

    (name, *_) = (g["operators"] for g in first["groups"])
    assert name == "abs" and first["measured"] >= 4 and first["rounds"] == 1
    assert all(g["seconds"] > 0 and g["faults"] == {} for g in first["groups"])
    assert "0 templates measured; " in text and f"of {len(first['groups'])} kernels" in text


def test_the_table_has_times_gains_and_faults() -> None:
    """The text has seconds before and after, gain, template and faults."""
    with ThreadPoolExecutor(1) as executor:
        tuning = pk.tune(pk.parse("x: f32[4]; return abs(x)"), budget=1, executor=executor)
    (group,) = tuning.groups
    faster = evolve(
        group,
        usual="a[GRID];",
        template="b[GRID];",
        before=2e-6,
        after=1e-6,
        faults={"c[GRID];": "crashed"},
    )
    same = evolve(group, usual="a[GRID];", template="a[GRID];", before=0.0, after=0.0)
    groups, remarks = (faster, same), ("c[GRID]; crashed",)
    text = str(evolve(tuning, groups=groups, measured=3, remarks=remarks))

    assert "2 µs" in text and "2.00" in text and "b[GRID];" in text and "as before" in text
    assert text.endswith(
        "remark: c[GRID]; crashed\n3 templates measured; 1 of 2 kernels have another"
    )


def test_invalid_executors_are_errors(tmp_path: Path) -> None:
    """The error says what ``--executor`` needs."""
    model = tmp_path / "m.txt"
    model.write_text("x: f32[4]; return abs(x)")
    for name, message in (
        ("nowhere:Pool", "cannot be called: No module named 'nowhere'"),
        ("concurrent.futures:Nobody", "cannot be called: module 'concurrent.futures' has no"),
        (
            "os:getcwd",
            "a callable that returns an Executor, got 'os:getcwd', which returns",
        ),
        ("os", "needs MODULE:NAME of a callable that returns an Executor, got 'os'"),
    ):
        with pytest.raises(SettingError, match=re.escape(message)):
            raise_error_of("tune", model, "--executor", name)
        result = json_of("tune", model, "--executor", name, code=1)
        assert result["kind"] == "SettingError" and message in result["error"]
