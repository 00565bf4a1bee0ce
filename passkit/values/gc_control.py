"""Python's collector of cyclic garbage, kept back while passes make graphs.

A large graph is a million small objects that stay. The collector, which runs after every few
hundred new ones, finds nothing among them and takes a fifth of the time: more, the larger they are.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

SELDOM = 200_000
"""New objects between two collections while passes run; Python's own threshold is 700."""

_lock = Lock()
_inside: list[tuple[int, int, int]] = []


@contextmanager
def seldom() -> Iterator[None]:
    """Within it, in any thread, garbage is collected seldom; an own larger threshold is kept."""
    with _lock:
        usual = _inside[0] if _inside else gc.get_threshold()
        _inside.append(usual)
        if 0 < usual[0] < SELDOM:
            gc.set_threshold(SELDOM, *usual[1:])
    try:
        yield
    finally:
        with _lock:
            _inside.pop()
            if not _inside:
                gc.set_threshold(*usual)
