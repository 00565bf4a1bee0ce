"""Warnings attributed to the line of the user's code that caused them."""

from __future__ import annotations

import sys
import warnings

LIBRARY = __name__.partition(".")[0]


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning of a category with a message, at the innermost frame outside of passkit.

    Python shows equal warnings from one line of code once, so a loop that compiles warns once.
    """
    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == LIBRARY:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
