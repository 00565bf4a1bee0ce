"""Libraries that tests compile: each once in a run, by the worker that needs it first."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from unittest.mock import patch

from passkit.runtime.native import compiler, units
from tests import workers

QUICK = ("-O0", "-DPK_CALL_FUNCTIONS")
"""Options under which C++ is compiled as it is written, every function called: in a quarter of the
time, to the same bits."""


@contextmanager
def quickly() -> Iterator[None]:
    """Inside, kernels are compiled as they are written, all of them by one process.

    Two fifths of what such a process writes are functions of the sections, which all kernels share;
    workers of a run, or processes of a campaign, keep the other cores busy.
    """
    others = (f for f in compiler.KERNEL_FLAGS if not f.startswith("-O") and f not in QUICK)
    flags = (*QUICK, *others)
    one = patch.multiple(units, MIN_UNIT_LENGTH=1 << 40, MAX_UNIT_KERNELS=1 << 20)
    with patch.object(compiler, "KERNEL_FLAGS", flags), one:
        yield


def library(options: Sequence[str], source: Path | str) -> ctypes.CDLL:
    """Compile a C++ file or text with some options, and load the shared library.

    Raises: CalledProcessError when the compiler refuses it.
    """
    text = source if isinstance(source, str) else str(source)
    name = sha256("\0".join([*options, text]).encode()).hexdigest()[:16]
    out = workers.folder() / f"{name}.so"
    with workers.alone(name):
        if not out.exists():
            if isinstance(source, str):
                source = out.with_suffix(".cpp")
                source.write_text(text)
            compiled = out.with_suffix(".made")
            subprocess.run(["g++", *options, str(source), "-o", str(compiled)], check=True)
            compiled.rename(out)
    return ctypes.CDLL(str(out))


def libraries(jobs: Iterable[tuple[Sequence[str], Path | str]]) -> list[ctypes.CDLL]:
    """The same of each, two at a time."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda job: library(*job), jobs))
