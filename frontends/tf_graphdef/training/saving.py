"""From a program of tinyflow to a GraphDef that TensorFlow 1 trains.

A variable is a resource. Each is read once, before the writes that do not depend on it; what comes
after a write reads what was written, and control edges say so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

from passkit.errors import ModelError, PasskitError
from passkit.frontends.tf_graphdef.export.saving import Saving, written
from passkit.frontends.tf_graphdef.export.sizes import Source, sources
from passkit.frontends.tf_graphdef.export.writer import INT64, ShapeOf, Tensor
from passkit.frontends.tinyflow.fetches import flatten_fetches
from passkit.frontends.tinyflow.functionalize import NO_WRITES, Functionalizer, WritesByVariable
from passkit.frontends.tinyflow.graphs import Graph as Program
from passkit.frontends.tinyflow.graphs import VariableWrite
from passkit.frontends.tinyflow.tensors import Operation
from passkit.frontends.tinyflow.tensors import Tensor as ProgramTensor
from passkit.frontends.tinyflow.variables import Variable
from passkit.graph.graph import Graph
from passkit.graph.node import AS_READ, Entry, Node, is_state

_ASSIGN = {0: "AssignVariableOp", 1: "AssignAddVariableOp", -1: "AssignSubVariableOp"}
_MOST_DRAWN = (1 << 31) - 1


def save_program(fetches: Any, path: str | PathLike[str] | None = None) -> bytes:
    """Write tensors and operations of tinyflow with all that they need. See `tf_graphdef.save`.

    Raises: ModelError for what is neither, for two graphs, and for operators that TensorFlow
    has nothing for.
    """
    try:
        leaves = flatten_fetches(fetches, _element).leaves
    except PasskitError:
        leaves = ()
    flat = isinstance(fetches, Mapping) and len(fetches) == len(leaves)
    names = list(map(str, fetches)) if flat else [_plain(leaf) for leaf in leaves]
    if not leaves:
        raise ModelError(
            f"tf_graphdef.save needs a pk.Graph, or tensors and operations of tinyflow, got "
            f"{fetches!r}; to be trained it needs the loss, the train op and the initializer"
        )
    graphs = {id(leaf.graph): leaf.graph for leaf in leaves}
    if len(graphs) > 1:
        first = next(leaf for leaf in leaves if leaf.graph is not leaves[0].graph)
        raise ModelError(
            f"tf_graphdef.save writes one graph, and {first!r} is of another than {leaves[0]!r}; "
            f"save them one by one"
        )
    saving = _Saving(leaves[0].graph, dict(zip(names, leaves, strict=True)))
    return written(saving.program_def(), path)


def _element(fetch: Any) -> Any:
    return fetch if isinstance(fetch, (ProgramTensor, Operation)) else None


class _Saving(Saving):
    """One program on its way."""

    def __init__(self, program: Program, leaves: Mapping[str, Any]) -> None:
        heads = [n for leaf in leaves.values() for n in nodes_behind(leaf)]
        super().__init__(Graph([n.entries[0] for n in heads]))
        self.program, self.leaves = program, leaves
        self.walk = Functionalizer(program, {})
        self.handles: dict[Node, Tensor] = {}
        self.first: dict[Node, Tensor] = {}
        """For a variable its handle, and what it holds when a run begins."""
        self.done: dict[Node, tuple[str, ...]] = {}
        """What runs a node, for those that come after it."""

    def program_def(self) -> Any:
        """The whole message. Raises: ModelError naming all operators that cannot be written."""
        writer = self.writer
        names = self.graph.names
        results = self._results()
        called = [writer.unique(name) for name in results]
        for node in self.graph.inputs:
            if node is self.program.run_number.node:
                self.counter(node)
            else:
                self.placeholder(node, writer.unique(names[node]))
            self.done[node] = (self.values[node.entries[0]].node,)
        heads = [node.entries[0] for node in self.graph.inputs]
        known = sources({self.values[e]: e.shape or () for e in heads})
        for node in self.graph.nodes:
            self.take(node, names[node], known)
        if self.failed:
            raise ModelError(self.message()) from self.cause
        for leaf, name in zip(results.values(), called, strict=True):
            self.result(leaf, name)
        kept = {*called, *(self.values[e].node for e in heads)}
        kept |= {read.node for read in self.first.values()}
        writer.drop_unread(kept)
        return writer.graph

    def _results(self) -> dict[str, Any]:
        """What gets a node of its own name; variables and placeholders have theirs."""
        own = {n.entries[0] for n in self.graph.inputs}
        return {
            name: leaf
            for name, leaf in self.leaves.items()
            if isinstance(leaf, Operation) or not (isinstance(leaf, Variable) or leaf.entry in own)
        }

    def result(self, leaf: Any, name: str) -> None:
        """The node that a fetch is: of no result for an operation."""
        if isinstance(leaf, Operation):
            after = dict.fromkeys(d for n in leaf.nodes for d in self.done[n])
            self.writer.node("NoOp", name, [_control(d) for d in after], {})
            return
        value = self.values[leaf.entry]
        self.writer.node("Identity", name, [value], {"T": value.dtype})

    def counter(self, node: Node) -> None:
        """The number of a run, which draws are made from: drawn by TensorFlow, or fed."""
        writer = self.writer
        scope = node.name
        shape = writer.constant([], INT64, scope, writer.unique(f"{scope}/shape"))
        low, high = (writer.constant(n, INT64, scope) for n in (0, _MOST_DRAWN))
        attrs = {"Tout": INT64, "T": INT64, "seed": 0, "seed2": 0}
        drawn = writer.node(
            "RandomUniformInt", writer.unique(f"{scope}/drawn"), [shape, low, high], attrs
        )
        attrs = {"dtype": INT64, "shape": ShapeOf(())}
        name = writer.unique(scope)
        writer.node("PlaceholderWithDefault", name, [Tensor(drawn, INT64)], attrs)
        self.values[node.entries[0]] = Tensor(name, INT64)

    def take(self, node: Node, name: str, known: dict[str, Source]) -> None:
        """The next node in program order, after what it comes after."""
        if node in self.done and not is_state(node.entries[0]):
            self.walk.writes_after[node] = self.walk.writes_at_read[node] = NO_WRITES
            return
        came = self.walk.writes_before(node)
        self.walk.writes_at_read[node] = self.walk.writes_after[node] = came
        nodes, begin = self.writer.graph.node, len(self.writer.graph.node)
        write = self.program.writes.get(node)
        if write is not None:
            self.write(node, write, name, came)
        elif node.op is None:
            if node not in self.handles:
                self.variable(node, name)
        elif node.op is AS_READ:
            reader = node.control[0] if node.control else node
            self.values[node.entries[0]] = self.read(
                node.inputs[0], self.walk.writes_at_read[reader]
            )
        else:
            for e in node.inputs:
                if is_state(e):
                    self.values[e] = self.read(e, came)
            self.operator(node, name, known)
        if node.op is not AS_READ:
            after = dict.fromkeys(d for c in node.control for d in self.done[c])
            for made in list(nodes)[begin:]:
                made.input.extend(f"^{d}" for d in after)
        if node not in self.done:
            known_values = [self.values[e].node for e in node.entries if e in self.values]
            self.done[node] = tuple(dict.fromkeys(known_values))

    def variable(self, node: Node, name: str) -> None:
        """A variable, and its one read before writes."""
        entry, writer = node.entries[0], self.writer
        dtype = self.graph.dtype(entry)
        attrs = {"dtype": dtype, "shape": ShapeOf(entry.shape), "shared_name": node.name}
        attrs["container"] = ""
        handle = Tensor(writer.node("VarHandleOp", writer.unique(name), (), attrs), dtype)
        read = writer.unique(f"{handle.ref}/Read/ReadVariableOp")
        self.values[entry] = self.first[node] = Tensor(
            writer.node("ReadVariableOp", read, [handle], {"dtype": dtype}), dtype
        )
        self.handles[node] = handle
        self.done[node] = ()

    def read(self, entry: Entry, came: WritesByVariable) -> Tensor:
        """What an entry is to a node that comes after these writes."""
        if not is_state(entry):
            return self.values[entry]
        found = came.get(entry.node)
        return self.first[entry.node] if found is None else self.values[found[1]]

    def write(self, node: Node, write: VariableWrite, name: str, came: WritesByVariable) -> None:
        """What a node writes into a variable, and the value that is then read."""
        writer, target = self.writer, write.variable.state.node
        if target not in self.handles:
            self.variable(target, target.name)
        value = (
            self.read(write.value, came) if is_state(write.value) else self.values.get(write.value)
        )
        if value is None:
            return  # it has failed, and is named
        self.walk.write_count += 1
        self.walk.writes_after[node] = {**came, target: (self.walk.write_count, node.entries[0])}
        handle, dtype = self.handles[target], value.dtype
        before = [self.values[came[target][1]]] if target in came else []
        inputs = [handle, value, *(_control(t.node) for t in before)]
        made = writer.unique(name)
        writer.node(_ASSIGN[write.adds], made, inputs, {"dtype": dtype})
        after = writer.unique(f"{made}/value")
        if write.adds:
            writer.node("ReadVariableOp", after, [handle, _control(made)], {"dtype": dtype})
        else:
            writer.node("Identity", after, [value, _control(made)], {"T": dtype})
        self.values[node.entries[0]] = Tensor(after, dtype)
        self.done[node] = (made,)


def nodes_behind(leaf: Any) -> Sequence[Node]:
    """The nodes that a fetch runs."""
    if isinstance(leaf, Operation):
        return leaf.nodes
    return [leaf.state.node if isinstance(leaf, Variable) else leaf.entry.node]


def _plain(leaf: Any) -> str:
    """The name of a fetch, without the number of a first result."""
    return str(leaf.name.removesuffix(":0").replace(":", "_"))


def _control(name: str) -> Tensor:
    """An edge that only orders."""
    return Tensor(f"^{name}", INT64)
