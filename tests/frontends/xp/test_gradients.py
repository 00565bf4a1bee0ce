"""Gradients of functions of arrays: values, structures, loops, and refusals."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import attrs
import numpy as np
import pytest

import passkit as pk
from passkit import xp
from passkit.errors import (
    ArgumentError,
    ConcretizationError,
    DTypeError,
    GraphError,
    ShapeError,
)

rng = np.random.default_rng(7)


def finite_differences(function: Callable[[Any], Any], x: Any, step: float = 1e-6) -> Any:
    """Return the gradient of a scalar function by central differences."""
    gradient = np.empty(x.shape)
    for index in np.ndindex(x.shape):
        shifted = [x.copy(), x.copy()]
        shifted[0][index] += step
        shifted[1][index] -= step
        high, low = (float(function(xp.asarray(s))) for s in shifted)
        gradient[index] = (high - low) / (2 * step)
    return gradient


def set_elements(x: Any) -> Any:
    """Return a sum after assignments and in-place operations."""
    y = x * 2
    y[1:3] = x[0:2] * x[2]
    y[0] += xp.sin(x[4])
    y *= x
    y[x > 0.5] = 0.25
    return xp.sum(y * xp.arange(5.0))


def loop(x: Any) -> Any:
    """Return a value of a loop over numbers and shapes."""
    total = xp.zeros(())
    for k in range(x.shape[0]):
        total = total + x[k] ** (k + 1) if k != 2 else total * x[k]
    return total


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "elementwise": lambda x: xp.sum(xp.sin(x) * xp.exp(x) / (1 + x**2) - xp.log(x + 2) * x**3),
    "roots": lambda x: xp.sum(xp.sqrt(x + 2) + xp.hypot(x, x + 1) + (x + 3) ** 0.5 + 2**x),
    "choices": lambda x: xp.sum(xp.where(x > 0.3, x * x, -x) + xp.maximum(x, 0.2) + xp.abs(x)),
    "clipped": lambda x: xp.sum(xp.clip(x, -0.4, 0.4) * x),
    "reductions": lambda x: xp.mean(x) * xp.var(x) + xp.std(x) + xp.prod(x + 2) + xp.max(x),
    "axes": lambda x: xp.sum(xp.mean(x.reshape(1, 5), axis=0) * xp.flip(x)),
    "scans": lambda x: xp.sum(xp.cumulative_sum(x) * x),
    "products": lambda x: x @ (x[:, None] * x[None, :]) @ xp.ones(5) + xp.vecdot(x, x),
    "matrices": lambda x: xp.sum(xp.linalg.inv(xp.eye(5) * 9 + xp.linalg.outer(x, x)) @ x),
    "movement": lambda x: xp.sum(xp.concat([x, x[::-1]])[1:7:2] * xp.stack([x, x * 2])[1, :3]),
    "gathers": lambda x: xp.sum(xp.take(x, xp.asarray([0, 3, 3])) * x[xp.asarray([1, 2, -1])]),
    "special": lambda x: xp.sum(xp.special.erf(x) + xp.special.log_softmax(x, axis=0) * x),
    "sorted": lambda x: xp.sum(xp.sort(x) * xp.arange(5.0)),
    "in place": set_elements,
    "loops": loop,
    "tiles": lambda x: xp.sum(xp.tile(x, (2,)) * xp.repeat(xp.roll(x, 1), 2)),
    "broadcast": lambda x: xp.sum(xp.broadcast_to(x, (3, 5)) * xp.asarray([[1.0], [2.0], [3.0]])),
    "triangles": lambda x: xp.sum(xp.tril(x[:, None] * x) @ x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_equal_finite_differences(name: str) -> None:
    """First and second derivatives of many functions agree with differences of their values."""
    x = rng.uniform(-0.9, 0.9, 5)
    function = FUNCTIONS[name]

    gradient = pk.grad(function)(xp.asarray(x))
    second = pk.grad(lambda x: xp.sum(pk.grad(function)(x) * xp.asarray([1.0, 2, 3, 4, 5])))

    np.testing.assert_allclose(gradient, finite_differences(function, x), rtol=1e-5, atol=1e-8)
    expected = finite_differences(
        lambda x: xp.sum(pk.grad(function)(x) * xp.asarray([1.0, 2, 3, 4, 5])), x
    )
    np.testing.assert_allclose(second(xp.asarray(x)), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.usefixtures("xp_queue", "quick_kernels")
def test_compiled_gradients_equal_formulas() -> None:
    """Softmax regression: the gradient of the loss by the logits is p - y, for several sizes."""

    def loss(weights: Any, x: Any, labels: Any) -> Any:
        logits = x @ weights["w"] + weights["b"]
        return -xp.mean(xp.sum(labels * xp.special.log_softmax(logits, axis=1), axis=1))

    for n, k in ((40, 3), (50, 3)):
        x, w, b = rng.standard_normal((n, 7)), rng.standard_normal((7, k)), rng.standard_normal(k)
        labels = np.eye(k)[rng.integers(0, k, n)]
        value, gradient = pk.value_and_grad(loss)(
            {"w": xp.asarray(w), "b": xp.asarray(b)}, xp.asarray(x), xp.asarray(labels)
        )
        logits = x @ w + b
        p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
        assert "pending" in repr(value) and "pending" in repr(gradient["w"])
        np.testing.assert_allclose(float(value), -np.mean(np.log((p * labels).sum(1))))
        np.testing.assert_allclose(gradient["w"], x.T @ (p - labels) / n)
        np.testing.assert_allclose(gradient["b"], (p - labels).mean(0))


class Layer(NamedTuple):
    """A named tuple of parameters."""

    w: Any
    b: Any


@dataclasses.dataclass
class Scale:
    """A data class of a parameter."""

    factor: Any


@attrs.frozen
class Shift:
    """A frozen attrs class of parameters."""

    offset: Any
    unused: Any = None


def random_tree(random: np.random.Generator, depth: int) -> Any:
    """Return a random nested container of float arrays, numbers and None."""
    kind = random.integers(0, 8 if depth else 2)
    if kind == 0:
        return xp.asarray(random.standard_normal(int(random.integers(1, 4))))
    if kind == 1:
        return float(random.standard_normal())
    children = [random_tree(random, depth - 1) for _ in range(2)]
    forms: list[Callable[[Any, Any], Any]] = [
        lambda a, b: [a, b, None],
        lambda a, b: (a, [b]),
        lambda a, b: {"a": a, 3: b},
        Layer,
        lambda a, b: (Scale(a), b),
        Shift,
    ]
    return forms[kind - 2](*children)


def leaves_of(tree: Any) -> list[Any]:
    """Return the leaves of a tree, by an independent walk."""
    if tree is None:
        return []
    if isinstance(tree, dict):
        return [leaf for part in tree.values() for leaf in leaves_of(part)]
    if isinstance(tree, (list, tuple)):
        return [leaf for part in tree for leaf in leaves_of(part)]
    if isinstance(tree, Scale):
        return leaves_of(tree.factor)
    if isinstance(tree, Shift):
        return leaves_of(tree.offset) + leaves_of(tree.unused)
    return [tree]


@pytest.mark.parametrize("seed", range(12))
def test_gradients_have_the_form_of_the_arguments(seed: int) -> None:
    """The gradient of the sum of squares of a random structure is twice the structure."""
    tree = random_tree(np.random.default_rng(seed), 3)

    def squares(tree: Any) -> Any:
        total = xp.zeros(())
        for leaf in leaves_of(tree):
            total += xp.sum(leaf * leaf)
        return total

    gradient = pk.grad(squares)(tree)

    assert type(gradient) is (xp.Array if isinstance(tree, float) else type(tree))
    pairs = list(zip(leaves_of(gradient), leaves_of(tree), strict=True))
    assert all(isinstance(g, xp.Array) for g, _ in pairs)
    for g, leaf in pairs:
        np.testing.assert_allclose(g, 2 * np.asarray(leaf))


def test_argnums_aux_and_other_arguments() -> None:
    """Several arguments, further results, keywords, texts, numbers and NumPy arrays are taken."""

    def f(x: Any, mode: str, y: Any, *, scale: float = 1.0, more: Any = None) -> Any:
        z = x * y * scale + (more["shift"] if mode == "shifted" else 0)
        return xp.sum(z), {"z": z, "mode": mode, "n": x.shape[0], "x": more}

    x, y = np.array([1.0, 2.0]), xp.asarray([3.0, 4.0])
    more = {"shift": xp.asarray([1.0, 1.0])}
    (value, aux), (dx, dy) = pk.value_and_grad(f, argnums=(0, -1), has_aux=True)(
        x, "shifted", y, scale=2.0, more=more
    )

    assert float(value) == 24.0 and aux["mode"] == "shifted" and aux["n"] == 2
    assert aux["z"].tolist() == [7.0, 17.0] and aux["x"]["shift"].tolist() == [1.0, 1.0]
    assert dx.tolist() == [6.0, 8.0] and dy.tolist() == [2.0, 4.0]
    gradient, aux = pk.grad(f, has_aux=True)(x, "plain", y)
    assert gradient.tolist() == [3.0, 4.0] and aux["x"] is None


def test_decorators_keep_the_name() -> None:
    """`grad` and `value_and_grad` are decorators, with or without arguments."""

    @pk.value_and_grad
    def one(x: Any) -> Any:
        """Doc."""
        return x * x

    @pk.grad(argnums=1)
    def two(x: Any, y: Any) -> Any:
        return x * y

    assert (one.__name__, one.__doc__, two.__name__) == ("one", "Doc.", "two")
    assert float(one(3.0)[1]) == 6.0 and float(two(3.0, 4.0)) == 3.0
    assert float(pk.value_and_grad(has_aux=True)(lambda x: (x, 1))(2.0)[1]) == 1.0


def test_python_floats_take_the_dtype_of_the_arrays() -> None:
    """Beside float32 arrays, a Python float does not widen the computation."""
    params = {"w": xp.ones(3, dtype=xp.float32), "b": 0.5}
    value, gradient = pk.value_and_grad(lambda p: xp.sum(p["w"] * p["b"]))(params)

    assert value.dtype == gradient["w"].dtype == gradient["b"].dtype == xp.float32
    assert pk.grad(lambda x: x * x)(0.5).dtype == xp.float64


def test_arguments_are_not_changed_in_place() -> None:
    """In-place operations of the function act on its own arrays only."""
    x, y, box = xp.asarray([1.0, 2.0]), xp.asarray([5.0, 6.0]), {"z": xp.asarray([7.0])}

    def f(x: Any, y: Any, box: Any) -> Any:
        x += 1
        y[0] = 0.0
        box["z"] *= 2
        return xp.sum(x * y) + box["z"][0]

    gradient = pk.grad(f)(x, y, box)

    assert gradient.tolist() == [0.0, 6.0]
    assert (x.tolist(), y.tolist(), box["z"].tolist()) == ([1.0, 2.0], [5.0, 6.0], [7.0])


def test_what_does_not_depend_on_arguments_is_available() -> None:
    """Inside a differentiated function, other arrays have elements, also pending large ones."""
    data = xp.arange(1000.0)
    pending = data * 2

    def f(x: Any) -> Any:
        scale = float(xp.max(pending + 1))
        return xp.sum(x * pending[:3]) / scale + xp.sum(x * xp.ones(3)) * (data[5] * 0)

    assert "pending" in repr(pending)
    np.testing.assert_allclose(pk.grad(f)(xp.zeros(3)), np.array([0.0, 2, 4]) / 1999)


def test_the_same_array_twice_has_partial_derivatives() -> None:
    """Arguments are independent variables, even if they are one array or depend on another."""
    x = xp.asarray([1.0, 2.0])
    f = pk.grad(lambda a, b: xp.sum(a * a * b), argnums=(0, 1))

    first, second = f(x, x)
    third = pk.grad(lambda x: xp.sum(f(x, x * 2)[0]))(x)

    assert (first.tolist(), second.tolist()) == ([2.0, 8.0], [1.0, 4.0])
    np.testing.assert_allclose(third, 8 * np.array([1.0, 2.0]))


def test_unused_arguments_and_constant_results() -> None:
    """An array that the result does not depend on has the gradient 0."""
    x = xp.asarray([1.0, 2.0], dtype=xp.float32)

    gradient = pk.grad(lambda p: xp.sum(p[0]))((x, x * 2))
    constant = pk.value_and_grad(lambda x: 3.0)(x)
    outside = pk.value_and_grad(lambda y: xp.sum(x))(x)

    assert gradient[1].tolist() == [0.0, 0.0] and gradient[1].dtype == xp.float32
    assert float(constant[0]) == 3.0 and constant[1].tolist() == [0.0, 0.0]
    assert float(outside[0]) == 3.0 and outside[1].tolist() == [0.0, 0.0]


@pytest.mark.usefixtures("xp_queue", "quick_kernels")
@pytest.mark.parametrize("reads", ["each", "last"])
def test_a_training_loop_is_one_plan_for_each_iteration(reads: str) -> None:
    """A hundred iterations with a changing rate explore as much as three, and plans stay small."""
    x, y = rng.standard_normal((300, 4)), rng.standard_normal(300)

    def loss(params: Any, x: Any, y: Any) -> Any:
        return xp.mean((x @ params["w"] + params["b"] - y) ** 2) + 1e-3 * xp.sum(params["w"] ** 2)

    params = {"w": xp.zeros(4), "b": xp.zeros(())}
    w, b = np.zeros(4), 0.0
    explorations = []
    data = xp.asarray(x), xp.asarray(y)
    with xp.inspect() as runs:
        for k in range(100):
            rate = 0.1 / (1 + k)
            value, gradient = pk.value_and_grad(loss)(params, *data)
            params = {n: params[n] - rate * gradient[n] for n in params}
            if reads == "each":
                xp.eval(value, *params.values())
            error = x @ w + b - y
            w, b = w - rate * (x.T @ error * 2 / 300 + 2e-3 * w), b - rate * 2 * error.mean()
            explorations.append(xp.stats()["explorations"])
        np.testing.assert_allclose(params["w"], w)
        np.testing.assert_allclose(params["b"], b)

    assert explorations[5] == explorations[-1]
    programs = [r.operations.count("program") for r in runs]
    assert max(programs) == 1 and sum(programs) >= 99


def test_vjp_and_jvp() -> None:
    """Products with the Jacobian from the left and the right, of several arguments and results."""
    matrix = rng.standard_normal((3, 2))

    def f(x: Any, p: Any) -> Any:
        return {"y": xp.asarray(matrix) @ x * p["s"], "z": xp.sum(x**2)}

    x, s = xp.asarray([1.0, 2.0]), xp.asarray(3.0)
    value, pull = pk.vjp(f, x, {"s": s})
    weights = {"y": xp.asarray([1.0, -1.0, 2.0]), "z": 0.5}
    dx, dp = pull(weights)
    out, derivative = pk.jvp(f, (x, {"s": s}), (xp.asarray([1.0, 0.5]), {"s": 2.0}))

    a = matrix @ [1.0, 2.0]
    np.testing.assert_allclose(value["y"], a * 3)
    np.testing.assert_allclose(dx, 3 * np.array([1.0, -1.0, 2.0]) @ matrix + [1.0, 2.0])
    np.testing.assert_allclose(dp["s"], a @ [1.0, -1.0, 2.0])
    np.testing.assert_allclose(out["y"], a * 3)
    np.testing.assert_allclose(derivative["y"], 3 * matrix @ [1.0, 0.5] + 2 * a)
    np.testing.assert_allclose(float(derivative["z"]), 4.0)
    y, pull, aux = pk.vjp(lambda x: (x * 2, x), x, has_aux=True)
    assert aux.tolist() == [1.0, 2.0] and pull(y)[0].tolist() == [4.0, 8.0]
    constant = pk.jvp(lambda x: xp.ones(2), [x], [x])[1]
    assert constant.tolist() == [0.0, 0.0]


def test_vjp_without_arguments() -> None:
    """A function without arguments, or of None, has no gradients to return."""
    x = xp.asarray([1.0, 2.0])
    assert pk.vjp(lambda: x)[1](x) == ()
    assert pk.vjp(lambda a: x * 2, None)[1](x) == (None,)


def test_vjp_reads_arguments_as_they_were() -> None:
    """The returned function is called later, after other names took new values."""
    x = xp.asarray([1.0, 2.0])
    _, pull = pk.vjp(lambda x: x * x, x)
    x *= 10
    xp.eval(x)

    assert pull(xp.asarray([1.0, 1.0]))[0].tolist() == [2.0, 4.0]


def test_functions_of_entries() -> None:
    """Called with entries, the functions build the gradient in the graph; `jit` compiles it."""

    def f(x: Any, p: Any) -> Any:
        return pk.ops.reduce_sum(x * x * p["a"]), p

    x = np.array([1.0, 2.0], np.float32)

    @pk.jit(target="interpret")
    def step(x: Any) -> Any:
        (value, _), (dx, dp) = pk.value_and_grad(f, (0, 1), has_aux=True)(x, {"a": x * 3})
        return value, dx, dp["a"], pk.grad(lambda y: f(y, {"a": 1.0})[0])(x)

    value, dx, da, dy = step(x)

    assert value == 27 and dx.tolist() == [6.0, 24.0]
    assert da.tolist() == [1.0, 4.0] and dy.tolist() == [2.0, 4.0]
    with pytest.raises(ShapeError, match=r"grad of <lambda>: .* a scalar, got shape \(2,\)"):
        pk.grad(lambda x: x)(pk.var("x", (2,)))
    with pytest.raises(ArgumentError, match="grad of <lambda>: .* return an Entry, got 'y'"):
        pk.grad(lambda x: "y")(pk.var("x", (2,)))


def test_control_flow_on_elements_names_the_line() -> None:
    """The elements of an argument are not available, and the error says where they are needed."""

    def branch(x: Any) -> Any:
        if x[0] > 0:
            return xp.sum(x)
        return -xp.sum(x)

    line = branch.__code__.co_firstlineno + 1
    x = xp.asarray([1.0, 2.0])
    with pytest.raises(ConcretizationError, match=rf"test_gradients.py:{line}: bool .*grad of bra"):
        pk.grad(branch)(x)
    uses: dict[str, Callable[[Any], Any]] = {
        "float": lambda x: float(xp.sum(x)) * x,
        "numpy": lambda x: np.linalg.norm(x),
        "item": lambda x: x[0].item() * x,
        "eval": lambda x: xp.eval(x),
    }
    for reason, function in uses.items():
        with pytest.raises(
            ConcretizationError, match=rf"test_gradients.py:\d+: {reason} .*float64"
        ):
            pk.grad(function)(x)
    with pytest.raises(ConcretizationError, match="jit of <lambda>"):
        pk.jit(lambda x: x if xp.any(x) else -x)(x)


def test_arrays_do_not_leave_a_function() -> None:
    """An array of a function that has ended is refused, with a way to get it out."""
    kept = []
    x = xp.asarray([1.0, 2.0])
    pk.grad(lambda x: (kept.append(x * 2), xp.sum(x))[1])(x)

    with pytest.raises(ConcretizationError, match=r"grad of <lambda>, which has ended; .*has_aux"):
        kept[0].tolist()
    with pytest.raises(ConcretizationError, match="its use in another function .*has ended"):
        pk.grad(lambda x: xp.sum(x * kept[0]))(x)
    with pytest.raises(ConcretizationError, match="has ended"):
        (kept[0] + x).tolist()


def test_an_array_changed_in_place_while_it_is_recorded() -> None:
    """Pending arrays from outside that are replaced and executed meanwhile are refused."""
    counter = {"t": xp.arange(1000.0) * 2}

    def f(x: Any) -> Any:
        y = xp.sum(x * counter["t"])
        counter["t"] += 1
        xp.eval(counter["t"])
        return y

    with pytest.raises(GraphError, match="grad of f changed an array in place"):
        pk.grad(f)(xp.ones(1000))


def test_refused_arguments_and_results() -> None:
    """Arguments and results that have no gradient are refused by name."""
    x = xp.asarray([1.0, 2.0])
    total = pk.grad(lambda p: xp.sum(p["w"]))
    with pytest.raises(DTypeError, match=r"grad of <lambda>: argument 0\['n'\] is int64"):
        total({"w": x, "n": xp.asarray([1])})
    with pytest.raises(DTypeError, match=r"argument 0\['n'\] is bool"):
        total({"w": x, "n": True})
    with pytest.raises(DTypeError, match=r"argument 0\['w'\] is complex128"):
        total({"w": x.astype(xp.complex128)})
    with pytest.raises(ArgumentError, match=r"argument 0\['name'\] must be an array .* got 'a'"):
        total({"w": x, "name": "a"})
    with pytest.raises(ArgumentError, match="needs argument 1 by position .* got 1 by position"):
        pk.grad(lambda x, y: x, argnums=1)(x, y=x)
    with pytest.raises(ArgumentError, match=r"argnums must be .* got \(0, 0\)"):
        pk.grad(lambda x: x, argnums=(0, 0))
    with pytest.raises(ArgumentError, match="value_and_grad: function must be a function, got 3"):
        pk.value_and_grad(3)
    with pytest.raises(ShapeError, match=r"0-dimensional array, got shape \(2,\); .*pk.vjp"):
        pk.grad(lambda x: x * 2)(x)
    with pytest.raises(DTypeError, match="the function returned int64"):
        pk.grad(lambda x: xp.argmax(x))(x)
    with pytest.raises(ArgumentError, match="must return an array of passkit.xp, got 'x'"):
        pk.grad(lambda x: "x")(x)
    with pytest.raises(ArgumentError, match="the function must return a pair, got 3"):
        pk.grad(lambda x: 3, has_aux=True)(x)
    with pytest.raises(ArgumentError, match="vjp of <lambda>: the function must return .* None"):
        pk.vjp(lambda x: None, x)
    with pytest.raises(ArgumentError, match=r"jvp of <lambda>: the function must return .* \[\]"):
        pk.jvp(lambda x: [], [x], [x])
    _, pull = pk.vjp(lambda x: [x], x)
    with pytest.raises(ArgumentError, match=r"vjp: the leaves x\[0\] are needed, got x"):
        pull(x)
    with pytest.raises(ArgumentError, match=r"vjp: x\[0\] must be an array, got 'a'"):
        pull(["a"])
    with pytest.raises(ShapeError, match=r"vjp: x\[0\] must have shape \(2,\), got \(1,\)"):
        pull([np.ones(1)])
    with pytest.raises(DTypeError, match=r"x\[0\] must be float64, got float32"):
        pull([x.astype(xp.float32)])


def test_arguments_are_freed_without_garbage_collection() -> None:
    """Recording leaves no reference cycles, which would keep large arrays for a while."""
    gc.collect()
    gc.disable()
    try:
        x = xp.ones(1000)
        arrays = [weakref.ref(x._numpy())]
        results = [pk.grad(lambda x: xp.sum(x * x))(x), pk.vmap(lambda x: x + 1)(x)]
        results.append(pk.vjp(lambda x: x * x, x)[1](x)[0])
        xp.eval(*results)
        with contextlib.suppress(ZeroDivisionError):
            pk.grad(lambda x: xp.sum(x * x) / (1 // 0))(x)
        with contextlib.suppress(ZeroDivisionError):
            pk.vmap(lambda x: (1 // 0) * x)(x)
        del x, results
        assert arrays[0]() is None
    finally:
        gc.enable()


@pytest.mark.usefixtures("xp_queue", "quick_kernels")
def test_plans_of_gradients_are_found_on_disk() -> None:
    """A process that reads the stored plans compiles none for a gradient that it meets again."""

    def run() -> dict[str, int]:
        """Compute second derivatives with an assignment, and return the counters."""

        def f(x: Any) -> Any:
            x[1:3] = x[0] * 0.5
            return xp.sum(xp.tanh(x) ** 2 + x.reshape(2, -1)[0, 1])

        with xp.stream():  # without what earlier tests left pending
            x = xp.asarray(np.arange(40.0))
            second = pk.grad(lambda x: xp.sum(pk.grad(f)(x) * x))(x)
            assert np.isfinite(second.numpy()).all()
        return dict(xp.stats())

    run()
    xp.forget_plans()
    before, after = dict(xp.stats()), run()

    assert after["explorations"] == before["explorations"]
    assert after["disk_hits"] == before["disk_hits"] + 1


@pytest.mark.usefixtures("quick_kernels")
def test_compiled_second_derivatives_of_moved_elements() -> None:
    """Plans for all sizes know the positions of slices that only the backward pass refers to."""

    def second(x: Any) -> Any:
        names = ("tiles", "movement", "gathers")
        gradients = [pk.grad(FUNCTIONS[name]) for name in names]
        return pk.grad(lambda x: xp.sum(sum(g(x) for g in gradients) * xp.arange(5.0)))(x)

    x = xp.asarray(rng.uniform(-0.9, 0.9, 5))
    expected = second(x).numpy()
    with xp.config(small=0, compile_at=0):
        np.testing.assert_allclose(second(x).numpy(), expected)


# Repeated calls, whose programs the recorder finds by itself.


def repeated(function: Callable[..., Any], *args: Any, calls: int = 4) -> list[Any]:
    """Return the results of equal calls; the last ones take the short way."""
    return [function(*args) for _ in range(calls)]


def test_a_function_runs_at_each_call() -> None:
    """Side effects, Python numbers and arrays that change count at each call."""
    calls: list[int] = []
    factor, shift = 1.0, xp.asarray([1.0, 2.0])

    @pk.value_and_grad
    def loss(x: Any) -> Any:
        calls.append(len(calls))
        return xp.sum(x * x * factor * shift)

    x = xp.asarray([3.0, 4.0])
    for k in range(12):
        factor = [0.5, 2.0, -0.0, -3.0, 1e300][k % 5]
        if k == 7:
            shift = xp.asarray([5.0, -1.0])
        value, gradient = loss(x)
        expected = np.asarray(shift) * factor
        np.testing.assert_allclose(gradient.numpy(), 2 * np.asarray([3.0, 4.0]) * expected)
        assert float(value) == np.sum(np.asarray([9.0, 16.0]) * expected)
    assert calls == list(range(12))


def test_other_operations_are_noticed_at_each_call() -> None:
    """A function that branches on Python values records what it does this time."""
    kind = ""

    @pk.grad
    def loss(x: Any) -> Any:
        if kind == "square":
            return xp.sum(x**2)
        if kind == "first":
            return x[0] * 1.0
        if kind == "mean":
            return xp.mean(x * x)
        if kind == "number":
            return 3.0
        return xp.sum(xp.sin(x)) if kind == "sine" else x[0]

    x = np.asarray([0.5, 1.5, -2.0])
    expected = {
        "square": 2 * x,
        "first": np.asarray([1.0, 0, 0]),
        "mean": 2 * x / 3,
        "number": np.zeros(3),
        "sine": np.cos(x),
        "itself": np.asarray([1.0, 0, 0]),
    }
    for name in [*expected, *expected, *expected, "sine", "sine", "square"]:
        kind = name
        np.testing.assert_allclose(loss(xp.asarray(x)).numpy(), expected[name], atol=1e-15)


def test_shapes_and_forms_may_change_between_calls() -> None:
    """Other extents, dtypes, containers and names of arguments give their own results."""

    @pk.grad
    def loss(p: Any, scale: Any = 1.0, *, weights: Any = None) -> Any:
        leaves = p.values() if isinstance(p, dict) else p if isinstance(p, (list, tuple)) else [p]
        total = xp.zeros(())
        for k, leaf in enumerate(leaves):
            total = total + xp.sum(leaf * leaf) * (k + 1)
        return total * scale if weights is None else total * xp.sum(weights)

    def arrays(n: int, dtype: Any = np.float64) -> Any:
        return xp.asarray(np.arange(1.0, n + 1), dtype=dtype)

    for n in (3, 3, 3, 400, 400, 400, 3, 500, 400):
        np.testing.assert_allclose(loss(arrays(n)).numpy(), 2 * np.arange(1.0, n + 1))
        gradient = loss({"a": arrays(n), "b": arrays(2)}, 2.0)
        np.testing.assert_allclose(gradient["b"].numpy(), [8.0, 16.0])
        gradient = loss({"b": arrays(n), "a": arrays(2)}, 2.0)
        assert list(gradient) == ["b", "a"]
        np.testing.assert_allclose(gradient["a"].numpy(), [8.0, 16.0])
        single = loss([arrays(n, np.float32)], weights=arrays(3))
        assert isinstance(single, list) and single[0].dtype == np.float32
        np.testing.assert_allclose(single[0].numpy(), 12 * np.arange(1.0, n + 1))
        pair = loss((arrays(2), (1.0)), 3.0)
        assert isinstance(pair, tuple)
        np.testing.assert_allclose([float(pair[0][1]), float(pair[1])], [12.0, 12.0])


def test_an_error_in_a_function_leaves_nothing_behind() -> None:
    """It passes, also after calls that succeeded; later calls and operations are unharmed."""
    fails = False
    seen: list[Any] = []

    class WrongError(Exception):
        """Raised by the function below."""

    @pk.value_and_grad
    def loss(x: Any) -> Any:
        y = xp.sin(x)
        seen.append(weakref.ref(y))
        if fails:
            raise WrongError("17")
        return xp.sum(y)

    x = xp.asarray(rng.random(1000))
    for k in range(9):
        fails = k % 3 == 2
        if fails:
            with pytest.raises(WrongError, match="17"):
                loss(x)
            doubled = x * 2  # is recorded where it belongs
            np.testing.assert_allclose(doubled.numpy(), x.numpy() * 2)
            continue
        value, gradient = loss(x)
        np.testing.assert_allclose(gradient.numpy(), np.cos(x.numpy()))
        assert abs(float(value) - np.sum(np.sin(x.numpy()))) < 1e-9
    assert not any(reference() for reference in seen)


@pytest.mark.parametrize(
    ("result", "error", "match"),
    [
        (lambda x: x, ShapeError, r"got shape \(3,\)"),
        (lambda x: None, ArgumentError, "got None"),
        (lambda x: xp.sum(x) > 0, DTypeError, "returned bool"),
        (lambda x: float(x[0]), ConcretizationError, "depends on an argument of grad of loss"),
    ],
)
def test_wrong_results_are_refused_at_any_call(result: Any, error: Any, match: str) -> None:
    """A call that succeeded before does not hide a result that cannot be differentiated."""
    current: Callable[[Any], Any] = xp.sum

    @pk.grad
    def loss(x: Any) -> Any:
        return current(x)

    x = xp.asarray([1.0, 2.0, 3.0])
    for _ in range(3):
        current = xp.sum
        repeated(loss, x, calls=3)
        current = result
        with pytest.raises(error, match=match):
            loss(x)
    current = xp.sum
    assert loss(x).numpy().tolist() == [1.0, 1.0, 1.0]


def test_repeated_calls_do_not_change_arguments_in_place() -> None:
    """In-place operations of a function change its own arrays only, at each call."""
    outside = xp.asarray([1.0, 1.0])

    @pk.value_and_grad
    def loss(p: Any, x: Any) -> Any:
        p["w"] *= 2
        x += 1.0
        p["other"] = x
        return xp.sum(p["w"] * x) + xp.sum(outside)

    w, x = xp.asarray([1.0, 2.0]), xp.asarray([10.0, 20.0])
    parameters = {"w": w}
    for value, gradient in repeated(loss, parameters, x, calls=5):
        assert float(value) == 2 * (11 + 42) + 2
        assert list(gradient) == ["w"] and gradient["w"].numpy().tolist() == [22.0, 42.0]
    assert list(parameters) == ["w"]
    assert w.numpy().tolist() == [1.0, 2.0] and x.numpy().tolist() == [10.0, 20.0]


def test_arrays_that_a_repeated_function_uses_are_read_as_they_are() -> None:
    """Arrays from outside may be pending, get another value in place, or be written by NumPy."""
    outside = xp.asarray(np.ones(300))
    exposed = xp.asarray(np.ones(300))
    view = np.asarray(exposed)

    @pk.grad
    def loss(x: Any) -> Any:
        return xp.sum(x * outside * exposed)

    x = xp.asarray(np.arange(300.0))
    for k in range(1, 7):
        outside += 1.0  # pending
        expected = np.full(300, 1.0 + k)
        gradient = loss(x)
        if k % 2:
            outside *= 1.0
        np.testing.assert_allclose(gradient.numpy(), expected * view)


def test_an_array_of_a_repeated_call_cannot_be_used_later() -> None:
    """It names the function that has ended."""
    kept: list[Any] = []

    @pk.grad
    def loss(x: Any) -> Any:
        kept.append(x * 2)
        return xp.sum(kept[-1])

    repeated(loss, xp.asarray([1.0, 2.0]))
    for array in kept:
        with pytest.raises(ConcretizationError, match="grad of loss, which has ended"):
            array.numpy()
        with pytest.raises(ConcretizationError, match="grad of loss, which has ended"):
            pk.grad(lambda x, array=array: xp.sum(x * array))(xp.asarray([1.0, 2.0]))


def test_nested_transformations_repeat() -> None:
    """Second derivatives, `vmap`, `jit` and `jvp` of gradients, called again and again."""
    exponent = 3.0

    def loss(x: Any) -> Any:
        return xp.sum(x**exponent)

    gradient = pk.grad(loss)
    second = pk.grad(lambda x: xp.sum(gradient(x) * x))
    each = pk.vmap(pk.value_and_grad(lambda x: xp.sum(xp.sin(x) * x)))
    compiled = pk.jit(pk.value_and_grad(lambda p, x: xp.mean((p["w"] * x + p["b"]) ** 2)))
    x = np.asarray([1.0, 2.0, -3.0])
    for k in range(6):
        exponent = 3.0 if k < 3 else 4.0
        ours = xp.asarray(x + k)
        np.testing.assert_allclose(gradient(ours).numpy(), exponent * (x + k) ** (exponent - 1))
        # The sum of x f'(x) has the derivative f' + x f''.
        expected = exponent**2 * (x + k) ** (exponent - 1)
        np.testing.assert_allclose(second(ours).numpy(), expected)
        rows = np.stack([x, x + k])
        values, gradients = each(xp.asarray(rows))
        np.testing.assert_allclose(values.numpy(), np.sum(np.sin(rows) * rows, 1))
        np.testing.assert_allclose(gradients.numpy(), np.cos(rows) * rows + np.sin(rows))
        p = {"w": xp.asarray([2.0, 2.0, 2.0]), "b": xp.asarray(1.0 + k)}
        value, gradients = compiled(p, ours)
        residual = 2 * (x + k) + 1 + k
        np.testing.assert_allclose(float(value), np.mean(residual**2))
        np.testing.assert_allclose(gradients["w"].numpy(), 2 * residual * (x + k) / 3)
        np.testing.assert_allclose(float(gradients["b"]), 2 * np.mean(residual))
        _, along = pk.jvp(gradient, [ours], [xp.ones(3)])
        expected = exponent * (exponent - 1) * (x + k) ** (exponent - 2)
        np.testing.assert_allclose(along.numpy(), expected)


def test_threads_differentiate_one_function() -> None:
    """Each thread records in its own stream, though they share what is remembered."""
    offsets = threading.local()

    @pk.value_and_grad
    def loss(p: Any, x: Any) -> Any:
        return xp.sum((p["w"] * x + offsets.number) ** 2)

    def work(number: int) -> None:
        offsets.number = float(number)
        for k in range(40):
            n = 300 + 10 * (k % 3) + number
            w, x = np.full(n, 0.5), np.arange(float(n)) / n
            value, gradient = loss({"w": xp.asarray(w)}, xp.asarray(x))
            residual = w * x + number
            np.testing.assert_allclose(float(value), np.sum(residual**2))
            np.testing.assert_allclose(gradient["w"].numpy(), 2 * residual * x)

    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(work, number) for number in range(4)]:
            future.result()


def test_a_repeated_program_is_one_operation_of_a_plan() -> None:
    """Repeated calls run the same plans as the first ones, and no more operations."""
    x, w = xp.asarray(rng.random((500, 20))), xp.asarray(np.zeros(20))
    step = pk.value_and_grad(lambda w: xp.mean((x @ w - 1.0) ** 2))
    launches = []
    for _ in range(8):
        with xp.inspect() as runs:
            _, gradient = step(w)
            w = w - 0.01 * gradient
            xp.eval(w)
        launches.append([run.launches for run in runs])
    assert len(launches[3]) == 1
    assert launches[3:] == [launches[3]] * 5


def test_another_value_of_the_same_operations_is_noticed() -> None:
    """Which of the recorded values a function returns may change from call to call."""
    chosen = 0

    @pk.value_and_grad
    def loss(x: Any) -> Any:
        return (xp.sum(x * x), xp.sum(xp.sin(x)), x[1])[chosen]

    x = np.asarray([0.5, 1.5, -2.0])
    values = np.sum(x * x), np.sum(np.sin(x)), x[1]
    gradients = 2 * x, np.cos(x), np.asarray([0.0, 1.0, 0.0])
    for chosen in [0, 0, 0, 1, 0, 2, 2, 1, 1, 1, 0, 2]:
        value, gradient = loss(xp.asarray(x))
        np.testing.assert_allclose(float(value), values[chosen])
        np.testing.assert_allclose(gradient.numpy(), gradients[chosen], atol=1e-15)


def test_sizes_of_repeated_calls_are_noticed() -> None:
    """Arguments, and arrays that the function uses, may have other sizes at each call."""
    outside = xp.asarray(np.ones(300))

    @pk.value_and_grad
    def loss(p: Any) -> Any:
        first = p["w"][0]
        total = xp.sum(outside * first)
        rows = xp.broadcast_to(first + 1.0, outside.shape)
        return xp.sum(p["w"] * p["w"]) * xp.sum(rows) + total

    sizes = [(400, 300)] * 4 + [(500, 300), (400, 300), (400, 350), (400, 350), (400, 300)]
    for n, m in sizes:
        outside = xp.asarray(np.ones(m))
        w = np.arange(1.0, n + 1)
        value, gradient = loss({"w": xp.asarray(w)})
        squares = np.sum(w * w)
        expected = 4 * w * m
        expected[0] += squares * m + m
        assert gradient["w"].shape == (n,)
        np.testing.assert_allclose(float(value), squares * 2 * m + m)
        np.testing.assert_allclose(gradient["w"].numpy(), expected)


def test_a_pending_array_is_not_changed_in_place_by_repeated_calls() -> None:
    """The error is raised at each call, also after calls that changed nothing."""
    changes = False

    @pk.grad
    def loss(x: Any) -> Any:
        total = xp.sum(x * outside)
        if changes:
            outside[:] = 2.0
            xp.eval(outside)
        return total

    x = xp.asarray(np.arange(300.0))
    for k in range(8):
        changes = k % 2 == 1
        outside = x * 3.0
        if changes:
            with pytest.raises(GraphError, match="grad of loss changed an array in place"):
                loss(x)
        else:
            np.testing.assert_allclose(loss(x).numpy(), 3 * np.arange(300.0))
