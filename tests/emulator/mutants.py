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

    def replaced(found: re.Match[str], by: str) -> str:
        return text[: found.start()] + by + text[found.end() :]

    for found in WAIT.finditer(text):
        yield f"{_line(text, found)}: no {found[0]}", replaced(found, "")
    last = 0
    for found in LOOP.finditer(text):
        if found.start() < last or found[2] in TILES or RAGGED.search(text, 0, found.start()):
            continue
        further = replaced(found, f"{found[1]}={found[3]}")
        again = _again(text, found)
        if again is not None:  # of bundles and of what is left, one has no elements
            last = again + len(found[0])
            further = further[: again + 1] + found[1] + "=" + found[3] + text[last:]
        yield f"{_line(text, found)}: one more {found[2]}", _asked(further, found)
    for found in SHUFFLE.finditer(text):
        without = replaced(found, f"if (threadIdx.x != 3) {found[0]}")
        yield f"{_line(text, found)}: lane 3 leaves out", without


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


def _line(text: str, found: re.Match[str]) -> int:
    return text.count("\n", 0, found.start()) + 1
