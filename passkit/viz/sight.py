"""Graphs as pictures look at them: what runs each node, and its part of the time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from passkit.op import TLibraryCall
from passkit.units import seconds_text

if TYPE_CHECKING:
    from passkit.graph import Graph
    from passkit.group import Group
    from passkit.node import Node
    from passkit.runtime.profile import Profile


def seconds_of(profile: Profile | Mapping[str, float] | None) -> Mapping[str, float]:
    """Seconds by the names of nodes."""
    if profile is None:
        return {}
    return profile if isinstance(profile, Mapping) else profile.by_node


class Sight:
    """A graph as pictures look at it: what runs each node, and its part of the time."""

    def __init__(self, graph: Graph, seconds: Mapping[str, float]) -> None:
        self.graph, self.seconds = graph, seconds
        self.total = sum(seconds.values())
        self.fused = any("body" in n.params for n in graph.nodes)
        self.units = [n for n in graph.nodes if n.op is not None and n.op.name != "constant"]
        self.kernels: Mapping[Node, Any] = graph.attrs.get("kernel", {})

    @property
    def operators(self) -> int:
        """The operators in all groups and outside."""
        bodies = (n.params.get("body") for n in self.units)
        return sum(1 if b is None else len(b.ops) for b in bodies)

    def name(self, node: Node) -> str:
        """What the graph calls a node."""
        return self.graph.names[node]

    def kind(self, node: Node) -> str:
        """What runs a node: a kind of kernel, a library or NumPy; "operator" without a plan."""
        body: Group | None = node.params.get("body")
        if body is not None:
            return body.kind.value
        if node.op is not None and TLibraryCall.get(node.op.name):
            return "library"
        return "NumPy" if self.fused else "operator"

    def share(self, *nodes: Node) -> float | None:
        """The part of the time that nodes take; None without a profile."""
        if not self.total:
            return None
        return sum(self.seconds.get(self.name(n), 0.0) for n in nodes) / self.total

    def time_line(self, *nodes: Node) -> tuple[str, ...]:
        """Time and share as a line; none without a profile."""
        share = self.share(*nodes)
        if share is None:
            return ()
        return (f"{seconds_text(share * self.total)}, {100 * share:.3g} %",)
