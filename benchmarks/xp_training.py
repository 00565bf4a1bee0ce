"""Time gradient descent written in `passkit.xp`, beside the same as one compiled graph.

    python benchmarks/xp_training.py [--only NAME] [--rounds 61]

Rows: ``logistic``, logistic regression on 20,000 examples of 50 features; ``mlp``, a network of
784, 128 and 10 units on batches of 256. Both are in float32, with a rate that changes with each
step. A step computes loss and gradients and updates the parameters.

- ``graph``: the step as a graph that `passkit.compile` compiled once
- ``value_and_grad``: a plain loop with `passkit.value_and_grad`, which calls the loss each time
- ``jit``: the same step under `passkit.jit`
- ``jax``: the same with `jax.jit`, if it is installed; ``numpy``: by hand in NumPy

All run in turn in the same process, 20 steps at a time, in an order that changes with each round,
after a pause in which the threads of others go to sleep and 20 untimed steps; a figure is the
median over rounds of the seconds of a step. ``passkit`` is right if all end with the
same loss. The report is written to `results/xp_training.json`.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from rounds import BLAS_SPINNING  # noqa: E402

import passkit as pk  # noqa: E402
from passkit import xp  # noqa: E402

STEPS = 20
Parameters = dict[str, Any]
TrainingLoop = Callable[[], float]
"""Performs a number of steps from the start, and returns the last loss."""


def rate_of(step: int) -> float:
    """Return the rate of a step, which is another one each time."""
    return 0.1 / (1 + 0.01 * step)


class LogisticRegression:
    """Logistic regression, with a penalty of the weights."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.x = rng.standard_normal((20_000, 50), dtype=np.float32)
        self.y = (self.x @ rng.standard_normal(50) > 0).astype(np.float32)
        self.start = {"w": np.zeros(50, np.float32), "b": np.zeros((), np.float32)}

    @staticmethod
    def loss(m: Any, log1p_exp: Any, p: Parameters, x: Any, y: Any) -> Any:
        """Return the loss, with the functions of an array namespace."""
        z = x @ p["w"] + p["b"]
        return m.mean(log1p_exp(z) - y * z) + 0.001 * m.sum(p["w"] * p["w"])

    def numpy_step(self, p: Parameters, rate: float) -> tuple[Any, Parameters]:
        """Perform a step by hand."""
        z = self.x @ p["w"] + p["b"]
        loss = np.mean(np.logaddexp(z, np.float32(0)) - self.y * z) + 0.001 * np.sum(p["w"] ** 2)
        dz = (1 / (1 + np.exp(-z)) - self.y) / np.float32(len(z))
        gradient = {"w": self.x.T @ dz + np.float32(0.002) * p["w"], "b": dz.sum()}
        return loss, {k: p[k] - np.float32(rate) * gradient[k] for k in p}


