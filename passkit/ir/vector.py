"""Vector forms of loop IR: what the final form has where a CPU computes several points at once.

A `VectorFor` runs its body for ``width`` consecutive values of its variable at a time, under the
mask `MASK` of those that exist. Inside it an expression is a vector if a part of it is one: the
variable as a `Lane`, a `WideLoad`, a `Gather`, a `Splat`, or a variable of a `VectorLet`. Every
other expression is one number for all positions. An operator or function may have operands of both
kinds where the language allows it; elsewhere a `Splat` says that a number becomes a vector.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum

from attrs import fields, frozen, has

from passkit.ast.expr import Const, Expr, Var
from passkit.ir.loop import LetStmt, StoreStmt
from passkit.values.dtype import DType, bool_, int64
from passkit.values.size import Extent

MASK = Var("m", bool_)
"""The positions of the current iteration of a `VectorFor` that exist."""
MAX_BLOCK_ROWS = 16
"""The most rows of a transposed block that is as wide as a vector."""
MAX_COLUMNS = 8
"""The most elements of a row whose columns are loaded, or stored, as whole vectors."""

Stride = Extent | Expr


# Expressions.


@frozen(order=False, cache_hash=True)
class Lane(Expr):
    """The values of a loop's variable at all positions: ``var``, ``var + 1``, and so on."""

    var: Var
    dtype: DType = int64


@frozen(order=False, cache_hash=True)
class Masked(Expr):
    """The positions of ``mask`` at which ``condition`` holds, or with ``is_negated`` does not."""

    mask: Expr
    condition: Expr
    is_negated: bool
    dtype: DType = bool_


@frozen(order=False, cache_hash=True)
class Splat(Expr):
    """A vector of equal numbers, as long as the vector ``like``."""

    value: Expr
    like: Expr
    dtype: DType


@frozen(order=False, cache_hash=True)
class GuardedLoad(Expr):
    """``buffer[index]``, one number, if ``mask`` has a position; else 0, and nothing is loaded."""

    buffer: str
    index: Expr
    mask: Expr
    dtype: DType


@frozen(order=False, cache_hash=True)
class WideLoad(Expr):
    """``buffer[index + k * stride]`` for each position k of ``mask``.

    ``index`` is that of the first position. In a group of rows, ``row_distance`` is how far apart
    two of them begin, if one does not follow the other; ``stride`` is 1 then.
    """

    buffer: str
    index: Expr
    stride: Stride
    mask: Expr
    dtype: DType
    row_distance: Stride | None = None


@frozen(order=False, cache_hash=True)
class Gather(Expr):
    """``buffer[index]`` for each position of ``mask``.

    With ``var``, ``index`` is an expression of one number, evaluated for each value of that
    variable of the loop. Without it ``index`` is a vector.
    """

    buffer: str
    index: Expr
    mask: Expr
    var: Var | None
    dtype: DType


@frozen(order=False, cache_hash=True)
class Prepared(Expr):
    """A divisor of a `PrepareReciprocal`.

    With ``is_among``, positions that do not exist are divided by 1 instead.
    """

    name: str
    is_among: bool
    dtype: DType


@frozen(order=False, cache_hash=True)
class Column(Expr):
    """Element ``number`` of the rows that a `LoadColumns` called ``name`` loaded."""

    name: str
    number: int
    dtype: DType


@frozen(order=False, cache_hash=True)
class RowRegister(Expr):
    """The current vector of an array of vectors that holds a row."""

    name: str
    dtype: DType


VECTORS = (Lane, Masked, Splat, WideLoad, Gather, Column, RowRegister)
"""The expressions that are vectors whatever their operands are."""


# Statements.


