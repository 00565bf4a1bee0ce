"""The interface that a device's queue implements, and the check that guards devices after a fork.

Memory and program steps of `passkit.runtime.device` use queues and events by these protocols;
`passkit.runtime.cuda` and `passkit.runtime.opencl` implement them.
"""

from __future__ import annotations

import os
from typing import Any, NoReturn, Protocol

from passkit.errors import DeviceError
from passkit.target import Target, list_targets, target_of


class DeviceEvent(Protocol):
    """A point in a queue: everything enqueued up to and including one transfer."""

    def wait(self) -> Any:
        """Block until the point is reached."""
        ...


class DeviceQueue(Protocol):
    """An in-order queue of device work, which runs while the host continues.

    ``buffer`` is a buffer of the device's pool. ``array`` is a contiguous array of bytes that must
    stay unchanged until the transfer is done.
    """

    def upload(self, buffer: Any, array: Any) -> DeviceEvent:
        """Enqueue a copy of an array's bytes to a buffer; return its event."""
        ...

    def download(self, array: Any, buffer: Any) -> DeviceEvent:
        """Enqueue a copy from a buffer that fills an array; return its event."""
        ...

    def copy(self, target: Any, source: Any, nbytes: int) -> DeviceEvent:
        """Enqueue a copy of ``nbytes`` bytes from buffer ``source`` to buffer ``target``.

        Return its event.
        """
        ...

    def finish(self) -> None:
        """Block until all enqueued work is done."""
        ...

    def seconds(self, event: Any) -> float:
        """Return how long one transfer or kernel took, on a queue that measures."""
        ...


def is_registered(target: Target) -> bool:
    """Return whether a target is the one registered under its name, not one with that name only."""
    return target.name in list_targets() and target_of(target.name) is target


def raise_status(device: Any, doing: str, status: int) -> NoReturn:
    """Raise DeviceError for a status other than 0 that the launcher got from a driver.

    Args:
        device: The device.
        doing: The activity, for the message: "a call".
        status: What the driver's function returned.

    Raises:
        DeviceError: with the driver's text where the device reports the failure again, else with
            the status; in a fork of the process that opened the device it says so.
    """
    with device.active(doing):
        device.queue.finish()
    raise DeviceError(
        f"{device} failed at {doing}: the driver returned status {status}, perhaps because of an "
        "earlier call, as calls return before their kernels have run"
    )


def check_process(device: Any) -> None:
    """Check that this process opened the device: drivers do not work in forked children.

    ``device`` has the id of the process that opened it as ``process``.

    Raises:
        DeviceError: in a fork of the process that opened it.
    """
    if device.process != os.getpid():
        raise DeviceError(
            f"{device} was opened by process {device.process}, and process {os.getpid()} is a fork "
            "of that, in which drivers do not work; start processes by the method 'spawn'"
        )
