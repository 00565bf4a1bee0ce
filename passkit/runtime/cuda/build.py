"""Kernel texts to functions of a device: what is not in this process or on disk is compiled."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from threading import RLock
from typing import Any

from attrs import field, frozen

from passkit.dialects.cuda import CUDA
from passkit.plan.kernel import Kernel
from passkit.plan.target import Target
from passkit.runtime.cuda.device import Device
from passkit.runtime.cuda.driver import DriverError, Trouble, Used
from passkit.runtime.cuda.nvrtc import (
    OPTIONS,
    Image,
    Nvrtc,
    RefusedError,
    architecture_for,
    nvrtc,
)
from passkit.runtime.device.building import Images, refusal
from passkit.runtime.native.build import stats

FORMAT = 1

_lock = RLock()
_known: dict[tuple[Device, str], tuple[Any, Used, Image]] = {}


@frozen(eq=False)
class DeviceKernel:
    """A kernel on a device: its function, what that takes, and the threads of its blocks.

    ``registers`` are those of a thread, ``spills`` the bytes that it stores of others: where the
    compiler does not tell, all that it has in local memory.
    """

    kernel: Kernel
    device: Device = field(repr=False)
    function: Any = field(repr=False)
    used: Used
    threads: int
    registers: int
    spills: int


def build(kernels: Iterable[Kernel], device: Device, target: Target) -> dict[str, DeviceKernel]:
    """Each kernel on a device, by its key. Nothing is compiled twice on a machine.

    Raises: KernelRefusedError with the compiler's text; DeviceError where NVRTC does not know the
    device, or the device takes no code.
    """
    wanted = {k.key: k for k in kernels}
    compiler = nvrtc()
    architecture = architecture_for(device.facts.capability, compiler, str(device))
    flags = (f"--gpu-architecture={architecture}", *OPTIONS)
    names = {key: digest(k, str(compiler), flags) for key, k in wanted.items()}
    with _lock:
        missing = {names[k]: x for k, x in wanted.items() if (device, names[k]) not in _known}
        stats.reused += len(wanted) - len(missing)
        if missing:
            with device.used("loading kernels"):
                _Builder(device, compiler, flags).all(missing)
        found = {key: _known[device, name] for key, name in names.items()}
    return {
        key: DeviceKernel(
            *(wanted[key], device, function, used, min(target.block, used.threads)),
            *(used.registers, used.local if image.spills is None else image.spills),
        )
        for key, (function, used, image) in found.items()
    }


def image_of(name: str, source: str, device: Device) -> Image:
    """The machine code of a text for a device. Raises: DeviceError, RefusedError."""
    compiler = nvrtc()
    architecture = architecture_for(device.facts.capability, compiler, str(device))
    flags = f"--gpu-architecture={architecture}", *OPTIONS
    return compiler.compile(unit_text(name, source), flags)


def digest(kernel: Kernel, compiler: str, flags: Sequence[str]) -> str:
    """What a kernel's machine code depends on: its name in the cache."""
    parts = [str(FORMAT), compiler, *flags, program_text(kernel)]
    return sha256("\0".join(parts).encode()).hexdigest()


def program_text(kernel: Kernel) -> str:
    """What is compiled: the preamble, then the kernel, whose lines are counted from its first."""
    return unit_text(kernel.name, kernel.source)


def unit_text(name: str, source: str) -> str:
    """A kernel's text behind the preamble."""
    return f'#line 1 "preamble"\n{CUDA.preamble}\n#line 1 "{name}.cu"\n{source}'


class _Builder:
    """Kernels for one device, compiled with some options."""

    def __init__(self, device: Device, compiler: Nvrtc, flags: Sequence[str]) -> None:
        self.device, self.compiler, self.flags = device, compiler, flags
        self.images = Images("\n".join([str(compiler), *flags]), ".cubin")

    def all(self, missing: dict[str, Kernel]) -> None:
        """Make all kernels known; those that were compiled stay so if another one is refused."""
        rest = {n: k for n, k in missing.items() if not self.load(n, k)}
        refused: list[Exception] = []
        with ThreadPoolExecutor(min(len(rest), os.cpu_count() or 1) or 1) as pool:
            made = pool.map(self.compiled, rest.values())
            for (name, kernel), image in zip(rest.items(), made, strict=True):
                if isinstance(image, Exception):
                    refused.append(image)
                else:
                    self.take(name, kernel, image)
        if refused:
            raise refused[0]

    def compiled(self, kernel: Kernel) -> Image | Exception:
        """A kernel's machine code, or the error that says why there is none."""
        try:
            return self.compiler.compile(program_text(kernel), self.flags)
        except RefusedError as error:
            who = f"{self.compiler} for {self.device}"
            return refusal(who, kernel, str(error), kernel.source)

    def take(self, name: str, kernel: Kernel, image: Image) -> None:
        """Load new machine code and keep it."""
        try:
            self.know(name, kernel, image)
        except DriverError as error:
            if error.trouble is not Trouble.IMAGE:
                raise
            who = f"{self.device}, which loads code for itself,"
            raise refusal(who, kernel, str(error), kernel.source) from error
        self.images.keep(packed(image), {name: kernel.name})
        stats.compiled += 1
        stats.processes += 1

    def load(self, name: str, kernel: Kernel) -> bool:
        """Take a kernel from the cache, if it is there and the device still takes it."""
        found = self.images.find(name)
        if found is None:
            return False
        try:
            self.know(name, kernel, unpacked(found))
        except DriverError as error:
            if error.trouble is not Trouble.IMAGE:
                raise
            return False
        stats.loaded += 1
        return True

    def know(self, name: str, kernel: Kernel, image: Image) -> None:
        """Load a kernel's function."""
        driver = self.device.driver
        function = driver.load(image.code, kernel.name)
        _known[self.device, name] = function, driver.used(function), image


def packed(image: Image) -> bytes:
    """Machine code and its log as one file: what a device loads comes first in a cubin."""
    log = image.log.encode()
    return image.code + log + len(log).to_bytes(4, "little")


def unpacked(data: bytes) -> Image:
    """What `packed` made a file of."""
    end = len(data) - 4 - int.from_bytes(data[-4:], "little")
    return Image(data[:end], data[end:-4].decode())
