"""Random graphs with every case that a memory plan must handle."""

from __future__ import annotations

from collections import Counter

import numpy as np

import passkit as pk
from passkit.values.size import Extent, numel

ops = pk.ops

pair = pk.register_op("test_two_results", num_inputs=2, num_outputs=2)
pair.set_attr("FCodeGen", lambda node, a, b: (a + b, a - b))
pair.set_attr("TOpPattern", pk.OpPattern.BROADCAST)


def random_graph(rng: np.random.Generator, seen: Counter[str], symbolic: bool = False) -> pk.Graph:
    """A graph of up to 25 operators; ``seen`` counts what it has."""
    n: Extent = pk.Size.symbol("n") if symbolic else int(rng.integers(0, 6))
    values = [pk.var("x", (n, 4)), pk.var("r", (4,)), pk.constant(np.ones((1, 4), "float32"))]
    states = [pk.state(f"s{k}", np.ones((2, 4), "float32")) for k in range(int(rng.integers(0, 3)))]
    values += states
    for _ in range(int(rng.integers(3, 25))):
        k = int(rng.integers(max(0, len(values) - 6), len(values)))
        x = values[k]
        grow(rng, seen, values, x)
    outputs = [values[int(k)] for k in rng.integers(0, len(values), int(rng.integers(1, 4)))]
    outputs.append(values[-1])
    updates = []
    for s in states:
        same = [v for v in values if v.shape == s.shape and v.dtype is s.dtype]
        if rng.random() < 0.8:
            updates.append((s.node, same[int(rng.integers(len(same)))]))
            seen["update"] += 1
    seen["output twice"] += len(set(outputs)) < len(outputs)
    seen["output is input"] += any(e.node.is_variable for e in outputs)
    return pk.Graph(outputs, updates)


def grow(rng: np.random.Generator, seen: Counter[str], values: list[pk.Entry], x: pk.Entry) -> None:
    """Add a value that is made from ``x``, or from it and another."""
    assert x.shape is not None
    alike = [v for v in values if v.shape == x.shape and v.dtype is x.dtype]
    y = alike[int(rng.integers(len(alike)))]
    kind = ("unary", "binary", "row", "flat", "turn", "sum", "wide", "pair", "join")[
        int(rng.integers(9))
    ]
    row = next(v for v in values if v.shape == (4,))
    if kind == "unary":
        values.append(ops.exp(x))
    elif kind == "binary":
        values.append(ops.mul(x, y))
    elif kind == "row" and x.shape[-1:] == (4,) and x.dtype is row.dtype:
        values.append(ops.add(x, row))
    elif kind == "flat":
        values.append(ops.reshape(x, shape=(numel(x.shape),)))
    elif kind == "turn" and len(x.shape) == 2:
        values.append(ops.transpose(x))
    elif kind == "sum" and len(x.shape) == 2:
        values.append(ops.reduce_sum(x, axis=-1, keepdims=True))
    elif kind == "wide" and x.shape[-1:] == (4,):
        values.append(ops.cast(x, dtype="float64" if x.dtype is row.dtype else "float32"))
    elif kind == "pair":
        values += pair(x, y)
    elif kind == "join" and len(x.shape) == 2 and numel(x.shape) != 0:
        values.append(ops.concat(x, y, axis=0))
    else:
        return
    seen[kind] += 1
