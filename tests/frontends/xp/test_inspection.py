"""Records of executions: why they happened, what they wrote, and the pictures of them."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit import xp
from passkit.errors import ArgumentError, GraphError, PassError
from tests.command import raise_error_of, text_of


@pytest.fixture(autouse=True)
def _compiled_at_once() -> Iterator[None]:
    """Compile every sequence when it is first seen; begin with an empty queue and new plans."""
    xp.eval()
    xp.forget_plans()
    with xp.config(compile_at=0):
        yield


def ones(*shape: int) -> Any:
    """Return a float32 array of ones, whose memory nobody else has."""
    array = xp.asarray(np.ones(shape, np.float32))
    return xp.asarray(array, copy=True)


def here() -> str:
    """Return the file and line of the caller."""
    frame: Any = inspect.currentframe()
    return f"{__file__}:{frame.f_back.f_lineno}"


def test_a_run_names_the_line_that_made_it_run() -> None:
    """The line is that of the call that needed a result, also through NumPy and contexts."""
    x = ones(40, 40)
    lines = []
    with xp.inspect() as runs:
        float(xp.sum(x)), lines.append(here())
        np.asarray(x * 3), lines.append(here())
        np.sum(x + 7).item(), lines.append(here())
        xp.eval(x - 1), lines.append(here())
        y = x * 5
        with xp.config(max_ops=1):
            z = y + 2
            lines.append(f"{__file__}:{int(here().rpartition(':')[2]) - 1}")

    assert [run.line for run in runs] == lines
    assert runs[-1].reason == "the queue is full"
    assert z.shape == (40, 40)


def test_written_values_say_why() -> None:
    """A result is waited for, was needed before, or was left pending by an earlier run."""
    x = ones(40, 41)

    def step() -> None:
        t = x * 2.5
        total = float(xp.sum(t))
        assert float(xp.max(t)) == 2.5
        assert total == 40 * 41 * 2.5

    with xp.inspect() as runs:
        step()
        step()

    first, second, third, *_ = runs
    assert first.why_written == {1: "waited for"}
    assert first.why_pending == {0: "an array refers to it, but nobody needs it yet"}
    assert second.waited_since == (0,)
    assert second.why_written == {0: "pending since an earlier run", 1: "waited for"}
    assert third.why_written == {0: "needed after earlier runs of the plan", 1: "waited for"}


def test_values_written_at_a_flush_say_so() -> None:
    """When the queue is full, what is alive is written; with materialize="live", too."""
    x = ones(40, 42)
    with xp.inspect() as runs:
        with xp.config(max_ops=2):
            kept = x + 1
            result = (x + 2) * 3
        xp.eval()
        with xp.config(materialize="live"):
            other = x - 4
            float(xp.sum(other))

    assert kept.shape == result.shape
    assert set(runs[0].why_written.values()) == {
        "alive at a flush that waits for no result",
        "the next operation reads it",
    }
    assert runs[-1].why_written[0] == 'alive, and materialize="live"'


def test_dropped_operations_and_those_for_pending_ones_are_told() -> None:
    """The report names what stays pending and why, and what nothing refers to any more."""
    x = ones(40, 43)
    with xp.inspect() as runs:
        x * 100
        pending = (x + 1) * 2
        float(xp.sum(x))

    text = runs[0].report()
    assert "dropped   0 multiply(·, 100): nothing refers to the results" in text
    assert "pending   1 add(·, 1), float32[40, 43]: what stays pending reads it" in text
    assert "pending   2 multiply(·, 2), float32[40, 43]: an array refers to it" in text
    assert re.search(r"run \d+: float at .*test_inspection.py:\d+\n", text)
    assert pending.shape == (40, 43)


def test_results_in_place_name_the_input() -> None:
    """A result that took the memory of an input has its position and that input's index."""
    x = ones(60, 44)
    x = x + 1
    xp.eval(x)
    with xp.inspect() as runs:
        y = ones(60, 44)
        x = x * y
        xp.eval(x)

    run = runs[-1]
    (position, index), *_ = run.in_place
    assert run.aliases == len(run.in_place) == 1
    assert (position, run.inputs[index].type) == (run.written[0], "float32[60, 44]")
    assert "in place" in run.report()


