"""CUDA programs at run time: what their steps do on the device, and in which graphs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from weakref import WeakKeyDictionary

from attrs import evolve

from passkit.runtime.cuda.busy import busy
from passkit.runtime.cuda.copied import Copied
from passkit.runtime.cuda.device import Device, Queue, device
from passkit.runtime.cuda.driver import DriverError
from passkit.runtime.cuda.epilogues import join_biases
from passkit.runtime.cuda.library import counted, on_device
from passkit.runtime.cuda.pool import pool_of
from passkit.runtime.cuda.segments import CAPTURES, REPLAYS, in_graphs
from passkit.runtime.cuda.shared import MissingError
from passkit.runtime.cuda.start import Start
from passkit.runtime.device.memory import Memory
from passkit.runtime.device.resident import Resident
from passkit.runtime.device.run import Action, BoundProgram, DeviceTable
from passkit.runtime.program import Copy, Launch, Library, Program, Python
from passkit.runtime.state import State

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
        self.plan = in_graphs(self)
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

    def measuring(self) -> Queue:
        """A queue that measures what it does, behind what keeps the device busy until then."""
        with self.device.used("preparing to measure"):
            return evolve(self.device.measuring(), busy=busy(self.device))

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

    def copy(self, step: Copy) -> Copied:
        """Copy a value; where it is on the device, with what is done there."""
        return Copied(self, step)
