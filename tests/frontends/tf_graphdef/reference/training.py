"""Training graphs as TensorFlow 1 wrote them, with the results of three steps.

`PYTHON -m tests.frontends.tf_graphdef.reference.training`, with a Python that has TensorFlow,
writes `fixtures/training/models.npz` and a checkpoint. Tests read these without TensorFlow.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

FILE = Path(__file__).parents[1] / "fixtures/training/models.npz"
CHECKPOINT = FILE.with_name("perceptron.ckpt")
"""Checkpoint of TensorFlow's Saver after `STEPS` steps of the model of that name."""
STEPS = 3


@frozen
class Trained:
    """A training graph, its feeds, and TensorFlow's losses and variables."""

    model: bytes
    feeds: dict[str, Any]
    before: dict[str, Any]
    losses: Any
    after: dict[str, Any]


def stored() -> dict[str, Trained]:
    """Return the fixtures by name."""
    with np.load(FILE) as file:
        data = {key: file[key] for key in file.files}
    names = dict.fromkeys(key.split("|")[0] for key in data)

    def part(name: str, kind: str) -> dict[str, Any]:
        prefix = f"{name}|{kind}|"
        return {k.removeprefix(prefix): v for k, v in data.items() if k.startswith(prefix)}

    return {
        name: Trained(
            data[f"{name}|model"].tobytes(),
            part(name, "feed"),
            part(name, "before"),
            data[f"{name}|losses"],
            part(name, "after"),
        )
        for name in names
    }


def lenet(tf: Any, rng: Any) -> dict[str, Any]:
    """Build two convolutions with pools, two dense layers, and Adam."""
    v1 = tf.compat.v1
    x, y = v1.placeholder("float32", (None, 12, 12, 1), "x"), v1.placeholder("int64", (None,), "y")

    def weights(name: str, *sizes: int) -> Any:
        start = v1.truncated_normal_initializer(stddev=0.2, seed=3)
        return v1.get_variable(name, sizes, initializer=start)

    h = tf.nn.bias_add(tf.nn.conv2d(x, weights("w1", 5, 5, 1, 4), 1, "SAME"), weights("b1", 4))
    h = tf.nn.max_pool2d(tf.nn.relu(h), 2, 2, "SAME")
    h = tf.nn.bias_add(tf.nn.conv2d(h, weights("w2", 3, 3, 4, 6), 1, "VALID"), weights("b2", 6))
    h = tf.reshape(tf.nn.max_pool2d(tf.nn.relu(h), 2, 2, "SAME"), (-1, 24))
    h = tf.nn.relu(h @ weights("w3", 24, 12) + weights("b3", 12))
    logits = h @ weights("w4", 12, 10) + weights("b4", 10)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
    loss = tf.reduce_mean(losses, name="loss")
    v1.train.AdamOptimizer(1e-2).minimize(loss, name="train")
    tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), y), "float32"), name="accuracy")
    return {"x": rng.standard_normal((8, 12, 12, 1), "f"), "y": rng.integers(0, 10, 8)}


def perceptron(tf: Any, rng: Any) -> dict[str, Any]:
    """Build two layers with a running mean, a decaying rate, and Nesterov momentum."""
    v1 = tf.compat.v1
    x, y = v1.placeholder("float32", (None, 8), "x"), v1.placeholder("float32", (None, 3), "y")

    def weights(name: str, *sizes: int) -> Any:
        return v1.get_variable(name, sizes, initializer=v1.random_normal_initializer(0, 0.3, 5))

    mean = v1.get_variable("mean", (8,), initializer=v1.zeros_initializer(), trainable=False)
    moved = v1.assign_sub(mean, 0.1 * (mean - tf.reduce_mean(x, 0)), name="moved")
    h = tf.tanh((x - moved) @ weights("w1", 8, 12) + weights("b1", 12))
    logits = h @ weights("w2", 12, 3) + weights("b2", 3)
    losses = tf.nn.softmax_cross_entropy_with_logits(labels=y, logits=logits)
    loss = tf.reduce_mean(losses, name="loss")
    count = v1.train.get_or_create_global_step()
    rate = v1.train.exponential_decay(0.1, count, 2, 0.5, staircase=True)
    step = v1.train.MomentumOptimizer(rate, 0.9, use_nesterov=True)
    with tf.control_dependencies([step.minimize(loss, global_step=count, name="train")]):
        tf.identity(count.read_value() * 10, name="later")
    tf.identity(count.read_value() * 10, name="sooner")
    return {"x": rng.standard_normal((8, 8), "f"), "y": np.eye(3, dtype="f")[rng.integers(0, 3, 8)]}


def logistic(tf: Any, rng: Any) -> dict[str, Any]:
    """Build logistic regression with gradient descent."""
    v1 = tf.compat.v1
    x, y = v1.placeholder("float32", (None, 6), "x"), v1.placeholder("float32", (None,), "y")
    w = v1.get_variable("w", (6, 1), initializer=v1.zeros_initializer())
    b = v1.get_variable("b", (), initializer=v1.zeros_initializer())
    z = tf.reshape(x @ w, (-1,)) + b
    losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=z)
    v1.train.GradientDescentOptimizer(0.5).minimize(
        tf.reduce_mean(losses, name="loss"), name="train"
    )
    return {"x": rng.standard_normal((16, 6), "f"), "y": rng.integers(0, 2, 16).astype("f")}


