"""Importers of matrix diagonals and bands.

A band of several diagonals is stored as rows, the highest diagonal first; shorter ones are aligned
left or right. Positions are computed during import and become constant gather indices.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.imported_value import ImportCall, ImportedValue
from passkit.frontends.tf_graphdef.operators import ops
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.registry import ImportResult, op_importer
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry, as_entry
from passkit.values.size import Shape, numel

ALIGNS = (b"LEFT_RIGHT", b"RIGHT_LEFT", b"LEFT_LEFT", b"RIGHT_RIGHT")


@frozen
class Band:
    """The diagonals from ``low`` to ``high``, with their alignment.

    ``upper_left`` and ``lower_left`` say whether those above and below the main one are
    left-aligned; the main diagonal is if either are.
    """

    low: int
    high: int
    upper_left: bool
    lower_left: bool

    @property
    def count(self) -> int:
        """Number of diagonals."""
        return self.high - self.low + 1

    def longest(self, rows: int, columns: int) -> int:
        """Return the number of elements of the band's longest diagonal.

        ``rows`` and ``columns`` are the size of the matrix.
        """
        return min(rows + min(self.high, 0), columns - max(self.low, 0))

    def positions(self, rows: int, columns: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return each matrix element's position in the flat band, and whether it is in the band.

        ``rows`` and ``columns`` are the size of the matrix.

        Returns:
            Two arrays of shape (rows, columns). Integer positions in the band, whose rows of
            `longest` elements are stored one after the other; 0 outside the band. And bools.
        """
        i, j = np.indices((rows, columns))
        diagonal = j - i
        length = np.minimum(rows + np.minimum(diagonal, 0), columns - np.maximum(diagonal, 0))
        is_left_aligned = ((diagonal >= 0) & self.upper_left) | ((diagonal <= 0) & self.lower_left)
        longest = self.longest(rows, columns)
        offset_in_diagonal = np.minimum(i, j) + np.where(is_left_aligned, 0, longest - length)
        is_inside = (diagonal >= self.low) & (diagonal <= self.high)
        return np.where(
            is_inside, (self.high - diagonal) * longest + offset_in_diagonal, 0
        ), is_inside


def _read_band(call: ImportCall, k: ImportedValue) -> Band:
    """Return the band that the input ``k`` and the attribute ``align`` describe.

    Args:
        call: The node. Without the attribute ``align``, diagonals are aligned LEFT_LEFT in V2 and
            RIGHT_LEFT in V3.
        k: One diagonal, or the lowest and the highest; 0 is the main diagonal, positive ones are
            above.

    Raises:
        ModelError: If ``k`` is not known, is neither one number nor two in ascending order, or
            ``align`` is unknown or no string.
    """
    bounds = call.ints(k, "k")
    if len(bounds) not in (1, 2) or bounds[0] > bounds[-1]:
        raise ModelError(
            f"{call.where} needs one k, or a lowest and a highest k, got {call.shown(k)}"
        )
    default_align = b"LEFT_LEFT" if call.node.op.endswith("V2") else b"RIGHT_LEFT"
    align = call.attr("align", "s", default_align)
    if align not in ALIGNS:
        shown_align = short(align.decode(errors="replace"))
        raise ModelError(f"{call.where} needs align to be one of {_ALIGNS}, got {shown_align}")
    upper, lower = align.split(b"_")
    return Band(bounds[0], bounds[-1], upper == b"LEFT", lower == b"LEFT")


_ALIGNS = ", ".join(a.decode() for a in ALIGNS)