def test_plans_have_stable_names() -> None:
    """Equal sequences have one plan, for other sizes and numbers, too; others have another."""
    with xp.inspect() as runs:
        for n, number in ((40, 2.0), (44, 3.0)):
            float(xp.sum(ones(n, 45) * number))
        float(xp.max(ones(40, 45) * 2.0))

    first, second, third = runs
    assert first.plan == second.plan != third.plan
    assert re.fullmatch("[0-9a-f]{8}", first.plan)
    assert (second.path, second.launches > 0) == ("cached", True)


def test_unfused_runs_say_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new small sequence, and one beyond the limit of explorations, say what to change."""
    x = ones(40, 46)
    with xp.inspect() as runs:
        with xp.config(compile_at=10**9):
            float(xp.sum(x * 3 - 11))
        with xp.config(max_explorations=0):
            float(xp.sum(x * 3 - x - 12))

    new, limited = runs
    assert new.path == limited.path == "unfused"
    assert "seen first, and smaller than compile_at=1,000,000,000 elements" in new.why_unfused
    assert limited.why_unfused.startswith("max_explorations=0 plans were made")
    assert "unfused   max_explorations=0" in limited.report()
    assert limited.kernels == () and limited.groups == () and limited.source == ""
    with pytest.raises(PassError, match=rf"run {limited.number} has no plan .* max_explorations=0"):
        limited.explain()


def test_failed_plans_and_missing_compilers_are_reasons() -> None:
    """A run that could not be compiled has the message; without a compiler, the way out."""
    program = """
import warnings; warnings.simplefilter("ignore")
import numpy as np
from passkit import xp
x = xp.asarray(np.ones((40, 40), np.float32))
with xp.config(compile_at=0), xp.inspect() as runs:
    float(xp.sum(x * 3))
    float(xp.sum(x * 4))
print([r.why_unfused for r in runs])
"""
    environment = dict(os.environ, CXX="/nowhere/c++", PATH="/nowhere", PASSKIT_CACHE_DIR="")
    environment["PASSKIT_RECORDER"] = "python"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert "no C++ compiler was found" in done.stdout + done.stderr, done.stderr
    assert done.stdout.count("no C++ compiler") + done.stdout.count("compiling failed") == 2


def test_runs_explain_which_operations_share_a_kernel() -> None:
    """Operations have their names in xp; kernels list them; unknown names are refused."""
    x = ones(64, 47)
    with xp.inspect() as runs:
        xp.eval(xp.exp(x * 2 + 1) @ ones(47, 30) - 1)
    run = runs[0]

    explanation = run.explain()
    assert any(d.fused and d.producer == "multiply_0" for d in explanation)
    assert {d.consumer for d in run.explain("add_1")} >= {"add_1"}
    with pytest.raises(GraphError, match="no edge begins or ends at 'add_9'"):
        run.explain("add_9")
    with pytest.raises(ArgumentError, match="explain: name must be .* got 3"):
        run.explain(3)  # type: ignore[arg-type]
    groups = [set(positions) for _, _, positions in run.groups]
    assert {0, 1, 2} in groups
    assert set.union(*groups) == set(run.computed)
    assert run.source.count("void ") >= 1
    assert {name for kind, name, _ in run.groups if kind not in ("library", "NumPy")} == {
        kernel.name for kernel in run.kernels
    }


def test_operations_with_several_results_are_explained_and_drawn() -> None:
    """A loss with its gradient has names in explanations; arrows have the type of one result."""
    with xp.inspect() as runs:
        loss, gradient = pk.value_and_grad(lambda x: xp.sum(xp.exp(x) * x))(ones(40, 40))
        xp.eval(loss, gradient)

    assert "program_0/exp" in str(runs[0].explain())
    scene = xp.picture(runs).scene
    boxes = [box.lines[0] for box in scene.boxes.values()]
    assert {"result 0", "result 1"} <= set(boxes)
    labels = {line for arrow in scene.arrows for line in arrow.lines}
    assert {"float32[]", "float32[40, 40]"} <= labels
    assert not [line for line in labels if "float32[], float32[40, 40]" in line]


def test_operations_in_numpy_are_recorded_with_their_lines() -> None:
    """An operation without a kernel is listed with the user's line, and makes its operands run."""
    x = ones(40, 48)
    with xp.inspect() as runs:
        xp.unique_values(x * 2)
        line = f"{__file__}:{int(here().rpartition(':')[2]) - 1}"

    assert [(h.operation, h.line, h.types) for h in runs.host_operations] == [
        ("unique_values", line, ("float32[40, 48]",))
    ]
    assert (runs[0].reason, runs[0].line) == ("unique_values in NumPy", line)
    assert "unique_values" in runs.summary()


