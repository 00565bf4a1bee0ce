"""Column reductions on GPUs: each thread reduces its columns, with vector accesses or without."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import passkit as pk
from tests.emulator.fake_driver import fake_cuda
from tests.planned import target

PLAIN = target("cuda", nests=False)
COLUMNS = "x: f32[n, m]; return reduce_sum(x, axis=0)"
STORED = """x: f32[n, m]; y: f32[n, m]; z = mul(x, y)
return z, reduce_sum(z, axis=0), reduce_max(z, axis=0)"""
TWICE = "x: f32[3, n, m]; return reduce_sum(exp(x), axis=(0, 1))"


def compiled_run(text: str, rows: int, columns: int, rng: Any) -> tuple[Any, list[Any], list[Any]]:
    """Return a program as one kernel for the emulated device, its results and the right ones."""
    graph = pk.parse(text)
    names = [[graph.names[n] for n in graph.nodes if n.op is not None]]
    feeds = {
        n.name: rng.integers(
            -9, 9, [{"n": rows, "m": columns}.get(str(d), d) for d in n.entries[0].shape]
        ).astype(np.float32)
        for n in graph.inputs
    }
    with fake_cuda():
        exe = pk.compile(graph, target=PLAIN, keep_together=names)
        return exe, exe(feeds), pk.interpret(graph, feeds)


@pytest.mark.parametrize("text", [COLUMNS, STORED, TWICE])
@pytest.mark.parametrize("rows, columns", [(1, 1), (7, 40), (33, 39), (5, 600), (0, 8)])
def test_columns(text: str, rows: int, columns: int, rng: Any) -> None:
    """Lengths that vectors divide or not, two tiles, and columns without rows."""
    if "max" in text and rows == 0:
        text = text.replace(", reduce_max(z, axis=0)", "")
    exe, actual, expected = compiled_run(text, rows, columns, rng)

    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    assert "#pragma unroll 4" in exe.source


def test_totals_are_registers(rng: Any) -> None:
    """A thread stores to scratch when it has reduced a column, and does not load from there."""
    exe, _, _ = compiled_run(COLUMNS, 9, 40, rng)
    folding = exe.source.split("#pragma unroll 4")[1].split("put_some")[0]

    assert "take_some(x0_vector" in folding and "s0_vector[" in folding and "s0 +" not in folding
    assert re.search(r"_total = \w+_total \+ x0\[", exe.source)


def test_a_stage_that_reads_what_it_writes(rng: Any) -> None:
    """The loop over rows of a scan is outside, since it carries a value for each column."""
    exe, actual, expected = compiled_run("x: f32[n, m]; return cumsum(x, axis=0)", 9, 40, rng)

    np.testing.assert_allclose(actual[0], expected[0], rtol=1e-6)
    assert "#pragma unroll 4" not in exe.source
