"""Queues: what a device is told to do, in order, as memory and steps use them."""

from __future__ import annotations

from typing import Any, Protocol


class Done(Protocol):
    """What can be waited for: everything up to one transfer."""

    def wait(self) -> Any:
        """Return when it is done."""
        ...


class Queue(Protocol):
    """What a device does in order, while the host goes on.

    ``buffer`` is what the device's pool gives, ``array`` a contiguous array of bytes that must stay
    as it is until the transfer is done.
    """

    def upload(self, buffer: Any, array: Any) -> Done:
        """Copy an array's bytes to the device."""
        ...

    def download(self, array: Any, buffer: Any) -> Done:
        """Copy as many bytes as an array has from the device."""
        ...

    def copy(self, to: Any, source: Any, nbytes: int) -> Done:
        """Copy bytes from one buffer to another."""
        ...

    def finish(self) -> None:
        """Wait until all is done."""
        ...

    def seconds(self, done: Any) -> float:
        """How long the device took for one transfer or kernel, on a queue that measures."""
        ...
