"""Profiles: the time of each step of a program, and how fast it moves its bytes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from time import perf_counter_ns
from typing import Any

import numpy as np
from attrs import frozen

from passkit.runtime.native.launcher import launcher, num_threads
from passkit.runtime.program import Alias, Library, Program, Step
from passkit.values.dtype import DType
from passkit.values.lazy import Lazy
from passkit.values.size import evaluate
from passkit.values.units import bytes_text, seconds_text, table

notebook: Any = Lazy("passkit.reporting.notebook")
"""What notebooks show stands above, and is asked for only by them."""

MOST_SHARES = 100_000
"""As many shares of threads are kept of a profile."""

Span = tuple[int, int]
"""When a step began and how long it took, in nanoseconds of `perf_counter_ns`."""


@frozen
class Share:
    """What one thread did without a pause: tiles of a kernel, nanoseconds as in a `Span`.

    ``thread`` is 0 for the one that called, ``row`` the number of the step, ``run`` of the run.
    """

    thread: int
    begin: int
    nanoseconds: int
    tiles: tuple[int, int]
    run: int
    row: int


@frozen
class Row:
    """One step: what it is, median seconds, and bytes it reads and writes.

    ``node`` is what the planned graph calls it, ``threads`` is how many share its work, and
    ``copying`` the seconds in which this machine copies as many bytes, 0 if that is not known.
    ``flops`` are the multiplications and additions of a library's routine, 0 for others.
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
        """Bytes a second."""
        return self.nbytes / self.seconds if self.seconds else 0.0

    @property
    def of_copy(self) -> float | None:
        """The part of a copy's bandwidth that the step reaches; None where nothing is known."""
        return self.copying / self.seconds if self.seconds and self.copying else None


@frozen
class Line:
    """A kernel, or a routine with its sizes: the steps that run it, together."""

    what: str
    calls: int
    seconds: float
    nbytes: int
    copying: float
    flops: int

    @property
    def of_copy(self) -> float | None:
        """As `Row.of_copy`."""
        return self.copying / self.seconds if self.seconds and self.copying else None


