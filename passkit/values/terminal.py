"""Standard streams that may be missing: windowed programs, daemons and loggers replace them."""

from __future__ import annotations

from typing import Any


def is_terminal(stream: Any) -> bool:
    """Return whether a stream is a terminal.

    Args:
        stream: ``sys.stdout``, ``sys.stderr`` or their replacement: None without a console, a
            closed file, or an object that has only ``write``.

    >>> is_terminal(None)
    False
    """
    isatty = getattr(stream, "isatty", None)
    try:
        return isatty is not None and bool(isatty())
    except (OSError, ValueError):  # ValueError: the file is closed
        return False
