"""Specimens of elementwise arithmetic, comparisons, rounding, logic and division."""

from __future__ import annotations

import numpy as np

from passkit.values.dtype import dtype_of
from tests.ops.specimens import between, call, calls, elementwise, normal, positive

elementwise("sub", np.subtract, kinds="iuf")
elementwise("mul", np.multiply, kinds="iuf")
elementwise("div", np.divide)
elementwise("neg", np.negative, kinds="iuf")
elementwise("abs", np.abs, kinds="iuf")
elementwise("sign", np.sign, kinds="iuf", ulps=1)  # the sign of 0 is open
elementwise("square", np.square, kinds="iuf")
elementwise("reciprocal", lambda x: 1 / x)
elementwise("sqrt", np.sqrt)
elementwise("rsqrt", lambda x: 1 / np.sqrt(x), positive, ulps=2)
elementwise("expm1", np.expm1, ulps=4)
elementwise("log", np.log, positive, ulps=4)
elementwise("log1p", np.log1p, positive, ulps=4)
elementwise("sin", np.sin, ulps=4)
elementwise("cos", np.cos, ulps=4)
elementwise("tanh", np.tanh, ulps=4)
elementwise("pow", np.power, positive, normal, ulps=4)
elementwise(
    "pow", lambda x, n: np.power(x, np.maximum(n, 0)), normal, positive, kinds="iu", special=False
)
calls(
    "pow",
    lambda x, n: np.array([1, -1, 1, 0, 0, 0, -128], x.dtype),
    [
        call(
            np.array([1, -1, -1, 2, 0, -3, -128], np.int8),
            np.array([-5, -3, -2, -1, -1, -2, 1], np.int8),
        )
    ],
    kinds="i",
)
elementwise("relu", lambda x: np.where(x <= 0, 0, x), kinds="iuf")
elementwise("maximum", np.maximum, kinds="iuf", ulps=1)
elementwise("minimum", np.minimum, kinds="iuf", ulps=1)
elementwise("zeros_like", np.zeros_like, kinds="biuf")
elementwise("ones_like", np.ones_like, kinds="biuf")
for _name in ("identity", "stop_gradient"):
    elementwise(_name, lambda x: x, kinds="biuf")
elementwise("positive", lambda x: x, kinds="iuf")
elementwise("clip", lambda x, a, b: np.minimum(np.maximum(x, a), b), kinds="iuf", ulps=1)
for _name, _ufunc in (
    ("equal", np.equal),
    ("not_equal", np.not_equal),
    ("less", np.less),
    ("less_equal", np.less_equal),
    ("greater", np.greater),
    ("greater_equal", np.greater_equal),
):
    elementwise(_name, _ufunc, kinds="biuf")
for _name, _ufunc in (
    ("bitwise_and", np.bitwise_and),
    ("bitwise_or", np.bitwise_or),
    ("bitwise_xor", np.bitwise_xor),
):
    elementwise(_name, _ufunc, kinds="biu")
elementwise("bitwise_not", np.invert, kinds="biu")
for _name, _ufunc in (
    ("logical_and", np.logical_and),
    ("logical_or", np.logical_or),
    ("logical_xor", np.logical_xor),
):
    elementwise(_name, _ufunc, kinds="b")
elementwise("logical_not", np.logical_not, kinds="b")
MASK = np.random.default_rng(0).random((5, 7)) < 0.5
calls("where", np.where, [call(MASK, (5, 7), (5, 7)), call(MASK[0], (5, 7), (5, 1))], kinds="biuf")
calls(
    "cast",
    lambda x, dtype: x.astype(dtype),
    [call((5, 7), dtype=d) for d in ("float64", "bool", "int32")],
    kinds="biu",
)
calls(
    "cast", lambda x, dtype: x.astype(dtype), [call(np.array([1.1, -0.0, 7e40]), dtype="float32")]
)
calls(
    "cast",
    lambda x, dtype: np.where(x == x, np.clip(x, -(2.0**31), 2.0**31 - 1), 0).astype(dtype),
    [call(np.array(v, np.float64), dtype="int32") for v in ([2.5, -7.9], [np.nan, 1e30, -np.inf])],
)


