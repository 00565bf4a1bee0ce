"""Narrow rows and transposed blocks of all widths and sizes of elements, streamed and not."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.analysis.transposed_accesses import MAX_NARROW, narrow_tile_rows, transposed_tile
from passkit.program.planning import planned
from passkit.schedule.tiling import Composition
from passkit.target import cpu
from tests.teams import team_of
from tests.together import compiled

pytestmark = pytest.mark.usefixtures("quick_kernels")
DTYPES = ("u8", "f16", "f32", "f64", "bool")
PAST = evolve(cpu(), stream_bytes=0)
LENGTHS = (1, 15, 16, 40, 3000)
WIDTHS = [w for w in range(1, 34) if w <= MAX_NARROW + 1 or w % 8 in (7, 0, 1) or w % 5 == 0]
"""All narrow widths, and wider ones next to multiples of a vector, with some between."""


def moved(width: int, dtype: str, length: Any) -> pk.Graph:
    """Return a graph with transposes in both directions, and with narrow rows."""
    return pk.parse(
        f"""x: {dtype}[2, {width}, {length}]; y: {dtype}[2, {length}, {width}]; z: {dtype}[{width}]
        there = transpose(x, axes=(0, 2, 1)); back = transpose(y, axes=(0, 2, 1))
        return where(equal(there, y), y, there), where(equal(x, back), back, x), equal(y, z)"""
    )


def feeds_of(graph: pk.Graph, rng: Any, n: int) -> dict[str, Any]:
    """Return random integers for every input."""
    feeds = {}
    for node in graph.inputs:
        shape = tuple(d if isinstance(d, int) else n for d in node.entries[0].shape)
        feeds[node.name] = rng.integers(0, 250, shape).astype(node.entries[0].dtype.numpy)
    return feeds


def agree(graph: pk.Graph, exe: Any, feeds: dict[str, Any]) -> None:
    """Assert that compiled results have the bits of the interpreter's."""
    for actual, expected in zip(exe(feeds), pk.interpret(graph, feeds), strict=True):
        assert actual.dtype == expected.dtype and np.array_equal(actual, expected)


@pytest.mark.parametrize("part", range(3))
def test_every_width(part: int, rng: Any) -> None:
    """Rows of up to 33 elements of 1, 2, 4 and 8 bytes, in lengths that no vector divides."""
    cases = [
        (width, dtype)
        for width in WIDTHS
        for k, dtype in enumerate(DTYPES)
        if (width <= MAX_NARROW + 1 or k == width % len(DTYPES)) and (width + k) % 3 == part
    ]
    graphs = [moved(width, dtype, "n") for width, dtype in cases]
    for graph, exe in zip(graphs, compiled(graphs), strict=True):
        for n in LENGTHS:
            agree(graph, exe, feeds_of(graph, rng, n))


@pytest.mark.parametrize("part", range(2))
def test_every_width_past_the_caches(part: int, rng: Any) -> None:
    """The same if results are streamed: narrow rows are combined first."""
    cases = [(w, DTYPES[(w + k) % 4]) for w in WIDTHS for k in range(1 + (w <= MAX_NARROW))]
    graphs = [moved(width, dtype, 1043) for width, dtype in cases[part::2]]
    for graph, exe in zip(graphs, compiled(graphs, target=PAST), strict=True):
        assert "stream(" in exe.source
        agree(graph, exe, feeds_of(graph, rng, 0))


def test_what_is_narrow() -> None:
    """Narrow rows have linear accesses; gathers and accesses by cases are not among them."""

    def composition(text: str) -> Composition:
        (plan,) = planned(pk.parse(text), "SchedulePlan").attrs["schedule"].values()
        result: Composition = plan.composition
        return result

    narrow, thread = Composition.NARROW, Composition.THREAD
    assert composition("x: f32[n, 3]; y: f32[3]; return add(x, y)") is narrow
    assert composition("x: f32[3, n]; return neg(transpose(x))") is narrow
    assert composition("x: f32[n, 4]; return neg(slice(x, begin=(0, 0), size=(-1, 3)))") is narrow
    assert composition("x: f32[2, 3]; y: f32[3]; return add(x, y)") is thread
    assert composition("x: f32[n, 9]; y: f32[9]; return add(x, y)") is thread
    assert composition("x: f32[n, 3]; y: f32[n, 2]; return concat(x, y, axis=1)") is thread
    assert composition("x: f32[9, 3]; i: i64[n]; return gather(x, i, axis=0)") is thread
    assert composition("x: f32[n, 3]; return neg(transpose(x))") is Composition.BLOCK


