"""Composites of neural networks against NumPy in float64, and that they are primitives."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.graph.op import FExpand, FInferShapeBack
from tests.ops.harness import TARGETS, Case, case, check

ops = pk.ops
erf = np.vectorize(math.erf, otypes=[np.float64])


def softmax(x: Any, axis: Any) -> Any:
    """Source: the definition, in float64."""
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def layer_norm(x: Any, axes: Any) -> Any:
    """Source: the definition, in float64."""
    d = x - x.mean(axis=axes, keepdims=True)
    return d / np.sqrt((d * d).mean(axis=axes, keepdims=True) + 1e-5)


GELU: dict[str, Callable[[Any], Any]] = {
    "none": lambda x: x * 0.5 * (erf(x / np.sqrt(2)) + 1),
    "tanh": lambda x: x * 0.5 * (np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)) + 1),
    "sigmoid": lambda x: x / (1 + np.exp(-1.702 * x)),
}


def values(*shape: int, dtype: Any = np.float32) -> Any:
    """Ordinary values."""
    return (np.random.default_rng(3).normal(size=shape) * 3).astype(dtype)


def in_double(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` in float64, rounded to the dtype of the input."""
    return lambda x, *rest: np.asarray(function(x.astype(np.float64), *rest)).astype(x.dtype)


def cases() -> Iterator[Case]:
    """Every composite, over the axes where they differ."""
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


def test_composites() -> None:
    """A composite means what its definition gives in float64."""
    check("interpret", list(cases()))


@pytest.mark.parametrize("target", [t for t in TARGETS if t != "interpret"])
@pytest.mark.usefixtures("quick_kernels")
def test_natively(target: str) -> None:
    """A target runs all cases, in one graph."""
    check(target, list(cases()))


def test_logsumexp_of_infinities() -> None:
    """The largest may be infinite: nothing is subtracted then."""
    x = np.array([[-np.inf, -np.inf], [np.inf, 1], [np.nan, 1], [0, -np.inf]], np.float32)
    wanted = np.array([-np.inf, np.inf, np.nan, 0], np.float32)

    infinities = case("infinities", lambda e: ops.logsumexp(e, axis=1), lambda _: wanted, x)
    check("interpret", [infinities])


def test_softmax_is_five_primitives() -> None:
    """Softmax expands to max, sub, exp, sum, div, so that it fuses with its neighbours."""
    out = ops.softmax(pk.var("x", (2, 3)))
    made = FExpand.get("softmax")(out.node, *out.node.inputs)
    names = [n.op.name for n in pk.Graph([made]).nodes if n.op is not None]

    assert names == ["reduce_max", "sub", "exp", "reduce_sum", "div"]


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin", "masked_softmax"])
def test_softmax_of_nothing_is_empty(name: str) -> None:
    """Nothing of an empty axis overflows: no largest element is asked for."""
    none = np.zeros((4, 0), np.float32)
    mask = [none.astype(bool)] if name == "masked_softmax" else []
    made = pk.get_op(name)(pk.constant(none), *mask, axis=-1)

    assert pk.compile(made)()[0].shape == (4, 0)


def test_a_mask_of_nothing_broadcasts_and_must_fit() -> None:
    """As one of something: the result may be wider than x, and what does not fit is refused."""
    x = pk.var("x", (1, 0))

    assert ops.masked_softmax(x, pk.var("m", (4, 0), "bool")).shape == (4, 0)
    with pytest.raises(pk.ShapeError, match=r"broadcast together, got \(7,\) and \(0, 3\)"):
        ops.masked_softmax(pk.var("x", (0, 3)), pk.var("m", (7,), "bool"))


def test_gamma_and_beta_are_made() -> None:
    """Missing inputs become variables, whose shapes follow from the data."""
    out = ops.layer_norm(pk.var("x", (2, 3)), name="ln")
    found = FInferShapeBack.get("layer_norm")(out.node, [(2, 3), None, None], [None])

    assert [e.node.name for e in out.node.inputs] == ["x", "ln_gamma", "ln_beta"]
    assert found == [(2, 3), (3,), (3,)]


def x() -> Any:
    """An input of two axes."""
    return pk.var("x", (2, 3))


BAD: list[tuple[Callable[[], Any], type[Exception], str]] = [
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


@pytest.mark.parametrize("build, error, message", BAD)
def test_what_is_refused(build: Callable[[], Any], error: type[Exception], message: str) -> None:
    """Parameters and shapes that do not fit are refused when the node is made."""
    with pytest.raises(error, match=message):
        build()
