"""Pools: who measures, an executor that somebody gave or processes of our own."""

from __future__ import annotations

from concurrent.futures import Executor, Future

from passkit.errors import SettingError
from passkit.tuning.measure import Clock, measure
from passkit.tuning.workers import Workers


class Pool:
    """Who measures: the executor that was given, else worker processes."""

    def __init__(self, executor: Executor | None, clock: Clock | None) -> None:
        self.workers: Workers | None = Workers() if executor is None else None
        self.executor = executor
        self.clock = clock

    def submit(self, request: str, limit: float, anew: bool = False) -> Future[str]:
        """Measure what a request says, in so many seconds at most where that can be ended.

        Where that is possible, by a process that has measured nothing before.
        """
        if self.workers is not None:
            if anew:
                self.workers.renew()
            self.workers.limit = limit
            return self.workers.submit(measure, request)
        assert self.executor is not None
        if self.clock is None:
            return self.executor.submit(measure, request)
        return self.executor.submit(measure, request, self.clock)

    def give_up(self, why: str) -> str:
        """Take worker processes from now on; a remark that says so.

        Raises: SettingError where they cannot have the clock.
        """
        if self.clock is not None:
            raise SettingError(f"{why}, and worker processes cannot have the clock {self.clock!r}")
        if self.workers is None:
            self.workers = Workers()
        return f"{why}; what was left was measured by worker processes"

    def close(self) -> None:
        """End the worker processes."""
        if self.workers is not None:
            self.workers.shutdown(wait=False)