class Network:
    """A network of one hidden layer, for ten classes."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.x = rng.standard_normal((256, 784), dtype=np.float32)
        self.y = np.eye(10, dtype=np.float32)[rng.integers(0, 10, 256)]
        self.start = {
            "w1": rng.standard_normal((784, 128), dtype=np.float32) / 28,
            "b1": np.zeros(128, np.float32),
            "w2": rng.standard_normal((128, 10), dtype=np.float32) / 12,
            "b2": np.zeros(10, np.float32),
        }

    @staticmethod
    def loss(m: Any, log1p_exp: Any, p: Parameters, x: Any, y: Any) -> Any:
        """Return the loss, with the functions of an array namespace."""
        h = m.tanh(x @ p["w1"] + p["b1"])
        logits = h @ p["w2"] + p["b2"]
        shifted = logits - m.max(logits, axis=1, keepdims=True)
        log_sums = m.log(m.sum(m.exp(shifted), axis=1, keepdims=True))
        return m.mean(m.sum(y * (log_sums - shifted), axis=1))

    def numpy_step(self, p: Parameters, rate: float) -> tuple[Any, Parameters]:
        """Perform a step by hand."""
        h = np.tanh(self.x @ p["w1"] + p["b1"])
        logits = h @ p["w2"] + p["b2"]
        shifted = logits - logits.max(1, keepdims=True)
        exp = np.exp(shifted)
        sums = exp.sum(1, keepdims=True)
        loss = np.mean(np.sum(self.y * (np.log(sums) - shifted), 1))
        dz = (exp / sums - self.y) / np.float32(len(h))
        dh = dz @ p["w2"].T * (1 - h * h)
        gradient = {"w1": self.x.T @ dh, "b1": dh.sum(0), "w2": h.T @ dz, "b2": dz.sum(0)}
        return loss, {k: p[k] - np.float32(rate) * gradient[k] for k in p}


class EntryFunctions:
    """The functions of the losses for entries of a graph."""

    tanh, exp, log = pk.ops.tanh, pk.ops.exp, pk.ops.log
    mean, sum, max = pk.ops.reduce_mean, pk.ops.reduce_sum, pk.ops.reduce_max


def graph_loop(model: Any) -> TrainingLoop:
    """Return the loop with one compiled graph."""
    p = {k: pk.var(k, a.shape) for k, a in model.start.items()}
    x, y, rate = pk.var("x", model.x.shape), pk.var("y", model.y.shape), pk.var("rate", ())
    loss = model.loss(EntryFunctions, pk.ops.softplus, p, x, y)
    gradients = pk.gradients(loss, list(p.values()))
    updated = [a - rate * g for a, g in zip(p.values(), gradients, strict=True)]
    graph = pk.Graph([loss, *updated])
    inputs = [*p.values(), x, y, rate]
    run = pk.compile(graph.with_inputs([e.node for e in inputs])).run_positional

    def loop() -> float:
        """Perform the steps."""
        arrays = list(model.start.values())
        value = None
        for k in range(STEPS):
            value, *arrays = run(*arrays, model.x, model.y, np.asarray(rate_of(k), np.float32))
        return float(value)  # type: ignore[arg-type]

    return loop


def xp_loop(model: Any, is_compiled: bool) -> TrainingLoop:
    """Return the loop in `passkit.xp`, with the step under `passkit.jit` or without."""
    differentiated = pk.value_and_grad(lambda p, x, y: model.loss(xp, xp.nn.softplus, p, x, y))

    def step(p: Parameters, x: Any, y: Any, rate: Any) -> tuple[Any, Parameters]:
        """Perform a step."""
        loss, gradient = differentiated(p, x, y)
        return loss, {k: p[k] - rate * gradient[k] for k in p}

    run = pk.jit(step) if is_compiled else step
    x, y = xp.asarray(model.x), xp.asarray(model.y)
    start = {k: xp.asarray(a) for k, a in model.start.items()}

    def loop() -> float:
        """Perform the steps."""
        p, loss = start, None
        for k in range(STEPS):
            rate = xp.asarray(rate_of(k), dtype=xp.float32) if is_compiled else rate_of(k)
            loss, p = run(p, x, y, rate)
        xp.eval(loss, *p.values())
        return float(loss)  # type: ignore[arg-type]

    return loop


def numpy_loop(model: Any) -> TrainingLoop:
    """Return the loop by hand in NumPy."""

    def loop() -> float:
        """Perform the steps."""
        p, loss = model.start, None
        for k in range(STEPS):
            loss, p = model.numpy_step(p, rate_of(k))
        return float(loss)  # type: ignore[arg-type]

    return loop


def jax_loop(model: Any) -> TrainingLoop | None:
    """Return the loop in JAX, or None if it is not installed."""
    try:
        jax, jnp = import_module("jax"), import_module("jax.numpy")
    except ImportError:
        return None

    @jax.jit  # type: ignore[untyped-decorator, unused-ignore]
    def step(p: Parameters, x: Any, y: Any, rate: Any) -> tuple[Any, Parameters]:
        """Perform a step."""
        loss, gradient = jax.value_and_grad(
            lambda p: model.loss(jnp, lambda z: jnp.logaddexp(z, 0.0), p, x, y)
        )(p)
        return loss, {k: p[k] - rate * gradient[k] for k in p}

    x, y = jnp.asarray(model.x), jnp.asarray(model.y)
    start = {k: jnp.asarray(a) for k, a in model.start.items()}

    def loop() -> float:
        """Perform the steps."""
        p, loss = start, None
        for k in range(STEPS):
            loss, p = step(p, x, y, np.float32(rate_of(k)))
        jax.block_until_ready(p)
        return float(loss)  # type: ignore[arg-type]

    return loop


def loops_of(model: Any) -> dict[str, TrainingLoop]:
    """Return the loops by competitor, those that are installed."""
    loops = {
        "graph": graph_loop(model),
        "value_and_grad": xp_loop(model, is_compiled=False),
        "jit": xp_loop(model, is_compiled=True),
        "numpy": numpy_loop(model),
        "jax": jax_loop(model),
    }
    return {name: loop for name, loop in loops.items() if loop is not None}


MODELS = {"logistic": LogisticRegression, "mlp": Network}


def measure(loops: Mapping[str, TrainingLoop], rounds: int) -> dict[str, float]:
    """Return the median seconds of a step of each competitor.

    Raises: AssertionError if their losses differ.
    """
    losses = {name: [loop() for _ in range(3)][-1] for name, loop in loops.items()}
    expected = losses["numpy"]
    assert all(abs(loss - expected) < 1e-3 * abs(expected) for loss in losses.values()), losses
    times: dict[str, list[float]] = {name: [] for name in loops}
    names = list(loops)
    for k in range(rounds):
        for name in names[k % len(names) :] + names[: k % len(names)]:
            time.sleep(BLAS_SPINNING)
            loops[name]()
            begin = time.perf_counter()
            loops[name]()
            times[name].append((time.perf_counter() - begin) / STEPS)
    return {name: statistics.median(each) for name, each in times.items()}


def main() -> None:
    """Measure the rows, print them, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=MODELS, help="one row")
    parser.add_argument("--rounds", type=int, default=61)
    arguments = parser.parse_args()
    rows: dict[str, dict[str, float]] = {}
    for name, make in MODELS.items():
        if arguments.only in (None, name):
            row = rows[name] = measure(loops_of(make()), arguments.rounds)
            graph = row["graph"]
            text = ", ".join(f"{k} {v * 1e6:,.0f} us ({v / graph:.2f})" for k, v in row.items())
            print(f"{name}: {text}")
    if arguments.only is None:
        report = {"date": str(date.today()), "machine": platform.processor(), "rows": rows}
        path = ROOT / "benchmarks" / "results" / "xp_training.json"
        path.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
