"""Export of a tinyflow program as a GraphDef that TensorFlow 1 can train.

Variables become resources. Each is read once before the writes that do not depend on it; nodes
after a write read the value written, ordered by control edges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

from passkit.errors import ModelError, PasskitError
from passkit.frontends.tf_graphdef.export.graph_exporter import GraphExporter, serialize
from passkit.frontends.tf_graphdef.export.graphdef_writer import INT64, NodeOutput, ShapeAttr
from passkit.frontends.tf_graphdef.export.size_arithmetic import SizeSource, find_size_sources
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
    """Write tinyflow tensors and operations, and all that they depend on, as a GraphDef.

    A result index is appended to the name of a fetch that has one: ``a_1`` for ``a:1``.

    Args:
        fetches: Tensors and operations of one tinyflow graph, in any structure; a flat dict gives
            the names to write.
        path: File to write; None writes no file.

    Returns:
        The serialized GraphDef.

    Raises:
        ModelError: If ``fetches`` are none, of other types or of two graphs, operators have no
            equivalent in TensorFlow, the GraphDef has 2 GiB or more, or the file cannot be written.
    """
    try:
        leaves = flatten_fetches(fetches, _element).leaves
    except PasskitError:
        leaves = ()
    is_flat_mapping = isinstance(fetches, Mapping) and len(fetches) == len(leaves)
    fetch_names = list(map(str, fetches)) if is_flat_mapping else [_plain(leaf) for leaf in leaves]
    if not leaves:
        raise ModelError(
            f"tf_graphdef.save needs a pk.Graph, or tensors and operations of tinyflow, got "
            f"{fetches!r}; save the loss, the train op and the initializer to train the model "
            f"in TensorFlow"
        )
    graphs = {id(leaf.graph): leaf.graph for leaf in leaves}
    if len(graphs) > 1:
        first = next(leaf for leaf in leaves if leaf.graph is not leaves[0].graph)
        raise ModelError(
            f"tf_graphdef.save writes one graph, and {first!r} belongs to another graph than "
            f"{leaves[0]!r}; save each graph by itself"
        )
    saving = _ProgramExporter(leaves[0].graph, dict(zip(fetch_names, leaves, strict=True)))
    return serialize(saving.program_def(), path)


def _element(fetch: Any) -> Any:
    """Return a fetch if it is a tensor or operation of a program, else None."""
    return fetch if isinstance(fetch, (ProgramTensor, Operation)) else None


class _ProgramExporter(GraphExporter):
    """Writes one tinyflow program as a GraphDef, in program order."""

    def __init__(self, program: Program, leaves: Mapping[str, Any]) -> None:
        """Prepare to write ``leaves``: tensors and operations of ``program`` by name."""
        heads = [n for leaf in leaves.values() for n in nodes_behind(leaf)]
        super().__init__(Graph([n.entries[0] for n in heads]))
        self.program, self.leaves = program, leaves
        self.walk = Functionalizer(program, {})
        self.handles: dict[Node, NodeOutput] = {}
        self.first: dict[Node, NodeOutput] = {}
        """The read of each variable at the start of a run."""
        self.done: dict[Node, tuple[str, ...]] = {}
        """For each node, the names of the written nodes to which control edges lead."""

    def program_def(self) -> Any:
        """Write all nodes and return the GraphDef.

        It is written once; a second call would repeat the nodes.

        Raises:
            ModelError: If operators cannot be written; all are named.
        """
        writer = self.writer
        names = self.graph.names
        results = self._results()
        result_names = [writer.unique(name) for name in results]
        for node in self.graph.inputs:
            if node is self.program.run_number.node:
                self.counter(node)
            else:
                self.placeholder(node, writer.unique(names[node]))
            self.done[node] = (self.values[node.entries[0]].node,)
        heads = [node.entries[0] for node in self.graph.inputs]
        size_sources = find_size_sources({self.values[e]: e.shape or () for e in heads})
        for node in self.graph.nodes:
            self.take(node, names[node], size_sources)
        if self.failed:
            raise ModelError(self.message()) from self.cause
        for leaf, name in zip(results.values(), result_names, strict=True):
            self.result(leaf, name)
        kept_names = {*result_names, *(self.values[e].node for e in heads)}
        kept_names |= {read.node for read in self.first.values()}
        writer.remove_unread(kept_names)
        return writer.graph

    def _results(self) -> dict[str, Any]:
        """Return the fetches by name, without the variables and placeholders among them.

        Those need no further node: the node of the variable or placeholder has their value.
        """
        input_entries = {n.entries[0] for n in self.graph.inputs}
        return {
            name: leaf
            for name, leaf in self.leaves.items()
            if isinstance(leaf, Operation)
            or not (isinstance(leaf, Variable) or leaf.entry in input_entries)
        }

    def result(self, leaf: Any, name: str) -> None:
        """Write a node called ``name`` for a fetch: Identity of a tensor, NoOp for an operation.

        The NoOp has control edges from the written nodes of the operation.

        ``leaf`` is the fetch.
        """
        if isinstance(leaf, Operation):
            after = dict.fromkeys(d for n in leaf.nodes for d in self.done[n])
            self.writer.node("NoOp", name, [_control(d) for d in after], {})
            return
        value = self.values[leaf.entry]
        self.writer.node("Identity", name, [value], {"T": value.dtype})

    def counter(self, node: Node) -> None:
        """Write the run number ``node``, the seed of random draws, as PlaceholderWithDefault.

        By default TensorFlow draws it anew in each run.

        The tensor is stored in ``values``.
        """
        writer = self.writer
        scope = node.name
        shape = writer.constant([], INT64, scope, writer.unique(f"{scope}/shape"))
        low, high = (writer.constant(n, INT64, scope) for n in (0, _MOST_DRAWN))
        attrs = {"Tout": INT64, "T": INT64, "seed": 0, "seed2": 0}
        drawn = writer.node(
            "RandomUniformInt", writer.unique(f"{scope}/drawn"), [shape, low, high], attrs
        )
        attrs = {"dtype": INT64, "shape": ShapeAttr(())}
        name = writer.unique(scope)
        writer.node("PlaceholderWithDefault", name, [NodeOutput(drawn, INT64)], attrs)
        self.values[node.entries[0]] = NodeOutput(name, INT64)

    def take(self, node: Node, name: str, size_sources: dict[str, SizeSource]) -> None:
        """Write the next node in program order, unless it is an input that was written before.

        The tensors are stored in ``values``, and the node is marked in ``done``. A failure is
        recorded in ``failed``.

        Args:
            node: The node; it may be a write, a variable, a read or an operator.
            name: Name to give it.
            size_sources: Tensors from which symbolic sizes are read, by name.
        """
        if node in self.done and not is_state(node.entries[0]):
            self.walk.writes_after[node] = self.walk.writes_at_read[node] = NO_WRITES
            return
        prior_writes = self.walk.writes_before(node)
        self.walk.writes_at_read[node] = self.walk.writes_after[node] = prior_writes
        nodes, begin = self.writer.graph.node, len(self.writer.graph.node)
        write = self.program.writes.get(node)
        if write is not None:
            self.write(node, write, name, prior_writes)
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
                    self.values[e] = self.read(e, prior_writes)
            self.operator(node, name, size_sources)
        if node.op is not AS_READ:
            after = dict.fromkeys(d for c in node.control for d in self.done[c])
            for written_node in list(nodes)[begin:]:
                written_node.input.extend(f"^{d}" for d in after)
        if node not in self.done:
            value_nodes = [self.values[e].node for e in node.entries if e in self.values]
            self.done[node] = tuple(dict.fromkeys(value_nodes))

    def variable(self, node: Node, name: str) -> None:
        """Write the variable ``node`` called ``name``, and its read at the start of a run.

        Handle, read and value are stored in ``handles``, ``first``, ``values`` and ``done``.
        """
        entry, writer = node.entries[0], self.writer
        dtype = self.graph.dtype(entry)
        attrs = {"dtype": dtype, "shape": ShapeAttr(entry.shape), "shared_name": node.name}
        attrs["container"] = ""
        handle = NodeOutput(writer.node("VarHandleOp", writer.unique(name), (), attrs), dtype)
        read = writer.unique(f"{handle.ref}/Read/ReadVariableOp")
        self.values[entry] = self.first[node] = NodeOutput(
            writer.node("ReadVariableOp", read, [handle], {"dtype": dtype}), dtype
        )
        self.handles[node] = handle
        self.done[node] = ()

    def read(self, entry: Entry, prior_writes: WritesByVariable) -> NodeOutput:
        """Return the tensor of an entry as read after ``prior_writes``.

        For a variable this is the value of its last prior write, else its value at the start.

        Raises:
            KeyError: If the entry was not written.
        """
        if not is_state(entry):
            return self.values[entry]
        last_write = prior_writes.get(entry.node)
        return self.first[entry.node] if last_write is None else self.values[last_write[1]]

    def write(
        self, node: Node, write: VariableWrite, name: str, prior_writes: WritesByVariable
    ) -> None:
        """Write an assignment and the value that is read afterwards.

        Nothing is written if the value could not be exported, which was recorded as a failure.

        Args:
            node: The node of the write.
            write: Variable, value, and whether it is assigned, added or subtracted.
            name: Name to give the assignment.
            prior_writes: Last write of each variable before this one.
        """
        writer, target = self.writer, write.variable.state.node
        if target not in self.handles:
            self.variable(target, target.name)
        value = (
            self.read(write.value, prior_writes)
            if is_state(write.value)
            else self.values.get(write.value)
        )
        if value is None:
            return  # its export failed, which `failed` records
        self.walk.write_count += 1
        self.walk.writes_after[node] = {
            **prior_writes,
            target: (self.walk.write_count, node.entries[0]),
        }
        handle, dtype = self.handles[target], value.dtype
        ordering = [self.values[prior_writes[target][1]]] if target in prior_writes else []
        inputs = [handle, value, *(_control(t.node) for t in ordering)]
        assign_name = writer.unique(name)
        writer.node(_ASSIGN[write.adds], assign_name, inputs, {"dtype": dtype})
        after = writer.unique(f"{assign_name}/value")
        if write.adds:
            writer.node("ReadVariableOp", after, [handle, _control(assign_name)], {"dtype": dtype})
        else:
            writer.node("Identity", after, [value, _control(assign_name)], {"T": dtype})
        self.values[node.entries[0]] = NodeOutput(after, dtype)
        self.done[node] = (assign_name,)


def nodes_behind(leaf: Any) -> Sequence[Node]:
    """Return the nodes that the fetch ``leaf`` runs.

    Those of an operation, the state of a variable, or the node of another tensor.
    """
    if isinstance(leaf, Operation):
        return leaf.nodes
    return [leaf.state.node if isinstance(leaf, Variable) else leaf.entry.node]


def _plain(leaf: Any) -> str:
    """Return the name of the fetch ``leaf``: ``a`` for ``a:0``, ``a_1`` for ``a:1``."""
    return str(leaf.name.removesuffix(":0").replace(":", "_"))


def _control(name: str) -> NodeOutput:
    """Return the input ``^name``, a control edge from a node; its dtype has no meaning."""
    return NodeOutput(f"^{name}", INT64)
