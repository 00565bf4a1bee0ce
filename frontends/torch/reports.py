"""What passkit ran of PyTorch's programs: a record of each graph that was compiled."""

from __future__ import annotations

from attrs import frozen
from torch.fx import GraphModule

from passkit.frontends.torch.importer import ExternNode, ImportedGraph


@frozen
class GraphRecord:
    """A graph that was compiled.

    Attributes:
        nodes: the number of its operators.
        externs: those that PyTorch runs.
        whole: why PyTorch runs the whole graph; "" if it does not.
    """

    nodes: int
    externs: tuple[ExternNode, ...]
    whole: str = ""


RECORDS: list[GraphRecord] = []
"""The graphs that were compiled in this process, the last `MOST` of them."""
MOST = 1000


def record(module: GraphModule, imported: ImportedGraph | None, whole: str) -> None:
    """Add the record of a graph."""
    if imported is None:
        count = sum(n.op == "call_function" for n in module.graph.nodes)
        RECORDS.append(GraphRecord(count, (), whole))
    else:
        RECORDS.append(GraphRecord(imported.node_count, imported.externs))
    del RECORDS[:-MOST]
