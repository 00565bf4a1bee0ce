"""Train the network of the guide "train a model" and draw its loss and accuracy.

    python benchmarks/curve.py [--draw]

Trains on the digits of examples/models and records the loss of every step and the accuracy on the
test digits after every epoch. Writes docs/curves/training.csv, and from it loss.svg and
accuracy.svg beside it; ``--draw`` only draws the recorded run.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]  # a checkout that is not installed

from drawing import Curve, Panel  # noqa: E402  (after the path)

from passkit.frontends import tinyflow as tf  # noqa: E402

FOLDER = HERE.parent / "docs/curves"
MODELS = HERE.parent / "examples/models"
EPOCHS, BATCH = 20, 64


@frozen
class TrainingRecord:
    """A training run: the loss of each step, and pairs of step and accuracy for each epoch."""

    losses: Sequence[float]
    accuracies: Sequence[tuple[int, float]]


def digits(name: str) -> tuple[Any, Any]:
    """Load images of 8 x 8 grey values from 0 to 1, as rows of 64, and their classes."""
    arrays = np.load(MODELS / name)
    return arrays["x"].reshape(-1, 64).astype(np.float32) / 16, arrays["labels"].astype(np.int32)


def trained() -> TrainingRecord:
    """Train the network and return its record."""
    tf.set_random_seed(1)
    x, y = tf.placeholder(tf.float32, (None, 64)), tf.placeholder(tf.int32, (None,))
    logits = tf.layers.dense(tf.layers.dense(x, 128, tf.nn.relu), 10)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
    loss = tf.reduce_mean(losses)
    is_correct = tf.equal(tf.argmax(logits, 1, output_type=tf.int32), y)
    accuracy = tf.reduce_mean(tf.cast(is_correct, tf.float32))
    train = tf.train.AdamOptimizer(0.003).minimize(loss)
    images, classes = digits("digits_train.npz")
    test = dict(zip((x, y), digits("digits.npz"), strict=True))
    rng = np.random.default_rng(0)
    step_losses: list[float] = []
    accuracies: list[tuple[int, float]] = []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        accuracies.append((0, float(session.run(accuracy, test))))
        for _ in range(EPOCHS):
            order = rng.permutation(len(images))
            for start in range(0, len(order) - BATCH + 1, BATCH):
                rows = order[start : start + BATCH]
                feeds = {x: images[rows], y: classes[rows]}
                step_losses.append(float(session.run([loss, train], feeds)[0]))
            accuracies.append((len(step_losses), float(session.run(accuracy, test))))
    return TrainingRecord(step_losses, accuracies)


def write(record: TrainingRecord, path: Path) -> None:
    """Write the record as CSV: each step with its loss and, once an epoch, the accuracy."""
    accuracies = dict(record.accuracies)
    with path.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["step", "loss", "test accuracy"])
        for step, loss in enumerate([None, *record.losses]):
            accuracy = accuracies.get(step)
            rows.writerow(
                [
                    step,
                    "" if loss is None else f"{loss:.5f}",
                    "" if accuracy is None else f"{accuracy:.4f}",
                ]
            )


def read(path: Path) -> TrainingRecord:
    """Read a record that `write` wrote."""
    with path.open() as file:
        rows = list(csv.DictReader(file))
    losses = [float(r["loss"]) for r in rows if r["loss"]]
    accuracies = [(int(r["step"]), float(r["test accuracy"])) for r in rows if r["test accuracy"]]
    return TrainingRecord(losses, accuracies)


def pictures(record: TrainingRecord) -> dict[str, str]:
    """Return the SVG text of each picture by its file name."""
    steps = np.arange(1, len(record.losses) + 1)
    last = record.accuracies[-1]
    accuracy_steps, values = zip(*record.accuracies, strict=True)
    smoothed = [float(np.mean(record.losses[max(0, k - 19) : k + 1])) for k in range(len(steps))]
    loss = Panel(
        f"Loss of {len(steps)} training steps: {record.losses[0]:.2f} to {smoothed[-1]:.3f}",
        "step",
        "cross entropy",
        log=True,
        curves=(
            Curve(steps, record.losses, "each step of 64 digits", "#9db8d9", 1.0),
            Curve(steps, smoothed, "mean of the last 20", "#1f4e8c", 2.0),
        ),
    )
    accuracy = Panel(
        f"Accuracy on test digits: {last[1]:.1%} after {last[0]} steps",
        "step",
        "share that is right",
        log=False,
        curves=(Curve(accuracy_steps, values, "after each epoch", "#1f4e8c", 2.0),),
    )
    return {"loss.svg": loss.svg(), "accuracy.svg": accuracy.svg()}


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--draw", action="store_true", help="only draw what was recorded")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    options = parser.parse_args(arguments)
    recorded = options.folder / "training.csv"
    if not options.draw:
        write(trained(), recorded)
    record = read(recorded)
    for name, text in pictures(record).items():
        (options.folder / name).write_text(text)
    print(
        f"{len(record.losses)} steps, loss {record.losses[0]:.2f} to {record.losses[-1]:.3f}, "
        f"accuracy {record.accuracies[-1][1]:.1%}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
