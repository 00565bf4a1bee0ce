"""The kernel cache from outside: cold, warm without a compiler, torn, and shared by processes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """
import json, sys, warnings, hashlib
warnings.simplefilter("error")
import numpy as np
import passkit as pk
from passkit.runtime.native.build import stats
text = "x: f32[n, 70]; e = exp(sub(x, reduce_max(x, axis=1, keepdims=true)));"
text += "y = div(e, reduce_sum(e, axis=1, keepdims=true)); return y, erf(transpose(x))"
exe = pk.compile(pk.parse(text))
x = np.random.default_rng(0).normal(size=(9, 70)).astype(np.float32)
bits = hashlib.sha256(b"".join(y.tobytes() for y in exe(x=x))).hexdigest()
modules = [m for m in ("pulp", "subprocess", "tempfile") if m in sys.modules]
print(json.dumps({"bits": bits, "compiled": stats.compiled, "loaded": stats.loaded,
                  "kernels": len(exe.kernels), "modules": modules}))
"""

FIRST = """
import json, sys, subprocess
import passkit as pk
Popen, there = subprocess.Popen, []
def popen(*arguments, **options):
    there.append("attrs" in sys.modules or "passkit.passes" in sys.modules)
    return Popen(*arguments, **options)
subprocess.Popen = popen
pk.compile(pk.ops.exp(pk.var("x", (3,), "float32")))
print(json.dumps(there))
"""


def begin(folder: Path, program: str = PROGRAM, **environ: str) -> subprocess.Popen[str]:
    """A process that compiles and runs a graph with the cache in ``folder``."""
    env = {**os.environ, "PASSKIT_CACHE_DIR": str(folder), **environ}
    return subprocess.Popen(
        [sys.executable, "-c", program],
        env=env,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def end(process: subprocess.Popen[str]) -> Any:
    """Wait for a process, and return the JSON that it printed."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return json.loads(out)


@pytest.fixture(scope="module")
def cold_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """Run the program with an empty cache; return its folder and the report of the program."""
    folder = tmp_path_factory.mktemp("cold")
    folder.chmod(0o700)
    return folder, end(begin(folder))


def test_cold_then_warm_without_a_compiler(cold_run: tuple[Path, Any]) -> None:
    """A second process, with no compiler there, gives equal bits and compiles nothing."""
    folder, cold = cold_run
    warm = end(begin(folder, PASSKIT_CXX="/nonexistent", PYTHONHASHSEED="7"))

    assert cold["compiled"] == cold["kernels"] == warm["loaded"] == 2
    assert (warm["bits"], warm["compiled"]) == (cold["bits"], 0)
    assert "pulp" not in warm["modules"] and "subprocess" not in warm["modules"]


def test_the_launcher_is_begun_before_planning(fresh_cache: Path) -> None:
    """The longest work of a first compile waits for nothing: the planner is not yet imported.

    The kernel follows; the header for later ones is compiled by a later process.
    """
    assert end(begin(fresh_cache, FIRST)) == [False, True]


def test_torn_files_and_two_writers(cold_run: tuple[Path, Any], tmp_path: Path) -> None:
    """Files cut short, emptied or filled with noise are replaced, by two processes at once."""
    used, cold = cold_run
    folder = shutil.copytree(used, tmp_path / "torn")
    for k, file in enumerate(sorted(p for p in folder.rglob("*") if p.is_file())):
        content = file.read_bytes()
        file.write_bytes([content[: len(content) // 2], b"", b"\xff" * 100][k % 3])
    both = [begin(folder), begin(folder)]
    reports = [end(p) for p in both]

    assert {f["bits"] for f in reports} == {cold["bits"]}
    assert end(begin(folder, PASSKIT_CXX="/nonexistent"))["bits"] == cold["bits"]
