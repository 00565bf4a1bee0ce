"""Progress bars, shown where standard error is a terminal and tqdm is installed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from passkit.values.terminal import is_terminal


@contextmanager
def progress(title: str, total: int) -> Iterator[Callable[[], None]]:
    """Show a progress bar inside the ``with`` block.

    Args:
        title: the text in front of the bar.
        total: the number of steps.

    Yields:
        A function without arguments to call after each step. It does nothing, and no bar is shown,
        where standard error is no terminal or tqdm is not installed.
    """
    bar = _bar(title, total)
    if bar is None:
        yield lambda: None
        return
    try:
        yield bar.update
    finally:
        bar.close()


def _bar(title: str, total: int):  # type: ignore[no-untyped-def]
    """Return a bar of tqdm with a title, for ``total`` steps.

    Returns: None where standard error is no terminal or tqdm is not installed.
    """
    if not is_terminal(sys.stderr):
        return None
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm(desc=title, total=total, file=sys.stderr, leave=False)
