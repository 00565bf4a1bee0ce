"""Failures of a device: each one is planted, and the error says what to do."""

from __future__ import annotations

import os
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.errors import DeviceError, MissingDependencyError
from passkit.runtime.cuda import device as devices
from passkit.runtime.cuda.device import pool_of
from passkit.runtime.cuda.driver import DriverError, DriverFailure, OutOfDeviceMemoryError
from passkit.runtime.cuda.driver_bindings import BindingsDriver
from passkit.runtime.cuda.driver_pycuda import PyCudaDriver
from passkit.runtime.device.launcher import IS_NATIVE
from tests.cuda import on_cuda
from tests.emulator.fake_driver import FakeDriver, fake_cuda
from tests.planned import agrees
from tests.runtime.cuda.small_programs import fill_pool

o = pk.ops
ROOM = "out of memory"


def graph() -> pk.Graph:
    """Return a graph of one kernel."""
    return pk.Graph([o.log1p(pk.var("x", ("n",)))])


def feeds(n: int = 500) -> dict[str, Any]:
    """Return its feeds."""
    return {"x": np.linspace(0, 9, n, dtype=np.float32)}


def test_idle_memory_is_freed_and_the_call_retried() -> None:
    """When memory is exhausted, idle memory is freed and the call succeeds."""
    with fake_cuda() as driver:
        exe = on_cuda(graph())
        exe(feeds(5000))
        driver.fail("allocate", ROOM)
        agrees(graph(), feeds(), exe(feeds()))
        assert len(driver.calls("free")) == 2
        driver.fail("launch", ROOM)
        agrees(graph(), feeds(), exe(feeds()))
        assert driver.counts["launch"] == 4


def test_exhausted_memory_raises_with_the_sizes() -> None:
    """The second refusal raises with the sizes, and so does a buffer that no device can give."""
    with fake_cuda(FakeDriver(global_nbytes=20_000)) as driver:
        exe = on_cuda(graph())
        expected = (
            r"needs 11.7 KiB more, .* left: 12 KiB of its 19.5 KiB are in use by this process; call"
        )
        with pytest.raises(DeviceError, match=expected):
            exe(feeds(3000))
        agrees(graph(), feeds(), exe(feeds()))
        with pytest.raises(DeviceError, match=r"a buffer of 39.1 KiB, and .* CUDA_VISIBLE"):
            exe(feeds(10_000))
        assert pool_of(devices.device()).active_nbytes == 0
        driver.fail("launch", ROOM, times=2 + IS_NATIVE)
        with pytest.raises(
            DeviceError,
            match=r"launch kernel log1p_\w+ \(log1p\) of 1 blocks of 128"
            r" x 1 threads: launch: out of memory; "
            r"4 KiB of its",
        ):
            exe(feeds())


def test_a_kernel_that_does_not_start_raises() -> None:
    """The error has the driver's message and the launch configuration."""
    with fake_cuda() as driver:
        exe = on_cuda(graph())
        driver.fail("launch", "too many resources requested for launch")
        with pytest.raises(DeviceError, match=r"Fake .*did not launch kernel log1p_\w+ .*too many"):
            exe(feeds())
        agrees(graph(), feeds(), exe(feeds()))


@pytest.mark.parametrize("call", ["finish", "launch", "upload"])
def test_a_lost_device_raises_in_every_call(call: str) -> None:
    """After an illegal access every call says that the process has lost the device."""
    with fake_cuda() as driver:
        exe = on_cuda(graph())
        driver.fail(call, "an illegal memory access was encountered", times=100)
        expected = (
            rf"is lost to this process: a call failed with {call}: an illegal .*start a new process"
        )
        for _ in range(2):
            with pytest.raises(DeviceError, match=expected):
                exe(feeds())


def test_a_failed_transfer_raises() -> None:
    """The error names the activity; enqueued work has ended."""
    with fake_cuda() as driver:
        exe = on_cuda(graph())
        driver.fail("download", "invalid argument")
        with pytest.raises(DeviceError, match=r"Fake .* failed at a call: download: invalid argum"):
            exe(feeds())
        assert driver.log[-1][0] == "finish"


def test_a_driver_that_builds_no_graphs() -> None:
    """One warning, and launches one by one from then on; a lost device raises."""
    x = pk.var("x", ("n",))
    three = pk.Graph([o.sin(o.exp(o.log1p(x)))])
    for message in ("operation not supported", "unspecified launch failure"):
        with fake_cuda() as driver:
            fill_pool()
            exe = on_cuda(three, fusion="none")
            for _ in range(1 + IS_NATIVE):
                exe(feeds())
            driver.fail("graph", message)
            if message.startswith("unspec"):
                with pytest.raises(DeviceError, match=r"lost to this process: .* graph: unspec"):
                    exe(feeds())
                continue
            with pytest.warns(
                UserWarning,
                match="one by one, .*, because the driver cannot build a graph of them: "
                "graph: operation not supported",
            ):
                agrees(three, feeds(), exe(feeds()), rtol=1e-5)
            for _ in range(3):
                agrees(three, feeds(), exe(feeds()), rtol=1e-5)
            assert driver.counts["graph"] == 1
            assert driver.counts["launch"] == 3 * (5 + IS_NATIVE)


