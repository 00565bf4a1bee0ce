"""The roofline model of a group: the time of its operations, and the time to move its bytes."""

from __future__ import annotations

from collections.abc import Iterable

from passkit.analysis.domain import ValueKind
from passkit.analysis.domain_info import DomainInfo
from passkit.analysis.recompute import is_expensive
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node, is_leaf, known_dtype, known_shape
from passkit.graph.op import FElement
from passkit.target import Target
from passkit.values.size import numel


def roofline_seconds(info: DomainInfo, target: Target, points: int | None = None) -> float:
    """Return the seconds of one thread by the roofline model.

    This is the maximum of the time of all operations and of the time to move the least bytes.

    Args:
        info: the iteration domain of the group.
        target: the machine.
        points: the points of the domain; None for the size of ``info``.

    Returns: the seconds; 0 if the number of points is unknown.
    """
    size = info.domain.size if points is None else points
    if not isinstance(size, int):
        return 0.0
    per_point = 0.0
    for node, kind in info.kinds.items():
        if kind is not ValueKind.REDUCED:
            operation = target.expensive if is_expensive(node) else target.light
            per_point += operation * max(1, len(info.uses[node]))
    return max(per_point * size, target.moving(least_bytes(info.graph)))


def waiting_seconds(graph: Graph, target: Target) -> float:
    """Return the seconds of a loop nest by the roofline model in which it only waits for memory.

    They are 0 on all machines but GPUs: only there it matters who waits (`passkit.schedule.idle`).

    Args:
        graph: the graph of the nest.
        target: the machine.
    """
    if not target.machine.in_flight_bytes:
        return 0.0
    moving = target.moving(least_bytes(graph))
    return max(0.0, moving - operations_seconds(graph.nodes, target))


def operations_seconds(nodes: Iterable[Node], target: Target) -> float:
    """Return the seconds of operations, each for the elements of its largest input or result.

    Unknown sizes count 0.
    """
    total = 0.0
    for node in nodes:
        if not is_leaf(node):
            sizes = [numel(known_shape(e)) for e in (*node.inputs, *node.entries)]
            points = max((n for n in sizes if isinstance(n, int)), default=0)
            total += points * (target.expensive if is_expensive(node) else target.light)
    return total


def least_bytes(graph: Graph) -> int:
    """Return the bytes that a group must read and write; unknown sizes count 0.

    An input that is only sliced or gathered from counts as many bytes as the results of that.
    """
    total = sum(_nbytes(e) for e in graph.outputs)
    for node in graph.inputs:
        entry = node.entries[0]
        users = graph.users.get(entry, ())
        moved = [e for n in users if n.op and FElement.get(n.op.name) for e in n.entries]
        whole = _nbytes(entry)
        total += min(whole, sum(map(_nbytes, moved))) if len(moved) == len(users) > 0 else whole
    return total


def _nbytes(entry: Entry) -> int:
    """Return the bytes of a value, 0 if its size is unknown."""
    size = numel(known_shape(entry))
    return size * known_dtype(entry).nbytes if isinstance(size, int) else 0
