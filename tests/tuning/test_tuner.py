"""The tuner: it takes the fastest template, measures nothing twice, and survives crashes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.errors import ArgumentError, CompilerError, FeedError, SettingError
from tests import measurements
from tests.loops import while_loop
from tests.raised import ROOT
from tests.tuning.executors import DeadError, HungError, Inline, Workers

SOFTMAX = "x: f32[512, 64]; return softmax(x)"
ALL = 24


def favour(favourite: str) -> Any:
    """A clock on which one template takes half as long as the others."""

    def clock(run: Any, times: int, template: str) -> float:
        run()
        return 1e-6 if template == favourite else 2e-6

    return clock


@pytest.fixture
def softmax() -> pk.Graph:
    """One group with nine templates of two kinds."""
    return pk.parse(SOFTMAX)


@pytest.fixture
def short() -> pk.Graph:
    """A graph whose kernels are soon compiled."""
    return pk.parse("x: f32[64, 40]; return abs(x)")


def texts_of(graph: pk.Graph) -> list[str]:
    """All templates of its only group."""
    (result,) = pk.templates(graph, evaluator="model")
    return [result.template, *(str(v.template) for v in result.others)]


def test_the_fastest_template_is_taken(fresh_cache: Path) -> None:
    """The template that the clock favours is taken; results are the same bit for bit."""
    graph = pk.parse("x: f32[999, 301]; return reduce_sum(exp(x), axis=1)")
    feeds = {"x": np.random.default_rng(1).standard_normal((999, 301)).astype(np.float32)}
    (right,) = pk.compile(graph, evaluator="model")(feeds)
    texts = texts_of(graph)
    assert len(texts) == 5
    for favourite in texts:
        measurements.forget()
        executor = Inline()
        result = pk.tune(graph, executor=executor, clock=favour(favourite), budget=ALL)
        (group,) = result.groups

        assert (group.template, result.measured, result.rounds) == (favourite, len(texts), 1)
        assert (group.gain, group.faults) == (1.0 if favourite == texts[0] else 2.0, {})
        (shown,) = pk.templates(graph)
        assert shown.template == favourite and "fastest when measured" in shown.why
        (after,) = pk.compile(graph)(feeds)
        assert after.tobytes() == right.tobytes()
        again = pk.tune(graph, executor=executor, clock=favour(favourite), budget=ALL)
        assert (again.measured, again.rounds) == (0, 0)
        assert len(executor.requests) == 1 + (favourite != texts[0])
    assert result.changed == 1


def test_templates_within_the_budget_are_measured(softmax: pk.Graph, fresh_cache: Path) -> None:
    """Others are recorded with the model's estimate, and measured with a larger budget."""
    texts = texts_of(softmax)
    executor = Inline()
    first = pk.tune(softmax, executor=executor, clock=favour(texts[1]), budget=3)
    assert (first.measured, first.groups[0].template) == (3, texts[1])
    assert {r.template for r in measurements.records() if not r.samples} == {*texts[3:]}
    pk.tune(softmax, executor=executor, clock=favour(texts[4]), budget=5)
    assert executor.requests[1].templates == (texts[0], texts[1])  # so that it was no luck
    assert executor.requests[2].templates == (texts[0], texts[1], texts[3], texts[4])
    (shown,) = pk.templates(softmax)
    assert shown.template == texts[4]
    again = pk.tune(softmax, executor=executor, clock=favour(texts[2]), budget=5, again=True)
    assert again.measured == 5 and executor.requests[4].templates == tuple(texts[:5])


def test_a_crash_marks_the_template(softmax: pk.Graph, fresh_cache: Path) -> None:
    """A crash or hang is recorded as a fault of its template, the usual one included."""
    texts = texts_of(softmax)[:4]
    for bad, error in ((texts[0], DeadError("x")), (texts[2], HungError("x"))):
        measurements.forget()
        executor = Inline(lambda r, bad=bad, error=error: error if bad in r.templates else None)
        result = pk.tune(softmax, executor=executor, clock=favour(texts[3]), budget=4)
        fault = "crashed" if bad is texts[0] else "hung"

        assert result.groups[0].faults == {bad: fault}
        assert result.groups[0].template == texts[3]
        assert f"{bad} {fault}" in result.remarks[0]
        assert pk.tune(softmax, executor=executor, clock=favour(texts[3]), budget=4).measured == 0


