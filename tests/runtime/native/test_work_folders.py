"""Folders for compilers: removed when done, and after a kill by the next process."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from passkit.errors import CompilerError
from passkit.runtime.native.work_folders import work_folder

KILLED = """
import os, signal
from passkit.runtime.native.work_folders import work_folder
folder = work_folder()
open(os.path.join(folder.name, "0.cpp"), "w").write("text")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_folders_of_killed_processes_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next process removes them, and keeps those of running processes."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    base = tmp_path / f"passkit-{os.geteuid()}"
    with work_folder() as mine:
        ended = subprocess.run([sys.executable, "-c", KILLED])
        assert ended.returncode == -signal.SIGKILL and len([*base.iterdir()]) == 2
        (base / "run-without-a-lock").mkdir()
        with work_folder() as other:
            assert {p.name for p in base.iterdir()} == {Path(mine).name, Path(other).name}
    assert not [*base.iterdir()]


def test_the_spare_folder_is_used_where_tmpdir_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If TMPDIR is full the spare folder is used; without one the error names TMPDIR."""
    monkeypatch.setenv("TMPDIR", "/sys/kernel")
    with work_folder(str(tmp_path)) as name:
        assert Path(name).is_relative_to(tmp_path)
    with pytest.raises(CompilerError, match="no room for .*/sys/kernel.*set TMPDIR"):
        work_folder()


def test_a_limit_of_file_sizes_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under a limit too low for a compiler an error says so, and nothing is left."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 12, before[1]))
    try:
        with pytest.raises(CompilerError, match="no room for .*File too large.*ulimit -f"):
            work_folder()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not [*(tmp_path / f"passkit-{os.geteuid()}").iterdir()]


def test_a_folder_that_others_can_write_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another user's folder of that name in a shared TMPDIR raises."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    base = tmp_path / f"passkit-{os.geteuid()}"
    base.mkdir()
    base.chmod(0o777)
    with pytest.raises(CompilerError, match=f"{base} is not a folder of this user alone"):
        work_folder()
