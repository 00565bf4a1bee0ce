"""OpenCL C to kernels: many are built as one program; binaries go into the disk cache.

Where the driver keeps what it builds by itself, the disk cache is not used.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from functools import cache
from hashlib import sha256
from importlib import import_module
from typing import Any

from attrs import field, frozen

from passkit.dialects.opencl import OPENCL
from passkit.dialects.used_definitions import used_definitions
from passkit.errors import DeviceError
from passkit.graph.kernel import Kernel
from passkit.runtime.device.kernel_builder import (
    ImageCache,
    KernelBuilder,
    kernel_label,
    kernels_by_key,
    refusal,
)
from passkit.runtime.opencl.device import (
    POCL,
    SHUFFLE_EXTENSIONS,
    OpenClDevice,
    power_of_two,
    pyopencl,
)
from passkit.target import Target

FORMAT = 1
"""Part of every digest: raised when the meaning of a cached binary changes."""
MAX_KERNELS = 40
"""The most kernels in one program."""
HEAD = "#pragma OPENCL FP_CONTRACT OFF"
"""The first line of each program: products and sums round separately, as on other targets."""
EXTENSION_PRAGMA = "#pragma OPENCL EXTENSION {} : enable"
NO_OPTIMIZATION = "-cl-opt-disable"
ONE_ITEM = "-DPK_ONE_ITEM"
"""The option for work-groups of one item, which have no barriers; see `NO_BARRIERS`."""
NO_BARRIERS = """\
#ifdef PK_ONE_ITEM
#define barrier(memory)
#endif"""
"""The lines of programs with barriers that leave them out in groups of one item.

An item sees what it stored without a barrier. PoCL 3 divides each kernel with barriers into parts
between them, and between others of its own in loops. In groups of one or two items it then reads
`get_local_id` again at the beginning of a part. Where that is a loop that begins at
`get_local_id`, the read stands in the loop instead of before it, and PoCL aborts the process.
"""


@frozen(eq=False)
class OpenClKernel:
    """A kernel built for a device.

    Attributes:
        kernel: The kernel.
        device: The device.
        functions: pyopencl's kernels, one for each phase; one alone for a kernel without phases.
        block: The work-items of a work-group.
    """

    kernel: Kernel
    device: OpenClDevice = field(repr=False)
    functions: tuple[Any, ...] = field(repr=False)
    block: int


def build(
    kernels: Iterable[Kernel], device: OpenClDevice, target: Target
) -> dict[str, OpenClKernel]:
    """Build kernels for a device. No kernel is built twice on a machine.

    Args:
        kernels: The kernels.
        device: The device.
        target: Its ``block`` is the number of work-items that a group should have; groups are
            smaller where the registers of a kernel require it. Kernels of loop IR have a number of
            their own.

    Returns:
        Each kernel by its key.

    Raises:
        KernelRefusedError: with the compiler's message.
        DeviceError: where a kernel computes in float64 and the device does not.
        CacheError: where other users may write to the cache folder.
    """
    by_key = kernels_by_key(kernels)
    block = max([target.block, *(n for k in by_key.values() if isinstance(n := k.block, int))])
    builder = OpenClKernelBuilder(device, compiler_options(device, block))
    return {
        key: OpenClKernel(
            by_key[key], device, functions, group_size(functions, target.block, device)
        )
        for key, functions in builder.build(by_key).items()
    }


def compiler_options(device: OpenClDevice, block: int) -> tuple[str, ...]:
    """Return the options of the compiler of ``device`` for work-groups of ``block`` items.

    They select the language's version, disable warnings, and request correctly rounded division
    where the device has it. Programs for groups of one item are built without barriers. PoCL does
    not optimize groups of several items here, as its versions up to 3 drop stores between barriers
    when they do.
    """
    options = [f"-cl-std={_language(device)}", "-w"]
    if block == 1:
        options.append(ONE_ITEM)
    if device.limits.exact:
        options.append("-cl-fp32-correctly-rounded-divide-sqrt")
    if device.platform == POCL and block > 1:
        options.append(NO_OPTIMIZATION)
    return tuple(options)


def _language(device: OpenClDevice) -> str:
    """Return OpenCL C's version for a device, such as "CL1.2".

    Devices with sub-group shuffles, except CPUs, get the version of their sub-groups, 2.0 or 3.0.
    """
    if not device.limits.shuffles or device.limits.is_cpu:
        return "CL1.2"
    return "CL3.0" if device.version.startswith("OpenCL 3") else "CL2.0"


def kernel_digest(kernel: Kernel, device: OpenClDevice, flags: Sequence[str]) -> str:
    """Return the digest of all that a kernel's machine code depends on: its name in the cache.

    That is its text, the device and its driver, and ``flags``, the compiler's options.
    """
    parts = [str(FORMAT), device.fingerprint, *flags, program_text([kernel])]
    return sha256("\0".join(parts).encode()).hexdigest()