def test_a_crash_that_does_not_repeat_is_no_fault(softmax: pk.Graph, fresh_cache: Path) -> None:
    """If a process was ended from outside, everything is measured after all."""
    left = [DeadError("x"), DeadError("y")]
    executor = Inline(lambda r: left.pop() if left else None)
    result = pk.tune(softmax, executor=executor, clock=favour(""), budget=3)

    assert (result.groups[0].faults, result.groups[0].measured) == ({}, 3)
    assert result.remarks == ()


def test_templates_with_other_bits_are_not_taken(fresh_cache: Path) -> None:
    """Templates that sum in another order give other bits, and are not taken."""
    graph = pk.parse("x: f32[64, 96]; m = reduce_mean(x, axis=1, keepdims=true); return sub(x, m)")
    (ranked,) = pk.templates(graph, evaluator="model")
    rows = [str(v.template) for v in ranked.others if v.schedule.composition.value == "row"]
    assert rows
    result = pk.tune(graph, executor=Inline(), clock=favour(rows[0]), budget=ALL)

    assert result.groups[0].faults == dict.fromkeys(rows, "other bits")
    assert result.groups[0].template == ranked.template


def test_unknown_sizes_are_measured_at_two_sizes(fresh_cache: Path) -> None:
    """Groups are measured at the given and at larger sizes; reductions keep their order."""
    graph = pk.parse("x: f32[n, 96]; return sub(x, reduce_mean(x, axis=1, keepdims=true))")
    executor = Inline()
    result = pk.tune(graph, executor=executor, clock=favour(""), shapes={"x": (5, 96)})

    assert [r.shapes for r in executor.requests] == [((5, 96),), ((160, 96),)]
    assert result.groups[0].faults == {} and result.groups[0].before == 2e-6
    with pytest.raises(FeedError, match="there is no input 'y'; known: x"):
        pk.tune(graph, shapes={"y": (1,)})
    with pytest.raises(ArgumentError, match="shape of 'x' must be a sequence of integers, got 5"):
        pk.tune(graph, shapes={"x": 5})  # type: ignore[dict-item]
    for shape, text in (((5, 95), r"\(5, 95\)"), ((5,), r"\(5,\)"), ((-1, 96), r"\(-1, 96\)")):
        with pytest.raises(FeedError, match=rf"'x' needs shape \(n, 96\), got {text}"):
            pk.tune(graph, shapes={"x": shape})


def test_sizes_that_inputs_do_not_have_are_passed(fresh_cache: Path) -> None:
    """A split sum's second half reads one row for 128 of n: an array (n, 0) gives n."""
    executor = Inline()
    graph = pk.parse("x: f32[n, 40]; return reduce_sum(x, axis=0)")
    result = pk.tune(graph, executor=executor, clock=favour(""), shapes={"x": (300, 40)}, budget=1)

    assert [r.shapes for r in executor.requests] == [
        ((300, 40),),
        ((9600, 40),),
        ((3, 40), (300, 0)),
        ((75, 40), (9600, 0)),
    ]
    assert [(g.operators, g.before) for g in result.groups] == [
        ("partial_reduce", 2e-6),
        ("combine_partials", 2e-6),
    ]
    assert result.remarks == ()


def test_loop_bodies_and_single_operators_are_tuned(fresh_cache: Path) -> None:
    """Nested graphs are tuned with the outer graph; with operators=True each operator as well."""
    (y,) = while_loop(
        lambda value: pk.ops.reduce_max(value) < 9.0,
        lambda value: [pk.ops.abs(value * 2.0 + 1.0)],
        [pk.var("x", (64, 40))],
    )
    executor = Inline()
    graph = pk.Graph([pk.ops.abs(y + 1.0)])
    result = pk.tune(graph, executor=executor, clock=favour(""), budget=1, operators=True)

    names = [g.operators for g in result.groups]
    assert names == ["add, abs", "reduce_max, less", "mul, add, abs"]
    assert result.rounds == 1 and result.measured == len(executor.requests)
    recorded = {r.operators for r in measurements.records()}
    assert {"less", "abs", "mul", "add"} <= recorded
    assert pk.tune(graph, executor=executor, budget=1, clock=favour("")).measured == 0


