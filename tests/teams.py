"""Teams of threads of another size, for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from passkit.runtime.native.launcher import num_threads, set_num_threads

__all__ = ["num_threads", "set_num_threads", "team_of"]


@contextmanager
def team_of(count: int) -> Iterator[None]:
    """Kernels run on ``count`` threads inside; the number before is put back."""
    before = num_threads()
    set_num_threads(count)
    try:
        yield
    finally:
        set_num_threads(before)
