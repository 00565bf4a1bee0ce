"""Compilation by g++: the emulator once, and kernels many at a time."""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from passkit.dialects import CUDA
from tests import workers
from tests.libraries import library

HERE = Path(__file__).parent
PREAMBLE = CUDA.preamble
"""The functions that generated CUDA kernels may call."""
_INLINE = PREAMBLE.replace("static __device__", "static inline __device__")
HEADER = f'#include "cuda.h"\n#line 1 "preamble"\n{_INLINE}'
"""The header of all units. At -O0 g++ writes functions that are not inline into each unit."""
MAX_KERNELS = 200
"""The most kernels in a translation unit."""
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
LINKED = ("-shared", "-nostdlib", "-fno-use-linker-plugin", "-lgcc")
"""Options of the linker: the process has loaded the other libraries with the machine."""


class Folder:
    """A temporary folder for compilers, which exists as long as the process."""

    def __init__(self) -> None:
        self.held = tempfile.TemporaryDirectory(prefix="emulator-")
        self.path, self.count = Path(self.held.name), 0

    def new(self) -> Path:
        """Return an unused path without a suffix."""
        self.count += 1
        return self.path / f"unit{self.count}"


@cache
def folder() -> Folder:
    """Return the folder of this process."""
    return Folder()


def shared_folder() -> Path:
    """Return the folder that processes share; this process' own if there is none."""
    if workers.SHARED not in os.environ:
        workers.share(folder().path)
    return workers.folder()


def run(*command: str) -> None:
    """Run a compiler. Raises: AssertionError with its messages."""
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:4000]


@cache
def machine() -> Any:
    """Return the emulator's library; libraries of kernels that are loaded later use its symbols.

    Processes that share a folder compile it once.
    """
    options = ("-U_FORTIFY_SOURCE", "-std=c++20", "-O2", "-fPIC", "-shared")
    shared_folder()
    shared = library(options, HERE / "machine.cpp")
    return ctypes.CDLL(shared._name, mode=ctypes.RTLD_GLOBAL)


def compiled(texts: Mapping[str, str]) -> dict[str, Any]:
    """Compile kernels, given by name; return the library of each. Raises: AssertionError."""
    machine()
    names, libraries = list(texts), {}
    for k in range(0, len(names), MAX_KERNELS):
        unit = names[k : k + MAX_KERNELS]
        library = _library({n: texts[n] for n in unit})
        libraries.update(dict.fromkeys(unit, library))
    return libraries


def _library(texts: Mapping[str, str]) -> Any:
    return _shared_library(kernels_text(texts.items()), "-include", str(header()))


def _shared_library(text: str, *flags: str) -> Any:
    source = folder().new().with_suffix(".cpp")
    source.write_text(text)
    shared = str(source.with_suffix(".so"))
    run("g++", *FLAGS, *flags, f"-I{HERE}", "-o", shared, str(source), *LINKED)
    return ctypes.CDLL(shared)


@cache
def header() -> Path:
    """Return the header that all units include: CUDA's built-ins and the preamble.

    It is compiled, which halves the time of a unit; processes that share a folder do it once.
    """
    name = f"cuda-{sha256(HEADER.encode()).hexdigest()[:16]}"
    path = shared_folder() / f"{name}.h"
    with workers.alone(name):
        compiled_header = path.with_suffix(".h.gch")
        if not compiled_header.exists():
            path.write_text(HEADER)
            unfinished = path.with_suffix(".unfinished")
            run("g++", *FLAGS, f"-I{HERE}", "-x", "c++-header", "-o", str(unfinished), str(path))
            unfinished.rename(compiled_header)
    return path


def expanded_text(text: str) -> str:
    """Return a text with headers of its own as C++ after the preprocessor, with CUDA's built-ins.

    ``ON_CPU`` is defined in it. Raises: AssertionError with the compiler's messages.
    """
    source = folder().new().with_suffix(".cpp")
    source.write_text(f'#define ON_CPU\n#include "cuda.h"\n#line 1 "kernel"\n{text}')
    output = source.with_suffix(".ii")
    run("g++", "-std=c++20", "-E", "-P", "-w", f"-I{HERE}", "-o", str(output), str(source))
    return output.read_text()


def compiled_alone(text: str, name: str) -> Any:
    """Compile what `expanded_text` returned; return the library with the kernel ``name``."""
    machine()
    caller = f'extern "C" void run_{name}(void **a) {{ emulated::call({name}, a); }}\n'
    # At -O0 g++ returns structures without the calls that the machine sees.
    return _shared_library(f"{text}\n{caller}", "-O1")


def kernels_text(texts: Iterable[tuple[str, str]]) -> str:
    """Return a translation unit but for its header: kernels, and a caller of each."""
    parts = []
    for name, text in texts:
        parts.append(f'#line 1 "{name}"\n{text}')
        parts.append(f'extern "C" void run_{name}(void **a) {{ emulated::call({name}, a); }}\n')
    return "".join(parts)
