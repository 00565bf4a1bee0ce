"""Kernels with one fault each: a wait less, a loop one further, a shuffle that one lane leaves."""

from __future__ import annotations

import re
from collections.abc import Iterator

WAIT = re.compile(r"__syncthreads\(\);|__syncwarp\(threads_of_row\(\)\);|wait_of_grid\(&\w+\);")
LOOP = re.compile(r"(for \(int64_t (\w+) = [^;]*; \2 <)( [^;]*;)")
SHUFFLE = re.compile(r"for \((?:int|unsigned) o = 16; o; o >>= 1\) \{")
TILES = ("tile", "block")
"""The counters of loops over tiles: one too many has no elements."""
RAGGED = re.compile(r"_bundles = [^;]*\+ \d+\) / \d+[^;]*;\s*\Z")
"""In front of a loop over bundles each of which asks how many elements it has."""
UNROLLED = re.compile(r"#pragma unroll \d+\s*\Z")
"""In front of a loop inside the lanes."""


def mutants(text: str) -> Iterator[tuple[str, str]]:
    """What was done to a kernel's text, and what it is then."""

    def replaced(match: re.Match[str], by: str) -> str:
        return text[: match.start()] + by + text[match.end() :]

    for match in WAIT.finditer(text):
        yield f"{_line(text, match)}: no {match[0]}", replaced(match, "")
    last = 0
    for match in LOOP.finditer(text):
        if match.start() < last or match[2] in TILES or RAGGED.search(text, 0, match.start()):
            continue
        further = replaced(match, f"{match[1]}={match[3]}")
        again = _again(text, match)
        if again is not None:  # of bundles and of what is left, one has no elements
            last = again + len(match[0])
            further = further[: again + 1] + match[1] + "=" + match[3] + text[last:]
        yield f"{_line(text, match)}: one more {match[2]}", _asked(further, match)
    for match in SHUFFLE.finditer(text):
        without = replaced(match, f"if (threadIdx.x != 3) {match[0]}")
        yield f"{_line(text, match)}: lane 3 leaves out", without


def _asked(text: str, loop: re.Match[str]) -> str:
    """A text in which the turns of a loop over bundles, if it has some, go as far as it does."""
    name = loop[2].removesuffix("_bundle")
    if not re.search(r"\+= \d+ \* ", loop[3] + text[loop.end() :].partition("{")[0]):
        return text
    front, behind = text[: loop.start()], text[loop.start() :]
    here, bundles = f"{name}_here", f"{name}_bundles"
    for sign, by in (("<", "<="), (">=", ">")):
        behind = behind.replace(f"{here} {sign} {bundles}", f"{here} {by} {bundles}", 1)
    return front + behind


def _again(text: str, loop: re.Match[str]) -> int | None:
    """Where a loop inside the lanes that have bundles stands for those that are left; or None."""
    if not UNROLLED.search(text, 0, loop.start()):
        return None
    rest = text.find("_rest = ", loop.end())
    again = text.find(loop[0], rest) if rest > 0 else -1
    return again if again > 0 and UNROLLED.search(text, 0, again) else None


def _line(text: str, match: re.Match[str]) -> int:
    return text.count("\n", 0, match.start()) + 1
