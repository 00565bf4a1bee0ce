"""Gradients: rules and what is derived, against central differences; sweeps, errors, sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.ast.derivative import RULES
from tests.ops.central import differences

ops = pk.ops
RNG = np.random.default_rng(3)


def drawn(*shape: int) -> Any:
    """Values of both signs."""
    return RNG.normal(size=shape)


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "arithmetic": (lambda x, y: (x * y - x / (y * y + 1.0)) ** 2, (drawn(3, 4), drawn(4))),
    "broadcast": (lambda x, y, z: x * y + z, (drawn(2, 1, 3), drawn(4, 1), drawn())),
    "functions": (
        lambda x: ops.exp(x) + ops.erf(x) * ops.tanh(x) + ops.sigmoid(x) * ops.sin(x) + ops.cos(x),
        (drawn(7),),
    ),
    "roots": (
        lambda x: ops.sqrt(x) + ops.rsqrt(x) + ops.log(x) * ops.log1p(x),
        (drawn(7) ** 2 + 0.1,),
    ),
    "powers": (lambda x, y: x**y + x**3 + 2.0**y + x**-1, (np.abs(drawn(5)) + 0.1, drawn(5))),
    "kinks": (
        lambda x, y: ops.maximum(x, y) * ops.minimum(x, 0.5) + ops.abs(y) + ops.relu(x),
        (drawn(9), drawn(9)),
    ),
    "clip": (lambda x: ops.clip(x, -0.5, 0.5) + ops.clip(0.1, x, x + 1.0), (drawn(9),)),
    "where": (lambda x: ops.where(x > 0.0, ops.log(x), x * x), (drawn(9),)),
    "steps": (lambda x: ops.floor(x) * x + ops.sign(x) + ops.rint(x), (drawn(9),)),
    "casts": (lambda x: ops.cast(ops.cast(x, "int64"), "float64") * x, (drawn(9) * 3,)),
    "sum": (lambda x: ops.reduce_sum(x * x, axis=(0, 2), keepdims=True) * x, (drawn(2, 3, 4),)),
    "mean": (lambda x: ops.reduce_mean(x * x, axis=1) ** 2, (drawn(3, 4),)),
    "max": (lambda x: ops.reduce_max(x, axis=0) * ops.reduce_min(x), (drawn(3, 4),)),
    "prod": (lambda x: ops.reduce_prod(x, axis=1), (drawn(3, 4),)),
    "prod with zeros": (
        lambda x: ops.reduce_prod(x, axis=1),
        (np.array([[1.0, 0.0, 3.0], [0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [2.0, 3.0, 4.0]]),),
    ),
    "reshape": (
        lambda x: ops.squeeze(ops.expand_dims(ops.reshape(x * x, shape=(4, 3)), axis=1)) * 2.0,
        (drawn(3, 4),),
    ),
    "transpose": (lambda x: ops.transpose(x * x, axes=(2, 0, 1)), (drawn(2, 3, 4),)),
    "stretch": (lambda x: ops.broadcast_to(x, shape=(5, 2, 3)) ** 2, (drawn(2, 1),)),
    "concat": (lambda x, y: ops.concat(x * x, y, x, axis=1) ** 2, (drawn(2, 3), drawn(2, 1))),
    "slices": (lambda x: x[1:, ::-2] * x[:-1, 5:0:-2] + x[0, :3], (drawn(4, 6),)),
    "split": (lambda x: [a * a for a in ops.split(x, [1, 3], axis=1)], (drawn(2, 4),)),
    "softmax": (lambda x: ops.softmax(x, axis=0) + ops.log_softmax(x), (drawn(3, 4),)),
    "logsumexp": (lambda x: ops.logsumexp(x, axis=1) + ops.variance(x, axis=1), (drawn(3, 4),)),
    "gelu": (
        lambda x: (
            sum(ops.gelu(x, approximate=a) for a in ("none", "tanh", "sigmoid")) + ops.silu(x)
        ),
        (drawn(9),),
    ),
    "layer norm": (
        lambda x, g, b: ops.layer_norm(x, g, b) ** 2,
        (drawn(3, 4), drawn(4), drawn(4)),
    ),
    "layer norm in front": (
        lambda x, g: ops.layer_norm(x, g, axis=(0, 1), center=False),
        (drawn(3, 4, 2), drawn(3, 4)),
    ),
    "linear": (lambda x, w, b: ops.linear(x, w, b) ** 2, (drawn(2, 3, 4), drawn(5, 4), drawn(5))),
    "row": (lambda x, w: (x @ w) ** 2, (drawn(4), drawn(2, 4, 3))),
    **{
        f"matmul {'T' * ta}-{'T' * tb} {batch}": (
            lambda a, b, ta=ta, tb=tb: ops.matmul(a, b, transpose_a=ta, transpose_b=tb) ** 2,
            (
                drawn(*batch[0], *((3, 2) if ta else (2, 3))),
                drawn(*batch[1], *((4, 3) if tb else (3, 4))),
            ),
        )
        for ta in (False, True)
        for tb in (False, True)
        for batch in (((), ()), ((5,), ()), ((5, 1), (6,)))
    },
}


@pytest.mark.parametrize("name", CASES)
def test_gradients(name: str) -> None:
    """What `gradients` gives is what central differences give."""
    build, arrays = CASES[name]

    assert differences(build, *arrays) == []


@pytest.mark.parametrize("name", CASES)
def test_gradients_of_gradients(name: str) -> None:
    """The gradient of a weighted gradient, too."""
    build, arrays = CASES[name]

    def twice(*xs: Any) -> Any:
        out = build(*xs)
        outs = list(out) if isinstance(out, (tuple, list)) else [out]
        weighed = [ops.sin(y) for y in outs]
        return [g for g in pk.gradients(weighed, list(xs), unconnected="none") if g is not None]

    assert differences(twice, *arrays) == []


def test_sizes_may_be_unknown() -> None:
    """Broadcasts of unknown sizes are undone by sums, means divide by what a call counts."""

    def build(x: Any, w: Any, b: Any) -> Any:
        h = ops.tanh(x @ w + b)
        return ops.reduce_mean(ops.softmax(h), axis=0) * ops.reduce_max(x) + h[1:, ::-1][0]

    assert differences(build, drawn(5, 3), drawn(3, 4), drawn(4), open_sizes=True) == []


def test_ranks_may_be_unknown() -> None:
    """Elementwise operators wait for shapes, which inference finds before anything runs."""
    x, w = pk.var("x", None, "float64"), pk.var("w", None, "float64")
    found = pk.gradients(pk.var("z", (2, 3), "float64") * x * w, [w])

    (dw,) = pk.interpret(
        pk.ApplyPasses(pk.Graph(found), "Complete"),
        {"z": np.ones((2, 3)), "x": np.full((2, 3), 2.0), "w": np.ones((2, 3))},
    )
    np.testing.assert_array_equal(dw, np.full((2, 3), 2.0))


def test_contributions_add_up() -> None:
    """x * x + x passes three gradients to x (NNVM)."""
    x = pk.var("x", (3,), "float64")
    terms: list[int] = []

    def aggregate(entries: Any) -> Any:
        terms.append(len(entries))
        return sum(entries[1:], entries[0])

    (dx,) = pk.gradients(x * x + x, x, aggregate=aggregate)

    assert terms == [3]
    np.testing.assert_array_equal(
        pk.interpret(pk.Graph([dx]), {"x": np.arange(3.0)})[0], [1.0, 3.0, 5.0]
    )


def test_what_is_out_of_reach() -> None:
    """Zeros of the x's shape, None, or an error, as asked for."""
    x, z = pk.var("x", (3,)), pk.var("z", (2, 2))
    (dz,) = pk.gradients(x * 2.0, z)

    assert not pk.interpret(pk.Graph([dz]), {"z": np.ones((2, 2), "float32")})[0].any()
    assert pk.gradients(x, [z], unconnected="none") == [None]
    with pytest.raises(pk.GraphError, match=r"xs\[0\], z, is out of reach"):
        pk.gradients(x, [z], unconnected="error")


