"""The shape of vector loops: how many points an iteration of a CPU's inner loop has, and which.

The decisions are of a stage and its loop alone, so that a cost model can ask for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from attrs import frozen

from passkit.ast import (
    FUNCTIONS,
    VARIANTS,
    WORDS,
    Binary,
    Call,
    Const,
    Expr,
    Load,
    Select,
    SizeOf,
    Unary,
    Var,
)
from passkit.ast.expr import rounding
from passkit.ast.index import normal
from passkit.ast.renaming import names_in
from passkit.ast.stage import Fold, Let, Level, Loop, Prefetch, Running, Stage, Statement, Store
from passkit.ast.walk import children, variables, walk
from passkit.ir.features import VectorFeatures
from passkit.values import dtype as dt

FAST_FUNCTIONS = frozenset(["maximum", "minimum", "abs", "floor", "ceil", "trunc", "rint"])
SLOW_FUNCTIONS = frozenset([*FUNCTIONS, *VARIANTS, *WORDS]) - FAST_FUNCTIONS
"""Functions that take longer than a step of a reduction does."""
MAX_UNROLLED = 128
"""The longest row of known length whose loop is unrolled, if its values are not in registers."""
PAIRED_VECTORS = 4
"""The least vectors of an unrolled row with iterations of two, if its values are not in registers:
the kernel is as fast as without a loop, and compiled in two thirds of the time."""
PAIRED_OPERATIONS = 16
"""The least operations on vectors of such a row. Others are compiled quickly, and would take up to
a tenth longer to run."""
SLOW_OPERATIONS = 8
"""The operations that a slow function counts for."""
DIVISION_OPERATIONS = 3
"""The operations that a division counts for."""
BRIEF_VECTORS = 2
"""The vectors up to which divisions take no longer than the preparation of their divisor, and a
kernel with it is compiled in 1.15 times the time."""
BUSY_OPERATORS = 8
"""Operators for each element from which on a reduction does not wait for its previous step.

Several vectors would only take registers from them: 3,000 points' squared distances, a quotient of
each and their sum take a tenth longer with AVX2."""


@frozen
class LoopShape:
    """How an inner loop is executed.

    Attributes:
        width: the points of an iteration.
        is_unrolled: whether its length is known and short, and there is no loop.
        is_reversed: whether the last points come first.
        is_aligned: whether the first iteration ends where a store reaches a cache line.
        is_paired: whether an unrolled loop has iterations of two vectors each.
    """

    width: int
    is_unrolled: bool = False
    is_reversed: bool = False
    is_aligned: bool = False
    is_paired: bool = False


def is_short(lane: Loop) -> bool:
    """Return whether a loop's length is known and at most `MAX_UNROLLED`."""
    return isinstance(lane.stop, Const) and int(lane.stop.value) <= MAX_UNROLLED


def is_brief(stage: Stage, lane: Loop, features: VectorFeatures) -> bool:
    """Return whether the inner loop of a stage is known to have `BRIEF_VECTORS` or fewer.

    It is not if the stage is one of rows, which prepare the divisors of many rows at a time.
    """
    if any(x.level is Level.WARP for x in stage.loops):
        return False
    count = literal_count(lane)
    return count is not None and count <= BRIEF_VECTORS * features.width


def literal_count(loop: Loop) -> int | None:
    """Return the number of values of a loop, None if it is not the same for all sizes."""
    if loop.limit is not None or any(isinstance(x, SizeOf) for x in walk(loop.stop - loop.start)):
        return None
    count = normal(loop.stop - loop.start, {})
    return count.constant if not count.terms and isinstance(count.constant, int) else None


def is_in_registers(stage: Stage, registers: Set[str]) -> bool:
    """Return whether a stage reads or writes any of the arrays of vectors that hold a row."""
    return not registers.isdisjoint(names_in(stage))


