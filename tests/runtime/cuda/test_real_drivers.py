"""PyCUDA and cuda-bindings on a libcuda that passes their calls to the fake driver."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FEW = "cuda-bindings and (many_calls or addresses or phases or no_memory_left or structure)"
"""Launches, graphs and their updates, grid barriers, exhausted memory, and packed kernels."""


def test_cuda_bindings_on_a_fake_libcuda() -> None:
    """A few tests of ``-m cuda`` pass with the installed bindings, in a process with a driver."""
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

    assert re.search(r"^5 passed, \d+ deselected", done.stdout, re.M), done.stdout + done.stderr


def test_the_list_of_unproven_parts_names_existing_files() -> None:
    """Files and tests that the list of what no GPU has run names exist."""
    text = (ROOT / "benchmarks/results/gpu-unproven.txt").read_text()
    named = re.findall(r"\b((?:tests|passkit|benchmarks)/[\w/]+\.py)(?:::(\w+))?", text)

    assert named
    for file, test in named:
        assert not test or re.search(rf"^def {test}\(", (ROOT / file).read_text(), re.M), test
        assert (ROOT / file).is_file(), file
