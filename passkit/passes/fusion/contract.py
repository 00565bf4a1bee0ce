"""Contraction: each group of a partition becomes one fused node over a closed graph of its own."""

from __future__ import annotations

from collections.abc import Sequence

from passkit.errors import GraphError
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node
from passkit.passes.fusion.partition import Partition
from passkit.plan.closing import make_group, reads_of_part, results_of_part
from passkit.plan.group import Group, fused_node


def contract(graph: Graph, partition: Partition) -> Graph:
    """The graph with a fused node for each group.

    Raises: GraphError when groups depend on each other in a cycle, naming two of them.
    """
    return _Contraction(graph, partition).run()


def group_of(graph: Graph, body: Sequence[Node]) -> Group:
    """The group that nodes in post-order would be, whatever becomes of the others."""
    results = results_of_part(graph, body) or [body[-1].entries[0]]
    return make_group(graph, body, reads_of_part(graph, body), results)[0]


class _Contraction:
    def __init__(self, graph: Graph, partition: Partition) -> None:
        self.graph = graph
        self.groups = partition.groups
        clones = partition.clones or [[] for _ in partition.groups]
        self.group_of = {n: k for k, g in enumerate(self.groups) for n in g}
        self.bodies = [_sorted(graph, [*g, *c]) for g, c in zip(self.groups, clones, strict=True)]
        self.needed: dict[int, list[Entry]] = {}
        self.new: dict[Entry, Entry] = {}
        self.moved: dict[Node, Node] = {}

    def run(self) -> Graph:
        order = self._order()
        wanted = self._outputs(order)
        for unit in order:
            if isinstance(unit, int):
                self._fuse(unit, wanted[unit])
            else:
                self._keep(unit)
        g = self.graph
        updates = [(self.moved[v], self.new[e]) for v, e in g.updates]
        return Graph([self.new[e] for e in g.outputs], updates)

    def _unit(self, node: Node) -> int | Node:
        return self.group_of.get(node, node)

    def _reads(self, unit: int | Node) -> list[Entry]:
        """The entries that a unit reads from outside itself."""
        if isinstance(unit, Node):
            return list(unit.inputs)
        return reads_of_part(self.graph, self.bodies[unit])

    def _order(self) -> list[int | Node]:
        """Units in dependence order, reachable ones only; depth first, without recursion."""
        g = self.graph
        done: dict[int | Node, bool] = {}
        order: list[int | Node] = []
        for head in [*(e.node for e in g.heads), *(v for v, _ in g.updates)]:
            first = self._unit(head)
            if first in done:
                continue
            done[first] = False
            stack = [(first, iter(self._before(first)))]
            while stack:
                unit, rest = stack[-1]
                for child in rest:
                    state = done.get(child)
                    if state is None:
                        done[child] = False
                        stack.append((child, iter(self._before(child))))
                        break
                    if not state:
                        raise GraphError(
                            f"fusing would make a cycle: {self._name(child)} and "
                            f"{self._name(unit)} depend on each other"
                        )
                else:
                    stack.pop()
                    done[unit] = True
                    order.append(unit)
        return order

    def _before(self, unit: int | Node) -> list[int | Node]:
        nodes = [e.node for e in self._reads(unit)]
        members = [unit] if isinstance(unit, Node) else self.groups[unit]
        nodes += [c for n in members for c in n.control]
        return [u for n in nodes if (u := self._unit(n)) != unit]

    def _name(self, unit: int | Node) -> str:
        node = unit if isinstance(unit, Node) else self.groups[unit][-1]
        return f"'{self.graph.names[node]}'"

    def _outputs(self, order: list[int | Node]) -> dict[int, list[Entry]]:
        """For each group the entries of its members that somebody outside reads."""
        wanted: dict[int, dict[Entry, None]] = {u: {} for u in order if isinstance(u, int)}
        for unit in order:
            for entry in self._reads(unit):
                owner = self.group_of.get(entry.node)
                if owner is not None and owner != unit:
                    wanted[owner][entry] = None
        for entry in self.graph.heads:
            owner = self.group_of.get(entry.node)
            if owner is not None:
                wanted[owner][entry] = None
        position = self.graph.positions
        return {
            u: sorted(es, key=lambda e: (position[e.node], e.index)) for u, es in wanted.items()
        }

    def _keep(self, node: Node) -> None:
        inputs = [self.new[e] for e in node.inputs]
        control = self._control([node], None)
        same = tuple(inputs) == node.inputs and tuple(control) == node.control
        made = node if same else node.replaced(inputs, control)
        self.moved[node] = made
        self.new.update(zip(node.entries, made.entries, strict=True))

    def _control(self, members: Sequence[Node], unit: int | None) -> list[Node]:
        found = [
            c for n in members for c in n.control if self.group_of.get(c) != unit or unit is None
        ]
        return list(dict.fromkeys(self.moved[c] for c in found if c in self.moved))

    def _fuse(self, unit: int, outputs: list[Entry]) -> None:
        reads = self._reads(unit)
        if not outputs:  # everything was cloned elsewhere, but something depends on its order
            outputs = [self.groups[unit][-1].entries[0]]
        group, reads = make_group(self.graph, self.bodies[unit], reads, outputs)
        members = self.groups[unit]
        name = self.graph.names[members[-1]]
        node = fused_node(
            group, tuple(self.new[e] for e in reads), name, self._control(members, unit)
        )
        for old, new in zip(outputs, node.entries, strict=True):
            self.new[old] = new
        for member in members:
            self.moved[member] = node


def _sorted(graph: Graph, nodes: Sequence[Node]) -> list[Node]:
    return sorted(set(nodes), key=graph.positions.__getitem__)
