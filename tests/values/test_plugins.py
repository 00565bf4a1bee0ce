"""Plug-ins: packages that add operators, passes, dialects, targets and fusion strategies."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from passkit.errors import PluginError
from tests.command import passkit, raise_error_of

ROOT = Path(__file__).resolve().parents[2]

MODULE = '''
from attrs import evolve

import passkit as pk
from passkit.dialects.base import dialect_of
from passkit.target import target_of

cube = pk.register_op("plugged_cube", num_inputs=1)
cube.set_attr("FCodeGen", lambda node, x: x * x * x)
cube.set_attr("TOpPattern", pk.OpPattern.ELEMWISE)


@pk.register_pass("PluggedTwice", changes_graph=True)
def twice(graph):
    """Double all results."""
    return pk.Graph([y + y for y in graph.outputs])


@pk.register_fusion("plugged_alone")
def alone(graph):
    """Every operator by itself."""
    return [[node] for node in graph.nodes if node.op is not None and node.op.name != "constant"]


def register():
    """The second entry point, which is a function."""
    pk.register_dialect(evolve(dialect_of("opencl"), name="plugged_c"))
    pk.register_target(evolve(target_of("opencl"), name="plugged_device", dialect="plugged_c"))
    pk.register_target(evolve(target_of("cpu"), name="plugged_cpu"))
'''
POINTS = """
[passkit.plugins]
broken = plugged_broken
things = plugged
numbers = plugged:register
wrong = plugged_broken_no:name
text = plugged_text:NAME

[console_scripts]
other = nothing:at_all
"""
USE = """
import sys, warnings
import numpy as np
import passkit as pk
from passkit.program.plan_cache import plan_key

x = pk.var("x", (4,))
standard = pk.Graph([pk.ops.softmax(x)])
key = plan_key(standard, {})
pk.compile(standard, target="interpret")
hasattr(pk.ops, "__wrapped__")
assert "plugged" not in sys.modules and key is not None
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    cube = pk.ops.plugged_cube
assert [w.filename for w in caught] == [__file__] * 3
print(*(w.message for w in caught), sep="\\n")
assert plan_key(standard, {}) == key

graph = pk.Graph([pk.ops.tanh(cube(x))])
run = pk.compile(
    graph, target="plugged_cpu", fusion="plugged_alone", passes={"after Simplify": "PluggedTwice"}
)
print([kernel.ops for kernel in run.kernels], run(x=np.full(4, 0.5, "float32"))[0][0])
planned = pk.ApplyPasses(graph, ["Fusion", "CodeGen"], target="plugged_device")
(kernel,) = planned.attrs["kernel"].values()
print(kernel.dialect, "__kernel" in kernel.source)
print([(p.name, p.distribution, p.version, p.loaded) for p in pk.load_plugins()])
pk.to_text(graph)
"""
COMMANDS = """
from passkit.cli import doctor, main

choices = ["--fusion=plugged_alone", "--target=plugged_cpu", "--passes=after Simplify=PluggedTwice"]
assert main(["explain", "model.txt", *choices]) == 0
print("----", flush=True)
doctor.CHECKS = (lambda: doctor.HealthCheck('cpu', True, ''),)
assert main(["doctor", "--json"]) == 0
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with an installed package of five plug-ins, three of which fail."""
    site = tmp_path / "site"
    information = site / "plugged_things-1.2.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: plugged-things\nVersion: 1.2\n"
    )
    (information / "entry_points.txt").write_text(POINTS)
    (site / "plugged.py").write_text(MODULE)
    (site / "plugged_broken.py").write_text("raise RuntimeError('no licence')")
    (site / "plugged_text.py").write_text("NAME = 'plugged'")
    (tmp_path / "model.txt").write_text("x: f32[4]\ny = plugged_cube(x)\nreturn y\n")
    return site


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a new process that finds the package in ``folder / "site"``."""
    path = os.pathsep.join([str(ROOT), str(folder / "site")])
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "100"},
    )


def test_plugins_are_loaded_at_the_first_unknown_name(site: Path) -> None:
    """One package's operator, pass, dialect, target and strategy work together.

    They are not loaded before a name is unknown, and plans of standard graphs keep their keys.
    Those that fail are warned of, at the line of the user's code, and the others are loaded.
    """
    script = site.parent / "use.py"
    script.write_text(USE)
    done = python(site.parent, str(script))
    lines = done.stdout.splitlines()

    assert done.returncode == 0, done.stderr
    for line, name, value, error in zip(
        lines,
        ("broken", "wrong", "text"),
        ("plugged_broken", "plugged_broken_no:name", "plugged_text:NAME"),
        (
            "RuntimeError: no licence",
            "ModuleNotFoundError: No module named 'plugged_broken_no'",
            "PluginError: 'plugged_text:NAME' is neither a module nor a function, but a str",
        ),
        strict=False,
    ):
        assert line == (
            f"plug-in '{name}' ({value}) of plugged-things 1.2 is not loaded: {error}; repair it, "
            f"or run pip uninstall plugged-things"
        )
    assert lines[3] == "[('plugged_cube',), ('tanh',), ('add',)] 0.248706"
    assert lines[4] == "plugged_c True"
    names = ["broken", "things", "numbers", "wrong", "text"]
    works = [False, True, True, False, False]
    expected = [(n, "plugged-things", "1.2", w) for n, w in zip(names, works, strict=True)]
    assert lines[5] == repr(expected)


