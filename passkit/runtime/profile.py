"""Profiles: the time, traffic and thread shares of each step of a program."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from time import perf_counter_ns
from typing import Any

import numpy as np
from attrs import frozen

from passkit.runtime.native.launcher import launcher, num_threads
from passkit.runtime.program import AliasStep, LibraryCall, ProgramStep, RuntimeProgram
from passkit.values.dtype import DType
from passkit.values.lazy import Lazy
from passkit.values.size import evaluate
from passkit.values.units import bytes_text, seconds_text, table

notebook: Any = Lazy("passkit.reporting.notebook")
"""The renderer for notebooks; it belongs to a higher layer and is imported only when one asks."""

MAX_SHARES = 100_000
"""Entries of the share log of a profile, over all runs."""

TimeSpan = tuple[int, int]
"""Start and duration of a step, in nanoseconds of `perf_counter_ns`."""


@frozen
class ThreadShare:
    """A range of a kernel's tiles that one thread ran without interruption.

    Attributes:
        thread: the number of the thread in the team; 0 is the calling thread.
        begin: the start, in nanoseconds of `perf_counter_ns`.
        nanoseconds: the duration.
        tiles: the first tile and one past the last tile.
        run: the index of the run.
        step: the index of the step in the program.
    """

    thread: int
    begin: int
    nanoseconds: int
    tiles: tuple[int, int]
    run: int
    step: int


@frozen
class StepTime:
    """The measured time and traffic of one step.

    Attributes:
        step: the step as text.
        seconds: the median duration over all runs.
        nbytes: bytes read and written.
        node: the name of the step's node in the planned graph; "" for copies to outputs.
        threads: the number of threads that share the work.
        copying: seconds that this machine needs to copy ``nbytes``; 0 where not measured.
        flops: floating-point multiplications and additions of a library call, 0 for others.
    """

    step: str
    seconds: float
    nbytes: int
    node: str = ""
    threads: int = 1
    copying: float = 0.0
    flops: int = 0

    @property
    def rate(self) -> float:
        """The bytes per second that the step reads and writes; 0 where it took no time."""
        return self.nbytes / self.seconds if self.seconds else 0.0

    @property
    def of_copy(self) -> float | None:
        """The fraction of a copy's bandwidth that the step reaches.

        None where the time of a copy was not measured, or the step took no time.
        """
        return self.copying / self.seconds if self.seconds and self.copying else None


@frozen
class KernelTime:
    """The total time and traffic of the steps that run the same kernel or library call.

    Attributes:
        label: the text that the steps have in common.
        calls: the number of steps.
        seconds: the sum of their median durations.
        nbytes: the sum of bytes read and written.
        copying: seconds that this machine needs to copy ``nbytes``; 0 where not measured.
        flops: the sum of floating-point operations of library calls.
    """

    label: str
    calls: int
    seconds: float
    nbytes: int
    copying: float
    flops: int

    @classmethod
    def total(cls, label: str, steps: Sequence[StepTime]) -> KernelTime:
        """Return the sums over ``steps``, which run the kernel or library call of this label."""
        return cls(
            label=label,
            calls=len(steps),
            seconds=sum(s.seconds for s in steps),
            nbytes=sum(s.nbytes for s in steps),
            copying=sum(s.copying for s in steps),
            flops=sum(s.flops for s in steps),
        )

    @property
    def of_copy(self) -> float | None:
        """The fraction of a copy's bandwidth that is reached.

        None where the time of a copy was not measured, or the steps took no time.
        """
        return self.copying / self.seconds if self.seconds and self.copying else None


@frozen(repr=False)
class ExecutionProfile:
    """The measured times of a program's steps; printed as a table with one line per kernel.

    Attributes:
        rows: one entry for each step, in program order; on a device, a last one for all transfers.
        spans: for each run, the `TimeSpan` of each step; the transfers of a device have none.
        shares: the tile ranges that threads ran of parallel steps; at most `MAX_SHARES`.
    """

    rows: tuple[StepTime, ...]
    spans: tuple[tuple[TimeSpan, ...], ...] = ()
    shares: tuple[ThreadShare, ...] = ()

    @property
    def seconds(self) -> float:
        """The sum of the seconds of all `rows`."""
        return sum(r.seconds for r in self.rows)

    @property
    def by_node(self) -> dict[str, float]:
        """The seconds of each step by the name of its node in the planned graph.

        Copies to outputs, which have no node, are left out.
        """
        return {r.node: r.seconds for r in self.rows if r.node}

    @property
    def lines(self) -> tuple[KernelTime, ...]:
        """The totals of each kernel or library call, in descending order of time.

        Steps with neither time nor traffic are left out.
        """
        steps_by_text: dict[str, list[StepTime]] = {}
        for row in self.rows:
            if row.nbytes or row.seconds:
                steps_by_text.setdefault(row.step, []).append(row)
        totals = [KernelTime.total(text, steps) for text, steps in steps_by_text.items()]
        return tuple(sorted(totals, key=lambda total: -total.seconds))

    def as_dict(self) -> dict[str, object]:
        """Return the profile as nested dicts and lists that JSON can hold.

        "seconds" has the time of all steps, "kernels" a dict for each of `lines`, "steps" one for
        each of `rows`.
        """
        total = self.seconds or 1.0
        return {
            "seconds": self.seconds,
            "kernels": [
                {
                    "what": x.label,
                    "calls": x.calls,
                    "seconds": x.seconds,
                    "share": x.seconds / total,
                    "bytes": x.nbytes,
                    "of_copy": x.of_copy,
                    "flops": x.flops,
                }
                for x in self.lines
            ],
            "steps": [
                {
                    "step": r.step,
                    "node": r.node,
                    "seconds": r.seconds,
                    "bytes": r.nbytes,
                    "flops": r.flops,
                    "threads": r.threads,
                    "of_copy": r.of_copy,
                }
                for r in self.rows
            ],
        }

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Return the MIME types and texts that a notebook displays.

        ``include`` and ``exclude`` belong to IPython's display protocol and have no effect.
        """
        return notebook.profile(self)  # type: ignore[no-any-return]

    def __str__(self) -> str:
        """Return a table with a line for each kernel, most time first, and their sum."""
        total = self.seconds or 1.0
        timed = [r for r in self.rows if r.nbytes or r.seconds]
        header = ("kernel", "calls", "time", "share", "bytes", "GB/s", "of copy speed", "GFLOP/s")
        lines = (*self.lines, KernelTime.total("sum", timed))
        return table(header, [_table_cells(x, total) for x in lines])

    __repr__ = __str__


