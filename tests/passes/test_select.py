"""Selection: what fusion="stitch" makes of greedy's groups, and what it says about the rest."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.group import Group
from passkit.node import Entry
from passkit.passes.context import PassContext
from passkit.passes.fusion.board import Board
from passkit.passes.fusion.greedy import greedy
from passkit.passes.fusion.partition import Partition
from passkit.passes.fusion.scores import modelled
from passkit.passes.fusion.select import selected
from passkit.planning import LADDER
from passkit.target import Target, cpu
from tests.planned import agrees, feeds_of
from tests.random_stitches import random_stitch

o = pk.ops
BEFORE = LADDER[: LADDER.index("Fusion")]


def attention(heads: int, rows: int, width: int) -> list[Entry]:
    """By primitives, with a mask."""
    q, k, v = (pk.var(n, (heads, rows, width)) for n in "qkv")
    s = o.matmul(q, k, transpose_b=True) * width**-0.5 + pk.var("mask", (rows, rows))
    e = o.exp(s - o.reduce_max(s, axis=-1, keepdims=True))
    return [o.matmul(e / o.reduce_sum(e, axis=-1, keepdims=True), v)]


def fused(graph: pk.Graph, **options: Any) -> pk.Graph:
    """The graph after Fusion."""
    return pk.ApplyPasses(graph, [*BEFORE, "Fusion"], **options)


def analysed(graph: pk.Graph) -> pk.Graph:
    """The graph as Fusion gets it."""
    return pk.ApplyPasses(graph, [*BEFORE, "Complete", "InferShape", "InferType"])


def kernels(graph: pk.Graph) -> list[str]:
    """The operators of each group."""
    return [" ".join(n.op.name for n in g.ops) for g in graph.attrs["subgraph"].values()]


SOFTMAX = "mul add reduce_max sub exp reduce_sum div"


def test_attention_is_one_kernel_by_itself() -> None:
    """Greedy leaves both products to a library; the selection takes them in, and it is right."""
    graph = pk.Graph(attention(8, 94, 32))
    exe = pk.compile(graph)
    chosen = exe.graph.attrs["selection"]

    assert kernels(exe.graph) == [f"matmul {SOFTMAX} matmul"] and len(exe.steps) == 1
    assert (chosen.chosen, chosen.units) == (1, 3) and chosen.after < 0.9 * chosen.before
    agrees(exe, feeds_of(graph))
    assert {d.reason for d in pk.explain(exe.graph).why("matmul", "mul")} == {
        f"one kernel saves {pk_seconds(pk.explain(exe.graph).why('matmul', 'mul')[0].data)}"
    }


def pk_seconds(data: Any) -> str:
    """A gain as reasons tell it."""
    from passkit.units import seconds_text

    return seconds_text(data["gain"])
