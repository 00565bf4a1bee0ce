"""CUDA C to machine code by NVRTC, NVIDIA's run-time compiler, which needs no device."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from passkit.errors import DeviceError, MissingDependencyError

INSTALL = "pip install cuda-bindings nvidia-cuda-nvrtc"
OPTIONS = ("--std=c++17", "--fmad=false", "-lineinfo", "--ptxas-options=-v", "-diag-suppress=177")
"""Products and sums round on their own, as elsewhere; NVRTC divides exactly by itself. What of the
preamble a kernel does not call is no news."""


class Image(NamedTuple):
    """Machine code, and what its compiler says of a kernel: registers, and bytes of spills."""

    code: bytes
    log: str

    @property
    def registers(self) -> int | None:
        """The registers of a thread."""
        found = re.search(r"Used (\d+) registers", self.log)
        return None if found is None else int(found[1])

    @property
    def spills(self) -> int | None:
        """The bytes that a thread stores of registers it has not."""
        found = re.findall(r"(\d+) bytes spill stores", self.log)
        return sum(map(int, found)) if found else None


class RefusedError(Exception):
    """NVRTC does not take a text; the message is its log."""


class Nvrtc:
    """The compiler: its version, and the architectures that it knows, such as 90."""

    def __init__(self) -> None:
        try:
            self.rtc = import_module("cuda.bindings.nvrtc")
            self.version = tuple(map(int, self.call("nvrtcVersion")))
            self.architectures = tuple(map(int, self.call("nvrtcGetSupportedArchs")))
        except (ImportError, RuntimeError) as error:  # no bindings; bindings without the library
            raise MissingDependencyError(
                f"target 'cuda' compiles by NVRTC, and loading it says: {error}; {INSTALL}"
            ) from None

    def __str__(self) -> str:
        return "NVRTC {}.{}".format(*self.version)

    def call(self, name: str, *arguments: Any) -> Any:
        """What a call of NVRTC gives. Raises: RefusedError."""
        code, *found = getattr(self.rtc, name)(*arguments)
        if int(code):
            _, said = self.rtc.nvrtcGetErrorString(code)
            raise RefusedError(f"{name}: {said.decode()}")
        return found[0] if len(found) == 1 else tuple(found)

    def compile(self, text: str, options: Sequence[str]) -> Image:
        """The machine code of a text, for the architecture among its options.

        Raises: RefusedError with what the compiler says.
        """
        program = self.call("nvrtcCreateProgram", text.encode(), b"kernel.cu", 0, [], [])
        try:
            given = [o.encode() for o in options]
            try:
                self.call("nvrtcCompileProgram", program, len(given), given)
            except RefusedError as error:
                raise RefusedError(self._text(program, "ProgramLog") or str(error)) from None
            code = self._bytes(program, "CUBIN")
            return Image(code, self._text(program, "ProgramLog"))
        finally:
            self.call("nvrtcDestroyProgram", program)

    def _bytes(self, program: Any, what: str) -> bytes:
        found = b" " * int(self.call(f"nvrtcGet{what}Size", program))
        self.call(f"nvrtcGet{what}", program, found)
        return found

    def _text(self, program: Any, what: str) -> str:
        return self._bytes(program, what).rstrip(b"\0").decode(errors="replace").strip()


@cache
def nvrtc() -> Nvrtc:
    """The compiler. Raises: MissingDependencyError with the command that installs it."""
    return Nvrtc()


def architecture_for(capability: tuple[int, int], compiler: Nvrtc, who: str) -> str:
    """The architecture to compile for: the device's own, or an older one whose code it runs.

    Raises: DeviceError where the compiler knows none.
    """
    major, minor = capability
    fits = [a for a in compiler.architectures if a // 10 == major and a % 10 <= minor]
    if not fits:
        known = ", ".join(f"sm_{a}" for a in compiler.architectures)
        newer = 10 * major + minor > max(compiler.architectures)
        way = "a newer nvidia-cuda-nvrtc" if newer else "an older one, as nvidia-cuda-nvrtc-cu12"
        raise DeviceError(
            f"{who} needs code for sm_{major}{minor}, and {compiler} makes it for {known}; "
            f"install {way}"
        )
    return f"sm_{max(fits)}"
