"""CUDA graphs of consecutive steps: steps run one by one at first, later as one graph launch.

A graph contains addresses. It is launched only where all of them, those of intermediate values and
workspace included, are memory that the call holds, in the stream in which everything else runs. So
a graph holds no memory between calls, and never writes to memory that another call, which comes
before or after it in the stream, relies on.
"""

from __future__ import annotations

import gc
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any
from weakref import finalize

from attrs import evolve

from passkit.errors import DeviceError
from passkit.runtime.cuda.device import CudaDevice
from passkit.runtime.cuda.driver import (
    DriverError,
    DriverFailure,
    LaunchParams,
    OutOfDeviceMemoryError,
)
from passkit.runtime.cuda.launch import DeviceAddress, DeviceCopyStep, EnqueuedStep, KernelStep
from passkit.runtime.device.bound_program import BoundProgram, StepAction
from passkit.runtime.device.call_memory import ArrayKey, CallMemory
from passkit.runtime.device.pool import DevicePool, align_block
from passkit.runtime.device.records import (
    REPLAYS,
    ResidentLaunch,
    ResidentProgram,
    graph_words,
)
from passkit.runtime.program import ArrayRef

if TYPE_CHECKING:
    from passkit.runtime.cuda.program import CudaBoundProgram

CAPTURES = "graphs_made"
MAX_GRAPHS = 8  # launcher.c has the same
"""How many sets of addresses have a graph: feeds that alternate have one set each."""
MIN_GRAPH_LAUNCHES = 3
"""The least launches of which the launcher has graphs: two cost less one by one."""

CallAddresses = tuple[int, ...]
"""The addresses of a call, in the order of `SegmentFootprint.addresses`."""


def with_graphs(bound: CudaBoundProgram) -> list[StepAction]:
    """Return the actions that a call runs: runs of device steps as segments, others unchanged.

    Two or more consecutive steps form a segment, if the driver supports graphs. Steps of ``bound``
    without action are left out.
    """
    runs = list(_runs(bound))
    users: dict[ArrayKey, set[int]] = {}
    for number, run in enumerate(runs):
        for refs in run.values():
            for ref in refs:
                users.setdefault(ref.key, set()).add(number)
    actions: list[StepAction] = []
    for run in runs:
        steps = [action for action in run if isinstance(action, EnqueuedStep)]
        if len(steps) < 2 or not bound.device.driver.supports_graphs:
            actions += run
            continue
        only_kernels = all(isinstance(step, KernelStep) for step in steps)
        kind = KernelGraphSegment if only_kernels else CapturedSegment
        actions.append(kind(bound, steps, {k for k, runs_of in users.items() if len(runs_of) == 1}))
    return actions


def _runs(bound: CudaBoundProgram) -> Iterator[dict[StepAction, Collection[ArrayRef]]]:
    """Split a program into runs of steps that can form a graph, and single other steps.

    Each run maps its actions to the values that they use.
    """
    run: dict[StepAction, Collection[ArrayRef]] = {}
    device_keys: set[ArrayKey] = set()
    for action, step in zip(bound.actions, bound.program.steps, strict=True):
        if action is None:
            continue
        if isinstance(action, EnqueuedStep):
            refs = (*action.reads, *action.writes)
            if not isinstance(action, DeviceCopyStep) or action.is_on_device(device_keys):
                run[action] = refs
                device_keys.update(ref.key for ref in refs)
                continue
        if run:
            yield run
        yield {action: (*step.reads, *step.writes)}
        run, device_keys = {}, set()
    if run:
        yield run


