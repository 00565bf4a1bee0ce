"""Progress bars of long work, where standard error is a terminal and tqdm is installed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from passkit.values.terminal import is_terminal


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[], None]]:
    """Yield a function that is to be called after each of ``total`` steps."""
    bar = _bar(what, total)
    if bar is None:
        yield lambda: None
        return
    try:
        yield bar.update
    finally:
        bar.close()


def _bar(what: str, total: int):  # type: ignore[no-untyped-def]
    if not is_terminal(sys.stderr):
        return None
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm(desc=what, total=total, file=sys.stderr, leave=False)
