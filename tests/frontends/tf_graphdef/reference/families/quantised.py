"""Cases of simulated quantization."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.frontends.tf_graphdef.reference.case import Array, Case

RANGES = ((-6.0, 6.0), (-1.3, 2.9), (0.0, 4.0), (-3.0, 0.0), (0.5, 2.0))


def spread(*shape: int, dtype: str = "float32") -> Array:
    """Return numbers that are no multiple of a step."""
    return (np.random.default_rng([7, *shape]).normal(size=shape) * 3).astype(dtype)


def cases(tf: Any) -> Iterator[Case]:
    """Yield all cases."""
    yield from _fake(tf)
    yield from _there_and_back(tf)
    yield Case(
        "QuantizeV2",
        "",
        lambda x: tf.cast(tf.quantization.quantize(x, -3.0, 3.0, tf.quint8).output, tf.int32),
        {"x": spread(3, 4)},
    )


def _fake(tf: Any) -> Iterator[Case]:
    q = tf.quantization
    x = {"x": spread(4, 7)}
    for low, high in RANGES:
        for bits, narrow in ((8, False), (4, True), (16, False)):
            if low > 0 and bits != 8:
                continue
            variant = f"min={low} max={high} num_bits={bits} narrow_range={narrow}"
            yield Case(
                "FakeQuantWithMinMaxArgs",
                variant,
                lambda x, a=low, b=high, n=bits, r=narrow: q.fake_quant_with_min_max_args(
                    x, a, b, n, r
                ),
                x,
            )
        yield Case(
            "FakeQuantWithMinMaxVars",
            f"min={low} max={high}",
            lambda x, a=low, b=high: q.fake_quant_with_min_max_vars(x, a, b),
            x,
        )
        yield Case(
            "FakeQuantWithMinMaxArgsGradient",
            f"min={low} max={high}",
            lambda dy, x, a=low, b=high: q.fake_quant_with_min_max_args_gradient(dy, x, a, b),
            {"dy": spread(4, 7) + 1, **x},
        )
    yield Case(
        "FakeQuantWithMinMaxVars",
        "no range",
        lambda x: q.fake_quant_with_min_max_vars(x, 0.0, 0.0),
        x,
    )
    lows, highs = np.array([-1, -2, 0, -6, -3, -1, -2], "f"), np.array([1, 2, 3, 6, 0, 4, 1], "f")
    for low, high in (*RANGES[:3], (0.0, 0.0)):
        yield Case(
            "FakeQuantWithMinMaxVarsGradient",
            f"min={low} max={high}",
            lambda dy, x, a=low, b=high: q.fake_quant_with_min_max_vars_gradient(dy, x, a, b),
            {"dy": spread(4, 7) + 1, **x},
            free=False,
        )
    for bits in (8, 5):
        yield Case(
            "FakeQuantWithMinMaxVarsPerChannelGradient",
            f"num_bits={bits}",
            lambda dy, x, n=bits: q.fake_quant_with_min_max_vars_per_channel_gradient(
                dy, x, lows, highs, n
            ),
            {"dy": spread(4, 7) + 1, **x},
            free=False,
        )
        yield Case(
            "FakeQuantWithMinMaxVarsPerChannel",
            f"num_bits={bits}",
            lambda x, n=bits: q.fake_quant_with_min_max_vars_per_channel(x, lows, highs, n),
            x,
        )


def _there_and_back(tf: Any) -> Iterator[Case]:
    raw = tf.raw_ops
    for signed in (True, False):
        for inputs in (True, False):
            for mode in ("HALF_TO_EVEN", "HALF_UP"):
                for narrow in (False, True):
                    params = {
                        "signed_input": signed,
                        "range_given": inputs,
                        "round_mode": mode,
                        "narrow_range": narrow,
                        "num_bits": 5,
                    }
                    x = spread(4, 6) if signed else np.abs(spread(4, 6))
                    for dtype in ("float32", "float64") if not narrow else ("float32",):
                        yield Case(
                            "QuantizeAndDequantizeV2",
                            " ".join(f"{k}={v}" for k, v in params.items()),
                            lambda x, p=params: raw.QuantizeAndDequantizeV2(
                                input=x,
                                input_min=tf.cast(-2.0 * p["signed_input"], x.dtype),
                                input_max=tf.cast(3.1, x.dtype),
                                **p,
                            ),
                            {"x": x.astype(dtype)},
                        )
    for axis in (0, 1):
        yield Case(
            "QuantizeAndDequantizeV4",
            f"axis={axis}",
            lambda x, a=axis: raw.QuantizeAndDequantizeV4(
                input=x,
                input_min=[0.0] * x.shape[a],
                input_max=[0.0] * x.shape[a],
                range_given=False,
                axis=a,
            ),
            {"x": spread(4, 6)},
            free=False,
        )
    yield Case(
        "QuantizeAndDequantizeV2",
        "all zeros",
        lambda x: raw.QuantizeAndDequantizeV2(input=x, input_min=0.0, input_max=0.0),
        {"x": np.zeros((2, 3), "f")},
    )
    yield Case(
        "QuantizeAndDequantizeV3",
        "num_bits=6",
        lambda x: raw.QuantizeAndDequantizeV3(input=x, input_min=-1.0, input_max=2.0, num_bits=6),
        {"x": spread(3, 4)},
    )
    yield Case(
        "QuantizeAndDequantizeV4",
        "num_bits=6",
        lambda x: raw.QuantizeAndDequantizeV4(input=x, input_min=-1.0, input_max=2.0, num_bits=6),
        {"x": spread(3, 4)},
    )