class SegmentFootprint:
    """The memory that a segment uses, in the order in which its steps use it.

    Values that are written in the segment and used nowhere else, the inner ones, lie in one block.

    Args:
        steps: The steps of the segment.
        bound: The program.
        is_private: Returns whether no step outside the segment uses a value.

    Attributes:
        inner: The offset of each inner value in the block, in bytes.
        outer: All other values; True for those that are read before they are written.
        written: The bytes of those outer values that are written.
        nbytes: The size of the block in bytes.
    """

    def __init__(
        self,
        steps: Sequence[EnqueuedStep],
        bound: BoundProgram,
        is_private: Callable[[ArrayKey], bool],
    ) -> None:
        self.inner: dict[ArrayKey, int] = {}
        self.outer: dict[ArrayKey, bool] = {}
        self.written: dict[ArrayKey, int] = {}
        self.nbytes = 0
        for step in steps:
            for ref in step.reads:
                if ref.key not in self.inner:
                    self.outer.setdefault(ref.key, True)
            for ref in step.writes:
                key = ref.key
                if key not in self.outer and key[0] == "arena" and is_private(key):
                    if key not in self.inner:
                        self.inner[key] = self.nbytes
                        self.nbytes += align_block(max(1, bound.slots[key[1]]))
                else:
                    self.outer.setdefault(key, False)
                    self.written[key] = bound.nbytes(ref)

    def addresses(self, memory: CallMemory) -> CallAddresses:
        """Allocate and upload a call's arrays; return the addresses of block and outer values.

        The block comes first, unless there are no inner values. Two calls with equal results use
        equal addresses in every step. The block is kept alive by ``memory``. Raises: DeviceError
        where the device has no memory left.
        """
        addresses: list[int] = []
        if self.nbytes:
            block = memory.pool.take(self.nbytes)
            memory.keep_alive.append(block)
            addresses.append(block.address)
        for key, is_read in self.outer.items():
            cell = memory.cell(key)
            if is_read:
                memory.to_device(cell)
            else:
                memory.ensure_buffer(cell)
            addresses.append(cell.buffer.address)
        return tuple(addresses)

    def set_inner_buffers(self, memory: CallMemory, addresses: CallAddresses) -> None:
        """Set the buffers of inner values' cells, in ``memory``, to their addresses in the block.

        ``addresses`` is what `addresses` returned for this call.
        """
        for key, offset in self.inner.items():
            memory.cell(key).buffer = DeviceAddress(addresses[0] + offset)

    def mark_written(self, memory: CallMemory) -> None:
        """Mark the outer values that the segment writes as valid on the device only."""
        for key, nbytes in self.written.items():
            cell = memory.cells[key]
            cell.nbytes, cell.on_host, cell.on_device = nbytes, False, True


class SegmentWorkspace:
    """One block of workspace that the steps of a segment use one after the other.

    Memory that does not fit into the block is taken from the pool.

    Args:
        pool: The device's pool.
        address: The address of the block, 0 without one.
        nbytes: The size of the block in bytes.

    Attributes:
        used: The bytes that the current step has requested.
        needed: The most bytes that a step has requested.
    """

    def __init__(self, pool: DevicePool, address: int = 0, nbytes: int = 0) -> None:
        self.pool = pool
        self.address = address
        self.nbytes = nbytes
        self.used = 0
        self.needed = 0

    def begin_step(self) -> None:
        """Let the next step overwrite the workspace of the last one."""
        self.used = 0

    def take(self, nbytes: int) -> Any:
        """Return memory of at least ``nbytes`` bytes, exclusive within the step.

        Raises: DeviceError where it does not fit into the block and the device has none left.
        """
        offset = self.used
        self.used += align_block(nbytes)
        self.needed = max(self.needed, self.used)
        if self.used > self.nbytes:
            return self.pool.take(nbytes)
        return DeviceAddress(self.address + offset)


class ExecutableGraph:
    """A graph of the driver of ``device``, destroyed when nothing refers to it.

    ``workspace`` is the address of the workspace that it uses, 0 without one.
    """

    def __init__(self, device: CudaDevice, graph: Any, workspace: int = 0) -> None:
        self.graph = graph
        self.workspace = workspace
        finalize(self, _destroyer(device, graph)).atexit = False


def _destroyer(device: CudaDevice, graph: Any) -> Callable[[], None]:
    """Return a function that destroys a graph of ``device``, in any thread.

    A DriverError in it is ignored.
    """

    def destroy() -> None:
        """Destroy the graph; errors of the driver are ignored."""
        with suppress(DriverError), device.driver.current():
            device.driver.drop(graph)

    return destroy


