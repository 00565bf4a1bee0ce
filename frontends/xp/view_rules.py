"""The rules of triangular views: which diagonals of a result may differ from 0.

A *band* says of matrices in the last two axes that only the diagonals from ``bottom`` to ``top``
may differ from 0, where diagonal d holds the elements with column - row = d. An array with a band
is exactly 0 outside of it. `ArrayType.band` holds the band; it is None for arrays of which nothing
is known.

Source: Stan Math's `kernel_generator`, whose operations have `extreme_diagonals`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from passkit.frontends.xp.extents import position_of
from passkit.frontends.xp.indexing_operations import ELEMENTS
from passkit.streams.operation import Operation
from passkit.streams.recorder import ArrayType, Value

INFINITY = math.inf


@frozen
class DiagonalBand:
    """The diagonals of matrices that may differ from 0.

    Attributes:
        bottom: the lowest one; None: there is no limit.
        top: the highest one; None: there is no limit.
    """

    bottom: int | None
    top: int | None


@frozen
class Diagonals:
    """A band with numbers: those of scalars and of broadcast operands are infinite.

    Attributes:
        bottom: the lowest diagonal that may differ from 0.
        top: the highest one.
    """

    bottom: float
    top: float

    def shifted(self, distance: float) -> Diagonals:
        """Return the diagonals with ``distance`` added to both limits."""
        return Diagonals(self.bottom + distance, self.top + distance)

    def union(self, other: Diagonals) -> Diagonals:
        """Return the diagonals of either, and those between them."""
        return Diagonals(min(self.bottom, other.bottom), max(self.top, other.top))

    def intersection(self, other: Diagonals) -> Diagonals:
        """Return the diagonals that both have; ``bottom`` is above ``top`` if there are none."""
        return Diagonals(max(self.bottom, other.bottom), min(self.top, other.top))

    def contains(self, other: Diagonals) -> bool:
        """Return whether all diagonals of another band are among these."""
        return self.bottom <= other.bottom and other.top <= self.top


@frozen
class AppliedOperation:
    """An operation applied to values, for the rules.

    Attributes:
        params: the parameters of the operation.
        operands: the values that it reads.
        shape: the shape of the result.
    """

    params: dict[str, Any]
    operands: tuple[Value, ...]
    shape: tuple[int, ...]

    def operand(self, position: int) -> Diagonals:
        """Return the diagonals of the operand at ``position``, as it is broadcast to the result.

        The lowest one is -infinity if rows are broadcast, the highest one infinity if columns are.
        """
        type = self.operands[position].type
        rows, columns = matrix_extents(type.shape)
        own = diagonals_of(type)
        result_rows, result_columns = matrix_extents(self.shape)
        return Diagonals(
            -INFINITY if rows < result_rows else own.bottom,
            INFINITY if columns < result_columns else own.top,
        )


Rule = Callable[[AppliedOperation], Diagonals]
"""Returns the diagonals of the result that may differ from 0; infinite ones have no limit."""

EVERYTHING = Diagonals(-INFINITY, INFINITY)


def matrix_extents(shape: Sequence[int]) -> tuple[int, int]:
    """Return the numbers of rows and columns of a shape: the last two extents; 1 where it has none.

    A vector is one row.
    """
    return (shape[-2] if len(shape) > 1 else 1), (shape[-1] if shape else 1)


def diagonals_of(type: ArrayType) -> Diagonals:
    """Return the diagonals of an array of a type that may differ from 0.

    Limits that its band lacks are those of the matrices, and a vector is one row. Those of a scalar
    are infinite.
    """
    if not type.shape:
        return EVERYTHING
    rows, columns = matrix_extents(type.shape)
    band: Any = type.band
    bottom, top = (None, None) if band is None else (band.bottom, band.top)
    return Diagonals(
        1 - rows if bottom is None else bottom,
        columns - 1 if top is None else top,
    )


def band_of(diagonals: Diagonals, shape: Sequence[int]) -> DiagonalBand | None:
    """Return diagonals as the band of an array of this shape.

    Limits that cut nothing off, at or beyond the corners of the matrices, become None.

    Returns: None if nothing is limited, or there are fewer than two axes.
    """
    if len(shape) < 2:
        return None
    rows, columns = matrix_extents(shape)
    bottom = None if diagonals.bottom <= 1 - rows else int(min(diagonals.bottom, columns))
    top = None if diagonals.top >= columns - 1 else int(max(diagonals.top, -rows))
    return None if bottom is None and top is None else DiagonalBand(bottom, top)


# Elementwise operations.


def union(applied: AppliedOperation) -> Diagonals:
    """Return the diagonals of any operand, for functions that are 0 where all operands are.

    Those between them count, too. There is at least one operand.
    """
    result = applied.operand(0)
    for k in range(1, len(applied.operands)):
        result = result.union(applied.operand(k))
    return result


def intersection(applied: AppliedOperation) -> Diagonals:
    """Return the diagonals that all operands have, for functions that are 0 where one operand is.

    There is at least one operand.
    """
    result = applied.operand(0)
    for k in range(1, len(applied.operands)):
        result = result.intersection(applied.operand(k))
    return result


def _select(applied: AppliedOperation) -> Diagonals:
    """Return the diagonals of `where`, whose operands are a condition and two choices.

    Outside of its diagonals, the condition is 0, and the last operand is taken.
    """
    condition, then, otherwise = (applied.operand(k) for k in range(3))
    return Diagonals(
        max(min(then.bottom, otherwise.bottom), min(condition.bottom, otherwise.bottom)),
        min(max(then.top, otherwise.top), max(condition.top, otherwise.top)),
    )


def _power(applied: AppliedOperation) -> Diagonals:
    """Return the diagonals of a power: the base's if the parameter ``exponent`` is above 0.

    Otherwise they are `EVERYTHING`, as 0 to this power is not 0.
    """
    return union(applied) if applied.params["exponent"] > 0 else EVERYTHING


# Triangles, products and movements.


def _lower(applied: AppliedOperation) -> Diagonals:
    """Return the diagonals of a lower triangle: the operand's up to the parameter ``k``."""
    return applied.operand(0).intersection(Diagonals(-INFINITY, applied.params["k"]))


