"""Losses, norms, recurrent cells and attention: number of kernels, corner cases, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import passkit as pk
from tests.planned import plan

ops = pk.ops


def var(*shape: Any, dtype: str = "float32", name: str = "x") -> Any:
    """Return a variable."""
    return pk.var(name, shape, dtype)


def weights(gates: int, units: int = 16, inputs: int = 8) -> list[Any]:
    """Return the kernel and the recurrent kernel of a cell."""
    return [var(inputs, gates * units, name="w"), var(units, gates * units, name="u")]


def cell(name: str, gates: int, *bias: int, states: int = 1, **params: Any) -> Any:
    """Return the results of a recurrent cell on variables."""
    state = [var("b", 16, name=f"h{k}") for k in range(states)]
    out = pk.get_op(name)(var("b", 8), *state, *weights(gates), var(*bias, name="bias"), **params)
    return out if isinstance(out, tuple) else (out,)


LABELS = var("b", dtype="int32", name="labels")
KERNEL_COUNTS: dict[str, tuple[Callable[[], Any], int]] = {
    "simple_rnn_cell": (lambda: cell("simple_rnn_cell", 1, 16), 1),
    "lstm_cell": (lambda: cell("lstm_cell", 4, 64, states=2), 1),
    "lstm_block_cell": (
        lambda: ops.lstm_block_cell(
            var("b", 8),
            var("b", 16, name="c"),
            var("b", 16, name="h"),
            var(24, 64, name="w"),
            var(64, name="bias"),
        ),
        2,
    ),
    "gru_cell": (lambda: cell("gru_cell", 3, 2, 48), 1),
    "gru_cell before": (lambda: cell("gru_cell", 3, 48, reset_after=False), 4),  # two copy weights
    "sparse": (lambda: (ops.sparse_softmax_cross_entropy_with_logits(LABELS, var("b", 40)),), 1),
    "sparse middle": (
        lambda: (
            ops.sparse_softmax_cross_entropy_with_logits(
                var("b", 9, dtype="int64", name="labels"), var("b", 40, 9), axis=1
            ),
        ),
        1,
    ),
    "dense": (
        lambda: (ops.softmax_cross_entropy_with_logits(var("b", 40, name="t"), var("b", 40)),),
        1,
    ),
    "sigmoid": (
        lambda: (ops.sigmoid_cross_entropy_with_logits(var("b", 40, name="t"), var("b", 40)),),
        1,
    ),
    "rms_norm": (lambda: (ops.rms_norm(var("b", 40), var(40, name="g")),), 1),
    "group_norm": (
        lambda: (ops.group_norm(var("b", 5, 5, 8), scale=False, center=False, groups=2),),
        1,
    ),
    "masked_softmax": (
        lambda: (ops.masked_softmax(var("b", 40), var("b", 40, dtype="bool", name="m")),),
        1,
    ),
    "swiglu": (lambda: (ops.swiglu(var("b", 40)),), 1),
    "rotary": (lambda: (ops.rotary_embedding(var("b", 6, 8)),), 1),
    "attention": (
        lambda: (
            ops.scaled_dot_product_attention(
                var("b", 6, 8),
                var("b", 70, 8, name="k"),
                var("b", 70, 8, name="v"),
                causal=True,
            ),
        ),
        2,
    ),
}


@pytest.mark.parametrize("name", KERNEL_COUNTS)
def test_composites_are_few_kernels(name: str) -> None:
    """Apart from its matrix products, a composite is one kernel, or as few as possible."""
    build, kernel_count = KERNEL_COUNTS[name]
    planned = plan(pk.Graph(build()))
    kernels = [k.ops for k in planned.attrs["kernel"].values()]
    other_ops = {n.op.name for n in planned.nodes if n.op is not None} - {"fused", "constant"}

    assert len(kernels) == kernel_count, kernels
    assert other_ops <= {"matmul", "matmul_sum"}


def run(*outs: Any, **feeds: Any) -> list[Any]:
    """Return the interpreter's results."""
    return pk.interpret(pk.Graph(outs), feeds)


def test_cross_entropies_of_large_logits_are_finite() -> None:
    """Large logits do not overflow, and a logit of -inf adds nothing where the label is 0."""
    x = np.array([[1e4, -1e4, 0], [-np.inf, 0, 0]], np.float32)
    t = np.array([[0, 1, 0], [0, 0.5, 0.5]], np.float32)
    dense, sparse, sigmoid = run(
        ops.softmax_cross_entropy_with_logits(t, x),
        ops.sparse_softmax_cross_entropy_with_logits(np.array([1, 2], np.int32), x),
        ops.sigmoid_cross_entropy_with_logits(np.float32([0, 1]), np.float32([1e4, -1e4])),
    )

    np.testing.assert_allclose(dense, [2e4, np.log(2)], rtol=1e-6)
    np.testing.assert_allclose(sparse, [2e4, np.log(2)], rtol=1e-6)
    np.testing.assert_array_equal(sigmoid, [1e4, 1e4])


