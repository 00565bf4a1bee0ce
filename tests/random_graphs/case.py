"""A random graph with what it is fed and how it is compiled."""

from __future__ import annotations

from typing import Any

from attrs import frozen

import passkit as pk
from passkit.graph.graph import Graph

FUSIONS = {"stitch": 80, "nnvm": 5, "xla": 5, "deep": 5, "none": 5}
"""How many of a hundred graphs are compiled with each strategy."""


@frozen(eq=False)
class Case:
    """A graph, arrays for each of several runs by input name, and how to compile it."""

    seed: int
    graph: Graph
    feeds: tuple[dict[str, Any], ...]
    fusion: str = "stitch"
    tile: int = 8192
    differentiated: bool = False

    def __str__(self) -> str:
        shapes = [{k: f"{a.dtype}{list(a.shape)}" for k, a in f.items()} for f in self.feeds]
        runs = "".join(f"\n  run {k}: {s}" for k, s in enumerate(shapes))
        how = f"fusion {self.fusion}, tile {self.tile}"
        return f"seed {self.seed}, {how}{runs}\n{text_of(self.graph)}"


def text_of(graph: Graph) -> str:
    """A graph as text, without the ends of long lines."""
    lines = str(pk.to_text(graph)).splitlines()
    return "\n".join(x if len(x) < 300 else f"{x[:300]}…" for x in lines)
