"""The process that runs one version's kernels for `kernels_against.py`: the passkit on PYTHONPATH.

    PYTHONPATH=CHECKOUT python -m kernel_times 2

A request names a graph's file and options and gets its kernels' names; further ones run it for some
seconds and get the seconds of a call and of each kernel.
"""

from __future__ import annotations

import importlib
import random
import warnings
from contextlib import suppress
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from pipe import RequestHandler, serve

EXTENTS = (251, 127, 61, 31)
"""Values of unknown sizes."""


class TimedGraph:
    """The compiled graph, its feeds, and the seconds of a call as estimated from a few.

    Small arrays lie at other distances in each process, since a kernel may take twice as long
    where addresses of loads and stores have the same last twelve bits.
    """

    def __init__(self, path: str, together: list[list[str]] | None) -> None:
        from corpus_feeds import feeds_of, sizes_of

        import passkit as pk

        graph = pk.from_json(Path(path).read_text())
        options: dict[str, Any] = {"keep_together": together} if together else {}
        self.executable = pk.compile(graph, target="cpu", **options)
        feeds = feeds_of(graph, sizes_of(graph, EXTENTS))
        self.feeds, self.gaps = {}, []
        for name, array in feeds.items():
            self.gaps.append(bytearray(64 * random.randrange(64)))
            self.feeds[name] = array.copy()
        self.estimate = min(self.of_calls(1) for _ in range(4))

    def kernels(self) -> list[str]:
        """Return the names of the kernels in the order of their launches.

        Raises: PassError if the graph is interpreted.
        """
        return self.of_kernels(1)[0]

    def of_calls(self, count: int) -> float:
        """Return the mean seconds of a call over ``count`` of them."""
        run, feeds = self.executable, self.feeds
        begin = perf_counter()
        for _ in range(count):
            run(feeds)
        return (perf_counter() - begin) / count

    def of_kernels(self, count: int) -> tuple[list[str], list[float]]:
        """Return the kernels' names and the median seconds of each over ``count`` runs.

        Raises: PassError if the graph is interpreted.
        """
        profile = self.executable.profile(self.feeds, runs=count, copies=False)
        launches = [row for row in profile.rows if row.step.startswith("launch ")]
        return [row.step.removeprefix("launch ") for row in launches], [
            row.seconds for row in launches
        ]

    def sample(self, seconds: float, parts: int = 3) -> dict[str, Any]:
        """Return the median over some parts of the seconds of a call, and those of each kernel.

        Args:
            seconds: about how long the calls take, and the runs that time kernels.
            parts: loops of calls, each of which takes a part of the seconds.
        """
        count = max(1, int(seconds / max(self.estimate, 1e-9)))
        self.of_calls(max(1, count // 10))
        parts = min(parts, count)
        call = median(self.of_calls(count // parts) for _ in range(parts))
        return {"call": call, "kernels": self.of_kernels(max(3, count))[1]}


def begin() -> tuple[str, RequestHandler]:
    """Import passkit and return its version, and the function that answers requests."""
    import passkit as pk

    warnings.simplefilter("ignore")
    with suppress(ImportError):  # a version without the operators that tests register
        importlib.import_module("tests.passes.storage_graphs")
    current: list[TimedGraph] = []

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        if "graph" in request:
            current.clear()
            current.append(TimedGraph(request["graph"], request["together"]))
            return {"kernels": current[0].kernels(), "seconds": current[0].estimate}
        return current[0].sample(request["seconds"])

    return pk.__version__, answer


if __name__ == "__main__":
    serve(begin)
