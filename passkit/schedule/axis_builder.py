"""The part that builders of schedules share: axes that are fused and tiled, and values.

A builder carries actions out on one loop nest, for a CPU or a GPU.
"""

from __future__ import annotations

from math import prod

from attrs import field, mutable

from passkit.analysis.domain import ValueKind
from passkit.diagnostics import Diagnostic
from passkit.errors import nearest
from passkit.graph.attribute_calls import reduce_of
from passkit.schedule.actions import Action, Fuse, Recompute, Tile
from passkit.schedule.loop_nest import ONE_ROW, AxisRole, LoopNest
from passkit.schedule.nest import AxisPart
from passkit.target import Target
from passkit.values.size import Extent, numel


@mutable(eq=False)
class AxisState:
    """An axis, or several that are counted as one, while actions are carried out.

    Attributes:
        name: the names of the axes, joined by ``*``.
        axes: their numbers in the nest.
        extent: the number of points.
        role: what the axes are.
        chunk: the points of a tile; None before `Tile`. Its number is unknown only for tiles of
            whole rows on a CPU.
        parts: the parts so far, inner to outer.
        is_closed: whether a part took what is left.
    """

    name: str
    axes: tuple[int, ...]
    extent: Extent
    role: AxisRole
    chunk: Extent | None = None
    parts: list[AxisPart] = field(factory=list)
    is_closed: bool = False

    @property
    def count(self) -> int:
        """Return the points that all parts have together."""
        return prod(p.size or 1 for p in self.parts)


class AxisBuilder:
    """The axes of a nest, to which actions are applied one after the other.

    Args:
        nest: the loop nest.
        target: the machine that it is to run on.

    Attributes:
        recomputed: the positions of values that are computed again where they are read.
    """

    def __init__(self, nest: LoopNest, target: Target) -> None:
        self.nest, self.target = nest, target
        self.recomputed: set[int] = set()
        self.axes = [AxisState(a.name, (k,), a.length, a.role) for k, a in enumerate(nest.axes)]
        if nest.axis_names(AxisRole.KEPT) == (ONE_ROW,):
            self.axes.insert(0, AxisState(ONE_ROW, (), 1, AxisRole.KEPT))

    def axis(self, action: Action, name: str) -> AxisState | Diagnostic:
        """Return the axis of a name."""
        for axis in self.axes:
            if axis.name == name:
                return axis
        hint = nearest(name, [a.name for a in self.axes])
        return Diagnostic("axis.unknown", {"action": action, "axis": name, "hint": hint})

    def fuse(self, action: Fuse) -> Diagnostic | None:
        """Replace two axes by one."""
        outer, inner = self.axis(action, action.outer), self.axis(action, action.inner)
        if isinstance(outer, Diagnostic):
            return outer
        if isinstance(inner, Diagnostic):
            return inner
        alike = [a for a in self.axes if a.role is outer.role]
        at = alike.index(outer)
        if inner not in alike or alike[at + 1 : at + 2] != [inner]:
            names = " ".join(a.name for a in alike)
            return Diagnostic(
                "axis.not_adjacent",
                {"outer": outer.name, "inner": inner.name, "axes": names},
            )
        for axis in (outer, inner):
            if axis.parts or axis.chunk is not None:
                return Diagnostic("axis.distributed", {"action": action, "axis": axis.name})
        fused = AxisState(
            f"{outer.name}*{inner.name}",
            (*outer.axes, *inner.axes),
            numel((outer.extent, inner.extent)),
            outer.role,
        )
        self.axes[self.axes.index(outer)] = fused
        self.axes.remove(inner)
        return None

    def tile(self, action: Tile) -> Diagnostic | None:
        """Set the chunk of an axis."""
        axis = self.axis(action, action.axis)
        if isinstance(axis, Diagnostic):
            return axis
        if axis.role is AxisRole.REDUCED:
            return Diagnostic("tile.reduced", {"axis": axis.name})
        if isinstance(action.chunk, int) and action.chunk < 1:
            return Diagnostic("axis.size", {"action": action, "size": action.chunk})
        if axis.parts or axis.chunk is not None:
            return Diagnostic("axis.distributed", {"action": action, "axis": axis.name})
        axis.chunk = action.chunk
        return None

    def value(self, name: str) -> int | Diagnostic:
        """Return the position of a value in the body."""
        position = self.nest.values.get(name)
        if position is None:
            hint = nearest(name, self.nest.values)
            return Diagnostic("storage.value", {"value": name, "hint": hint})
        return position

    def recompute(self, action: Recompute) -> Diagnostic | None:
        """Add a value to those that are computed again where they are read."""
        position = self.value(action.value)
        if isinstance(position, Diagnostic):
            return position
        node = self.nest.graph.nodes[position]
        is_point = ValueKind.POINT in self.nest.info.kinds.get(node, ValueKind.INLINE)
        if not is_point or reduce_of(node) is not None:
            return Diagnostic("recompute.value", {"value": action.value})
        self.recomputed.add(position)
        return None
