"""Whatever a file says, nothing but a PasskitError comes out of reading and running it."""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import passkit as pk
from passkit.errors import ParseError, PasskitError
from tests.frontends.tf_graphdef.models import const, model, node
from tests.frontends.tf_graphdef.test_mutations import benchmark
from tests.mutants import mutant

ROOT = Path(__file__).resolve().parents[1]


def test_thirty_mutants_of_each_kind() -> None:
    """A part of the campaign of `benchmarks/fuzz_models.py`.

    `tests/frontends/tf_graphdef/test_mutations.py` has GraphDefs and SavedModels.
    """
    command = [sys.executable, str(ROOT / "benchmarks" / "fuzz_models.py"), "--json"]
    command += ["--count", "30", "--first", "1000000"]
    kinds = ("json", "text", "program")
    command += ["--kinds", ",".join(kinds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)

    assert report["faults"] == []
    assert report["models"] == dict.fromkeys(kinds, 30)
    for kind, outcomes in report["outcomes"].items():
        assert any(k.endswith("Error") for k in outcomes), kind
        assert any(k in ("planned", "ran") for k in outcomes), kind


def raw() -> Any:
    """End in a raw error."""
    raise KeyError("planted")


def crash() -> Any:
    """End the process."""
    faulthandler.disable()  # nobody needs to see where
    os.kill(os.getpid(), signal.SIGSEGV)


def hog() -> Any:
    """Take 3 GiB."""
    return bytearray(3 << 30)


def slow() -> Any:
    """Never end."""
    while True:
        pass


def long() -> Any:
    """End in an error with an endless message."""
    raise ParseError("x" * 700_000)


@pytest.mark.parametrize(
    ("load", "what"),
    [
        (raw, "KeyError: 'planted'"),
        (crash, "died of SIGSEGV"),
        (hog, "MemoryError"),
        (slow, "died of SIG(XCPU|KILL)"),
        (long, "a message of 700000 characters"),
    ],
)
def test_planted_faults_are_found(
    load: Callable[[], Any], what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A raw error, a crash, too much memory or time, and a message without end are faults."""
    fuzz = benchmark("fuzz_models")
    monkeypatch.setattr(fuzz, "SECONDS", 0.25)
    monkeypatch.setattr(fuzz, "RUNNING", 0.25)
    outcome = fuzz.attempt(load)
    campaign = fuzz.MutantCampaign()
    campaign.add("json", 7, outcome)

    (fault,) = campaign.report()["faults"]
    assert (fault["kind"], fault["seed"], outcome.kind) == ("json", 7, "fault")
    with pytest.raises(AssertionError, match=what):
        raise AssertionError(fault["what"])


def test_mutants_are_the_same_again() -> None:
    """A seed gives one mutant, whenever it is asked for."""

    def outcome(seed: int) -> str:
        try:
            return pk.to_text(mutant("text", seed).load(Path()))  # type: ignore[arg-type]
        except PasskitError as error:
            return str(error)

    first = [outcome(seed) for seed in range(12)]
    assert first == [outcome(seed) for seed in range(12)]
    assert len({*first}) > 8


LONG = "q" * 700_000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{LONG}: f32[2]; {LONG}: f32[2]; return", "the name 'qqq.*qqq' is defined twice"),
        (f"x: f32[2]; return {LONG}", "there is no 'qqq.*' above; known: x"),
        (f"x: {LONG}[2]; return x", "'qqq.*qqq' is not an element type"),
        (f"x: f32[2]; y = add(x, x, {LONG}=2); return y", "add 'y' has no parameter 'qqq"),
        (f"x: f32[2]; y = softmax(x, axis={LONG}); return y", "'y' needs an int as axis, got qqq"),
        (f"x: f32[{LONG}, 3]; y: f32[4]; z = add(x, y); return z", "broadcast together, got .qqq"),
        (f'x: f32[2] = "{LONG}"; return x', "expected a number, got .*qqq"),
        (f"state {LONG}: f32[?]; return", "state variable 'qqq.* needs a dtype and a known"),
    ],
)
def test_long_names_are_cut_in_messages(text: str, message: str) -> None:
    """A name of 700 kB is shown by its beginning."""
    with pytest.raises(PasskitError, match=message) as caught:
        pk.parse(text)
    assert len(str(caught.value)) < 2_100


def test_a_graphdef_with_an_array_that_cannot_be() -> None:
    """An array of no elements whose other extent is 2**62 is refused, by its node's name."""
    dims, value = const("dims", [0, 2**62], "int64"), const("value", 1.0)
    source = model(dims, value, node("Fill", "y", "dims", "value"))
    from passkit.frontends import tf_graphdef

    with pytest.raises(PasskitError, match="4611686018427387904"):
        tf_graphdef.load(source, "y")
