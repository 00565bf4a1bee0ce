"""`passkit run`: the shipped model end to end, reports, comparisons, and feeds of every kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.cli import doctor, main
from passkit.cli import run as command
from passkit.runtime.native import onednn
from tests import opencl

ROOT = Path(__file__).resolve().parents[2]
DIGITS = str(ROOT / "examples/models/digits.pb")
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "TIMING_SECONDS", 0.001)


def run(capsys: Capture, *arguments: str, code: int = 0) -> Any:
    """The answer of ``passkit run ... --json``."""
    assert main(["run", *arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def write_model(path: Path, text: str) -> str:
    """A model file in text form."""
    path.write_text(text)
    return str(path)


def test_the_shipped_model(capsys: Capture, tmp_path: Path) -> None:
    """Real digits are recognised, by fewer kernels that move fewer bytes; --plan draws the plan."""
    data = run(capsys, DIGITS, "--plan", "digits.plan.svg")

    assert data["accuracy"] > 0.97
    assert data["fused"]["kernels"] < data["unfused"]["kernels"]
    assert data["fused"]["bytes"] < data["unfused"]["bytes"]
    assert data["errors"][0]["against"] == "stored results"
    assert data["errors"][0]["largest"] < 1e-5
    assert "reduction" in (tmp_path / "digits.plan.svg").read_text()


def test_the_text(capsys: Capture) -> None:
    """People read the same: accuracy, kernels, bytes, times and error; no file is written."""
    assert main(["run", DIGITS]) == 0

    out = capsys.readouterr().out
    words = ("accuracy", "kernels", "bytes moved", "time per run", "max error")
    assert list(Path().iterdir()) == []
    assert all(word in out for word in words)
    assert "unfused" in out
    assert "stitch" in out


def test_a_report(capsys: Capture, tmp_path: Path) -> None:
    """A folder with the picture, the kernels and the figures."""
    data = run(capsys, DIGITS, "--report", "deep/report")
    folder = tmp_path / "deep/report"

    assert sorted(p.name for p in folder.iterdir()) == [
        "kernels.cpp", "plan.svg", "report.html", "report.json",
    ]  # fmt: skip
    assert data["profile"]["kernels"][0]["share"] > 0
    assert f"{data['profile']['kernels'][0]['seconds'] * 1e6:.3g} µs" in " ".join(
        (folder / "plan.svg").read_text().split()
    )
    assert 'extern "C" void' in (folder / "kernels.cpp").read_text()
    assert json.loads((folder / "report.json").read_text()) | {"report": ""} == data | {
        "report": ""
    }


def test_compare_finds_equal_results(capsys: Capture) -> None:
    """Against the interpreter and the stored results, with code 0."""
    data = run(capsys, DIGITS, "--compare")

    assert [e["against"] for e in data["errors"]] == ["stored results", "the interpreter"]
    assert all(e["good"] for e in data["errors"])


def test_compare_finds_a_difference(capsys: Capture, tmp_path: Path) -> None:
    """Stored results that are not these end with code 1, and the text says which."""
    model = write_model(tmp_path / "m.txt", "x: f32[4]; y = exp(x); return y")
    np.savez(tmp_path / "m.npz", x=np.zeros(4, "float32"), y=np.full(4, 1.5, "float32"))
    data = run(capsys, model, "--compare", code=1)

    assert [e["good"] for e in data["errors"]] == [False, True]
    assert data["errors"][0]["largest"] == 0.5
    assert main(["run", model, "--compare"]) == 1
    assert "too much" in capsys.readouterr().out
    assert main(["run", model]) == 0


def test_a_stored_result_of_another_shape(capsys: Capture, tmp_path: Path) -> None:
    """It counts as a difference without end instead of being broadcast."""
    model = write_model(tmp_path / "m.txt", "x: f32[4]; y = exp(x); return y")
    np.savez(tmp_path / "m.npz", x=np.zeros(4, "float32"), y=np.ones((2, 4), "float32"))

    (error, _) = run(capsys, model, "--compare", code=1)["errors"]
    assert "of shape (2, 4)" in error["against"]


def test_feeds_from_files(capsys: Capture, tmp_path: Path) -> None:
    """A given input replaces the stored one; stored labels are then not asked."""
    np.save(tmp_path / "three.npy", np.zeros((3, 8, 8), "float32"))
    data = run(capsys, DIGITS, "--feed", "x=three.npy")

    assert data["inputs"] == {"x": "float32[3, 8, 8]"}
    assert data["data"] == "given"
    assert data["accuracy"] is None
    assert data["errors"] == []


def test_random_values(capsys: Capture, tmp_path: Path) -> None:
    """Without data each input gets random values of its dtype; sizes are shared by name."""
    text = 'a: f32[n, 4]; b: i32[n]; c: bool[n]; s = cast(b, dtype="float32"); '
    text += "w = where(c, s, 0.0); t = reshape(w, shape=(-1, 1)); y = add(a, t); return y"
    model = write_model(tmp_path / "m.txt", text)
    data = run(capsys, model)
    named = run(capsys, model, "--shape", "a=7,4")

    assert data["data"] == "random"
    assert data["inputs"] == {"a": "float32[32, 4]", "b": "int32[32]", "c": "bool[32]"}
    assert named["inputs"]["c"] == "bool[7]"
    assert data["accuracy"] is None


def test_other_targets_and_modes(capsys: Capture) -> None:
    """Target and fusion mode are those that were asked for."""
    data = run(capsys, DIGITS, "--fusion", "nnvm")
    plain = run(capsys, DIGITS, "--target", "interpret")

    assert data["fusion"] == "nnvm"
    assert plain["fused"]["kernels"] == 0
    assert plain["accuracy"] == data["accuracy"]


def test_on_opencl(capsys: Capture, tmp_path: Path) -> None:
    """Kernels on a device, libraries on the host, a profile by the device's clock, and a report."""
    opencl.require_pyopencl()
    data = run(capsys, DIGITS, "--target", "opencl", "--compare", "--profile",
               "--report", str(tmp_path / "report"))  # fmt: skip

    assert data["target"] == "opencl" and data["accuracy"] > 0.99
    assert all(e["good"] for e in data["errors"])
    assert "transfers" in [k["what"] for k in data["profile"]["kernels"]]
    assert "__kernel" in (tmp_path / "report" / "kernels.cpp").read_text()


