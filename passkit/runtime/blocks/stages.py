"""Stages: all iterations of their loops at once, statement by statement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from attrs import evolve

from passkit.ast import Expr
from passkit.ast.stage import Fold, Let, Level, Loop, Running, Stage, Store
from passkit.ast.walk import variables
from passkit.runtime.blocks.memory import CheckedBuffer
from passkit.runtime.blocks.threads import StageContext, StageThreads, ThreadGroup
from passkit.runtime.evaluate import ExpressionEvaluator
from passkit.runtime.reductions import reduce_array, scan_array

Array = Any
VariableArrays = dict[str, Array]
"""The values of variables by name."""


class CheckedEvaluator(ExpressionEvaluator):
    """Evaluates expressions for a group of threads; their loads are checked.

    Args:
        values: the arrays of variables, by name.
        buffers: the buffers that can be loaded from, by name.
        group: the threads.
    """

    def __init__(
        self,
        values: Mapping[str, Array],
        buffers: Mapping[str, CheckedBuffer],
        group: ThreadGroup,
    ) -> None:
        super().__init__(values, {}, {})
        self.checked_buffers, self.group = buffers, group

    def load(self, buffer: str, active: Array) -> Callable[[Array], Array]:
        """Return a function that loads the elements of a buffer at an array of indices.

        Elements where the mask ``active`` is false are 0; None takes the mask of the group. The
        function raises a BlocksError for an access out of bounds, a race, or an element that
        nothing stored.
        """
        checked_buffer = self.checked_buffers[buffer]

        def gather(index: Array) -> Array:
            """Return the elements at the indices, broadcast to the group's shape where needed.

            Raises: BlocksError for a wrong access.
            """
            index = np.asarray(index)
            if not checked_buffer.region.tracked and active is None:
                elements = checked_buffer.load(index.ravel(), self.group.any_thread)
                return elements.reshape(index.shape)
            shape = np.broadcast_shapes(index.shape, self.group.shape)
            origin, mask = self.group.origin(active, shape)
            flat_index = np.broadcast_to(index, shape).ravel()
            if mask is None:
                return checked_buffer.load(flat_index, origin).reshape(shape)
            elements = np.zeros(flat_index.size, checked_buffer.data.dtype)
            elements[mask] = checked_buffer.load(flat_index[mask], origin)
            return elements.reshape(shape)

        return gather


class StageRun:
    """One run of a stage in a tile, for some rows of its part.

    Args:
        stage: the stage.
        rows: the numbers of the rows.
        outer: the variables around it; row variables have an element for each row.
        buffers: all buffers of the kernel by name.
        context: when the stage runs.
    """

    def __init__(
        self,
        stage: Stage,
        rows: Array,
        outer: VariableArrays,
        buffers: Mapping[str, CheckedBuffer],
        context: StageContext,
    ) -> None:
        self.stage, self.buffers = stage, buffers
        self.threads = StageThreads(rows, len(stage.loops), context)
        self.values: VariableArrays = {
            k: with_loop_axes(v, len(stage.loops)) for k, v in outer.items()
        }
        self.serial_axes: tuple[int, ...] = ()
        self.results: VariableArrays = {}

    def run(self) -> VariableArrays:
        """Run the stage; return the variables that later stages of the row can read, by name.

        They are the lets of a stage without loops, else the results of reductions without a buffer,
        one for each row; none where the stage has WARP loops.

        Raises: BlocksError for a wrong access.
        """
        stage, threads = self.stage, self.threads
        warp_loops = [x for x in stage.loops if x.level is Level.WARP]
        inner_loops = [x for x in stage.loops if x.level is not Level.WARP]
        inner_axes = tuple(range(len(warp_loops) + 1, len(stage.loops) + 1))
        for loop in warp_loops:
            self._add(loop)
        outside_values = dict(self.values)
        for loop in inner_loops:
            self._add(loop)
        self._run_before(outside_values, inner_axes)
        self.serial_axes = threads.axes_of(Level.THREAD)
        group = threads.group()
        for statement in stage.body:
            match statement:
                case Let(var, value):
                    self.values[var.name] = self._evaluate(value, group)
                case Store():
                    self._store(statement, group)
                case Fold():
                    self._reduce(statement, group)
                case Running():
                    self._scan(statement, group)
        self.values.update(self.results)
        for store in stage.after:
            read_names = {v.name for v in variables(store.value)}
            stores_result = not self.results.keys().isdisjoint(read_names)
            after_group = threads.group(2, inner_axes)
            self._store(store, evolve(after_group, after_reduction=stores_result))
        if not stage.loops:
            return {s.var.name: self.values[s.var.name] for s in stage.body if isinstance(s, Let)}
        rows = len(threads.rows)
        return {} if warp_loops else {k: v.reshape(rows) for k, v in self.results.items()}

    def _run_before(self, outside_values: VariableArrays, inner_axes: tuple[int, ...]) -> None:
        """Run the statements before the thread loop, which read no loop variable of the inside.

        Raises: BlocksError for a wrong load.

        Args:
            outside_values: the variables that have a value there; those of the statements are
                added.
            inner_axes: the axes of the loops inside.
        """
        if not self.stage.before:
            return
        group = self.threads.group(0, inner_axes)
        thread_axes = self.threads.axes_of(Level.CTA)
        if all(self.threads.shape[k] == 1 for k in thread_axes) and thread_axes:
            group = group.first_lane  # other threads would not use what they load
        for let in self.stage.before:
            evaluator = CheckedEvaluator(outside_values, self.buffers, group)
            outside_values[let.var.name] = evaluator.run(let.value, group.active)
            self.values[let.var.name] = outside_values[let.var.name]

    def _add(self, loop: Loop) -> None:
        """Add the axis of a loop, and its variable to the values."""
        self.threads.add(loop, self.values)
        self.values.update(self.threads.values)

    def _evaluate(self, x: Expr, group: ThreadGroup) -> Array:
        """Return the value of an expression for a group of threads; its loads are checked.

        Raises: BlocksError for a wrong load.
        """
        return CheckedEvaluator(self.values, self.buffers, group).run(x, group.active)

    def _store(self, store: Store, group: ThreadGroup) -> None:
        """Run a store for a group of threads. Raises: BlocksError for a wrong access."""
        index, value = self._evaluate(store.index, group), self._evaluate(store.value, group)
        self._put(store.buffer, index, value, group)

    def _put(self, buffer: str, index: Array, value: Array, group: ThreadGroup) -> None:
        """Store ``value`` in ``buffer`` at ``index``, for a group of threads.

        Index and value broadcast to the shape of the group.

        Raises: BlocksError for an access out of bounds or a race.
        """
        origin, mask = group.storing.origin(None, group.shape)
        index, value = (np.broadcast_to(x, group.shape).ravel() for x in (index, value))
        if mask is not None:
            index, value = index[mask], value[mask]
        self.buffers[buffer].store(index, value, origin)

    # Values that are carried from one iteration to the next.

    def _carried(self, statement: Fold | Running, group: ThreadGroup) -> Array:
        """Return the values that a reduction or scan combines, in the shape of the group.

        ``statement`` is the reduction or scan. Where a thread is not active, the value is its
        identity element. Raises: BlocksError for a wrong load.
        """
        value = np.broadcast_to(self._evaluate(statement.value, group), group.shape)
        if group.active is None:
            return value
        return np.where(group.active, value, statement.identity.value)

    def _reduce(self, f: Fold, group: ThreadGroup) -> None:
        """Run the reduction ``f`` for a group of threads.

        With a buffer, it combines the serial iterations of each thread and stores the totals; else
        it combines the threads of a row, too, into a variable of ``results``. Raises: BlocksError
        for a wrong access.
        """
        value = self._carried(f, group)
        if f.buffer is not None:
            assert f.index is not None
            total = reduce_array(f.combine, f.identity, value, self.serial_axes, True)
            lanes = self.threads.group(1, self.serial_axes)
            self._put(f.buffer, self._evaluate(f.index, lanes), total, lanes)
            return
        axes = tuple(sorted((*self.serial_axes, *self.threads.axes_of(Level.CTA))))
        self.results[f.var.name] = reduce_array(f.combine, f.identity, value, axes, True)

    def _scan(self, s: Running, group: ThreadGroup) -> None:
        """Run the scan ``s`` for a group of threads; its running results become a variable.

        Without a buffer it scans the serial iterations and threads of a row; with one it scans the
        iterations of each thread, and stores the thread's total in the buffer. Raises: BlocksError
        for a wrong access.
        """
        value = self._carried(s, group)
        thread_axes = () if s.buffer else self.threads.axes_of(Level.CTA)
        axes = tuple(sorted((*self.serial_axes, *thread_axes)))
        rest = [k for k in range(value.ndim) if k not in axes]
        scanned_first = np.transpose(value, (*axes, *rest))
        count = int(np.prod([value.shape[k] for k in axes], dtype=np.int64))
        flat = scanned_first.reshape(count, *scanned_first.shape[len(axes) :])
        total = scan_array(s.combine, s.identity, flat, s.exclusive).reshape(scanned_first.shape)
        self.values[s.var.name] = np.transpose(total, np.argsort((*axes, *rest)))
        if s.buffer is not None:
            assert s.index is not None
            lanes = self.threads.group(1, self.serial_axes)
            totals = reduce_array(s.combine, s.identity, value, axes, True)
            self._put(s.buffer, self._evaluate(s.index, lanes), totals, lanes)


def with_loop_axes(value: Array, rank: int) -> Array:
    """Return a row variable, ``value``, with ``rank`` more axes of length 1; a scalar as it is."""
    value = np.asarray(value)
    return value.reshape(*value.shape, *[1] * rank) if value.ndim else value
