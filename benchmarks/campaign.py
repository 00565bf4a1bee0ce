"""Worker processes that check random cases, so that a crash costs one case and is reported."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterable, Iterator
from queue import SimpleQueue
from signal import SIGABRT
from threading import Lock, Thread, Timer
from typing import Any

WorkerReport = dict[str, Any]
PATIENCE = 900.0
"""Seconds after which a silent process is aborted."""


def reports(
    commands: Iterable[list[str]], jobs: int, patience: float = PATIENCE
) -> Iterator[WorkerReport]:
    """Run commands, ``jobs`` at a time, and yield what they print as JSON, one report a line.

    A report ``{"start": …}`` names the case that a process begins; it is not yielded.

    Args:
        commands: command lines, taken from the iterator only as processes end.
        jobs: number of processes at a time.
        patience: seconds after which a silent process is aborted. With `python -X faulthandler` it
            then prints its stack.

    Yields:
        Reports as dictionaries. A process that ends with a status other than 0 adds one with its
        status, or how long it was silent, as ``"crashed"`` and its last case as ``"start"``.

    Raises:
        OSError: a command cannot be started.
    """
    waiting, lock = iter(commands), Lock()
    queue: SimpleQueue[WorkerReport | BaseException | None] = SimpleQueue()

    def work() -> None:
        """Run commands until none is left; put reports, then None or the exception."""
        try:
            while True:
                with lock:
                    command = next(waiting, None)
                if command is None:
                    break
                for report in _listen(command, patience):
                    queue.put(report)
            queue.put(None)
        except BaseException as error:
            queue.put(error)

    for _ in range(jobs):
        Thread(target=work, daemon=True).start()
    running = jobs
    while running:
        report = queue.get()
        if isinstance(report, BaseException):
            raise report
        if report is None:
            running -= 1
        else:
            yield report


def _listen(command: list[str], patience: float) -> Iterator[WorkerReport]:
    """Yield the reports of one process."""
    start, heard = None, time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in _lines(process, patience):
            heard = time.monotonic()
            if not line.startswith("{"):  # LAPACK prints errors to standard output
                continue
            report: WorkerReport = json.loads(line)
            start = report.get("start", start)
            if report.keys() != {"start"}:
                yield report
    if process.returncode != 0:
        is_silent = process.returncode == -SIGABRT and time.monotonic() - heard >= patience
        status = f"{patience:.0f} s of silence" if is_silent else process.returncode
        yield {"crashed": status, "start": start}


def _lines(process: subprocess.Popen[str], patience: float) -> Iterator[str]:
    """Yield the lines that a process prints; abort it after ``patience`` silent seconds."""
    assert process.stdout is not None
    while True:
        alarm = Timer(patience, process.send_signal, [SIGABRT])
        alarm.daemon = True  # a caller that stops early need not wait for it
        alarm.start()
        line = process.stdout.readline()
        alarm.cancel()
        if not line:
            return
        yield line
