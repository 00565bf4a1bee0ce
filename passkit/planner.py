"""The planner: how a group runs on a target, or why it cannot be one kernel."""

from __future__ import annotations

from functools import lru_cache

from passkit.group import FUSED, Group
from passkit.layout import lay_out
from passkit.node import Node
from passkit.schedule import Schedule, estimate, levels_of, stages_of
from passkit.space import Infeasible
from passkit.stitching.plan import is_stitched, plan_stitched
from passkit.target import Target
from passkit.tiling import row_place, tiling


def plan_group(group: Group, target: Target) -> Schedule | Infeasible:
    """The schedule of a group on a target, or why it has none. Pure, and memoised by group key."""
    return _plan(group.key, _Held(group), target)


class _Held:
    """A group that does not take part in the memo's key: its digest does."""

    def __init__(self, group: Group) -> None:
        self.group = group

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=4096)
def _plan(key: str, held: _Held, target: Target) -> Schedule | Infeasible:
    group = held.group
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


def inplace_pairs(node: Node) -> list[tuple[int, int]]:
    """Which results of a fused node may overwrite which inputs: FInplaceOption.

    One pass over the points, every read of the input at the point that is written.
    """
    group: Group = node.params["body"]
    return _pairs(group.key, _Held(group))


@lru_cache(maxsize=4096)
def _pairs(key: str, held: _Held) -> list[tuple[int, int]]:
    graph = held.group.graph
    layout = Infeasible("stitched", "") if is_stitched(graph) else lay_out(graph)
    if isinstance(layout, Infeasible) or layout.space.reduced:
        return []
    inputs = [
        i
        for i, n in enumerate(graph.inputs)
        if all(a == layout.space.full for a in layout.input_reads.get(n, []))
    ]
    return [(i, o) for i in inputs for o in range(len(graph.outputs))]


FUSED.set_attr("FInplaceOption", inplace_pairs)