@frozen
class VectorFor:
    """``for var in range(start, stop)``, ``width`` values at a time.

    Attributes:
        var: the variable, which has the first of these values.
        start: its first value.
        stop: the end.
        body: the statements.
        width: the number of values, a multiple of the width of a vector.
        is_unrolled: whether ``stop`` is known, and the loop is unrolled; ``start`` is 0 then.
        is_reversed: whether it runs from the last vector to the first.
        aligned: the buffer and the index of a store that should be aligned to cache lines: the
            first iteration may have fewer values.
        is_of_rows: whether it is the loop over the elements of a group of rows, see `RowsFor`.
        is_paired: whether an unrolled loop still has iterations, of two vectors each. Their numbers
            are 2 and 1, so that no statement may access a register of the row.
        is_whole: whether the number of values is a known multiple of the width of a vector.
    """

    var: Var
    start: Expr
    stop: Expr
    body: tuple[VectorStmt, ...]
    width: int
    is_unrolled: bool = False
    is_reversed: bool = False
    aligned: tuple[str, Expr] | None = None
    is_of_rows: bool = False
    is_paired: bool = False
    is_whole: bool = False


@frozen
class SerialFor:
    """A loop without vectors around others, see `passkit.ir.loop.For`."""

    var: Var
    start: Expr
    stop: Expr
    body: tuple[VectorStmt, ...]
    is_reversed: bool = False


class RowGroup(Enum):
    """How many rows an iteration of a `RowsFor` has.

    ONE: one. TWO: two, and one at the end if their number is odd. ANY: as many as are whole
    vectors.
    """

    ONE = "one"
    TWO = "two"
    ANY = "any"


@frozen
class RowsFor:
    """A loop over rows, ``for var in range(start, stop)``, of which an iteration has a group.

    Attributes:
        var: the number of the first row of an iteration.
        start: the first row.
        stop: the end, or less with ``limit``.
        limit: an upper bound of the end; None for none.
        count: the number of rows.
        group: the rows of an iteration.
        length: the elements of a row, in groups of several.
        is_even: whether the number of rows is certainly even.
        body: the statements.
    """

    var: Var
    start: Expr
    stop: Expr
    limit: Expr | None
    count: Expr
    group: RowGroup
    length: int
    is_even: bool
    body: tuple[VectorStmt, ...]


@frozen
class BlockFor:
    """A loop over blocks of up to ``size`` values of a variable, from ``start`` to ``stop``.

    Inside it `low` and `high` of the variable are the first value of the block and its end.
    """

    var: Var
    start: Expr
    stop: Expr
    size: Expr
    body: tuple[VectorStmt, ...]


def low(var: Var) -> Var:
    """Return the variable that has the first value of ``var`` in a block."""
    return Var(f"{var.name}_low", var.dtype)


def high(var: Var) -> Var:
    """Return the variable that has the end of the values of ``var`` in a block."""
    return Var(f"{var.name}_high", var.dtype)


@frozen
class Scope:
    """Statements whose variables are not visible behind them."""

    body: tuple[VectorStmt, ...]


@frozen
class When:
    """Statements that run if a condition of numbers holds, in a scope of their own."""

    condition: Expr
    body: tuple[VectorStmt, ...]


@frozen
class VectorLet:
    """The definition of a local variable that is a vector."""

    var: Var
    value: Expr


@frozen
class VectorDeclare:
    """The definition of a vector that `VectorAssign` changes, with its first value."""

    var: Var
    value: Expr


@frozen
class VectorAssign:
    """The assignment of a new value to a variable of `VectorDeclare`."""

    var: Var
    value: Expr


@frozen
class WideStore:
    """``buffer[index + k * stride] = value`` for each position k of `MASK`.

    ``index`` is that of the first position, and ``value`` a vector. With ``stream`` the caches
    should evict it first. ``row_distance`` is that of `WideLoad`.
    """

    buffer: str
    index: Expr
    stride: Stride
    value: Expr
    stream: bool = False
    row_distance: Stride | None = None


@frozen
class PrefetchStmt:
    """A hint that the elements ``buffer[index + k]`` of the positions k of `MASK` are read soon."""

    buffer: str
    index: Expr


