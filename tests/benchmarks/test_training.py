"""The training programs at small sizes, compared with figures of an independent NumPy program."""

from __future__ import annotations

import ctypes
import gc
import json
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passkit as pk
from tests.together import compiled

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make the modules of benchmarks/ importable, as its scripts see them."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    yield
    for name in [n for n in sys.modules if n.split(".")[0] in ("training", "shows")]:
        del sys.modules[name]


def programs() -> Any:
    """Return the six micro-benchmarks."""
    from training.micro import PROGRAMS

    return PROGRAMS


def test_three_steps_are_those_of_the_reference() -> None:
    """Interpreted and compiled steps have the reference's losses and updates."""
    from training.agreement import errors_of
    from training.passkit_steps import training_step

    inputs = [(p, p.drawn(small=True)) for p in programs()]
    steps = [training_step(p, drawn) for p, drawn in inputs]
    kernels = compiled([s.with_gradients() for s in steps])
    for (program, drawn), step, fast in zip(inputs, steps, kernels, strict=True):
        for exe in (pk.compile(step.with_gradients(), target="interpret"), fast):
            errors = errors_of(program, drawn, step, exe, small=True)
            assert len(errors) == 3 + 2 * len(drawn.variables)
            worst = max(errors, key=lambda name: errors[name])
            assert errors[worst] < 2e-5, (program.name, worst, errors[worst])
        copies = fast.graph.attrs["storage"].copies
        assert not [c for c in copies if c.target.home.name == "STATE"], program.name
        apart = [d for d in fast.graph.attrs["fusion_log"] if not d.fused]
        assert apart and all(d.code and d.reason and d.producer for d in apart), program.name


def test_a_wrong_step_is_reported() -> None:
    """A gradient or a learning rate that is off by 0.1 % gives a large error."""
    from attrs import evolve
    from training.agreement import errors

    program = programs()[4]
    off = evolve(program, rate=program.rate * 1.001)
    wrong = evolve(program, loss=lambda f, p, x: 1.001 * program.loss(f, p, x))

    assert max(errors(off, small=True, target="interpret").values()) > 5e-4
    assert errors(wrong, small=True, target="interpret")["gradient W1"] > 5e-4


def test_first_losses() -> None:
    """At their full sizes the programs begin with the published losses."""
    first_losses = (2.3026, 398.62, 3.2376, 0.7852, 6264.3, 637.79)
    from training.agreement import reference_losses
    from training.passkit_steps import training_step

    for program, loss in zip(programs(), first_losses, strict=True):
        assert reference_losses(program)[0] == pytest.approx(loss, rel=5e-5)
    for program in (programs()[0], programs()[4], programs()[5]):
        drawn = program.drawn()
        (loss_value,) = pk.interpret(training_step(program, drawn).graph, dict(drawn.feeds), {})
        assert loss_value == pytest.approx(reference_losses(program)[0], rel=1e-6)
        assert loss_value.dtype == np.float32


def test_the_frontend_trains_as_the_benchmarks_graphs_do() -> None:
    """Programs written with tinyflow have the losses of the measured graphs."""
    from training.networks import PROGRAMS
    from training.tinyflow_training import errors

    by_name = {p.name: p for p in (*programs(), *PROGRAMS)}
    errors_by_program = {
        n: errors(by_name[n], small=True, target="interpret") for n in ("dyn-rnn", "lenet")
    }

    assert max(error for row in errors_by_program.values() for error in row.values()) <= 1e-5


def test_growth_over_many_steps_is_reported(fresh_cache: Path) -> None:
    """A short run does not grow; growing memory and moved variables are named."""
    from attrs import evolve
    from training.endurance import endured, summary

    gc.freeze()  # each look collects garbage, and what other tests have left takes a second
    snapshots = endured(programs()[0], steps=20, small=True, target="interpret")
    text, flat = summary(snapshots)
    assert flat and "steps 2 to 20" in text and len(snapshots) == 10

    worse = evolve(
        snapshots[-1], resident=snapshots[-1].resident + (9 << 20), plans=7, addresses=(1,)
    )
    assert worse.grown(snapshots[-1]) == [
        "memory by 9216 KiB",
        f"plans from {snapshots[-1].plans} to 7",
        "variables have moved",
    ]
    assert summary([snapshots[0], worse])[1] is False


