"""Scratch memory of tiles: separate arrays, arrays at planned offsets of a region, registers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd
from typing import Any

import numpy as np

from passkit.ast.stage import Buffer, Place
from passkit.runtime.blocks.memory import CheckedBuffer, StageLog, TrackedRegion
from passkit.values.size import evaluate

Array = Any

POISON = 0xFF
"""The byte of memory without a value: floats of it are NaN."""


class TileScratch:
    """The scratch memory that the tiles of a kernel use one after the other.

    Some buffers exist once for a tile, others for each row of a part.

    Args:
        buffers: the scratch buffers of the kernel.
        sizes: the values of its size arguments.
        log: the stages, for messages.

    Attributes:
        buffers_by_name: the buffers whose accesses are checked.
    """

    def __init__(self, buffers: Sequence[Buffer], sizes: Mapping[str, int], log: StageLog) -> None:
        self.buffers, self.sizes, self.log = buffers, sizes, log
        self.rows = 0
        self.regions: dict[bool, list[tuple[Array, TrackedRegion]]] = {True: [], False: []}
        self.buffers_by_name: dict[str, CheckedBuffer] = {}
        self._allocate(False, 1)

    def begin_tile(self) -> None:
        """Erase the values of the previous tile, in buffers that exist once for a tile."""
        self._erase(False)

    def begin_rows(self, rows: int) -> None:
        """Provide memory for ``rows`` rows, and erase the values of the previous rows."""
        if rows > self.rows:
            self.rows = rows
            self._allocate(True, rows)
        self._erase(True)

    def _erase(self, of_row: bool) -> None:
        """Overwrite all arrays of rows (``of_row``) or of a tile with `POISON`.

        Loads of them fail until something is stored.
        """
        for data, region in self.regions[of_row]:
            data[:] = POISON
            region.owner[:] = 0

    def _allocate(self, of_row: bool, rows: int) -> None:
        """Allocate the arrays of ``rows`` rows (``of_row``) or of a tile.

        One region holds all arrays with an offset, and each other array has its own.
        """
        buffers = [b for b in self.buffers if of_row == (b.of_row or b.place is Place.LANES)]
        with_offset = [b for b in buffers if b.offset is not None]
        groups = [[b] for b in buffers if b.offset is None]
        groups += [with_offset] if with_offset else []
        self.regions[of_row] = [self._region(group, rows) for group in groups]

    def _region(self, buffers: Sequence[Buffer], rows: int) -> tuple[Array, TrackedRegion]:
        """Allocate a region that holds some buffers at their offsets, for ``rows`` rows.

        The checked buffers are added to ``buffers_by_name``.

        Returns: Its bytes, an array of shape (rows, bytes), and the histories of accesses.
        """
        offsets = [0 if b.offset is None else int(evaluate(b.offset, self.sizes)) for b in buffers]
        extents = [int(evaluate(b.extent, self.sizes)) for b in buffers]
        unit = gcd(*offsets, *(b.dtype.nbytes for b in buffers))
        ends = (o + n * b.dtype.nbytes for b, o, n in zip(buffers, offsets, extents, strict=True))
        row_units = -(-max(ends) // unit)
        is_per_row = buffers[0].of_row or buffers[0].place is Place.LANES
        region = TrackedRegion(rows * row_units, tracked=True, tiles=False, rows=not is_per_row)
        data = np.full((rows, row_units * unit), POISON, np.uint8)
        for buffer, offset, extent in zip(buffers, offsets, extents, strict=True):
            nbytes = buffer.dtype.nbytes
            elements = data[:, offset : offset + extent * nbytes].view(buffer.dtype.numpy)
            self.buffers_by_name[buffer.name] = CheckedBuffer(
                buffer,
                elements,
                self.log,
                region,
                number=1 + self.buffers.index(buffer),
                layout=(offset // unit, row_units, nbytes // unit),
            )
        return data, region