# rounding
for _name, _ufunc in (
    ("floor", np.floor),
    ("ceil", np.ceil),
    ("trunc", np.trunc),
    ("rint", np.rint),
):
    elementwise(_name, _ufunc)
    elementwise(_name, lambda x: x, kinds="iu")
elementwise("round_half_away", lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x), special=False)
calls(
    "round_half_away",
    lambda x: np.array([-3, -2, -1, 0, 0, 1, 2, 3, np.nan, np.inf]),
    [call(np.array([-2.5, -1.5, -0.5, 0.49999999999999994, 0.0, 0.5, 1.5, 2.5, np.nan, np.inf]))],
)


# quotients and remainders
def _cut(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.dtype.kind == "f":
        return np.trunc(x / y)
    wide = [v.astype(object) for v in (x, y)]
    quotients = np.array(
        [
            0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            for a, b in zip(*(np.ravel(v) for v in np.broadcast_arrays(*wide)), strict=True)
        ],
        object,
    )
    return _wrapped(quotients, x.dtype).reshape(np.broadcast_shapes(x.shape, y.shape))


def _cut_rest(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.dtype.kind == "f":
        return np.fmod(x, y)
    return np.where(y == 0, 0, x - _cut(x, y) * y).astype(x.dtype)


def _wrapped(integers: np.ndarray, dtype: np.dtype) -> np.ndarray:
    bits = 8 * dtype.itemsize
    positive = [int(v) % (1 << bits) for v in integers]
    return np.array(positive, f"u{dtype.itemsize}").view(dtype)


elementwise("floor_div", np.floor_divide, kinds="iuf")
elementwise("mod", np.remainder, kinds="iuf")
elementwise("trunc_div", _cut, kinds="iuf")
elementwise("fmod", _cut_rest, kinds="iuf")
elementwise("gcd", np.gcd, kinds="iu")
elementwise(
    "lcm",
    lambda x, y: np.abs(np.where(x == 0, 0, x // np.maximum(np.gcd(x, y), 1)) * y),
    kinds="iu",
    special=False,
)
elementwise("div_no_nan", lambda x, y: np.where(y == 0, 0, x / y))
elementwise("mul_no_nan", lambda x, y: np.where(y == 0, 0, x * y))
elementwise("xdivy", lambda x, y: np.where(x == 0, 0, x / y))
elementwise("reciprocal_no_nan", lambda x: np.where(x == 0, 0, 1 / x))


# floats as they are
elementwise("isnan", np.isnan, kinds="iuf")
elementwise("isfinite", np.isfinite, kinds="iuf")
elementwise("isinf", np.isinf, kinds="iuf")
elementwise("signbit", lambda x: np.signbit(x) if x.dtype.kind == "f" else x < 0, kinds="iuf")
elementwise("copysign", np.copysign)
for _dtype in ("float32", "float64"):
    _x, _y = np.meshgrid(
        *[np.array([0.0, -0.0, 1, -1, 1e-45, np.inf, -np.inf, np.nan, 3], _dtype)] * 2
    )
    _after = np.nextafter(_x, _y)
    calls("nextafter", lambda x, y, z=_after: z, [call(_x, _y)])
for _dtype in (np.float16, dtype_of("bfloat16").numpy):
    _every = np.arange(1 << 16, dtype=np.uint16).view(_dtype)
    with np.errstate(all="ignore"):
        _every = _every[~np.isnan(_every)]
    for _to in (np.inf, -np.inf, 0.0, 1.0, np.nan):
        _end = np.array([_to], _dtype)
        with np.errstate(all="ignore"):
            _after = np.where(_every == _end, _end, np.nextafter(_every, _end))  # -0 to 0 is 0
        calls("nextafter", lambda x, y, z=_after: z, [call(_every, _end)])
calls(
    "ldexp",
    lambda x, n: np.ldexp(x, n),
    [
        call((5, 7), np.arange(-3, 4)),
        call((3,), np.array([-2000, 2000, -1070])),
        call((1,), np.int32(3)),
    ],
)
calls(
    "ldexp",
    lambda x, n: np.ldexp(x, n),
    [
        call(
            np.array([1.5, -1e300, 5e-324, 1e-300, np.nan, np.inf, 1.7]),
            np.array([-1074, -2000, 2090, 2000, 3, -5000, -1060]),
        )
    ],
)
elementwise("fmax", np.fmax, kinds="iuf", ulps=1)
elementwise("fmin", np.fmin, kinds="iuf", ulps=1)
elementwise("fdim", lambda x, y: np.where(x <= y, 0, x - y).astype(x.dtype), kinds="iuf")
elementwise("heaviside", np.heaviside)
elementwise("step", lambda x: np.where(x < 0, 0.0, 1.0))
elementwise("squared_difference", lambda x, y: (x - y) * (x - y), kinds="iu")
elementwise("squared_difference", lambda x, y: (x - y) * (x - y), ulps=4, special=False)
elementwise(
    "lerp",
    lambda x, y, t: x + t * (y - x),
    positive,
    positive,
    between(0, 1),
    ulps=30,
    special=False,
)
elementwise("isclose", np.isclose)
elementwise("isclose", np.isclose, params={"equal_nan": True, "rtol": 0.1, "atol": 0.01})
calls(
    "nan_to_num",
    lambda x, **k: np.array([1, 5, 7, -8], x.dtype),
    [
        call(
            lambda rng, d: np.array([1, np.nan, np.inf, -np.inf], d.numpy),
            nan=5.0,
            posinf=7.0,
            neginf=-8.0,
        )
    ],
)
calls("nan_to_num", np.nan_to_num, [call(np.array([1, np.nan, np.inf, -np.inf])), call((5, 7))])
elementwise("deg2rad", np.deg2rad, ulps=2)
elementwise("rad2deg", np.rad2deg, ulps=2)


# bits
def _shifts(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.uniform(0, 15, shape)  # drawn times 5: counts beyond the width too


elementwise("left_shift", np.left_shift, normal, _shifts, kinds="iu")
elementwise("right_shift", np.right_shift, normal, _shifts, kinds="iu")
elementwise("bitwise_count", np.bitwise_count, kinds="iu")
elementwise(
    "population_count", lambda x: np.bitwise_count(x.view(f"u{x.dtype.itemsize}")), kinds="iu"
)

calls(
    "bitcast",
    lambda x, dtype: x.view(dtype),
    [
        call(np.array([[0.0, -0.0, 1.5], [np.inf, -2, 1e-310]]), dtype="int64"),
        call(np.array([0, -(2**31), 0x3FC00000], np.int32), dtype="float32"),
        call(np.arange(6, dtype=np.int64) << 60, dtype="float64"),
        call(np.array([-1, 300], np.int16), dtype="uint16"),
        call(np.array(0x3C05, np.int16), dtype="float16"),
    ],
    kinds="f",
)


# complex numbers
PARTS = [
    np.array([1 + 2j, -3.5j, complex(np.inf, -1), complex(np.nan, 0), -0.0 - 2j, 3], np.complex64)
]
PARTS.append(PARTS[0].astype(np.complex128))
for _name, _reference in (
    ("real", np.real),
    ("imag", np.imag),
    ("conj", np.conj),
    ("abs", np.abs),
    ("neg", np.negative),
    ("square", np.square),
    ("identity", lambda x: x),
    ("ones_like", np.ones_like),
):
    calls(_name, _reference, [call(x) for x in PARTS], kinds="c", ulps=2)
calls("angle", np.angle, [call(x) for x in PARTS], kinds="c", ulps=2)
for _name, _reference in (("real", lambda x: x), ("imag", np.zeros_like), ("conj", lambda x: x)):
    elementwise(_name, _reference, kinds="iuf")
elementwise("angle", lambda x: np.where(np.isnan(x), x, np.where(np.signbit(x), np.pi, 0.0)))
for _part, _whole in (("float32", np.complex64), ("float64", np.complex128)):
    _x, _y = np.array([1.5, -2], _part), np.array([[0.5], [np.inf]], _part)
    _complex = np.array(
        [[1.5 + 0.5j, -2 + 0.5j], [complex(1.5, np.inf), complex(-2, np.inf)]], _whole
    )
    calls("complex", lambda x, y, expected=_complex: expected, [call(_x, _y)])
for _name, _ufunc in (
    ("add", np.add),
    ("sub", np.subtract),
    ("mul", np.multiply),
    ("div", np.divide),
    ("equal", np.equal),
    ("not_equal", np.not_equal),
):
    calls(_name, _ufunc, [call((3, 4), (4,))], kinds="c", ulps=4)