@frozen
class LoadColumns:
    """Rows of ``count`` consecutive elements are loaded, one for each position of `MASK`.

    The first begins at ``index``. `Column` is an element of all of them.
    """

    name: str
    count: int
    buffer: str
    index: Expr


@frozen
class TransposedLoad:
    """A block of an input, of ``count`` rows of a vector's points, is loaded across its rows.

    Row r of the array ``name`` becomes ``buffer[index + k * stride + r]`` for each position k.
    ``is_dense`` says that the rows of elements of neighbouring points follow each other.
    """

    name: str
    dtype: DType
    buffer: str
    index: Expr
    stride: Stride
    count: Expr
    is_dense: bool


@frozen
class WideTransposedLoad:
    """A block of an input, ``count`` rows of ``points`` points, is loaded across its rows.

    Row r of the array ``name``, of ``max_count`` rows of ``width`` elements, becomes
    ``buffer[index + k * stride + r]`` for each k below ``points``.
    """

    name: str
    dtype: DType
    buffer: str
    index: Expr
    stride: Stride
    count: Expr
    max_count: int
    points: Expr
    width: int


@frozen
class PrefetchRows:
    """A hint that ``count`` rows, ``stride`` elements apart, are read soon at all positions."""

    buffer: str
    index: Expr
    stride: Stride
    count: Expr


@frozen
class TransposedRow:
    """``var`` becomes row ``place`` of the array of a `TransposedLoad` called ``name``."""

    var: Var
    name: str
    place: Expr


@frozen
class TransposedStore:
    """The ``count`` rows of an array are stored across its rows, to consecutive elements.

    Element ``buffer[index + k * count + r]`` becomes position k of row r. Without ``index`` it is
    the declaration of the array.
    """

    buffer: str
    dtype: DType
    count: Expr
    index: Expr | None


@frozen
class PutRow:
    """Row ``place`` of the array of a `TransposedStore` becomes a vector."""

    buffer: str
    place: Expr
    value: Expr


@frozen
class PrepareReciprocal:
    """The preparation of a divisor, whose reciprocal is taken once.

    ``parts`` are the high and the low part of a literal's reciprocal, None for other divisors.
    """

    name: str
    value: Expr
    parts: tuple[Const, Const] | None


@frozen
class Accumulator:
    """The beginning of a reduction by vectors: ``width`` partial results, combined at the end.

    Attributes:
        name: its name.
        dtype: the dtype of the partial results.
        width: their number.
        extreme: "largest" or "smallest" for a maximum or minimum that keeps NaN, else "".
        is_blocked_sum: whether it adds float32 in blocks, and the blocks in float64.
        identity: the value of a partial result before it takes one.
        combine: two values ``a`` and ``b`` combined, as vectors.
    """

    name: str
    dtype: DType
    width: int
    extreme: str
    is_blocked_sum: bool
    identity: Const
    combine: Expr


@frozen
class Take:
    """An accumulator takes the positions of a vector that exist.

    With ``is_numbered`` partial results are chosen by the number of the vector in its row.
    """

    accumulator: str
    value: Expr
    is_numbered: bool


@frozen
class Finish:
    """``var`` becomes the partial results of an accumulator, combined in a fixed order."""

    var: Var
    accumulator: str


@frozen
class RowResults:
    """The beginning of a reduction of each row, whose partial results sixteen rows combine.

    Attributes:
        accumulator: the reduction of one row.
        name: the name of its result.
        max_rows: the most rows, a multiple of the width of a vector.
        is_grouped: whether rows come in groups of two.
    """

    accumulator: Accumulator
    name: str
    max_rows: int
    is_grouped: bool


@frozen
class BeginRow:
    """The accumulator of the current row, or group of rows, of a `RowResults` called ``name``."""

    name: str
    is_grouped: bool


@frozen
class EndRow:
    """The end of what `BeginRow` began; ``row`` is the number of the row."""

    name: str
    row: Expr
    is_grouped: bool


