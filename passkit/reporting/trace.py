"""Traces: what a program did when, in the form that Perfetto and chrome://tracing open.

Source: Trace Event Format; complete events ("X") in microseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from passkit.passes.timing import Timing
from passkit.runtime.profile import ExecutionProfile, StepTime

RUNS, COMPILING = 1, 2
"""The rows of a trace that are called processes: the calls, and the compilation before them."""
KINDS = {"launch": "kernel", "library": "library", "python": "NumPy", "copy": "copy"}


def trace(profile: ExecutionProfile, passes: Timing | None = None) -> dict[str, Any]:
    """The runs of a profile as JSON; ``passes`` is the `Timing` of the compilation.

    Steps stand in the run that called them, each with its bytes and with how many threads shared
    its work, on the thread that called, which waits for the others. What each thread did of a step
    stands in its own row: tiles of a kernel, from the first to before the last.
    """
    events = [*_names(RUNS, "calls", "the calling thread")]
    for thread in sorted({s.thread for s in profile.shares} - {0}):
        events.append(_name(RUNS, "thread_name", f"worker {thread}", thread + 1))
    start = profile.spans[0][0][0] if profile.spans and profile.spans[0] else 0
    for number, spans in enumerate(profile.spans):
        if spans:
            events += _run(number, profile.rows, spans, start)
    events += _shares(profile, start)
    if passes is not None:
        events += [*_names(COMPILING, "compilation", "passes"), *_passes(passes)]
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def _names(pid: int, process: str, thread: str) -> Iterator[dict[str, Any]]:
    for kind, name in (("process_name", process), ("thread_name", thread)):
        yield _name(pid, kind, name, 1)


def _name(pid: int, kind: str, name: str, tid: int) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}


def _event(
    name: str, cat: str, pid: int, ts: float, dur: float, tid: int = 1, **args: Any
) -> dict[str, Any]:
    return {
        "ph": "X", "name": name, "cat": cat, "pid": pid, "tid": tid, "ts": ts, "dur": dur,
        "args": args,
    }  # fmt: skip


def _run(
    number: int, rows: tuple[StepTime, ...], spans: tuple[tuple[int, int], ...], start: int
) -> Iterator[dict[str, Any]]:
    begin, end = spans[0][0], sum(spans[-1])
    yield _event(f"run {number}", "run", RUNS, (begin - start) / 1e3, (end - begin) / 1e3)
    for row, (at, took) in zip(rows, spans, strict=True):
        kind, _, name = row.step.partition(" ")
        if kind == "alias":
            continue
        args: dict[str, Any] = {"node": row.node, "bytes": row.nbytes, "threads": row.threads}
        if took:
            args["GB/s"] = round(row.nbytes / took, 3)
        yield _event(name, KINDS[kind], RUNS, (at - start) / 1e3, took / 1e3, **args)


def _shares(profile: ExecutionProfile, start: int) -> Iterator[dict[str, Any]]:
    """What threads did of the steps; thread 0 is the one that called."""
    for s in profile.shares:
        name = profile.rows[s.row].step.partition(" ")[2]
        at, took = (s.begin - start) / 1e3, s.nanoseconds / 1e3
        first, last = s.tiles
        yield _event(name, "share", RUNS, at, took, s.thread + 1, first=first, last=last)


def _passes(root: Timing) -> Iterator[dict[str, Any]]:
    first = min((t.start for t in root.children), default=0.0)
    todo = list(root.children)
    while todo:
        each = todo.pop()
        yield _event(each.name, "pass", COMPILING, (each.start - first) * 1e6, each.seconds * 1e6)
        todo += each.children
