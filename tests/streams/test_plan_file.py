"""Plans on disk: a second process explores nothing, and damaged files are harmless."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from passkit import xp
from passkit.streams import recorder
from tests.kernel_cache import copy_launcher

PROGRAM = """
import json, sys
import numpy as np
from passkit import xp

x = xp.asarray(np.linspace(0, 1, 1 << 20, dtype=np.float32).reshape(1024, 1024))
with xp.config(max_ops=8):
    for _ in range(3):
        y = (x + 1) * 0.5 - x
        z = y
        for _ in range(6):
            z = z * y + x
        total = np.asarray(z)
print(json.dumps([xp.stats(), float(total.sum(dtype=np.float64)), total.tobytes().hex()[:400]]))
"""


KERNEL_PROGRAM = """
import json, sys
import numpy as np
from passkit import xp

x = xp.asarray(np.linspace(0, 1, 1 << 18, dtype=np.float32))
before = np.asarray(xp.exp(x) * x)
cube = xp.kernel("xp_late_cube", "x * x * x")
after = np.asarray(cube(x) + x)
print(json.dumps([xp.stats(), after.tobytes().hex()[:400]]))
"""


def run(folder: Path, program: str = PROGRAM) -> tuple[dict[str, int], Any]:
    """Run a program in a process with a cache folder; return its counters and results."""
    root = Path(__file__).resolve().parents[2]
    environ = {**os.environ, "PASSKIT_CACHE_DIR": str(folder), "PYTHONPATH": str(root)}
    command = [sys.executable, "-c", program]
    output = subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout
    stats, *results = json.loads(output)
    return stats, results


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a cache folder with nothing but the extensions in C, which take long to compile."""
    local = tmp_path / "cache"
    copy_launcher(local, recorder.EXTENSION)
    return local


@pytest.fixture(scope="module")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, int], Any]:
    """Run the program with a new cache; return the cache folder, the counters and the results."""
    local = tmp_path_factory.mktemp("plans") / "cache"
    copy_launcher(local, recorder.EXTENSION)
    return local, *run(local)


@pytest.fixture
def used(first_run: tuple[Path, dict[str, int], Any], tmp_path: Path) -> tuple[Path, Any]:
    """Return a copy of the cache folder that the program used, and the program's results."""
    source, _, results = first_run
    return shutil.copytree(source, tmp_path / "used"), results


def test_a_second_process_explores_nothing(
    first_run: tuple[Path, dict[str, int], Any], used: tuple[Path, Any]
) -> None:
    """Plans, full queues and kernels are found on disk, and the bits are the same."""
    _, first, results = first_run
    second, same_results = run(used[0])

    assert first["explorations"] > 1 and first["disk_hits"] == 0
    assert second["explorations"] == 0
    assert second["disk_hits"] == first["explorations"]
    assert results == same_results


def test_operations_may_be_defined_after_the_first_execution(folder: Path) -> None:
    """Plans of kernels that the program defines late are found, and each is stored once."""
    first, results = run(folder, KERNEL_PROGRAM)
    (path,) = (folder / "streams").glob("*.jsonl")
    text = path.read_bytes()
    second, same_results = run(folder, KERNEL_PROGRAM)

    assert first["explorations"] == len(text.splitlines()) == 2
    assert (second["explorations"], second["disk_hits"]) == (0, 2)
    assert results == same_results and path.read_bytes() == text


def test_new_operations_keep_the_plans_that_are_stored() -> None:
    """A kernel that is defined between two looks at the disk changes nothing."""
    x = xp.asarray(np.linspace(0, 1, 1 << 18))
    np.asarray(xp.cosh(x) / 3 + x)
    xp.kernel("xp_defined_between", "x * 2 + 1")
    xp.forget_plans()
    explorations = xp.stats()["explorations"]

    np.asarray(xp.cosh(x) / 3 + x)

    assert xp.stats()["explorations"] == explorations


@pytest.mark.parametrize("damage", ["truncated", "flipped", "garbage", "foreign", "deleted"])
def test_damaged_files_cost_only_time(used: tuple[Path, Any], damage: str) -> None:
    """Lines that are torn, changed or not ours are skipped, and the plans are made again."""
    folder, results = used
    (path,) = (folder / "streams").glob("*.jsonl")
    text = path.read_bytes()
    lines = text.splitlines(keepends=True)
    replacement = {
        "truncated": text[: len(text) - len(lines[-1]) // 2],
        "flipped": text.replace(b"multiply", b"multiplx"),
        "garbage": bytes(range(256)) * 40,
        "foreign": b"".join(reversed(lines)) + b'0123456789abcdef {"other": "version"}\n',
        "deleted": b"",
    }
    path.write_bytes(replacement[damage])

    stats, same_results = run(folder)

    assert same_results == results
    assert (stats["explorations"] == 0) == (damage == "foreign")


def test_a_file_that_others_may_write_is_not_read(used: tuple[Path, Any]) -> None:
    """Plans become machine code, so a file with open permissions is ignored."""
    folder, _ = used
    (path,) = (folder / "streams").glob("*.jsonl")
    path.chmod(0o666)

    assert run(folder)[0]["disk_hits"] == 0


def test_many_processes_write_one_file(used: tuple[Path, Any]) -> None:
    """Four processes at once leave a file of intact lines, which a fifth one uses.

    They find the kernels of their plans, but no plans.
    """
    folder, _ = used
    shutil.rmtree(folder / "streams")
    root = Path(__file__).resolve().parents[2]
    environ = {**os.environ, "PASSKIT_CACHE_DIR": str(folder), "PYTHONPATH": str(root)}
    processes = [
        subprocess.Popen([sys.executable, "-c", PROGRAM], env=environ, stdout=subprocess.DEVNULL)
        for _ in range(4)
    ]

    assert [p.wait() for p in processes] == [0] * 4
    assert run(folder)[0]["explorations"] == 0


def test_clearing_the_cache_removes_the_plans_of_streams(used: tuple[Path, Any]) -> None:
    """`passkit cache clear` removes them, and the next process makes them again."""
    folder, _ = used
    root = Path(__file__).resolve().parents[2]
    environ = {**os.environ, "PASSKIT_CACHE_DIR": str(folder), "PYTHONPATH": str(root)}
    command = [sys.executable, "-m", "passkit", "cache", "clear"]
    subprocess.run(command, env=environ, check=True, capture_output=True)

    assert list((folder / "streams").iterdir()) == []
    copy_launcher(folder, recorder.EXTENSION)
    assert run(folder)[0]["disk_hits"] == 0


def test_plans_are_found_again_in_one_process() -> None:
    """After `forget_plans`, the plans on disk serve."""
    x = xp.asarray(np.ones((40, 40), np.float32))
    np.asarray(x * 2 + 1)
    xp.forget_plans()
    np.testing.assert_array_equal(np.asarray(x * 3 + 1), 4)

    assert xp.stats()["explorations"] == 1
    assert xp.stats()["disk_hits"] == 1
