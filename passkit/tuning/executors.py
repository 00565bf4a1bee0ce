"""Executors of measurements: a user's executor, or worker processes."""

from __future__ import annotations

from concurrent.futures import Executor, Future

from passkit.errors import SettingError
from passkit.tuning.measure import RunClock, measure
from passkit.tuning.workers import Workers


class MeasuringPool:
    """Runs measurements in the executor given by the user, else in worker processes."""

    def __init__(self, executor: Executor | None, clock: RunClock | None) -> None:
        """Use ``executor``, or start worker processes for None; ``clock`` is the user's or None."""
        self.workers: Workers | None = Workers() if executor is None else None
        self.executor = executor
        self.clock = clock

    def submit(self, request: str, limit: float, new_process: bool = False) -> Future[str]:
        """Submit the measurement of a request, and return the future of its answer.

        The future may have an exception instead. Only worker processes observe the other arguments.
        What a user's executor raises at once propagates.

        Args:
            request: The text of a `Request`.
            limit: Seconds after which the measurement is ended.
            new_process: Whether to use a process that has measured nothing before.
        """
        if self.workers is not None:
            if new_process:
                self.workers.renew()
            self.workers.limit = limit
            return self.workers.submit(measure, request)
        assert self.executor is not None
        if self.clock is None:
            return self.executor.submit(measure, request)
        return self.executor.submit(measure, request, self.clock)

    def fall_back(self, reason: str) -> str:
        """Use worker processes from now on, and return a remark that begins with ``reason``.

        Raises:
            SettingError: If the user has a clock, which cannot be sent to worker processes.
        """
        if self.clock is not None:
            raise SettingError(
                f"{reason}, and worker processes cannot use the clock {self.clock!r}; repair the "
                f"executor, or leave the clock out"
            )
        if self.workers is None:
            self.workers = Workers()
        return f"{reason}; worker processes measured the rest"

    def close(self) -> None:
        """End the worker processes; a user's executor keeps running."""
        if self.workers is not None:
            self.workers.shutdown(wait=False)
