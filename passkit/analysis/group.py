"""Groups: what Fusion decides to run as one kernel, and why. A group is itself a graph."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from attrs import frozen

from passkit.diagnostics import Diagnostic
from passkit.errors import ParseError, nearest
from passkit.graph.graph import Graph
from passkit.graph.nested import register_nested
from passkit.graph.node import Entry, Node
from passkit.graph.op import REQUIRED, register_later, register_op
from passkit.values.arguments import instance, mapping
from passkit.values.size import symbols_of

if TYPE_CHECKING:
    from passkit.analysis.components import Component


class Kind(Enum):
    """The kind of a group, by its most expensive operators; it decides how its kernel is planned.

    A PHASED group may have several phases. Values that one phase computes for another are among its
    outputs.
    """

    ELEMWISE = "elementwise"
    REDUCTION = "reduction"
    GEMM = "gemm"
    PACKED = "packed"
    PHASED = "phased"
    LIBRARY = "library"


class Group:
    """Operators that share one kernel: a closed graph whose variables are the inputs.

    NNVM calls it SubGraph, FusionStitching a pattern. ``origin`` maps its nodes to the names they
    had; ``key`` is a digest of structure, dtypes and extents, never of names.
    """

    def __init__(self, graph: Graph, kind: Kind, origin: Mapping[Node, str] | None = None) -> None:
        self.graph: Graph = instance("Group: graph", graph, Graph, "a Graph")
        self.kind: Kind = instance("Group: kind", kind, Kind, "a Kind, such as Kind.REDUCTION")
        self.origin = mapping("Group: origin", origin)

    @cached_property
    def key(self) -> str:
        """Return a digest, which equal groups have in common in any process."""
        return self.graph.key

    @cached_property
    def parts(self) -> tuple[Component, ...]:
        """Return the components without data flow between them: usually the group itself."""
        from passkit.analysis.components import (
            independent_components,  # a start that finds all kernels ready needs none
        )

        return independent_components(self.graph)

    def alone(self) -> list[Group]:
        """Return each component as a group."""
        return [Group(p.graph, self.kind) for p in self.parts]

    @cached_property
    def ops(self) -> tuple[Node, ...]:
        """Return the operators, in post-order, without constants."""
        return tuple(n for n in self.graph.nodes if n.op is not None and n.op.name != "constant")

    @cached_property
    def sizes(self) -> frozenset[str]:
        """Return the names of the symbolic sizes in its shapes."""
        nodes = self.graph.nodes
        shapes = symbols_of(e.shape for n in nodes for e in n.entries)
        return shapes | symbols_of(v for n in nodes for v in n.params.values())

    def called(self, node: Node) -> str:
        """Return the name of a node in the graph from which the group was made."""
        return self.origin.get(node) or self.graph.names[node]

    @property
    def inputs(self) -> tuple[Node, ...]:
        """Return the variables for the inputs of the fused node, in its order."""
        return self.graph.inputs

    def __repr__(self) -> str:
        return f"Group({self.kind.value}: {', '.join(n.label for n in self.ops)})"


# a stored plan may hold halves of reductions
register_later("passkit.analysis.group", "passkit.analysis.partial")
FUSED = register_op(
    "fused",
    num_inputs=-1,
    num_outputs=-1,
    params={"body": REQUIRED},
    doc="A group of operators that runs as one kernel.",
)


def _group(node: Node) -> Group:
    return node.params["body"]  # type: ignore[no-any-return]


FUSED.set_attr(
    "FInferShape", lambda node, *shapes: tuple(e.shape for e in _group(node).graph.outputs)
)
FUSED.set_attr(
    "FInferType", lambda node, *dtypes: tuple(e.dtype for e in _group(node).graph.outputs)
)


def fused_node(group: Group, inputs: tuple[Entry, ...], name: str, control: Any = ()) -> Node:
    """Return the node that represents a group in the fused graph."""
    return Node(FUSED, inputs, {"body": group}, name, control)


@frozen
class Decision:
    """Whether the operators of an edge share a kernel, and why.

    Attributes:
        producer: the name of the operator that computes a value.
        consumer: the name of one that reads it.
        diagnostic: why they share a kernel, with a code that begins with "fused.", or do not.
    """

    producer: str
    consumer: str
    diagnostic: Diagnostic

    @property
    def fused(self) -> bool:
        """Return whether both are in one kernel."""
        return self.code.startswith("fused.")

    @property
    def code(self) -> str:
        """Return the code of the reason, a key of `passkit.diagnostics.TEXTS`."""
        return self.diagnostic.code

    @property
    def reason(self) -> str:
        """Return the reason as a sentence."""
        return str(self.diagnostic)

    @property
    def data(self) -> Mapping[str, object]:
        """Return the values that the sentence states, by name."""
        return self.diagnostic.data

    @property
    def way_out(self) -> str:
        """Return how a user can change the decision; "" if that is not known."""
        return self.diagnostic.way_out

    def __str__(self) -> str:
        fate = "fused" if self.fused else "apart"
        out = f"; {self.way_out}" if self.way_out else ""
        return f"{self.producer} -> {self.consumer}: {fate}, {self.reason}{out}"


def _take(group: Group) -> tuple[Graph, dict[str, Any]]:
    """Return a group's graph, and its kind and origins by the positions of nodes."""
    position = {n: k for k, n in enumerate(group.graph.nodes)}
    origin = sorted((position[n], name) for n, name in group.origin.items() if n in position)
    return group.graph, {"kind": group.kind.value, "origin": tuple(origin)}


def _make(graph: Graph, rest: Mapping[str, Any]) -> Group:
    """Return the group of serialized data.

    Raises: ParseError for data that `_take` never returns.
    """
    kinds = {kind.value: kind for kind in Kind}
    kind, origin = rest.get("kind"), rest.get("origin", ())
    if not isinstance(kind, str) or kind not in kinds:
        raise ParseError(f"a group has no kind {kind!r}; {nearest(str(kind), kinds)}")
    nodes = graph.nodes
    pairs = origin if isinstance(origin, tuple) else (origin,)
    for pair in pairs:
        good = isinstance(pair, tuple) and len(pair) == 2 and type(pair[0]) is int
        if not good or not 0 <= pair[0] < len(nodes) or not isinstance(pair[1], str):
            raise ParseError(f"an origin in a group is (node, name), got {pair!r}")
    return Group(graph, kinds[kind], {nodes[k]: name for k, name in pairs})


register_nested("group", Group, _take, _make)
