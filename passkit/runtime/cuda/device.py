"""The CUDA device that kernels run on: through which library, and what it can do."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from threading import RLock
from typing import Any, NoReturn

from attrs import define, evolve, field, frozen

from passkit.errors import DeviceError, MissingDependencyError
from passkit.library.gpu_profile import read_gpu_profile
from passkit.plan.gpus import Gpu, gpu_of
from passkit.plan.target import KIB, Target, target_of
from passkit.runtime.cuda.bindings import BindingsDriver
from passkit.runtime.cuda.driver import Driver, DriverError, Facts, Limits, Trouble
from passkit.runtime.cuda.with_pycuda import PyCudaDriver
from passkit.runtime.device.process import check_process
from passkit.values.units import bytes_text

INSTALL = "pip install 'passkit[cuda]'"
MODULES = {"PyCUDA": "pycuda.driver", "cuda-bindings": "cuda.bindings.driver"}
"""The libraries by which a device can be asked, the first one first."""


@frozen
class Done:
    """All that is in a stream up to now; on a stream that measures, when it began and ended."""

    queue: Queue
    first: Any = None
    last: Any = None

    def wait(self) -> None:
        """Return when it is done."""
        self.queue.finish()


@define(eq=False)
class Queue:
    """A stream as memory and steps use it; with ``measures``, each operation is timed.

    ``busy`` gives the stream something to do while the host prepares what is timed.
    """

    driver: Driver
    stream: Any
    measures: bool = False
    busy: Callable[[Any], None] | None = None

    def upload(self, buffer: Any, array: Any) -> Done:
        """Copy an array's bytes to the device."""
        return self.did(self.driver.upload, buffer.address, array)

    def download(self, array: Any, buffer: Any) -> Done:
        """Copy as many bytes as an array has from the device."""
        return self.did(self.driver.download, array, buffer.address)

    def copy(self, to: Any, source: Any, nbytes: int) -> Done:
        """Copy bytes from one buffer to another."""
        return self.did(self.driver.copy, to.address, source.address, nbytes)

    def did(self, enqueue: Callable[..., None], *what: Any) -> Done:
        """What a function has enqueued in the stream."""
        if self.busy is not None:
            self.busy(self.stream)
        first = self.driver.event(self.stream) if self.measures else None
        enqueue(*what, self.stream)
        return Done(self, first, self.driver.event(self.stream) if self.measures else None)

    def finish(self) -> None:
        """Wait until all is done."""
        self.driver.finish(self.stream)

    def seconds(self, done: Done) -> float:
        """How long the device took for a transfer or kernel, on a queue that measures."""
        return self.driver.seconds(done.first, done.last)


@frozen(eq=False)
class Device:
    """A device, and a queue that does everything in order.

    ``lock`` is held while work is enqueued: what one call reads comes behind what it wrote.
    """

    driver: Driver = field(repr=False)
    queue: Queue = field(repr=False)
    process: int = field(factory=os.getpid, repr=False)
    lock: Any = field(factory=RLock, repr=False)

    @property
    def facts(self) -> Facts:
        """What it is."""
        return self.driver.facts

    @property
    def limits(self) -> Limits:
        """What it can do."""
        return self.facts.limits

    def measuring(self) -> Queue:
        """A queue which measures what it does, in the same stream."""
        return Queue(self.driver, self.queue.stream, measures=True)

    @contextmanager
    def used(self, doing: str) -> Iterator[None]:
        """Inside, its context is this thread's, and what the driver says becomes an error.

        Raises: DeviceError with ``doing`` and what was found.
        """
        try:
            with self.driver.current():
                yield
        except DriverError as error:
            raise DeviceError(self.said(error, doing)) from error

    def said(self, error: DriverError, doing: str) -> str:
        """What is said when a call of the driver fails."""
        if error.trouble is Trouble.LOST:
            return (
                f"{self} is lost to this process: {doing} met {error}; nothing more runs on it "
                "here, so start a new process (compute-sanitizer finds a kernel that does this)"
            )
        return f"{self} failed at {doing}: {error}"

    def __str__(self) -> str:
        return f"{self.facts.name} ({self.facts.architecture}, {self.driver.name})"