def test_phases_need_cooperative_launches() -> None:
    """A kernel with phases raises without cooperative launches, and where no block fits."""
    x = pk.var("x", ("n",))
    phases = pk.Graph([x / o.reduce_sum(x)])
    options = {"keep_together": [["reduce_sum", "div"]]}
    expected = r"\(reduce_sum, div\) has phases, .* Fake .* has no cooperative launches"
    with fake_cuda(FakeDriver(cooperative=False)), pytest.raises(DeviceError, match=expected):
        on_cuda(phases, **options)(feeds())
    with fake_cuda() as driver:
        driver.supports_graphs = False
        with pytest.raises(DeviceError, match=r"each other, and a fake has no cooperative launche"):
            on_cuda(phases, **options)(feeds())
        driver.supports_graphs = True
        driver.blocks_at_once = lambda *_: 0  # type: ignore[method-assign]
        with pytest.raises(
            DeviceError,
            match=r"no block of kernel div_\w+ .*256 threads with 32 registers .* fits on Fake "
            r".*; remove its operators from keep_together",
        ):
            on_cuda(phases, **options)(feeds())


def test_a_forked_process_raises() -> None:
    """A process forked from the one that opened the device raises."""
    with fake_cuda():
        own = devices.device()
        object.__setattr__(own, "process", 1)
        message = f"opened by process 1, and process {os.getpid()} "
        with pytest.raises(DeviceError, match=message):
            pk.compile(graph(), target="cuda")
        with pytest.raises(DeviceError, match=message), own.active("a call"):
            pass  # a call of an executable that was compiled before


def test_missing_libraries_drivers_and_devices_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without libraries, driver or device the error says what to install or set."""

    def importing(errors: dict[str, Exception]) -> None:
        def find(module: str) -> None:
            name = module.split(".")[0]
            if name in errors:
                raise errors[name]

        monkeypatch.setattr(devices, "import_module", find)

    none = {n: ImportError(f"No module named {n!r}") for n in ("pycuda", "cuda")}
    importing(none)
    with pytest.raises(
        MissingDependencyError,
        match=r"imported: PyCUDA: No module named 'pycuda'; "
        r"cuda-bindings: .*; pip install 'passkit\[cuda\]'",
    ):
        devices.open_driver()
    lacking = ImportError("libcuda.so.1: cannot open shared object file")
    importing({"pycuda": lacking})
    with pytest.raises(
        DeviceError, match=r"NVIDIA's driver .*PyCUDA found no usable one: .*cannot open"
    ):
        devices.open_driver()

    def bindings(error: Exception) -> None:
        def fail() -> None:
            raise error

        monkeypatch.setattr(devices, "BindingsDriver", fail)

    importing({"pycuda": none["pycuda"]})
    bindings(RuntimeError('"cuda" is an NVIDIA driver library'))
    with pytest.raises(DeviceError, match=r"cuda-bindings found no usable one: \"cuda\" is an"):
        devices.open_driver()
    bindings(DriverError("cuInit", "no CUDA-capable device is detected"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    with pytest.raises(
        DeviceError,
        match=r"needs a CUDA device, and there is none under CUDA_VISIBLE_DEVICES='7': cuda-bi"
        r"ndings reports cuInit: no CUDA-capable",
    ):
        devices.open_driver()


def test_errors_of_both_libraries_are_classified() -> None:
    """Failed calls of both libraries become DriverErrors with the call and the driver's text."""

    class Error(Exception):
        """PyCUDA's error."""

    def failing() -> None:
        raise Error("cuMemAlloc failed: out of memory - 3 bytes")

    own, other = object.__new__(PyCudaDriver), object.__new__(BindingsDriver)
    own.cu = Fake(Error=Error)
    other.cu = Fake(
        cuInit=lambda flags: (100,),
        cuCtxGetId=lambda *_: (0, 3, 4),
        cuGetErrorString=lambda code: (0, b"no device" * (code == 100)),
    )

    with pytest.raises(OutOfDeviceMemoryError, match="cuMemAlloc: out of memory - 3"):
        own.call(failing)
    with pytest.raises(DriverError, match="cuInit: no device") as error:
        other.call("cuInit", 0)
    assert error.value.failure is DriverFailure.OTHER and other.call("cuCtxGetId", 1) == (3, 4)


def test_pycuda_alone_has_no_graphs() -> None:
    """A graph with PyCUDA alone raises with the package to install."""
    driver = object.__new__(PyCudaDriver)
    driver.bindings, driver.name = None, "PyCUDA 2026.1"

    with pytest.raises(DriverError, match="graph: PyCUDA 2026.1 has neither; pip install cuda-b"):
        driver.graph([])
