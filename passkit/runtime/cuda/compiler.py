"""CUDA C to loaded functions: NVRTC, NVIDIA's run-time compiler, which needs no device.

Machine code goes into the disk cache with the compiler's log, which tells registers and spills.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from hashlib import sha256
from importlib import import_module
from typing import Any, NamedTuple

from attrs import field, frozen

from passkit.dialects.cuda import CUDA
from passkit.errors import DeviceError, MissingDependencyError
from passkit.graph.kernel import Kernel
from passkit.runtime.cuda.device import CudaDevice
from passkit.runtime.cuda.driver import DriverError, DriverFailure, FunctionAttributes
from passkit.runtime.device.kernel_builder import (
    ImageCache,
    KernelBuilder,
    kernels_by_key,
    refusal,
)
from passkit.target import Target

FORMAT = 1
"""Part of every digest: raised when the meaning of a cached image changes."""
INSTALL = "pip install cuda-bindings nvidia-cuda-nvrtc"
OPTIONS = (
    "--std=c++17",
    "--fmad=false",
    "-lineinfo",
    "--ptxas-options=-v",
    "-diag-suppress=177",
)
"""Without fused multiply-add products and sums round separately, as on other targets; division is
exact by default. Warning 177 is about unused functions, of which the preamble has many."""


class CompiledImage(NamedTuple):
    """Machine code, and the compiler's log, which reports registers and spills of a kernel."""

    code: bytes
    log: str

    @property
    def registers(self) -> int | None:
        """Registers of a thread; None where the log has none."""
        match = re.search(r"Used (\d+) registers", self.log)
        return None if match is None else int(match[1])

    @property
    def spills(self) -> int | None:
        """Bytes of registers that a thread stores to local memory; None where the log has none."""
        counts = re.findall(r"(\d+) bytes spill stores", self.log)
        return sum(map(int, counts)) if counts else None

    def to_bytes(self) -> bytes:
        """Return code, log and the log's length in four bytes, as one file.

        A cubin may be followed by other bytes.
        """
        log = self.log.encode()
        return self.code + log + len(log).to_bytes(4, "little")

    @classmethod
    def from_bytes(cls, data: bytes) -> CompiledImage:
        """Return the image whose bytes `to_bytes` returned; other data are not detected."""
        end = len(data) - 4 - int.from_bytes(data[-4:], "little")
        return cls(data[:end], data[end:-4].decode())


class NvrtcError(Exception):
    """NVRTC refused a source text; the message is its log."""