def _table_cells(x: KernelTime, total: float) -> list[str]:
    """Return the cells of a line of the printed table, in the order of its header.

    ``x`` are the totals of the line, ``total`` is the time of all lines in seconds, not 0. Cells of
    an unknown copy speed, and of operations that are 0, are empty.
    """
    gigabytes = x.nbytes / x.seconds / 1e9 if x.seconds else 0.0
    gigaflops = x.flops / x.seconds / 1e9 if x.seconds else 0.0
    of_copy = "" if x.of_copy is None or not x.nbytes else f"{100 * x.of_copy:.0f} %"
    return [
        x.label,
        str(x.calls),
        seconds_text(x.seconds),
        f"{100 * x.seconds / total:.1f} %",
        bytes_text(x.nbytes),
        f"{gigabytes:.1f}",
        of_copy,
        f"{gigaflops:.1f}" if x.flops else "",
    ]


def unknown_copy_time(nbytes: int) -> float:
    """Return 0, as `profile_program` takes it where the time to copy bytes was not measured.

    The number of bytes has no effect.
    """
    return 0.0


def profile_program(
    program: RuntimeProgram,
    sizes: Mapping[str, int],
    arrays: Sequence[Any],
    runs: int,
    copying: Callable[[int], float] = unknown_copy_time,
) -> ExecutionProfile:
    """Run a program ``runs`` + 1 times with a clock between its steps.

    Every run updates the program's state variables.

    Args:
        program: the program; it is bound anew, so that no kernel is merged into a convolution.
        sizes: the values of its symbolic sizes.
        arrays: the inputs, in order.
        runs: the number of timed runs, after one that is not timed.
        copying: returns the seconds that this machine needs to copy a number of bytes; 0 if that
            was not measured.

    Returns:
        The median time of each step, and the spans and thread shares of all timed runs.

    Raises:
        ShapeError: A symbolic size has no value.
        CompilerError: The launcher cannot be compiled.
        CacheError: The launcher is not loaded yet, and others can write to the cache folder.
        SettingError: The launcher is not loaded yet, and PASSKIT_THREADS is no number of threads.
    """
    spans: list[list[TimeSpan]] = [[] for _ in program.steps]
    threads = [1] * len(program.steps)
    last = 0

    def between(k: int, bound: list[tuple[Any, ...]]) -> Callable[..., None]:
        """Return what records the time of step ``k``; record its threads, by its launcher steps."""
        threads[k] = _num_threads_of(bound)

        def tick(*_: Any) -> None:
            """Record the time span of step ``k``, from the last tick to now."""
            nonlocal last
            now = perf_counter_ns()
            spans[k].append((last, now - last))
            last = perf_counter_ns()

        return tick

    shapes = tuple(a.shape for a in arrays)
    bound = program.table.bind(shapes, sizes, between)
    inputs = [(name, dtype.numpy.num, len(shape)) for name, dtype, shape in program.inputs]
    run = launcher().Program(inputs, len(program.outputs), lambda _: bound)
    run(tuple(arrays))
    for samples in spans:
        samples.clear()
    launcher().note_shares(MAX_SHARES)
    try:
        for _ in range(runs):
            last = perf_counter_ns()
            run(tuple(arrays))
    finally:
        share_log = launcher().note_shares(0)
    rows = [
        step_time(step, samples, sizes, node, copying, num_threads)
        for step, samples, node, num_threads in zip(
            program.steps, spans, program.names, threads, strict=True
        )
    ]
    by_run = tuple(zip(*spans, strict=True))
    return ExecutionProfile(tuple(rows), by_run, tuple(_shares_in_steps(share_log, by_run)))


