"""Every operator of the library agrees with NumPy: interpreted in every dtype, and compiled.

The tests iterate over the registry: an operator without a specimen fails. By default operators are
compiled for their first dtype, mostly float32, and every fourth call for one more dtype;
``--every-dtype`` compiles all.
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
from passkit.ast import dt
from tests.ops.specimens import BY_KIND, SPECIMENS, Specimen, Trial, mistakes
from tests.random_graphs.registry import standard_ops
from tests.together import compiled

for _file in sorted(Path(__file__).parent.glob("specimen_*.py")):
    import_module(f"tests.ops.{_file.stem}")

pytestmark = pytest.mark.usefixtures("quick_kernels")
NATIVE = tuple(name for kind in "biuf" for name in BY_KIND[kind])
"""The dtypes that kernels support."""

TOGETHER = 24
"""Number of operators that are compiled together."""

NAMES = standard_ops()


def run(specimen: Specimen, trial: Trial, dtype: dt.DType) -> Iterator[str]:
    """Yield a message for each result of the interpreter that differs from the reference."""
    outs = specimen.build(trial, "x")
    graph = pk.Graph(outs)
    for arrays in trial.feeds:
        feeds = {n.name: arrays[number_of(n.name)] for n in graph.inputs}
        yield from compare(specimen, trial, dtype, arrays, pk.interpret(graph, feeds))


def number_of(name: str) -> int:
    """Return the number of the input that the variable ``name`` is."""
    return int(name.rpartition("_")[2])


def compare(
    specimen: Specimen, trial: Trial, dtype: dt.DType, arrays: tuple[Any, ...], results: list[Any]
) -> Iterator[str]:
    """Yield a message for each result of one call that differs from the reference."""
    expected = specimen.expected(arrays, trial.params)
    shapes = " ".join(str(list(a.shape)) for a in arrays)
    where = f"{specimen.op} {dtype} {shapes} {dict(trial.params)}"
    if len(results) != len(expected):
        yield f"{where}: {len(results)} results, not {len(expected)}"
    for result, reference in zip(results, expected, strict=False):
        yield from mistakes(specimen, where, result, reference, arrays)


@pytest.mark.parametrize("name", [n for n in NAMES if n in SPECIMENS])
def test_interpreter_agrees_with_numpy(name: str, request: pytest.FixtureRequest) -> None:
    """An interpreted operator has the results of NumPy, in every dtype that it takes.

    Dtypes after the first two take every third trial; with --every-dtype they take all.
    """
    every = bool(request.config.getoption("--every-dtype"))
    wrong = [
        message
        for specimen in SPECIMENS[name]
        for number, dtype in enumerate(specimen.dtypes())
        for trial in specimen.drawn(dtype)[:: 1 if every or number < 2 else 3]
        for message in run(specimen, trial, dtype)
    ]

    assert not wrong, "\n".join(wrong[:10])


def chosen(specimen: Specimen, every: bool) -> list[dt.DType]:
    """Return the dtypes to compile for: all, or the first and one by a hash of the name."""
    dtypes = [d for d in specimen.dtypes() if d.name in NATIVE]
    if every or len(dtypes) < 2:
        return dtypes
    return [dtypes[0], dtypes[1 + zlib.crc32(specimen.op.encode()) % (len(dtypes) - 1)]]


BATCHES = [NAMES[k : k + TOGETHER] for k in range(0, len(NAMES), TOGETHER)]


@pytest.mark.parametrize("names", BATCHES, ids=lambda names: f"{names[0]}-{names[-1]}")
def test_kernels_agree_with_numpy(names: list[str], request: pytest.FixtureRequest) -> None:
    """A compiled operator has the results of NumPy; many are compiled together."""
    every = bool(request.config.getoption("--every-dtype"))
    wrong = walked(names, every)

    assert not wrong, "\n".join(wrong[:10])


def walked(names: Sequence[str], every: bool, loose: float = 1, **options: Any) -> list[str]:
    """Return a message for each result of compiled operators that differs from the reference.

    Args:
        names: names of the operators.
        every: whether to compile for every dtype.
        loose: factor of the allowed errors of sums.
        **options: options of the compilation.
    """
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
