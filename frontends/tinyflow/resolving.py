"""Deferred calls, made: the nodes of a run rebuilt once the shapes of its feeds are known.

A run of placeholders without shapes goes through here before `running` turns its reads and writes
of variables into values. Nodes are taken in program order. A deferred node is replaced by what its
call gives; a node whose inputs changed is made again, which infers its shape. Sizes that were
declared before the run, such as the first of ``tf.reshape(x, [-1, 784])``, are replaced wherever
parameters hold them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import define, evolve, field

from passkit.errors import FeedError
from passkit.frontends.tinyflow.deferring import is_deferred
from passkit.frontends.tinyflow.graphs import Graph
from passkit.frontends.tinyflow.tensors import Tensor
from passkit.graph.graph import before, post_order
from passkit.graph.node import Entry, Node, is_state
from passkit.values.size import Extent, Size, substitute, symbols_of


@define(eq=False)
class Resolution:
    """A map from the nodes and entries of a program to those of one run."""

    graph: Graph
    entries: dict[Entry, Entry] = field(factory=dict)
    nodes: dict[Node, tuple[Node, ...]] = field(factory=dict)
    tensors: dict[Entry, Tensor] = field(factory=dict)
    """For results of deferred calls the tensor, which may hold known numbers."""
    sizes: dict[str, Extent] = field(factory=dict)
    """For sizes that were declared before the run what they are in it."""

    def entry(self, entry: Entry) -> Entry:
        """Return the entry of the run for an entry of the program."""
        return self.entries.get(entry, entry)

    def after(self, nodes: Iterable[Node]) -> tuple[Node, ...]:
        """Return the nodes of the run for nodes of the program."""
        return tuple(dict.fromkeys(new for n in nodes for new in self.nodes.get(n, (n,))))

    def take(self, node: Node) -> None:
        """Resolve the next node in program order."""
        if all(e in self.entries for e in node.entries) and node.entries:
            self.nodes[node] = tuple(dict.fromkeys(self.entries[e].node for e in node.entries))
        elif node.op is None:
            self._check_fed(node)
        elif is_deferred(node):
            self._make_call(node)
        else:
            self._make_again(node)

    def _check_fed(self, node: Node) -> None:
        if node.entries[0].shape is None and not is_state(node.entries[0]):
            raise FeedError(
                f"placeholder '{node.name}' needs a value in feed_dict, got none; "
                f"session.run(fetches, {{{node.name}: array}})"
            )

    def _make_call(self, node: Node) -> None:
        """Replace a deferred node by the results of its call."""
        inputs = [
            self.tensors[e] if e in self.tensors else Tensor(
                self.entry(e), e.node.name, self.graph
            )
            for e in node.inputs
        ]
        graph, control = self.graph, self.after(node.control)
        with graph.as_default(), graph.aside(), graph.after(None), graph.after(control):
            results = node.params["call"](inputs)
        for old, tensor in zip(node.entries, results, strict=True):
            self.tensors[old] = tensor
            self._put(old, tensor.entry)
        self.nodes[node] = tuple(dict.fromkeys(self.entries[e].node for e in node.entries))

    def _make_again(self, node: Node) -> None:
        """Make a node of what its inputs are in the run, unless nothing changed."""
        inputs = tuple(map(self.entry, node.inputs))
        control = self.after(node.control)
        params = {k: self._sized(v) for k, v in node.params.items()} if self.sizes else node.params
        write = self.graph.writes.get(node)
        when = None if write is None or write.when is None else self.entry(write.when)
        same = inputs == node.inputs and control == node.control and params == node.params
        if same and (write is None or when is write.when):
            return
        made = Node(node.op, inputs, params, node.name, control)
        graph = self.graph
        if write is not None:
            graph.writes[made] = evolve(write, value=inputs[0], when=when)
        if node in graph.checks:
            graph.checks[made] = graph.checks[node]
        if node in graph.devices:
            graph.devices[made] = graph.devices[node]
        self.nodes[node] = (made,)
        for old, new in zip(node.entries, made.entries, strict=True):
            if old not in self.entries:  # one result of several may be fed
                self._put(old, new)

    def _put(self, old: Entry, new: Entry) -> None:
        """Note what an entry is, and what the sizes are that it was declared with."""
        self.entries[old] = new
        for declared, n in zip(old.shape or (), new.shape or (), strict=False):
            if isinstance(declared, Size) and declared != n and len(declared.symbols) == 1:
                name = next(iter(declared.symbols))
                if declared == Size.symbol(name):
                    self.sizes.setdefault(name, n)

    def _sized(self, value: Any) -> Any:
        """A parameter with the declared sizes replaced."""
        if isinstance(value, Size):
            return substitute(value, self.sizes)
        if isinstance(value, tuple):
            return tuple(map(self._sized, value))
        return value


def is_waiting(order: Iterable[Node]) -> bool:
    """Whether any of these nodes is resolved only in a run."""
    return any(map(is_deferred, order))


def resolve(graph: Graph, order: Sequence[Node], fed: Mapping[Entry, Entry]) -> Resolution:
    """Build the nodes of a run that feeds these entries.

    Args:
        graph: The program.
        order: Nodes, those that run before another first.
        fed: For each entry that is fed the variable that stands for it.

    Raises: FeedError for a placeholder without a shape that is not fed.
    """
    found = Resolution(graph)
    for entry, stand_in in fed.items():
        found._put(entry, stand_in)
    inside = set(order)
    homes = {s: n for n in order if is_deferred(n) for s in _declared(n)}

    def needs(node: Node) -> list[Node]:
        given = () if is_deferred(node) else node.params.values()
        sizes = (v if isinstance(v, tuple) else (v,) for v in given)
        told = {homes[s] for v in sizes for s in symbols_of(v) if s in homes}
        write = graph.writes.get(node)
        asked = [] if write is None or write.when is None else [write.when.node]
        return [n for n in (*told, *before(node), *asked) if n in inside]

    for node in post_order(order, needs):
        found.take(node)
    return found


def _declared(node: Node) -> frozenset[str]:
    """The sizes that a deferred node was declared with."""
    return symbols_of(n for e in node.entries for n in e.shape or ())
