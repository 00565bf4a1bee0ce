"""Event files: records that TensorBoard reads.

Source: TFRecord: the length, its masked CRC-32C, the data, its masked CRC-32C.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from typing import Any

from google.protobuf.message import DecodeError

from passkit.errors import FeedError, SettingError
from passkit.frontends.tinyflow.argument_checks import (
    reject_arguments,
    require_float,
    require_int,
)
from passkit.frontends.tinyflow.graphs import Graph
from passkit.frontends.tinyflow.summary.messages import Event, Summary
from passkit.frontends.tinyflow.tensors import HostTensor, Tensor
from passkit.graph import graph as core
from passkit.values import arguments


def encode_record(data: bytes) -> bytes:
    """Encode data as one record of an event file: its length, the data, and a checksum of each."""
    from passkit.frontends.tf_graphdef.crc32c import crc32c, masked  # its package is a large one

    length = struct.pack("<Q", len(data))
    return b"".join(
        (
            length,
            struct.pack("<I", masked(crc32c(length))),
            data,
            struct.pack("<I", masked(crc32c(data))),
        )
    )


def _step_number(function: str, step: Any) -> int:
    """Return the number of a step, 0 for None; ``function`` names the caller in errors.

    Raises:
        SettingError: If it is neither None nor an int of 64 bits.
    """
    number = 0 if step is None else require_int(function, "global_step", step)
    if not -(2**63) <= number < 2**63:
        raise SettingError(f"{function} needs a global_step of 64 bits, got {number}")
    return number


class FileWriter:
    """A writer of summaries to a new event file, for ``tensorboard --logdir``.

    Args:
        logdir: The folder of the file, created if it is missing.
        graph: A graph to write, as in `add_graph`; none by default.
        max_queue: The number of events that are buffered before they are flushed; 10 by default.
        flush_secs: The seconds after which buffered events are flushed by the next one; 120 by
            default.
        graph_def: Unsupported; only the default is accepted.
        filename_suffix: The end of the file's name; none by default.
        session: Unsupported; only the default is accepted.

    Raises:
        SettingError: If ``max_queue`` is no int, ``flush_secs`` no number, or an unsupported
            argument is set.
        ArgumentError: If ``logdir`` is no path, ``graph`` neither None nor a graph, or
            ``filename_suffix`` no text.
        FeedError: If the folder or the file cannot be created.
    """

    @reject_arguments("graph= writes the graph, and files are written here", "graph_def", "session")
    def __init__(
        self,
        logdir: str | os.PathLike[str],
        graph: Graph | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        graph_def: Any = None,
        filename_suffix: str | None = None,
        session: Any = None,
    ) -> None:
        folder = arguments.path("FileWriter: logdir", logdir)
        if graph is not None and not isinstance(graph, Graph):
            arguments.refuse("FileWriter: graph", graph, "a tinyflow graph")
        stem = f"events.out.tfevents.{time.time():017.6f}.{socket.gethostname()}.{os.getpid()}"
        suffix = arguments.text("FileWriter: filename_suffix", filename_suffix or "")
        self.path = folder / f"{stem}{suffix}"
        self.max_queue = require_int("FileWriter", "max_queue", max_queue)
        self.flush_secs = require_float("FileWriter", "flush_secs", flush_secs)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file: Any = open(self.path, "xb")  # noqa: SIM115 – closed by close
        except OSError as error:
            raise FeedError(
                f"FileWriter cannot create {str(self.path)!r}: {error.strerror}; logdir needs a "
                f"folder that may be written"
            ) from None
        self._waiting, self._flushed = 0, time.monotonic()
        self._put(Event(wall_time=time.time(), file_version="brain.Event:2"))
        if graph is not None:
            self.add_graph(graph)
        self.flush()

    def add_summary(self, summary: bytes | Any, global_step: Any = None) -> None:
        """Write the value of a summary.

        Args:
            summary: The bytes that `Session.run` returned.
            global_step: The number of the step, an int; 0 by default (None).

        Raises:
            FeedError: For anything but the bytes of a summary, and after `close`.
            SettingError: If ``global_step`` is no int of 64 bits.
        """
        if not isinstance(summary, bytes):
            raise FeedError(
                f"add_summary needs the bytes that session.run(summary) returns, got {summary!r}"
            )
        event = Event(wall_time=time.time(), step=_step_number("add_summary", global_step))
        try:
            event.summary.CopyFrom(Summary.FromString(summary))
        except DecodeError:
            raise FeedError(
                f"add_summary needs the bytes that session.run(summary) returns, got "
                f"{len(summary)} bytes of something else"
            ) from None
        self._put(event)

    @reject_arguments("graph= writes the graph", "graph_def")
    def add_graph(self, graph: Graph, global_step: Any = None, graph_def: Any = None) -> None:
        """Write the operators of a graph that its variables and collections need.

        Args:
            graph: The graph.
            global_step: The number of the step, an int; 0 by default (None).
            graph_def: Unsupported; only the default is accepted.

        Raises:
            FeedError: After `close`.
            SettingError: If ``global_step`` is no int of 64 bits, or an unsupported argument is
                set.
            ArgumentError: If ``graph`` is no graph of tinyflow.
        """
        step = _step_number("add_graph", global_step)
        if not isinstance(graph, Graph):
            arguments.refuse("add_graph: graph", graph, "a tinyflow graph")
        self._put(Event(wall_time=time.time(), step=step, graph_def=encode_graph(graph)))

    def _put(self, event: Any) -> None:
        """Write ``event``, an `Event` message, to the file's buffer, and flush it if full or old.

        Raises:
            FeedError: After `close`.
        """
        if self._file is None:
            raise FeedError(f"the writer of {self.path} is closed; create another FileWriter")
        self._file.write(encode_record(event.SerializeToString()))
        self._waiting += 1
        late = time.monotonic() - self._flushed >= self.flush_secs
        if self._waiting >= self.max_queue or late:
            self.flush()

    def flush(self) -> None:
        """Write buffered events to the file; do nothing after `close`."""
        if self._file is not None:
            self._file.flush()
        self._waiting, self._flushed = 0, time.monotonic()

    def close(self) -> None:
        """Flush and close the file; do nothing after the first call."""
        if self._file is not None:
            self._file.close()
        self._file = None

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def encode_graph(graph: Graph) -> bytes:
    """Encode the operators that a graph's writes and collections need as a serialized GraphDef.

    Nodes have passkit's names of operators, and no attributes. Sources of summaries that are texts
    or summaries themselves are left out.
    """
    from passkit.frontends.tf_graphdef.proto import GraphDef, NodeDef  # its package is a large one

    collected = [
        t for values in graph.collections.values() for t in values if isinstance(t, Tensor)
    ]
    flat = [s for t in collected for s in (t.sources if isinstance(t, HostTensor) else (t,))]
    tops = [t for t in flat if not isinstance(t, HostTensor)]
    heads = [n.entries[0] for n in graph.writes] + [t.entry for t in tops]
    graph_with_heads = core.Graph(heads)
    names = {n: name.replace(" ", "_") for n, name in graph_with_heads.names.items()}
    out = GraphDef()
    for node in graph_with_heads.nodes:
        op_type = "Placeholder" if node.op is None else node.op.name
        op_type = "VariableV2" if node.op is None and node.params.get("state") else op_type
        inputs = [f"{names[e.node]}:{e.index}" if e.index else names[e.node] for e in node.inputs]
        inputs += [f"^{names[c]}" for c in node.control]
        out.node.append(NodeDef(name=names[node], op=op_type, input=inputs))
    return out.SerializeToString()  # type: ignore[no-any-return]