def test_labels_out_of_range_have_a_loss_of_zero() -> None:
    """The cross entropy of a label below 0 or above the number of classes is 0."""
    x = np.zeros((3, 4), np.float32)
    (losses,) = run(ops.sparse_softmax_cross_entropy_with_logits(np.array([-1, 4, 0]), x))

    np.testing.assert_allclose(losses, [0, 0, np.log(4)], rtol=1e-6)


def test_zero_labels_and_later_keys() -> None:
    """A label of 0 adds nothing to a divergence; scores of keys later than the query are -inf."""
    t, p = np.float32([0, 0.5, 0.5]), np.float32([0.3, 0, 0.5])
    divergences, scores = run(
        ops.kl_divergence(t, p, reduction="none"), ops.causal_mask(np.zeros((2, 3), np.float32))
    )

    np.testing.assert_array_equal(divergences, [0, np.inf, 0])
    np.testing.assert_array_equal(scores, [[0, 0, -np.inf], [0, 0, 0]])


def test_zero_vectors_stay_zero() -> None:
    """Normalizing or clipping a zero vector gives 0, and its cosine similarity is 0."""
    zero, some = np.zeros((2, 3), np.float32), np.ones((2, 3), np.float32)
    for result in run(
        ops.l2_normalize(zero), ops.cosine_similarity(zero, some), ops.clip_by_norm(zero)
    ):
        assert (result == 0).all()


def test_attention_to_no_key_is_zero() -> None:
    """A query whose mask hides every key gets 0, not NaN."""
    x = np.ones((3, 4), np.float32)
    seen = np.array([[True, False, True], [False, False, False], [True, True, True]])
    (result,) = run(ops.scaled_dot_product_attention(x, x, x, seen, masked=True))

    np.testing.assert_allclose(result[:, 0], [1, 0, 1], rtol=1e-6)


def test_missing_gamma_and_beta_become_variables() -> None:
    """Gamma and beta that are left out become variables, whose shapes follow from the data."""
    out = ops.group_norm(var(2, 5, 6), groups=3, name="gn")
    graph = pk.ApplyPasses(pk.Graph([out]), ["InferShape"])
    shapes = [graph.attrs["shape"][e] for e in out.node.inputs]

    assert [e.node.name for e in out.node.inputs] == ["x", "gn_gamma", "gn_beta"]
    assert shapes == [(2, 5, 6), (6,), (6,)]


def test_losses_take_inputs_by_name() -> None:
    """Predictions and labels may be given in any order by name."""
    x, t = var(3), var(3, name="t")
    loss = ops.huber_loss(predictions=x, labels=t)
    (mean,) = run(loss, x=np.float32([1, 2, 3]), t=np.float32([1, 0, 0]))

    assert mean == np.float32((1.5 + 2.5) / 3)


