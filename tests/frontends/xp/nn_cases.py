"""A table of the functions of `passkit.xp.nn`: a call of each, and its reference in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import frozen

from passkit import xp
from tests.frontends.xp import nn_references as ref

nn = xp.nn
BOOLS = np.array([[True, False, True, True], [False, False, True, True], [False] * 4])
LABELS = np.array([2, 0, 3])


@frozen
class Case:
    """A call of a function.

    Attributes:
        name: the function.
        shapes: the shapes of its arrays.
        call: the call, a function of xp arrays.
        reference: the same of NumPy arrays of float64.
        is_positive: whether the numbers are between 0 and 1, rather than around 0.
    """

    name: str
    shapes: tuple[tuple[int, ...], ...]
    call: Callable[..., Any]
    reference: Callable[..., Any]
    is_positive: bool = False


def _unary(name: str, reference: Callable[..., Any], **params: Any) -> Case:
    """Return the case of an activation function."""
    return Case(name, ((3, 40),), lambda x: getattr(nn, name)(x, **params), reference)


def _loss(name: str, element: Callable[..., Any], positive: bool = False, **params: Any) -> Case:
    """Return the case of a loss of elements, whose labels broadcast."""
    return Case(
        name,
        ((5, 4), (4,)),
        lambda x, y: getattr(nn, name)(x, y, **params),
        lambda x, y: element(x, y).mean(),
        positive,
    )


ACTIVATIONS = [
    _unary("relu", lambda x: np.maximum(x, 0)),
    _unary("relu6", lambda x: np.clip(x, 0, 6)),
    _unary("sigmoid", ref.sigmoid),
    _unary("hard_sigmoid", lambda x: np.clip(x + 3, 0, 6) / 6),
    _unary("hard_silu", lambda x: x * np.clip(x + 3, 0, 6) / 6),
    _unary("hard_swish", lambda x: x * np.clip(x + 3, 0, 6) / 6),
    _unary("hard_tanh", lambda x: np.clip(x, -0.5, 1.5), min_value=-0.5, max_value=1.5),
    _unary("hard_shrink", lambda x: np.where(np.abs(x) > 0.75, x, 0), threshold=0.75),
    _unary(
        "soft_shrink",
        lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.25, 0),
        threshold=0.25,
    ),
    _unary("tanh_shrink", lambda x: x - np.tanh(x)),
    _unary("tanh", np.tanh),
    _unary("silu", lambda x: x * ref.sigmoid(x)),
    _unary("swish", lambda x: x * ref.sigmoid(x)),
    _unary("quick_gelu", lambda x: x * ref.sigmoid(1.702 * x)),
    _unary("gelu", lambda x: 0.5 * x * (1 + ref.ERF(x / 2**0.5))),
    _unary("gelu", ref.gelu_tanh, approximate="tanh"),
    _unary("gelu", ref.gelu_tanh, approximate=True),
    _unary("softplus", ref.softplus),
    _unary("softplus", lambda x: ref.softplus(2 * x) / 2, beta=2),
    _unary("squareplus", lambda x: (x + np.sqrt(x * x + 2)) / 2, b=2),
    _unary("log_sigmoid", lambda x: -ref.softplus(-x)),
    _unary("elu", lambda x: ref.elu(x, 0.5), alpha=0.5),
    _unary("celu", lambda x: np.where(x > 0, x, 2 * np.expm1(np.minimum(x, 0) / 2)), alpha=2),
    _unary("selu", lambda x: 1.0507009873554805 * ref.elu(x, 1.6732632423543772)),
    _unary("leaky_relu", lambda x: np.where(x > 0, x, 0.125 * x), negative_slope=0.125),
    _unary("mish", lambda x: x * np.tanh(ref.softplus(x))),
    _unary("softsign", lambda x: x / (1 + np.abs(x))),
    _unary("threshold", lambda x: np.where(x > 0.25, x, 7), threshold=0.25, value=7),
    _unary("glu", lambda x: x[:, :20] * ref.sigmoid(x[:, 20:])),
    Case("prelu", ((3, 5), (5,)), nn.prelu, lambda x, w: np.where(x > 0, x, w * x)),
    _unary("softmax", ref.softmax),
    _unary("softmax", lambda x: ref.softmax(x, None), axis=None),
    Case(
        "softmax",
        ((3, 4),),
        lambda x: nn.softmax(x, where=xp.asarray(BOOLS)),
        lambda x: ref.masked_softmax(x, BOOLS),
    ),
    _unary("log_softmax", lambda x: ref.log_softmax(x, 0), axis=0),
    _unary("softmin", lambda x: ref.softmax(-x)),
    _unary("logsumexp", lambda x: np.log(np.exp(x).sum(1)), axis=1),
]

NORMS = [
    Case(
        "layer_norm",
        ((4, 6), (6,), (6,)),
        nn.layer_norm,
        lambda x, w, b: ref.standardized(x, 1) * w + b,
    ),
    Case(
        "layer_norm",
        ((3, 4, 6), (4, 6)),
        lambda x, b: nn.layer_norm(x, bias=b, axis=(1, 2), eps=0.5),
        lambda x, b: ref.standardized(x, (1, 2), 0.5) + b,
    ),
    Case(
        "rms_norm",
        ((4, 6), (6,)),
        nn.rms_norm,
        lambda x, w: x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-6) * w,
    ),
    Case(
        "rms_norm",
        ((4, 6),),
        lambda x: nn.rms_norm(x, axis=0, eps=0.25),
        lambda x: x / np.sqrt((x * x).mean(0, keepdims=True) + 0.25),
    ),
    Case(
        "group_norm",
        ((2, 6, 5), (6,), (6,)),
        lambda x, w, b: nn.group_norm(x, 3, w, b),
        lambda x, w, b: ref.group_norm(x, 3, w, b),
    ),
    Case(
        "instance_norm",
        ((2, 5, 3), (3,)),
        lambda x, w: nn.instance_norm(x, w, axis=-1),
        lambda x, w: ref.standardized(x, 1) * w,
    ),
    Case(
        "batch_norm",
        ((2, 3, 5), (3,), (3,), (3,), (3,)),
        nn.batch_norm,
        lambda x, m, v, w, b: (
            (x - m[:, None]) / np.sqrt(v[:, None] + 1e-5) * w[:, None] + b[:, None]
        ),
        is_positive=True,
    ),
    Case(
        "batch_norm",
        ((5, 3), (3,), (3,)),
        lambda x, m, v: nn.batch_norm(x, m, v, eps=0.5),
        lambda x, m, v: (x - m) / np.sqrt(v + 0.5),
        is_positive=True,
    ),
    Case(
        "batch_norm_training",
        ((4, 3, 5), (3,), (3,)),
        lambda x, m, v: xp.concat(
            [xp.reshape(r, (-1,)) for r in nn.batch_norm_training(x, m, v, momentum=0.25)]
        ),
        lambda x, m, v: np.concatenate(
            [
                ref.standardized(x, (0, 2)).ravel(),
                0.75 * m + 0.25 * x.mean((0, 2)),
                0.75 * v + 0.25 * x.var((0, 2), ddof=1),
            ]
        ),
        is_positive=True,
    ),
    Case(
        "normalize",
        ((3, 4),),
        nn.normalize,
        lambda x: x / np.sqrt((x * x).sum(1, keepdims=True)),
    ),
]

LAYERS = [
    Case("linear", ((3, 4), (5, 4), (5,)), nn.linear, lambda x, w, b: x @ w.T + b),
    Case("linear", ((4,), (5, 4)), nn.linear, lambda x, w: w @ x),
    Case(
        "embedding",
        ((4, 3),),
        lambda w: nn.embedding(xp.asarray([[0, -1], [2, 2]]), w),
        lambda w: w[[[0, -1], [2, 2]]],
    ),
    Case(
        "one_hot",
        ((4,),),
        lambda x: xp.astype(nn.one_hot(xp.asarray(LABELS), 4, axis=0), x.dtype) + x[:, None],
        lambda x: np.eye(4)[LABELS].T + x[:, None],
    ),
    Case(
        "conv1d",
        ((2, 4, 9), (6, 2, 3), (6,)),
        lambda x, w, b: nn.conv1d(x, w, b, 2, 1, groups=2),
        lambda x, w, b: ref.convolution(x, w, (2,), (1,), (1,), 2) + b[:, None],
    ),
    Case(
        "conv2d",
        ((2, 3, 7, 8), (4, 3, 3, 2), (4,)),
        lambda x, w, b: nn.conv2d(x, w, b, padding=(1, 0), dilation=(1, 2)),
        lambda x, w, b: ref.convolution(x, w, (1, 1), (1, 0), (1, 2)) + b[:, None, None],
    ),
    Case(
        "conv2d",
        ((2, 7, 8, 3), (3, 3, 3, 4), (4,)),
        lambda x, w, b: nn.conv2d(x, w, b, padding="same", data_format="NHWC"),
        lambda x, w, b: (
            ref.convolution(
                x.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1), (1, 1), (1, 1), (1, 1)
            ).transpose(0, 2, 3, 1)
            + b
        ),
    ),
    Case(
        "conv3d",
        ((1, 2, 4, 5, 3), (3, 2, 2, 2, 2)),
        lambda x, w: nn.conv3d(x, w, stride=(1, 2, 1)),
        lambda x, w: ref.convolution(x, w, (1, 2, 1), (0, 0, 0), (1, 1, 1)),
    ),
    Case(
        "conv1d_transpose",
        ((2, 3, 5), (3, 4, 3), (4,)),
        lambda x, w, b: nn.conv1d_transpose(x, w, b, 2, 1, 1),
        lambda x, w, b: ref.transposed_convolution(x, w, (2,), (1,), (1,)) + b[:, None],
    ),
    Case(
        "conv2d_transpose",
        ((2, 3, 4, 3), (3, 2, 2, 3)),
        lambda x, w: nn.conv2d_transpose(x, w, stride=(2, 1)),
        lambda x, w: ref.transposed_convolution(x, w, (2, 1), (0, 0), (0, 0)),
    ),
    Case(
        "conv3d_transpose",
        ((1, 2, 2, 3, 2), (2, 2, 2, 2, 2)),
        lambda x, w: nn.conv3d_transpose(x, w, stride=2),
        lambda x, w: ref.transposed_convolution(x, w, (2, 2, 2), (0, 0, 0), (0, 0, 0)),
    ),
    Case(
        "max_pool1d",
        ((2, 3, 9),),
        lambda x: nn.max_pool1d(x, 3, 2, 1),
        lambda x: ref.pool(x, (3,), (2,), (1,), np.max, -np.inf),
    ),
    Case(
        "max_pool2d",
        ((2, 3, 6, 4),),
        lambda x: nn.max_pool2d(x, 2),
        lambda x: ref.pool(x, (2, 2), (2, 2), (0, 0), np.max, 0),
    ),
    Case(
        "max_pool3d",
        ((1, 2, 4, 4, 2),),
        lambda x: nn.max_pool3d(x, (2, 2, 1)),
        lambda x: ref.pool(x, (2, 2, 1), (2, 2, 1), (0, 0, 0), np.max, 0),
    ),
    Case(
        "avg_pool1d",
        ((2, 3, 8),),
        lambda x: nn.avg_pool1d(x, 3, 1, 1),
        lambda x: ref.pool(x, (3,), (1,), (1,), np.mean, 0),
    ),
    Case(
        "avg_pool2d",
        ((2, 3, 6, 4),),
        lambda x: nn.avg_pool2d(x, (3, 2), 1, (1, 0), count_include_pad=False),
        lambda x: ref.pool(x, (3, 2), (1, 1), (1, 0), np.nanmean, np.nan),
    ),
    Case(
        "avg_pool3d",
        ((1, 2, 4, 4, 2),),
        lambda x: nn.avg_pool3d(x, 2),
        lambda x: ref.pool(x, (2, 2, 2), (2, 2, 2), (0, 0, 0), np.mean, 0),
    ),
    Case("global_avg_pool", ((2, 3, 4, 5),), nn.global_avg_pool, lambda x: x.mean((2, 3))),
    Case(
        "global_max_pool",
        ((2, 4, 5, 3),),
        lambda x: nn.global_max_pool(x, channels_last=True, keepdims=True),
        lambda x: x.max((1, 2), keepdims=True),
    ),
]

MASK = np.array([[True, False, True, True, False], [False] * 5, [True] * 5])

ATTENTION = [
    Case(
        "scaled_dot_product_attention",
        ((2, 3, 4), (2, 5, 4), (2, 5, 6)),
        nn.scaled_dot_product_attention,
        ref.attention,
    ),
    Case(
        "scaled_dot_product_attention",
        ((2, 4, 4), (2, 4, 4), (2, 4, 4)),
        lambda q, k, v: nn.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.25),
        lambda q, k, v: ref.attention(q, k, v, causal=True, scale=0.25),
    ),
    Case(
        "scaled_dot_product_attention",
        ((2, 3, 4), (2, 5, 4), (2, 5, 6)),
        lambda q, k, v: nn.scaled_dot_product_attention(q, k, v, xp.asarray(MASK), is_causal=True),
        lambda q, k, v: ref.attention(q, k, v, MASK, causal=True),
    ),
    Case(
        "scaled_dot_product_attention",
        ((2, 3, 4), (2, 5, 4), (2, 5, 6), (3, 5)),
        lambda q, k, v, m: nn.scaled_dot_product_attention(q, k, v, m, is_causal=True),
        lambda q, k, v, m: ref.attention(q, k, v, m, causal=True),
    ),
    Case(
        "scaled_dot_product_attention",
        ((2, 6, 3, 4), (2, 2, 5, 4), (2, 2, 5, 4), (2, 6, 3, 5)),
        lambda q, k, v, m: nn.scaled_dot_product_attention(q, k, v, m, enable_gqa=True),
        lambda q, k, v, m: ref.attention(q, np.repeat(k, 3, 1), np.repeat(v, 3, 1), m),
    ),
    Case(
        "scaled_dot_product_attention",
        ((2, 4, 3, 4), (2, 2, 5, 4), (2, 2, 5, 4), (2, 1, 3, 5)),
        lambda q, k, v, m: nn.scaled_dot_product_attention(q, k, v, m > 0, enable_gqa=True),
        lambda q, k, v, m: ref.attention(q, np.repeat(k, 2, 1), np.repeat(v, 2, 1), m > 0),
    ),
    Case(
        "multi_head_attention",
        ((2, 3, 8), (2, 5, 8), (8, 8), (4, 8), (4, 8), (7, 8), (7,)),
        lambda x, y, q, k, v, o, b: nn.multi_head_attention(
            x, y, y, q, k, v, o, 4, num_key_heads=2, out_bias=b
        ),
        lambda x, y, q, k, v, o, b: (
            ref.attention(
                ref.heads(x @ q.T, 4),
                np.repeat(ref.heads(y @ k.T, 2), 2, 1),
                np.repeat(ref.heads(y @ v.T, 2), 2, 1),
            )
            .transpose(0, 2, 1, 3)
            .reshape(2, 3, 8)
            @ o.T
            + b
        ),
    ),
]

LOSSES = [
    _loss("mse_loss", lambda x, y: (x - y) ** 2),
    _loss("mae_loss", lambda x, y: np.abs(x - y)),
    _loss(
        "huber_loss",
        lambda x, y: np.where(np.abs(x - y) < 0.5, (x - y) ** 2 / 2, 0.5 * (np.abs(x - y) - 0.25)),
        delta=0.5,
    ),
    _loss(
        "smooth_l1_loss",
        lambda x, y: np.where(np.abs(x - y) < 0.5, (x - y) ** 2, np.abs(x - y) - 0.25),
        beta=0.5,
    ),
    _loss("log_cosh_loss", lambda x, y: np.log(np.cosh(x - y))),
    _loss("hinge_loss", lambda x, y: np.maximum(0, 1 - x * y)),
    _loss("squared_hinge_loss", lambda x, y: np.maximum(0, 1 - x * y) ** 2),
    _loss("poisson_nll_loss", lambda x, y: np.exp(x) - y * x),
    _loss("kl_div", lambda x, y: y * (np.log(y) - x), True),
    _loss("kl_div", lambda x, y: np.exp(y) * (y - x), log_target=True),
    _loss("binary_cross_entropy", ref.binary_cross_entropy, True),
    _loss(
        "binary_cross_entropy_with_logits",
        lambda x, y: ref.binary_cross_entropy(ref.sigmoid(x), y),
        True,
    ),
    Case(
        "binary_cross_entropy_with_logits",
        ((5, 4), (4,)),
        lambda x, y: nn.binary_cross_entropy_with_logits(x, y, pos_weight=3, reduction="none"),
        lambda x, y: -(3 * y * np.log(ref.sigmoid(x)) + (1 - y) * np.log(ref.sigmoid(-x))),
        is_positive=True,
    ),
    Case(
        "cross_entropy",
        ((3, 4),),
        lambda x: nn.cross_entropy(x, xp.asarray(LABELS)),
        lambda x: -ref.log_softmax(x)[range(3), LABELS].mean(),
    ),
    Case(
        "cross_entropy",
        ((4, 3),),
        lambda x: nn.cross_entropy(
            x, xp.asarray(LABELS), axis=0, ignore_index=0, label_smoothing=0.25
        ),
        lambda x: (
            -(
                0.75 * ref.log_softmax(x, 0)[LABELS, range(3)]
                + 0.25 * ref.log_softmax(x, 0).mean(0)
            )[[0, 2]].mean()
        ),
    ),
    Case(
        "cross_entropy",
        ((3, 4), (3, 4)),
        lambda x, y: nn.cross_entropy(x, y, label_smoothing=0.125, reduction="sum"),
        lambda x, y: -((0.875 * y + 0.125 / 4) * ref.log_softmax(x)).sum(),
        is_positive=True,
    ),
    Case(
        "nll_loss",
        ((3, 4),),
        lambda x: nn.nll_loss(x, xp.asarray(LABELS), ignore_index=3, reduction="none"),
        lambda x: np.array([-x[0, 2], -x[1, 0], 0]),
    ),
    Case("cosine_similarity", ((3, 4), (4,)), nn.cosine_similarity, ref.cosine),
]

CASES = [*ACTIVATIONS, *NORMS, *LAYERS, *ATTENTION, *LOSSES]
