"""Views of planned graphs for pictures and reports: what runs each node, and its time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from passkit.graph.op import TLibraryCall
from passkit.values.arguments import instance
from passkit.values.size import Size, evaluate
from passkit.values.units import percent_text, seconds_text
from passkit.viz.kernel_structure import KernelStructure
from passkit.viz.labels import distinct, extent_of, last_part, short_name, type_lines
from passkit.viz.styles import heat

if TYPE_CHECKING:
    from passkit.analysis.group import Group
    from passkit.graph.graph import Graph
    from passkit.graph.node import Entry, Node
    from passkit.runtime.profile import ExecutionProfile
    from passkit.schedule.schedule import Schedule
    from passkit.schedule.shared_plan import SharedPlan
    from passkit.values.size import Extent


def seconds_by_node(profile: ExecutionProfile | Mapping[str, float] | None) -> Mapping[str, float]:
    """Return the seconds of each node by its name; empty without a profile, a mapping as it is.

    Raises: ArgumentError if the argument is neither a profile nor a mapping to Python's numbers.
    """
    if profile is None:
        return {}
    values: Any = getattr(profile, "by_node", profile)
    need = "a profile, as exe.profile() gives one, or seconds by names of nodes"
    instance("plan: profile", values, Mapping, need)
    for name, value in values.items():
        instance(f"plan: the seconds of {name!r} in profile", value, (int, float), "a number")
    seconds: Mapping[str, float] = values
    return seconds


class PlanView:
    """A graph with the kind of work, the name, and the share of the time of each node.

    Attributes:
        graph: The graph.
        seconds: The seconds of nodes, by name.
        sizes: Numbers of symbolic sizes, by name; others stay symbols.
        total: The seconds of all nodes, 0 without a profile.
        most: The largest share of the time that one box of the picture takes: the darkest box.
        fused: Whether the graph has groups.
        units: Its nodes except variables and constants: groups and single operators.
        kernels: The kernels of nodes, where they are generated.
        schedules: The schedules of groups, where they are planned.
        shared: The scratch plans of groups, where they are planned.
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
        self.fused = any("body" in n.params for n in graph.nodes)
        self.units = [n for n in graph.nodes if n.op is not None and n.op.name != "constant"]
        self.kernels: Mapping[Node, Any] = graph.attrs.get("kernel", {})
        self.schedules: Mapping[Node, Schedule] = graph.attrs.get("schedule", {})
        self.shared: Mapping[Node, SharedPlan] = graph.attrs.get("shared", {})

    @property
    def num_operators(self) -> int:
        """The number of operators, in groups and outside."""
        bodies = (n.params.get("body") for n in self.units)
        return sum(1 if b is None else len(b.ops) for b in bodies)

    @cached_property
    def titles(self) -> Mapping[str, str]:
        """A short text for each name of a node; different names have different texts if possible.

        See `passkit.viz.labels.distinct`.
        """
        return distinct([self.name(n) for n in self.graph.nodes], short_name)

    @cached_property
    def last_parts(self) -> Mapping[str, str]:
        """The last part of each unit's name, with parts before it where several share it."""
        return distinct([self.name(n) for n in self.units], last_part)

    def resolve_size(self, size: Extent) -> Extent:
        """Return a size as a number if all its symbols have numbers, else unchanged.

        Raises: ShapeError where it then divides by zero.
        """
        if isinstance(size, Size) and size.symbols <= self.sizes.keys():
            return evaluate(size, self.sizes)
        return size

    def type_lines(self, entry: Entry) -> tuple[str, ...]:
        """Return the dtype and shape of a value as a line, and its bytes as another.

        The bytes are left out where the type is not inferred.
        """
        return type_lines(entry, self.resolve_size)

    def extent_of(self, entries: Iterable[Entry]) -> Extent | None:
        """Return the bytes of several values together; None if a type is not inferred.

        Raises: ShapeError where a size divides by zero.
        """
        total = extent_of(entries)
        return None if total is None else self.resolve_size(total)

    def name(self, node: Node) -> str:
        """Return the unique name that a node of the drawn graph has there."""
        return self.graph.names[node]

    def kind(self, node: Node) -> str:
        """Return what runs a node, as a key of `passkit.viz.styles.KINDS`.

        A kind of kernel, "own" for a kernel that the operator brings along, "library", "NumPy", or
        "operator" in a graph without a plan.
        """
        body: Group | None = node.params.get("body")
        if body is not None:
            return body.kind.value
        if node.op is not None and TLibraryCall.get(node.op.name):
            return "library"
        if node in self.kernels:
            return "own"
        return "NumPy" if self.fused else "operator"

    def kernel_structure(self, node: Node) -> KernelStructure | None:
        """Return the structure of a group's kernel; None without a schedule or scratch plan."""
        schedule, shared = self.schedules.get(node), self.shared.get(node)
        if schedule is None or shared is None:
            return None
        return KernelStructure(node.params["body"], schedule, shared, self.resolve_size)

    def time_share(self, *nodes: Node) -> float | None:
        """Return the share of the time that nodes take, from 0 to 1; None without a profile."""
        if not self.total:
            return None
        return sum(self.seconds.get(self.name(n), 0.0) for n in nodes) / self.total

    def time_line(self, *nodes: Node) -> tuple[str, ...]:
        """Return the time of nodes and its share in a tuple of one line; () without a profile."""
        share = self.time_share(*nodes)
        if share is None:
            return ()
        return (f"{seconds_text(share * self.total)}, {percent_text(share)}",)

    def heat(self, *nodes: Node) -> tuple[str, str]:
        """Return the colours of a box for nodes: its fill, by their main kind, and the ink on it.

        Raises: ValueError without nodes.
        """
        share = self.time_share(*nodes)
        return heat(self.main_kind(*nodes), None if share is None else share / self.most)

    def main_kind(self, *nodes: Node) -> str:
        """Return the kind that takes most of the time; without a profile, of most nodes.

        Raises: ValueError without nodes.
        """
        weights: dict[str, float] = {}
        for node in nodes:
            kind = self.kind(node)
            weights[kind] = weights.get(kind, 0.0) + (self.time_share(node) or 1e-9)
        return max(weights, key=lambda kind: weights[kind])

    def scale_heat(self, boxes: Iterable[Sequence[Node]]) -> None:
        """Make the box that takes most of the time the darkest, given the nodes of each box.

        Sets ``most``; 1 without a profile.
        """
        self.most = max((self.time_share(*nodes) or 0.0 for nodes in boxes), default=0.0) or 1.0
