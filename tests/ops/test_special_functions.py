"""Special functions, division, bits and floats: what specimens do not say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special as sp

import passkit as pk
from tests.ops.central import differences


def interpreted(entry: Any, **feeds: Any) -> Any:
    """The one output of a graph."""
    return pk.interpret(pk.Graph([entry]), feeds)[0]


x = pk.var("x", (3,), "float32")
BAD = [
    (lambda: pk.ops.polygamma(x, n=-1), pk.GraphError, "a whole number from 0 to 20 as n, got -1"),
    (
        lambda: pk.ops.ldexp(x, x),
        pk.DTypeError,
        r"ldexp needs integers as exponents, got float32; pk.ops.cast\(n, 'int32'\)",
    ),
    (
        lambda: pk.ops.complex(*[pk.var("h", (2,), "float16")] * 2),
        pk.DTypeError,
        r"complex needs float32 or float64 as parts, got float16; pk.ops.cast\(x, 'float32'\)",
    ),
    (
        lambda: pk.ops.gcd(x, x),
        pk.DTypeError,
        "gcd needs signed integers or unsigned integers, got float32",
    ),
    (lambda: pk.ops.left_shift(x, x), pk.DTypeError, "left_shift needs signed integers or"),
]


@pytest.mark.parametrize("build, error, message", BAD)
def test_wrong_dtypes_and_parameters_are_refused(
    build: Any, error: type[Exception], message: str
) -> None:
    """Wrong dtypes and parameters are refused when the node is created."""
    with pytest.raises(error, match=message):
        build()


def test_derivatives_of_lgamma_have_names() -> None:
    """Each is the next polygamma function: the third derivative, at points where SciPy knows it."""
    v = pk.var("v", (4,), "float64")
    at = np.array([0.7, 2.5, 9.0, 31.0])
    values, ops = v, []
    entry = pk.ops.lgamma(v)
    for _ in range(3):
        (entry,) = pk.gradients([entry], [v])
        ops.append({n.op.name for n in pk.Graph([entry]).nodes if n.op is not None})
        values = interpreted(entry, v=at)

    assert "digamma" in ops[0] and "trigamma" in ops[1] and "polygamma" in ops[2]
    np.testing.assert_allclose(values, sp.polygamma(2, at), rtol=1e-12)


def test_incomplete_functions_have_gradients_by_their_last_input() -> None:
    """First and second ones; where x^0 stands at x = 0 too."""
    rng = np.random.default_rng(0)
    a, b = rng.uniform(1.5, 6, (2, 9))
    for op, x in (
        (lambda x: pk.ops.igamma(a, x), b),
        (lambda x: pk.ops.igammac(a, x), b),
        (lambda x: pk.ops.betainc(a, b, x), b / 7),
        (lambda x: pk.ops.zeta(a, x), b),
    ):
        assert not differences(op, x)
        assert not differences(lambda x, op=op: pk.gradients([op(x)], [x])[0], x)
    v = pk.var("v", (), "float64")
    (slope,) = pk.gradients([pk.ops.igamma(np.ones(()), v)], [v])
    assert interpreted(slope, v=np.zeros(())) == 1


@pytest.mark.parametrize("name", ["igamma", "igammac", "betainc", "zeta"])
def test_incomplete_functions_have_no_gradients_by_others(name: str) -> None:
    """Asking for one says so; it is not 0."""
    inputs = [pk.var(f"v{k}", (3,), "float64") for k in range(pk.get_op(name).num_inputs)]
    with pytest.raises(pk.CodeGenError, match=f"the derivative of '{name}' by its input 0; put"):
        pk.gradients([getattr(pk.ops, name)(*inputs)], [inputs[0]])


def test_kinks_have_the_derivative_that_is_promised() -> None:
    """At a kink the flat side's, or that of x < 0; logaddexp shares evenly where both are equal."""
    v = pk.var("v", (), "float64")
    slopes = {
        "relu": 0,
        "relu6": 0,
        "leaky_relu": 0.2,
        "elu": 1,
        "hard_tanh": 1,
        "log1p_exp": 0.5,
        "abs": 0,
    }
    for name, slope in slopes.items():
        (g,) = pk.gradients([pk.get_op(name)(v)], [v])
        assert interpreted(g, v=np.zeros(())) == pytest.approx(slope), name
    both = pk.var("w", (), "float64")
    for g in pk.gradients([pk.ops.logaddexp(v, both)], [v, both]):
        assert interpreted(g, v=np.array(3.0), w=np.array(3.0)) == 0.5


def test_shifts_are_total() -> None:
    """A count below 0 or of the width moves all bits out; natively as in the interpreter."""
    i = pk.var("i", (None,), "int32")
    n = pk.var("n", (None,), "int32")
    graph = pk.Graph([pk.ops.left_shift(i, n), pk.ops.right_shift(i, n)])
    feeds = {
        "i": np.array([5, -5, 5, -5, 5, -5], np.int32),
        "n": np.array([1, 1, 32, 32, -1, -1], np.int32),
    }

    for left, right in (pk.interpret(graph, feeds), pk.compile(graph)(feeds)):
        assert left.tolist() == [10, -10, 0, 0, 0, 0]
        assert right.tolist() == [2, -3, 0, -1, 0, -1]


