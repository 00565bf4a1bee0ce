"""apply_tiles: carries actions out on a loop nest that runs tile by tile, with vectors on a CPU.

The map of a nest names one axis along which vectors lie, and how many points of the other axes a
tile has. The lowering has six structures of loops (`passkit.schedule.tiling.Composition`); actions
that need another one are refused. GPUs without a schedule of the nest run the same tiles, with one
element in a vector.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import evolve, frozen

from passkit.analysis.tilemap import Split, SplitKind
from passkit.analysis.transposed_accesses import BLOCK, penultimate_vector_axis
from passkit.ast.stage import Place
from passkit.diagnostics import Diagnostic
from passkit.ir.loop import Bind, StorageScope
from passkit.schedule.actions import Action, Fuse, Recompute, SetScope, SplitAxis, Tile
from passkit.schedule.axis_builder import AxisBuilder, AxisState
from passkit.schedule.loop_nest import ONE_ROW, AxisRole, LoopNest
from passkit.schedule.nest import AxisPart
from passkit.schedule.roofline import roofline_seconds
from passkit.schedule.schedule import Schedule
from passkit.schedule.tiling import (
    Composition,
    fits_registers,
    has_short_rows,
    second_tiled_axis,
)
from passkit.target import Target
from passkit.values.size import Extent


@frozen
class TileShape:
    """The loops of a tile.

    Attributes:
        composition: their structure.
        split: the tile map of the domain.
        width: the points of a tile along the vector axis; None for the whole axis.
    """

    composition: Composition
    split: Split
    width: Extent | None


def apply_tiles(nest: LoopNest, target: Target, actions: Iterable[Action]) -> Schedule | Diagnostic:
    """Return the schedule that actions make of a nest, or the first reason why they are not legal.

    Args:
        nest: the loop nest.
        target: the machine that it is to run on.
        actions: the actions, carried out in order.
    """
    builder = TileBuilder(nest, target)
    for action in actions:
        problem = builder.do(action)
        if problem is not None:
            return problem
    return builder.schedule()


def tile_actions(nest: LoopNest, shape: TileShape, target: Target) -> list[Action]:
    """Return the actions that distribute a nest as ``shape`` says.

    Args:
        nest: the loop nest.
        shape: the loops of a tile.
        target: the machine, which has the elements of a vector.
    """
    composition, chunk = shape.composition, shape.split.chunk
    is_narrow = composition is Composition.NARROW
    vector = nest.axes[-2 if is_narrow else -1].name
    kept = [name for name in nest.axis_names(AxisRole.KEPT) if name != vector]
    actions: list[Action] = []
    if composition in (Composition.ROW, Composition.SHORT, Composition.THREAD) and kept:
        rows = kept[0]
        for name in kept[1:]:
            actions.append(Fuse(rows, name))
            rows = f"{rows}*{name}"
        actions.append(Tile(rows, chunk))
        if composition is Composition.SHORT:
            actions.append(SplitAxis(rows, target.lanes, Bind.VECTOR))
    else:
        width = chunk if shape.width is None else shape.width
        across = nest.info.domain.kept[shape.split.split_dim].var.name
        is_block = composition is Composition.BLOCK
        outer = [a for a in kept if not is_narrow or a != nest.axes[-1].name]
        steps = ((a, chunk if is_block and a == across else 1) for a in outer if a != ONE_ROW)
        actions += [Tile(axis, step) for axis, step in steps]
        actions.append(Tile(vector, width))
        if is_narrow:
            actions.append(SplitAxis(nest.axes[-1].name, None, Bind.UNROLL))
    return [*actions, SplitAxis(vector, target.lanes, Bind.VECTOR)]


class TileBuilder(AxisBuilder):
    """The schedule of a nest that runs tile by tile, while actions are carried out.

    Attributes:
        scopes: the scopes of staged values, by position in the body.
    """

    def __init__(self, nest: LoopNest, target: Target) -> None:
        super().__init__(nest, target)
        self.scopes: dict[int, StorageScope] = {}

    def do(self, action: Action) -> Diagnostic | None:
        """Carry an action out, or return why it is not legal."""
        match action:
            case Fuse():
                return self.fuse(action)
            case Tile():
                return self.tile(action)
            case SplitAxis():
                return self._split(action)
            case SetScope():
                return self._set_scope(action)
            case Recompute():
                return self.recompute(action)
        return Diagnostic("action.device", {"action": action, "target": self.target.name})

    def schedule(self) -> Schedule | Diagnostic:
        """Return the schedule, or why it is not legal."""
        shape = self._shape()
        if isinstance(shape, Diagnostic):
            return shape
        place = self._place(shape.composition)
        if isinstance(place, Diagnostic):
            return place
        stages, staged = self.nest.stage_plan(place, frozenset(self.recomputed))
        unread = self.scopes.keys() - {k.value for k in staged}
        if unread:
            return Diagnostic("storage.reader", {"value": self.nest.value_names[min(unread)]})
        in_scratch = {k for k, s in self.scopes.items() if s is StorageScope.SHARED}
        if in_scratch:
            staged = tuple(
                evolve(k, place=Place.SHARED, output=-1) if k.value in in_scratch else k
                for k in staged
            )
        info = self.nest.info
        return Schedule(
            shape.composition,
            info.domain.axes,
            shape.split,
            shape.width,
            stages,
            staged,
            seconds=roofline_seconds(info, self.target),
        )

    # Loops.

    def _split(self, action: SplitAxis) -> Diagnostic | None:
        """Bind a part of an axis to vectors, or to a loop."""
        axis = self.axis(action, action.axis)
        if isinstance(axis, Diagnostic):
            return axis
        if action.bind is Bind.GRID:
            return Diagnostic("bind.grid", {"action": action})
        if action.bind in (Bind.THREAD_X, Bind.THREAD_Y):
            return Diagnostic("action.device", {"action": action, "target": self.target.name})
        if any(p.bind is action.bind for p in axis.parts):
            return Diagnostic("bind.repeated", {"action": action, "bind": action.bind.value})
        if axis.is_closed:
            return Diagnostic("axis.closed", {"action": action, "axis": axis.name})
        if action.bind is Bind.VECTOR:
            if action.size != self.target.lanes:
                data = {"action": action, "target": self.target.name, "lanes": self.target.lanes}
                return Diagnostic("bind.lanes", data)
        elif action.size is not None:
            return Diagnostic("bind.whole", {"action": action})
        axis.is_closed = action.size is None
        axis.parts.append(AxisPart(action.bind, action.size))
        return None

    def _shape(self) -> TileShape | Diagnostic:
        """Return the loops of a tile, or why the lowering has no such loops."""
        vectors = [a for a in self.axes if _has(a, Bind.VECTOR)]
        if not vectors:
            return Diagnostic("bind.no_vector", {"axes": _names(self.axes)})
        *rows, inner = vectors
        if len(inner.axes) != 1:
            return Diagnostic("bind.fused_vector", {"axis": inner.name})
        unrolled = next((a for a in self.axes if _has(a, Bind.UNROLL)), None)
        others = [a for a in self.axes if a is not inner and a.role is not AxisRole.REDUCED]
        if unrolled is not None:
            return self._narrow(inner, unrolled, others, rows)
        if inner.axes[0] != len(self.nest.axes) - 1:
            return Diagnostic("bind.vector_axis", {"axis": inner.name})
        if inner.role is AxisRole.REDUCED:
            return self._rows(others, rows)
        if rows:
            return Diagnostic("bind.vectors", {"axes": _names(vectors)})
        if self.nest.is_reduced:
            return self._columns(inner, others)
        return self._points(inner, others)

    def _rows(
        self, others: Sequence[AxisState], vectors: Sequence[AxisState]
    ) -> TileShape | Diagnostic:
        """Return the loops of rows; ``vectors`` is the axis of rows if row values are vectors."""
        if len(others) != 1:
            return Diagnostic("axis.several", {"axes": _names(others)})
        (rows,) = others
        if rows.chunk is None:
            return Diagnostic("tile.missing", {"axis": rows.name})
        split = Split(self._last_kept, rows.chunk)
        if not vectors:
            return TileShape(Composition.ROW, split, None)
        domain = self.nest.info.domain
        if not has_short_rows(domain, self.target) or len(domain.kept) != 1:
            return Diagnostic("bind.row_values", {"axis": rows.name})
        if not isinstance(rows.chunk, int):
            return Diagnostic("tile.number", {"action": Tile(rows.name, rows.chunk)})
        return TileShape(Composition.SHORT, split, None)

    def _columns(self, inner: AxisState, others: Sequence[AxisState]) -> TileShape | Diagnostic:
        """Return the loops of columns."""
        problem = _has_one_step(others) or _has_known_width(inner)
        if problem is not None:
            return problem
        split = Split(self._last_kept, 1, SplitKind.COLUMN)
        return TileShape(Composition.COLUMN, split, inner.chunk)

    def _narrow(
        self,
        inner: AxisState,
        unrolled: AxisState,
        others: Sequence[AxisState],
        vectors: Sequence[AxisState],
    ) -> TileShape | Diagnostic:
        """Return the loops of points with the last axis inside of vectors."""
        domain = self.nest.info.domain
        last = len(domain.axes) - 1
        axis = penultimate_vector_axis(self.nest.info)
        are_last = inner.axes == (last - 1,) and unrolled.axes == (last,) and not vectors
        if not are_last or axis is None or self.target.lanes == 1:
            return Diagnostic("bind.unrolled", {"axis": unrolled.name})
        outer = [a for a in others if a is not unrolled]
        problem = _has_one_step(outer) or _has_known_width(inner)
        if problem is not None:
            return problem
        assert inner.chunk is not None
        return TileShape(Composition.NARROW, Split(last - 1, inner.chunk), inner.chunk)

    def _points(self, inner: AxisState, others: Sequence[AxisState]) -> TileShape | Diagnostic:
        """Return the loops of points: of consecutive ones, of rows, or of blocks of two axes."""
        if not others or inner.chunk is not None:
            problem = _has_known_width(inner)
            if problem is not None:
                return problem
        if not others:
            assert inner.chunk is not None
            return TileShape(Composition.THREAD, Split(self._last_kept, inner.chunk), inner.chunk)
        if inner.chunk is None:
            if len(others) != 1:
                return Diagnostic("axis.several", {"axes": _names(others)})
            (rows,) = others
            if rows.chunk is None:
                return Diagnostic("tile.missing", {"axis": rows.name})
            return TileShape(Composition.THREAD, Split(self._last_kept, rows.chunk), None)
        return self._block(inner, others)

    def _block(self, inner: AxisState, others: Sequence[AxisState]) -> TileShape | Diagnostic:
        """Return the loops of blocks of the vector axis and another one."""
        tiled = [a for a in others if a.chunk != 1] or [others[-1]]
        axis, *more = tiled
        if more:
            return Diagnostic("tile.one_step", {"axis": more[0].name})
        info, problem = self.nest.info, _has_known_width(axis)
        if problem is not None:
            return problem
        across = second_tiled_axis(info, self.target)
        number = None if across is None else info.domain.axes.index(across)
        if axis.axes != (number,) or penultimate_vector_axis(info) is not None:
            return Diagnostic("tile.block_axis", {"axis": axis.name, "vector_axis": inner.name})
        if isinstance(axis.extent, int) and axis.extent <= BLOCK and axis.chunk != axis.extent:
            data = {"axis": axis.name, "chunk": axis.chunk, "extent": axis.extent}
            return Diagnostic("tile.short_axis", data)
        assert axis.chunk is not None
        return TileShape(Composition.BLOCK, Split(axis.axes[0], axis.chunk), inner.chunk)

    @property
    def _last_kept(self) -> int:
        """The position of the last axis among those that are not reduced; 0 if all are reduced."""
        return max(0, len(self.nest.info.domain.kept) - 1)

    # Values.

    def _set_scope(self, action: SetScope) -> Diagnostic | None:
        """Set the scope of a value that a later stage reads."""
        position = self.value(action.value)
        if isinstance(position, Diagnostic):
            return position
        if action.scope is StorageScope.GLOBAL:
            return Diagnostic("storage.output", {"action": action})
        self.scopes[position] = action.scope
        return None

    def _place(self, composition: Composition) -> Place | Diagnostic | None:
        """Return the storage of all staged values; None for outputs where they fit, else scratch.

        Values are in registers together or not at all, as reading them costs nothing there.
        """
        in_registers = [k for k, s in self.scopes.items() if s is StorageScope.REGISTER]
        if not in_registers:
            return Place.SHARED if composition is Composition.SHORT else None
        name = self.nest.value_names[in_registers[0]]
        others = self.scopes.keys() - {*in_registers}
        if others:
            data = {"value": name, "other": self.nest.value_names[min(others)]}
            return Diagnostic("storage.mixed", data)
        if composition is not Composition.ROW or not fits_registers(self.nest.info, self.target):
            return Diagnostic("storage.registers", {"value": name})
        return Place.LANES


def _has(axis: AxisState, bind: Bind) -> bool:
    """Return whether a part of an axis has a bind."""
    return any(p.bind is bind for p in axis.parts)


def _names(axes: Iterable[AxisState]) -> str:
    """Return the names of axes as text."""
    return " ".join(a.name for a in axes)


def _has_one_step(axes: Iterable[AxisState]) -> Diagnostic | None:
    """Return a diagnostic of an axis of which a tile has more than one step, if there is one."""
    axis = next((a for a in axes if a.chunk != 1 and a.axes), None)
    return None if axis is None else Diagnostic("tile.one_step", {"axis": axis.name})


def _has_known_width(axis: AxisState) -> Diagnostic | None:
    """Return a diagnostic unless a tile has a number of steps of an axis."""
    if axis.chunk is None:
        return Diagnostic("tile.missing", {"axis": axis.name})
    if not isinstance(axis.chunk, int):
        return Diagnostic("tile.number", {"action": Tile(axis.name, axis.chunk)})
    return None
