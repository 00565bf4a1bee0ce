"""Saving and loading of executables."""

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

import passkit as pk
from passkit.errors import CacheError, CompilerError, ModelError
from passkit.runtime.native import build
from tests import measurements
from tests.command import passkit
from tests.kernel_cache import (
    copy_launcher,
    forget_loaded_kernels,
    machine_code_of,
    number_of_kernels,
    plant_library,
)

TEXT = """state w: f32[3] = [1, 2, 3]; x: f32[n, 3]; y = erf(mul(x, w))
s = assign(w, add(w, 1)) after(y); return y, s"""


def saved(folder: Path) -> tuple[Any, Any]:
    """An executable after one call, saved; and what it gives next."""
    exe = pk.compile(pk.parse(TEXT), fusion="nnvm")
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    exe(x=x)
    exe.save(folder)
    return x, exe(x=x)[0]


def test_a_loaded_executable_equals_the_saved_one(tmp_path: Path) -> None:
    """Graph, options and state are those of the saved executable."""
    x, expected = saved(tmp_path)
    exe = pk.load(tmp_path)

    assert exe.context.fusion == "nnvm"
    assert exe.state["w"].tolist() == [2, 3, 4]
    assert exe(x=x)[0].tobytes() == expected.tobytes()


def test_hints_and_disabled_passes_are_saved(tmp_path: Path) -> None:
    """Hints and disabled passes apply to the loaded executable."""
    x = pk.var("x", ("n", 64))
    total = pk.ops.reduce_sum(pk.ops.exp(x))
    y, z = x / total, pk.ops.tanh(x) + 1.0
    hints: Any = {"keep_together": [[total, y]], "no_fuse": [z], "disabled": ["SplitReduce"]}
    exe = pk.compile(pk.Graph([y, z]), **hints)
    exe.save(tmp_path)
    again = pk.load(tmp_path)

    assert [k.key for k in again.kernels] == [k.key for k in exe.kernels]
    assert len(exe.kernels) == 3 and again.stats["compiled"] == 0
    assert again.context.disabled == ("SplitReduce",)
    values = np.ones((5, 64), np.float32)
    for one, other in zip(again(x=values), exe(x=values), strict=True):
        assert one.tobytes() == other.tobytes()


def test_measurements_are_saved(tmp_path: Path, fresh_cache: Path) -> None:
    """The loaded executable is planned with the saved measurements, and no others."""
    graph = pk.parse("x: f32[512, 64]; return softmax(x)")
    (ranked,) = pk.templates(graph)
    best = str(ranked.others[0].template)
    measurements.record_for(graph, best, 1e-6)
    pk.compile(graph).save(tmp_path)
    measurements.forget()

    loaded = pk.load(tmp_path).graph
    (schedule,) = loaded.attrs["schedule"].values()
    assert schedule.source.value == "measured"
    (again,) = pk.templates(loaded)
    assert again.template == best != ranked.template


def test_loading_needs_no_compiler(tmp_path: Path) -> None:
    """A process that has a launcher and no compiler loads it: equal bits, nothing compiled.

    The loaded kernels stay out of its cache.
    """
    x, expected = saved(tmp_path / "exe")
    np.save(tmp_path / "x.npy", x)
    program = (
        "import numpy as np, passkit as pk, sys, warnings; warnings.simplefilter('error')\n"
        "exe = pk.load(sys.argv[1]); y = exe(x=np.load(sys.argv[2]))[0]\n"
        "print(exe.stats['compiled'], exe.stats['target'], y.tobytes().hex())"
    )
    copy_launcher(tmp_path / "cache")
    env = {
        **os.environ,
        "PASSKIT_CACHE_DIR": str(tmp_path / "cache"),
        "PASSKIT_CXX": "/nonexistent",
    }
    output = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "exe"), str(tmp_path / "x.npy")],
        env=env,
        capture_output=True,
        text=True,
    )

    assert output.stdout.split() == ["0", "cpu", expected.tobytes().hex()], output.stderr
    assert number_of_kernels(tmp_path / "cache") == 1, "the launcher"


@pytest.mark.parametrize("has_compiler", [True, False])
def test_kernels_that_are_gone_from_the_cache_are_saved(
    tmp_path: Path, fresh_cache: Path, monkeypatch: pytest.MonkeyPatch, has_compiler: bool
) -> None:
    """They are compiled again into the folder; without a compiler that is an error."""
    forget_loaded_kernels()
    exe = pk.compile(pk.parse("x: f32[n]; return tan(mul(x, 3))"))
    shutil.rmtree(fresh_cache)
    fresh_cache.mkdir(mode=0o700)
    if not has_compiler:
        monkeypatch.setenv("PASSKIT_CXX", "/nonexistent")
        with pytest.raises(CompilerError, match=rf"kernel {exe.kernels[0].name} is not in the .*"):
            exe.save(tmp_path / "exe")
        return
    exe.save(tmp_path / "exe")

    assert number_of_kernels(tmp_path / "exe" / "cache") == 1
    forget_loaded_kernels()
    compiled = build.stats.compiled
    x = np.ones(3, np.float32)
    np.testing.assert_array_equal(pk.load(tmp_path / "exe")(x=x)[0], exe(x=x)[0])
    assert build.stats.compiled == compiled


