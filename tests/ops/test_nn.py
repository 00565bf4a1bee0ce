"""Softmax, layer norm and other composites against NumPy in float64, and their expansions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import passkit as pk
from tests.ops.harness import TARGETS, Case, case, check

ops = pk.ops
erf = np.vectorize(math.erf, otypes=[np.float64])


def softmax(x: Any, axis: Any) -> Any:
    """Return the value by definition, in float64."""
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def layer_norm(x: Any, axes: Any) -> Any:
    """Return the value by definition, in float64."""
    d = x - x.mean(axis=axes, keepdims=True)
    return d / np.sqrt((d * d).mean(axis=axes, keepdims=True) + 1e-5)


GELU: dict[str, Callable[[Any], Any]] = {
    "none": lambda x: x * 0.5 * (erf(x / np.sqrt(2)) + 1),
    "tanh": lambda x: x * 0.5 * (np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)) + 1),
    "sigmoid": lambda x: x / (1 + np.exp(-1.702 * x)),
}


def values(*shape: int, dtype: Any = np.float32) -> Any:
    """Return normally distributed values."""
    return (np.random.default_rng(3).normal(size=shape) * 3).astype(dtype)


def in_double(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function`` computed in float64 and rounded to the dtype of its first argument."""
    return lambda x, *rest: np.asarray(function(x.astype(np.float64), *rest)).astype(x.dtype)


def cases() -> Iterator[Case]:
    """Yield a case for each composite, along different axes."""
    for dtype in (np.float32, np.float64):
        for a in (-1, 0, 1, (0, 2)):
            x = values(3, 4, 5, dtype=dtype)
            yield case(
                f"softmax {a}",
                lambda x, a=a: ops.softmax(x, axis=a),
                in_double(lambda x, a=a: softmax(x, a)),
                x,
                rtol=1e-6,
            )
            yield case(
                f"log_softmax {a}",
                lambda x, a=a: ops.log_softmax(x, axis=a),
                in_double(lambda x, a=a: np.log(softmax(x, a))),
                x,
                rtol=1e-6,
            )
            yield case(
                f"variance {a}",
                lambda x, a=a: ops.reduce_variance(x, a),
                in_double(lambda x, a=a: np.var(x, axis=a)),
                x,
                rtol=1e-6,
            )
        for a, keep in ((None, False), (1, False), ((0, 1), True)):
            yield case(
                f"logsumexp {a}",
                lambda x, a=a, k=keep: ops.logsumexp(x, a, k),
                in_double(lambda x, a=a, k=keep: np.log(np.exp(x).sum(axis=a, keepdims=k))),
                values(3, 4),
                rtol=1e-6,
            )
        for form, reference in GELU.items():
            yield case(
                f"gelu {form}",
                lambda x, f=form: ops.gelu(x, approximate=f),
                in_double(reference),
                values(33, dtype=dtype),
                rtol=1e-6,
            )
        yield case(
            "silu",
            ops.silu,
            in_double(lambda x: x / (1 + np.exp(-x))),
            values(7, dtype=dtype),
            rtol=1e-6,
        )
    x = values(3, 4, 5)
    for axis in (-1, 1, 0, (1, 2)):
        axes = axis if isinstance(axis, tuple) else (axis,)
        shape = tuple(x.shape[k] for k in axes)
        spread = tuple(n if k in {a % 3 for a in axes} else 1 for k, n in enumerate(x.shape))
        g, b = values(*shape), values(*shape) + 1
        yield case(
            f"layer_norm {axis}",
            lambda x, g, b, a=axis: ops.layer_norm(x, g, b, axis=a),
            in_double(
                lambda x, g, b, a=axes, s=spread: layer_norm(x, a) * g.reshape(s) + b.reshape(s)
            ),
            x,
            g,
            b,
            rtol=2e-6,
        )
    yield case(
        "plain",
        lambda x: ops.layer_norm(x, scale=False, center=False),
        in_double(lambda x: layer_norm(x, -1)),
        x,
        rtol=2e-6,
    )


def test_composites_match_their_definitions() -> None:
    """The interpreter gives the definition of each composite, computed in float64."""
    check("interpret", list(cases()))


@pytest.mark.parametrize("target", [t for t in TARGETS if t != "interpret"])
@pytest.mark.usefixtures("quick_kernels")
def test_compiled_composites_match_their_definitions(target: str) -> None:
    """One compiled graph of all cases gives their definitions."""
    check(target, list(cases()))


