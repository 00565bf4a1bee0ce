"""Matrix products of a BLAS library: the addresses that the built-in gemm kernels call."""

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
    """The functions of a library; ``ilp64`` is 1 where they take 64-bit integers.

    The addresses go to buf[0] of the kernels "gemm_f32" and "gemm_f64", ``ilp64`` to size[14].
    """

    name: str
    sgemm: int
    dgemm: int
    ilp64: int
    sgemv: int = 0
    dgemv: int = 0


NONE = Blas("the launcher's own loops", 0, 0, 0)
"""Products without a library: right, and slow."""


@cache
def blas() -> Blas:
    """OpenBLAS of scipy-openblas32, set to one thread; else NumPy's own; else `NONE`."""
    for library, ilp64 in _libraries():
        try:
            found = load(library, ilp64)
        except (OSError, LookupError):
            continue
        if not ilp64:  # our threads share the rows out; NumPy's own library is left as it is
            CDLL(str(library)).scipy_openblas_set_num_threads(c_int(1))
        return found
    return NONE


def load(library: Path, ilp64: int) -> Blas:
    """The functions of an OpenBLAS of SciPy's making.

    Raises: OSError or LookupError when it is none.
    """
    openblas, suffix = SharedObject(str(library)), "64_" if ilp64 else ""
    sgemm, dgemm, sgemv, dgemv = (
        openblas.address(f"scipy_cblas_{name}{suffix}")
        for name in ("sgemm", "dgemm", "sgemv", "dgemv")
    )
    return Blas(library.name, sgemm, dgemm, ilp64, sgemv, dgemv)


def _libraries() -> Iterator[tuple[Path, int]]:
    """Candidates, best first, found without importing their packages."""
    spec = find_spec("scipy_openblas32")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for path in sorted(Path(folder, "lib").glob("libscipy_openblas*.so*")):
            yield path, 0
    numpy = Path(np.__file__).parent
    for path in sorted(Path(f"{numpy}.libs").glob("libscipy_openblas64*.so*")):
        yield path, 1