def test_logs_print_as_tables() -> None:
    """A log has a row for each run, and a summary one for each plan and each line."""
    x = ones(40, 49)
    with xp.inspect() as runs:
        for k in range(60):
            xp.eval(x + k)

    text = str(runs)
    assert "… 20 more" in text and text.splitlines()[0].split()[:3] == ["run", "time", "reason"]
    assert re.search(rf"{runs[0].plan} +60 ", runs.summary())
    assert "Lines that made something run" in runs.summary()
    with xp.inspect() as nothing:
        pass
    assert str(nothing) == nothing.summary() == "nothing ran"


def test_pictures_show_runs_kernels_and_reasons() -> None:
    """A few runs are drawn one by one: kernels, written and pending values, and arrays between."""
    x = ones(64, 50)
    with xp.inspect() as runs:
        t = xp.exp(x * 2)
        total = float(xp.sum(t))
        xp.eval(t / total)
    scene = xp.picture(runs).scene

    labels = [frame.label for frame in scene.frames.values()]
    assert [label for label in labels if label.startswith("run")] == [
        f"run {run.number}" for run in runs
    ]
    assert any("kernel" in label for label in labels)
    times = [arrow.lines[0] for arrow in scene.arrows if arrow.kind == "time"]
    assert [line.partition(" at ")[0] for line in times] == ["float", "eval"]
    assert any(box.dashed and "exp" in box.lines for box in scene.boxes.values())
    assert any(arrow.kind == "pending" for arrow in scene.arrows)
    assert any("written: waited for" in box.lines for box in scene.boxes.values() if box.double)


def test_pictures_of_many_runs_have_a_frame_for_each_plan() -> None:
    """A loop of 100 runs is one frame, with an arrow to itself that counts the runs."""
    x = ones(40, 51)
    with xp.inspect() as runs:
        for _ in range(100):
            x = x * 0.5
            xp.eval(x)
    scene = xp.picture(runs).scene

    plans = {run.plan for run in runs}
    frames = [f.label for f in scene.frames.values() if f.label.startswith("plan")]
    assert frames == [f"plan {plan}" for plan in dict.fromkeys(run.plan for run in runs)]
    assert len(plans) <= 2
    text = "\n".join(line for box in scene.boxes.values() for line in box.lines)
    assert re.search("9[89] runs|100 runs", text)
    assert any(re.match("9[789]× eval at", a.lines[0]) for a in scene.arrows if a.lines)