def _upper(applied: AppliedOperation) -> Diagonals:
    """Return the diagonals of an upper triangle: the operand's from the parameter ``k`` on."""
    return applied.operand(0).intersection(Diagonals(applied.params["k"], INFINITY))


def _product(applied: AppliedOperation) -> Diagonals:
    """Return the diagonals of a product of two arrays of matrices: sums of those of the factors.

    They are `EVERYTHING` if a factor is a vector.
    """
    left, right = (v.type for v in applied.operands)
    if len(left.shape) < 2 or len(right.shape) < 2:
        return EVERYTHING
    a, b = diagonals_of(left), diagonals_of(right)
    return Diagonals(a.bottom + b.bottom, a.top + b.top)


def _permuted(applied: AppliedOperation) -> Diagonals:
    """Return the diagonals of an array with its axes in another order, the parameter ``axes``.

    They stay if the last two axes do, are mirrored if these swap, and are `EVERYTHING` otherwise.
    """
    axes, own = applied.params["axes"], diagonals_of(applied.operands[0].type)
    rank = len(axes)
    order = tuple(a % rank for a in axes[-2:])
    if order == (rank - 2, rank - 1):
        return own
    if order == (rank - 1, rank - 2):
        return Diagonals(-own.top, -own.bottom)
    return EVERYTHING


def _expanded(applied: AppliedOperation) -> Diagonals:
    """Return the diagonals of an array with new axes, the parameter ``axis``.

    They stay if all new axes precede the matrices of the result, and are `EVERYTHING` otherwise.
    """
    rank = len(applied.shape)
    axis = applied.params["axis"]
    axes = axis if isinstance(axis, tuple) else (axis,)
    return applied.operand(0) if all(a % rank < rank - 2 for a in axes) else EVERYTHING


