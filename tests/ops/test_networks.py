"""Losses, norms, cells and attention: their kernels, their corners, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.graph.op import FInferShapeBack
from tests.planned import plan

ops = pk.ops


def var(*shape: Any, dtype: str = "float32", name: str = "x") -> Any:
    """An input."""
    return pk.var(name, shape, dtype)


def weights(gates: int, units: int = 16, inputs: int = 8) -> list[Any]:
    """Kernel and recurrent kernel of a cell."""
    return [var(inputs, gates * units, name="w"), var(units, gates * units, name="u")]


def cell(name: str, gates: int, *bias: int, states: int = 1, **params: Any) -> Any:
    """A cell's first result, and the others."""
    state = [var("b", 16, name=f"h{k}") for k in range(states)]
    out = pk.get_op(name)(var("b", 8), *state, *weights(gates), var(*bias, name="bias"), **params)
    return out if isinstance(out, tuple) else (out,)


LABELS = var("b", dtype="int32", name="labels")
KERNELS: dict[str, tuple[Callable[[], Any], int]] = {
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


@pytest.mark.parametrize("name", KERNELS)
def test_how_many_kernels(name: str) -> None:
    """Beside its products of matrices, a composite is one kernel, or as few as can be."""
    build, wanted = KERNELS[name]
    planned = plan(pk.Graph(build()))
    kernels = [k.ops for k in planned.attrs["kernel"].values()]
    left = {n.op.name for n in planned.nodes if n.op is not None} - {"fused", "constant"}

    assert len(kernels) == wanted, kernels
    assert left <= {"matmul", "matmul_sum"}


def run(*outs: Any, **feeds: Any) -> list[Any]:
    """Interpreted."""
    return pk.interpret(pk.Graph(outs), feeds)


def test_cross_entropies_of_large_logits() -> None:
    """Nothing overflows, and a class that cannot be is worth nothing where no label is."""
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


def test_labels_that_are_no_class() -> None:
    """They are worth 0, whichever side they are off."""
    x = np.zeros((3, 4), np.float32)
    (found,) = run(ops.sparse_softmax_cross_entropy_with_logits(np.array([-1, 4, 0]), x))

    np.testing.assert_allclose(found, [0, 0, np.log(4)], rtol=1e-6)


def test_what_is_worth_nothing() -> None:
    """A label of 0 adds nothing to a divergence, whatever its prediction; late keys have -inf."""
    t, p = np.float32([0, 0.5, 0.5]), np.float32([0.3, 0, 0.5])
    found, late = run(
        ops.kl_divergence(t, p, reduction="none"), ops.causal_mask(np.zeros((2, 3), np.float32))
    )

    np.testing.assert_array_equal(found, [0, np.inf, 0])
    np.testing.assert_array_equal(late, [[0, 0, -np.inf], [0, 0, 0]])


def test_lengths_of_nothing() -> None:
    """A zero vector has no direction: it stays 0, and is similar to nothing."""
    zero, some = np.zeros((2, 3), np.float32), np.ones((2, 3), np.float32)
    for found in run(
        ops.l2_normalize(zero), ops.cosine_similarity(zero, some), ops.clip_by_norm(zero)
    ):
        assert (found == 0).all()


def test_all_hidden() -> None:
    """Attention that sees no key gives 0, not NaN."""
    x = np.ones((3, 4), np.float32)
    seen = np.array([[True, False, True], [False, False, False], [True, True, True]])
    (found,) = run(ops.scaled_dot_product_attention(x, x, x, seen, masked=True))

    np.testing.assert_allclose(found[:, 0], [1, 0, 1], rtol=1e-6)


def test_names_and_missing_inputs() -> None:
    """Gamma and beta that are left out become variables; losses take their inputs by name."""
    out = ops.group_norm(var(2, 5, 6), groups=3, name="gn")
    shapes = FInferShapeBack.get("group_norm")(out.node, [(2, 5, 6), None, None], [None])
    x, t = var(3), var(3, name="t")
    (a,) = run(
        ops.huber_loss(predictions=x, labels=t), x=np.float32([1, 2, 3]), t=np.float32([1, 0, 0])
    )

    assert [e.node.name for e in out.node.inputs] == ["x", "gn_gamma", "gn_beta"]
    assert shapes == [(2, 5, 6), (6,), (6,)]
    assert a == np.float32((1.5 + 2.5) / 3)


i32 = {"dtype": "int32"}
BAD: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: ops.mean_squared_error(var(3), var(3), reduction="max"), pk.GraphError, "got 'max'"),
    (lambda: ops.huber_loss(var(3), var(3), delta=0.0), pk.GraphError, "delta above 0, got 0.0"),
    (
        lambda: ops.softmax_cross_entropy_with_logits(var(3), var(2, 3)),
        pk.ShapeError,
        r"one shape, got \(3,\) and \(2, 3\)",
    ),
    (lambda: ops.nll_loss(var(2, **i32), var(2, 3, 4)), pk.ShapeError, r"\(2, 3\), got \(2,\)"),
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
            var(2, 3), var(2, 3), var(2, 3), var(2, 2, **i32), masked=True
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


@pytest.mark.parametrize("build, error, message", BAD)
def test_what_is_refused(build: Callable[[], Any], error: type[Exception], message: str) -> None:
    """Parameters and shapes that do not fit are refused when the node is made."""
    with pytest.raises(error, match=message):
        build()
