"""`vmap`: equal to a loop over the parts, for every family of operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit import xp
from passkit.errors import ArgumentError, ConcretizationError, ShapeError

rng = np.random.default_rng(3)
SIZE = 3
INDICES = xp.asarray([[2, 0], [1, 1]])


def assigned(x: Any, y: Any) -> Any:
    """Return an array after assignments of several kinds."""
    z = x * 2
    z[1] = y[0]
    z[:, 2:4] = y[:, :2]
    z[z > 0.5] = 0.0
    z[xp.asarray([0, 1]), xp.asarray([1, 3])] = y[0, :2] * 3
    z[:, xp.asarray([0])] = 7.0
    return z


def spd(x: Any) -> Any:
    """Return a symmetric positive definite matrix of the rows of a matrix."""
    return x @ x.T + 4 * xp.eye(x.shape[0])


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "elementwise": lambda x, y: [xp.sin(x) * y[0] + 2, -x, x**2, xp.astype(x, xp.float32), x > y],
    "choices": lambda x, y: [xp.where(x > 0, x, y), xp.clip(x, -0.5, y), xp.special.erf(x)],
    "reductions": lambda x, y: [
        xp.sum(x),
        xp.mean(x, axis=0),
        xp.max(x, axis=-1, keepdims=True),
        xp.var(x, axis=(0, 1), correction=1),
        xp.std(x),
        xp.prod(x, axis=1),
        xp.any(x > 0, axis=0),
        xp.all(x > 0),
        xp.count_nonzero(x > 0, axis=1),
        xp.min(x),
        xp.linalg.vector_norm(x),
        xp.linalg.vector_norm(x, axis=0, ord=1),
        xp.special.logsumexp(x),
    ],
    "positions": lambda x, y: [
        xp.argmax(x),
        xp.argmin(x, axis=0),
        xp.argmax(x, keepdims=True),
        xp.argsort(x, axis=1),
        xp.sort(x, axis=0, descending=True),
        xp.searchsorted(xp.asarray([-1.0, 0.0, 1.0]), x),
    ],
    "scans": lambda x, y: [
        xp.cumulative_sum(x, axis=1),
        x.cumsum(),
        xp.cumulative_prod(x, axis=0, include_initial=True),
        xp.diff(x, axis=-1),
        xp.special.softmax(x, axis=-1),
        xp.special.log_softmax(x),
    ],
    "shapes": lambda x, y: [
        x.reshape(2, 4),
        x.T,
        xp.expand_dims(x, axis=(0, -1)),
        xp.squeeze(x[:1], axis=0),
        xp.broadcast_to(x[0], (3, 4)),
        xp.tile(x, (2, 1, 2)),
        xp.repeat(x, 2, axis=1),
        xp.repeat(x, 2),
        xp.roll(x, 1, axis=1),
        xp.flip(x),
        xp.flip(x, axis=0),
        xp.moveaxis(x, 0, 1),
        xp.fft.fftshift(x),
    ],
    "joins": lambda x, y: [
        xp.concat([x, y, xp.ones((1, 4))]),
        xp.stack([x, xp.zeros((2, 4))], axis=1),
    ],
    "products": lambda x, y: [
        x @ y.T,
        x @ xp.ones(4),
        xp.ones(2) @ x,
        x[0] @ y[1],
        x[0] @ xp.ones((4, 3)),
        xp.ones((3, 4)) @ x[1],
        xp.ones((2, 3, 2)) @ x,
        x[0] @ y.T,
        xp.vecdot(x, y[0]),
        xp.tensordot(x, y, axes=((1,), (1,))),
        xp.tensordot(x, xp.ones((2, 4, 3))),
        xp.tensordot(xp.ones(2), y, axes=0),
        xp.linalg.outer(x[0], xp.arange(3.0)),
        xp.linalg.cross(x[:, :3], y[0, 1:]),
    ],
    "linear algebra": lambda x, y: [
        xp.linalg.inv(spd(x)),
        xp.linalg.det(spd(y)),
        xp.linalg.solve(spd(x), y),
        xp.linalg.solve(spd(x), y[:, 0]),
        xp.linalg.solve(4 * xp.eye(2), x),
        xp.linalg.cholesky(spd(x)),
        xp.linalg.trace(spd(x)),
        xp.linalg.diagonal(x),
        xp.tril(x),
        xp.linalg.matrix_power(spd(x), 2),
        xp.linalg.matrix_norm(x),
        xp.linalg.eigh(spd(x)).eigenvalues,
        xp.linalg.svdvals(x),
        xp.linalg.slogdet(spd(x)).logabsdet,
        xp.abs(xp.linalg.qr(x.T).R),
        xp.linalg.pinv(x),
    ],
    "slices": lambda x, y: [x[1], x[:, 1:3], x[::-1, -1], x[None, ..., 2], x[1, 2], x[:, ::2]],
    "gathers": lambda x, y: [
        x[:, INDICES],
        x[INDICES[0] % 2],
        xp.take(xp.arange(9.0), xp.argmax(x, axis=1)),
        xp.take(x, xp.argsort(y[0])[:2], axis=1),
        x[xp.asarray([0, 1]), xp.asarray([3, 2])],
        x[xp.argmin(y, axis=0) % 2, xp.asarray([0, 1, 2, 3])],
        xp.take_along_axis(x, xp.argsort(y, axis=1), axis=1),
        xp.take_along_axis(x, xp.asarray([[0], [1]]), axis=1),
        xp.arange(16.0).reshape(4, 4)[xp.argmax(x, axis=1), 1],
    ],
    "assignments": lambda x, y: [assigned(x, y)],
    "gradients": lambda x, y: [
        pk.grad(lambda w: xp.sum(xp.sin(w * y) @ x.T))(x),
        pk.grad(lambda w: xp.sum(x**2) * w)(2.0),
        pk.jvp(lambda w: w * w * y, (x,), (y,))[1],
        pk.vjp(lambda w: xp.cumulative_sum(w, axis=0), x)[1](y)[0],
        pk.grad(lambda w: xp.sum(pk.grad(lambda v: xp.sum(v**3))(w) * y))(x),
        pk.jit(lambda w: xp.max(w, axis=0) * y)(x),
        pk.vmap(lambda row, col: row[1] * col, in_axes=(0, None), out_axes=1)(x, y[0]),
    ],
}


def networks(x: Any, y: Any) -> list[Any]:
    """Return layers, activations and losses of two matrices, of which the first is divided."""
    images = xp.reshape(x, (2, 1, 4))
    weight = xp.reshape(xp.arange(6.0), (2, 1, 3))
    labels = xp.asarray([0, 3])
    return [
        xp.nn.gelu(x),
        xp.nn.silu(x),
        xp.nn.softplus(x, 2.0),
        xp.nn.relu(x),
        xp.nn.glu(x),
        xp.nn.softmax(x),
        xp.nn.softmax(x, None),
        xp.nn.log_softmax(x, 0),
        xp.nn.linear(x, xp.ones((3, 4)), xp.arange(3.0)),
        xp.nn.linear(x[0], xp.ones((3, 4))),
        xp.nn.layer_norm(x, xp.arange(4.0), xp.ones(4)),
        xp.nn.layer_norm(x, axis=(0, 1)),
        xp.nn.rms_norm(x),
        xp.nn.group_norm(xp.reshape(x, (1, 4, 2)), 2, xp.arange(4.0)),
        xp.nn.batch_norm(x, xp.zeros(4), xp.ones(4)),
        xp.nn.conv1d(images, weight, padding=1),
        xp.nn.max_pool1d(images, 2),
        xp.nn.avg_pool1d(images, 2),
        xp.nn.embedding(xp.argmax(x, axis=1), xp.reshape(xp.arange(8.0), (4, 2))),
        xp.nn.cross_entropy(x, labels),
        xp.nn.cross_entropy(x, labels, axis=-1, reduction="none", label_smoothing=0.1),
        xp.nn.cross_entropy(x, xp.nn.softmax(y)),
        xp.nn.nll_loss(x, labels),
        xp.nn.mse_loss(x, y),
        xp.nn.huber_loss(x, y, reduction="sum"),
        xp.nn.cosine_similarity(x, y),
        pk.grad(lambda w: xp.nn.cross_entropy(xp.nn.linear(x, w, x[0]), labels))(xp.ones((4, 4))),
        xp.nn.linear(x, y, y[:, 0]),
        xp.nn.linear(xp.ones(4), y),
        xp.nn.linear(xp.asarray([1, 2, 3, 4]), xp.asarray([[1, 2, 3, 4]]), y[0, :1]),
        xp.nn.embedding(xp.argmax(x, axis=1) % 2, y),
        xp.nn.embedding(xp.asarray([[1, -1]]), y),
        xp.nn.layer_norm(x, y[0], xp.ones(4)),
        xp.nn.layer_norm(x, None, y, axis=(0, 1)),
        xp.nn.rms_norm(x, y[0]),
        xp.nn.instance_norm(xp.reshape(x, (1, 4, 2)), y[0], xp.ones(4)),
        xp.nn.group_norm(xp.reshape(x, (1, 4, 2)), 2, xp.ones(4), y[1]),
    ]


def test_vmap_of_layers_equals_a_loop() -> None:
    """Layers with shared weights, activations and losses give the same for all parts at once."""
    x, y = rng.uniform(0.1, 1, (2, SIZE, 2, 4)) * rng.choice([-1, 1], (2, SIZE, 2, 4))
    arrays = [xp.asarray(x), xp.asarray(y)]
    results = pk.vmap(networks)(*arrays)
    expected = stacked([networks(*[a[k] for a in arrays]) for k in range(SIZE)])
    for number, (result, value) in enumerate(zip(results, expected, strict=True)):
        assert result.shape == value.shape and result.dtype == value.dtype, number
        np.testing.assert_allclose(result, value, rtol=1e-6, atol=1e-9, err_msg=str(number))


def stacked(results: list[Any]) -> list[Any]:
    """Return lists of results for parts as arrays of all parts."""
    return [np.stack([np.asarray(part) for part in parts]) for parts in zip(*results, strict=True)]


@pytest.mark.parametrize("divided", [(0, 0), (0, None), (None, 0)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_vmap_equals_a_loop(name: str, divided: tuple[int | None, int | None]) -> None:
    """Each family of operations, with one or both operands divided, gives the same as a loop."""
    x, y = rng.uniform(0.1, 1, (2, SIZE, 2, 4)) * rng.choice([-1, 1], (2, SIZE, 2, 4))
    function = FUNCTIONS[name]
    arrays = [xp.asarray(a if axis == 0 else a[0]) for a, axis in zip((x, y), divided, strict=True)]

    results = pk.vmap(function, in_axes=divided)(*arrays)
    expected = stacked(
        [
            function(
                *[a if axis is None else a[k] for a, axis in zip(arrays, divided, strict=True)]
            )
            for k in range(SIZE)
        ]
    )

    for result, value in zip(results, expected, strict=True):
        assert result.shape == value.shape and result.dtype == value.dtype
        np.testing.assert_allclose(result, value, rtol=1e-6, atol=1e-9)


def test_products_over_axes_without_elements() -> None:
    """Sums of no products are zeros, in the shape of the other axes."""
    function = pk.vmap(lambda a, b: xp.tensordot(a, b, axes=1))
    result = function(xp.ones((2, 3, 0)), xp.ones((2, 0, 4)))
    np.testing.assert_array_equal(np.asarray(result), np.zeros((2, 3, 4)))


def test_axes_of_arguments_and_results() -> None:
    """Axes are ints, None, or containers of them; numbers are not divided, named arrays are."""
    x, w = rng.standard_normal((2, 3, 4)), rng.standard_normal(3)

    def f(p: Any, scale: float, *, bias: Any = 0.0) -> Any:
        return {"y": p["x"] * scale + p["w"], "b": (p["w"], bias), "none": None}

    out = pk.vmap(f, in_axes=({"x": -1, "w": None}, None), out_axes={"y": 1, "b": 0, "none": 0})(
        {"x": xp.asarray(x), "w": xp.asarray(w)}, 2.0, bias=np.arange(4.0)
    )

    np.testing.assert_allclose(out["y"], np.moveaxis(x * 2 + w[:, None], -1, 1))
    np.testing.assert_allclose(out["b"][0], np.tile(w, (4, 1)))
    assert out["b"][1].tolist() == [0.0, 1, 2, 3] and out["none"] is None
    same = pk.vmap(lambda a, b: b, in_axes=[0, None], out_axes=None)(xp.ones(2), xp.asarray(w))
    np.testing.assert_allclose(same, w)
    assert pk.vmap(in_axes=1)(lambda a: a)(xp.ones((2, 3))).shape == (3, 2)


def test_results_do_not_share_arrays_with_arguments() -> None:
    """An in-place operation on a result changes neither arguments nor other results."""
    x = xp.asarray([1.0, 2.0])
    a, b = pk.vmap(lambda x: (x, x))(x)
    a += 1

    assert (x.tolist(), b.tolist()) == ([1.0, 2.0], [1.0, 2.0])


@pytest.mark.usefixtures("xp_queue", "quick_kernels")
def test_gradients_of_examples_are_one_plan() -> None:
    """The gradient for each example is compiled once, and serves other numbers of examples."""
    w = xp.asarray(rng.standard_normal(5))
    each = pk.vmap(pk.grad(lambda w, x, y: (xp.tanh(w @ x) - y) ** 2), in_axes=(None, 0, 0))
    for n in (20, 21):
        x, y = rng.standard_normal((n, 5)), rng.standard_normal(n)
        with xp.inspect() as runs:
            gradients = each(w, xp.asarray(x), xp.asarray(y)).numpy()
        t = np.tanh(x @ np.asarray(w))
        np.testing.assert_allclose(gradients, (2 * (t - y) * (1 - t * t))[:, None] * x)
        assert len(runs) == 1
    assert runs[0].path == "cached"


def test_jacobians_by_vmap_of_vjp() -> None:
    """The rows of a Jacobian are the products with unit vectors."""
    x = xp.asarray([1.0, 2.0, 3.0])
    _, pull = pk.vjp(lambda x: xp.cumulative_sum(x * x), x)

    (jacobian,) = pk.vmap(pull)(xp.eye(3))

    np.testing.assert_allclose(jacobian, np.tril(np.ones((3, 3))) * [2, 4, 6])


def test_refusals() -> None:
    """Axes that do not fit, operations without a rule, and elements are refused."""
    x = xp.ones((2, 3))
    with pytest.raises(ArgumentError, match=r"in_axes must be .* like the 1 arguments, got \(0, 1"):
        pk.vmap(lambda x: x, in_axes=(0, 1))(x)
    with pytest.raises(ArgumentError, match="axis of in_axes must be an int or None, got 'a'"):
        pk.vmap(lambda x: x, in_axes="a")(x)
    with pytest.raises(ArgumentError, match="out_axes must be .* got "):
        pk.vmap(lambda x: x, out_axes=(0, 1))(x)
    with pytest.raises(ArgumentError, match="axis of out_axes must be an int or None, got 1.5"):
        pk.vmap(lambda x: x, out_axes=1.5)(x)
    with pytest.raises(ArgumentError, match="result depends on the part"):
        pk.vmap(lambda x: x, out_axes=None)(x)
    with pytest.raises(ArgumentError, match="result must be an array to be stacked, got 'a'"):
        pk.vmap(lambda x: "a")(x)
    with pytest.raises(ArgumentError, match="got 2 leaves that are numbers"):
        pk.vmap(lambda x, y: x, in_axes=(0, None))(1.0, x)
    with pytest.raises(ArgumentError, match="vmap: function must be a function, got 3"):
        pk.vmap(3)
    with pytest.raises(ShapeError, match=r"args\[0\] has 2, args\[1\] has 3"):
        pk.vmap(lambda x, y: x, in_axes=(0, 1))(x, x)
    with pytest.raises(ShapeError, match=r"args\[0\] has shape \(\)"):
        pk.vmap(lambda x: x)(xp.asarray(1.0))
    with pytest.raises(ShapeError, match=r"args\[0\]: axis 2 is out of range"):
        pk.vmap(lambda x: x, in_axes=2)(x)
    weights = xp.ones((2, 3, 3))
    with pytest.raises(ArgumentError, match=r"conv1d cannot be vectorized over its weights, got 2"):
        pk.vmap(lambda w: xp.nn.conv1d(weights, w))(xp.ones((2, 3, 3, 1)))
    with pytest.raises(ArgumentError, match="operation nn.attention cannot be vectorized; call"):
        pk.vmap(lambda q: xp.nn.scaled_dot_product_attention(q, q, q))(weights)
    keys = xp.random.split(xp.random.key(0), 3)
    with pytest.raises(ArgumentError, match="the operation random.* cannot be vectorized; call"):
        pk.vmap(lambda key: xp.random.normal(key, (2,)))(keys)
    with pytest.raises(ArgumentError, match="searchsorted cannot be vectorized .* got 2 vectors"):
        pk.vmap(lambda x: xp.searchsorted(x, 0.5))(x)
    with pytest.raises(ConcretizationError, match=r"float .* depends on an argument of vmap of"):
        pk.vmap(lambda x: float(xp.sum(x)))(x)
