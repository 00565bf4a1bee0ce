"""Train a network written like NumPy: gradients are queued, and each step runs as one plan."""

import time
from pathlib import Path

import numpy as np

import passkit as pk
from passkit import xp

data = np.load(Path(__file__).with_name("models") / "digits_train.npz")
pixels = xp.asarray(data["x"].reshape(-1, 64) / np.float32(16))
digits = xp.asarray(np.eye(10, dtype=np.float32)[data["labels"]])


def logits(params, x):
    """A network of two layers."""
    hidden = xp.tanh(x @ params["w1"] + params["b1"])
    return hidden @ params["w2"] + params["b2"]


def loss(params, x, y):
    """The cross entropy, and how many digits are recognized."""
    z = logits(params, x)
    hits = xp.mean(xp.astype(xp.argmax(z, axis=1) == xp.argmax(y, axis=1), xp.float32))
    return -xp.mean(xp.sum(y * xp.special.log_softmax(z, axis=1), axis=1)), hits


rng = np.random.default_rng(0)
params = {
    "w1": xp.asarray(rng.normal(0, 0.1, (64, 32)).astype(np.float32)),
    "b1": xp.zeros(32, dtype=xp.float32),
    "w2": xp.asarray(rng.normal(0, 0.1, (32, 10)).astype(np.float32)),
    "b2": xp.zeros(10, dtype=xp.float32),
}
velocity = pk.tree_map(xp.zeros_like, params)
gradient_of_loss = pk.value_and_grad(loss, has_aux=True)

for step in range(301):
    rate = 0.2 / (1 + step / 200)  # a run-time input of the plan, like all numbers
    (error, hits), gradient = gradient_of_loss(params, pixels, digits)
    velocity = pk.tree_map(lambda v, g: 0.9 * v + g, velocity, gradient)
    params = pk.tree_map(lambda p, v, rate=rate: p - rate * v, params, velocity)
    if step == 10:
        begin, before = time.perf_counter(), xp.stats()["explorations"]
    if step % 100 == 0:
        print(f"step {step}: loss {float(error):.3f}, {float(hits):.1%} of the digits")

milliseconds = (time.perf_counter() - begin) / 290 * 1e3
print(f"{milliseconds:.2f} ms a step, {xp.stats()['explorations'] - before} plans after step 10")
assert float(hits) > 0.97
