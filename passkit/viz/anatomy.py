"""Anatomy: how a kernel is made, as pictures and pages tell it: parts, stages, what a tile owns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import evolve, frozen

from passkit.ast.stage import Place
from passkit.graph.graph import Graph
from passkit.graph.node import Node, known_shape
from passkit.lowering.loops import tiles_of
from passkit.plan.closing import kind_of
from passkit.plan.group import Group
from passkit.plan.packing import Part
from passkit.plan.phases import alone, parts_by
from passkit.plan.schedule import Kept, PartPlan, Schedule, Stitching
from passkit.sharing.scratch import Holds
from passkit.sharing.shared import SharedPlan
from passkit.space.space import is_free
from passkit.stitching.parts import LaidPart, lay_part
from passkit.stitching.regions import Region
from passkit.values.size import Extent
from passkit.viz.labels import as_is, counted, extent_text, type_text
from passkit.viz.sizes import size_text

Known = Callable[[Extent], Extent]
"""Gives a size as a number, or as it is where that is not known."""
Called = Callable[[Node], str]


@frozen
class Value:
    """A value that a part leaves: how much of it a tile has, and where it lies.

    Packed parts and phases have tiles of their own, so that ``owned``, ``nbytes`` and ``place`` are
    "".
    """

    name: str
    type: str
    owned: str = ""
    nbytes: str = ""
    place: str = ""


@frozen
class PartFacts:
    """A part of a kernel: what it computes and leaves, and how it runs.

    ``tiles`` are its own where parts are packed or phases, and "" where they share those of the
    kernel; ``scratch`` is what it needs for itself, "" for none.
    """

    kind: str
    composition: str
    operators: tuple[str, ...]
    stages: tuple[str, ...]
    leaves: tuple[Value, ...]
    tiles: str
    scratch: str


class Anatomy:
    """How the kernel of a group is made; ``known`` gives the sizes that are known by now."""

    def __init__(
        self, group: Group, schedule: Schedule, shared: SharedPlan, known: Known = as_is
    ) -> None:
        self.group, self.schedule, self.shared, self.known = group, schedule, shared, known

    @property
    def composition(self) -> str:
        """How the points of a tile map to lanes, in how many stages or parts."""
        plan = self.schedule
        name = plan.composition.value
        if plan.stitching is not None:
            return f"{name}, {counted(len(plan.stitching.parts), 'part')}"
        if plan.parts:
            return f"{name}, {counted(len(plan.parts), self.word)}"
        return f"{name}, {counted(len(plan.stages), 'stage')}"

    @property
    def word(self) -> str:
        """What its parts are called: those that run one after the other are phases."""
        return "phase" if self.schedule.makes else "part"

    @property
    def tiles(self) -> Extent:
        """The number of tiles."""
        return self.known(tiles_of(self.schedule))

    @property
    def scratch(self) -> str:
        """The scratch of a tile with its unit; "" for none."""
        return self._bytes(self.shared.nbytes)

    def told(self) -> list[tuple[str, str]]:
        """What there is to say of the kernel as a whole: names and values, for a page."""
        told = [("composition", self.composition), ("tiles", size_text(self.tiles))]
        return [*told, ("scratch", f"{self.scratch} a tile")] if self.scratch else told

    def lines(self) -> tuple[str, ...]:
        """The same for a picture, without the names; in short lines, as frames may be narrow."""
        scratch = f" · {self.scratch} of scratch" if self.scratch else ""
        return self.composition, counted(self.tiles, "tile") + scratch

    def stages(self) -> list[str]:
        """What the stages of a kernel of one part do."""
        return stage_lines(self.schedule, self.group.graph, self.group.called)

    @property
    def bodies(self) -> list[list[Node]]:
        """The operators of each part of a stitched, packed or phased kernel; none of any other."""
        if self.schedule.stitching is not None:
            nodes = self.group.graph.nodes
            return [[nodes[k] for k in part.nodes] for part in self.schedule.stitching.parts]
        parts = parts_by(self.group, self.schedule) if self.schedule.parts else ()
        return [[p.original(n) for n in p.graph.nodes if not is_free(n)] for p in parts]

    @property
    def homes(self) -> dict[Node, int]:
        """The part that has each operator: that which leaves its value, or the first.

        Others that have it as well compute it again for themselves.
        """
        found: dict[Node, int] = {}
        for number, body in enumerate(self.bodies):
            found = {**dict.fromkeys(body, number), **found}
        if self.schedule.stitching is not None:
            nodes = self.group.graph.nodes
            left = [[nodes[k] for k in p.results] for p in self.schedule.stitching.parts]
        else:
            parts = parts_by(self.group, self.schedule) if self.schedule.parts else ()
            left = [[p.original(e.node) for e in p.graph.outputs] for p in parts]
        return found | {n: number for number, values in enumerate(left) for n in values}

    def parts(self) -> list[PartFacts]:
        """What there is to say of these parts, in order."""
        made = self._packed if self.schedule.parts else self._stitched
        return [made(number, body) for number, body in enumerate(self.bodies)]

    def _stitched(self, number: int, body: Sequence[Node]) -> PartFacts:
        stitching, nodes = self.schedule.stitching, self.group.graph.nodes
        assert stitching is not None
        plan = stitching.parts[number]
        stages: list[str] = []
        if plan.schedule is not None:
            inner, called = self._laid(plan, stitching)
            stages = stage_lines(plan.schedule, inner, called)
        return PartFacts(
            kind_of(body).value,
            "" if plan.schedule is None else plan.schedule.composition.value,
            tuple(map(self.group.called, body)),
            tuple(stages),
            tuple(self._owned(nodes[k], stitching.region(k)) for k in plan.results),
            "",
            self._bytes(self.shared.parts[number].nbytes),
        )

    def _laid(self, plan: PartPlan, stitching: Stitching) -> tuple[Graph, Called]:
        """A part as the graph that its schedule is of, and what its nodes are called."""
        nodes, names = self.group.graph.nodes, self.group.graph.names
        regions = {nodes[k]: r for k, r in stitching.regions}
        body, results = ([nodes[k] for k in numbers] for numbers in (plan.nodes, plan.results))
        laid = lay_part(self.group, body, results, regions)
        assert isinstance(laid, LaidPart)
        called = {names[n]: self.group.called(n) for n in body}
        return laid.group.graph, lambda node: called[laid.group.called(node)]

    def crossing(self) -> dict[Node, str]:
        """What a tile owns of each value that parts leave for others in its scratch."""
        stitching, nodes = self.schedule.stitching, self.group.graph.nodes
        regions = () if stitching is None else stitching.regions
        return {nodes[k]: owned_text(r, self.known) for k, r in regions if self._in_scratch(k)}

    def _in_scratch(self, number: int) -> bool:
        return self.shared.array_of(Holds.VALUE, number) is not None

    def _value(self, node: Node) -> Value:
        entry = node.entries[0]
        shape = tuple(map(self.known, known_shape(entry)))
        return Value(self.group.called(node), type_text(shape, entry.dtype))

    def _owned(self, node: Node, region: Region | None) -> Value:
        """What a part leaves, of which a tile owns a region, or moves what it owns of another."""
        entry, places = node.entries[0], []
        assert entry.dtype is not None
        if self._in_scratch(self.group.graph.positions[node]):
            places.append("scratch")
        if entry in self.group.graph.outputs:
            places.append("memory")
        if region is None:
            return evolve(self._value(node), owned="what it moves", place=" and ".join(places))
        return evolve(
            self._value(node),
            owned=owned_text(region, self.known),
            nbytes=extent_text(self.known(region.size * entry.dtype.nbytes)),
            place=" and ".join(places),
        )

    def _packed(self, number: int, body: Sequence[Node]) -> PartFacts:
        part = parts_by(self.group, self.schedule)[number]
        plan = self.schedule.parts[number]
        others = next((set(s) - {number} for s in self.schedule.share if number in s), set())
        shares = f", with {_numbers(sorted(others))}" if others else ""
        return PartFacts(
            kind_of(body).value,
            plan.composition.value,
            tuple(map(self.group.called, body)),
            tuple(self._lines(number, part, plan)),
            tuple(self._value(part.original(e.node)) for e in part.graph.outputs),
            f"{size_text(self.known(tiles_of(plan)))}{shares}",
            self._bytes(self.shared.parts[number].nbytes),
        )

    def _lines(self, number: int, part: Part, plan: Schedule) -> list[str]:
        """The stages of a packed part, or of a phase and the parts that it may have itself."""
        if not plan.parts and plan.stitching is None:
            return stage_lines(plan, part.graph, lambda n: self.group.called(part.original(n)))
        group = alone(self.group, self.schedule)[number]
        inner = Anatomy(group, plan, self.shared.parts[number], self.known).parts()
        return [
            f"part {k}: {line}"
            for k, p in enumerate(inner)
            for line in p.stages or [f"computes {', '.join(p.operators)}"]
        ]

    def _bytes(self, size: Extent) -> str:
        return extent_text(self.known(size)) if size != 0 else ""


def stage_lines(plan: Schedule, graph: Graph, called: Called) -> list[str]:
    """What each stage of a schedule of one space does."""
    nodes, kept = graph.nodes, {k.value: k for k in plan.kept}

    def names(numbers: Sequence[int]) -> str:
        return ", ".join(called(nodes[n]) for n in numbers)

    def place(of: Kept) -> str:
        if of.place is Place.GLOBAL:
            return f"the place of {called(graph.outputs[of.output].node)}"
        return {Place.SHARED: "scratch", Place.LANES: "registers"}[of.place]

    lines = []
    for number, stage in enumerate(plan.stages):
        does = [f"folds {names(stage.folds)}"] if stage.folds else []
        does += [f"keeps {names([n])} in {place(kept[n])}" for n in stage.keeps if n in kept]
        if stage.rows:
            does.append(f"computes of each row {names(stage.rows)}")
        if stage.stores:
            stored = (called(graph.outputs[k].node) for k in stage.stores)
            does.append(f"stores {', '.join(dict.fromkeys(stored))}")
        lines.append(f"stage {number}: {'; '.join(does) or 'nothing of its own'}")
    if plan.stream:
        streamed = (called(graph.outputs[k].node) for k in plan.stream)
        lines.append(f"past the caches: {', '.join(dict.fromkeys(streamed))}")
    return lines


def owned_text(region: Region, known: Known = as_is) -> str:
    """What a tile owns of a value, dimension by dimension.

    >>> owned_text(Region((64, 94, 32), 1, 1, 40)), owned_text(Region((94, 32), 0))
    ('[1 of 64, 40 of 94, 32]', 'all')
    >>> owned_text(Region((64, 94), 1, per=3))
    '[1 of 64, 94], the same for 3 tiles in a row'
    """
    if not region.outside and region.window is None:
        return "all"

    def part(dim: int) -> str:
        whole = size_text(known(region.shape[dim]))
        own = "1" if dim in region.outside else whole
        own = size_text(known(region.chunk)) if dim == region.window else own
        return whole if own == whole else f"{own} of {whole}"

    text = f"[{', '.join(map(part, range(len(region.shape))))}]"
    per = known(region.per)
    return text if per == 1 else f"{text}, the same for {per} tiles in a row"


def _numbers(parts: Sequence[int]) -> str:
    """Parts by their numbers, of many only the ends."""
    if len(parts) == 1:
        return f"part {parts[0]}"
    if len(parts) > 3 and parts[-1] - parts[0] == len(parts) - 1:
        return f"parts {parts[0]} to {parts[-1]}"
    return f"parts {', '.join(map(str, parts))}"
