"""Stitched CUDA kernels of loop IR compute what their graphs mean, for parts of every kind."""

from __future__ import annotations

from collections.abc import Iterable

import passkit as pk
from passkit.schedule.block import BlockMap, PointMap, ProductMap, RowMap
from tests.emulator.test_kernels import failures_of
from tests.planned import plan


def maps_of_parts(texts: Iterable[str]) -> list[list[type[BlockMap]]]:
    """Return the kinds of the maps of the parts of graphs, each of which is one kernel.

    The kernels are executed by the emulator, which finds races too; results that differ from the
    interpreter's fail, and so does a kernel that is not made from loop IR.
    """
    jobs = []
    for text in texts:
        graph = pk.parse(text)
        names = [[graph.names[n] for n in graph.nodes if n.op is not None]]
        jobs.append((text, graph, {"keep_together": names}, ({},)))
    assert not failures_of(jobs)
    kinds = []
    for text, graph, options, _ in jobs:
        (schedule,) = plan(graph, target="cuda", **options).attrs["schedule"].values()
        assert schedule.block is not None, f"{schedule.no_nest}: {text}"
        kinds.append([type(part) for part in schedule.block.parts])
    return kinds


def test_serial_loops_of_several_parts() -> None:
    """Each part goes through its rows, or its points, in serial loops over axes of one name."""
    rows = (
        "x: f32[3, 6, 40]; a = sub(x, reduce_sum(x, axis=(0, 2), keepdims=true));"
        "b = reshape(a, (3, 6, 2, 20));"
        "return mul(b, reduce_sum(mul(b, b), axis=(0, 3), keepdims=true))"
    )
    points = (
        "x: f32[19, 3]; d = sub(expand_dims(x, axis=1), expand_dims(x, axis=0));"
        "r = add(reduce_sum(mul(d, d), axis=2, keepdims=true), 0.5);"
        "y = reduce_sum(mul(d, mul(rsqrt(r), r)), axis=1);"
        "e = sub(expand_dims(y, axis=1), expand_dims(y, axis=0));"
        "s = add(reduce_sum(mul(e, e), axis=2, keepdims=true), 0.5);"
        "return reduce_sum(mul(e, mul(rsqrt(s), s)), axis=1)"
    )

    # Tiles have a part of each i0 of the sum, where sums of rows are taken over all i0.
    tiles = (
        "x: f32[2, 6, 5]; y: f32[31, 3000, 16]; s = reduce_sum(x, axis=(0, 2));"
        "u = reshape(pad(s, pad_width=(0, 371994)), (31, 3000, 4));"
        "return add(slice(y, begin=(0, 0, 8), size=(31, 3000, 4)), u)"
    )

    of_rows, of_points, of_tiles = maps_of_parts([rows, points, tiles])

    assert of_rows == of_tiles == [RowMap, RowMap]
    assert of_points == [RowMap, PointMap, RowMap, PointMap]


OF_COLUMNS = (
    (
        "x: f32[2, 33, 33]; a = sub(x, reduce_max(x, axis=1, keepdims=true));"
        "return tanh(matmul(a, a)), a"
    ),
    "x: f32[5, 17]; w: f32[17, 3]; a = sub(x, reduce_mean(x, axis=0)); return tanh(matmul(a, w))",
)
"""Products of what threads compute column by column."""
OF_ANY_ROW = (
    "x: f32[12, 16]; w: f32[16, 24]; p = matmul(tanh(x), w); return div(p, reduce_sum(abs(p))), p",
    (
        "x: f32[33, 5, 7]; w: f32[7, 8]; v: f32[8, 3]; p = tanh(matmul(x, w));"
        "t = transpose(p, axes=(0, 2, 1)); return tanh(matmul(p, v)), reduce_max(t, axis=1)"
    ),
    (
        "x: f32[24, 12]; w: f32[12, 25]; p = matmul(x, w); b = concat(tanh(p), neg(p), axis=0);"
        "return b, reduce_sum(b, axis=1)"
    ),
    (
        "x: f32[3, 3, 9]; w: f32[3, 9, 3]; v: f32[3, 3, 5]; p = matmul(x, w);"
        "m = reduce_max(reshape(p, (3, 9)), axis=1, keepdims=true);"
        "q = sub(reshape(p, (3, 9)), m); return tanh(matmul(reshape(q, (3, 3, 3)), v))"
    ),
)
"""Products of which other parts read, or write, elements of any row."""


def test_products_of_arrays_without_room() -> None:
    """A product reads copies of such arrays, and stores the elements that there are."""
    columns, others = maps_of_parts(OF_COLUMNS), maps_of_parts(OF_ANY_ROW)

    assert all(PointMap in kinds and ProductMap in kinds for kinds in columns)
    assert all(ProductMap in kinds for kinds in others)


