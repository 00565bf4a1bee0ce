"""Compare each kernel's default template with its fastest one.

    python benchmarks/best_template.py [NAME …]

All templates of a group are timed in turns. Then the default and the fastest are timed in turns
again, so that the best of many does not win by luck. Prints a line for each group: the ratio and
both templates.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from attrs import asdict, frozen

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import passkit as pk  # noqa: E402  (after the path)
from passkit.graph.node import Entry  # noqa: E402

o = pk.ops
SECONDS = 1.0
"""Least duration of a pass over the templates of a group."""
FEWEST, MOST = 7, 200
"""Bounds on the rounds of a pass."""


@frozen
class TemplateRow:
    """A group: seconds of its default and of its best template, and both templates."""

    name: str
    seconds: float
    best: float
    template: str
    quickest: str
    count: int

    @property
    def ratio(self) -> float:
        """How many times longer the default takes."""
        return self.seconds / self.best

    def __str__(self) -> str:
        times = f"{self.ratio:5.2f}  {self.seconds * 1e6:9.1f} µs  {self.name}, of {self.count}"
        if self.template == self.quickest:
            return times
        return f"{times}\n       has {self.template}\n      best {self.quickest}"


def softmax(x: Entry) -> Entry:
    """Return a softmax over the last axis, by the composite operator."""
    return o.softmax(x)


def layer_norm(x: Entry) -> Entry:
    """Return (x - mean) / deviation over the last axis, by primitives."""
    d = x - o.reduce_mean(x, axis=-1, keepdims=True)
    return d / o.sqrt(o.reduce_mean(d * d, axis=-1, keepdims=True) + 1e-5)


def gelu(x: Entry) -> Entry:
    """Return GELU, by erf."""
    return x * (o.erf(x / 2**0.5) + 1) / 2


def attention(q: Entry, k: Entry, v: Entry) -> Entry:
    """Return multi-head attention, by primitives."""
    scores = o.matmul(q, k, transpose_b=True) * 0.2
    e = o.exp(scores - o.reduce_max(scores, axis=-1, keepdims=True))
    return (e / o.reduce_sum(e, axis=-1, keepdims=True)) @ v


def figure(x: Entry, w: Entry) -> Entry:
    """Return figure 1 of the 2018 paper: a softmax of rows, then a batch of products."""
    e = o.exp(x - o.reduce_max(x, axis=-1, keepdims=True))
    y = e / o.reduce_sum(e, axis=-1, keepdims=True)
    return o.reshape(y, shape=(64, 8, 17, 17)) @ w


InputShape = tuple[int, ...]
KERNELS: Mapping[str, tuple[Callable[..., Entry], Sequence[InputShape]]] = {
    "softmax 4096x1024": (softmax, [(4096, 1024)]),
    "softmax 64x1024": (softmax, [(64, 1024)]),
    "softmax 65536x17": (softmax, [(65536, 17)]),
    "softmax 16384x64": (softmax, [(16384, 64)]),
    "softmax 4096x200": (softmax, [(4096, 200)]),
    "layer norm 4096x1024": (layer_norm, [(4096, 1024)]),
    "layer norm 256x768": (layer_norm, [(256, 768)]),
    "row sums 4096x1024": (lambda x: o.reduce_sum(x, axis=1), [(4096, 1024)]),
    "row sums 65536x16": (lambda x: o.reduce_sum(o.exp(x), axis=1), [(65536, 16)]),
    "column sums 4096x1024": (lambda x: o.reduce_sum(x, axis=0), [(4096, 1024)]),
    "column sums 256x4096": (lambda x: o.reduce_sum(x, axis=0), [(256, 4096)]),
    "middle maxima 64x64x512": (lambda x: o.reduce_max(x, axis=1), [(64, 64, 512)]),
    "column softmax 256x4096": (lambda x: o.softmax(x, axis=0), [(256, 4096)]),
    "gelu 2^20": (gelu, [(1 << 20,)]),
    "gelu 2^14": (gelu, [(1 << 14,)]),
    "bias and relu 4096x1024": (lambda x, b: o.relu(x + b), [(4096, 1024), (1024,)]),
    "scaled rows 1024x1024": (lambda x, s: x * s, [(1024, 1024), (1024, 1)]),
    "transpose 1024x2048": (lambda x: o.transpose(x) * 2.0, [(1024, 2048)]),
    "channels first 32x56x56x64": (
        lambda x: o.transpose(x, axes=(0, 3, 1, 2)) + 1.0,
        [(32, 56, 56, 64)],
    ),
    "three channels 1024x1024x3": (
        lambda x, b: o.transpose(x, axes=(1, 0, 2)) * b,
        [(1024, 1024, 3), (3,)],
    ),
    "attention 64x17x32": (attention, [(64, 17, 32)] * 3),
    "attention 64x94x32": (attention, [(64, 94, 32)] * 3),
    "attention 16x512x64": (attention, [(16, 512, 64)] * 3),
    "figure 8704x17": (figure, [(8704, 17), (64, 8, 17, 128)]),
}


def rows_of(name: str) -> list[TemplateRow]:
    """Measure a kernel; return a row for each group of its graph."""
    function, shapes = KERNELS[name]
    inputs = [pk.var(f"x{k}", shape) for k, shape in enumerate(shapes)]
    graph = pk.Graph([function(*inputs)])
    operator_names = [[n for node, n in graph.names.items() if node.op is not None]]
    options = (
        {"keep_together": operator_names}
        if len(shapes) > 1 and "matmul" in str(operator_names)
        else {}
    )
    rng = np.random.default_rng(0)
    feeds = {
        f"x{k}": rng.standard_normal(shape).astype(np.float32) for k, shape in enumerate(shapes)
    }
    rows = []
    for ranked in pk.templates(graph, **options):
        texts = [ranked.template, *(str(v.template) for v in ranked.others)]
        runs = [pk.compile(graph, **options, templates={ranked.name: t}) for t in texts]
        times = in_turns(runs, feeds)
        best = min(range(len(texts)), key=lambda k: times[k])
        first, second = in_turns([runs[0], runs[best]], feeds) if best else (times[0], times[0])
        rows.append(
            TemplateRow(f"{name}: {ranked.name}", first, second, texts[0], texts[best], len(texts))
        )
    return rows


def in_turns(runs: Sequence[pk.Executable], feeds: Mapping[str, Any]) -> list[float]:
    """Call the executables one after the other in rounds; return the median seconds of each."""
    times: list[list[float]] = [[] for _ in runs]
    end = perf_counter() + SECONDS
    while len(times[0]) < FEWEST or (perf_counter() < end and len(times[0]) < MOST):
        for run, seconds in zip(runs, times, strict=True):
            begin = perf_counter()
            run(feeds)
            seconds.append(perf_counter() - begin)
    return [median(seconds[1:]) for seconds in times]


def main() -> int:
    """Measure and print. Return 1 if a default takes more than 1.2 times as long as its best."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("names", nargs="*", help="kernels whose names contain one of these")
    parser.add_argument("--json", type=Path, help="write the rows to a file")
    args = parser.parse_args()
    rows = []
    for name in KERNELS:
        if not args.names or any(word in name for word in args.names):
            for row in rows_of(name):
                rows.append(row)
                print(row, flush=True)
    if args.json:
        args.json.write_text(json.dumps([asdict(r) for r in rows], indent=1) + "\n")
    worst = max(rows, key=lambda r: r.ratio)
    print(f"worst of {len(rows)}: {worst.ratio:.2f}, {worst.name}")
    return int(worst.ratio > 1.2)


if __name__ == "__main__":
    sys.exit(main())