def _broadcast(applied: AppliedOperation) -> Diagonals:
    """Return the diagonals of a broadcast array; see `AppliedOperation.operand`."""
    return applied.operand(0)


def _joined(applied: AppliedOperation) -> Diagonals:
    """Return the diagonals of arrays that are joined along the parameter ``axis``.

    If that is one of the last two, matrices are joined below or beside each other, and the
    diagonals of each are counted from the corner of the first; those between them count, too.
    """
    rank = len(applied.shape)
    axis = applied.params["axis"] % rank
    types = [v.type for v in applied.operands]
    if axis < rank - 2:
        offsets = [0] * len(types)
    else:
        sign = -1 if axis == rank - 2 else 1
        offsets = [sign * sum(t.shape[axis] for t in types[:k]) for k in range(len(types))]
    result = diagonals_of(types[0])
    for type, offset in zip(types[1:], offsets[1:], strict=True):
        result = result.union(diagonals_of(type).shifted(offset))
    return result


# Slices and assignments.


@frozen
class MatrixBlock:
    """A block of matrices: neighbouring rows and columns.

    Attributes:
        row: the first row.
        column: the first column.
        rows: the number of rows.
        columns: the number of columns.
        of_all: whether it is a block of all matrices of the array.
    """

    row: int
    column: int
    rows: int
    columns: int
    of_all: bool

    def covers(self, diagonal: int, rows: int, columns: int) -> bool:
        """Return whether all elements of a diagonal lie in this block.

        ``rows`` and ``columns`` are the numbers of those of the entire matrix; ``diagonal`` is the
        number of one that it has.
        """
        first = max(0, -diagonal)
        last = min(rows, columns - diagonal) - 1
        return (
            self.row <= first
            and last < self.row + self.rows
            and self.column <= first + diagonal
            and last + diagonal < self.column + self.columns
        )


def _block(applied: AppliedOperation, inputs: Sequence[Value]) -> MatrixBlock | None:
    """Return the block of the first operand's matrices that a slice or an assignment selects.

    ``inputs`` are the operands that give extents and positions, see `indexing_operations`.

    Returns: None if it selects something else: an int or a step other than 1 in one of the last two
        axes, or new axes among them.
    """
    axes, shape = applied.params["axes"], applied.params["shape"]
    extents = applied.operands[0].type.shape
    new_axes = applied.params["new_axes"]
    kept = sum(kind not in ELEMENTS for kind, _ in axes)
    if len(axes) < 2 or any(kind in ELEMENTS for kind, _ in axes[-2:]):
        return None
    if any(k >= kept + len(new_axes) - 2 for k in new_axes):
        return None
    positions = iter(inputs[1:] if shape else inputs)
    sizes = iter(shape)
    number = 0
    ranges = []
    for n, (kind, step) in zip(extents, axes, strict=True):
        if kind == "all":
            ranges.append((0, n, 1))
            continue
        if kind == "in":
            ranges.append((step, 1, 1))
            continue
        begin = 0 if kind == "first" else n - 1
        if kind in ("from", "at"):
            begin = position_of(next(positions).type, number)
            number += 1
        ranges.append((begin, 1 if kind == "at" else next(sizes), step))
    (row, rows, row_step), (column, columns, column_step) = ranges[-2:]
    if (row_step, column_step) != (1, 1):
        return None
    return MatrixBlock(row, column, rows, columns, all(kind == "all" for kind, _ in axes[:-2]))


def _sliced(applied: AppliedOperation) -> Diagonals:
    """Return the diagonals of a slice that is a block; `EVERYTHING` if it is none."""
    block = _block(applied, applied.operands[1:])
    if block is None:
        return EVERYTHING
    return diagonals_of(applied.operands[0].type).shifted(block.row - block.column)


