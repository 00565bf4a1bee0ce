"""Kernels with one planted fault: a missing barrier, an extra iteration, a missing shuffle lane."""

from __future__ import annotations

import re
from collections.abc import Iterator

WAIT = re.compile(r"__syncthreads\(\);|__syncwarp\((threads_of_row\(\))?\);|wait_of_grid\(&\w+\);")
LOOP = re.compile(r"(for \(int64_t (\w+) = [^;]*; \2 <)( [^;]*;)")
SHUFFLE = re.compile(r"for \((?:int|unsigned) o = 16; o; o (?:>>= 1|/= 2)\) \{")
TILES = ("tile", "block", "base")
"""The counters of loops over tiles, and over steps of rows: one too many has no elements."""
OF_REGISTERS = ("u", "k", "element", "y")
"""The counters of unrolled loops over registers: here these have no bounds, loop IR is verified."""
RAGGED = re.compile(r"_vectors = [^;]*\+ \d+\) / \d+[^;]*;\s*\Z")
"""In front of a loop over vectors each of which asks how many elements it has."""
ALIGNMENT = re.compile(r"^( *)if \(.*& 15\) == 0\) \{$", re.MULTILINE)
"""The test whether arrays are aligned to vectors."""
UNROLLED = re.compile(r"#pragma unroll \d+\s*\Z")
"""In front of a loop inside the lanes."""


def mutants(text: str) -> Iterator[tuple[str, str]]:
    """Yield descriptions of faults and the source with each fault."""

    def replaced(match: re.Match[str], by: str) -> str:
        return text[: match.start()] + by + text[match.end() :]

    unaligned = _unaligned_branches(text)
    for match in WAIT.finditer(text):
        if any(match.start() in branch for branch in unaligned):
            continue
        yield f"{_line(text, match)}: no {match[0]}", replaced(match, "")
    last = 0
    for match in LOOP.finditer(text):
        if match.start() < last or match[2] in TILES or RAGGED.search(text, 0, match.start()):
            continue
        if match[2] in OF_REGISTERS:
            continue
        further = replaced(match, f"{match[1]}={match[3]}")
        again = _remainder_loop(text, match)
        if again is not None:  # of vectors and of what is left, one has no elements
            last = again + len(match[0])
            further = further[: again + 1] + match[1] + "=" + match[3] + text[last:]
        yield f"{_line(text, match)}: one more {match[2]}", _with_further_checks(further, match)
    for match in SHUFFLE.finditer(text):
        if any(match.start() in branch for branch in unaligned):
            continue
        without = replaced(match, f"if (threadIdx.x != 3) {match[0]}")
        yield f"{_line(text, match)}: lane 3 leaves out", without


def _unaligned_branches(text: str) -> list[range]:
    """Return the branches for arrays that are not aligned, which launches with others leave out."""
    branches = []
    for test in ALIGNMENT.finditer(text):
        begin = text.find(f"\n{test[1]}}} else {{", test.end())
        if begin >= 0:
            branches.append(range(begin, text.index(f"\n{test[1]}}}\n", begin + 1)))
    return branches


def _with_further_checks(text: str, loop: re.Match[str]) -> str:
    """Extend the checks of a loop over vectors, if it has some, by the extra iteration."""
    name = loop[2].removesuffix("_vector")
    if not re.search(r"\+= \d+ \* ", loop[3] + text[loop.end() :].partition("{")[0]):
        return text
    front, behind = text[: loop.start()], text[loop.start() :]
    here, vectors = f"{name}_here", f"{name}_vectors"
    for sign, by in (("<", "<="), (">=", ">")):
        behind = behind.replace(f"{here} {sign} {vectors}", f"{here} {by} {vectors}", 1)
    return front + behind


def _remainder_loop(text: str, loop: re.Match[str]) -> int | None:
    """Return where the loop over the remaining elements begins, for an unrolled loop; else None."""
    if not UNROLLED.search(text, 0, loop.start()):
        return None
    rest = text.find("_rest = ", loop.end())
    again = text.find(loop[0], rest) if rest > 0 else -1
    return again if again > 0 and UNROLLED.search(text, 0, again) else None


def _line(text: str, match: re.Match[str]) -> int:
    return text.count("\n", 0, match.start()) + 1
