"""The layers in Keras, and networks of them as frozen graphs with their weights."""

from __future__ import annotations

from typing import Any

from networks import Array, Written
from tests.frontends.tf_graphdef.reference.case import Stored
from tests.frontends.tf_graphdef.reference.freeze import frozen
from tests.frontends.tf_graphdef.reference.networks.network import Network, weigh


class Layers:
    """The namespace for a network's formula: symbolic tensors in, symbolic tensors out."""

    def __init__(self, tf: Any) -> None:
        self.layers, self.ops = tf.keras.layers, tf.keras.ops
        for name in ("relu", "relu6", "tanh", "sigmoid", "elu", "softmax", "sqrt", "exp", "log"):
            setattr(self, name, getattr(self.ops, name))

    def dense(self, x: Any, name: str, units: int) -> Any:
        """A product along the last axis."""
        return self.layers.Dense(units, name=name)(x)

    def conv(
        self, x: Any, name: str, filters: int, window: int, stride: int = 1, bias: bool = True
    ) -> Any:
        """A convolution of images, padded to the same size."""
        layer = self.layers.Conv2D(
            filters, window, stride, padding="same", use_bias=bias, name=name
        )
        return layer(x)

    def depthwise(self, x: Any, name: str, window: int, stride: int) -> Any:
        """A filter for each channel."""
        layer = self.layers.DepthwiseConv2D(
            window, stride, padding="same", use_bias=False, name=name
        )
        return layer(x)

    def causal(self, x: Any, name: str, filters: int, window: int, rate: int = 1) -> Any:
        """A convolution in time that sees the past only."""
        layer = self.layers.Conv1D(filters, window, padding="causal", dilation_rate=rate, name=name)
        return layer(x)

    def batch_norm(self, x: Any, name: str) -> Any:
        """By statistics that were learnt."""
        return self.layers.BatchNormalization(name=name)(x)

    def layer_norm(self, x: Any, name: str) -> Any:
        """Along the last axis."""
        return self.layers.LayerNormalization(epsilon=1e-5, name=name)(x)

    def embedding(self, words: Any, name: str, count: int, width: int) -> Any:
        """Rows of a table."""
        return self.layers.Embedding(count, width, name=name)(words)

    def attention(self, x: Any, name: str, heads: int) -> Any:
        """Every place looks at every other."""
        layer = self.layers.MultiHeadAttention(heads, x.shape[-1] // heads, name=name)
        return layer(x, x)

    def lstm(self, x: Any, name: str, units: int) -> Any:
        """The last state of a recurrent layer."""
        return self.layers.LSTM(units, unroll=True, name=name)(x)

    def max_pool(self, x: Any) -> Any:
        """The largest of 2 x 2."""
        return self.layers.MaxPooling2D()(x)

    def upsample(self, x: Any) -> Any:
        """Each pixel 2 x 2 times."""
        return self.layers.UpSampling2D()(x)

    def gelu(self, x: Any) -> Any:
        """By erf, spelt as ONNX Runtime knows it: TensorFlow's erfc it does not have."""
        return x * (self.ops.erf(x / 2**0.5) + 1.0) * 0.5

    def sum(self, x: Any, axes: tuple[int, ...], keepdims: bool = False) -> Any:
        """Over axes."""
        return self.ops.sum(x, axes, keepdims=keepdims)

    def mean(self, x: Any, axes: tuple[int, ...]) -> Any:
        """Over axes."""
        return self.ops.mean(x, axes)

    def cumsum(self, x: Any, axis: int) -> Any:
        """The running sum."""
        return self.ops.cumsum(x, axis)

    def number(self, x: Any) -> Any:
        """Truth as 0 and 1."""
        return self.ops.cast(x, "float32")

    def concat(self, parts: list[Any], axis: int) -> Any:
        """One after the other."""
        return self.ops.concatenate(parts, axis)

    def reshape(self, x: Any, example: tuple[int, ...]) -> Any:
        """Each example in another shape."""
        return self.ops.reshape(x, (-1, *example))


def build(tf: Any, written: Written, batch: int) -> tuple[Stored, dict[str, Array]]:
    """The network as TensorFlow freezes it, with its results, and its weights by path."""
    tf.keras.backend.clear_session()
    x = written.inputs(batch)
    given = tf.keras.layers.Input(x.shape[1:], dtype=x.dtype.name)
    model = tf.keras.Model(given, written.formula(Layers(tf), given))
    weigh(model.weights, written.name)

    def function(tensor: Any) -> Any:
        return model(tensor, training=False)

    made = frozen(tf, Network(written.name, function, {"x": x}))
    return made, {w.path: w.numpy() for w in model.weights}
