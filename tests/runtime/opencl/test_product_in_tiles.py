"""Kernels on a CPU compute products of a matrix by a vector in their tiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.ast.expr import Binary, Load, const
from passkit.ast.stage import Let
from passkit.runtime.opencl import program
from passkit.runtime.opencl.device import device
from passkit.runtime.opencl.product_in_tiles import rows_of_tiles
from passkit.values.dtype import int64
from tests.opencl import require_pyopencl, target_with_block

require_pyopencl()
pytestmark = pytest.mark.opencl
o = pk.ops
ROWS = 8192 * 8 * 4 + 17
"""Enough for a few cores, and no multiple of a tile."""


def matvec(x: Any, v: Any) -> Any:
    """Return the product of a matrix and a vector."""
    return o.matvec(x, v)


def terms(x: Any, v: Any, y: Any) -> list[Any]:
    """Return sums over all rows, a result for each row, and the product's gradient."""
    return terms_of(matvec(x, v), y, x)


def terms_of(z: Any, y: Any, x: Any) -> list[Any]:
    """Return what `terms` returns, for a product ``z``."""
    d = o.tanh(z - y)
    return [o.reduce_sum(d * d), d, o.reduce_sum(z), o.vecmat(d, x)]


def compiled(build: Callable[..., Any], *arrays: Any) -> tuple[Any, dict[str, Any]]:
    """Compile a function of entries for groups of one item; return it with its feeds."""
    names = "abcdefg"[: len(arrays)]
    inputs = [pk.var(n, a.shape, str(a.dtype)) for n, a in zip(names, arrays, strict=True)]
    graph = pk.Graph(build(*inputs))
    read = {node.name for node in graph.inputs}
    feeds = {name: a for name, a in zip(names, arrays, strict=True) if name in read}
    return pk.compile(graph, target=target_with_block(1)), feeds


