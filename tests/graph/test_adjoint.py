"""Gradients by rules, derivatives and expansions equal central differences; errors are named."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import passkit as pk
from tests.ops.central import differences

ops = pk.ops
RNG = np.random.default_rng(3)


def drawn(*shape: int) -> Any:
    """Return normally distributed values, of both signs."""
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
def test_gradients_equal_central_differences(name: str) -> None:
    """First derivatives, in float64."""
    build, arrays = CASES[name]

    assert differences(build, *arrays) == []


@pytest.mark.parametrize("name", CASES)
def test_second_derivatives_equal_central_differences(name: str) -> None:
    """The gradient of a weighted gradient is right, too."""
    build, arrays = CASES[name]

    def twice(*xs: Any) -> Any:
        out = build(*xs)
        outs = list(out) if isinstance(out, (tuple, list)) else [out]
        weighed = [ops.sin(y) for y in outs]
        return [g for g in pk.gradients(weighed, list(xs), unconnected="none") if g is not None]

    assert differences(twice, *arrays) == []


def test_gradients_are_right_for_unknown_sizes() -> None:
    """Broadcasts over symbolic sizes are summed, and means divide by the size of a call."""

    def build(x: Any, w: Any, b: Any) -> Any:
        h = ops.tanh(x @ w + b)
        return ops.reduce_mean(ops.softmax(h), axis=0) * ops.reduce_max(x) + h[1:, ::-1][0]

    assert differences(build, drawn(5, 3), drawn(3, 4), drawn(4), open_sizes=True) == []


def test_gradients_are_right_for_unknown_ranks() -> None:
    """Gradients of elementwise operators are built without shapes, which inference adds later."""
    x, w = pk.var("x", None, "float64"), pk.var("w", None, "float64")
    gradients = pk.gradients(pk.var("z", (2, 3), "float64") * x * w, [w])

    (dw,) = pk.interpret(
        pk.ApplyPasses(pk.Graph(gradients), "Complete"),
        {"z": np.ones((2, 3)), "x": np.full((2, 3), 2.0), "w": np.ones((2, 3))},
    )
    np.testing.assert_array_equal(dw, np.full((2, 3), 2.0))


def test_aggregate_adds_all_contributions() -> None:
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


def test_unconnected_variables_get_zeros_none_or_an_error() -> None:
    """``unconnected`` selects the gradient of an x that no y depends on."""
    x, z = pk.var("x", (3,)), pk.var("z", (2, 2))
    (dz,) = pk.gradients(x * 2.0, z)

    assert not pk.interpret(pk.Graph([dz]), {"z": np.ones((2, 2), "float32")})[0].any()
    assert pk.gradients(x, [z], unconnected="none") == [None]
    with pytest.raises(pk.GraphError, match=r"no y depends on xs\[0\], z, so it has no"):
        pk.gradients(x, [z], unconnected="error")


def test_no_gradient_flows_through_stop_gradient_and_integers() -> None:
    """Only the path through neither of them contributes."""
    x = pk.var("x", (3,), "float64")
    whole = ops.cast(ops.cast(x, "int32"), "float64")
    (dx,) = pk.gradients(ops.stop_gradient(x * x) * x + whole, x)

    np.testing.assert_array_equal(
        pk.interpret(pk.Graph([dx]), {"x": np.arange(3.0)})[0], [0.0, 1.0, 4.0]
    )


def test_intermediate_values_have_gradients() -> None:
    """An x may be the result of an operator, and one of the ys as well."""
    x = pk.var("x", (2,), "float64")
    h = x * 3.0
    dh, dx, again = pk.gradients([h * h, h], [h, x, h])

    results = pk.interpret(pk.Graph([dh, dx]), {"x": np.array([1.0, 2.0])})
    assert again is dh
    np.testing.assert_array_equal(results[0], [7.0, 13.0])
    np.testing.assert_array_equal(results[1], [21.0, 39.0])


def test_operators_with_several_results_have_gradients() -> None:
    """The gradient is right whether one result or both are differentiated."""
    op = pk.register_op("test_sine_and_cosine", num_inputs=1, num_outputs=2)
    op.set_attr("FCodeGen", lambda node, x: (pk.ast.sin(x), pk.ast.cos(x)))
    op.set_attr("TOpPattern", pk.OpPattern.ELEMWISE)

    assert differences(lambda x: op(x)[1], drawn(4)) == []
    assert differences(lambda x: op(x), drawn(4)) == []


def test_fgradient_of_a_composite_replaces_that_of_its_expansion() -> None:
    """FGradient, where a composite has it, is called instead of differentiating its expansion."""
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
        "gradients: ys must be floats, and cast is int32",
    ),
    "integer x": (
        lambda: pk.gradients(X, pk.var("k", (2,), "int64")),
        pk.DTypeError,
        "gradients: xs must be floats, and k is int64",
    ),
    "no entry": (
        lambda: pk.gradients([2.0], X),
        pk.GraphError,
        r"ys\[0\] of gradients must be an Entry, got float",
    ),
    "too few weights": (
        lambda: pk.gradients([X, X], X, [X]),
        pk.GraphError,
        "grad_ys must have one weight for each of the 2 ys, got 1",
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
    "an aggregate that is no function": (
        lambda: pk.gradients(X, X, aggregate=3),
        pk.ArgumentError,
        "gradients: aggregate must be a function, got 3",
    ),
    "a sum that is no entry": (
        lambda: pk.gradients(ops.tanh(X) + X, X, aggregate=lambda terms: len(terms)),
        pk.ArgumentError,
        "aggregate must be a function that returns the sum .*, got 2",
    ),
    "a rule of recomputation that is no function": (
        lambda: pk.gradients(X, X, recompute=True),
        pk.ArgumentError,
        "gradients: recompute must be a function, got True",
    ),
    "a composite that does not expand": (
        lambda: _through("test_declines", FExpand=lambda node, x: None),
        pk.GraphError,
        "test_declines has no gradient: set FGradient on op test_declines",
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
    "a sign that no operator computes": (
        lambda: _through("test_rest", FCodeGen=lambda node, x: (x // 2.0) * x),
        pk.CodeGenError,
        "no operator computes the kernel expression '//' of float32",
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
    attributes = {"FCompute": lambda node, x: x, "TOpPattern": pk.OpPattern.ELEMWISE, **attrs}
    if rule is not None:
        attributes["FGradient"] = rule
    y = _broken(name, **attributes)
    return pk.gradients(y, y.node.inputs[0])


@pytest.mark.parametrize("name", BAD)
def test_invalid_calls_and_rules_are_refused(name: str) -> None:
    """The message says where, what was given, and how to correct it."""
    build, error, message = BAD[name]

    with pytest.raises(error, match=message):
        build()


def test_operators_with_state_may_have_no_inputs() -> None:
    """A stateful operator without inputs writes no variable that a gradient would have to track."""
    op = pk.register_op("test_ticks", num_inputs=0)
    op.set_attr("TStateful", True)
    op.set_attr("FInferShape", lambda node: (2, 3))
    op.set_attr("FInferType", lambda node: X.dtype)
    ticks = op()

    (dx,) = pk.gradients(ops.mul(ticks, X), X)

    assert dx is not None and ticks in pk.Graph([dx]).users


def test_long_chains_are_differentiated_without_recursion() -> None:
    """A chain of 5,000 nodes is differentiated, each node once."""
    x = pk.var("x", (3,), "float64")
    y = x
    for k in range(5000):
        y = ops.sin(y) + x if k % 2 else y * 1.001
    (dx,) = pk.gradients(y, x)

    assert len(pk.Graph([dx]).nodes) < 40000


def test_initial_ones_are_simplified_away() -> None:
    """The ones that the backward pass starts with leave no multiplication after Simplify."""
    x = pk.var("x", ("n", 4))
    graph = pk.ApplyPasses(pk.Graph(pk.gradients(ops.sin(x), x)), ["Simplify"])

    assert [n.op.name for n in graph.nodes if n.op is not None] == ["cos"]


def test_derivatives_without_an_operator_are_refused() -> None:
    """A derivative that contains a kernel function of which there is no operator is refused."""
    op = pk.register_op("test_caller", num_inputs=2)
    op.set_attr("FCodeGen", lambda node, x, y: x * pk.ast.call("test_nameless", y))
    op.set_attr("TOpPattern", pk.OpPattern.ELEMWISE)

    with pytest.raises(
        pk.CodeGenError, match="no operator has the name of the kernel function 'test_nameless'"
    ):
        pk.gradients(op(X, pk.var("y", (2, 3))), [X])


def test_every_kernel_function_has_a_derivative() -> None:
    """Trigamma, whose derivative is an operator with a parameter, has FGradient instead."""
    without_derivative = set()
    for name, count in pk.ast.FUNCTIONS.items():
        call = partial(_called_function, name, count)
        try:
            _through(f"test_derivative_of_{name}", FCodeGen=call)
        except pk.CodeGenError as error:
            if "has no derivative" in str(error):
                without_derivative.add(name)

    assert without_derivative == {"trigamma"}
    assert ops.trigamma.has_attr("FGradient")


def _called_function(name: str, count: int, node: Any, x: Any) -> Any:
    """Return a call of a kernel function whose ``count`` arguments are all ``x``."""
    return pk.ast.call(name, *[x] * count)