def test_no_gradient_flows_through_stop_gradient_and_integers() -> None:
    """They cut the way; what goes around counts."""
    x = pk.var("x", (3,), "float64")
    whole = ops.cast(ops.cast(x, "int32"), "float64")
    (dx,) = pk.gradients(ops.stop_gradient(x * x) * x + whole, x)

    np.testing.assert_array_equal(
        pk.interpret(pk.Graph([dx]), {"x": np.arange(3.0)})[0], [0.0, 1.0, 4.0]
    )


def test_intermediate_values_have_gradients() -> None:
    """An x may be computed, and be a y as well."""
    x = pk.var("x", (2,), "float64")
    h = x * 3.0
    dh, dx, again = pk.gradients([h * h, h], [h, x, h])

    found = pk.interpret(pk.Graph([dh, dx]), {"x": np.array([1.0, 2.0])})
    assert again is dh
    np.testing.assert_array_equal(found[0], [7.0, 13.0])
    np.testing.assert_array_equal(found[1], [21.0, 39.0])


def test_an_operator_with_several_results() -> None:
    """Its rule gets None for a result that no gradient reaches."""
    op = pk.register_op("test_sine_and_cosine", num_inputs=1, num_outputs=2)
    op.set_attr("FCodeGen", lambda node, x: (pk.ast.sin(x), pk.ast.cos(x)))
    op.set_attr("TOpPattern", pk.OpPattern.ELEMWISE)

    assert differences(lambda x: op(x)[1], drawn(4)) == []
    assert differences(lambda x: op(x), drawn(4)) == []