def test_data_says_which_element_is_read() -> None:
    """Rows of a value in shared memory are gathered, behind a barrier of the block."""
    texts = (
        "x: f32[5, 6]; i: i64[9]; s = softmax(x); return gather(s, i, axis=0), s",
        "x: f32[40, 12]; i: i64[40, 3]; s = softmax(x, axis=0); return tanh(take(s, i, axis=0))",
    )

    assert all(len(kinds) > 1 for kinds in maps_of_parts(texts))


def test_values_of_columns_are_computed_again() -> None:
    """A thread that goes down a column has no room for the powers of its softmax."""
    texts = (
        "x: f16[5, 8, 6]; s = softmax(x); return softmax(s, axis=1)",
        (
            "x: f32[5, 7]; e = log(add(abs(x), 0.5)); m = reduce_max(abs(x), axis=0);"
            "return softmax(add(div(x, add(m, 1)), e))"
        ),
    )

    assert all(PointMap in kinds for kinds in maps_of_parts(texts))


def test_arrays_of_one_place_are_taken_apart() -> None:
    """A value whose memory the plan gives to another one has its own where threads would meet."""
    text = (
        "x: f32[6, 6]; w: f32[6, 1]; m = mul(sigmoid(x), w);"
        "s = reduce_sum(slice(m, begin=(0, 1), size=(6, 5)), axis=0); u = pad(s, pad_width=(6, 0));"
        "v = pad(reshape(slice(m, begin=(0, 0), size=(6, 1)), (6,)), pad_width=(0, 5));"
        "return reduce_sum(m, axis=1), reshape(add(u, v), (1, 11, 1))"
    )

    (kinds,) = maps_of_parts([text])

    assert PointMap in kinds


IN_PIECES = (
    (
        "q: f32[2, 40, 8]; k: f32[2, 1000, 8]; v: f32[2, 1000, 6];"
        "return matmul(softmax(matmul(q, k, transpose_b=true)), v)"
    ),
    (
        "q: f32[3, 9, 30]; k: f32[3, 30, 512]; v: f32[3, 512, 31];"
        "return matmul(softmax(matmul(q, k)), v)"
    ),
    "x: f32[20, 515]; w: f32[515, 128]; b: f32[128]; return tanh(add(matmul(x, w), b))",
    (
        "x: f32[515, 20]; w: f32[70, 515];"
        "return tanh(matmul(x, w, transpose_a=true, transpose_b=true))"
    ),
    (
        "x: f32[12, 130]; v: f32[130, 64]; w: f32[130, 64]; a = softmax(x);"
        "m = sub(a, reduce_max(a, axis=0)); return tanh(matmul(m, v)), matmul(a, w), a"
    ),
)
"""Products whose operands have no room in shared memory."""


def test_products_copy_operands_in_pieces() -> None:
    """Some steps of both operands are copied at a time, those that are left over at last."""
    assert all(ProductMap in kinds for kinds in maps_of_parts(IN_PIECES))
    for text in IN_PIECES:
        graph = pk.parse(text)
        names = [[graph.names[n] for n in graph.nodes if n.op is not None]]
        (schedule,) = plan(graph, target="cuda", keep_together=names).attrs["schedule"].values()
        products = [own for own in schedule.block.parts if isinstance(own, ProductMap)]
        assert any(own.chunk is not None for own in products), text


def test_few_rows_of_many_elements() -> None:
    """An array has no room for the rows of threads that have none, where that is too much."""
    text = (
        "x: f64[500]; m = tanh(sub(x, reduce_max(x))); a = slice(m, begin=(0,), size=(6,));"
        "return reduce_sum(mul(a, slice(m, begin=(300,), size=(6,)))), m"
    )

    assert maps_of_parts([text]) == [[RowMap, RowMap]]


def test_long_rows_are_computed_again() -> None:
    """A warp goes through a row that its registers have no room for, once for each stage."""
    texts = (
        (
            "x: f64[40, 31]; s = sub(x, reduce_max(x, axis=1, keepdims=true));"
            "return softmax(reshape(s, (1240,)))"
        ),
        (
            "x: f32[2, 12]; w: f32[12, 1501]; p = matmul(x, w);"
            "return softmax(p), tanh(sub(p, reduce_max(p, axis=0, keepdims=true)))"
        ),
        (
            "x: f32[1500]; s = softmax(x);"
            "return reduce_sum(reshape(s, (1, 1500)), axis=1), softmax(reshape(s, (30, 50)))"
        ),
    )

    assert all(RowMap in kinds for kinds in maps_of_parts(texts))
    for text in texts:
        graph = pk.parse(text)
        names = [[graph.names[n] for n in graph.nodes if n.op is not None]]
        (schedule,) = plan(graph, target="cuda", keep_together=names).attrs["schedule"].values()
        assert any(isinstance(own, RowMap) and own.is_serial for own in schedule.block.parts)