class GraphSegment(ABC):
    """Consecutive steps that are one graph launch once a graph fits the addresses of a call.

    The first call at some addresses enqueues the steps one by one, so that libraries initialize
    themselves. The second call at the same addresses builds a graph, which later ones launch.

    Args:
        bound: The program.
        steps: The steps.
        private_keys: The values that no step outside the segment uses.

    Attributes:
        graphs: For the addresses of each of the last calls, the graph; None before it is built.
        builds_graphs: Whether no graph has failed.
        workspace_nbytes: The most bytes of workspace that a step needs.
    """

    def __init__(
        self,
        bound: CudaBoundProgram,
        steps: Sequence[EnqueuedStep],
        private_keys: Collection[ArrayKey],
    ) -> None:
        self.bound = bound
        self.device = bound.device
        self.steps = steps
        self.footprint = SegmentFootprint(steps, bound, private_keys.__contains__)
        self.graphs: dict[CallAddresses, ExecutableGraph | None] = {}
        self.builds_graphs = True
        self.workspace_nbytes = 0

    def __call__(self, memory: CallMemory) -> None:
        """Enqueue the steps for the memory of a call, as one graph launch or one by one.

        Operands are uploaded where needed; values that the steps write are marked as written.
        Raises: DeviceError where the device has no memory left or refuses a launch; DriverError
        where the driver fails otherwise.
        """
        addresses = self.footprint.addresses(memory)
        with self.device.lock:
            self.run(addresses, memory)
        self.footprint.mark_written(memory)

    def run(self, addresses: CallAddresses, memory: CallMemory) -> None:
        """Launch the graph of these addresses, build one, or enqueue the steps one by one.

        Graphs are built for addresses that occur a second time, or whose workspace has moved; those
        of the `MAX_GRAPHS` last addresses are kept. The caller holds the device's lock.

        Args:
            addresses: what `SegmentFootprint.addresses` returned for this call.
            memory: the memory of the call.

        Raises: DeviceError, DriverError.
        """
        graph = None
        if addresses in self.graphs and self.builds_graphs and self.device.driver.supports_graphs:
            graph = self.graphs.pop(addresses)
            workspace: Any = DeviceAddress(0)
            if self.workspace_nbytes:
                workspace = memory.pool.take(self.workspace_nbytes)
            if graph is None or graph.workspace != workspace.address:
                graph = self.build(addresses, memory, workspace.address)
            if graph is not None:
                self.replay(graph, memory)
        if graph is None:
            self._enqueue_one_by_one(addresses, memory)
        self.graphs[addresses] = graph
        if len(self.graphs) > MAX_GRAPHS:
            del self.graphs[next(iter(self.graphs))]

    @abstractmethod
    def build(
        self, addresses: CallAddresses, memory: CallMemory, workspace_address: int
    ) -> ExecutableGraph | None:
        """Build a graph of the steps at a call's addresses.

        Args:
            addresses: what `SegmentFootprint.addresses` returned for the call.
            memory: the memory of the call.
            workspace_address: the address of the workspace, 0 for none.

        Returns: None, with a warning, where the driver cannot; then no other is tried.

        Raises: DriverError where the device is lost.
        """

    def _enqueue_one_by_one(self, addresses: CallAddresses, memory: CallMemory) -> None:
        """Enqueue the steps, and record in ``workspace_nbytes`` how much workspace they need.

        ``addresses`` is what `SegmentFootprint.addresses` returned for the call that has
        ``memory``. Raises: DeviceError, DriverError.
        """
        workspace = SegmentWorkspace(memory.pool)
        self.footprint.set_inner_buffers(memory, addresses)
        self.enqueue(memory, workspace, memory.queue.stream)
        self.workspace_nbytes = max(self.workspace_nbytes, workspace.needed)

    def enqueue(self, memory: CallMemory, workspace: SegmentWorkspace, stream: Any) -> None:
        """Enqueue each step in a stream, with its workspace from ``workspace``.

        ``memory`` is the memory of the call. Raises: DeviceError, DriverError.
        """
        for step in self.steps:
            workspace.begin_step()
            step.enqueue(step.operands(memory), workspace, stream)

    def replay(self, graph: ExecutableGraph, memory: CallMemory) -> None:
        """Enqueue a graph, and count its launch in the program's statistics.

        Where device memory is exhausted, idle memory is freed and the launch retried. The driver
        destroys a graph that is dropped after it has run.

        Raises: DriverError where the driver refuses it.
        """
        driver, stream = self.device.driver, memory.queue.stream
        self.bound.data.pool.retry(
            lambda: driver.replay(graph.graph, stream), (OutOfDeviceMemoryError,)
        )
        self.bound.data.counts[REPLAYS] += 1

    def new_graph(self, graph: Any, workspace: int = 0) -> ExecutableGraph:
        """Take ownership of a graph of the driver, and count it.

        ``workspace`` is the address of the workspace that its nodes refer to, 0 for none.
        """
        self.bound.data.counts[CAPTURES] += 1
        return ExecutableGraph(self.device, graph, workspace)


def warn_without_graph(subject: str, error: Exception) -> None:
    """Warn that launches are made one by one because the driver cannot build a graph of them.

    ``subject`` begins the message; ``error`` is the driver's reason.
    """
    warnings.warn(
        f"{subject} one by one, which is slower, because the driver cannot build a graph of "
        f"them: {error}",
        stacklevel=3,
    )


