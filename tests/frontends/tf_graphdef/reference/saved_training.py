"""Train a graph that tinyflow built and passkit saved in TensorFlow, and load it again.

    python -m tests.frontends.tf_graphdef.reference.saved_training PYTHON

``PYTHON`` has TensorFlow; it runs only this file. Losses of three steps are printed side by side,
and the command fails if they differ by more than 1e-5 of the largest.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

STEPS = 3


def program(tf: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return fetches and feeds of a small network with Adam and a step counter."""
    rng = np.random.default_rng(1)
    x = tf.placeholder("float32", (None, 12, 12, 1), "x")
    y = tf.placeholder("int64", (None,), "y")
    start = tf.truncated_normal_initializer(stddev=0.2)
    w = tf.get_variable("w", (3, 3, 1, 4), initializer=start)
    b = tf.Variable(tf.zeros((4,)), name="b")
    h = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME"), b))
    h = tf.reshape(tf.nn.max_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], "SAME"), (-1, 144))
    logits = h @ tf.get_variable("v", (144, 10), initializer=start)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
    loss = tf.reduce_mean(losses)
    count = tf.train.get_or_create_global_step()
    train = tf.train.AdamOptimizer(0.01).minimize(loss, global_step=count)
    with tf.control_dependencies([train]):
        later = tf.identity(count.read_value() * 10)
    drawn = tf.reduce_mean(tf.nn.dropout(logits, 0.5))
    init = tf.global_variables_initializer()
    fetches = {"loss": loss, "train": train, "later": later, "drawn": drawn, "init": init}
    fetches |= {"x": x, "y": y}
    images = rng.standard_normal((6, 12, 12, 1), "f")
    return fetches, {"x": images, "y": rng.integers(0, 10, 6)}


def in_passkit(folder: Path) -> dict[str, list[float]]:
    """Return the losses of the program and of the saved model; write the model and its values."""
    from passkit.frontends import tf_graphdef
    from passkit.frontends import tinyflow as tf

    fetches, feeds = program(tf)
    data = tf_graphdef.save(fetches, folder / "model.pb")
    session, again = tf.Session(), tf_graphdef.ModelSession(data)
    session.run(fetches["init"])
    again.run("init")
    values = dict(session.state.arrays)
    np.savez(folder / "values.npz", **values)
    np.savez(folder / "feeds.npz", **feeds)
    for name, value in values.items():
        again.state[name] = value
    inputs = {fetches[k]: v for k, v in feeds.items()}
    named = {f"{k}:0": v for k, v in feeds.items()}
    step = [fetches["loss"], fetches["train"]]
    return {
        "tinyflow": [float(session.run(step, inputs)[0]) for _ in range(STEPS)],
        "loaded again": [float(again.run(["loss:0", "train"], named)[0]) for _ in range(STEPS)],
    }


def in_tensorflow(folder: Path) -> list[float]:
    """Return TensorFlow's losses from the same values."""
    os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    import tensorflow as tf

    v1 = tf.compat.v1
    v1.disable_eager_execution()
    graph = v1.GraphDef.FromString((folder / "model.pb").read_bytes())
    tf.import_graph_def(graph, name="")
    values, feeds = (np.load(folder / f"{n}.npz") for n in ("values", "feeds"))
    with v1.Session() as session:
        session.run("init")
        for name in values.files:
            handle = v1.get_default_graph().get_tensor_by_name(f"{name}:0")
            session.run(tf.raw_ops.AssignVariableOp(resource=handle, value=values[name]))
        inputs = {f"{k}:0": feeds[k] for k in feeds.files}
        session.run("drawn:0", inputs)
        results = [float(session.run(["loss:0", "train"], inputs)[0]) for _ in range(STEPS)]
        assert session.run("later:0", inputs) == 10 * (STEPS + 1)
    return results


def main() -> int:
    """Print the losses; return 1 if they differ."""
    if sys.argv[1] == "--inside":
        print(json.dumps(in_tensorflow(Path(sys.argv[2]))))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        rows = in_passkit(Path(folder))
        command = [sys.argv[1], __file__, "--inside", folder]
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
        rows["TensorFlow"] = json.loads(done.stdout.splitlines()[-1])
    expected = np.array(rows["tinyflow"])
    worst = 0.0
    for name, losses in rows.items():
        worst = max(worst, float(np.max(np.abs(losses - expected)) / expected.max()))
        print(f"{name:14}", *(f"{loss:.6f}" for loss in losses))
    print(f"largest difference: {worst:.1e} of the largest loss")
    return int(worst > 1e-5)


if __name__ == "__main__":
    sys.exit(main())
