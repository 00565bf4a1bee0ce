"""Schedule rules of loop nests that run tile by tile: those of CPUs.

A rule decides how many points a tile has, along which axis vectors lie, and which values stay in
registers; the stages and the places of other values follow. A GPU's group without a schedule of its
nest has tiles by the same rules. Sizes are fields of the target: `passkit.target.heuristics` says
where each was measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from attrs import evolve

from passkit.analysis.domain import Domain, ValueKind, reduced_axes_of
from passkit.analysis.domain_info import DomainInfo
from passkit.analysis.recompute import is_expensive
from passkit.analysis.size_arguments import MAX_LITERAL_EXTENT
from passkit.analysis.tilemap import rows_with
from passkit.analysis.transposed_accesses import (
    narrow_tile_rows,
    penultimate_vector_axis,
    transposed_tile,
)
from passkit.analysis.unrolled import MIN_RESULTS, unrolled_length
from passkit.ast.stage import Place
from passkit.diagnostics import Diagnostic
from passkit.graph.attribute_calls import reduce_of
from passkit.ir.loop import StorageScope
from passkit.schedule.actions import Action, Recompute, SetScope
from passkit.schedule.apply_tiles import TileShape, apply_tiles, tile_actions
from passkit.schedule.loop_nest import LoopNest
from passkit.schedule.rules import (
    ScheduleRule,
    apply_rules,
    operator_rules,
    schedule_rules,
)
from passkit.schedule.schedule import Schedule
from passkit.schedule.stages import split_stages
from passkit.schedule.tiling import (
    Composition,
    compositions,
    fits_registers,
    second_tiled_axis,
    split_for,
)
from passkit.target import Target
from passkit.target.heuristics import TilingHeuristics
from passkit.values.size import Extent, numel


def short_rows(nest: LoopNest, target: Target) -> Sequence[Action] | None:
    """Return the schedule of short rows: a tile has many, and their values are vectors.

    Args:
        nest: the nest; the result is None unless its last axis alone is reduced, and short.
        target: the machine.
    """
    if compositions(nest.info, target)[0] is not Composition.SHORT:
        return None
    length = nest.info.domain.axes[-1].extent
    assert isinstance(length, int)  # short rows have a known length
    chunk = max(16, min(256, target.short_tile // max(1, length) // 16 * 16))
    return _actions(nest, Composition.SHORT, chunk, None, target)


def rows(nest: LoopNest, target: Target) -> Sequence[Action] | None:
    """Return the schedule of rows that are reduced one after the other, with vectors along them.

    Args:
        nest: the nest; the result is None unless its last axis is reduced.
        target: the machine.
    """
    domain = nest.info.domain
    if not domain.axes[-1].reduced:
        return None
    chunk = rows_with(target.tile, numel(a.length for a in domain.reduced))
    return _actions(nest, Composition.ROW, chunk, None, target)


def columns(nest: LoopNest, target: Target) -> Sequence[Action] | None:
    """Return the schedule of columns, whose reduction is a serial loop around vectors.

    Args:
        nest: the nest; the result is None unless an axis in front of the last one is reduced.
        target: the machine.
    """
    domain = nest.info.domain
    if not domain.reduced or domain.axes[-1].reduced:
        return None
    if target.lanes == 1:
        width = target.tiling.columns
    elif domain.axes[0].is_chunk_axis:
        width = _columns_of_chunks(nest.info, target.tiling)
    else:
        width = _whole_columns(domain, target.tiling)
    extent = domain.axes[-1].extent
    if isinstance(extent, int) and extent:
        width = min(extent, width)
    return _actions(nest, Composition.COLUMN, 1, width, target)


def narrow(nest: LoopNest, target: Target) -> Sequence[Action] | None:
    """Return the schedule of a last axis of few elements, with vectors along the axis before it.

    Args:
        nest: the nest; the result is None for others, and on targets without vectors.
        target: the machine.
    """
    if compositions(nest.info, target)[0] is not Composition.NARROW:
        return None
    last = nest.info.domain.axes[-1].extent
    assert isinstance(last, int)  # a narrow axis has a known extent
    width = narrow_tile_rows(target.tile // 2, last)
    return _actions(nest, Composition.NARROW, width, width, target)


def transposed(nest: LoopNest, target: Target) -> Sequence[Action] | None:
    """Return the schedule of blocks of the last axis and of one that an input is consecutive along.

    Args:
        nest: the nest; the result is None without such an input, and on targets without vectors.
        target: the machine.
    """
    axis = second_tiled_axis(nest.info, target)
    if axis is None or penultimate_vector_axis(nest.info) is not None:
        return None
    width, chunk = transposed_tile(nest.info.domain.axes[-1].extent, axis.extent, target.tile)
    return _actions(nest, Composition.BLOCK, chunk, width, target)


def elementwise(nest: LoopNest, target: Target) -> Sequence[Action] | None:
    """Return the schedule of independent points: consecutive ones, or whole rows of them.

    Args:
        nest: the nest; the result is None if anything is reduced.
        target: the machine.
    """
    domain = nest.info.domain
    if domain.reduced:
        return None
    longest = max(map(unrolled_length, nest.graph.nodes))
    points = max(MIN_RESULTS, target.tile // longest)
    if len(domain.axes) == 1:
        return _actions(nest, Composition.THREAD, points, points, target)
    chunk = rows_with(points, domain.axes[-1].extent)
    return _actions(nest, Composition.THREAD, chunk, None, target)


RULES = (
    ("short_rows", short_rows),
    ("rows", rows),
    ("columns", columns),
    ("narrow", narrow),
    ("transposed", transposed),
    ("elementwise", elementwise),
)
"""The built-in rules by name, in the order in which they are tried."""
BUILT_IN = tuple(ScheduleRule(name, function, True) for name, function in RULES)
"""The same as rules."""


def plan_tiles(info: DomainInfo, target: Target) -> Schedule:
    """Return the schedule of a group of one loop nest that runs tile by tile.

    Rules of operators and of users come first, on targets with vectors. Where the actions of one
    are not legal, a later rule makes the schedule, whose ``refusal`` is the reason. Built-in rules
    are tried at the end even if another rule took their place.

    Args:
        info: the iteration domain of the group.
        target: the machine.

    Raises: RuleError if a rule returns something else than actions.
    """
    nest = tile_nest(info)
    own = (*operator_rules(nest), *schedule_rules(target, BUILT_IN)) if target.lanes > 1 else ()
    result = apply_rules(nest, target, (*own, *BUILT_IN), apply_tiles)
    assert result.schedule is not None, result.diagnostic  # a built-in rule is for each nest
    return evolve(result.schedule, rule=result.rule, refusal=result.refusal)


def tile_nest(info: DomainInfo) -> LoopNest:
    """Return the loop nest of an iteration domain, with the storage of values that is usual."""
    return LoopNest(info, *split_stages(info, None))


def tile_schedule(nest: LoopNest, shape: TileShape, target: Target) -> Schedule | Diagnostic:
    """Return the schedule of a nest with the loops ``shape``, or why there is none.

    Values stay in registers where the built-in rules keep them there.

    Args:
        nest: the nest.
        shape: the loops of a tile.
        target: the machine.
    """
    return apply_tiles(nest, target, _shape_actions(nest, shape, target))


def _actions(
    nest: LoopNest, composition: Composition, chunk: Extent, width: Extent | None, target: Target
) -> list[Action]:
    """Return the actions of a structure of loops with a chunk of its tile map, and a width."""
    shape = TileShape(composition, split_for(nest.info, composition, chunk), width)
    return _shape_actions(nest, shape, target)


def _shape_actions(nest: LoopNest, shape: TileShape, target: Target) -> list[Action]:
    """Return the actions that distribute a nest, and those for values of short rows."""
    return [*tile_actions(nest, shape, target), *_register_actions(nest, shape, target)]


def _register_actions(nest: LoopNest, shape: TileShape, target: Target) -> list[Action]:
    """Return the actions that keep values of short rows in registers, where that is quicker."""
    info = nest.info
    if shape.composition is not Composition.ROW or not fits_registers(info, target):
        return []
    if _is_long_text(info, target):
        return []
    _, staged = nest.stage_plan(Place.LANES)
    if staged:
        return [SetScope(nest.value_names[k.value], StorageScope.REGISTER) for k in staged]
    # None of the values depends on an input: they need no registers.
    return [Recompute(nest.value_names[k]) for k in nest.all_recomputed]


def _is_long_text(info: DomainInfo, target: Target) -> bool:
    """Return whether an unrolled row that fits in registers would call too many functions.

    Rows of up to `MAX_LITERAL_EXTENT` elements are unrolled in any case.
    """
    length = info.domain.axes[-1].extent
    assert isinstance(length, int)  # only short rows fit in registers
    if length <= MAX_LITERAL_EXTENT:
        return False
    full = [n for n, kind in info.kinds.items() if ValueKind.POINT in kind and reduce_of(n) is None]
    vectors = -(-length // target.lanes)
    return vectors * sum(map(is_expensive, full)) > target.tiling.register_functions


def _columns_of_chunks(info: DomainInfo, tiling: TilingHeuristics) -> int:
    """Return the columns of a tile that reduces one chunk of them.

    The partial results of a tile stay within the target's limit, and there are enough tiles.
    """
    chunks, columns = info.domain.axes[0].extent, info.domain.axes[-1].extent
    reductions = [n for n in info.graph.nodes if reduced_axes_of(n) is not None]
    nbytes = sum(info.graph.dtype(e).nbytes for n in reductions for e in n.entries)
    least = tiling.chunk_columns
    most = max(least, 1 << max(1, tiling.chunk_sum_bytes // nbytes).bit_length() - 1)
    if not isinstance(chunks, int) or not isinstance(columns, int):
        return min(most, 2 * least)
    while most > least and chunks * -(-columns // most) < tiling.chunk_tiles:
        most //= 2
    return most


def _whole_columns(domain: Domain, tiling: TilingHeuristics) -> int:
    """Return the columns of a tile that reduces them whole; fewer if there would be few tiles."""
    last = domain.axes[-1]
    if not isinstance(last.extent, int):
        return tiling.columns
    others = prod(a.extent for a in domain.kept if a is not last and isinstance(a.extent, int))
    line = tiling.line_elements
    tiles = min(-(-tiling.column_tiles // max(1, others)), last.extent // tiling.min_columns)
    if tiles < 2:
        return tiling.columns
    return min(tiling.columns, -(-last.extent // (tiles * line)) * line)
