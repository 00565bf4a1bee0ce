"""The OpenCL device: which one is used, what it can do, and the errors without one."""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest
from attrs import evolve

import passkit as pk
from passkit.errors import DeviceError, MissingDependencyError
from passkit.plan.kernel import Kernel
from passkit.plan.target import target_of
from passkit.program.planning import planned
from passkit.runtime.opencl import device as devices
from passkit.runtime.opencl.accuracy import relaxed_operations
from passkit.runtime.opencl.device import OpenClLimits, fit_target, pyopencl
from tests.opencl import require_pyopencl, target_with_block

GPU = OpenClLimits(
    local_nbytes=48 << 10,
    global_nbytes=8 << 30,
    largest_nbytes=2 << 30,
    block=1024,
    units=30,
    vector=1,
    double=False,
    half=True,
    exact=True,
    denormal=True,
    subgroups=True,
    shuffles=False,
    is_cpu=False,
)


def test_missing_pyopencl_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has the import error and the command that installs it."""
    monkeypatch.setitem(sys.modules, "pyopencl", None)

    with pytest.raises(MissingDependencyError, match=r"import of pyopencl.*pip install 'passkit\["):
        pyopencl()


def test_targets_are_fitted_to_limits() -> None:
    """A GPU has groups of 256 items; small memory or groups reduce them."""
    expected = target_of("opencl")
    small = fit_target(expected, evolve(GPU, local_nbytes=16 << 10, block=200))

    assert fit_target(expected, GPU) == expected
    assert fit_target(expected, evolve(GPU, shuffles=True)).shuffles
    assert (small.block, small.scratch) == (128, 15 << 10)
    cpus = [fit_target(expected, evolve(GPU, is_cpu=True, vector=n, shuffles=True)) for n in (1, 8)]
    assert [(t.block, t.access, t.simd) for t in cpus] == [(1, 0, False), (1, 32, True)]
    assert not any(t.shuffles for t in cpus)


def test_pocl_gets_narrower_vectors() -> None:
    """PoCL gets fewer than the 16 floats that it prefers."""
    require_pyopencl()
    own = devices.device()

    assert own.platform != devices.POCL or own.limits.vector <= devices.POCL_MAX_VECTOR


def test_relaxed_operations_are_listed() -> None:
    """Loose functions, and what a device cannot do exactly, by the kernels that use them."""

    def of(text: str, **changes: Any) -> tuple[str, ...]:
        graph = planned(pk.parse(text), "CodeGen", target="opencl")
        kernels: list[Kernel] = list(graph.attrs["kernel"].values())
        return relaxed_operations(kernels, evolve(GPU, **changes))

    assert of("x: f32[4]; return exp(x)") == ()
    assert of("x: f32[4]; return tanh(erf(x))") == ("erf (16 ulp)", "tanh (5 ulp)")
    assert of("x: f32[4]; return div(sqrt(x), x)", exact=False) == (
        "division (2.5 ulp)",
        "sqrt (3 ulp)",
    )
    assert of("x: f32[4]; return neg(x)", denormal=False) == ("denormals (0)",)
    assert of("x: i32[4]; return neg(x)", denormal=False, exact=False) == ()


def test_an_unknown_device_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error lists the devices with the setting that selects each."""
    require_pyopencl()
    monkeypatch.setenv("PYOPENCL_CTX", "nothing")

    with pytest.raises(DeviceError, match=r"PYOPENCL_CTX='nothing' names .*\(PYOPENCL_CTX=0:0"):
        pk.compile(pk.parse("x: f32[4]; return exp(x)"), target="opencl")


def test_no_driver_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names a package with a driver for every machine."""
    cl = require_pyopencl()

    def none() -> list[Any]:
        raise cl.LogicError("clGetPlatformIDs", -1001, "PLATFORM_NOT_FOUND_KHR")

    monkeypatch.setattr(cl, "get_platforms", none)
    monkeypatch.setattr(devices, "open_device", devices.open_device.__wrapped__)

    with pytest.raises(DeviceError, match="no OpenCL device: .*there are: none; pip install 'pass"):
        devices.device()


def test_a_forked_process_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process forked from the one that opened the device raises."""
    require_pyopencl()
    own, number = devices.device(), os.getpid()
    monkeypatch.setattr("os.getpid", lambda: number + 1)

    with pytest.raises(DeviceError, match=f"{number}, and process {number + 1} is a fork"):
        devices.device()
    assert own.process == number


def test_devices_are_described(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits are the driver's; a caller's own target stays as it is."""
    cl = require_pyopencl()
    own, (messages, *_) = devices.device(), list(devices.describe_devices())

    assert own.limits == devices.limits_of(cl, own.handle)
    assert own.name in messages and "PYOPENCL_CTX=0:0" in messages and "of local memory" in messages
    assert own.driver in own.fingerprint
    assert devices.adapt_target(target_with_block(64)) == target_with_block(64)
    assert devices.adapt_target(target_of("opencl")) == fit_target(target_of("opencl"), own.limits)
