"""BLAS libraries: the addresses of the functions that the built-in gemm kernels call."""

from __future__ import annotations

from collections.abc import Iterator
from ctypes import CDLL, c_int
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from attrs import frozen

from passkit.runtime.native.shared_objects import SharedObject


@frozen
class Blas:
    """The functions of a BLAS library.

    Attributes:
        name: the file name of the library, for reports.
        sgemm: the address of cblas_sgemm, which is buf[0] of the kernel "gemm_f32".
        dgemm: the address of cblas_dgemm, which is buf[0] of the kernel "gemm_f64".
        ilp64: 1 where the functions take 64-bit integers, else 0; the kind in ``gemm.h``.
        sgemv: the address of cblas_sgemv, 0 if there is none.
        dgemv: the address of cblas_dgemv, 0 if there is none.
    """

    name: str
    sgemm: int
    dgemm: int
    ilp64: int
    sgemv: int = 0
    dgemv: int = 0


NO_BLAS = Blas("the launcher's own loops", 0, 0, 0)
"""Products without a library: correct, and slow."""


@cache
def blas() -> Blas:
    """Return OpenBLAS of scipy-openblas32, set to one thread; else NumPy's own; else `NO_BLAS`.

    It is loaded once; NumPy's own keeps its number of threads. Raises: CompilerError, CacheError or
    SettingError where the launcher, which loads libraries, cannot be compiled or loaded.
    """
    for path, ilp64 in _candidates():
        try:
            library = load_openblas(path, ilp64)
        except (OSError, LookupError):
            continue
        if not ilp64:  # passkit's threads share the rows; NumPy's own library stays as it is
            CDLL(str(path)).scipy_openblas_set_num_threads(c_int(1))
        return library
    return NO_BLAS


def load_openblas(path: Path, ilp64: int) -> Blas:
    """Load an OpenBLAS of the SciPy project.

    Args:
        path: the shared object.
        ilp64: 1 where its functions take 64-bit integers, else 0.

    Raises:
        OSError: The file cannot be loaded.
        LookupError: It lacks the functions.
        CompilerError: The launcher, which loads it, cannot be compiled.
        CacheError: The launcher is not loaded yet, and others can write to the cache folder.
        SettingError: The launcher is not loaded yet, and PASSKIT_THREADS is no number of threads.
    """
    openblas, suffix = SharedObject(str(path)), "64_" if ilp64 else ""
    sgemm, dgemm, sgemv, dgemv = (
        openblas.address(f"scipy_cblas_{name}{suffix}")
        for name in ("sgemm", "dgemm", "sgemv", "dgemv")
    )
    return Blas(path.name, sgemm, dgemm, ilp64, sgemv, dgemv)


def _candidates() -> Iterator[tuple[Path, int]]:
    """Yield the path and the ``ilp64`` of each installed library, best first, without imports."""
    spec = find_spec("scipy_openblas32")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for path in sorted(Path(folder, "lib").glob("libscipy_openblas*.so*")):
            yield path, 0
    numpy = Path(np.__file__).parent
    for path in sorted(Path(f"{numpy}.libs").glob("libscipy_openblas64*.so*")):
        yield path, 1
