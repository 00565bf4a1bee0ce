"""Networks that generate images from images or codes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.frontends.tf_graphdef.reference.networks.network import Network, drawn, network


def networks(tf: Any) -> Iterator[Network]:
    """Yield all networks."""
    for make in (
        _unet,
        _fcn,
        _autoencoder,
        _vae,
        _keypoints,
        _pyramid,
        _super_resolution,
        _style,
        _generator,
        _discriminator,
        _volumes,
    ):
        yield make(tf)


def _unet(tf: Any) -> Network:
    layers = tf.keras.layers
    image = layers.Input((16, 16, 2))
    x, kept = image, []
    for filters in (4, 8):
        x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
        kept.append(x)
        x = layers.MaxPooling2D()(x)
    x = layers.Conv2D(12, 3, padding="same", activation="relu")(x)
    for filters in (8, 4):
        x = layers.UpSampling2D()(x)
        x = layers.Concatenate()([kept.pop(), layers.Conv2D(filters, 2, padding="same")(x)])
        x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
    x = layers.Conv2D(1, 1, activation="sigmoid")(x)
    return network(tf, "unet", image, x, x=drawn(2, 16, 16, 2))


def _fcn(tf: Any) -> Network:
    """Return a fully convolutional network for images of any size."""
    layers = tf.keras.layers
    image = layers.Input((None, None, 3))
    x = layers.Conv2D(6, 3, strides=2, padding="same", activation="relu")(image)
    x = layers.MaxPooling2D(3, 2, padding="same")(x)
    x = layers.Conv2D(8, 3, padding="same", dilation_rate=2, activation="relu")(x)
    x = layers.Conv2DTranspose(4, 4, strides=2, padding="same", activation="relu")(x)
    x = layers.Conv2DTranspose(3, 3, strides=2, padding="same")(x)
    return network(tf, "fcn", image, layers.Softmax()(x), x=drawn(2, 12, 8, 3))


def _autoencoder(tf: Any) -> Network:
    layers = tf.keras.layers
    image = layers.Input((8, 8, 1))
    x = layers.Conv2D(4, 3, 2, padding="same", activation="relu")(image)
    x = layers.Conv2D(6, 3, 2, padding="same", activation="relu")(x)
    x = layers.Dense(10, activation="relu")(layers.Flatten()(x))
    x = layers.Reshape((2, 2, 6))(layers.Dense(24, activation="relu")(x))
    x = layers.Conv2DTranspose(4, 3, 2, padding="same", activation="relu")(x)
    x = layers.Conv2DTranspose(1, 4, 2, padding="same", activation="sigmoid")(x)
    return network(tf, "autoencoder", image, x, x=drawn(3, 8, 8, 1))


def _vae(tf: Any) -> Network:
    layers = tf.keras.layers
    image, noise = layers.Input((24,)), layers.Input((4,))
    x = layers.Dense(16, activation="relu")(image)
    mean, log_variance = layers.Dense(4)(x), layers.Dense(4)(x)
    z = mean + tf.keras.ops.exp(0.5 * log_variance) * noise
    x = layers.Dense(24, activation="sigmoid")(layers.Dense(16, activation="relu")(z))
    ops = tf.keras.ops
    loss = -0.5 * ops.sum(1 + log_variance - ops.square(mean) - ops.exp(log_variance), axis=-1)
    return network(tf, "vae", [image, noise], [x, loss], x=drawn(3, 24), noise=drawn(3, 4))


def _keypoints(tf: Any) -> Network:
    layers = tf.keras.layers
    image = layers.Input((12, 12, 3))
    x = layers.Conv2D(6, 3, 2, padding="same", activation="relu")(image)
    y = layers.Conv2D(6, 3, 2, padding="same", activation="relu")(x)
    y = layers.UpSampling2D(2, interpolation="bilinear")(y)
    heat = layers.Conv2D(4, 1)(layers.Add()([x, y]))
    flat = layers.Softmax(axis=1)(layers.Reshape((36, 4))(heat))
    peak = tf.keras.ops.argmax(flat, axis=1)
    return network(tf, "keypoints", image, [heat, flat, peak], x=drawn(2, 12, 12, 3))


def _pyramid(tf: Any) -> Network:
    """Return a feature pyramid, with boxes and scores at each scale."""
    layers = tf.keras.layers
    image = layers.Input((16, 16, 3))
    x, levels = image, []
    for filters in (6, 8, 8):
        x = layers.Conv2D(filters, 3, 2, padding="same", activation="relu")(x)
        levels.append(layers.Conv2D(6, 1)(x))
    top, outputs = levels[-1], []
    boxes = layers.Conv2D(2 * 5, 3, padding="same")
    for level in reversed(levels):
        if level is not top:
            top = layers.Add()([level, layers.UpSampling2D()(top)])
        outputs.append(layers.Reshape((-1, 5))(boxes(top)))
    results = layers.Concatenate(axis=1)(outputs)
    return network(tf, "pyramid", image, results, x=drawn(2, 16, 16, 3))


def _super_resolution(tf: Any) -> Network:
    layers = tf.keras.layers
    image = layers.Input((7, 6, 1))
    x = layers.Conv2D(8, 5, padding="same", activation="relu")(image)
    x = layers.Conv2D(9, 3, padding="same")(x)
    x = layers.Lambda(lambda t: tf.nn.depth_to_space(t, 3))(x)
    large = layers.Lambda(lambda t: tf.image.resize(t, (21, 18), "bicubic"))(image)
    return network(tf, "super_resolution", image, layers.Add()([x, large]), x=drawn(2, 7, 6, 1))


def _style(tf: Any) -> Network:
    """Return a style network with instance norms and reflection padding."""
    layers = tf.keras.layers
    image = layers.Input((10, 10, 3))

    def conv(x: Any, filters: int, window: int, stride: int) -> Any:
        edge = window // 2
        pads = [[0, 0], [edge, edge], [edge, edge], [0, 0]]
        x = layers.Lambda(lambda t: tf.pad(t, pads, "REFLECT"))(x)
        x = layers.Conv2D(filters, window, stride)(x)
        return layers.GroupNormalization(-1)(x)

    x = layers.ReLU()(conv(image, 4, 5, 1))
    x = layers.ReLU()(conv(x, 6, 3, 2))
    x = layers.Add()([x, conv(layers.ReLU()(conv(x, 6, 3, 1)), 6, 3, 1)])
    x = layers.ReLU()(conv(layers.UpSampling2D()(x), 4, 3, 1))
    x = layers.Activation("tanh")(conv(x, 3, 5, 1))
    return network(tf, "style", image, x, x=drawn(2, 10, 10, 3))


def _generator(tf: Any) -> Network:
    layers = tf.keras.layers
    code = layers.Input((6,))
    x = layers.Reshape((3, 3, 6))(layers.Dense(54, use_bias=False)(code))
    for filters, stride in ((6, 1), (4, 2)):
        x = layers.LeakyReLU()(layers.BatchNormalization()(x))
        x = layers.Conv2DTranspose(filters, 5, stride, padding="same", use_bias=False)(x)
    x = layers.LeakyReLU()(layers.BatchNormalization()(x))
    x = layers.Conv2DTranspose(1, 5, 2, padding="same", activation="tanh")(x)
    return network(tf, "generator", code, x, x=drawn(3, 6))


def _discriminator(tf: Any) -> Network:
    layers = tf.keras.layers
    image = layers.Input((12, 12, 1))
    x = layers.LeakyReLU(0.2)(layers.Conv2D(6, 5, 2, padding="same")(image))
    x = layers.Dropout(0.3)(x)
    x = layers.LeakyReLU(0.2)(layers.Conv2D(8, 5, 2, padding="same")(x))
    return network(
        tf, "discriminator", image, layers.Dense(1)(layers.Flatten()(x)), x=drawn(3, 12, 12, 1)
    )


def _volumes(tf: Any) -> Network:
    layers = tf.keras.layers
    scan = layers.Input((6, 8, 8, 1))
    x = layers.Conv3D(4, 3, padding="same", activation="relu")(scan)
    x = layers.MaxPooling3D()(x)
    x = layers.Conv3D(6, (1, 3, 3), activation="relu")(x)
    x = layers.Dense(3)(layers.GlobalAveragePooling3D()(layers.BatchNormalization()(x)))
    return network(tf, "volumes", scan, x, x=drawn(2, 6, 8, 8, 1))