def loop_shape(
    stage: Stage, lane: Loop, features: VectorFeatures, registers: Set[str] = frozenset()
) -> LoopShape:
    """Return the shape of the inner loop of a stage.

    An iteration has several vectors where a reduction, or a long formula, would else wait for its
    own result, where rows are read side by side, four cache lines of each, and where all points are
    divided by one number: some by the divider, others meanwhile by multiplications. Reductions and
    scans begin with whole vectors, so that their bits do not depend on addresses.

    Args:
        stage: the stage.
        lane: its inner loop.
        features: the vectors of the language.
        registers: the arrays of vectors that hold a row; each vector is a register of its own, so
            that loops over them are unrolled, whatever their length.
    """
    if lane.down:
        return LoopShape(features.width, is_reversed=True)
    if features.unrolls and is_in_registers(stage, registers):
        return LoopShape(features.width, is_unrolled=True)
    if features.unrolls and isinstance(lane.stop, Const) and is_short(lane):
        count = int(lane.stop.value) // features.width
        is_paired = (
            count >= PAIRED_VECTORS
            and count * _operations(stage) >= PAIRED_OPERATIONS
            and not _selects_by_position(stage, lane.var)
        )
        return LoopShape(features.width, is_unrolled=True, is_paired=is_paired)
    values = [s.value for s in stage.body if not isinstance(s, Prefetch)]
    parts = [x for value in values for x in computed_parts(value)]
    slow = sum(isinstance(x, Call) and x.name in SLOW_FUNCTIONS for x in parts)
    operators = sum(isinstance(x, (Binary, Call, Select, Unary)) for x in parts)
    is_busy = operators >= BUSY_OPERATORS
    reduces = any(isinstance(s, Fold) and (lane.wide or s.buffer is None) for s in stage.body)
    is_wide = any(x.dtype.nbytes > 4 for x in parts)
    rounded = sum(rounding(x) is not None for x in parts)
    vectors = vector_variables(stage.body, lane.var)
    divides = any(_divides(x, vectors) for x in parts)
    is_long = slow > 1 or rounded > 1 or (((reduces and not is_busy) or divides) and not slow)
    width = features.interleaved_width if is_long and not is_wide else features.width
    is_elementwise = not any(isinstance(s, (Fold, Running)) for s in stage.body)
    if is_elementwise and any(isinstance(s, Store) and s.stream for s in stage.body):
        return LoopShape(width, is_aligned=True)
    if any(isinstance(s, Running) and s.buffer is None for s in stage.body):
        width = features.width  # a step of a scan waits for the one before
    return LoopShape(width)


def _operations(stage: Stage) -> int:
    """Return the operations of a stage for each vector, with reductions and stores."""
    count = sum(not isinstance(s, (Let, Prefetch)) for s in stage.body)
    for s in stage.body:
        for x in () if isinstance(s, Prefetch) else computed_parts(s.value):
            if isinstance(x, Call) and x.name in SLOW_FUNCTIONS:
                count += SLOW_OPERATIONS
            elif isinstance(x, Binary) and x.op == "/":
                count += DIVISION_OPERATIONS
            else:
                count += isinstance(x, (Binary, Call, Select, Unary))
    return count


def _selects_by_position(stage: Stage, lane: Var) -> bool:
    """Return whether a stage selects by where a point is, as in a concatenation, and not by values.

    Without a loop the compiler decides that for each vector, or once for all of them. In a loop
    concatenations and padded windows take a tenth longer.

    Args:
        stage: the stage.
        lane: the variable of its inner loop.
    """
    values = vector_variables(stage.body, lane) - {lane}
    parts = (x for s in stage.body if not isinstance(s, Prefetch) for x in computed_parts(s.value))
    return any(
        isinstance(x, Select)
        and not loads_from(x.condition)
        and values.isdisjoint(variables(x.condition))
        for x in parts
    )


def _divides(x: Expr, vectors: frozenset[Var]) -> bool:
    """Return whether float32 of all points are divided by one number that is not a literal."""
    if not isinstance(x, Binary) or x.op != "/" or x.dtype is not dt.float32:
        return False
    return not isinstance(x.b, Const) and vectors.isdisjoint(variables(x.b))


def computed_parts(x: Expr) -> Iterator[Expr]:
    """Yield the subexpressions of a value, without those of indices."""
    yield x
    if not isinstance(x, Load):
        for child in children(x):
            yield from computed_parts(child)


def vector_variables(
    statements: Iterable[Statement], lane: Var, aliased: Set[str] = frozenset()
) -> frozenset[Var]:
    """Return the variables that differ from iteration to iteration of a loop.

    Args:
        statements: the statements in the loop.
        lane: the variable of the loop.
        aliased: buffers that share memory with another: only the point that stores an element may
            load it, so that what is loaded from these counts as different.
    """
    vectors = {lane}
    for s in statements:
        if isinstance(s, Running) or (
            isinstance(s, Let)
            and (not vectors.isdisjoint(variables(s.value)) or loads_from(s.value, aliased))
        ):
            vectors.add(s.var)
    return frozenset(vectors)


def loads_from(x: Expr, buffers: Set[str] | None = None) -> bool:
    """Return whether an expression loads, from certain buffers if they are named."""
    loads = (part for part in walk(x) if isinstance(part, Load))
    return any(buffers is None or part.buffer in buffers for part in loads)
