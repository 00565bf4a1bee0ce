"""The arrays of one call: on the host, on the device, or both, moved when a step needs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import define

from passkit.runtime.device.pool import Pool
from passkit.runtime.device.queue import Done, Queue
from passkit.runtime.device.resident import Resident
from passkit.runtime.program import Ref
from passkit.values.size import Extent

Place = tuple[str, int]


@define(eq=False)
class Cell:
    """The bytes of a place. ``on_host`` and ``on_device`` say where they are up to date.

    ``array`` is flat and of bytes; it and ``buffer`` have room for ``most``, of which ``nbytes``
    are in use. ``busy`` is the last transfer from or to the array. What ``stays`` is used on the
    device by later calls.
    """

    most: int
    nbytes: int
    array: Any = None
    buffer: Any = None
    on_host: bool = False
    on_device: bool = False
    busy: Any = None
    stays: bool = False


def cell_of(array: Any, filled: bool = True, stays: bool = False) -> Cell:
    """A place whose bytes are those of a contiguous array, on the host or the device."""
    if isinstance(array, Resident):
        return Cell(array.nbytes, array.nbytes, buffer=array, on_device=filled)
    flat = array.reshape(-1).view(np.uint8)
    return Cell(array.nbytes, array.nbytes, flat, on_host=filled, stays=stays)


class Memory:
    """The places of one call. Transfers are enqueued: they are done when the queue is finished.

    ``cells`` are those that the caller brings: inputs, constants, results; what is at ``results``
    is wanted on the host at the end. ``slots`` are the bytes of the arena's, ``number`` evaluates
    sizes, ``nbytes`` says how many bytes a value has. ``launched`` and ``moved`` are the events of
    kernels and copies there, and of transfers, ``held`` is what else lasts as long as the call.
    """

    def __init__(
        self,
        pool: Pool,
        queue: Queue,
        cells: Mapping[Place, Cell],
        results: Sequence[Place],
        slots: Sequence[int],
        number: Callable[[Extent], int],
        nbytes: Callable[[Ref], int],
    ) -> None:
        self.nbytes = nbytes
        self.pool, self.slots, self.number = pool, slots, number
        self.queue: Any = queue  # steps of a device know which one it is
        self.cells, self.results = dict(cells), results
        self.uploaded = self.downloaded = 0
        self.launched: list[Any] = []
        self.moved: list[Any] = []
        self.held: list[Any] = []

    def noted(self, done: Done) -> Done:
        """A transfer, which is counted among those that were begun."""
        self.moved.append(done)
        return done

    def finish(self) -> None:
        """Bring the results to where they are wanted, and wait for all."""
        for cell in (self.cells[place] for place in self.results):
            if isinstance(cell.buffer, Resident):
                self.sent(cell)
            else:
                self.fetch(cell)
        self.queue.finish()

    def cell(self, place: Place) -> Cell:
        """What is at a place; a slot of the arena when it is first asked for."""
        if place not in self.cells:
            self.cells[place] = Cell(self.slots[place[1]], 0)
        return self.cells[place]

    def read(self, ref: Ref) -> Any:
        """A buffer with what is at a place."""
        return self.sent(self.cell(ref.place))

    def sent(self, cell: Cell) -> Any:
        """A cell's buffer with what only the host knows."""
        if not cell.on_device:
            self.room(cell)
            if cell.nbytes:
                part = cell.array[: cell.nbytes]
                cell.busy = self.noted(self.queue.upload(cell.buffer, part))
                self.uploaded += part.nbytes
            cell.on_device = True
        return cell.buffer

    def written(self, ref: Ref) -> Any:
        """A buffer that a kernel writes to: from then on the device alone knows what is there."""
        cell = self.cell(ref.place)
        cell.nbytes = self.nbytes(ref)
        self.room(cell)
        cell.on_host, cell.on_device = False, True
        return cell.buffer

    def room(self, cell: Cell) -> None:
        """Let a cell have a buffer."""
        if cell.buffer is None:
            cell.buffer = self.pool.take(cell.most)

    def array(self, ref: Ref, write: bool = False) -> Any:
        """What is at a place as an array, waited for; or an array to write to."""
        cell = self.cell(ref.place)
        if write:
            cell.nbytes, cell.on_host, cell.on_device = self.nbytes(ref), True, False
        self.fetch(cell)
        if cell.busy is not None:
            cell.busy.wait()
            cell.busy = None
        flat = cell.array[: self.nbytes(ref)].view(ref.dtype.numpy)
        return flat.reshape(tuple(map(self.number, ref.shape)))

    def fetch(self, cell: Cell) -> None:
        """Bring to the host what only the device knows."""
        if cell.array is None:
            cell.array = np.empty(cell.most, np.uint8)
        if not cell.on_host and cell.nbytes:
            part = cell.array[: cell.nbytes]
            cell.busy = self.noted(self.queue.download(part, cell.buffer))
            self.downloaded += part.nbytes
        cell.on_host = True

    def move(self, source: Ref, target: Ref) -> None:
        """Copy a value from one place to another, wherever they are."""
        one, other = self.cell(source.place), self.cell(target.place)
        if one.nbytes == 0 or one is other:
            other.on_host = True
        elif other.array is None or (other.stays and one.on_device):
            filled = self.read(source)
            self.launched.append(self.queue.copy(self.written(target), filled, one.nbytes))
        elif one.on_host:
            self.array(target, write=True).reshape(-1)[...] = self.array(source).reshape(-1)
        else:
            part = other.array[: one.nbytes]
            other.busy = self.noted(self.queue.download(part, one.buffer))
            self.downloaded += part.nbytes
            other.on_host, other.on_device = True, False
