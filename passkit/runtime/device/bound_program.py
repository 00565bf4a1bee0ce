"""Programs bound to sizes: their steps are enqueued on a device, host steps run in between.

`BoundProgram` is the base of CUDA's and OpenCL's programs, which say how a kernel is launched.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from passkit.errors import DeviceError
from passkit.plan.kernel import Kernel
from passkit.runtime.device.call_memory import ArrayKey, CallMemory, MemoryCell, cell_of
from passkit.runtime.device.host_library import host_routine
from passkit.runtime.device.interface import DeviceQueue
from passkit.runtime.device.kernel_builder import kernel_label
from passkit.runtime.device.pool import DevicePool
from passkit.runtime.device.variables import DeviceVariables
from passkit.runtime.program import (
    AliasStep,
    ArrayRef,
    CopyStep,
    LaunchStep,
    LibraryCall,
    ProgramStep,
    PythonCall,
    RuntimeProgram,
)
from passkit.runtime.state import State
from passkit.values.size import Extent, Shape, evaluate
from passkit.values.units import bytes_text

StepAction = Callable[[CallMemory], None]
"""Runs or enqueues one step with the memory of a call."""


class ProgramData:
    """A program's data on a device: constants, uploaded once, and variables, which stay there.

    ``counts`` are the statistics of its runs by name. It does not refer to the program, which is
    the weak key by which it is looked up.
    """

    def __init__(
        self, program: RuntimeProgram, device: Any, pool: DevicePool, state: State
    ) -> None:
        self.device = device
        self.pool = pool
        self.state = state
        self.variables = DeviceVariables.of(state, device)
        self.counts: dict[str, Any] = {}
        names = {id(array): name for name, array in state.memory.items()}
        arrays = {("constant", k): array for k, array in enumerate(program.constants)}
        self.variable_names = {k: names[id(a)] for k, a in arrays.items() if id(a) in names}
        self.constants = {k: cell_of(a) for k, a in arrays.items() if k not in self.variable_names}
        self.variable_cells = {
            key: self.variables.add(name, arrays[key]) for key, name in self.variable_names.items()
        }


_data: WeakKeyDictionary[RuntimeProgram, ProgramData] = WeakKeyDictionary()


def program_data(
    program: RuntimeProgram,
    state: State,
    open_device: Callable[[], Any],
    pool_of: Callable[[Any], DevicePool],
) -> ProgramData:
    """Return a program's data, created on the device that is open at the first call."""
    data = _data.get(program)
    if data is None:
        device = open_device()
        data = _data[program] = ProgramData(program, device, pool_of(device), state)
    return data


