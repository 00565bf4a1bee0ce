"""The buffers of a kernel: every access is checked against bounds, and against other threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from passkit.ast.stage import Buffer, Place
from passkit.errors import BlocksError
from passkit.runtime.blocks.marks import APART, NOBODY, Marks, Who

Array = Any

WAY_OUT = "target='interpret' goes round it until it is mended"
"""What to do about a kernel that passkit made wrong."""


class Journal:
    """The stages of a run by number, and how messages name the kernel."""

    def __init__(self, kernel: str) -> None:
        self.kernel = kernel
        self.stages: list[str] = []

    def number(self, stage: str) -> int:
        """The number of a stage that begins."""
        self.stages.append(stage)
        return len(self.stages) - 1

    def at(self, who: Who) -> str:
        """Where an access is made."""
        return f"kernel {self.kernel}, stage {self.stages[who.stage]} of tile {who.tile}"


class Ground:
    """Where buffers lie, in units of the smallest element: who has touched a unit, and its owner.

    ``owner`` is the number of the buffer whose value lies there, 0 for none. What is only read is
    not ``watched``. ``tiles`` and ``rows`` say whether several tiles, or rows, have the same units.
    """

    def __init__(self, size: int, watched: bool, tiles: bool, rows: bool) -> None:
        self.watched = watched
        self.owner = np.zeros(size, np.int16)
        self.loads = Marks(size if watched else 0, tiles, rows)
        self.stores = Marks(size if watched else 0, tiles, rows)

    def forget_tiles(self) -> None:
        """All tiles have come so far."""
        self.loads.forget_tiles()
        self.stores.forget_tiles()


class Memory:
    """A buffer as ``data``: an array of its elements, for each row that has its own.

    On its ground it begins at unit ``base``, ``step`` units from one row to the next, and its
    elements have ``grain`` units. Its ``number`` is what owners are called there.
    """

    def __init__(
        self,
        buffer: Buffer,
        data: Array,
        journal: Journal,
        ground: Ground,
        number: int = 1,
        place: tuple[int, int, int] = (0, 0, 1),
    ) -> None:
        self.buffer, self.data, self.journal = buffer, data, journal
        self.extent = data.shape[1]
        self.ground, self.number = ground, number
        self.base, self.step, self.grain = place

    @property
    def is_private(self) -> bool:
        """Whether each thread of a row has an element of its own that no other can reach."""
        return self.buffer.place is Place.LANES

    def check_stored(self) -> None:
        """Raises: BlocksError for an element of a result that no thread has stored."""
        if self.buffer.written:
            left = np.flatnonzero(self.ground.stores.stage == NOBODY)
            if left.size:
                raise BlocksError(
                    f"kernel {self.journal.kernel} leaves {self.buffer.name}[{left[0]}] as it was, "
                    f"one of {left.size} of its {self.extent} elements; {WAY_OUT}"
                )

    # Accesses: ``index`` and the threads of ``who`` are flat arrays of one size.

    def load(self, index: Array, who: Who) -> Array:
        """The elements at an index. Raises: BlocksError for what no thread may load."""
        row = self._row("loads", index, who)
        units, each = self._units(row, index, who)
        owner = self.ground.owner[units]
        unknown = self._any(owner != self.number)
        if unknown.any():
            where = self._element(index, unknown)
            there = "another array's value" if self._any(owner != 0)[unknown][0] else "nothing"
            raise BlocksError(
                f"{self.journal.at(who)} loads {where}, where {there} is stored; {WAY_OUT}"
            )
        if self.ground.watched:
            self._check("loads", index, units, each, ("stores",))
            self.ground.loads.join(units, each)
        return self.data[row, index]

    def store(self, index: Array, value: Array, who: Who) -> None:
        """Set the elements at an index. Raises: BlocksError for what no thread may store."""
        if not self.buffer.written and not self.is_private:
            raise BlocksError(
                f"{self.journal.at(who)} stores to {self.buffer.name}, which the kernel declares "
                f"that it only reads; {WAY_OUT}"
            )
        row = self._row("stores", index, who)
        units, each = self._units(row, index, who)
        self._check("stores", index, units, each, ("loads", "stores"))
        twice = self._any(self.ground.stores.replace(units, each))
        if twice.any():
            where = self._element(index, twice)
            raise BlocksError(f"{self.journal.at(who)}: two threads store {where}; {WAY_OUT}")
        self.ground.owner[units] = self.number
        self.data[row, index] = value

    def _row(self, does: str, index: Array, who: Who) -> Array:
        """Of which row elements are, if they lie in the buffer."""
        outside = (index < 0) | (index >= self.extent)
        if outside.any():
            where = self._element(index, outside)
            raise BlocksError(
                f"{self.journal.at(who)} {does} {where}, outside of its {self.extent} elements; "
                f"{WAY_OUT}"
            )
        return who.row // APART if len(self.data) > 1 else 0

    def _units(self, row: Array, index: Array, who: Who) -> tuple[Array, Who]:
        """The units of elements, and who touches each of them."""
        first = self.base + row * self.step + index * self.grain
        if self.grain == 1:
            return first, who
        return (first[:, None] + np.arange(self.grain)).ravel(), who.repeated(self.grain)

    def _any(self, of_units: Array) -> Array:
        """For which elements something holds of any unit."""
        return of_units if self.grain == 1 else of_units.reshape(-1, self.grain).any(1)

    def _check(
        self, does: str, index: Array, units: Array, who: Who, earlier: tuple[str, ...]
    ) -> None:
        """Raises: BlocksError where an access is in no order with an earlier one."""
        for did in earlier:
            marks: Marks = getattr(self.ground, did)
            if self.is_private:
                bad = marks.of_others(units, who) & (self.ground.owner[units] == self.number)
            else:
                bad = marks.out_of_order(units, who)
                if did == "loads":
                    bad &= ~marks.before_joining(units, who)
            if bad.any():
                where = self._element(index, self._any(bad))
                self._race(f"{does} {where}", did, marks, units[bad][0], who)
            if did != does:
                bad = self._any(marks.in_later_step(units, who))
                if bad.any():
                    where = self._element(index, bad)
                    raise BlocksError(
                        f"{self.journal.at(who)} {does} {where}, which a later turn of its serial "
                        f"loops {did}; only folds and scans may go from turn to turn"
                    )

    def _race(self, does: str, did: str, marks: Marks, at: int, who: Who) -> NoReturn:
        other = self.journal.stages[marks.stage[at]]
        if marks.tile[at] != who.tile and self.buffer.place is Place.GLOBAL:
            raise BlocksError(
                f"{self.journal.at(who)} {does}, which stage {other} of another tile {did}, and "
                f"tiles run in any order; {WAY_OUT}"
            )
        raise BlocksError(
            f"{self.journal.at(who)} {does}, which another thread {did} in stage {other} with no "
            f"wait between; let one of them wait, or one thread do both"
        )

    def _element(self, index: Array, bad: Array) -> str:
        return f"{self.buffer.name}[{index[bad][0]}]"


def of_params(buffers: Sequence[Buffer], arrays: Sequence[Array], journal: Journal) -> list[Memory]:
    """Parameters; those that begin at one address have one ground, and values if either has."""
    found: dict[tuple[int, int, int], Ground] = {}
    written = {_address(a) for b, a in zip(buffers, arrays, strict=True) if b.written}
    made = []
    for buffer, array in zip(buffers, arrays, strict=True):
        at = _address(array)
        if at not in found:
            found[at] = Ground(array.size, at in written, True, True)
        if not buffer.written:
            found[at].owner[:] = 1
        made.append(Memory(buffer, array.reshape(1, -1), journal, found[at]))
    return made


def _address(array: Array) -> tuple[int, int, int]:
    return array.ctypes.data if array.size else -1, array.itemsize, array.size
