"""Kernels that belong to no graph: layout changes for cuDNN, and a delay for measurements.

They are compiled and cached like the kernels of graphs. The layout kernels move elements as words
of the same size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from hashlib import sha256
from math import prod
from typing import Any

from passkit.ast.stage import KernelAST
from passkit.graph.kernel import Kernel
from passkit.ir.loop import WARP
from passkit.runtime.cuda.compiler import CudaKernel, build
from passkit.runtime.cuda.device import CudaDevice
from passkit.runtime.cuda.driver import LaunchParams
from passkit.runtime.native.onednn import Geometry
from passkit.target import target_of

WORD_TYPES = {
    2: "uint16_t",
    4: "uint32_t",
    8: "uint64_t",
}
"""The type of a word by the bytes of an element."""
GRID_STRIDE_LOOP = (
    "  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;\n"
    "       i += (int64_t)gridDim.x * blockDim.x) {\n"
)
TRANSPOSE_TEXT = (
    'extern "C" __global__ void {name}(const {word} *__restrict__ x, {word} *__restrict__ y, '
    "const int64_t n, const int64_t rows, const int64_t columns) {{\n"
    + GRID_STRIDE_LOOP.replace("{", "{{")
    + "    y[i] = x[i % rows * columns + i / rows];\n"
    "  }}\n"
    "}}\n"
)
"""(rows, columns) -> (columns, rows), n elements in all."""
PAD_TEXT = (
    'extern "C" __global__ void {name}(const {word} *__restrict__ x, {word} *__restrict__ y, '
    "const int64_t n, const int64_t channels, const int64_t s0, const int64_t s1, "
    "const int64_t s2, const int64_t t0, const int64_t t1, const int64_t t2, "
    "const int64_t b0, const int64_t b1, const int64_t b2) {{\n"
    + GRID_STRIDE_LOOP.replace("{", "{{")
    + "    int64_t place = i / channels;\n"
    "    const int64_t k2 = place % t2 - b2;\n"
    "    place /= t2;\n"
    "    const int64_t k1 = place % t1 - b1;\n"
    "    place /= t1;\n"
    "    const int64_t k0 = place % t0 - b0;\n"
    "    const bool inside = 0 <= k0 && k0 < s0 && 0 <= k1 && k1 < s1 && 0 <= k2 && k2 < s2;\n"
    "    const int64_t from = ((place / t0 * s0 + k0) * s1 + k1) * s2 + k2;\n"
    "    y[i] = inside ? x[from * channels + i % channels] : {word}(0);\n"
    "  }}\n"
    "}}\n"
)
"""(batch, s0, s1, s2, channels) -> (batch, t0, t1, t2, channels) with b0, b1, b2 zeros in front."""
DELAY_CYCLES = 1_000_000
"""Half a millisecond at 2 GHz: the host takes a tenth of that for a launch and its events."""
DELAY_TEXT = """\
extern "C" __global__ void busy(const int64_t cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {}
}
"""


def build_text(device: CudaDevice, name: str, source: str) -> CudaKernel:
    """Build the kernel called ``name`` of ``source``, a text of CUDA C, with the kernel cache.

    Raises: KernelRefusedError where the device or the compiler refuses it; MissingDependencyError
    without NVRTC; DeviceError where NVRTC does not support the device; CacheError where other users
    may write to the cache folder.
    """
    key = sha256(source.encode()).hexdigest()
    kernel = Kernel(
        name,
        key,
        KernelAST((), (), (), ()),
        source,
        grid=1,
        block=1,
        shared_nbytes=0,
        sizes=(),
        ops=(name,),
        dialect="cuda",
    )
    return build([kernel], device, target_of("cuda"))[key]


@cache
def _layout_kernel(device: CudaDevice, text: str, name: str, itemsize: int) -> CudaKernel:
    """Build the layout kernel ``name`` of ``text`` for elements of ``itemsize`` (2, 4, 8) bytes.

    It is built once for each ``device``. Raises: KernelRefusedError where the device or the
    compiler refuses the kernel; MissingDependencyError without NVRTC; DeviceError where NVRTC does
    not support the device; CacheError where other users may write to the cache folder; KeyError for
    another size.
    """
    name = f"{name}_{8 * itemsize}"
    return build_text(device, name, text.format(name=name, word=WORD_TYPES[itemsize]))


class LayoutKernel:
    """A layout kernel with its sizes. It writes ``nbytes`` bytes.

    Args:
        device: The device.
        text: `TRANSPOSE_TEXT` or `PAD_TEXT`.
        name: The kernel's name, without the bits of an element.
        itemsize: The bytes of an element.
        count: The elements that it writes.
        sizes: The size arguments of the text after ``n``.

    Raises: KernelRefusedError, MissingDependencyError, DeviceError or CacheError, as `build_text`.
    """

    def __init__(
        self,
        device: CudaDevice,
        text: str,
        name: str,
        itemsize: int,
        count: int,
        sizes: Sequence[int],
    ) -> None:
        self.device = device
        self.nbytes = count * itemsize
        self.kernel = _layout_kernel(device, text, name, itemsize)
        blocks = -(-count // self.kernel.threads)
        self.grid = max(1, min(blocks, device.limits.grid))
        self.sizes = (count, *sizes)

    def enqueue(self, source: int, result: int, stream: Any) -> None:
        """Enqueue the kernel in a stream, for the device addresses of source and result.

        Raises: DriverError.
        """
        params = LaunchParams(
            function=self.kernel.function,
            grid=self.grid,
            block=(self.kernel.threads, 1),
            shared=0,
            arguments=(source, result, *self.sizes),
        )
        self.device.driver.launch(params, stream)


def transpose_kernel(device: CudaDevice, rows: int, columns: int, itemsize: int) -> LayoutKernel:
    """Return the kernel that transposes a matrix on ``device``, as cuDNN's filters need it.

    The matrix has ``rows`` x ``columns`` elements of ``itemsize`` bytes.

    Raises: KernelRefusedError, MissingDependencyError, DeviceError or CacheError, as `build_text`.
    """
    return LayoutKernel(
        device, TRANSPOSE_TEXT, "transposed", itemsize, rows * columns, (rows, columns)
    )


def pad_kernel(
    device: CudaDevice, geometry: Geometry, size: Sequence[int], itemsize: int
) -> LayoutKernel:
    """Return the kernel that pads images with zeros, or crops them, at both ends of their axes.

    Args:
        device: The device.
        geometry: The convolution; its ``before`` is the number of zeros in front of each axis, or
            the elements that are left out there, as a negative number.
        size: The spatial extents of the padded images.
        itemsize: The bytes of an element.

    Raises: KernelRefusedError, MissingDependencyError, DeviceError or CacheError, as `build_text`.
    """
    count = geometry.batch * geometry.channels * prod(size)
    sizes = (geometry.channels, *geometry.size, *size, *geometry.before)
    return LayoutKernel(device, PAD_TEXT, "padded", itemsize, count, sizes)


@cache
def delay(device: CudaDevice) -> Callable[[Any], None]:
    """Return a function that enqueues a delay of `DELAY_CYCLES` cycles in a stream.

    What is timed after it does not wait for the host: two events around a launch on an idle device
    would measure the host's microseconds between two driver calls, too, which is more than most
    kernels take. Source: CUDA C++ Programming Guide, time function. The kernel is built at the
    first call for a device; the function raises a DriverError where the launch fails. Raises:
    KernelRefusedError where the kernel is refused; MissingDependencyError without NVRTC;
    DeviceError where NVRTC does not support the device; CacheError where other users may write to
    the cache folder.
    """
    function = build_text(device, "busy", DELAY_TEXT).function
    params = LaunchParams(function, grid=1, block=(WARP, 1), shared=0, arguments=(DELAY_CYCLES,))

    def enqueue(stream: Any) -> None:
        """Enqueue the kernel in a stream. Raises: DriverError where the launch fails."""
        with device.lock:
            device.driver.launch(params, stream)

    return enqueue
