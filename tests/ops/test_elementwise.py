"""Elementwise operators agree with NumPy, at shapes and values where kernels may go wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.ast import dt
from tests.ops.harness import TARGETS, TRANSCENDENTAL, Case, case, check, exact_in_double

erf = np.vectorize(math.erf, otypes=[np.float64])
inf, nan = np.inf, np.nan

# name: the NumPy function, how near, and the kinds of dtype
UNARY: dict[str, tuple[Any, int, str]] = {
    "neg": (np.negative, 0, "if"),
    "abs": (np.abs, 0, "if"),
    "sign": (np.sign, 0, "if"),
    "square": (np.square, 0, "if"),
    "relu": (lambda x: np.where(x <= 0, x.dtype.type(0), x), 0, "if"),
    "reciprocal": (lambda x: x.dtype.type(1) / x, 0, "f"),
    "sqrt": (np.sqrt, 0, "f"),
    "floor": (np.floor, 0, "f"),
    "ceil": (np.ceil, 0, "f"),
    "trunc": (np.trunc, 0, "f"),
    "rint": (np.rint, 0, "f"),
    "rsqrt": (exact_in_double(lambda x: 1 / np.sqrt(x)), TRANSCENDENTAL, "f"),
    "exp": (exact_in_double(np.exp), TRANSCENDENTAL, "f"),
    "expm1": (exact_in_double(np.expm1), TRANSCENDENTAL, "f"),
    "log": (exact_in_double(np.log), TRANSCENDENTAL, "f"),
    "log1p": (exact_in_double(np.log1p), TRANSCENDENTAL, "f"),
    "sin": (exact_in_double(np.sin), TRANSCENDENTAL, "f"),
    "cos": (exact_in_double(np.cos), TRANSCENDENTAL, "f"),
    "tanh": (exact_in_double(np.tanh), TRANSCENDENTAL, "f"),
    "erf": (exact_in_double(erf), TRANSCENDENTAL, "f"),
    "sigmoid": (
        exact_in_double(
            lambda x: np.where(x < 0, np.exp(-np.abs(x)), 1) / (1 + np.exp(-np.abs(x)))
        ),
        TRANSCENDENTAL,
        "f",
    ),
    "isnan": (np.isnan, 0, "f"),
    "bitwise_not": (np.invert, 0, "bi"),
    "logical_not": (np.logical_not, 0, "b"),
    "zeros_like": (np.zeros_like, 0, "bif"),
    "ones_like": (np.ones_like, 0, "bif"),
    "identity": (np.copy, 0, "bif"),
    "stop_gradient": (np.copy, 0, "bif"),
}
BINARY: dict[str, tuple[Any, int, str]] = {
    "add": (np.add, 0, "if"),
    "sub": (np.subtract, 0, "if"),
    "mul": (np.multiply, 0, "if"),
    "div": (np.divide, 0, "f"),
    "floor_div": (np.floor_divide, 0, "i"),
    "mod": (np.remainder, 0, "i"),
    "pow": (exact_in_double(np.power), TRANSCENDENTAL, "f"),
    "maximum": (np.maximum, 0, "if"),
    "minimum": (np.minimum, 0, "if"),
    "equal": (np.equal, 0, "bif"),
    "not_equal": (np.not_equal, 0, "bif"),
    "less": (np.less, 0, "bif"),
    "less_equal": (np.less_equal, 0, "bif"),
    "greater": (np.greater, 0, "bif"),
    "greater_equal": (np.greater_equal, 0, "bif"),
    "bitwise_and": (np.bitwise_and, 0, "bi"),
    "bitwise_or": (np.bitwise_or, 0, "bi"),
    "bitwise_xor": (np.bitwise_xor, 0, "bi"),
    "logical_and": (np.logical_and, 0, "b"),
    "logical_or": (np.logical_or, 0, "b"),
    "logical_xor": (np.logical_xor, 0, "b"),
}
DTYPES = {"b": [np.bool_], "i": [np.int32, np.int64], "f": [np.float32, np.float64]}
SHAPES = [(), (1,), (0, 3), (33,)]
PAIRS = [((), (5,)), ((3, 1), (4,)), ((2, 0), (1, 1)), ((2, 3, 1), (1, 3, 4))]


def special(dtype: Any) -> Any:
    """Return limits, zeros of both signs, infinities, NaN and halves of a dtype."""
    d = np.dtype(dtype)
    if d.kind == "b":
        return np.array([False, True])
    if d.kind == "i":
        limits = np.iinfo(d)
        return np.array([0, 1, -1, 2, 7, -7, 100, limits.max, limits.min], d)
    tiny, huge = np.finfo(d).smallest_subnormal, np.finfo(d).max
    values = [0.0, -0.0, 1, -1, 0.5, 1.5, 2.5, -2.5, 3.7, 20, -30, 1e-4, tiny, huge, inf, -inf, nan]
    return np.array(values, d)


def filled(dtype: Any, shape: tuple[int, ...], seed: int) -> Any:
    """Return normally distributed values of a shape."""
    values = np.random.default_rng(seed).normal(size=shape) * 3
    return values.astype(dtype) if np.dtype(dtype).kind != "b" else values > 0


def unary_cases(name: str) -> Iterator[Case]:
    """Yield cases of an operator with one input: all shapes and special values."""
    reference, ulps, kinds = UNARY[name]
    op = pk.get_op(name)
    for dtype in (d for kind in kinds for d in DTYPES[kind]):
        for k, array in enumerate([special(dtype), *(filled(dtype, s, 1) for s in SHAPES)]):
            yield case(f"{name} {k}", op, reference, array, ulps=ulps)


def binary_cases(name: str) -> Iterator[Case]:
    """Yield cases of an operator with two inputs: pairs of special values, broadcast shapes."""
    reference, ulps, kinds = BINARY[name]
    op = pk.get_op(name)
    for dtype in (d for kind in kinds for d in DTYPES[kind]):
        pairs = np.array(list(product(special(dtype), repeat=2)), dtype).T
        yield case(name, op, reference, pairs[0].copy(), pairs[1].copy(), ulps=ulps)
        for s in SHAPES:
            yield case(name, op, reference, filled(dtype, s, 1), filled(dtype, s, 2), ulps=ulps)
        for s, t in PAIRS:
            yield case(name, op, reference, filled(dtype, s, 1), filled(dtype, t, 2), ulps=ulps)


def other_cases() -> Iterator[Case]:
    """Yield cases of operators with three inputs, and of casts between all dtypes."""
    for dtype in DTYPES["i"] + DTYPES["f"]:
        x, y, c = filled(dtype, (3, 4), 1), filled(dtype, (4,), 2), filled(np.bool_, (3, 1), 3)
        yield case("where", pk.ops.where, np.where, c, x, y)
        low, high = np.array(-1, dtype), np.array(2, dtype)
        yield case("clip", pk.ops.clip, np.clip, special(dtype), low, high)
        yield case("clip", pk.ops.clip, np.clip, x, y, y + 1)
    yield from constant_powers()
    dtypes = [d for kind in "bif" for d in DTYPES[kind]]
    for source, target in product(dtypes, dtypes):
        name = np.dtype(target).name
        yield case(
            f"cast to {name}",
            lambda x, name=name: pk.ops.cast(x, name),
            lambda x, target=target: saturated(x, target),
            special(source),
        )


def constant_powers() -> Iterator[Case]:
    """Yield powers of which one operand is a constant."""
    power = exact_in_double(np.power)
    for dtype in DTYPES["f"]:
        values = special(dtype)
        for fixed in np.array([0.5, -0.5, 2, -1, 0, 3, -inf], dtype):
            yield case(
                f"power {fixed}",
                lambda x, c=fixed: pk.ops.pow(x, pk.constant(c)),
                lambda x, c=fixed: power(x, np.full_like(x, c)),
                values,
                ulps=TRANSCENDENTAL,
            )
        for fixed in np.array([2, -1, -0.0, nan], dtype):
            yield case(
                f"power of {fixed}",
                lambda y, c=fixed: pk.ops.pow(pk.constant(c), y),
                lambda y, c=fixed: power(np.full_like(y, c), y),
                values,
                ulps=TRANSCENDENTAL,
            )
    for dtype in DTYPES["i"]:
        for fixed in np.array([-1, 0, 1, 2, 3], dtype):
            yield case(
                f"power {fixed}",
                lambda x, c=fixed: pk.ops.pow(x, pk.constant(c)),
                lambda x, c=fixed: whole_power(x, int(c)),
                special(dtype),
            )


def whole_power(x: Any, n: int) -> Any:
    """Integers to a power: they wrap, and below 0 only 1 and -1 stay whole."""
    if n < 0:
        return np.where(np.abs(x) == 1, x if n % 2 else x * x, 0).astype(x.dtype)
    out = np.ones_like(x)
    for _ in range(n):
        out = out * x
    return out


def saturated(x: Any, target: Any) -> Any:
    """NumPy's cast where it is defined; floats out of range stop at the limits, NaN gives 0."""
    if x.dtype.kind != "f" or np.dtype(target).kind != "i":
        return x.astype(target)
    limits = np.iinfo(target)
    out = [
        0
        if v != v
        else limits.max
        if v >= limits.max
        else limits.min
        if v <= limits.min
        else int(v)
        for v in x.tolist()
    ]
    return np.array(out, target)


