"""The golden CUDA kernels as instructions: 16-byte accesses, local memory, registers.

    python benchmarks/sass.py            # against tests/golden/sass.txt; 1 where one differs
    python benchmarks/sass.py --write    # write that table

By nvdisasm, of the wheel nvidia-cuda-nvdisasm or of a toolkit; no device. What NVRTC makes of a
text depends on its version, which stands in the table's first line: by another one, only local
memory counts, and that there are accesses of 16 bytes where the table has some.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from tempfile import NamedTemporaryFile

sys.path[:0] = [str(Path(__file__).resolve().parent)]

import cubins  # noqa: E402  (after the path)

TABLE = cubins.GOLDEN / "sass.txt"
ARCHITECTURES = (80, 90)
COUNTED = ("LDG.E.128", "STG.E.128", "LDG", "STG", "LDS.128", "STS.128")
LOCAL = ("LDL", "STL")
WHEEL, TOOLKIT = "nvidia-cuda-nvdisasm", "/usr/local/cuda/bin/nvdisasm"


class NoDisassemblerError(Exception):
    """nvdisasm is not installed."""


def nvdisasm() -> str:
    """Return nvdisasm of PATH, of NVIDIA's wheel or of a toolkit. Raises: NoDisassemblerError."""
    on_path = shutil.which("nvdisasm")
    if on_path:
        return on_path
    try:
        listed = [str(f.locate()) for f in files(WHEEL) or () if f.name == "nvdisasm"]
    except PackageNotFoundError:
        listed = []
    for path in (*listed, TOOLKIT):
        if os.access(path, os.X_OK):
            return path
    raise NoDisassemblerError(f"no nvdisasm on PATH, nor {TOOLKIT}; pip install {WHEEL}")


def instructions(path: Path, architecture: int) -> tuple[int | None, str]:
    """Return a kernel's registers (None where NVRTC does not tell), and its instructions as text.

    Args:
        path: the CUDA C file.
        architecture: the compute capability, such as 80.

    Raises:
        NoDisassemblerError: nvdisasm is not installed.
        RuntimeError: nvdisasm fails.
    """
    text = f"{cubins.CUDA.preamble}\n{path.read_text()}"
    options = (f"--gpu-architecture=sm_{architecture}", *cubins.OPTIONS)
    image = cubins.nvrtc().compile(text, options)
    return image.registers, disassembled(image.code)


def disassembled(code: bytes) -> str:
    """Return the instructions in a cubin as text.

    Raises:
        NoDisassemblerError: nvdisasm is not installed.
        RuntimeError: nvdisasm fails.
    """
    with NamedTemporaryFile(suffix=".cubin") as file:
        file.write(code)
        file.flush()
        done = subprocess.run((nvdisasm(), "-c", file.name), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"nvdisasm: {done.stderr.strip()}")
    return done.stdout


def table_line(path: Path, architecture: int) -> str:
    """Return the instruction counts of a kernel as a line of the table."""
    registers, text = instructions(path, architecture)
    counts = [f"{count(text, word)} {word}" for word in (*COUNTED, *LOCAL)]
    name = path.relative_to(cubins.GOLDEN).with_suffix("")
    return f"sm_{architecture} {name}: {registers} registers, {', '.join(counts)}"


def count(text: str, word: str) -> int:
    """Return how many instructions in ``text`` have the name and modifiers of ``word``.

    Other modifiers may stand between or follow.

    >>> text = "LDG.E R1 ; LDG.E.NA.128.CONSTANT R4 ; LDGSTS.E R2 ;"
    >>> count(text, "LDG"), count(text, "LDG.E.128")
    (2, 1)
    """
    pattern = r"(?:\.\w+)*\.".join(map(re.escape, word.split(".")))
    return len(re.findall(rf"\b{pattern}(?=[.\s])", text))


def table_lines(architectures: Iterable[int], paths: Iterable[Path]) -> list[str]:
    """Return lines of the table for some architectures and kernels."""
    jobs = [(p, a) for a in architectures for p in paths]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return list(pool.map(lambda job: table_line(*job), jobs))


def numbers(line: str) -> dict[str, float]:
    """Return the numbers of a line of the table by their names.

    >>> numbers("sm_90 gelu: 31 registers, 1 LDG.E.128, 0 LDL")
    {'registers': 31, 'LDG.E.128': 1, 'LDL': 0}
    """
    pairs = (x.split(" ", 1) for x in line.partition(": ")[2].split(", "))
    return {word: float(n) if "." in n else int(n) for n, word in pairs}


def differing_lines(measured: Iterable[str]) -> list[str]:
    """Return the ``measured`` lines that use local memory, lost wide accesses, or differ.

    The last counts only where the compiler has the version in the table.
    """
    version, *entries = TABLE.read_text().splitlines()
    same = version == str(cubins.nvrtc())
    before = {x.partition(": ")[0]: numbers(x) for x in entries}

    def wrong(line: str) -> bool:
        own, old = numbers(line), before.get(line.partition(": ")[0], {})
        lost = any(old.get(w, 0) > 0 == own[w] for w in COUNTED[:2])
        return lost or any(own[w] for w in LOCAL) or (same and line not in entries)

    return [x for x in measured if wrong(x)]


def main() -> int:
    """Compare with the table, or write it."""
    own = cubins.golden_kernels()
    return cubins.run_table_command(
        __doc__, TABLE, lambda: table_lines(ARCHITECTURES, own), differing_lines
    )


if __name__ == "__main__":
    sys.exit(main())