def graph_of(device: CudaDevice, launches: Sequence[LaunchParams]) -> Any | None:
    """Return a driver's graph of launches; None, with a warning, where the driver cannot build it.

    Then the driver is marked as one without graphs. Raises: DriverError where the device is lost.
    """
    try:
        return device.driver.graph(launches)
    except DriverError as error:
        if error.failure is DriverFailure.DEVICE_LOST:
            raise
        device.driver.supports_graphs = False
        warn_without_graph(f"kernels on {device} are launched", error)
        return None


class KernelGraphSegment(GraphSegment):
    """A segment of kernels, whose graph is built from their launches."""

    def build(
        self, addresses: CallAddresses, memory: CallMemory, workspace_address: int
    ) -> ExecutableGraph | None:
        """Build a graph of the kernels at a call's addresses; see `GraphSegment.build`.

        Where the driver cannot build one, return None, and mark the driver as one without graphs.
        """
        self.footprint.set_inner_buffers(memory, addresses)
        graph = graph_of(self.device, [step.operands(memory) for step in self.steps])
        return None if graph is None else self.new_graph(graph)


class CapturedSegment(GraphSegment):
    """A segment with library calls, whose graph is captured from what they enqueue."""

    def build(
        self, addresses: CallAddresses, memory: CallMemory, workspace_address: int
    ) -> ExecutableGraph | None:
        """Capture a graph of the steps at a call's addresses; see `GraphSegment.build`."""
        driver, stream = self.device.driver, capture_stream(self.device)
        workspace = SegmentWorkspace(memory.pool, workspace_address, self.workspace_nbytes)
        self.footprint.set_inner_buffers(memory, addresses)
        try:
            with _no_garbage_collection():
                graph = driver.capture(lambda: self.enqueue(memory, workspace, stream), stream)
        except (DriverError, DeviceError) as error:
            if isinstance(error, DriverError) and error.failure is DriverFailure.DEVICE_LOST:
                raise
            self.builds_graphs = False
            warn_without_graph(f"{len(self.steps)} steps on {self.device} are enqueued", error)
            return None
        assert workspace.needed <= self.workspace_nbytes, "the graph uses memory it does not own"
        return self.new_graph(graph, workspace_address)


def resident_program(
    bound: CudaBoundProgram, calls: Any, steps: Sequence[KernelStep]
) -> ResidentProgram:
    """Return the launches of a program for the launcher in C.

    Intermediate values lie in one block. Of `MIN_GRAPH_LAUNCHES` launches or more there are graphs.

    Args:
        bound: The program.
        calls: The launcher's `DriverCalls`.
        steps: All steps of the program.

    Raises: DriverError where a function cannot be loaded.
    """
    footprint = SegmentFootprint(steps, bound, lambda key: True)
    driver = bound.device.driver
    launches = [
        ResidentLaunch(
            function=driver.native_function(step.entry.function),
            grid=(step.config.grid, 1, 1),
            block=(*step.config.block, 1),
            words=(*(ref.key for ref in step.step.refs), *step.numbers),
            shared=0,
            cooperative=step.cooperative,
        )
        for step in steps
    ]
    program = ResidentProgram(
        calls,
        launches,
        [footprint.nbytes] if footprint.nbytes else [],
        {key: (0, offset) for key, offset in footprint.inner.items()},
    )
    if len(steps) < MIN_GRAPH_LAUNCHES:
        return program

    def build_graph(addresses: tuple[int, ...]) -> tuple[int, Any] | None:
        """Return a graph's handle and the graph, for the addresses of a call's arrays.

        None where the driver cannot build it. Raises: DeviceError where the device is lost.
        """
        device, fixed = bound.device, bound.fixed_addresses()
        if not device.driver.supports_graphs or fixed is None:
            return None
        num_inputs = len(bound.program.inputs)
        words = graph_words(program, num_inputs, len(bound.results), fixed, addresses)
        with device.active("building a graph"):
            graph = graph_of(
                device,
                [
                    LaunchParams(
                        function=step.entry.function,
                        grid=step.config.grid,
                        block=step.config.block,
                        shared=0,
                        arguments=arguments,
                        cooperative=step.cooperative,
                    )
                    for step, arguments in zip(steps, words, strict=True)
                ],
            )
            if graph is None:
                return None
            bound.data.counts[CAPTURES] += 1
            return device.driver.native_graph(graph), ExecutableGraph(device, graph)

    return evolve(program, build_graph=build_graph)


@cache
def capture_stream(device: CudaDevice) -> Any:
    """Return the stream in which graphs are captured, and nothing ever runs.

    In the device's main stream the work of other threads would be captured, too. It is created at
    the first call for a device. Raises: DriverError where the driver refuses.
    """
    return device.driver.stream()


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Disable garbage collection inside the `with` block.

    Destroying driver objects would break a capture.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
