"""The command line: text and JSON, exit codes, and errors without tracebacks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from passkit.errors import MissingDependencyError
from tests.command import json_of, passkit, raise_error_of, text_of

ROOT = Path(__file__).resolve().parents[2]
Capture = pytest.CaptureFixture[str]
COMMANDS = (
    "run",
    "show",
    "explain",
    "tune",
    "bisect",
    "streams",
    "ops",
    "passes",
    "cache",
    "completion",
    "doctor",
)


def test_help_names_every_command() -> None:
    """Without a command, the help lists each command and no other, and the exit code is 0."""
    assert tuple(re.findall(r"^    (\w+)\b", text_of(), re.MULTILINE)) == COMMANDS


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str, capsys: Capture) -> None:
    """`passkit COMMAND --help` lists the option ``--json``."""
    with pytest.raises(SystemExit, match="^0$"):
        passkit(name, "--help")

    assert "--json" in capsys.readouterr().out


def test_an_unknown_command_is_wrong_usage(capsys: Capture) -> None:
    """The message lists the commands, and the exit code is 2."""
    with pytest.raises(SystemExit, match="^2$"):
        passkit("rnu")

    assert "explain" in capsys.readouterr().err


def test_errors_have_no_traceback(capsys: Capture) -> None:
    """An error of passkit is one line on standard error, and the exit code is 1."""
    assert passkit("ops", "layr_norm") == 1

    out, err = capsys.readouterr()
    assert err == "passkit: operator 'layr_norm' is not registered; did you mean 'layer_norm'?\n"
    assert out == ""


def test_errors_as_json() -> None:
    """With --json, the error is JSON on standard output."""
    data = json_of("passes", "Fuson", code=1)

    assert data["kind"] == "RegistryError"
    assert "did you mean 'Fusion'?" in data["error"]


def test_python_m_passkit_accepts_a_closed_pipe(tmp_path: Path) -> None:
    """`python -m passkit` is the same command, and a closed pipe is no error."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = f"{sys.executable} -m passkit ops | head -1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("operator")
    assert done.stderr == ""


def test_ops_lists_and_describes_operators() -> None:
    """`ops` lists all operators; `ops NAME` prints one with its attributes."""
    names = {row["name"] for row in json_of("ops")}
    (erf,) = json_of("ops", "erf")

    assert {"add", "matmul", "softmax", "reshape", "reduce_sum"} <= names
    assert erf["pattern"] == "elemwise"
    assert "FCodeGen" in erf["attributes"]
    assert "FCodeGen: " in text_of("ops", "erf")


def test_passes_lists_annotations() -> None:
    """`passes` lists each pass with the annotations that it reads and writes."""
    rows = {row["name"]: row for row in json_of("passes")}

    assert rows["Fusion"]["changes_graph"]
    assert "subgraph" in rows["Fusion"]["provides"]
    assert rows["CodeGen"]["depends"] == ["subgraph"]
    assert "SharedMemPlan" in text_of("passes")


def test_the_cache_reports_its_size_and_can_be_cleared(fresh_cache: Path, tmp_path: Path) -> None:
    """`cache info` counts kernels and measured templates; `cache clear` removes them."""
    model = tmp_path / "m.txt"
    # No other test compiles this: kernels that are loaded already are not stored again.
    model.write_text("x: f32[67]; y = exp(x); return tanh(y)")
    threads = "concurrent.futures:ThreadPoolExecutor"
    tuning = json_of("tune", model, "--budget", "1", "--executor", threads)
    before = json_of("cache", "info")
    cleared = json_of("cache", "clear")
    after = json_of("cache")

    assert before["folder"] == str(fresh_cache)
    assert before["kernels"] > 0 and before["records"] == tuning["measured"] > 0
    assert cleared["freed_nbytes"] == before["nbytes"] > 0
    assert after["kernels"] == after["records"] == after["nbytes"] == 0


