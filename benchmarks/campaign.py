"""Campaigns: processes that check random cases, so that a crash costs one of them and is told."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator
from typing import Any

Report = dict[str, Any]


def reports(commands: Iterable[list[str]], jobs: int) -> Iterator[Report]:
    """What the commands print as JSON, a line each; so many run at a time.

    A report that has "start" names what is begun. Of a process that crashed there is one more, with
    its exit status as "crashed" and what it had begun as "start".
    """
    waiting, running = iter(commands), list[subprocess.Popen[str]]()
    while True:
        while len(running) < jobs and (command := next(waiting, None)) is not None:
            running.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        if not running:
            return
        yield from _listen(running.pop(0))


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
