"""Time the prelude's functions in L1, in nanoseconds per element, beside glibc's libmvec.

python benchmarks/vector_functions.py [--flags="-mno-avx512f"]
python benchmarks/vector_functions.py --target cuda   # as benchmarks/cuda_functions.py
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path

import numpy as np

PRELUDE = Path(__file__).parents[1] / "passkit" / "dialects"
FLAGS = ["-O3", "-march=native", "-std=c++17", "-fno-math-errno", "-fno-trapping-math"]
FLAGS += ["-ffp-contract=off", "-mprefer-vector-width=512", "-shared", "-fPIC", "-fno-exceptions"]
FLAGS += ["-fno-rtti"]
FUNCTIONS = {
    "exp": (-9, 9, True),
    "exp2": (-9, 9, True),
    "expm1": (-9, 9, True),
    "log": (0.01, 9, True),
    "log2": (0.01, 9, True),
    "log10": (0.01, 9, True),
    "log1p": (0.01, 9, True),
    "sin": (-9, 9, True),
    "cos": (-9, 9, True),
    "tan": (-9, 9, True),
    "tanh": (-4, 4, True),
    "sigmoid": (-9, 9, False),
    "erf": (-3, 3, True),
    "erfc": (-3, 5, True),
    "sinh": (-5, 5, True),
    "cosh": (-5, 5, True),
    "asin": (-1, 1, True),
    "acos": (-1, 1, True),
    "atan": (-5, 5, True),
    "asinh": (-5, 5, True),
    "acosh": (1, 9, True),
    "atanh": (-1, 1, True),
    "sqrt": (0, 9, False),
    "rsqrt": (0.1, 9, False),
    "rint": (-9, 9, False),
    "pow": (0.1, 9, True),
    "atan2": (-5, 5, True),
}
"""By name: the least and greatest argument timed, and whether libmvec has the function."""
PAIRS = ("pow", "atan2")
COUNT = {"float": 2048, "double": 1024}
SOURCE = """
#include "prelude.h"
#include <time.h>
using namespace pk;
template <class F> static double best(int64_t n, F body) {
    double least = 1e9;
    for (int round = 0; round < 200; round++) {
        timespec a, b;
        clock_gettime(CLOCK_MONOTONIC, &a);
        for (int k = 0; k < 8; k++) { body(); asm volatile("" ::: "memory"); }
        clock_gettime(CLOCK_MONOTONIC, &b);
        double t = (b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec);
        if (t < least) least = t;
    }
    return least / 8 / n;
}
"""
OURS = """
static __attribute__((noinline))
void loop_{name}_{real}(const {real} *x, const {real} *z, {real} *y, int64_t n) {{
    lanes(0, n, [&](int64_t i, auto m) PK_INLINE {{ store(y + i, {name}({arguments}), m); }});
}}
extern "C" double time_{name}_{real}(const {real} *x, const {real} *z, {real} *y, int64_t n) {{
    return best(n, [&] {{ loop_{name}_{real}(x, z, y, n); }});
}}
"""
LIBMVEC = """
typedef {real} V_{name}_{real} __attribute__((vector_size({bytes}), aligned(4)));
extern "C" V_{name}_{real} {symbol}({parameters});
static __attribute__((noinline))
void mvec_{name}_{real}(const {real} *x, const {real} *z, {real} *y, int64_t n) {{
    typedef V_{name}_{real} V;
    for (int64_t i = 0; i < n; i += {bytes} / sizeof({real}))
        *(V *)(y + i) = {symbol}({arguments});
}}
extern "C" double mvec_time_{name}_{real}(const {real} *x, const {real} *z, {real} *y, int64_t n) {{
    return best(n, [&] {{ mvec_{name}_{real}(x, z, y, n); }});
}}
"""


def source(nbytes: int) -> str:
    """Return the C++ source that times every function.

    Args:
        nbytes: the width of libmvec's vectors.
    """
    text = SOURCE
    for name, (_, _, in_libmvec) in FUNCTIONS.items():
        for real, size in (("float", 4), ("double", 8)):
            pair = name in PAIRS
            arguments = "load(x + i, m), load(z + i, m)" if pair else "load(x + i, m)"
            text += OURS.format(name=name, real=real, arguments=arguments)
            if in_libmvec:
                kind, width = "e" if nbytes == 64 else "d", nbytes // size
                symbol = f"_ZGV{kind}N{width}{'vv' if pair else 'v'}_{name}{'f' * (size == 4)}"
                vector = f"V_{name}_{real}"
                text += LIBMVEC.format(
                    name=name,
                    real=real,
                    bytes=nbytes,
                    symbol=symbol,
                    parameters=f"{vector}, {vector}" if pair else vector,
                    arguments="*(V *)(x + i), *(V *)(z + i)" if pair else "*(V *)(x + i)",
                )
    return text


def main() -> None:
    """Compile, time and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flags", default="", help="more compiler flags, such as -mno-avx512f")
    parser.add_argument("--target", default="cpu", choices=("cpu", "cuda"))
    options = parser.parse_args()
    if options.target == "cuda":
        sys.argv[1:] = []
        sys.exit(import_module("cuda_functions").main())
    extra = options.flags.split()
    wide = "avx512dq" in Path("/proc/cpuinfo").read_text() and "-mno-avx512f" not in extra
    with tempfile.TemporaryDirectory() as folder:
        text, out = Path(folder) / "functions.cpp", Path(folder) / "functions.so"
        text.write_text(source(64 if wide else 32))
        command = [*FLAGS, *extra, f"-I{PRELUDE}", str(text), "-o", str(out), "-lmvec", "-lm"]
        subprocess.run(["g++", *command], check=True)
        library = ctypes.CDLL(str(out))
    rng = np.random.default_rng(0)
    print(f"{'ns per element':16}{'float32':>9}{'libmvec':>9}{'float64':>9}{'libmvec':>9}")
    for name, (low, high, in_libmvec) in FUNCTIONS.items():
        row = f"{name:16}"
        for real, dtype in (("float", np.float32), ("double", np.float64)):
            n = COUNT[real]
            arrays = rng.uniform(low, high, (3, n)).astype(dtype)
            pointers = [ctypes.c_void_p(a.ctypes.data) for a in arrays]
            for prefix in ("", "mvec_"):
                if prefix and not in_libmvec:
                    row += f"{'-':>9}"
                    continue
                timed = getattr(library, f"{prefix}time_{name}_{real}")
                timed.restype = ctypes.c_double
                row += f"{timed(*pointers, ctypes.c_int64(n)):9.3f}"
        print(row)


if __name__ == "__main__":
    main()
