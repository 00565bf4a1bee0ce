"""`passkit.templates`: the template of each group, and the others ranked by the cost model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from attrs import frozen

from passkit.analysis.group import Group
from passkit.errors import GraphError, nearest
from passkit.graph.graph import Graph
from passkit.library.candidates import Candidate, candidates_of
from passkit.reasons.nest_report import NestReport, nest_report
from passkit.schedule.cost import schedule_cost
from passkit.schedule.roofline import least_bytes
from passkit.schedule.schedule import Schedule, Source
from passkit.schedule.template_of import template_of
from passkit.schedule.tile_loops import tiles_of
from passkit.target import Target
from passkit.values.lazy import Lazy
from passkit.values.size import Extent
from passkit.values.units import bytes_text, seconds_text

notebook: Any = Lazy("passkit.reporting.notebook")
"""The displays of notebooks, a higher layer."""

MAX_ALTERNATIVES = 3
"""The most other templates that are printed for a group."""


@frozen
class RankedGroup:
    """A group with its template and the other templates that it could have.

    Attributes:
        name: The name of the group's node.
        operators: The names of its operators.
        template: The text of its template.
        composition: How its stages share a kernel.
        tiles: The number of tiles.
        nbytes: The least bytes that its kernel moves.
        seconds: The estimate of the cost model, 0 if sizes are unknown.
        source: Whether the template was specified, measured or chosen by the model.
        others: The other templates, the fastest by the model first.
        measured: The seconds measured, if they are why it has this template, else 0.
        nest: The schedule of its loop nest by a schedule rule, or why it has none on a GPU.
    """

    name: str
    operators: tuple[str, ...]
    template: str
    composition: str
    tiles: Extent
    nbytes: int
    seconds: float
    source: Source
    others: tuple[Candidate, ...]
    measured: float = 0.0
    nest: NestReport | None = None

    @property
    def is_of_nests(self) -> bool:
        """Whether its kernel consists of loop nests on a GPU: its template is their schedule."""
        return self.nest is not None and self.nest.is_of_gpu

    @property
    def why(self) -> str:
        """The reason why the group has this template, as a clause without a full stop."""
        if self.source is Source.USER:
            return "it was specified in the option templates"
        if self.source is Source.MEASURED:
            at = f", at {seconds_text(self.measured)}" if self.measured else ""
            return f"it was the fastest when measured{at}"
        if self.nest is not None and self.nest.is_own:
            return f"schedule rule {self.nest.rule} made it"
        if self.is_of_nests:
            if not self.template:
                return "no schedule rule has a legal schedule for it"
            return "each nest has the first legal schedule of the rules"
        if not self.others:
            return "it is the only possible template"
        count = f"{len(self.others)} others" if len(self.others) > 1 else "the other one"
        if not self.seconds:
            return f"sizes are unknown, so a rule prefers this kind of template to {count}"
        least = min(v.seconds for v in self.others)
        if self.seconds <= least:
            return f"the cost model ranks it before {count}"
        ratio = f"{least / self.seconds:.2f}"
        return (
            f"a rule prefers templates of the kind {self.composition} here, although the cost "
            f"model estimates another template at {ratio} times its seconds"
        )

    def as_dict(self) -> dict[str, object]:
        """Return the group as a dict that JSON can hold, with the property `why`.

        Symbolic numbers of tiles are texts; ``bytes`` is ``nbytes``. There is a key ``nest`` only
        where a schedule rule was asked.
        """
        nest = {} if self.nest is None else {"nest": self.nest.as_dict()}
        return {
            **nest,
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
        """Return the group as text.

        It has its template, the reason, and up to three other templates. The schedule of a loop
        nest comes first, unless it is usual on a CPU. On a GPU of loop nests schedules take the
        place of templates.
        """
        size = f", {bytes_text(self.nbytes)}" if self.nbytes else ""
        time = f", {seconds_text(self.seconds)}" if self.seconds else ""
        lines = [f"{self.name}: {', '.join(self.operators)}"]
        if self.nest is not None and self.nest.is_printed:
            lines.append(str(self.nest))
        if self.is_of_nests:
            lines.append(f"  {self.composition}{size}{time}; {self.why}")
            return "\n".join([*lines, *self._texts()])
        lines += [
            f"  {self.template}",
            f"  {self.composition}, {self.tiles} tiles{size}{time}; {self.why}",
        ]
        for other in self.others[:MAX_ALTERNATIVES]:
            time = f"{seconds_text(other.seconds):>8}" if other.seconds else f"{'?':>8}"
            lines.append(f"  {time}  {other.template}")
        return "\n".join(lines)

    def _texts(self) -> Iterator[str]:
        """Yield the lines of schedules that the option templates can choose instead."""
        for other in self.others[:MAX_ALTERNATIVES]:
            yield f"  by rule {other.schedule.rule}, for the option templates:"
            yield from (f"    {line}" for line in str(other.template).splitlines())


@frozen(repr=False)
class Ranking(Sequence[RankedGroup]):
    """The groups of a plan in order; printed, each with its best other templates."""

    groups: tuple[RankedGroup, ...]

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self.groups)

    def __getitem__(self, index: Any) -> Any:
        """Return a group by its position, or a tuple of them for a slice."""
        return self.groups[index]

    def __iter__(self) -> Iterator[RankedGroup]:
        """Return an iterator over the groups, in order."""
        return iter(self.groups)

    def rows(self) -> list[dict[str, object]]:
        """Return the dict of `RankedGroup.as_dict` for each group, in order."""
        return [g.as_dict() for g in self.groups]

    def __str__(self) -> str:
        """Return the texts of all groups, with empty lines between them."""
        return "\n\n".join(map(str, self.groups)) or "no operators are fused"

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Return the MIME types and texts that a notebook displays.

        ``include`` and ``exclude`` belong to IPython's display protocol and have no effect.
        """
        return notebook.ranking(self)  # type: ignore[no-any-return]