def all_cases() -> list[Case]:
    """Return all cases of this file."""
    unary = [c for name in UNARY for c in unary_cases(name)]
    binary = [c for name in BINARY for c in binary_cases(name)]
    return [*unary, *binary, *other_cases()]


@pytest.mark.parametrize("name", UNARY)
def test_operators_of_one_input_agree_with_numpy(name: str) -> None:
    """An interpreted operator of one input has the results of NumPy."""
    check("interpret", list(unary_cases(name)))


@pytest.mark.parametrize("name", BINARY)
def test_operators_of_two_inputs_agree_with_numpy(name: str) -> None:
    """An interpreted operator of two inputs has the results of NumPy, and broadcasts."""
    check("interpret", list(binary_cases(name)))


def test_other_operators_agree_with_numpy() -> None:
    """Interpreted operators of three inputs and casts have the results of NumPy."""
    check("interpret", list(other_cases()))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_square_roots_by_power(dtype: str) -> None:
    """To the power 0.5, -inf gives inf and -0 gives 0: for a constant, a scalar and an array."""
    kind = dt.dtype_of(dtype).numpy
    values = np.array([-inf, -0.0, inf, 4.0, -1.0], kind)
    half = np.array(0.5, kind)
    x, y, z = pk.var("x", (5,), dtype), pk.var("y", (), dtype), pk.var("z", (5,), dtype)
    by = [x**0.5, pk.ops.pow(x, pk.constant(half)), pk.ops.pow(x, y), pk.ops.pow(x, z)]
    by.append(pk.ops.concat(*[pk.ops.pow(x[k : k + 1], z[:1]) for k in range(5)], axis=0))
    by.append(pk.ops.pow(pk.constant(values), pk.constant(half)))
    for root in pk.interpret(pk.Graph(by), {"x": values, "y": half, "z": np.full(5, half)}):
        np.testing.assert_array_equal(root.astype(float), [inf, 0.0, inf, 2.0, nan])
        assert not np.signbit(root[:4].astype(float)).any()


