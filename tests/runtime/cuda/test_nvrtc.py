"""NVRTC: calls, results, and the error without it."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace as Fake
from typing import Any

import pytest

from passkit.errors import MissingDependencyError
from passkit.runtime.cuda import compiler as compilers
from passkit.runtime.cuda.compiler import CompiledImage, Nvrtc, NvrtcError
from tests.planned import plan

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
        with pytest.raises(MissingDependencyError, match=f"loading it says: {error}; pip install"):
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
    wrong = compilers.program_text(kernel).replace("erff(", "erg(")
    line, *_ = (k for k, x in enumerate(kernel.source.splitlines(), 1) if "erff(" in x)
    with pytest.raises(NvrtcError, match=rf'{kernel.name}.cu\({line}\): error: .*"erg"'):
        compiler.compile(wrong, SASS)
