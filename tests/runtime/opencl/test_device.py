"""The OpenCL device and its compiler: limits, programs built once, and the errors of both."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.dialects.opencl import OPENCL
from passkit.dialects.used_definitions import used_definitions as called
from passkit.errors import DeviceError, KernelRefusedError, MissingDependencyError
from passkit.graph.kernel import Kernel
from passkit.program.planning import planned
from passkit.runtime.device import kernel_builder
from passkit.runtime.native.build import stats
from passkit.runtime.native.cache import open_cache
from passkit.runtime.opencl import compiler
from passkit.runtime.opencl import device as devices
from passkit.runtime.opencl.accuracy import relaxed_operations
from passkit.runtime.opencl.device import OpenClLimits, fit_target, pyopencl
from passkit.target import target_of
from passkit.target.limits import GpuLimits
from tests.opencl import require_pyopencl, step_kinds, target_with_block, with_limits

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

    own = fit_target(expected, GPU)
    assert own == evolve(expected, nests=True, limits=GpuLimits(block_threads=256))
    assert fit_target(expected, evolve(GPU, shuffles=True)).shuffles
    assert (small.block, small.scratch, small.limits.block_threads) == (128, 12 << 10, 128)
    cpus = [fit_target(expected, evolve(GPU, is_cpu=True, vector=n, shuffles=True)) for n in (1, 8)]
    assert [(t.block, t.access, t.simd) for t in cpus] == [(1, 0, False), (1, 32, True)]
    assert not any(t.shuffles or t.nests for t in cpus)


@pytest.mark.parametrize(
    ("extension", "size", "expected"),
    [
        ("cl_nv_device_attribute_query", 32, True),
        ("cl_amd_device_attribute_query", 64, False),
        ("", 32, False),
    ],
)
def test_sub_groups_of_32_items_exchange_values(extension: str, size: int, expected: bool) -> None:
    """Extensions of two vendors tell how many items a sub-group has; else it is not known."""
    own = devices.device().handle

    class Handle:
        """The device, with other extensions."""

        extensions = f"cl_khr_subgroups cl_khr_subgroup_shuffle {extension}"

        def get_info(self, _: int) -> int:
            return size

        def __getattr__(self, name: str) -> Any:
            return getattr(own, name)

    assert devices.limits_of(pyopencl(), Handle()).shuffles == expected


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


def test_errors_of_the_driver_are_converted() -> None:
    """An error of pyopencl becomes a DeviceError that says what the device was used for."""
    cl = require_pyopencl()
    opened = devices.device()

    with pytest.raises(DeviceError, match="at a call: clWaitFor"), opened.active("a call"):
        raise cl.RuntimeError("clWaitForEvents", cl.status_code.INVALID_EVENT, "")


def test_no_driver_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names a package with a driver for every machine."""
    cl = require_pyopencl()

    def none() -> list[Any]:
        raise cl.LogicError("clGetPlatformIDs", -1001, "PLATFORM_NOT_FOUND_KHR")

    monkeypatch.setattr(cl, "get_platforms", none)
    monkeypatch.setattr(devices, "open_device", devices.open_device.__wrapped__)

    with pytest.raises(
        DeviceError, match="no OpenCL device: .*available devices: none; pip install 'pass"
    ):
        devices.device()


def test_a_forked_process_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process forked from the one that opened the device raises."""
    require_pyopencl()
    own, number = devices.device(), os.getpid()
    monkeypatch.setattr("os.getpid", lambda: number + 1)

    with pytest.raises(DeviceError, match=f"{number}, and process {number + 1} is a fork"):
        devices.device()
    assert own.process == number


def test_a_call_in_a_forked_process_raises() -> None:
    """An executable that was called before does not run in a fork of its process."""
    require_pyopencl()
    exe = pk.compile(pk.parse("x: f32[2]; return neg(x)"), target="opencl")
    x, number = np.ones(2, np.float32), os.getpid()
    for _ in range(3):
        assert exe(x=x)[0].tolist() == [-1, -1]
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        text = "nothing was raised"
        try:
            exe(x=x)
        except DeviceError as error:
            text = str(error)
        os.write(writer, text.encode())
        os._exit(0)
    os.waitpid(child, 0)

    assert f"{number}, and process {child} is a fork" in os.read(reader, 10_000).decode()


def test_unregistered_targets_are_used_as_they_are() -> None:
    """A target of an unknown name needs no registration, and is not adapted to the device."""
    require_pyopencl()
    target = evolve(target_of("opencl"), name="unregistered", block=1)
    assert devices.adapt_target(target) is target

    exe = pk.compile(pk.parse("x: f32[2]; return neg(x)"), target=target)
    assert exe(x=np.ones(2, np.float32))[0].tolist() == [-1, -1]


def test_devices_are_described(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits are the driver's; a caller's own target stays as it is."""
    cl = require_pyopencl()
    own, (messages, *_) = devices.device(), list(devices.describe_devices())

    assert own.limits == devices.limits_of(cl, own.handle)
    assert own.name in messages and "PYOPENCL_CTX=0:0" in messages and "of local memory" in messages
    assert own.driver in own.fingerprint
    assert devices.adapt_target(target_with_block(64)) == target_with_block(64)
    assert devices.adapt_target(target_of("opencl")) == fit_target(target_of("opencl"), own.limits)


