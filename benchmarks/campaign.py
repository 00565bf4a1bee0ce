"""Campaigns: processes that check random cases, so that a crash costs one of them and is told."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

Report = dict[str, Any]


def reports(commands: Iterable[list[str]], jobs: int) -> Iterator[Report]:
    """What the commands print as JSON, a line each; so many run at a time.

    A report that has "start" names what is begun. Of a process that crashed there is one more, with
    its exit status as "crashed" and what it had begun as "start".
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
                for report in _listen(subprocess.Popen(command, stdout=subprocess.PIPE, text=True)):
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


def _listen(process: subprocess.Popen[str]) -> Iterator[Report]:
    assert process.stdout is not None
    start = None
    for line in process.stdout:
        if not line.startswith("{"):  # LAPACK tells what it was asked for in vain
            continue
        report: Report = json.loads(line)
        start = report.get("start", start)
        if report.keys() != {"start"}:
            yield report
    if process.wait() != 0:
        yield {"crashed": process.returncode, "start": start}