@frozen
class StoreRowResults:
    """The first ``count`` elements of a buffer become the results of a `RowResults`."""

    name: str
    buffer: str
    count: Expr
    is_grouped: bool


@frozen
class RowReciprocals:
    """The reciprocals of the first ``count`` elements of a buffer, divisors of one row each."""

    name: str
    dtype: DType
    max_rows: int
    buffer: str
    count: Expr
    is_grouped: bool


@frozen
class RowReciprocal:
    """The divisor of row ``row`` of `RowReciprocals`, as `Prepared` names it."""

    name: str
    row: Expr
    is_grouped: bool


@frozen
class LoadRowValues:
    """The numbers of a group of rows, consecutive elements of a buffer."""

    var: Var
    buffer: str
    index: Expr


@frozen
class RowValues:
    """``var`` becomes a vector of the numbers of `LoadRowValues`: each position has its row's."""

    var: Var


@frozen
class SetRowRegister:
    """The current vector of an array of vectors that holds a row becomes ``value``."""

    name: str
    value: Expr


@frozen
class Scan:
    """The beginning of a scan along a vector loop.

    Attributes:
        name: its name.
        dtype: the dtype of its values.
        is_exclusive: whether a point's result leaves out its own value.
        is_reversed: whether it begins with the last point.
        identity: the result of no values.
        combine: two values ``a`` and ``b`` combined, as vectors.
    """

    name: str
    dtype: DType
    is_exclusive: bool
    is_reversed: bool
    identity: Const
    combine: Expr


@frozen
class ScanVector:
    """``var`` becomes the results of a scan at the points of an iteration, whose values it gets."""

    var: Var
    scan: str
    value: Expr


RowStatement = RowResults | BeginRow | EndRow | StoreRowResults | RowReciprocals | RowReciprocal
"""Statements about the rows of a tile."""

VectorStmt = (
    LetStmt
    | StoreStmt
    | VectorFor
    | SerialFor
    | RowsFor
    | BlockFor
    | Scope
    | When
    | VectorLet
    | VectorDeclare
    | VectorAssign
    | WideStore
    | PrefetchStmt
    | LoadColumns
    | TransposedLoad
    | WideTransposedLoad
    | PrefetchRows
    | TransposedRow
    | TransposedStore
    | PutRow
    | PrepareReciprocal
    | Accumulator
    | Take
    | Finish
    | RowResults
    | BeginRow
    | EndRow
    | StoreRowResults
    | RowReciprocals
    | RowReciprocal
    | LoadRowValues
    | RowValues
    | SetRowRegister
    | Scan
    | ScanVector
)


DEFINITIONS = (LetStmt, VectorLet, LoadRowValues, RowValues)
"""Statements whose variable is defined, and not used, by them."""


def used_names(body: Iterable[VectorStmt]) -> Iterator[str]:
    """Yield the names of the variables that statements use, those inside of others included."""
    for statement in body:
        for attribute in fields(type(statement)):
            if attribute.name != "var" or not isinstance(statement, DEFINITIONS):
                yield from _names(getattr(statement, attribute.name))


def _names(value: object) -> Iterator[str]:
    """Yield the names of the variables in an expression, a statement, or several of them."""
    if isinstance(value, Var):
        yield value.name
    elif isinstance(value, Expr):
        for attribute in fields(type(value)):  # type: ignore[arg-type]
            yield from _names(getattr(value, attribute.name))
    elif isinstance(value, tuple):
        for part in value:
            yield from used_names([part]) if _is_statement(part) else _names(part)
    elif _is_statement(value):
        yield from used_names([value])  # type: ignore[list-item]


def _is_statement(value: object) -> bool:
    """Return whether a value is a statement: an object of attributes that is no expression."""
    return has(type(value)) and not isinstance(value, (Expr, Enum)) and not isinstance(value, DType)
