"""Lowering: the stages of a schedule as a kernel AST."""

from __future__ import annotations

from typing import Any

import pytest

import passkit as pk
from passkit.analysis.size_arguments import SMALL, argument, pool_sizes
from passkit.ast import Call, Load
from passkit.ast.stage import Fold, KernelAST, Level, Prefetch, Store
from passkit.ast.tidy import expressions
from passkit.ast.walk import walk
from passkit.values.size import Size
from tests.planned import plan
from tests.row_programs import SOFTMAX, VARIANCE


def ast_of(text: str) -> KernelAST:
    """The AST of the only kernel."""
    (kernel,) = plan(text).attrs["kernel"].values()
    return kernel.ast  # type: ignore[no-any-return]


def statements(text: str) -> list[Any]:
    """All statements of all stages."""
    return [s for p in ast_of(text).phases for stage in p.stages for s in stage.body]


def test_a_stage_for_each_fold() -> None:
    """A softmax of rows folds twice and stores once more, over one grid loop."""
    ast = ast_of(SOFTMAX.format("9, 300", 1))
    (phase,) = ast.phases
    folds = [sum(isinstance(s, Fold) for s in stage.body) for stage in phase.stages]

    assert folds == [1, 1, 0]
    assert phase.tile.level is Level.GRID and phase.parts[0].rows is not None
    assert [b.name for b in ast.params] == ["x0", "y0"]


def test_values_are_computed_once() -> None:
    """A value that is read three times is one local; what lanes do not change is one load."""
    body = statements("x: f32[900]; e = exp(x); return add(mul(e, e), e)")
    found = [x for s in body for e in expressions(s) for x in walk(e)]

    assert sum(isinstance(x, Call) for x in found) == 1
    assert sum(isinstance(x, Load) for x in found) == 1


def test_the_next_row_is_asked_for() -> None:
    """Long rows are prefetched in the stage after the first."""
    assert any(isinstance(s, Prefetch) for s in statements(SOFTMAX.format("9, 3000", 1)))
    assert not any(isinstance(s, Prefetch) for s in statements("x: f32[900]; return exp(x)"))


def test_a_result_that_is_kept_is_stored_once() -> None:
    """A value that a later stage reads back from a result's buffer is not stored twice."""
    text = SOFTMAX.format("9, 300", 1).replace("return div", "y = div") + "; return y, e"
    stores = [s.buffer for s in statements(text) if isinstance(s, Store)]

    assert sorted(stores) == ["y0", "y1"]


@pytest.mark.parametrize("extent", [SMALL, SMALL + 1])
def test_small_extents_are_written(extent: int) -> None:
    """Extents up to 64 stand in the text, larger ones are arguments."""
    kernels = plan(f"x: f32[7, {extent}]; return transpose(neg(x))").attrs["kernel"]
    (kernel,) = kernels.values()

    assert (f" {extent}" in kernel.source) == (extent <= SMALL)


def test_sizes_are_pooled() -> None:
    """An extent that occurs twice is one argument; arguments keep their order."""
    raw = ast_of("x: f32[n, 300]; return transpose(neg(x))")
    again, values = pool_sizes(raw)

    assert again.phases == raw.phases and values == ()
    assert str(argument(Size.symbol("n") + 1)).count("n") >= 1


def test_scratch_is_declared() -> None:
    """What a schedule keeps in scratch is a buffer of the AST, written before it is read."""
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
    """A mean over nine divides by a constant, whose reciprocal stands in the text."""
    x = pk.var("x", ("n", 9))
    graph = pk.ApplyPasses(pk.Graph([pk.ops.reduce_mean(x, axis=1)]), ["Fusion", "CodeGen"])
    (kernel,) = graph.attrs["kernel"].values()

    assert "known_divisor<float> by0(9.0f" in kernel.source


def test_long_columns_ask_for_the_next_rows() -> None:
    """Chunks of long columns go along a page of each row, and ask for rows before their turn.

    Extremes take eight rows at a time, but where these share their places in the first cache.
    """
    x = pk.var("x", (4096, 1024))
    texts = []
    for fold in (pk.ops.reduce_sum, pk.ops.reduce_max):
        graph = pk.ApplyPasses(pk.Graph([fold(x, axis=0)]), ["SplitReduce", "Fusion", "CodeGen"])
        texts += [k.source for k in graph.attrs["kernel"].values() if "prefetch(" in k.source]
    sums, extremes = texts

    assert "% n0 * 1024" in sums and "_low += 4)" in sums
    assert "const int64_t i1_turns = n1 % 1024 != 0 ? 8 : 4;" in extremes
    assert "i1_low += i1_turns)" in extremes and "maximum(load(" in extremes
