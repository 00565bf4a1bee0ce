"""The C++ prelude: accuracy, special values, equal bits, memory, conversion, division."""

from __future__ import annotations

import ctypes
import itertools
import math
import mmap
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.ir.reciprocal import reciprocal
from tests.libraries import QUICK, libraries

PRELUDE = Path(__file__).parents[2] / "passkit" / "dialects"
CHECKER = Path(__file__).with_name("prelude_checker.cpp")
FLAGS = ["-std=c++17", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-fPIC"]
FLAGS += ["-fno-exceptions", "-fno-rtti", "-mprefer-vector-width=512", "-shared"]
FLAGS += ["-Wall", "-Wextra", "-Werror"]
X86 = platform.machine() == "x86_64"
MACHINES = {
    "native": ["-march=native"],
    "avx2": ["-march=native", "-mno-avx512f"],
    "sse": ["-march=native", "-mno-avx512f", "-mno-avx2", "-DPK_CHECK_PLAIN"],
    "x86-64": ["-march=x86-64", "-DPK_CHECK_PLAIN"],
}
PARTS = {
    "native": ["float", "double", "core", "convert"],
    "avx2": ["float", "double", "core", "convert"],
    "sse": ["float", "double", "core"],
    "x86-64": ["float"],
}
WIDE = X86 and "avx512f" in Path("/proc/cpuinfo").read_text()
OTHERS = [*(["avx2"] if WIDE else []), *(["sse", "x86-64"] if X86 else [])]
INTEGERS = [f"{sign}int{width}" for sign in ("", "u") for width in (8, 16, 32, 64)]
FLOATS = ["float32", "float64"]
C_NAME = {"float32": "float", "float64": "double"}

Array = np.ndarray[Any, Any]


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), accurate in both tails."""
    e = np.exp(-np.abs(x))
    value: Array = np.where(x < 0, e, 1) / (1 + e)
    return value


def elementwise(f: Any) -> Any:
    """Return the array function that applies f to each element as a Python float."""
    return lambda x: np.array([f(float(v)) for v in x], np.float64)


# name: (the true function of a longdouble array, most ulp in float32, most ulp in float64)
FUNCTIONS: dict[str, tuple[Any, float, float]] = {
    "exp": (np.exp, 1.8, 1.5),
    "exp2": (np.exp2, 1, 1.5),
    "expm1": (np.expm1, 2, 3),
    "log": (np.log, 2, 1.5),
    "log2": (np.log2, 2, 2),
    "log10": (np.log10, 2, 2),
    "log1p": (np.log1p, 2, 1.5),
    "sin": (np.sin, 2.5, 2.5),
    "cos": (np.cos, 2.5, 2.5),
    "tan": (np.tan, 4, 2),
    "tanh": (np.tanh, 3, 3),
    "sigmoid": (sigmoid, 3, 3),
    "erf": (elementwise(math.erf), 3, 4),
    "erfc": (elementwise(math.erfc), 3, 4),
    "sinh": (np.sinh, 2.5, 2.5),
    "cosh": (np.cosh, 2.5, 2.5),
    "asin": (np.arcsin, 3, 2),
    "acos": (np.arccos, 3, 2),
    "atan": (np.arctan, 3, 2),
    "asinh": (np.arcsinh, 3, 2),
    "acosh": (np.arccosh, 3, 2),
    "atanh": (np.arctanh, 3, 2),
    "sqrt": (np.sqrt, 0.5, 0.5),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1.5, 1.5),
    "abs": (np.abs, 0, 0),
    "floor": (np.floor, 0, 0),
    "ceil": (np.ceil, 0, 0),
    "trunc": (np.trunc, 0, 0),
    "rint": (np.rint, 0, 0),
}
PAIR_FUNCTIONS: dict[str, tuple[Any, float, float]] = {
    "pow": (np.power, 1, 1.5),
    "atan2": (np.arctan2, 3, 2),
    "maximum": (np.maximum, 0, 0),
    "minimum": (np.minimum, 0, 0),
    "copysign": (np.copysign, 0, 0),
}
SPECIAL = [0, 1, 0.5, 1.5, 2, 2.5, 3, math.inf, math.nan, 1e-45, 1.1754942e-38, 3.4e38, 88.7, 88.8]
SPECIAL += [87.5, 103.9, 104, 9.01, 9.02, 3.87, 3.93, 10.05, 10.2, 2**17, 2**17 + 1, 1e10, 1e30]
SPECIAL += [709.78, 709.79, 745.1, 745.2, 5e-324, 2.2e-308, 1.7e308, 2**24 - 1, 2**24, 2**53]

pytestmark = [
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++"),
]


class Checker:
    """Return the loops of prelude_checker.cpp, compiled for one machine."""

    def __init__(self, libraries: list[ctypes.CDLL]) -> None:
        self.libraries = libraries

    def function(self, name: str) -> Any:
        """The exported function of that name."""
        return next(getattr(lib, name) for lib in self.libraries if hasattr(lib, name))

    def __call__(self, name: str, *arrays: Array, out: Any = None, extra: Any = ()) -> Array:
        """``name(arrays..., y, n, extra...)`` where y has the type ``out`` or that of the first."""
        copies = arrays[0].size
        y = np.empty(copies, arrays[0].dtype) if out is None else out
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in (*arrays, y)]
        self.function(name)(*pointers, ctypes.c_int64(copies), *extra)
        return y


def options(request: pytest.FixtureRequest, machine: str) -> list[str]:
    """Return the compiler options of a machine; with --every-dtype those of users' kernels."""
    level = ["-O3"] if request.config.getoption("--every-dtype") else QUICK
    return [*FLAGS, *MACHINES[machine], *level, f"-I{PRELUDE}"]