def _assigned(applied: AppliedOperation) -> Diagonals:
    """Return the diagonals of matrices of which a block is replaced; `EVERYTHING` if it is none.

    The block adds its diagonals. Diagonals of the old matrices that it covers entirely do not
    count any more, from the outermost ones up to the main diagonal.
    """
    target = applied.operands[0].type
    block = _block(applied, applied.operands[2:])
    if block is None:
        return EVERYTHING
    rows, columns = matrix_extents(target.shape)
    old = diagonals_of(target)
    bottom, top = int(old.bottom), int(old.top)
    if block.of_all:
        while bottom < 0 and block.covers(bottom, rows, columns):
            bottom += 1
        while top > 0 and block.covers(top, rows, columns):
            top -= 1
    inserted = AppliedOperation({}, (applied.operands[1],), (block.rows, block.columns))
    new = inserted.operand(0).shifted(block.column - block.row)
    limits = Diagonals(
        block.column - (block.row + block.rows - 1), block.column + block.columns - 1 - block.row
    )
    return Diagonals(bottom, top).union(new.intersection(limits))


RULES: dict[str, Rule] = {
    "abs": union,
    "add": union,
    "asin": union,
    "asinh": union,
    "astype": union,
    "atan": union,
    "atanh": union,
    "bitwise_and": intersection,
    "bitwise_or": union,
    "bitwise_xor": union,
    "broadcast_to": _broadcast,
    "ceil": union,
    "concat": _joined,
    "conj": union,
    "constant_pow": _power,
    "copy": union,
    "expand_dims": _expanded,
    "expm1": union,
    "floor": union,
    "greater": union,
    "imag": union,
    "isinf": union,
    "isnan": union,
    "less": union,
    "log1p": union,
    "logical_and": intersection,
    "logical_or": union,
    "logical_xor": union,
    "matmul": _product,
    "multiply": intersection,
    "negative": union,
    "not_equal": union,
    "permute_dims": _permuted,
    "positive": union,
    "real": union,
    "round": union,
    "sign": union,
    "sin": union,
    "sinh": union,
    "slice": _sliced,
    "slice_assign": _assigned,
    "special.cbrt": union,
    "special.erf": union,
    "special.expm1": union,
    "special.log1p": union,
    "sqrt": union,
    "square": union,
    "subtract": union,
    "tan": union,
    "tanh": union,
    "tril": _lower,
    "triu": _upper,
    "trunc": union,
    "where": _select,
}
"""The rules by the name of the operation; results of others may differ from 0 everywhere."""

MASKED = {"matmul", "multiply"}
"""Operations that compute 0 times infinity outside of the band, which has to be 0 there."""


def result_band(
    operation: Operation, operands: tuple[Value, ...], shape: tuple[int, ...]
) -> DiagonalBand | None:
    """Return the band of the result of an operation on operands; ``shape`` is the result's.

    Returns: None if the operation has no rule, or the rule limits nothing.
    """
    rule = RULES.get(operation.name)
    if rule is None:
        return None
    return band_of(rule(AppliedOperation(operation.params, operands, shape)), shape)


def needs_mask(
    operation: Operation, operands: tuple[Value, ...], band: DiagonalBand, type: ArrayType
) -> bool:
    """Return whether a result of ``type`` has to be set to 0 outside of its ``band``.

    That is so for floats and complex numbers of operations in `MASKED`, where an operand that is
    infinite or NaN may be multiplied by 0: in each matrix product, and elsewhere unless the
    operands are 0 outside of the band, too, or finite Python numbers.
    """
    if operation.name not in MASKED or type.dtype.kind not in "fVc":
        return False
    if operation.name == "matmul":
        return True
    applied = AppliedOperation({}, operands, type.shape)
    result = Diagonals(
        -INFINITY if band.bottom is None else band.bottom,
        INFINITY if band.top is None else band.top,
    )
    return any(
        not _is_finite_number(v) and not result.contains(applied.operand(k))
        for k, v in enumerate(operands)
    )


def _is_finite_number(value: Value) -> bool:
    """Return whether a value is a Python number that is neither infinite nor NaN."""
    return value.is_scalar and bool(np.isfinite(value.buffer))
