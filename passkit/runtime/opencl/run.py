"""OpenCL programs at run time: what a launch enqueues, and what is said when it does not start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from passkit.errors import DeviceError
from passkit.plan.kernel import Kernel
from passkit.runtime.device.memory import Memory
from passkit.runtime.device.run import Action, BoundProgram, DeviceTable
from passkit.runtime.opencl.device import JOINED, Queue, device, pyopencl
from passkit.runtime.opencl.pool import pool_of
from passkit.runtime.program import Launch, Program
from passkit.runtime.state import State
from passkit.values.size import evaluate, known_or_zero
from passkit.values.units import bytes_text

GROUPS = 1 << 22
"""Work-groups of a launch, at most: a kernel's groups share out its tiles, however many."""
LEAST = 16
"""The bytes of a kernel's local memory at least: some drivers take no argument of none."""

_programs: WeakKeyDictionary[Program, DeviceTable] = WeakKeyDictionary()


def bound(program: Program, sizes: Mapping[str, int], state: State) -> Bound:
    """A program for some sizes: a function of plain inputs and results."""
    table = _programs.get(program)
    if table is None:
        own = device()
        table = _programs[program] = DeviceTable(program, own, pool_of(own), state)
    return Bound(program, table, sizes)


class Bound(BoundProgram):
    """A program with a number for each size, on an OpenCL device."""

    def launch(self, step: Launch) -> Action | None:
        """Enqueue a kernel, or each of its phases that has tiles."""
        kernel, entry = step.kernel, step.entry
        counts = [self.number(n) for n, _ in kernel.phases or ((kernel.grid, 0.0),)]
        if not any(counts):
            return None
        cl, device, block = pyopencl(), self.table.device, entry.block
        number = known_or_zero if kernel.phases else evaluate
        local = [max(LEAST, self.number(kernel.shared_nbytes)), max(LEAST, JOINED * block)]
        self.check(kernel, sum(local))
        numbers = [np.int64(number(n, self.sizes)) for n in kernel.sizes]
        rest = [*numbers, *map(cl.LocalMemory, local)]
        todo = [
            (function, (min(tiles, GROUPS) * block,))
            for function, tiles in zip(entry.functions, counts, strict=True)
            if tiles
        ]

        def enqueue(memory: Memory) -> None:
            buffers = self.buffers(step, memory)
            with device.lock:
                for function, items in todo:
                    function.set_args(*buffers, *rest)
                    memory.launched.append(self.start(kernel, memory.queue, function, items, block))

        return enqueue

    def check(self, kernel: Kernel, nbytes: int) -> None:
        """Raises: DeviceError where a work-group needs more local memory than the device has."""
        device = self.table.device
        if nbytes > device.limits.local_nbytes:
            raise DeviceError(
                f"kernel {kernel.name} ({', '.join(kernel.ops)}) needs {bytes_text(nbytes)} of "
                f"local memory for a work-group, and {device} has "
                f"{bytes_text(device.limits.local_nbytes)}; compile for a Target with less scratch"
            )

    def start(
        self, kernel: Kernel, queue: Queue, function: Any, items: tuple[int], block: int
    ) -> Any:
        """Enqueue a function. What the pool holds is freed if there is no room, and it tries again.

        Raises: DeviceError with what the driver says.
        """
        cl, pool = pyopencl(), self.table.pool

        def enqueue() -> Any:
            return cl.enqueue_nd_range_kernel(queue.handle, function, items, (block,))

        try:
            return pool.again(enqueue, (cl.MemoryError,))
        except cl.Error as error:
            raise DeviceError(
                f"{self.table.device} does not start kernel {kernel.name} "
                f"({', '.join(kernel.ops)}) of {items[0]} work-items in groups of {block}: "
                f"{error}; {pool.state()}"
            ) from error