INT32 = {"dtype": "int32"}
ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: ops.mean_squared_error(var(3), var(3), reduction="max"), pk.GraphError, "got 'max'"),
    (lambda: ops.huber_loss(var(3), var(3), delta=0.0), pk.GraphError, "delta above 0, got 0.0"),
    (
        lambda: ops.softmax_cross_entropy_with_logits(var(3), var(2, 3)),
        pk.ShapeError,
        r"one shape, got \(3,\) and \(2, 3\)",
    ),
    (lambda: ops.nll_loss(var(2, **INT32), var(2, 3, 4)), pk.ShapeError, r"\(2, 3\), got \(2,\)"),
    (lambda: ops.nll_loss(var(2), var(2, 3)), pk.DTypeError, "integer labels, got float32"),
    (lambda: ops.label_smoothing(var(3), smoothing=2.0), pk.GraphError, "0 to 1, got 2.0"),
    (lambda: ops.group_norm(var(2, 6), groups=4), pk.ShapeError, "divide 6 channels, got 4"),
    (lambda: ops.instance_norm(var(2, 6), channel_axis=0), pk.ShapeError, r"got 0 of \(2, 6\)"),
    (lambda: ops.rms_norm(var(2, 6), var(2, 6)), pk.ShapeError, r"\(6,\), got \(2, 6\)"),
    (
        lambda: pk.Node(pk.get_op("rms_norm"), [var(2)], pk.get_op("rms_norm").params),
        pk.ShapeError,
        "rms_norm takes data, gamma, got 1 inputs",
    ),
    (lambda: ops.global_norm(), pk.ShapeError, "one input or more, got 0"),
    (lambda: ops.masked_softmax(var(3), var(3)), pk.DTypeError, "a bool mask, got float32"),
    (lambda: ops.causal_mask(var(3)), pk.ShapeError, r"rank 2 or more, got \(3,\)"),
    (
        lambda: ops.scaled_dot_product_attention(var(4), var(4), var(4)),
        pk.ShapeError,
        r"queries of rank 2 or more, got \(4,\)",
    ),
    (
        lambda: ops.scaled_dot_product_attention(var(3, "d"), var(3, "d"), var(3, 4)),
        pk.ShapeError,
        "length d is unknown",
    ),
    (
        lambda: ops.scaled_dot_product_attention(
            var(2, 3), var(2, 3), var(2, 3), var(2, 2, **INT32), masked=True
        ),
        pk.DTypeError,
        "bool or float32, got int32",
    ),
    (lambda: ops.polyval(var(2, 3), var(3)), pk.ShapeError, r"known length, got \(2, 3\)"),
    (lambda: ops.rotate_half(var(3, 5)), pk.ShapeError, r"even last axis, got \(3, 5\)"),
    (lambda: ops.rotary_wave(var(3, 4), base=0.0), pk.GraphError, "base above 0, got 0.0"),
    (lambda: ops.alibi_bias(var(3, 4)), pk.ShapeError, r"queries, keys\), got \(3, 4\)"),
    (lambda: ops.glu(var(3, 5)), pk.ShapeError, r"axis 1, got \(3, 5\)"),
    (
        lambda: ops.simple_rnn_cell(*[var(2, 2)] * 4, var(2), activation="exp"),
        pk.GraphError,
        "got 'exp'",
    ),
    (
        lambda: ops.simple_rnn_cell(var(2), *[var(2, 2)] * 3, var(2)),
        pk.ShapeError,
        r"x of rank 2, got \(2,\)",
    ),
    (
        lambda: ops.lstm_cell(var(2, 8), var(2, 16), var(2), *weights(4), var(64)),
        pk.ShapeError,
        r"c of rank 2, got \(2,\)",
    ),
    (
        lambda: ops.lstm_cell(var(2, 8), var(2, 16), var(2, 16), *weights(3), var(64)),
        pk.ShapeError,
        "columns of kernel and 4 times the units must agree, got 48 and 64",
    ),
    (
        lambda: ops.gru_cell(var(2, 8), var(2, 16), *weights(3), var(48)),
        pk.ShapeError,
        r"shape \(2, 48\), got \(48,\)",
    ),
    (
        lambda: ops.lstm_block_cell(var(2, 8), var(16), var(2, 16), var(24, 64), var(64)),
        pk.ShapeError,
        r"cs_prev of rank 2, got \(16,\)",
    ),
    (
        lambda: ops.lstm_block_cell(var(2, 8), var(2, 16), var(2, 16), var(24), var(64)),
        pk.ShapeError,
        r"w of rank 2, got \(24,\)",
    ),
    (
        lambda: ops.lstm_block_cell(var(2, 8), var(1, 16), var(2, 16), var(24, 64), var(64)),
        pk.ShapeError,
        "dimension 0 of cs_prev and h must agree, got 1 and 2",
    ),
    (
        lambda: ops.lstm_cell(var(2, 8), var(2, 16), var(2, 16), *weights(4), var(63)),
        pk.ShapeError,
        r"lstm_cell cannot stretch the bias \(63,\) to \(2, 64\)",
    ),
    (
        lambda: ops.gru_cell(var(2, 8), var(2, 16), *weights(3), var(1, 48)),
        pk.ShapeError,
        "dimension 0 of the bias must agree, got 1 and 2",
    ),
    (
        lambda: ops.scaled_dot_product_attention(*[var(2, 3)] * 3, scale="x"),
        pk.GraphError,
        "needs a number as scale, or None, got 'x'",
    ),
]


@pytest.mark.parametrize("build, error, message", ERRORS)
def test_invalid_calls_raise(
    build: Callable[[], Any], error: type[Exception], message: str
) -> None:
    """The call that builds a node raises an error with the parameter or shape it got."""
    with pytest.raises(error, match=message):
        build()
