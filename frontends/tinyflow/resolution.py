"""Resolution of deferred calls: the nodes of a run rebuilt once the shapes of its feeds are known.

A run with placeholders without shapes passes through here before `functionalize` turns reads and
writes of variables into values. Nodes are rebuilt in topological order. A deferred node is replaced
by the results of its call; a node whose inputs changed is created again, which infers its shape.
Sizes declared before the run, such as the first of ``tf.reshape(x, [-1, 784])``, are substituted
wherever node parameters hold them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import define, evolve, field

from passkit.errors import FeedError
from passkit.frontends.tinyflow.deferred_calls import is_deferred
from passkit.frontends.tinyflow.graphs import Graph
from passkit.frontends.tinyflow.tensors import Tensor
from passkit.graph.graph import before, post_order
from passkit.graph.node import Entry, Node, is_state
from passkit.values.size import Extent, Size, substitute, symbols_of


@define(eq=False)
class Resolution:
    """A map from the nodes and entries of a program to those of one run.

    A node or entry that is missing in the map is the same in the run.
    """

    graph: Graph
    entries: dict[Entry, Entry] = field(factory=dict)
    nodes: dict[Node, tuple[Node, ...]] = field(factory=dict)
    tensors: dict[Entry, Tensor] = field(factory=dict)
    """The tensors that deferred calls returned, which may have static values."""
    sizes: dict[str, Extent] = field(factory=dict)
    """The extents in this run of the sizes that were declared before it."""

    def entry(self, entry: Entry) -> Entry:
        """Return the entry of the run for an entry of the program."""
        return self.entries.get(entry, entry)

    def control_nodes(self, nodes: Iterable[Node]) -> tuple[Node, ...]:
        """Return the nodes of the run for nodes of the program, each once, in order.

        A deferred node is replaced by those that its call created, which may be several.
        """
        return tuple(dict.fromkeys(new for n in nodes for new in self.nodes.get(n, (n,))))

    def visit(self, node: Node) -> None:
        """Resolve a node whose dependencies are resolved: record its entries in this run.

        A node that is the same in the run is not recorded.

        Raises:
            FeedError: For a placeholder without a shape that is not fed.
            ShapeError: If the shapes of this run do not fit the operator, or from a deferred call.
        """
        if all(e in self.entries for e in node.entries) and node.entries:
            self.nodes[node] = tuple(dict.fromkeys(self.entries[e].node for e in node.entries))
        elif node.op is None:
            self._check_fed(node)
        elif is_deferred(node):
            self._call(node)
        else:
            self._rebuild(node)

    def _check_fed(self, node: Node) -> None:
        """Raise FeedError for a placeholder without a shape that is not fed."""
        if node.entries[0].shape is None and not is_state(node.entries[0]):
            raise FeedError(
                f"placeholder '{node.name}' needs a value in feed_dict, got none; "
                f"session.run(fetches, {{{node.name}: array}})"
            )

    def _call(self, node: Node) -> None:
        """Make the call of a deferred node, and record its results in place of the node.

        The call is made with the graph as default, and releases the names that it takes. Its
        errors, such as a ShapeError, are raised.
        """
        inputs = [
            self.tensors[e] if e in self.tensors else Tensor(self.entry(e), e.node.name, self.graph)
            for e in node.inputs
        ]
        graph, control = self.graph, self.control_nodes(node.control)
        with (
            graph.as_default(),
            graph.restoring_names(),
            graph.with_dependencies(None),
            graph.with_dependencies(control),
        ):
            results = node.params["call"](inputs)
        for old, tensor in zip(node.entries, results, strict=True):
            self.tensors[old] = tensor
            self._set(old, tensor.entry)
        self.nodes[node] = tuple(dict.fromkeys(self.entries[e].node for e in node.entries))

    def _rebuild(self, node: Node) -> None:
        """Create a node again if its inputs, parameters or dependencies changed in this run.

        Its write, check and device are recorded in the graph for the new node.

        Raises:
            ShapeError: If the shapes of this run do not fit the operator.
        """
        inputs = tuple(map(self.entry, node.inputs))
        control = self.control_nodes(node.control)
        params = node.params
        if self.sizes:
            params = {k: self._substitute_sizes(v) for k, v in node.params.items()}
        write = self.graph.writes.get(node)
        when = None if write is None or write.when is None else self.entry(write.when)
        is_unchanged = inputs == node.inputs and control == node.control and params == node.params
        if is_unchanged and (write is None or when is write.when):
            return
        rebuilt = Node(node.op, inputs, params, node.name, control)
        graph = self.graph
        if write is not None:
            graph.writes[rebuilt] = evolve(write, value=inputs[0], when=when)
        if node in graph.checks:
            graph.checks[rebuilt] = graph.checks[node]
        if node in graph.devices:
            graph.devices[rebuilt] = graph.devices[node]
        self.nodes[node] = (rebuilt,)
        for old, new in zip(node.entries, rebuilt.entries, strict=True):
            if old not in self.entries:  # one result of several may be fed
                self._set(old, new)

    def _set(self, old: Entry, new: Entry) -> None:
        """Record the entry of the run for ``old``, and the extents of its declared sizes.

        A declared size is an extent of ``old`` that is one symbol; its first value stays.

        Args:
            old: The entry of the program.
            new: The entry of the run.
        """
        self.entries[old] = new
        for declared, n in zip(old.shape or (), new.shape or (), strict=False):
            if isinstance(declared, Size) and declared != n and len(declared.symbols) == 1:
                name = next(iter(declared.symbols))
                if declared == Size.symbol(name):
                    self.sizes.setdefault(name, n)

    def _substitute_sizes(self, value: Any) -> Any:
        """Return a node parameter with the sizes of this run in place of symbols.

        They are substituted in a size and in nested tuples; other values are returned as they are.
        """
        if isinstance(value, Size):
            return substitute(value, self.sizes)
        if isinstance(value, tuple):
            return tuple(map(self._substitute_sizes, value))
        return value


def has_deferred_calls(nodes: Iterable[Node]) -> bool:
    """Return whether any of these nodes is a deferred call, which must be resolved in a run."""
    return any(map(is_deferred, nodes))


def resolve_deferred_calls(
    graph: Graph, order: Sequence[Node], fed: Mapping[Entry, Entry]
) -> Resolution:
    """Rebuild the nodes of a run for the shapes of its feeds.

    Args:
        graph: The program.
        order: The nodes of the run in topological order.
        fed: For each entry that is fed the input that replaces it.

    Returns:
        The map from the program to the run.

    Raises:
        FeedError: For a placeholder without a shape that is not fed.
        ShapeError: If the shapes of the feeds do not fit an operator, or from a deferred call.
    """
    resolution = Resolution(graph)
    for entry, replacement in fed.items():
        resolution._set(entry, replacement)
    members = set(order)
    declaring_nodes = {s: n for n in order if is_deferred(n) for s in _declared_sizes(n)}

    def dependencies(node: Node) -> list[Node]:
        values = () if is_deferred(node) else node.params.values()
        sizes = (v if isinstance(v, tuple) else (v,) for v in values)
        declaring = {
            declaring_nodes[s] for v in sizes for s in symbols_of(v) if s in declaring_nodes
        }
        write = graph.writes.get(node)
        conditions = [] if write is None or write.when is None else [write.when.node]
        return [n for n in (*declaring, *before(node), *conditions) if n in members]

    for node in post_order(order, dependencies):
        resolution.visit(node)
    return resolution


def _declared_sizes(node: Node) -> frozenset[str]:
    """Return the names of the sizes in the declared shapes of a deferred node."""
    return symbols_of(n for e in node.entries for n in e.shape or ())
