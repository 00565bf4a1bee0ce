"""CUDA C by g++: the machine once, and kernels many at a time."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from passkit.dialects import CUDA

HERE = Path(__file__).parent
MANY = 200  # kernels in a translation unit
FLAGS = (
    # Threads change stacks, which a hardened longjmp takes for a fault.
    "-U_FORTIFY_SOURCE",
    "-std=c++20",
    "-O0",
    "-fPIC",
    "-w",
    "-fno-strict-aliasing",
    "-ffp-contract=off",
    "-fno-extern-tls-init",
    "-fsanitize=thread,bounds",
    "-fsanitize=shift,integer-divide-by-zero,signed-integer-overflow",
    "--param=tsan-instrument-func-entry-exit=0",
    "--param=tsan-distinguish-volatile=1",
)


class Folder:
    """Where compilers work, and what they leave stays as long as the process."""

    def __init__(self) -> None:
        self.held = tempfile.TemporaryDirectory(prefix="emulator-")
        self.path, self.count = Path(self.held.name), 0

    def new(self) -> Path:
        """A file's stem that is not taken."""
        self.count += 1
        return self.path / f"unit{self.count}"


@cache
def folder() -> Folder:
    """The one of this process."""
    return Folder()


def run(*command: str) -> None:
    """Run a compiler. Raises: AssertionError with what it says."""
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:4000]


@cache
def machine() -> Any:
    """The library that runs kernels; its symbols are there for what is loaded later."""
    path = folder().new().with_suffix(".so")
    command = ("g++", "-U_FORTIFY_SOURCE", "-std=c++20", "-O2", "-fPIC", "-shared", "-o", str(path))
    run(*command, str(HERE / "machine.cpp"))
    return ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)


def compiled(texts: Mapping[str, str]) -> dict[str, Any]:
    """Libraries of kernels by name, from the texts of each. Raises: AssertionError."""
    machine()
    names, libraries = list(texts), {}
    for k in range(0, len(names), MANY):
        unit = names[k : k + MANY]
        library = _library({n: texts[n] for n in unit})
        libraries.update(dict.fromkeys(unit, library))
    return libraries


def _library(texts: Mapping[str, str]) -> Any:
    stem = folder().new()
    source, made, shared = (str(stem.with_suffix(s)) for s in (".cpp", ".o", ".so"))
    Path(source).write_text(unit_text(texts.items()))
    run("g++", *FLAGS, "-c", f"-I{HERE}", "-o", made, source)
    run("g++", "-shared", "-o", shared, made)
    return ctypes.CDLL(shared)


def unit_text(texts: Iterable[tuple[str, str]]) -> str:
    """A translation unit: what CUDA has, the preamble, then kernels and what calls each."""
    parts = ['#include "cuda.h"\n#line 1 "preamble"\n', CUDA.preamble]
    for name, text in texts:
        parts.append(f'#line 1 "{name}"\n{text}')
        parts.append(f'extern "C" void run_{name}(void **a) {{ emulated::call({name}, a); }}\n')
    return "".join(parts)
