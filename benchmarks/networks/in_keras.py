"""The layers of `networks` in Keras, and the networks as frozen graphs with their weights."""

from __future__ import annotations

from typing import Any

from networks import NetworkArray, NetworkDefinition
from tests.frontends.tf_graphdef.reference.case import Stored
from tests.frontends.tf_graphdef.reference.freeze import frozen
from tests.frontends.tf_graphdef.reference.networks.network import Network, weigh


class KerasLayers:
    """The namespace for a network's formula: symbolic tensors in, symbolic tensors out."""

    def __init__(self, tf: Any) -> None:
        self.layers, self.ops = tf.keras.layers, tf.keras.ops
        for name in ("relu", "relu6", "tanh", "sigmoid", "elu", "softmax", "sqrt", "exp", "log"):
            setattr(self, name, getattr(self.ops, name))

    def dense(self, x: Any, name: str, units: int) -> Any:
        """Multiply along the last axis and add a bias."""
        return self.layers.Dense(units, name=name)(x)

    def conv(
        self, x: Any, name: str, filters: int, window: int, stride: int = 1, bias: bool = True
    ) -> Any:
        """Convolve images, padded to the same size."""
        layer = self.layers.Conv2D(
            filters, window, stride, padding="same", use_bias=bias, name=name
        )
        return layer(x)

    def depthwise(self, x: Any, name: str, window: int, stride: int) -> Any:
        """Convolve each channel with its own filter, without bias."""
        layer = self.layers.DepthwiseConv2D(
            window, stride, padding="same", use_bias=False, name=name
        )
        return layer(x)

    def causal(self, x: Any, name: str, filters: int, window: int, rate: int = 1) -> Any:
        """Convolve in time over the past only; ``rate`` is the dilation."""
        layer = self.layers.Conv1D(filters, window, padding="causal", dilation_rate=rate, name=name)
        return layer(x)

    def batch_norm(self, x: Any, name: str) -> Any:
        """Normalise channels by learnt statistics."""
        return self.layers.BatchNormalization(name=name)(x)

    def layer_norm(self, x: Any, name: str) -> Any:
        """Normalise along the last axis."""
        return self.layers.LayerNormalization(epsilon=1e-5, name=name)(x)

    def embedding(self, words: Any, name: str, count: int, width: int) -> Any:
        """Look up rows of a table of shape (count, width)."""
        return self.layers.Embedding(count, width, name=name)(words)

    def attention(self, x: Any, name: str, heads: int) -> Any:
        """Return multi-head self-attention."""
        layer = self.layers.MultiHeadAttention(heads, x.shape[-1] // heads, name=name)
        return layer(x, x)

    def lstm(self, x: Any, name: str, units: int) -> Any:
        """Return the last state of an LSTM."""
        return self.layers.LSTM(units, unroll=True, name=name)(x)

    def max_pool(self, x: Any) -> Any:
        """Return the maxima of windows of 2 x 2."""
        return self.layers.MaxPooling2D()(x)

    def upsample(self, x: Any) -> Any:
        """Repeat each pixel 2 x 2 times."""
        return self.layers.UpSampling2D()(x)

    def gelu(self, x: Any) -> Any:
        """Return GELU, expressed by erf: ONNX Runtime lacks TensorFlow's erfc."""
        return x * (self.ops.erf(x / 2**0.5) + 1.0) * 0.5

    def sum(self, x: Any, axes: tuple[int, ...], keepdims: bool = False) -> Any:
        """Sum over axes."""
        return self.ops.sum(x, axes, keepdims=keepdims)

    def mean(self, x: Any, axes: tuple[int, ...]) -> Any:
        """Average over axes."""
        return self.ops.mean(x, axes)

    def cumsum(self, x: Any, axis: int) -> Any:
        """Return the running sum along an axis."""
        return self.ops.cumsum(x, axis)

    def number(self, x: Any) -> Any:
        """Convert booleans to 0.0 and 1.0."""
        return self.ops.cast(x, "float32")

    def concat(self, parts: list[Any], axis: int) -> Any:
        """Concatenate along an axis."""
        return self.ops.concatenate(parts, axis)

    def reshape(self, x: Any, example: tuple[int, ...]) -> Any:
        """Reshape each example; the batch axis stays."""
        return self.ops.reshape(x, (-1, *example))


def build(
    tf: Any, written: NetworkDefinition, batch: int
) -> tuple[Stored, dict[str, NetworkArray]]:
    """Freeze the network in TensorFlow.

    Args:
        tf: the module tensorflow.
        written: the network.
        batch: examples in a call; 0 means the network's own number.

    Returns:
        The frozen graph with inputs and results, and the weights by path.
    """
    tf.keras.backend.clear_session()
    x = written.inputs(batch)
    inputs = tf.keras.layers.Input(x.shape[1:], dtype=x.dtype.name)
    model = tf.keras.Model(inputs, written.formula(KerasLayers(tf), inputs))
    weigh(model.weights, written.name)

    def function(tensor: Any) -> Any:
        return model(tensor, training=False)

    stored_case = frozen(tf, Network(written.name, function, {"x": x}))
    return stored_case, {w.path: w.numpy() for w in model.weights}