def test_pictures_of_many_operations_have_a_box_for_each_plan(tmp_path: Path) -> None:
    """Runs of many operations are boxes; every picture can be written without a renderer."""
    x = ones(30, 52)
    with xp.inspect() as runs:
        for n in (90, 95):
            y = x
            for _ in range(n):
                y = y * 1.5 + x
            with xp.config(max_explorations=0):
                xp.eval(y)
    drawing = xp.picture(runs)

    assert not drawing.scene.frames
    assert len(drawing.scene.boxes) == 3
    assert any("multiply" in line for b in drawing.scene.boxes.values() for line in b.lines)
    assert "multiply" in pk.viz.render(drawing, tmp_path / "runs.svg").read_text()
    assert 'stroke-dasharray="4 3"' not in drawing.fallback_svg("plain")


def test_pictures_need_runs() -> None:
    """Something else is refused, and so is a detail that is no flag."""
    with pytest.raises(ArgumentError, match="picture: runs.*as xp.inspect.* records them.*'a'"):
        xp.picture(["a"])  # type: ignore[list-item]
    with pytest.raises(ArgumentError, match="picture: detail .* got 3"):
        xp.picture([], detail=3)  # type: ignore[arg-type]
    assert "start" in xp.picture([]).source


SCRIPT = """
import sys
import numpy as np
from passkit import xp

x = xp.asarray(np.ones((30, 53), np.float32))
for k in range(int(sys.argv[1])):
    x = x * 0.5
    xp.eval(x)
print("last", float(xp.unique_values(x)[0]))
if len(sys.argv) > 2:
    raise ValueError(sys.argv[2])
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """Return the path of a program that runs a loop, then fails with its second argument."""
    path = tmp_path / "loop.py"
    path.write_text(SCRIPT)
    return path


def test_the_command_prints_what_a_program_ran(script: Path, tmp_path: Path) -> None:
    """After the program's output come its runs, the totals of plans and lines, and a picture."""
    text = text_of("streams", "--runs", "4", "-o", tmp_path / "runs.dot", script, "6")

    assert text.startswith("last 0.015625\n")
    assert "… 2 more" in text
    assert f"{script}:9" in text and "Operations without a kernel, in NumPy" in text
    assert re.search(r"unique_values +\S+loop.py:10 +1 ", text)
    assert "multiply" in (tmp_path / "runs.dot").read_text()
    number = json.loads(text_of("streams", "--json", script, "1"))["runs"][0]["run"]
    text = text_of("streams", "--runs", "0", "--report", number + 1, script, "2")
    assert f"run {number + 1}: eval at {script}:9" in text and "in place" in text


def test_the_command_reports_what_a_failing_program_ran(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The traceback is printed, without frames of the command; the exit code is 1."""
    data = json.loads(text_of("streams", "--json", script, "3", "for the test", code=1))

    assert len(data["runs"]) == data["num_runs"] == 3
    assert data["host_operations"][0]["line"] == f"{script}:10"
    assert [line["reason"] for line in data["lines"]] == ["eval"]
    errors = capsys.readouterr().err
    assert "ValueError: for the test" in errors and "runpy" not in errors
    script.write_text(SCRIPT + "\nraise KeyboardInterrupt\n")
    assert "loop.py:9" in text_of("streams", script, "3", code=1)
    assert "interrupted; this ran before:" in capsys.readouterr().err


def test_the_command_refuses_what_it_cannot_do(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A missing program, a number of runs below 0 and an unknown run are named."""
    for arguments, message in (
        (["nowhere.py"], "there is no program 'nowhere.py'"),
        (["--runs", "-3", script], "--runs must be at least 0, got -3"),
        (["-o", "a.doc", script], "the ending 'doc' is no format"),
    ):
        with pytest.raises(SystemExit):
            text_of("streams", *arguments)
        assert message in capsys.readouterr().err
    with pytest.raises(pk.PasskitError, match="there is no program 'nowhere.py'"):
        raise_error_of("streams", "nowhere.py")
    with pytest.raises(pk.PasskitError, match="--runs must be at least 0, got -3"):
        raise_error_of("streams", "--runs", "-3", script)
    with pytest.raises(pk.PasskitError, match="--report 99999: there is no such run among the fi"):
        raise_error_of("streams", "--report", "99999", script, "1")
