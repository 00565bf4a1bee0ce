"""Training programs with many variables: LeNet, ResNets as TinyFlow trained them, a transformer.

Source: TinyFlow's examples mnist_lenet.py and cifar_resnet.py, for which NNVM-Fusion published how
many operators are fused. The transformer has four encoder layers of width 128.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from training import NamedValues, ProgramInputs, ProgramSizes, TrainingProgram

Generator = np.random.Generator
DEVIATION = 0.01


def labels(g: Generator, s: ProgramSizes) -> np.ndarray:
    """Draw random classes."""
    return g.integers(0, 10, s["batch"])


# LeNet.

LENET = {
    "conv1/W": (5, 5, 1, 20),
    "conv1/b": (20,),
    "conv2/W": (5, 5, 20, 50),
    "conv2/b": (50,),
    "fc1/W": (800, 500),
    "fc2/W": (500, 10),
}


def lenet(f: Any, p: NamedValues, x: NamedValues) -> Any:
    """Return the loss of two convolutions with tanh and pools, and two layers without biases."""
    h = x["x"]
    for k in "12":
        h = f.tanh(f.conv(h, p[f"conv{k}/W"], "VALID") + p[f"conv{k}/b"])
        h = f.max_pool(h, 2, 2)
    h = f.tanh(f.matmul(f.reshape(h, (h.shape[0], 800)), p["fc1/W"]))
    return f.mean(f.sparse_cross_entropy(x["y"], f.matmul(h, p["fc2/W"])))


def draw_lenet(s: ProgramSizes, g: Generator) -> ProgramInputs:
    """Draw images of 28 x 28 grey values."""
    feeds = {"x": g.random((s["batch"], 28, 28, 1)), "y": labels(g, s)}
    return ProgramInputs(feeds, {n: g.normal(0, DEVIATION, shape) for n, shape in LENET.items()})


# ResNets.


def resnet_shapes(units: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the variables of a network with ``units`` units per stage."""
    shapes: dict[str, tuple[int, ...]] = {"first/W": (5, 5, 3, 16)}
    channels = 16
    for name, count in _stages(units):
        for k, (inside, size) in enumerate(((channels, 3), (count, 3), (channels, 1))):
            if k < 2 or channels != count:
                shapes[f"{name}/{k}/W"] = (size, size, inside, count)
                shapes[f"{name}/{k}/g"] = shapes[f"{name}/{k}/b"] = (count,)
        channels = count
    return shapes | {"last/W": (5, 5, 64, 16), "fc/W": (2304, 10)}


def _stages(units: int) -> list[tuple[str, int]]:
    """Return name and channels of each residual unit."""
    return [(f"{count}-{k}", count) for count in (16, 32, 64) for k in range(units)]


def resnet(units: int) -> Any:
    """Return the loss of a network with ``units`` residual units per stage, without strides."""

    def part(f: Any, p: NamedValues, h: Any, name: str) -> Any:
        h = f.conv(h, p[f"{name}/W"], "SAME")
        d = h - f.mean_over(h, (0, 1, 2))
        variance = f.mean_over(f.square(d), (0, 1, 2))
        return d * f.rsqrt(variance + 1e-5) * p[f"{name}/g"] + p[f"{name}/b"]

    def loss(f: Any, p: NamedValues, x: NamedValues) -> Any:
        h = f.tanh(f.conv(x["x"], p["first/W"], "SAME"))
        for name, _ in _stages(units):
            inside = f.relu(part(f, p, h, f"{name}/0"))
            other = f.relu(part(f, p, h, f"{name}/2")) if f"{name}/2/W" in p else h
            h = f.relu(part(f, p, inside, f"{name}/1")) + other
        h = f.conv(f.avg_pool(h, 4, 2), p["last/W"], "VALID")
        h = f.reshape(h, (h.shape[0], 2304))
        return f.mean(f.sparse_cross_entropy(x["y"], f.matmul(h, p["fc/W"])))

    return loss


