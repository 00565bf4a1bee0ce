"""Traces of runs and compilations as JSON for Perfetto and chrome://tracing.

Source: Trace Event Format; complete events ("X") in microseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from passkit.passes.timing import Timing
from passkit.runtime.profile import ExecutionProfile, StepTime

RUNS, COMPILING = 1, 2
"""The process ids in the trace: of the runs, and of the compilation before them."""
CATEGORIES = {"launch": "kernel", "library": "library", "python": "NumPy", "copy": "copy"}
"""The category of an event by the first word of its step."""


def trace(profile: ExecutionProfile, passes: Timing | None = None) -> dict[str, Any]:
    """Return the runs of a profile as a trace, a dict that JSON can hold.

    Each step except aliases is inside its run, on the calling thread, which waits for the others,
    with its bytes and its number of threads. The share of each thread in a step is on the thread's
    own row, with the range of tiles ("first" to before "last") that it ran. The transfers of a
    device have no time span and no event.

    Args:
        profile: A profile of an executable.
        passes: The times of the compilation, which become a process of their own; None for none.
    """
    events = [*_process_names(RUNS, "calls", "the calling thread")]
    for thread in sorted({s.thread for s in profile.shares} - {0}):
        events.append(_metadata(RUNS, "thread_name", f"worker {thread}", thread + 1))
    start = profile.spans[0][0][0] if profile.spans and profile.spans[0] else 0
    for number, spans in enumerate(profile.spans):
        if spans:
            events += _run_events(number, profile.rows, spans, start)
    events += _share_events(profile, start)
    if passes is not None:
        events += [
            *_process_names(COMPILING, "compilation", "passes"),
            *_pass_events(passes),
        ]
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def _process_names(pid: int, process: str, thread: str) -> Iterator[dict[str, Any]]:
    """Yield the events that name a process and its first thread.

    ``pid`` is the process id in the trace, ``process`` and ``thread`` are the names to show.
    """
    for kind, name in (("process_name", process), ("thread_name", thread)):
        yield _metadata(pid, kind, name, 1)


def _metadata(pid: int, kind: str, name: str, tid: int) -> dict[str, Any]:
    """Return the event that names a process or a thread.

    Args:
        pid: the process id in the trace.
        kind: "process_name" or "thread_name".
        name: the name to show.
        tid: the thread id in the trace.
    """
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}


def _event(
    name: str, cat: str, pid: int, ts: float, dur: float, tid: int = 1, **args: Any
) -> dict[str, Any]:
    """Return a complete event; ``ts``, its start, and ``dur`` are in microseconds.

    ``cat`` is its category, ``pid`` and ``tid`` are process and thread in the trace, and ``args``
    are shown with it.
    """
    return {
        "ph": "X",
        "name": name,
        "cat": cat,
        "pid": pid,
        "tid": tid,
        "ts": ts,
        "dur": dur,
        "args": args,
    }


def _run_events(
    number: int, rows: tuple[StepTime, ...], spans: tuple[tuple[int, int], ...], start: int
) -> Iterator[dict[str, Any]]:
    """Yield the event of run ``number`` and those of its steps, except aliases.

    Args:
        number: the number of the run.
        rows: the steps; rows after the last span, such as a device's transfers, are left out.
        spans: begin and duration of each step in this run, in nanoseconds; at least one.
        start: the time that is 0 in the trace, in nanoseconds.
    """
    begin, end = spans[0][0], sum(spans[-1])
    yield _event(f"run {number}", "run", RUNS, (begin - start) / 1e3, (end - begin) / 1e3)
    for row, (at, duration) in zip(rows, spans, strict=False):
        kind, _, name = row.step.partition(" ")
        if kind == "alias":
            continue
        args: dict[str, Any] = {"node": row.node, "bytes": row.nbytes, "threads": row.threads}
        if duration:
            args["GB/s"] = round(row.nbytes / duration, 3)
        yield _event(name, CATEGORIES[kind], RUNS, (at - start) / 1e3, duration / 1e3, **args)


def _share_events(profile: ExecutionProfile, start: int) -> Iterator[dict[str, Any]]:
    """Yield the events of the threads' shares in steps of ``profile``.

    Thread 0 is the calling thread. ``start`` is the time that is 0 in the trace, in nanoseconds.
    """
    for s in profile.shares:
        name = profile.rows[s.step].step.partition(" ")[2]
        at, duration = (s.begin - start) / 1e3, s.nanoseconds / 1e3
        first, last = s.tiles
        yield _event(name, "share", RUNS, at, duration, s.thread + 1, first=first, last=last)


def _pass_events(root: Timing) -> Iterator[dict[str, Any]]:
    """Yield an event for each pass below ``root``, relative to the start of the first.

    Nothing where no pass ran.
    """
    first = min((t.start for t in root.children), default=0.0)
    pending = list(root.children)
    while pending:
        timing = pending.pop()
        begin, duration = (timing.start - first) * 1e6, timing.seconds * 1e6
        yield _event(timing.name, "pass", COMPILING, begin, duration)
        pending += timing.children
