"""fuse_stages: all stages of a tile in one vector loop, with partial results in registers.

Where each point reduces a known handful of elements, as pooling does, and hands the results to
nobody but itself, they need no memory between the stages, and what a later stage loads again is
still in a register.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

from passkit.ast import Binary, Const, Expr, Load, Var
from passkit.ast.renaming import names_in
from passkit.ast.stage import Fold, Let, Level, Loop, Part, Running, Stage, Statement, Store
from passkit.ast.tidy import expressions, map_statement, parts, replace_children
from passkit.ast.walk import loads, variables
from passkit.values import dtype as dt
from passkit.values.dtype import DType

MAX_ELEMENTS = 16
"""The elements that a point reduces at most."""
MAX_TEXT = 512
"""The operators and leaves of all that a point computes, at most."""


@frozen
class FusedStages:
    """Stages with the same vector loop, which become one.

    Attributes:
        stages: the stages.
        lane: the loop.
        totals: the variables that stand in the place of shared arrays, by their names.
    """

    stages: tuple[Stage, ...]
    lane: Loop
    totals: Mapping[str, Var]

    def body_of(self, stage: Stage) -> tuple[Statement, ...]:
        """Return the statements of a stage, which read variables in the place of shared arrays."""

        def change(x: Expr) -> Expr:
            if isinstance(x, Load) and x.buffer in self.totals:
                return self.totals[x.buffer]
            return replace_children(x, change)

        return tuple(map_statement(s, change) for s in stage.body)

    def vectors(self) -> frozenset[Var]:
        """Return the variables that differ from point to point."""
        vectors = {self.lane.var, *self.totals.values()}
        for stage in self.stages:
            for s in self.body_of(stage):
                if isinstance(s, Let) and not vectors.isdisjoint(variables(s.value)):
                    vectors.add(s.var)
        return frozenset(vectors)

    def inner_variables(self) -> Iterator[Var]:
        """Yield the variables that are defined inside the vector loop."""
        for stage in self.stages:
            yield from (x.var for x in stage.loops)
            yield from (s.var for s in stage.body if isinstance(s, Let))


def fused_stages(
    part: Part, others: Sequence[Part], shared: Mapping[str, DType]
) -> FusedStages | None:
    """Return the stages of a part as one vector loop; None where they cannot be that.

    Args:
        part: the part.
        others: all parts of its tile, which may not use its shared arrays.
        shared: the dtypes of the shared arrays.
    """
    stages = tuple(s for s in part.stages if isinstance(s, Stage))
    if (
        len(stages) != len(part.stages)
        or len(stages) < 2
        or part.rows is not None
        or part.barrier_before
    ):
        return None
    if not any(isinstance(s, Fold) for stage in stages for s in stage.body):
        return None
    lane = stages[0].loops[-1] if stages[0].loops else None
    if lane is None or lane.level is not Level.CTA or lane.down:
        return None
    totals = {name: Var(f"{name}_lanes", dtype) for name, dtype in shared.items()}
    fused = FusedStages(stages, lane, totals)
    if not _is_small(stages) or not all(_fits(s, fused) for s in stages):
        return None
    own = set(names_in(stages)) & totals.keys()
    is_alone = all(p is part or own.isdisjoint(names_in(p.stages)) for p in others)
    return fused if is_alone else None


def _is_small(stages: tuple[Stage, ...]) -> bool:
    """Return whether few elements are reduced, by short expressions."""
    counts = [_iterations(stage) for stage in stages]
    sizes = [sum(parts(x) for s in stage.body for x in expressions(s)) for stage in stages]
    lengths = [n for n in counts if n is not None]
    if len(lengths) < len(counts) or max(lengths) > MAX_ELEMENTS:
        return False
    return sum(n * size for n, size in zip(lengths, sizes, strict=True)) <= MAX_TEXT


def _iterations(stage: Stage) -> int | None:
    """Return how often the vector loop of a stage runs for each point; None if it is not known."""
    count = 1
    for x in stage.loops[:-1]:
        if not isinstance(x.start, Const) or not isinstance(x.stop, Const):
            return None
        count *= int(x.stop.value) - int(x.start.value)
    return count


def _fits(stage: Stage, fused: FusedStages) -> bool:
    """Return whether a stage has the same vector loop, and its points exchange nothing."""
    *serial, lane = stage.loops or (None,)
    if lane != fused.lane or any(x is None or x.level is not Level.THREAD for x in serial):
        return False
    if stage.after or stage.barrier_before or any(x is None or x.down for x in serial):
        return False
    place = Binary("-", lane.var, lane.start, dt.int64)
    written = {
        s.buffer for other in fused.stages for s in other.body if isinstance(s, (Store, Fold))
    }
    results = written - fused.totals.keys()
    return all(_is_own(s, place, bool(serial), results, fused) for s in stage.body)


def _is_own(
    s: Statement, place: Expr, is_repeated: bool, results: set[str | None], fused: FusedStages
) -> bool:
    """Return whether a statement uses shared arrays at its point's place only, and no result."""
    totals = fused.totals
    if isinstance(s, Running) or (isinstance(s, Fold) and s.buffer not in totals):
        return False
    if isinstance(s, (Store, Fold)) and s.buffer in totals and s.index != place:
        return False
    if isinstance(s, Store) and (s.stream or (is_repeated and s.buffer in totals)):
        return False
    accesses = [x for value in expressions(s) for x in loads(value)]
    if any(x.buffer in results for x in accesses):
        return False
    return all(x.index == place for x in accesses if x.buffer in totals)
