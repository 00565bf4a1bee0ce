"""CUDA programs at run time: launches, one by one at first, and as graphs from then on."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from typing import Any
from weakref import WeakKeyDictionary, finalize

from passkit.dialects.row_lanes import WARP
from passkit.errors import DeviceError
from passkit.plan.kernel import Kernel
from passkit.runtime.cuda.build import DeviceKernel
from passkit.runtime.cuda.device import Device, device, gpu
from passkit.runtime.cuda.driver import DriverError, RoomError, Task, Trouble
from passkit.runtime.cuda.epilogues import join_biases
from passkit.runtime.cuda.figures import USUAL, Figures, figures, numbers_of
from passkit.runtime.cuda.library import counted, on_device
from passkit.runtime.cuda.pool import pool_of
from passkit.runtime.cuda.shared import MissingError
from passkit.runtime.device.memory import Memory
from passkit.runtime.device.resident import Resident
from passkit.runtime.device.run import Action, BoundProgram, DeviceTable
from passkit.runtime.program import Launch, Library, Program, Python
from passkit.runtime.state import State
from passkit.values.units import bytes_text

REPLAYS = "graph_replays"
CAPTURES = "graphs_made"

_programs: WeakKeyDictionary[Program, DeviceTable] = WeakKeyDictionary()


def bound(program: Program, sizes: Mapping[str, int], state: State) -> Bound:
    """A program for some sizes: a function of plain inputs and results."""
    table = _programs.get(program)
    if table is None:
        own = device()
        table = _programs[program] = DeviceTable(program, own, pool_of(own), state)
        table.counts.update({CAPTURES: 0, REPLAYS: 0})
    return Bound(program, table, sizes)


class Bound(BoundProgram):
    """A program with a number for each size, on a CUDA device."""

    def __init__(
        self, program: Program, table: DeviceTable, sizes: Mapping[str, int]
    ) -> None:
        self.device: Device = table.device
        self.host_steps = sum(isinstance(s, Python) for s in program.steps)
        self.library_steps = 0
        self.hosted: set[int] = set()
        with self.device.used("choosing figures of launches"):
            super().__init__(program, table, sizes)
            epilogues = join_biases(self)
        self.plan = list(_in_graphs(self))
        table.counts |= {
            "host_steps": self.host_steps,
            "device_library_steps": self.library_steps,
            "epilogues": epilogues,
        }

    def memory(self, inputs: Sequence[Any], outputs: Sequence[Any], queue: Any) -> Memory:
        """The places of a call. What others have on the device, they may be writing still."""
        there = (a.stream for a in (*inputs, *outputs) if isinstance(a, Resident))
        for stream in dict.fromkeys(s for s in there if s is not None):
            self.device.driver.follow(queue.stream, stream)
        return super().memory(inputs, outputs, queue)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Inside, steps can be run. Raises: DeviceError."""
        with super().running():
            try:
                yield
            except BaseException:
                with suppress(DriverError):  # nothing may still be on its way to our arrays
                    self.device.queue.finish()
                raise

    def library(self, step: Library) -> Action:
        """Let a library of the device do it; where none does, the host's, which is counted."""
        try:
            found = on_device(step, self)
        except MissingError as missing:
            counted(missing, self.table.counts)
            self.host_steps += 1
            self.hosted.add(next(k for k, s in enumerate(self.program.steps) if s is step))
            return super().library(step)
        self.library_steps += 1
        return found

    def launch(self, step: Launch) -> Start | None:
        """Enqueue a kernel; None where it has no tiles."""
        return Start(self, step) if self.number(step.kernel.grid) else None


class Start:
    """What a launch does: called with a call's memory, it enqueues its kernel.

    Raises: DeviceError where a block needs more shared memory than the device has, or where blocks
    that wait for each other cannot.
    """

    def __init__(self, bound: Bound, step: Launch) -> None:
        self.bound, self.step = bound, step
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

    def task(self, memory: Memory) -> Task:
        """The launch with the addresses of a call."""
        addresses = (b.address for b in self.bound.buffers(self.step, memory))
        own = self.figures
        return Task(
            *(self.entry.function, own.grid, own.block, own.shared),
            *((*addresses, *self.numbers), self.cooperative),
        )

    def __call__(self, memory: Memory) -> None:
        """Enqueue the kernel."""
        memory.launched.append(memory.queue.did(self.enqueue, self.task(memory)))

    def enqueue(self, task: Task, stream: Any) -> None:
        """Enqueue a task of this. What the pool holds is freed if there is no room.

        Raises: DeviceError with the figures and what the driver says.
        """
        device, kernel = self.bound.device, self.kernel
        try:
            with device.lock:
                self.bound.table.pool.again(
                    lambda: device.driver.launch(task, stream), (RoomError,)
                )
        except DriverError as error:
            if error.trouble is Trouble.LOST:
                raise
            across, down = task.block
            raise DeviceError(
                f"{device} does not start kernel {kernel.name} ({', '.join(kernel.ops)}) of "
                f"{task.grid} blocks of {across} x {down} threads with {bytes_text(task.shared)} "
                f"of shared memory: {error}; {self.bound.table.pool.state()}"
            ) from error


def _in_graphs(bound: Bound) -> Iterator[Action]:
    """What a call does: launches that follow each other together, the rest by itself."""
    actions = [a for a in bound.actions if a is not None]
    for together, own in groupby(actions, lambda a: isinstance(a, Start)):
        found: list[Any] = list(own)
        if together and len(found) > 1 and bound.device.driver.graphs:
            yield Segment(bound, found)
        else:
            yield from found


class Segment:
    """Launches one after the other: the second call makes a graph of them, which later ones use.

    Where a call's addresses are others, the nodes of their launches are changed.
    """

    def __init__(self, bound: Bound, starts: Sequence[Start]) -> None:
        self.bound, self.starts = bound, starts
        self.tasks: list[Task] = []
        self.graph: Any = None
        self.called = False

    def __call__(self, memory: Memory) -> None:
        """Enqueue all of it."""
        tasks = [s.task(memory) for s in self.starts]
        device = self.bound.device
        with device.lock:
            if not self.called or not device.driver.graphs or not self._ready(tasks):
                for start, task in zip(self.starts, tasks, strict=True):
                    start.enqueue(task, memory.queue.stream)
                self.called = True
                return
            self.bound.table.pool.again(
                lambda: device.driver.replay(self.graph, memory.queue.stream), (RoomError,)
            )
            self.bound.table.counts[REPLAYS] += 1

    def _ready(self, tasks: list[Task]) -> bool:
        """Whether the graph is of these tasks; a driver that makes none is not asked again."""
        driver, counts = self.bound.device.driver, self.bound.table.counts
        if self.graph is not None:
            for k, (old, new) in enumerate(zip(self.tasks, tasks, strict=True)):
                if old != new:
                    driver.change(self.graph, k, new)
                    self.tasks[k] = new
            return True
        try:
            self.graph = driver.graph(tasks)
        except DriverError as error:
            if error.trouble is Trouble.LOST:
                raise
            driver.graphs = False
            warnings.warn(
                f"kernels on {self.bound.device} are launched one by one, because it makes no "
                f"graph of them: {error}",
                stacklevel=2,
            )
            return False
        self.tasks, counts[CAPTURES] = tasks, counts[CAPTURES] + 1
        finalize(self, _dropped(self.bound.device, self.graph)).atexit = False
        return True


def _dropped(device: Device, graph: Any) -> Callable[[], None]:
    """What gives a graph back, whichever thread drops it."""

    def drop() -> None:
        with suppress(DriverError), device.driver.current():
            device.driver.drop(graph)

    return drop


