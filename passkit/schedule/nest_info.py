"""Loop nests in a tile: the iteration domain of each nest, and the points that a tile has of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from attrs import frozen

from passkit.analysis.domain import Axis, Domain, ValueKind
from passkit.analysis.domain_info import DomainInfo, analyze_bounded_domain
from passkit.analysis.domain_tile import (
    DomainTile,
    access_tile_of,
    domain_tile_of,
    tile_boundaries,
)
from passkit.analysis.extract import extract_nest
from passkit.analysis.group import Group
from passkit.analysis.recompute import is_expensive
from passkit.analysis.tile_layout import TileLayout
from passkit.analysis.tilemap import Split, TileMap, guessed
from passkit.analysis.transposed_accesses import transposed_axis
from passkit.ast import Var
from passkit.diagnostics import Diagnostic
from passkit.graph.attribute_calls import reduce_of
from passkit.graph.node import Entry, Node, known_shape
from passkit.schedule.roofline import roofline_seconds
from passkit.schedule.schedule import Schedule
from passkit.schedule.stages import split_stages
from passkit.schedule.tiling import Composition, has_short_rows
from passkit.target import Target
from passkit.values import dtype as dt
from passkit.values.size import Extent, numel

USUAL = 128
"""The extent by which seconds are compared where only a call knows extents."""


@frozen(eq=False)
class NestInfo:
    """A nest as a group of its own, and a tile's part of it.

    Attributes:
        group: the group.
        feeds: the values that feed its variables, in their order.
        info: its iteration domain.
        tile_map: the map of the value that determines the points of a tile.
        domain_tile: the points of a tile.
    """

    group: Group
    feeds: tuple[Entry, ...]
    info: DomainInfo
    tile_map: TileMap
    domain_tile: DomainTile


def analyze_nest(
    group: Group, nodes: Sequence[Node], results: Sequence[Node], layouts: Mapping[Node, TileLayout]
) -> NestInfo | Diagnostic:
    """Return the domain of a nest and the points that a tile has of it, or why there are none.

    Args:
        group: the whole group.
        nodes: the nodes of the nest, in post-order.
        results: those that other nests or the caller read.
        layouts: a tile's parts of values; results without one are derived from what the nest reads.
    """
    own, feeds = extract_nest(group.graph, tuple(nodes), tuple(results))
    values = (*results, *(e.node for e in feeds))
    exchanged = [layouts[n] for n in values if n in layouts]
    info = analyze_bounded_domain(
        own.graph,
        lambda domain: [x for layout in exchanged for x in tile_boundaries(domain, layout)],
    )
    if isinstance(info, Diagnostic):
        return info
    if any(n in layouts for n in results):
        located = _tile_of_results(info, results, layouts)
    else:
        located = _tile_of_input(info, feeds, layouts)
    if isinstance(located, Diagnostic):
        return located
    node, domain_tile = located
    if info.chunks is not None:
        return Diagnostic("tile.reduced_chunks", {"value": node.label}, (node.label,))
    if info.domain.axes[-1] in domain_tile.fixed and len(info.domain.axes) > 1:
        return Diagnostic("tile.single_column", {"value": node.label}, (node.label,))
    return NestInfo(own, feeds, info, layouts[node].tile_map, domain_tile)


def _tile_of_results(
    info: DomainInfo, results: Sequence[Node], layouts: Mapping[Node, TileLayout]
) -> tuple[Node, DomainTile] | Diagnostic:
    """Return the largest result and the points of a tile, which all results must have."""
    tiles = []
    for node, entry in zip(results, info.graph.outputs, strict=True):
        full = reduce_of(node) is None and ValueKind.POINT in info.kinds[entry.node]
        kind = ValueKind.POINT if full else ValueKind.REDUCED
        domain_tile = domain_tile_of(info.domain, layouts[node].tile_map, kind)
        if domain_tile is None:
            return Diagnostic("tile.window_axis", {"value": node.label}, (node.label,))
        tiles.append(domain_tile)
    largest = max(results, key=lambda n: num_elements(n.entries[0]))
    domain_tile = tiles[results.index(largest)]
    for node, other in zip(results, tiles, strict=True):
        if not other.same_points(domain_tile):  # only a part of its buffer would be written
            values = {"value": node.label, "other": largest.label}
            return Diagnostic("tile.parts", values, (node.label,))
    return largest, domain_tile


def _tile_of_input(
    info: DomainInfo, feeds: Sequence[Entry], layouts: Mapping[Node, TileLayout]
) -> tuple[Node, DomainTile] | Diagnostic:
    """Return an input of a nest that moves elements, and the points that read a tile of it."""
    pairs = zip(info.graph.inputs, feeds, strict=True)
    read = [(n, e) for n, e in pairs if e.node in layouts and n in info.input_accesses]
    if not read:  # only shapes of inputs are read, as of those of a bias by positions
        label = info.graph.outputs[0].node.label
        return Diagnostic("tile.window_elements", {"value": label}, (label,))
    node, feed = read[0]
    accesses, tile_map = info.input_accesses[node], layouts[feed.node].tile_map
    domain_tile, *others = (access_tile_of(info.domain, a, tile_map) for a in accesses)
    if domain_tile and all(other and other.same_points(domain_tile) for other in others):
        return feed.node, domain_tile
    return Diagnostic("tile.window_reader", {"value": feed.name}, (feed.node.label,))


def values_off_pitch(
    nest: NestInfo, layouts: Mapping[Node, TileLayout], results: Sequence[Node]
) -> set[Node]:
    """Return the values that a nest does not access row by row, so that rows cannot be padded.

    A nest must access them at its own points, with a row of them along its vectors.

    Args:
        nest: the nest.
        layouts: a tile's parts of values.
        results: the nodes of the whole group whose values the nest computes.
    """
    domain, graph = nest.info.domain, nest.group.graph
    padded = {n: layout for n, layout in layouts.items() if layout.pitch is not None}
    pairs = [(n, e.node) for n, e in zip(results, graph.outputs, strict=True)]
    pairs += [(e.node, own) for own, e in zip(graph.inputs, nest.feeds, strict=True)]
    return {
        node
        for node, own in pairs
        if node in padded
        and not (
            all(at == domain.point_index for at in nest.info.input_accesses.get(own, ()))
            and _has_rows_along_vectors(domain, padded[node], own)
        )
    }


def _has_rows_along_vectors(domain: Domain, layout: TileLayout, node: Node) -> bool:
    """Return whether the rows of a value lie along vectors, at constant strides of the axes."""
    shape = layout.tile_map.shape
    if numel(shape) != domain.size or reduce_of(node) is not None:
        return False
    axis = domain.axes[-1]
    index = domain.index(ValueKind.POINT, shape)
    place = layout.local(index, Var("first", dt.int64), domain.extents)
    is_row = axis.extent == shape[-1] and place.coefficient(axis.var) == 1
    return is_row and all(isinstance(atom, Var) for atom, _ in place.terms)


def num_elements(entry: Entry) -> int:
    """Return the number of elements of a value; unknown ones are larger than all others."""
    size = numel(known_shape(entry))
    return size if isinstance(size, int) else 1 << 62


def nest_schedules(
    nest: NestInfo, target: Target, recomputed: Collection[Node] = ()
) -> list[Schedule] | Diagnostic:
    """Return the schedules of a nest in a tile, the best as a rule first, or why there is none.

    Args:
        nest: the nest.
        target: the machine.
        recomputed: the values that are computed again wherever a later stage reads them.
    """
    info, domain, domain_tile = nest.info, nest.info.domain, nest.domain_tile
    last = domain.axes[-1]
    rows = [a for a in domain.kept if a not in domain_tile.fixed and a is not last]
    across = transposed_axis(info) if target.lanes > 1 else None
    choices: list[tuple[Composition, Split, Extent | None]] = []
    if last.reduced:
        count = domain_tile.length(rows[0]) if len(rows) == 1 else 0
        most = target.tiling.short_rows
        if isinstance(count, int) and 1 < count <= most and has_short_rows(domain, target):
            choices.append((Composition.SHORT, Split(0, count), None))
        choices.append((Composition.ROW, Split(0, 1), None))
    elif domain.reduced:
        choices.append((Composition.COLUMN, Split(0, 1), domain_tile.length(last)))
    else:
        if across in rows and across is not None:
            choices.append((Composition.BLOCK, Split(domain.axes.index(across), 1), None))
        choices.append((Composition.THREAD, Split(0, 1), None))
    stages, staged = split_stages(info, None, recomputed)
    points = guessed(domain.size, USUAL)
    per_point = sum(target.expensive if is_expensive(n) else target.light for n in recomputed)
    seconds = roofline_seconds(info, target, points) + per_point * points
    schedules = []
    for composition, split, width in choices:
        inner = [a for a in rows if composition is not Composition.BLOCK or a is not across]
        if domain_tile.window not in inner[1:]:
            schedules.append(
                Schedule(composition, domain.axes, split, width, stages, staged, seconds=seconds)
            )
    return schedules or Diagnostic("tile.window_rows")


def row_axes(domain: Domain, schedule: Schedule, domain_tile: DomainTile) -> list[Axis]:
    """Return the axes along which the rows of a tile lie, without those of vectors and blocks.

    A tile has more than one coordinate of each.
    """
    is_block = schedule.composition is Composition.BLOCK
    across = domain.axes[schedule.split.split_dim] if is_block else None
    excluded = (*domain_tile.fixed, domain.axes[-1], across)
    return [a for a in domain.kept if a not in excluded]


def has_rows(domain: Domain, schedule: Schedule, domain_tile: DomainTile) -> bool:
    """Return whether a nest is a loop over rows, which can run in parallel."""
    is_short = schedule.composition is Composition.SHORT
    return not is_short and bool(row_axes(domain, schedule, domain_tile))
