"""OpenCL programs: how kernels are enqueued, and the OpenCL run time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from passkit.errors import DeviceError
from passkit.plan.kernel import Kernel
from passkit.plan.target import Target
from passkit.runtime.device.bound_program import (
    BoundProgram,
    StepAction,
    check_block_memory,
    program_data,
)
from passkit.runtime.device.call_memory import ArrayKey, CallMemory
from passkit.runtime.device.kernel_builder import kernel_label
from passkit.runtime.device.runtimes import DeviceRuntime
from passkit.runtime.opencl.accuracy import relaxed_operations
from passkit.runtime.opencl.arrays import OpenClExternalArray, find_array, new_array
from passkit.runtime.opencl.compiler import OpenClKernel, build
from passkit.runtime.opencl.device import (
    REDUCTION_NBYTES,
    OpenClQueue,
    adapt_target,
    device,
    memory_of,
    pool_of,
    pyopencl,
)
from passkit.runtime.program import AliasStep, LaunchStep, RuntimeProgram
from passkit.runtime.state import State
from passkit.values.size import evaluate, known_or_zero

MAX_GROUPS = 1 << 22
"""The most work-groups of a launch: the groups of a kernel share its tiles, however many."""
MIN_LOCAL_NBYTES = 16
"""The least local memory of a kernel in bytes: some drivers refuse empty local arguments."""


class ResidentLaunch(NamedTuple):
    """A launch whose arrays are all on the device.

    Attributes:
        kernel: the kernel, for error messages.
        function: pyopencl's kernel, whose arguments after the buffers are set.
        items: the number of work-items.
        block: the work-items of a group.
        keys: the array of each parameter that is a buffer.
    """

    kernel: Kernel
    function: Any
    items: int
    block: int
    keys: tuple[ArrayKey, ...]


class OpenClBoundProgram(BoundProgram):
    """A program with a number for each size, on an OpenCL device."""

    def enqueue(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> tuple[int, int]:
        """Run the program as a call does, but wait only where an array of the host takes part."""
        if self._enqueue_launches(inputs, outputs):
            return 0, 0
        with self.running():
            memory = self.memory(inputs, outputs, self.data.device.queue)
            for action in self.plan:
                action(memory)
            memory.enqueue_results()
            if memory.transfer_events:
                memory.queue.finish()
        return memory.uploaded, memory.downloaded

    @cached_property
    def _launches(self) -> list[ResidentLaunch] | None:
        """The launches of the program, with kernels of their own; None if it has other steps."""
        if not all(isinstance(step, (LaunchStep, AliasStep)) for step in self.program.steps):
            return None
        cl = pyopencl()
        launches = []
        for step in self.program.steps:
            action = self.launch(step) if isinstance(step, LaunchStep) else None
            if action is None:
                continue
            assert isinstance(step, LaunchStep)
            keys = tuple(ref.key for ref in step.refs)
            for function, items, arguments in self._functions(step):
                program = function.get_info(cl.kernel_info.PROGRAM)
                own = cl.Kernel(program, function.function_name)
                for k, argument in enumerate(arguments):
                    own.set_arg(len(keys) + k, argument)
                launches.append(ResidentLaunch(step.kernel, own, items, step.entry.block, keys))
        return launches

    def _enqueue_launches(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> bool:
        """Enqueue the program if it has only launches of arrays on the device; return whether.

        Their arguments are set here: those that calls have in common, once for all calls.
        """
        launches = self._launches
        if launches is None or self.data.variable_names:
            return False
        memory: dict[ArrayKey, Any] = {}
        for k, array in enumerate(inputs):
            if isinstance(array, OpenClExternalArray):
                memory["input", k] = array.keep_alive
        for k, array in enumerate(outputs):
            memory["output", k] = array.keep_alive
        for key, cell in self.data.constants.items():
            if cell.on_device:
                memory[key] = cell.buffer
        for launch in launches:
            for key in launch.keys:
                if key not in memory:
                    if key[0] != "arena":
                        return False
                    memory[key] = self.data.pool.take(self.slots[key[1]])
        device = self.data.device
        with device.active("a call"), device.lock:
            for launch in launches:
                for k, key in enumerate(launch.keys):
                    launch.function.set_arg(k, memory[key])
                self._start(
                    launch.kernel, device.queue, launch.function, launch.items, launch.block
                )
        return True

    def launch(self, step: LaunchStep) -> StepAction | None:
        """Return the function that enqueues a kernel, or each of its phases that has tiles.

        Returns None where it has none. The function takes the memory of a call, and appends an
        event for each launch to its ``kernel_events``; it raises a DeviceError where the driver
        refuses a launch.

        Raises: DeviceError where a work-group needs more local memory than the device has.
        """
        kernel, device, block = step.kernel, self.data.device, step.entry.block
        launches = self._functions(step)
        if not launches:
            return None

        def enqueue(memory: CallMemory) -> None:
            buffers = list(map(memory_of, self.buffers(step, memory)))
            with device.lock:
                for function, items, arguments in launches:
                    function.set_args(*buffers, *arguments)
                    event = self._start(kernel, memory.queue, function, items, block)
                    memory.kernel_events.append(event)

        return enqueue

    def _functions(self, step: LaunchStep) -> list[tuple[Any, int, list[Any]]]:
        """Return the functions of a kernel that have tiles, one for each of its phases.

        Returns: For each, pyopencl's kernel, the number of work-items, and the arguments that
            follow the buffers: sizes, and two pieces of local memory.

        Raises: DeviceError where a work-group needs more local memory than the device has.
        """
        kernel, entry = step.kernel, step.entry
        tile_counts = [self.number(n) for n, _ in kernel.phases or ((kernel.grid, 0.0),)]
        if not any(tile_counts):
            return []
        cl, device, block = pyopencl(), self.data.device, entry.block
        local_nbytes = [
            max(MIN_LOCAL_NBYTES, self.number(kernel.shared_nbytes)),
            max(MIN_LOCAL_NBYTES, REDUCTION_NBYTES * block),
        ]
        check_block_memory(
            kernel,
            sum(local_nbytes),
            device.limits.local_nbytes,
            device,
            memory="local memory",
            block="work-group",
        )
        value = known_or_zero if kernel.phases else evaluate
        sizes = [np.int64(value(n, self.sizes)) for n in kernel.sizes]
        arguments = [*sizes, *map(cl.LocalMemory, local_nbytes)]
        return [
            (function, min(tiles, MAX_GROUPS) * block, arguments)
            for function, tiles in zip(entry.functions, tile_counts, strict=True)
            if tiles
        ]

    def _start(
        self, kernel: Kernel, queue: OpenClQueue, function: Any, items: int, block: int
    ) -> Any:
        """Enqueue a function whose arguments are set; return its event.

        Where memory is exhausted, idle memory is freed and the launch retried.

        Args:
            kernel: The kernel, for the error message.
            queue: The queue.
            function: pyopencl's kernel, one phase of ``kernel``.
            items: The number of work-items, a multiple of ``block``.
            block: The work-items of a work-group.

        Raises:
            DeviceError: with the driver's message, where the driver refuses the launch.
        """
        cl, pool = pyopencl(), self.data.pool

        def enqueue() -> Any:
            return cl.enqueue_nd_range_kernel(queue.handle, function, (items,), (block,))

        try:
            return pool.retry(enqueue, (cl.MemoryError,))
        except cl.Error as error:
            raise DeviceError(
                f"{self.data.device} did not launch kernel {kernel_label(kernel)} of {items} "
                f"work-items in groups of {block}: {error}; {pool.usage()}; call with smaller "
                "arrays, or choose another device by PYOPENCL_CTX"
            ) from error


def bind_program(
    program: RuntimeProgram, sizes: Mapping[str, int], state: State
) -> OpenClBoundProgram:
    """Return a program bound to ``sizes``, the values of its symbolic sizes, on the device.

    ``state`` has the program's variables. Raises: DeviceError where there is no device.
    MissingDependencyError without pyopencl; ShapeError where a size has no value.
    """
    return OpenClBoundProgram(program, program_data(program, state, device, pool_of), sizes)


def build_kernels(kernels: Iterable[Kernel], target: Target) -> Mapping[str, OpenClKernel]:
    """Return kernels built for this machine's device, by their keys.

    ``target`` is limited to the device by `adapt_target` first. Raises: as `build` and `device`.
    """
    return build(kernels, device(), adapt_target(target))


def kernel_stats(kernels: Sequence[Kernel]) -> dict[str, Any]:
    """Return entries of `Executable.stats` about ``kernels``.

    They are "device", the device's name, and "relaxed", the less accurate operations. Raises: as
    `device`.
    """
    opened = device()
    return {"device": str(opened), "relaxed": relaxed_operations(kernels, opened.limits)}


RUNTIME = DeviceRuntime(
    adapt_target=adapt_target,
    build_kernels=build_kernels,
    bind_program=bind_program,
    kernel_stats=kernel_stats,
    find_array=find_array,
    allocate_array=new_array,
)
