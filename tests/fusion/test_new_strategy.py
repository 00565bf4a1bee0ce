"""A fusion strategy in a file outside of the package: found by name, legal, and right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import passkit as pk
from passkit.values.plugins import import_plugin
from tests.command import json_of
from tests.planned import agrees, feeds_of

STRATEGY = '''
"""A strategy of a newcomer: the widest edges first, as long as groups are legal."""

import passkit as pk
from passkit.graph.node import is_leaf
from passkit.graph.quotient import QuotientGraph
from passkit.fusion.legality import Legality, Level
from passkit.values.size import numel


@pk.register_fusion("test_new_widest")
def widest(graph, context):
    """Merge the two ends of each edge, the widest first, with all that is on paths between."""
    quotient, legality = QuotientGraph(graph), Legality(graph, context)

    def nbytes(edge):
        """Return the bytes of the value of an edge, as if unknown sizes were 1."""
        entry, _ = edge
        shape = (n if isinstance(n, int) else 1 for n in graph.shape(entry))
        return graph.dtype(entry).nbytes * numel(shape)

    edges = [(e, n) for n in graph.nodes for e in n.inputs if not is_leaf(e.node)]
    for entry, reader in sorted(edges, key=nbytes, reverse=True):
        ends = {quotient.vertex_of[quotient.cluster_of[n]] for n in (entry.node, reader)}
        numbers = ends | quotient.between(ends)
        if len(numbers) > 1 and legality.check(quotient, numbers, Level.FULL) is None:
            if context.spend(f"merge at {graph.names[reader]}"):
                quotient.merge(numbers)
    groups = [quotient.nodes(members)[0] for members in quotient.members.values()]
    return [group for group in groups if len(group) > 1]
'''
TEXT = """x: f32[8, 16]; w: f32[16, 16]; m: f32[n, 16]; a = neg(x); b = exp(a); p = matmul(b, w)
c = add(softmax(p), 1.0); t = tanh(mul(m, 2.0)); s = sort(b); d = add(exp(s), a)
return c, d, reduce_sum(t, axis=1)"""


@pytest.fixture(scope="module")
def strategy_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file that registers the strategy."""
    path = tmp_path_factory.mktemp("strategy") / "test_new_widest_strategy.py"
    path.write_text(STRATEGY.lstrip())
    return path


def test_a_strategy_of_forty_lines_is_found_by_name(strategy_file: Path) -> None:
    """Its groups are kernels with right results, and explanations name it; it obeys options."""
    import_plugin(str(strategy_file))
    graph = pk.parse(TEXT)
    exe = pk.compile(graph, fusion="test_new_widest")
    feeds = feeds_of(graph, np.random.default_rng(0), n=3)
    agrees(graph, feeds, exe(feeds), rtol=1e-5)

    assert len(STRATEGY.strip().splitlines()) <= 40
    assert [" ".join(k.ops) for k in exe.kernels] == [
        "neg exp matmul reduce_max sub exp reduce_sum div add",
        "exp add",
        "mul tanh reduce_sum",
    ]
    codes = {(d.producer, d.consumer): d.code for d in pk.explain(exe.graph)}
    assert codes["a", "b"] == "fused.strategy" and codes["b", "s"] == "op.host_library"
    apart = pk.compile(graph, fusion="test_new_widest", no_fuse=["b"])
    assert pk.explain(apart.graph).why("a", "b")[0].code == "fusion.strategy"
    assert len(pk.compile(graph, fusion="test_new_widest", fuel=0).kernels) == 13


def test_the_command_line_finds_it_by_name(strategy_file: Path, tmp_path: Path) -> None:
    """`passkit explain` with the file as a plug-in plans by the strategy."""
    model = tmp_path / "model.txt"
    model.write_text(TEXT)
    options = ("--plugin", strategy_file, "--fusion", "test_new_widest")
    rows = json_of("explain", model, *options)

    assert "fused.strategy" in {row["code"] for row in rows}
