"""CUDA by cuda-bindings, which has every call of the driver."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, NamedTuple

from passkit.runtime.cuda.driver import Driver, DriverError, Facts, Limits, Task, Used, failed


class Graph(NamedTuple):
    """A graph, what is launched of it, and its nodes in order."""

    made: Any
    ready: Any
    nodes: tuple[Any, ...]


class Words:
    """The arguments of a kernel where the driver looks for them: an address for each."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self.values = (ctypes.c_uint64 * len(numbers))(*(n & (1 << 64) - 1 for n in numbers))
        start, step = ctypes.addressof(self.values), ctypes.sizeof(ctypes.c_uint64)
        self.places = (ctypes.c_void_p * len(numbers))(
            *(start + step * k for k in range(len(numbers)))
        )

    @property
    def address(self) -> int:
        """Where the addresses are."""
        return ctypes.addressof(self.places)


class BindingsDriver(Driver):
    """A device by its number, through the module ``cuda.bindings.driver``."""

    graphs = True

    def __init__(self, ordinal: int = 0) -> None:
        self.cu = import_module("cuda.bindings.driver")
        self.name = f"cuda-bindings {import_module('cuda.bindings').__version__}"
        self.call("cuInit", 0)
        self.device = self.call("cuDeviceGet", ordinal)
        self.context = self.call("cuDevicePrimaryCtxRetain", self.device)
        self.facts = self._facts()

    def call(self, name: str, *arguments: Any) -> Any:
        """What a call of the driver gives. Raises: DriverError."""
        code, *found = getattr(self.cu, name)(*arguments)
        if int(code):
            _, said = self.cu.cuGetErrorString(code)
            raise failed(name, (said or b"no text").decode())
        return found[0] if len(found) == 1 else tuple(found)

    def _attribute(self, name: str) -> int:
        kind = getattr(self.cu.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(self.call("cuDeviceGetAttribute", kind, self.device))

    def _facts(self) -> Facts:
        version = int(self.call("cuDriverGetVersion"))
        name = self.call("cuDeviceGetName", 256, self.device)
        major, minor = (f"COMPUTE_CAPABILITY_{x}" for x in ("MAJOR", "MINOR"))
        return Facts(
            name=name.split(b"\0", 1)[0].decode(),
            capability=(self._attribute(major), self._attribute(minor)),
            version=(version // 1000, version % 1000 // 10),
            limits=Limits(
                shared_nbytes=self._attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
                global_nbytes=int(self.call("cuDeviceTotalMem", self.device)),
                threads=self._attribute("MAX_THREADS_PER_BLOCK"),
                units=self._attribute("MULTIPROCESSOR_COUNT"),
                grid=self._attribute("MAX_GRID_DIM_X"),
                cooperative=bool(self._attribute("COOPERATIVE_LAUNCH")),
            ),
        )

    @contextmanager
    def current(self) -> Iterator[None]:
        """Inside, the context is this thread's."""
        self.call("cuCtxPushCurrent", self.context)
        try:
            yield
        finally:
            self.call("cuCtxPopCurrent")

    def load(self, image: bytes, name: str) -> Any:
        """A function of machine code; its module stays as long as the process."""
        module = self.call("cuModuleLoadData", image)
        return self.call("cuModuleGetFunction", module, name.encode())

    def used(self, function: Any) -> Used:
        """What a function takes."""
        names = ("NUM_REGS", "SHARED_SIZE_BYTES", "LOCAL_SIZE_BYTES", "MAX_THREADS_PER_BLOCK")
        kinds = [getattr(self.cu.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{n}") for n in names]
        return Used(*(int(self.call("cuFuncGetAttribute", k, function)) for k in kinds))

    def allow_shared(self, function: Any, nbytes: int) -> None:
        """Let a function have so much dynamic shared memory."""
        kinds = self.cu.CUfunction_attribute
        kind = kinds.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        self.call("cuFuncSetAttribute", function, kind, nbytes)

    def blocks_at_once(self, function: Any, threads: int, shared: int) -> int:
        """How many blocks of a function a multiprocessor holds at a time."""
        name = "cuOccupancyMaxActiveBlocksPerMultiprocessor"
        return int(self.call(name, function, threads, shared))

    def allocate(self, nbytes: int) -> int:
        """The address of new memory on the device."""
        return int(self.call("cuMemAlloc", nbytes))

    def free(self, address: int) -> None:
        """Give memory back."""
        self.call("cuMemFree", address)

    def stream(self) -> Any:
        """A new stream, which does not wait for the default one."""
        kind = self.cu.CUstream_flags.CU_STREAM_NON_BLOCKING
        return self.call("cuStreamCreate", int(kind))

    def handle(self, stream: Any) -> int:
        """A stream as other libraries name it."""
        return int(stream)

    def finish(self, stream: Any) -> None:
        """Wait until all in a stream is done."""
        self.call("cuStreamSynchronize", stream)

    def upload(self, address: int, array: Any, stream: Any) -> None:
        """Copy a contiguous array to the device."""
        self.call("cuMemcpyHtoDAsync", address, array.ctypes.data, array.nbytes, stream)

    def download(self, array: Any, address: int, stream: Any) -> None:
        """Fill a contiguous array from the device."""
        self.call("cuMemcpyDtoHAsync", array.ctypes.data, address, array.nbytes, stream)

    def copy(self, to: int, source: int, nbytes: int, stream: Any) -> None:
        """Copy bytes on the device."""
        self.call("cuMemcpyDtoDAsync", to, source, nbytes, stream)

    def fill(self, address: int, byte: int, nbytes: int, stream: Any) -> None:
        """Set bytes on the device."""
        self.call("cuMemsetD8Async", address, byte, nbytes, stream)

    def event(self, stream: Any) -> Any:
        """A point in a stream."""
        made = self.call("cuEventCreate", 0)
        self.call("cuEventRecord", made, stream)
        return made

    def follow(self, stream: Any, other: int) -> None:
        """Let a stream wait for all that is in another library's now, by its handle."""
        made = self.event(other)
        try:
            self.call("cuStreamWaitEvent", stream, made, 0)
        finally:
            self.call("cuEventDestroy", made)  # it lasts until the stream has come so far

    def seconds(self, first: Any, last: Any) -> float:
        """The time between two points that have been reached."""
        return float(self.call("cuEventElapsedTime", first, last)) / 1e3

    def launch(self, task: Task, stream: Any) -> None:
        """Enqueue a kernel."""
        words = Words(task.arguments)
        figures = (task.function, task.grid, 1, 1, *task.block, 1, task.shared, stream)
        if task.cooperative:
            self.call("cuLaunchCooperativeKernel", *figures, words.address)
        else:
            self.call("cuLaunchKernel", *figures, words.address, 0)

    def graph(self, tasks: Sequence[Task]) -> Graph:
        """Tasks, one after the other, as something that is enqueued by one call."""
        made = self.call("cuGraphCreate", 0)
        nodes: list[Any] = []
        for task in tasks:
            words = Words(task.arguments)
            node = self.call(
                "cuGraphAddKernelNode", made, nodes[-1:], len(nodes[-1:]), self._node(task, words)
            )
            if task.cooperative:
                value = self.cu.CUkernelNodeAttrValue()
                value.cooperative = 1
                kind = self.cu.CUkernelNodeAttrID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
                self.call("cuGraphKernelNodeSetAttribute", node, kind, value)
            nodes.append(node)
        return Graph(made, self.call("cuGraphInstantiate", made, 0), tuple(nodes))

    def _node(self, task: Task, words: Words) -> Any:
        node = self.cu.CUDA_KERNEL_NODE_PARAMS()
        node.func = task.function
        node.gridDimX, node.gridDimY, node.gridDimZ = task.grid, 1, 1
        node.blockDimX, node.blockDimY, node.blockDimZ = (*task.block, 1)
        node.sharedMemBytes = task.shared
        node.kernelParams = words.address
        return node

    def capture(self, enqueue: Callable[[], None], stream: Any) -> Graph:
        """What a function enqueues in a stream, as such a thing; its nodes are the library's."""
        kinds = self.cu.CUstreamCaptureMode
        self.call("cuStreamBeginCapture", stream, kinds.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
        try:
            enqueue()
        except BaseException:
            with suppress(DriverError):  # it says once more that something failed
                self.call("cuGraphDestroy", self.call("cuStreamEndCapture", stream))
            raise
        made = self.call("cuStreamEndCapture", stream)
        try:
            return Graph(made, self.call("cuGraphInstantiate", made, 0), ())
        except DriverError:
            self.call("cuGraphDestroy", made)
            raise

    def change(self, graph: Graph, number: int, task: Task) -> None:
        """Give one of a graph's tasks other figures or arguments."""
        words = Words(task.arguments)
        node = self._node(task, words)
        self.call("cuGraphExecKernelNodeSetParams", graph.ready, graph.nodes[number], node)

    def replay(self, graph: Graph, stream: Any) -> None:
        """Enqueue a graph."""
        self.call("cuGraphLaunch", graph.ready, stream)

    def drop(self, graph: Graph) -> None:
        """Give a graph back."""
        self.call("cuGraphExecDestroy", graph.ready)
        self.call("cuGraphDestroy", graph.made)