def step_time(
    step: ProgramStep,
    samples: Sequence[TimeSpan],
    sizes: Mapping[str, int],
    node: str,
    copying: Callable[[int], float],
    threads: int = 1,
) -> StepTime:
    """Return the profile entry of a step; an AliasStep takes 0 seconds and no bytes.

    Args:
        step: the step.
        samples: its time span (start, duration in nanoseconds) in each run; the median counts, 0
            where there are none.
        sizes: the values of symbolic sizes.
        node: the name of its node.
        copying: returns the seconds that the machine needs to copy a number of bytes; not called
            for a step without traffic.
        threads: the number of threads it ran on.

    Raises:
        ShapeError: A symbolic size has no value.
    """
    nbytes = sum(evaluate(r.nbytes, sizes) for r in (*step.reads, *step.writes))
    return StepTime(
        step=str(step),
        seconds=0.0 if isinstance(step, AliasStep) else _median_seconds(samples),
        nbytes=nbytes,
        node=node,
        threads=threads,
        copying=copying(nbytes) if nbytes else 0.0,
        flops=evaluate(step.flops, sizes) if isinstance(step, LibraryCall) else 0,
    )


def _shares_in_steps(
    share_log: Sequence[tuple[int, ...]], spans: Sequence[Sequence[TimeSpan]]
) -> Iterator[ThreadShare]:
    """Yield the logged shares that lie within a timed step; other programs' shares are skipped.

    A share belongs to the last step that began before it, if it ended within that step.

    Args:
        share_log: the launcher's records (thread, start, end, first tile, last tile).
        spans: for each run the time span of each step, in nanoseconds.
    """
    steps = [(m, k) for m, run in enumerate(spans) for k in range(len(run))]
    begins = [spans[m][k][0] for m, k in steps]
    for thread, begin, end, first, last in share_log:
        position = bisect_right(begins, begin) - 1
        if position >= 0:
            run, step = steps[position]
            if end <= sum(spans[run][step]):
                yield ThreadShare(thread, begin, end - begin, (first, last), run, step)


def _median_seconds(samples: Iterable[TimeSpan]) -> float:
    """Return the median duration of time spans in seconds; 0 if there are none."""
    return float(np.median([nanoseconds for _, nanoseconds in samples] or [0])) / 1e9


def _num_threads_of(bound: Sequence[tuple[Any, ...]]) -> int:
    """Return how many threads share a step, given the launcher steps that it was bound to.

    It is the number of threads, or of tiles where there are fewer; 1 for steps that are not shared.
    """
    shared = [entry[2] for entry in bound if entry[0] in ("launch", "phase") and entry[3]]
    return min(num_threads(), max(shared)) if shared else 1


def random_feeds(
    inputs: Sequence[tuple[str, DType]], shapes: Sequence[tuple[int, ...]], seed: int = 0
) -> dict[str, Any]:
    """Return arrays of random numbers by input name.

    Args:
        inputs: name and dtype of each input.
        shapes: the shape of each input, in the same order.
        seed: the seed; the same seed gives the same arrays in every process.

    Returns:
        Arrays of standard normal numbers for real float inputs, of 0 and 1 for all other dtypes.
    """
    rng = np.random.default_rng(seed)
    feeds = {}
    for (name, dtype), shape in zip(inputs, shapes, strict=True):
        values = rng.standard_normal(shape) if dtype.is_float else rng.integers(0, 2, shape)
        feeds[name] = np.asarray(values).astype(dtype.numpy)
    return feeds