@frozen(repr=False)
class Profile:
    """The steps of a program with their times; printed, it is a table with a line per kernel.

    ``spans`` has for each run the `Span` of each row, ``shares`` what each thread did of it; the
    first `MOST_SHARES` of all runs. What one thread does alone is no share.
    """

    rows: tuple[Row, ...]
    spans: tuple[tuple[Span, ...], ...] = ()
    shares: tuple[Share, ...] = ()

    @property
    def seconds(self) -> float:
        """The sum of all steps."""
        return sum(r.seconds for r in self.rows)

    @property
    def by_node(self) -> dict[str, float]:
        """Seconds by the names of the planned graph's nodes."""
        return {r.node: r.seconds for r in self.rows if r.node}

    @property
    def lines(self) -> tuple[Line, ...]:
        """What took time, most first."""
        found: dict[str, list[Row]] = {}
        for row in self.rows:
            if row.nbytes or row.seconds:
                found.setdefault(row.step, []).append(row)
        made = [
            Line(
                *(what, len(rows), sum(r.seconds for r in rows), sum(r.nbytes for r in rows)),
                *(sum(r.copying for r in rows), sum(r.flops for r in rows)),
            )
            for what, rows in found.items()
        ]
        return tuple(sorted(made, key=lambda line: -line.seconds))

    def as_dict(self) -> dict[str, object]:
        """The same as JSON can hold it."""
        total = self.seconds or 1.0
        return {
            "seconds": self.seconds,
            "kernels": [
                {
                    "what": x.what,
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
        """What a notebook shows."""
        return notebook.profile(self)  # type: ignore[no-any-return]

    def __str__(self) -> str:
        lines, total = self.lines, self.seconds or 1.0
        whole = Line(
            *("sum", sum(x.calls for x in lines), self.seconds, sum(x.nbytes for x in lines)),
            *(sum(x.copying for x in lines), sum(x.flops for x in lines)),
        )
        header = ("kernel", "calls", "time", "share", "bytes", "GB/s", "of copy", "GFLOP/s")
        return table(header, [_cells(x, total) for x in (*lines, whole)])

    __repr__ = __str__


def _cells(x: Line, total: float) -> list[str]:
    """A line of the table; ``total`` are the seconds of all."""
    rate, pace = (n / x.seconds / 1e9 if x.seconds else 0.0 for n in (x.nbytes, x.flops))
    part = "" if x.of_copy is None or not x.nbytes else f"{100 * x.of_copy:.0f} %"
    return [
        *(x.what, str(x.calls), seconds_text(x.seconds), f"{100 * x.seconds / total:.1f} %"),
        *(bytes_text(x.nbytes), f"{rate:.1f}", part, f"{pace:.1f}" if x.flops else ""),
    ]


def unknown(nbytes: int) -> float:
    """0: how long so many bytes take to be copied is not known."""
    return 0.0


def profile_program(
    program: Program,
    sizes: Mapping[str, int],
    arrays: Sequence[Any],
    runs: int,
    copying: Callable[[int], float] = unknown,
) -> Profile:
    """Run a program with a clock between its steps. Units: seconds, medians over ``runs``.

    ``copying`` says in how many seconds this machine copies so many bytes.
    """
    spans: list[list[Span]] = [[] for _ in program.steps]
    threads = [1] * len(program.steps)
    last = 0

    def between(k: int, bound: list[tuple[Any, ...]]) -> Callable[..., None]:
        threads[k] = _threads(bound)

        def tick(*_: Any) -> None:
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
    launcher().note_shares(MOST_SHARES)
    try:
        for _ in range(runs):
            last = perf_counter_ns()
            run(tuple(arrays))
    finally:
        noted = launcher().note_shares(0)
    rows = [
        row_of(step, samples, sizes, node, copying, team)
        for step, samples, node, team in zip(
            program.steps, spans, program.names, threads, strict=True
        )
    ]
    by_run = tuple(zip(*spans, strict=True))
    return Profile(tuple(rows), by_run, tuple(_shares(noted, by_run)))


def row_of(
    step: Step,
    samples: Sequence[Span],
    sizes: Mapping[str, int],
    node: str,
    copying: Callable[[int], float],
    threads: int = 1,
) -> Row:
    """The row of a step that was timed in each run."""
    nbytes = sum(evaluate(r.nbytes, sizes) for r in (*step.reads, *step.writes))
    return Row(
        *(str(step), 0.0 if isinstance(step, Alias) else _median(samples), nbytes, node, threads),
        copying(nbytes) if nbytes else 0.0,
        evaluate(step.flops, sizes) if isinstance(step, Library) else 0,
    )


def _shares(
    noted: Sequence[tuple[int, ...]], spans: Sequence[Sequence[Span]]
) -> Iterator[Share]:
    """The shares that began and ended in a step; what ran meanwhile for others is left out."""
    steps = [(m, k) for m, run in enumerate(spans) for k in range(len(run))]
    begins = [spans[m][k][0] for m, k in steps]
    for thread, begin, end, first, last in noted:
        place = bisect_right(begins, begin) - 1
        if place >= 0:
            run, row = steps[place]
            if end <= sum(spans[run][row]):
                yield Share(thread, begin, end - begin, (first, last), run, row)


def _median(samples: Iterable[Span]) -> float:
    return float(np.median([took for _, took in samples] or [0])) / 1e9


def _threads(bound: Sequence[tuple[Any, ...]]) -> int:
    """How many threads take part in a step that became these rows."""
    shared = [row[2] for row in bound if row[0] in ("launch", "phase") and row[3]]
    return min(num_threads(), max(shared)) if shared else 1


def random_feeds(
    inputs: Sequence[tuple[str, DType]], shapes: Sequence[tuple[int, ...]], seed: int = 0
) -> dict[str, Any]:
    """Arrays of random numbers, the same in every run: normal for floats, small for integers."""
    rng = np.random.default_rng(seed)
    feeds = {}
    for (name, dtype), shape in zip(inputs, shapes, strict=True):
        values = rng.standard_normal(shape) if dtype.is_float else rng.integers(0, 2, shape)
        feeds[name] = np.asarray(values).astype(dtype.numpy)
    return feeds
