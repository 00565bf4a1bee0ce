"""Write the table of docs/gpu-kernels.md: machine code, the model's prediction, and measurements.

    python benchmarks/gpu_page.py           # 1 where the page has another table
    python benchmarks/gpu_page.py --write   # write the table into the page

It reads `tests/golden/gpu_study.txt`, the table of `gpu_study.py`, and `results/gpu.json`, the
report of `gpu.py`. No device and no compiler is needed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import gpu_study  # noqa: E402  (after the path)
import sass  # noqa: E402

PAGE = HERE.parent / "docs" / "gpu-kernels.md"
REPORT = HERE / "results" / "gpu.json"
BEGIN, END = "<!-- table of gpu_page.py -->\n", "<!-- end of the table -->\n"
ARCHITECTURE = 90
MULTIPROCESSORS, SCHEDULERS, CLOCK = 132, 4, 1.98e9
"""Of an H200: its multiprocessors, what each issues in a cycle in warp instructions, its hertz."""
BANDWIDTH = 4.2e12
"""The bytes a second that a copy on an H200 reads and writes."""
LATENCY_KB = {gpu_study.COPY_KB: 13, gpu_study.READ_KB: 26}
"""KB in flight at every moment that hide the latency, by what a row needs at full residency."""
SHARPNESS = 3
"""The exponent of `predicted_share`; 3 is within 3 % of gelu and its user's form as measured."""
HEAD = (
    "| row | instructions: before | now | by hand | KB in flight | issue slots | predicted | "
    "measured before | measured now |\n"
    "|---|---|---|---|---|---|---|---|---|\n"
)


@frozen
class RowBytes:
    """The traffic of a row of the study.

    Attributes:
        nbytes: bytes an element that are read and written, from and to the device's memory.
        before: instructions an element before kernels were built from loop IR; None if not counted.
    """

    nbytes: float
    before: float | None


ROWS: Mapping[str, RowBytes] = {
    "gelu_erf 67108864": RowBytes(8, 46.8),
    "gelu_custom_erf 67108864": RowBytes(8, 55),
    "softmax 1677721x40": RowBytes(8, 103),
    "softmax 65536x1024": RowBytes(8, 56),
    "softmax 4096x16384": RowBytes(8, 44),
    "layer_norm 87381x768": RowBytes(8, 35),
    "rms_norm 87381x768": RowBytes(8, 24),
    "bias_gelu 65536x1024": RowBytes(8, 32),
    "colsum 65536x1024": RowBytes(8, 11.6),
    "fullsum 67108864": RowBytes(8, 17),
    "transpose_add 8192x8192": RowBytes(12, 11),
    "adam 67108864": RowBytes(28, None),
    "adam30": RowBytes(28, 71.1),
}
"""The rows that memory is to bind; figure1 is bound by instructions."""


def issue_share(instructions: float, nbytes: float) -> float:
    """Return the share of all issue slots that a row takes while its bytes are moved.

    Args:
        instructions: those of an element, each of which is a 32nd of a warp's.
        nbytes: the bytes that an element moves.
    """
    elements = BANDWIDTH / nbytes
    return elements * instructions / 32 / (MULTIPROCESSORS * SCHEDULERS * CLOCK)


def predicted_share(issue: float, kib: float, latency_kib: float, sectors: float) -> float:
    """Return the share of a copy's bandwidth that the model predicts.

    Memory and issue slots overlap, but not wholly: the time is the norm of the two of exponent
    SHARPNESS. Fewer bytes in flight than hide the latency, and sectors of which parts are not used,
    slow memory down in proportion.

    Args:
        issue: the share of the issue slots.
        kib: KiB of loads in flight on a multiprocessor.
        latency_kib: the KiB that hide the latency of memory.
        sectors: the part of the loaded sectors that is used.
    """
    memory = max(1.0, latency_kib / kib) / sectors
    return float((memory**SHARPNESS + issue**SHARPNESS) ** (-1 / SHARPNESS))


def entries() -> dict[str, dict[str, float]]:
    """Return the figures of the study's table for one architecture by row and side."""
    start = f"sm_{ARCHITECTURE} "
    lines = [x for x in gpu_study.TABLE.read_text().splitlines() if x.startswith(start)]
    return {x.removeprefix(start).partition(":")[0]: sass.numbers(x) for x in lines}


def measured() -> tuple[dict[str, Any], bool]:
    """Return the rows of the last report from a device, and whether loop IR made its kernels.

    Reports since then have kernels by hand beside passkit's.
    """
    if not REPORT.exists():
        return {}, False
    rows = {r["row"]: r for r in json.loads(REPORT.read_text())["rows"]}
    return rows, any("hand" in r for r in rows.values())


def table() -> str:
    """Return the table as Markdown."""
    figures = entries()
    rows, is_now = measured()
    lines = []
    for name, facts in ROWS.items():
        own, hand = figures[f"{name}, printed"], figures[f"{name}, by hand"]
        issue = issue_share(own["instructions"], facts.nbytes)
        kib = own["KB in flight"]
        least = gpu_study.rows()[name].least_kb
        share = predicted_share(issue, kib, LATENCY_KB[least], own["% of sectors"] / 100)
        of_copy = rows.get(name, {}).get("passkit", {}).get("of copy")
        shown = "-" if of_copy is None else f"{of_copy:.2f}"
        before = "-" if facts.before is None else f"{facts.before:g}"
        cells = [
            name,
            before,
            f"{own['instructions']:.1f}",
            f"{hand['instructions']:.1f}",
            f"{kib:.0f} of {least}",
            f"{issue:.2f}",
            f"{share:.2f}",
            "-" if is_now else shown,
            shown if is_now else "not yet",
        ]
        lines.append(f"| {' | '.join(cells)} |\n")
    return HEAD + "".join(lines)


def page_with_table() -> str:
    """Return the page with the present table in it."""
    text = PAGE.read_text()
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{table()}\n{END}{tail}"


def main(arguments: list[str] | None = None) -> int:
    """Run the command line. Return 1 where the page's table is another one."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the table into the page")
    options = parser.parse_args(arguments)
    page = page_with_table()
    if options.write:
        PAGE.write_text(page)
        return 0
    print(table())
    return int(page != PAGE.read_text())


if __name__ == "__main__":
    sys.exit(main())
