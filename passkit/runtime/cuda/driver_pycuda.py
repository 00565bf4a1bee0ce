"""The CUDA driver through PyCUDA; graphs and cooperative launches go to cuda-bindings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeVar

from attrs import define, evolve

from passkit.runtime.cuda.driver import (
    CudaLimits,
    CudaProperties,
    Driver,
    DriverError,
    FunctionAttributes,
    LaunchParams,
    NativeCalls,
    driver_error,
)

CallResult = TypeVar("CallResult")


@define(eq=False)
class PyCudaFunction:
    """A function loaded by PyCUDA, and by cuda-bindings, too, when it is first needed there.

    PyCUDA unloads the module when nothing refers to it.

    Attributes:
        module: PyCUDA's module.
        function: PyCUDA's function.
        image: The machine code.
        name: The function's name.
        bindings_function: The function of cuda-bindings, None until it is loaded.
    """

    module: Any
    function: Any
    image: bytes
    name: str
    bindings_function: Any = None


class PyCudaDriver(Driver):
    """A device, given by its ordinal, through the module ``pycuda.driver``.

    ``open_bindings`` opens the driver of cuda-bindings in the same context; None without it.
    """

    def __init__(
        self, ordinal: int = 0, open_bindings: Callable[[int], Driver] | None = None
    ) -> None:
        self.cu = import_module("pycuda.driver")
        self.name = f"PyCUDA {import_module('pycuda').VERSION_TEXT}"
        self.memory: dict[int, Any] = {}
        self.call(self.cu.init)
        self.device = self.call(lambda: self.cu.Device(ordinal))
        self.context = self.call(self.device.retain_primary_context)
        self.bindings = None if open_bindings is None else open_bindings(ordinal)
        self.supports_graphs = self.bindings is not None
        self.properties = self._properties()

    def call(self, function: Callable[[], CallResult]) -> CallResult:
        """Return ``function()``, and convert PyCUDA's errors. Raises: DriverError."""
        try:
            return function()
        except self.cu.Error as error:  # "cuMemAlloc failed: out of memory"
            call, _, message = str(error).partition(" failed: ")
            raise driver_error(call, message) from None

    def _properties(self) -> CudaProperties:
        """Read the device's properties from the driver.

        Raises: DriverError where the driver refuses.
        """
        kinds, device = self.cu.device_attribute, self.device

        def attribute(name: str) -> int:
            """Return a device attribute by PyCUDA's name. Raises: DriverError."""
            return int(self.call(lambda: device.get_attribute(getattr(kinds, name))))

        version = self.call(self.cu.get_driver_version)
        return CudaProperties(
            name=device.name(),
            capability=tuple(device.compute_capability()),
            version=(version // 1000, version % 1000 // 10),
            limits=CudaLimits(
                shared_nbytes=attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
                global_nbytes=int(device.total_memory()),
                threads=attribute("MAX_THREADS_PER_BLOCK"),
                units=attribute("MULTIPROCESSOR_COUNT"),
                grid=attribute("MAX_GRID_DIM_X"),
                cooperative=self.bindings is not None
                and self.bindings.properties.limits.cooperative,
            ),
        )

    @contextmanager
    def current(self) -> Iterator[None]:
        """Make the context current in this thread inside the `with` block.

        Raises: DriverError where the driver refuses.
        """
        self.call(self.context.push)
        try:
            yield
        finally:
            self.call(self.context.pop)

    def load(self, image: bytes, name: str) -> PyCudaFunction:
        """Load machine code and return its function called ``name``. Raises: DriverError."""
        module = self.call(lambda: self.cu.module_from_buffer(image))
        function = self.call(lambda: module.get_function(name))
        return PyCudaFunction(module, function, image, name)

    def attributes(self, function: PyCudaFunction) -> FunctionAttributes:
        """Return the registers, shared and local memory, and the threads that a function allows.

        Raises: DriverError where the driver refuses.
        """
        kinds = self.cu.function_attribute
        get = function.function.get_attribute
        names = ("NUM_REGS", "SHARED_SIZE_BYTES", "LOCAL_SIZE_BYTES", "MAX_THREADS_PER_BLOCK")
        return FunctionAttributes(*self.call(lambda: [get(getattr(kinds, n)) for n in names]))

    def blocks_at_once(self, function: PyCudaFunction, threads: int, shared: int) -> int:
        """Return how many blocks of a function a multiprocessor holds at a time.

        ``threads`` are those of a block, ``shared`` its bytes of dynamic shared memory. Raises:
        DriverError where the driver refuses, or without cuda-bindings.
        """
        return self._bindings().blocks_at_once(self._bindings_function(function), threads, shared)

    def allocate(self, nbytes: int) -> int:
        """Return the address of new memory on the device.

        Raises: OutOfDeviceMemoryError where the device has none left, DriverError for another
        failure.
        """
        allocation = self.call(lambda: self.cu.mem_alloc(nbytes))
        self.memory[int(allocation)] = allocation
        return int(allocation)

    def free(self, address: int) -> None:
        """Free memory that `allocate` returned. Raises: DriverError where the driver refuses."""
        self.call(self.memory.pop(address).free)

    def stream(self) -> Any:
        """Create a stream that does not wait for the default stream.

        Raises: DriverError where the driver refuses.
        """
        return self.call(lambda: self.cu.Stream(1))  # CU_STREAM_NON_BLOCKING

    def handle(self, stream: Any) -> int:
        """Return a stream's CUstream handle."""
        return int(stream.handle)

    def finish(self, stream: Any) -> None:
        """Block until all work in a stream is done.

        Raises: DriverError where work in it has failed.
        """
        self.call(stream.synchronize)

    def upload(self, address: int, array: Any, stream: Any) -> None:
        """Enqueue a copy of a contiguous array to an address on the device, in a stream.

        Raises: DriverError where the driver refuses.
        """
        self.call(lambda: self.cu.memcpy_htod_async(address, array, stream))

    def download(self, array: Any, address: int, stream: Any) -> None:
        """Enqueue a copy from an address on the device that fills a contiguous array.

        ``stream`` is the stream. Raises: DriverError where the driver refuses.
        """
        self.call(lambda: self.cu.memcpy_dtoh_async(array, address, stream))

    def copy(self, target: int, source: int, nbytes: int, stream: Any) -> None:
        """Enqueue a copy of ``nbytes`` on the device, from address ``source`` to ``target``.

        ``stream`` is the stream. Raises: DriverError where the driver refuses.
        """
        self.call(lambda: self.cu.memcpy_dtod_async(target, source, nbytes, stream))

    def fill(self, address: int, byte: int, nbytes: int, stream: Any) -> None:
        """Enqueue setting ``nbytes`` bytes from an address on to the value ``byte``.

        ``stream`` is the stream. Raises: DriverError where the driver refuses.
        """
        self.call(lambda: self.cu.memset_d8_async(address, byte, nbytes, stream))

    def event(self, stream: Any) -> Any:
        """Record an event in a stream and return it.

        Raises: DriverError where the driver refuses.
        """
        event = self.call(self.cu.Event)
        self.call(lambda: event.record(stream))
        return event

    def wait_for(self, stream: int, other: int) -> None:
        """Let a stream wait for the work that is now in another, both given by their handles.

        Without cuda-bindings the host waits for the entire context. Raises: DriverError where the
        driver refuses.
        """
        if self.bindings is None:
            self.call(self.context.synchronize)
        else:
            self.bindings.wait_for(stream, other)

    def seconds(self, first: Any, last: Any) -> float:
        """Return the seconds from ``first`` to ``last``, events that must have been reached.

        Raises: DriverError where the driver refuses.
        """
        return float(self.call(lambda: first.time_till(last))) / 1e3

    def launch(self, params: LaunchParams, stream: Any) -> None:
        """Enqueue a kernel launch, given by ``params``, in a stream.

        Cooperative launches go to cuda-bindings. Raises: DriverError where the driver refuses, or
        for a cooperative launch without cuda-bindings.
        """
        if params.cooperative:
            self._bindings().launch(self._bindings_params(params), self.handle(stream))
            return
        function = params.function.function
        function.prepare("q" * len(params.arguments))
        words = [n - (1 << 64) if n >> 63 else n for n in params.arguments]
        grid, block = (params.grid, 1), (*params.block, 1)
        self.call(
            lambda: function.prepared_async_call(
                grid, block, stream, *words, shared_size=params.shared
            )
        )

    def graph(self, launches: Sequence[LaunchParams]) -> Any:
        """Return an executable graph of launches, each of which depends on the one before.

        Raises: DriverError where the driver refuses, or without cuda-bindings.
        """
        return self._bindings().graph([self._bindings_params(p) for p in launches])

    def capture(self, enqueue: Callable[[], None], stream: Any) -> Any:
        """Return an executable graph of what ``enqueue`` enqueues in a stream.

        The work itself does not run. Raises: Whatever ``enqueue`` raises; DriverError where the
        driver refuses, also without cuda-bindings.
        """
        return self._bindings().capture(enqueue, self.handle(stream))

    def replay(self, graph: Any, stream: Any) -> None:
        """Enqueue a graph in a stream, as one launch.

        Raises: DriverError where the driver refuses, or without cuda-bindings.
        """
        self._bindings().replay(graph, self.handle(stream))

    def drop(self, graph: Any) -> None:
        """Destroy a graph.

        Raises: DriverError where the driver refuses, or without cuda-bindings.
        """
        self._bindings().drop(graph)

    def native_calls(self) -> NativeCalls | None:
        """Return what the launcher in C needs to call the driver; None without cuda-bindings."""
        return None if self.bindings is None else self.bindings.native_calls()

    def native_function(self, function: PyCudaFunction) -> int:
        """Return the CUfunction of a function, which is loaded by cuda-bindings, too.

        Raises: DriverError without cuda-bindings, or where it cannot be loaded.
        """
        return int(self._bindings_function(function))

    def _bindings(self) -> Driver:
        """Return the driver of cuda-bindings. Raises: DriverError without it."""
        if self.bindings is None:
            raise DriverError(
                "a cooperative launch or graph",
                f"{self.name} has neither; pip install cuda-bindings",
            )
        return self.bindings

    def _bindings_function(self, function: PyCudaFunction) -> Any:
        """Return cuda-bindings' object for the same function, loaded at the first call.

        It is kept in ``function.bindings_function``. Raises: DriverError without cuda-bindings, or
        where it cannot be loaded.
        """
        if function.bindings_function is None:
            function.bindings_function = self._bindings().load(function.image, function.name)
        return function.bindings_function

    def _bindings_params(self, params: LaunchParams) -> LaunchParams:
        """Return a copy of a launch with cuda-bindings' object for the same function.

        It is loaded there at the first call. Raises: DriverError without cuda-bindings, or where
        the function cannot be loaded.
        """
        return evolve(params, function=self._bindings_function(params.function))
