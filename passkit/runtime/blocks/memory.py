"""The buffers of a kernel: every access is checked against bounds, and against other threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from passkit.errors import BlocksError
from passkit.runtime.blocks.marks import APART, NOBODY, Marks, Who
from passkit.stage import Buffer, Place

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


class Memory:
    """A buffer as ``rows`` arrays of ``extent`` elements, one for each row that has its own.

    ``known`` are the elements that have a value. Only what is written has ``loads`` and ``stores``.
    """

    def __init__(self, buffer: Buffer, data: Array, extent: int, journal: Journal) -> None:
        self.buffer, self.data, self.extent, self.journal = buffer, data, extent, journal
        outside = buffer.place is Place.GLOBAL
        self.known = np.full(data.size, outside and not buffer.written)
        self.loads: Marks | None = None
        self.stores: Marks | None = None
        if buffer.written or not outside:
            apart = buffer.of_row or self.is_private
            self.loads = Marks(data.size, outside, not apart)
            self.stores = Marks(data.size, outside, not apart)

    @property
    def is_private(self) -> bool:
        """Whether each thread of a row has an element of its own that no other can reach."""
        return self.buffer.place is Place.LANES

    def share(self, other: Memory) -> None:
        """Be the same elements as another buffer: what is touched in one is touched in the other.

        Each has a value from the beginning if either has.
        """
        other.known |= self.known
        self.known, self.loads, self.stores = other.known, other.loads, other.stores

    def poison(self) -> None:
        """Forget all values, so that whoever uses one is found."""
        self.known[:] = False
        kind = self.data.dtype.kind
        if kind == "b":
            self.data[:] = True
        elif kind in "iu":
            self.data.view(np.uint8)[:] = 0xA5
        else:
            self.data[:] = np.nan

    def forget_tiles(self) -> None:
        """All tiles have come so far."""
        for marks in (self.loads, self.stores):
            if marks is not None:
                marks.forget_tiles()

    def check_stored(self) -> None:
        """Raises: BlocksError for an element of a result that no thread has stored."""
        if self.buffer.written and self.stores is not None:
            left = np.flatnonzero(self.stores.stage == NOBODY)
            if left.size:
                raise BlocksError(
                    f"kernel {self.journal.kernel} leaves {self.buffer.name}[{left[0]}] as it was, "
                    f"one of {left.size} of its {self.extent} elements; {WAY_OUT}"
                )

    # Accesses: ``index`` and the threads of ``who`` are flat arrays of one size.

    def load(self, index: Array, who: Who) -> Array:
        """The elements at an index. Raises: BlocksError for what no thread may load."""
        at = self._place("loads", index, who)
        unknown = ~self.known[at]
        if unknown.any():
            where = self._element(index, unknown)
            raise BlocksError(
                f"{self.journal.at(who)} loads {where}, which nothing has stored; {WAY_OUT}"
            )
        if self.loads is not None and self.stores is not None:
            self._check("loads", at, index, who, {"stores": self.stores})
            self.loads.join(at, who)
        return self.data[at]

    def store(self, index: Array, value: Array, who: Who) -> None:
        """Set the elements at an index. Raises: BlocksError for what no thread may store."""
        if self.loads is None or self.stores is None:
            raise BlocksError(
                f"{self.journal.at(who)} stores to {self.buffer.name}, which the kernel declares "
                f"that it only reads; {WAY_OUT}"
            )
        at = self._place("stores", index, who)
        self._check("stores", at, index, who, {"loads": self.loads, "stores": self.stores})
        twice = self.stores.replace(at, who)
        if twice.any():
            where = self._element(index, twice)
            raise BlocksError(f"{self.journal.at(who)}: two threads store {where}; {WAY_OUT}")
        self.known[at] = True
        self.data[at] = value

    def _place(self, does: str, index: Array, who: Who) -> Array:
        """Where elements lie, if they lie in the buffer."""
        outside = (index < 0) | (index >= self.extent)
        if outside.any():
            where = self._element(index, outside)
            raise BlocksError(
                f"{self.journal.at(who)} {does} {where}, outside of its {self.extent} elements; "
                f"{WAY_OUT}"
            )
        own = who.row // APART * self.extent if self.data.size > self.extent else 0
        return index + own

    def _check(
        self, does: str, at: Array, index: Array, who: Who, earlier: dict[str, Marks]
    ) -> None:
        """Raises: BlocksError where an access is in no order with an earlier one."""
        for did, marks in earlier.items():
            if self.is_private:
                bad = marks.of_others(at, who) & self.known[at]
            else:
                bad = marks.out_of_order(at, who)
            if bad.any():
                self._race(f"{does} {self._element(index, bad)}", did, marks, at[bad][0], who)
            if did != does:
                bad = marks.in_later_step(at, who)
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


def share_memory(memories: Sequence[Memory]) -> None:
    """Let buffers that begin at one address share what is known of their elements."""
    found: dict[tuple[int, int], Memory] = {}
    for memory in sorted(memories, key=lambda m: not m.buffer.written):
        key = memory.data.ctypes.data, memory.data.itemsize
        if memory.data.size and key in found and found[key].data.size == memory.data.size:
            memory.share(found[key])
        else:
            found.setdefault(key, memory)
