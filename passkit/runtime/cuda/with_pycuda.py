"""CUDA by PyCUDA, which has no graphs and no cooperative launches: these are cuda-bindings'."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeVar

from attrs import define

from passkit.runtime.cuda.driver import Driver, DriverError, Facts, Limits, Task, Used, failed

Found = TypeVar("Found")


@define(eq=False)
class Loaded:
    """A function by PyCUDA; that of cuda-bindings is loaded where it is needed.

    The module goes when nobody holds it.
    """

    module: Any
    own: Any
    image: bytes
    name: str
    allowed: int = 0
    other: Any = None


class PyCudaDriver(Driver):
    """A device by its number, through the module ``pycuda.driver``.

    ``rest`` is what makes the driver of cuda-bindings, in the same context, or None without it.
    """

    def __init__(self, ordinal: int = 0, rest: Callable[[int], Driver] | None = None) -> None:
        self.cu = import_module("pycuda.driver")
        self.name = f"PyCUDA {import_module('pycuda').VERSION_TEXT}"
        self.memory: dict[int, Any] = {}
        self.call(self.cu.init)
        self.device = self.call(lambda: self.cu.Device(ordinal))
        self.context = self.call(self.device.retain_primary_context)
        self.rest = None if rest is None else rest(ordinal)
        self.graphs = self.rest is not None
        self.facts = self._facts()

    def call(self, made: Callable[[], Found]) -> Found:
        """What a call of PyCUDA gives. Raises: DriverError."""
        try:
            return made()
        except self.cu.Error as error:  # "cuMemAlloc failed: out of memory"
            call, _, said = str(error).partition(" failed: ")
            raise failed(call, said) from None

    def _facts(self) -> Facts:
        kinds, device = self.cu.device_attribute, self.device

        def attribute(name: str) -> int:
            return int(self.call(lambda: device.get_attribute(getattr(kinds, name))))

        version = self.call(self.cu.get_driver_version)
        return Facts(
            name=device.name(),
            capability=tuple(device.compute_capability()),
            version=(version // 1000, version % 1000 // 10),
            limits=Limits(
                shared_nbytes=attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
                global_nbytes=int(device.total_memory()),
                threads=attribute("MAX_THREADS_PER_BLOCK"),
                units=attribute("MULTIPROCESSOR_COUNT"),
                grid=attribute("MAX_GRID_DIM_X"),
                cooperative=self.rest is not None and self.rest.facts.limits.cooperative,
            ),
        )

    @contextmanager
    def current(self) -> Iterator[None]:
        """Inside, the context is this thread's."""
        self.call(self.context.push)
        try:
            yield
        finally:
            self.call(self.context.pop)

    def load(self, image: bytes, name: str) -> Loaded:
        """A function of machine code."""
        module = self.call(lambda: self.cu.module_from_buffer(image))
        return Loaded(module, self.call(lambda: module.get_function(name)), image, name)

    def used(self, function: Loaded) -> Used:
        """What a function takes."""
        own, kinds = function.own, self.cu.function_attribute
        names = ("NUM_REGS", "SHARED_SIZE_BYTES", "LOCAL_SIZE_BYTES", "MAX_THREADS_PER_BLOCK")
        return Used(*self.call(lambda: [own.get_attribute(getattr(kinds, n)) for n in names]))

    def allow_shared(self, function: Loaded, nbytes: int) -> None:
        """Let a function have so much dynamic shared memory."""
        kind = self.cu.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
        self.call(lambda: function.own.set_attribute(kind, nbytes))
        function.allowed = nbytes
        if function.other is not None:
            self._rest().allow_shared(function.other, nbytes)

    def blocks_at_once(self, function: Loaded, threads: int, shared: int) -> int:
        """How many blocks of a function a multiprocessor holds at a time."""
        return self._rest().blocks_at_once(self._other(function), threads, shared)

    def allocate(self, nbytes: int) -> int:
        """The address of new memory on the device."""
        made = self.call(lambda: self.cu.mem_alloc(nbytes))
        self.memory[int(made)] = made
        return int(made)

    def free(self, address: int) -> None:
        """Give memory back."""
        self.call(self.memory.pop(address).free)

    def stream(self) -> Any:
        """A new stream, which does not wait for the default one."""
        return self.call(lambda: self.cu.Stream(1))  # CU_STREAM_NON_BLOCKING

    def handle(self, stream: Any) -> int:
        """A stream as other libraries name it."""
        return int(stream.handle)

    def finish(self, stream: Any) -> None:
        """Wait until all in a stream is done."""
        self.call(stream.synchronize)

    def upload(self, address: int, array: Any, stream: Any) -> None:
        """Copy a contiguous array to the device."""
        self.call(lambda: self.cu.memcpy_htod_async(address, array, stream))

    def download(self, array: Any, address: int, stream: Any) -> None:
        """Fill a contiguous array from the device."""
        self.call(lambda: self.cu.memcpy_dtoh_async(array, address, stream))

    def copy(self, to: int, source: int, nbytes: int, stream: Any) -> None:
        """Copy bytes on the device."""
        self.call(lambda: self.cu.memcpy_dtod_async(to, source, nbytes, stream))

    def fill(self, address: int, byte: int, nbytes: int, stream: Any) -> None:
        """Set bytes on the device."""
        self.call(lambda: self.cu.memset_d8_async(address, byte, nbytes, stream))

    def event(self, stream: Any) -> Any:
        """A point in a stream."""
        made = self.call(self.cu.Event)
        self.call(lambda: made.record(stream))
        return made

    def follow(self, stream: Any, other: int) -> None:
        """Let a stream wait for another library's; PyCUDA by itself waits for all there is."""
        if self.rest is None:
            self.call(self.context.synchronize)
        else:
            self.rest.follow(self.handle(stream), other)

    def seconds(self, first: Any, last: Any) -> float:
        """The time between two points that have been reached."""
        return float(self.call(lambda: first.time_till(last))) / 1e3

    def launch(self, task: Task, stream: Any) -> None:
        """Enqueue a kernel."""
        if task.cooperative:
            self._rest().launch(self._task(task), self.handle(stream))
            return
        function = task.function.own
        function.prepare("q" * len(task.arguments))
        words = [n - (1 << 64) if n >> 63 else n for n in task.arguments]
        block = (*task.block, 1)
        self.call(
            lambda: function.prepared_async_call(
                (task.grid, 1), block, stream, *words, shared_size=task.shared
            )
        )

    def graph(self, tasks: Sequence[Task]) -> Any:
        """Tasks, one after the other, as something that is enqueued by one call."""
        return self._rest().graph([self._task(t) for t in tasks])

    def capture(self, enqueue: Callable[[], None], stream: Any) -> Any:
        """What a function enqueues in a stream, as such a thing."""
        return self._rest().capture(enqueue, self.handle(stream))

    def change(self, graph: Any, number: int, task: Task) -> None:
        """Give one of a graph's tasks other figures or arguments."""
        self._rest().change(graph, number, self._task(task))

    def replay(self, graph: Any, stream: Any) -> None:
        """Enqueue a graph."""
        self._rest().replay(graph, self.handle(stream))

    def drop(self, graph: Any) -> None:
        """Give a graph back."""
        self._rest().drop(graph)

    def _rest(self) -> Driver:
        if self.rest is None:
            raise DriverError(
                "a cooperative launch or graph", f"{self.name} has none; pip install cuda-bindings"
            )
        return self.rest

    def _other(self, function: Loaded) -> Any:
        """The function by cuda-bindings: another copy of the same code, which may as much."""
        if function.other is None:
            function.other = self._rest().load(function.image, function.name)
            if function.allowed:
                self._rest().allow_shared(function.other, function.allowed)
        return function.other

    def _task(self, task: Task) -> Task:
        other = self._other(task.function)
        return Task(other, task.grid, task.block, task.shared, task.arguments, task.cooperative)