PLANTED = """
#include <cstdio>
__attribute__((constructor)) static void ran() { fclose(fopen("%s", "w")); }
extern "C" void unused() {}
"""


@pytest.mark.parametrize("broken", ["graph.json", "state.npz", "options.json"])
def test_a_refused_program_leaves_no_machine_code(
    tmp_path: Path, fresh_cache: Path, broken: str
) -> None:
    """If loading fails, no code of the folder runs or enters the user's cache."""
    forget_loaded_kernels()
    folder, mark = tmp_path / "exe", tmp_path / "ran"
    saved(folder)
    planted = tmp_path / "planted.cpp"
    planted.write_text(PLANTED % mark)
    keys = plant_library(folder / "cache", planted, "unused")
    kernels_before = number_of_kernels()
    assert passkit("cache", "clear") == 0
    original = (folder / broken).read_bytes()
    if broken == "options.json":
        (folder / broken).write_text(json.dumps({**json.loads(original), "target": "nowhere"}))
    elif broken == "state.npz":
        np.savez(folder / broken, another=np.zeros(3))
    else:
        (folder / broken).write_bytes(original[: len(original) // 2])

    with pytest.raises(pk.PasskitError):
        pk.load(folder)

    assert kernels_before > 0 and number_of_kernels() == 0
    assert not mark.exists()
    (folder / broken).write_bytes(original)
    forget_loaded_kernels()
    pk.load(folder)
    forget_loaded_kernels()  # else later tests would run the planted function as their kernels
    assert mark.exists(), "the planted code is what a load that is not refused maps"
    assert all(machine_code_of(key) != planted.with_suffix(".so").read_bytes() for key in keys)


@pytest.mark.parametrize("name", ["options.json", "graph.json", "tuned.jsonl", "state.npz"])
def test_a_fifo_in_place_of_a_file_is_refused(tmp_path: Path, name: str) -> None:
    """A FIFO in place of a file of a saved executable is refused at once."""
    saved(tmp_path)
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)

    with pytest.raises(ModelError, match=f"{name} is not a regular file"):
        pk.load(tmp_path)


def test_folders_without_an_executable_are_errors(tmp_path: Path) -> None:
    """Another folder, damaged options and another version are errors."""
    with pytest.raises(ModelError, match=r"holds no saved executable \(.*options.json.*\); exe.sa"):
        pk.load(tmp_path)
    (tmp_path / "options.json").write_text("{")
    with pytest.raises(ModelError, match="holds no saved executable .Expecting property name"):
        pk.load(tmp_path)
    saved(tmp_path)
    options = json.loads((tmp_path / "options.json").read_text())
    (tmp_path / "options.json").write_text(json.dumps({**options, "format": 0}))
    with pytest.raises(ModelError, match=f"{tmp_path} was saved by another version of passkit"):
        pk.load(tmp_path)


def test_machine_code_that_others_may_write_is_refused(tmp_path: Path) -> None:
    """A folder whose kernels other users may change is not trusted."""
    saved(tmp_path)
    (tmp_path / "cache").chmod(0o777)

    with pytest.raises(CacheError, match=f"{tmp_path}/cache"):
        pk.load(tmp_path)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"dump": "folder"}, "got 'dump': 'folder'"),
        ({"state": {}}, r"got 'state': \{\}"),
        ({"fusion": ["nnvm"]}, r"got 'fusion': \['nnvm'\]"),
        ({"keep_together": ["a"]}, r"got 'keep_together': \['a'\]"),
        ({"templates": {"a": 1}}, r"got 'templates': \{'a': 1\}"),
        ({"format": [1]}, r"in format \[1\] and not 2"),
    ],
)
def test_unknown_options_are_refused(
    change: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only options that `save` writes are read, each of its type; nothing else happens."""
    monkeypatch.chdir(tmp_path)
    pk.compile(pk.parse("x: f32[2]; return x"), target="interpret").save(tmp_path)
    options = json.loads((tmp_path / "options.json").read_text())
    (tmp_path / "options.json").write_text(json.dumps({**options, **change}))
    files = sorted(tmp_path.rglob("*"))

    with pytest.raises(ModelError, match=message):
        pk.load(tmp_path)
    assert sorted(tmp_path.rglob("*")) == files


def test_options_that_are_not_json_are_refused(tmp_path: Path) -> None:
    """The error has the position in the text."""
    pk.compile(pk.parse("x: f32[2]; return x"), target="interpret").save(tmp_path)
    (tmp_path / "options.json").write_text("{")

    with pytest.raises(ModelError, match="holds no saved executable .Expecting property name"):
        pk.load(tmp_path)
