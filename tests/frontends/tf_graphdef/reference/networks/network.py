"""A network before freezing, and its weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from tests.frontends.tf_graphdef.reference.case import Array


@frozen(eq=False)
class Network:
    """A function of tensors, such as a Keras model takes and returns."""

    name: str
    function: Callable[..., Any]
    inputs: Mapping[str, Array]


def drawn(*shape: int, seed: int = 0) -> Array:
    """Return an input with numbers of both signs in steps of 1/32."""
    rng = np.random.default_rng([seed, *shape])
    return (rng.integers(-64, 64, shape) / 32).astype(np.float32)


def picked(high: int, *shape: int, seed: int = 0) -> Array:
    """Return integers below ``high``, such as words or categories."""
    return np.random.default_rng([seed, *shape]).integers(0, high, shape).astype(np.int32)


def network(tf: Any, name: str, inputs: Any, outputs: Any, **given: Array) -> Network:
    """Return a Keras model with weights that are seeded by the network's name."""
    model = tf.keras.Model(inputs, outputs)
    weigh(model.weights, name)
    arrays = dict(given)

    def function(*tensors: Any) -> Any:
        return model(tensors[0] if len(tensors) == 1 else list(tensors), training=False)

    return Network(name, function, arrays)


def weigh(weights: Sequence[Any], name: str) -> None:
    """Set weights to a scale as after training, so that activations stay of order 1."""
    rng = np.random.default_rng([ord(c) for c in name])
    for w in weights:
        shape = tuple(w.shape)
        kind = str(getattr(w, "path", w.name)).rsplit("/", 1)[-1]
        if not np.issubdtype(np.dtype(getattr(w.dtype, "name", w.dtype)), np.floating):
            continue
        if "variance" in kind or "gamma" in kind or kind == "scale":
            value = rng.integers(32, 96, shape) / 64
        else:
            fan = int(np.prod(shape[:-1])) if len(shape) > 1 else 4
            value = rng.integers(-127, 128, shape) / 128 * np.sqrt(3 / max(fan, 1))
        w.assign(value.astype(np.float32))
