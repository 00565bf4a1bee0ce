"""Program steps that are enqueued in the device's stream: kernel launches and copies.

Library steps are in `passkit.runtime.cuda.libraries`; `passkit.runtime.cuda.graphs` combines
neighbouring steps into graphs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from attrs import evolve

from passkit.errors import DeviceError
from passkit.graph.kernel import Kernel
from passkit.ir.loop import WARP, KernelIR
from passkit.runtime.cuda.compiler import CudaKernel
from passkit.runtime.cuda.device import shipped_profile
from passkit.runtime.cuda.driver import (
    DriverError,
    DriverFailure,
    LaunchParams,
    OutOfDeviceMemoryError,
)
from passkit.runtime.cuda.launch_config import LaunchConfig, launch_config, size_arguments
from passkit.runtime.device.call_memory import ArrayKey, CallMemory
from passkit.runtime.device.kernel_builder import kernel_label
from passkit.runtime.program import ArrayRef, CopyStep, LaunchStep
from passkit.values.units import bytes_text

if TYPE_CHECKING:
    from passkit.runtime.cuda.program import CudaBoundProgram


COUNTER_NBYTES = 4
"""The bytes of a counter of blocks."""


class DeviceAddress(NamedTuple):
    """An address inside memory that another object owns."""

    address: int


class WorkspaceAllocator(Protocol):
    """Where a step gets workspace from. It may be reused once later steps are enqueued."""

    def take(self, nbytes: int) -> Any:
        """Return memory of at least ``nbytes`` bytes: an object with an ``address``.

        Raises: DeviceError where the device has no memory left.
        """
        ...


class EnqueuedStep(ABC):
    """A step that enqueues work in a stream, in two parts.

    `operands` resolves the addresses of a call, `enqueue` uses them: a graph capture repeats only
    the second part. ``reads`` and ``writes`` are the values that it uses, ``bound`` is the program.
    """

    reads: Sequence[ArrayRef]
    writes: Sequence[ArrayRef]

    def __init__(self, bound: CudaBoundProgram) -> None:
        self.bound = bound
        self.device = bound.device

    def __call__(self, memory: CallMemory) -> None:
        """Upload operands where needed, enqueue the step in the call's queue, record its event.

        The event is appended to the call's ``kernel_events``. Raises: DeviceError where the device
        has no memory left or refuses the step; DriverError where the driver fails otherwise.
        """
        operands = self.operands(memory)
        memory.kernel_events.append(memory.queue.enqueue(self.enqueue, operands, memory.pool))

    @abstractmethod
    def operands(self, memory: CallMemory) -> Any:
        """Return the addresses of a call's operands and results, as `enqueue` takes them.

        Operands are uploaded where needed, and results allocated and marked as written. Raises:
        DeviceError where the device has no memory left.
        """

    @abstractmethod
    def enqueue(self, operands: Any, workspaces: WorkspaceAllocator, stream: Any) -> None:
        """Enqueue the step in a stream.

        Args:
            operands: what `operands` returned for this call.
            workspaces: allocates workspace.
            stream: the stream.

        Raises: DeviceError, DriverError.
        """


class KernelStep(EnqueuedStep):
    """The launch of a kernel, with its launch configuration.

    Its occupancy is recorded in the program's statistics. ``numbers`` are the arguments behind the
    arrays: the address of the counters of blocks, if the kernel has any, and the sizes.

    Args:
        bound: The program.
        step: The step of the program.

    Raises:
        DeviceError: where blocks that wait for each other do not fit on the device at a time.
    """

    def __init__(self, bound: CudaBoundProgram, step: LaunchStep) -> None:
        super().__init__(bound)
        self.step = step
        self.reads = step.reads
        self.writes = step.writes
        self.entry: CudaKernel = step.entry
        self.counters = self._counters()
        counters = () if self.counters is None else (int(self.counters.address),)
        self.numbers = (*counters, *size_arguments(step.kernel, bound.sizes))
        self.config = self._config()
        attributes = self.entry.attributes
        occupancy = shipped_profile(self.device.properties).occupancy(
            attributes.registers, attributes.shared, self.config.threads
        )
        bound.data.counts.setdefault("occupancy", {})[self.kernel.name] = occupancy

    @property
    def kernel(self) -> Kernel:
        """Return the kernel that the step launches."""
        return self.step.kernel

    @property
    def cooperative(self) -> bool:
        """Whether its blocks wait for each other."""
        return len(self.kernel.ast.phases) > 1

    def _counters(self) -> Any:
        """Return memory for the counters of the kernel's blocks, set to 0; None without counters.

        Each launch leaves them at 0. They belong to this step alone, whose launches all run in the
        device's stream, one after the other.

        Raises: DeviceError where the device has no memory left; DriverError.
        """
        ast = self.kernel.ast
        if not isinstance(ast, KernelIR) or not ast.counters:
            return None
        nbytes = ast.counters * COUNTER_NBYTES
        block = self.bound.data.pool.take(nbytes)
        self.device.driver.fill(block.address, 0, nbytes, self.device.stream)
        return block

    def _config(self) -> LaunchConfig:
        """Return the launch configuration.

        The grid of a cooperative launch has no more blocks than the device runs at a time. Raises:
        DeviceError where the device lacks cooperative launches; DriverError where the driver
        refuses; ShapeError where a size has no value.
        """
        device, entry = self.device, self.entry
        limits = device.limits
        threads = max(1, entry.threads // WARP) * WARP
        config = launch_config(self.kernel, self.bound.sizes, blocks=limits.grid, threads=threads)
        if not self.cooperative:
            return config
        return evolve(config, grid=min(config.grid, self._resident_blocks(config)))

    def _resident_blocks(self, config: LaunchConfig) -> int:
        """Return how many blocks the device runs at a time, as a cooperative launch needs it.

        Raises:
            DeviceError: where it runs none, or the device or the driver has no cooperative
                launches.
        """
        device, driver = self.device, self.device.driver
        if not device.limits.cooperative or not driver.supports_graphs:
            lacking = device if not device.limits.cooperative else driver.name
            raise DeviceError(
                f"kernel {kernel_label(self.kernel)} has phases, whose blocks wait for each other, "
                f"and {lacking} has no cooperative launches; pip install cuda-bindings, or remove "
                "its operators from keep_together"
            )
        per_unit = driver.blocks_at_once(self.entry.function, config.threads, 0)
        if not per_unit:
            raise DeviceError(
                f"no block of kernel {kernel_label(self.kernel)}, of {config.threads} threads with "
                f"{self.entry.attributes.registers} registers and "
                f"{bytes_text(self.entry.attributes.shared)} of shared memory, fits on {device}; "
                "remove its operators from keep_together"
            )
        return per_unit * device.limits.units

    def operands(self, memory: CallMemory) -> LaunchParams:
        """Return the launch with the addresses of a call's arrays, uploaded where needed.

        Results are allocated and marked as written. Raises: DeviceError where the device has no
        memory left.
        """
        addresses = (buffer.address for buffer in self.bound.buffers(self.step, memory))
        return LaunchParams(
            function=self.entry.function,
            grid=self.config.grid,
            block=self.config.block,
            shared=0,
            arguments=(*addresses, *self.numbers),
            cooperative=self.cooperative,
        )

    def enqueue(self, operands: LaunchParams, workspaces: WorkspaceAllocator, stream: Any) -> None:
        """Enqueue the launch that `operands` returned, in a stream; ``workspaces`` is not used.

        Where memory is exhausted, idle memory is freed and the launch retried.

        Raises:
            DeviceError: with the launch configuration and the driver's message.
            DriverError: where the device is lost.
        """
        device, pool = self.device, self.bound.data.pool
        try:
            with device.lock:
                pool.retry(
                    lambda: device.driver.launch(operands, stream), (OutOfDeviceMemoryError,)
                )
        except DriverError as error:
            if error.failure is DriverFailure.DEVICE_LOST:
                raise
            width, height = operands.block
            raise DeviceError(
                f"{device} did not launch kernel {kernel_label(self.kernel)} of {operands.grid} "
                f"blocks of {width} x {height} threads: {error}; {pool.usage()}; call with smaller "
                "arrays"
            ) from error


class DeviceCopyStep(EnqueuedStep):
    """A copy of a value: on the device in a graph; called by itself, on host, device or between.

    Args:
        bound: The program.
        step: The step of the program.
    """

    def __init__(self, bound: CudaBoundProgram, step: CopyStep) -> None:
        super().__init__(bound)
        self.step = step
        self.reads = step.reads
        self.writes = step.writes
        self.nbytes = bound.number(step.source.nbytes)

    def __call__(self, memory: CallMemory) -> None:
        """Copy the value, on the device or between device and host.

        Raises: DeviceError where the device has no memory left.
        """
        memory.move(self.step.source, self.step.target)

    def is_on_device(self, device_keys: Container[ArrayKey]) -> bool:
        """Return whether source and target stay on the device: a graph can contain such a copy.

        The source must be among ``device_keys``, the target in the arena or a variable: outputs may
        be on the host.
        """
        target = self.step.target.key
        stays = target[0] == "arena" or target in self.bound.data.variable_cells
        return self.step.source.key in device_keys and stays

    def operands(self, memory: CallMemory) -> tuple[int, int]:
        """Return the addresses of target and source; upload the source, mark the target written.

        Raises: DeviceError where the device has no memory left.
        """
        source = int(memory.read(self.step.source).address)
        return int(memory.written(self.step.target).address), source

    def enqueue(
        self, operands: tuple[int, int], workspaces: WorkspaceAllocator, stream: Any
    ) -> None:
        """Enqueue the copy in a stream, between the addresses that `operands` returned.

        Nothing is copied where they are equal or the value has no bytes. ``workspaces`` is not
        used. Raises: DriverError where the driver refuses.
        """
        target, source = operands
        if self.nbytes and target != source:
            self.device.driver.copy(target, source, self.nbytes, stream)