def program_text(kernels: Sequence[Kernel]) -> str:
    """Return the OpenCL C text of a program.

    It has pragmas, the functions of the preamble that the kernels call, and the kernels. Barriers
    do nothing where it is built with the option `ONE_ITEM`.
    """
    body = "\n".join(kernel.source for kernel in kernels)
    extensions = sorted(SHUFFLE_EXTENSIONS) if "sub_group_" in body else []
    pragmas = map(EXTENSION_PRAGMA.format, extensions)
    barriers = [NO_BARRIERS] if "barrier(" in body else []
    return "\n".join([HEAD, *pragmas, *barriers, used_definitions(OPENCL.preamble, body), body])


def function_names(kernel: Kernel) -> list[str]:
    """Return the names of the functions in a kernel's text, one for each of its phases."""
    if not kernel.phases:
        return [kernel.name]
    return [f"{kernel.name}_phase{k}" for k in range(len(kernel.phases))]


def group_size(functions: Sequence[Any], requested: int, device: OpenClDevice) -> int:
    """Return the work-items of a work-group: a power of two up to ``requested``.

    It is smaller where one of a kernel's functions needs so many registers that the device runs
    fewer work-items.
    """
    info = pyopencl().kernel_work_group_info.WORK_GROUP_SIZE
    largest: int = min(f.get_work_group_info(info, device.handle) for f in functions)
    return power_of_two(min(requested, largest))


@cache
def build_text(device: OpenClDevice, text: str, name: str) -> Any | None:
    """Return pyopencl's kernel ``name`` of a text for groups of one item; None if it is refused.

    Equal texts are built once.
    """
    cl = pyopencl()
    try:
        program = cl.Program(device.context, text)
        return cl.Kernel(program.build(list(compiler_options(device, 1)), cache_dir=False), name)
    except cl.Error:
        return None


def driver_keeps_binaries(device: OpenClDevice) -> bool:
    """Return whether the driver itself keeps what it has built."""
    characterize = import_module("pyopencl.characterize")
    return bool(characterize.has_src_build_cache(device.handle))


class OpenClKernelBuilder(KernelBuilder):
    """Builds kernels by a device's compiler, up to `MAX_KERNELS` in one program.

    The entry of a kernel is a tuple with a function for each of its phases.
    """

    def digest(self, kernel: Kernel) -> str:
        """Return the digest of a kernel's text, the device and the options: its cache key."""
        return kernel_digest(kernel, self.device, self.flags)

    def open_images(self) -> ImageCache | None:
        """Open the cache of a device's binaries; None where the driver keeps them by itself.

        Raises: CacheError where other users may write to the cache folder.
        """
        if driver_keeps_binaries(self.device):
            return None
        return ImageCache(self.device.fingerprint, ".clbin")

    def check(self, kernel: Kernel) -> None:
        """Raise DeviceError if a kernel computes in float64 and the device does not."""
        if not self.device.limits.double and "double" in program_text([kernel]):
            raise DeviceError(
                f"kernel {kernel_label(kernel)} computes in float64, which needs the extension "
                f"cl_khr_fp64, and {self.device} has none; cast to float32, or choose another "
                "device by PYOPENCL_CTX"
            )

    def load(self, kernel: Kernel, image: bytes) -> Any:
        """Load a cached binary, ``image``; return the functions of the kernel's phases as a tuple.

        Returns None where the driver does not accept the binary any more.
        """
        cl = pyopencl()
        try:
            program = cl.Program(self.device.context, [self.device.handle], [image])
            return self._functions(kernel, program.build(list(self.flags)))
        except cl.Error:
            return None

    def compile(self, kernels: dict[str, Kernel]) -> None:
        """Build and `add` kernels, given by digest, up to `MAX_KERNELS` in one program.

        Raises: KernelRefusedError for the first kernel that the compiler refuses; those built
        before it stay. CacheError where other users may write to the cache folder.
        """
        digests = list(kernels)
        for start in range(0, len(digests), MAX_KERNELS):
            self._build_unit({d: kernels[d] for d in digests[start : start + MAX_KERNELS]})

    def _build_unit(self, unit: dict[str, Kernel]) -> None:
        """Build one program of some kernels, given by digest, and store its binary.

        If the compiler refuses it, each kernel is built by itself, so that the error names the one
        at fault. Raises: KernelRefusedError with the compiler's message.
        """
        cl, kernels = pyopencl(), list(unit.values())
        text = program_text(kernels)
        try:
            program = self._program(text)
        except cl.Error as error:
            if len(kernels) > 1:
                for digest, kernel in unit.items():
                    self._build_unit({digest: kernel})
                return
            compiler = f"the OpenCL compiler of {self.device}"
            raise refusal(compiler, kernels[0], str(error), text) from None
        for digest, kernel in unit.items():
            self.add(digest, self._functions(kernel, program))
        binary = b""
        if self.images is not None:
            (binary,) = program.get_info(cl.program_info.BINARIES)
        self.keep(binary, unit)

    def _program(self, text: str) -> Any:
        """Build a pyopencl program of a text, OpenCL C.

        Raises: pyopencl.Error with the compiler's log.
        """
        cl = pyopencl()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cl.CompilerWarning)  # a log without errors
            program = cl.Program(self.device.context, text)
            return program.build(list(self.flags), cache_dir=False)

    def _functions(self, kernel: Kernel, program: Any) -> tuple[Any, ...]:
        """Return pyopencl's kernels for the phases of a kernel, from a built program."""
        return tuple(pyopencl().Kernel(program, name) for name in function_names(kernel))