def rank(graph: Graph, name: str | None, plan: Callable[[Graph], Graph]) -> Ranking:
    """Return the groups of a graph with their templates.

    Args:
        graph: The graph.
        name: The name of a group, or of an operator in it, to return only the groups that have it;
            None for all.
        plan: Returns the graph with schedules; called if it has none.

    Raises: GraphError with the nearest name if no group has the name; what ``plan`` raises.
    """
    if "schedule" not in graph.attrs:
        graph = plan(graph)
    target: Target = graph.attrs["options"]["target"]
    all_names: set[str] = set()
    groups = []
    for node, group in graph.attrs["subgraph"].items():
        names = {graph.names[node], *(group.called(n) for n in group.ops)}
        all_names |= names
        if name is None or name in names:
            schedule = graph.attrs["schedule"][node]
            groups.append(_ranked_group(graph.names[node], group, schedule, target))
    if name is not None and not groups:
        raise GraphError(f"no group has {name!r}; {nearest(name, all_names)}")
    return Ranking(tuple(groups))


def _ranked_group(name: str, group: Group, schedule: Schedule, target: Target) -> RankedGroup:
    """Return a group with the template of its ``schedule`` and the others, ranked by the model.

    ``name`` is the name of its node, ``target`` the target that it was planned for.
    """
    nest = nest_report(group, schedule, target)
    if nest is not None and nest.is_of_gpu:
        template = nest.text
    else:
        template = str(template_of(group, schedule, target))
    return RankedGroup(
        name=name,
        operators=tuple(group.called(n) for n in group.ops),
        template=template,
        composition=schedule.composition.value,
        tiles=tiles_of(schedule),
        nbytes=least_bytes(group.graph),
        seconds=schedule_cost(group, schedule, target),
        source=schedule.source,
        others=tuple(v for v in candidates_of(group, target) if str(v.template) != template),
        measured=schedule.measured,
        nest=nest,
    )
