"""Guarded loads whose guards are loaded get one local variable each, and texts stay short."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.ast import Binary, Expr, Load, Select, Var, const
from passkit.transforms.guarded_loads import bind_guarded_loads
from passkit.values.dtype import bool_, int64

AT, ZERO = Var("i", int64), const(0, int64)


def with_locals(x: Expr) -> tuple[Expr, list[Expr]]:
    """Return the expression with local variables, and their definitions."""
    lets: list[Expr] = []

    def bind(part: Expr) -> Var:
        lets.append(part)
        return Var(f"v{len(lets) - 1}", part.dtype)

    return bind_guarded_loads(x, bind), lets


def less(a: Expr, b: Expr) -> Expr:
    """Return a comparison."""
    return Binary("<", a, b, bool_)


def test_a_load_at_a_loaded_index_is_bound_under_its_guard() -> None:
    """The index is loaded once under the outer condition, its user under both."""
    p = Load("p", AT, int64)
    inner = Select(less(p, ZERO), ZERO, Load("q", p, int64), int64)

    result, lets = with_locals(Select(less(AT, const(9, int64)), inner, ZERO, int64))

    path, v = Var("v0", bool_), Var("v1", int64)
    assert lets[0] == less(AT, const(9, int64))
    assert lets[1] == Select(path, p, ZERO, int64)
    assert lets[2].op == "&" and lets[2].a == path  # type: ignore[attr-defined]
    assert lets[3] == Select(Var("v2", bool_), Load("q", v, int64), ZERO, int64)
    assert result == Select(
        lets[0], Select(less(v, ZERO), ZERO, Var("v3", int64), int64), ZERO, int64
    )


def test_branches_with_other_conditions_stay() -> None:
    """A padded array, or a gather outside of branches, needs no local variables."""
    padded = Select(less(AT, const(9, int64)), Load("p", AT, int64), ZERO, int64)
    gathered = Load("q", Load("p", AT, int64), int64)

    assert with_locals(padded) == (padded, [])
    assert with_locals(gathered) == (gathered, [])


def chain(depth: int) -> Any:
    """Return a graph of ``depth`` gathers by loaded indices, the last of which is padded."""
    y = pk.var("x", (40, 24))
    for k in range(depth):
        y = pk.ops.take_along_axis(y, pk.var(f"i{k}", (40, 24), "int64"), axis=1, mode="zero")
    return pk.Graph([pk.ops.pad(y, ((1, 1), (0, 0)))])


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_indices_of_indices_in_padding(depth: int, rng: np.random.Generator) -> None:
    """The text grows linearly with the levels, and results are right."""
    graph = chain(depth)
    exe = pk.compile(graph)
    feeds = {f"i{k}": rng.integers(-40, 40, (40, 24)) for k in range(depth)}
    feeds["x"] = rng.normal(size=(40, 24)).astype(np.float32)

    assert max(len(k.source) for k in exe.kernels) < 2500
    np.testing.assert_array_equal(exe(feeds)[0], pk.interpret(graph, feeds)[0])