def rules(tf: Any, rng: Any) -> dict[str, Any]:
    """Build a variable for each optimizer, and a table whose looked up rows are trained."""
    v1 = tf.compat.v1
    x = v1.placeholder("float32", (4,), "x")
    rows = v1.placeholder("int64", (3,), "rows")
    train = v1.train
    optimizers = {
        "descent": train.GradientDescentOptimizer(0.3),
        "momentum": train.MomentumOptimizer(0.3, 0.8),
        "adagrad": train.AdagradOptimizer(0.3),
        "rms": train.RMSPropOptimizer(0.1, momentum=0.5),
        "centered": train.RMSPropOptimizer(0.1, centered=True),
        "adam": train.AdamOptimizer(0.1, name="One"),
        "adadelta": train.AdadeltaOptimizer(1.0, epsilon=0.1),
        "ftrl": train.FtrlOptimizer(
            0.3, l1_regularization_strength=0.05, l2_regularization_strength=0.02
        ),
        "shrunk": train.FtrlOptimizer(0.3, name="Two", l2_shrinkage_regularization_strength=0.1),
    }
    result, parts, start = [], [], v1.random_normal_initializer(0, 1, 7)
    for name, optimizer in optimizers.items():
        w = v1.get_variable(name, (4,), initializer=start)
        part = tf.reduce_sum(tf.square(tf.sin(w) * x - 0.5))
        parts.append(part)
        result.append(optimizer.minimize(part, var_list=[w]))
    if v1.resource_variables_enabled():
        result += _raw(tf, v1, x, parts, start)
    table = v1.get_variable("table", (5, 2), initializer=start)
    part = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(table, rows)))
    parts.append(part)
    result.append(train.GradientDescentOptimizer(0.1).minimize(part, var_list=[table]))
    tf.add_n(parts, name="loss")
    tf.group(*result, name="train")
    return {"x": rng.standard_normal(4, "f"), "rows": np.array([1, 3, 1])}


def _raw(tf: Any, v1: Any, x: Any, parts: list[Any], start: Any) -> list[Any]:
    """Build updates that no TensorFlow 1 optimizer creates, such as Nesterov's Adam."""
    zeros = v1.zeros_initializer()

    def new(name: str, count: int) -> tuple[Any, list[Any], Any]:
        w = v1.get_variable(name, (4,), initializer=start)
        slots = [v1.get_variable(f"{name}_{k}", (4,), initializer=zeros) for k in range(count)]
        part = tf.reduce_sum(tf.square(tf.sin(w) * x - 0.5))
        parts.append(part)
        return w.handle, [s.handle for s in slots], tf.gradients([part], [w])[0]

    raw, result = tf.raw_ops, []
    w, (a,), g = new("keras", 1)
    result.append(
        raw.ResourceApplyKerasMomentum(
            var=w, accum=a, lr=0.1, grad=g, momentum=0.9, use_nesterov=True
        )
    )
    w, (a,), g = new("adagrad2", 1)
    result.append(raw.ResourceApplyAdagradV2(var=w, accum=a, lr=0.1, epsilon=1e-3, grad=g))
    w, (m, v), g = new("adamax", 2)
    result.append(
        raw.ResourceApplyAdaMax(
            var=w, m=m, v=v, beta1_power=0.9, lr=0.1, beta1=0.9, beta2=0.99, epsilon=1e-7, grad=g
        )
    )
    w, (m, v), g = new("nadam", 2)
    result.append(
        raw.ResourceApplyAdam(
            var=w,
            m=m,
            v=v,
            beta1_power=0.9,
            beta2_power=0.99,
            lr=0.1,
            beta1=0.9,
            beta2=0.99,
            epsilon=1e-7,
            grad=g,
            use_nesterov=True,
        )
    )
    return result


