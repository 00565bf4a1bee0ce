"""The training programs at small sizes beside figures of an independent NumPy rebuild."""

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
from passkit.plan.storage import Home
from tests.together import compiled

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The modules of benchmarks/ as its scripts see them."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    yield
    for name in [n for n in sys.modules if n.split(".")[0] in ("training", "shows")]:
        del sys.modules[name]


def programs() -> Any:
    """The six micro-benchmarks."""
    from training.micro import PROGRAMS

    return PROGRAMS


def test_three_steps_are_those_of_the_reference() -> None:
    """Every loss, gradient and update is, as NumPy interprets and as kernels compute it."""
    from training.agreement import errors_of
    from training.steps import training_step

    given = [(p, p.drawn(small=True)) for p in programs()]
    steps = [training_step(p, drawn) for p, drawn in given]
    kernels = compiled([s.with_gradients() for s in steps])
    for (program, drawn), step, fast in zip(given, steps, kernels, strict=True):
        for exe in (pk.compile(step.with_gradients(), target="interpret"), fast):
            found = errors_of(program, drawn, step, exe, small=True)
            assert len(found) == 3 + 2 * len(drawn.variables)
            worst = max(found, key=lambda name: found[name])
            assert found[worst] < 2e-5, (program.name, worst, found[worst])
        copies = fast.graph.attrs["storage"].copies
        assert not [c for c in copies if c.target.home is Home.STATE], program.name
        apart = [d for d in fast.graph.attrs["fusion_log"] if not d.fused]
        assert apart and all(d.code and d.reason and d.producer for d in apart), program.name


def test_a_wrong_step_is_found() -> None:
    """A gradient that is off by a thousandth, and a rate that is, are no agreement."""
    from attrs import evolve
    from training.agreement import errors

    program = programs()[4]
    off = evolve(program, rate=program.rate * 1.001)
    wrong = evolve(program, loss=lambda f, p, x: 1.001 * program.loss(f, p, x))

    assert max(errors(off, small=True, target="interpret").values()) > 5e-4
    assert errors(wrong, small=True, target="interpret")["gradient W1"] > 5e-4


def test_first_losses() -> None:
    """At their own sizes the programs begin with the losses that are known of them."""
    wanted = (2.3026, 398.62, 3.2376, 0.7852, 6264.3, 637.79)
    from training.agreement import reference_losses
    from training.steps import training_step

    for program, loss in zip(programs(), wanted, strict=True):
        assert reference_losses(program)[0] == pytest.approx(loss, rel=5e-5)
    for program in (programs()[0], programs()[4], programs()[5]):
        drawn = program.drawn()
        (found,) = pk.interpret(training_step(program, drawn).graph, dict(drawn.feeds), {})
        assert found == pytest.approx(reference_losses(program)[0], rel=1e-6)
        assert found.dtype == np.float32


def test_the_frontend_trains_as_the_benchmarks_graphs_do() -> None:
    """Programs written with tinyflow have the losses of the graphs that are measured."""
    from training.in_tinyflow import errors
    from training.networks import PROGRAMS

    by_name = {p.name: p for p in (*programs(), *PROGRAMS)}
    found = {n: errors(by_name[n], small=True, target="interpret") for n in ("dyn-rnn", "lenet")}

    assert max(error for row in found.values() for error in row.values()) <= 1e-5


def test_what_grows_over_many_steps_is_seen(fresh_cache: Path) -> None:
    """A short run stays flat; memory, files, plans and addresses that change are named."""
    from attrs import evolve
    from training.endurance import endured, summary

    gc.freeze()  # each look collects garbage, and what other tests have left takes a second
    found = endured(programs()[0], steps=20, small=True, target="interpret")
    text, flat = summary(found)
    assert flat and "steps 2 to 20" in text and len(found) == 10

    worse = evolve(found[-1], resident=found[-1].resident + (9 << 20), plans=7, addresses=(1,))
    assert worse.grown(found[-1]) == [
        "memory by 9216 KiB", f"plans from {found[-1].plans} to 7", "variables have moved"
    ]
    assert summary([found[0], worse])[1] is False


def test_adam_moves_seven_floats() -> None:
    """Parameter, moments and gradient are read once and all but the gradient written, in place."""
    from training.traffic import floats_per_parameter

    sizes = [1500, 70, 6]
    found = {f: floats_per_parameter("tinyflow_adam", sizes, fusion=f)
             for f in ("stitch", "nnvm", "none")}

    assert 7 <= found["stitch"] < 7.01
    assert 10 <= found["nnvm"] < 10.01  # with NNVM's copies by assign 16, and 35 unfused
    assert 29 <= found["none"] < 29.02


def test_nnvm_fuses_what_it_fused() -> None:
    """TinyFlow's LeNet and ResNet have the fused operators of Adam that were published."""
    from training.counts import optimizing
    from training.networks import PROGRAMS

    for program, count in zip(PROGRAMS[:2], (19, 82), strict=True):
        drawn = program.drawn(small=True)
        found = optimizing(program, drawn, fusion="nnvm")
        assert (found.fused, found.single, found.distinct) == (count, 1, 4)
    assert optimizing(PROGRAMS[0], PROGRAMS[0].drawn(small=True)).launches <= 13


def test_state_stays_where_it_is() -> None:
    """After a thousand steps each variable has its address, and no memory is held more."""
    from training.micro import PROGRAMS
    from training.steps import training_step

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
    """The bytes that C's allocator has given out."""
    class Info(ctypes.Structure):
        _fields_ = [(f"field{k}", ctypes.c_size_t) for k in range(10)]

    info = ctypes.CDLL(None).mallinfo2
    info.restype = Info
    found = info()
    return int(found.field7 + found.field4)  # uordblks and hblkhd


def test_stand_ins_of_applications(rng: Any) -> None:
    """A few repetitions of each are fewer launches by every better strategy, and finite."""
    from training.applications import APPLICATIONS
    from training.counts import launches

    for application in APPLICATIONS:
        graph = application.graph(2)
        none, xla, stitch = (launches(graph, f).total for f in ("none", "xla", "stitch"))
        assert stitch < xla < none, application.name
        feeds = {n.name: np.zeros(n.params["shape"], "int64") if n.params["dtype"].name == "int64"
                 else rng.standard_normal(n.params["shape"], "float32") for n in graph.inputs}
        assert all(np.isfinite(out).all() for out in pk.interpret(graph, feeds))


def test_the_table_of_promises(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ratios are of TensorFlow's operators, kept for every program, over our launches."""
    from shows import training as table

    kept = json.loads(table.OPERATORS.read_text())["programs"]
    names = [p.name for p in programs()]
    assert list(kept) == list(table.PAPER) == names
    assert all(row["total"] == sum(row["operators"].values()) for row in kept.values())
    row = {"composite": 46, "none": 40, "xla": 20, "stitch": 10}
    monkeypatch.setattr(table, "kernels", lambda: {"logistic": row})
    assert not table.ratio("logistic").met and "46/10 = 4.6" in table.ratio("logistic").found
    row["stitch"] = 9
    assert table.ratio("logistic").met
