"""Stream capture of the fake driver: what a thread enqueues is kept, and does not run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from passkit.runtime.cuda.driver import DriverError, driver_error

UNSAFE = ("allocate", "free", "finish")
"""Calls that a thread must not make while it captures; other threads may."""


class StreamCapture:
    """The part of the fake driver that captures. A failure leaves the stream usable."""

    local: Any
    streams: dict[int, list[Callable[[], None]]]
    record: Callable[..., None]
    broken = False

    def check(self, call: str) -> None:
        """Raise DriverError for an unsafe call, and invalidate the capture."""
        if call in UNSAFE and getattr(self.local, "recording", None) is not None:
            self.broken = True
            raise driver_error(call, "operation not permitted when stream is capturing")

    def begin(self, stream: int) -> None:
        """Begin to capture what this thread enqueues in a stream."""
        assert not self.streams[stream] and getattr(self.local, "recording", None) is None
        self.local.recording, self.broken = stream, False

    def end(self, stream: int) -> list[Any]:
        """Return what was captured. Raises: DriverError after an unsafe call."""
        assert self.local.recording == stream
        self.local.recording = None
        actions, self.streams[stream] = self.streams[stream], []
        if self.broken:
            raise driver_error("end", "operation failed due to a previous error during capture")
        return actions

    def capture(self, enqueue: Callable[[], None], stream: int) -> list[Any]:
        """Return what a function enqueues in a stream."""
        self.record("capture", stream)
        self.begin(stream)
        try:
            enqueue()
        except BaseException:
            with suppress(DriverError):
                self.end(stream)
            raise
        return self.end(stream)
