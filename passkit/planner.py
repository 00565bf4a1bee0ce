"""The planner: how a group runs on a target, or why it cannot be one kernel."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

from attrs import evolve

from passkit.group import FUSED, Group
from passkit.layout import lay_out
from passkit.memo import Held
from passkit.node import Node
from passkit.packing import aim_of, bundles, points_of_tile
from passkit.schedule import Schedule, estimate, levels_of, stages_of
from passkit.size import numel
from passkit.space import Infeasible, is_free
from passkit.split import Split
from passkit.stage import Place
from passkit.stitching.plan import is_stitched, plan_stitched
from passkit.target import Target
from passkit.tiling import Composition, row_place, tiling


def plan_group(group: Group, target: Target) -> Schedule | Infeasible:
    """The schedule of a group on a target, or why it has none. Pure, and memoised by group key."""
    return _plan(group.key, Held(group), target)


@lru_cache(maxsize=4096)
def _plan(key: str, held: Held[Group], target: Target) -> Schedule | Infeasible:
    group = held.value
    if len(group.parts) > 1:
        packed = _packed(group, target)
        if isinstance(packed, Schedule) or packed.code != "stitched":
            return packed
    if is_stitched(group.graph):
        return plan_stitched(group, target)
    layout = lay_out(group.graph)
    if isinstance(layout, Infeasible):
        found = plan_stitched(group, target)
        return layout if isinstance(found, Infeasible) else found
    levels = levels_of(layout)
    composition, split, width = tiling(layout, target)
    place = row_place(layout, composition, target)
    stages, kept = stages_of(layout, levels, place)
    return Schedule(
        composition,
        layout.space.axes,
        split,
        width,
        stages,
        kept,
        seconds=estimate(layout, target),
    )


def _packed(group: Group, target: Target) -> Schedule | Infeasible:
    """The schedule of parts: each as if alone, with tiles that take about as long everywhere.

    A part that is stitched is not packed: it has parts of its own.
    """
    free = next((e.node for e in group.graph.outputs if is_free(e.node)), None)
    if free is not None:
        return Infeasible("pass_through", "an output that is an input", free)
    parts = [Group(p.graph, group.kind) for p in group.parts]
    plans = []
    for part in parts:
        plan = plan_group(part, target)
        if isinstance(plan, Infeasible):
            return plan
        if plan.stitching is not None:
            return Infeasible("stitched", "one of its parts is stitched")
        plans.append(plan)
    seconds = [p.seconds for p in plans]
    aim = aim_of(seconds) if target.lanes > 1 else 0.0
    if aim:
        for k, part in enumerate(parts):
            tile = _tile(plans[k], aim, target)
            plan = plan_group(part, target if tile == target.tile else evolve(target, tile=tile))
            assert isinstance(plan, Schedule)
            plans[k] = plan
    small = [2 * p.seconds < aim and _is_small(p) for p in plans]
    return Schedule(
        *(Composition.PACKED, (), Split(0, 1), None, (), ()),
        seconds=sum(seconds) if all(seconds) else 0.0,
        parts=tuple(plans),
        share=tuple(map(tuple, bundles(seconds, small, aim))),
    )


def _tile(plan: Schedule, aim: float, target: Target) -> int:
    """The points that a tile of a part should have."""
    points = plan.space.size
    if not isinstance(points, int) or points == 0:  # a sum of nothing takes time all the same
        return target.tile
    return points_of_tile(plan.seconds / points, aim, target.tile)


def _is_small(plan: Schedule) -> bool:
    """Whether a part is one tile without scratch, so that others may follow it there."""
    if any(k.place is Place.SHARED for k in plan.kept):
        return False
    if plan.composition is Composition.THREAD and len(plan.axes) == 1:
        count, most = plan.axes[0].extent, plan.width
    elif plan.composition in (Composition.THREAD, Composition.ROW) and plan.width is None:
        lane = plan.axes[-1]
        count = numel(a.extent for a in plan.axes if not a.reduced and a is not lane)
        most = plan.split.chunk
    else:
        return False
    return isinstance(count, int) and isinstance(most, int) and count <= most


def inplace_pairs(node: Node) -> list[tuple[int, int]]:
    """Which results of a fused node may overwrite which inputs: FInplaceOption.

    One pass over the points, every read of the input at the point that is written, and no other
    part of the kernel that reads it.
    """
    group: Group = node.params["body"]
    return _pairs(group.key, Held(group))


@lru_cache(maxsize=4096)
def _pairs(key: str, held: Held[Group]) -> list[tuple[int, int]]:
    group = held.value
    readers = Counter(i for part in group.parts for i in part.inputs)
    pairs: list[tuple[int, int]] = []
    for part in group.parts:
        layout = None if is_stitched(part.graph) else lay_out(part.graph)
        if layout is None or isinstance(layout, Infeasible):
            return []  # it is stitched, all of it: no part is packed then
        if layout.space.reduced:
            continue
        pairs += [
            (i, o)
            for i, n in zip(part.inputs, part.graph.inputs, strict=True)
            if all(a == layout.space.full for a in layout.input_reads.get(n, []))
            and readers[i] == 1
            for o in part.outputs
        ]
    return pairs


FUSED.set_attr("FInplaceOption", inplace_pairs)