def test_complex_numbers_and_constants() -> None:
    """Compiled complex arithmetic with a constant agrees with NumPy, in NaN and signs too."""
    values = np.array([1 + 2j, -3j, complex(inf, 1), complex(nan, 0), -0.0], np.complex64)
    v = pk.var("v", (5,), "complex64")
    with np.errstate(all="ignore"):
        expected = [values + 0, values * 1, values / 1, values / 2, values / np.complex64(2 + 1j)]
    results = pk.compile(pk.Graph([v + 0, v * 1, v / 1, v / 2, v / np.complex64(2 + 1j)]))(v=values)
    for a, b in zip(results, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a.view(np.float32), b.view(np.float32))
        assert (np.signbit(a.imag) == np.signbit(b.imag))[~np.isnan(a.imag)].all()


@pytest.mark.parametrize("target", [t for t in TARGETS if t != "interpret"])
@pytest.mark.usefixtures("quick_kernels")
def test_kernels_agree_with_numpy(target: str) -> None:
    """Compiled operators have the results of NumPy within their bounds, all in one graph."""
    check(target, all_cases())


def test_every_operator_has_cases() -> None:
    """Each elementwise operator is in a table of this file, or has a specimen."""
    named = {*UNARY, *BINARY, "where", "clip", "cast"}
    operators = [pk.get_op(name) for name in pk.list_ops()]
    standard = {
        op.name for op in operators if op.has_attr("FCodeGen") and "elementwise.py" in op.place
    }

    assert standard - named == set()
    assert len(standard) > 40


OPERATORS: list[tuple[Any, Any]] = [
    (lambda x: x + 1, lambda x: x + 1),
    (lambda x: 2 - x, lambda x: 2 - x),
    (lambda x: x * x / 3, lambda x: x * x / 3),
    (lambda x: 1 / x, lambda x: 1 / x),
    (lambda x: x**2, lambda x: x**2),
    (lambda x: 2**x, lambda x: np.power(2.0, x.astype(np.float64)).astype(np.float32)),
    (lambda x: -abs(x), lambda x: -np.abs(x)),
    (
        lambda x: (x > 1) & ~(x >= 2) | (x < 0) ^ (x <= -1),
        lambda x: (x > 1) & ~(x >= 2) | (x < 0) ^ (x <= -1),
    ),
]


