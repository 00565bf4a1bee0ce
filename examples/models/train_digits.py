"""Train a small network on scikit-learn's digits with TensorFlow and freeze it for passkit.

Needs ``pip install tensorflow-cpu==2.21.0 scikit-learn``; passkit itself needs neither.

    python examples/models/train_digits.py [FOLDER]

writes ``digits.pb``, a frozen GraphDef with a variable batch size, and ``digits.npz`` beside it:
the held-out digits ``x``, their ``labels``, and ``probabilities``, TensorFlow's results for ``x``.
``digits_train.npz`` has the digits for training, which examples/05_train_digits.py uses.
"""

import sys
from pathlib import Path

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

SEED = 7
EPOCHS = 60
BATCH = 32


def weights(name, rows, columns):
    """Return a matrix with He's initialisation and a bias of zeros."""
    scale = (2.0 / rows) ** 0.5
    kernel = tf.Variable(tf.random.normal([rows, columns], stddev=scale), name=f"{name}/kernel")
    return kernel, tf.Variable(tf.zeros([columns]), name=f"{name}/bias")


class Digits(tf.Module):
    """64 -> 128, GELU, layer norm -> 64, ReLU -> 10, softmax, each by primitives."""

    def __init__(self):
        super().__init__(name="digits")
        self.hidden = weights("hidden", 64, 128)
        self.gamma = tf.Variable(tf.ones([128]), name="norm/gamma")
        self.beta = tf.Variable(tf.zeros([128]), name="norm/beta")
        self.narrow = weights("narrow", 128, 64)
        self.classes = weights("classes", 64, 10)

    def logits(self, x):
        """Return the scores of ten classes for images of 8 x 8 grey values in 0..16."""
        with tf.name_scope("pixels"):
            x = tf.reshape(x, [-1, 64]) / 16.0
        with tf.name_scope("hidden"):
            x = tf.nn.bias_add(x @ self.hidden[0], self.hidden[1])
        with tf.name_scope("gelu"):
            x = 0.5 * x * (1.0 + tf.math.erf(x / 2.0**0.5))
        with tf.name_scope("norm"):
            mean = tf.reduce_mean(x, axis=-1, keepdims=True)
            variance = tf.reduce_mean(tf.math.squared_difference(x, mean), -1, keepdims=True)
            x = (x - mean) * tf.math.rsqrt(variance + 1e-5) * self.gamma + self.beta
        with tf.name_scope("narrow"):
            x = tf.nn.relu(x @ self.narrow[0] + self.narrow[1])
        with tf.name_scope("classes"):
            return tf.nn.bias_add(x @ self.classes[0], self.classes[1])


def shifted(images, random):
    """Shift each image by at most one pixel in both directions, with zeros at the border."""
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (8, 8), axis=(1, 2))
    down, right = random.choice(3, (2, len(images)), p=(0.15, 0.7, 0.15))
    return np.ascontiguousarray(windows[np.arange(len(images)), down, right])


def train(model, x, labels):
    """Train with AdamW and a falling learning rate, on images shifted at random."""
    variables = model.trainable_variables
    adam = tf.keras.optimizers.AdamW(
        tf.keras.optimizers.schedules.CosineDecay(3e-3, EPOCHS * (len(x) // BATCH)),
        weight_decay=1e-3,
    )
    adam.build(variables)

    @tf.function
    def step(images, classes):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(classes, model.logits(images))
            loss = tf.reduce_mean(losses)
        adam.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    random = np.random.default_rng(SEED)
    for epoch in range(EPOCHS):
        order = random.permutation(len(x))
        for begin in range(0, len(x) - BATCH + 1, BATCH):
            batch = order[begin : begin + BATCH]
            moved = shifted(x[batch], random)
            loss = step(tf.constant(moved), tf.constant(labels[batch]))
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1}: loss {float(loss):.4f}")


def freeze(model):
    """Return a GraphDef with one placeholder, ``x``, and one result, ``probabilities``."""

    @tf.function(input_signature=[tf.TensorSpec([None, 8, 8], tf.float32, name="x")])
    def probabilities(x):
        return tf.nn.softmax(model.logits(x))

    frozen = convert_variables_to_constants_v2(probabilities.get_concrete_function())
    definition = frozen.graph.as_graph_def()
    result = next(node for node in definition.node if node.name == "Identity")
    result.name = "probabilities"
    return definition


def main(folder):
    """Train, freeze, run the frozen graph in TensorFlow, and write the files.

    Raises:
        SystemExit: the accuracy is below 97 %.
    """
    tf.keras.utils.set_random_seed(SEED)
    tf.config.experimental.enable_op_determinism()
    digits = load_digits()
    images = digits.images.astype(np.float32)
    x, held_out, labels, held_labels = train_test_split(
        images,
        digits.target.astype(np.int32),
        test_size=0.25,
        random_state=SEED,
        stratify=digits.target,
    )
    model = Digits()
    train(model, x, labels)
    definition = freeze(model)
    run = tf.compat.v1.wrap_function(
        lambda x: tf.import_graph_def(definition, {"x": x}, ["probabilities:0"], name=""),
        [tf.TensorSpec([None, 8, 8], tf.float32)],
    )
    probabilities = run(tf.constant(held_out))[0].numpy()
    accuracy = float((probabilities.argmax(1) == held_labels).mean())
    print(f"accuracy on {len(held_labels)} held-out digits: {accuracy:.2%}")
    if accuracy < 0.97:
        raise SystemExit("the network must reach 97 %; nothing is written")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "digits.pb").write_bytes(definition.SerializeToString(deterministic=True))
    np.savez_compressed(
        folder / "digits_train.npz", x=x.astype(np.uint8), labels=labels.astype(np.uint8)
    )
    np.savez_compressed(
        folder / "digits.npz", x=held_out, labels=held_labels, probabilities=probabilities
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
