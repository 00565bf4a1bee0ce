"""Progress of long work: a bar where somebody watches and tqdm is installed, else nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[], None]]:
    """Within the block, what is yielded is called once for each of ``total`` steps that is done."""
    bar = _bar(what, total)
    if bar is None:
        yield lambda: None
        return
    try:
        yield bar.update
    finally:
        bar.close()


def _bar(what: str, total: int):  # type: ignore[no-untyped-def]
    if not sys.stderr.isatty():
        return None
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm(desc=what, total=total, file=sys.stderr, leave=False)