def test_tiles_of_whole_vectors() -> None:
    """A tile has whole vectors of rows even if it has more points than it should."""
    tiles = (4096, 3), (4096, 8), (64, 3), (1, 8)

    assert [narrow_tile_rows(*t) for t in tiles] == [1360, 512, 16, 16]
    assert transposed_tile(9000, 3, 64) == (16, 3) and transposed_tile(50, 9000, 64) == (64, 256)


def test_narrow_rows_as_text() -> None:
    """In both directions each vector loads whole rows; there is no loop over blocks."""
    exe = pk.compile(pk.parse("x: f32[n, 3]; y: f32[3]; return mul(x, y)"))
    back = pk.compile(pk.parse("x: f32[n, 3]; return neg(transpose(x))"))

    assert "columns_apart<3>(" in exe.source and "columns_together<3>(" in exe.source
    assert "columns_apart<3>(" in back.source and "_low" not in back.source


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_equal_bits_wherever_a_row_is(threads: int, rng: Any) -> None:
    """An element has the same bits in any place of a vector, and with any number of threads."""
    graph = pk.parse("x: f32[n, 3]; y: f32[3]; return div(exp(x), y)")
    exe = pk.compile(graph, target=evolve(cpu(), parallel=0.0))
    x, y = rng.normal(size=(9001, 3)).astype("f4"), rng.normal(size=3).astype("f4")
    with team_of(1):
        (whole,) = exe(x=x, y=y)
    with team_of(threads):
        assert exe(x=x, y=y)[0].tobytes() == whole.tobytes()

    for begin, end in ((1, 9001), (7, 8), (5, 1500), (4096, 4111)):
        (part,) = exe(x=x[begin:end], y=y)
        assert part.tobytes() == whole[begin:end].tobytes()


@pytest.mark.parametrize("dtype", [*DTYPES, "bf16", "i64"])
def test_wide_blocks(dtype: str, rng: Any) -> None:
    """Blocks are complete or cut off at any edge; some inputs are read by some elements only."""
    wide = pk.parse(
        f"""x: {dtype}[2, n, m]; y: {dtype}[2, m, n]; z: {dtype}[2, n, m]
        a = transpose(x, axes=(0, 2, 1)); b = transpose(z, axes=(0, 2, 1))
        return where(equal(a, y), b, y), a"""
    )
    near = pk.parse(
        f"x: {dtype}[n, 24]; y: {dtype}[24, n]; t = transpose(x); return where(equal(t, y), y, t)"
    )
    back = pk.parse(f"x: {dtype}[40, n]; y: {dtype}[9, n]; return transpose(x), transpose(y)")
    graphs, widths = (wide, near, back), (("256",), ("256",), ("64", "16"))
    for graph, exe, expected in zip(graphs, compiled(graphs), widths, strict=True):
        assert set(re.findall(r"turn_rows<(\d+)>", exe.source)) == set(expected)
        assert "turn(" not in exe.source
        for n, m in ((1, 1), (15, 70), (64, 256), (65, 257), (300, 64), (257, 130), (0, 5)):
            sizes = {"n": n, "m": m}
            feeds = {}
            for e in graph.inputs:
                shape = [sizes.get(str(d), d) for d in e.entries[0].shape]
                feeds[e.name] = rng.integers(0, 2, shape).astype(e.entries[0].dtype.numpy)
            agree(graph, exe, feeds)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
