"""Arithmetic of CUDA kernels without a device: instructions for an element, and measured errors.

    python benchmarks/cuda_functions.py            # against the recorded table; 1 where one differs
    python benchmarks/cuda_functions.py --write    # write benchmarks/results/cuda-functions.txt

A kernel applies a function to four elements that a thread loads and stores. Its instructions are
those on the shortest way to the end, without slow paths that are called, less those of a kernel
that copies; NVRTC compiles it for sm_90, and its version stands in the table's first line.
The largest error, in units of the result's last place, is that of passkit's own text by g++ on
floats spread over all bits; an approximation of the device (2^x, 1 / x) is exact there.
"""

from __future__ import annotations

import ctypes
import heapq
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parent)]

import cubins  # noqa: E402  (after the path)
import sass  # noqa: E402  (after the path)
from attrs import frozen  # noqa: E402  (after the path)

from passkit.ir.reciprocal import reciprocal  # noqa: E402  (after the path)

TABLE = cubins.ROOT / "benchmarks" / "results" / "cuda-functions.txt"
CHECKER = cubins.ROOT / "tests" / "dialects" / "device_math_checker.cpp"
ARCHITECTURE = 90
INFINITE, NEGATIVE, STEP = 0x7F800000, 2**31, 61
SQRT_2 = 1.4142135381698608
KERNEL = """
extern "C" __global__ void timed(
    const float *__restrict__ from, float *__restrict__ to, float b) {{
  __align__(16) float x[4], y[4];
  {before}
  load_shared<4>(x, from + 4 * threadIdx.x);
  {body}
  store_vector<4>(to + 4 * threadIdx.x, y);
}}
"""
EACH = '_Pragma("unroll") for (int k = 0; k < 4; ++k) y[k] = {value};'


@frozen
class FunctionRow:
    """A function: how a kernel says it, and how a checker measures its error.

    Attributes:
        name: what the table calls it.
        body: statements that compute ``y[4]`` of ``x[4]``.
        before: statements in front of them, which are not counted.
        error: the checker's function, or None where it has none.
    """

    name: str
    body: str
    before: str = ""
    error: str | None = None


def each(value: str) -> str:
    """Return the statement that computes one element after the other."""
    return EACH.format(value=value)


def known() -> str:
    """Return the divisor of the table's literal."""
    high, low = reciprocal(SQRT_2, 4) or (0.0, 0.0)
    return f"known_divisor({SQRT_2!r}f, {high!r}f, {low!r}f)"


ROWS = (
    FunctionRow("x / 1.4142135, divided", each(f"x[k] / {SQRT_2!r}f")),
    FunctionRow("x / 1.4142135", f"over(y, x, {known()});", error="known"),
    FunctionRow("x / 1.4142135, absorbed next to 0", each(f"near_over(x[k], {known()})")),
    FunctionRow("x / b of a row, divided", each("x[k] / b")),
    FunctionRow("x / b of a row", "over(y, x, by);", "const divisor by(b);", "divisor"),
    FunctionRow("1 / x, divided", each("1.0f / x[k]")),
    FunctionRow("1 / x of x >= 1", each("reciprocal(x[k])")),
    FunctionRow(
        "1 / x of x >= 1, absorbed next to 0", each("near_reciprocal(x[k])"), error="reciprocal"
    ),
    FunctionRow("erff of CUDA", each("erff(x[k])")),
    FunctionRow("erf", each("erf_near(x[k])"), error="erf_error"),
    FunctionRow(
        "sigmoid by a division",
        each("(x[k] < 0 ? expf(-fabsf(x[k])) : 1.0f) / (1.0f + expf(-fabsf(x[k])))"),
    ),
    FunctionRow("sigmoid", each("sigmoid(x[k])"), error="sigmoid_error"),
    FunctionRow("maximum that keeps NaN", each("maximum(x[k], b)")),
    FunctionRow("fmaxf", each("fmaxf(x[k], b)")),
    FunctionRow("expf", each("expf(x[k])")),
    FunctionRow("tanhf", each("tanhf(x[k])")),
    FunctionRow("logf", each("logf(x[k])")),
    FunctionRow("sqrtf", each("sqrtf(x[k])")),
)


def instructions(body: str, before: str) -> str:
    """Return the machine code of the kernel that has these statements, as text.

    Raises: `sass.NoDisassemblerError`; RuntimeError if nvdisasm fails.
    """
    text = KERNEL.format(body=body, before=before)
    with tempfile.NamedTemporaryFile("w", suffix=".cu") as file:
        file.write(text)
        file.flush()
        return sass.instructions(Path(file.name), ARCHITECTURE)[1]


