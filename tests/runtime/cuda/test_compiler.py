"""Machine code for CUDA devices: compiled once by NVRTC, cached, and refused with the source."""

from __future__ import annotations

import ctypes
import resource
from pathlib import Path
from types import SimpleNamespace as Fake
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.errors import DeviceError, KernelRefusedError, MissingDependencyError
from passkit.program.planning import planned
from passkit.runtime.cuda import compiler as compilers
from passkit.runtime.cuda.compiler import CompiledImage, Nvrtc, NvrtcError
from passkit.runtime.device.kernel_builder import ImageCache
from passkit.runtime.native.build import stats
from passkit.runtime.native.cache import open_cache
from tests.cuda import on_cuda
from tests.emulator.fake_driver import FakeDriver, FakeNvrtc, fake_cuda
from tests.planned import plan


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
            match=r"(?s)NVRTC 13.5 for Fake .* refused kernel sub_\w+ \(exp, sub\):\n"
            r"sub_\w+.cu\((\d+)\).*"
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
            "refused kernel sub_",
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
            match=r"(?s)Fake .*, when it loaded the compiled code, "
            r"refused kernel exp2_\w+ \(exp2\):\nload: device kernel image is invalid",
        ):
            pk.compile(graph, target="cuda")
        assert on_cuda(graph).kernels
    with fake_cuda(compiler=(compiler := FakeNvrtc())) as driver:
        driver.fail("load", "device kernel image is invalid")
        assert on_cuda(graph).kernels and compiler.compiled == 1


# NVRTC.

LOG = b"ptxas info : 24 bytes spill stores, 8 bytes spill loads\nptxas info : Used 40 registers\0"
SASS = ("--gpu-architecture=sm_90", *compilers.OPTIONS)


class FakeBindings:
    """cuda.bindings.nvrtc by its function names in lower case; texts may be invalid."""

    def __init__(self) -> None:
        self.programs: dict[int, bytes] = {}
        self.options: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("nvrtc"):
            raise AttributeError(name)
        return getattr(self, name.removeprefix("nvrtc").lower())

    def version(self) -> tuple[int, int, int]:
        """Return version 13.5."""
        return 0, 13, 5

    def getsupportedarchs(self) -> tuple[int, list[int]]:
        """Return two architectures."""
        return 0, [75, 90]

    def geterrorstring(self, code: int) -> tuple[int, bytes]:
        """Return the name of an error."""
        return 0, b"NVRTC_ERROR_%d" % code

    def createprogram(self, text: bytes, *_: Any) -> tuple[int, int]:
        """Return the number of a new program."""
        if b"impossible" in text:
            return 5, 0
        self.programs[len(self.programs)] = text
        return 0, len(self.programs) - 1

    def compileprogram(self, program: int, count: int, options: list[bytes]) -> tuple[int]:
        """Fail for texts with "wrong"."""
        assert count == len(options)
        self.options = options
        return (6 if b"wrong" in self.programs[program] else 0,)

    def getprogramlogsize(self, program: int) -> tuple[int, int]:
        """Return the size with the final 0."""
        return 0, len(LOG)

    def getprogramlog(self, program: int, into: bytes) -> tuple[int]:
        """Copy the log."""
        return put(LOG, into)

    def getcubinsize(self, program: int) -> tuple[int, int]:
        """Return four bytes."""
        return 0, 4

    def getcubin(self, program: int, into: bytes) -> tuple[int]:
        """Copy the head of an ELF file."""
        return put(b"\x7fELF", into)

    def destroyprogram(self, program: int) -> tuple[int]:
        """Destroy a program."""
        del self.programs[program]
        return (0,)


def put(what: bytes, into: bytes) -> tuple[int]:
    """Overwrite bytes, as the bindings do."""
    assert len(into) == len(what)
    ctypes.memmove(id(into) + bytes.__basicsize__ - 1, what, len(what))
    return (0,)


def test_a_text_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text and options give code with registers and spills, or raise with the log."""
    own = FakeBindings()
    monkeypatch.setattr(compilers, "import_module", lambda name: own)
    compiler = Nvrtc()
    image = compiler.compile("right", SASS)

    assert (str(compiler), compiler.architectures) == ("NVRTC 13.5", (75, 90))
    assert (image.code, image.registers, image.spills) == (b"\x7fELF", 40, 24)
    assert own.options[0] == b"--gpu-architecture=sm_90" and b"--fmad=false" in own.options
    with pytest.raises(NvrtcError, match="24 bytes spill stores"):
        compiler.compile("wrong", SASS)
    with pytest.raises(NvrtcError, match="nvrtcCreateProgram: NVRTC_ERROR_5"):
        compiler.compile("impossible", SASS)
    assert not own.programs
    assert CompiledImage.from_bytes(image.to_bytes()) == image


def test_missing_nvrtc_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without bindings or library the error has the command that installs both."""
    monkeypatch.setattr(compilers, "import_module", {}.__getitem__)
    for error in (ImportError("No module named 'cuda'"), RuntimeError("nvrtc was not found")):

        def find(name: str, error: Exception = error) -> Fake:
            def version() -> None:
                raise error

            if isinstance(error, ImportError):
                raise error
            return Fake(nvrtcVersion=version)

        monkeypatch.setattr(compilers, "import_module", find)
        with pytest.raises(MissingDependencyError, match=f"cannot be loaded: {error}; pip install"):
            Nvrtc()


def test_the_installed_nvrtc() -> None:
    """The installed compiler compiles for an absent device, and names unknown functions."""
    pytest.importorskip("cuda.bindings.nvrtc", reason="cuda-bindings is not installed")
    compiler = compilers.nvrtc()
    text = "x: f32[n, 512]; return mul(div(x, 2), add(erf(mul(x, 0.7071)), 1))"
    (kernel,) = plan(text, target="cuda").attrs["kernel"].values()
    image = compiler.compile(compilers.program_text(kernel), SASS)

    assert image.code.startswith(b"\x7fELF")
    assert image.registers is not None and 8 < image.registers < 64 and image.spills == 0
    wrong = compilers.program_text(kernel).replace("(erf_near(", "(erg(")
    line, *_ = (k for k, x in enumerate(kernel.source.splitlines(), 1) if "erf_near(" in x)
    with pytest.raises(NvrtcError, match=rf'{kernel.name}.cu\({line}\): error: .*"erg"'):
        compiler.compile(wrong, SASS)


# The cache of images.

IMAGE = bytes(range(256)) * 32
NAME = "0" * 32


@pytest.fixture
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ImageCache:
    """An image cache in its own folder."""
    monkeypatch.setenv("PASSKIT_CACHE_DIR", str(tmp_path / "cache"))
    return ImageCache("a compiler", ".bin")


def test_a_full_temporary_folder_is_avoided(
    images: ImageCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The image is written in the cache folder instead, and found again."""
    monkeypatch.setenv("TMPDIR", "/sys/kernel")

    images.keep(IMAGE, {NAME: "kernel"})
    assert images.find(NAME) == IMAGE


def test_a_full_disk_warns(
    images: ImageCache, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is stored and nothing raised; the log says why."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        images.keep(IMAGE, {NAME: "kernel"})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert images.find(NAME) is None
    assert "cannot write to cache folder" in caplog.text
