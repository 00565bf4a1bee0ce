"""A fake CUDA driver and compiler: kernels run on the emulator, and all driver calls are recorded.

A stream does no work until it is waited for, so that results that are read too early are missing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from threading import RLock, local
from typing import Any

import numpy as np
import pytest
from attrs import define, frozen

from passkit.dialects import CUDA
from passkit.runtime.cuda import compiler as compilers
from passkit.runtime.cuda import cublaslt, cudnn
from passkit.runtime.cuda import device as devices
from passkit.runtime.cuda.compiler import CompiledImage, Nvrtc, NvrtcError
from passkit.runtime.cuda.driver import (
    CudaLimits,
    CudaProperties,
    Driver,
    FunctionAttributes,
    LaunchParams,
    NativeCalls,
    driver_error,
)
from passkit.runtime.cuda.libraries import CUBLASLT, CUDNN, SharedLibrary
from passkit.target import KIB, MIB
from tests.emulator.compiling import compiled, compiled_alone, expanded_text
from tests.emulator.device import EmulatedError, launch
from tests.emulator.fake_libraries import FakeLibraries
from tests.emulator.native_calls import NativeFunctions, word
from tests.emulator.stream_capture import StreamCapture

SIGNATURE = r'extern "C"(?: __global__)? +void (?:__launch_bounds__\([^)]*\) )?{}\(\s*([^)]*)\) *{{'
"""A regular expression of a kernel's head, for a name."""
ITEMS = {
    "float": 4,
    "double": 8,
    "bool": 1,
    "int64_t": 8,
    "uint64_t": 8,
    "int32_t": 4,
    "uint32_t": 4,
    "int16_t": 2,
    "uint16_t": 2,
    "int8_t": 1,
    "uint8_t": 1,
}
LOCK = RLock()
"""The emulator runs one kernel at a time."""
LOG = "ptxas info : FunctionAttributes 32 registers, 8 bytes spill stores"


class FakeNvrtc(Nvrtc):
    """A compiler whose machine code is the architecture followed by the source text.

    It refuses texts that contain ``refused``; ``compiled`` counts its runs.
    """

    def __init__(self, architectures: Sequence[int] = (75, 80, 90)) -> None:
        self.version, self.architectures = (13, 5), tuple(architectures)
        self.refused, self.compiled = "exq(", 0

    def compile(self, text: str, options: Sequence[str]) -> CompiledImage:
        """Return the text as an image. Raises: NvrtcError."""
        self.compiled += 1
        (architecture,) = (o.split("=")[1] for o in options if o.startswith("--gpu-arch"))
        if '#line 1 "' not in text:  # not one of passkit's: it has its own header
            return CompiledImage(f"{architecture}\n{expanded_text(text)}".encode(), LOG)
        preamble, own = text.split('#line 1 "')[1:]
        assert preamble == f'preamble"\n{CUDA.preamble}\n'
        name, _, own = own.partition('"\n')
        wrong = [k for k, line in enumerate(own.splitlines(), 1) if self.refused in line]
        if wrong:
            raise NvrtcError(f"{name}({wrong[0]}): error: {self.refused!r} is undefined")
        return CompiledImage(f"{architecture}\n{own}".encode(), LOG)


@define(eq=False)
class Function:
    """A loaded kernel.

    Attributes:
        name: Its name.
        text: Its source.
        arity: The number of its arguments, of 8 bytes each.
        is_one_structure: Whether its arguments are the fields of one structure.
        params: The name, the bytes of an element and whether it is written, of each array.
        library: The compiled library, None until the first launch.
    """

    name: str
    text: str
    arity: int
    is_one_structure: bool
    params: tuple[tuple[str, int, bool], ...]
    library: Any = None

    @property
    def has_header(self) -> bool:
        """Whether the text came with CUDA's built-ins, as texts that passkit did not print do."""
        return "namespace emulated {" in self.text

    def words(self, places: int) -> tuple[int, ...]:
        """Return the arguments of a launch, whose pointers are at an address."""
        if self.is_one_structure:
            return tuple(word(word(places) + 8 * k) for k in range(self.arity))
        return tuple(word(word(places + 8 * k)) for k in range(self.arity))