def shortest_way(text: str) -> int:
    """Return how many instructions there are on the shortest way through machine code.

    Calls are not taken.

    >>> shortest_way('''
    ...     /*0000*/ FCHK P0, R0, R1 ;
    ...     /*0010*/ @!P0 BRA `(.L_1) ;
    ...     /*0020*/ CALL.REL.NOINC `(slow) ;
    ... .L_1:
    ...     /*0030*/ EXIT ;
    ... ''')
    3
    """
    code, labels = list[str](), dict[str, int]()
    for line in text.splitlines():
        if label := re.match(r"\s*(\.L_\w+):", line):
            labels[label[1]] = len(code)
        elif instruction := re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;", line):
            code.append(instruction[1])
    least, todo = {0: 1}, [(1, 0)]
    while todo:
        count, k = heapq.heappop(todo)
        words = code[k].split()
        if "EXIT" in words[0]:
            return count
        branch = re.search(r"\bBRA\b.*`\((\.L_\w+)\)", code[k])
        following = [labels[branch[1]]] if branch else []
        always = branch and words[0] == "BRA" and len(words) == 2
        if not always and "CALL" not in code[k]:
            following.append(k + 1)
        for n in following:
            if count + 1 < least.get(n, len(code) + 1):
                least[n] = count + 1
                heapq.heappush(todo, (count + 1, n))
    raise RuntimeError("machine code without an end")


def checker(folder: Path) -> Any:
    """Compile the checker of the tests and return its library."""
    path = folder / "checker.so"
    options = ["-O2", "-march=native", "-ffp-contract=off", "-std=c++17", "-shared", "-fPIC"]
    include = f"-I{cubins.ROOT / 'passkit' / 'dialects'}"
    subprocess.run(["g++", *options, include, "-o", str(path), str(CHECKER)], check=True)
    return ctypes.CDLL(str(path))


def measured_error(row: FunctionRow, library: Any) -> str:
    """Return the largest error of a function, or how many of its results are other bits."""
    word, count, real = ctypes.c_uint32, ctypes.c_int64, ctypes.c_float
    if row.error is None:
        return "-"
    if row.error.endswith("_error"):
        function = getattr(library, row.error)
        function.restype, n = ctypes.c_double, count(INFINITE // STEP)
        errors = [function(word(sign), word(STEP), n) for sign in (0, NEGATIVE)]
        return f"{max(errors):.2f} ulp"
    n = 2**32 // STEP
    if row.error == "reciprocal":
        library.wrong_reciprocals.restype = count
        # One mantissa has an approximation that would not do.
        wrong = library.wrong_reciprocals(word(0x3F800000), count(2**23)) - 1
    elif row.error == "known":
        library.wrong_known.restype = count
        parts = map(real, (SQRT_2, *(reciprocal(SQRT_2, 4) or ())))
        wrong = library.wrong_known(*parts, word(0), word(STEP), count(n))
    else:
        library.wrong_divisor.restype = count
        divisors = (SQRT_2, 3.0, 40.7, 1023.9)
        steps = word(0), word(STEP * len(divisors)), count(n // len(divisors))
        wrong = sum(library.wrong_divisor(real(s), *steps) for s in divisors)
    return "same bits" if wrong == 0 else f"{wrong} of {n} wrong"


def table_lines() -> list[str]:
    """Return the lines of the table."""
    lines = []
    copied = shortest_way(instructions(each("x[k]"), ""))
    with tempfile.TemporaryDirectory() as folder:
        library = checker(Path(folder))
        for row in ROWS:
            extra = 0
            if row.before:
                # What stands in front is counted alone, with its result kept.
                extra = shortest_way(instructions(each("x[k] * by.high * by.bound"), row.before))
                extra -= copied + 8
            text = instructions(row.body, row.before)
            count = (shortest_way(text) - copied - extra) / 4
            lines.append(f"{row.name}: {count:.1f} instructions, {measured_error(row, library)}")
    return lines


def differing_lines(measured: Iterable[str]) -> list[str]:
    """Return the ``measured`` lines that differ; by another compiler, in their errors alone."""
    version, *entries = TABLE.read_text().splitlines()
    if version == str(cubins.nvrtc()):
        return [x for x in measured if x not in entries]
    return [x for x in measured if _error_of(x) not in map(_error_of, entries)]


def _error_of(line: str) -> tuple[str, str]:
    """Return the name and the error in a line of the table."""
    return line.partition(": ")[0], line.rpartition(", ")[2]


def markdown(lines: Iterable[str]) -> list[str]:
    """Return lines of the table as rows of the documentation's.

    >>> markdown(["x / 3, divided: 10.8 instructions, -"])
    ['| x / 3, divided | 10.8 | - |']
    """
    rows = []
    for line in lines:
        name, _, figures = line.partition(": ")
        count, _, error = figures.partition(" instructions, ")
        rows.append(f"| {name} | {count} | {error} |")
    return rows


def main() -> int:
    """Compare with the table, or write it."""
    return cubins.run_table_command(__doc__, TABLE, table_lines, differing_lines)


if __name__ == "__main__":
    sys.exit(main())
