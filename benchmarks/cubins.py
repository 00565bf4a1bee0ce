"""The golden CUDA kernels by NVRTC, without a device: registers, shared memory and spills.

    python benchmarks/cubins.py            # against tests/golden/cubins.txt; 1 where one differs
    python benchmarks/cubins.py --write    # write that table

What a compiler makes of a text depends on its version, which stands in the table's first line; by
another one the figures are printed, and only spills count.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from passkit.dialects.cuda import CUDA  # noqa: E402  (after the path)
from passkit.runtime.cuda.compiler import OPTIONS, nvrtc  # noqa: E402

GOLDEN = ROOT / "tests" / "golden"
TABLE = GOLDEN / "cubins.txt"
ARCHITECTURES = (75, 80, 90, 100)


def golden_kernels() -> list[Path]:
    """Return the golden texts."""
    return sorted(GOLDEN.rglob("*.cu"))


def table_line(path: Path, architecture: int) -> str:
    """Return the registers, shared memory and spills of a kernel as a line of the table."""
    text = f"{CUDA.preamble}\n{path.read_text()}"
    image = nvrtc().compile(text, (f"--gpu-architecture=sm_{architecture}", *OPTIONS))
    shared = sum(map(int, re.findall(r"(\d+) bytes smem", image.log)))
    name = path.relative_to(GOLDEN).with_suffix("")
    return (
        f"sm_{architecture} {name}: {image.registers} registers, {shared} B shared, "
        f"{image.spills} B spilled"
    )


def table_lines(architectures: Iterable[int], paths: Iterable[Path]) -> list[str]:
    """Return lines of the table for some architectures and kernels."""
    jobs = [(p, a) for a in architectures for p in paths]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return list(pool.map(lambda job: table_line(*job), jobs))


def differing_lines(measured: Iterable[str]) -> list[str]:
    """Return lines with spills and, by the table's own compiler, those not in the table."""
    version, *entries = TABLE.read_text().splitlines()
    same = version == str(nvrtc())
    return [x for x in measured if not x.endswith(" 0 B spilled") or (same and x not in entries)]


def main() -> int:
    """Compare with the table, or write it."""
    return run_table_command(
        __doc__, TABLE, lambda: table_lines(ARCHITECTURES, golden_kernels()), differing_lines
    )


def run_table_command(
    doc: str | None,
    table: Path,
    measure: Callable[[], Sequence[str]],
    differs: Callable[[Sequence[str]], Sequence[str]],
) -> int:
    """Run the command of a table: print measured lines, and compare with the table or write it.

    Args:
        doc: the module's docstring, for ``--help``.
        table: the file of the table.
        measure: returns the lines.
        differs: returns those of the lines that differ from the table.

    Returns: 1 if a line differs, else 0.
    """
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    measured = measure()
    print("\n".join([str(nvrtc()), *measured]))
    if options.write:
        table.write_text("\n".join([str(nvrtc()), *measured]) + "\n")
        return 0
    wrong = differs(measured)
    print(f"{len(measured)} kernels, {len(wrong)} other than they were", *wrong, sep="\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
