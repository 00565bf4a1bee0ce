"""Workers: an Executor of processes that may crash or hang, one at a time and by themselves.

Another Executor's pool is broken by one process that ends, and does not tell what it was doing.
Here the call that it was doing fails, and the next one gets a new process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from passkit.errors import PasskitError
from passkit.tuning import worker

T = TypeVar("T")

class WorkerError(PasskitError, RuntimeError):
    """A worker process could not do what it was to do."""


class DeadError(WorkerError):
    """A worker process ended before it had answered."""


class HungError(WorkerError):
    """A worker process took longer than it was given."""


class Workers(Executor):
    """``count`` processes. Functions are those of modules, arguments and results are JSON's.

    A call that takes longer than ``limit`` seconds is ended with its process, and raises
    `HungError`; one whose process ends otherwise raises `DeadError` with how it ended, and one that
    raises, `WorkerError` with what.
    """

    def __init__(self, count: int = 1, limit: float | None = None) -> None:
        self.limit = limit
        self._threads = ThreadPoolExecutor(count, "passkit-worker")
        self._own = threading.local()
        self._all: set[_Process] = set()

    @property
    def pids(self) -> list[int]:
        """The processes that run now."""
        return [p.pid for p in [*self._all] if p.runs]

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Call a function in a process; only arguments by position can be sent."""
        if kwargs:
            raise TypeError(f"Workers send arguments by position, got {', '.join(kwargs)}")
        task = {"function": f"{fn.__module__}:{fn.__qualname__}", "arguments": args}
        return self._threads.submit(self._do, json.dumps(task))

    def _do(self, task: str) -> Any:
        process: _Process | None = getattr(self._own, "process", None)
        if process is None or not process.runs:
            process = self._own.process = _Process()
            self._all.add(process)
        try:
            answer = process.ask(task, self.limit)
        except (DeadError, HungError):
            self._all.discard(process)
            raise
        if "error" in answer:
            raise WorkerError(f"a worker could not do it: {answer['error']}")
        return answer["value"]

    def renew(self) -> None:
        """End the processes that wait for calls: the next ones get new ones. None must be busy."""
        for process in [*self._all]:
            process.end()
        self._all.clear()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes, at once where nobody waits."""
        if not wait:
            for process in [*self._all]:
                process.end()
        self._threads.shutdown(wait, cancel_futures=cancel_futures)
        for process in [*self._all]:
            process.end()


class _Process:
    """A worker process and the pipe to it."""

    def __init__(self) -> None:
        # It finds modules where this process does, a checkout that is not installed among them.
        text = f"import sys; sys.path[:] = {sys.path!r}; from {worker.__name__} import main; main()"
        self._popen = subprocess.Popen(
            [sys.executable, "-c", text], text=True, encoding="utf-8",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    @property
    def pid(self) -> int:
        """Its number."""
        return self._popen.pid

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self._popen.poll() is None

    def ask(self, task: str, limit: float | None) -> Any:
        """What it answers. Raises: DeadError, HungError."""
        late = threading.Event()

        def end() -> None:
            late.set()
            self._popen.kill()

        timer = threading.Timer(limit, end) if limit is not None else None
        if timer is not None:
            timer.daemon = True
            timer.start()
        try:
            assert self._popen.stdin is not None and self._popen.stdout is not None
            self._popen.stdin.write(task + "\n")
            self._popen.stdin.flush()
            line = self._popen.stdout.readline()
        except (BrokenPipeError, ValueError):
            line = ""
        finally:
            if timer is not None:
                timer.cancel()
        if line.endswith("\n"):
            return json.loads(line)
        self.end()
        if late.is_set():
            raise HungError(f"a worker gave no answer in {limit:g} s, and was ended")
        raise DeadError(f"a worker ended with {_ending(self._popen.returncode)}")

    def end(self) -> None:
        """End it now."""
        self._popen.kill()
        self._popen.wait()
        for pipe in (self._popen.stdin, self._popen.stdout):
            if pipe is not None:
                with suppress(OSError):  # what was still to be sent has nowhere to go
                    pipe.close()


def _ending(code: int | None) -> str:
    return f"signal {-code}" if code is not None and code < 0 else f"code {code}"
