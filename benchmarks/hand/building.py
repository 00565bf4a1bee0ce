"""Shared libraries of C++ for benchmarks."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from pathlib import Path

FLAGS = ("-O3", "-march=native", "-ffast-math", "-fno-finite-math-only", "-fopenmp", "-fPIC")


def build_library(source: Path) -> ctypes.CDLL:
    """Compile a file of C++ with all optimizations for this CPU, and load it.

    It is linked apart: with -ffast-math, the linker adds a start-up file by which denormal numbers
    are zeros in the entire process. Raises: CalledProcessError where the compiler fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        compiled, library = Path(folder) / "hand.o", Path(folder) / "hand.so"
        subprocess.run(["g++", *FLAGS, "-c", source, "-o", compiled], check=True)
        subprocess.run(["g++", "-shared", "-fopenmp", compiled, "-o", library], check=True)
        return ctypes.CDLL(str(library))