def test_logsumexp_of_infinities_is_not_nan() -> None:
    """An infinite maximum is not subtracted: inf - inf would be NaN."""
    x = np.array([[-np.inf, -np.inf], [np.inf, 1], [np.nan, 1], [0, -np.inf]], np.float32)
    expected = np.array([-np.inf, np.inf, np.nan, 0], np.float32)

    infinities = case("infinities", lambda e: ops.logsumexp(e, axis=1), lambda _: expected, x)
    check("interpret", [infinities])


def test_divergence_of_labels_that_are_nan_is_nan() -> None:
    """A label of 0 or less contributes 0, and one of NaN makes the loss NaN."""
    labels, p = np.array([np.nan, 0, -1, 1]), np.array([1, 1, 1, 0.5])
    loss = pk.ops.kl_divergence(labels, p, reduction="none")
    (result,) = pk.interpret(pk.Graph([loss]), {})

    np.testing.assert_allclose(result, [np.nan, 0, 0, math.log(2)])


def test_softmax_is_five_primitives() -> None:
    """Softmax expands to max, sub, exp, sum, div, so that it fuses with its neighbours."""
    out = ops.softmax(pk.var("x", (2, 3)))
    graph = pk.ApplyPasses(pk.Graph([out]), ["Expand"])
    names = [n.op.name for n in graph.nodes if n.op is not None]

    assert names == ["reduce_max", "sub", "exp", "reduce_sum", "div"]


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin", "masked_softmax"])
def test_softmax_of_an_empty_axis_is_empty(name: str) -> None:
    """An empty axis has no maximum, and the result is empty."""
    none = np.zeros((4, 0), np.float32)
    mask = [none.astype(bool)] if name == "masked_softmax" else []
    result = pk.get_op(name)(pk.constant(none), *mask, axis=-1)

    assert pk.compile(result)()[0].shape == (4, 0)


def test_an_empty_mask_broadcasts() -> None:
    """The result of an empty masked softmax has the broadcast shape; masks that don't fit raise."""
    x = pk.var("x", (1, 0))

    assert ops.masked_softmax(x, pk.var("m", (4, 0), "bool")).shape == (4, 0)
    with pytest.raises(pk.ShapeError, match=r"broadcast together, got \(7,\) and \(0, 3\)"):
        ops.masked_softmax(pk.var("x", (0, 3)), pk.var("m", (7,), "bool"))


def test_missing_gamma_and_beta_become_variables() -> None:
    """Gamma and beta that are left out become variables, whose shapes follow from the data."""
    out = ops.layer_norm(pk.var("x", (2, 3)), name="ln")
    graph = pk.ApplyPasses(pk.Graph([out]), ["InferShape"])
    shapes = [graph.attrs["shape"][e] for e in out.node.inputs]

    assert [e.node.name for e in out.node.inputs] == ["x", "ln_gamma", "ln_beta"]
    assert shapes == [(2, 3), (3,), (3,)]


def x() -> Any:
    """Return a variable of two axes."""
    return pk.var("x", (2, 3))


ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: ops.softmax(x(), axis=2), pk.ShapeError, "softmax: axis 2 is out of range"),
    (lambda: ops.gelu(x(), approximate="erf"), pk.GraphError, "'sigmoid' as approximate, got 'erf"),
    (lambda: ops.gelu(x(), approximate=None), pk.GraphError, "needs a str as approximate, got Non"),
    (lambda: ops.softmax(pk.var("i", (2,), "int32")), pk.DTypeError, "softmax needs floats, got i"),
    (lambda: ops.layer_norm(x(), x(), x()), pk.ShapeError, r"gamma of shape \(3,\), got \(2, 3\)"),
    (
        lambda: ops.layer_norm(x(), np.ones(2, np.float32), np.ones(3, np.float32)),
        pk.ShapeError,
        "the lengths of gamma and of the normalised axes must agree, got 2 and 3",
    ),
    (lambda: ops.layer_norm(x(), epsilon="small"), pk.GraphError, "a float as epsilon, got 'small"),
    (
        lambda: pk.Node(pk.get_op("layer_norm"), [x()], pk.get_op("layer_norm").params),
        pk.ShapeError,
        "layer_norm takes data, gamma, beta, got 1 inputs",
    ),
]


@pytest.mark.parametrize("build, error, message", ERRORS)
def test_invalid_calls_raise(
    build: Callable[[], Any], error: type[Exception], message: str
) -> None:
    """The call that builds a node raises an error with the parameter or shape it got."""
    with pytest.raises(error, match=message):
        build()