@pytest.fixture(scope="module")
def checkers(request: pytest.FixtureRequest) -> dict[str, Checker]:
    """Return a checker for each machine of the prelude, compiled in parallel."""
    jobs = [(m, p) for m in ["native", *OTHERS] for p in PARTS[m]]
    built = libraries(
        ([*options(request, m), f"-DPK_CHECK_{part.upper()}"], CHECKER) for m, part in jobs
    )
    return {
        machine: Checker([lib for (m, _), lib in zip(jobs, built, strict=True) if m == machine])
        for machine in ["native", *OTHERS]
    }


@pytest.fixture(scope="module")
def native(checkers: dict[str, Checker]) -> Checker:
    """Return the checker compiled for this machine."""
    return checkers["native"]


def samples(dtype: str, count: int) -> Array:
    """Return numbers of every exponent, about 1, near multiples of pi / 2, and special ones."""
    rng = np.random.default_rng(0)
    width = np.dtype(dtype).itemsize * 8
    patterns = rng.integers(0, 2**width, count, np.uint64).astype(f"u{width // 8}").view(dtype)
    plain = [rng.normal(0, s, count // 4) for s in (0.3, 3, 30, 1e4)]
    near = [1 + rng.normal(0, 1e-3, count // 8), np.arange(1, count // 8) * (math.pi / 2)]
    special = np.array(SPECIAL)
    with np.errstate(over="ignore"):
        return np.concatenate([patterns, *plain, *near, special, -special]).astype(dtype)


def ulps(got: Array, true: Array) -> Array:
    """Return the error of ``got`` in units in the last place of the true value."""
    dtype = got.dtype.type
    border = np.ldexp(np.longdouble(1), np.finfo(dtype).maxexp)
    rounded = true.astype(dtype)
    unit = np.spacing(np.minimum(np.abs(rounded), np.finfo(dtype).max)).astype(np.longdouble)
    value = np.where(np.isinf(got), np.copysign(border, got), got.astype(np.longdouble))
    error = np.abs(value - true) / unit
    right = (got == rounded) & ((got != 0) | (np.signbit(got) == np.signbit(rounded)))
    exact = right & ~(np.isfinite(rounded) & (got != 0)) | (np.isnan(got) & np.isnan(rounded))
    wrong = (np.isnan(got) != np.isnan(rounded)) | (np.isinf(true) & ~right)
    wrong |= (got == 0) & (rounded == 0) & ~right
    return np.where(exact, 0, np.where(wrong, np.inf, error))


def same_bits(a: Array, b: Array) -> bool:
    """Return whether all bits are equal; all NaN count as equal."""
    nan = (a != a) & (b != b)
    unsigned = f"u{a.dtype.itemsize}"
    return bool((nan | (a.view(unsigned) == b.view(unsigned))).all())


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_accurate(native: Checker, name: str, dtype: str) -> None:
    """Every function stays within its bound, also at zeros, infinities, NaN and denormals."""
    true, most32, most64 = FUNCTIONS[name]
    x = samples(dtype, 20_000 if name in ("erf", "erfc") else 100_000)

    error = ulps(native(f"{name}_{C_NAME[dtype]}", x), true(x.astype(np.longdouble)))

    worst = np.argmax(error)
    assert error[worst] <= (most32 if dtype == "float32" else most64), f"{name}({x[worst]!r})"


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", PAIR_FUNCTIONS)
def test_pair_functions_are_accurate(native: Checker, name: str, dtype: str) -> None:
    """Functions of two numbers stay within their bounds for all pairs of special values."""
    true, most32, most64 = PAIR_FUNCTIONS[name]
    rng = np.random.default_rng(1)
    special = np.array([*SPECIAL, *(-v for v in SPECIAL)])
    bases = [np.exp(rng.normal(0, 8, 40_000)), 1 + rng.normal(0, 1e-3, 20_000), -np.arange(1e4)]
    powers = [rng.normal(0, 5, 40_000), rng.normal(0, 1e4, 20_000), rng.integers(-9, 9, 10_000)]
    x = np.concatenate([np.repeat(special, special.size), *bases]).astype(dtype)
    y = np.concatenate([np.tile(special, special.size), *powers]).astype(dtype)

    wide = np.longdouble if most32 else dtype
    reference = true(x.astype(wide), y.astype(wide))
    error = ulps(native(f"{name}_{C_NAME[dtype]}", x, y), reference)

    worst = np.argmax(error)
    assert error[worst] <= (most32 if dtype == "float32" else most64), f"{x[worst]!r} {y[worst]!r}"


@pytest.mark.parametrize("machine", OTHERS)
def test_bits_agree_between_instruction_sets(checkers: dict[str, Checker], machine: str) -> None:
    """Every function gives the same bits with 512-bit, 256-bit and 128-bit vectors, fma or not."""
    for dtype in FLOATS if "double" in PARTS[machine] else FLOATS[:1]:
        x = samples(dtype, 8_000)
        y = np.roll(x, 7)
        for name in [*FUNCTIONS, *PAIR_FUNCTIONS]:
            full = f"{name}_{C_NAME[dtype]}"
            arguments = (x, y) if name in PAIR_FUNCTIONS else (x,)
            here, there = (checkers[m](full, *arguments) for m in ("native", machine))
            assert same_bits(here, there), full
            if name in FUNCTIONS and "-DPK_CHECK_PLAIN" not in MACHINES[machine]:
                packs = (checkers[m](f"{full}_packs", x[:999]) for m in ("native", machine))
                assert all(same_bits(p, here[:999]) for p in packs), full


@pytest.mark.parametrize("machine", ["native", *OTHERS])
def test_bits_do_not_depend_on_position_or_length(
    checkers: dict[str, Checker], machine: str
) -> None:
    """A value does not depend on its position in a vector, on masks, or on the offset."""
    rng = np.random.default_rng(2)
    check = checkers[machine]
    for dtype in FLOATS if "double" in PARTS[machine] else FLOATS[:1]:
        x = np.concatenate([rng.normal(0, 3, 60), [math.inf, -0.0, math.nan, 1e-40, 1e30, -7e5, 9]])
        x = x.astype(dtype)
        for name in FUNCTIONS:
            full = f"{name}_{C_NAME[dtype]}"
            whole = check(full, x)
            for offset, length in itertools.product(range(0, 18), range(0, 50, 7)):
                out = np.full(length + 1, 77, dtype)
                part = x[offset : offset + length]
                check(full, part, out=out)
                assert same_bits(out[:-1], whole[offset : offset + length]), (full, offset, length)
                assert out[-1] == 77, f"{full} writes behind its end"


@pytest.mark.parametrize("dtype", FLOATS)
def test_scalars_have_the_bits_of_vectors(native: Checker, dtype: str) -> None:
    """A function of a scalar has the bits of the function of vectors."""
    x = samples(dtype, 80)
    real = np.ctypeslib.as_ctypes_type(np.dtype(dtype))
    for name in FUNCTIONS:
        scalar = native.function(f"{name}_{C_NAME[dtype]}_scalar")
        scalar.restype, scalar.argtypes = real, [real]
        alone = np.array([scalar(v) for v in x.tolist()], dtype)
        assert same_bits(alone, native(f"{name}_{C_NAME[dtype]}", x)), name


def whole_numbers(dtype: str, count: int) -> tuple[Array, Array]:
    """Return two arrays of integers with limits and zero, or of floats with special values."""
    rng = np.random.default_rng(3)
    if dtype.startswith("float"):
        edge = np.array([*SPECIAL, *(-v for v in SPECIAL)])
        x, y = rng.normal(0, 50, count), np.rint(rng.normal(0, 3, count))
    else:
        limits = np.iinfo(dtype)
        edge = np.array([limits.min, limits.max, 0, 1, limits.max - 1], dtype)
        x = rng.integers(limits.min, limits.max, count, dtype, endpoint=True)
        y = rng.integers(0, 7, count).astype(dtype) - np.array(3).astype(dtype)
    a = np.concatenate([np.repeat(edge, edge.size), x]).astype(dtype)
    b = np.concatenate([np.tile(edge, edge.size), y]).astype(dtype)
    return a, b


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
@pytest.mark.parametrize("machine", [m for m in ["native", *OTHERS] if "core" in PARTS[m]])
def test_arithmetic_is_numpys(checkers: dict[str, Checker], machine: str, dtype: str) -> None:
    """+ - * wrap, division floors, maximum and minimum keep NaN, comparisons: as in NumPy."""
    a, b = whole_numbers(dtype, 1001)
    one, three = a.dtype.type(1), a.dtype.type(3)

    got = checkers[machine](f"arithmetic_{dtype}", a, b, out=np.empty((11, a.size), dtype))
    with np.errstate(all="ignore"):
        want = [a + b, a - b, a * b, -a, np.maximum(a, b), np.minimum(a, b), np.abs(a)]
        want += [np.where(a < b, a, b), a // b, a % b, a * three + one]
    truth = checkers[machine](f"compare_{dtype}", a, b, out=np.empty((7, a.size), bool))

    for row, (g, w) in enumerate(zip(got, want, strict=True)):
        assert same_bits(g, w.astype(dtype)), f"row {row}"
    assert (truth == [a < b, a <= b, a > b, a >= b, a == b, a != b, (a < b) | (b < a)]).all()


@pytest.mark.parametrize("machine", [m for m in ["native", *OTHERS] if "core" in PARTS[m]])
def test_bit_operations_are_numpys(checkers: dict[str, Checker], machine: str) -> None:
    """& | ^ ~ and shifts; a shift by the width or more leaves zeros or copies of the sign."""
    for dtype in INTEGERS:
        a, b = whole_numbers(dtype, 501)
        b = np.abs(b)
        b[b < 0] = 0
        got = checkers[machine](f"bits_{dtype}", a, b, out=np.empty((6, a.size), dtype))
        want = [a & b, a | b, a ^ b, ~a, np.left_shift(a, b), np.right_shift(a, b)]
        assert (got == np.array(want)).all(), dtype


@pytest.mark.parametrize("machine", [m for m in ["native", *OTHERS] if "core" in PARTS[m]])
def test_masks_and_indices(checkers: dict[str, Checker], machine: str) -> None:
    """Booleans are bytes of 0 and 1; lane_index counts; a reduction of masks sees one true."""
    rng = np.random.default_rng(4)
    check = checkers[machine]
    a, b = rng.integers(0, 2, (2, 77)).astype(bool)

    got = check("masks", a, b, out=np.empty((6, a.size), bool))
    any_true = check.function("any_true")
    any_true.restype = ctypes.c_bool

    assert (got == [a & b, a | b, a ^ b, ~a, np.where(a, b, ~b), a == b]).all()
    assert (got.view(np.uint8) <= 1).all()
    index = np.empty(77, np.int64)
    check.function("indices")(ctypes.c_void_p(index.ctypes.data), ctypes.c_int64(77))
    assert (index == np.arange(77)).all()
    for k in range(40):
        one = np.arange(40) == k
        pointer = ctypes.c_void_p(one.ctypes.data)
        assert any_true(pointer, ctypes.c_int64(40)) and not any_true(pointer, ctypes.c_int64(k))


@pytest.mark.parametrize("machine", [m for m in ["native", *OTHERS] if "core" in PARTS[m]])
def test_sums_strides_and_gathers(checkers: dict[str, Checker], machine: str) -> None:
    """Reductions add every element once; strided loads and gathers load the right ones."""
    rng = np.random.default_rng(5)
    for dtype, n in itertools.product(INTEGERS + FLOATS, (0, 1, 15, 16, 63, 64, 65, 200)):
        x = rng.integers(0, 100, 3 * n + 1).astype(dtype)
        check, index = checkers[machine], rng.integers(0, 3 * n + 1, n)
        total, picked = np.empty(1, dtype), np.empty(n, dtype)
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in (x, index, total, picked)]
        size = ctypes.c_int64(n)
        check.function(f"sum_{dtype}")(pointers[0], pointers[2], size)
        assert total[0] == x[:n].sum(dtype=dtype), (dtype, n)
        check.function(f"strided_{dtype}")(pointers[0], ctypes.c_int64(3), pointers[3], size)
        assert (picked == x[: 3 * n : 3]).all(), (dtype, n)
        thirds = np.empty((2, n), dtype)
        check.function(f"thirds_{dtype}")(pointers[0], ctypes.c_void_p(thirds.ctypes.data), size)
        expected = x[: 3 * n : 3]
        some = np.where(np.arange(n) % 16 % 4, expected, 0)
        assert (thirds == [expected, some]).all(), (dtype, n)
        check.function(f"gather_{dtype}")(pointers[0], pointers[1], pointers[3], size)
        assert (picked == x[index]).all(), (dtype, n)


@pytest.mark.parametrize("machine", [m for m in ["native", *OTHERS] if "core" in PARTS[m]])
def test_columns_of_short_rows(checkers: dict[str, Checker], machine: str) -> None:
    """Each column is loaded as a vector, for whole vectors and for the last one."""
    for dtype, count, n in itertools.product(FLOATS, range(2, 9), (1, 16, 64, 150)):
        x = np.arange(n * count, dtype=dtype)
        loaded = np.empty((count, n), dtype)
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in (x, loaded)]
        columns = checkers[machine].function(f"columns_{dtype}")
        columns(*pointers, ctypes.c_int64(n), ctypes.c_int64(count))
        assert (loaded == x.reshape(n, count).T).all(), (dtype, count, n)


@pytest.mark.parametrize("machine", [m for m in ["native", *OTHERS] if "core" in PARTS[m]])
@pytest.mark.parametrize("dtype", FLOATS)
def test_a_maximum_keeps_nan(checkers: dict[str, Checker], machine: str, dtype: str) -> None:
    """One NaN at any position makes the maximum of a row NaN."""
    for k in range(40):
        x = np.arange(40, dtype=dtype)
        plain = checkers[machine](f"maximum_of_{dtype}", x, out=np.empty(1, dtype))
        x[k] = np.nan
        assert plain[0] == 39
        assert np.isnan(checkers[machine](f"maximum_of_{dtype}", x, out=np.empty(1, dtype)))[0]


@pytest.mark.parametrize("machine", [m for m in ["native", *OTHERS] if "core" in PARTS[m]])
@pytest.mark.parametrize("dtype", FLOATS)
def test_bounds_by_constants_have_the_bits_of_bounds_by_arrays(
    checkers: dict[str, Checker], machine: str, dtype: str
) -> None:
    """maximum and minimum with a constant equal those with an array, NaN and zeros included."""
    x, _ = whole_numbers(dtype, 1001)
    x = np.concatenate([x, np.array([np.nan, -np.nan, 0.0, -0.0, np.inf, -np.inf], dtype)])
    bounds = [0.0, 0.0, -0.0, -0.0, -1.0, 6.0, np.nan, np.inf]

    got = checkers[machine](f"bounds_{dtype}", x, out=np.empty((8, x.size), dtype))

    for k, bound in enumerate(bounds):
        array = np.full_like(x, bound)
        out = np.empty((11, x.size), dtype)
        expected = checkers[machine](f"arithmetic_{dtype}", x, array, out=out)[4 + k % 2]
        assert same_bits(got[k], expected), f"{bound} as a {('lower', 'upper')[k % 2]} bound"


@pytest.mark.parametrize("dtype", FLOATS)
def test_optimized_kernels_keep_nan_and_zeros_at_constant_bounds(dtype: str) -> None:
    """Compiled with a user's flags, maximum and minimum with constants equal the interpreter."""
    values = np.array([np.nan, -np.nan, 0.0, -0.0, 1, -1, 6, 7, np.inf, -np.inf] * 4, dtype)
    x = pk.var("x", values.shape, dtype)
    constants = (0.0, -0.0, 6.0, -1.0)
    graph = pk.Graph(
        [f(x, c) for f in (pk.ops.maximum, pk.ops.minimum) for c in constants]
        + [f(pk.constant(c, dtype), x) for f in (pk.ops.maximum, pk.ops.minimum) for c in constants]
    )

    results = pk.compile(graph)(x=values)

    for got, expected in zip(results, pk.interpret(graph, {"x": values}), strict=True):
        assert same_bits(got, expected)


def saturated(x: Array, dtype: str) -> Array:
    """Return the result of a conversion: saturated for integers, 0 for NaN, else a cast."""
    if x.dtype.kind != "f" or np.dtype(dtype).kind in "fb":
        return x.astype(dtype)
    limits = np.iinfo(dtype)
    low, high = x <= limits.min, x >= float(limits.max)
    inside = np.where(low | high | np.isnan(x), 0, x).astype(dtype)
    return np.where(low, limits.min, np.where(high, limits.max, inside)).astype(dtype)


@pytest.mark.parametrize("machine", [m for m in ["native", *OTHERS] if "convert" in PARTS[m]])
def test_conversions_saturate(checkers: dict[str, Checker], machine: str) -> None:
    """Conversions between all pairs of types; floats saturate and NaN gives 0."""
    rng = np.random.default_rng(6)
    widths, signs = (7, 8, 15, 16, 31, 32, 63, 64), (1, -1)
    edges = [s * (2.0**k + d) for s in signs for k in widths for d in (-1, 0)]
    for source, target in itertools.product([*INTEGERS, *FLOATS, "bool"], repeat=2):
        if source.startswith("float"):
            spread = rng.normal(0, 1, 400) * 10.0 ** rng.integers(-3, 22, 400)
            x = np.concatenate([spread, edges, SPECIAL, [-math.inf, -0.0, 254.9]]).astype(source)
        else:
            x = rng.integers(0, 256, 8 * 101, np.uint8).view(source if source != "bool" else "u1")
            x = x % 2 == 1 if source == "bool" else x
        got = checkers[machine](f"convert_{source}_{target}", x, out=np.empty(x.size, target))
        want = saturated(x, target)
        assert np.array_equal(got, want, equal_nan=target in FLOATS), (source, target)


@pytest.mark.parametrize("machine", ["native", *OTHERS])
def test_an_exponential_of_what_is_never_above_0(
    checkers: dict[str, Checker], machine: str
) -> None:
    """The variant has the bits of exp in vectors and scalars, for NaN and infinity, too."""
    x = samples("float32", 100_000)
    x = x[~(x > 0)]
    exp, checker = checkers["native"]("exp_float", x), checkers[machine]
    scalar = checker.function("exp_nonpositive_float_scalar")
    scalar.restype, scalar.argtypes = ctypes.c_float, [ctypes.c_float]

    assert same_bits(checker("exp_nonpositive_float", x), exp)
    assert same_bits(checker("exp_nonpositive_float_packs", x), exp)
    assert same_bits(np.array([scalar(float(v)) for v in x[::97]], np.float32), exp[::97])


def hard_numerators(s: float, digits: int) -> list[float]:
    """Return numbers whose quotients by s are as close as possible to the middle of two floats."""
    odd = int(math.frexp(s)[0] * 2**digits)
    odd //= odd & -odd
    if odd == 1:
        return [1.0]
    numerators = []
    for shift, d in itertools.product((digits, digits + 1), range(-40, 41)):
        first = d * pow(2**shift, -1, odd) % odd
        numerators += [first + t * odd for t in range(3) if 0 < first + t * odd < 2**digits]
    return [float(v) for v in numerators]


@pytest.mark.parametrize("machine", [m for m in ["native", *OTHERS] if "core" in PARTS[m]])
@pytest.mark.parametrize("dtype", FLOATS)
def test_divisors_divide(checkers: dict[str, Checker], machine: str, dtype: str) -> None:
    """x / divisor(s) has the bits of x / s for random, hard, tiny, huge and special x and s."""
    rng = np.random.default_rng(7)
    mantissas = [*rng.uniform(1, 2, 60), *(2 - rng.integers(1, 2000, 20) * 2.0**-23), 1 + 2.0**-23]
    others = [3, 7, 10, 0.1, 0.5, 1024, 1e10, 1e-10, 1e30, 1e-30, -3, 2.0**32, 2.0**-33, 1e-40]
    others += [-2, -0.25, 2.0**-126, -(2.0**127), 2.0**-149]
    powers = [2.0**k for k in (-30, -60, -61, -90, -110, 60, 89, 90, 91)]
    digits = 24 if dtype == "float32" else 53
    for s in np.array([*mantissas, *others, 0, -0.0, math.inf, math.nan]).astype(dtype):
        hard = hard_numerators(float(s), digits) if np.isfinite(s) and s > 1e-37 else [1.0]
        scaled = [np.array(hard) * k for k in (1, -1, 2.0**-30, 2.0**-60, 2.0**-90, 2.0**40)]
        plain = [rng.normal(0, 1, 300), np.exp(rng.normal(0, 40, 300)), SPECIAL, powers]
        x = np.concatenate([*plain, *scaled]).astype(dtype)
        x = np.concatenate([x, -x])
        extra = (ctypes.c_void_p(np.array([s]).ctypes.data),)
        with np.errstate(all="ignore"):
            for function in ("divisor", "divisor_of_packs", "divisor_of_rows", "divisor_of_pairs"):
                quotients = checkers[machine](f"{function}_{dtype}", x, extra=extra)
                assert same_bits(quotients, x / s), (function, s)


@pytest.mark.parametrize("machine", [m for m in ["native", *OTHERS] if "core" in PARTS[m]])
@pytest.mark.parametrize("dtype", FLOATS)
def test_known_divisors_divide(checkers: dict[str, Checker], machine: str, dtype: str) -> None:
    """x / known_divisor has the bits of x / s for the hardest x, tiny, huge and special ones."""
    rng = np.random.default_rng(8)
    digits, nbytes = (24, 4) if dtype == "float32" else (53, 8)
    plain = [math.sqrt(2), 3, 7, 0.1, 1e10, 1e-10, 2.0**40 - 2.0**20, 1 + 2.0**-23, 10]
    served = 0
    for s in np.array([*plain, *rng.uniform(1, 2, 60)]).astype(dtype).tolist():
        pair = reciprocal(s, nbytes)
        if pair is None:
            continue
        served += 1
        hard = [np.array(hard_numerators(s, digits)) * k for k in (1, 2.0**-30, 2.0**-90, 2.0**60)]
        edges = s * 2.0 ** np.arange(-149, 128) * rng.uniform(0.5, 2, 277)
        x = np.concatenate([rng.normal(0, 1, 300), np.exp(rng.normal(0, 40, 300)), SPECIAL, edges])
        with np.errstate(all="ignore"):
            x = np.concatenate([x, *hard]).astype(dtype)
            x = np.concatenate([x, -x])
            want = x / np.array(s, dtype)
        extra = (ctypes.c_void_p(np.array([s, *pair], dtype).ctypes.data),)
        assert same_bits(checkers[machine](f"known_divisor_{dtype}", x, extra=extra), want), s
    assert served > 60


@pytest.mark.parametrize("machine", [m for m in ["native", *OTHERS] if "core" in PARTS[m]])
@pytest.mark.parametrize("dtype", FLOATS)
def test_a_least_of_packs_keeps_nan(checkers: dict[str, Checker], machine: str, dtype: str) -> None:
    """One NaN anywhere makes the minimum of a long row NaN; a row of no element has infinity."""
    least = checkers[machine]
    for n in (0, 1, 15, 64, 100, 200):
        x = np.arange(n, 0, -1).astype(dtype)
        pointer = ctypes.c_int64(n)

        def result(x: Any = x, pointer: Any = pointer) -> float:
            out = np.empty(1, dtype)
            least.function(f"least_of_packs_{dtype}")(
                ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(out.ctypes.data), pointer
            )
            return float(out[0])

        assert result() == (1 if n else math.inf)
        for k in range(n):
            x[k], kept = math.nan, x[k]
            assert math.isnan(result()), (n, k)
            x[k] = kept


@pytest.mark.skipif(platform.system() != "Linux", reason="needs mprotect")
@pytest.mark.parametrize("machine", [m for m in ["native", *OTHERS] if "core" in PARTS[m]])
def test_lanes_that_are_off_touch_no_memory(checkers: dict[str, Checker], machine: str) -> None:
    """Arrays that end before a page without access rights are loaded and stored to their end."""
    page, libc = mmap.PAGESIZE, ctypes.CDLL(None, use_errno=True)
    maps = [mmap.mmap(-1, 2 * page) for _ in range(2)]
    starts = [ctypes.addressof(ctypes.c_char.from_buffer(m)) for m in maps]
    for start in starts:
        assert libc.mprotect(ctypes.c_void_p(start + page), ctypes.c_size_t(page), 0) == 0

    for dtype, n in itertools.product([*INTEGERS, *FLOATS, "bool"], range(0, 51)):
        nbytes = n * np.dtype(dtype).itemsize
        x, y = (np.frombuffer(m, np.uint8, page) for m in maps)
        x[:], y[:] = np.arange(page) % (2 if dtype == "bool" else 251), 5
        ends = [ctypes.c_void_p(s + page - nbytes) for s in starts]
        checkers[machine].function(f"copy_{dtype}")(*ends, ctypes.c_int64(n))
        assert (y[page - nbytes :] == x[page - nbytes :]).all() and (y[: page - nbytes] == 5).all()

    for start in starts:
        libc.mprotect(ctypes.c_void_p(start + page), ctypes.c_size_t(page), 3)


@pytest.mark.parametrize("machine", [m for m in ["native", *OTHERS] if "core" in PARTS[m]])
def test_any_mask_is_stored(checkers: dict[str, Checker], machine: str) -> None:
    """Elements of any mask are stored; others are unchanged."""
    rng = np.random.default_rng(0)
    masks = [np.arange(16) < k for k in range(17)] + [np.arange(16) >= k for k in range(17)]
    on = np.concatenate([*masks, *(rng.random((60, 16)) < 0.5), np.arange(9) % 2 == 0])
    for dtype in [*INTEGERS, *FLOATS]:
        x, y = (np.arange(k, k + on.size).astype(dtype) for k in (1, 100))
        expected = np.where(on, x, y)

        checkers[machine](f"some_{dtype}", x, out=y, extra=[on.ctypes.data_as(ctypes.c_void_p)])

        assert np.array_equal(y, expected), dtype


CORE = "types", "masks", "memory", "loops", "arithmetic", "core"


def test_sections_may_be_pasted(tmp_path: Path) -> None:
    """A kernel is one file: the sections it needs, one after the other, then its functions."""
    sections = [
        (PRELUDE / "prelude" / f"{name}.h").read_text()
        for name in (
            *CORE,
            "math_f32",
            "math_f64",
            "integer",
            "divisor",
            "rows",
            "pairs",
            "sums",
            "scans",
        )
    ]
    text, out = tmp_path / "kernel.cpp", tmp_path / "kernel.so"
    kernel = 'extern "C" float twice_exp(float x) { return pk::exp(x) * 2; }\n'
    text.write_text("\n".join([*sections, kernel]))

    subprocess.run(["g++", *FLAGS, "-O1", str(text), "-o", str(out)], check=True)
    twice_exp = ctypes.CDLL(str(out)).twice_exp
    twice_exp.restype, twice_exp.argtypes = ctypes.c_float, [ctypes.c_float]

    assert twice_exp(1.0) == pytest.approx(2 * math.e)
