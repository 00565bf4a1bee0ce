"""The structure of a kernel, as pictures and reports show it: parts, stages, regions of tiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, reduce

from attrs import evolve, frozen

from passkit.analysis.components import Component
from passkit.analysis.extract import kind_of
from passkit.analysis.group import Group
from passkit.analysis.tile_layout import TileLayout
from passkit.analysis.tilemap import TileMap
from passkit.ast.stage import Place
from passkit.graph.graph import Graph
from passkit.graph.node import Node, is_leaf, known_shape
from passkit.ir.loop import LaunchShape
from passkit.planner.nests import scheduled_nest
from passkit.planner.packs import packed_nests
from passkit.schedule.compose import blocks_of_pack, side_by_side
from passkit.schedule.limits import shared_nbytes
from passkit.schedule.loop_nest import LoopNest
from passkit.schedule.nest import NestSchedule
from passkit.schedule.nest_info import NestInfo, analyze_nest
from passkit.schedule.phases import groups_of_parts, scheduled_parts
from passkit.schedule.schedule import MultiNest, Schedule, StagedValue, TileNest
from passkit.schedule.shared_plan import SharedPlan, largest
from passkit.schedule.text import tile_lines
from passkit.schedule.tile_buffers import BufferContent
from passkit.schedule.tile_loops import tiles_of
from passkit.values.size import Extent
from passkit.viz.labels import as_is, counted, extent_text, size_text, type_text

SizeResolver = Callable[[Extent], Extent]
"""Returns a size as a number if it is known, else unchanged."""
NodeNamer = Callable[[Node], str]
"""Returns the name that a reader knows a node by."""


@frozen
class PartOutput:
    """A value that a part of a kernel computes for other parts or for the caller.

    Attributes:
        name: The name of the node.
        type: Its dtype and shape, such as "f32[3, 211]".
        region: The region that one tile computes, such as "[1 of 3, 211]".
        nbytes: The bytes of the region.
        location: "scratch", "memory" or both.

    Packed parts and phases have tiles of their own; there the last three are "".
    """

    name: str
    type: str
    region: str = ""
    nbytes: str = ""
    location: str = ""


@frozen
class KernelPart:
    """A part of a kernel: a stitched or packed part, or a phase.

    Attributes:
        kind: The kind of its main operator, such as "reduction".
        composition: How its stages map to threads, "" for a matrix product.
        operators: The names of its operators.
        stages: A line for each of its stages.
        outputs: The values that it computes for others.
        tiles: The number of its tiles if it has tiles of its own, else "".
        scratch: The scratch that it needs for itself, "" for none.
    """

    kind: str
    composition: str
    operators: tuple[str, ...]
    stages: tuple[str, ...]
    outputs: tuple[PartOutput, ...]
    tiles: str
    scratch: str


class KernelStructure:
    """The structure of the kernel of a group.

    Attributes:
        group: The group.
        schedule: Its schedule.
        shared: Its scratch plan.
        resolve: Returns sizes as numbers, where they are known.
    """

    def __init__(
        self, group: Group, schedule: Schedule, shared: SharedPlan, resolve: SizeResolver = as_is
    ) -> None:
        self.group, self.schedule, self.shared, self.resolve = group, schedule, shared, resolve

    @property
    def composition(self) -> str:
        """How the elements of a tile map to threads, and in how many stages or parts.

        For loop nests that have schedules of their own, the rules that made them.
        """
        plan = self.schedule
        if plan.is_joined:
            return f"loop nests by rule {plan.rule}, {counted(len(plan.parts), self.part_noun)}"
        if plan.nest is not None:
            return f"loop nest by rule {plan.rule}, {counted(len(plan.stages), 'stage')}"
        if plan.pack is not None:
            return f"{counted(len(plan.parts), 'loop nest')} by rule {plan.rule}"
        name = plan.composition.value
        if plan.multi_nest is not None and plan.block is not None:
            return f"{name} by rule {plan.rule}, {counted(len(plan.multi_nest.nests), 'part')}"
        if plan.multi_nest is not None:
            return f"{name}, {counted(len(plan.multi_nest.nests), 'part')}"
        if plan.parts:
            return f"{name}, {counted(len(plan.parts), self.part_noun)}"
        return f"{name}, {counted(len(plan.stages), 'stage')}"

    @property
    def part_noun(self) -> str:
        """The noun for its parts: "phase" if they run one after the other, else "part"."""
        return "phase" if self.schedule.phase_outputs else "part"

    @property
    def tiles(self) -> Extent:
        """The number of tiles: those of loop nests are the thread blocks of the grid."""
        if self.schedule.pack is not None:
            return self.resolve(blocks_of_pack(self.schedule.pack, self.nests))
        if self.phases:
            return reduce(largest, (phase.tiles for phase in self.phases))
        if self.block_nest is not None and self.schedule.is_joined:
            chunks = self.schedule.parts[0]
            return self.resolve(self.block_nest.blocks([a.extent for a in chunks.axes]))
        if self.nest is None or self.schedule.nest is None:
            return self.resolve(tiles_of(self.schedule))
        return self.resolve(self.schedule.nest.blocks([a.extent for a in self.nest.axes]))

    @property
    def scratch(self) -> str:
        """The scratch of a tile with its unit, "" for none.

        In a loop nest it is the shared memory of a block for rows or sums of columns, without the
        few bytes through which warps combine their sums.
        """
        pack = self.schedule.pack
        if pack is not None:
            pairs = zip(side_by_side(pack, self.nests), pack.parts, self.nests, strict=True)
            return self._bytes(max(n * shared_nbytes(s, nest) for n, s, nest in pairs))
        if self.schedule.is_joined:
            phases = zip(
                groups_of_parts(self.group, self.schedule), self.schedule.parts, strict=True
            )
            nests = [(p.nest, scheduled_nest(own, p)) for own, p in phases if p.nest is not None]
            return self._bytes(sum(shared_nbytes(s, nest) for s, nest in nests))
        if self.schedule.block is not None:
            return self._bytes(self.schedule.block.shared_nbytes)
        if self.nest is None or self.schedule.nest is None:
            return self._bytes(self.shared.nbytes)
        return self._bytes(shared_nbytes(self.schedule.nest, self.nest))

    @property
    def block_nest(self) -> NestSchedule | None:
        """The schedule of the loop nest that the blocks of the grid have; None without one.

        Where the last blocks join partial results, it is that of the chunks.
        """
        plan = self.schedule
        return plan.parts[0].nest if plan.is_joined else plan.nest

    @cached_property
    def nest(self) -> LoopNest | None:
        """The loop nest of a kernel that is scheduled as one, else None."""
        if self.schedule.nest is None:
            return None
        return scheduled_nest(self.group, self.schedule)

    @cached_property
    def nests(self) -> list[LoopNest]:
        """The loop nests of a kernel that is scheduled as a pack of them, else none."""
        return [] if self.schedule.pack is None else packed_nests(self.group, self.schedule)

    @cached_property
    def phases(self) -> list[KernelStructure]:
        """The structure of each phase of a kernel that is scheduled as loop nests, else none."""
        plan = self.schedule
        if not plan.phase_outputs or plan.is_joined or not plan.is_mapped:
            return []
        parts = zip(groups_of_parts(self.group, plan), plan.parts, self.shared.parts, strict=True)
        return [KernelStructure(own, p, memory, self.resolve) for own, p, memory in parts]

    @property
    def launch(self) -> LaunchShape | None:
        """The threads of a thread block, None for a kernel that is not scheduled as loop nests."""
        return self.schedule.launch

    @property
    def tile_noun(self) -> str:
        """The noun for its tiles: "block" for the thread blocks of loop nests, else "tile"."""
        return "tile" if self.launch is None else "block"

    @property
    def threads(self) -> str:
        """The text " of 256 threads" of a thread block; "" for a kernel that is not loop nests."""
        return "" if self.launch is None else f" of {counted(self.launch.threads, 'thread')}"

    def properties(self) -> list[tuple[str, str]]:
        """Return names and values of the properties of the entire kernel, for a report."""
        tiles = (f"{self.tile_noun}s", f"{size_text(self.tiles)}{self.threads}")
        pairs = [("composition", self.composition), tiles]
        scratch = ("scratch", f"{self.scratch} per {self.tile_noun}")
        return [*pairs, scratch] if self.scratch else pairs

    def lines(self) -> tuple[str, ...]:
        """Return two short lines for a picture: the composition; the tiles, threads and scratch."""
        scratch = f" · {self.scratch} of scratch" if self.scratch else ""
        return self.composition, f"{counted(self.tiles, self.tile_noun)}{self.threads}{scratch}"

    def stages(self) -> list[str]:
        """Return a line for each stage of a kernel without parts; see `stage_lines`."""
        return stage_lines(self.schedule, self.group.graph, self.group.called)

    def schedule_lines(self) -> list[str]:
        """Return the schedule of a kernel without parts, as lines.

        For a loop nest these are the lines of its tile in the text form of schedules.
        """
        if self.nest is not None and self.schedule.nest is not None:
            return tile_lines(self.schedule.nest, self.nest)
        return [str(self.schedule), *self.stages()]

    @property
    def part_operators(self) -> list[list[Node]]:
        """The operators of each stitched part, packed part or phase; empty without parts."""
        if self.schedule.multi_nest is not None:
            nodes = self.group.graph.nodes
            return [[nodes[k] for k in part.nodes] for part in self.schedule.multi_nest.nests]
        parts = scheduled_parts(self.group, self.schedule) if self.schedule.parts else ()
        return [[p.original(n) for n in p.graph.nodes if not is_leaf(n)] for p in parts]

    @property
    def home_parts(self) -> dict[Node, int]:
        """The number of the part that each operator belongs to.

        That is the part whose output it is, or else the first that computes it. Other parts
        recompute it.
        """
        homes: dict[Node, int] = {}
        for number, body in enumerate(self.part_operators):
            homes = {**dict.fromkeys(body, number), **homes}
        if self.schedule.multi_nest is not None:
            nodes = self.group.graph.nodes
            outputs = [[nodes[k] for k in p.results] for p in self.schedule.multi_nest.nests]
        else:
            parts = scheduled_parts(self.group, self.schedule) if self.schedule.parts else ()
            outputs = [[p.original(e.node) for e in p.graph.outputs] for p in parts]
        return homes | {n: number for number, values in enumerate(outputs) for n in values}

    def parts(self) -> list[KernelPart]:
        """Return a description of each part, in order; an empty list for a kernel without parts."""
        describe = self._packed_part if self.schedule.parts else self._stitched_part
        return [describe(number, body) for number, body in enumerate(self.part_operators)]

    def _stitched_part(self, number: int, body: Sequence[Node]) -> KernelPart:
        """Describe stitched part ``number``, whose tiles are those of the kernel.

        ``body`` are its operators.
        """
        multi_nest, nodes = self.schedule.multi_nest, self.group.graph.nodes
        assert multi_nest is not None
        plan = multi_nest.nests[number]
        stages: list[str] = []
        if plan.schedule is not None:
            graph, namer = self._part_graph(plan, multi_nest)
            stages = stage_lines(plan.schedule, graph, namer)
        return KernelPart(
            kind=kind_of(body).value,
            composition="" if plan.schedule is None else plan.schedule.composition.value,
            operators=tuple(map(self.group.called, body)),
            stages=tuple(stages),
            outputs=tuple(
                self._stitched_output(nodes[k], multi_nest.layout(k)) for k in plan.results
            ),
            tiles="",
            scratch=self._bytes(self.shared.parts[number].nbytes),
        )

    def _part_graph(self, plan: TileNest, multi_nest: MultiNest) -> tuple[Graph, NodeNamer]:
        """Return the graph that a part's schedule refers to, and a function that names its nodes.

        ``plan`` is the part's, in ``stitching``, the plan of all parts of the kernel.
        """
        nodes, names = self.group.graph.nodes, self.group.graph.names
        layouts = {nodes[k]: layout for k, layout in multi_nest.layouts}
        body, results = ([nodes[k] for k in numbers] for numbers in (plan.nodes, plan.results))
        laid = analyze_nest(self.group, body, results, layouts)
        assert isinstance(laid, NestInfo)
        original_names = {names[n]: self.group.called(n) for n in body}
        return laid.group.graph, lambda node: original_names[laid.group.called(node)]

    def regions_in_scratch(self) -> dict[Node, str]:
        """Return the region per tile of each value that parts pass to others in scratch.

        Empty for a kernel that is not stitched.
        """
        multi_nest, nodes = self.schedule.multi_nest, self.group.graph.nodes
        layouts = () if multi_nest is None else multi_nest.layouts
        return {
            nodes[k]: region_text(layout.tile_map, self.resolve)
            for k, layout in layouts
            if self._is_in_scratch(k)
        }

    def _is_in_scratch(self, number: int) -> bool:
        """Return whether the value of the node at a position has an array in scratch."""
        return self.shared.array_of(BufferContent.VALUE, number) is not None

    def _output(self, node: Node) -> PartOutput:
        """Return the name and type of a node's first output, with values for known symbols."""
        entry = node.entries[0]
        shape = tuple(map(self.resolve, known_shape(entry)))
        return PartOutput(self.group.called(node), type_text(shape, entry.dtype))

    def _stitched_output(self, node: Node, layout: TileLayout | None) -> PartOutput:
        """Describe ``node``, an output of a stitched part, by type, region, bytes and location.

        Without a layout, the part moves elements of another value to where they belong, and the
        bytes are "".
        """
        entry, locations = node.entries[0], []
        assert entry.dtype is not None
        if self._is_in_scratch(self.group.graph.positions[node]):
            locations.append("scratch")
        if entry in self.group.graph.outputs:
            locations.append("memory")
        location = " and ".join(locations)
        if layout is None:
            return evolve(self._output(node), region="the elements it moves", location=location)
        return evolve(
            self._output(node),
            region=region_text(layout.tile_map, self.resolve),
            nbytes=extent_text(self.resolve(layout.size * entry.dtype.nbytes)),
            location=location,
        )

    def _packed_part(self, number: int, body: Sequence[Node]) -> KernelPart:
        """Describe packed part or phase ``number``, which has tiles of its own.

        ``body`` are its operators.
        """
        part = scheduled_parts(self.group, self.schedule)[number]
        plan = self.schedule.parts[number]
        pack = self.schedule.pack
        if pack is not None:
            blocks = pack.parts[number].blocks([a.extent for a in self.nests[number].axes])
            return KernelPart(
                kind=kind_of(body).value,
                composition="loop nest",
                operators=tuple(map(self.group.called, body)),
                stages=tuple(tile_lines(pack.parts[number], self.nests[number])),
                outputs=tuple(self._output(part.original(e.node)) for e in part.graph.outputs),
                tiles=size_text(self.resolve(blocks)),
                scratch=self._bytes(shared_nbytes(pack.parts[number], self.nests[number])),
            )
        if self.phases:
            phase = self.phases[number]
            return KernelPart(
                kind=kind_of(body).value,
                composition=phase.composition,
                operators=tuple(map(self.group.called, body)),
                stages=tuple(self._stages_of_phase(number)),
                outputs=tuple(self._output(part.original(e.node)) for e in part.graph.outputs),
                tiles=size_text(phase.tiles),
                scratch=phase.scratch,
            )
        others = next((set(s) - {number} for s in self.schedule.shared_tiles if number in s), set())
        shared_with = f", shared with {_part_numbers(sorted(others))}" if others else ""
        return KernelPart(
            kind=kind_of(body).value,
            composition=plan.composition.value,
            operators=tuple(map(self.group.called, body)),
            stages=tuple(self._packed_stages(number, part, plan)),
            outputs=tuple(self._output(part.original(e.node)) for e in part.graph.outputs),
            tiles=f"{size_text(self.resolve(tiles_of(plan)))}{shared_with}",
            scratch=self._bytes(self.shared.parts[number].nbytes),
        )

    def _packed_stages(self, number: int, part: Component, plan: Schedule) -> list[str]:
        """Return a line for each stage of packed part ``number``, or of the parts inside a phase.

        ``plan`` is the schedule of ``part``.
        """
        if not plan.parts and plan.multi_nest is None:
            return stage_lines(plan, part.graph, lambda n: self.group.called(part.original(n)))
        group = groups_of_parts(self.group, self.schedule)[number]
        inner = KernelStructure(group, plan, self.shared.parts[number], self.resolve)
        return inner.stages_of_parts()

    def _stages_of_phase(self, number: int) -> list[str]:
        """Return a line for each stage or part of phase ``number``, which has loop nests."""
        phase = self.phases[number]
        return phase.schedule_lines() if phase.nest is not None else phase.stages_of_parts()

    def stages_of_parts(self) -> list[str]:
        """Return a line for each stage of each part."""
        return [
            f"part {k}: {line}"
            for k, p in enumerate(self.parts())
            for line in p.stages or [f"computes {', '.join(p.operators)}"]
        ]

    def _bytes(self, size: Extent) -> str:
        """Return a number of bytes with a unit, "" for 0."""
        return extent_text(self.resolve(size)) if size != 0 else ""