def _matrix_size(call: ImportCall, shape: Shape, band: Band) -> tuple[int, int]:
    """Return the number of rows and columns: the last two extents of ``shape``.

    The memory of index arrays of that size is taken from the budget. ``call`` is the node.

    Raises:
        ModelError: If ``shape`` has fewer than two axes or the extents are unknown, a diagonal of
            the band is outside the matrix (except in an empty matrix, 0 by 0), or the budget is
            exceeded.
    """
    rows, columns = shape[-2:] if len(shape) > 1 else (None, None)
    if not isinstance(rows, int) or not isinstance(columns, int):
        raise ModelError(
            f"{call.where} needs matrices of a known size, got {show_shape(shape)}; "
            f"give load the full shape of its input in shapes="
        )
    if not -rows < band.low <= band.high < columns and (rows, columns) != (0, 0):
        raise ModelError(
            f"{call.where} needs diagonals in the range {1 - rows} to {columns - 1} of matrices of "
            f"{rows} rows and {columns} columns, got {band.low} to {band.high}"
        )
    call.budget.take(24 * rows * columns, call.where)
    return rows, columns


@op_importer("Diag")
def _diag(call: ImportCall, x: ImportedValue) -> ImportResult:
    """Import Diag: element (i, j) moves to (i, j, i, j).

    ``call`` is the node, ``x`` its input.

    Raises:
        ModelError: If the rank is unknown.
    """
    shape = call.shape(x)
    diagonal_matrix = ops.diag_embed(ops.reshape(x.entry, shape=(numel(shape),)))
    return ops.reshape(diagonal_matrix, shape=shape * 2, name=call.name)


