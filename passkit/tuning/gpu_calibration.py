"""Calibration of a CUDA device: its bandwidth by bytes and the cost of a launch, by its events."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

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
LITTLE, RUNS, TIMES = 4096, 7, 100
"""Bytes of a copy that only begins; how often everything is timed, and done in between."""
MOST_BEGINNING = 0.5
"""Of a small copy's time: its end and begin are not apart, so that less would be noise."""


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
        seconds = _copying(device, size)
        yield 2 * size, 2 * size / (seconds - min(begin, MOST_BEGINNING * seconds))


def _copying(device: Device, nbytes: int) -> float:
    """The seconds of one more copy behind another on the device."""
    driver, pool = device.driver, pool_of(device)
    one, other = pool.take(nbytes), pool.take(nbytes)
    return _one_more(device, lambda s: driver.copy(other.address, one.address, nbytes, s))


def _launch(device: Device) -> float:
    """The seconds of one more launch behind another."""
    driver = device.driver
    image = image_of(NAME, TEXT, device)
    held = pool_of(device).take(4)
    task = Task(driver.load(image.code, NAME), 1, (32, 1), 0, (held.address,))
    return _one_more(device, lambda s: driver.launch(task, s))


def _one_more(device: Device, enqueue: Callable[[Any], None]) -> float:
    """The seconds of one more of what is enqueued, behind others."""
    driver, stream = device.driver, device.queue.stream

    def seconds(count: int) -> float:
        first = driver.event(stream)
        for _ in range(count):
            enqueue(stream)
        last = driver.event(stream)
        driver.finish(stream)
        return driver.seconds(first, last)

    seconds(TIMES)
    pairs = [(seconds(TIMES + 1), seconds(1)) for _ in range(RUNS)]
    return max(median(many - one for many, one in pairs) / TIMES, 1e-9)


