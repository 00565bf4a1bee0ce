"""The real libraries on a driver that hands their calls to the fake one: they are called right."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FEW = "cuda-bindings and (many_calls or addresses or phases or no_room)"
"""Launches, graphs and their changes, grid barriers, and what is said; all by the command."""


def test_bindings() -> None:
    """``pytest -p tests.emulator.libcuda -m cuda tests/runtime/cuda``, of which some are run here.

    In a process of its own, which then has a driver.
    """
    pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")
    command = (
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "tests.emulator.libcuda",
        "-m",
        "cuda",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "tests/runtime/cuda/test_programs.py",
    )
    environ = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
    done = subprocess.run(
        (*command, "-k", FEW), cwd=ROOT, env=environ, capture_output=True, text=True
    )

    assert re.search(r"^4 passed, \d+ deselected", done.stdout, re.M), done.stdout + done.stderr


def test_what_is_unproven_is_named() -> None:
    """The files that what no GPU has run is told by exist, and tests that are named in them."""
    text = (ROOT / "benchmarks/results/gpu-unproven.txt").read_text()
    named = re.findall(r"\b((?:tests|passkit|benchmarks)/[\w/]+\.py)(?:::(\w+))?", text)

    assert named
    for file, test in named:
        assert not test or re.search(rf"^def {test}\(", (ROOT / file).read_text(), re.M), test
        assert (ROOT / file).is_file(), file
