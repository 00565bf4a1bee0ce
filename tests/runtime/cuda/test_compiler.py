"""Machine code for CUDA devices: compiled once, cached, and refused with the source at fault."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.errors import DeviceError, KernelRefusedError
from passkit.program.planning import planned
from passkit.runtime.cuda import compiler as compilers
from passkit.runtime.cuda.compiler import CompiledImage
from passkit.runtime.native.build import stats
from passkit.runtime.native.cache import open_cache
from tests.cuda import on_cuda
from tests.emulator.fake_driver import FakeDriver, FakeNvrtc, fake_cuda


def graph_of(number: float, body: str = "exp(x)") -> pk.Graph:
    """Return a graph whose kernel no other test has."""
    return pk.parse(f"x: f32[7]; return sub({body}, {number})")


@pytest.mark.usefixtures("fresh_cache")
def test_a_kernel_is_compiled_once_per_machine() -> None:
    """One process compiles, others load the image; damaged and foreign images are compiled again.

    The digest covers the text, NVRTC's version, the options and the architecture.
    """
    graph, compiler = graph_of(0.265625), FakeNvrtc()

    def again(capability: tuple[int, int] = (9, 0)) -> tuple[int, int]:
        before = stats.compiled, stats.loaded
        with fake_cuda(FakeDriver(capability), compiler):
            for _ in range(2):
                ((rtc),) = planned(graph, "RTCGen", target="cuda").attrs["rtc"].values()
            assert (rtc.registers, rtc.spills) == (32, 8)
        return stats.compiled - before[0], stats.loaded - before[1]

    assert again() == (1, 0) and again() == (0, 1) and compiler.compiled == 1
    assert again((8, 6)) == (1, 0) and again((8, 0)) == (0, 1), "an architecture of its own"
    assert open_cache().info().kernels == 2
    flags = ("--gpu-architecture=sm_90", *compilers.OPTIONS)
    (kernel,) = planned(graph, "CodeGen", target="cuda").attrs["kernel"].values()
    entry = open_cache().find(compilers.kernel_digest(kernel, str(compiler), flags), None)
    assert entry is not None
    entry.library.write_bytes(b"torn")
    assert again() == (1, 0)
    compiler.version = (13, 6)
    assert again() == (1, 0)


def test_an_older_architecture_of_the_same_kind() -> None:
    """Code for sm_80 runs on sm_86; for other devices the error lists what NVRTC supports."""
    graph = graph_of(1.0625)
    with fake_cuda(FakeDriver((8, 6))):
        exe = on_cuda(graph)
        feed = {"x": np.arange(7, dtype=np.float32)}
        np.testing.assert_allclose(exe(feed)[0], pk.interpret(graph, feed)[0], rtol=1e-6)
    for capability, way in (((7, 0), "an older one"), ((13, 0), "a newer nvidia-cuda-nvrtc")):
        name = "sm_{}{}".format(*capability)
        expected = (
            rf"{name}, a fake\) needs code for {name}, and NVRTC 13.5 .* sm_90; install {way}"
        )
        with fake_cuda(FakeDriver(capability)), pytest.raises(DeviceError, match=expected):
            pk.compile(graph_of(1.125), target="cuda")


def test_a_refused_kernel_raises_with_its_source() -> None:
    """The error has the compiler's message and the numbered source; other kernels are compiled."""
    graph = pk.parse("x: f32[7]; y: f32[9]; return sub(exp(x), 0.796875), sub(neg(y), 0.859375)")
    compiler = FakeNvrtc()
    compiler.refused = "expf("
    before = stats.compiled

    with (
        fake_cuda(compiler=compiler),
        pytest.raises(
            KernelRefusedError,
            match=r"(?s)NVRTC 13.5 for Fake .* refused sub_\w+, of exp, sub:\nsub_\w+.cu\((\d+)\).*"
            r"\n +\1 .*expf\(x0",
        ) as error,
    ):
        planned(graph, "RTCGen", target="cuda", fusion="nnvm")
    assert error.value.nodes == ("exp", "sub") and error.value.group
    assert stats.compiled == before + 1


def test_a_refused_group_runs_unfused() -> None:
    """One warning names the group, and its operators get kernels of their own."""
    graph = pk.parse("x: f32[7]; return sub(exp(x), 0.890625)")
    feed = {"x": np.arange(7, dtype=np.float32)}

    class PickyNvrtc(FakeNvrtc):
        """A compiler that refuses kernels of two operators."""

        def compile(self, text: str, options: Any) -> CompiledImage:
            self.refused = "expf(" if "- 0.890625" in text else "exq("
            return super().compile(text, options)

    with fake_cuda(compiler=PickyNvrtc()):
        with pytest.warns(
            UserWarning,
            match=r"group .*\(exp, sub\) runs unfused, because NVRTC.*"
            "refused sub_",
        ) as message:
            exe = on_cuda(graph)
        assert (
            len(message) == 1 and message[0].filename.endswith("cuda.py") and len(exe.kernels) == 2
        )
        np.testing.assert_allclose(exe(feed)[0], pk.interpret(graph, feed)[0], rtol=1e-6)


def test_an_image_that_the_device_refuses() -> None:
    """A new image raises with the driver's message; a cached image is compiled again."""
    graph = pk.parse("x: f32[11]; return exp2(x)")
    with fake_cuda() as driver:
        driver.fail("load", "device kernel image is invalid")
        with pytest.raises(
            KernelRefusedError,
            match=r"(?s)Fake .*, which loads code for itself, "
            r"refused exp2_\w+, of exp2:\nload: device kernel image is invalid",
        ):
            pk.compile(graph, target="cuda")
        assert on_cuda(graph).kernels
    with fake_cuda(compiler=(compiler := FakeNvrtc())) as driver:
        driver.fail("load", "device kernel image is invalid")
        assert on_cuda(graph).kernels and compiler.compiled == 1
