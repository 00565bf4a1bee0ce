"""apply: carries actions out on a loop nest of a GPU, and says of the result whether it is legal.

The rules of legality are those of the lowering in `passkit.transforms` and of the device. Each has
a code in `passkit.diagnostics`, so that a test can ask for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from attrs import evolve

from passkit.diagnostics import Diagnostic
from passkit.errors import nearest
from passkit.ir.loop import Bind, LaunchShape, StorageScope
from passkit.schedule.actions import (
    Action,
    CacheRead,
    CacheRows,
    CacheTile,
    Fuse,
    LaunchBlocks,
    Recompute,
    SetScope,
    SplitAxis,
    Tile,
)
from passkit.schedule.axis_builder import AxisBuilder, AxisState
from passkit.schedule.legality import check_schedule
from passkit.schedule.limits import held_registers, resident_blocks
from passkit.schedule.loop_nest import AxisRole, LoopNest, groups_of
from passkit.schedule.nest import AxisGroup, AxisPart, BlockTile, NestSchedule, WarpTile
from passkit.target import Target
from passkit.values.size import at_least


def apply(nest: LoopNest, target: Target, actions: Iterable[Action]) -> NestSchedule | Diagnostic:
    """Return the schedule that actions make of a nest, or the first reason why they are not legal.

    Args:
        nest: the loop nest.
        target: the GPU that it is to run on.
        actions: the actions, carried out in order.
    """
    builder = ScheduleBuilder(nest, target)
    for action in actions:
        problem = builder.do(action)
        if problem is not None:
            return problem
    return builder.schedule()


def actions_of(nest: LoopNest, schedule: NestSchedule) -> tuple[Action, ...]:
    """Return actions of which `apply` makes the schedule."""
    actions: list[Action] = []
    for role, group in groups_of(schedule):
        actions += distribution(nest, role, group.parts)
    actions += [CacheRead(f"x{k}", StorageScope.REGISTER) for k in schedule.cached]
    actions += [Recompute(nest.value_names[k]) for k in schedule.recomputed]
    actions += [SetScope(nest.value_names[k], StorageScope.REGISTER) for k in schedule.staged]
    if schedule.tile is not None:
        actions.append(CacheRows(schedule.tile.vector, schedule.tile.pitch))
    if schedule.transpose is not None:
        block = schedule.transpose
        inputs = tuple((f"x{k}", nest.axes[axis].name) for k, axis in block.inputs)
        actions.append(CacheTile(inputs, block.sizes, block.lanes, block.pitch))
    return (*actions, LaunchBlocks(schedule.launch.blocks))


def distribution(nest: LoopNest, role: AxisRole, parts: Iterable[AxisPart]) -> tuple[Action, ...]:
    """Return the actions that count the axes of one role as one, and split it.

    Args:
        nest: the nest.
        role: the role of the axes. Those that are not reduced are tiled.
        parts: the parts, outer to inner. A GRID part is left out.
    """
    names = nest.axis_names(role)
    sized = [p for p in parts if p.bind is not Bind.GRID]
    actions: list[Action] = []
    name = names[0]
    for other in names[1:]:
        actions.append(Fuse(name, other))
        name = f"{name}*{other}"
    if role is not AxisRole.REDUCED:
        actions.append(Tile(name, prod(p.size or 1 for p in sized)))
    return (*actions, *(SplitAxis(name, p.size, p.bind) for p in reversed(sized)))


class ScheduleBuilder(AxisBuilder):
    """The schedule of a nest on a GPU, while actions are carried out.

    Args:
        nest: the loop nest.
        target: the GPU that it is to run on.
    """

    def __init__(self, nest: LoopNest, target: Target) -> None:
        super().__init__(nest, target)
        self.cached: set[int] = set()
        self.staged: set[int] = set()
        self.rows: CacheRows | None = None
        self.transpose: BlockTile | None = None
        self.blocks: int | None = None

    def do(self, action: Action) -> Diagnostic | None:
        """Carry an action out, or return why it is not legal."""
        match action:
            case Fuse():
                return self.fuse(action)
            case Tile(_, chunk) if not isinstance(chunk, int):
                return Diagnostic("tile.number", {"action": action})
            case Tile():
                return self.tile(action)
            case SplitAxis():
                return self._split(action)
            case CacheRead():
                return self._cache_read(action)
            case SetScope():
                return self._set_scope(action)
            case Recompute():
                return self.recompute(action)
            case CacheRows():
                self.rows = action
            case CacheTile():
                return self._cache_tile(action)
            case LaunchBlocks(count):
                self.blocks = count
        return None

    def schedule(self) -> NestSchedule | Diagnostic:
        """Return the schedule, or why it is not legal."""
        groups: list[AxisGroup | None] = []
        for role in AxisRole:
            group = self._group([a for a in self.axes if a.role is role])
            if isinstance(group, Diagnostic):
                return group
            groups.append(group)
        kept, reduced, columns = groups
        assert kept is not None
        _, staged_values = self.nest.stage_plan(None, frozenset(self.recomputed))
        staged = tuple(k.value for k in staged_values)
        missing = [k for k in staged if k not in self.staged]
        if missing:
            return Diagnostic("storage.missing", {"value": self.nest.value_names[missing[0]]})
        unread = sorted(self.staged.difference(staged))  # a later action recomputes it
        if unread:
            return Diagnostic("storage.reader", {"value": self.nest.value_names[unread[0]]})
        y, x = (
            prod(g.size_of(bind) for g in groups if g is not None)
            for bind in (Bind.THREAD_Y, Bind.THREAD_X)
        )
        tile = None
        if self.rows is not None:
            elements = (reduced or kept).per_thread
            tile = WarpTile(self.rows.vector, elements, self.rows.pitch)
        schedule = NestSchedule(
            kept,
            reduced,
            tuple(sorted(self.cached)),
            staged,
            LaunchShape(y, x, self.blocks or 1),
            tile,
            columns,
            self.transpose,
            tuple(sorted(self.recomputed)),
        )
        if self.blocks is None:
            held = held_registers(schedule, self.nest)
            limits = self.target.limits
            needed = self.nest.registers(self.target.rules) + held
            blocks = resident_blocks(y * x, min(limits.thread_registers, needed), limits)
            schedule = evolve(schedule, launch=LaunchShape(y, x, blocks))
        return check_schedule(schedule, self.nest, self.target) or schedule

    # Axes.

    def _split(self, action: SplitAxis) -> Diagnostic | None:
        """Add a part to an axis."""
        axis = self.axis(action, action.axis)
        if isinstance(axis, Diagnostic):
            return axis
        if action.bind is Bind.GRID:
            return Diagnostic("bind.grid", {"action": action})
        if axis.is_closed:
            return Diagnostic("axis.closed", {"action": action, "axis": axis.name})
        if axis.role is not AxisRole.REDUCED and axis.chunk is None:
            return Diagnostic("tile.missing", {"axis": axis.name})
        if action.bind is Bind.VECTOR and axis.parts:
            return Diagnostic("bind.vector_inside", {"action": action})
        size = action.size
        if action.bind is Bind.SERIAL:
            if size is not None or axis.role is not AxisRole.REDUCED:
                return Diagnostic("bind.serial", {"action": action})
            axis.is_closed = True
            axis.parts.append(AxisPart(Bind.SERIAL, None))
            return None
        if size is None:
            axis.is_closed = True
            whole = axis.extent if axis.chunk is None else axis.chunk
            if not isinstance(whole, int):
                return Diagnostic("axis.unknown_rest", {"action": action, "extent": whole})
            size = -(-whole // axis.count)
        if size < 1:
            return Diagnostic("axis.size", {"action": action, "size": size})
        if size > 1 and any(p.bind is action.bind for p in axis.parts):
            return Diagnostic("bind.repeated", {"action": action, "bind": action.bind.value})
        if size > 1:
            axis.parts.append(AxisPart(action.bind, size))
        return None

    def _group(self, axes: list[AxisState]) -> AxisGroup | Diagnostic | None:
        """Return the map of the axes of one kind, None if there is none."""
        if not axes:
            return None
        if len(axes) > 1:
            return Diagnostic("axis.several", {"axes": " ".join(a.name for a in axes)})
        (axis,) = axes
        parts = tuple(reversed(axis.parts))
        if axis.role is AxisRole.REDUCED:
            has_steps = bool(parts) and parts[0].bind is Bind.SERIAL
            if not has_steps and not at_least(axis.count, axis.extent):
                data = {"axis": axis.name, "count": axis.count, "extent": axis.extent}
                return Diagnostic("axis.uncovered", data)
            return AxisGroup(axis.axes, parts)
        if axis.chunk is None and axis.axes:
            return Diagnostic("tile.missing", {"axis": axis.name})
        if axis.chunk is not None and axis.count != axis.chunk:
            data = {"axis": axis.name, "chunk": axis.chunk, "count": axis.count}
            return Diagnostic("tile.chunk", data)
        if axis.role is AxisRole.COLUMN:
            return AxisGroup(axis.axes, parts)
        return AxisGroup(axis.axes, (AxisPart(Bind.GRID, None), *parts))

    # Values.

    def _cache_read(self, action: CacheRead) -> Diagnostic | None:
        """Add an input to those that are loaded first."""
        names = self.nest.inputs
        if action.input not in names:
            hint = nearest(action.input, names)
            return Diagnostic("storage.input", {"input": action.input, "hint": hint})
        if action.scope is not StorageScope.REGISTER:
            return Diagnostic("storage.scope", {"action": action, "scope": action.scope.value})
        position = names.index(action.input)
        if position not in self.nest.traffic.streams:
            return Diagnostic("storage.point", {"input": action.input})
        self.cached.add(position)
        return None

    def _cache_tile(self, action: CacheTile) -> Diagnostic | None:
        """Set the tile in which inputs are loaded along their own axes."""
        inputs = []
        axes = {a.name: k for k, a in enumerate(self.nest.axes)}
        for name, axis in action.inputs:
            if name not in self.nest.inputs:
                hint = nearest(name, self.nest.inputs)
                return Diagnostic("storage.input", {"input": name, "hint": hint})
            position = self.nest.inputs.index(name)
            reads = {r.axis for r in self.nest.traffic.transposed if r.input == position}
            if axes.get(axis) not in reads:
                names = ", ".join(self.nest.axes[k].name for k in sorted(reads)) or "none"
                return Diagnostic("tile.along", {"input": name, "axis": axis, "axes": names})
            inputs.append((position, axes[axis]))
        self.transpose = BlockTile(action.sizes, tuple(inputs), action.lanes, action.pitch)
        return None

    def _set_scope(self, action: SetScope) -> Diagnostic | None:
        """Add a value to those that stay in registers."""
        position = self.value(action.value)
        if isinstance(position, Diagnostic):
            return position
        if action.scope is not StorageScope.REGISTER:
            return Diagnostic("storage.scope", {"action": action, "scope": action.scope.value})
        _, staged = self.nest.stage_plan(None, frozenset(self.recomputed))
        if position not in {k.value for k in staged}:
            return Diagnostic("storage.reader", {"value": action.value})
        self.staged.add(position)
        return None
