"""Event files as TensorBoard reads them: records with lengths and checksums."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

from passkit.frontends.tf_graphdef.proto import GraphDef
from passkit.frontends.tinyflow.summary.messages import Event
from tests.frontends.tf_graphdef.checkpoints import masked_crc32c


def read_events(path: Path) -> list[Any]:
    """Return the events of a file, after checking the checksums of lengths and records."""
    data, events = path.read_bytes(), []
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        assert struct.unpack("<I", data[8:12])[0] == masked_crc32c(data[:8])
        body, data = data[12 : 12 + length], data[12 + length :]
        assert struct.unpack("<I", data[:4])[0] == masked_crc32c(body)
        events.append(Event.FromString(body))
        data = data[4:]
    return events


def node_names(graph_def: bytes) -> set[str]:
    """Return the names of the nodes of a serialized GraphDef."""
    return {node.name for node in GraphDef.FromString(graph_def).node}