def test_an_own_rule_wins() -> None:
    """FGradient of a composite is asked instead of what it expands to."""
    op = pk.register_op("test_straight_through", num_inputs=1)
    op.set_attr("FExpand", lambda node, x: ops.rint(x * 2.0) / 2.0)
    op.set_attr("FInferShape", lambda node, shape: shape)
    x = pk.var("x", (2,), "float64")
    assert pk.gradients(op(x), x, unconnected="none") == [None]

    op.set_attr("FGradient", lambda node, dy: [dy])

    (dx,) = pk.gradients(op(x), x)
    np.testing.assert_array_equal(pk.interpret(pk.Graph([dx]))[0], [1.0, 1.0])


def _broken(name: str, **attrs: Any) -> Any:
    op = pk.register_op(name, num_inputs=1)
    for key, value in attrs.items():
        op.set_attr(key, value)
    return op(pk.var("x", (2, 3)))


X = pk.var("x", (2, 3))
BAD: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "unconnected": (
        lambda: pk.gradients(X, X, unconnected="maybe"),
        pk.PasskitError,
        "unconnected must be one of 'zero', 'none', 'error', got 'maybe'",
    ),
    "integer y": (
        lambda: pk.gradients(ops.cast(X, "int32"), X),
        pk.DTypeError,
        "gradients are of floats, and cast in ys is int32",
    ),
    "integer x": (
        lambda: pk.gradients(X, pk.var("k", (2,), "int64")),
        pk.DTypeError,
        "k in xs is int64",
    ),
    "no entry": (
        lambda: pk.gradients([2.0], X),
        pk.GraphError,
        r"ys\[0\] of gradients must be an Entry, got float",
    ),
    "too few weights": (
        lambda: pk.gradients([X, X], X, [X]),
        pk.GraphError,
        "grad_ys must be one for each of 2 ys, got 1",
    ),
    "shape of a weight": (
        lambda: pk.gradients(X, X, np.ones(3, "float32")),
        pk.ShapeError,
        r"given for x must have its shape \(2, 3\), got \(3,\)",
    ),
    "dtype of a weight": (
        lambda: pk.gradients(X, X, np.ones((2, 3))),
        pk.DTypeError,
        "given for x must be float32, got float64",
    ),
    "no gradient": (
        lambda: _through("test_no_way_back"),
        pk.GraphError,
        "test_no_way_back has no gradient: set FGradient on op test_no_way_back",
    ),
    "too few gradients": (
        lambda: _through("test_too_few", lambda node, dy: []),
        pk.RuleError,
        r"FGradient of test_too_few must give a sequence of 1.* got \[\]",
    ),
    "dtype of a gradient": (
        lambda: _through("test_wide", lambda node, dy: [ops.cast(dy, "float64")]),
        pk.DTypeError,
        "FGradient of test_wide gives float64 for input 0, which is float32",
    ),
    "shape of a gradient": (
        lambda: _through("test_flat", lambda node, dy: [ops.reshape(dy, shape=(6,))]),
        pk.ShapeError,
        r"FGradient of test_flat gives \(6,\) for input 0, which is \(2, 3\)",
    ),
    "no dtype": (
        lambda: pk.gradients(ops.tanh(y := pk.var("y", (2,), None)), y),
        pk.DTypeError,
        "gradient of tanh needs the dtype of input 0",
    ),
    "a sign that no operator means": (
        lambda: _through("test_rest", FCodeGen=lambda node, x: (x // 2.0) * x),
        pk.CodeGenError,
        "no operator means the kernel expression '//' of float32",
    ),
    "what sum_like cannot sum": (
        lambda: ops.sum_like(X, pk.var("y", (3, 2))),
        pk.ShapeError,
        r"sum_like needs a shape that broadcasts to \(2, 3\), got \(3, 2\)",
    ),
    "begin of unslice": (
        lambda: ops.unslice(X, shape=(4, 4), begin=(0,)),
        pk.ShapeError,
        r"unslice needs 2 extents as begin, one for each axis of \(2, 3\), got \(0,\)",
    ),
    "step of unslice": (
        lambda: ops.unslice(X, shape=(4, 4), begin=(0, 0), step=(1, 0)),
        pk.ShapeError,
        r"unslice needs ints other than 0 as step, got \(1, 0\)",
    ),
    "outside of unslice": (
        lambda: ops.unslice(X, shape=(4, 4), begin=(0, 2)),
        pk.ShapeError,
        "unslice writes elements 2 to 4 of axis 1, which has length 4",
    ),
    "size to divide by": (
        lambda: ops.div_by_size(X, size="many"),
        pk.ShapeError,
        "div_by_size needs an int or a size, got 'many'",
    ),
    "no operator": (
        lambda: _through("test_base_2", FCodeGen=lambda node, x: pk.ast.call("unheard_of", x)),
        pk.CodeGenError,
        "'unheard_of' has no derivative",
    ),
}


def _through(name: str, rule: Any = None, **attrs: Any) -> Any:
    own = {"FCompute": lambda node, x: x, "TOpPattern": pk.OpPattern.ELEMWISE, **attrs}
    if rule is not None:
        own["FGradient"] = rule
    y = _broken(name, **own)
    return pk.gradients(y, y.node.inputs[0])


@pytest.mark.parametrize("name", BAD)
def test_what_is_refused(name: str) -> None:
    """Each refusal says where, what was found, and the way out."""
    build, error, message = BAD[name]

    with pytest.raises(error, match=message):
        build()


def test_chains_are_long() -> None:
    """Thousands of nodes in a row are no matter: nothing recurses, and each is visited once."""
    x = pk.var("x", (3,), "float64")
    y = x
    for k in range(5000):
        y = ops.sin(y) + x if k % 2 else y * 1.001
    (dx,) = pk.gradients(y, x)

    assert len(pk.Graph([dx]).nodes) < 40000


def test_ones_are_no_factor() -> None:
    """The gradients that ys begin with are ones, which Simplify takes out of products."""
    x = pk.var("x", ("n", 4))
    graph = pk.ApplyPasses(pk.Graph(pk.gradients(ops.sin(x), x)), ["Simplify"])

    assert [n.op.name for n in graph.nodes if n.op is not None] == ["cos"]


def test_a_function_that_no_operator_is_called_like(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its derivative is known, and nothing computes it in a graph."""
    rule = lambda y, x: (pk.ast.call("test_nameless", x),)  # noqa: E731
    monkeypatch.setitem(RULES, "test_function", rule)

    with pytest.raises(pk.CodeGenError, match="no operator is called 'test_nameless'"):
        _through("test_caller", FCodeGen=lambda node, x: pk.ast.call("test_function", x))


def test_every_kernel_function_has_a_derivative() -> None:
    """But one: the derivative of trigamma is an operator with a parameter, which has a rule."""
    assert set(pk.ast.FUNCTIONS) - set(RULES) == {"trigamma"}
    assert ops.trigamma.has_attr("FGradient")
