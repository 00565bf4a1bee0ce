"""Functionalize: reads and writes of state variables become values, in program order.

Source: NNVM's OrderMutation does this with control edges and versions; here nothing is left to
order. An operator with TStateful and FExpand writes state: it is what FExpand gives, written into
its first input.
"""

from __future__ import annotations

from attrs import define, field

from passkit.errors import GraphError
from passkit.graph.graph import Graph
from passkit.graph.narrow import expanded
from passkit.graph.node import AS_READ, Entry, Node, is_state
from passkit.graph.op import FExpand, TStateful
from passkit.passes.base import register_pass


@register_pass(
    "Functionalize", provides="functional", changes_graph=True, implied=True, required=True
)
def functionalize(graph: Graph) -> Graph:
    """Replace writes by values; what is written last becomes an update of the graph.

    Program order is post-order: a read sees the last write before it. An output that is a variable
    is read after all that its own and earlier outputs need; one ``as_read`` by a node is what that
    node read. Control dependences on a write go to
    what the write itself depended on; others are kept.

    state a; e = exp(a); w = assign(a, 0); y = add(e, 1) after w; return y
    becomes    state a; e = exp(a); y = add(e, 1); return y; update a = 0

    Raises: GraphError when what is written is not a state variable.
    """
    if not any(n.op is AS_READ or writes(n) for n in graph.nodes):
        return graph.with_attrs(functional=True)
    walk = _Walk()
    position = {n: k for k, n in enumerate(graph.nodes)}
    outputs: list[Entry] = []
    done = 0
    for entry in graph.outputs:
        # Post-order visits one output after the other: what the first k need stands first.
        done_here = max(done, position[entry.node] + 1)
        for node in graph.nodes[done:done_here]:
            walk.visit(node)
        done = done_here
        outputs.append(walk.read(entry))
    for node in graph.nodes[done:]:
        walk.visit(node)
    for variable, value in graph.updates:
        walk.latest[variable] = walk.value.get(value, value)
    updates = [(v, e) for v, e in walk.latest.items() if e is not v.entries[0]]
    return Graph(outputs, updates).with_attrs(functional=True)


def writes(node: Node) -> bool:
    """Whether a node writes a state variable."""
    return (
        node.op is not None
        and TStateful.get(node.op.name, False)
        and bool(FExpand.get(node.op.name))
    )


@define(eq=False)
class _Walk:
    """A walk in program order: what each variable holds by now, and what became of nodes."""

    latest: dict[Node, Entry] = field(factory=dict)
    value: dict[Entry, Entry] = field(factory=dict)
    control: dict[Node, tuple[Node, ...]] = field(factory=dict)
    seen: dict[tuple[Node, Entry], Entry] = field(factory=dict)

    def read(self, entry: Entry) -> Entry:
        """What ``entry`` stands for at this point of the program."""
        found = self.latest.get(entry.node)
        return self.value.get(entry, entry) if found is None else found

    def visit(self, node: Node) -> None:
        """Take the next node in program order."""
        if node.op is None:
            return
        inputs = tuple(self.read(e) for e in node.inputs)
        for e, found in zip(node.inputs, inputs, strict=True):
            if is_state(e):
                self.seen[node, e] = found
        before = dict.fromkeys(c for d in node.control for c in self.control.get(d, (d,)))
        control = tuple(before)
        if node.op is AS_READ:
            reader, entry = node.control[0], node.inputs[0]
            self.value[node.entries[0]] = self.seen.get((reader, entry), inputs[0])
            self.control[node] = control
            return
        if writes(node):
            self.write(node, inputs, control)
            return
        if inputs != node.inputs or control != node.control:
            made = node.replaced(inputs, control)
            self.value.update(zip(node.entries, made.entries, strict=True))
            self.control[node] = (made,)

    def write(self, node: Node, inputs: tuple[Entry, ...], control: tuple[Node, ...]) -> None:
        """Note what a node writes, instead of the node."""
        target = node.inputs[0].node
        if target.op is not None or not target.params.get("state"):
            what = "an input" if target.op is None else f"the result of {target.where}"
            raise GraphError(
                f"{node.where} must write a state variable, and '{target.label}' is {what}; "
                f"pk.state(name, value) makes one"
            )
        assert node.op is not None
        whole = node.replaced((node.inputs[0], *inputs[1:]))
        entries = expanded(whole, inputs)
        assert entries is not None
        self.latest[target] = entries[0]
        self.value.update(zip(node.entries, entries, strict=True))
        self.control[node] = control
