"""`passkit run`: the example model end to end, reports, comparisons, and inputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passkit as pk
from tests import opencl
from tests.command import json_of, passkit, raise_error_of, text_of

ROOT = Path(__file__).resolve().parents[2]
DIGITS = str(ROOT / "examples/models/digits.pb")
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("passkit.cli.run.TIMING_SECONDS", 0.001)


def run(*arguments: str, code: int = 0) -> Any:
    """Return the JSON that ``passkit run`` prints."""
    return json_of("run", *arguments, code=code)


def write_model(path: Path, text: str) -> str:
    """Write a model in text form, and return its path."""
    path.write_text(text)
    return str(path)


def test_the_example_model_is_accurate_and_gains_from_fusion(tmp_path: Path) -> None:
    """Digits are recognised, with fewer kernels and bytes than unfused; --plan draws the plan."""
    data = run(DIGITS, "--plan", "digits.plan.svg")

    assert data["accuracy"] > 0.97
    assert data["fused"]["kernels"] < data["unfused"]["kernels"]
    assert data["fused"]["bytes"] < data["unfused"]["bytes"]
    assert data["errors"][0]["against"] == "stored results"
    assert data["errors"][0]["largest"] < 1e-5
    assert "reduction" in (tmp_path / "digits.plan.svg").read_text()


def test_the_text_compares_fused_and_unfused_runs() -> None:
    """The text has accuracy, kernels, bytes, times and error; no file is written."""
    out = text_of("run", DIGITS)
    words = ("accuracy", "kernels", "bytes moved", "time per run", "max error")
    assert list(Path().iterdir()) == []
    assert all(word in out for word in words)
    assert "unfused" in out
    assert "stitch" in out


def test_a_report_is_a_folder_of_files(tmp_path: Path) -> None:
    """The folder has the page, the picture, the kernels and the figures."""
    data = run(DIGITS, "--report", "deep/report")
    folder = tmp_path / "deep/report"

    assert sorted(p.name for p in folder.iterdir()) == [
        "kernels.cpp",
        "plan.svg",
        "report.html",
        "report.json",
    ]
    assert data["profile"]["kernels"][0]["share"] > 0
    assert f"{data['profile']['kernels'][0]['seconds'] * 1e6:.3g} µs" in " ".join(
        (folder / "plan.svg").read_text().split()
    )
    assert 'extern "C" void' in (folder / "kernels.cpp").read_text()
    assert json.loads((folder / "report.json").read_text()) | {"report": ""} == data | {
        "report": ""
    }


def test_compare_finds_equal_results() -> None:
    """Results equal those of the interpreter and the stored ones; the exit code is 0."""
    data = run(DIGITS, "--compare")

    assert [e["against"] for e in data["errors"]] == ["stored results", "the interpreter"]
    assert all(e["good"] for e in data["errors"])


def test_compare_finds_a_difference(tmp_path: Path) -> None:
    """If stored results differ, the exit code is 1, and the text says which."""
    model = write_model(tmp_path / "m.txt", "x: f32[4]; y = exp(x); return y")
    np.savez(tmp_path / "m.npz", x=np.zeros(4, "float32"), y=np.full(4, 1.5, "float32"))
    data = run(model, "--compare", code=1)

    assert [e["good"] for e in data["errors"]] == [False, True]
    assert data["errors"][0]["largest"] == 0.5
    assert "too much" in text_of("run", model, "--compare", code=1)
    assert passkit("run", model) == 0


def test_a_stored_result_of_another_shape_is_a_difference(tmp_path: Path) -> None:
    """A stored result of another shape is not broadcast, but counts as a difference."""
    model = write_model(tmp_path / "m.txt", "x: f32[4]; y = exp(x); return y")
    np.savez(tmp_path / "m.npz", x=np.zeros(4, "float32"), y=np.ones((2, 4), "float32"))

    (error, _) = run(model, "--compare", code=1)["errors"]
    assert "of shape (2, 4)" in error["against"]


def test_a_feed_from_a_file_replaces_stored_inputs(tmp_path: Path) -> None:
    """An input from a file replaces the stored one; stored labels are then not used."""
    np.save(tmp_path / "three.npy", np.zeros((3, 8, 8), "float32"))
    data = run(DIGITS, "--feed", "x=three.npy")

    assert data["inputs"] == {"x": "float32[3, 8, 8]"}
    assert data["data"] == "given"
    assert data["accuracy"] is None
    assert data["errors"] == []


def test_inputs_without_data_are_random(tmp_path: Path) -> None:
    """Without data, inputs are random values of their dtypes; sizes are shared by name."""
    text = 'a: f32[n, 4]; b: i32[n]; c: bool[n]; s = cast(b, dtype="float32"); '
    text += "w = where(c, s, 0.0); t = reshape(w, shape=(-1, 1)); y = add(a, t); return y"
    model = write_model(tmp_path / "m.txt", text)
    data = run(model)
    named = run(model, "--shape", "a=7,4")

    assert data["data"] == "random"
    assert data["inputs"] == {"a": "float32[32, 4]", "b": "int32[32]", "c": "bool[32]"}
    assert named["inputs"]["c"] == "bool[7]"
    assert data["accuracy"] is None


def test_target_and_fusion_strategy_can_be_chosen() -> None:
    """Target and fusion strategy are those of the options."""
    data = run(DIGITS, "--fusion", "nnvm")
    plain = run(DIGITS, "--target", "interpret")

    assert data["fusion"] == "nnvm"
    assert plain["fused"]["kernels"] == 0
    assert plain["accuracy"] == data["accuracy"]


def test_a_model_runs_on_opencl(tmp_path: Path) -> None:
    """Kernels run on the device, libraries on the host; profile and report are written."""
    opencl.require_pyopencl()
    data = run(
        DIGITS,
        "--target",
        "opencl",
        "--compare",
        "--profile",
        "--report",
        str(tmp_path / "report"),
    )

    assert data["target"] == "opencl" and data["accuracy"] > 0.99
    assert all(e["good"] for e in data["errors"])
    assert "transfers" in [k["what"] for k in data["profile"]["kernels"]]
    assert "__kernel" in (tmp_path / "report" / "kernels.cpp").read_text()


def test_the_target_blocks_gives_the_results_of_the_interpreter(tmp_path: Path) -> None:
    """Kernels for the CPU, executed in NumPy, give the results of the interpreter."""
    model = write_model(tmp_path / "m.txt", "x: f32[40, 9]; return softmax(x)")
    data = run(model, "--target", "blocks", "--compare", "--profile")

    assert data["target"] == "blocks" and data["fused"]["kernels"] == 1
    assert [e["good"] for e in data["errors"]] == [True]
    assert data["profile"]["kernels"][0]["what"].startswith("launch ")


def test_profile_dump_and_trace_are_written(tmp_path: Path) -> None:
    """The command writes kernel times, a trace for Perfetto, and the graph after each pass."""
    out = text_of("run", DIGITS, "--profile", "--dump", "passes", "--trace", "t/trace.json")

    names = [p.name for p in (tmp_path / "passes").iterdir()]
    assert any("Fusion" in n and n.endswith(".txt") for n in names)
    assert "launch" in out and "of copy" in out and "t/trace.json" in out
    events = json.loads((tmp_path / "t/trace.json").read_text())["traceEvents"]
    assert {"kernel", "library", "pass", "run"} <= {e.get("cat") for e in events}


def test_an_interpreted_model_has_a_report_without_times(tmp_path: Path) -> None:
    """The page has the plan only; a profile of the interpreter is refused."""
    run(DIGITS, "--target", "interpret", "--report", "plain")
    assert "no times were measured" in (tmp_path / "plain/report.html").read_text()

    with pytest.raises(pk.PasskitError, match="compile for target 'cpu' to profile it"):
        raise_error_of("run", DIGITS, "--target", "interpret", "--trace", "t.json")


def test_without_a_renderer_the_plan_has_the_simple_layout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan is laid out simply, and the output says what to install."""
    monkeypatch.setattr("passkit.viz.renderers.renderers", lambda: iter(()))
    data = run(DIGITS, "--plan", "digits.plan.svg")

    assert (
        "laid out simply: no renderer here can draw" in (tmp_path / "digits.plan.svg").read_text()
    )
    assert "pip install graphviz-pure" in data["plan"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["digits.pb"], "there is no model at 'digits.pb'"),
        ([DIGITS[:-1] + "x"], f"did you mean '{DIGITS}'?"),
        ([DIGITS, "--shape", "x=a,b"], "--shape needs NAME=N,M like x=8,64, got 'x=a,b'"),
        ([DIGITS, "--feed", "z=a.npy"], "no input is called 'z'"),
        ([DIGITS, "--feed", "x=a.npy"], "'a.npy' cannot be read as an array"),
        ([DIGITS, "--plan", "plan.sgv"], "did you mean 'svg'?"),
    ],
)
def test_wrong_arguments_are_errors_in_one_line(
    arguments: list[str], message: str, capsys: Capture
) -> None:
    """The message says what to do, without a traceback, and the exit code is 1."""
    assert passkit("run", *arguments) == 1

    err = capsys.readouterr().err
    assert message in err
    assert "Traceback" not in err


def test_a_layout_that_takes_too_long_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the layout takes too long, the picture has the simple layout."""
    monkeypatch.setattr("passkit.cli.run.LAYOUT_SECONDS", 0.0)
    data = run(DIGITS, "--plan", "digits.plan.svg")

    assert "laid out simply" in (tmp_path / "digits.plan.svg").read_text()
    assert "more than 0 s" in data["plan"]
    assert data["accuracy"] > 0.97


def test_onednn_is_recommended_for_convolutions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without oneDNN, a model with convolutions has advice to install it; others have none."""
    monkeypatch.setattr("passkit.runtime.native.onednn.load_library", lambda: None)
    x = pk.var("x", (1, 20, 20, 32))
    filters = pk.constant(np.ones((3, 3, 32, 48), np.float32))
    path = tmp_path / "conv.json"
    path.write_text(pk.to_json(pk.Graph([pk.ops.conv2d(x, filters, padding="SAME")])))

    assert run(str(path))["advice"] == (
        "pip install onednn-cpu-gomp makes 1 convolution(s) up to twice as fast"
    )
    other = write_model(tmp_path / "m.txt", "x: f32[4]; return exp(x)")
    assert run(other)["advice"] is None
