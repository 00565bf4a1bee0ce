"""Programs bound to sizes: their steps are enqueued on a device, host steps run in between.

`BoundProgram` is the base of CUDA's and OpenCL's programs, which say how a kernel is launched.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from math import prod
from typing import Any
from weakref import WeakKeyDictionary

from passkit.errors import DeviceError
from passkit.graph.kernel import Kernel
from passkit.runtime.device.call_memory import ArrayKey, CallMemory, MemoryCell, cell_of
from passkit.runtime.device.external_arrays import ExternalArray
from passkit.runtime.device.host_library import host_routine
from passkit.runtime.device.interface import DeviceQueue
from passkit.runtime.device.kernel_builder import kernel_label
from passkit.runtime.device.pool import DevicePool
from passkit.runtime.device.records import ResidentProgram, record_of
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

    It does not refer to the program, which is the weak key by which it is looked up.

    Args:
        program: The program.
        device: The device: a `CudaDevice` or an `OpenClDevice`.
        pool: The device's memory pool.
        state: The state that has the program's variables; its `DeviceVariables` get their cells.

    Attributes:
        counts: The statistics of the program's runs by name, as `Executable.stats` reports them.
        variable_names: The variable's name for each constant key that is a variable.
        constants: The cells of the other constants.
        variable_cells: The cells of the variables, which all programs on the device share.
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
    """Return a program's data, the same object while the program lives.

    The first call creates it on the device that ``open_device`` returns, with the pool that
    ``pool_of`` returns for this device and with the variables of ``state``; later calls use none
    of the three.
    """
    data = _data.get(program)
    if data is None:
        device = open_device()
        data = _data[program] = ProgramData(program, device, pool_of(device), state)
    return data


class BoundProgram(ABC):
    """A program with a number for each symbolic size.

    Args:
        program: The program.
        data: The program's data on the device.
        sizes: The value of each symbolic size.

    Raises: ShapeError where a size has no value; what `action` raises for a step.

    Attributes:
        slots: The bytes of each storage slot.
        results: The NumPy dtype and shape of each output.
        actions: A function for each step; None for steps with nothing to do.
        plan: The functions that a call runs, in order.
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
        """Return the value of an extent.

        Raises: ShapeError where one of its sizes is unknown, or it divides by zero.
        """
        return size if isinstance(size, int) else evaluate(size, self.sizes)

    def shape(self, shape: Shape) -> tuple[int, ...]:
        """Return the values of a shape's extents.

        Raises: ShapeError where one of its sizes is unknown.
        """
        return tuple(map(self.number, shape))

    def __call__(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> tuple[int, int]:
        """Enqueue the program, and wait for it where arrays of the host take part.

        Args:
            inputs: An array for each input, contiguous on the host or on the device.
            outputs: An array to fill for each output.

        Returns:
            The bytes uploaded, and the bytes downloaded.

        Raises:
            DeviceError: where a step fails, also one of an earlier call that was not waited for,
                the device has no memory left, or this process is a fork of the one that opened the
                device.
        """
        with self.running():
            memory = self.memory(inputs, outputs, self.data.device.queue)
            for action in self.plan:
                action(memory)
            memory.enqueue_results()
            self.complete(memory, [a for a in (*inputs, *outputs) if isinstance(a, ExternalArray)])
        return memory.uploaded, memory.downloaded

    def complete(self, memory: CallMemory, external: Sequence[ExternalArray]) -> None:
        """Wait for the queue if the host takes part in a call whose work is all enqueued.

        ``memory`` is that of the call, ``external`` are its arrays on the device. Raises: an error
        of the driver's where work in the queue has failed.
        """
        if memory.transfer_events:
            memory.queue.finish()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Make the device and the program's variables usable inside the `with` block.

        Other calls that use the same state wait. Raises: DeviceError where a driver call fails, or
        in a fork of the process that opened the device.
        """
        data = self.data
        names = data.variable_names.values()
        with data.device.active("a call"), data.variables.used(data.state, names):
            yield

    def memory(
        self, inputs: Sequence[Any], outputs: Sequence[Any], queue: DeviceQueue
    ) -> CallMemory:
        """Return the memory of a call: its arrays, the constants and the variables.

        Args:
            inputs: A contiguous NumPy array or an `ExternalArray` for each input.
            outputs: One for each output, to be filled.
            queue: The queue of the device that the call's transfers are enqueued in.
        """
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
        """Return a queue of the device whose events can be timed by its method ``seconds``."""
        return self.data.device.measuring_queue()

    def nbytes(self, ref: ArrayRef) -> int:
        """Return the bytes of a value.

        They are memoized by the identity of ``ref``, which must live as long as the program.
        Raises: ShapeError where a size has no value.
        """
        nbytes = self._nbytes.get(id(ref))
        if nbytes is None:
            nbytes = self._nbytes[id(ref)] = self.number(ref.nbytes)
        return nbytes

    def action(self, step: ProgramStep) -> StepAction | None:
        """Return the function that runs a step; None for an alias or an empty grid.

        Raises: DeviceError where a kernel does not fit on the device; ShapeError where a size has
        no value; CompilerError, CacheError or SettingError where the launcher, for library calls on
        the host, cannot be compiled or loaded.
        """
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
        """Return the function that copies a value; source and target are on host or device."""
        return lambda memory: memory.move(step.source, step.target)

    def on_host(
        self, function: Callable[..., None], reads: Sequence[ArrayRef], writes: Sequence[ArrayRef]
    ) -> StepAction:
        """Return the step that calls ``function(sizes, inputs, outputs)`` on arrays of the host.

        It downloads the values of ``reads`` first; those of ``writes`` are then valid on the host
        alone.
        """

        def call(memory: CallMemory) -> None:
            """Call ``function`` on the host's arrays of ``reads`` and ``writes``."""
            inputs = [memory.array(ref) for ref in reads]
            function(self.sizes, inputs, [memory.array(ref, write=True) for ref in writes])

        return call

    def library(self, step: LibraryCall) -> StepAction:
        """Return the function that runs a library call on the host, with the host's library.

        That is NumPy where the call's table entry is a Python function. Raises: ShapeError where a
        symbolic size has no value; CompilerError, CacheError or SettingError where the launcher
        cannot be compiled or loaded.
        """
        if step.table_entry[0] == "python":
            return self.on_host(step.table_entry[1], step.reads, step.writes)
        constants = set(self.data.constants)
        run, reads = host_routine(step, self.program, constants, self.sizes)

        def call(memory: CallMemory) -> None:
            """Run the routine on the host's arrays of ``memory``, downloaded where needed."""
            inputs = [memory.array(ref) for ref in reads]
            run(inputs, memory.array(step.writes[0], write=True))

        return call

    @cached_property
    def resident_program(self) -> ResidentProgram | None:
        """The launches of a call whose arrays are on the device.

        None where it does more than launch kernels, or the launcher in C cannot call the driver.
        """
        return None

    def fixed_addresses(self) -> Mapping[ArrayKey, int] | None:
        """Return the addresses of constants and variables that are on the device, after a call.

        None where Python has to do calls because the host takes part: it needs the values of
        variables that a call writes, or a call does more than launch kernels.
        """
        data = self.data
        variables = data.variable_cells
        if self.resident_program is None or (variables and data.state.pinned):
            return None
        if any(variables[key].on_host for key in self.written_variables):
            return None
        cells = data.constants | variables
        return {key: cell.buffer.address for key, cell in cells.items() if cell.on_device}

    def record(
        self,
        array_type: type,
        shapes: Sequence[tuple[int, ...]],
        fixed: Mapping[ArrayKey, int],
    ) -> Any | None:
        """Return a record by which the launcher repeats calls; None where Python has to do them.

        Args:
            array_type: The type of the device's arrays.
            shapes: The shapes of the inputs.
            fixed: What `fixed_addresses` returned.
        """
        data, resident = self.data, self.resident_program
        assert resident is not None
        results = [(dtype, shape, prod(shape) * dtype.itemsize) for dtype, shape in self.results]
        sizes = (*resident.temporaries, *(nbytes for _, _, nbytes in results))
        if max(sizes, default=0) > data.device.limits.largest_nbytes:
            return None
        return record_of(
            resident,
            data.pool.allocator,
            array_type,
            data.device,
            shapes,
            results,
            fixed,
            self,
            data.variables if data.variable_cells else None,
            data.state,
        )

    @cached_property
    def written_variables(self) -> list[ArrayKey]:
        """The keys of the variables that a step writes."""
        written = {ref.key for step in self.program.steps for ref in step.writes}
        return [key for key in self.data.variable_cells if key in written]

    @abstractmethod
    def launch(self, step: LaunchStep) -> StepAction | None:
        """Return the function that enqueues a kernel, None where its grid is empty."""

    @staticmethod
    def buffers(step: LaunchStep, memory: CallMemory) -> list[Any]:
        """Return a kernel's device buffers in the order of its parameters.

        ``step`` is the launch, ``memory`` the memory of the call. Inputs are uploaded where needed,
        and before an output takes the memory of one of them; outputs are marked as written. Raises:
        DeviceError where the device has no memory left.
        """
        params = step.kernel.ast.params
        written = [param.written for param in params]
        refs = list(zip(step.refs, written, strict=True))
        buffers = {r.key: memory.read(r) for r, is_written in refs if not is_written}
        buffers |= {r.key: memory.written(r) for r, is_written in refs if is_written}
        return [buffers[r.key] for r in step.refs]


def check_block_memory(kernel: Kernel, nbytes: int, available: int, device: Any) -> None:
    """Check that a kernel's work-group fits into the local memory of a device.

    Args:
        kernel: The kernel.
        nbytes: The bytes that a work-group needs.
        available: The bytes that the device has for one.
        device: The device, for the message.

    Raises:
        DeviceError: where the memory does not suffice.
    """
    if nbytes > available:
        raise DeviceError(
            f"kernel {kernel_label(kernel)} needs {bytes_text(nbytes)} of local memory for a "
            f"work-group, and {device} has {bytes_text(available)}; compile for a Target with less "
            "scratch"
        )
