"""The training programs at small sizes beside figures of an independent NumPy rebuild."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.storage import Home
from tests.together import compiled

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The modules of benchmarks/ as its scripts see them."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    yield
    for name in [n for n in sys.modules if n.split(".")[0] == "training"]:
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
