"""The parts of a stitched kernel, read from the statements that its group is lowered to.

Definitions of the tile's coordinates that several parts have are one.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from attrs import evolve

from passkit.analysis.group import Group
from passkit.analysis.params import params_of
from passkit.analysis.tilemap import TileMap
from passkit.ast import Expr
from passkit.ast.stage import Dot, Part, Place, Stage, Store
from passkit.diagnostics import Diagnostic
from passkit.schedule.block_nest import BlockNest, BlockPart, PointPart, ProductPart, RowPart
from passkit.schedule.schedule import MultiNest, Schedule, StagedValue
from passkit.schedule.shared_plan import SharedPlan, plan_shared
from passkit.schedule.tiling import Composition
from passkit.transforms.block_coordinates import BlockCoordinates
from passkit.transforms.build_nests import multi_nest_parts
from passkit.transforms.read_point_part import read_point_part
from passkit.transforms.read_product_part import read_product_part
from passkit.transforms.read_row_part import read_row_part
from passkit.values import dtype as dt
from passkit.values.dtype import DType
from passkit.values.size import Extent


def block_nest(group: Group, schedule: Schedule) -> BlockNest | Diagnostic:
    """Return the parts of a stitched kernel, or why GPUs have no schedule of them.

    Args:
        group: the group.
        schedule: its schedule, with the tiling of its values.
    """
    multi_nest = schedule.multi_nest
    if multi_nest is None:
        return Diagnostic("tile.composition")
    problem = _unsupported(group, multi_nest)
    if problem is not None:
        return problem
    long: frozenset[int] = frozenset()
    while isinstance(nest := _read_nests(group, schedule, multi_nest, long), int):
        long |= {nest}
    return nest


def _read_nests(
    group: Group, schedule: Schedule, multi_nest: MultiNest, long: frozenset[int]
) -> BlockNest | Diagnostic | int:
    """Return the parts of a stitched kernel, or why there are none; or a nest of long rows.

    Args:
        group: the group.
        schedule: its schedule.
        multi_nest: its nests.
        long: the numbers of nests whose rows have no room in registers, and are computed again.
            The number of another one is returned.
    """
    plain, shared = _in_registers(group, schedule, multi_nest, long)
    values = tuple(a.number for a in shared.arrays)
    layouts = dict(multi_nest.layouts)
    lengths = tuple(_row_length(layouts[k].tile_map) for k in values)
    arrays = shared.buffers(of_row=False, has_offsets=True)
    tile = BlockCoordinates(arrays, lengths)
    parts: list[BlockPart] = []
    lowered = multi_nest_parts(group, plain, shared)
    for k, (nest, part) in enumerate(zip(multi_nest.nests, lowered, strict=True)):
        axes = {} if nest.schedule is None else {a.var.name: a.extent for a in nest.schedule.axes}
        names = tile.define(part.lets)
        read = [read_product_part(s, names, tile) for s in part.stages if isinstance(s, Dot)]
        stages = tuple(s for s in part.stages if isinstance(s, Stage))
        number = len(parts) + len(read)
        rest = [_read_stages(number, part, stages, names, tile, axes)] if stages else []
        for own in (*read, *rest):
            if isinstance(own, Diagnostic):
                return own
            if isinstance(own, RowPart) and own.has_kept and own.is_long:
                return k
            parts.append(own)
    flat = frozenset(b for p in parts if not isinstance(p, ProductPart) for b in p.scattered)
    params = params_of(group.graph)
    lets = tuple(tile.lets)
    return BlockNest(params, arrays, values, lengths, lets, tuple(parts), multi_nest.tiles, flat)


def _read_stages(
    number: int,
    part: Part,
    stages: tuple[Stage, ...],
    names: Mapping[str, Expr],
    tile: BlockCoordinates,
    axes: Mapping[str, Extent],
) -> RowPart | PointPart | Diagnostic:
    """Return a part with stages: with rows of threads, or else with a thread for each point.

    The arguments are those of `read_point_part`.
    """
    own: RowPart | PointPart | Diagnostic = read_row_part(number, part, stages, names, tile)
    if isinstance(own, Diagnostic):
        points = read_point_part(number, part, stages, names, tile, axes)
        is_better = isinstance(points, PointPart) or own.code == "block.order"
        own = points if is_better else own
    if isinstance(own, Diagnostic):
        return own
    statements = (s for stage in own.stages for s in (*stage.body, *stage.after))
    for s in (s for s in statements if isinstance(s, Store) and s.buffer.startswith("y")):
        if not all(isinstance(c, int) for _, c in tile.sum(s.index).terms):
            return Diagnostic("block.strides", {"buffer": s.buffer})
    return own


def _unsupported(group: Group, multi_nest: MultiNest) -> Diagnostic | None:
    """Return why GPUs have no schedule of these nests: products of other dtypes, or of two."""
    contractions = {part.results[0] for part in multi_nest.nests if part.schedule is None}
    own: DType | None = None
    for node in (group.graph.nodes[k] for k in sorted(contractions)):
        for entry in (*node.inputs, *node.entries):
            own = own or entry.dtype
            if entry.dtype is not own or own not in (dt.float32, dt.float64):
                data = {"value": entry.node.label, "dtype": entry.dtype}
                return Diagnostic("block.dtype", data)
    return None


def _row_length(tile_map: TileMap) -> int:
    """Return the elements of a row of a tile's part of a value; 0 if it has no known row."""
    if not tile_map.dims or tile_map.dims[-1].count != 1:
        return 0
    length = tile_map.shape[-1]
    return length if isinstance(length, int) and length > 1 else 0


