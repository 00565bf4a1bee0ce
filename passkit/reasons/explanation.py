"""Why each edge was fused or not: the decisions of Fusion as a table that can be searched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from passkit.errors import GraphError, PassError, nearest
from passkit.graph.graph import Graph
from passkit.plan.group import Decision
from passkit.values.lazy import Lazy
from passkit.values.units import table

notebook: Any = Lazy("passkit.reporting.notebook")
"""What notebooks show stands above, and is asked for only by them."""

HEADER = ("producer", "consumer", "fused", "code", "reason", "data", "way out")


@frozen(repr=False)
class Explanation(Sequence[Decision]):
    """The decisions about a graph's edges; printed, they are an aligned table."""

    decisions: tuple[Decision, ...]
    selection: str = ""
    """How larger kernels were chosen in all, where they were."""

    def __len__(self) -> int:
        return len(self.decisions)

    def __getitem__(self, index: Any) -> Any:
        return self.decisions[index]

    def __iter__(self) -> Iterator[Decision]:
        return iter(self.decisions)

    @property
    def apart(self) -> Explanation:
        """The edges that stay apart."""
        return evolve(self, decisions=tuple(d for d in self.decisions if not d.fused))

    def filter(self, name: str) -> Explanation:
        """The edges that begin or end at the node called ``name``.

        Raises: GraphError with the nearest name when no edge does.
        """
        found = tuple(d for d in self.decisions if name in (d.producer, d.consumer))
        if not found:
            names = {n for d in self.decisions for n in (d.producer, d.consumer)}
            raise GraphError(f"no edge begins or ends at {name!r}; {nearest(name, names)}")
        return evolve(self, decisions=found)

    def why(self, producer: str, consumer: str) -> Explanation:
        """Return why two nodes share a kernel, or do not.

        Args:
            producer: The name of a node.
            consumer: The name of another. The order matters only where edges lead both ways.

        Returns: The edges between the two. Where none is, the edges of a shortest path between
            them; where no path is either, one row that says that they are independent.

        Raises: GraphError with the nearest name for a node that no edge touches.
        """
        edges = tuple(d for d in self.filter(producer) if d.consumer == consumer)
        self.filter(consumer)
        path = edges or self._path(producer, consumer) or self._path(consumer, producer)
        if not path:
            independent = Decision(
                producer,
                consumer,
                False,
                "independent",
                "no value leads from one to the other",
                {},
                f"keep_together=[[{producer!r}, {consumer!r}]] packs them where it can",
            )
            path = (independent,)
        return evolve(self, decisions=path)

    def _path(self, start: str, end: str) -> tuple[Decision, ...]:
        """Return the edges of a shortest path of values between two nodes; none where none is."""
        after: dict[str, list[Decision]] = {}
        for d in self.decisions:
            after.setdefault(d.producer, []).append(d)
        came_by: dict[str, Decision] = {}
        todo = [start]
        for name in todo:  # which grows
            for d in after.get(name, ()):
                if d.consumer not in came_by and d.consumer != start:
                    came_by[d.consumer] = d
                    todo.append(d.consumer)
        path: list[Decision] = []
        while end != start and end in came_by:
            path.append(came_by[end])
            end = came_by[end].producer
        return tuple(reversed(path)) if end == start else ()

    def rows(self) -> list[dict[str, object]]:
        """One mapping for each edge, as JSON can hold it."""
        return [
            {
                "producer": d.producer,
                "consumer": d.consumer,
                "fused": d.fused,
                "code": d.code,
                "reason": d.reason,
                "data": {str(k): _plain(v) for k, v in d.data.items()},
                "way_out": d.way_out,
            }
            for d in self.decisions
        ]

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """What a notebook shows."""
        return notebook.explanation(self)  # type: ignore[no-any-return]

    def __str__(self) -> str:
        if not self.decisions:
            return "no edge joins two operators"
        return table(
            HEADER,
            [
                (
                    d.producer,
                    d.consumer,
                    "yes" if d.fused else "no",
                    d.code,
                    d.reason,
                    ", ".join(f"{k}={v}" for k, v in d.data.items()),
                    d.way_out,
                )
                for d in self.decisions
            ],
        )

    __repr__ = __str__


def _plain(value: object) -> object:
    if isinstance(value, (bool, int, float, str)) or value is None:
        return value
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    return str(value)


def explain(
    graph: Graph, name: str | None = None, fuse: Callable[[Graph], Graph] | None = None
) -> Explanation:
    """Each edge between two operators: fused, or the reason why not, with data and a way out.

    ``name`` keeps the edges at one node. ``fuse`` is run first on a graph without a fusion plan.

    Raises: PassError when there is no plan and nothing to make one.
    """
    if "fusion_log" not in graph.attrs and fuse is not None:
        graph = fuse(graph)
    if "fusion_log" not in graph.attrs:
        raise PassError(f"{graph!r} has no attribute 'fusion_log', which explain reads; run Fusion")
    chosen = graph.attrs.get("selection")
    told = str(chosen) if chosen is not None and chosen.tried else ""
    found = Explanation(tuple(graph.attrs["fusion_log"]), told)
    return found if name is None else found.filter(name)
