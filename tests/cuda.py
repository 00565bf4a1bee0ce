"""CUDA in tests: one suite for the fake driver and, on a device, both driver libraries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

import passkit as pk
from passkit.errors import DeviceError, MissingDependencyError
from passkit.program.executable import Executable
from passkit.runtime.cuda import device as devices
from passkit.runtime.cuda.compiler import CudaKernel
from passkit.runtime.cuda.driver import Driver, DriverError
from passkit.runtime.program import LaunchStep
from tests.emulator.fake_driver import fake_cuda

FAKE, LIBRARIES = "fake", ("PyCUDA", "cuda-bindings")
NEEDED = "needs an NVIDIA GPU"


class RecordedDriver:
    """A driver that records its calls and their arguments, as the fake driver does."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.log: list[tuple[str, Any]] = []

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self.driver, name)
        if not callable(attribute) or name == "current":
            return attribute
        if name == "native_calls":  # calls by the launcher in C are not recorded
            return lambda: None

        def call(*arguments: Any) -> Any:
            first = arguments[0] if arguments else None
            argument = len(first) if isinstance(first, Sequence) and name == "graph" else first
            if name == "capture":  # what is recorded holds a call's memory
                argument = arguments[1]
            self.log.append((name, argument))
            return attribute(*arguments)

        return call

    def calls(self, *names: str) -> list[Any]:
        """Return the recorded argument of each of some calls, in order."""
        return [what for name, what in self.log if name in names]


@contextmanager
def real_driver(library: str) -> Iterator[RecordedDriver]:
    """Run target "cuda" on this machine's device through a library inside the `with` block."""
    try:
        driver = RecordedDriver(devices.open_driver_by(library))
        with driver.current():
            opened = devices.CudaDevice(driver, devices.CudaQueue(driver, driver.stream()))  # type: ignore[arg-type]
    except (ImportError, RuntimeError, DriverError, DeviceError, MissingDependencyError) as error:
        pytest.skip(f"{NEEDED} and {library}: {error}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(devices, "open_device", lambda: opened)
        yield driver


@contextmanager
def machine_of(name: str) -> Iterator[Any]:
    """Run target "cuda" on the fake driver or through a library inside the `with` block."""
    with fake_cuda() if name == FAKE else real_driver(name) as driver:
        yield driver


def on_cuda(graph: pk.Graph, host: Sequence[str] = (), **options: Any) -> Executable:
    """Compile a graph for CUDA; check that all steps but those in ``host`` are kernels."""
    exe = pk.compile(graph, **{"target": "cuda", **options})
    kinds = [str(s).split()[0] for s in exe.steps if not isinstance(s, LaunchStep)]
    assert {k for k in kinds if k not in ("alias", "copy")} == set(host)
    assert all(isinstance(s.entry, CudaKernel) for s in exe.steps if isinstance(s, LaunchStep))
    return exe