def _in_registers(
    group: Group, schedule: Schedule, multi_nest: MultiNest, long: frozenset[int]
) -> tuple[Schedule, SharedPlan]:
    """Return a schedule whose parts have the values between stages in registers, and its memory.

    Threads that go along rows have them there. Threads that go down columns, or along rows that are
    too long, compute them again, but for those that lie where a result does.

    Args:
        group: the group.
        schedule: its schedule.
        multi_nest: its nests.
        long: the numbers of those whose rows are too long.
    """
    nests = list(multi_nest.nests)
    for k, nest in enumerate(nests):
        if nest.schedule is not None:
            plan = _computed_again(nest.schedule) if k in long else nest.schedule
            nests[k] = evolve(nest, schedule=_without_arrays(plan, frozenset()))
    plain = evolve(schedule, multi_nest=evolve(multi_nest, nests=tuple(nests)), block=None)
    shared = plan_shared(group, plain)
    for k, (nest, own) in enumerate(zip(nests, shared.parts, strict=True)):
        beside = frozenset(a.number for a in own.arrays if a.like is not None)
        if nest.schedule is not None and beside:
            nests[k] = evolve(nest, schedule=_without_arrays(nest.schedule, beside))
    return evolve(plain, multi_nest=evolve(multi_nest, nests=tuple(nests))), shared


def _without_arrays(schedule: Schedule, beside: frozenset[int]) -> Schedule:
    """Return the schedule of a part without arrays for the values between its stages.

    ``beside`` are the values that lie in arrays which are laid out as a result.
    """
    if schedule.composition in (Composition.ROW, Composition.THREAD):
        return evolve(
            schedule, staged=tuple(StagedValue(k.value, Place.LANES) for k in schedule.staged)
        )
    if schedule.composition is not Composition.COLUMN:
        return schedule
    dropped = {k.value for k in schedule.staged if k.place is Place.SHARED or k.value in beside}
    return _computed_again(schedule, dropped)


def _computed_again(schedule: Schedule, dropped: Set[int] | None = None) -> Schedule:
    """Return the schedule of a part whose stages compute some values again; None means all."""
    staged = tuple(k for k in schedule.staged if dropped is not None and k.value not in dropped)
    kept = {k.value for k in staged}
    stages = tuple(
        evolve(s, staged=tuple(k for k in s.staged if k in kept)) for s in schedule.stages
    )
    return evolve(schedule, staged=staged, stages=stages)
