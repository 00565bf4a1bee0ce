"""Workers of one test run share how many tests are done, and the raise statements they matched."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

WORKER = "PYTEST_XDIST_WORKER"
"""The environment variable with which pytest-xdist names a worker."""

SHARED = "PASSKIT_TESTS_SHARED"
"""The environment variable with the folder that workers, and processes that tests start, share."""


def share(folder: Path) -> None:
    """Set the folder that all workers of this run share, and the processes that tests start."""
    folder.mkdir(exist_ok=True)
    os.environ[SHARED] = str(folder)


def folder() -> Path:
    """Return the folder of files that workers of this run share. Raises: KeyError without one."""
    return Path(os.environ[SHARED])


@contextmanager
def alone(name: str) -> Iterator[None]:
    """Hold a lock, so that one worker does something and the next ones find it done.

    A process outside of a run of tests shares no folder, and holds no lock.
    """
    if SHARED not in os.environ:
        yield
        return
    with (folder() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class Board:
    """A folder with a file for each worker, to which it adds a line after each test.

    A run without workers needs no ``folder``: what was met is in this process.
    """

    def __init__(self, met: set[tuple[str, int]], folder: Path | None) -> None:
        self.met, self.posted = met, set[tuple[str, int]]()
        self.folder = folder

    def post(self) -> None:
        """Record that one more test is done, and the statements that it matched first."""
        if self.folder is None:
            return
        new, self.posted = self.met - self.posted, set(self.met)
        with (self.folder / os.environ[WORKER]).open("a") as file:
            file.write(json.dumps(sorted(new)) + "\n")

    def gathered(self, count: int, patience: float = 600) -> set[tuple[str, int]]:
        """Return the statements that all workers matched, once ``count`` tests are done.

        Raises: TimeoutError after ``patience`` seconds.
        """
        if self.folder is None:
            return self.met
        end = time.monotonic() + patience
        while len(lines := self._lines()) < count:
            if time.monotonic() > end:
                raise TimeoutError(f"{len(lines)} of {count} tests were done in {patience} s")
            time.sleep(0.2)
        return {(file, line) for text in lines for file, line in json.loads(text)}

    def _lines(self) -> list[str]:
        assert self.folder is not None
        texts = [p.read_text() for p in self.folder.iterdir()]
        return [line for text in texts for line in text.split("\n")[:-1]]