def test_a_kernel_calls_the_function_by_its_name() -> None:
    """One operator is one call in the text of a kernel, not its formula."""
    exe = pk.compile(pk.Graph([pk.ops.lgamma(x) * 2.0]))

    assert "lgamma(" in exe.kernels[0].source and len(exe.kernels) == 1


def test_gamma_functions_at_extremes() -> None:
    """The lowest double is a whole number, a pole of lgamma; next to 0 tgamma is beyond range."""
    v = pk.var("v", (None,), "float64")
    graph = pk.Graph([pk.ops.lgamma(v), pk.ops.tgamma(v)])
    ends = np.array([np.finfo(np.float64).min, -5e-324, 5e-324, np.finfo(np.float64).max, 1.0])

    for log, gamma in (pk.interpret(graph, {"v": ends}), pk.compile(graph)(v=ends)):
        np.testing.assert_allclose(log, [np.inf, 744.4400719213812, 744.4400719213812, np.inf, 0])
        np.testing.assert_array_equal(gamma, [np.nan, -np.inf, np.inf, np.inf, 1])


def fma(*operands: Any) -> Any:
    """Return ``a * b + c`` of three arrays as the interpreter computes it."""
    arrays = {name: np.asarray(array) for name, array in zip("abc", operands, strict=True)}
    entries = [pk.var(name, array.shape, array.dtype.name) for name, array in arrays.items()]
    return interpreted(pk.ops.fma(*entries), **arrays)


def test_a_fused_product_and_sum_is_rounded_once() -> None:
    """Interpreted and compiled: where the sum almost cancels the product, and near the limits."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 200))
    c = -(a * b)
    rest = fma(a, b, c)
    h = [pk.var(k, (200,), "float64") for k in "abc"]
    (native,) = pk.compile(pk.Graph([pk.ops.fma(*h)]))(a=a, b=b, c=c)

    assert (rest != 0).mean() > 0.9 and np.abs(rest).max() < 1e-15
    assert (native == rest).all()
    huge, tiny = fma(np.array([1e300, 1e-300]), np.array([1e300, 1e-300]), np.array([1.0, 1e-310]))
    assert huge == np.inf and tiny == 1e-310
    assert fma(np.float64(2e300), np.float64(1e8), np.float64(-1.2e308)) == pytest.approx(8e307)
    assert np.signbit(fma(np.float64(-0.0), np.float64(1e-300), np.float64(-0.0)))
    assert fma(np.float64(1e300), np.float64(1e300), np.float64(-np.inf)) == -np.inf
    assert fma(*np.array([1 + 2**-12, 1 + 2**-12, -1], np.float32)) == np.float32(
        (1 + 2**-12) ** 2 - 1
    )


def test_remainders_are_numpys_in_corners() -> None:
    """Zeros keep the divisor's sign, quotients next to a whole number are not rounded up."""
    f, g = pk.var("f", (None,), "float64"), pk.var("g", (None,), "float64")
    graph = pk.Graph([pk.ops.floor_div(f, g), pk.ops.mod(f, g), f // g, f % g])
    feeds = {
        "f": np.array([1.0, -1.0, 6.0, -6.0, 7.5, np.inf, 1.0, -0.0, 4.0]),
        "g": np.array([0.1, 0.1, -3.0, 3.0, -2.0, 2.0, np.inf, 2.0, 0.0]),
    }
    with np.errstate(all="ignore"):
        expected = np.floor_divide(feeds["f"], feeds["g"]), np.remainder(feeds["f"], feeds["g"])

    for outs in (pk.interpret(graph, feeds), pk.compile(graph)(feeds)):
        for result, reference in zip(outs, expected * 2, strict=True):
            np.testing.assert_array_equal(result, reference)
            assert (np.signbit(result) == np.signbit(reference))[~np.isnan(reference)].all()


def test_complex_numbers_run_in_numpy_steps() -> None:
    """A compiled graph computes them, and its real parts in kernels."""
    re, im = pk.var("re", (4,)), pk.var("im", (4,))
    z = pk.ops.complex(re, im)
    graph = pk.Graph([pk.ops.real(z * pk.ops.conj(z)) + 1.0, pk.ops.abs(z), z / z])
    feeds = {"re": np.arange(1, 5, dtype=np.float32), "im": np.ones(4, np.float32)}

    for square, size, one in (pk.interpret(graph, feeds), pk.compile(graph)(feeds)):
        np.testing.assert_allclose(square, feeds["re"] ** 2 + 2, rtol=1e-6)
        np.testing.assert_allclose(size**2, square - 1, rtol=1e-6)
        assert one.dtype == np.complex64 and np.allclose(one, 1)
