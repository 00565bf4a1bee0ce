"""Export of a Graph as a GraphDef; all operators that cannot be written are named in one error."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path
from typing import Any

from google.protobuf import text_format

from passkit.errors import ModelError, PasskitError
from passkit.frontends.tf_graphdef.export.graphdef_writer import (
    GraphDefWriter,
    NameScope,
    NodeOutput,
    ShapeAttr,
)
from passkit.frontends.tf_graphdef.export.node_exporter import export_node
from passkit.frontends.tf_graphdef.export.size_arithmetic import SizeSource, find_size_sources
from passkit.frontends.tf_graphdef.proto import short
from passkit.fusion.contract import flatten
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node
from passkit.passes import ApplyPasses
from passkit.passes.functionalize import writes_state

_SHOWN = 50
_LARGEST = (1 << 31) - 1


def save(graph: Graph, path: str | PathLike[str] | None = None) -> bytes:
    """Write ``graph`` as a frozen TensorFlow model and return its serialized GraphDef.

    Args:
        graph: The graph; its state becomes constants of the initial values.
        path: File to write; None writes no file.

    Raises:
        ModelError: If the graph updates state, operators have no equivalent, state has no initial
            value, the GraphDef has 2 GiB or more, or the file cannot be written.
        ShapeError: If the rank of a value cannot be inferred, or inferred shapes do not fit an
            operator.
        DTypeError: If the dtype of a value cannot be inferred, or inferred ones do not fit an
            operator.
    """
    return serialize(graph_def(graph), path)


def serialize(message: Any, path: str | PathLike[str] | None) -> bytes:
    """Return the bytes of a GraphDef, and write it to a file if a path is given.

    A file whose suffix is ``.pbtxt`` or ``.txt`` gets the text form; the bytes are returned anyway.

    Args:
        message: The GraphDef.
        path: File to write; None writes no file.

    Raises:
        ModelError: If it has 2 GiB or more, or the file cannot be written.
    """
    nbytes = message.ByteSize()
    if nbytes > _LARGEST:
        raise ModelError(
            f"the GraphDef would have {nbytes:,} bytes, and TensorFlow reads less than 2 GiB; turn "
            f"large constants into inputs of the graph"
        )
    data: bytes = message.SerializeToString(deterministic=True)
    if path is not None:
        file = Path(fspath(path))
        is_text = file.suffix in (".pbtxt", ".txt")
        try:
            file.write_bytes(text_format.MessageToString(message).encode() if is_text else data)
        except OSError as error:
            raise ModelError(
                f"{file} cannot be written: {error.strerror}; path= needs a file in a folder that "
                f"exists and may be written"
            ) from None
    return data


def graph_def(graph: Graph) -> Any:
    """Return the GraphDef message that `save` writes.

    Raises:
        ModelError: If the graph updates state, operators have no equivalent, or state has no
            initial value.
        ShapeError: If the rank of a value cannot be inferred, or inferred shapes do not fit an
            operator.
        DTypeError: If the dtype of a value cannot be inferred, or inferred ones do not fit an
            operator.
    """
    expanded = ApplyPasses(_checked(flatten(graph)), ["Functionalize", "Complete"])
    return GraphExporter(expanded).graph_def()


def _checked(graph: Graph) -> Graph:
    """Return the graph unchanged.

    Raises:
        ModelError: If it updates state, which a frozen model cannot.
    """
    names = {n.inputs[0].node.label for n in graph.nodes if writes_state(n)}
    names |= {v.label for v, _ in graph.updates}
    if names:
        shown = ", ".join(short(n) for n in sorted(names)[:3]) + (", …" if len(names) > 3 else "")
        raise ModelError(
            f"the graph updates {len(names)} state variable(s) ({shown}), and a frozen model holds "
            f"state as constants; save a graph without updates and assign"
        )
    return graph


class GraphExporter:
    """Writes one graph: maps its entries to TensorFlow tensors and collects failures."""

    def __init__(self, graph: Graph) -> None:
        """Prepare to write ``graph``, which is functional and has complete types."""
        self.graph, self.writer = graph, GraphDefWriter()
        self.values: dict[Entry, NodeOutput] = {}
        self.failed: dict[str, list[str]] = {}
        self.reasons: dict[str, str] = {}
        self.cause: PasskitError | None = None

    def graph_def(self) -> Any:
        """Write all nodes and return the GraphDef.

        An Identity with the output's name is written for each output, and nodes that neither an
        output nor a placeholder needs are removed.

        Raises:
            ModelError: If operators cannot be written, or state has no initial value, with the
                text of `message`.
        """
        names = self.graph.names
        for node in self.graph.inputs:
            self.placeholder(node, self.writer.unique(names[node]))
        results = [self.writer.unique(self.output_name(e)) for e in self.graph.outputs]
        heads = [node.entries[0] for node in self.graph.inputs]
        size_sources = find_size_sources({self.values[e]: e.shape or () for e in heads})
        for node in self.graph.nodes:
            if node.op is not None:
                self.operator(node, names[node], size_sources)
            elif node.params.get("state"):
                self.variable(node, names[node])
        if self.failed:
            raise ModelError(self.message()) from self.cause
        for entry, name in zip(self.graph.outputs, results, strict=True):
            value = self.values[entry]
            self.writer.node("Identity", name, [value], {"T": value.dtype})
        self.writer.remove_unread({*results, *(self.values[e].node for e in heads)})
        return self.writer.graph

    def output_name(self, entry: Entry) -> str:
        """Return the name of output ``entry``: its node's name, and ``_index`` if that is not 0."""
        name = self.graph.names[entry.node]
        return f"{name}_{entry.index}" if entry.index else name

    def placeholder(self, node: Node, name: str) -> None:
        """Write the input ``node`` as a Placeholder called ``name``, which must be unique.

        Its tensor is stored in ``values``.
        """
        entry = node.entries[0]
        dtype = self.graph.dtype(entry)
        shape = entry.shape
        self.writer.node("Placeholder", name, (), {"dtype": dtype, "shape": ShapeAttr(shape)})
        self.values[entry] = NodeOutput(name, dtype)

    def variable(self, node: Node, name: str) -> None:
        """Write the state variable ``node`` as a constant of its initial value.

        It is called ``name``, with a suffix if that is used. Its tensor is stored in ``values``.
        Without initial value, a failure is recorded in ``failed`` instead.
        """
        value = node.params["initial"]
        if value is None:
            self.failed.setdefault("state", []).append(name)
            self.reasons["state"] = "it has no initial value"
            return
        dtype, name_written = self.graph.dtype(node.entries[0]), self.writer.unique(name)
        self.values[node.entries[0]] = self.writer.constant(
            value, dtype, name_written, name_written
        )

    def operator(self, node: Node, name: str, size_sources: dict[str, SizeSource]) -> None:
        """Write one operator; a PasskitError is recorded instead of raised.

        The tensors of its results are stored in ``values``; an error in ``failed``, ``reasons``
        and, if it is the first, ``cause``. If the name is taken, the operator's
        name is appended after a slash.

        Args:
            node: The operator. It is skipped if an input could not be written.
            name: Name of the node to write.
            size_sources: The tensor dimension from which each symbolic size is read, by symbol.
        """
        assert node.op is not None
        inputs = [self.values.get(e) for e in node.inputs]
        if not all(inputs):
            return  # an operator before it failed, which `failed` records
        taken = name in self.writer.taken
        scope = NameScope(
            self.writer, self.writer.unique(f"{name}/{node.op.name}" if taken else name)
        )
        try:
            results = export_node(node, [t for t in inputs if t is not None], scope, size_sources)
        except PasskitError as error:
            self.failed.setdefault(node.op.name, []).append(name)
            self.reasons.setdefault(node.op.name, str(error))
            self.cause = self.cause or error
            return
        self.values.update(zip(node.entries, results, strict=True))

    def message(self) -> str:
        """Return the error message that names, by operator, the nodes that cannot be written.

        At most 50 operators are named, each with at most three nodes and the first reason. Nodes
        that read a result of these are not counted.
        """
        entries = []
        for op, names in sorted(self.failed.items())[:_SHOWN]:
            shown = ", ".join(short(n) for n in names[:3]) + (", …" if len(names) > 3 else "")
            entries.append(f"{op} × {len(names)} ({shown}): {self.reasons[op]}")
        more = f"; and {len(self.failed) - _SHOWN} more" if len(self.failed) > _SHOWN else ""
        count = sum(map(len, self.failed.values()))
        return (
            f"{count} node(s) of {len(self.failed)} operator(s) cannot be written for TensorFlow: "
            f"{'; '.join(entries)}{more}. Save a graph that ends before these nodes, or begins "
            f"after them"
        )
