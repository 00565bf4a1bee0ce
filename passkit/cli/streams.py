"""``passkit streams``: run a program that uses `passkit.xp`, and print what ran when, and why."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from pathlib import Path

from passkit.cli.command_result import CommandResult
from passkit.errors import SettingError
from passkit.frontends import xp
from passkit.frontends.xp import runtime
from passkit.streams.inspection import HostOperation, RunLog, StreamRun
from passkit.streams.run_tables import RunSummary, report, run_row, table_of_runs
from passkit.viz.renderers import picture_format, render_with_note

MAX_RUNS = 200
"""The number of first runs that are kept for the table and the picture."""


class _BoundedLog(RunLog):
    """Keeps the first runs, and totals of all, so that a long program takes no more memory.

    Args:
        most: The number of first runs that are kept.

    Attributes:
        totals: the totals of all runs.
        num_runs: their number.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self.totals = RunSummary()
        self.num_runs = 0
        self._most = most
        self.host_operations = _HostTotals(self.totals)

    def append(self, run: StreamRun) -> None:
        """Count a run, and keep it if it is one of the first."""
        self.totals.add(run)
        self.num_runs += 1
        if len(self) < self._most:
            super().append(run)


class _HostTotals(list[HostOperation]):
    """Counts operations in NumPy in ``totals``, and keeps none of them."""

    def __init__(self, totals: RunSummary) -> None:
        super().__init__()
        self._totals = totals

    def append(self, operation: HostOperation) -> None:
        """Count an operation."""
        self._totals.add_host_operation(operation)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``passkit streams``: the program with its arguments, and the views."""
    parser.add_argument(
        "--runs",
        type=int,
        default=30,
        metavar="N",
        help="print at most N runs; 0 prints the totals alone",
    )
    parser.add_argument(
        "--report",
        type=int,
        action="append",
        default=[],
        metavar="RUN",
        help="print all that is known about a run, by its number in the table; can be repeated",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help=f"draw the first {MAX_RUNS} runs: .svg, .png, .pdf or .dot",
    )
    parser.add_argument("script", metavar="SCRIPT", help="the program, a Python file")
    parser.add_argument(
        "arguments", nargs=argparse.REMAINDER, metavar="…", help="arguments of the program"
    )
    parser.set_defaults(check=_check)


def _check(options: argparse.Namespace) -> None:
    """Raise a SettingError if an option cannot be honoured, before the program runs.

    That is a negative ``--runs``, a program that is no file, or a picture of no known format.
    """
    if options.runs < 0:
        raise SettingError(f"--runs must be at least 0, got {options.runs}")
    if not os.path.isfile(options.script):
        raise SettingError(f"there is no program '{options.script}'; give the path of a file")
    if options.output is not None:
        picture_format(options.output)


def run(options: argparse.Namespace) -> CommandResult:
    """Run the program, and return its runs as tables; the picture is written to a file.

    The program's output goes to standard output, with ``--json`` to standard error. If it fails or
    is interrupted by Ctrl-C, standard error says so, and the tables show what ran before; the exit
    code is 1.

    Raises: SettingError if ``--report`` names no run that was kept, or the renderer of the picture
    fails or takes too long; MissingDependencyError if there is none for its format; OSError if its
    file cannot be written.
    """
    log = _BoundedLog(MAX_RUNS)
    with _inspecting(log), redirect_stdout(sys.stderr) if options.json else nullcontext():
        code = _run_program(options.script, options.arguments)
    texts = []
    if options.runs and log:
        num_hidden = log.num_runs - len(log)
        hidden = f"\n… and {num_hidden:,} later runs" if num_hidden else ""
        texts.append(table_of_runs(log, options.runs) + hidden)
    by_number = {each.number: each for each in log}
    for number in options.report:
        if number not in by_number:
            raise SettingError(
                f"--report {number}: there is no such run among the first {len(log)}"
            )
        texts.append(report(by_number[number]))
    texts.append(str(log.totals))
    data: dict[str, object] = {
        "num_runs": log.num_runs,
        "runs": [run_row(each) for each in log],
        **log.totals.rows(),
    }
    if options.output is not None:
        path, note = render_with_note(xp.picture(log), options.output)
        data["drawing"] = str(path)
        texts.append(f"runs drawn to {path}" + (f", laid out simply: {note}" if note else ""))
    return CommandResult(data, "\n\n".join(texts), code)


@contextmanager
def _inspecting(log: RunLog) -> Iterator[None]:
    """Append every execution inside the block to a log."""
    inspectors = runtime.STORE.inspectors
    inspectors.append(log)
    try:
        yield
    finally:
        inspectors[:] = [each for each in inspectors if each is not log]


def _run_program(script: str, arguments: list[str]) -> int:
    """Run a Python file as ``python script arguments`` would; return the exit code, 0 or 1.

    Its traceback is printed if it fails. ``sys.argv`` and ``sys.path`` are restored.
    """
    argv, path = sys.argv[:], sys.path[:]
    sys.argv = [script, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    try:
        runpy.run_path(script, run_name="__main__")
        return 0
    except SystemExit as error:
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
        return int(error.code not in (None, 0))
    except KeyboardInterrupt:
        print("interrupted; this ran before:", file=sys.stderr)
        return 1
    except Exception as error:
        # Without the frames of this command and of runpy.
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename != script:
            trace = trace.tb_next
        traceback.print_exception(error.with_traceback(trace or error.__traceback__))
        return 1
    finally:
        sys.argv, sys.path[:] = argv, path
