"""Five published networks at their published sizes, with random weights, for inference at batch 1.

ResNet50, MobileNetV2 and EfficientNetB0 are Keras's own (`tf.keras.applications`), for images of
224 x 224. The U-Net has the layers of Ronneberger et al. 2015 with half the channels, for images of
256 x 256. The encoder is BERT-base (Devlin et al. 2018): 12 layers of width 768, 12 heads, 128
tokens. Weights are random, scaled to keep sums near 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from networks import NetworkArray
from networks.in_keras import KerasLayers
from tests.frontends.tf_graphdef.reference.case import Stored
from tests.frontends.tf_graphdef.reference.freeze import frozen
from tests.frontends.tf_graphdef.reference.networks.network import Network, weigh

IMAGE = (224, 224, 3)
TOKENS, WORDS, WIDTH, HEADS, DEPTH = 128, 30522, 768, 12, 12


def resnet50(tf: Any) -> Any:
    """Build ResNet50 of He et al. 2015: 53 convolutions, 3.9 G multiplications."""
    return tf.keras.applications.ResNet50(weights=None, input_shape=IMAGE)


def mobilenet_v2_224(tf: Any) -> Any:
    """Build MobileNetV2 of Sandler et al. 2018: 0.3 G multiplications."""
    return tf.keras.applications.MobileNetV2(weights=None, input_shape=IMAGE)


def efficientnet_b0(tf: Any) -> Any:
    """Build EfficientNetB0 of Tan and Le 2019: 0.4 G multiplications."""
    return tf.keras.applications.EfficientNetB0(weights=None, input_shape=IMAGE)


def unet_256(tf: Any) -> Any:
    """Build a U-Net with 32 to 512 channels for an image of 256 x 256 x 3."""
    f = KerasLayers(tf)

    def block(x: Any, name: str, filters: int) -> Any:
        x = f.relu(f.conv(x, f"{name}a", filters, 3))
        return f.relu(f.conv(x, f"{name}b", filters, 3))

    image = tf.keras.layers.Input((256, 256, 3))
    x, skips = image, []
    for k, filters in enumerate((32, 64, 128, 256)):
        x = block(x, f"down{k}", filters)
        skips.append(x)
        x = f.max_pool(x)
    x = block(x, "bottom", 512)
    for k, filters in enumerate((256, 128, 64, 32)):
        x = f.relu(f.conv(f.upsample(x), f"widen{k}", filters, 2))
        x = block(f.concat([skips.pop(), x], -1), f"up{k}", filters)
    return tf.keras.Model(image, f.sigmoid(f.conv(x, "mask", 1, 1)))


def bert_base(tf: Any) -> Any:
    """Build the encoder of BERT-base for a sequence of 128 tokens."""
    f = KerasLayers(tf)
    words = tf.keras.layers.Input((TOKENS,), dtype="int32")
    x = f.layer_norm(f.embedding(words, "words", WORDS, WIDTH), "norm")
    for k in range(DEPTH):
        x = f.layer_norm(x + f.attention(x, f"attention{k}", HEADS), f"norm{k}a")
        y = f.dense(f.gelu(f.dense(x, f"wide{k}", 4 * WIDTH)), f"narrow{k}", WIDTH)
        x = f.layer_norm(x + y, f"norm{k}b")
    return tf.keras.Model(words, f.tanh(f.dense(x[:, 0], "pooled", WIDTH)))


MODELS: dict[str, Callable[[Any], Any]] = {
    "resnet50": resnet50,
    "mobilenet_v2_224": mobilenet_v2_224,
    "efficientnet_b0": efficientnet_b0,
    "unet_256": unet_256,
    "bert_base": bert_base,
}
"""Builders of Keras models, by the names that `inference.py` takes."""


def build(tf: Any, name: str, batch: int) -> tuple[Stored, Mapping[str, NetworkArray]]:
    """Build a published network, freeze it and compute its result in TensorFlow.

    Args:
        tf: the module tensorflow.
        name: a key of `MODELS`.
        batch: how many examples are in a call; 0 means 1.

    Returns:
        The frozen GraphDef with its input and TensorFlow's result, and the weights by their paths.
    """
    tf.keras.backend.clear_session()
    model = MODELS[name](tf)
    weigh(model.weights, name)
    shape = (batch or 1, *model.inputs[0].shape[1:])
    rng = np.random.default_rng([ord(c) for c in name])
    if model.inputs[0].dtype == "int32":
        x: NetworkArray = rng.integers(0, WORDS, shape).astype(np.int32)
    else:
        x = rng.uniform(0.0, 1.0, shape).astype(np.float32)

    def function(tensor: Any) -> Any:
        return model(tensor, training=False)

    stored = frozen(tf, Network(name, function, {"x": x}))
    return stored, {w.path: w.numpy() for w in model.weights}
