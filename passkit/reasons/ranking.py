"""Why each group runs as it does: its template beside the others that it has, by the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from attrs import frozen

from passkit.errors import GraphError, PassError, nearest
from passkit.graph.graph import Graph
from passkit.lowering.loops import tiles_of
from passkit.plan.costs import model_seconds
from passkit.plan.group import Group
from passkit.plan.schedule import Schedule, Source, least_bytes
from passkit.plan.target import Target
from passkit.plan.variants import Variant, variants
from passkit.templating.naming import template_of
from passkit.values.lazy import Lazy
from passkit.values.size import Extent
from passkit.values.units import bytes_text, seconds_text

notebook: Any = Lazy("passkit.reporting.notebook")
"""What notebooks show stands above, and is asked for only by them."""


@frozen
class Ranked:
    """A group with its template, how it runs, and the other templates that it could have.

    ``seconds`` are the model's, 0 where sizes are unknown. ``others`` are the quickest first.
    ``measured`` are those of a run where that is why it has this template, else 0.
    """

    name: str
    operators: tuple[str, ...]
    template: str
    composition: str
    tiles: Extent
    nbytes: int
    seconds: float
    source: Source
    others: tuple[Variant, ...]
    measured: float = 0.0

    @property
    def why(self) -> str:
        """Why it has this template."""
        if self.source is Source.USER:
            return "it was given"
        if self.source is Source.MEASURED:
            took = f", at {seconds_text(self.measured)}" if self.measured else ""
            return f"it was measured as the quickest{took}"
        if not self.others:
            return "it is the only one"
        count = f"{len(self.others)} others" if len(self.others) > 1 else "the other one"
        if not self.seconds:
            return f"sizes are unknown, so it stands before {count} by its kind"
        least = min(v.seconds for v in self.others)
        if self.seconds <= least:
            return f"the model has it before {count}"
        return f"{self.composition} is the rule here; the model has one at {_times(self, least)}"

    def as_dict(self) -> dict[str, object]:
        """As JSON can hold it."""
        return {
            "name": self.name,
            "operators": list(self.operators),
            "template": self.template,
            "composition": self.composition,
            "tiles": self.tiles if isinstance(self.tiles, int) else str(self.tiles),
            "bytes": self.nbytes,
            "seconds": self.seconds,
            "measured": self.measured,
            "source": self.source.value,
            "why": self.why,
            "others": [
                {
                    "template": str(v.template),
                    "composition": v.schedule.composition.value,
                    "seconds": v.seconds,
                }
                for v in self.others
            ],
        }

    def __str__(self) -> str:
        size = f", {bytes_text(self.nbytes)}" if self.nbytes else ""
        time = f", {seconds_text(self.seconds)}" if self.seconds else ""
        lines = [
            f"{self.name}: {', '.join(self.operators)}",
            f"  {self.template}",
            f"  {self.composition}, {self.tiles} tiles{size}{time}; {self.why}",
        ]
        for other in self.others[:RUNNERS_UP]:
            time = f"{seconds_text(other.seconds):>8}" if other.seconds else f"{'?':>8}"
            lines.append(f"  {time}  {other.template}")
        return "\n".join(lines)


RUNNERS_UP = 3
"""Others that are shown."""


def _times(ranked: Ranked, seconds: float) -> str:
    return f"{seconds / ranked.seconds:.2f} of its seconds"


@frozen(repr=False)
class Ranking(Sequence[Ranked]):
    """The groups of a plan in their order; printed, each stands with its runners-up."""

    groups: tuple[Ranked, ...]

    def __len__(self) -> int:
        return len(self.groups)

    def __getitem__(self, index: Any) -> Any:
        return self.groups[index]

    def __iter__(self) -> Iterator[Ranked]:
        return iter(self.groups)

    def rows(self) -> list[dict[str, object]]:
        """One mapping for each group, as JSON can hold it."""
        return [g.as_dict() for g in self.groups]

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.groups)) or "no operators are fused"

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Return the groups as a table, for notebooks."""
        return notebook.ranking(self)  # type: ignore[no-any-return]


def rank(
    graph: Graph, name: str | None = None, plan: Callable[[Graph], Graph] | None = None
) -> Ranking:
    """The groups of a graph with their templates; ``name`` keeps the one that has it.

    ``plan`` is run first on a graph without schedules. Raises: PassError when there are none and
    nothing to make them; GraphError when no group has the name, with the nearest.
    """
    if "schedule" not in graph.attrs and plan is not None:
        graph = plan(graph)
    if "schedule" not in graph.attrs:
        raise PassError(
            f"{graph!r} has no attribute 'schedule', which templates are read from; run "
            f"SchedulePlan"
        )
    target: Target = graph.attrs["options"]["target"]
    names: set[str] = set()
    found = []
    for node, group in graph.attrs["subgraph"].items():
        own = {graph.names[node], *(group.called(n) for n in group.ops)}
        names |= own
        if name is None or name in own:
            found.append(_ranked(graph.names[node], group, graph.attrs["schedule"][node], target))
    if name is not None and not found:
        raise GraphError(f"no group has {name!r}; {nearest(name, names)}")
    return Ranking(tuple(found))


def _ranked(name: str, group: Group, schedule: Schedule, target: Target) -> Ranked:
    template = template_of(group, schedule, target)
    ways = variants(group, target)
    return Ranked(
        name,
        tuple(group.called(n) for n in group.ops),
        str(template),
        schedule.composition.value,
        tiles_of(schedule),
        least_bytes(group.graph),
        model_seconds(group, schedule, target),
        schedule.source,
        tuple(v for v in ways if v.template != template),
        schedule.measured,
    )
