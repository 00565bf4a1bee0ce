"""Stitched CUDA kernels of loop IR compute what their graphs mean, for parts of every kind."""

from __future__ import annotations

from collections.abc import Iterable

import passkit as pk
from passkit.schedule.block import BlockMap, PointMap, RowMap
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
