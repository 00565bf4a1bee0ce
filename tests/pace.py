"""Time that a test may take, on a machine as slow as this one is now."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

USUAL = 0.07
"""Seconds that `python_work` takes on a processor of about 3.5 GHz."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Time of the processor, as one of about 3.5 GHz would count it: slower ones are let off."""
    begun = time.process_time()
    yield
    taken = time.process_time() - begun
    if taken >= seconds:  # this machine's pace is asked for only then
        begun = time.process_time()
        python_work()
        slower = max(1.0, (time.process_time() - begun) / USUAL)
        assert taken < seconds * slower, f"{taken:.2f} s, {slower:.2f} times as slow a machine"


def python_work() -> None:
    """Python as the toolkit writes it: tuples, dictionaries, small strings."""
    table: dict[tuple[str, int], object] = {}
    for k in range(200_000):
        table[str(k % 1000), k & 7] = (k, table.get((str(k % 1000), k & 3)))