# Programs: built once, cached, and refused with the source at fault.


@pytest.fixture
def _pyopencl() -> None:
    """Skip the test where pyopencl is not installed."""
    require_pyopencl()


def needs_device(test: Callable[..., None]) -> Callable[..., None]:
    """Mark a test that compiles for an OpenCL device."""
    return pytest.mark.opencl(pytest.mark.usefixtures("_pyopencl")(test))


def graph_of(number: float, body: str = "exp(x)") -> pk.Graph:
    """Return a graph whose kernel no other test has."""
    return pk.parse(f"x: f32[7]; return sub({body}, {number})")


@needs_device
def test_nothing_is_built_twice() -> None:
    """A second graph with the same kernels has the same functions."""
    first, second = (
        planned(graph_of(0.109375), "RTCGen", target="opencl").attrs["rtc"] for _ in range(2)
    )
    (one,), (other,) = first.values(), second.values()

    assert one.entry.functions == other.entry.functions
    before = stats.compiled
    planned(graph_of(0.109375), "RTCGen", target="opencl")
    assert stats.compiled == before


@needs_device
def test_many_kernels_are_one_program() -> None:
    """Several kernels take one run of the compiler."""
    outputs = [f"sub(exp(x{k}), {k}.171875)" for k in range(9)]
    text = "; ".join([*(f"x{k}: f32[{k + 2}]" for k in range(9)), f"return {', '.join(outputs)}"])
    before = stats.compiled, stats.processes
    planned(pk.parse(text), "RTCGen", target="opencl", fusion="nnvm")

    assert stats.compiled - before[0] > 1
    assert stats.processes - before[1] == 1


@needs_device
@pytest.mark.usefixtures("fresh_cache")
def test_binaries_are_cached_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a driver keeps no binaries itself, they are in the cache; damaged ones are rebuilt.

    The digest covers the text, the device with its driver, and the options.
    """
    monkeypatch.setattr(compiler, "driver_keeps_binaries", lambda device: False)
    graph = graph_of(0.265625)
    feed = {"x": np.arange(7, dtype=np.float32)}
    expected = pk.interpret(graph, feed)[0]
    kept = open_cache().info().kernels

    def again() -> tuple[int, int]:
        monkeypatch.setattr(kernel_builder, "loaded_kernels", {})
        before = stats.compiled, stats.loaded
        np.testing.assert_allclose(pk.compile(graph, target="opencl")(feed)[0], expected, rtol=1e-6)
        return stats.compiled - before[0], stats.loaded - before[1]

    assert again() == (1, 0) and again() == (0, 1)
    assert open_cache().info().kernels == kept + 1
    name = compiler.kernel_digest(
        pk.compile(graph, target="opencl").kernels[0],
        devices.device(),
        compiler.compiler_options(devices.device(), 1),
    )
    entry = open_cache().find(name, None)
    assert entry is not None
    entry.library.write_bytes(b"torn")
    assert again() == (1, 0)


@needs_device
def test_options_are_part_of_the_digest() -> None:
    """Groups of several items are built with other options than groups of one: other digests."""
    (kernel,) = planned(graph_of(1.5), "CodeGen", target="opencl").attrs["kernel"].values()
    flags = [compiler.compiler_options(devices.device(), block) for block in (1, 64)]

    assert "-cl-std=CL1.2" in flags[0] and compiler.NO_OPTIMIZATION not in flags[0]
    assert len({compiler.kernel_digest(kernel, devices.device(), f) for f in flags}) == 2
    is_pocl = devices.device().platform == "Portable Computing Language"
    assert (compiler.NO_OPTIMIZATION in flags[1]) == is_pocl


@needs_device
def test_only_what_is_called_is_built() -> None:
    """A program has the functions that its kernels call, directly or indirectly."""
    text = called(OPENCL.preamble, "zeta_float(a, b)")

    assert "zeta_above" in text and "bernoulli_parts" in text and "template" not in text
    assert "igamma" not in text and "narrow_f16" not in text and "PK_TABLE __constant" in text
    kernels = planned(graph_of(2.5), "CodeGen", target="opencl").attrs["kernel"]
    program = compiler.program_text(list(kernels.values()))
    assert "double" not in program and program.startswith(compiler.HEAD)


def refuse_large_kernels(monkeypatch: pytest.MonkeyPatch, least: int) -> None:
    """Let the compiler refuse kernels of at least so many operators."""
    right = compiler.program_text

    def text(kernels: Any) -> str:
        program = right(kernels)
        is_refused = any(len(k.ops) >= least for k in kernels)
        return program.replace("exp(", "exq(") if is_refused else program

    monkeypatch.setattr(compiler, "program_text", text)


@needs_device
def test_a_refused_kernel_raises_with_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has the compiler's message and the numbered source; other kernels are built."""
    refuse_large_kernels(monkeypatch, 2)
    text = "x: f32[7]; y: f32[9]; return sub(exp(x), 0.796875), neg(y)"

    with pytest.raises(
        KernelRefusedError,
        match=r"(?s)refused kernel sub_\w+ \(exp, sub\):\n.*exq.*"
        r"\n +\d+ .*exq\(x0",
    ) as error:
        planned(pk.parse(text), "RTCGen", target="opencl", fusion="nnvm")
    assert error.value.nodes == ("exp", "sub") and error.value.group


