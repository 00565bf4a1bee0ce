"""Types of the public names: what type checkers accept of a user's file, and what they report."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "tests" / "typing" / "users_file.py"
PLANTED = {k for k, line in enumerate(FILE.read_text().splitlines(), 1) if "# wrong" in line}


@pytest.fixture(name="tree", scope="module")
def _tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that has passkit as it is once installed, with ops/ and frontends/ inside."""
    tree = tmp_path_factory.mktemp("installed")
    (tree / "passkit").mkdir()
    for path in [*(ROOT / "passkit").iterdir(), ROOT / "ops", ROOT / "frontends"]:
        (tree / "passkit" / path.name).symlink_to(path)
    (tree / "users_file.py").write_text(FILE.read_text())
    return tree


def run(tree: Path, *command: str) -> str:
    """Return what a checker prints about the user's file."""
    environ = {**os.environ, "MYPYPATH": str(tree), "PYTHONPATH": str(tree)}
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=tree,
        env=environ,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stdout, done.stderr
    return done.stdout


@pytest.mark.skipif(find_spec("mypy") is None, reason="the extra lint is not installed")
def test_mypy_reports_the_planted_mistakes(tree: Path) -> None:
    """Each planted line is reported, and no other."""
    config = tree / "mypy.ini"
    config.write_text("[mypy]\nfollow_imports = silent\nignore_missing_imports = true\n")
    out = run(tree, "mypy", "--config-file", str(config), "users_file.py")
    reported = {int(n) for n in re.findall(r"^users_file.py:(\d+): error", out, re.MULTILINE)}

    assert reported == PLANTED, out


@pytest.mark.skipif(find_spec("pyright") is None, reason="the extra lint is not installed")
def test_pyright_reports_the_planted_mistakes(tree: Path) -> None:
    """Each planted line is reported, and no other."""
    out = json.loads(run(tree, "pyright", "--outputjson", "users_file.py"))
    errors = [d for d in out["generalDiagnostics"] if d["severity"] == "error"]
    reported = {d["range"]["start"]["line"] + 1 for d in errors}

    assert reported == PLANTED, errors


def test_the_stubs_are_what_the_registry_says() -> None:
    """Writing the stubs again changes nothing; `python docs/stubs.py` writes them."""
    code = (
        "import stubs\n"
        "for name, make in stubs.STUBS.items():\n"
        "    assert (stubs.ROOT / name).read_text() == make(), name\n"
    )
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "docs")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, f"python docs/stubs.py\n{done.stderr}"
