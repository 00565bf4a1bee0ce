"""Convolutional networks that classify images."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.frontends.tf_graphdef.reference.networks.network import Network, drawn, network


def networks(tf: Any) -> Iterator[Network]:
    """Yield all networks."""
    for make in (
        _lenet,
        _nin,
        _squeezenet,
        _inception,
        _densenet,
        _resnet_v1,
        _resnet_v2,
        _resnext,
        _mobilenet_v1,
        _mobilenet_v2,
        _mobilenet_v3,
        _efficientnet,
        _shufflenet,
        _convnext,
    ):
        yield make(tf)


def _head(tf: Any, x: Any, classes: int = 5) -> Any:
    x = tf.keras.layers.GlobalAveragePooling2D()(x)
    return tf.keras.layers.Dense(classes, activation="softmax")(x)


def _lenet(tf: Any) -> Network:
    layers = tf.keras.layers
    image = layers.Input((16, 16, 1))
    x = layers.Conv2D(6, 5, padding="same", activation="tanh")(image)
    x = layers.AveragePooling2D(2)(x)
    x = layers.Conv2D(10, 5, activation="tanh")(x)
    x = layers.MaxPooling2D()(x)
    x = layers.Dense(20, activation="tanh")(layers.Flatten()(x))
    x = layers.Dense(10, activation="softmax")(layers.Dropout(0.5)(x))
    return network(tf, "lenet", image, x, x=drawn(3, 16, 16, 1))


def _nin(tf: Any) -> Network:
    layers = tf.keras.layers
    image = layers.Input((12, 12, 3))
    x = image
    for filters, window in ((8, 5), (8, 3)):
        x = layers.Conv2D(filters, window, padding="same", activation="relu")(x)
        x = layers.Conv2D(filters, 1, activation="relu")(x)
        x = layers.Conv2D(filters, 1, activation="relu")(x)
        x = layers.MaxPooling2D(3, 2, padding="same")(x)
    x = layers.GlobalAveragePooling2D()(layers.Conv2D(5, 1)(x))
    return network(tf, "nin", image, layers.Softmax()(x), x=drawn(2, 12, 12, 3))


def _squeezenet(tf: Any) -> Network:
    layers = tf.keras.layers
    image = layers.Input((16, 16, 3))
    x = layers.Conv2D(8, 3, strides=2, activation="relu")(image)
    x = layers.MaxPooling2D(3, 2)(x)
    for squeeze, expand in ((4, 8), (6, 8)):
        s = layers.Conv2D(squeeze, 1, activation="relu")(x)
        a = layers.Conv2D(expand, 1, activation="relu")(s)
        b = layers.Conv2D(expand, 3, padding="same", activation="relu")(s)
        x = layers.Concatenate()([a, b])
    x = layers.GlobalAveragePooling2D()(layers.Conv2D(5, 1)(x))
    return network(tf, "squeezenet", image, layers.Softmax()(x), x=drawn(2, 16, 16, 3))


def _inception(tf: Any) -> Network:
    layers = tf.keras.layers
    image = layers.Input((10, 10, 4))

    def conv(x: Any, filters: int, window: Any) -> Any:
        x = layers.Conv2D(filters, window, padding="same", use_bias=False)(x)
        return layers.Activation("relu")(layers.BatchNormalization(scale=False)(x))

    x = image
    for _ in range(2):
        branches = [
            conv(x, 4, 1),
            conv(conv(x, 3, 1), 4, 3),
            conv(conv(conv(x, 3, 1), 4, (1, 5)), 4, (5, 1)),
            conv(layers.AveragePooling2D(3, 1, padding="same")(x), 4, 1),
        ]
        x = layers.MaxPooling2D(2)(layers.Concatenate()(branches))
    return network(tf, "inception", image, _head(tf, x), x=drawn(2, 10, 10, 4))


def _densenet(tf: Any) -> Network:
    layers = tf.keras.layers
    image = layers.Input((12, 12, 3))

    def activated(x: Any) -> Any:
        return layers.ReLU()(layers.BatchNormalization(epsilon=1.001e-5)(x))

    x = layers.Conv2D(8, 7, strides=2, use_bias=False)(layers.ZeroPadding2D(3)(image))
    x = layers.MaxPooling2D(3, strides=2)(layers.ZeroPadding2D(1)(activated(x)))
    for _ in range(2):
        for _ in range(3):
            y = layers.Conv2D(8, 1, use_bias=False)(activated(x))
            y = layers.Conv2D(4, 3, padding="same", use_bias=False)(activated(y))
            x = layers.Concatenate()([x, y])
        x = layers.Conv2D(8, 1, use_bias=False)(activated(x))
        x = layers.AveragePooling2D(2, padding="same")(x)
    return network(tf, "densenet", image, _head(tf, activated(x)), x=drawn(2, 12, 12, 3))


def _resnet_v1(tf: Any) -> Network:
    layers = tf.keras.layers
    image = layers.Input((12, 12, 3))

    def conv(x: Any, filters: int, window: int, stride: int = 1, act: bool = True) -> Any:
        x = layers.Conv2D(filters, window, stride, padding="same")(x)
        x = layers.BatchNormalization()(x)
        return layers.ReLU()(x) if act else x

    x = conv(image, 8, 3)
    for filters, stride in ((8, 1), (12, 2)):
        y = conv(conv(conv(x, 6, 1, stride), 6, 3), filters, 1, act=False)
        short = x if stride == 1 else conv(x, filters, 1, stride, act=False)
        x = layers.ReLU()(layers.Add()([short, y]))
    return network(tf, "resnet_v1", image, _head(tf, x), x=drawn(2, 12, 12, 3))


def _resnet_v2(tf: Any) -> Network:
    layers = tf.keras.layers
    image = layers.Input((12, 12, 3))

    def before(x: Any) -> Any:
        return layers.ReLU()(layers.BatchNormalization()(x))

    x = layers.Conv2D(8, 3, padding="same")(image)
    for filters, stride in ((8, 1), (12, 2), (12, 1)):
        y = before(x)
        short = x if stride == 1 else layers.Conv2D(filters, 1, stride)(y)
        y = layers.Conv2D(filters, 3, stride, padding="same")(y)
        y = layers.Conv2D(filters, 3, padding="same")(before(y))
        x = layers.Add()([short, y])
    return network(tf, "resnet_v2", image, _head(tf, before(x)), x=drawn(2, 12, 12, 3))


def _resnext(tf: Any) -> Network:
    layers = tf.keras.layers
    image = layers.Input((8, 8, 8))
    x = image
    for _ in range(2):
        y = layers.Conv2D(8, 1, activation="relu")(x)
        y = layers.Conv2D(8, 3, padding="same", groups=4, activation="relu")(y)
        x = layers.Add()([x, layers.Conv2D(8, 1)(y)])
    return network(tf, "resnext", image, _head(tf, x), x=drawn(2, 8, 8, 8))


def _mobilenet_v1(tf: Any) -> Network:
    layers = tf.keras.layers
    image = layers.Input((16, 16, 3))

    def activated(x: Any) -> Any:
        return layers.ReLU(6.0)(layers.BatchNormalization()(x))

    x = layers.ZeroPadding2D(((0, 1), (0, 1)))(image)
    x = activated(layers.Conv2D(6, 3, strides=2, use_bias=False)(x))
    for filters, stride in ((8, 1), (12, 2), (12, 1)):
        if stride == 2:
            x = layers.ZeroPadding2D(((0, 1), (0, 1)))(x)
        padding = "same" if stride == 1 else "valid"
        x = activated(layers.DepthwiseConv2D(3, stride, padding, use_bias=False)(x))
        x = activated(layers.Conv2D(filters, 1, use_bias=False)(x))
    return network(tf, "mobilenet_v1", image, _head(tf, x), x=drawn(2, 16, 16, 3))


def _mobilenet_v2(tf: Any) -> Network:
    layers = tf.keras.layers
    image = layers.Input((12, 12, 3))
    x = layers.Conv2D(6, 3, strides=2, padding="same", use_bias=False)(image)
    for filters, stride in ((6, 1), (8, 2), (8, 1)):
        y = layers.Conv2D(3 * x.shape[-1], 1, use_bias=False)(x)
        y = layers.ReLU(6.0)(layers.BatchNormalization()(y))
        y = layers.DepthwiseConv2D(3, stride, "same", use_bias=False)(y)
        y = layers.ReLU(6.0)(layers.BatchNormalization()(y))
        y = layers.BatchNormalization()(layers.Conv2D(filters, 1, use_bias=False)(y))
        x = layers.Add()([x, y]) if stride == 1 and filters == x.shape[-1] else y
    return network(tf, "mobilenet_v2", image, _head(tf, x), x=drawn(2, 12, 12, 3))


def _squeezed(tf: Any, x: Any, gate: str) -> Any:
    """Apply squeeze and excite: scale channels by a function of all pixels."""
    layers = tf.keras.layers
    s = layers.GlobalAveragePooling2D(keepdims=True)(x)
    s = layers.Conv2D(4, 1, activation="relu")(s)
    return layers.Multiply()([x, layers.Conv2D(x.shape[-1], 1, activation=gate)(s)])


def _mobilenet_v3(tf: Any) -> Network:
    layers = tf.keras.layers
    image = layers.Input((12, 12, 3))
    x = layers.Conv2D(8, 3, 2, padding="same", activation="hard_swish")(image)
    for filters, window, stride in ((8, 3, 1), (10, 5, 2)):
        y = layers.Conv2D(12, 1, use_bias=False)(x)
        y = layers.Activation("hard_swish")(layers.BatchNormalization()(y))
        y = layers.DepthwiseConv2D(window, stride, "same", use_bias=False)(y)
        y = layers.Activation("hard_swish")(layers.BatchNormalization()(y))
        y = _squeezed(tf, y, "hard_sigmoid")
        y = layers.BatchNormalization()(layers.Conv2D(filters, 1, use_bias=False)(y))
        x = layers.Add()([x, y]) if stride == 1 else y
    return network(tf, "mobilenet_v3", image, _head(tf, x), x=drawn(2, 12, 12, 3))


def _efficientnet(tf: Any) -> Network:
    layers = tf.keras.layers
    image = layers.Input((11, 11, 3))
    x = layers.Normalization(mean=[0.4, 0.5, 0.6], variance=[0.2, 0.3, 0.25])(
        layers.Rescaling(1 / 2)(image)
    )
    x = layers.Conv2D(8, 3, 2, padding="same", activation="swish")(x)
    for _ in range(2):
        y = layers.Conv2D(16, 1, activation="swish")(x)
        y = layers.DepthwiseConv2D(5, 1, "same")(y)
        y = layers.Activation("swish")(layers.BatchNormalization()(y))
        y = layers.Conv2D(8, 1)(_squeezed(tf, y, "sigmoid"))
        x = layers.Add()([x, layers.BatchNormalization()(y)])
    return network(tf, "efficientnet", image, _head(tf, x), x=drawn(2, 11, 11, 3))


def _shufflenet(tf: Any) -> Network:
    layers = tf.keras.layers
    image = layers.Input((8, 8, 8))

    def shuffled(x: Any, groups: int) -> Any:
        _, height, width, channels = x.shape
        x = layers.Reshape((height, width, groups, channels // groups))(x)
        return layers.Reshape((height, width, channels))(layers.Permute((1, 2, 4, 3))(x))

    x = image
    for _ in range(2):
        y = layers.Conv2D(8, 1, groups=2, activation="relu")(x)
        y = layers.DepthwiseConv2D(3, padding="same")(shuffled(y, 2))
        x = layers.ReLU()(layers.Add()([x, layers.Conv2D(8, 1, groups=2)(y)]))
    y = layers.Conv2D(8, 1, activation="relu")(x)
    y = layers.DepthwiseConv2D(3, 2, "same")(y)
    x = layers.Concatenate()([layers.AveragePooling2D(3, 2, "same")(x), y])
    return network(tf, "shufflenet", image, _head(tf, x), x=drawn(2, 8, 8, 8))


def _convnext(tf: Any) -> Network:
    layers = tf.keras.layers
    image = layers.Input((16, 16, 3))
    x = layers.LayerNormalization(epsilon=1e-6)(layers.Conv2D(8, 4, 4)(image))
    for _ in range(2):
        y = layers.Conv2D(8, 7, padding="same", groups=8)(x)
        y = layers.LayerNormalization(epsilon=1e-6)(y)
        y = layers.Dense(8)(layers.Activation("gelu")(layers.Dense(32)(y)))
        x = layers.Add()([x, y])
    return network(tf, "convnext", image, _head(tf, x), x=drawn(2, 16, 16, 3))
