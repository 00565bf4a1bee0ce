"""Calibrate a CUDA device: measure its bandwidth by size and the cost of a launch, with events."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

from passkit.library.gpu_profile import GpuProfile
from passkit.runtime.cuda.compiler import compile_text
from passkit.runtime.cuda.device import CudaDevice, pool_of
from passkit.runtime.cuda.driver import LaunchParams
from passkit.target import MIB

EMPTY_KERNEL = "passkit_nothing"
TEXT = f'extern "C" __global__ void {EMPTY_KERNEL}(float *__restrict__ y0) {{\n}}\n'
SIZES = tuple(MIB << k for k in range(9))
"""The bytes of the copied arrays: up to 256 MiB, or a quarter of the device's memory."""
TINY_BYTES = 4096
"""The bytes of a copy whose seconds are overhead only."""
RUNS = 7
"""The number of samples of a time, of which the median counts."""
REPEATS = 100
"""The number of operations that are enqueued between two events."""
MAX_OVERHEAD = 0.5
"""The most overhead that is subtracted, as a part of a copy's seconds; the rest would be noise."""


def calibrate_gpu(device: CudaDevice) -> GpuProfile:
    """Measure a device and return its profile; other work on the device affects the result.

    Raises:
        DeviceError: If the device fails, or NVRTC does not support it.
        MissingDependencyError: If NVRTC is not installed.
    """
    with device.active("calibration"):
        return GpuProfile(tuple(_curve(device)), _launch(device))


def _curve(device: CudaDevice) -> Iterator[tuple[int, float]]:
    """Yield, for each copy, the bytes that it reads and writes, and its bytes per second.

    The overhead of a copy, at most `MAX_OVERHEAD` of its seconds, is subtracted. Sizes above a
    quarter of the device's memory are left out. Raises: DriverError where the device fails,
    DeviceError where it has no memory left.
    """
    overhead = _copy_seconds(device, TINY_BYTES)
    for size in SIZES:
        if 4 * size > device.limits.global_nbytes:
            return
        seconds = _copy_seconds(device, size)
        yield 2 * size, 2 * size / (seconds - min(overhead, MAX_OVERHEAD * seconds))


def _copy_seconds(device: CudaDevice, nbytes: int) -> float:
    """Return the seconds of a copy of ``nbytes`` on the device that follows another in a stream.

    Raises: DriverError where the device fails, DeviceError where it has no memory left.
    """
    driver, pool = device.driver, pool_of(device)
    source, target = pool.take(nbytes), pool.take(nbytes)
    return _repeated(device, lambda s: driver.copy(target.address, source.address, nbytes, s))


def _launch(device: CudaDevice) -> float:
    """Return the seconds of a launch of an empty kernel that follows another in a stream.

    Raises: DriverError where the device fails, DeviceError where NVRTC does not support it or it
    has no memory left, MissingDependencyError without NVRTC.
    """
    driver = device.driver
    image = compile_text(EMPTY_KERNEL, TEXT, device)
    buffer = pool_of(device).take(4)
    task = LaunchParams(driver.load(image.code, EMPTY_KERNEL), 1, (32, 1), 0, (buffer.address,))
    return _repeated(device, lambda s: driver.launch(task, s))


def _repeated(device: CudaDevice, enqueue: Callable[[Any], None]) -> float:
    """Return the median seconds of an operation that ``enqueue`` adds to the stream of ``device``.

    ``enqueue`` takes the stream. The time of a single operation is subtracted from that of many, so
    that overhead cancels; the result is at least a nanosecond. Raises: DriverError where the device
    fails.
    """
    driver, stream = device.driver, device.queue.stream

    def seconds(count: int) -> float:
        """Return the seconds of ``count`` operations, one after another.

        Raises: DriverError where the driver refuses one.
        """
        first = driver.event(stream)
        for _ in range(count):
            enqueue(stream)
        last = driver.event(stream)
        driver.finish(stream)
        return driver.seconds(first, last)

    seconds(REPEATS)
    pairs = [(seconds(REPEATS + 1), seconds(1)) for _ in range(RUNS)]
    return max(median(many - one for many, one in pairs) / REPEATS, 1e-9)
