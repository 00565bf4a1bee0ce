"""Diagonals and bands of matrices.

A band of several diagonals is kept as rows, the highest first; short ones are aligned left or
right. What stands where is known when the model is loaded, and becomes a constant of indices.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.operators import ops
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.table import Result, row
from passkit.frontends.tf_graphdef.value import Array, Call, Value
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry, as_entry
from passkit.values.size import Shape, numel

ALIGNS = (b"LEFT_RIGHT", b"RIGHT_LEFT", b"LEFT_LEFT", b"RIGHT_RIGHT")


@frozen
class Band:
    """The diagonals from ``low`` to ``high``, and whether those above and below are left-aligned.

    The main one is on the left if either is.
    """

    low: int
    high: int
    upper_left: bool
    lower_left: bool

    @property
    def count(self) -> int:
        """How many diagonals there are."""
        return self.high - self.low + 1

    def longest(self, rows: int, columns: int) -> int:
        """The length of the longest diagonal in a matrix of this size."""
        return min(rows + min(self.high, 0), columns - max(self.low, 0))

    def places(self, rows: int, columns: int) -> tuple[Array, Array]:
        """For each element of a matrix where it is in the flat band, and whether it is at all."""
        i, j = np.indices((rows, columns))
        d = j - i
        length = np.minimum(rows + np.minimum(d, 0), columns - np.maximum(d, 0))
        left = ((d >= 0) & self.upper_left) | ((d <= 0) & self.lower_left)
        longest = self.longest(rows, columns)
        at = np.minimum(i, j) + np.where(left, 0, longest - length)
        inside = (d >= self.low) & (d <= self.high)
        return np.where(inside, (self.high - d) * longest + at, 0), inside


def _band(call: Call, k: Value) -> Band:
    found = call.ints(k, "k")
    if len(found) not in (1, 2) or found[0] > found[-1]:
        raise ModelError(f"{call.where} needs k, or a lowest and highest k, got {call.shown(k)}")
    old = b"LEFT_LEFT" if call.node.op.endswith("V2") else b"RIGHT_LEFT"
    align = call.attr("align", "s", old)
    if align not in ALIGNS:
        shown = short(align.decode(errors="replace"))
        raise ModelError(f"{call.where} needs align to be one of {_ALIGNS}, got {shown}")
    upper, lower = align.split(b"_")
    return Band(found[0], found[-1], upper == b"LEFT", lower == b"LEFT")


_ALIGNS = ", ".join(a.decode() for a in ALIGNS)


def _sides(call: Call, shape: Shape, band: Band) -> tuple[int, int]:
    """Rows and columns. Raises: ModelError where they are unknown, or hold no such diagonals."""
    rows, columns = shape[-2:] if len(shape) > 1 else (None, None)
    if not isinstance(rows, int) or not isinstance(columns, int):
        raise ModelError(
            f"{call.where} needs matrices of a known size, got {show_shape(shape)}; "
            f"give load the whole shape of its input in shapes="
        )
    if not -rows < band.low <= band.high < columns and (rows, columns) != (0, 0):
        raise ModelError(
            f"{call.where} needs diagonals from {1 - rows} to {columns - 1}, got {band.low} to "
            f"{band.high}"
        )
    call.budget.take(24 * rows * columns, call.where)
    return rows, columns


@row("Diag")
def _diag(call: Call, x: Value) -> Result:
    """All axes once more: the element at (i, j) goes to (i, j, i, j)."""
    shape = call.shape(x)
    built = ops.diag_embed(ops.reshape(x.entry, shape=(numel(shape),)))
    return ops.reshape(built, shape=shape * 2, name=call.name)


@row("DiagPart")
def _diag_part(call: Call, x: Value) -> Result:
    shape = call.shape(x)
    half = shape[: len(shape) // 2]
    if len(shape) % 2 or half != shape[len(half) :]:
        raise ModelError(f"{call.where} needs every axis twice, got {show_shape(shape)}")
    flat = ops.reshape(x.entry, shape=(numel(half),) * 2)
    return ops.reshape(ops.diagonal(flat), shape=half, name=call.name)


@row("MatrixDiag")
def _matrix_diag(call: Call, x: Value) -> Result:
    return ops.diag_embed(x.entry, name=call.name)


@row("MatrixDiagPart")
def _matrix_diag_part(call: Call, x: Value) -> Result:
    return ops.diagonal(x.entry, name=call.name)


@row("MatrixSetDiag")
def _matrix_set_diag(call: Call, x: Value, diagonal: Value) -> Result:
    return _set(call, x, diagonal, Band(0, 0, True, True))


@row("MatrixDiagV2", "MatrixDiagV3")
def _matrix_diag_band(
    call: Call, x: Value, k: Value, num_rows: Value, num_cols: Value, padding: Value
) -> Result:
    band, shape = _band(call, k), call.shape(x)
    rows, columns = call.integer(num_rows, "num_rows"), call.integer(num_cols, "num_cols")
    if band.count == 1 and rows == columns == -1 and _is_zero(padding):
        return ops.diag_embed(x.entry, offset=band.low, name=call.name)
    longest = shape[-1] if shape else None
    if not isinstance(longest, int):
        raise ModelError(
            f"{call.where} needs diagonals of a known length, got {show_shape(shape)}; "
            f"give load the whole shape of its input in shapes="
        )
    least = longest - min(band.high, 0), longest + max(band.low, 0)
    if rows == columns == -1:
        rows = columns = max(least)
    rows, columns = (least[0] if rows == -1 else rows), (least[1] if columns == -1 else columns)
    rows, columns = _sides(call, (rows, columns), band)
    if band.longest(rows, columns) != longest:
        raise ModelError(
            f"{call.where} needs diagonals of length {band.longest(rows, columns)} for {rows} rows "
            f"and {columns} columns, got {show_shape(shape)}"
        )
    at, inside = band.places(rows, columns)
    found = ops.gather(_flat(call, x, band), as_entry(at.astype(np.int64)), axis=-1)
    return ops.where(as_entry(inside), found, padding.entry, name=call.name)


@row("MatrixDiagPartV2", "MatrixDiagPartV3")
def _matrix_band(call: Call, x: Value, k: Value, padding: Value) -> Result:
    band, shape = _band(call, k), call.shape(x)
    if band.count == 1:
        return ops.diagonal(x.entry, offset=band.low, name=call.name)
    rows, columns = _sides(call, shape, band)
    longest = band.longest(rows, columns)
    at, inside = band.places(rows, columns)
    back = np.zeros(band.count * longest, np.int64)
    there = np.zeros(back.shape, bool)
    back[at[inside]] = np.arange(rows * columns).reshape(rows, columns)[inside]
    there[at[inside]] = True
    flat = ops.reshape(x.entry, shape=(*shape[:-2], rows * columns))
    found = ops.gather(flat, as_entry(back.reshape(band.count, longest)), axis=-1)
    is_there = as_entry(there.reshape(band.count, longest))
    return ops.where(is_there, found, padding.entry, name=call.name)


@row("MatrixSetDiagV2", "MatrixSetDiagV3")
def _matrix_set_band(call: Call, x: Value, diagonal: Value, k: Value) -> Result:
    return _set(call, x, diagonal, _band(call, k))


def _set(call: Call, x: Value, diagonal: Value, band: Band) -> Entry:
    """``x`` with a band of it replaced."""
    rows, columns = _sides(call, call.shape(x), band)
    at, inside = band.places(rows, columns)
    found = ops.gather(_flat(call, diagonal, band), as_entry(at.astype(np.int64)), axis=-1)
    return ops.where(as_entry(inside), found, x.entry, name=call.name)  # type: ignore[no-any-return]


def _flat(call: Call, x: Value, band: Band) -> Entry:
    """The rows of a band one after the other."""
    shape = call.shape(x)
    if band.count == 1:
        return x.entry
    if len(shape) < 2 or shape[-2] != band.count:
        raise ModelError(
            f"{call.where} needs {band.count} diagonals in the last axis but one, got "
            f"{show_shape(shape)}"
        )
    return ops.reshape(x.entry, shape=(*shape[:-2], band.count * shape[-1]))  # type: ignore[no-any-return]


def _is_zero(value: Value) -> bool:
    return value.known is not None and value.known.size == 1 and not value.known.any()


@row("MatrixBandPart")
def _band_part(call: Call, x: Value, low: Value, high: Value) -> Result:
    return ops.band_part(
        x.entry,
        num_lower=call.integer(low, "num_lower"),
        num_upper=call.integer(high, "num_upper"),
        name=call.name,
    )
