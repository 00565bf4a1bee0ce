"""Runs: a program's steps enqueued on a device, with what only the host can do in between."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from passkit.errors import DeviceError
from passkit.plan.kernel import Kernel
from passkit.runtime.opencl.device import JOINED, Device, device, pyopencl
from passkit.runtime.opencl.host import host_routine
from passkit.runtime.opencl.memory import Cell, Memory, Place
from passkit.runtime.opencl.pool import pool_of
from passkit.runtime.program import Alias, Copy, Launch, Library, Program, Python, Step
from passkit.runtime.state import State
from passkit.values.size import Extent, Shape, evaluate, known_or_zero
from passkit.values.units import bytes_text

GROUPS = 1 << 22
"""Work-groups of a launch, at most: a kernel's groups share out its tiles, however many."""
LEAST = 16
"""The bytes of a kernel's local memory at least: some drivers take no argument of none."""

Action = Callable[[Memory], None]
_programs: WeakKeyDictionary[Program, DeviceTable] = WeakKeyDictionary()


def cell_of(array: Any, filled: bool = True) -> Cell:
    """A place whose bytes are those of a contiguous array."""
    return Cell(array.nbytes, array.nbytes, array.reshape(-1).view(np.uint8), on_host=filled)


def bound(program: Program, sizes: Mapping[str, int], state: State) -> BoundProgram:
    """A program for some sizes: a function of plain inputs and results."""
    table = _programs.get(program)
    if table is None:
        table = _programs[program] = DeviceTable(program, device(), state)
    return BoundProgram(table, sizes)


class DeviceTable:
    """A program's constants, which are taken to the device once, and its state, which changes."""

    def __init__(self, program: Program, device: Device, state: State) -> None:
        self.program, self.device, self.pool = program, device, pool_of(device)
        changing = {id(a) for a in state.arrays.values()}
        arrays = {("constant", k): a for k, a in enumerate(program.constants)}
        self.states = {p: a for p, a in arrays.items() if id(a) in changing}
        self.constants = {p: cell_of(a) for p, a in arrays.items() if id(a) not in changing}


class BoundProgram:
    """A program with a number for each size. Units of ``slots``: bytes."""

    def __init__(self, table: DeviceTable, sizes: Mapping[str, int]) -> None:
        self.table, self.sizes = table, dict(sizes)
        program = table.program
        self.slots = [max(map(self.number, slot)) for slot in program.slots]
        self.results = [(d.numpy, self.shape(s)) for d, s in program.outputs]
        self.actions = [self.action(step) for step in program.steps]

    def number(self, size: Extent) -> int:
        """A size's number."""
        return size if isinstance(size, int) else evaluate(size, self.sizes)

    def shape(self, shape: Shape) -> tuple[int, ...]:
        """A shape's numbers."""
        return tuple(map(self.number, shape))

    def __call__(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> tuple[int, int]:
        """Fill ``outputs`` and the state; when this returns, all is done.

        The bytes that went to the device and came back are returned.
        """
        memory = self.memory(inputs, outputs, self.table.device.queue)
        for action in self.actions:
            if action is not None:
                action(memory)
        memory.finish()
        return memory.uploaded, memory.downloaded

    def memory(self, inputs: Sequence[Any], outputs: Sequence[Any], queue: Any) -> Memory:
        """The places of a call: its arrays, the constants and the state."""
        table = self.table
        cells: dict[Place, Cell] = dict(table.constants)
        cells.update({("input", k): cell_of(a) for k, a in enumerate(inputs)})
        results = {("output", k): cell_of(a, filled=False) for k, a in enumerate(outputs)}
        results.update({p: cell_of(a) for p, a in table.states.items()})
        return Memory(table.pool, queue, cells | results, list(results), self.slots, self.number)

    def action(self, step: Step) -> Action | None:
        """What a step does."""
        match step:
            case Alias():
                return None
            case Launch():
                return self.launch(step)
            case Library():
                return self.library(step)
            case Python(_, function, reads, writes):

                def call(memory: Memory) -> None:
                    inputs = [memory.array(r) for r in reads]
                    function(self.sizes, inputs, [memory.array(w, write=True) for w in writes])

                return call
            case Copy(source, target):
                return lambda memory: memory.move(source, target)

    def library(self, step: Library) -> Action:
        """Call the host's library."""
        table = self.table
        run, reads = host_routine(step, table.program, set(table.constants), self.sizes)

        def call(memory: Memory) -> None:
            inputs = [memory.array(r) for r in reads]
            run(inputs, memory.array(step.writes[0], write=True))

        return call

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
        written = [b.written for b in kernel.ast.params]

        def enqueue(memory: Memory) -> None:
            pairs = list(zip(step.refs, written, strict=True))
            found = {r.place: memory.read(r) for r, w in pairs if not w}
            found |= {r.place: memory.written(r) for r, w in pairs if w}
            buffers = [found[r.place] for r in step.refs]
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
        self, kernel: Kernel, queue: Any, function: Any, items: tuple[int], block: int
    ) -> Any:
        """Enqueue a function. What the pool holds is freed if there is no room, and it tries again.

        Raises: DeviceError with what the driver says.
        """
        cl = pyopencl()
        for last in (False, True):
            try:
                return cl.enqueue_nd_range_kernel(queue, function, items, (block,))
            except cl.Error as error:
                if last or not isinstance(error, cl.MemoryError):
                    raise DeviceError(
                        f"{self.table.device} does not start kernel {kernel.name} "
                        f"({', '.join(kernel.ops)}) of {items[0]} work-items in groups of {block}: "
                        f"{error}; {self.table.pool.state()}"
                    ) from error
                self.table.pool.free()
        return None
