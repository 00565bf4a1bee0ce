"""Kernel texts to kernels: what is not in this process or on disk is built, many at a time."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from hashlib import sha256
from threading import RLock
from typing import Any

from attrs import field, frozen

from passkit.dialects.needed import needed
from passkit.dialects.opencl import OPENCL
from passkit.errors import DeviceError
from passkit.plan.kernel import Kernel
from passkit.plan.target import Target
from passkit.runtime.device.building import Images, refusal
from passkit.runtime.native.build import stats
from passkit.runtime.opencl.device import POCL, SHUFFLES, Device, power_of_two, pyopencl

FORMAT = 1
MANY = 40
"""Kernels in one program, at most."""
HEAD = "#pragma OPENCL FP_CONTRACT OFF"
"""In front of each program: products and sums round on their own, as elsewhere."""
EXTENSION = "#pragma OPENCL EXTENSION {} : enable"
SERIAL = "-cl-opt-disable"

_lock = RLock()
_known: dict[str, tuple[Any, ...]] = {}


@frozen(eq=False)
class DeviceKernel:
    """A kernel on a device: a function for each of its phases, and the work-items of a group."""

    kernel: Kernel
    device: Device = field(repr=False)
    functions: tuple[Any, ...] = field(repr=False)
    block: int


def build(kernels: Iterable[Kernel], device: Device, target: Target) -> dict[str, DeviceKernel]:
    """Each kernel on a device, by its key. Nothing is built twice in this process.

    Nor is it on this machine: where the driver keeps no programs by itself, their binaries are in
    the cache's folder.

    Raises: KernelRefusedError with the compiler's text; DeviceError where a kernel computes in
    float64 and the device does not.
    """
    wanted = {k.key: k for k in kernels}
    flags = options(device, target.block)
    names = {key: digest(k, device, flags) for key, k in wanted.items()}
    with _lock:
        missing = {names[key]: k for key, k in wanted.items() if names[key] not in _known}
        stats.reused += len(wanted) - len(missing)
        if missing:
            _Builder(device, flags).all(missing)
        found = {key: _known[name] for key, name in names.items()}
    return {
        key: DeviceKernel(wanted[key], device, own, _block(own, target.block, device))
        for key, own in found.items()
    }


def options(device: Device, block: int) -> tuple[str, ...]:
    """What the device's compiler is told.

    PoCL up to 3 leaves out stores between barriers of groups of several items when it optimises.
    """
    exact = ["-cl-fp32-correctly-rounded-divide-sqrt"] * device.limits.exact
    wrong = device.platform == POCL and block > 1
    return (f"-cl-std={_language(device)}", "-w", *exact, *([SERIAL] * wrong))


def _language(device: Device) -> str:
    """The version of OpenCL C: the first with sub-groups, where there are such, is 2.0."""
    if not device.limits.shuffles or device.limits.is_cpu:
        return "CL1.2"
    return "CL3.0" if device.version.startswith("OpenCL 3") else "CL2.0"


def digest(kernel: Kernel, device: Device, flags: Sequence[str]) -> str:
    """What a kernel's machine code depends on: its name in the cache."""
    parts = [str(FORMAT), device.fingerprint, *flags, program_text([kernel])]
    return sha256("\0".join(parts).encode()).hexdigest()


def program_text(kernels: Sequence[Kernel]) -> str:
    """The text of a program: what kernels call of the preamble, then the kernels."""
    body = "\n".join(k.source for k in kernels)
    asked = map(EXTENSION.format, sorted(SHUFFLES)) if "sub_group_" in body else ()
    return "\n".join([HEAD, *asked, needed(OPENCL.preamble, body), body])


def entries(kernel: Kernel) -> list[str]:
    """The functions that a kernel's text has, one for each of its phases."""
    if not kernel.phases:
        return [kernel.name]
    return [f"{kernel.name}_phase{k}" for k in range(len(kernel.phases))]


def _block(functions: Sequence[Any], wanted: int, device: Device) -> int:
    """The work-items of a group: as wanted, or as many as its registers allow; a power of two."""
    info = pyopencl().kernel_work_group_info.WORK_GROUP_SIZE
    most: int = min(f.get_work_group_info(info, device.handle) for f in functions)
    return power_of_two(min(wanted, most))


class _Builder:
    """Kernels for one device, built with some options."""

    def __init__(self, device: Device, flags: tuple[str, ...]) -> None:
        self.device, self.flags, self.cl = device, flags, pyopencl()
        own = self._own_cache()
        self.images = None if own else Images(device.fingerprint, ".clbin")

    def _own_cache(self) -> bool:
        """Whether the driver itself keeps what it has built."""
        from pyopencl.characterize import has_src_build_cache

        return bool(has_src_build_cache(self.device.handle))

    def all(self, missing: dict[str, Kernel]) -> None:
        """Make all kernels known."""
        for kernel in missing.values():
            self.check(kernel)
        rest = {n: k for n, k in missing.items() if not self.load(n, k)}
        todo = list(rest.items())
        for at in range(0, len(todo), MANY):
            self.unit(dict(todo[at : at + MANY]))

    def check(self, kernel: Kernel) -> None:
        """Raises: DeviceError where the device lacks what a kernel computes in."""
        if not self.device.limits.double and "double" in program_text([kernel]):
            raise DeviceError(
                f"kernel {kernel.name} ({', '.join(kernel.ops)}) computes in float64, and "
                f"{self.device} has no cl_khr_fp64; cast to float32, or choose another device by "
                "PYOPENCL_CTX"
            )

    def unit(self, unit: dict[str, Kernel]) -> None:
        """Build a program of some kernels; if it is refused, each by itself."""
        kernels = list(unit.values())
        try:
            program = self.built(program_text(kernels))
        except self.cl.Error as error:
            if len(kernels) > 1:
                for name, kernel in unit.items():
                    self.unit({name: kernel})
                return
            (kernel,) = kernels
            compiler = f"the OpenCL compiler of {self.device}"
            raise refusal(compiler, kernel, str(error), program_text([kernel])) from None
        self.keep(unit, program)
        stats.compiled += len(unit)
        stats.processes += 1

    def built(self, text: str) -> Any:
        """A program of a text. Raises: pyopencl's RuntimeError with what the compiler says."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", self.cl.CompilerWarning)  # a log with nothing wrong
            program = self.cl.Program(self.device.context, text)
            return program.build(list(self.flags), cache_dir=False)

    def keep(self, unit: dict[str, Kernel], program: Any) -> None:
        """Note a program's kernels, and put its binary into the cache."""
        for name, kernel in unit.items():
            _known[name] = self.functions(kernel, program)
        if self.images is None:
            return
        (binary,) = program.get_info(self.cl.program_info.BINARIES)
        self.images.keep(binary, {name: kernel.name for name, kernel in unit.items()})

    def load(self, name: str, kernel: Kernel) -> bool:
        """Take a kernel from the cache, if it is there and the driver still takes it."""
        binary = None if self.images is None else self.images.find(name)
        if binary is None:
            return False
        try:
            program = self.cl.Program(self.device.context, [self.device.handle], [binary])
            _known[name] = self.functions(kernel, program.build(list(self.flags)))
        except self.cl.Error:
            return False
        stats.loaded += 1
        return True

    def functions(self, kernel: Kernel, program: Any) -> tuple[Any, ...]:
        """The functions of a kernel's phases."""
        return tuple(self.cl.Kernel(program, name) for name in entries(kernel))