@op_importer("DiagPart")
def _diag_part(call: ImportCall, x: ImportedValue) -> ImportResult:
    """Import DiagPart: the elements (i, i) of an array of shape (*half, *half), in shape ``half``.

    ``call`` is the node, ``x`` its input.

    Raises:
        ModelError: If the rank is unknown, or the shape does not consist of two equal halves.
    """
    shape = call.shape(x)
    half = shape[: len(shape) // 2]
    if len(shape) % 2 or half != shape[len(half) :]:
        raise ModelError(f"{call.where} needs a shape of two equal halves, got {show_shape(shape)}")
    flat = ops.reshape(x.entry, shape=(numel(half),) * 2)
    return ops.reshape(ops.diagonal(flat), shape=half, name=call.name)


@op_importer("MatrixDiag")
def _matrix_diag(call: ImportCall, x: ImportedValue) -> ImportResult:
    """Import MatrixDiag: matrices with the last axis of ``x`` as main diagonal, 0 elsewhere.

    ``call`` is the node.

    Raises:
        ShapeError: If ``x`` is a scalar.
    """
    return ops.diag_embed(x.entry, name=call.name)


@op_importer("MatrixDiagPart")
def _matrix_diag_part(call: ImportCall, x: ImportedValue) -> ImportResult:
    """Import MatrixDiagPart: the main diagonals of the matrices in the last two axes of ``x``.

    ``call`` is the node.

    Raises:
        ShapeError: If ``x`` has fewer than two axes, or it is unknown which of the two is shorter.
    """
    return ops.diagonal(x.entry, name=call.name)


@op_importer("MatrixSetDiag")
def _matrix_set_diag(call: ImportCall, x: ImportedValue, diagonal: ImportedValue) -> ImportResult:
    """Import MatrixSetDiag: ``x`` with the main diagonals of its matrices replaced.

    ``call`` is the node.

    Raises:
        ModelError: If the rank or the size of the matrices is unknown, ``diagonal`` has another
            length than theirs, or the matrices exceed the memory budget of the import.
        ShapeError: If the batch axes of ``x`` and ``diagonal`` do not broadcast.
        DTypeError: If their dtypes differ.
    """
    return _replace_band(call, x, diagonal, Band(0, 0, True, True))


@op_importer("MatrixDiagV2", "MatrixDiagV3")
def _matrix_diag_band(
    call: ImportCall,
    x: ImportedValue,
    k: ImportedValue,
    num_rows: ImportedValue,
    num_cols: ImportedValue,
    padding: ImportedValue,
) -> ImportResult:
    """Import MatrixDiagV2 and MatrixDiagV3: matrices with a band, and ``padding`` elsewhere.

    Args:
        call: The node.
        x: Diagonals of shape (…, longest), or (…, diagonals, longest) for several.
        k: The diagonal, or the lowest and the highest, known during import.
        num_rows: Number of rows, or -1 for the least that holds the band; known during import.
        num_cols: Number of columns, or -1 for the least that holds the band. If both are -1, the
            matrices are square.
        padding: Scalar outside the band.

    Raises:
        ModelError: If ``k``, ``num_rows``, ``num_cols`` or ``align`` is not known or invalid, the
            rank or the length of the diagonals is unknown, they do not fit the matrix or the number
            of diagonals, or the matrix exceeds the memory budget of the import.
        ShapeError: If ``x`` is a scalar and a single diagonal with padding 0 is requested.
        DTypeError: If ``x`` and ``padding`` differ in dtype. For a single diagonal of square
            matrices with a known padding of 0, neither the dtype of the padding nor the length of
            the diagonals matters.
    """
    band, shape = _read_band(call, k), call.shape(x)
    rows, columns = call.integer(num_rows, "num_rows"), call.integer(num_cols, "num_cols")
    if band.count == 1 and rows == columns == -1 and _is_zero(padding):
        return ops.diag_embed(x.entry, offset=band.low, name=call.name)
    longest = shape[-1] if shape else None
    if not isinstance(longest, int):
        raise ModelError(
            f"{call.where} needs diagonals of a known length, got {show_shape(shape)}; "
            f"give load the full shape of its input in shapes="
        )
    min_size = longest - min(band.high, 0), longest + max(band.low, 0)
    if rows == columns == -1:
        rows = columns = max(min_size)
    rows, columns = (
        (min_size[0] if rows == -1 else rows),
        (min_size[1] if columns == -1 else columns),
    )
    rows, columns = _matrix_size(call, (rows, columns), band)
    if band.longest(rows, columns) != longest:
        raise ModelError(
            f"{call.where} needs diagonals of length {band.longest(rows, columns)} for {rows} rows "
            f"and {columns} columns, got {show_shape(shape)}"
        )
    positions, is_inside = band.positions(rows, columns)
    gathered = ops.gather(
        _flatten_band(call, x, band), as_entry(positions.astype(np.int64)), axis=-1
    )
    return ops.where(as_entry(is_inside), gathered, padding.entry, name=call.name)


@op_importer("MatrixDiagPartV2", "MatrixDiagPartV3")
def _matrix_band(
    call: ImportCall, x: ImportedValue, k: ImportedValue, padding: ImportedValue
) -> ImportResult:
    """Import MatrixDiagPartV2 and MatrixDiagPartV3: a band of each matrix.

    ``call`` is the node.

    Returns:
        An array of shape (…, longest) for one diagonal, else (…, diagonals, longest), with the
        highest diagonal first; ``padding`` fills diagonals that are shorter. It is not read for one
        diagonal.

    Raises:
        ModelError: If ``k`` or ``align`` is invalid, the rank of ``x`` is unknown, or for several
            diagonals the size of the matrices is unknown, does not contain them, or exceeds the
            memory budget of the import.
        ShapeError: If one diagonal is read of an array of fewer than two axes or of unknown size.
        DTypeError: If several diagonals are read, and ``x`` and ``padding`` differ in dtype.
    """
    band, shape = _read_band(call, k), call.shape(x)
    if band.count == 1:
        return ops.diagonal(x.entry, offset=band.low, name=call.name)
    rows, columns = _matrix_size(call, shape, band)
    longest = band.longest(rows, columns)
    positions, is_inside = band.positions(rows, columns)
    matrix_positions = np.zeros(band.count * longest, np.int64)
    is_filled = np.zeros(matrix_positions.shape, bool)
    matrix_positions[positions[is_inside]] = np.arange(rows * columns).reshape(rows, columns)[
        is_inside
    ]
    is_filled[positions[is_inside]] = True
    flat = ops.reshape(x.entry, shape=(*shape[:-2], rows * columns))
    gathered = ops.gather(flat, as_entry(matrix_positions.reshape(band.count, longest)), axis=-1)
    is_element = as_entry(is_filled.reshape(band.count, longest))
    return ops.where(is_element, gathered, padding.entry, name=call.name)


@op_importer("MatrixSetDiagV2", "MatrixSetDiagV3")
def _matrix_set_band(
    call: ImportCall, x: ImportedValue, diagonal: ImportedValue, k: ImportedValue
) -> ImportResult:
    """Import MatrixSetDiagV2 and MatrixSetDiagV3: ``x`` with the diagonals ``k`` replaced.

    Args:
        call: The node.
        x: Matrices, in the last two axes.
        diagonal: New elements, of shape (…, longest), or (…, diagonals, longest) with the highest
            diagonal first.
        k: One diagonal, or the lowest and the highest, known during import; 0 is the main one.

    Raises:
        ModelError: If ``k`` or ``align`` is invalid, the size of the matrices is unknown, does not
            contain the band, or exceeds the memory budget of the import, or number or length of the
            diagonals is not the band's.
        ShapeError: If the batch axes do not broadcast.
        DTypeError: If the dtypes differ.
    """
    return _replace_band(call, x, diagonal, _read_band(call, k))


def _replace_band(call: ImportCall, x: ImportedValue, diagonal: ImportedValue, band: Band) -> Entry:
    """Return the matrices ``x`` with a band replaced by ``diagonal``.

    Args:
        call: The node.
        x: Matrices, in the last two axes.
        diagonal: New elements, of shape (…, longest), or (…, diagonals, longest).
        band: The diagonals to replace.

    Raises:
        ModelError: If the size of the matrices is unknown, does not contain the band, or exceeds
            the memory budget of the import, or the number or length of the diagonals is not the
            band's.
        ShapeError: If the batch axes do not broadcast.
        DTypeError: If the dtypes of ``x`` and ``diagonal`` differ.
    """
    rows, columns = _matrix_size(call, call.shape(x), band)
    flat = _flatten_band(call, diagonal, band)
    shape, longest = call.shape(diagonal), band.longest(rows, columns)
    if not shape or (isinstance(shape[-1], int) and shape[-1] != longest):
        raise ModelError(
            f"{call.where} needs diagonals of {longest} elements along axis -1, got "
            f"{show_shape(shape)}"
        )
    positions, is_inside = band.positions(rows, columns)
    gathered = ops.gather(flat, as_entry(positions.astype(np.int64)), axis=-1)
    return ops.where(as_entry(is_inside), gathered, x.entry, name=call.name)  # type: ignore[no-any-return]


def _flatten_band(call: ImportCall, x: ImportedValue, band: Band) -> Entry:
    """Return the diagonals ``x`` with their last two axes merged; a single one is unchanged.

    ``call`` is the node.

    Raises:
        ModelError: If the rank is unknown, or the number of diagonals, in axis -2, differs from the
            band's.
    """
    shape = call.shape(x)
    if band.count == 1:
        return x.entry
    if len(shape) < 2 or shape[-2] != band.count:
        raise ModelError(
            f"{call.where} needs {band.count} diagonals along axis -2, got {show_shape(shape)}"
        )
    return ops.reshape(x.entry, shape=(*shape[:-2], band.count * shape[-1]))  # type: ignore[no-any-return]


def _is_zero(value: ImportedValue) -> bool:
    """Return whether a value is known during import and its one element is 0 (or False)."""
    array = value.array
    if array is None or array.dtype == object or array.size != 1:
        return False
    return not array.any()


@op_importer("MatrixBandPart")
def _band_part(
    call: ImportCall, x: ImportedValue, low: ImportedValue, high: ImportedValue
) -> ImportResult:
    """Import MatrixBandPart: keep ``low`` diagonals below and ``high`` above the main one, else 0.

    A negative number keeps all diagonals on that side. Both are known during import. ``call`` is
    the node.

    Raises:
        ModelError: If a number is not one integer known during import.
        ShapeError: If ``x`` has fewer than two axes and one of the numbers is not negative.
    """
    return ops.band_part(
        x.entry,
        num_lower=call.integer(low, "num_lower"),
        num_upper=call.integer(high, "num_upper"),
        name=call.name,
    )