@pytest.mark.parametrize("k", range(len(OPERATORS)))
def test_python_operators(k: int) -> None:
    """Python's operators apply operators; Python numbers are weak, as in NumPy."""
    ours, numpys = OPERATORS[k]
    x = np.array([0.5, -1.5, 2.0], np.float32)

    check("interpret", [case("operators", ours, numpys, x, ulps=1)])


def test_integers_divide_as_in_numpy() -> None:
    """``/`` of integers is float64, ``//`` and ``%`` round down, small powers are multiplied."""
    x = np.array([7, -7, 3], np.int32)

    check(
        "interpret",
        [
            case("div", lambda e: e / 2, lambda a: a / 2, x),
            case("floor", lambda e: e // 2 + e % 3, lambda a: a // 2 + a % 3, x),
            case("power", lambda e: e**5 + e**0 + e**1, lambda a: a**5 + a**0 + a, x),
        ],
    )


def test_operands_are_promoted() -> None:
    """Operands of different dtypes are cast to the dtype that NumPy would choose."""
    x, y = np.array([1, 2], np.int32), np.array([0.5, 1.5], np.float32)

    check("interpret", [case("promote", lambda a, b: a + b, lambda a, b: a + b, x, y)])


def test_numpy_scalars_on_the_left() -> None:
    """``np.float32(2) * entry`` is computed by the entry, and NumPy scalars are not weak."""
    x = pk.var("x", (2,), "float32")

    assert (np.float32(2) * x).dtype.name == "float32"
    assert (np.float64(2) * x).dtype.name == "float64"


BAD = [
    (
        lambda: pk.ops.exp(pk.var("i", (2,), "int32")),
        pk.DTypeError,
        r"exp needs floats, got int32; pk.ops.cast\(x, 'float32'\)",
    ),
    (
        lambda: pk.ops.bitwise_and(pk.var("a", (), "float32"), pk.var("b", (), "float32")),
        pk.DTypeError,
        r"bitwise_and needs bools or signed integers or unsigned integers, got float3",
    ),
    (
        lambda: pk.ops.add(pk.var("a", (), "float32"), pk.var("b", (), "float64")),
        pk.DTypeError,
        (
            "add needs inputs of one dtype, got float32 and float64; "
            r"insert pk.ops.cast\(x, 'float64'\)"
        ),
    ),
    (
        lambda: pk.ops.where(pk.var("c", (), "int32"), 1.0, 2.0),
        pk.DTypeError,
        "where needs a bool condition, got int32",
    ),
    (
        lambda: pk.ops.add(pk.var("a", (2, 3)), pk.var("b", (4,))),
        pk.ShapeError,
        r"broadcast together, got \(2, 3\) and \(4,\); insert expand_dims",
    ),
    (lambda: pk.var("i", (2,), "int32") ** -1, pk.DTypeError, "an integer to the power -1 needs"),
    (lambda: pk.ops.cast(pk.var("x", ()), "float31"), pk.DTypeError, "'float31' is not an element"),
    (lambda: pk.ops.cast(pk.var("x", ()), "complex64"), pk.DTypeError, "got complex64 as input 1"),
]


@pytest.mark.parametrize("build, error, message", BAD)
def test_wrong_operands_are_refused(build: Any, error: type[Exception], message: str) -> None:
    """Operands that do not fit are refused when the node is created, with a way out."""
    with pytest.raises(error, match=message):
        build()


def simplified(entry: Any) -> str:
    """Return the name of the entry that FSimplify gives for an entry, or "kept"."""
    replacement = entry.node.op.get_attr("FSimplify")(entry.node)
    return "kept" if replacement is None else replacement.name


x = pk.var("x", (3,), "float32")
i = pk.var("i", (3,), "int32")
z = pk.var("z", (3,), "complex64")
EXACT: list[tuple[Any, str]] = [
    (z + 0, "kept"),
    (z - 0, "kept"),
    (z * 1, "kept"),
    (z / 1, "kept"),
    (z / 2, "kept"),
    (z / (2 + 1j), "kept"),
    (x + 0.0, "kept"),
    (x + -0.0, "x"),
    (i + 0, "i"),
    (x - 0.0, "x"),
    (x - -0.0, "kept"),
    (x * 1.0, "x"),
    (1.0 * x, "x"),
    (x * 0.0, "kept"),
    (x * np.ones((2, 1), np.float32), "kept"),
    (x * np.ones((2, 3), np.float32), "kept"),
    (x / 1.0, "x"),
    (x / 2.0, "mul"),
    (x / 3.0, "kept"),
    (x**1.0, "identity"),
    (x**2.0, "square"),
    (x**-1.0, "reciprocal"),
    (x**0.5, "kept"),
    (pk.ops.neg(-x), "x"),
    (abs(-x), "abs"),
    (abs(-pk.var("v", (3,), "uint8")), "kept"),
    (abs(abs(x)), "abs"),
    (pk.ops.relu(pk.ops.relu(x)), "relu"),
    (pk.ops.maximum(x, x), "x"),
    (pk.ops.where(np.array(True), x, x * 2.0), "x"),
    (pk.ops.where(x > 0, x, x), "x"),
    (pk.ops.cast(x, "float32"), "x"),
    (pk.ops.cast(pk.ops.cast(x, "float64"), "float32"), "x"),
    (pk.ops.cast(pk.ops.cast(x, "float16"), "float32"), "kept"),
    (pk.ops.cast(pk.ops.cast(i, "float64"), "int8"), "kept"),
    (pk.ops.cast(pk.ops.cast(i, "int8"), "int32"), "kept"),
    (pk.ops.cast(pk.ops.cast(i, "float64"), "int32"), "i"),
    (pk.ops.cast(pk.ops.cast(i, "float64"), "int64"), "cast"),
    (pk.ops.cast(pk.ops.cast(i, "float32"), "int32"), "kept"),
    (pk.ops.cast(pk.ops.cast(pk.var("v", (3,), "int64"), "float64"), "int64"), "kept"),
    (pk.ops.cast(pk.ops.cast(pk.var("v", (3,), "uint64"), "float64"), "uint64"), "kept"),
    (pk.ops.cast(pk.ops.cast(pk.var("v", (3,), "int8"), "float32"), "uint8"), "kept"),
    (i ** np.array(-1, np.int32), "kept"),
    (pk.ops.identity(x), "x"),
]


@pytest.mark.parametrize("k", range(len(EXACT)))
def test_only_exact_rewrites_are_applied(k: int) -> None:
    """FSimplify rewrites an entry if all bits stay, and only then."""
    entry, expected = EXACT[k]

    assert simplified(entry) == expected


REAL = [
    "bool",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    "float16",
    "bfloat16",
    "float32",
    "float64",
]


def all_values(name: str) -> Any:
    """Return all values of a dtype of 8 or 16 bits; of wider ones those next to limits."""
    kind = dt.dtype_of(name).numpy
    if name == "bool":
        return np.array([False, True])
    if kind.itemsize <= 2:
        raw = np.arange(256**kind.itemsize, dtype=f"u{kind.itemsize}")
        return raw.view(kind)
    if kind.kind in "iu":
        low, high = int(np.iinfo(kind).min), int(np.iinfo(kind).max)
        steps = [0, 1, 2, 3, *(2**k for k in (8, 11, 24, 32, 53))]
        signs = (1, -1)
        near = {s * 2**k + t * u for k in range(65) for u in steps for s in signs for t in signs}
        return np.array(sorted(v for v in near if low <= v <= high), kind)
    with np.errstate(over="ignore"):
        powers = np.array([s * 2.0**k for k in range(-151, 130) for s in (1, -1)]).astype(kind)
    ends = [np.nan, inf, -inf, 0.0, -0.0, np.finfo(kind).max, np.finfo(kind).smallest_subnormal]
    wide = np.concatenate([powers, np.array(ends, kind)])
    return np.concatenate([wide, *(np.nextafter(wide, kind.type(s * inf)) for s in (1, -1))])


@pytest.mark.parametrize("source", REAL)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_simplified_casts_keep_every_bit(source: str) -> None:
    """Two casts in a row have the same values after Simplify, through all pairs of dtypes."""
    values = all_values(source)
    v = pk.var("v", (None,), source)
    chains = list(product(REAL, repeat=2))
    graph = pk.Graph([pk.ops.cast(pk.ops.cast(v, a), b) for a, b in chains])
    rewritten = pk.interpret(pk.ApplyPasses(graph, ["Simplify"]), {"v": values})
    for chain, a, b in zip(chains, rewritten, pk.interpret(graph, {"v": values}), strict=True):
        assert a.dtype == b.dtype
        nan = (a != a) & (b != b)
        assert (nan | (a.view(f"u{a.itemsize}") == b.view(f"u{b.itemsize}"))).all(), chain
