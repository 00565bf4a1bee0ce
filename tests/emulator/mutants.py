"""Kernels with one planted fault: a missing barrier, or a missing lane of a shuffle."""

from __future__ import annotations

import re
from collections.abc import Iterator

WAIT = re.compile(
    r"__syncthreads\(\);|__syncwarp\(\);|wait_of_group\([^;]*\);|wait_of_grid\(&\w+\);"
)
SHUFFLE = re.compile(r"for \(int o = \d+; o; o /= 2\) \{")
ALIGNMENT = re.compile(r"^( *)if \(.*& 15\) == 0\) \{$", re.MULTILINE)
"""The test whether arrays are aligned to vectors."""


def mutants(text: str) -> Iterator[tuple[str, str]]:
    """Yield descriptions of faults and the source with each fault.

    Branches for arrays that are not aligned are left as they are.
    """

    def replaced(match: re.Match[str], by: str) -> str:
        return text[: match.start()] + by + text[match.end() :]

    unaligned = _unaligned_branches(text)
    for pattern in (WAIT, SHUFFLE):
        for match in pattern.finditer(text):
            if any(match.start() in branch for branch in unaligned):
                continue
            line = text.count("\n", 0, match.start()) + 1
            if pattern is WAIT:
                yield f"{line}: no {match[0]}", replaced(match, "")
            else:
                without = replaced(match, f"if (threadIdx.x % 32 != 3) {match[0]}")
                yield f"{line}: lane 3 leaves out", without


def _unaligned_branches(text: str) -> list[range]:
    """Return the branches for arrays that are not aligned, which launches with others leave out."""
    branches = []
    for test in ALIGNMENT.finditer(text):
        begin = text.find(f"\n{test[1]}}} else {{", test.end())
        if begin >= 0:
            branches.append(range(begin, text.index(f"\n{test[1]}}}\n", begin + 1)))
    return branches
