"""Neural networks: each function equals its definition in NumPy, queued and at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from passkit import xp
from passkit.errors import ArgumentError, DTypeError, FeedError, PasskitError, ShapeError
from tests.frontends.xp.nn_cases import ACTIVATIONS, ATTENTION, CASES, LAYERS, LOSSES, NORMS, Case

pytestmark = pytest.mark.usefixtures("quick_kernels")

nn = xp.nn
RANDOM = {"dropout", "gumbel_softmax"}
"""Functions of a key, which have tests of their own."""

BOUNDS = {"float64": 1e-11, "float32": 2e-5, "float16": 2e-2, "bfloat16": 1.5e-1}
"""The error by dtype, relative to numbers of 1 or more."""


def _operands(case: Case, dtype: Any) -> list[Any]:
    """Return random arrays of a dtype for a case."""
    rng = np.random.default_rng(len(case.name))
    if case.is_positive:
        arrays = [rng.uniform(0.1, 0.9, shape) for shape in case.shapes]
    else:
        arrays = [rng.normal(size=shape) for shape in case.shapes]
    return [a.astype(dtype) for a in arrays]


def _assert_near(case: Case, result: Any, operands: list[Any], dtype: Any) -> None:
    """Assert that a result has the dtype and nearly the values of the reference."""
    reference = np.asarray(case.reference(*[a.astype(np.float64) for a in operands]))
    array = np.asarray(result)
    assert result.dtype == dtype, f"{case.name}: {result.dtype}"
    assert result.shape == reference.shape, f"{case.name}: {result.shape}, {reference.shape}"
    bound = BOUNDS[np.dtype(dtype).name]
    np.testing.assert_allclose(array.astype(np.float64), reference, bound, bound, err_msg=case.name)


def test_every_function_has_a_case() -> None:
    """The tables name all functions of the namespace."""
    assert {case.name for case in CASES} | RANDOM == set(nn.__all__)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, xp.bfloat16])
def test_functions_equal_their_definitions_at_once(dtype: Any) -> None:
    """Small arrays of each float dtype give the values of the reference, in their dtype."""
    for case in CASES:
        operands = _operands(case, dtype)
        _assert_near(case, case.call(*map(xp.asarray, operands)), operands, dtype)


GROUPS = {
    "activations": ACTIVATIONS,
    "norms": NORMS,
    "layers": LAYERS,
    "attention": ATTENTION,
    "losses": LOSSES,
}


@pytest.mark.usefixtures("xp_queue")
@pytest.mark.parametrize("group", GROUPS)
def test_functions_equal_their_definitions_in_kernels(group: str) -> None:
    """Queued operations on float32 give the values of the reference."""
    cases = GROUPS[group]
    operands = [_operands(case, np.float32) for case in cases]
    results = [
        case.call(*map(xp.asarray, arrays)) for case, arrays in zip(cases, operands, strict=True)
    ]
    assert all("pending" in repr(r) for r in results)
    xp.eval(*results)
    for case, result, arrays in zip(cases, results, operands, strict=True):
        _assert_near(case, result, arrays, np.float32)


@pytest.mark.usefixtures("xp_queue")
def test_relu_keeps_the_dtype_of_booleans() -> None:
    """Booleans are at least 0 already: relu returns them as they are, computed and queued."""
    for x in (xp.asarray([True, False]), xp.asarray([1.0, -1.0]) > 0):
        result = nn.relu(x)
        assert result.dtype == xp.bool
        assert result.numpy().tolist() == [True, False]


@pytest.mark.usefixtures("xp_queue")
def test_attention_of_integers_takes_a_fraction_as_scale() -> None:
    """The scale is a float also if the query has integers."""
    rows = np.asarray([[1, 2], [3, 1]])
    x = xp.asarray(rows)
    expected = nn.scaled_dot_product_attention(xp.asarray(rows * 1.0), x, x, scale=0.25)
    result = nn.scaled_dot_product_attention(x, x, x, scale=0.25)
    np.testing.assert_allclose(result.numpy(), expected.numpy())


def test_integers_are_computed_in_float64() -> None:
    """Functions of integers return float64; relu keeps integers; labels may be of any integer."""
    x = xp.asarray([[-1, 0, 3], [2, -2, 1]])
    for name in ("sigmoid", "gelu", "softmax", "layer_norm", "elu", "log_softmax"):
        result = getattr(nn, name)(x)
        reference = getattr(nn, name)(xp.astype(x, xp.float64))
        assert result.dtype == xp.float64
        assert np.array_equal(np.asarray(result), np.asarray(reference)), name
    kept = nn.relu(xp.astype(x, xp.int8))
    assert kept.dtype == xp.int8 and np.asarray(kept).tolist() == [[0, 0, 3], [2, 0, 1]]
    assert nn.mse_loss(x, x).dtype == xp.float64
    loss = nn.cross_entropy(xp.astype(x, xp.float32), xp.asarray([0, 2], dtype=xp.uint8))
    assert loss.dtype == xp.float32
    assert nn.one_hot(xp.asarray([5]), 3).dtype == xp.float64
    assert np.asarray(nn.one_hot(xp.asarray([5, 1]), 3)).tolist() == [[0, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize("small", [0, 256])
def test_dropout_and_gumbel_softmax_draw_by_their_key(small: int) -> None:
    """A rate of elements is 0 and the others are scaled; one key gives one draw."""
    key, other = xp.random.split(xp.random.key(1))
    with xp.config(small=small):
        x = xp.asarray(np.ones((50, 40), np.float32))
        y = np.asarray(nn.dropout(x, key, 0.25))
        assert y.dtype == np.float32
        assert set(np.unique(y)) == {np.float32(0), np.float32(1 / 0.75)}
        assert abs((y == 0).mean() - 0.25) < 0.05
        assert np.array_equal(y, np.asarray(nn.dropout(x, key, 0.25)))
        assert not np.array_equal(y, np.asarray(nn.dropout(x, other, 0.25)))
        rows = np.asarray(nn.dropout(x, key, shared_axes=1))
        assert (rows == rows[:, :1]).all() and len(np.unique(rows)) == 2
        assert np.array_equal(np.asarray(nn.dropout(x, key, 0)), np.asarray(x))
        logits = xp.asarray(np.log(np.tile([0.2, 0.5, 0.3], (4000, 1))))
        soft = np.asarray(nn.gumbel_softmax(logits, key, 0.5))
        np.testing.assert_allclose(soft.sum(1), 1, 1e-12)
        shares = np.bincount(soft.argmax(1)) / 4000
        np.testing.assert_allclose(shares, [0.2, 0.5, 0.3], atol=0.04)


def test_extremes_neither_overflow_nor_cancel() -> None:
    """Large and small numbers give finite, accurate results."""
    x = xp.asarray([-800.0, -1e-9, 0.0, 1e-9, 800.0])
    np.testing.assert_allclose(
        np.asarray(nn.log_sigmoid(x)), [-800, -0.6931471811, -0.6931471806, -0.6931471801, 0], 1e-9
    )
    np.testing.assert_allclose(np.asarray(nn.softplus(x))[[0, 4]], [0, 800])
    logits = xp.asarray([[1e4, 0.0, -1e4]])
    assert np.asarray(nn.softmax(logits)).tolist() == [[1, 0, 0]]
    assert float(nn.cross_entropy(logits, xp.asarray([2]))) == 2e4
    assert float(nn.binary_cross_entropy_with_logits(xp.asarray(-800.0), 1.0)) == 800
    assert float(nn.kl_div(xp.asarray([-1.0]), xp.asarray([0.0]))) == 0
    assert float(nn.cosine_similarity(xp.zeros(3), xp.ones(3))) == 0
    for function in (nn.softmax, nn.log_softmax):
        assert function(xp.zeros((2, 0))).shape == (2, 0)


@pytest.mark.usefixtures("xp_queue")
def test_a_layer_is_one_kernel() -> None:
    """Bias, norm, activation, dropout and a residual around them run as one kernel."""
    x = xp.asarray(np.random.default_rng(0).normal(size=(64, 96)).astype(np.float32))
    bias = xp.asarray(np.zeros(96, np.float32))
    key = xp.random.key(2)
    xp.eval(key)
    with xp.inspect() as runs:
        y = x + nn.dropout(nn.gelu(nn.layer_norm(x + bias)), key, 0.1)
        xp.eval(y)
    assert [len(run.kernels) for run in runs] == [1]


X = xp.asarray([[1.0, 2.0, 3.0]])
REFUSALS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: nn.relu([1.0]), ArgumentError, r"relu: x must be an array .* got \[1\.0\]"),
    (lambda: nn.gelu(xp.asarray(1j)), DTypeError, r"gelu: x must be real, got complex128"),
    (lambda: nn.gelu(X, "erf"), ArgumentError, r"'none' or 'tanh', got 'erf'"),
    (lambda: nn.elu(X, X), ArgumentError, r"elu: alpha must be a number, got Array"),
    (lambda: nn.glu(X), ShapeError, r"3"),
    (lambda: nn.softmax(X, 2), ShapeError, r"softmax: there is no axis 2"),
    (lambda: nn.prelu(X, xp.zeros(2)), ShapeError, r"3.*2|2.*3"),
    (lambda: nn.layer_norm(X, xp.ones(2)), ShapeError, r"2.* 3|3.* 2"),
    (lambda: nn.group_norm(X, 2), ShapeError, r"groups that divide 3 channels, got 2"),
    (lambda: nn.group_norm(X, 1.5), ArgumentError, r"num_groups must be an int, got 1\.5"),
    (lambda: nn.batch_norm(X, xp.zeros(2), xp.ones(2)), ShapeError, r"3.*2|2.*3"),
    (lambda: nn.linear(X, xp.zeros((4, 2))), ShapeError, r"got shapes \(1, 3\), \(4, 2\)"),
    (lambda: nn.linear(X, xp.zeros((4, 3)), xp.zeros(3)), ShapeError, r"\(4, 3\), \(3,\)"),
    (lambda: nn.embedding(X, X), DTypeError, r"integer indices, got float64"),
    (lambda: nn.embedding(xp.asarray([0]), xp.zeros((0, 3))), ShapeError, r"got shape \(0, 3\)"),
    (lambda: nn.one_hot(X, 3), DTypeError, r"one_hot needs integers, got float64"),
    (lambda: nn.one_hot(xp.asarray([1]), 2.5), ArgumentError, r"num_classes must be .* got 2\.5"),
    (lambda: nn.dropout(X, 3), ArgumentError, r"needs a key, got 3"),
    (lambda: nn.dropout(X, xp.random.key(0), 1.0), FeedError, r"below 1, got 1\.0"),
    (lambda: nn.dropout(X, xp.random.key(0), "a"), ArgumentError, r"rate must be .* got 'a'"),
    (lambda: nn.conv2d(X, X), ShapeError, r"NCHW \(rank 4\), got shape \(1, 3\)"),
    (
        lambda: nn.conv1d(X[None], X[None], data_format="NHWC"),
        ArgumentError,
        r"'NCW' or 'NWC', got 'NHWC'",
    ),
    (lambda: nn.conv1d(X[None], xp.zeros((1, 2, 1))), ShapeError, r"2"),
    (lambda: nn.max_pool1d(X[None], 0), ShapeError, r"0"),
    (lambda: nn.max_pool2d(X[None], 2), ShapeError, r"got shape \(1, 1, 3\)"),
    (lambda: nn.avg_pool1d(X[None], 2, data_format="NCL"), ArgumentError, r"got 'NCL'"),
    (lambda: nn.global_avg_pool(X), ShapeError, r"global_avg_pool needs .* got shape \(1, 3\)"),
    (
        lambda: nn.scaled_dot_product_attention(X, xp.zeros((4, 2)), xp.zeros((4, 2))),
        ShapeError,
        r"got shapes \(1, 3\), \(4, 2\) and \(4, 2\)",
    ),
    (
        lambda: nn.scaled_dot_product_attention(
            xp.zeros((3, 2, 4)), xp.zeros((2, 2, 4)), xp.zeros((2, 2, 4)), enable_gqa=True
        ),
        ShapeError,
        r"a multiple of 2 heads of queries, got 3",
    ),
    (
        lambda: nn.scaled_dot_product_attention(X, X, X, xp.zeros((2, 2))),
        ShapeError,
        r"scores \(1, 1\), got shape \(2, 2\)",
    ),
    (
        lambda: nn.scaled_dot_product_attention(X, X, X, xp.asarray(1j)),
        DTypeError,
        r"attn_mask must be real or bool, got complex128",
    ),
    (
        lambda: nn.scaled_dot_product_attention(X, X, X, scale="a"),
        ArgumentError,
        r"scale must be a number, got 'a'",
    ),
    (
        lambda: nn.multi_head_attention(X, X, X, xp.eye(3), xp.eye(3), xp.eye(3), xp.eye(3), 2),
        ShapeError,
        r"that 2 heads divide, got shape \(1, 3\)",
    ),
    (lambda: nn.mse_loss(X, X, reduction="max"), ArgumentError, r"'none', got 'max'"),
    (lambda: nn.mse_loss(X, "a"), ArgumentError, r"labels must be an array .* got 'a'"),
    (lambda: nn.mse_loss(X, xp.zeros(2)), PasskitError, r"3.*2|2.*3"),
    (lambda: nn.huber_loss(X, X, delta=0), FeedError, r"delta above 0, got 0"),
    (lambda: nn.smooth_l1_loss(X, X, beta=None), ArgumentError, r"beta must be .* got None"),
    (lambda: nn.cross_entropy(X, xp.asarray([0, 1])), ShapeError, r"shape \(1,\), got \(2,\)"),
    (lambda: nn.cross_entropy(X, X[0]), ShapeError, r"logits \(1, 3\), got \(3,\)"),
    (
        lambda: nn.cross_entropy(X, xp.asarray([0]), label_smoothing=2),
        FeedError,
        r"from 0 to 1, got 2",
    ),
    (lambda: nn.nll_loss(X, X[:, 0]), DTypeError, r"integer labels, got float64"),
    (
        lambda: nn.gumbel_softmax(X, xp.random.key(0), "a"),
        ArgumentError,
        r"temperature must be a number, got 'a'",
    ),
    (
        lambda: nn.gumbel_softmax(X, xp.random.key(0), 0),
        FeedError,
        r"gumbel_softmax needs temperature above 0, got 0",
    ),
    (lambda: nn.linear(X, None), ArgumentError, r"linear: weight must be an array .* got None"),
    (lambda: nn.layer_norm(None), ArgumentError, r"layer_norm: x must be an array .* got None"),
    (lambda: nn.layer_norm(X, eps="a"), ArgumentError, r"layer_norm: eps must be .* got 'a'"),
    (lambda: nn.softplus(X, 0), FeedError, r"softplus needs a beta other than 0, got 0"),
    (lambda: nn.layer_norm(X, eps=10**400), ArgumentError, r"layer_norm: eps is too large for a"),
    (lambda: nn.mse_loss(X, X, reduction=np.ones(2)), ArgumentError, r"got an array float64\[2\]"),
    (lambda: nn.one_hot(1, 3, axis=[0]), ArgumentError, r"one_hot: axis must be .* got \[0\]"),
    (
        lambda: nn.conv1d(X[None], X[None], 2.0),
        ShapeError,
        r"conv1d needs a vector as bias, got shape \(\)",
    ),
    (
        lambda: nn.conv1d(X[None], X[None], stride=X),
        ArgumentError,
        r"conv1d: strides must be a number, a text or a tuple of numbers, got Array",
    ),
    (
        lambda: nn.max_pool1d(X[None], 2, padding=10**400),
        ShapeError,
        r"max_pool1d: padding must be at most 576460752303423488, got 1000",
    ),
    (
        lambda: nn.softmax(X, where=xp.ones((4, 1, 3), dtype=xp.bool)),
        ShapeError,
        r"softmax: a mask of shape \(4, 1, 3\) does not fit x of \(1, 3\)",
    ),
    (
        lambda: nn.cosine_similarity(X, xp.ones((1, 1))),
        ShapeError,
        r"one length along axis -1, got shapes \(1, 3\) and \(1, 1\)",
    ),
    (
        lambda: nn.cross_entropy(X, xp.asarray([0]), ignore_index="a"),
        ArgumentError,
        r"cross_entropy: ignore_index must be an integer, got 'a'",
    ),
    (lambda: nn.gelu(X, np.ones(2)), ArgumentError, r"'tanh', got an array float64\[2\]"),
]


def test_labels_are_integers_of_any_kind() -> None:
    """A label may be a Python int, and one to ignore may be beyond the dtype of the labels."""
    logits = xp.asarray([[0.0, 1.0], [2.0, 0.0]])
    labels = xp.asarray([1, 0], dtype=xp.uint8)
    loss = float(nn.cross_entropy(logits, labels))
    assert float(nn.cross_entropy(logits, labels, ignore_index=-100)) == loss
    one = nn.cross_entropy(logits, labels, reduction="none")[0]
    assert float(nn.cross_entropy(logits[0], 1)) == float(one)


def test_numbers_take_the_dtype_of_arrays_of_floats() -> None:
    """Python numbers are weak, wherever they stand, and any fits beside integers."""
    single = xp.asarray([1.0], dtype=xp.float32)
    assert nn.mse_loss(1, single).dtype == xp.float32
    assert float(nn.prelu(xp.asarray([-1], dtype=xp.int8), 300)[0]) == -300


def test_activations_of_numbers() -> None:
    """Functions that NumPy computes element by element take arrays without axes."""
    assert abs(float(nn.gelu(1.0)) - 0.8413447460685429) < 1e-12


@pytest.mark.parametrize("number", range(len(REFUSALS)))
def test_wrong_arguments_are_refused(number: int) -> None:
    """Messages name the function and what was given."""
    call, error, text = REFUSALS[number]
    with pytest.raises(error, match=text):
        call()
