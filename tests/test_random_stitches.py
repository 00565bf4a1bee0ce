"""Random stitched groups: what the block interpreter and native code say is what NumPy says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.graph.node import known_shape
from passkit.plan.target import Target, target_of
from passkit.program.executable import Executable
from passkit.sharing.sharing import Sharing, share
from passkit.stitching import plan
from tests.random_stitches import random_stitch
from tests.together import prebuilt

pytestmark = pytest.mark.usefixtures("quick_kernels")
o = pk.ops
MENDED = (40, 89, 107, 145, 334, 346, 1096, 1939)
"""Seeds that have found a fault."""
SHRUNK = (10, 22, 47, 78, 98, 136, 1059, 1094, 1105, 1111)
"""Seeds of groups in which a value can be given up."""


def eager(name: str) -> Target:
    """A target whose tiles cost nothing: kernels have as many as there may be."""
    target = target_of(name)
    return evolve(target, rates=evolve(target.rates, tile=0.0))


def agree(graph: pk.Graph, exe: Executable) -> None:
    """Compare with NumPy, by the size of what results are differences of."""
    rng = np.random.default_rng(7)
    feeds = {
        graph.names[n]: rng.standard_normal(known_shape(n.entries[0])).astype(np.float32)
        for n in graph.nodes
        if n.op is None
    }
    for want, found in zip(pk.interpret(graph, feeds), exe(feeds), strict=True):
        most = np.abs(want).max(initial=1)
        np.testing.assert_allclose(np.asarray(found), np.asarray(want), rtol=0, atol=1e-4 * most)


def test_block_by_block() -> None:
    """Every load has a value, no two threads or tiles meet in one place, the results are right."""
    for seed in range(30):
        graph, names = random_stitch(seed)
        agree(graph, pk.compile(graph, target="blocks", keep_together=names))


def test_seeds_that_found_faults() -> None:
    """As many tiles as there may be, since those have found the most."""
    for seed in MENDED:
        graph, names = random_stitch(seed)
        agree(graph, pk.compile(graph, target=eager("blocks"), keep_together=names))


def test_where_rows_lie_close(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without room to spare between them, as where scratch is small."""
    monkeypatch.setattr(plan, "pitched", lambda region, vector: region)
    for seed in range(30):
        graph, names = random_stitch(seed)
        agree(graph, pk.compile(graph, target="blocks", keep_together=names))


@pytest.mark.parametrize("dialect, lanes", [("cxx", 16), ("opencl", 1)])
def test_where_arrays_are_given_up(
    dialect: str, lanes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Little scratch: parts compute again what others had, for the CPU and as on a GPU."""
    given_up = []

    def noted(*args: Any) -> Any:
        found = share(*args)
        given_up.extend(found.dropped if isinstance(found, Sharing) else ())
        return found

    monkeypatch.setattr(plan, "share", noted)
    for seed in SHRUNK:
        graph, names = random_stitch(seed)
        for limit in (256, 1024, 4096):
            target = evolve(eager("blocks"), scratch=limit, lanes=lanes, dialect=dialect)
            agree(graph, pk.compile(graph, target=target, keep_together=names))

    assert len(given_up) >= 5


def test_native() -> None:
    """The same text compiled."""
    made = [random_stitch(seed) for seed in (*MENDED, *range(200, 208))]
    options = [{"keep_together": names, "target": eager("cpu")} for _, names in made]
    ready = prebuilt([graph for graph, _ in made], options)
    for (graph, _), fused, own in zip(made, ready, options, strict=True):
        agree(graph, pk.compile(fused, **own))


def test_results_of_one_part_that_tiles_share_otherwise() -> None:
    """Rows of a tile, and a sum that every tile needs whole, are no part together."""
    y = o.exp(pk.var("x", (640, 64)))
    r = o.reduce_sum(y, axis=-1, keepdims=True)
    graph = pk.Graph([y / o.reduce_max(r)])
    names = [[graph.names[n] for n in graph.nodes if n.op is not None]]
    for target in ("blocks", "cpu"):
        agree(graph, pk.compile(graph, target=target, keep_together=names))


def test_what_reads_no_element() -> None:
    """A bias by positions behind a product takes its shape alone: no part follows where it lies."""
    x, w, b = pk.var("x", (140, 30)), pk.var("w", (17, 30)), pk.var("b", (17,))
    scores = o.reshape(o.slice(o.reshape(o.linear(x, w, b), shape=(-1,)), (0,), (48,)), (3, 4, 4))
    graph = pk.Graph([o.alibi_bias(scores)])

    agree(graph, pk.compile(graph, target=evolve(target_of("cpu"), name="blocks", tile=256)))
