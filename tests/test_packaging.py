"""A wheel has every module and data file and one version, and runs outside of the checkout."""

from __future__ import annotations

import configparser
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.raised import ROOT, source_files
from tests.test_floors import module_of

SETUP = configparser.ConfigParser()
SETUP.read(ROOT / "setup.cfg")
DATA = {".h", ".pyi", ".c", ".cpp", ".binpb", ".proto", ".typed", ".css", ".js"}


def run(*command: str | Path, cwd: Path, **env: str) -> str:
    """Run a command, and return its output."""
    done = subprocess.run(
        [str(c) for c in command],
        cwd=cwd,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy so that the checkout stays clean."""
    copy, out = tmp_path_factory.mktemp("source") / "passkit", tmp_path_factory.mktemp("wheel")
    ignore = shutil.ignore_patterns(".*", "__pycache__", "build", "*.egg-info", "benchmarks")
    shutil.copytree(ROOT, copy, ignore=ignore)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
    run(*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", out, ".", cwd=copy)
    (path,) = out.glob("passkit-*.whl")
    return path


def installed_name(path: Path) -> str:
    """Where a file of the checkout is found in the installed package."""
    relative = path.relative_to(ROOT)
    return str(relative if relative.parts[0] == "passkit" else Path("passkit") / relative)


def test_every_package_is_listed() -> None:
    """setup.cfg names each folder that holds modules, and no other."""
    folders = {
        module_of(p) if p.name == "__init__.py" else module_of(p).rpartition(".")[0]
        for p in source_files()
    }

    assert set(SETUP["options"]["packages"].split()) == folders


def test_the_wheel_holds_everything(wheel: Path) -> None:
    """Each module and each data file is inside, ops/ and frontends/ within passkit/."""
    names = set(zipfile.ZipFile(wheel).namelist())
    expected = {installed_name(p) for p in source_files()} | {
        installed_name(p)
        for top in ("passkit", "ops", "frontends")
        for p in (ROOT / top).rglob("*")
        if p.suffix in DATA or p.name == "py.typed"
    }

    assert expected - names == set()
    assert {n.split("/")[0] for n in names} == {"passkit", f"passkit-{version()}.dist-info"}


def test_an_installed_copy_runs(wheel: Path, tmp_path: Path) -> None:
    """From another folder, without the checkout, a program compiles and the command answers."""
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    code = (
        "import numpy as np, passkit as pk; from passkit.frontends import tf_graphdef;"
        "x = pk.var('x', (3,)); (y,) = pk.compile(pk.Graph([pk.ops.exp(x) + 1]))"
        "(x=np.zeros(3, 'float32')); print(pk.__file__, y.tolist())"
    )

    out = run(sys.executable, "-c", code, cwd=tmp_path, PYTHONPATH=str(site))
    ops = run(sys.executable, "-m", "passkit", "ops", cwd=tmp_path, PYTHONPATH=str(site))

    assert out.split(maxsplit=1)[0] == str(site / "passkit/__init__.py")
    assert "[2.0, 2.0, 2.0]" in out
    assert "matmul" in ops


def version() -> str:
    """The version that setup.cfg declares."""
    return SETUP["metadata"]["version"]


def test_there_is_one_version() -> None:
    """setup.cfg, the package and the changelog agree."""
    import passkit

    assert passkit.__version__ == version()
    assert f"\n## {version()} " in (ROOT / "CHANGELOG.md").read_text()


def test_the_build_needs_no_more_than_setuptools() -> None:
    """pip can build from a checkout with setuptools alone."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())

    assert table["build-system"]["requires"] == ["setuptools>=77"]


@pytest.mark.parametrize("where", ["checkout", "elsewhere"])
def test_a_checkout_works_without_installation(where: str, tmp_path: Path) -> None:
    """In the checkout, and with it on the path, `passkit.ops` is found beside the package."""
    cwd = ROOT if where == "checkout" else tmp_path
    code = "import passkit.ops, passkit.frontends; print(passkit.ops.__file__)"

    out = run(sys.executable, "-c", code, cwd=cwd, PYTHONPATH=str(ROOT))

    assert Path(out.strip()) == ROOT / "ops/__init__.py"


def test_import_is_light() -> None:
    """`import passkit` loads neither an extra nor what only some calls need."""
    code = "import sys, numpy; before = set(sys.modules); import passkit; print(*set(sys.modules))"

    loaded = {m.split(".")[0] for m in run(sys.executable, "-c", code, cwd=ROOT).split()}

    heavy = {"pulp", "highspy", "rich", "graphviz", "pycuda", "pyopencl", "tensorflow", "torch"}
    assert loaded & (heavy | {"scipy", "google"}) == set()


@pytest.mark.parametrize("first", ["import ops", "import passkit, ops"])
def test_the_folder_of_operators_is_passkits(first: str) -> None:
    """At a checkout's root Python finds it by itself: each operator is registered once."""
    show = "import passkit as pk; print(len(pk.list_ops()), pk.ops.cholesky.place)"

    beside, expected = (run(sys.executable, "-c", c, cwd=ROOT) for c in (f"{first}; {show}", show))
    assert beside == expected


def test_the_metadata_of_the_wheel(wheel: Path) -> None:
    """The wheel has an SPDX licence expression, the README, and a classifier for each Python."""
    with zipfile.ZipFile(wheel) as files:
        (name,) = (n for n in files.namelist() if n.endswith("/METADATA"))
        metadata = files.read(name).decode()

    assert "License-Expression: Apache-2.0\n" in metadata
    for minor in (11, 12, 13):
        assert f"Classifier: Programming Language :: Python :: 3.{minor}\n" in metadata
    assert "# passkit\n" in metadata
