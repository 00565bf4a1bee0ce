"""The accesses of a kernel AST to memory that threads share, for the race check.

The element of an access is a linear form of the iterations of loops. Iteration k of a loop over
threads or rows belongs to the same thread or row in every stage, so that equal forms in equal loops
mean equal threads.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import permutations, product

from attrs import frozen

from passkit.ast import Expr
from passkit.ast.stage import Phase
from passkit.checks import stage_walk
from passkit.checks.linear_forms import (
    CONSTANT,
    CompoundSymbol,
    FormScope,
    LinearForm,
    Symbol,
    TripCount,
    digits,
    mentions,
)
from passkit.checks.stage_walk import Executor, StageWalk
from passkit.values.size import Extent, at_least

THREAD, ROW = stage_walk.THREAD.name, stage_walk.ROW.name
"""The names of the iterations of loops over threads and over rows."""


@frozen(eq=False)
class StageAccess:
    """An access to an element of a buffer, by all threads and in all iterations.

    Attributes:
        buffer: the name of the buffer.
        is_store: whether it is a store.
        stage: the name of the stage.
        part: the number of the part.
        order: the position of the stage among the parts and stages of the phase.
        form: the element; None if it is unknown.
        trip_counts: the loops around the access.
        executor: the threads that execute it.
        in_rows: whether it belongs to one row of the tile.
        is_reversed: whether the loop over threads runs from the last iteration to the first.
        follows_reduction: whether it stores the result of a reduction across the threads of the
            row: all of them have then executed their loads in the stage.
    """

    buffer: str
    is_store: bool
    stage: str
    part: int
    order: int
    form: LinearForm | None
    trip_counts: Mapping[str, TripCount]
    executor: Executor
    in_rows: bool
    is_reversed: bool
    follows_reduction: bool

    @property
    def is_per_thread(self) -> bool:
        """Whether each iteration of a loop over threads is one thread's."""
        return self.executor is Executor.EACH

    @property
    def has_known_threads(self) -> bool:
        """Whether it is known which threads execute the access."""
        return self.executor is not Executor.UNKNOWN

    def depends_on(self, name: str) -> bool:
        """Return whether the element depends on an iteration or another variable."""
        return self.form is None or any(mentions(s, name) for s in self.form)

    def is_injective(self, *iterations: str, fixed: Container[str] = ()) -> bool:
        """Return whether no element is accessed in two different ``iterations`` of any loop.

        Args:
            iterations: the names of the iterations that have to differ.
            fixed: the names of iterations that are compared at equal values only.
        """
        if self.form is None:
            return False
        loops = [s for s in self.trip_counts if s not in fixed]
        compounds = [s for s in self.form if isinstance(s, CompoundSymbol)]
        bounds_of: dict[Symbol, tuple[Extent | None, ...]] = {}
        for loop in loops:
            if loop in self.form:
                bounds_of[loop] = self.trip_counts[loop].bounds or (None,)
            elif any(mentions(s, loop) for s in compounds):
                bounds_of |= digits(self.form, loop, self.trip_counts[loop].bounds)
            elif loop in iterations and not self.runs_once(loop):
                return False
        if any(mentions(s, loop) for s in compounds if s not in bounds_of for loop in loops):
            return False
        if len(bounds_of) < 2:
            return True
        steps = [(_magnitude(self.form[s]), n) for s, n in bounds_of.items()]
        return any(map(_is_superincreasing, _orders(steps)))

    def runs_once(self, loop: str) -> bool:
        """Return whether a loop has one iteration, or is not around the access."""
        return loop not in self.trip_counts or 1 in self.trip_counts[loop].bounds

    def range(self, except_for: str = CONSTANT) -> tuple[LinearForm, Extent, Extent] | None:
        """Return the range of elements over the iterations of all loops but one.

        Returns: the terms that do not depend on loops, and the lowest and highest offset from them;
        None if the range is unknown.
        """
        if self.form is None:
            return None
        low = high = self.form.get(CONSTANT, 0)
        base: dict[Symbol, Extent] = {}
        for symbol, step in self.form.items():
            if symbol in (except_for, CONSTANT):
                continue
            if symbol not in self.trip_counts:
                if any(mentions(symbol, loop) for loop in self.trip_counts):
                    return None
                base[symbol] = step
            elif not (bounds := self.trip_counts[str(symbol)].bounds):
                return None
            elif at_least(step, 0):
                high = high + step * (_tightest(bounds) - 1)
            else:
                low = low + step * (_tightest(bounds) - 1)
        return base, low, high

    def row_pitch(self) -> tuple[Extent, LinearForm] | None:
        """Return the distance of rows and where they begin, if no two rows share an element."""
        if not self.in_rows or self.form is None:
            return None
        if self.runs_once(ROW):
            return 0, {}
        within, pitch = self.range(except_for=ROW), self.form.get(ROW, 0)
        if within is None or not at_least(within[1], 0) or not at_least(pitch, within[2] + 1):
            return None
        return pitch, within[0]

    @property
    def is_literal(self) -> bool:
        """Whether coefficients and trip counts are numbers: tests that fail are then exact."""
        if self.form is None or any(isinstance(s, CompoundSymbol) for s in self.form):
            return False
        steps = all(isinstance(n, int) for n in self.form.values())
        counts = self.trip_counts.values()
        return steps and all(any(isinstance(b, int) for b in n.bounds) for n in counts)


