"""Lowering: the stages of a schedule as a kernel AST."""

from __future__ import annotations

from typing import Any

import pytest

import passkit as pk
from passkit.analysis.size_arguments import MAX_LITERAL_EXTENT, argument, pool_sizes
from passkit.ast import Call, Load
from passkit.ast.stage import Fold, KernelAST, Level, Prefetch, Store
from passkit.ast.tidy import expressions
from passkit.ast.walk import walk
from passkit.values.size import Size
from tests.planned import plan
from tests.row_programs import SOFTMAX, VARIANCE


def ast_of(text: str) -> KernelAST:
    """Return the AST of the only kernel of a program."""
    (kernel,) = plan(text).attrs["kernel"].values()
    return kernel.ast  # type: ignore[no-any-return]


def statements(text: str) -> list[Any]:
    """Return all statements of all stages."""
    return [s for p in ast_of(text).phases for stage in p.stages for s in stage.body]


def test_a_stage_for_each_reduction() -> None:
    """A softmax of rows has two stages with reductions and one that stores, in one grid loop."""
    ast = ast_of(SOFTMAX.format("9, 300", 1))
    (phase,) = ast.phases
    reductions = [sum(isinstance(s, Fold) for s in stage.body) for stage in phase.stages]

    assert reductions == [1, 1, 0]
    assert phase.tile.level is Level.GRID and phase.parts[0].rows is not None
    assert [b.name for b in ast.params] == ["x0", "y0"]


def test_values_are_computed_once() -> None:
    """A value that is read three times is one local variable, and its operand one load."""
    body = statements("x: f32[900]; e = exp(x); return add(mul(e, e), e)")
    subexpressions = [x for s in body for e in expressions(s) for x in walk(e)]

    assert sum(isinstance(x, Call) for x in subexpressions) == 1
    assert sum(isinstance(x, Load) for x in subexpressions) == 1


def test_the_next_row_is_prefetched() -> None:
    """Long rows are prefetched in the stage after the first."""
    assert any(isinstance(s, Prefetch) for s in statements(SOFTMAX.format("9, 3000", 1)))
    assert not any(isinstance(s, Prefetch) for s in statements("x: f32[900]; return exp(x)"))


def test_a_value_staged_in_an_output_is_stored_once() -> None:
    """A value that a later stage loads from the buffer of an output is not stored twice."""
    text = SOFTMAX.format("9, 300", 1).replace("return div", "y = div") + "; return y, e"
    stores = [s.buffer for s in statements(text) if isinstance(s, Store)]

    assert sorted(stores) == ["y0", "y1"]


@pytest.mark.parametrize("extent", [MAX_LITERAL_EXTENT, MAX_LITERAL_EXTENT + 1])
def test_small_extents_are_literals(extent: int) -> None:
    """Extents up to 64 are literals, larger ones are arguments."""
    kernels = plan(f"x: f32[7, {extent}]; return transpose(neg(x))").attrs["kernel"]
    (kernel,) = kernels.values()

    assert (f" {extent}" in kernel.source) == (extent <= MAX_LITERAL_EXTENT)


def test_sizes_are_pooled() -> None:
    """An extent that occurs twice is one argument; arguments keep their order."""
    raw = ast_of("x: f32[n, 300]; return transpose(neg(x))")
    again, values = pool_sizes(raw)

    assert again.phases == raw.phases and values == ()
    assert str(argument(Size.symbol("n") + 1)).count("n") >= 1


def test_scratch_is_declared() -> None:
    """A value that is staged in scratch is a buffer of the AST, stored before it is read."""
    ast = ast_of(VARIANCE)
    names = [b.name for b in ast.scratch]
    body = statements(VARIANCE)
    first = next(k for k, s in enumerate(body) if isinstance(s, Store) and s.buffer in names)
    reads = [
        k
        for k, s in enumerate(body)
        for e in expressions(s)
        for x in walk(e)
        if isinstance(x, Load) and x.buffer in names
    ]

    assert names == ["s0"] and first < min(reads)


def test_a_known_count_is_a_known_divisor() -> None:
    """A mean of nine elements divides by a constant, whose reciprocal is a literal."""
    x = pk.var("x", ("n", 9))
    graph = pk.ApplyPasses(pk.Graph([pk.ops.reduce_mean(x, axis=1)]), ["Fusion", "CodeGen"])
    (kernel,) = graph.attrs["kernel"].values()

    assert "known_divisor<float> by0(9.0f" in kernel.source


def test_long_columns_prefetch_the_next_rows() -> None:
    """Reductions of chunks of long columns read a page of each row, and prefetch rows.

    Extremes combine eight rows in one iteration, unless these map to the same cache sets.
    """
    x = pk.var("x", (4096, 1024))
    texts = []
    for reduction in (pk.ops.reduce_sum, pk.ops.reduce_max):
        graph = pk.ApplyPasses(
            pk.Graph([reduction(x, axis=0)]), ["SplitReduce", "Fusion", "CodeGen"]
        )
        texts += [k.source for k in graph.attrs["kernel"].values() if "prefetch(" in k.source]
    sums, extremes = texts

    assert "% n0 * 1024" in sums and "_low += 4)" in sums
    assert "const int64_t i1_turns = n1 % 1024 != 0 ? 8 : 4;" in extremes
    assert "i1_low += i1_turns)" in extremes and "maximum(load(" in extremes
