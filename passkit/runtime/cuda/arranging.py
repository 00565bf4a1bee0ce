"""Arrays as cuDNN wants them, made on the device: filters in another order, images with a border.

Two kernels move bits: elements are words of as many bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from passkit.runtime.cuda.build import DeviceKernel
from passkit.runtime.cuda.device import Device
from passkit.runtime.cuda.driver import Task
from passkit.runtime.cuda.own_text import built
from passkit.runtime.native.onednn import Geometry

WORDS = {2: "uint16_t", 4: "uint32_t", 8: "uint64_t"}
"""By the bytes of an element."""
EACH = (
    "  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;\n"
    "       i += (int64_t)gridDim.x * blockDim.x) {\n"
)
TURNED = (
    'extern "C" __global__ void {name}(const {word} *__restrict__ x, {word} *__restrict__ y, '
    "const int64_t n, const int64_t rows, const int64_t columns) {{\n" + EACH.replace("{", "{{")
    + "    y[i] = x[i % rows * columns + i / rows];\n"
    "  }}\n"
    "}}\n"
)
"""(rows, columns) -> (columns, rows), n elements in all."""
BORDERED = (
    'extern "C" __global__ void {name}(const {word} *__restrict__ x, {word} *__restrict__ y, '
    "const int64_t n, const int64_t channels, const int64_t s0, const int64_t s1, "
    "const int64_t s2, const int64_t t0, const int64_t t1, const int64_t t2, "
    "const int64_t b0, const int64_t b1, const int64_t b2) {{\n" + EACH.replace("{", "{{")
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
"""Images of s0 x s1 x s2 places as ones of t0 x t1 x t2, which begin b0, b1, b2 in front."""


@cache
def _kernel(device: Device, text: str, what: str, nbytes: int) -> DeviceKernel:
    """One of the texts for elements of so many bytes, on a device."""
    name = f"{what}_{8 * nbytes}"
    return built(device, name, text.format(name=name, word=WORDS[nbytes]))


class Arranged:
    """One of the kernels with its numbers: ``nbytes`` is how much it writes."""

    def __init__(
        self, device: Device, text: str, what: str, itemsize: int, count: int, *sizes: int
    ) -> None:
        self.device, self.nbytes = device, count * itemsize
        self.made = _kernel(device, text, what, itemsize)
        blocks = -(-count // self.made.threads)
        self.grid = max(1, min(blocks, device.limits.grid))
        self.sizes = (count, *sizes)

    def enqueue(self, source: int, result: int, stream: Any) -> None:
        """Let a stream do it. Raises: DriverError."""
        arguments = (source, result, *self.sizes)
        task = Task(self.made.function, self.grid, (self.made.threads, 1), 0, arguments)
        self.device.driver.launch(task, stream)


def turned(device: Device, rows: int, columns: int, itemsize: int) -> Arranged:
    """A matrix by columns, as `passkit.runtime.cuda.cudnn.filters_of` lays out filters."""
    return Arranged(device, TURNED, "turned", itemsize, rows * columns, rows, columns)


def bordered(device: Device, c: Geometry, size: Sequence[int], itemsize: int) -> Arranged:
    """Images of another size, with zeros where there is nothing, or less at their ends."""
    count = c.batch * c.channels
    for n in size:
        count *= n
    numbers = (c.channels, *c.size, *size, *c.before)
    return Arranged(device, BORDERED, "bordered", itemsize, count, *numbers)


def bare(c: Geometry) -> Geometry:
    """The same convolution of images that have their border: of as many places as windows see."""
    size = tuple(
        (r - 1) * s + (w - 1) * d + 1
        for r, s, w, d in zip(c.result, c.stride, c.window, c.dilation, strict=True)
    )
    return c._replace(size=size, before=(0,) * len(size))
