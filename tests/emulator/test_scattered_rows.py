"""Scattered rows in CUDA C: one kernel whose blocks share rows, or columns of few rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from tests.emulator.fake_driver import fake_cuda

CASES = [
    ("add", "float32", (1, 1, 50, 7), 33),
    ("add", "float32", (1, 1, 9000, 2), 300),
    ("add", "int64", (2, 1, 40, 3), 0),
    ("sub", "int32", (1, 1, 1100, 1), 300),
    ("mul", "float32", (1, 2, 1, 300), 300),
    ("max", "float64", (1, 1, 3, 700), 600),
    ("min", "uint8", (1, 1, 9, 3), 300),
    ("update", "float16", (1, 1, 300, 2), 300),
    ("update", "bool", (2, 3, 5, 4), 7),
    ("add", "float32", (3, 1, 0, 3), 5),
    *((kind, "int64", (1, 1, 3, 2), 60) for kind in ("add", "sub", "mul")),
]
"""Kind, dtype, (outer, middle, rows, length), updates."""


@pytest.mark.parametrize("kind, dtype, shape, count", CASES)
def test_updates_are_applied_in_order(
    kind: str, dtype: str, shape: tuple[int, ...], count: int, rng: Any
) -> None:
    """The bits equal NumPy's loop over updates, without races between blocks."""
    outer, middle, rows, length = shape
    x, named = pk.var("x", shape, dtype), pk.var("rows", (outer, count), "int64")
    updates = pk.var("updates", (outer, middle, count, length), dtype)
    graph = pk.Graph([pk.ops.scatter_rows(x, named, updates, kind=kind)])
    most = 2 if kind == "mul" else 50
    if dtype == "int64":  # results wrap
        most = 2**62
    feeds = {
        n.name: rng.integers(-most, most + 1, n.entries[0].shape).astype(dtype)
        for n in (x.node, updates.node)
    } | {"rows": rng.integers(-3, rows + 3, (outer, count))}

    with fake_cuda():
        exe = pk.compile(graph, target="cuda")
        (result,) = exe(feeds)

    (step,) = exe.steps
    assert str(step).startswith("launch scatter_rows")
    assert result.tobytes() == pk.interpret(graph, feeds)[0].tobytes()


def test_a_table_is_updated_in_place() -> None:
    """A step that adds to a table's rows leaves it on the device, and runs there."""
    table = pk.state("table", np.zeros((50, 4), np.float32))
    at, new = pk.var("at", (6,), "int64"), pk.var("new", (6, 4))
    graph = pk.Graph([], [(table.node, pk.ops.index_add(table, at, new, axis=0))])
    with fake_cuda():
        exe = pk.compile(graph, target="cuda")
        for _ in range(2):
            exe(at=np.array([3, 3, 49, 0, 3, -1]), new=np.ones((6, 4), np.float32))

        assert exe.stats["host_steps"] == 0
        assert exe.state.arrays["table"][[0, 3, 49]].tolist() == [[2] * 4, [6] * 4, [4] * 4]
