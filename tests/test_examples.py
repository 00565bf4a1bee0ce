"""Each example runs unchanged, in a folder of its own, and is short."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))


def run_example(path: Path, folder: Path) -> str:
    """Run an example, with warnings as errors, and return its output."""
    process = subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


def test_examples_are_numbered() -> None:
    """Examples are numbered in the order of reading."""
    assert [p.name[:2] for p in EXAMPLES] == [f"{k:02d}" for k in range(1, len(EXAMPLES) + 1)]
    assert len(EXAMPLES) >= 3


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_examples_are_short(path: Path) -> None:
    """An example has fewer than 60 lines and begins with a docstring."""
    lines = path.read_text().splitlines()

    assert len(lines) < 60
    assert lines[0].startswith('"""')


@pytest.mark.usefixtures("fresh_cache")
def test_hello_kernel(tmp_path: Path) -> None:
    """GELU is one kernel, one native call, and is compiled once for two sizes."""
    out = run_example(ROOT / "examples/01_hello_kernel.py", tmp_path)

    assert "1 kernel, 1 native call, the same values" in out
    assert "compiled 1 kernels for two sizes" in out
    assert 'extern "C" void' in out


def test_your_own_op(tmp_path: Path) -> None:
    """User-defined activations, one with a parameter, give three results from one kernel."""
    out = run_example(ROOT / "examples/02_your_own_op.py", tmp_path)

    assert "3 results, 1 kernel, 1 native call" in out


def test_train_digits(tmp_path: Path) -> None:
    """Every step is one native call, and 97 % of unseen digits are right."""
    out = run_example(ROOT / "examples/05_train_digits.py", tmp_path)

    assert "a step: 1 native call" in out
    assert "of 450 test digits" in out


def test_arrays_that_fuse(tmp_path: Path) -> None:
    """An expression of 13 operations and its mean read two arrays and write a number."""
    out = run_example(ROOT / "examples/06_arrays_that_fuse.py", tmp_path)

    assert "), read 32,000,000 and wrote 4 bytes" in out
    assert "times as fast" in out


def test_train_in_xp(tmp_path: Path) -> None:
    """A network in NumPy-like code learns the digits; nothing is compiled again in the loop."""
    out = run_example(ROOT / "examples/07_train_in_xp.py", tmp_path)

    assert "step 300: loss" in out
    assert float(re.findall(r"([\d.]+)% of the digits", out)[-1]) > 97
    assert int(re.findall(r"(\d+) plans after step 10", out)[0]) <= 4


def test_your_own_pass(tmp_path: Path) -> None:
    """The rewrite shows in the text, in the count and in the four pictures."""
    out = run_example(ROOT / "examples/03_your_own_pass.py", tmp_path)

    assert "swish(" in out
    assert "sigmoid" not in out.replace("swish", "")
    pictures = {p.name: p.read_text() for p in tmp_path.glob("*.svg")}
    assert sorted(pictures) == [f"swish_{n}.svg" for n in ("after", "before", "diff", "fused")]
    assert "sigmoid" in pictures["swish_before.svg"]
    assert "sigmoid" not in pictures["swish_after.svg"]
    assert "gemm" in pictures["swish_fused.svg"] or "elementwise" in pictures["swish_fused.svg"]
