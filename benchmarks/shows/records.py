"""Records: what a long campaign said when it ran last, as `benchmarks/results` keeps it.

The first line of such a file says when and of which commit, the last one what was found.
"""

from __future__ import annotations

import re

from shows import RESULTS, ROOT, Figure


def recorded(file: str, least: int) -> Figure:
    """A campaign of at least so many graphs, of which none failed."""
    path = RESULTS / file
    where = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    if not path.exists():
        return Figure(f"{where} is not there: python benchmarks/fuzz.py --count {least}", False)
    lines = path.read_text().splitlines() or [""]
    counts = re.match(r"(\d+) graphs, (\d+) failed", lines[-1])
    when = re.match(r"(\S+), passkit \S+ at (\w+)", lines[0])
    if counts is None or when is None:
        return Figure(f"{where} holds no report: {lines[-1]}", False)
    graphs, failed = int(counts[1]), int(counts[2])
    text = f"{graphs} of {when[1]} at {when[2]}, {failed} failed"
    return Figure(text, graphs >= least and failed == 0, [lines[0], lines[-1]])