class BoundProgram(ABC):
    """A program with a number for each symbolic size.

    ``slots`` are the bytes of each storage slot, ``results`` the NumPy dtype and shape of each
    output. ``actions`` has an entry for each step, None for steps with nothing to do; ``plan`` is
    what a call runs.
    """

    def __init__(
        self, program: RuntimeProgram, data: ProgramData, sizes: Mapping[str, int]
    ) -> None:
        self.program = program
        self.data = data
        self.sizes = dict(sizes)
        self._nbytes: dict[int, int] = {}
        self.slots = [max(map(self.number, slot)) for slot in program.slots]
        self.results = [(dtype.numpy, self.shape(shape)) for dtype, shape in program.outputs]
        self.actions = [self.action(step) for step in program.steps]
        self.plan: Sequence[StepAction] = [a for a in self.actions if a is not None]

    def number(self, size: Extent) -> int:
        """Return the value of an extent."""
        return size if isinstance(size, int) else evaluate(size, self.sizes)

    def shape(self, shape: Shape) -> tuple[int, ...]:
        """Return the values of a shape's extents."""
        return tuple(map(self.number, shape))

    def __call__(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> tuple[int, int]:
        """Run the program, and wait until it is done.

        Args:
            inputs: An array for each input, contiguous on the host or on the device.
            outputs: An array to fill for each output.

        Returns:
            The bytes uploaded and downloaded.

        Raises:
            DeviceError: where a step fails.
        """
        with self.running():
            memory = self.memory(inputs, outputs, self.data.device.queue)
            for action in self.plan:
                action(memory)
            memory.finish()
        return memory.uploaded, memory.downloaded

    @contextmanager
    def running(self) -> Iterator[None]:
        """Make the device and the program's variables usable inside. Raises: DeviceError."""
        data = self.data
        names = data.variable_names.values()
        with data.device.active("a call"), data.variables.used(data.state, names):
            yield

    def memory(
        self, inputs: Sequence[Any], outputs: Sequence[Any], queue: DeviceQueue
    ) -> CallMemory:
        """Return the memory of a call: its arrays, the constants and the variables."""
        data = self.data
        cells: dict[ArrayKey, MemoryCell] = dict(data.constants)
        cells.update({("input", k): cell_of(array) for k, array in enumerate(inputs)})
        results = {("output", k): cell_of(array, filled=False) for k, array in enumerate(outputs)}
        needed_on_host = list(results)
        if data.state.pinned:
            needed_on_host += data.variable_cells
        return CallMemory(
            pool=data.pool,
            queue=queue,
            cells=cells | results | data.variable_cells,
            results=needed_on_host,
            slots=self.slots,
            number=self.number,
            nbytes=self.nbytes,
        )

    def measuring_queue(self) -> Any:
        """Return a queue of the device that measures what it does."""
        return self.data.device.measuring_queue()

    def nbytes(self, ref: ArrayRef) -> int:
        """Return the bytes of a value, memoized by the ref, which lives as long as the program."""
        nbytes = self._nbytes.get(id(ref))
        if nbytes is None:
            nbytes = self._nbytes[id(ref)] = self.number(ref.nbytes)
        return nbytes

    def action(self, step: ProgramStep) -> StepAction | None:
        """Return what runs a step, None where it has nothing to do."""
        match step:
            case AliasStep():
                return None
            case LaunchStep():
                return self.launch(step)
            case LibraryCall():
                return self.library(step)
            case PythonCall(_, function, reads, writes):
                return self.on_host(function, reads, writes)
            case CopyStep():
                return self.copy(step)

    def copy(self, step: CopyStep) -> StepAction:
        """Return what copies a value, wherever it is."""
        return lambda memory: memory.move(step.source, step.target)

    def on_host(
        self, function: Callable[..., None], reads: Sequence[ArrayRef], writes: Sequence[ArrayRef]
    ) -> StepAction:
        """Return what calls ``function(sizes, inputs, outputs)`` on arrays of the host."""

        def call(memory: CallMemory) -> None:
            inputs = [memory.array(ref) for ref in reads]
            function(self.sizes, inputs, [memory.array(ref, write=True) for ref in writes])

        return call

    def library(self, step: LibraryCall) -> StepAction:
        """Return what calls the host's library."""
        if step.row[0] == "python":
            return self.on_host(step.row[1], step.reads, step.writes)
        constants = set(self.data.constants)
        run, reads = host_routine(step, self.program, constants, self.sizes)

        def call(memory: CallMemory) -> None:
            inputs = [memory.array(ref) for ref in reads]
            run(inputs, memory.array(step.writes[0], write=True))

        return call

    @abstractmethod
    def launch(self, step: LaunchStep) -> StepAction | None:
        """Return what enqueues a kernel, None where its grid is empty."""

    @staticmethod
    def buffers(step: LaunchStep, memory: CallMemory) -> list[Any]:
        """Return a kernel's buffers in the order of its parameters.

        Inputs are uploaded before an output takes the memory of one of them.
        """
        params = step.kernel.ast.params
        written = [param.written for param in params]
        refs = list(zip(step.refs, written, strict=True))
        buffers = {r.place: memory.read(r) for r, is_written in refs if not is_written}
        buffers |= {r.place: memory.written(r) for r, is_written in refs if is_written}
        return [buffers[r.place] for r in step.refs]


def check_block_memory(
    kernel: Kernel, nbytes: int, available: int, device: Any, memory: str, block: str
) -> None:
    """Check that a kernel's block fits into the memory that the threads of a block share.

    Args:
        kernel: The kernel.
        nbytes: What a block needs.
        available: What the device has for a block.
        device: The device, for the message.
        memory: What the platform calls this memory: "shared memory" or "local memory".
        block: What the platform calls a block: "block" or "work-group".

    Raises:
        DeviceError: where the memory does not suffice.
    """
    if nbytes > available:
        raise DeviceError(
            f"kernel {kernel_label(kernel)} needs {bytes_text(nbytes)} of {memory} for a {block}, "
            f"and {device} has {bytes_text(available)}; compile for a Target with less scratch"
        )
