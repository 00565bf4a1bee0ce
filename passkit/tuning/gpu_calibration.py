"""Calibration of a CUDA device: its bandwidth by bytes and the cost of a launch, by its events."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from passkit.library.gpu import Measured
from passkit.plan.target import MIB
from passkit.runtime.cuda.build import image_of
from passkit.runtime.cuda.device import Device
from passkit.runtime.cuda.driver import Task
from passkit.runtime.cuda.pool import pool_of

NAME = "passkit_nothing"
TEXT = f'extern "C" __global__ void {NAME}(float *__restrict__ y0) {{\n}}\n'
SIZES = tuple(MIB << k for k in range(9))
"""Bytes of an array that is copied: up to 256 MiB, or what a quarter of the device holds."""
LITTLE, RUNS, LAUNCHES = 4096, 7, 100


def calibrate_gpu(device: Device) -> Measured:
    """What the device does now: other work on it shows. Raises: DeviceError."""
    with device.used("calibration"):
        return Measured(tuple(_curve(device)), _launch(device))


def _curve(device: Device) -> Iterator[tuple[int, float]]:
    """Bytes that a copy reads and writes, and bytes a second, less what copies of little take."""
    begin = _copying(device, LITTLE)
    for size in SIZES:
        if 4 * size > device.limits.global_nbytes:
            return
        yield 2 * size, 2 * size / max(_copying(device, size) - begin, 1e-9)


def _copying(device: Device, nbytes: int) -> float:
    """The seconds of a copy on the device."""
    queue, pool = device.measuring(), pool_of(device)
    one, other = pool.take(nbytes), pool.take(nbytes)
    done = [queue.copy(other, one, nbytes) for _ in range(RUNS + 1)]
    queue.finish()
    return median(queue.seconds(d) for d in done[1:])


def _launch(device: Device) -> float:
    """The seconds of one more launch behind another."""
    driver, stream = device.driver, device.queue.stream
    image = image_of(NAME, TEXT, device)
    held = pool_of(device).take(4)
    task = Task(driver.load(image.code, NAME), 1, (32, 1), 0, (held.address,))

    def seconds(count: int) -> float:
        first = driver.event(stream)
        for _ in range(count):
            driver.launch(task, stream)
        last = driver.event(stream)
        driver.finish(stream)
        return driver.seconds(first, last)

    seconds(LAUNCHES)
    pairs = [(seconds(LAUNCHES + 1), seconds(1)) for _ in range(RUNS)]
    return max(median(many - one for many, one in pairs) / LAUNCHES, 1e-9)