def fields(text: str) -> Iterator[str]:
    """Yield the fields of a structure, each with its type."""
    for line in " ".join(text.split()).split(";")[:-1]:
        first, *names = line.split(", ")
        kind = first.strip().rpartition(" ")[0]
        yield first
        yield from (f"{kind} {name}" for name in names)


@frozen
class Fault:
    """A planted failure: after ``after`` successful calls, ``times`` ones raise ``message``."""

    message: str
    after: int = 0
    times: int = 1


class FakeDriver(StreamCapture, Driver):
    """A device of two multiprocessors, each of which holds two blocks.

    Its clock advances by a microsecond with each event, by ``seconds_a_byte`` with each copied
    byte and by ``seconds_a_launch`` with each launch.
    """

    name = "a fake"

    def __init__(self, capability: tuple[int, int] = (9, 0), **limits: Any) -> None:
        defaults = {
            "shared_nbytes": 227 * KIB,
            "global_nbytes": 64 * MIB,
            "threads": 1024,
            "units": 2,
            "grid": 16,
            "cooperative": True,
        }
        self.properties = CudaProperties(
            "Fake", capability, (13, 0), CudaLimits(**{**defaults, **limits})
        )
        self.supports_graphs = True
        self.log: list[tuple[str, Any]] = []
        self.faults: dict[str, Fault] = {}
        self.counts: Counter[str] = Counter()
        self.memory: dict[int, Any] = {}
        self.streams: dict[int, list[Callable[[], None]]] = {}
        self.functions: list[Function] = []
        self.time = self.seconds_a_byte = self.seconds_a_launch = 0.0
        self.local = local()
        self.libraries = FakeLibraries(self)
        self.native = NativeFunctions(self)

    def native_calls(self) -> NativeCalls:
        """Return functions for the launcher in C, which call the methods of this object."""
        return self.native.calls()

    def native_function(self, function: Function) -> int:
        """Return a handle of a function."""
        return self.native.handle(function)

    def native_graph(self, graph: list[LaunchParams]) -> int:
        """Return a handle of a graph."""
        return self.native.handle(graph)

    def record(self, call: str, what: Any = None) -> None:
        """Record a call, or raise its planted failure. The context must be current."""
        assert getattr(self.local, "depth", 0), f"{call} without the context"
        self.log.append((call, what))
        self.counts[call] += 1
        self.check(call)
        fault = self.faults.get(call)
        if fault is not None and 0 < self.counts[call] - fault.after <= fault.times:
            raise driver_error(call, fault.message)

    def calls(self, *names: str) -> list[Any]:
        """Return the recorded argument of each of some calls, in order."""
        return [what for name, what in self.log if name in names]

    def fail(self, call: str, message: str, times: int = 1) -> None:
        """Let the next calls of a kind fail with a message of the driver."""
        self.faults[call] = Fault(message, self.counts[call], times)

    @contextmanager
    def current(self) -> Iterator[None]:
        """Make the context current inside the `with` block."""
        self.local.depth = getattr(self.local, "depth", 0) + 1
        try:
            yield
        finally:
            self.local.depth -= 1

    def load(self, image: bytes, name: str) -> Function:
        """Return the kernel of an image. Raises: DriverError for another architecture."""
        self.record("load", name)
        architecture, _, text = image.decode(errors="replace").partition("\n")
        major, minor = self.properties.capability
        if not 10 * major <= int(architecture[3:] or 0) <= 10 * major + minor:
            raise driver_error("load", "no kernel image is available for execution on the device")
        signature = re.search(SIGNATURE.format(name), text)
        assert signature is not None
        structure = re.search(rf"struct {name}_words {{(.*?)}};", text, re.DOTALL)
        declared = re.split(r",\s*", signature[1]) if structure is None else [*fields(structure[1])]
        params = []
        for param in declared:
            words = param.replace("*", " * ").replace("__restrict__", "").split()
            if "*" in words:
                params.append((words[-1], ITEMS.get(words[-3], 1), words[0] != "const"))
        is_one = structure is not None
        self.functions.append(Function(name, text, len(declared), is_one, tuple(params)))
        return self.functions[-1]

    def attributes(self, function: Function) -> FunctionAttributes:
        """Return the same numbers for all kernels."""
        return FunctionAttributes(32, 0, 8, self.properties.limits.threads)

    def blocks_at_once(self, function: Function, threads: int, shared: int) -> int:
        """Return 2; 1 for over half of the shared memory; 0 for too many threads."""
        return (
            0 if threads > 1024 else 1 if 2 * shared > self.properties.limits.shared_nbytes else 2
        )

    def allocate(self, nbytes: int) -> int:
        """Return memory filled with 0xA5. Raises: DriverError when it is exhausted."""
        self.record("allocate", nbytes)
        if (
            sum(a.nbytes for a in self.memory.values()) + nbytes
            > self.properties.limits.global_nbytes
        ):
            raise driver_error("allocate", "out of memory")
        raw = np.full(nbytes + 256, 0xA5, np.uint8)
        start = -raw.ctypes.data % 256
        memory = raw[start : start + nbytes]
        with LOCK:
            self.memory[memory.ctypes.data] = memory
        return int(memory.ctypes.data)

    def free(self, address: int) -> None:
        """Wait for all streams, and free memory."""
        self.record("free", address)
        for stream in self.streams:
            self.run(stream)
        del self.memory[address]

    def stream(self) -> int:
        """Create a stream."""
        self.record("stream")
        self.streams[len(self.streams) + 100] = []
        return len(self.streams) + 99

    def handle(self, stream: int) -> int:
        """Return a stream's number."""
        return stream

    def finish(self, stream: int) -> None:
        """Run what was enqueued."""
        self.record("finish", stream)
        self.run(stream)

    def run(self, stream: int) -> None:
        """Run what was enqueued."""
        with LOCK:
            todo, self.streams[stream] = self.streams[stream], []
            for what in todo:
                what()

    def later(self, stream: int, what: Callable[[], None]) -> None:
        """Enqueue an action, run when the stream is waited for."""
        self.streams[stream].append(what)

    def at(self, address: int, nbytes: int = -1) -> Any:
        """Return the bytes at an address up to the end of its allocation, or ``nbytes`` of them."""
        for start, memory in tuple(self.memory.items()):
            if start <= address < start + memory.nbytes:
                rest = memory[address - start :]
                assert nbytes <= rest.nbytes, f"{nbytes} bytes of {rest.nbytes}"
                return rest if nbytes < 0 else rest[:nbytes]
        raise EmulatedError(f"{address:#x} is not in the memory of the device")

    def upload(self, address: int, array: Any, stream: int) -> None:
        """Enqueue a copy to the device."""
        self.record("upload", (address, array.nbytes, stream))
        self.later(stream, lambda: np.copyto(self.at(address, array.nbytes), array))

    def download(self, array: Any, address: int, stream: int) -> None:
        """Enqueue a copy from the device."""
        self.record("download", (address, array.nbytes, stream))
        self.later(stream, lambda: np.copyto(array, self.at(address, array.nbytes)))

    def copy(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Enqueue a copy on the device."""
        self.record("copy", (target, source, nbytes, stream))
        self.time += self.seconds_a_byte * nbytes
        self.later(stream, lambda: np.copyto(self.at(target, nbytes), self.at(source, nbytes)))

    def fill(self, address: int, byte: int, nbytes: int, stream: int) -> None:
        """Enqueue setting bytes."""
        self.record("fill", (address, byte, nbytes, stream))
        self.later(stream, lambda: self.at(address, nbytes).fill(byte))

    def event(self, stream: int) -> list[float]:
        """Return an event with the clock's time."""
        self.record("event", stream)
        self.time += 1e-6
        return [self.time]

    def wait_for(self, stream: int, other: int) -> None:
        """Enqueue the work of the other stream."""
        self.record("wait_for", (stream, other))
        self.streams.setdefault(stream, [])
        if other in self.streams:
            self.later(stream, lambda: self.run(other))

    def seconds(self, first: list[float], last: list[float]) -> float:
        """Return the time between two events."""
        return last[0] - first[0]

    def launch(self, params: LaunchParams, stream: int) -> None:
        """Enqueue a kernel."""
        self.record("launch", params)
        self.time += self.seconds_a_launch
        self.later(stream, lambda: self.execute(params))

    def execute(self, task: LaunchParams) -> None:
        """Run a kernel now; all loaded kernels are compiled together before the first one runs."""
        own: Function = task.function
        if own.library is None:
            missing = [f for f in self.functions if f.library is None]
            libraries = compiled({f.name: f.text for f in missing if not f.has_header})
            for f in missing:
                f.library = libraries.get(f.name) or compiled_alone(f.text, f.name)
        arrays = [
            whole[: whole.nbytes // item * item].view(f"u{item}")
            for whole, (_, item, _) in zip(
                self.arrays(task.arguments, own), own.params, strict=True
            )
        ]
        stored = [written for _, _, written in own.params]
        launch(
            own.library,
            own.name,
            [n for n, _, _ in own.params],
            arrays,
            stored.count(False),
            task.arguments[len(arrays) :],
            grid=task.grid,
            block=task.block,
            shared=task.shared,
            cooperative=task.cooperative,
            filled=True,
        )

    def arrays(self, arguments: Sequence[int], own: Function) -> list[Any]:
        """Return a kernel's arrays: each ends at the latest where the next one begins."""
        addresses = arguments[: len(own.params)]
        arrays = []
        for a in addresses:
            whole = self.at(a)
            arrays.append(whole[: min((b - a for b in addresses if b > a), default=whole.nbytes)])
        return arrays

    def graph(self, launches: Sequence[LaunchParams]) -> list[LaunchParams]:
        """Return a graph: a list of its launches."""
        self.record("graph", len(launches))
        return list(launches)

    def replay(self, graph: list[Any], stream: int) -> None:
        """Enqueue a graph as it is now."""
        self.record("replay", len(graph))
        for what in tuple(graph):
            task = isinstance(what, LaunchParams)
            self.later(stream, partial(self.execute, what) if task else what)

    def drop(self, graph: list[LaunchParams]) -> None:
        """Destroy a graph."""
        self.record("drop", len(graph))


@contextmanager
def fake_cuda(
    driver: FakeDriver | None = None,
    compiler: Nvrtc | None = None,
    absent: tuple[SharedLibrary, ...] = (CUBLASLT, CUDNN),
) -> Iterator[FakeDriver]:
    """Run target "cuda" on a fake driver inside the `with` block.

    Args:
        driver: The driver, a new one by default.
        compiler: The compiler, a new fake one by default.
        absent: The libraries that are not installed; the others are fakes.

    Yields:
        The driver, whose calls are recorded.
    """
    driver, compiler = driver or FakeDriver(), compiler or FakeNvrtc()
    driver.libraries = FakeLibraries(driver, absent)
    with driver.current():
        device = devices.CudaDevice(driver, devices.CudaQueue(driver, driver.stream()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(devices, "open_device", lambda: device)
        patch.setattr(compilers, "nvrtc", lambda: compiler)
        for module in (cublaslt, cudnn):
            patch.setattr(module, "load_library", driver.libraries.load_library)
        yield driver
