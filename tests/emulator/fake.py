"""A CUDA driver and compiler without a device: kernels run on the emulated machine.

All that is asked of the driver is recorded. A stream does nothing before somebody waits for it, so
that what is looked at too early is not there yet.
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
from passkit.plan.target import KIB, MIB
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
    driver_error,
)
from passkit.runtime.cuda.libraries import CUBLASLT, CUDNN, SharedLibrary
from tests.emulator.compiling import compiled
from tests.emulator.driver import EmulatedError, launch
from tests.emulator.libraries import FakeLibraries
from tests.emulator.recording import Recording

SIGNATURE = re.compile(r'extern "C" __global__ void (\w+)\((.*)\) \{')
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
"""There is one emulated machine, which does one thing at a time."""
LOG = "ptxas info : FunctionAttributes 32 registers, 8 bytes spill stores"


class FakeNvrtc(Nvrtc):
    """A compiler whose machine code is the text, behind the architecture that it is for.

    It refuses texts with a word of ``refused``.
    """

    def __init__(self, architectures: Sequence[int] = (75, 80, 90)) -> None:
        self.version, self.architectures = (13, 5), tuple(architectures)
        self.refused, self.compiled = "exq(", 0

    def compile(self, text: str, options: Sequence[str]) -> CompiledImage:
        """The text itself. Raises: NvrtcError."""
        self.compiled += 1
        preamble, own = text.split('#line 1 "')[1:]
        assert preamble == f'preamble"\n{CUDA.preamble}\n'
        name, _, own = own.partition('"\n')
        wrong = [k for k, line in enumerate(own.splitlines(), 1) if self.refused in line]
        if wrong:
            raise NvrtcError(f"{name}({wrong[0]}): error: {self.refused!r} is undefined")
        (architecture,) = (o.split("=")[1] for o in options if o.startswith("--gpu-arch"))
        return CompiledImage(f"{architecture}\n{own}".encode(), LOG)


@define(eq=False)
class Function:
    """A kernel: its name, its text, how many arguments it has, and what its arrays are.

    Each has a name, the bytes of an element, and whether it is written. ``allowed`` is how much the
    kernel may share.
    """

    name: str
    text: str
    arity: int
    params: tuple[tuple[str, int, bool], ...]
    allowed: int = 48 * KIB
    library: Any = None


@frozen
class Fault:
    """A call that fails: what the driver says, after so many calls that do not."""

    said: str
    after: int = 0
    times: int = 1


class FakeDriver(Recording, Driver):
    """A device of two processors, each of which holds two blocks.

    Its clock goes by events, and by what a byte of a copy and a launch are said to take.
    """

    name = "a fake"

    def __init__(self, capability: tuple[int, int] = (9, 0), **limits: Any) -> None:
        known = {
            **{"shared_nbytes": 227 * KIB, "global_nbytes": 64 * MIB, "threads": 1024},
            **{"units": 2, "grid": 16, "cooperative": True},
        }
        self.properties = CudaProperties(
            "Fake", capability, (13, 0), CudaLimits(**{**known, **limits})
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

    def noted(self, call: str, what: Any = None) -> None:
        """Record a call, or let it fail. The context has to be this thread's."""
        assert getattr(self.local, "depth", 0), f"{call} without the context"
        self.log.append((call, what))
        self.counts[call] += 1
        self.check(call)
        fault = self.faults.get(call)
        if fault is not None and 0 < self.counts[call] - fault.after <= fault.times:
            raise driver_error(call, fault.said)

    def calls(self, *names: str) -> list[Any]:
        """What was recorded of some calls, in order."""
        return [what for name, what in self.log if name in names]

    def fail(self, call: str, said: str, times: int = 1) -> None:
        """Let the next calls of a kind fail."""
        self.faults[call] = Fault(said, self.counts[call], times)

    @contextmanager
    def current(self) -> Iterator[None]:
        """Inside, the context is this thread's."""
        self.local.depth = getattr(self.local, "depth", 0) + 1
        try:
            yield
        finally:
            self.local.depth -= 1

    def load(self, image: bytes, name: str) -> Function:
        """The text's kernel."""
        self.noted("load", name)
        architecture, _, text = image.decode(errors="replace").partition("\n")
        major, minor = self.properties.capability
        if not 10 * major <= int(architecture[3:] or 0) <= 10 * major + minor:
            raise driver_error("load", "no kernel image is available for execution on the device")
        found = SIGNATURE.search(text)
        assert found is not None and found[1] == name
        params = []
        for param in found[2].split(", "):
            words = param.replace("*", " * ").replace("__restrict__", "").split()
            if "*" in words:
                params.append((words[-1], ITEMS[words[-3]], words[0] != "const"))
        self.functions.append(Function(name, text, found[2].count(",") + 1, tuple(params)))
        return self.functions[-1]

    def attributes(self, function: Function) -> FunctionAttributes:
        """The same of each."""
        return FunctionAttributes(32, 0, 8, self.properties.limits.threads)

    def allow_shared(self, function: Function, nbytes: int) -> None:
        """Let a function have more shared memory."""
        self.noted("allow_shared", nbytes)
        function.allowed = nbytes

    def blocks_at_once(self, function: Function, threads: int, shared: int) -> int:
        """Two, unless one has more than half of the shared memory."""
        return (
            0 if threads > 1024 else 1 if 2 * shared > self.properties.limits.shared_nbytes else 2
        )

    def allocate(self, nbytes: int) -> int:
        """Memory full of odd bytes."""
        self.noted("allocate", nbytes)
        if (
            sum(a.nbytes for a in self.memory.values()) + nbytes
            > self.properties.limits.global_nbytes
        ):
            raise driver_error("allocate", "out of memory")
        raw = np.full(nbytes + 256, 0xA5, np.uint8)
        start = -raw.ctypes.data % 256
        made = raw[start : start + nbytes]
        with LOCK:
            self.memory[made.ctypes.data] = made
        return int(made.ctypes.data)

    def free(self, address: int) -> None:
        """Wait for all, and forget memory."""
        self.noted("free", address)
        for stream in self.streams:
            self.run(stream)
        del self.memory[address]

    def stream(self) -> int:
        """A new one."""
        self.noted("stream")
        self.streams[len(self.streams) + 100] = []
        return len(self.streams) + 99

    def handle(self, stream: int) -> int:
        """A stream's number."""
        return stream

    def finish(self, stream: int) -> None:
        """Do what was enqueued."""
        self.noted("finish", stream)
        self.run(stream)

    def run(self, stream: int) -> None:
        """Do what was enqueued."""
        with LOCK:
            todo, self.streams[stream] = self.streams[stream], []
            for what in todo:
                what()

    def later(self, stream: int, what: Callable[[], None]) -> None:
        """Do something when somebody waits."""
        self.streams[stream].append(what)

    def at(self, address: int, nbytes: int = -1) -> Any:
        """The bytes at an address, which must be of one allocation."""
        for start, memory in tuple(self.memory.items()):
            if start <= address < start + memory.nbytes:
                found = memory[address - start :]
                assert nbytes <= found.nbytes, f"{nbytes} bytes of {found.nbytes}"
                return found if nbytes < 0 else found[:nbytes]
        raise EmulatedError(f"{address:#x} is no memory of the device")

    def upload(self, address: int, array: Any, stream: int) -> None:
        """Copy to the device."""
        self.noted("upload", (address, array.nbytes, stream))
        self.later(stream, lambda: np.copyto(self.at(address, array.nbytes), array))

    def download(self, array: Any, address: int, stream: int) -> None:
        """Copy from the device."""
        self.noted("download", (address, array.nbytes, stream))
        self.later(stream, lambda: np.copyto(array, self.at(address, array.nbytes)))

    def copy(self, to: int, source: int, nbytes: int, stream: int) -> None:
        """Copy on the device."""
        self.noted("copy", (to, source, nbytes, stream))
        self.time += self.seconds_a_byte * nbytes
        self.later(stream, lambda: np.copyto(self.at(to, nbytes), self.at(source, nbytes)))

    def fill(self, address: int, byte: int, nbytes: int, stream: int) -> None:
        """Set bytes."""
        self.noted("fill", (address, byte, nbytes, stream))
        self.later(stream, lambda: self.at(address, nbytes).fill(byte))

    def event(self, stream: int) -> list[float]:
        """A point whose time is known when it is reached; each thing done takes a microsecond."""
        self.noted("event", stream)
        made: list[float] = []
        self.time += 1e-6
        made.append(self.time)
        return made

    def wait_for(self, stream: int, other: int) -> None:
        """Do what is in the other one."""
        self.noted("wait_for", (stream, other))
        if other in self.streams:
            self.later(stream, lambda: self.run(other))

    def seconds(self, first: list[float], last: list[float]) -> float:
        """Some."""
        return last[0] - first[0]

    def launch(self, task: LaunchParams, stream: int) -> None:
        """Run a kernel when somebody waits."""
        self.noted("launch", task)
        self.time += self.seconds_a_launch
        self.later(stream, lambda: self.execute(task))

    def execute(self, task: LaunchParams) -> None:
        """Run a kernel now, as long as it has what it declared."""
        own: Function = task.function
        assert task.shared <= own.allowed, f"{task.shared} bytes of shared memory"
        if own.library is None:
            missing = [f for f in self.functions if f.library is None]
            made = compiled({f.name: f.text for f in missing})
            for f in missing:
                f.library = made[f.name]
        arrays = [
            whole[: whole.nbytes // item * item].view(f"u{item}")
            for whole, (_, item, _) in zip(self.apart(task.arguments, own), own.params, strict=True)
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

    def apart(self, arguments: Sequence[int], own: Function) -> list[Any]:
        """A kernel's arrays: each ends at the latest where the next one begins."""
        addresses = arguments[: len(own.params)]
        found = []
        for a in addresses:
            whole = self.at(a)
            found.append(whole[: min((b - a for b in addresses if b > a), default=whole.nbytes)])
        return found

    def graph(self, tasks: Sequence[LaunchParams]) -> list[LaunchParams]:
        """The tasks."""
        self.noted("graph", len(tasks))
        return list(tasks)

    def change(self, graph: list[LaunchParams], number: int, task: LaunchParams) -> None:
        """Another task in the place of one."""
        self.noted("change", number)
        graph[number] = task

    def replay(self, graph: list[Any], stream: int) -> None:
        """Do all of a graph, as it is now, when somebody waits."""
        self.noted("replay", len(graph))
        for what in tuple(graph):
            task = isinstance(what, LaunchParams)
            self.later(stream, partial(self.execute, what) if task else what)

    def drop(self, graph: list[LaunchParams]) -> None:
        """Forget a graph."""
        self.noted("drop", len(graph))


@contextmanager
def faked(
    driver: FakeDriver | None = None,
    compiler: Nvrtc | None = None,
    absent: tuple[SharedLibrary, ...] = (CUBLASLT, CUDNN),
) -> Iterator[FakeDriver]:
    """Inside, target "cuda" runs on a fake driver, with fake libraries but for ``absent`` ones."""
    driver, compiler = driver or FakeDriver(), compiler or FakeNvrtc()
    driver.libraries = FakeLibraries(driver, absent)
    with driver.current():
        made = devices.CudaDevice(driver, devices.CudaQueue(driver, driver.stream()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(devices, "open_device", lambda: made)
        patch.setattr(compilers, "nvrtc", lambda: compiler)
        for module in (cublaslt, cudnn):
            patch.setattr(module, "load_library", driver.libraries.load_library)
        yield driver
