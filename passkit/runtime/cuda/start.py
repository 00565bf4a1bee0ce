"""Kernels as steps on a CUDA device: launches with figures of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from passkit.dialects.row_lanes import WARP
from passkit.errors import DeviceError
from passkit.plan.kernel import Kernel
from passkit.runtime.cuda.build import DeviceKernel
from passkit.runtime.cuda.device import gpu
from passkit.runtime.cuda.driver import DriverError, RoomError, Task, Trouble
from passkit.runtime.cuda.enqueued import Enqueued, Rooms
from passkit.runtime.cuda.figures import USUAL, Figures, figures, numbers_of
from passkit.runtime.device.memory import Memory
from passkit.runtime.program import Launch
from passkit.values.units import bytes_text

if TYPE_CHECKING:
    from passkit.runtime.cuda.run import Bound


class Start(Enqueued):
    """What a launch does: called with a call's memory, it enqueues its kernel.

    Raises: DeviceError where a block needs more shared memory than the device has, or where blocks
    that wait for each other cannot.
    """

    def __init__(self, bound: Bound, step: Launch) -> None:
        super().__init__(bound)
        self.step, self.reads, self.writes = step, step.reads, step.writes
        self.entry: DeviceKernel = step.entry
        self.numbers = tuple(numbers_of(step.kernel, bound.sizes))
        self.figures = self._figures()
        own, device = self.figures, bound.device
        shared = own.shared + self.entry.used.shared
        filled = gpu(device.facts).occupancy(self.entry.used.registers, shared, own.threads)
        bound.table.counts.setdefault("occupancy", {})[self.kernel.name] = filled

    @property
    def kernel(self) -> Kernel:
        """What is launched."""
        return self.step.kernel

    @property
    def cooperative(self) -> bool:
        """Whether its blocks wait for each other."""
        return len(self.kernel.ast.phases) > 1

    def _figures(self) -> Figures:
        device, entry = self.bound.device, self.entry
        rows = max(1, entry.threads // WARP)
        found = figures(
            self.kernel,
            self.bound.sizes,
            blocks=device.limits.grid,
            threads=rows * WARP,
            rows=rows,
        )
        self._check_shared(found.shared + entry.used.shared)
        if found.shared > USUAL:  # as much as there is, as another call may need more than this
            most = device.limits.shared_nbytes - entry.used.shared
            device.driver.allow_shared(entry.function, most)
        if not self.cooperative:
            return found
        at_once = self._at_once(found)
        return Figures(min(found.grid, at_once), found.block, found.shared)

    def _check_shared(self, nbytes: int) -> None:
        """Raises: DeviceError where a block needs more shared memory than there is."""
        device, kernel = self.bound.device, self.kernel
        if nbytes > device.limits.shared_nbytes:
            raise DeviceError(
                f"kernel {kernel.name} ({', '.join(kernel.ops)}) needs {bytes_text(nbytes)} of "
                f"shared memory for a block, and {device} has "
                f"{bytes_text(device.limits.shared_nbytes)}; compile for a Target with less scratch"
            )

    def _at_once(self, found: Figures) -> int:
        """The blocks that are on the device at a time, which all of a cooperative launch are.

        Raises: DeviceError where there are none.
        """
        device, kernel = self.bound.device, self.kernel
        driver, function = device.driver, self.entry.function
        if not device.limits.cooperative or not driver.graphs:
            lacks = device if not device.limits.cooperative else driver.name
            raise DeviceError(
                f"kernel {kernel.name} ({', '.join(kernel.ops)}) has phases, whose blocks wait for "
                f"each other, and {lacks} has no cooperative launches; pip install cuda-bindings, "
                "or take its operators out of keep_together"
            )
        each = driver.blocks_at_once(function, found.threads, found.shared)
        if not each:
            raise DeviceError(
                f"no block of kernel {kernel.name} ({', '.join(kernel.ops)}), of {found.threads} "
                f"threads with {self.entry.used.registers} registers and "
                f"{bytes_text(found.shared)} of shared memory, fits on {device}; compile for a "
                "Target with a smaller block or less scratch"
            )
        return each * device.limits.units

    def placed(self, memory: Memory) -> Task:
        """The launch with the addresses of a call."""
        addresses = (b.address for b in self.bound.buffers(self.step, memory))
        own = self.figures
        return Task(
            *(self.entry.function, own.grid, own.block, own.shared),
            *((*addresses, *self.numbers), self.cooperative),
        )

    def enqueue(self, what: Task, rooms: Rooms, stream: Any) -> None:
        """Enqueue the kernel. What the pool holds is freed if there is no room.

        Raises: DeviceError with the figures and what the driver says.
        """
        device, kernel = self.bound.device, self.kernel
        try:
            with device.lock:
                self.bound.table.pool.again(
                    lambda: device.driver.launch(what, stream), (RoomError,)
                )
        except DriverError as error:
            if error.trouble is Trouble.LOST:
                raise
            across, down = what.block
            raise DeviceError(
                f"{device} does not start kernel {kernel.name} ({', '.join(kernel.ops)}) of "
                f"{what.grid} blocks of {across} x {down} threads with {bytes_text(what.shared)} "
                f"of shared memory: {error}; {self.bound.table.pool.state()}"
            ) from error
