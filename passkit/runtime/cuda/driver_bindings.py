"""The CUDA driver through cuda-bindings, which has every call of the driver API."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, NamedTuple

from passkit.runtime.cuda.driver import (
    LAUNCHER_FUNCTIONS,
    CudaLimits,
    CudaProperties,
    Driver,
    DriverError,
    FunctionAttributes,
    LaunchParams,
    NativeCalls,
    driver_error,
)

LIBCUDA = "libcuda.so.1"
"""The library of NVIDIA's driver."""


class DriverGraph(NamedTuple):
    """A CUgraph, and the CUgraphExec that was instantiated from it."""

    graph: Any
    executable: Any


class KernelArguments:
    """Arguments of a kernel in memory: the ``kernelParams`` array of pointers to words."""

    def __init__(self, words: Sequence[int]) -> None:
        count = len(words)
        self.values = (ctypes.c_uint64 * count)(*(n & (1 << 64) - 1 for n in words))
        start, step = ctypes.addressof(self.values), ctypes.sizeof(ctypes.c_uint64)
        self.pointers = (ctypes.c_void_p * count)(*(start + step * k for k in range(count)))

    @property
    def address(self) -> int:
        """The address of the array of pointers."""
        return ctypes.addressof(self.pointers)


class BindingsDriver(Driver):
    """A device, given by its ordinal, through the module ``cuda.bindings.driver``."""

    supports_graphs = True

    def __init__(self, ordinal: int = 0) -> None:
        self.cu = import_module("cuda.bindings.driver")
        self.name = f"cuda-bindings {import_module('cuda.bindings').__version__}"
        self.call("cuInit", 0)
        self.device = self.call("cuDeviceGet", ordinal)
        self.context = self.call("cuDevicePrimaryCtxRetain", self.device)
        self.properties = self._properties()

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a function of the driver API by name.

        Returns its output, or a tuple of all outputs unless there is exactly one. Raises:
        DriverError, with the driver's text, for a status other than success.
        """
        code, *outputs = getattr(self.cu, name)(*arguments)
        if int(code):
            _, message = self.cu.cuGetErrorString(code)
            raise driver_error(name, (message or b"no text").decode())
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _attribute(self, name: str) -> int:
        """Return an attribute of the device, by the name that follows CU_DEVICE_ATTRIBUTE.

        Raises: DriverError where the driver refuses.
        """
        kind = getattr(self.cu.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(self.call("cuDeviceGetAttribute", kind, self.device))

    def _properties(self) -> CudaProperties:
        """Read the device's properties from the driver.

        Raises: DriverError where the driver refuses.
        """
        version = int(self.call("cuDriverGetVersion"))
        name = self.call("cuDeviceGetName", 256, self.device)
        major, minor = (f"COMPUTE_CAPABILITY_{x}" for x in ("MAJOR", "MINOR"))
        return CudaProperties(
            name=name.split(b"\0", 1)[0].decode(),
            capability=(self._attribute(major), self._attribute(minor)),
            version=(version // 1000, version % 1000 // 10),
            limits=CudaLimits(
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
        """Make the context current in this thread inside the `with` block.

        Raises: DriverError where the driver refuses.
        """
        self.call("cuCtxPushCurrent", self.context)
        try:
            yield
        finally:
            self.call("cuCtxPopCurrent")

    def load(self, image: bytes, name: str) -> Any:
        """Load machine code and return its function called ``name``, until the process ends.

        Raises: DriverError.
        """
        module = self.call("cuModuleLoadData", image)
        return self.call("cuModuleGetFunction", module, name.encode())

    def attributes(self, function: Any) -> FunctionAttributes:
        """Return the registers, shared and local memory, and the threads that a function allows.

        Raises: DriverError where the driver refuses.
        """
        names = ("NUM_REGS", "SHARED_SIZE_BYTES", "LOCAL_SIZE_BYTES", "MAX_THREADS_PER_BLOCK")
        kinds = [getattr(self.cu.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{n}") for n in names]
        return FunctionAttributes(
            *(int(self.call("cuFuncGetAttribute", k, function)) for k in kinds)
        )

    def blocks_at_once(self, function: Any, threads: int, shared: int) -> int:
        """Return how many blocks of a function a multiprocessor holds at a time.

        ``threads`` are those of a block, ``shared`` its bytes of dynamic shared memory. Raises:
        DriverError where the driver refuses.
        """
        name = "cuOccupancyMaxActiveBlocksPerMultiprocessor"
        return int(self.call(name, function, threads, shared))

    def allocate(self, nbytes: int) -> int:
        """Return the address of new memory on the device.

        Raises: OutOfDeviceMemoryError where the device has none left, DriverError for another
        failure.
        """
        return int(self.call("cuMemAlloc", nbytes))

    def free(self, address: int) -> None:
        """Free memory that `allocate` returned. Raises: DriverError where the driver refuses."""
        self.call("cuMemFree", address)

    def stream(self) -> Any:
        """Create a stream that does not wait for the default stream.

        Raises: DriverError where the driver refuses.
        """
        kind = self.cu.CUstream_flags.CU_STREAM_NON_BLOCKING
        return self.call("cuStreamCreate", int(kind))

    def handle(self, stream: Any) -> int:
        """Return a stream's CUstream handle."""
        return int(stream)

    def finish(self, stream: Any) -> None:
        """Block until all work in a stream is done.

        Raises: DriverError where work in it has failed.
        """
        self.call("cuStreamSynchronize", stream)

    def upload(self, address: int, array: Any, stream: Any) -> None:
        """Enqueue a copy of a contiguous array to an address on the device, in a stream.

        Raises: DriverError where the driver refuses.
        """
        self.call("cuMemcpyHtoDAsync", address, array.ctypes.data, array.nbytes, stream)

    def download(self, array: Any, address: int, stream: Any) -> None:
        """Enqueue a copy from an address on the device that fills a contiguous array.

        ``stream`` is the stream. Raises: DriverError where the driver refuses.
        """
        self.call("cuMemcpyDtoHAsync", array.ctypes.data, address, array.nbytes, stream)

    def copy(self, target: int, source: int, nbytes: int, stream: Any) -> None:
        """Enqueue a copy of ``nbytes`` on the device, from address ``source`` to ``target``.

        ``stream`` is the stream. Raises: DriverError where the driver refuses.
        """
        self.call("cuMemcpyDtoDAsync", target, source, nbytes, stream)

    def fill(self, address: int, byte: int, nbytes: int, stream: Any) -> None:
        """Enqueue setting ``nbytes`` bytes from an address on to the value ``byte``.

        ``stream`` is the stream. Raises: DriverError where the driver refuses.
        """
        self.call("cuMemsetD8Async", address, byte, nbytes, stream)

    def event(self, stream: Any) -> Any:
        """Record an event in a stream and return it.

        Raises: DriverError where the driver refuses.
        """
        event = self.call("cuEventCreate", 0)
        self.call("cuEventRecord", event, stream)
        return event

    def wait_for(self, stream: int, other: int) -> None:
        """Let a stream wait for the work that is now in another, both given by their handles.

        Raises: DriverError where the driver refuses.
        """
        event = self.event(other)
        try:
            self.call("cuStreamWaitEvent", stream, event, 0)
        finally:
            self.call("cuEventDestroy", event)  # the driver keeps it until it is reached

    def seconds(self, first: Any, last: Any) -> float:
        """Return the seconds from ``first`` to ``last``, events that must have been reached.

        Raises: DriverError where the driver refuses.
        """
        return float(self.call("cuEventElapsedTime", first, last)) / 1e3

    def launch(self, params: LaunchParams, stream: Any) -> None:
        """Enqueue a kernel launch in a stream, cooperatively if ``params`` say so.

        Raises: DriverError.
        """
        arguments = KernelArguments(params.arguments)
        dims = (params.grid, 1, 1, *params.block, 1)
        call = (params.function, *dims, params.shared, stream, arguments.address)
        if params.cooperative:
            self.call("cuLaunchCooperativeKernel", *call)
        else:
            self.call("cuLaunchKernel", *call, 0)

    def graph(self, launches: Sequence[LaunchParams]) -> DriverGraph:
        """Return an executable graph of launches, each of which depends on the one before.

        Raises: DriverError where the driver refuses.
        """
        graph = self.call("cuGraphCreate", 0)
        dependencies: list[Any] = []
        for params in launches:
            arguments = KernelArguments(params.arguments)
            node = self.call(
                "cuGraphAddKernelNode",
                graph,
                dependencies,
                len(dependencies),
                self._node_params(params, arguments),
            )
            if params.cooperative:
                value = self.cu.CUkernelNodeAttrValue()
                value.cooperative = 1
                kind = self.cu.CUkernelNodeAttrID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
                self.call("cuGraphKernelNodeSetAttribute", node, kind, value)
            dependencies = [node]
        return DriverGraph(graph, self.call("cuGraphInstantiate", graph, 0))

    def _node_params(self, params: LaunchParams, arguments: KernelArguments) -> Any:
        """Return CUDA_KERNEL_NODE_PARAMS, valid as long as ``arguments`` lives."""
        node = self.cu.CUDA_KERNEL_NODE_PARAMS()
        node.func = params.function
        node.gridDimX, node.gridDimY, node.gridDimZ = params.grid, 1, 1
        node.blockDimX, node.blockDimY, node.blockDimZ = (*params.block, 1)
        node.sharedMemBytes = params.shared
        node.kernelParams = arguments.address
        return node

    def capture(self, enqueue: Callable[[], None], stream: Any) -> DriverGraph:
        """Return an executable graph of what ``enqueue`` enqueues in a stream.

        Raises: Whatever ``enqueue`` raises, after the capture has ended; DriverError.
        """
        modes = self.cu.CUstreamCaptureMode
        self.call("cuStreamBeginCapture", stream, modes.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
        try:
            enqueue()
        except BaseException:
            with suppress(DriverError):  # ending a failed capture reports the failure once more
                self.call("cuGraphDestroy", self.call("cuStreamEndCapture", stream))
            raise
        graph = self.call("cuStreamEndCapture", stream)
        try:
            return DriverGraph(graph, self.call("cuGraphInstantiate", graph, 0))
        except DriverError:
            self.call("cuGraphDestroy", graph)
            raise

    def replay(self, graph: DriverGraph, stream: Any) -> None:
        """Enqueue a graph in a stream. Raises: DriverError where the driver refuses."""
        self.call("cuGraphLaunch", graph.executable, stream)

    def drop(self, graph: DriverGraph) -> None:
        """Destroy a graph. Raises: DriverError where the driver refuses."""
        self.call("cuGraphExecDestroy", graph.executable)
        self.call("cuGraphDestroy", graph.graph)

    def native_calls(self) -> NativeCalls | None:
        """Return the functions of the driver that this process has loaded, and the context.

        None where the driver's library or one of the functions is not found.
        """
        try:
            library = ctypes.CDLL(LIBCUDA)
            functions = [getattr(library, name) for name in LAUNCHER_FUNCTIONS]
        except (OSError, AttributeError):
            return None
        places = [ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions]
        addresses = dict(zip(LAUNCHER_FUNCTIONS, places, strict=True))
        return NativeCalls(addresses, int(self.context))