@pytest.mark.parametrize(
    "arguments, file, reason",
    [
        (["show", "-o", "absent/x.svg"], "absent/x.svg", "create its folder"),
        (["run", "--report", "file/x"], "file/x", "give a path of folders"),
        (["run", "--dump", "file/x"], "file/x", "give a path of folders"),
        (["run", "--plan", "file/x.svg"], "file", "File exists"),
        (["run", "--trace", "file/x"], "file", "File exists"),
    ],
)
def test_files_that_cannot_be_written(
    arguments: list[str],
    file: str,
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    """The message has the file, the system's reason and what to do, without a traceback."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    (tmp_path / "model.txt").write_text("x: f32[4]; return exp(x)")

    assert passkit(arguments[0], "model.txt", *arguments[1:]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"passkit: '{file}': ") and reason in error


def test_a_full_disk_is_an_error_in_one_line() -> None:
    """If the output cannot be written, the exit code is 1, with one line on standard error."""
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "passkit", "passes"],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert done.returncode == 1
    assert done.stderr == (
        "passkit: the output cannot be written: No space left on device; check whether its disk is "
        "full\n"
    )


def test_an_interruption_has_the_exit_code_of_shells(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """After Ctrl-C the exit code is 130, and the message one word."""

    def interrupted(options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("passkit.cli.passes.run", interrupted)

    assert passkit("passes") == 130
    assert capsys.readouterr().err == "passkit: interrupted\n"


def test_a_stream_without_flush_gets_the_output(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams of loggers and windowed programs, which only have `write`, get results and errors."""

    class Log:
        """A stream that only has `write`."""

        def __init__(self) -> None:
            self.text = ""

        def write(self, text: str) -> int:
            """Append a text."""
            self.text += text
            return len(text)

    output, errors = Log(), Log()
    monkeypatch.setattr(sys, "stdout", output)
    monkeypatch.setattr(sys, "stderr", errors)

    assert passkit("passes") == 0
    assert passkit("show", "no_such_model.pb") == 1
    assert "SchedulePlan" in output.text and "no_such_model.pb" in errors.text


def test_the_version_is_printed(capsys: Capture) -> None:
    """`passkit --version` prints the version of the package."""
    with pytest.raises(SystemExit, match="^0$"):
        passkit("--version")

    assert capsys.readouterr().out == "passkit 0.1.0\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_completion_scripts_have_all_commands(shell: str) -> None:
    """The script for each shell has every command, and options of several."""
    script = text_of("completion", shell)

    for word in (*COMMANDS, "schedule", "profile", "calibrate"):
        assert word in script, word


def test_bash_completes_commands_and_options(tmp_path: Path) -> None:
    """With the script loaded, bash completes a command and an option."""
    command = f"""
    eval "$({sys.executable} -m passkit completion bash)"
    complete_words() {{
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
        _shtab_passkit; echo "${{COMPREPLY[@]}}"
    }}
    complete_words passkit exp; complete_words passkit show --sched
    """
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )

    assert done.stdout.split() == ["explain", "--schedule"], done.stderr


def test_completion_says_which_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without shtab the message says what to install."""
    monkeypatch.setitem(sys.modules, "shtab", None)

    with pytest.raises(MissingDependencyError, match="pip install shtab"):
        raise_error_of("completion", "bash")


def test_the_kernel_of_an_operator_has_its_example_as_title() -> None:
    """Above the kernel that `ops NAME` prints is the example with its shapes."""
    assert "The kernel of softmax(x: f32[4, 6], axis=-1):" in text_of("ops", "softmax")
    assert "The kernel of add(x: f32[4, 6], y: f32[4, 6]):" in text_of("ops", "add")


def test_kernels_have_colours_on_terminals_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Escape codes go to terminals, unless NO_COLOR is set; the text is the same."""
    path = tmp_path / "model.txt"
    path.write_text("x: f32[4]; return exp(x)")
    show = ("show", path, "--kernels")
    monkeypatch.delenv("NO_COLOR", raising=False)
    plain = text_of(*show)
    monkeypatch.setattr("passkit.cli.is_terminal", lambda stream: True)
    coloured = text_of(*show)

    assert "\x1b" not in plain and "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain
    monkeypatch.setenv("NO_COLOR", "1")
    assert text_of(*show) == plain