def _magnitude(step: Extent) -> Extent:
    """Return the absolute value of a coefficient."""
    return step * -1 if at_least(0, step) else step


def _tightest(bounds: tuple[Extent, ...]) -> Extent:
    """Return the bound that is a number, or else the first one."""
    return next((b for b in bounds if isinstance(b, int)), bounds[0])


_Step = tuple[Extent, tuple[Extent | None, ...]]
"""The coefficient of an iteration, and upper bounds of its number of values."""


def _orders(steps: Sequence[_Step]) -> Iterable[Sequence[_Step]]:
    """Return the orders of coefficients that may be ascending."""
    if all(isinstance(n, int) for n, _ in steps):
        return (sorted(steps, key=_length),)
    return permutations(steps)


def _length(step: _Step) -> tuple[float, float]:
    """Return the key of a step among those with literal coefficients; fewer values come first."""
    return float(step[0]), min((n for n in step[1] if isinstance(n, int)), default=math.inf)


def _is_superincreasing(steps: Sequence[_Step]) -> bool:
    """Return whether each coefficient exceeds the sum that all earlier terms can have."""
    for bounds in product(*(b for _, b in steps)):
        reach: Extent = 0
        for k, ((step, _), bound) in enumerate(zip(steps, bounds, strict=True)):
            if not at_least(step, reach + 1) or (bound is None and k < len(steps) - 1):
                break
            reach = reach if bound is None else reach + step * (bound - 1)
        else:
            return True
    return False


class AccessCollector(StageWalk[FormScope]):
    """Collects the accesses of a phase in order.

    Attributes:
        accesses: the accesses.
        first_order: the position of each part; its stages follow it.
    """

    def __init__(self, phase: Phase, watched: Container[str], sizes: Mapping[str, Extent]) -> None:
        super().__init__(watched)
        self.sizes = sizes
        self.accesses: list[StageAccess] = []
        self.first_order: list[int] = []
        order = 0
        for part in phase.parts:
            self.first_order.append(order)
            order += 1 + len(part.stages)
        self.visit(phase)

    def new_scope(self) -> FormScope:
        """Return an empty scope."""
        return FormScope(self.sizes)

    def record(self, buffer: str, is_store: bool, index: Expr) -> None:
        """Add an access by the current statement."""
        self.accesses.append(
            StageAccess(
                buffer=buffer,
                is_store=is_store,
                stage=self.stage_name,
                part=self.part,
                order=self.first_order[self.part] + 1 + self.stage,
                form=self.scope.cached_form(index),
                trip_counts=self.scope.trip_counts,
                executor=self.executor,
                in_rows=self.in_rows,
                is_reversed=self.is_reversed,
                follows_reduction=self.follows_reduction and is_store,
            )
        )


def are_disjoint(a: StageAccess, b: StageAccess) -> bool:
    """Return whether two accesses to one array certainly have no element in common."""
    x, y = a.range(), b.range()
    if a.buffer != b.buffer or x is None or y is None or x[0] != y[0]:
        return False
    return at_least(x[1], y[2] + 1) or at_least(y[1], x[2] + 1)
