"""Elementwise functions: the values and dtypes of NumPy, at once and in kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from passkit import PasskitError, xp
from passkit.errors import ArgumentError, DTypeError, ShapeError
from tests.frontends.xp.differences import assert_all_same, numbers

NUMPY_NAMES = {
    "acos": "arccos",
    "acosh": "arccosh",
    "asin": "arcsin",
    "asinh": "arcsinh",
    "atan": "arctan",
    "atan2": "arctan2",
    "atanh": "arctanh",
    "bitwise_invert": "invert",
    "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift",
    "pow": "power",
}
UNARY = (
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "bitwise_invert",
    "ceil",
    "conj",
    "cos",
    "cosh",
    "exp",
    "expm1",
    "floor",
    "imag",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "log10",
    "log1p",
    "log2",
    "logical_not",
    "negative",
    "positive",
    "real",
    "reciprocal",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
)
BINARY = (
    "add",
    "atan2",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "copysign",
    "divide",
    "equal",
    "floor_divide",
    "greater",
    "greater_equal",
    "hypot",
    "less",
    "less_equal",
    "logaddexp",
    "logical_and",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "nextafter",
    "not_equal",
    "pow",
    "remainder",
    "subtract",
)
DTYPES = ("bool", "int8", "int32", "int64", "uint8", "uint64", "float16", "float32", "float64")
MIXED = (("int8", "int32"), ("uint64", "int64"), ("int32", "float32"), ("bool", "float16"))
WITHOUT_BOOLS = ("conj", "imag", "real", "round")
"""Functions for which NumPy changes the dtype of booleans, but not passkit."""


def reference_of(name: str, *arrays: Any) -> Any:
    """Return NumPy's result, or None if NumPy refuses the dtypes or values."""
    try:
        with np.errstate(all="ignore"):
            result = getattr(np, NUMPY_NAMES.get(name, name))(*arrays)
    except (TypeError, ValueError):
        return None
    if name == "reciprocal" and result.dtype.kind in "iu":
        result[arrays[0] == 0] = 0  # NumPy leaves 1 / 0 to the processor
    return result


def pairs_of(names: list[str], *arrays: Any) -> list[tuple[str, Any, Any]]:
    """Return names, results and references of functions; both must refuse the same dtypes."""
    pairs = []
    for name in names:
        reference = reference_of(name, *arrays)
        where = f"{name} of {', '.join(str(a.dtype) for a in arrays)}"
        operands = [xp.asarray(a) for a in arrays]
        if reference is not None:
            pairs.append((where, getattr(xp, name)(*operands), reference))
        elif name != "pow":  # NumPy refuses negative exponents of integers
            with pytest.raises(PasskitError, match=str(np.result_type(*arrays))):
                getattr(xp, name)(*operands)
    return pairs


def all_pairs(dtypes: tuple[str, ...]) -> list[tuple[str, Any, Any]]:
    """Return the results and references of all functions for these dtypes."""
    pairs = []
    for dtype in dtypes:
        x, y = numbers(1, dtype, 30), numbers(2, dtype, 30)
        skipped = WITHOUT_BOOLS if dtype == "bool" else ()
        pairs += pairs_of([n for n in UNARY if n not in skipped], x)
        rows, columns = np.repeat(x, 30), np.tile(y, 30)
        pairs += pairs_of(list(BINARY), rows, columns)
    return pairs


def test_functions_of_every_dtype_equal_numpy_at_once() -> None:
    """Small arrays: each of the functions has NumPy's values, dtype and refusals."""
    with xp.config(small=1000):
        assert_all_same(all_pairs(DTYPES))


@pytest.mark.usefixtures("xp_queue")
@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_functions_in_kernels_equal_numpy(dtype: str) -> None:
    """Queued functions have NumPy's values, dtype and refusals when they run as kernels."""
    assert_all_same(all_pairs((dtype,)))


