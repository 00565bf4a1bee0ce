"""Functionalization: the pure graph of one run, with variable reads and writes as values.

An operator reads a variable as it was when the run began, or as it is after those writes that the
operator depends on through its inputs or `tf.control_dependencies`. A training step therefore
computes all gradients from the old values, in whatever order its updates stand. A fetched variable
has the value that it holds when the run ends. Writes happen in the order in which a post-order walk
from the fetches reaches them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import define, field, frozen

from passkit.frontends.tinyflow.graphs import Graph, VariableWrite
from passkit.frontends.tinyflow.resolution import has_deferred_calls, resolve_deferred_calls
from passkit.frontends.tinyflow.variables import Variable
from passkit.frontends.variable_writes import latest_writes
from passkit.graph import graph as core
from passkit.graph.node import AS_READ, Entry, Node, is_state
from passkit.graph.op import get_op
from passkit.values.size import symbols_of


@frozen(eq=False)
class FunctionalRun:
    """The functional form of a run."""

    graph: core.Graph
    """The pure graph. Its last outputs are the values to check, one for each of ``checks``."""
    reads: tuple[str, ...]
    """The names of the variables whose values the graph reads."""
    writes: tuple[str, ...]
    """The names of the variables that the graph updates."""
    checks: tuple[str, ...]
    """Error messages for the outputs that must be finite."""


WritesByVariable = Mapping[Node, tuple[int, Entry]]
"""For each variable the last write that a node depends on: its number, and the value."""
NO_WRITES: WritesByVariable = {}


@define(eq=False)
class Functionalizer:
    """Computes the pure value of each entry, node by node in topological order.

    Args:
        graph: The program.
        fed: For each entry that is fed the input that replaces it.
    """

    graph: Graph
    fed: Mapping[Entry, Entry]
    value: dict[Entry, Entry] = field(factory=dict)
    """The pure value of each entry."""
    writes_after: dict[Node, WritesByVariable] = field(factory=dict)
    """The writes that a node depends on, and its own."""
    writes_at_read: dict[Node, WritesByVariable] = field(factory=dict)
    """The writes that a node depends on, without its own: those before it read its inputs."""
    latest: dict[Node, Entry] = field(factory=dict)
    """The newest value of each variable written so far."""
    write_count: int = 0

    def dependencies(self, node: Node) -> Iterable[Node]:
        """Return the nodes that run before ``node``, the condition of its write included.

        There are none if it has outputs and all are fed.
        """
        if node.entries and all(e in self.fed for e in node.entries):
            return ()
        write = self.graph.writes.get(node)
        if write is not None and write.when is not None:
            return [*core.before(node), write.when.node]
        return core.before(node)

    def visit(self, node: Node) -> None:
        """Record the values and the write of a node whose dependencies have been visited.

        Change ``value``, ``writes_after``, ``writes_at_read`` and, for a write, ``latest``.
        """
        if any(e in self.fed for e in node.entries):
            self.value.update((e, self.fed[e]) for e in node.entries if e in self.fed)
            self.writes_after[node] = self.writes_at_read[node] = NO_WRITES
            if all(e in self.fed for e in node.entries):
                return
        writes = self.writes_before(node)
        self.writes_at_read[node] = self.writes_after[node] = writes
        write = self.graph.writes.get(node)
        if write is not None:
            self.write(node, write, writes)
        elif node.op is None:
            self.value.setdefault(node.entries[0], node.entries[0])
        elif node.op is AS_READ:
            reader = node.control[0] if node.control else node
            self.value[node.entries[0]] = self.read(node.inputs[0], self.writes_at_read[reader])
        else:
            inputs = tuple(self.read(e, writes) for e in node.inputs)
            if node.op.name == "identity" and not node.name:
                self.value[node.entries[0]] = inputs[0]
                return
            is_unchanged = inputs == node.inputs and not node.control
            pure_node = node if is_unchanged else node.replaced(inputs, ())
            for e, new in zip(node.entries, pure_node.entries, strict=True):
                self.value.setdefault(e, new)

    def writes_before(self, node: Node) -> WritesByVariable:
        """Return the latest write of each variable by the dependencies of ``node``."""
        return latest_writes(self.writes_after.get(n, NO_WRITES) for n in core.before(node))

    def read(self, entry: Entry, writes: WritesByVariable) -> Entry:
        """Return the pure value of an entry of the program.

        Args:
            entry: The entry.
            writes: Latest write of each variable before the read, by variable node.

        Returns:
            The fed value if there is one; for a variable its value after ``writes``.
        """
        if entry in self.fed:
            return self.fed[entry]
        if not is_state(entry):
            return self.value[entry]
        return writes[entry.node][1] if entry.node in writes else entry

    def write(self, node: Node, write: VariableWrite, writes: WritesByVariable) -> None:
        """Record the write that ``node`` performs, in this object.

        Afterwards ``latest`` and ``value`` have the variable's new value, and ``writes_after`` has
        ``writes`` with it for this node. The argument ``writes`` is not changed.

        Args:
            node: The node.
            write: Its write.
            writes: Latest write of each variable before the node, by variable node.
        """
        target = write.variable.state
        value = self.read(write.value, writes)
        if write.adds:
            current = self.latest.get(target.node, target)
            value = current + value if write.adds > 0 else current - value
        if write.when is not None:
            current = self.latest.get(target.node, target)
            value = get_op("where")(self.read(write.when, writes), value, current)
        self.write_count += 1
        self.latest[target.node] = value
        self.value[node.entries[0]] = value
        self.writes_after[node] = {**writes, target.node: (self.write_count, value)}


def functionalize(
    graph: Graph,
    fetches: Sequence[Entry | Variable],
    targets: Iterable[Node],
    fed: Mapping[Entry, Entry],
) -> FunctionalRun:
    """Build the pure graph of a run.

    Args:
        graph: The program.
        fetches: The values that the run returns, in the order of the graph's outputs.
        targets: Nodes that the run executes for their effects.
        fed: For each entry that is fed the input that replaces it. Neither such entries nor nodes
            that only they need are computed.

    Returns:
        The functional form of the run.

    Raises:
        FeedError: If the run has deferred calls, for a placeholder without a shape that is needed
            and not fed. A missing feed of another run is not noticed here.
        ShapeError: If the run has deferred calls, and the shapes of its feeds do not fit an
            operator.
    """
    walk = Functionalizer(graph, fed)
    targets = list(targets)
    order = _topological_order(walk, fetches, targets)
    if has_deferred_calls(order):
        resolution = resolve_deferred_calls(graph, order, fed)
        fetches = [f if isinstance(f, Variable) else resolution.entry(f) for f in fetches]
        targets = resolution.control_nodes(targets)
        fed = {replacement: replacement for replacement in fed.values()}
        walk = Functionalizer(graph, fed)
        order = _topological_order(walk, fetches, targets)
    for node in order:
        walk.visit(node)
    outputs = []
    for f in fetches:
        if isinstance(f, Variable):
            outputs.append(fed.get(f.state) or walk.latest.get(f.state.node, f.state))
        else:
            outputs.append(walk.read(f, walk.writes_after[f.node]))
    checked = [n for n in order if n in graph.checks]
    outputs += [walk.value[n.entries[0]] for n in checked]
    updates = [(v, e) for v, e in walk.latest.items() if e is not v.entries[0]]
    heads = _add_size_sources([*outputs, *(e for _, e in updates)], fed.values())
    values = heads[len(outputs) :]
    updates = [(v, e) for (v, _), e in zip(updates, values, strict=True)]
    pure_graph = core.Graph(heads[: len(outputs)], updates)
    messages = tuple(f"{n.name}: {graph.checks[n]}" for n in checked)
    writes = tuple(v.name for v in walk.latest)
    return FunctionalRun(pure_graph, variables_read(pure_graph), writes, messages)


def _topological_order(
    walk: Functionalizer, fetches: Sequence[Entry | Variable], targets: Iterable[Node]
) -> Sequence[Node]:
    """Return the nodes that a run needs, dependencies first.

    Args:
        walk: Tells the dependencies of each node; it is not changed.
        fetches: The entries and variables that the run returns.
        targets: Nodes that the run executes for their effects.
    """
    ends = [f.state.node if isinstance(f, Variable) else f.node for f in fetches]
    return core.post_order([*ends, *targets], walk.dependencies)


def _add_size_sources(heads: Sequence[Entry], feeds: Iterable[Entry]) -> list[Entry]:
    """Make the first head read feeds that determine symbolic sizes which no input determines.

    A tensor computed from sizes alone, such as ``tf.zeros(tf.shape(x))``, does not read ``x``.

    Args:
        heads: The outputs and updates of a run.
        feeds: The inputs that replace fed entries.

    Returns:
        The heads, the first one replaced if necessary.
    """
    graph = core.Graph(heads)
    determined = symbols_of(n for v in graph.inputs for n in v.entries[0].shape or ())
    needed: frozenset[str] = frozenset()
    for node in graph.nodes:
        for value in node.params.values():
            needed |= symbols_of(value if isinstance(value, tuple) else (value,))
    sources = [f for f in feeds if symbols_of(f.shape or ()) & (needed - determined)]
    if not sources or not heads:
        return list(heads)
    return [get_op("sized_by")(heads[0], *sources), *heads[1:]]


def variables_read(graph: core.Graph) -> tuple[str, ...]:
    """Return the names of the variables whose values a pure graph reads or returns, each once.

    Variables that it only updates are left out.
    """
    names = dict.fromkeys(e.node.name for n in graph.nodes for e in n.inputs if is_state(e))
    names.update(dict.fromkeys(e.node.name for e in graph.heads if is_state(e)))
    return tuple(names)