@needs_device
def test_a_refused_group_runs_unfused(monkeypatch: pytest.MonkeyPatch) -> None:
    """One warning names the group, and its operators get kernels of their own."""
    refuse_large_kernels(monkeypatch, 2)
    graph = pk.parse("x: f32[7]; return sub(exp(x), 0.890625), neg(neg(x))")
    feed = {"x": np.arange(7, dtype=np.float32)}

    with pytest.warns(
        UserWarning, match=r"group .*\(exp, sub.*\) runs unfused, because .*refused"
    ) as messages:
        exe = pk.compile(graph, target="opencl")
    assert len(messages) == 1 and messages[0].filename == __file__
    assert set(step_kinds(exe)) == {"LaunchStep"} and len(exe.kernels) > 1
    for result, expected in zip(exe(feed), pk.interpret(graph, feed), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-6)


@needs_device
def test_a_refused_operator_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel of one operator cannot be split, so that the error is raised."""
    refuse_large_kernels(monkeypatch, 1)

    with pytest.raises(KernelRefusedError, match=r"(?s)refused kernel exp_\w+ \(exp\):.*exq"):
        pk.compile(pk.parse("x: f32[11]; return exp(x)"), target="opencl")


@needs_device
def test_a_device_without_float64_raises() -> None:
    """A kernel that computes in float64 raises; others do not mention the type."""
    with with_limits(double=False):
        with pytest.raises(DeviceError, match=r"kernel exp_\w+ \(exp\) computes in float64.*fp64"):
            pk.compile(pk.parse("x: f64[13]; return exp(x)"), target="opencl")
        assert pk.compile(graph_of(0.921875, "tanh(x)"), target="opencl").kernels


@needs_device
def test_registers_limit_a_group() -> None:
    """A group is the largest power of two that every function of a kernel allows."""

    class LimitedFunction:
        """A function whose registers allow 100 items."""

        def get_work_group_info(self, what: Any, handle: Any) -> int:
            return 100

    assert compiler.group_size((LimitedFunction(),), 256, devices.device()) == 64
    assert compiler.group_size((LimitedFunction(),), 16, devices.device()) == 16


@needs_device
def test_literals_of_64_bits() -> None:
    """A literal has as many bits as its type: a long long would have 128."""
    x = pk.var("x", (3,), "int64")
    graph = pk.Graph([x * 5_000_000_000 - x])
    exe = pk.compile(graph, target=target_with_block(1))
    feed = np.array([1, -(2**63), 2**63 - 1])

    assert re.search(r"\b5000000000l\b", exe.source)
    assert exe(x=feed)[0].tolist() == pk.interpret(graph, {"x": feed})[0].tolist()