def test_block_by_block(capsys: Capture, tmp_path: Path) -> None:
    """The kernels are the CPU's, run in NumPy; they mean what the interpreter gives."""
    model = write_model(tmp_path / "m.txt", "x: f32[40, 9]; return softmax(x)")
    data = run(capsys, model, "--target", "blocks", "--compare", "--profile")

    assert data["target"] == "blocks" and data["fused"]["kernels"] == 1
    assert [e["good"] for e in data["errors"]] == [True]
    assert data["profile"]["kernels"][0]["what"].startswith("launch ")


def test_profile_and_dump(capsys: Capture, tmp_path: Path) -> None:
    """The time of each kernel, the runs for Perfetto, and the graph after each pass."""
    assert main(["run", DIGITS, "--profile", "--dump", "passes", "--trace", "t/trace.json"]) == 0

    names = [p.name for p in (tmp_path / "passes").iterdir()]
    assert any("Fusion" in n and n.endswith(".txt") for n in names)
    out = capsys.readouterr().out
    assert "launch" in out and "of copy" in out and "t/trace.json" in out
    events = json.loads((tmp_path / "t/trace.json").read_text())["traceEvents"]
    assert {"kernel", "library", "pass", "run"} <= {e.get("cat") for e in events}


def test_what_interprets_has_a_report_but_no_times(capsys: Capture, tmp_path: Path) -> None:
    """The page has the plan; asked for a profile, the command says why there is none."""
    run(capsys, DIGITS, "--target", "interpret", "--report", "plain")
    assert "no times were measured" in (tmp_path / "plain/report.html").read_text()

    assert main(["run", DIGITS, "--target", "interpret", "--trace", "t.json"]) == 1
    assert "compile for target 'cpu' to profile it" in capsys.readouterr().err


def test_a_machine_without_a_renderer(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan is laid out simply, and the answer says what would draw it better."""
    from passkit.viz import renderers

    monkeypatch.setattr(renderers, "renderers", lambda: iter(()))
    data = run(capsys, DIGITS, "--plan", "digits.plan.svg")

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
def test_wrong_arguments(arguments: list[str], message: str, capsys: Capture) -> None:
    """Each mistake is answered in one line that has the way out, with code 1."""
    assert main(["run", *arguments]) == 1

    err = capsys.readouterr().err
    assert message in err
    assert "Traceback" not in err


def test_a_plan_too_large_to_lay_out(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A layout that takes too long is stopped; the answer is there, with a simple picture."""
    monkeypatch.setattr(command, "LAYOUT_SECONDS", 0.0)
    data = run(capsys, DIGITS, "--plan", "digits.plan.svg")

    assert "laid out simply" in (tmp_path / "digits.plan.svg").read_text()
    assert "more than 0 s" in data["plan"]
    assert data["accuracy"] > 0.97


def test_advice_about_convolutions(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without oneDNN a model with convolutions is told what to install; others are not."""
    monkeypatch.setattr(onednn, "load_library", lambda: None)
    x = pk.var("x", (1, 20, 20, 32))
    filters = pk.constant(np.ones((3, 3, 32, 48), np.float32))
    path = tmp_path / "conv.json"
    path.write_text(pk.to_json(pk.Graph([pk.ops.conv2d(x, filters, padding="SAME")])))

    assert run(capsys, str(path))["advice"] == (
        "pip install onednn-cpu-gomp makes 1 convolution(s) up to twice as fast"
    )
    other = write_model(tmp_path / "m.txt", "x: f32[4]; return exp(x)")
    assert run(capsys, other)["advice"] is None


def test_doctor_looks_for_convolutions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check says what is missing, and what brings it."""
    monkeypatch.setattr(onednn, "find_library", lambda: None)
    check = doctor.check_convolutions()

    assert not check.works and check.finding.startswith("no oneDNN")
    assert check.way_out == "pip install onednn-cpu-gomp"
    monkeypatch.setattr(onednn, "find_library", lambda: Path("/nonexistent/libdnnl.so.3"))
    monkeypatch.setattr(onednn, "load_library", lambda: None)
    assert doctor.check_convolutions().finding.startswith("/nonexistent/libdnnl.so.3 does not load")
