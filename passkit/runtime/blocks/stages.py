"""Stages: all turns of their loops at once, statement by statement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from attrs import evolve

from passkit.ast import Expr
from passkit.ast.stage import Fold, Let, Level, Running, Stage, Store
from passkit.ast.walk import variables
from passkit.runtime.blocks.memory import Memory
from passkit.runtime.blocks.threads import Clock, Crew, Threads
from passkit.runtime.evaluate import Evaluation
from passkit.runtime.folding import fold_array, scan_array

Array = Any
Values = dict[str, Array]


class Work(Evaluation):
    """Expressions of a crew, whose loads are checked."""

    def __init__(self, values: Mapping[str, Array], memory: Mapping[str, Memory], crew: Crew):
        super().__init__(values, {}, {})
        self.memory, self.crew = memory, crew

    def load(self, buffer: str, active: Array) -> Callable[[Array], Array]:
        """A function that fetches elements for the threads that are active."""
        memory = self.memory[buffer]

        def fetch(index: Array) -> Array:
            index = np.asarray(index)
            if not memory.ground.watched and active is None:
                return memory.load(index.ravel(), self.crew.anyone).reshape(index.shape)
            shape = np.broadcast_shapes(index.shape, self.crew.shape)
            who, chosen = self.crew.who(active, shape)
            flat = np.broadcast_to(index, shape).ravel()
            if chosen is None:
                return memory.load(flat, who).reshape(shape)
            found = np.zeros(flat.size, memory.data.dtype)
            found[chosen] = memory.load(flat[chosen], who)
            return found.reshape(shape)

        return fetch


class StageRun:
    """One run of a stage in a tile, for some rows of its part.

    ``outer`` are the variables around it, row values with an element for each row.
    """

    def __init__(
        self, stage: Stage, rows: Array, outer: Values, memory: Mapping[str, Memory], clock: Clock
    ) -> None:
        self.stage, self.memory = stage, memory
        self.threads = Threads(rows, len(stage.loops), clock)
        self.values: Values = {k: spread(v, len(stage.loops)) for k, v in outer.items()}
        self.serial: tuple[int, ...] = ()
        self.results: Values = {}

    def run(self) -> Values:
        """Run it; what later stages of the row see of it."""
        stage, threads = self.stage, self.threads
        around = [x for x in stage.loops if x.level is Level.WARP]
        inside = [x for x in stage.loops if x.level is not Level.WARP]
        inner = tuple(range(len(around) + 1, len(stage.loops) + 1))
        for loop in around:
            self._add(loop)
        seen = dict(self.values)
        for loop in inside:
            self._add(loop)
        self._before(seen, inner)
        self.serial = threads.numbers(Level.THREAD)
        crew = threads.crew()
        for s in stage.body:
            match s:
                case Let(var, value):
                    self.values[var.name] = self._value(value, crew)
                case Store():
                    self._store(s, crew)
                case Fold():
                    self._fold(s, crew)
                case Running():
                    self._scan(s, crew)
        self.values.update(self.results)
        for s in stage.after:
            joined = not self.results.keys().isdisjoint(v.name for v in variables(s.value))
            self._store(s, evolve(threads.crew(2, inner), joined=joined))
        if not stage.loops:
            return {s.var.name: self.values[s.var.name] for s in stage.body if isinstance(s, Let)}
        rows = len(threads.rows)
        return {} if around else {k: v.reshape(rows) for k, v in self.results.items()}

    def _before(self, seen: Values, inner: tuple[int, ...]) -> None:
        """What stands in front of the lanes, which sees no loop inside."""
        if not self.stage.before:
            return
        crew = self.threads.crew(0, inner)
        lanes = self.threads.numbers(Level.CTA)
        if all(self.threads.shape[k] == 1 for k in lanes) and lanes:
            crew = crew.first_lane  # what other threads load, they do not use
        for let in self.stage.before:
            seen[let.var.name] = Work(seen, self.memory, crew).run(let.value, crew.active)
            self.values[let.var.name] = seen[let.var.name]

    def _add(self, loop: Any) -> None:
        self.threads.add(loop, self.values)
        self.values.update(self.threads.values)

    def _value(self, x: Expr, crew: Crew) -> Array:
        return Work(self.values, self.memory, crew).run(x, crew.active)

    def _store(self, s: Store, crew: Crew) -> None:
        index, value = self._value(s.index, crew), self._value(s.value, crew)
        self._put(s.buffer, index, value, crew)

    def _put(self, buffer: str, index: Array, value: Array, crew: Crew) -> None:
        who, chosen = crew.storing.who(None, crew.shape)
        at, values = (np.broadcast_to(x, crew.shape).ravel() for x in (index, value))
        if chosen is not None:
            at, values = at[chosen], values[chosen]
        self.memory[buffer].store(at, values, who)

    # What goes from turn to turn.

    def _steps(self, s: Fold | Running, crew: Crew) -> Array:
        """What is folded: the identity where there is no thread."""
        value = np.broadcast_to(self._value(s.value, crew), crew.shape)
        return value if crew.active is None else np.where(crew.active, value, s.identity.value)

    def _fold(self, f: Fold, crew: Crew) -> None:
        value = self._steps(f, crew)
        if f.buffer is not None:
            assert f.index is not None
            total = fold_array(f.combine, f.identity, value, self.serial, True)
            lanes = self.threads.crew(1, self.serial)
            self._put(f.buffer, self._value(f.index, lanes), total, lanes)
            return
        axes = tuple(sorted((*self.serial, *self.threads.numbers(Level.CTA))))
        self.results[f.var.name] = fold_array(f.combine, f.identity, value, axes, True)

    def _scan(self, s: Running, crew: Crew) -> None:
        value = self._steps(s, crew)
        along = self.serial if s.buffer else (*self.serial, *self.threads.numbers(Level.CTA))
        axes = tuple(sorted(along))
        rest = [k for k in range(value.ndim) if k not in axes]
        turned = np.transpose(value, (*axes, *rest))
        count = int(np.prod([value.shape[k] for k in axes], dtype=np.int64))
        flat = turned.reshape(count, *turned.shape[len(axes) :])
        total = scan_array(s.combine, s.identity, flat, s.exclusive).reshape(turned.shape)
        back = np.argsort((*axes, *rest))
        self.values[s.var.name] = np.transpose(total, back)
        if s.buffer is not None:
            assert s.index is not None
            lanes = self.threads.crew(1, self.serial)
            whole = fold_array(s.combine, s.identity, value, axes, True)
            self._put(s.buffer, self._value(s.index, lanes), whole, lanes)


def spread(value: Array, rank: int) -> Array:
    """A row value with an axis for each of so many loops."""
    value = np.asarray(value)
    return value.reshape(*value.shape, *[1] * rank) if value.ndim else value
