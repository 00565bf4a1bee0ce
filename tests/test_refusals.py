"""Refusals that callers catch or turn into others, read where they are raised."""

from __future__ import annotations

import os
import stat
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.cli import doctor
from passkit.errors import CompilerError, ModelError, ParseError
from passkit.frontends import tf_graphdef
from passkit.frontends import tinyflow as tf
from passkit.reporting.bisection import bisect
from passkit.runtime.native import build, cache, launcher, work_folders
from passkit.runtime.native.compiler import find_compiler
from passkit.values import plugins


def test_a_model_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    """The message has the file and the system's reason."""
    graph = pk.parse("x: f32[2]; return exp(x)")
    with pytest.raises(ModelError, match=r"absent/m.pb cannot be written: No such file"):
        tf_graphdef.save(graph, tmp_path / "absent" / "m.pb")


def test_a_graphdef_in_the_place_of_a_saved_model_is_named(tmp_path: Path) -> None:
    """The message says what the file is."""
    graph = pk.parse("x: f32[2]; return exp(x)")
    (tmp_path / "m").mkdir()
    tf_graphdef.save(graph, tmp_path / "m" / "saved_model.pb")
    with pytest.raises(
        ModelError, match=r"m/saved_model.pb': expected a SavedModel, found a GraphDef"
    ):
        tf_graphdef.load(tmp_path / "m")


def test_a_condition_that_is_no_bool_is_refused() -> None:
    """A loop's condition is one bool."""
    with pytest.raises(pk.GraphError, match=r"a single bool of its condition, got <tf.Tensor"):
        tf.while_loop(lambda i: tf.constant([True, False]), lambda i: i + 1, [tf.constant(0)])


def test_private_names_of_ops_load_no_plugins() -> None:
    """Python's own look-ups load no plug-ins."""
    with pytest.raises(AttributeError, match="'passkit.ops' has no attribute '__nothing__'"):
        _ = pk.ops.__nothing__


def test_a_trial_program_with_a_wrong_result_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """`passkit doctor` compares the result of its trial program, not only that it runs."""

    class Wrong:
        kernels = ()

        def __call__(self, x: object) -> list[object]:
            return [x]

    monkeypatch.setattr(doctor, "compile", lambda graph, target: Wrong())
    with pytest.raises(RuntimeError, match=r"for x = 3 is 3\.0 instead of 7"):
        doctor.run_trial("cpu")


def test_a_bisection_with_fuel_is_refused() -> None:
    """Bisection chooses the fuel itself."""
    graph = pk.parse("x: f32[2]; return exp(x)")
    with pytest.raises(pk.SettingError, match=r"leave out fuel=3"):
        bisect(graph, {"x": np.zeros(2, np.float32)}, fuel=3)


def test_a_folder_in_place_of_a_saved_file_is_refused(tmp_path: Path) -> None:
    """The message names the file."""
    pk.compile(pk.parse("x: f32[2]; return exp(x)"), target="interpret").save(tmp_path / "p")
    file = tmp_path / "p" / "state.npz"
    file.unlink(missing_ok=True)
    file.mkdir()
    with pytest.raises(pk.PasskitError, match="state.npz is not a regular file"):
        pk.load(tmp_path / "p")


def test_machine_code_that_changes_while_it_is_read_is_refused() -> None:
    """A library that is exchanged while it is read is not loaded."""
    folder: Any = SimpleNamespace(machine_code=lambda entry: None)
    with pytest.raises(OSError, match="/a/b.so changed after it was verified"):
        build._open_copy(folder, cache.CachedKernel("/a/b.so", "f"))


def test_compiler_files_that_cannot_be_written_are_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The message has the folder, the reason and the way out."""

    def refuse(*arguments: Any) -> Any:
        raise OSError(27, "File too large")

    monkeypatch.setattr("passkit.runtime.native.compilation.start_compilation", refuse)
    graph = pk.parse("x: f32[2]; return mul(exp(x), 1.0078125)")
    with pytest.raises(CompilerError, match=r"File too large\); set TMPDIR to a folder"):
        pk.compile(graph)
    compiler = find_compiler()
    assert compiler is not None
    text = r"files of the launcher to .*File too large\); set TMPDIR"
    with pytest.raises(CompilerError, match=text):
        launcher.EXTENSION._start(compiler, cache.open_cache())


def test_files_that_others_may_have_written_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A FIFO, a file that others may write, and another user's file are refused."""
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(PermissionError, match="fifo is not a regular file"):
        cache.read_private(tmp_path / "fifo")
    file = tmp_path / "file"
    file.write_text("")
    file.chmod(0o666)
    with pytest.raises(PermissionError, match="file has mode 0666"):
        cache.read_private(file)
    facts = os.stat_result((stat.S_IFREG | 0o600, 0, 0, 1, 4242, 0, 0, 0, 0, 0))
    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", lambda number: facts)
        with pytest.raises(PermissionError, match="file belongs to user 4242"):
            cache.read_private(file)


def test_shared_and_full_work_folders_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that others may write, and one on a full disk, are refused."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.raises(PermissionError, match="shared is not a folder that belongs to this user"):
        work_folders._folder_in(str(shared))

    def full(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*/own'"):
        work_folders._folder_in(str(tmp_path / "own"))


def test_a_state_that_is_no_archive_is_refused(tmp_path: Path) -> None:
    """The message has the reason."""
    (tmp_path / "s.npz").write_text("no archive")
    state = pk.State.of(pk.Graph([pk.state("s", np.zeros(2, np.float32))]))
    with pytest.raises(pk.FeedError, match="it is not an archive of arrays"):
        state.load(tmp_path / "s.npz")


def test_a_rule_that_raises_while_json_is_read_is_located() -> None:
    """The message has the position in the file, and the rule's own error."""
    op = pk.register_op("refusing_rule", 1, params={"p": 0})

    def rule(node: Any, shape: Any) -> Any:
        return (int(node.params["p"]), *shape)

    op.set_attr("FInferShape", rule)
    op.set_attr("FInferType", lambda node, dtype: dtype)
    graph = pk.Graph([op(pk.var("x", (2,)), p=3)])
    text = pk.to_json(graph).replace('"p":3', '"p":"odd"')
    with pytest.raises(ParseError, match=r"nodes\[1\]: operator .* fails for these inputs"):
        pk.from_json(text)


def test_missing_and_malformed_plugins_are_errors(tmp_path: Path) -> None:
    """A file that is not there, and an entry point to a number."""
    with pytest.raises(pk.PluginError, match=r"there is no file '.*absent.py'"):
        plugins.import_plugin(str(tmp_path / "absent.py"))
    point = EntryPoint("odd", "math:pi", plugins.GROUP)
    with pytest.raises(pk.PluginError, match="'math:pi' is neither .* but a float"):
        plugins._register(point)