def stage_lines(plan: Schedule, graph: Graph, namer: NodeNamer) -> list[str]:
    """Return a line for each stage of a schedule of one iteration domain.

    Args:
        plan: The schedule.
        graph: The graph whose node positions the schedule refers to.
        namer: Returns the name of a node of this graph.
    """
    nodes, kept = graph.nodes, {k.value: k for k in plan.staged}

    def names(numbers: Sequence[int]) -> str:
        """Return the names of the nodes at these positions."""
        return ", ".join(namer(nodes[n]) for n in numbers)

    def storage(value: StagedValue) -> str:
        """Return where a kept value is stored, as text."""
        if value.place is Place.GLOBAL:
            return f"the memory of {namer(graph.outputs[value.output].node)}"
        return {Place.SHARED: "scratch", Place.LANES: "registers"}[value.place]

    lines = []
    for number, stage in enumerate(plan.stages):
        actions = [f"reduces {names(stage.reduces)}"] if stage.reduces else []
        actions += [f"keeps {names([n])} in {storage(kept[n])}" for n in stage.staged if n in kept]
        if stage.row_values:
            actions.append(f"computes {names(stage.row_values)} per row")
        if stage.stores:
            stored = (namer(graph.outputs[k].node) for k in stage.stores)
            actions.append(f"stores {', '.join(dict.fromkeys(stored))}")
        lines.append(f"stage {number}: {'; '.join(actions) or 'only prepares the next stage'}")
    if plan.stream:
        streamed = (namer(graph.outputs[k].node) for k in plan.stream)
        lines.append(f"stores that bypass the caches: {', '.join(dict.fromkeys(streamed))}")
    return lines