def device() -> Device:
    """The first device that CUDA_VISIBLE_DEVICES leaves, through PyCUDA or else cuda-bindings.

    Raises: MissingDependencyError without either; DeviceError without a driver or a device, or in
    a process that was forked from one that has used it.
    """
    found = _device()
    check_process(found)
    return found


@cache
def _device() -> Device:
    driver = opened()
    try:
        with driver.current():
            return Device(driver, Queue(driver, driver.stream()))
    except DriverError as error:
        refused(driver.name, error)


def described() -> str:
    """The device, its driver, and what it can do. Raises: as `device`."""
    own = device()
    x = own.limits
    parts = [
        f"{own}: CUDA {'.'.join(map(str, own.facts.version))}",
        f"{bytes_text(x.global_nbytes)} of memory",
        f"{x.units} multiprocessors",
        f"{bytes_text(x.shared_nbytes)} of shared memory for a block",
    ]
    can = {"graphs": own.driver.graphs, "grid barriers": own.driver.graphs and x.cooperative}
    return ", ".join([*parts, *(what if does else f"no {what}" for what, does in can.items())])


def opened() -> Driver:
    """The driver by the first library that is installed.

    Raises: MissingDependencyError without any; DeviceError without a driver or a device.
    """
    missing: list[str] = []
    for name in MODULES:
        try:
            find_library(name)
        except ImportError as error:
            if "libcuda" in str(error):
                no_driver(name, error)
            missing.append(f"{name}: {error}")
            continue
        try:
            return open_by(name)
        except DriverError as error:
            refused(name, error)
        except RuntimeError as error:  # cuda-bindings looks for the driver at its first call
            no_driver(name, error)
    raise MissingDependencyError(
        f"target 'cuda' needs PyCUDA or cuda-bindings, and importing them says: "
        f"{'; '.join(missing)}; {INSTALL}"
    )


def open_by(name: str) -> Driver:
    """The driver by a library. PyCUDA's has cuda-bindings for what it lacks, if that is there."""
    find_library(name)
    if name != "PyCUDA":
        return BindingsDriver()
    try:
        find_library("cuda-bindings")
    except ImportError:
        return PyCudaDriver()
    return PyCudaDriver(rest=BindingsDriver)


def find_library(name: str) -> None:
    """Import a library's module. Raises: ImportError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyCUDA warns of what it then raises
        import_module(MODULES[name])


def no_driver(name: str, error: Exception) -> NoReturn:
    """Raises: DeviceError where NVIDIA's driver is not installed, or too old for a library."""
    raise DeviceError(
        f"target 'cuda' needs NVIDIA's driver (libcuda.so.1), and {name} found none that serves: "
        f"{error}; install it, or compile for target 'cpu' or 'opencl'"
    ) from error


def refused(name: str, error: DriverError) -> NoReturn:
    """Raises: DeviceError where the driver has no device for us."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    where = "" if visible is None else f" under CUDA_VISIBLE_DEVICES={visible!r}"
    raise DeviceError(
        f"no CUDA device{where}: {name} was told by {error}; nvidia-smi shows what there is, and "
        "targets 'cpu' and 'opencl' need none"
    ) from error


def settled(target: Target) -> Target:
    """The registered target as the device wants it; a target of the caller's own as it is."""
    if target is not target_of(target.name):
        return target
    facts = device().facts
    return fitted(profiled(target, facts), facts.limits)


def profiled(target: Target, facts: Facts) -> Target:
    """A target with a device's numbers: those shipped for it, and those measured on it.

    Raises: CacheError when others may write to the cache folder.
    """
    found, known = read_gpu_profile(named(facts)), gpu(facts).numbers(target)
    return known if found is None else evolve(known, curve=found.curve, launch=found.launch)


def gpu(facts: Facts) -> Gpu:
    """The profile that is shipped for a device, or for those of its kind."""
    return gpu_of(facts.name, facts.capability, facts.limits.units)


def named(facts: Facts) -> str:
    """A device as what was measured of it is kept: its name, its kind and its driver's CUDA."""
    return f"{facts.name}, {facts.architecture}, CUDA {'.'.join(map(str, facts.version))}"


def fitted(target: Target, limits: Limits) -> Target:
    """A target whose blocks and scratch a device can hold."""
    scratch = min(target.scratch, limits.shared_nbytes // KIB * KIB)
    return evolve(target, block=min(target.block, limits.threads), scratch=scratch)
