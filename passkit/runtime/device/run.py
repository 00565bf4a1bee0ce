"""Runs: a program's steps enqueued on a device, with what only the host can do in between."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from passkit.runtime.device.host import host_routine
from passkit.runtime.device.memory import Cell, Memory, Place, cell_of
from passkit.runtime.device.pool import Pool
from passkit.runtime.device.queue import Queue
from passkit.runtime.device.variables import Variables
from passkit.runtime.program import Alias, Copy, Launch, Library, Program, Python, Ref, Step
from passkit.runtime.state import State
from passkit.values.size import Extent, Shape, evaluate

Action = Callable[[Memory], None]


class DeviceTable:
    """A program's constants, which are taken to the device once, and its variables, which stay.

    ``counts`` are what its runs count, by name. It does not hold the program, by which it is found.
    """

    def __init__(self, program: Program, device: Any, pool: Pool, state: State) -> None:
        self.device, self.pool = device, pool
        self.counts: dict[str, Any] = {}
        names = {id(a): n for n, a in state.memory.items()}
        arrays = {("constant", k): a for k, a in enumerate(program.constants)}
        self.state, self.variables = state, Variables.of(state, device)
        self.names = {p: names[id(a)] for p, a in arrays.items() if id(a) in names}
        self.constants = {p: cell_of(a) for p, a in arrays.items() if p not in self.names}
        self.changing = {p: self.variables.add(n, arrays[p]) for p, n in self.names.items()}


class BoundProgram(ABC):
    """A program with a number for each size. Units of ``slots``: bytes.

    ``actions`` are what the steps do, ``plan`` is what a call does.
    """

    def __init__(
        self, program: Program, table: DeviceTable, sizes: Mapping[str, int]
    ) -> None:
        self.program, self.table, self.sizes = program, table, dict(sizes)
        self._nbytes: dict[int, int] = {}
        self.slots = [max(map(self.number, slot)) for slot in program.slots]
        self.results = [(d.numpy, self.shape(s)) for d, s in program.outputs]
        self.actions = [self.action(step) for step in program.steps]
        self.plan: Sequence[Action] = [a for a in self.actions if a is not None]

    def number(self, size: Extent) -> int:
        """A size's number."""
        return size if isinstance(size, int) else evaluate(size, self.sizes)

    def shape(self, shape: Shape) -> tuple[int, ...]:
        """A shape's numbers."""
        return tuple(map(self.number, shape))

    def __call__(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> tuple[int, int]:
        """Fill ``outputs``, change variables; when this returns, all is done.

        The bytes that went to the device and came back are returned.
        """
        with self.running():
            memory = self.memory(inputs, outputs, self.table.device.queue)
            for action in self.plan:
                action(memory)
            memory.finish()
        return memory.uploaded, memory.downloaded

    @contextmanager
    def running(self) -> Iterator[None]:
        """Inside, steps can be run. Raises: DeviceError."""
        table = self.table
        with table.device.used("a call"), table.variables.used(table.state, table.names.values()):
            yield

    def memory(self, inputs: Sequence[Any], outputs: Sequence[Any], queue: Queue) -> Memory:
        """The places of a call: its arrays, the constants and the variables."""
        table = self.table
        cells: dict[Place, Cell] = dict(table.constants)
        cells.update({("input", k): cell_of(a) for k, a in enumerate(inputs)})
        results = {("output", k): cell_of(a, filled=False) for k, a in enumerate(outputs)}
        wanted, own = list(results), cells | results | table.changing
        if table.state.pinned:
            wanted += table.changing
        return Memory(
            *(table.pool, queue, own, wanted, self.slots, self.number, self.nbytes)
        )

    def measuring(self) -> Any:
        """A queue of the device that measures what it does."""
        return self.table.device.measuring()

    def nbytes(self, ref: Ref) -> int:
        """The bytes of a value: of each ref of the program, which lives as long, found once."""
        known = self._nbytes.get(id(ref))
        if known is None:
            known = self._nbytes[id(ref)] = self.number(ref.nbytes)
        return known

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
                return self.on_host(function, reads, writes)
            case Copy():
                return self.copy(step)

    def copy(self, step: Copy) -> Action:
        """Copy a value, wherever it is."""
        return lambda memory: memory.move(step.source, step.target)

    def on_host(
        self, function: Callable[..., None], reads: Sequence[Ref], writes: Sequence[Ref]
    ) -> Action:
        """Call a function of the sizes, input arrays and result arrays."""

        def call(memory: Memory) -> None:
            inputs = [memory.array(r) for r in reads]
            function(self.sizes, inputs, [memory.array(w, write=True) for w in writes])

        return call

    def library(self, step: Library) -> Action:
        """Call the host's library."""
        if step.row[0] == "python":
            return self.on_host(step.row[1], step.reads, step.writes)
        table = self.table
        run, reads = host_routine(step, self.program, set(table.constants), self.sizes)

        def call(memory: Memory) -> None:
            inputs = [memory.array(r) for r in reads]
            run(inputs, memory.array(step.writes[0], write=True))

        return call

    @abstractmethod
    def launch(self, step: Launch) -> Action | None:
        """Enqueue a kernel; None where it has nothing to do."""

    @staticmethod
    def buffers(step: Launch, memory: Memory) -> list[Any]:
        """A kernel's buffers: what it reads is there, and the rest is its own."""
        pairs = [(r, b.written) for r, b in zip(step.refs, step.kernel.ast.params, strict=True)]
        found = {r.place: memory.read(r) for r, w in pairs if not w}
        found |= {r.place: memory.written(r) for r, w in pairs if w}
        return [found[r.place] for r in step.refs]
