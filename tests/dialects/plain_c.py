"""A dialect for tests: plain C, one thread, no vectors; and functions that run its kernels."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

from passkit.dialects import Dialect, register_dialect

BASE = "for (int64_t {var} = {start}; {var} < {stop}; ++{var})"
PLAIN = register_dialect(
    Dialect(
        name="plain_c",
        kernel="void {name}({params})",
        buffer="{const}{type} *{name}",
        size="int64_t {name}",
        scratch="static {type} {name}[1 << 20];",
        grid=BASE,
        lane=BASE,
        fold="{type} {name} = {acc};",
        bits="bits_{short}({bits})",
        calls={
            "exp/float32": "expf",
            "maximum": "fmax",
            "erf/float32": "erff",
            "rsqrt": "rsqrt",
            "fma/float32": "fmaf",
        },
    )
)

HEAD = """#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
static float bits_f32(uint32_t x) { float y; memcpy(&y, &x, 4); return y; }
static double bits_f64(uint64_t x) { double y; memcpy(&y, &x, 8); return y; }
static float rsqrt(float x) { return 1 / sqrtf(x); }
static int64_t cut_divide(int64_t a, int64_t b) { return b == 0 ? 0 : b == -1 ? -a : a / b; }
#define fmod(a, b) _Generic((a), double: (fmod)(a, b), default: cut_rest(a, b))
static int64_t cut_rest(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }
"""


def compiled(text: str, folder: Path) -> ctypes.CDLL:
    """Return the functions of a C text as a library."""
    stem = folder / f"plain{len(list(folder.iterdir()))}"  # a library is loaded once a path
    source, library = stem.with_suffix(".c"), stem.with_suffix(".so")
    source.write_text(HEAD + text)
    command = [
        "gcc",
        "-O1",
        "-std=gnu11",
        "-ffp-contract=off",
        "-fwrapv",
        "-shared",
        "-fPIC",
        str(source),
        "-o",
        str(library),
        "-lm",
    ]
    subprocess.run(command, check=True, capture_output=True)
    return ctypes.CDLL(str(library))


def call(library: ctypes.CDLL, name: str, arrays: list[Any], sizes: tuple[int, ...] = ()) -> None:
    """Run a kernel on arrays, inputs first, and numbers for its size arguments."""
    pointers = [a.ctypes.data_as(ctypes.c_void_p) for a in arrays]
    getattr(library, name)(*pointers, *map(ctypes.c_int64, sizes))
    assert all(isinstance(a, np.ndarray) for a in arrays)
