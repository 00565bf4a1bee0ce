"""Campaigns: processes that check random cases, so that a crash costs one of them and is told."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator
from queue import SimpleQueue
from signal import SIGABRT
from threading import Lock, Thread, Timer
from typing import Any

Report = dict[str, Any]
PATIENCE = 900.0
"""Seconds for which a process may say nothing."""


def reports(
    commands: Iterable[list[str]], jobs: int, patience: float = PATIENCE
) -> Iterator[Report]:
    """What the commands print as JSON, a line each; so many run at a time.

    A report that has "start" names what is begun. Of a process that crashed there is one more, with
    its exit status as "crashed" and what it had begun as "start". One that says nothing for so many
    seconds is aborted: with `python -X faulthandler` it shows where it was.
    """
    waiting, taking = iter(commands), Lock()
    found: SimpleQueue[Report | BaseException | None] = SimpleQueue()

    def work() -> None:
        try:
            while True:
                with taking:
                    command = next(waiting, None)
                if command is None:
                    break
                for report in _listen(command, patience):
                    found.put(report)
            found.put(None)
        except BaseException as error:
            found.put(error)

    for _ in range(jobs):
        Thread(target=work, daemon=True).start()
    left = jobs
    while left:
        report = found.get()
        if isinstance(report, BaseException):
            raise report
        if report is None:
            left -= 1
        else:
            yield report


def _listen(command: list[str], patience: float) -> Iterator[Report]:
    start = None
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in _lines(process, patience):
            if not line.startswith("{"):  # LAPACK tells what it was asked for in vain
                continue
            report: Report = json.loads(line)
            start = report.get("start", start)
            if report.keys() != {"start"}:
                yield report
    if process.returncode != 0:
        yield {"crashed": process.returncode, "start": start}


def _lines(process: subprocess.Popen[str], patience: float) -> Iterator[str]:
    """What a process prints, as long as it does."""
    assert process.stdout is not None
    while True:
        alarm = Timer(patience, process.send_signal, [SIGABRT])
        alarm.daemon = True  # who stops waiting for reports need not wait for it
        alarm.start()
        line = process.stdout.readline()
        alarm.cancel()
        if not line:
            return
        yield line