def has_launch(executable: Any, feeds: dict[str, Any]) -> bool:
    """Return whether the product of inputs a and b has a launch of its own in a first call."""
    labels: list[str] = []
    usual = program.OpenClBoundProgram._enqueue

    def enqueue(self: Any, launches: Any, *args: Any) -> Any:
        labels.extend(launch.label for launch in launches)
        return usual(self, launches, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(program.OpenClBoundProgram, "_enqueue", enqueue)
        executable(feeds)
    assert any(label.startswith("kernel") for label in labels)
    return any(f"x ({len(feeds['b'])}, 1)" in label for label in labels)


@pytest.fixture(autouse=True)
def _cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let any CPU have few enough cores."""
    if not device().limits.is_cpu:
        pytest.skip("groups of one item are for CPUs")
    monkeypatch.setattr(program, "TILES_PER_UNIT", 8 / device().limits.units)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("width", [1, 7, 20, 41])
def test_results_are_those_of_separate_launches(width: int, dtype: str, rng: Any) -> None:
    """They have the same bits."""
    arrays = [rng.standard_normal(s).astype(dtype) for s in ((ROWS, width), (width,), (ROWS,))]
    x, v, y = arrays
    executable, feeds = compiled(terms, *arrays)
    assert has_launch(executable, feeds) == (width == 1)  # a result may lie over that matrix
    together = executable(feeds)
    run, feeds = compiled(lambda x, v: [matvec(x, v)], x, v)
    (z,) = run(feeds)
    run, feeds = compiled(lambda z, y, x: terms_of(z, y, x), z, y, x)
    for result, separate in zip(together, run(feeds), strict=True):
        assert result.tobytes() == separate.tobytes()
    x, v, y = (a.astype(np.float64) for a in arrays)
    d = np.tanh(x @ v - y)
    tolerance = 1e-3 if dtype == "float32" else 1e-11
    for result, expected in zip(together, (np.sum(d * d), d, np.sum(x @ v), d @ x), strict=True):
        scale = np.abs(expected).max() + np.sqrt(ROWS)
        np.testing.assert_allclose(result, expected, rtol=0, atol=tolerance * scale)


def test_kernels_that_read_other_rows_have_products_of_their_own(rng: Any) -> None:
    """Reversed, shifted and repeated rows, few rows, and two products in one kernel are right."""
    x, w = rng.standard_normal((2, ROWS, 5))
    v, u = rng.standard_normal((2, 5))
    a, b = x @ v, w @ u

    def total(z: Any) -> Any:
        return [o.reduce_sum(o.tanh(z)), o.tanh(z)]

    cases: list[tuple[Callable[..., Any], Any]] = [
        (lambda x, v, w, u: total(o.flip(matvec(x, v), axis=(0,))), a[::-1]),
        (lambda x, v, w, u: total(matvec(x, v)[1:] - matvec(x, v)[:-1]), a[1:] - a[:-1]),
        (lambda x, v, w, u: total(matvec(x, v) + o.flip(matvec(x, v), axis=(0,))), a + a[::-1]),
        (lambda x, v, w, u: total(matvec(x, v) * matvec(w, u)), a * b),
        (lambda x, v, w, u: total(matvec(x[:300], v)), a[:300]),
        (lambda x, v, w, u: total(matvec(x, v) * o.reduce_sum(matvec(x, v))), a * a.sum()),
    ]
    for build, z in cases:
        executable, feeds = compiled(build, x, v, w, u)
        value, rows = executable(feeds)
        np.testing.assert_allclose(rows, np.tanh(z), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(value, np.tanh(z).sum(), rtol=1e-9, atol=1e-6)


def test_results_that_may_lie_over_an_operand_keep_the_launch(rng: Any) -> None:
    """A result of as many bytes as the matrix may be stored over it before all tiles are done."""

    def build(x: Any, v: Any) -> list[Any]:
        z = matvec(x, v)
        return [o.reduce_sum(z * z), o.cast(z, dtype="float64") * 3]

    arrays = [rng.standard_normal(s).astype(np.float32) for s in ((ROWS, 2), (2,))]
    executable, feeds = compiled(build, *arrays)
    assert has_launch(executable, feeds)
    expected = 3 * (arrays[0] @ arrays[1])
    np.testing.assert_allclose(executable(feeds)[1], expected, rtol=1e-4, atol=1e-4)


def test_kernels_of_another_form_are_refused(rng: Any) -> None:
    """A changed index, bound or local of a tile is noticed."""
    arrays = [rng.standard_normal(s) for s in ((ROWS, 5), (5,), (ROWS,))]
    executable, _ = compiled(terms, *arrays)
    read_in_ranges = [
        (k.ast, p.name)
        for k in executable.kernels
        for p in k.ast.params
        if rows_of_tiles(k.ast, p.name)
    ]
    ast, name = read_in_ranges[0]
    (phase,) = ast.phases
    (part,) = phase.parts
    first = part.stages[0]
    begin, end = part.row_lets

    def with_part(**changes: Any) -> Any:
        return evolve(ast, phases=(evolve(phase, parts=(evolve(part, **changes),)),))

    def shifted(x: Any) -> Any:
        if isinstance(x, Load) and x.buffer == name:
            return evolve(x, index=Binary("+", x.index, const(1, int64), int64))
        return evolve(x, a=shifted(x.a), b=shifted(x.b)) if isinstance(x, Binary) else x

    body = tuple(evolve(s, value=shifted(s.value)) if isinstance(s, Let) else s for s in first.body)
    assert body != first.body
    half = evolve(begin, value=evolve(begin.value, b=const(4096, int64)))
    longer = evolve(part.rows, stop=Binary("+", part.rows.stop, const(1, int64), int64))
    wrong = [
        with_part(stages=(evolve(first, body=body), *part.stages[1:])),
        with_part(row_lets=(half, end)),
        with_part(row_lets=(begin, evolve(end, value=end.value.b))),
        with_part(rows=longer),
        with_part(rows=None),
        with_part(stages=(evolve(first, loops=(evolve(first.loops[0], start=const(0, int64)),)),)),
        evolve(ast, phases=(phase, phase)),
        evolve(ast, phases=(evolve(phase, tile=evolve(phase.tile, start=const(1, int64))),)),
    ]
    assert rows_of_tiles(ast, name) is not None
    assert [rows_of_tiles(a, name) for a in wrong] == [None] * len(wrong)
    assert rows_of_tiles(ast, "none") is None
