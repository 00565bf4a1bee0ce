"""Stream capture without a device: what is enqueued meanwhile is kept, and not done."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from passkit.runtime.cuda.driver import DriverError, driver_error

UNSAFE = ("allocate", "free", "finish")
"""What a thread must not ask for while it records; others may."""


class Recording:
    """The part of a fake driver that records. What fails there leaves the stream as it was."""

    local: Any
    streams: dict[int, list[Callable[[], None]]]
    noted: Callable[..., None]
    broken = False

    def check(self, call: str) -> None:
        """Let what is unsafe fail, and the recording with it."""
        if call in UNSAFE and getattr(self.local, "recording", None) is not None:
            self.broken = True
            raise driver_error(call, "operation not permitted when stream is capturing")

    def begin(self, stream: int) -> None:
        """From now on nothing is done of what this thread enqueues in a stream."""
        assert not self.streams[stream] and getattr(self.local, "recording", None) is None
        self.local.recording, self.broken = stream, False

    def end(self, stream: int) -> list[Any]:
        """What was enqueued since, unless something was asked for that has no place in it."""
        assert self.local.recording == stream
        self.local.recording, found, self.streams[stream] = None, self.streams[stream], []
        if self.broken:
            raise driver_error("end", "operation failed due to a previous error during capture")
        return found

    def capture(self, enqueue: Callable[[], None], stream: int) -> list[Any]:
        """What is enqueued meanwhile."""
        self.noted("capture", stream)
        self.begin(stream)
        try:
            enqueue()
        except BaseException:
            with suppress(DriverError):
                self.end(stream)
            raise
        return self.end(stream)