def region_text(tile_map: TileMap, resolve: SizeResolver = as_is) -> str:
    """Return the region of a value that one tile computes, dimension by dimension.

    ``resolve`` returns a size as a number where it is known.

    >>> from passkit.analysis.tilemap import Split, slab_map, whole_map
    >>> region_text(Split(1, 40).tile_map((64, 94, 32))), region_text(whole_map((94, 32)))
    ('[1 of 64, 40 of 94, 32]', 'all')
    >>> region_text(slab_map((64, 94), 1, 192, 3))
    '[1 of 64, 94], the same for 3 tiles in a row'
    """
    if not tile_map.split_dims:
        return "all"

    def dimension(dim: int) -> str:
        """Return the extent of axis ``dim``, with what a tile computes of it in front."""
        size = size_text(resolve(tile_map.shape[dim]))
        part = size_text(resolve(tile_map.dims[dim].chunk))
        return size if part == size else f"{part} of {size}"

    text = f"[{', '.join(map(dimension, range(len(tile_map.shape))))}]"
    repeats = resolve(tile_map.repeats)
    return text if repeats == 1 else f"{text}, the same for {repeats} tiles in a row"


def _part_numbers(parts: Sequence[int]) -> str:
    """Return "part 1", "parts 1, 4", or "parts 1 to 8" for more than three in a row.

    ``parts`` are the numbers, at least one, sorted.
    """
    if len(parts) == 1:
        return f"part {parts[0]}"
    if len(parts) > 3 and parts[-1] - parts[0] == len(parts) - 1:
        return f"parts {parts[0]} to {parts[-1]}"
    return f"parts {', '.join(map(str, parts))}"
