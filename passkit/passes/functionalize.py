"""Functionalize: replace reads and writes of state variables by values, in program order.

Source: NNVM's OrderMutation, which does this with control edges and versions. The functional graph
needs neither. An operator with TStateful and FExpand writes state: its FExpand gives the new value
of the variable that is its first input.
"""

from __future__ import annotations

from attrs import define, field

from passkit.errors import GraphError
from passkit.graph.graph import Graph
from passkit.graph.narrow import expand_node
from passkit.graph.node import AS_READ, Entry, Node, is_state
from passkit.graph.op import FExpand, TStateful
from passkit.passes.base import register_pass


@register_pass(
    "Functionalize", provides="functional", changes_graph=True, implied=True, required=True
)
def functionalize(graph: Graph) -> Graph:
    """Replace writes of state by values; the last value written becomes an update of the graph.

    Program order is post-order: a read sees the last write before it. An output that is a variable
    is read after everything that its own and earlier outputs need; an output ``as_read`` by a node
    is the value that the node read. Control dependencies on a write are replaced by those of the
    write; others are kept.

    state a; e = exp(a); w = assign(a, 0); y = add(e, 1) after w; return y
    becomes    state a; e = exp(a); y = add(e, 1); return y; update a = 0

    A graph without writes and ``as_read`` keeps its nodes.

    Raises: GraphError if an operator writes anything but a state variable, or its FExpand declines;
    RuleError if its FExpand returns something else than entries or None; DTypeError if it mixes
    dtypes when 16-bit inputs are widened to float32; ShapeError or DTypeError if an operator does
    not take the value that replaces a variable it reads. Other errors of FExpand propagate.
    """
    if not any(n.op is AS_READ or writes_state(n) for n in graph.nodes):
        return graph.with_attrs(functional=True)
    walk = _ProgramOrderWalk()
    position = {n: k for k, n in enumerate(graph.nodes)}
    outputs: list[Entry] = []
    num_visited = 0
    for entry in graph.outputs:
        # Post-order visits one output after the other: the nodes that the first k need come first.
        end = max(num_visited, position[entry.node] + 1)
        for node in graph.nodes[num_visited:end]:
            walk.visit(node)
        num_visited = end
        outputs.append(walk.read(entry))
    for node in graph.nodes[num_visited:]:
        walk.visit(node)
    for variable, value in graph.updates:
        walk.latest[variable] = walk.values.get(value, value)
    updates = [(v, e) for v, e in walk.latest.items() if e is not v.entries[0]]
    return Graph(outputs, updates).with_attrs(functional=True)


def writes_state(node: Node) -> bool:
    """Return whether a node writes a state variable, such as a call of `pk.ops.assign`.

    That is so if its operator has TStateful and FExpand.
    """
    return (
        node.op is not None
        and TStateful.get(node.op.name, False)
        and bool(FExpand.get(node.op.name))
    )


@define(eq=False)
class _ProgramOrderWalk:
    """The state of a walk over nodes in program order.

    Attributes:
        latest: By variable that was written: its value at this point.
        values: By entry of the graph: its functional entry, if that is another.
        control: By node that was replaced: the nodes to wait for instead.
        read_values: By node and state entry that it reads: the value that it read.
    """

    latest: dict[Node, Entry] = field(factory=dict)
    values: dict[Entry, Entry] = field(factory=dict)
    control: dict[Node, tuple[Node, ...]] = field(factory=dict)
    read_values: dict[tuple[Node, Entry], Entry] = field(factory=dict)

    def read(self, entry: Entry) -> Entry:
        """Return the value of an entry at this point: the last one written, for a variable.

        It is the entry itself if nothing replaced it.
        """
        latest = self.latest.get(entry.node)
        return self.values.get(entry, entry) if latest is None else latest

    def visit(self, node: Node) -> None:
        """Process the next node in program order: record its functional entries in ``values``.

        Raises: GraphError if it writes anything but a state variable, or its FExpand declines;
        RuleError, DTypeError or another error of its FExpand, see `write`; ShapeError or DTypeError
        if it does not take the value that replaces a variable it reads.
        """
        if node.op is None:
            return
        inputs = tuple(self.read(e) for e in node.inputs)
        for e, value in zip(node.inputs, inputs, strict=True):
            if is_state(e):
                self.read_values[node, e] = value
        control = tuple(dict.fromkeys(c for d in node.control for c in self.control.get(d, (d,))))
        if node.op is AS_READ:
            reader, entry = node.control[0], node.inputs[0]
            self.values[node.entries[0]] = self.read_values.get((reader, entry), inputs[0])
            self.control[node] = control
            return
        if writes_state(node):
            self.write(node, inputs, control)
            return
        if inputs != node.inputs or control != node.control:
            replaced = node.replaced(inputs, control)
            self.values.update(zip(node.entries, replaced.entries, strict=True))
            self.control[node] = (replaced,)

    def write(self, node: Node, inputs: tuple[Entry, ...], control: tuple[Node, ...]) -> None:
        """Record the value that a node writes to a state variable; the node itself is dropped.

        Args:
            node: the writing node.
            inputs: its inputs after rewriting; the first is the variable's value.
            control: its control dependencies after rewriting.

        Raises: GraphError if its first input is not a state variable, or FExpand declines to give
        its new value; RuleError if FExpand returns something else than entries or None; DTypeError
        if it mixes dtypes when 16-bit inputs are widened to float32. Its other errors propagate.
        """
        if not node.inputs:
            raise GraphError(
                f"{node.where} must write a state variable, its first input, and has no inputs"
            )
        target = node.inputs[0].node
        if target.op is not None or not target.params.get("state"):
            kind = "an input" if target.op is None else f"the result of {target.where}"
            raise GraphError(
                f"{node.where} must write a state variable, and '{target.label}' is {kind}; "
                f"pk.state(name, value) makes one"
            )
        assert node.op is not None
        view = node.replaced((node.inputs[0], *inputs[1:]))
        entries = expand_node(view, inputs)
        if entries is None:
            raise GraphError(
                f"{node.where} writes state, and its FExpand gave None; it must give the new value "
                f"of '{target.label}'"
            )
        self.latest[target] = entries[0]
        self.values.update(zip(node.entries, entries, strict=True))
        self.control[node] = control
