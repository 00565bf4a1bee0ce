"""A kernel that does nothing for a while: what is timed behind it does not wait for the host.

Two events around a launch on an idle device would count the microseconds that the host takes from
one call of the driver to the next, too: more than most kernels last. Source: CUDA C++ Programming
Guide, time function.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from passkit.dialects.row_lanes import WARP
from passkit.runtime.cuda.device import Device
from passkit.runtime.cuda.driver import Task
from passkit.runtime.cuda.own_text import built

CYCLES = 1_000_000
"""Half a millisecond at 2 GHz: the host takes a tenth of that for a launch and its events."""

TEXT = """\
extern "C" __global__ void busy(const int64_t cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {}
}
"""


@cache
def busy(device: Device) -> Callable[[Any], None]:
    """What keeps a stream of a device busy for `CYCLES` cycles."""
    function = built(device, "busy", TEXT).function
    task = Task(function, 1, (WARP, 1), 0, (CYCLES,))

    def enqueue(stream: Any) -> None:
        with device.lock:
            device.driver.launch(task, stream)

    return enqueue