def test_wide_blocks_have_whole_squares(dtype: str, count: int, rng: Any) -> None:
    """Blocks of any number of inputs have a multiple of 16 rows, as whole squares are stored."""
    names = "xyzw"[:count]
    inputs = "; ".join(f"{name}: {dtype}[n, 24]" for name in names)
    total = "u"
    for name in names:
        total = f"maximum({total}, transpose({name}))"
    graph = pk.parse(f"{inputs}; u: {dtype}[24, n]; return {total}")
    exe = pk.compile(graph)

    blocks = re.findall(r"_rows_\d+\[(\d+) \* \d+\]", exe.source)
    assert len(blocks) == count
    assert all(int(rows) % 16 == 0 for rows in blocks)
    feeds = {name: rng.standard_normal((85, 24)) for name in names}
    feeds["u"] = rng.standard_normal((24, 85))
    cast = {k: v.astype(graph.inputs[0].entries[0].dtype.numpy) for k, v in feeds.items()}
    agree(graph, exe, cast)


def test_where_blocks_are_wide() -> None:
    """Tiles are not wide if accesses are contiguous, or results are streamed."""
    alone = pk.compile(pk.parse("x: f32[n, 24]; return neg(transpose(x))")).source
    beside = "x: f32[n, 24]; y: f32[24, n]; return add(transpose(x), y)"
    past = pk.compile(pk.parse(beside.replace("[n", "[9000").replace(" n]", " 9000]")), target=PAST)

    assert "turn(" in alone and "turn_rows<" not in alone
    assert "turn_rows<256>" in pk.compile(pk.parse(beside)).source
    assert "stream(" in past.source and "turn_rows<" not in past.source


def test_divisors_inside_the_lanes(rng: Any) -> None:
    """Divisors that a whole vector shares, and divisors of each iteration of an inner loop."""
    for text in (
        "x: f32[n, 3]; y: f32[3]; return div(x, y)",
        "x: f32[n, 3]; y: f32[3]; return div(x, exp(mul(y, 0)))",
        "x: f32[n, 40]; y: f32[40, 1]; return div(transpose(x), y), div(transpose(x), add(y, 1))",
    ):
        graph = pk.parse(text)
        feeds = feeds_of(graph, rng, 77)
        agree(graph, pk.compile(graph), {k: v + 1 for k, v in feeds.items()})


def test_rows_are_counted(rng: Any) -> None:
    """Coordinates of rows are counted across all bounds, wherever a tile begins."""
    text = """x: f32[5, 13, 9, 700]
    return mul(slice(x, begin=(0, 1, 1, 0), size=(-1, 6, 4, -1), step=(1, 2, 2, 1)), 2)"""
    graph = pk.parse(text)
    exe = pk.compile(graph)
    divided = [line for line in exe.source.splitlines() if " % " in line or " / " in line]

    assert "if (++" in exe.source and all(" = tile " in line for line in divided)
    agree(graph, exe, feeds_of(graph, rng, 0))


def test_rows_of_a_transposed_input_are_divided_as_indices_are(rng: np.random.Generator) -> None:
    """Blocks whose outer index is two axes of the input have a quotient and a remainder."""
    x = pk.ops.reshape(pk.var("x", (5, 100)), shape=(-1,))
    flat = pk.ops.slice(x, begin=(0,), size=(72,))
    y = pk.ops.batch_to_space(pk.ops.reshape(flat, shape=(6, 2, 3, 2)), block_shape=(2, 3))
    part = pk.ops.slice(pk.ops.reshape(y, shape=(-1,)), begin=(0,), size=(24,))
    graph = pk.Graph([pk.ops.reshape(part, shape=(4, 3, 2))])
    feeds = {"x": rng.normal(size=(5, 100)).astype(np.float32)}
    exe = pk.compile(graph)

    assert "cut_divide" not in exe.source
    np.testing.assert_array_equal(exe(feeds)[0], pk.interpret(graph, feeds)[0])


def test_transposed_rows_inside_another_loop(rng: np.random.Generator) -> None:
    """Blocks of part of the rows of an input: two axes are reduced, and then read again."""
    graph = pk.parse(
        """x: f32[3, 2, 4, 5]; t = transpose(reverse(x, axis=1), axes=(0, 1, 3, 2))
        m = reduce_max(t, axis=(1, 2), keepdims=true); return equal(t, m)"""
    )
    exe = pk.compile(graph, target=evolve(cpu(), tile=64, stream_bytes=0))

    assert "columns_apart<5>" in exe.source
    agree(graph, exe, feeds_of(graph, rng, 0))
