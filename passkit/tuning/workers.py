"""Workers: an Executor of processes that may crash or hang without affecting other calls.

`ProcessPoolExecutor` breaks if one process ends, without information which call caused that. Here
only the call that the process was running fails, and the next one gets a new process.
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
    """A call in a worker process failed."""


class DeadError(WorkerError):
    """A worker process ended before it had answered."""


class HungError(WorkerError):
    """A worker process exceeded its time limit."""


class Workers(Executor):
    """An executor of ``count`` processes, which start with their first call.

    Functions must be defined in modules; arguments and results must be JSON values. Futures raise
    HungError if the call exceeded its limit, DeadError if the process ended, with its signal or
    code, and WorkerError if the function raised, with its error.

    Args:
        count: The number of processes.
        limit: The most seconds of a call; None for no limit. A call that takes longer is ended
            together with its process.
    """

    def __init__(self, count: int = 1, limit: float | None = None) -> None:
        """Prepare threads that serve ``count`` processes; no process starts before its first call.

        ``limit`` is the most seconds of a call; None for no limit. Raises: ValueError for a count
        below 1.
        """
        self.limit = limit
        self._threads = ThreadPoolExecutor(count, "passkit-worker")
        self._local = threading.local()
        self._processes: set[_Process] = set()

    @property
    def pids(self) -> list[int]:
        """The process ids of the worker processes that run now."""
        return [p.pid for p in [*self._processes] if p.is_running]

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Call a function in a worker process, and return the future of its result.

        The future raises a HungError, DeadError or WorkerError where the call fails; DeadError,
        too, if the result is not a JSON value. Tuples in the result become lists.

        Raises:
            TypeError: If there are keyword arguments, which are not sent, or json cannot write an
                argument.
            RuntimeError: After `shutdown`.
        """
        if kwargs:
            raise TypeError(f"Workers send arguments by position, got {', '.join(kwargs)}")
        task = {"function": f"{fn.__module__}:{fn.__qualname__}", "arguments": args}
        return self._threads.submit(self._call, json.dumps(task))

    def _call(self, task: str) -> Any:
        """Return the result of a call, a JSON text, in this thread's process.

        A process that has ended is replaced by a new one.

        Raises:
            WorkerError: If the function raised.
            DeadError: If the process ended.
            HungError: If the call exceeded the limit.
        """
        process: _Process | None = getattr(self._local, "process", None)
        if process is None or not process.is_running:
            process = self._local.process = _Process()
            self._processes.add(process)
        try:
            answer = process.ask(task, self.limit)
        except (DeadError, HungError):
            self._processes.discard(process)
            raise
        if "error" in answer:
            raise WorkerError(f"a worker process raised {answer['error']}")
        return answer["value"]

    def renew(self) -> None:
        """End all processes at once, so that the next calls start new ones.

        No call may be running: its future would raise a DeadError.
        """
        for process in [*self._processes]:
            process.end()
        self._processes.clear()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes: after their calls with ``wait``, else at once.

        ``cancel_futures`` cancels calls that have not begun.
        """
        if not wait:
            for process in [*self._processes]:
                process.end()
        self._threads.shutdown(wait, cancel_futures=cancel_futures)
        for process in [*self._processes]:
            process.end()


class _Process:
    """A worker process and the pipe to it."""

    def __init__(self) -> None:
        """Start the process, which waits for calls."""
        # sys.path is copied, so that modules of a checkout that is not installed are found.
        text = f"import sys; sys.path[:] = {sys.path!r}; from {worker.__name__} import main; main()"
        self._popen = subprocess.Popen(
            [sys.executable, "-c", text],
            text=True,
            encoding="utf-8",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    @property
    def pid(self) -> int:
        """The process id."""
        return self._popen.pid

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return self._popen.poll() is None

    def ask(self, task: str, limit: float | None) -> Any:
        """Send ``task``, a call as a line of JSON; return the answer.

        It is a dict with "value" or "error". ``limit`` is the most seconds to wait for it; None for
        no limit.

        Raises:
            HungError: If there is no answer within the limit; the process is ended.
            DeadError: If the process ends.
        """
        timed_out = threading.Event()

        def end() -> None:
            """Record that the time is up, and kill the process."""
            timed_out.set()
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
        if timed_out.is_set():
            raise HungError(f"a worker process gave no answer within {limit:g} s and was ended")
        raise DeadError(f"a worker process ended with {_ending(self._popen.returncode)}")

    def end(self) -> None:
        """End the process at once, and close the pipes."""
        self._popen.kill()
        self._popen.wait()
        for pipe in (self._popen.stdin, self._popen.stdout):
            if pipe is not None:
                with suppress(OSError):  # there may be unsent data
                    pipe.close()


def _ending(code: int | None) -> str:
    """Return "signal N" for the return code -N of a process, else "code N"; N may be None."""
    return f"signal {-code}" if code is not None and code < 0 else f"code {code}"
