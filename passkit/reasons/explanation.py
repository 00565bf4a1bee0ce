"""`passkit.explain`: the decisions of Fusion about each edge, as a table that can be searched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from attrs import evolve, frozen

from passkit.analysis.group import Decision
from passkit.diagnostics import Diagnostic
from passkit.errors import GraphError, nearest
from passkit.graph.graph import Graph
from passkit.values.json_values import json_value
from passkit.values.lazy import Lazy
from passkit.values.units import table

notebook: Any = Lazy("passkit.reporting.notebook")
"""The displays of notebooks, a higher layer."""

HEADER = ("producer", "consumer", "fused", "rule", "reason", "what to do")


@frozen(repr=False)
class Explanation(Sequence[Decision]):
    """The decisions about the edges of a graph; printed, an aligned table."""

    decisions: tuple[Decision, ...]
    selection: str = ""
    """A summary of how kernels were selected, "" if the strategy does not compare any."""

    def __len__(self) -> int:
        """Return the number of decisions."""
        return len(self.decisions)

    def __getitem__(self, index: Any) -> Any:
        """Return a decision by its position, or a tuple of them for a slice."""
        return self.decisions[index]

    def __iter__(self) -> Iterator[Decision]:
        """Return an iterator over the decisions, in order."""
        return iter(self.decisions)

    @property
    def apart(self) -> Explanation:
        """Return the explanation of the edges that are not fused."""
        return evolve(self, decisions=tuple(d for d in self.decisions if not d.fused))

    def filter(self, name: str) -> Explanation:
        """Return the explanation of the edges that begin or end at the node called ``name``.

        Raises: GraphError with the nearest name if there are no such edges.
        """
        edges = tuple(d for d in self.decisions if name in (d.producer, d.consumer))
        if not edges:
            names = {n for d in self.decisions for n in (d.producer, d.consumer)}
            raise GraphError(f"no edge begins or ends at {name!r}; {nearest(name, names)}")
        return evolve(self, decisions=edges)

    def why(self, producer: str, consumer: str) -> Explanation:
        """Return why two nodes share a kernel, or do not.

        Args:
            producer: The name of a node.
            consumer: The name of another. The order matters only if edges lead both ways.

        Returns: A copy of this explanation with only the edges from ``producer`` to ``consumer``;
            if there are none, the edges of a shortest path between them, in either direction;
            without a path, and for two equal names, one decision that says that they are
            independent.

        Raises: GraphError with the nearest name for a node without edges.
        """
        edges = tuple(d for d in self.filter(producer) if d.consumer == consumer)
        self.filter(consumer)
        path = edges or self._path(producer, consumer) or self._path(consumer, producer)
        if not path:
            ends = {"producer": producer, "consumer": consumer}
            path = (Decision(producer, consumer, Diagnostic("graph.independent", ends)),)
        return evolve(self, decisions=path)

    def _path(self, start: str, end: str) -> tuple[Decision, ...]:
        """Return the edges of a shortest path from the node ``start`` to ``end``, by name.

        Returns: The edges in order; () if no path leads there, or ``end`` is ``start``.
        """
        edges_from: dict[str, list[Decision]] = {}
        for d in self.decisions:
            edges_from.setdefault(d.producer, []).append(d)
        edge_to: dict[str, Decision] = {}
        queue = [start]
        for name in queue:  # which grows
            for d in edges_from.get(name, ()):
                if d.consumer not in edge_to and d.consumer != start:
                    edge_to[d.consumer] = d
                    queue.append(d.consumer)
        path: list[Decision] = []
        while end != start and end in edge_to:
            path.append(edge_to[end])
            end = edge_to[end].producer
        return tuple(reversed(path)) if end == start else ()

    def rows(self) -> list[dict[str, object]]:
        """Return a dict for each edge, in order, as JSON can hold it.

        Its keys are producer, consumer, fused, code, reason, data and way_out.
        """
        return [
            {
                "producer": d.producer,
                "consumer": d.consumer,
                "fused": d.fused,
                "code": d.code,
                "reason": d.reason,
                "data": json_value(d.data),
                "way_out": d.way_out,
            }
            for d in self.decisions
        ]

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Return the MIME types and texts that a notebook displays.

        ``include`` and ``exclude`` belong to IPython's display protocol and have no effect.
        """
        return notebook.explanation(self)  # type: ignore[no-any-return]

    def __str__(self) -> str:
        """Return the decisions as an aligned table, or a sentence if there are none."""
        if not self.decisions:
            return "there are no edges between operators"
        return table(
            HEADER,
            [
                (
                    d.producer,
                    d.consumer,
                    "yes" if d.fused else "no",
                    d.code,
                    d.reason,
                    d.way_out,
                )
                for d in self.decisions
            ],
        )

    __repr__ = __str__


def explain(graph: Graph, name: str | None, fuse: Callable[[Graph], Graph]) -> Explanation:
    """Return the decision about each edge between two operators.

    Args:
        graph: The graph.
        name: The name of a node, to return only its edges; None for all.
        fuse: Returns the graph with a fusion plan; called if it has none.

    Raises: GraphError with the nearest name if no edge begins or ends at the node; what ``fuse``
    raises.
    """
    if "fusion_log" not in graph.attrs:
        graph = fuse(graph)
    selection = graph.attrs.get("selection")
    summary = str(selection) if selection is not None and selection.tried else ""
    explanation = Explanation(tuple(graph.attrs["fusion_log"]), summary)
    return explanation if name is None else explanation.filter(name)
