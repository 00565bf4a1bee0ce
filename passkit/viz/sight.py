"""Graphs as pictures look at them: what runs each node, and its part of the time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from passkit.graph.op import TLibraryCall
from passkit.values.arguments import instance
from passkit.values.size import Size, evaluate
from passkit.values.units import percent_text, seconds_text
from passkit.viz.anatomy import Anatomy
from passkit.viz.colours import heat
from passkit.viz.labels import distinct, extent_of, last_part, short_name, type_lines

if TYPE_CHECKING:
    from passkit.graph.graph import Graph
    from passkit.graph.node import Entry, Node
    from passkit.plan.group import Group
    from passkit.plan.schedule import Schedule
    from passkit.runtime.profile import ExecutionProfile
    from passkit.sharing.shared import SharedPlan
    from passkit.values.size import Extent


def seconds_of(profile: ExecutionProfile | Mapping[str, float] | None) -> Mapping[str, float]:
    """Seconds by the names of nodes."""
    if profile is None:
        return {}
    seconds: Any = getattr(profile, "by_node", profile)
    need = "a Profile, as exe.profile() gives one, or seconds by names of nodes"
    instance("plan: profile", seconds, Mapping, need)
    for name, value in seconds.items():
        instance(f"plan: the seconds of {name!r} in profile", value, (int, float), "a number")
    found: Mapping[str, float] = seconds
    return found


class Sight:
    """A graph as pictures look at it: what runs each node, its part of the time, and its name.

    Sizes that are not known before a call are numbers where ``sizes`` has them.
    """

    def __init__(
        self,
        graph: Graph,
        seconds: Mapping[str, float],
        sizes: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self.graph, self.seconds, self.sizes = graph, seconds, sizes
        self.total = sum(seconds.values())
        self.most = 1.0
        """The largest part of the time that a box of the picture takes: the darkest."""
        self.fused = any("body" in n.params for n in graph.nodes)
        self.units = [n for n in graph.nodes if n.op is not None and n.op.name != "constant"]
        self.kernels: Mapping[Node, Any] = graph.attrs.get("kernel", {})
        self.schedules: Mapping[Node, Schedule] = graph.attrs.get("schedule", {})
        self.shared: Mapping[Node, SharedPlan] = graph.attrs.get("shared", {})

    @property
    def operators(self) -> int:
        """The operators in all groups and outside."""
        bodies = (n.params.get("body") for n in self.units)
        return sum(1 if b is None else len(b.ops) for b in bodies)

    @cached_property
    def titles(self) -> Mapping[str, str]:
        """A short text for each name of a node; no two texts are equal."""
        return distinct([self.name(n) for n in self.graph.nodes], short_name)

    @cached_property
    def last_parts(self) -> Mapping[str, str]:
        """The last part of the name of each unit, with others before it where several share it."""
        return distinct([self.name(n) for n in self.units], last_part)

    def known(self, size: Extent) -> Extent:
        """Return a size as a number, if all that it depends on is known."""
        if isinstance(size, Size) and size.symbols <= self.sizes.keys():
            return evaluate(size, self.sizes)
        return size

    def type_lines(self, entry: Entry) -> tuple[str, ...]:
        """Return the dtype and shape of a value as a line, and its bytes as another."""
        return type_lines(entry, self.known)

    def extent_of(self, entries: Iterable[Entry]) -> Extent | None:
        """Return the bytes of several values; None where one is not known."""
        total = extent_of(entries)
        return None if total is None else self.known(total)

    def name(self, node: Node) -> str:
        """What the graph calls a node."""
        return self.graph.names[node]

    def kind(self, node: Node) -> str:
        """What runs a node: a kind of kernel, a library or NumPy; "operator" without a plan.

        "own" is a kernel that the operator brings along.
        """
        body: Group | None = node.params.get("body")
        if body is not None:
            return body.kind.value
        if node.op is not None and TLibraryCall.get(node.op.name):
            return "library"
        if node in self.kernels:
            return "own"
        return "NumPy" if self.fused else "operator"

    def anatomy(self, node: Node) -> Anatomy | None:
        """How a node's kernel is made; None where it has no plan, or none yet."""
        schedule, shared = self.schedules.get(node), self.shared.get(node)
        if schedule is None or shared is None:
            return None
        return Anatomy(node.params["body"], schedule, shared, self.known)

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
        return (f"{seconds_text(share * self.total)}, {percent_text(share)}",)

    def heat(self, *nodes: Node) -> tuple[str, str]:
        """The fill of a box for nodes, by the kind that weighs most among them, and its ink."""
        share = self.share(*nodes)
        return heat(self.main_kind(*nodes), None if share is None else share / self.most)

    def main_kind(self, *nodes: Node) -> str:
        """The kind that takes most of the time, or that most nodes are of where none is known."""
        kinds: dict[str, float] = {}
        for node in nodes:
            kinds[self.kind(node)] = kinds.get(self.kind(node), 0.0) + (self.share(node) or 1e-9)
        return max(kinds, key=lambda kind: kinds[kind])

    def scale(self, boxes: Iterable[Sequence[Node]]) -> None:
        """Let the box that takes most of the time be the darkest."""
        self.most = max((self.share(*nodes) or 0.0 for nodes in boxes), default=0.0) or 1.0
