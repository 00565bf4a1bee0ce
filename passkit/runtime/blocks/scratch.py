"""Scratch of a tile: arrays one behind the other, or where they are told to lie; and registers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd
from typing import Any

import numpy as np

from passkit.ast.stage import Buffer, Place
from passkit.runtime.blocks.memory import Ground, Journal, Memory
from passkit.values.size import evaluate

Array = Any

POISON = 0xFF
"""The byte of what has no value: floats of it are NaN."""


class Scratch:
    """What the tiles of a kernel have, one after the other: room for a tile, and for each row."""

    def __init__(
        self, buffers: Sequence[Buffer], sizes: Mapping[str, int], journal: Journal
    ) -> None:
        self.buffers, self.sizes, self.journal = buffers, sizes, journal
        self.rows = 0
        self.rooms: dict[bool, list[tuple[Array, Ground]]] = {True: [], False: []}
        self.memory: dict[str, Memory] = {}
        self._make(False, 1)

    def begin_tile(self) -> None:
        """Forget what the tile before had."""
        self._poison(False)

    def begin_rows(self, rows: int) -> None:
        """Room for so many rows, that each of them forgets what another had there."""
        if rows > self.rows:
            self.rows = rows
            self._make(True, rows)
        self._poison(True)

    def _poison(self, of_row: bool) -> None:
        for data, ground in self.rooms[of_row]:
            data[:] = POISON
            ground.owner[:] = 0

    def _make(self, of_row: bool, rows: int) -> None:
        """Rooms: one for all arrays that are told where to lie, one for each of the others."""
        mine = [b for b in self.buffers if of_row == (b.of_row or b.place is Place.LANES)]
        told = [b for b in mine if b.offset is not None]
        rooms = [[b] for b in mine if b.offset is None] + ([told] if told else [])
        self.rooms[of_row] = [self._room(room, rows) for room in rooms]

    def _room(self, room: Sequence[Buffer], rows: int) -> tuple[Array, Ground]:
        offsets = [0 if b.offset is None else int(evaluate(b.offset, self.sizes)) for b in room]
        extents = [int(evaluate(b.extent, self.sizes)) for b in room]
        unit = gcd(*offsets, *(b.dtype.nbytes for b in room))
        ends = (o + n * b.dtype.nbytes for b, o, n in zip(room, offsets, extents, strict=True))
        total = -(-max(ends) // unit)
        apart = room[0].of_row or room[0].place is Place.LANES
        ground = Ground(rows * total, True, False, not apart)
        data = np.full((rows, total * unit), POISON, np.uint8)
        for buffer, offset, extent in zip(room, offsets, extents, strict=True):
            nbytes = buffer.dtype.nbytes
            place = offset // unit, total, nbytes // unit
            view = data[:, offset : offset + extent * nbytes].view(buffer.dtype.numpy)
            number = 1 + self.buffers.index(buffer)
            self.memory[buffer.name] = Memory(buffer, view, self.journal, ground, number, place)
        return data, ground
