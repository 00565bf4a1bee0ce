"""OpenCL programs: how kernels are enqueued, and the OpenCL run time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np

from passkit.ast.stage import KernelAST
from passkit.errors import DeviceError
from passkit.graph.kernel import Kernel
from passkit.ir.loop import KernelIR
from passkit.runtime.device.bound_program import (
    BoundProgram,
    ProgramData,
    StepAction,
    check_block_memory,
    program_data,
)
from passkit.runtime.device.call_memory import ArrayKey, CallMemory
from passkit.runtime.device.kernel_builder import kernel_label
from passkit.runtime.device.records import ResidentLaunch, ResidentProgram
from passkit.runtime.device.runtimes import DeviceRuntime
from passkit.runtime.opencl.accuracy import relaxed_operations
from passkit.runtime.opencl.arrays import OpenClArray, find_array, new_array
from passkit.runtime.opencl.compiler import OpenClKernel, build, build_text
from passkit.runtime.opencl.device import (
    REDUCTION_NBYTES,
    OpenClQueue,
    adapt_target,
    device,
    memory_of,
    pool_of,
    pyopencl,
)
from passkit.runtime.opencl.matrix_vector import (
    ProductLaunch,
    build_program,
    compiled_width,
    group_items,
    is_vector_product,
    launch_arguments,
    vector_products,
)
from passkit.runtime.opencl.product_in_tiles import (
    TILES_PER_UNIT,
    kernel_text,
    rows_of_tiles,
)
from passkit.runtime.program import (
    AliasStep,
    ArrayRef,
    LaunchStep,
    LibraryCall,
    MatrixProduct,
    PythonCall,
    RuntimeProgram,
)
from passkit.runtime.state import State
from passkit.target import Target
from passkit.values.dtype import float64
from passkit.values.size import evaluate, known_or_zero

MAX_GROUPS = 1 << 22
"""The most work-groups of a launch: the groups of a kernel share its tiles, however many."""
MIN_HELD = 3
"""The least launches that a CPU does not begin before all of them are enqueued."""
PARTIAL = "partial"
"""The kind of the keys of buffers that hold sums of parts of a product."""
MIN_LOCAL_NBYTES = 16
"""The least local memory of a kernel in bytes: some drivers refuse empty local arguments."""


class _Function(NamedTuple):
    """A function of a kernel, and how it is launched.

    Attributes:
        function: pyopencl's kernel.
        items: the number of work-items of each dimension.
        group: the work-items of a group in each dimension.
        arguments: the arguments behind the buffers: sizes, and two pieces of local memory of a
            kernel that declares none in its text.
    """

    function: Any
    items: tuple[int, ...]
    group: tuple[int, ...]
    arguments: list[Any]


class BoundLaunch(NamedTuple):
    """A launch of a program that is bound to sizes.

    Attributes:
        label: what is launched, for error messages.
        function: pyopencl's kernel, of this launch alone: its arguments after the buffers are set.
        items: the number of work-items of each dimension.
        group: the work-items of a group in each dimension.
        keys: the array of each parameter that is a buffer.
        arguments: the arguments after the buffers.
    """

    label: str
    function: Any
    items: tuple[int, ...]
    group: tuple[int, ...]
    keys: tuple[ArrayKey, ...]
    arguments: Sequence[Any]

    def renewed(self) -> Any:
        """Return another kernel of pyopencl for this launch, whose arguments are its own."""
        return _with_arguments(self.function, len(self.keys), self.arguments)


class OpenClBoundProgram(BoundProgram):
    """A program with a number for each size, on an OpenCL device.

    Attributes:
        partial_nbytes: The bytes of buffers that steps need for themselves, by their keys.
        launches: The launches of each step that runs on the device; steps on the host have none.

    Raises:
        DeviceError: where a work-group needs more local memory than the device has.
    """

    def __init__(
        self, program: RuntimeProgram, data: ProgramData, sizes: Mapping[str, int]
    ) -> None:
        self.partial_nbytes: dict[ArrayKey, int] = {}
        self.launches: dict[int, list[BoundLaunch]] = {}
        self._vector_products: dict[int, ProductLaunch] = {}
        self._more_reads: dict[int, tuple[ArrayRef, ...]] = {}
        with data.device.active("preparing launches"):
            super().__init__(program, data, sizes)
            if data.device.limits.is_cpu:
                self._compute_products_in_tiles()
        data.counts["device_library_steps"] = sum(
            isinstance(step, LibraryCall) and id(step) in self.launches for step in program.steps
        )
        data.counts["host_steps"] = sum(
            isinstance(step, (LibraryCall, PythonCall)) and id(step) not in self.launches
            for step in program.steps
        )

    @cached_property
    def resident_program(self) -> ResidentProgram | None:
        """The launches of a call whose arrays are on the device, with kernels of their own.

        None where it has steps on the host or copies, or the launcher in C cannot call the driver.
        """
        calls = self.data.device.calls
        if calls is None:
            return None
        launches: list[BoundLaunch] = []
        for step in self.program.steps:
            if id(step) in self.launches:
                launches += self.launches[id(step)]
            elif not isinstance(step, (AliasStep, LaunchStep)):
                return None
        sizes: dict[ArrayKey, int] = {}
        for key in dict.fromkeys(key for launch in launches for key in launch.keys):
            if key[0] == "arena":
                sizes[key] = self.slots[key[1]]
            elif key[0] == PARTIAL:
                sizes[key] = self.partial_nbytes[key]
        self._own_kernels = [launch.renewed() for launch in launches]
        return ResidentProgram(
            calls,
            [
                ResidentLaunch(
                    function=function.int_ptr,
                    grid=_three_axes(launch.items),
                    block=_three_axes(launch.group),
                    words=launch.keys,
                    num_dims=len(launch.items),
                )
                for launch, function in zip(launches, self._own_kernels, strict=True)
            ],
            list(sizes.values()),
            {key: (k, 0) for k, key in enumerate(sizes)},
        )

    def launch(self, step: LaunchStep) -> StepAction | None:
        """Return the function that enqueues a kernel, or each of its phases that has tiles.

        Returns None where it has none. The function takes the memory of a call, and appends an
        event for each launch to its ``kernel_events``; it raises a DeviceError where the driver
        refuses a launch.

        Raises: DeviceError where a work-group needs more local memory than the device has.
        """
        keys = tuple(ref.key for ref in step.refs)
        label = kernel_label(step.kernel)
        launches = [
            BoundLaunch(
                f"kernel {label}",
                _with_arguments(function, len(keys), arguments),
                items,
                group,
                keys,
                arguments,
            )
            for function, items, group, arguments in self._functions(step)
        ]
        if not launches:
            return None
        self.launches[id(step)] = launches

        def enqueue(memory: CallMemory) -> None:
            """Enqueue the launches for ``memory``. Raises: DeviceError."""
            more = {r.key: memory.read(r) for r in self._more_reads.get(id(step), ())}
            refs = zip(keys, self.buffers(step, memory), strict=True)
            buffers = {key: memory_of(buffer) for key, buffer in (*refs, *more.items())}
            memory.kernel_events += self._start(launches, buffers, memory.queue)

        return enqueue

    def library(self, step: LibraryCall) -> StepAction:
        """Return the function that enqueues products by vectors; other steps run on the host.

        The function takes the memory of a call, appends an event for each launch to its
        ``kernel_events``, and raises a DeviceError where a launch is refused or memory is lacking.
        Raises: ShapeError where a size has no value; pyopencl.Error where the compiler refuses.
        """
        (result,) = step.writes
        double_is_missing = result.dtype is float64 and not self.data.device.limits.double
        if double_is_missing or not is_vector_product(step.operation, result.dtype):
            return super().library(step)
        launches = self.launches[id(step)] = self._product_launches(step)

        def enqueue(memory: CallMemory) -> None:
            """Enqueue the launches for ``memory``. Raises: DeviceError."""
            buffers = {ref.key: memory_of(memory.read(ref)) for ref in step.reads}
            buffers[result.key] = memory_of(memory.written(result))
            for launch in launches:
                for key in launch.keys:
                    if key not in buffers:
                        block = self.data.pool.take(self.partial_nbytes[key])
                        memory.keep_alive.append(block)
                        buffers[key] = memory_of(block)
            memory.kernel_events += self._start(launches, buffers, memory.queue)

        return enqueue

    def _product_launches(self, step: LibraryCall) -> list[BoundLaunch]:
        """Return the launches that compute the products by vectors of a step, a MatrixProduct.

        The bytes of the buffers that they need are added to ``partial_nbytes``. Raises: ShapeError
        where a size has no value; pyopencl.Error where the compiler refuses the kernels.
        """
        operation, device = step.operation, self.data.device
        assert isinstance(operation, MatrixProduct)
        (result,) = step.writes
        block = group_items(self.program.target)
        products = vector_products(
            m=self.number(operation.m),
            n=self.number(operation.n),
            k=self.number(operation.k),
            transposed=(operation.transpose_a, operation.transpose_b),
            counts=(prod(self.shape(operation.batch_a)), prod(self.shape(operation.batch_b))),
            block=block,
        )
        keys = [ref.key for ref in (*step.reads, result)]
        for elements in products.parts:
            keys.append((PARTIAL, len(self.partial_nbytes)))
            self.partial_nbytes[keys[-1]] = elements * result.dtype.nbytes
        launches = []
        for launch in products.launches:
            built = build_program(device, result.dtype, block, compiled_width(launch, block))
            arguments = launch_arguments(launch, result.dtype, block)
            kernel = pyopencl().Kernel(built, launch.name)
            launches.append(
                BoundLaunch(
                    f"{step.routine} {step.sizes_text}",
                    _with_arguments(kernel, len(launch.operands), arguments),
                    launch.items,
                    (block, 1, 1),
                    tuple(keys[operand] for operand in launch.operands),
                    arguments,
                )
            )
        is_single = len(launches) == 1 and block == 1 and products.launches[0].items[1:] == (1, 1)
        if is_single and products.launches[0].name == "rows":
            self._vector_products[id(step)] = products.launches[0]
        return launches

    def _compute_products_in_tiles(self) -> None:
        """Let kernels compute in their tiles the products by vectors that these read, in place.

        The launches of such products are dropped, and those of the kernels replaced.
        """
        steps = self.program.steps
        for position, step in enumerate(steps):
            if id(step) not in self._vector_products:
                continue
            (result,) = step.writes
            for reader in steps[position + 1 :]:
                if any(ref.key == result.key for ref in (*reader.reads, *reader.writes)):
                    if isinstance(reader, LaunchStep) and isinstance(step, LibraryCall):
                        self._compute_in_tiles(step, reader, position)
                    break

    def _compute_in_tiles(self, step: LibraryCall, reader: LaunchStep, position: int) -> None:
        """Let a kernel compute the product by a vector of an earlier step, if its tiles can.

        Its form must tell that each tile reads rows of its own. There must be enough tiles, and
        nothing from the product on, which is at ``position``, may be stored over its operands.
        """
        device, launches = self.data.device, self.launches.get(id(reader), [])
        (result,) = step.writes
        places = [k for k, ref in enumerate(reader.refs) if ref.key == result.key]
        kernel = reader.kernel
        is_plain = len(launches) == 1 and not kernel.phases and launches[0].group == (1,)
        if id(reader) in self._more_reads:  # it has one product already
            return
        if not is_plain or len(places) != 1 or not isinstance(kernel.ast, KernelAST):
            return
        rows = rows_of_tiles(kernel.ast, kernel.ast.params[places[0]].name)
        if rows is None:
            return
        product = self._vector_products[id(step)]
        height, width = product.numbers[3:5]
        numbers = {
            name: self.number(n) for name, n in zip(kernel.ast.sizes, kernel.sizes, strict=True)
        }
        tile_rows = rows.chunk * numbers[rows.rows]
        tiles = numbers[rows.tiles]
        covers = numbers[rows.total] == height and tiles * tile_rows >= height
        if not covers or tiles < TILES_PER_UNIT * device.limits.units:
            return
        matrix, vector = (step.reads[k] for k in product.operands[:2])
        if self._may_overwrite((matrix, vector), step, reader, position):
            return
        text, name = kernel_text(kernel, places[0], rows, result.dtype)
        function = build_text(device, text, name)
        if function is None:
            return
        (launch,) = launches
        arguments = [*launch.arguments, *map(np.int64, (tile_rows, height, width))]
        keys = (*launch.keys, matrix.key, vector.key)
        launches[0] = BoundLaunch(
            label=launch.label,
            function=_with_arguments(function, len(keys), arguments),
            items=launch.items,
            group=launch.group,
            keys=keys,
            arguments=arguments,
        )
        self.launches[id(step)].clear()
        self._more_reads[id(reader)] = matrix, vector

    def _may_overwrite(
        self, operands: Sequence[ArrayRef], step: Any, reader: Any, position: int
    ) -> bool:
        """Return whether a step after a product, up to its reader, may store over its operands.

        A result of the program may lie over an input of as many bytes. ``position`` is that of the
        product's ``step``.
        """
        if any(ref.kind not in ("input", "constant") for ref in operands):
            return True
        nbytes = {self.number(ref.nbytes) for ref in operands}
        steps = self.program.steps[position:]
        for other in steps[: steps.index(reader) + 1]:
            for ref in other.writes:
                if ref.kind not in ("arena", PARTIAL) and self.number(ref.nbytes) in nbytes:
                    return True
        return False

    def _functions(self, step: LaunchStep) -> list[_Function]:
        """Return the functions of a kernel that have tiles, one for each of its phases.

        Raises: DeviceError where a work-group needs more local memory than the device has.
        """
        kernel, entry = step.kernel, step.entry
        tile_counts = [self.number(n) for n, _ in kernel.phases or ((kernel.grid, 0.0),)]
        if not any(tile_counts):
            return []
        cl, device, block = pyopencl(), self.data.device, entry.block
        value = known_or_zero if kernel.phases else evaluate
        sizes = [np.int64(value(n, self.sizes)) for n in kernel.sizes]
        if isinstance(kernel.ast, KernelIR):
            launch = kernel.ast.launch
            check_block_memory(kernel, kernel.ast.shared_nbytes, device.limits.local_nbytes, device)
            group = launch.x, launch.y
            return [
                _Function(function, (tiles * launch.x, launch.y), group, sizes)
                for function, tiles in zip(entry.functions, tile_counts, strict=True)
            ]
        local_nbytes = [
            max(MIN_LOCAL_NBYTES, self.number(kernel.shared_nbytes)),
            max(MIN_LOCAL_NBYTES, REDUCTION_NBYTES * block),
        ]
        check_block_memory(kernel, sum(local_nbytes), device.limits.local_nbytes, device)
        arguments = [*sizes, *map(cl.LocalMemory, local_nbytes)]
        return [
            _Function(function, (min(tiles, MAX_GROUPS) * block,), (block,), arguments)
            for function, tiles in zip(entry.functions, tile_counts, strict=True)
            if tiles
        ]

    def _start(
        self, launches: Sequence[BoundLaunch], buffers: Mapping[ArrayKey, Any], queue: OpenClQueue
    ) -> list[Any]:
        """Enqueue launches; return an event for each.

        Where memory is exhausted, idle memory is freed and a launch retried. On a CPU several
        launches are held until all are enqueued: the first one would take the cores from the thread
        that enqueues the others.

        Args:
            launches: The launches.
            buffers: pyopencl's buffer of each array.
            queue: The queue.

        Raises:
            DeviceError: with the driver's message, where the driver refuses a launch.
        """
        cl, device = pyopencl(), self.data.device
        if len(launches) < MIN_HELD or not device.limits.is_cpu:
            return self._enqueue(launches, buffers, queue, None)
        gate = cl.UserEvent(device.context)
        try:
            return self._enqueue(launches, buffers, queue, [gate])
        finally:
            gate.set_status(cl.command_execution_status.COMPLETE)

    def _enqueue(
        self,
        launches: Sequence[BoundLaunch],
        buffers: Mapping[ArrayKey, Any],
        queue: OpenClQueue,
        gates: list[Any] | None,
    ) -> list[Any]:
        """Enqueue launches; return an event for each.

        The first launch waits for the events ``gates``; None for no events. The other arguments are
        those of `_start`. Raises: DeviceError where the driver refuses a launch, also after idle
        memory was freed.
        """
        cl, pool, handle = pyopencl(), self.data.pool, queue.handle
        enqueue = cl.enqueue_nd_range_kernel
        events = []
        with self.data.device.lock:
            for label, function, items, group, keys, _ in launches:
                for k, key in enumerate(keys):
                    function.set_arg(k, buffers[key])
                try:
                    try:
                        event = enqueue(handle, function, items, group, wait_for=gates)
                    except cl.MemoryError:
                        pool.free_idle()
                        event = enqueue(handle, function, items, group, wait_for=gates)
                except cl.Error as error:
                    raise DeviceError(
                        f"{self.data.device} did not launch {label} of {prod(items)} work-items in "
                        f"groups of {prod(group)}: {error}; {pool.usage()}; call with smaller "
                        "arrays, or choose another device by PYOPENCL_CTX"
                    ) from error
                events.append(event)
                gates = None
        return events


def _three_axes(extents: tuple[int, ...]) -> tuple[int, int, int]:
    """Return extents along three axes, 1 for those that are missing."""
    x, y, z = (*extents, 1, 1)[:3]
    return x, y, z


def _with_arguments(function: Any, first: int, arguments: Sequence[Any]) -> Any:
    """Return a kernel of its own for pyopencl's kernel ``function``, with arguments set.

    They are those from the position ``first`` on.
    """
    cl = pyopencl()
    own = cl.Kernel(function.get_info(cl.kernel_info.PROGRAM), function.function_name)
    for k, argument in enumerate(arguments):
        own.set_arg(first + k, argument)
    return own


def bind_program(
    program: RuntimeProgram, sizes: Mapping[str, int], state: State
) -> OpenClBoundProgram:
    """Return a program bound to ``sizes``, the values of its symbolic sizes, on the device.

    ``state`` has the program's variables. Raises: DeviceError where there is no device, or a
    work-group does not fit on it; MissingDependencyError without pyopencl; ShapeError where a size
    has no value.
    """
    return OpenClBoundProgram(program, program_data(program, state, device, pool_of), sizes)


def build_kernels(kernels: Iterable[Kernel], target: Target) -> Mapping[str, OpenClKernel]:
    """Return kernels built for this machine's device, by their keys.

    ``target`` is limited to the device by `adapt_target` first. Raises: KernelRefusedError where
    the compiler refuses a kernel; DeviceError where there is no device, or it does not compute in
    float64 as a kernel does; MissingDependencyError without pyopencl; CacheError where other users
    may write to the cache folder.
    """
    return build(kernels, device(), adapt_target(target))


def kernel_stats(kernels: Sequence[Kernel]) -> dict[str, Any]:
    """Return entries of `Executable.stats` about ``kernels``.

    They are "device", the device's name, and "relaxed", the less accurate operations. Raises:
    DeviceError where there is no device; MissingDependencyError without pyopencl.
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
    array_type=OpenClArray,
)