def draw_resnet(units: int) -> Any:
    """Return a function that draws colour images of 32 x 32; scales begin at 1."""

    def draw(s: ProgramSizes, g: Generator) -> ProgramInputs:
        feeds = {"x": g.random((s["batch"], 32, 32, 3)), "y": labels(g, s)}
        values = {n: g.normal(0, DEVIATION, shape) for n, shape in resnet_shapes(units).items()}
        values |= {n: v * 0 + (n[-1] == "g") for n, v in values.items() if n[-1] in "gb"}
        return ProgramInputs(feeds, values)

    return draw


# A transformer's encoder.

LAYERS, WIDTH, HEADS = 4, 128, 4


def transformer(f: Any, p: NamedValues, x: NamedValues) -> Any:
    """Return the loss of layers that normalise first; the mean over time is classified."""
    h = x["x"]
    batch, time, _ = h.shape

    def norm(h: Any, name: str) -> Any:
        d = h - f.mean_over(h, (2,))
        return d * f.rsqrt(f.mean_over(f.square(d), (2,)) + 1e-5) * p[f"{name}/g"] + p[f"{name}/b"]

    def dense(h: Any, name: str) -> Any:
        return f.matmul(h, p[f"{name}/W"]) + p[f"{name}/c"]

    for k in range(LAYERS):
        y = norm(h, f"{k}/first")
        split = (batch, time, HEADS, WIDTH // HEADS)
        q, key, v = (
            f.transpose(f.reshape(dense(y, f"{k}/{n}"), split), (0, 2, 1, 3)) for n in "qkv"
        )
        scores = f.matmul(q, f.transpose(key, (0, 1, 3, 2))) * (WIDTH // HEADS) ** -0.5
        y = f.transpose(f.matmul(f.softmax(scores), v), (0, 2, 1, 3))
        h = h + dense(f.reshape(y, (batch, time, WIDTH)), f"{k}/o")
        h = h + dense(f.relu(dense(norm(h, f"{k}/second"), f"{k}/up")), f"{k}/down")
    return f.mean(f.cross_entropy(x["y"], dense(f.sum(norm(h, "last"), 1) / time, "classes")))


def draw_transformer(s: ProgramSizes, g: Generator) -> ProgramInputs:
    """Draw sequences of vectors, as an embedding gives them."""
    batch, time = s["batch"], s["time"]
    feeds = {"x": g.normal(0, 1, (batch, time, WIDTH)), "y": np.eye(10)[labels(g, s)]}
    values: dict[str, np.ndarray] = {}

    def dense(name: str, rows: int, columns: int) -> None:
        values[f"{name}/W"] = g.normal(0, rows**-0.5, (rows, columns))
        values[f"{name}/c"] = np.zeros(columns)

    norms = ["last", *(f"{k}/{n}" for k in range(LAYERS) for n in ("first", "second"))]
    for k in range(LAYERS):
        for n in "qkvo":
            dense(f"{k}/{n}", WIDTH, WIDTH)
        dense(f"{k}/up", WIDTH, 4 * WIDTH)
        dense(f"{k}/down", 4 * WIDTH, WIDTH)
    dense("classes", WIDTH, 10)
    values |= {f"{n}/g": np.ones(WIDTH) for n in norms}
    return ProgramInputs(feeds, values | {f"{n}/b": np.zeros(WIDTH) for n in norms})


PROGRAMS = (
    TrainingProgram(
        "lenet", lenet, draw_lenet, "tinyflow_adam", 0.005, {"batch": 100}, {"batch": 2}
    ),
    *(
        TrainingProgram(
            f"resnet-{n}",
            resnet(n),
            draw_resnet(n),
            "tinyflow_adam",
            0.0005,
            {"batch": 16},
            {"batch": 1},
        )
        for n in (1, 2, 3, 5)
    ),
    TrainingProgram(
        "transformer",
        transformer,
        draw_transformer,
        "adam",
        0.001,
        {"batch": 16, "time": 64},
        {"batch": 1, "time": 5},
    ),
)
