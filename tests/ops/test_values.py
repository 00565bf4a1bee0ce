"""Every operator of the library against NumPy: interpreted in every dtype, and natively.

The walk is over the registry: an operator without a specimen fails. By default the native run
takes float32, or what else an operator is for, and every fourth call in one more dtype;
``--every-dtype`` takes all.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

import passkit as pk
from passkit.values.dtype import DType
from tests.ops.specimens import BY_KIND, SPECIMENS, Specimen, Trial, mistakes
from tests.random_graphs.registry import standard_ops
from tests.together import compiled

for _file in sorted(Path(__file__).parent.glob("specimen_*.py")):
    import_module(f"tests.ops.{_file.stem}")

pytestmark = pytest.mark.usefixtures("quick_kernels")
NATIVE = tuple(name for kind in "biuf" for name in BY_KIND[kind])
"""The dtypes that kernels take."""

TOGETHER = 24
"""Operators that are compiled in one go."""


NAMES = standard_ops()


def run(specimen: Specimen, trial: Trial, dtype: DType) -> Iterator[str]:
    """What is wrong with a trial in the interpreter."""
    outs = specimen.build(trial, "x")
    graph = pk.Graph(outs)
    for arrays in trial.feeds:
        feeds = {n.name: arrays[number_of(n.name)] for n in graph.inputs}
        found = pk.interpret(graph, feeds)
        yield from compare(specimen, trial, dtype, arrays, found)


def number_of(name: str) -> int:
    """Which input the variable called ``name`` is."""
    return int(name.rpartition("_")[2])


def compare(
    specimen: Specimen, trial: Trial, dtype: DType, arrays: tuple[Any, ...], found: list[Any]
) -> Iterator[str]:
    """What is wrong with the results of one call."""
    wanted = specimen.expected(arrays, trial.params)
    shapes = " ".join(str(list(a.shape)) for a in arrays)
    where = f"{specimen.op} {dtype} {shapes} {dict(trial.params)}"
    if len(found) != len(wanted):
        yield f"{where}: {len(found)} results, not {len(wanted)}"
    for f, w in zip(found, wanted, strict=False):
        yield from mistakes(specimen, where, f, w, arrays)


@pytest.mark.parametrize("name", [n for n in NAMES if n in SPECIMENS])
def test_interpreted(name: str) -> None:
    """The meaning of an operator is NumPy's, in every dtype it is for."""
    wrong = [
        message
        for specimen in SPECIMENS[name]
        for dtype in specimen.dtypes()
        for trial in specimen.drawn(dtype)
        for message in run(specimen, trial, dtype)
    ]

    assert not wrong, "\n".join(wrong[:10])


def chosen(specimen: Specimen, every: bool) -> list[DType]:
    """The dtypes of the native run: all, or the first and one that the operator's name picks."""
    found = [d for d in specimen.dtypes() if d.name in NATIVE]
    if every or len(found) < 2:
        return found
    return [found[0], found[1 + zlib.crc32(specimen.op.encode()) % (len(found) - 1)]]


BATCHES = [NAMES[k : k + TOGETHER] for k in range(0, len(NAMES), TOGETHER)]


@pytest.mark.parametrize("names", BATCHES, ids=lambda names: f"{names[0]}-{names[-1]}")
def test_natively(names: list[str], request: pytest.FixtureRequest) -> None:
    """A kernel of every operator gives what NumPy gives; many are compiled together."""
    every = bool(request.config.getoption("--every-dtype"))
    wrong = walked(names, every)

    assert not wrong, "\n".join(wrong[:10])


def walked(names: Sequence[str], every: bool, loose: float = 1, **options: Any) -> list[str]:
    """What is wrong with kernels of operators; sums may be off by ``loose`` times as much."""
    trials = [
        (evolve(specimen, slack=specimen.slack * loose, of_inputs=loose > 1), trial, dtype)
        for name in names
        for specimen in SPECIMENS.get(name, ())
        for number, dtype in enumerate(chosen(specimen, every))
        for trial in specimen.drawn(dtype)[:: 1 if every or not number else 4]
    ]
    graphs = [pk.Graph(specimen.build(trial, "x")) for specimen, trial, _ in trials]
    wrong: list[str] = []
    for (specimen, trial, dtype), exe in zip(trials, compiled(graphs, **options), strict=True):
        for arrays in trial.feeds:
            feeds = {i.name: arrays[number_of(i.name)] for i in exe.inputs}
            wrong += compare(specimen, trial, dtype, arrays, exe(feeds))
    return wrong