@pytest.mark.parametrize("small", [0, 256])
def test_mixed_dtypes_are_promoted_as_numpy_promotes(small: int) -> None:
    """Operands of two dtypes give NumPy's dtype, with the same values at once and queued."""
    with xp.config(small=small):
        pairs = []
        for left, right in MIXED:
            pairs += pairs_of(list(BINARY), numbers(1, left, 16), numbers(2, right, 16))
        assert_all_same(pairs)


def test_complex_numbers_run_in_numpy() -> None:
    """Functions of complex numbers, and their parts, have NumPy's values."""
    x, y = numbers(1, "complex64", 20), numbers(2, "complex128", 20)
    names = [
        "abs",
        "acos",
        "asinh",
        "atan",
        "cos",
        "exp",
        "expm1",
        "log",
        "log1p",
        "negative",
        "sign",
        "sin",
        "sqrt",
        "square",
        "tanh",
    ]
    pairs = pairs_of([*names, "conj", "imag", "real", "isfinite"], x)
    pairs += pairs_of(["add", "divide", "equal", "multiply", "pow", "subtract"], x, y)
    assert_all_same(pairs)


def test_complex_functions_have_the_special_values_of_the_standard() -> None:
    """expm1 and tanh have limits at infinite real parts, where NumPy has NaN or another zero."""
    inf, nan = np.inf, np.nan
    cases = {
        xp.expm1: [
            (complex(inf, 0.0), complex(inf, 0.0)),
            (complex(-inf, inf), complex(-1.0, 0.0)),
            (complex(-inf, nan), complex(-1.0, 0.0)),
            (complex(inf, inf), complex(inf, nan)),
            (complex(nan, 0.0), complex(nan, 0.0)),
            (complex(-0.0, 0.0), complex(0.0, 0.0)),
            (1e-9 + 1e-9j, np.expm1(1e-9 + 1e-9j)),
        ],
        xp.tanh: [
            (complex(inf, 2.0), complex(1.0, 0.0)),
            (complex(-inf, -2.0), complex(-1.0, -0.0)),
            (complex(inf, nan), complex(1.0, 0.0)),
            (0.5 + 2j, np.tanh(0.5 + 2j)),
        ],
    }
    for function, pairs in cases.items():
        operands, expected = map(np.asarray, zip(*pairs, strict=True))
        result = np.asarray(function(xp.asarray(operands)))
        np.testing.assert_allclose(result, expected, rtol=1e-15)
        for part, expected_part in ((result.real, expected.real), (result.imag, expected.imag)):
            is_negative = np.signbit(part) & ~np.isnan(part)
            np.testing.assert_array_equal(is_negative, np.signbit(expected_part))
        assert function(xp.asarray(pairs[0][0])).shape == ()


def test_parts_of_complex_numbers_do_not_change_with_them() -> None:
    """xp.real returns a copy: an update of it leaves the complex array as it was."""
    x = xp.asarray([1 + 2j, 3 - 4j])
    part = xp.real(x)
    part += 10.0
    assert np.asarray(x).tolist() == [1 + 2j, 3 - 4j]
    assert np.asarray(part).tolist() == [11.0, 13.0]


@pytest.mark.parametrize("small", [0, 256])
def test_python_numbers_are_weak_beside_an_array(small: int) -> None:
    """A Python number on either side takes the dtype of the array, or a higher kind's."""
    with xp.config(small=small):
        x, y = numbers(1, "float32", 12), numbers(2, "int8", 12)
        a, b = xp.asarray(x), xp.asarray(y)
        pairs = [
            ("array, int", xp.add(a, 2), x + 2),
            ("int, array", xp.subtract(2, a), 2 - x),
            ("array, float", xp.multiply(b, 0.5), y * 0.5),
            ("float, array", xp.maximum(0.5, a), np.maximum(0.5, x)),
            ("bool, array", xp.logical_and(True, a > 0), x > 0),
            ("array, bool", xp.equal(b, True), y == True),  # noqa: E712
            ("power of int", xp.pow(2, a), np.power(np.float32(2), x)),
        ]
        assert_all_same(pairs)


