"""The golden CUDA kernels by NVRTC, without a device: registers, shared bytes and spills of each.

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


def kernels() -> list[Path]:
    """The golden texts."""
    return sorted(GOLDEN.rglob("*.cu"))


def figures(path: Path, architecture: int) -> str:
    """What a kernel takes, as a line of the table."""
    text = f"{CUDA.preamble}\n{path.read_text()}"
    image = nvrtc().compile(text, (f"--gpu-architecture=sm_{architecture}", *OPTIONS))
    shared = sum(map(int, re.findall(r"(\d+) bytes smem", image.log)))
    name = path.relative_to(GOLDEN).with_suffix("")
    return (
        f"sm_{architecture} {name}: {image.registers} registers, {shared} B shared, "
        f"{image.spills} B spilled"
    )


def lines(architectures: Iterable[int], paths: Iterable[Path]) -> list[str]:
    """Lines of the table, for some architectures and kernels."""
    jobs = [(p, a) for a in architectures for p in paths]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return list(pool.map(lambda job: figures(*job), jobs))


def differing(measured: Iterable[str]) -> list[str]:
    """What spills, and by the table's own compiler what is not in the table."""
    version, *entries = TABLE.read_text().splitlines()
    same = version == str(nvrtc())
    return [x for x in measured if not x.endswith(" 0 B spilled") or (same and x not in entries)]


def main() -> int:
    """Compare or write."""
    return compared(__doc__, TABLE, lambda: lines(ARCHITECTURES, kernels()), differing)


def compared(
    doc: str | None,
    table: Path,
    measure: Callable[[], Sequence[str]],
    differs: Callable[[Sequence[str]], Sequence[str]],
) -> int:
    """The command of a table: print what is measured, and compare with the table or write it."""
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
