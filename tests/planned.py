"""Graphs planned in part, targets with other numbers, and kernels compiled many at a time.

Tests reach the passes of a compilation, the kernel compiler and the plan cache through here.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.passes.rtcgen import FLAGS, kernel_text
from passkit.program.planning import DEFAULT_PIPELINE, planned, with_shapes
from passkit.runtime.native.build import build
from tests.workers import alone

PIPELINE = DEFAULT_PIPELINE
"""The names of the passes that a compilation runs, in order."""


def plan(graph: Any, last: str = "CodeGen", **options: Any) -> pk.Graph:
    """Return the graph after the passes of a compilation up to and including ``last``.

    Args:
        graph: A graph, at any stage of the pipeline, or a graph in text.
        last: The name of a pass; by default the last one before kernels are compiled.
        **options: Options of `pk.PassContext`.
    """
    return planned(pk.parse(graph) if isinstance(graph, str) else graph, last, **options)


def target(kind: str = "cpu", **numbers: Any) -> pk.Target:
    """Return a target by name, with some of its numbers replaced."""
    return evolve(pk.PassContext(target=kind).target, **numbers)


def with_known_shapes(graph: pk.Graph, shapes: dict[str, tuple[int, ...]]) -> pk.Graph:
    """Return the graph with known shapes of some inputs, by name, as a plan for them has."""
    return with_shapes(graph, shapes)


def prebuild(graphs: Iterable[Any], **options: Any) -> None:
    """Compile the kernels of all graphs together, so that `pk.compile` finds them in the cache.

    Of several test workers that need the same kernels, one compiles them.
    """
    kernels = {k.key: k for g in graphs for k in plan(g, **options).attrs["kernel"].values()}
    texts = [kernel_text(k) for k in kernels.values()]
    with alone(sha256(repr(sorted(kernels)).encode()).hexdigest()[:16]):
        build(texts, FLAGS)


def translation_unit(kernel: pk.Kernel) -> tuple[str, str, str]:
    """Return the sections of the prelude, the text and the symbol that a compiler is given."""
    text = kernel_text(kernel)
    return "".join(text.sections), text.source, text.symbol


def use_cached_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make compilations start from the plan cache, as in a process without a planner."""
    monkeypatch.setattr("passkit.program.executable.planner_is_imported", lambda: False)


def feeds_of(graph: pk.Graph, rng: Any, **sizes: int) -> dict[str, Any]:
    """Return normally distributed arrays for the inputs of a graph; ``sizes`` are its symbols."""
    feeds = {}
    for node in graph.inputs:
        entry = node.entries[0]
        shape = tuple(n if isinstance(n, int) else sizes[str(n)] for n in entry.shape)
        feeds[graph.names[node]] = rng.normal(size=shape).astype(entry.dtype.numpy)
    return feeds


def agrees(graph: pk.Graph, feeds: dict[str, Any], outputs: Any, rtol: float = 2e-6) -> None:
    """Raise AssertionError where outputs differ from those of the interpreter."""
    for output, expected in zip(outputs, pk.interpret(graph, feeds), strict=True):
        assert (output.dtype, output.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(output, expected, rtol=rtol, atol=rtol * 8)
