"""Write SavedModels and TensorFlow's results for them.

Needs TensorFlow: ``python -m tests.frontends.tf_graphdef.saved.make``.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent


def keep(path: Path, case: str, feeds: dict[str, Any], results: dict[str, Any]) -> None:
    """Store a case beside the model, and of the model only the files that are read."""
    arrays = {f"in.{k}": np.asarray(v) for k, v in feeds.items()}
    arrays |= {f"out.{k}": np.asarray(v) for k, v in results.items()}
    np.savez_compressed(path / f"{case}.npz", **arrays)
    for extra in ("assets", "fingerprint.pb", "keras_metadata.pb"):
        if (path / extra).is_dir():
            shutil.rmtree(path / extra)
        (path / extra).unlink(missing_ok=True)


def functions(tf: Any) -> None:
    """Write a module of functions, one signature each: variables, branches, loops and lists."""
    rng = np.random.default_rng(0)
    any_rows, rows = tf.TensorSpec((None, 3)), tf.TensorSpec((4, 3))
    number, truth = tf.TensorSpec((), tf.int32), tf.TensorSpec((), tf.bool)

    class Module(tf.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.w = tf.Variable(rng.standard_normal((3, 2)).astype("float32"), name="w")
            self.n = tf.Variable(1.0)

        @tf.function(input_signature=[any_rows])
        def product(self, x: Any) -> Any:
            return tf.matmul(x, self.w)

        @tf.function(input_signature=[any_rows, truth])
        def choose(self, x: Any, p: Any) -> Any:
            return tf.cond(p, lambda: tf.matmul(x, self.w), lambda: x[:, :2] * 2.0)

        @tf.function(input_signature=[tf.TensorSpec((2, 3))])
        def count(self, x: Any) -> Any:
            self.n.assign_add(1.0)
            y = x * self.n
            self.n.assign(5.0)
            return y + self.n

        @tf.function(input_signature=[any_rows, truth])
        def assign_one(self, x: Any, p: Any) -> Any:
            if p:
                self.n.assign(3.0)
            return x * self.n

        @tf.function(input_signature=[rows])
        def five_rounds(self, x: Any) -> Any:
            for i in tf.range(5):
                x = x + tf.cast(i, tf.float32)
            return x

        @tf.function(input_signature=[rows, number])
        def some_rounds(self, x: Any, n: Any) -> Any:
            i = 0
            while i < n and tf.reduce_sum(x) < 1000.0:
                x = x * 1.5 + self.w[0, 0]
                i += 1
            return {"x": x, "i": i}

        @tf.function(input_signature=[rows])
        def growing_list(self, x: Any) -> Any:
            results = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
            for i in tf.range(3):
                results = results.write(i, x[i] * 2.0)
            return results.stack()

        @tf.function(input_signature=[any_rows])
        def running(self, x: Any) -> Any:
            n = tf.shape(x)[0]
            results = tf.TensorArray(tf.float32, size=n)
            total = tf.zeros(3)
            for i in tf.range(n):
                total = total * 0.5 + x[i]
                results = results.write(i, total)
            return results.stack()

        @tf.function(input_signature=[rows, number])
        def switch(self, x: Any, k: Any) -> Any:
            return tf.switch_case(k, [lambda: x + 1.0, lambda: x * 2.0, lambda: tf.exp(x)])

    module = Module()
    path = FOLDER / "functions"
    x = rng.standard_normal((4, 3)).astype("float32")
    feeds: dict[str, dict[str, Any]] = {
        "product": {"x": x},
        "choose": {"x": x, "p": True},
        "count": {"x": x[:2]},
        "assign_one": {"x": x, "p": True},
        "five_rounds": {"x": x},
        "some_rounds": {"x": x, "n": np.int32(20)},
        "growing_list": {"x": x},
        "running": {"x": x},
        "switch": {"x": x, "k": np.int32(1)},
    }
    tf.saved_model.save(module, path, signatures={n: getattr(module, n) for n in feeds})
    for name, inputs in feeds.items():
        loaded = tf.saved_model.load(path).signatures[name]
        results = loaded(**{k: tf.constant(v) for k, v in inputs.items()})
        keep(path, name, inputs, {k: v.numpy() for k, v in results.items()})


def keras_networks(tf: Any) -> None:
    """Write recurrent networks as Keras exports them, with loops of known and unknown length."""
    import keras

    layers = keras.layers
    keras.utils.set_random_seed(1)
    rng = np.random.default_rng(0)
    networks = {
        "dense": (
            [layers.Input((8,)), layers.Dense(6, "relu"), layers.Dense(3, "softmax")],
            (5, 8),
        ),
        "lstm": ([layers.Input((6, 8)), layers.LSTM(5), layers.Dense(2)], (3, 6, 8)),
        "lstm_any": ([layers.Input((None, 8)), layers.LSTM(5)], (3, 7, 8)),
    }
    for name, (stack, shape) in networks.items():
        model = keras.Sequential(stack)
        path = FOLDER / name
        model.export(str(path), verbose=False)
        call = tf.saved_model.load(path).signatures["serving_default"]
        (argument,) = call.structured_input_signature[1]
        x = rng.standard_normal(shape).astype("float32")
        results = call(**{argument: tf.constant(x)})
        keep(path, "case", {argument: x}, {k: v.numpy() for k, v in results.items()})


def one(tf: Any) -> None:
    """Write a SavedModel of TensorFlow 1 with ref and resource variables and its control flow."""
    tf1 = tf.compat.v1
    tf1.disable_control_flow_v2()
    path = FOLDER / "tf1"
    shutil.rmtree(path, ignore_errors=True)
    graph = tf1.Graph()
    with graph.as_default(), tf1.Session(graph=graph) as session:
        x = tf1.placeholder(tf.float32, (None, 4), "x")
        start = tf1.random_normal_initializer
        w = tf1.get_variable("w", (4, 3), use_resource=False, initializer=start(seed=1))
        b = tf1.get_variable("b", (3,), use_resource=True, initializer=start(seed=2))
        train = tf1.placeholder_with_default(False, (), "train")
        y = tf.matmul(x, w) + b
        y = tf1.cond(train, lambda: tf.nn.relu(y) + 1.0, lambda: y * 2.0)
        positive = tf.reduce_sum(y) > 0.0
        y = tf1.cond(positive, lambda: y + 1.0, lambda: y - 1.0)

        def rounds(i: Any, y: Any) -> Any:
            return i + 1, tf.tanh(y) + tf.cast(i, tf.float32)

        _, y = tf1.while_loop(lambda i, y: i < 4, rounds, [tf.constant(0), y])
        steps, doubled = tf1.while_loop(
            lambda i, v: tf.reduce_sum(tf.abs(v)) < 100.0,
            lambda i, v: (i + 1, v * 2.0 + b),
            [tf.constant(0), y],
        )
        array = tf1.TensorArray(tf.float32, 3)
        _, array = tf1.while_loop(
            lambda i, t: i < 3,
            lambda i, t: (i + 1, t.write(i, y * tf.cast(i, tf.float32))),
            [tf.constant(0), array],
        )
        results = {
            "y": tf.identity(y, "y"),
            "rows": tf.identity(array.stack(), "rows"),
            "steps": tf.identity(steps, "steps"),
            "doubled": tf.identity(doubled, "doubled"),
        }
        session.run(tf1.global_variables_initializer())
        tf1.saved_model.simple_save(session, str(path), {"x": x}, results)
        value = np.random.default_rng(0).standard_normal((2, 4)).astype("float32")
        keep(path, "case", {"x": value}, session.run(results, {x: value}))


def stateful(tf: Any) -> None:
    """Write functions that assign variables, with three calls of each."""
    rng = np.random.default_rng(3)
    rows = tf.TensorSpec((2, 3), name="x")

    class Module(tf.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.n = tf.Variable(0.5, name="n")
            self.w = tf.Variable(rng.standard_normal((3, 2)).astype("float32"), name="w")
            self.b = tf.Variable(rng.standard_normal(2).astype("float32"), name="b")

        @tf.function(input_signature=[rows])
        def count(self, x: Any) -> Any:
            self.n.assign(self.n * 3.0 + 2.0)
            return tf.reduce_sum(x) * 0.0 + self.n

        @tf.function(input_signature=[rows, tf.TensorSpec((), tf.bool, name="p")])
        def sometimes(self, x: Any, p: Any) -> Any:
            before = self.n + 0.0
            if p:
                self.n.assign_add(tf.reduce_sum(x))
            else:
                self.b.assign_sub(x[0, :2])
            return {"before": before, "after": x * self.n, "b": self.b.read_value()}

        @tf.function(input_signature=[rows])
        def unrolled(self, x: Any) -> Any:
            for i in tf.range(4):
                self.n.assign(self.n * 0.5 + x[0, 0] * tf.cast(i, tf.float32))
            return self.n.read_value()

        @tf.function(input_signature=[rows])
        def train(self, x: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((tf.matmul(x, self.w) + self.b - 1.0) ** 2)
            for v, g in zip((self.w, self.b), tape.gradient(loss, (self.w, self.b)), strict=True):
                tf.raw_ops.ResourceApplyGradientDescent(var=v.handle, alpha=0.1, delta=g)
            self.w.scatter_add(tf.IndexedSlices(tf.ones((1, 2)), [2]))
            return {"loss": loss, "w": self.w.read_value()}

        @tf.function(input_signature=[rows])
        def drop(self, x: Any) -> Any:
            return tf.nn.dropout(x + self.n, 0.5)

        @tf.function(input_signature=[])
        def peek(self) -> Any:
            return self.n + 0.0

        @tf.function(input_signature=[])
        def reset(self) -> Any:
            self.n.assign(1.25)
            return self.n.read_value()

    module, path = Module(), FOLDER / "stateful"
    x = rng.standard_normal((3, 2, 3)).astype("float32")
    feeds: dict[str, dict[str, Any]] = {
        "count": {"x": x},
        "sometimes": {"x": x, "p": np.array([True, False, True])},
        "unrolled": {"x": x},
        "train": {"x": x},
        "drop": {},
        "peek": {},
        "reset": {},
    }
    tf.saved_model.save(module, path, signatures={n: getattr(module, n) for n in feeds})
    for name, inputs in feeds.items():
        if inputs:
            call = tf.saved_model.load(path).signatures[name]
            calls = [call(**{k: tf.constant(v[i]) for k, v in inputs.items()}) for i in range(3)]
            results = {k: np.stack([c[k].numpy() for c in calls]) for k in calls[0]}
            keep(path, name, inputs, results)


def served(tf: Any) -> None:
    """Write a SavedModel like TensorFlow Serving's examples.

    Examples are parsed in front of its inputs, outputs are ref variables, the checkpoint is
    compressed by Snappy (which needs cramjam), and a counter counts calls.
    """
    tf1 = tf.compat.v1
    path = FOLDER / "served"
    shutil.rmtree(path, ignore_errors=True)
    graph = tf1.Graph()
    with graph.as_default(), tf1.Session(graph=graph) as session:
        a = tf1.get_variable("a", (), use_resource=False, initializer=tf1.constant_initializer(0.5))
        b = tf1.get_variable("b", (), use_resource=True, initializer=tf1.constant_initializer(2.0))
        n = tf1.get_variable("n", (), use_resource=False, initializer=tf1.zeros_initializer())
        examples = tf1.placeholder(tf.string, [None], "tf_example")
        zero = [0.0]
        parsed = tf1.parse_example(
            examples,
            {
                "x": tf1.FixedLenFeature([1], tf.float32),
                "x2": tf1.FixedLenFeature([1], tf.float32, zero),
            },
        )
        x = tf.identity(parsed["x"], "x")
        y = tf.identity(a * x + b, "y")
        y2 = tf.identity(a * parsed["x2"] + 3.0, "y2")
        both = tf.identity(parsed["x"] + parsed["x2"], "both")
        step = tf1.placeholder(tf.float32, (), "step")
        added, zeroed = tf1.assign_add(n, step), tf1.assign(n, 0.0)
        kept = tf1.nn.dropout(a * x, rate=0.5, seed=7)
        signatures = {
            "serving_default": ({"x": x}, {"y": y}),
            "parsed": ({"inputs": parsed["x2"]}, {"scores": y2}),
            "one_of_two": ({"inputs": parsed["x2"]}, {"scores": both}),
            "serialized": ({"inputs": examples}, {"scores": y}),
            "add": ({"step": step}, {"n": added}),
            "reset": ({}, {"n": zeroed}),
            "get": ({}, {"n": n}),
            "dropout": ({"x": x}, {"y": kept}),
        }
        session.run(tf1.global_variables_initializer())
        builder = tf1.saved_model.Builder(str(path))
        info = tf1.saved_model.build_tensor_info
        result = {
            name: tf1.saved_model.build_signature_def(
                {k: info(v) for k, v in inputs.items()}, {k: info(v) for k, v in outputs.items()}
            )
            for name, (inputs, outputs) in signatures.items()
        }
        builder.add_meta_graph_and_variables(session, ["serve"], result)
        builder.save()
        value = np.array([[1.0], [2.0], [-5.0]], np.float32)
        for name in ("serving_default", "parsed"):
            ((argument, tensor),) = signatures[name][0].items()
            outputs = signatures[name][1]
            keep(path, name, {argument: value}, session.run(outputs, {tensor: value}))
    compress(path / "variables" / "variables.index")


def compress(index: Path) -> None:
    """Compress the blocks of a table by Snappy, as some builds of TensorFlow do."""
    import cramjam

    from passkit.frontends.tf_graphdef import checkpoint_bundle
    from tests.frontends.tf_graphdef.checkpoints import table

    data = index.read_bytes()
    pairs = list(
        checkpoint_bundle.leveldb_pairs(
            data, str(index), checkpoint_bundle.Budget(1 << 20, 1 << 20)
        )
    )
    index.write_bytes(table(pairs, 1, lambda block: bytes(cramjam.snappy.compress_raw(block))))


if __name__ == "__main__":
    import tensorflow

    functions(tensorflow)
    keras_networks(tensorflow)
    one(tensorflow)
    stateful(tensorflow)
    served(tensorflow)
