"""Compiling many small graphs at once: one compiler process serves dozens of kernels."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Any

import numpy as np

import passkit as pk
from passkit.passes.rtcgen import FLAGS, kernel_text
from passkit.program.planning import DEFAULT_PIPELINE
from passkit.runtime.native.build import build
from tests.workers import alone

PLAN = DEFAULT_PIPELINE[: DEFAULT_PIPELINE.index("CodeGen") + 1]


def plan(graph: Any, **options: Any) -> pk.Graph:
    """The graph with everything up to its kernels' texts; a text of a graph is read first."""
    return pk.ApplyPasses(pk.parse(graph) if isinstance(graph, str) else graph, PLAN, **options)


def prebuild(graphs: Iterable[Any], **options: Any) -> None:
    """Compile the kernels of all graphs in one go, so that compiling each finds them ready.

    Another worker that wants the same finds them in the cache.
    """
    kernels = {k.key: k for g in graphs for k in plan(g, **options).attrs["kernel"].values()}
    texts = [kernel_text(k) for k in kernels.values()]
    with alone(sha256(repr(sorted(kernels)).encode()).hexdigest()[:16]):
        build(texts, FLAGS)


def feeds_of(graph: pk.Graph, rng: Any, **sizes: int) -> dict[str, Any]:
    """Ordinary random arrays for the inputs of a graph."""
    feeds = {}
    for node in graph.inputs:
        entry = node.entries[0]
        shape = tuple(n if isinstance(n, int) else sizes[str(n)] for n in entry.shape)
        feeds[graph.names[node]] = rng.normal(size=shape).astype(entry.dtype.numpy)
    return feeds


def agrees(graph: pk.Graph, feeds: dict[str, Any], outs: Any, rtol: float = 2e-6) -> None:
    """Raise AssertionError where results differ from what the operators mean."""
    for found, wanted in zip(outs, pk.interpret(graph, feeds), strict=True):
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol * 8)
