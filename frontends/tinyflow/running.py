"""A run as a pure graph: what fetches need, with reads and writes of variables turned to values.

An operator reads a variable as it is when the run begins, or as it is after those writes that the
operator depends on, through its inputs or tf.control_dependencies. So a step of training computes
all gradients from the old values, in whatever order updates stand. A fetched variable is what it
holds when the run ends. Writes happen in the order in which the fetches come to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import define, field, frozen

from passkit.frontends.tinyflow.graphs import Graph, Write
from passkit.frontends.tinyflow.resolving import is_waiting, resolve
from passkit.frontends.tinyflow.variables import Variable
from passkit.frontends.writes import newest
from passkit.graph import graph as core
from passkit.graph.node import AS_READ, Entry, Node, is_state
from passkit.graph.op import get_op
from passkit.values.size import symbols_of


@frozen(eq=False)
class Pure:
    """A run: the pure graph, what it reads of the session's variables, and what it writes."""

    graph: core.Graph
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    checks: tuple[str, ...]
    """The last outputs must be finite: what to say of each if it is not."""


Written = Mapping[Node, tuple[int, Entry]]
"""For a variable, the number of the last write that came before, and the value."""
NOTHING: Written = {}


@define(eq=False)
class Walk:
    """Goes through the nodes of a run in program order."""

    graph: Graph
    fed: Mapping[Entry, Entry]
    value: dict[Entry, Entry] = field(factory=dict)
    before: dict[Node, Written] = field(factory=dict)
    """The writes that a node comes after, its own included."""
    seen: dict[Node, Written] = field(factory=dict)
    """The writes that a node came after when it read."""
    latest: dict[Node, Entry] = field(factory=dict)
    count: int = 0

    def needs(self, node: Node) -> Iterable[Node]:
        """What runs before a node; nothing where all that it gives is fed."""
        if node.entries and all(e in self.fed for e in node.entries):
            return ()
        write = self.graph.writes.get(node)
        if write is not None and write.when is not None:
            return [*core.before(node), write.when.node]
        return core.before(node)

    def visit(self, node: Node) -> None:
        """Take the next node in program order."""
        if any(e in self.fed for e in node.entries):
            self.value.update((e, self.fed[e]) for e in node.entries if e in self.fed)
            self.before[node] = self.seen[node] = NOTHING
            if all(e in self.fed for e in node.entries):
                return
        came = self.merged(node)
        self.seen[node] = self.before[node] = came
        write = self.graph.writes.get(node)
        if write is not None:
            self.write(node, write, came)
        elif node.op is None:
            self.value.setdefault(node.entries[0], node.entries[0])
        elif node.op is AS_READ:
            reader = node.control[0] if node.control else node
            self.value[node.entries[0]] = self.read(node.inputs[0], self.seen[reader])
        else:
            inputs = tuple(self.read(e, came) for e in node.inputs)
            if node.op.name == "identity" and not node.name:
                self.value[node.entries[0]] = inputs[0]
                return
            same = inputs == node.inputs and not node.control
            made = node if same else node.replaced(inputs, ())
            for e, new in zip(node.entries, made.entries, strict=True):
                self.value.setdefault(e, new)

    def merged(self, node: Node) -> Written:
        """The writes that come before a node."""
        return newest(self.before.get(n, NOTHING) for n in core.before(node))

    def read(self, entry: Entry, came: Written) -> Entry:
        """What an entry stands for, read after these writes."""
        if entry in self.fed:
            return self.fed[entry]
        if not is_state(entry):
            return self.value[entry]
        return came[entry.node][1] if entry.node in came else entry

    def write(self, node: Node, write: Write, came: Written) -> None:
        """Note what a node writes."""
        target = write.variable.state
        value = self.read(write.value, came)
        if write.adds:
            now = self.latest.get(target.node, target)
            value = now + value if write.adds > 0 else now - value
        if write.when is not None:
            now = self.latest.get(target.node, target)
            value = get_op("where")(self.read(write.when, came), value, now)
        self.count += 1
        self.latest[target.node] = value
        self.value[node.entries[0]] = value
        self.before[node] = {**came, target.node: (self.count, value)}


def pure(
    graph: Graph,
    fetches: Sequence[Entry | Variable],
    targets: Iterable[Node],
    fed: Mapping[Entry, Entry],
) -> Pure:
    """The run of ``graph`` that gives ``fetches`` and runs ``targets``; ``fed`` entries are given.

    What is fed is not computed, nor what only it needs.
    """
    walk = Walk(graph, fed)
    targets = list(targets)
    ends = [f.state.node if isinstance(f, Variable) else f.node for f in fetches]
    order = core.post_order([*ends, *targets], walk.needs)
    if is_waiting(order):
        known = resolve(graph, order, fed)
        fetches = [f if isinstance(f, Variable) else known.entry(f) for f in fetches]
        targets = known.after(targets)
        fed = {stand_in: stand_in for stand_in in fed.values()}
        walk = Walk(graph, fed)
        ends = [f.state.node if isinstance(f, Variable) else f.node for f in fetches]
        order = core.post_order([*ends, *targets], walk.needs)
    for node in order:
        walk.visit(node)
    outputs = []
    for f in fetches:
        if isinstance(f, Variable):
            outputs.append(fed.get(f.state) or walk.latest.get(f.state.node, f.state))
        else:
            outputs.append(walk.read(f, walk.before[f.node]))
    checked = [n for n in order if n in graph.checks]
    outputs += [walk.value[n.entries[0]] for n in checked]
    updates = [(v, e) for v, e in walk.latest.items() if e is not v.entries[0]]
    heads = _sized([*outputs, *(e for _, e in updates)], fed.values())
    values = heads[len(outputs) :]
    updates = [(v, e) for (v, _), e in zip(updates, values, strict=True)]
    whole = core.Graph(heads[: len(outputs)], updates)
    said = tuple(f"{n.name}: {graph.checks[n]}" for n in checked)
    return Pure(whole, read_by(whole), tuple(v.name for v in walk.latest), said)


def _sized(heads: Sequence[Entry], feeds: Iterable[Entry]) -> list[Entry]:
    """The values to compute, from which every unknown size that they need can be told.

    A tensor of sizes does not read what has that size: then a feed that has it is read, too.
    """
    whole = core.Graph(heads)
    told = symbols_of(n for v in whole.inputs for n in v.entries[0].shape or ())
    asked: frozenset[str] = frozenset()
    for node in whole.nodes:
        for value in node.params.values():
            asked |= symbols_of(value if isinstance(value, tuple) else (value,))
    homes = [f for f in feeds if symbols_of(f.shape or ()) & (asked - told)]
    if not homes or not heads:
        return list(heads)
    return [get_op("sized_by")(heads[0], *homes), *heads[1:]]


def read_by(graph: core.Graph) -> tuple[str, ...]:
    """The variables whose values are needed."""
    found = dict.fromkeys(e.node.name for n in graph.nodes for e in n.inputs if is_state(e))
    found.update(dict.fromkeys(e.node.name for e in graph.heads if is_state(e)))
    return tuple(found)

