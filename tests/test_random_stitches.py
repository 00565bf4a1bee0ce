"""Random stitched groups have equal results interpreted, block by block and compiled."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from tests.planned import target as target_of
from tests.random_stitches import random_stitch
from tests.scratch import dropped_arrays, rows_without_padding
from tests.together import prebuilt

pytestmark = pytest.mark.usefixtures("quick_kernels")
o = pk.ops
REPAIRED = (40, 89, 107, 145, 334, 346, 1096, 1939)
"""Seeds whose groups once had wrong results."""
RECOMPUTED = (10, 22, 47, 78, 98, 136, 1059, 1094, 1105, 1111)
"""Seeds of groups with a value that can be computed again instead of kept in scratch."""


def eager(name: str) -> pk.Target:
    """A target whose tiles cost nothing: kernels have as many as there may be."""
    target = target_of(name)
    return evolve(target, machine=evolve(target.machine, tile_seconds=0.0))


def agree(graph: pk.Graph, exe: pk.Executable) -> None:
    """Compare with NumPy, by the size of what results are differences of."""
    rng = np.random.default_rng(7)
    feeds = {
        graph.names[n]: rng.standard_normal(n.entries[0].shape).astype(np.float32)
        for n in graph.nodes
        if n.op is None
    }
    for expected, result in zip(pk.interpret(graph, feeds), exe(feeds), strict=True):
        scale = np.abs(expected).max(initial=1)
        np.testing.assert_allclose(
            np.asarray(result), np.asarray(expected), rtol=0, atol=1e-4 * scale
        )


def test_random_groups_are_right_block_by_block() -> None:
    """Every load has a value, no two threads or tiles meet in one place, the results are right."""
    for seed in range(30):
        graph, names = random_stitch(seed)
        agree(graph, pk.compile(graph, target="blocks", keep_together=names))


def test_seeds_that_revealed_faults_are_right() -> None:
    """Groups that once had wrong results are right, with as many tiles as there may be."""
    for seed in REPAIRED:
        graph, names = random_stitch(seed)
        agree(graph, pk.compile(graph, target=eager("blocks"), keep_together=names))


def test_rows_without_padding_give_right_results() -> None:
    """Rows in scratch that follow each other closely, as where scratch is small, are right."""
    with rows_without_padding():
        for seed in range(30):
            graph, names = random_stitch(seed)
            agree(graph, pk.compile(graph, target="blocks", keep_together=names))


@pytest.mark.parametrize("dialect, lanes", [("cxx", 16), ("opencl", 1)])
def test_values_that_are_not_kept_in_scratch_are_computed_again(dialect: str, lanes: int) -> None:
    """With little scratch, parts compute again what others had, for the CPU and as on a GPU."""
    with dropped_arrays() as dropped:
        for seed in RECOMPUTED:
            graph, names = random_stitch(seed)
            for limit in (256, 1024, 4096):
                target = evolve(eager("blocks"), scratch=limit, lanes=lanes, dialect=dialect)
                agree(graph, pk.compile(graph, target=target, keep_together=names))

    assert len(dropped) >= 5


def test_random_groups_are_right_when_compiled() -> None:
    """Native code of random groups has the results of the interpreter."""
    cases = [random_stitch(seed) for seed in (*REPAIRED, *range(200, 208))]
    options = [{"keep_together": names, "target": eager("cpu")} for _, names in cases]
    ready = prebuilt([graph for graph, _ in cases], options)
    for (graph, _), planned, choices in zip(cases, ready, options, strict=True):
        agree(graph, pk.compile(planned, **choices))


def test_results_that_tiles_share_differently_are_separate_parts() -> None:
    """Rows that each tile has its share of, and a sum that every tile needs, are two parts."""
    y = o.exp(pk.var("x", (640, 64)))
    r = o.reduce_sum(y, axis=-1, keepdims=True)
    graph = pk.Graph([y / o.reduce_max(r)])
    names = [[graph.names[n] for n in graph.nodes if n.op is not None]]
    for target in ("blocks", "cpu"):
        agree(graph, pk.compile(graph, target=target, keep_together=names))


def test_a_value_read_only_for_its_shape_fixes_no_tiles() -> None:
    """A bias by positions reads only the shape of a product, so no part follows its tiles."""
    x, w, b = pk.var("x", (140, 30)), pk.var("w", (17, 30)), pk.var("b", (17,))
    scores = o.reshape(o.slice(o.reshape(o.linear(x, w, b), shape=(-1,)), (0,), (48,)), (3, 4, 4))
    graph = pk.Graph([o.alibi_bias(scores)])

    agree(graph, pk.compile(graph, target=target_of("cpu", name="blocks", tile=256)))