@pytest.mark.parametrize(
    ("look_up", "known_name", "plugged_name"),
    [
        ("pk.get_op(name)", "exp", "plugged_cube"),
        ("pk.ApplyPasses(graph, name)", "Fusion", "PluggedTwice"),
        (
            "pk.ApplyPasses(graph, ['Fusion', 'CodeGen'], target=pk.Target('t', name, 16, 4096))",
            "opencl",
            "plugged_c",
        ),
        ("pk.PassContext(target=name)", "cpu", "plugged_device"),
        ("pk.PassContext(fusion=name)", "deep", "plugged_alone"),
    ],
    ids=["operator", "pass", "dialect", "target", "fusion strategy"],
)
def test_every_kind_of_name_loads_plugins(
    look_up: str, known_name: str, plugged_name: str, site: Path
) -> None:
    """Plug-ins are loaded for an unknown name of each kind, which they may register."""
    script = f"""
import sys
import passkit as pk

graph = pk.Graph([pk.ops.exp(pk.var("x", (4,)))])
name = {known_name!r}
{look_up}
assert "plugged" not in sys.modules
name = {plugged_name!r}
{look_up}
assert "plugged" in sys.modules
"""
    done = python(site.parent, "-W", "ignore", "-c", script)

    assert done.returncode == 0, done.stderr


def test_plugins_on_the_command_line(site: Path) -> None:
    """A model with an operator of a plug-in is planned with its pass and strategy, for its target.

    The doctor lists each plug-in with its package and version, and whether it was loaded.
    """
    script = site.parent / "commands.py"
    script.write_text(COMMANDS)
    done = python(site.parent, str(script))
    plan, health = done.stdout.split("----")

    assert done.returncode == 0, done.stderr
    row = "y +add +no +fusion.strategy +strategy 'plugged_alone' has them in two groups"
    assert re.search(row, plan)
    rows = {row["name"]: row for row in json.loads(health)}
    assert rows["plug-in things"]["works"] and not rows["plug-in broken"]["works"]
    assert rows["plug-in things"]["found"] == "plugged-things 1.2, plugged: loaded"
    assert rows["plug-in broken"]["found"] == (
        "plugged-things 1.2, plugged_broken: RuntimeError: no licence"
    )
    assert rows["plug-in broken"]["way_out"] == "repair it, or pip uninstall plugged-things"


def test_a_file_named_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """--plugin imports a file or a module of the current folder, once, before all else."""
    for name in ("plugged_file", "plugged_module"):
        text = f"import passkit as pk\npk.register_pass('{name}')(lambda graph: graph)"
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    command = ["passes", "plugged_file", "plugged_module"]
    plugins = ["--plugin", "plugged_file.py", "--plugin", "plugged_module"]

    assert passkit(*command, *plugins, *plugins) == 0
    assert "plugged_module" in capsys.readouterr().out


@pytest.mark.parametrize(
    "module, message",
    [
        (
            "missing.py",
            r"'missing.py' cannot be imported: PluginError: there is no file '.*missing",
        ),
        (
            "no.such",
            r"'no.such' cannot be imported: ModuleNotFoundError: No module named 'no'; give",
        ),
        ("folder/json.py", "a module called 'json' is imported already; rename the file"),
        (
            "fails.py",
            "'fails.py' cannot be imported: ZeroDivisionError: division by zero; give the",
        ),
    ],
)
def test_plugins_that_cannot_be_imported_are_refused(
    module: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The message says which plug-in fails and why, and the exit code is 2."""
    (tmp_path / "fails.py").write_text("1 / 0")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])

    with pytest.raises(SystemExit, match="2"):
        passkit("passes", "--plugin", module)
    error = " ".join(capsys.readouterr().err.split())
    assert re.search(message, error) and module in error
    assert "fails" not in sys.modules


def test_a_plugin_file_with_the_name_of_a_module_is_refused() -> None:
    """A file is not imported in place of a module of its name, and the error names both."""
    message = "a module called 'json' is imported already; rename the file"
    with pytest.raises(PluginError, match=message):
        raise_error_of("passes", "--plugin", "folder/json.py")
