"""Train with the API of TensorFlow 1: a network learns digits, its state is updated in place."""

import time
from pathlib import Path

import numpy as np

from passkit.frontends import tinyflow as tf

MODELS = Path(__file__).parent / "models"
EPOCHS, BATCH = 40, 64


def digits(name):
    """Load images of 8 x 8 grey values from 0 to 1, as rows of 64, and their classes."""
    arrays = np.load(MODELS / name)
    return arrays["x"].reshape(-1, 64).astype(np.float32) / 16, arrays["labels"].astype(np.int32)


tf.set_random_seed(1)
x = tf.placeholder(tf.float32, [None, 64], name="images")
y = tf.placeholder(tf.int32, [None], name="classes")
hidden = tf.layers.dense(x, 128, tf.nn.relu)
logits = tf.layers.dense(hidden, 10)
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
is_correct = tf.equal(tf.argmax(logits, 1, output_type=tf.int32), y)
accuracy = tf.reduce_mean(tf.cast(is_correct, tf.float32))
train = tf.train.AdamOptimizer(0.003).minimize(loss)

images, classes = digits("digits_train.npz")
test = dict(zip((x, y), digits("digits.npz"), strict=True))
rng = np.random.default_rng(0)
begin = time.perf_counter()

with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    addresses = [session.address(v) for v in tf.global_variables()]
    for epoch in range(1, EPOCHS + 1):
        order = rng.permutation(len(images))
        for at in range(0, len(order), BATCH):
            rows = order[at : at + BATCH]
            feeds = {x: images[rows], y: classes[rows]}
            _, value = session.run([train, loss], feeds)
        if epoch % 10 == 0:
            print(f"epoch {epoch}: loss {value:.4f}")
    seconds = time.perf_counter() - begin

    step = session.executable([train, loss], feeds)
    print(f"a step: 1 native call, {len(step.kernels)} kernels, {step.stats['launches']} launches")
    assert addresses == [session.address(v) for v in tf.global_variables()]
    share = session.run(accuracy, test)
    print(f"{share:.1%} of {len(test[y])} test digits, after {seconds:.0f} seconds")
    assert share >= 0.97
