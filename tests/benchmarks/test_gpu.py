"""The benchmark for GPUs: what it does without one, and that it runs."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from passkit.errors import DeviceError
from tests.emulator.fake_driver import fake_cuda

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import importlib

    module = importlib.import_module("gpu")
    monkeypatch.setattr(module, "BATCH_SECONDS", 0.0)
    monkeypatch.setattr(module, "ROUNDS", 1)
    return module


def test_without_a_device(
    gpu: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says so, and measures nothing."""

    def missing() -> None:
        raise DeviceError("no CUDA device: none today")

    monkeypatch.setattr("passkit.runtime.cuda.device.open_device", missing)
    assert gpu.main([]) == 1
    assert capsys.readouterr().out == (
        "no CUDA device, so nothing was measured: no CUDA device: none today\n"
    )


def test_on_a_fake_device(
    gpu: ModuleType, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Small arrays: results are verified, and a wrong one is no figure."""
    with fake_cuda():
        assert gpu.main(["--mib", "0", "--rows", "gelu_erf", "--output", str(tmp_path / "f")]) == 0
        report = json.loads((tmp_path / "f").read_text())
        (row,) = report["rows"]
        assert report["gpu"] == "Fake" and row["passkit"]["error"] < 5e-6
        assert row["passkit"]["kernels"] == 1 and row["passkit"]["of copy"] > 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].startswith("Fake (sm_90, a fake), CUDA 13.0; a copy moves")
        assert lines[2].startswith("gelu_erf 1 ")
        columns = ["row", "call", "device", "of", "copy", "speed"]
        assert lines[1].split() == columns + list(gpu.BUILDERS)[1:]
        (work,) = (w for w in gpu.rows(0) if w.name == "gelu_erf")
        assert gpu.shown({"row": work.label, "passkit": {"wrong": 1.0}})[1] == "wrong"


def test_steps_that_keep_state(
    gpu: ModuleType, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Adam, training and figure1: verified against float64; a wrong one is no figure."""
    with fake_cuda():
        for rows in ("adam 300", "logistic", "figure1"):
            output = str(tmp_path / rows.split()[0])
            assert gpu.main(["--mib", "0", "--rows", rows, "--output", output]) == 0
    reports = {n: json.loads((tmp_path / n).read_text()) for n in ("adam", "logistic", "figure1")}
    (adam,), (trained,) = reports["adam"]["rows"], reports["logistic"]["training"]
    assert adam["row"] == "adam 300" and adam["passkit"]["error"] < 1e-6
    assert adam["passkit"]["kernels"] == 1 and adam["passkit"]["of copy"] > 0
    assert trained["passkit"]["error"] < 1e-5 and trained["passkit"]["call"] > 0
    assert [r["passkit"]["kernels"] for r in reports["figure1"]["rows"]] == [1, 1]
    lines = capsys.readouterr().out.splitlines()
    rivals = ["hand", "eager", "foreach", "fused", "compile", "jax"]
    assert lines[1].split() == ["row", "step", *rivals]
    sizes = gpu.gpu_steps.adam_rows(0)["adam30"]
    wrong = [p + 1 for p in gpu.gpu_steps.adam.begin(sizes)[0]]
    expected = gpu.gpu_steps.adam_expected(sizes)
    assert gpu.gpu_steps.adam_error(wrong, expected) > 0.1
    row = {"row": "r", "passkit": {"wrong": 1.0}, "jax": {"wrong": 2.0}}
    assert gpu.gpu_steps.table_row(row, ["jax", "eager"]) == ("r", "wrong", "wrong", "-")


HAND_SHAPES: dict[str, list[tuple[tuple[int, ...], ...]]] = {
    "gelu_erf": [((1028,),)],
    "gelu_custom_erf": [((2051,),)],
    "softmax": [((70, 40),), ((5, 256),), ((3, 4096),)],
    "layer_norm": [((5, 768), (768,), (768,))],
    "rms_norm": [((6, 768), (768,))],
    "bias_gelu": [((6, 1024), (1024,))],
    "colsum": [((700, 128), (700, 128))],
    "fullsum": [((40000,), (40000,))],
    "transpose_add": [((128, 128), (128, 128))],
    "figure1": [
        ((2, 94, 1), (2, 1, 94), (2, 94, 8), (94,), (8,)),
        ((1, 94, 32), (1, 32, 94), (1, 94, 32), (94,), (32,)),
    ],
}


def test_each_workload_has_a_kernel_by_hand(gpu: ModuleType) -> None:
    """Every row of 256 MiB has one; for other sizes there may be none."""
    assert {w.name for w in gpu.rows(256)} == {*HAND_SHAPES, "gelu_custom_ref"}
    for work in gpu.rows(256):
        assert gpu.hand_launch(work.name, [s for _, s in work.inputs]) is not None, work.label
    assert gpu.hand_launch("softmax", [(3, 41)]) is None
    assert gpu.hand_launch("dense", [(3, 41)]) is None


@pytest.mark.parametrize("name", [n for n in HAND_SHAPES if n not in ("colsum", "fullsum")])
def test_kernels_by_hand_on_a_fake_device(gpu: ModuleType, name: str) -> None:
    """They are verified like the others, and their launches are timed by the device's events.

    The emulator knows no order between blocks without a grid-wide wait, which sums in one launch
    rely on.
    """
    import attrs

    (work, *_) = (w for w in gpu.rows(0) if w.name == name)
    with fake_cuda() as driver:
        own = gpu.device()
        for shapes in HAND_SHAPES[name]:
            inputs = tuple((n, s) for (n, _), s in zip(work.inputs, shapes, strict=True))
            row = gpu.measure(attrs.evolve(work, inputs=inputs), own, 1e9, ["hand"])
            assert row["hand"]["error"] <= work.tolerance
            assert row["hand"]["call"] > 0 and row["hand"]["device"] == pytest.approx(1e-6)
        launched = {task.function.name for task in driver.calls("launch")}
    kernels = [gpu.hand_launch(name, s).name for s in HAND_SHAPES[name]]
    assert launched >= set(kernels)


def test_adam_by_hand_on_a_fake_device(gpu: ModuleType) -> None:
    """A step of Adam by hand is verified; several tensors are one launch with tables."""
    with fake_cuda():
        own = gpu.device()
        row = gpu.gpu_steps.adam_row("adam", [1030], own, 1e9, gpu.batch, gpu.on_device)
        assert row["hand"]["error"] < 1e-6 and row["hand"]["call"] > 0
        step = gpu.gpu_hand.HandAdam([3, 2000], own, gpu.on_device)
        tables = step.prepare([np.zeros(n, np.float32) for n in (3, 2000)])
        assert len(tables) == 3 and step.kernel.launch.grid == 3
        first = own.driver.at(tables[1], 12).view(np.int32)
        assert list(first) == [0, 1, 3]


def test_figures_of_a_report(
    gpu: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Demands on a GPU are unproven without a report, and met or missed by its figures."""
    from shows import gpu as show

    def row(name: str, share: float = 0.97, **peers: float) -> dict[str, object]:
        own = {"call": 39e-6, "of copy": share, "device": 30e-6}
        by_name = {n: {"call": 39e-6 * s, "device": 24e-6} for n, s in peers.items()}
        return {"row": name, "passkit": own, **by_name}

    names = ("gelu, softmax", "best of torch", "Adam of 30", "figure1", "kernels by hand", "micro")
    demands = {d.text: d.measure for d in show.DEMANDS if d.text.startswith(names)}
    assert len(demands) == len(names)
    monkeypatch.setattr(show, "REPORT", tmp_path / "gpu.json")
    monkeypatch.setattr(show, "ROOT", tmp_path)
    assert all("unproven" in f().text and f().met is None for f in demands.values())
    rows = [
        *(row(f"{name.strip()} 300", jax=1.5, eager=0.5) for name in show.COPY_ROWS),
        row("adam30", 0.4),
        row("figure1 3x1", jax=2.5),
        row("figure1 3x32", eager=2.25, hand=0.5),
    ]
    training = [row("dyn-rnn", eager=5.5, jax=1.5), row("logistic", jax=1.5)]
    (tmp_path / "gpu.json").write_text(json.dumps({"rows": rows, "training": training}))
    texts = {f.text: f.met for f in (measure() for measure in demands.values())}

    assert texts == {
        "97%: gelu 300": True,
        "worst 1.50: gelu 300; geometric mean 1.50": True,
        "39 us": True,
        "2.50: figure1 3x1, 2.25: figure1 3x32": True,
        "worst 1.25: figure1 3x32, of 1": True,
        "jax.jit / passkit 1.50 in the mean, eager / passkit 5.50 on dyn-rnn": True,
    }
    slow = [row("dyn-rnn", eager=4.0, jax=1.5), row("logistic")]
    fewer = [row("gelu 300", 0.94, compile=0.99), *rows[2:7], row("figure1 3x1", jax=2.5)]
    (tmp_path / "gpu.json").write_text(json.dumps({"rows": fewer, "training": slow}))
    assert [f().met for f in demands.values()] == [False, False, False, False, None, False]
    assert "adam has no row" in next(iter(demands.values()))().text


def test_comparison_with_the_version_before(
    gpu: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Equal texts and quick planning meet the demand; another text or slow planning does not."""
    from shows import gpu as show

    monkeypatch.setattr(show, "RESULTS", tmp_path)
    monkeypatch.setattr(show, "ROOT", tmp_path)
    assert "corpus-base.txt is missing" in show.comparison_with_base().text
    lines = [
        "2026-11-29, a and b",
        "cpu: 740 E0, 5 E1; 1 with other key; planning 10.0 s, 1.02 x",
        "  E1: cpu/gelu: 1 of 2 kernels",
        "cuda: 2 E0, 9 other code; 1 with other key; planning 12.0 s, 1.09 x",
    ]
    for change, met in (("", True), ("1.09 x", False), ("5 E1", False)):
        worse = {"1.09 x": "1.11 x", "5 E1": "4 E1, 1 other text"}.get(change, "")
        (tmp_path / "corpus-base.txt").write_text("\n".join(lines).replace(change, worse))
        assert show.comparison_with_base().met is met
    (tmp_path / "corpus-base.txt").write_text("\n".join(lines))
    assert "CPU: 740 E0, 5 E1; planning cpu 1.02, cuda 1.09 x" in show.comparison_with_base().text
