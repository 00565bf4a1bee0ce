"""Buffers of a kernel whose accesses are checked against bounds and against other threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from passkit.ast.stage import Buffer, Place
from passkit.errors import BlocksError
from passkit.runtime.blocks.accesses import ROW_STRIDE, UNTOUCHED, AccessHistory, AccessOrigin

Array = Any

WORKAROUND = "target='interpret' avoids the kernel until passkit is corrected"
"""The way out for a kernel that passkit generated incorrectly."""


class StageLog:
    """The names of the stages that a run of a kernel has begun, for messages.

    ``kernel`` is the kernel's name.
    """

    def __init__(self, kernel: str) -> None:
        self.kernel = kernel
        self.stages: list[str] = []

    def begin(self, stage: str) -> int:
        """Record that a stage begins, and return its number."""
        self.stages.append(stage)
        return len(self.stages) - 1

    def location(self, origin: AccessOrigin) -> str:
        """Return the kernel, stage and tile of an access, as "kernel k, stage s of tile 3"."""
        return f"kernel {self.kernel}, stage {self.stages[origin.stage]} of tile {origin.tile}"


class TrackedRegion:
    """A region of memory with its access histories, in units of the smallest element.

    Buffers of a region may overlap.

    Args:
        size: the number of units.
        tracked: whether accesses are recorded; read-only memory needs no history.
        tiles: whether several tiles access the same units.
        rows: whether several rows do.

    Attributes:
        owner: for each unit the number of the buffer whose value is stored there, 0 for none.
        loads: the last loads.
        stores: the last stores.
    """

    def __init__(self, size: int, tracked: bool, tiles: bool, rows: bool) -> None:
        self.tracked = tracked
        self.owner = np.zeros(size, np.int16)
        self.loads = AccessHistory(size if tracked else 0, tiles, rows)
        self.stores = AccessHistory(size if tracked else 0, tiles, rows)

    def end_phase(self) -> None:
        """Let all accesses so far count as ordered before those of other tiles from now on."""
        self.loads.end_phase()
        self.stores.end_phase()


class CheckedBuffer:
    """A buffer of a kernel whose loads and stores are checked.

    Args:
        buffer: its declaration.
        data: its elements, with a first axis for the rows that have their own.
        log: the stages, for messages.
        region: the memory that contains it.
        number: its number as an owner of units in the region.
        layout: in units of the region: where it begins, the distance from one row to the next, and
            the size of an element.
    """

    def __init__(
        self,
        buffer: Buffer,
        data: Array,
        log: StageLog,
        region: TrackedRegion,
        number: int = 1,
        layout: tuple[int, int, int] = (0, 0, 1),
    ) -> None:
        self.buffer, self.data, self.log = buffer, data, log
        self.extent = data.shape[1]
        self.region, self.number = region, number
        self.base, self.row_units, self.element_units = layout

    @property
    def is_private(self) -> bool:
        """Whether each thread of a row has an element that no other thread can access.

        That is so in `Place.LANES`.
        """
        return self.buffer.place is Place.LANES

    def check_stored(self) -> None:
        """Check that every element was stored, if the kernel writes to the buffer.

        Raises:
            BlocksError: An element was not; the message names the first one.
        """
        if self.buffer.written:
            missing = np.flatnonzero(self.region.stores.stage == UNTOUCHED)
            if missing.size:
                raise BlocksError(
                    f"kernel {self.log.kernel} does not store {self.buffer.name}[{missing[0]}]: "
                    f"{missing.size} of {self.extent} elements are missing; {WORKAROUND}"
                )

    # In the following methods the index and the arrays of the origin are flat and of one size.

    def load(self, index: Array, origin: AccessOrigin) -> Array:
        """Return the elements at ``index``, and record the accesses by ``origin``.

        Raises:
            BlocksError: An index is out of bounds, nothing or another buffer's value is stored
                there, or a store to it by another thread is not ordered with the load, or was made
                by a later iteration of the thread's serial loops.
        """
        row = self._checked_rows("loads", index, origin)
        units, unit_origin = self._units(row, index, origin)
        owner = self.region.owner[units]
        missing = self._any_unit(owner != self.number)
        if missing.any():
            element = self._element(index, missing)
            is_overwritten = self._any_unit(owner != 0)[missing][0]
            content = "another array's value" if is_overwritten else "nothing"
            raise BlocksError(
                f"{self.log.location(origin)} loads {element}, where {content} is stored; "
                f"{WORKAROUND}"
            )
        if self.region.tracked:
            self._check_order("loads", index, units, unit_origin, ("stores",))
            self.region.loads.merge(units, unit_origin)
        return self.data[row, index]

    def store(self, index: Array, value: Array, origin: AccessOrigin) -> None:
        """Set the elements at ``index`` to ``value``, and record the accesses by ``origin``.

        Raises:
            BlocksError: The buffer is declared read-only, an index is out of bounds, an access by
                another thread is not ordered with the store, a later iteration of the thread's
                serial loops has loaded the element, or two threads store one element.
        """
        if not self.buffer.written and not self.is_private:
            raise BlocksError(
                f"{self.log.location(origin)} stores to {self.buffer.name}, which the kernel "
                f"declares as read-only; {WORKAROUND}"
            )
        row = self._checked_rows("stores", index, origin)
        units, unit_origin = self._units(row, index, origin)
        self._check_order("stores", index, units, unit_origin, ("loads", "stores"))
        twice = self._any_unit(self.region.stores.replace(units, unit_origin))
        if twice.any():
            element = self._element(index, twice)
            raise BlocksError(
                f"{self.log.location(origin)}: two threads store {element}; {WORKAROUND}"
            )
        self.region.owner[units] = self.number
        self.data[row, index] = value

    def _checked_rows(self, verb: str, index: Array, origin: AccessOrigin) -> Array:
        """Check bounds; return the index of each access into the rows, the first axis of ``data``.

        It is the number 0 for a buffer that all rows share.

        Args:
            verb: "loads" or "stores", for the message.
            index: the elements.
            origin: the threads that access them.

        Raises: BlocksError for an element out of bounds.
        """
        outside = (index < 0) | (index >= self.extent)
        if outside.any():
            element = self._element(index, outside)
            raise BlocksError(
                f"{self.log.location(origin)} {verb} {element}, and the buffer has {self.extent} "
                f"elements; {WORKAROUND}"
            )
        return origin.row // ROW_STRIDE if len(self.data) > 1 else 0

    def _units(self, row: Array, index: Array, origin: AccessOrigin) -> tuple[Array, AccessOrigin]:
        """Return the units of the region that elements cover, and the origin of each unit's access.

        An element of more bytes than a unit covers several. The elements are given by their row of
        ``data`` and their index in it.
        """
        first = self.base + row * self.row_units + index * self.element_units
        if self.element_units == 1:
            return first, origin
        units = (first[:, None] + np.arange(self.element_units)).ravel()
        return units, origin.repeated(self.element_units)

    def _any_unit(self, mask: Array) -> Array:
        """Return the mask of the elements for a mask of their units: whether it holds for any."""
        return mask if self.element_units == 1 else mask.reshape(-1, self.element_units).any(1)

    def _check_order(
        self,
        verb: str,
        index: Array,
        units: Array,
        origin: AccessOrigin,
        earlier: tuple[str, ...],
    ) -> None:
        """Raise a BlocksError where an access races with an earlier one.

        Also where a later iteration of the same thread's serial loops made the earlier access.

        Args:
            verb: "loads" or "stores", for the message.
            index: the elements.
            units: the units of the region that they cover.
            origin: the threads that access them.
            earlier: the histories to compare with, "loads" or "stores".
        """
        for earlier_verb in earlier:
            history: AccessHistory = getattr(self.region, earlier_verb)
            if self.is_private:
                is_own = self.region.owner[units] == self.number
                races = history.by_other_threads(units, origin) & is_own
            else:
                races = history.unordered(units, origin)
                if earlier_verb == "loads":
                    races &= ~history.before_reduction(units, origin)
            if races.any():
                element = self._element(index, self._any_unit(races))
                action = f"{verb} {element}"
                self._raise_race(action, earlier_verb, history, units[races][0], origin)
            if earlier_verb != verb:
                carried = self._any_unit(history.in_later_iteration(units, origin))
                if carried.any():
                    element = self._element(index, carried)
                    raise BlocksError(
                        f"{self.log.location(origin)} {verb} {element}, which a later iteration "
                        f"of its serial loops {earlier_verb}; only reductions and scans may carry "
                        "values from one iteration to the next"
                    )

    def _raise_race(
        self, action: str, earlier_verb: str, history: AccessHistory, at: int, origin: AccessOrigin
    ) -> NoReturn:
        """Raise the BlocksError for a race between ``action`` and the last access in a history.

        Args:
            action: the later access, as in "loads x[3]".
            earlier_verb: the verb of the earlier access, "loads" or "stores".
            history: the history that has the earlier access.
            at: the unit of the region that both access.
            origin: the thread of the later access.
        """
        other = self.log.stages[history.stage[at]]
        if history.tile[at] != origin.tile and self.buffer.place is Place.GLOBAL:
            raise BlocksError(
                f"{self.log.location(origin)} {action}, which stage {other} of another tile "
                f"{earlier_verb}, and tiles run in any order; {WORKAROUND}"
            )
        raise BlocksError(
            f"{self.log.location(origin)} {action}, which another thread {earlier_verb} in stage "
            f"{other} with no barrier between; add a barrier, or let one thread do both"
        )

    def _element(self, index: Array, mask: Array) -> str:
        """Return the first element of those that ``mask`` selects, as text ``name[index]``."""
        return f"{self.buffer.name}[{index[mask][0]}]"


def parameter_buffers(
    buffers: Sequence[Buffer], arrays: Sequence[Array], log: StageLog
) -> list[CheckedBuffer]:
    """Return the checked buffers of a kernel's parameters, in their order.

    ``arrays`` has a flat array for each parameter, ``log`` the stages for messages. Parameters of
    the same address, number and size of elements share a region, in which values are stored from
    the start if the kernel only reads one of them.
    """
    regions: dict[tuple[int, int, int], TrackedRegion] = {}
    written = {_address(a) for b, a in zip(buffers, arrays, strict=True) if b.written}
    checked_buffers = []
    for buffer, array in zip(buffers, arrays, strict=True):
        address = _address(array)
        if address not in regions:
            regions[address] = TrackedRegion(array.size, address in written, tiles=True, rows=True)
        if not buffer.written:
            regions[address].owner[:] = 1
        checked_buffers.append(CheckedBuffer(buffer, array.reshape(1, -1), log, regions[address]))
    return checked_buffers


def _address(array: Array) -> tuple[int, int, int]:
    """Return address, size of an element in bytes and number of elements, equal for aliases.

    The address of an array without elements is -1.
    """
    return array.ctypes.data if array.size else -1, array.itemsize, array.size
