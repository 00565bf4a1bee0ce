"""The arrays of one call: on host, device or both, transferred when a step needs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import define

from passkit.runtime.device.external_arrays import ExternalArray
from passkit.runtime.device.interface import DeviceEvent, DeviceQueue
from passkit.runtime.device.pool import DevicePool
from passkit.runtime.program import ArrayRef
from passkit.values.size import Extent

ArrayKey = tuple[str, int]
"""Which array of a program: "input", "output", "constant" or "arena" (a storage slot), and its
index."""


@define(eq=False)
class MemoryCell:
    """The bytes of one array of a program, in host memory, device memory or both.

    Attributes:
        capacity: The bytes of ``array`` and of ``buffer``.
        nbytes: How many of them are in use.
        array: The host memory, a flat array of bytes; None until it is needed.
        buffer: The device memory, a buffer or an `ExternalArray`; None until it is needed.
        on_host: Whether ``array`` is up to date.
        on_device: Whether ``buffer`` is up to date.
        transfer: The event of the last transfer from or to ``array`` that is not known to be done.
        persistent: Whether later calls use the device's copy, as for variables.
    """

    capacity: int
    nbytes: int
    array: Any = None
    buffer: Any = None
    on_host: bool = False
    on_device: bool = False
    transfer: Any = None
    persistent: bool = False


def cell_of(array: Any, filled: bool = True, persistent: bool = False) -> MemoryCell:
    """Return a cell whose memory is that of a contiguous array, on the host or the device.

    Args:
        array: A NumPy array or an `ExternalArray`.
        filled: Whether its content is valid: True for inputs, False for outputs.
        persistent: Whether later calls use the device's copy; ignored for an `ExternalArray`.
    """
    if isinstance(array, ExternalArray):
        return MemoryCell(array.nbytes, array.nbytes, buffer=array, on_device=filled)
    flat = array.reshape(-1).view(np.uint8)
    return MemoryCell(array.nbytes, array.nbytes, flat, on_host=filled, persistent=persistent)


class CallMemory:
    """The cells of one call. Transfers are enqueued, and done when the queue is finished.

    Without transfers from or to the host, nobody has to wait for the call.

    Args:
        pool: Where buffers come from.
        queue: The device's queue.
        cells: Inputs, outputs, constants and variables by their keys.
        results: The keys of the cells that the host needs at the end.
        slots: The bytes of each storage slot of the arena.
        number: Evaluates a symbolic extent.
        nbytes: Returns the bytes of a value.

    Attributes:
        uploaded: The bytes that were copied to the device so far.
        downloaded: The bytes that were copied from the device so far.
        kernel_events: The events of kernels and of copies on the device.
        transfer_events: The events of transfers between host and device.
        keep_alive: Objects that must live as long as the call.
    """

    def __init__(
        self,
        pool: DevicePool,
        queue: DeviceQueue,
        cells: Mapping[ArrayKey, MemoryCell],
        results: Sequence[ArrayKey],
        slots: Sequence[int],
        number: Callable[[Extent], int],
        nbytes: Callable[[ArrayRef], int],
    ) -> None:
        self.pool = pool
        self.queue: Any = queue  # steps of a device use more of it than the protocol has
        self.cells = dict(cells)
        self.results = results
        self.slots = slots
        self.number = number
        self.nbytes = nbytes
        self.uploaded = 0
        self.downloaded = 0
        self.kernel_events: list[Any] = []
        self.transfer_events: list[Any] = []
        self.keep_alive: list[Any] = []

    def upload(self, buffer: Any, array: Any) -> DeviceEvent:
        """Enqueue a copy of a flat host array to a buffer, count its bytes, return its event."""
        event: DeviceEvent = self.queue.upload(buffer, array)
        self.transfer_events.append(event)
        self.uploaded += array.nbytes
        return event

    def download(self, array: Any, buffer: Any) -> DeviceEvent:
        """Enqueue a copy of a buffer to a flat host array, count its bytes, return its event."""
        event: DeviceEvent = self.queue.download(array, buffer)
        self.transfer_events.append(event)
        self.downloaded += array.nbytes
        return event

    def enqueue_results(self) -> None:
        """Enqueue a copy of each result to where the caller needs it, host or device.

        Raises: DeviceError where a transfer fails.
        """
        for cell in (self.cells[key] for key in self.results):
            if isinstance(cell.buffer, ExternalArray):
                self.to_device(cell)
            else:
                self.to_host(cell)

    def cell(self, key: ArrayKey) -> MemoryCell:
        """Return the cell of an array; a slot of the arena gets one when it is first used.

        ``key`` is the array's (kind, index). The new cell has neither memory nor content.
        """
        if key not in self.cells:
            self.cells[key] = MemoryCell(self.slots[key[1]], 0)
        return self.cells[key]

    def read(self, ref: ArrayRef) -> Any:
        """Return the device buffer that holds a value; enqueue its upload if only the host has it.

        Raises: DeviceError where the device has no memory left.
        """
        return self.to_device(self.cell(ref.key))

    def to_device(self, cell: MemoryCell) -> Any:
        """Return a cell's buffer; enqueue an upload if its content is not up to date.

        The cell gets a buffer if it has none, and is marked valid on the device. Raises:
        DeviceError without memory.
        """
        if not cell.on_device:
            self.ensure_buffer(cell)
            if cell.nbytes:
                cell.transfer = self.upload(cell.buffer, cell.array[: cell.nbytes])
            cell.on_device = True
        return cell.buffer

    def written(self, ref: ArrayRef) -> Any:
        """Return the buffer that a kernel writes a value to, allocated if the cell has none.

        The cell is marked as valid on the device only. Raises: DeviceError without memory.
        """
        cell = self.cell(ref.key)
        cell.nbytes = self.nbytes(ref)
        self.ensure_buffer(cell)
        cell.on_host, cell.on_device = False, True
        return cell.buffer

    def ensure_buffer(self, cell: MemoryCell) -> None:
        """Allocate ``cell.buffer`` from the pool unless the cell has one.

        Raises: DeviceError where the device has no memory left.
        """
        if cell.buffer is None:
            cell.buffer = self.pool.take(cell.capacity)

    def array(self, ref: ArrayRef, write: bool = False) -> Any:
        """Return the value ``ref`` as an array of the host, of its dtype and shape.

        Without ``write``, its content is downloaded where only the device has it, and the call
        blocks until it is there; a variable that the device changed is copied to new memory. With
        ``write``, the content is undefined, to be filled by the caller, and the cell is marked as
        valid on the host only.
        """
        cell = self.cell(ref.key)
        if write:
            cell.nbytes = self.nbytes(ref)
            cell.on_host, cell.on_device = True, False
        elif cell.persistent and not cell.on_host and cell.nbytes:
            return self._shaped(ref, self._copy_on_host(cell))
        self.to_host(cell)
        if cell.transfer is not None:
            cell.transfer.wait()
            cell.transfer = None
        return self._shaped(ref, cell.array)

    def _shaped(self, ref: ArrayRef, array: Any) -> Any:
        """Return the first bytes of a flat array of bytes, viewed with the reference's type.

        The result shares the memory of ``array``, and has the dtype and shape of ``ref``.
        """
        flat = array[: self.nbytes(ref)].view(ref.dtype.numpy)
        return flat.reshape(tuple(map(self.number, ref.shape)))

    def _copy_on_host(self, cell: MemoryCell) -> Any:
        """Download a variable's bytes into a new flat array, and wait for them.

        The host's memory of a variable keeps its value until the call has succeeded.
        """
        copy = np.empty(cell.nbytes, np.uint8)
        self.download(copy, cell.buffer).wait()
        return copy

    def to_host(self, cell: MemoryCell) -> None:
        """Enqueue a download of a cell that only the device has, and mark it valid on the host.

        The content is there when ``cell.transfer`` is done. The host memory is allocated where the
        cell has none.
        """
        if cell.array is None:
            cell.array = np.empty(cell.capacity, np.uint8)
        if not cell.on_host and cell.nbytes:
            cell.transfer = self.download(cell.array[: cell.nbytes], cell.buffer)
        cell.on_host = True

    def move(self, source: ArrayRef, target: ArrayRef) -> None:
        """Copy a value from one cell to another.

        The copy is enqueued on the device where the target has no host memory or is a variable
        whose source is on the device; otherwise the target becomes valid on the host only, by a
        copy there or a download. Nothing is copied for a value without bytes, or within one cell.
        Raises: DeviceError where the device has no memory left.
        """
        source_cell, target_cell = self.cell(source.key), self.cell(target.key)
        stays_on_device = target_cell.persistent and source_cell.on_device
        if source_cell.nbytes == 0 or source_cell is target_cell:
            target_cell.on_host = True
        elif target_cell.array is None or stays_on_device:
            source_buffer = self.read(source)
            target_buffer = self.written(target)
            event = self.queue.copy(target_buffer, source_buffer, source_cell.nbytes)
            self.kernel_events.append(event)
        elif source_cell.on_host:
            self.array(target, write=True).reshape(-1)[...] = self.array(source).reshape(-1)
        else:
            part = target_cell.array[: source_cell.nbytes]
            target_cell.transfer = self.download(part, source_cell.buffer)
            target_cell.on_host, target_cell.on_device = True, False
