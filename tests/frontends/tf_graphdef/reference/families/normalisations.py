"""Cases of all versions of batch normalization, of biases, and of norms composed of operators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.frontends.tf_graphdef.reference.case import Case
from tests.frontends.tf_graphdef.reference.families.convolutions import FLOATS, draw

NORMS = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
C = 5
VECTORS = [draw(C), draw(C, seed=1), draw(C, seed=2), np.abs(draw(C, seed=3)) + np.float32(0.5)]


def cases(tf: Any) -> Iterator[Case]:
    """Yield all cases."""
    yield from _batch_norm(tf)
    yield from _batch_norm_grad(tf)
    yield from _bias(tf)
    yield from _spelled(tf)


def _batch_norm(tf: Any) -> Iterator[Case]:
    scale, offset, mean, variance = VECTORS
    for op in NORMS:
        raw = getattr(tf.raw_ops, op)
        narrow = ("float16", "bfloat16") if op != "FusedBatchNorm" else ()
        for training in (False, True):
            for epsilon, factor in ((1e-3, 1.0), (0.1, 0.75)):
                if factor < 1 and op == "FusedBatchNorm":
                    continue
                inputs = (mean, variance) if factor < 1 or not training else (mean[:0],) * 2
                for dtype in ("float32", *narrow) if factor == 1 else ("float32",):
                    yield Case(
                        op,
                        f"is_training={training} epsilon={epsilon} exponential_avg_factor={factor}",
                        lambda x, r=raw, g=inputs, e=epsilon, f=factor, t=training: r(
                            x=x,
                            scale=scale,
                            offset=offset,
                            mean=g[0],
                            variance=g[1],
                            epsilon=e,
                            exponential_avg_factor=f,
                            is_training=t,
                        )[: 5 if t else 3],
                        {"x": draw(3, 2, 4, C, dtype=dtype)},
                    )
    for training in (False, True):
        inputs = VECTORS if not training else [*VECTORS[:2], VECTORS[0][:0], VECTORS[0][:0]]
        for data_format, shape in (("NCHW", (3, C, 2, 4)), ("NDHWC", (2, 2, 3, 2, C))):
            yield Case(
                "FusedBatchNormV3",
                f"data_format={data_format} is_training={training}",
                lambda x, g=inputs, d=data_format, t=training: tf.raw_ops.FusedBatchNormV3(
                    x=x,
                    scale=g[0],
                    offset=g[1],
                    mean=g[2],
                    variance=g[3],
                    data_format=d,
                    is_training=t,
                )[:3],
                {"x": draw(*shape)},
                jit=data_format == "NCHW",
            )
        yield Case(
            "FusedBatchNormV3",
            f"is_training={training} large mean",
            lambda x, g=inputs, t=training: tf.raw_ops.FusedBatchNormV3(
                x=x, scale=g[0], offset=g[1], mean=g[2] + 1000, variance=g[3], is_training=t
            )[:3],
            {"x": draw(2, 3, 3, C) + 1000},
        )
        yield Case(
            "FusedBatchNormV3",
            f"is_training={training} one image of one pixel",
            lambda x, g=inputs, t=training: tf.raw_ops.FusedBatchNormV3(
                x=x, scale=g[0], offset=g[1], mean=g[2], variance=g[3], is_training=t
            )[:3],
            {"x": draw(1, 1, 1, C)},
        )
        yield Case(
            "FusedBatchNormV3",
            f"is_training={training} unknown size",
            lambda x, g=inputs, t=training: tf.raw_ops.FusedBatchNormV3(
                x=x, scale=g[0], offset=g[1], mean=g[2], variance=g[3], is_training=t
            )[:5],
            {"x": draw(2, 3, 2, C)},
            free_size=True,
        )


def _batch_norm_grad(tf: Any) -> Iterator[Case]:
    scale, _, mean, variance = VECTORS
    for op in NORMS:
        raw = getattr(tf.raw_ops, op.replace("Norm", "NormGrad"))
        more = {"reserve_space_3": np.zeros(0, "f")} if op.endswith("V3") else {}
        narrow = ("float16",) if more else ()
        for training in (False, True):
            for dtype in ("float32", *narrow):
                yield Case(
                    op.replace("Norm", "NormGrad"),
                    f"is_training={training}",
                    lambda dy, x, r=raw, t=training, m=more: r(
                        y_backprop=dy,
                        x=x,
                        scale=scale,
                        reserve_space_1=mean,
                        reserve_space_2=variance,
                        is_training=t,
                        epsilon=1e-2,
                        **m,
                    )[:3],
                    {
                        "dy": draw(3, 2, 4, C, dtype=dtype, seed=5),
                        "x": draw(3, 2, 4, C, dtype=dtype),
                    },
                )


def _bias(tf: Any) -> Iterator[Case]:
    for shape in ((4, 3), (2, 4, 3), (2, 2, 4, 3), (1, 2, 3, 2, 3)):
        yield Case(
            "BiasAdd",
            f"rank={len(shape)}",
            lambda x: tf.nn.bias_add(x, draw(3)),
            {"x": draw(*shape)},
        )
        yield Case(
            "BiasAddGrad",
            f"rank={len(shape)}",
            lambda x: tf.raw_ops.BiasAddGrad(out_backprop=x),
            {"x": draw(*shape)},
        )
        if len(shape) > 2:
            yield Case(
                "BiasAdd",
                f"rank={len(shape)} data_format=NCHW",
                lambda x: tf.nn.bias_add(x, draw(x.shape[1], seed=1), "NCHW"),
                {"x": draw(*shape)},
            )
            yield Case(
                "BiasAddGrad",
                f"rank={len(shape)} data_format=NCHW",
                lambda x: tf.raw_ops.BiasAddGrad(out_backprop=x, data_format="NCHW"),
                {"x": draw(*shape)},
            )
    for dtype in ("int32", "float16", "bfloat16", "float64"):
        yield Case(
            "BiasAdd",
            "rank=2",
            lambda x: tf.nn.bias_add(x, tf.cast(draw(3) * 4, x.dtype)),
            {"x": (draw(4, 3) * 4).astype(draw(1, dtype=dtype).dtype if dtype != "int32" else "i")},
        )
    yield Case(
        "BiasAddV1",
        "",
        lambda x: tf.raw_ops.BiasAddV1(value=x, bias=draw(3)),
        {"x": draw(4, 3)},
    )


def _spelled(tf: Any) -> Iterator[Case]:
    x = {"x": draw(3, 4, 6)}
    for axis in (-1, 1, [1, 2]):
        yield Case(
            "Rsqrt",
            f"tf.nn.l2_normalize axis={axis}".replace(", ", ","),
            lambda x, a=axis: tf.nn.l2_normalize(x, a, 1e-6),
            x,
        )
        yield Case(
            "SquaredDifference",
            f"tf.nn.moments axis={axis}".replace(", ", ","),
            lambda x, a=axis: tf.nn.moments(x, [a] if isinstance(a, int) else a, keepdims=True),
            x,
        )
    yield Case(
        "Rsqrt",
        "tf.nn.batch_normalization",
        lambda x: tf.nn.batch_normalization(
            x, draw(6), np.abs(draw(6, seed=1)), draw(6, seed=2), draw(6, seed=3), 1e-3
        ),
        x,
    )
    layers = tf.keras.layers
    for result in (
        layers.LayerNormalization(),
        layers.GroupNormalization(3),
        layers.UnitNormalization(),
        layers.RMSNormalization(),
    ):
        result.build((None, 4, 6))
        weights = [draw(*w.shape, seed=7) for w in result.trainable_variables]
        yield Case(
            "Rsqrt",
            f"keras {type(result).__name__}",
            lambda x, m=result, w=weights: m.stateless_call(w, [], x)[0],
            x,
        )
    for dtype in FLOATS[2:]:
        yield Case(
            "Rsqrt",
            "tf.nn.l2_normalize axis=-1",
            lambda x: tf.nn.l2_normalize(x, -1, 1e-6),
            {"x": draw(3, 4, 6, dtype=dtype)},
        )