def test_a_broken_executor_falls_back_to_workers(short: pk.Graph, fresh_cache: Path) -> None:
    """Worker processes measure the rest; a clock of the user's cannot be sent to them."""
    executor = Inline(lambda r: BrokenExecutor("ended abruptly"))
    result = pk.tune(short, executor=executor, budget=1)

    assert result.measured == 1 and result.groups[0].before > 0
    assert "the pool of an executor broke: ended abruptly" in result.remarks[0]
    with pytest.raises(SettingError, match="ended abruptly, and worker processes cannot use the"):
        pk.tune(short, executor=executor, clock=favour(""), budget=2)
    refused = Inline(lambda r: ValueError("no such operator here"))
    left = pk.tune(short, executor=refused, budget=2)
    assert left.measured == 0 and "not measured: no such operator here" in left.remarks[0]


def test_options_that_do_not_fit_are_errors(
    softmax: pk.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong options, and a machine without a compiler, are errors."""
    with pytest.raises(SettingError, match="needs target 'cpu', got 'cuda'"):
        pk.tune(softmax, target="cuda")
    with pytest.raises(
        SettingError, match="needs the evaluator of measurements .* got evaluator=<passkit"
    ):
        pk.tune(softmax, evaluator="model")
    with pytest.raises(SettingError, match="needs an executor for the clock <function"):
        pk.tune(softmax, clock=favour(""))
    for option in ("budget", "at_once"):
        with pytest.raises(SettingError, match=f"needs {option} of at least 1, got 0"):
            pk.tune(softmax, **{option: 0})
    monkeypatch.setenv("PASSKIT_CXX", "/nonexistent/c++")
    with pytest.raises(CompilerError, match="a C\\+\\+ compiler, and none was found; install"):
        pk.tune(softmax)


def test_a_killed_worker_loses_nothing(short: pk.Graph, fresh_cache: Path) -> None:
    """After `kill -9` of a worker all templates are measured, and none has a fault."""
    workers = Workers()
    killed: list[int] = []

    def kill() -> None:
        begin = time.monotonic()
        while not workers.pids:
            if time.monotonic() - begin > 60:
                return  # the tuner failed before it had workers
            time.sleep(0.01)
        time.sleep(0.3)
        killed.extend(workers.pids)
        os.kill(killed[0], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        result = pk.tune(short, executor=workers, budget=2)
    finally:
        thread.join()
        workers.shutdown(wait=False)

    assert killed and workers.pids == []
    assert (result.groups[0].measured, result.groups[0].faults) == (2, {})
    assert all(r.seconds > 0 for r in measurements.records() if r.samples)


def test_a_killed_tuner_can_be_continued(tmp_path: Path, fresh_cache: Path) -> None:
    """After `kill -9` of a tuner its records are kept, and the next tuner continues."""
    model = tmp_path / "model.txt"
    model.write_text("""x: f32[64, 40]; y: f32[90]
        return abs(x), reduce_max(x, axis=0), neg(y), reduce_min(y, axis=0)""")
    command = [sys.executable, "-m", "passkit", "tune", str(model), "--budget", "1"]
    command += ["--fusion", "none"]
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL) as tuner:
        while not measurements.records() and tuner.poll() is None:
            time.sleep(0.005)
        tuner.kill()
    before = measurements.records()
    executor = Inline()
    result = pk.tune(pk.parse(model.read_text()), executor=executor, budget=1, fusion="none")

    assert 1 <= len(before) <= len(result.groups) == 4
    assert {r.group for r in before if r.samples} <= {r.group for r in measurements.records()}
    assert len(executor.requests) == result.measured == 4 - sum(bool(r.samples) for r in before)
    assert type(result).__name__ == "Tuning"