def test_adam_moves_seven_floats() -> None:
    """Parameter, moments, gradient are read once, all but the gradient written."""
    from training.traffic import floats_per_parameter

    sizes = [1500, 70, 6]
    floats = {
        f: floats_per_parameter("tinyflow_adam", sizes, fusion=f)
        for f in ("stitch", "nnvm", "none")
    }

    assert 7 <= floats["stitch"] < 7.01
    assert 10 <= floats["nnvm"] < 10.01  # with NNVM's copies by assign 16, and 35 unfused
    assert 29 <= floats["none"] < 29.02


def test_nnvm_fuses_as_many_operators_as_published() -> None:
    """LeNet's and ResNet's Adam have the published numbers of fused operators."""
    from training.counts import optimizing
    from training.networks import PROGRAMS

    for program, count in zip(PROGRAMS[:2], (19, 82), strict=True):
        drawn = program.drawn(small=True)
        kernels = optimizing(program, drawn, fusion="nnvm")
        assert (kernels.fused, kernels.single, kernels.distinct) == (count, 1, 4)
    assert optimizing(PROGRAMS[0], PROGRAMS[0].drawn(small=True)).launches <= 13


def test_state_stays_where_it_is() -> None:
    """After 1,000 steps each variable has its address, and no memory is retained."""
    from training.micro import PROGRAMS
    from training.passkit_steps import training_step

    program = PROGRAMS[4]
    drawn = program.drawn(small=True)
    exe = pk.compile(training_step(program, drawn).graph)
    feeds, loss = dict(drawn.feeds), [np.zeros((), np.float32)]

    def run(count: int) -> float:
        for _ in range(count):
            exe(feeds, out=loss)
        return float(loss[0])

    before = {n: a.ctypes.data for n, a in exe.state.arrays.items()}
    start = {n: a.copy() for n, a in exe.state.arrays.items()}
    first = run(10)
    held = allocated()
    tracemalloc.start()
    last = run(1000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert allocated() - held < 10_000 and peak < 4096, "less than 16 bytes a step"
    assert {n: a.ctypes.data for n, a in exe.state.arrays.items()} == before
    assert last < first and all((start[n] != a).any() for n, a in exe.state.arrays.items())


def allocated() -> int:
    """Return the bytes that C's allocator has handed out."""

    class AllocatorStatistics(ctypes.Structure):
        _fields_ = [(f"field{k}", ctypes.c_size_t) for k in range(10)]

    info = ctypes.CDLL(None).mallinfo2
    info.restype = AllocatorStatistics
    statistics = info()
    return int(statistics.field7 + statistics.field4)  # uordblks and hblkhd


def test_stand_ins_of_applications(rng: Any) -> None:
    """Better strategies give the stand-ins fewer launches, and results are finite."""
    from training.applications import APPLICATIONS
    from training.counts import launches

    for application in APPLICATIONS:
        graph = application.graph(2)
        none, xla, stitch = (launches(graph, f).total for f in ("none", "xla", "stitch"))
        assert stitch < xla < none, application.name
        feeds = {
            n.name: np.zeros(n.params["shape"], "int64")
            if n.params["dtype"].name == "int64"
            else rng.standard_normal(n.params["shape"], "float32")
            for n in graph.inputs
        }
        assert all(np.isfinite(out).all() for out in pk.interpret(graph, feeds))


def test_ratios_are_of_tensorflows_operators_over_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ratio divides the stored count of TensorFlow's operators by launches."""
    from shows import training as table

    stored = json.loads(table.OPERATORS.read_text())["programs"]
    names = [p.name for p in programs()]
    assert list(stored) == list(table.PAPER) == names
    assert all(row["total"] == sum(row["operators"].values()) for row in stored.values())
    row = {"composite": 46, "none": 40, "xla": 20, "stitch": 10}
    monkeypatch.setattr(table, "kernels", lambda: {"logistic": row})
    assert not table.ratio("logistic").met and "46/10 = 4.6" in table.ratio("logistic").text
    row["stitch"] = 9
    assert table.ratio("logistic").met
