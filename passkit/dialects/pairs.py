"""Short rows in C that a loop takes two at a time: both together are whole vectors, none cut off.

So it is with rows of 8, 24, 40, … elements: they share one vector, of which each has a half. What a
row has for all its lanes differs from lane to lane then.
"""

from __future__ import annotations

from collections.abc import Callable, Container

from attrs import evolve, frozen

from passkit.ast import Const, Expr, Load, Var, const
from passkit.ast.stage import Fold, Let, Prefetch, Running, Stage, Statement, Store
from passkit.ast.walk import variables
from passkit.dialects.base import PairTemplates
from passkit.dialects.rows import Rows
from passkit.ir.strides import Stride, stride_of
from passkit.space.tiling import in_bundles, in_pairs
from passkit.transforms.vector_shape import computed_parts, vector_variables
from passkit.values import dtype as dt


@frozen
class Pairs:
    """The rows of a stage, two at a time. ``values`` are numbers that each row has of its own.

    Of those the ones in ``divisors`` are prepared for many rows at once. Where rows come in a
    ``bundle`` they are more than two, and have no such numbers.
    """

    stage: Stage
    rows: Rows
    templates: PairTemplates
    values: tuple[Let, ...]
    divisors: frozenset[Var]
    bundle: bool = False

    @property
    def length(self) -> int:
        """The elements of a row."""
        stop = self.stage.loops[1].stop
        assert isinstance(stop, Const)
        return int(stop.value)

    def opening(self) -> str:
        """What opens the loop over rows."""
        loop, count, expr = self.rows.loop, self.rows.count, self.rows.scalars.expr
        even = isinstance(count, Const) and count.value % 2 == 0
        template = self.templates.bundles if self.bundle else self.templates.loop
        return template.format(
            length=self.length,
            even=self.templates.even if even else "",
            var=loop.var.name,
            start=expr(loop.start),
            rows=expr(count),
        )

    def fetched(self, s: Let) -> str:
        """What stands in front of the lanes for one of ``values``: the numbers of both rows."""
        assert isinstance(s.value, Load)
        at = self.rows.scalars.address(s.value.buffer, s.value.index)
        return self.templates.values.format(name=s.var.name, at=at)

    def spread(self, s: Let) -> str:
        """What makes a vector of them inside the lanes: to each lane the number of its row."""
        return self.templates.value.format(name=s.var.name)

    def locals(self, s: Let) -> tuple[Var, Var]:
        """The names that those two lines bind, the one that needs the other first."""
        return s.var, Var(f"{s.var.name}_pair", s.var.dtype)

    def stride(self, index: Expr) -> Stride | None:
        """How far an index moves from row to row; None when unevenly."""
        moving = {self.rows.loop.var, *(s.var for s in self.values)}
        return stride_of(index, self.rows.loop.var, _meets(moving))

    def fits(self) -> bool:
        """Whether all that the rows do can be done for two of them."""
        return (
            all(map(self._is_value, self.values))
            and all(map(self._fits, self.stage.body))
            and {s for f in self._folds if (s := self._total(f))} == set(self.stage.after)
        )

    @property
    def _folds(self) -> list[Fold]:
        return [s for s in self.stage.body if isinstance(s, Fold)]

    def _total(self, f: Fold) -> Store | None:
        return self.rows.total_of(f, self.stage.after)

    def _is_value(self, s: Let) -> bool:
        """Whether two rows have their numbers side by side."""
        load, whole = s.value, s.var.dtype.is_float or s.var.dtype.is_integer
        side_by_side = isinstance(load, Load) and self.stride(load.index) == 1
        return side_by_side and whole and s.var.dtype.nbytes >= 4

    def _fits(self, s: Statement) -> bool:
        match s:
            case Prefetch():
                return True
            case Running():
                return False
            case Fold(var, value):
                return var.dtype.nbytes == 4 and self._total(s) is not None and self._is_even(value)
            case Store(_, index, value):
                return self._lies_evenly(index) and self._is_even(value)
            case Let(_, value):
                return s in self.values or self._is_even(value)

    def _is_even(self, x: Expr) -> bool:
        """Whether a value is made of what lies evenly in both rows, and of nothing of one row."""
        places = {loop.var for loop in self.stage.loops}
        return all(
            self._loads_evenly(part) if isinstance(part, Load) else part not in places
            for part in computed_parts(x)
        )

    def _loads_evenly(self, x: Load) -> bool:
        """Whether a load can be one of both rows; halves of two are joined from 4 bytes on."""
        varies = _meets(vector_variables(self.stage, self.stage.loops[1].var))
        whole = x.dtype.nbytes >= 4 or not varies(x.index) or self.stride(x.index) == self.length
        return whole and self._lies_evenly(x.index)

    def _lies_evenly(self, index: Expr) -> bool:
        """Whether an index goes on by one from lane to lane; or is the same for both rows."""
        lane = self.stage.loops[1].var
        varies = _meets(vector_variables(self.stage, lane))
        if not varies(index):
            return self.stride(index) == 0
        return stride_of(index, lane, varies) == 1 and self.stride(index) is not None


def pairs_of(stage: Stage, rows: Rows, templates: PairTemplates) -> Pairs | None:
    """How a stage takes its rows in pairs; None where it cannot."""
    if len(stage.loops) != 2 or stage.loops[0] != rows.loop or rows.loop.limit is not None:
        return None
    row, lane = stage.loops
    length = int(lane.stop.value) if isinstance(lane.stop, Const) else 0
    if lane.down or lane.start != const(0, dt.int64) or not in_pairs(length):
        return None
    different = vector_variables(stage, lane.var)
    moving, values = {row.var}, list[Let]()
    for s in stage.body:
        if isinstance(s, Let) and s.var not in different and _meets(moving)(s.value):
            moving.add(s.var)
            values.append(s)
    rows = evolve(rows, templates=templates.rows)
    divisors = frozenset(s.var for s in values if rows.prepares(s.value))
    pairs = Pairs(stage, rows, templates, tuple(values), divisors)
    return pairs if pairs.fits() else None


def bundle_of(stage: Stage, rows: Rows, templates: PairTemplates) -> Pairs | None:
    """How a stage that folds nothing takes several rows; None where it cannot.

    Nothing of a row may be one number for all its lanes.
    """
    row, lane = stage.loops
    length = int(lane.stop.value) if isinstance(lane.stop, Const) else 0
    if lane.down or lane.start != const(0, dt.int64) or not in_bundles(length):
        return None
    different = vector_variables(stage, lane.var)
    own = [s.value for s in stage.body if isinstance(s, Let) and s.var not in different]
    if any(row.var in variables(x) for x in [*own, *(s.value for s in stage.before)]):
        return None
    if stage.after or any(isinstance(s, Fold) for s in stage.body):
        return None
    bundle = Pairs(stage, rows, templates, (), frozenset(), bundle=True)
    return bundle if bundle.fits() else None


def _meets(moving: Container[Var]) -> Callable[[Expr], bool]:
    """Tells whether an expression has any of some variables in it."""
    return lambda x: any(v in moving for v in variables(x))