def embeddings(tf: Any, rng: Any) -> dict[str, Any]:
    """Build a table for each optimizer, with repeated indices."""
    v1 = tf.compat.v1
    rows, again = v1.placeholder("int64", (None,), "rows"), v1.placeholder("int32", (2, 2), "again")
    train, start = v1.train, v1.random_normal_initializer(0, 1, 7)
    optimizers = {
        "momentum": train.MomentumOptimizer(0.3, 0.8),
        "nesterov": train.MomentumOptimizer(0.3, 0.8, use_nesterov=True),
        "adagrad": train.AdagradOptimizer(0.3),
        "rms": train.RMSPropOptimizer(0.1, momentum=0.5),
        "centered": train.RMSPropOptimizer(0.1, centered=True),
        "adam": train.AdamOptimizer(0.1),
        "adadelta": train.AdadeltaOptimizer(1.0, epsilon=0.1),
        "ftrl": train.FtrlOptimizer(
            0.3, l1_regularization_strength=0.05, l2_regularization_strength=0.02
        ),
        "shrunk": train.FtrlOptimizer(0.3, name="Two", l2_shrinkage_regularization_strength=0.1),
    }
    result, parts = [], []
    for k, (name, optimizer) in enumerate(optimizers.items()):
        table = v1.get_variable(name, ((6, 2), (6,), (6, 1, 2))[k % 3], initializer=start)
        part = tf.reduce_sum(tf.square(tf.sin(tf.nn.embedding_lookup(table, rows)) - 0.5))
        part += tf.reduce_sum(tf.square(tf.gather(table, again)))
        parts.append(part)
        result.append(optimizer.minimize(part, var_list=[table]))
    if v1.resource_variables_enabled():
        result += _raw_rows(tf, v1, rows, parts, start)
    tf.add_n(parts, name="loss")
    tf.group(*result, name="train")
    return {"rows": np.array([1, 3, 1, 0, 3, 3]), "again": np.array([[3, 4], [4, 0]], "int32")}


def _raw_rows(tf: Any, v1: Any, rows: Any, parts: list[Any], start: Any) -> list[Any]:
    """Build row updates that no TensorFlow 1 optimizer creates, and Adam for the looked up rows."""
    raw, result, zeros = tf.raw_ops, [], v1.zeros_initializer()

    def new(name: str, *slots: str) -> tuple[Any, list[Any], Any, Any]:
        w = v1.get_variable(name, (6, 2), initializer=start)
        results = [v1.get_variable(f"{name}_{k}", (6, 2), initializer=zeros) for k in slots]
        ids, places = tf.unique(rows)
        part = tf.reduce_sum(tf.square(tf.gather(tf.gather(w, ids), places) - 0.5))
        parts.append(part)
        each = tf.square(tf.nn.embedding_lookup(w, rows))
        g = tf.gradients([each], [w])[0]
        g = tf.math.unsorted_segment_sum(g.values, places, tf.size(ids))
        return w, results, g, ids

    w, (a,), g, ids = new("keras", "a")
    result.append(
        raw.ResourceSparseApplyKerasMomentum(
            var=w.handle,
            accum=a.handle,
            lr=0.1,
            grad=g,
            indices=ids,
            momentum=0.9,
            use_nesterov=True,
        )
    )
    w, (a,), g, ids = new("adagrad2", "a")
    result.append(
        raw.ResourceSparseApplyAdagradV2(
            var=w.handle, accum=a.handle, lr=0.1, epsilon=1e-3, grad=g, indices=ids
        )
    )
    w, (m, v), g, ids = new("lazy", "m", "v")
    first = 0.9 * tf.gather(m, ids) + 0.1 * g
    second = 0.99 * tf.gather(v, ids) + 0.01 * tf.square(g)
    result.append(v1.scatter_update(m, ids, first))
    result.append(v1.scatter_update(v, ids, second))
    result.append(v1.scatter_sub(w, ids, 0.1 * first / (tf.sqrt(second) + 1e-7)))
    return result


Maker = Callable[[Any, Any], dict[str, Any]]
MODELS: dict[str, tuple[Maker, bool]] = {
    "lenet": (lenet, True),
    "lenet_ref": (lenet, False),
    "perceptron": (perceptron, False),
    "logistic": (logistic, True),
    "rules": (rules, True),
    "rules_ref": (rules, False),
    "embeddings": (embeddings, True),
    "embeddings_ref": (embeddings, False),
}
"""Each with whether its variables are resources."""


def trained(tf: Any, name: str) -> dict[str, Any]:
    """Train one model in TensorFlow and return it as stored."""
    v1 = tf.compat.v1
    make, resources = MODELS[name]
    (v1.enable_resource_variables if resources else v1.disable_resource_variables)()
    results: dict[str, Any] = {}
    with tf.Graph().as_default() as graph:
        feeds = make(tf, np.random.default_rng(4))
        v1.global_variables_initializer()
        results["model"] = np.frombuffer(graph.as_graph_def().SerializeToString(), "u1")
        inputs = {f"{k}:0": v for k, v in feeds.items()}
        variables = {v.op.name: v for v in v1.global_variables()}
        with v1.Session() as session:
            session.run("init")
            before = session.run(variables)
            results["losses"] = [session.run(["loss:0", "train"], inputs)[0] for _ in range(STEPS)]
            after = session.run(variables)
            if name == CHECKPOINT.stem:
                v1.train.Saver().save(
                    session, str(CHECKPOINT), write_meta_graph=False, write_state=False
                )
    for kind, values in (("feed", feeds), ("before", before), ("after", after)):
        results.update({f"{kind}|{k}": v for k, v in values.items()})
    return {f"{name}|{k}": v for k, v in results.items()}


def main() -> None:
    """Write the fixtures."""
    os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    import tensorflow as tf

    tf.compat.v1.disable_eager_execution()
    data: dict[str, Any] = {}
    for name in MODELS:
        data |= trained(tf, name)
    np.savez_compressed(FILE, **data)
    print(f"{FILE}: {len(MODELS)} models, {FILE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