@pytest.mark.parametrize("small", [0, 256])
def test_constant_exponents_have_the_special_cases_of_pow(small: int) -> None:
    """Powers with Python exponents equal NumPy's power function, also of -inf, -0.0 and NaN."""
    with xp.config(small=small):
        x, whole = numbers(1, "float32", 30), numbers(2, "int32", 30)
        pairs = []
        with np.errstate(all="ignore"):
            for exponent in (-2, -1, -0.5, 0, 0.5, 1, 2, 3, 4, 2.0, 1.7, 7):
                exponents = np.full(30, exponent, np.float32)
                pairs.append((f"x ** {exponent}", xp.asarray(x) ** exponent, x**exponents))
                if exponent >= 0:
                    power = xp.pow(xp.asarray(whole), exponent)
                    pairs.append((f"int ** {exponent}", power, np.power(whole, exponent)))
        assert_all_same(pairs)
        root = np.asarray(xp.asarray([-0.0, -np.inf]) ** 0.5)
        assert root.tolist() == [0.0, np.inf] and not np.signbit(root[0])


def test_constant_exponents_need_no_logarithm() -> None:
    """x ** 2 is an operation with the exponent as parameter; other exponents are inputs."""
    x = xp.asarray(np.ones(1000))
    xp.eval()
    with xp.config(small=0), xp.inspect() as runs:
        xp.eval(x**2)
        xp.eval(x**2.7)
    assert [run.operations for run in runs] == [("constant_pow",), ("pow",)]


def test_a_power_in_place_keeps_the_dtype() -> None:
    """x **= 2 and x **= y store results in the array, of its dtype."""
    x = xp.asarray([1, 2, 3])
    y = x
    x **= 2
    x **= xp.asarray([0, 1, 2])
    assert y is x and np.asarray(x).tolist() == [1, 4, 81]


def test_integers_to_negative_integers() -> None:
    """A negative Python exponent of integers is refused; an array of them gives whole numbers."""
    x = xp.asarray([-1, 1, 2, -3])
    for exponent in (-1, -3):
        with pytest.raises(DTypeError, match=rf"int64 to the power of {exponent}"):
            x**exponent
    assert np.asarray(x ** xp.asarray([-3, -2, -1, -1])).tolist() == [-1, 1, 0, 0]


@pytest.mark.parametrize("small", [0, 256])
def test_clip_limits_by_numbers_and_arrays(small: int) -> None:
    """clip takes None, numbers and arrays as limits, and NaN stays."""
    with xp.config(small=small):
        x, low = numbers(1, "float32", 3, 10), numbers(2, "float32", 10)
        low = np.where(np.isnan(low), 0, low)
        whole = numbers(3, "int8", 10)
        a, b = xp.asarray(x), xp.asarray(whole)
        pairs = [
            ("both", xp.clip(a, -1, 1.5), np.clip(x, -1, 1.5)),
            ("low array", xp.clip(a, min=xp.asarray(low)), np.clip(x, low, None)),
            ("high", a.clip(max=0.5), np.clip(x, None, 0.5)),
            ("none", xp.clip(a), x),
            ("complex", xp.clip(xp.asarray([1 + 2j])), np.asarray([1 + 2j])),
            ("beyond the dtype", xp.clip(b, -500, 5), np.minimum(whole, 5)),
        ]
        assert_all_same(pairs)


def test_clip_refuses_limits_that_no_number_of_the_dtype_meets() -> None:
    """A least value above all numbers of an integer dtype is an error."""
    with pytest.raises(ArgumentError, match=r"int8 cannot hold the limit 500"):
        xp.clip(xp.asarray([1, 2], dtype=xp.int8), min=500)


def test_round_of_an_array_takes_digits() -> None:
    """x.round(2) rounds to hundredths, x.round(-1) to tens; integers stay."""
    x = xp.asarray([1.255, -27.5])
    assert np.asarray(x.round(1)).tolist() == [1.3, -27.5]
    assert np.asarray(x.round(-1)).tolist() == [0.0, -30.0]
    assert np.asarray(x.round(400)).tolist() == np.asarray(x).tolist()
    assert np.asarray(x.round(-400)).tolist() == [0.0, 0.0]
    assert np.asarray(xp.asarray([5, 7]).round(2)).tolist() == [5, 7]
    assert np.asarray(xp.round(xp.asarray([0.5, 1.5, 2.5]))).tolist() == [0.0, 2.0, 2.0]


