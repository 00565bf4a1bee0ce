"""Tables of executions of streams: one row for each run, or for each plan and line of code."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence

from attrs import define, field

from passkit.streams.inspection import HostOperation, StreamRun
from passkit.values.arguments import shortened
from passkit.values.units import bytes_text, seconds_text, table

MAX_OPERATIONS_TEXT = 60
"""Letters of a list of operations, beyond which it ends with the number of others."""
MAX_ROWS = 40
"""Rows of a table of runs, beyond which those in the middle are left out."""
RUN_HEADER = (
    "run",
    "time",
    "reason",
    "line",
    "operations",
    "plan",
    "how",
    "kernels",
    "read",
    "written",
    "in place",
    "pending",
)


def line_text(line: str) -> str:
    """Return ``line``, "file:line", with the path relative to the working folder if it is inside.

    Otherwise it is returned as it is.
    """
    folder = os.getcwd() + os.sep
    return line.removeprefix(folder) if line.startswith(folder) else line


def operations_text(run: StreamRun, most: int = MAX_OPERATIONS_TEXT) -> str:
    """Return the names of the operations that ran, equal neighbours once with their number.

    Names beyond ``most`` letters are left out, and the text ends with their number; the first one
    always stays. It is "none" if nothing ran.
    """
    names: list[list[object]] = []
    for k in run.computed:
        name = run.operations[k]
        if names and names[-1][0] == name:
            names[-1][1] = int(str(names[-1][1])) + 1
        else:
            names.append([name, 1])
    texts = [f"{name} ×{n}" if n != 1 else str(name) for name, n in names]
    text = ""
    for k, part in enumerate(texts):
        longer = f"{text}, {part}" if text else part
        if len(longer) > most and text:
            return f"{text} and {len(texts) - k} more"
        text = longer
    return text or "none"


def table_of_runs(runs: Sequence[StreamRun], most: int = MAX_ROWS) -> str:
    """Return a table as text, with a row for each run; of more than ``most``, the first and last.

    It is "nothing ran" for no runs.
    """
    if not runs:
        return "nothing ran"
    num_left_out = max(0, len(runs) - most)
    head = len(runs) if not num_left_out else most - most // 4
    rows = [_run_cells(run) for run in runs[:head]]
    if num_left_out:
        rows.append([f"… {num_left_out:,} more"] + [""] * (len(RUN_HEADER) - 1))
        rows += [_run_cells(run) for run in runs[head + num_left_out :]]
    return table(RUN_HEADER, rows)


def _run_cells(run: StreamRun) -> list[str]:
    """Return the texts of a run in `table_of_runs`, in the order of RUN_HEADER."""
    return [
        str(run.number),
        seconds_text(run.seconds),
        run.reason,
        line_text(run.line),
        operations_text(run),
        run.plan,
        run.path,
        str(run.launches),
        bytes_text(run.bytes_read),
        bytes_text(run.bytes_written),
        str(run.aliases),
        str(len(run.pending)),
    ]


def report(run: StreamRun) -> str:
    """Return all that is known about a run, as several lines of text."""
    lines = [
        f"run {run.number}: {run.reason} at {line_text(run.line)}",
        f"  took      {seconds_text(run.seconds)} in {run.thread}, stream {run.stream}",
    ]
    if run.plan:
        lines.append(f"  plan      {run.plan}, {run.path}")
    if run.why_unfused:
        lines.append(f"  unfused   {run.why_unfused}")
    bytes_moved = f"{bytes_text(run.bytes_read)}, wrote {bytes_text(run.bytes_written)}"
    lines.append(f"  read      {bytes_moved}")
    positions = set(run.computed)
    for kind, name, group in run.groups:
        names = ", ".join(f"{k} {run.call(k)}" for k in group) or "parts of operations"
        lines.append(f"  kernel    {name} ({kind}): {names}")
        positions -= set(group)
    if positions and run.groups:
        names = ", ".join(f"{k} {run.call(k)}" for k in sorted(positions))
        lines.append(f"  no kernel {names}: simplified")
    elif positions:
        lines.append("  ran       " + ", ".join(f"{k} {run.call(k)}" for k in sorted(positions)))
    for k in run.written:
        lines.append(f"  written   {k} {run.call(k)}, {run.types[k]}: {run.why_written[k]}")
    for k, index in run.in_place:
        lines.append(f"  in place  {k} {run.call(k)} over input {index}")
    for k in run.pending:
        lines.append(f"  pending   {k} {run.call(k)}, {run.types[k]}: {run.why_pending[k]}")
    used = {*run.computed, *run.pending}
    dropped = [k for k in range(len(run.operations)) if k not in used]
    if dropped:
        names = ", ".join(f"{k} {run.call(k)}" for k in dropped)
        lines.append(f"  dropped   {names}: nothing refers to the results")
    return "\n".join(lines)


def run_row(run: StreamRun) -> dict[str, object]:
    """Return a run as a mapping that JSON can hold, of most attributes by name.

    "written" and "pending" map positions, as texts, to reasons; types, inputs, numbers of values
    and kernels are left out.
    """
    return {
        "run": run.number,
        "seconds": run.seconds,
        "reason": run.reason,
        "line": run.line,
        "operations": list(run.operations),
        "computed": list(run.computed),
        "written": {str(k): why for k, why in run.why_written.items()},
        "pending": {str(k): why for k, why in run.why_pending.items()},
        "plan": run.plan,
        "path": run.path,
        "why_unfused": run.why_unfused,
        "launches": run.launches,
        "bytes_read": run.bytes_read,
        "bytes_written": run.bytes_written,
        "in_place": [list(pair) for pair in run.in_place],
        "stream": run.stream,
        "thread": run.thread,
    }


@define
class RunTotals:
    """The totals of several runs.

    Attributes:
        operations: the operations of the last of them, as text.
        runs: their number.
        seconds: how long they took together.
        paths: how often each path was taken.
        launches, bytes_read, bytes_written, aliases: sums over the runs.
        reasons: why they ran, with the lines, and how often.
        why_unfused: why the last one that ran unfused did so.
    """

    operations: str = ""
    runs: int = 0
    seconds: float = 0.0
    paths: Counter[str] = field(factory=Counter)
    launches: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    aliases: int = 0
    reasons: Counter[tuple[str, str]] = field(factory=Counter)
    why_unfused: str = ""

    def add(self, run: StreamRun) -> None:
        """Add a run to the totals, in place."""
        self.operations = operations_text(run)
        self.runs += 1
        self.seconds += run.seconds
        self.paths[run.path] += 1
        self.launches += run.launches
        self.bytes_read += run.bytes_read
        self.bytes_written += run.bytes_written
        self.aliases += run.aliases
        self.reasons[run.reason, run.line] += 1
        self.why_unfused = run.why_unfused or self.why_unfused


@define
class HostTotals:
    """The totals of an operation that one line of code ran in NumPy.

    Attributes:
        count: how often it ran.
        seconds: how long that took together.
    """

    count: int = 0
    seconds: float = 0.0


class RunSummary:
    """Totals of runs by plan and by line of code; its size does not grow with equal runs.

    Attributes:
        by_plan: totals by the name of the plan.
        by_line: totals by line and reason.
        by_host_operation: totals of operations in NumPy by operation and line.
    """

    def __init__(
        self, runs: Iterable[StreamRun] = (), host_operations: Iterable[HostOperation] = ()
    ) -> None:
        self.by_plan: dict[str, RunTotals] = {}
        self.by_line: dict[tuple[str, str], RunTotals] = {}
        self.by_host_operation: dict[tuple[str, str], HostTotals] = {}
        for run in runs:
            self.add(run)
        for operation in host_operations:
            self.add_host_operation(operation)

    def add(self, run: StreamRun) -> None:
        """Add a run to the totals of its plan and of its line, in place."""
        self.by_plan.setdefault(run.plan, RunTotals()).add(run)
        self.by_line.setdefault((run.line, run.reason), RunTotals()).add(run)

    def add_host_operation(self, operation: HostOperation) -> None:
        """Add an operation that ran in NumPy to the totals of it and its line, in place."""
        key = operation.operation, operation.line
        totals = self.by_host_operation.setdefault(key, HostTotals())
        totals.count += 1
        totals.seconds += operation.seconds

    def __str__(self) -> str:
        parts = []
        if self.by_plan:
            parts += ["Plans, those that took longest first", self._plan_table()]
            parts += ["Lines that made something run", self._line_table()]
        if self.by_host_operation:
            parts += ["Operations without a kernel, in NumPy", self._host_table()]
        titled = [f"{title}\n{text}" for title, text in zip(parts[::2], parts[1::2], strict=True)]
        reasons = {t.why_unfused: name for name, t in self.by_plan.items() if t.why_unfused}
        titled += [f"Unfused: {why}" for why in reasons]
        return "\n\n".join(titled) or "nothing ran"

    def _plan_table(self) -> str:
        """Return the table of plans as text; those that took longest are first."""
        header = (
            "plan",
            "runs",
            "time",
            "explored",
            "disk",
            "cached",
            "unfused",
            "kernels",
            "read",
            "written",
            "in place",
            "operations",
        )
        rows = [
            [
                name or "none",
                str(t.runs),
                seconds_text(t.seconds),
                *(str(t.paths[path]) for path in ("explored", "disk", "cached", "unfused")),
                str(t.launches),
                bytes_text(t.bytes_read),
                bytes_text(t.bytes_written),
                str(t.aliases),
                t.operations,
            ]
            for name, t in sorted(self.by_plan.items(), key=lambda item: -item[1].seconds)
        ]
        return table(header, rows)

    def _line_table(self) -> str:
        """Return the table of lines that made something run as text, the longest time first."""
        header = ("line", "reason", "runs", "time", "plans", "new", "written")
        plans: dict[tuple[str, str], set[str]] = {}
        for name, totals in self.by_plan.items():
            for reason, line in totals.reasons:
                plans.setdefault((line, reason), set()).add(name)
        rows = [
            [
                line_text(line),
                reason,
                str(t.runs),
                seconds_text(t.seconds),
                str(len(plans[line, reason])),
                str(t.paths["explored"]),
                bytes_text(t.bytes_written),
            ]
            for (line, reason), t in sorted(self.by_line.items(), key=lambda i: -i[1].seconds)
        ]
        return table(header, rows)

    def _host_table(self) -> str:
        """Return the table of operations that ran in NumPy as text, the longest time first."""
        items = sorted(self.by_host_operation.items(), key=lambda item: -item[1].seconds)
        rows = [
            [shortened(operation, 60), line_text(line), str(t.count), seconds_text(t.seconds)]
            for (operation, line), t in items
        ]
        return table(("operation", "line", "count", "time"), rows)

    def rows(self) -> dict[str, object]:
        """Return the totals as lists of mappings that JSON can hold.

        Their keys are "plans", "lines" and "host_operations".
        """
        return {
            "plans": [{"plan": name, **_totals_row(t)} for name, t in self.by_plan.items()],
            "lines": [
                {"line": line, "reason": reason, **_totals_row(t)}
                for (line, reason), t in self.by_line.items()
            ],
            "host_operations": [
                {"operation": operation, "line": line, "count": t.count, "seconds": t.seconds}
                for (operation, line), t in self.by_host_operation.items()
            ],
        }


def _totals_row(totals: RunTotals) -> dict[str, object]:
    """Return totals as a mapping that JSON can hold, by name; reasons are left out.

    ``aliases`` is called "in_place".
    """
    return {
        "runs": totals.runs,
        "seconds": totals.seconds,
        "paths": dict(totals.paths),
        "launches": totals.launches,
        "bytes_read": totals.bytes_read,
        "bytes_written": totals.bytes_written,
        "in_place": totals.aliases,
        "operations": totals.operations,
        "why_unfused": totals.why_unfused,
    }


def summary(runs: Iterable[StreamRun], host_operations: Iterable[HostOperation]) -> str:
    """Return tables of plans, of lines that made something run, and of operations in NumPy.

    Each table has a title; empty ones are left out, and without any the text is "nothing ran".
    """
    return str(RunSummary(runs, host_operations))
