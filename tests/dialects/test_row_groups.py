"""Short rows in groups of two have the bits of single rows, for all reductions and accesses."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit import ast
from passkit.ast import Expr, Load, Var
from passkit.ast.stage import (
    Buffer,
    Fold,
    KernelAST,
    Let,
    Level,
    Loop,
    Part,
    Phase,
    Place,
    Running,
    Stage,
    Statement,
    Store,
)
from passkit.dialects import CXX
from passkit.target import cpu
from passkit.transforms.printing import print_kernel
from passkit.values import dtype as dt
from tests.planned import prebuild

SOFTMAX = "e = exp(sub(x, reduce_max(x, axis=1, keepdims=true))); "
SOFTMAX += "return div(e, reduce_sum(e, axis=1, keepdims=true))"
TEXTS = {
    "softmax 8": f"x: f32[n, 8]; {SOFTMAX}",
    "softmax 24": f"x: f32[n, 24]; {SOFTMAX}",
    "softmax 40": f"x: f32[n, 40]; {SOFTMAX}",
    "softmax 56": f"x: f32[n, 56]; {SOFTMAX}",
    "softmax f16": "x: f16[n, 40]; return softmax(x)",
    "norm": "x: f32[n, 40]; g: f32[40]; b: f32[40]; return layer_norm(x, g, b)",
    "own numbers": "x: f32[n, 24]; r: f32[n, 1]; e = mul(x, r); s = reduce_sum(e, axis=1, "
    "keepdims=true); return div(e, s), s, div(r, s)",
    "wide rows": "x: f32[n, 64]; y = slice(x, begin=(0, 8), size=(-1, 40)); "
    "return div(y, reduce_max(y, axis=1, keepdims=true))",
    "arms": "x: f32[n, 40]; g: f32[40]; s = reduce_max(x, axis=1, keepdims=true); "
    "return where(less(x, g), div(x, s), mul(s, g)), s",
    "integers": "x: i32[n, 40]; s = reduce_max(x, axis=1, keepdims=true); return sub(x, s), s",
}
GRAPHS = {name: pk.parse(text) for name, text in TEXTS.items()}


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    """Compile all kernels at once."""
    prebuild(GRAPHS.values())


def feeds_of(exe: pk.Executable, rows: int, rng: Any) -> dict[str, Any]:
    """Return random inputs of so many rows."""
    shapes = (
        (i.name, [d if isinstance(d, int) else rows for d in i.shape], i.dtype.numpy)
        for i in exe.inputs
    )
    return {n: (rng.standard_normal(shape) * 5).astype(kind) for n, shape, kind in shapes}


def part_of(feeds: dict[str, Any], first: int, last: int, rows: int) -> dict[str, Any]:
    """Return the inputs of some of the rows."""
    return {n: x[first:last].copy() if len(x) == rows else x for n, x in feeds.items()}


@pytest.mark.parametrize("name", GRAPHS)
def test_pairs_have_the_bits_of_single_rows(name: str, rng: Any) -> None:
    """A row has equal bits by itself, as either row of a pair, and as the last one."""
    exe = pk.compile(GRAPHS[name])
    assert "pairs_of_rows<" in exe.source and "for (int64_t i0" not in exe.source
    feeds = feeds_of(exe, 35, rng)
    whole = exe(feeds)

    for first, last in [(k, k + 1) for k in range(35)] + [(1, 34), (2, 19), (3, 19), (0, 32)]:
        some = exe(part_of(feeds, first, last, 35))
        for got, want in zip(some, whole, strict=True):
            assert got.tobytes() == want[first:last].tobytes(), (first, last)


@pytest.mark.parametrize("name", GRAPHS)
def test_pairs_mean_what_the_interpreter_says(name: str, rng: Any) -> None:
    """The results agree with NumPy for each operator."""
    exe = pk.compile(GRAPHS[name])
    feeds = feeds_of(exe, 21, rng)

    tolerance = 2e-3 if "f16" in name else 2e-6
    for got, want in zip(exe(feeds), pk.interpret(GRAPHS[name], feeds), strict=True):
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("length", [8, 24, 40, 56])
def test_nan_and_zeros_stay_in_their_row(length: int) -> None:
    """A NaN anywhere in either row, infinities and signed zeros give the bits of single rows."""
    exe = pk.compile(GRAPHS[f"softmax {length}"])
    plain = np.linspace(-3, 3, length, dtype=np.float32)
    for value in (np.nan, np.inf, -np.inf, -0.0):
        x = np.tile(plain, (2 * length + 1, 1))
        x[2 * np.arange(length) + np.arange(length) % 2, np.arange(length)] = value
        with np.errstate(invalid="ignore"):
            got, alone = exe(x=x)[0], np.concatenate([exe(x=row[None])[0] for row in x])
        assert got.tobytes() == alone.tobytes()
        assert np.isnan(got).any(axis=1).sum() == (0 if value in (-np.inf, -0.0) else length)


def test_a_zero_keeps_its_sign() -> None:
    """The maximum of zeros has the sign that it has in a single row."""
    graph = pk.parse("x: f32[n, 24]; return reduce_max(x, axis=1)")
    exe, rng = pk.compile(graph), np.random.default_rng(5)
    x = np.where(rng.random((64, 24)) < 0.5, np.float32(-0.0), np.float32(0))

    alone = np.concatenate([exe(x=row[None])[0] for row in x])
    assert exe(x=x)[0].tobytes() == alone.tobytes()


@pytest.mark.parametrize("rows", [64, 70, 71])
def test_known_rows(rows: int, rng: Any) -> None:
    """Tiles of a known even number of rows have no loop for a single row, and equal bits."""
    text = TEXTS["softmax 40"]
    exe = pk.compile(pk.parse(text.replace("n,", f"{rows},")))
    x = rng.standard_normal((rows, 40)).astype(np.float32)

    assert ("pairs_of_rows<40, true>(low, 16, " in exe.source) == (rows == 64)
    assert exe(x=x)[0].tobytes() == pk.compile(GRAPHS["softmax 40"])(x=x)[0].tobytes()


def test_results_of_pairs_are_streamed_where_they_lie() -> None:
    """Two rows are whole cache lines, so that outputs are not collected in scratch."""
    target = evolve(cpu(), stream_bytes=0)
    text = TEXTS["softmax 40"]
    (even,) = pk.compile(pk.parse(text.replace("n,", "200000,")), target=target).kernels
    (odd,) = pk.compile(pk.parse(text.replace("n, 40", "200000, 44")), target=target).kernels

    assert re.search(r"stream\(y0 \+ i0 \* 40 \+ i1, ", even.source)
    assert re.search(r"stream\(y0 \+ point, ", odd.source)


ROW, LANE = Var("i", dt.int64), Var("j", dt.int64)
LOW, HIGH = Var("low", dt.int64), Var("high", dt.int64)
ROWS = Loop(ROW, LOW, HIGH, Level.WARP)
PLACE = ROW * 24 + LANE
OFFSET = ast.Binary("-", ROW, LOW, dt.int64)


def load(index: Expr, buffer: str = "x0") -> Load:
    """Return the load of a float32."""
    return Load(buffer, index, dt.float32)


def printed(*body: Statement, lanes: int = 24, after: tuple[Store, ...] = ()) -> str:
    """Return the text of a stage over rows of so many elements."""
    lane = Loop(LANE, ast.const(0, dt.int64), ast.const(lanes, dt.int64), Level.CTA)
    stage = Stage("s", (ROWS, lane), body, after=after)
    tile = Loop(Var("tile", dt.int64), ast.const(0, dt.int64), Var("n0", dt.int64), Level.GRID)
    low = Let(LOW, tile.var * 16)
    part = Part((low, Let(HIGH, LOW + 16)), None, (), (stage,))
    params = [Buffer("x0", dt.float32, Place.GLOBAL, 960)]
    params += [Buffer("y0", dt.float32, Place.GLOBAL, 960, True)]
    scratch = (Buffer("s0", dt.float32, Place.SHARED, 16),)
    ast_ = KernelAST(tuple(params), ("n0",), scratch, (Phase(tile, (part,)),))
    return print_kernel(ast_, "f", CXX)


V = Var("v", dt.float32)
SUM = Fold(V, load(PLACE), ast.const(0.0, dt.float32), ast.left(dt.float32) + ast.right(dt.float32))
COPY = Store("y0", PLACE, load(PLACE))


def test_what_comes_in_pairs() -> None:
    """Evenly spaced rows, values of rows, and reductions that finish in groups of sixteen."""
    own = Let(V, load(ROW))

    assert "pairs_of_rows<24>(low, high - low, " in printed(COPY)
    assert "rows.values(x0 + i)" in printed(own, Store("y0", PLACE, load(PLACE) * V))
    assert "store_apart(y0 + i * 48 + j, 48, " in printed(Store("y0", ROW * 48 + LANE, load(PLACE)))
    assert "load_apart(x0 + j, 0, m, k)" in printed(Store("y0", PLACE, load(LANE)))
    assert "v_rows.begin(rows)" in printed(SUM, after=(Store("s0", OFFSET, V),))


@pytest.mark.parametrize(
    "body",
    [
        [Store("y0", PLACE, ast.cast(LANE, dt.float32))],
        [Store("y0", PLACE, ast.cast(ROW, dt.float32))],
        [Store("y0", ROW * 48 + LANE * 2, load(PLACE))],
        [Store("y0", PLACE, load(ROW * 48 + LANE * 2))],
        [Store("y0", PLACE, load(ROW % 4 * 24 + LANE))],
        [Let(V, load(ROW * 2)), Store("y0", PLACE, load(PLACE) * V)],
        [Let(V, load(ROW) * 2.0), Store("y0", PLACE, load(PLACE) * V)],
        [SUM],
        [evolve(SUM, buffer="y0", index=PLACE)],
        [
            Running(V, load(PLACE), SUM.identity, SUM.combine),
            Store("y0", PLACE, V),
        ],
    ],
    ids=[
        "lane",
        "row",
        "every other",
        "of every other",
        "turning back",
        "rows apart",
        "computed",
        "own result",
        "own total",
        "scan",
    ],
)
def test_stages_over_single_rows(body: list[Statement]) -> None:
    """Loaded indices, uneven accesses, row values and scans need a loop over single rows."""
    assert "for (int64_t i = low;" in printed(*body)


@pytest.mark.parametrize("lanes", [7, 16, 20, 32, 72])
def test_lengths_of_single_rows(lanes: int) -> None:
    """Two rows form whole vectors only if a row has 8 elements beside vectors, and is short."""
    assert "for (int64_t i = low;" in printed(COPY, lanes=lanes)


STRIDED = """x: f16[4, 40]; s = slice(x, begin=(0, 0), size=(2, -1), step=(2, 1))
return reduce_prod(s, axis=-1)"""


@pytest.mark.parametrize(
    "text",
    [
        STRIDED,
        "x: bf16[32, 40]; g: bf16[40]; return reduce_sum(mul(x, g), axis=1)",
        "x: f16[32, 40]; g: f16[1, 40]; return mul(softmax(x, axis=1), g)",
    ],
)
def test_short_floats_that_do_not_follow_each_other(text: str) -> None:
    """Vectors of 16-bit floats do not consist of two rows: these are loaded one by one."""
    graph, rng = pk.parse(text), np.random.default_rng(0)
    feeds = {
        graph.names[n]: rng.uniform(0.5, 1.5, n.entries[0].shape).astype(n.entries[0].dtype.numpy)
        for n in graph.inputs
    }
    (actual,), (expected,) = pk.compile(graph)(feeds), pk.interpret(graph, feeds)
    exact = actual.astype(np.float64), expected.astype(np.float64)

    np.testing.assert_allclose(*exact, rtol=2e-2, atol=1e-4)