def test_arrays_of_the_16_bit_floats_are_joined_in_float32() -> None:
    """Joins, choices, differences and powers promote dtypes as sums do, also where NumPy cannot."""
    half, brain = xp.asarray([2.0], dtype=xp.float16), xp.asarray([3.0], dtype=xp.bfloat16)
    for results in (
        (xp.concat([half, brain]), [2.0, 3.0]),
        (xp.stack([brain, half]), [[3.0], [2.0]]),
        (xp.where(half > 2, half, brain), [3.0]),
        (xp.diff(half, prepend=brain), [-1.0]),
        (xp.pow(half, brain), [8.0]),
    ):
        assert (results[0].dtype, results[0].numpy().tolist()) == (xp.float32, results[1])
    assert xp.concat([xp.asarray([1]), brain]).dtype == (xp.asarray([1]) + brain).dtype


def test_large_integers_are_infinite_as_bfloat16() -> None:
    """A Python integer beside an array of floats is converted to its dtype."""
    assert (xp.ones(2, dtype=xp.bfloat16) + 10**40).numpy().tolist() == [float("inf")] * 2


def test_operands_that_are_no_arrays_are_refused() -> None:
    """Lists and texts are no operands, and shapes must broadcast: the message shows them."""
    x = xp.asarray([1.0, 2.0])
    with pytest.raises(ArgumentError, match=r"got \[1, 2\]"):
        xp.add(x, [1, 2])
    with pytest.raises(ArgumentError, match=r"got 'text'"):
        xp.sin("text")
    with pytest.raises(ShapeError, match=r"2"):
        xp.add(x, xp.asarray([1.0, 2.0, 3.0]))
    with pytest.raises(DTypeError, match=r"floor does not take complex128: "):
        xp.floor(xp.asarray([1j]))
    with pytest.raises(DTypeError, match=r"^100000.* does not fit float64"):
        x + 10**400
    with pytest.raises(DTypeError, match=r"^100000.* does not fit complex128"):
        xp.asarray([1j]) + 10**400
    with pytest.raises(DTypeError, match=r"^100000.* does not fit bfloat16"):
        xp.ones(2, dtype=xp.bfloat16) + 10**400
    with pytest.raises(DTypeError, match=r"^9223372036854775808 does not fit int64"):
        (x > 1) + 2**63
    with pytest.raises(DTypeError, match=r"^a value of type int does not fit int8"):
        xp.asarray([1], dtype=xp.int8) + 10**5000
    with pytest.raises(ShapeError, match=r"add does not take shapes \(2,\), \(3,\)"):
        xp.add(xp.asarray([1j, 2]), xp.ones(3))
    with pytest.raises(DTypeError, match=r"^100000.* fits no integer dtype"):
        xp.sin(10**400)
    with pytest.raises(ArgumentError, match=r"round: decimals must be an integer, got 1\.5"):
        x.round(1.5)  # type: ignore[arg-type]
    with pytest.raises(DTypeError, match=r"positive needs numbers, got bool"):
        xp.positive(x > 1)


def test_functions_are_documented() -> None:
    """Each function has its name, a signature with positional operands, and a docstring."""
    for name in (*UNARY, *BINARY):
        function = getattr(xp, name)
        assert function.__name__ == name
        assert function.__doc__ is not None and "Args:" in function.__doc__


def test_numpy_functions_of_powers_are_queued() -> None:
    """np.power and np.reciprocal of an array queue the operations of xp."""
    with xp.config(small=0):
        x = xp.asarray([1.0, 2.0, 4.0])
        xp.eval()
        with xp.inspect() as runs:
            xp.eval(np.reciprocal(np.power(x, x)))
        assert [run.operations for run in runs] == [("pow", "reciprocal")]
