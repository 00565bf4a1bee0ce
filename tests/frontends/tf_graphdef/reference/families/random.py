"""Cases of stateless random operators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.frontends.tf_graphdef.reference.case import Case
from tests.frontends.tf_graphdef.reference.drawing import FLOATS

SEED = np.array([7, -3], "int64")


def cases(tf: Any) -> Iterator[Case]:
    """Yield operators of seeds, then those of keys, which tf.random uses."""
    raw = tf.raw_ops
    for draw in ("Uniform", "Normal"):
        for dtype in FLOATS:
            yield Case(
                f"StatelessRandom{draw}",
                f"{dtype}",
                lambda s, d=dtype, op=draw: getattr(raw, f"StatelessRandom{op}")(
                    shape=[3, 5], seed=s, dtype=d
                ),
                {"s": SEED},
                free=False,
            )
    for dtype in ("int32", "int64"):
        yield Case(
            "StatelessRandomUniformIntV2",
            f"-5 to 100 of {dtype}",
            lambda s, d=dtype: tf.random.stateless_uniform([7], s, -5, 100, d),
            {"s": SEED},
            free=False,
        )
        yield Case(
            "StatelessRandomUniformInt",
            f"-5 to 100 of {dtype}",
            lambda s, d=dtype: raw.StatelessRandomUniformInt(
                shape=[7], seed=s, minval=tf.constant(-5, d), maxval=tf.constant(100, d)
            ),
            {"s": SEED},
            free=False,
        )
    for dtype in ("int32", "int64", "uint32", "uint64"):
        yield Case(
            "StatelessRandomUniformFullIntV2",
            dtype,
            lambda s, d=dtype: tf.random.stateless_uniform([6], s, None, None, d),
            {"s": SEED},
            free=False,
        )
        yield Case(
            "StatelessRandomUniformFullInt",
            dtype,
            lambda s, d=dtype: raw.StatelessRandomUniformFullInt(shape=[6], seed=s, dtype=d),
            {"s": SEED},
            free=False,
        )
    for name, function in {
        "StatelessRandomUniformV2": lambda s: tf.random.stateless_uniform([2, 3], s, 1.0, 4.0),
        "StatelessRandomNormalV2": lambda s: tf.random.stateless_normal([2, 3], s, 1.0, 0.5),
        "StatelessRandomGetKeyCounterAlg": lambda s: list(
            raw.StatelessRandomGetKeyCounterAlg(seed=s)
        ),
        "StatelessRandomGetAlg": lambda s: tf.cast(s, tf.int32) + raw.StatelessRandomGetAlg(),
        "StatelessRandomGetKeyCounter": lambda s: list(raw.StatelessRandomGetKeyCounter(seed=s)),
    }.items():
        yield Case(name, "tf.random", function, {"s": SEED.astype("int32")}, free=False)
    yield Case(
        "StatelessRandomUniformV2",
        "noise for a batch",
        lambda x: x + tf.random.stateless_uniform(tf.shape(x), [1, 2]),
        {"x": np.zeros((3, 5), "f")},
    )
    yield Case(
        "StatelessRandomUniformV2",
        "a counter that overflows",
        lambda k, c: raw.StatelessRandomUniformV2(shape=[13], key=k, counter=c, alg=1),
        {"k": np.array([5], "uint64"), "c": np.array([2**64 - 2, 9], "uint64")},
        free=False,
    )
    yield Case(
        "StatelessTruncatedNormalV2",
        "tf.random",
        lambda s: tf.random.stateless_truncated_normal([2, 3], s),
        {"s": SEED},
        free=False,
    )