class Nvrtc:
    """The compiler: its version, and the architectures that it supports, such as 90.

    Raises:
        MissingDependencyError: where the bindings or the library are not installed.
    """

    def __init__(self) -> None:
        try:
            self.rtc = import_module("cuda.bindings.nvrtc")
            self.version = tuple(map(int, self.call("nvrtcVersion")))
            self.architectures = tuple(map(int, self.call("nvrtcGetSupportedArchs")))
        except (ImportError, RuntimeError) as error:  # no bindings; bindings without the library
            raise MissingDependencyError(
                f"target 'cuda' needs NVRTC, which cannot be loaded: {error}; {INSTALL}"
            ) from None

    def __str__(self) -> str:
        """Return the name with the version, such as "NVRTC 12.4"."""
        return "NVRTC {}.{}".format(*self.version)

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a function of NVRTC by name.

        Returns its output, or a tuple of all outputs unless there is exactly one. Raises:
        NvrtcError, with NVRTC's text, for a status other than success.
        """
        code, *outputs = getattr(self.rtc, name)(*arguments)
        if int(code):
            _, message = self.rtc.nvrtcGetErrorString(code)
            raise NvrtcError(f"{name}: {message.decode()}")
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def compile(self, text: str, options: Sequence[str]) -> CompiledImage:
        """Compile ``text``, CUDA C, to machine code for the architecture among the ``options``.

        Raises:
            NvrtcError: with the compiler's log.
        """
        program = self.call("nvrtcCreateProgram", text.encode(), b"kernel.cu", 0, [], [])
        try:
            encoded = [option.encode() for option in options]
            try:
                self.call("nvrtcCompileProgram", program, len(encoded), encoded)
            except NvrtcError as error:
                raise NvrtcError(self._text(program, "ProgramLog") or str(error)) from None
            code = self._bytes(program, "CUBIN")
            return CompiledImage(code, self._text(program, "ProgramLog"))
        finally:
            self.call("nvrtcDestroyProgram", program)

    def _bytes(self, program: Any, output: str) -> bytes:
        """Return an output of a program: "CUBIN" or "ProgramLog".

        Raises: NvrtcError where NVRTC has none.
        """
        data = b" " * int(self.call(f"nvrtcGet{output}Size", program))
        self.call(f"nvrtcGet{output}", program, data)
        return data

    def _text(self, program: Any, output: str) -> str:
        """Return an output of an NVRTC program, such as "ProgramLog", as text.

        Zero bytes and blanks at its ends are removed. Raises: NvrtcError where NVRTC has none.
        """
        return self._bytes(program, output).rstrip(b"\0").decode(errors="replace").strip()


@cache
def nvrtc() -> Nvrtc:
    """Return the compiler, loaded once per process.

    Raises: MissingDependencyError, with the command that installs it, where it is missing.
    """
    return Nvrtc()


def architecture_for(capability: tuple[int, int], compiler: Nvrtc, device_name: str) -> str:
    """Return the architecture to compile for, such as sm_90.

    It is the device's own, or the newest older one of the same major version, whose code the
    device runs.

    Args:
        capability: The device's compute capability (major, minor).
        compiler: The compiler.
        device_name: The device, for the error message.

    Raises:
        DeviceError: where the compiler supports none.
    """
    major, minor = capability
    compatible = [a for a in compiler.architectures if a // 10 == major and a % 10 <= minor]
    if not compatible:
        supported = ", ".join(f"sm_{a}" for a in compiler.architectures)
        is_newer = 10 * major + minor > max(compiler.architectures)
        package = (
            "a newer nvidia-cuda-nvrtc"
            if is_newer
            else "an older one, such as nvidia-cuda-nvrtc-cu12"
        )
        raise DeviceError(
            f"{device_name} needs code for sm_{major}{minor}, and {compiler} compiles for "
            f"{supported}; install {package}"
        )
    return f"sm_{max(compatible)}"


@frozen(eq=False)
class CudaKernel:
    """A kernel loaded on a device.

    Attributes:
        kernel: The kernel.
        device: The device.
        function: The driver's function.
        attributes: The registers, memory and threads that the function needs or allows.
        threads: The threads of a block.
        registers: Registers of a thread.
        spills: Bytes that a thread spills; all of its local memory where the compiler's log is
            silent.
    """

    kernel: Kernel
    device: CudaDevice = field(repr=False)
    function: Any = field(repr=False)
    attributes: FunctionAttributes
    threads: int
    registers: int
    spills: int


def build(kernels: Iterable[Kernel], device: CudaDevice, target: Target) -> dict[str, CudaKernel]:
    """Load kernels on a device. No kernel is compiled twice on a machine.

    Args:
        kernels: The kernels.
        device: The device.
        target: Its ``block`` is the number of threads that a block should have; blocks are smaller
            where the registers of a kernel require it.

    Returns:
        Each kernel by its key.

    Raises:
        KernelRefusedError: with the compiler's message.
        DeviceError: where NVRTC does not support the device.
        MissingDependencyError: without NVRTC.
        CacheError: where other users may write to the cache folder.
    """
    by_key = kernels_by_key(kernels)
    compiler = nvrtc()
    entries = CudaKernelBuilder(device, compiler, compiler_options(device)).build(by_key)
    return {
        key: CudaKernel(
            kernel=by_key[key],
            device=device,
            function=function,
            attributes=attributes,
            threads=_threads_of(by_key[key], target, attributes),
            registers=attributes.registers,
            spills=attributes.local if image.spills is None else image.spills,
        )
        for key, (function, attributes, image) in entries.items()
    }


def _threads_of(kernel: Kernel, target: Target, attributes: FunctionAttributes) -> int:
    """Return the threads of a block: those of its schedule, else of the target.

    ``attributes`` are those of the compiled function, which may allow less.
    """
    if kernel.launch is not None:
        return kernel.launch.threads
    return min(target.block, attributes.threads)


def compiler_options(device: CudaDevice) -> tuple[str, ...]:
    """Return NVRTC's options for a device, with the architecture that it runs.

    Raises: DeviceError where NVRTC does not support it; MissingDependencyError without NVRTC.
    """
    architecture = architecture_for(device.properties.capability, nvrtc(), str(device))
    return (f"--gpu-architecture={architecture}", *OPTIONS)


def compile_text(name: str, source: str, device: CudaDevice) -> CompiledImage:
    """Compile ``source``, the text of the kernel ``name``, for a device, without the caches.

    Raises:
        DeviceError: where NVRTC does not support the device.
        MissingDependencyError: without NVRTC.
        NvrtcError: with the compiler's log.
    """
    return nvrtc().compile(unit_text(name, source), compiler_options(device))


def kernel_digest(kernel: Kernel, compiler: str, flags: Sequence[str]) -> str:
    """Return the digest of all that a kernel's machine code depends on: its name in the cache.

    ``compiler`` is the compiler with its version, ``flags`` are its options.
    """
    parts = [str(FORMAT), compiler, *flags, program_text(kernel)]
    return sha256("\0".join(parts).encode()).hexdigest()


def program_text(kernel: Kernel) -> str:
    """Return the text that is compiled for a kernel: the preamble, then its source."""
    return unit_text(kernel.name, kernel.source)


def unit_text(name: str, source: str) -> str:
    """Return the preamble followed by ``source``, the text of the kernel ``name``.

    In the compiler's messages, lines are counted from the first one of ``source``.
    """
    return f'#line 1 "preamble"\n{CUDA.preamble}\n#line 1 "{name}.cu"\n{source}'


class CudaKernelBuilder(KernelBuilder):
    """Builds kernels by NVRTC, each by itself, several at a time.

    The entry of a kernel is a tuple of its function, the function's attributes and the image.

    Args:
        device: The device.
        compiler: The compiler.
        flags: The compiler's options.
    """

    def __init__(self, device: CudaDevice, compiler: Nvrtc, flags: tuple[str, ...]) -> None:
        super().__init__(device, flags)
        self.compiler = compiler

    def digest(self, kernel: Kernel) -> str:
        """Return the digest of text, compiler and options, the kernel's name in the cache."""
        return kernel_digest(kernel, str(self.compiler), self.flags)

    def open_images(self) -> ImageCache:
        """Open the cache of images by this compiler with these options.

        Raises: CacheError where other users may write to the cache folder.
        """
        return ImageCache("\n".join([str(self.compiler), *self.flags]), ".cubin")

    def load(self, kernel: Kernel, image: bytes) -> Any:
        """Load a cached image of a kernel; return its entry.

        Returns None where the device does not accept the image. Raises: DriverError for any other
        failure.
        """
        try:
            return self._loaded(kernel, CompiledImage.from_bytes(image))
        except DriverError as error:
            if error.failure is not DriverFailure.INVALID_IMAGE:
                raise
            return None

    def compile(self, kernels: dict[str, Kernel]) -> None:
        """Compile, load and `add` kernels, given by digest, and store their images.

        Those that compile stay even if another one is refused. Raises: KernelRefusedError for the
        first kernel that NVRTC refuses, after all others are added; for one that the device does
        not load, at once; DriverError for any other failure.
        """
        errors: list[Exception] = []
        with ThreadPoolExecutor(min(len(kernels), os.cpu_count() or 1) or 1) as pool:
            images = pool.map(self._compiled, kernels.values())
            for (digest, kernel), image in zip(kernels.items(), images, strict=True):
                if isinstance(image, Exception):
                    errors.append(image)
                else:
                    self._add_new(digest, kernel, image)
        if errors:
            raise errors[0]

    def _compiled(self, kernel: Kernel) -> CompiledImage | Exception:
        """Compile a kernel; return its image, or the KernelRefusedError if NVRTC refuses it."""
        try:
            return self.compiler.compile(program_text(kernel), self.flags)
        except NvrtcError as error:
            compiler = f"{self.compiler} for {self.device}"
            return refusal(compiler, kernel, str(error), kernel.source)

    def _add_new(self, digest: str, kernel: Kernel, image: CompiledImage) -> None:
        """Load and `add` the new image of a kernel, and store it in the cache under ``digest``.

        Raises: KernelRefusedError where the device does not accept it; DriverError for any other
        failure to load.
        """
        try:
            self.add(digest, self._loaded(kernel, image))
        except DriverError as error:
            if error.failure is not DriverFailure.INVALID_IMAGE:
                raise
            loader = f"{self.device}, when it loaded the compiled code,"
            raise refusal(loader, kernel, str(error), kernel.source) from error
        self.keep(image.to_bytes(), {digest: kernel})

    def _loaded(self, kernel: Kernel, image: CompiledImage) -> Any:
        """Load a kernel's image; return its function, the function's attributes and the image.

        Raises: DriverError where the driver does not load it.
        """
        driver = self.device.driver
        function = driver.load(image.code, kernel.name)
        return function, driver.attributes(function), image
