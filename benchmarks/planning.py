"""Time how long it takes to plan groups that are requested as one kernel, up to SharedMemPlan.

    python benchmarks/planning.py [--profile ROWS] [NAME …]

Each group is planned in three sizes, so that no cached plan is reused; the least CPU time counts.
Random groups differ anyway: their mean and their longest time are printed.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import process_time

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import passkit as pk  # noqa: E402  (after the path)
from passkit.graph.node import Entry  # noqa: E402
from passkit.program.planning import planned  # noqa: E402
from tests.random_stitches import random_stitch  # noqa: E402

o = pk.ops
PlanningInput = tuple[pk.Graph, list[list[str]]]
UNTIL = "SharedMemPlan"
SEEDS, STEPS = range(5000, 5020), 24


def softmax(x: Entry) -> Entry:
    """Return a softmax over the last axis, by primitives."""
    e = o.exp(x - o.reduce_max(x, axis=-1, keepdims=True))
    return e / o.reduce_sum(e, axis=-1, keepdims=True)


def norm(x: Entry, name: str, axis: int = -1) -> Entry:
    """Normalise along an axis, with a scale and a shift."""
    d = x - o.reduce_mean(x, axis=axis, keepdims=True)
    variance = o.reduce_mean(d * d, axis=axis, keepdims=True)
    width = (x.shape or ())[-1:]
    return d / o.sqrt(variance + 1e-5) * pk.var(f"{name}_g", width) + pk.var(f"{name}_b", width)


def scores(t: int, d: int) -> tuple[Entry, Entry]:
    """Return attention's probabilities of four heads, with a mask and dropout, and its values."""
    q, k, v = (pk.var(n, (4, t, d)) for n in "qkv")
    s = o.matmul(q, k, transpose_b=True) / d**0.5 + pk.var("mask", (t, t))
    keep_mask = o.cast(o.less(pk.var("u", (4, t, t)), 0.9), "float32")
    return softmax(s) * keep_mask / 0.9, v


def attention(t: int) -> list[Entry]:
    """Return attention with a mask and dropout."""
    p, v = scores(t, 32)
    return [p @ v]


def block(t: int) -> list[Entry]:
    """Return attention between two normalisations, and a GELU: 38 operators, 3 results."""
    x = norm(pk.var("x", (4, t, 16)), "first")
    p, v = scores(t, 16)
    r = p @ v + x
    y = norm(r, "second")
    return [y * (o.erf(y / 2**0.5) + 1) / 2, r, o.reduce_sum(p, axis=2)]


def merged_heads(t: int) -> list[Entry]:
    """Return attention whose heads are merged and normalised, which takes several phases."""
    p, v = scores(t, 8)
    heads = p @ v
    y = o.reshape(o.transpose(heads, axes=(1, 0, 2)), shape=(t, 32))
    return [heads, norm(y, "rows"), o.reduce_sum(p, axis=2)]


def lstm(b: int) -> list[Entry]:
    """Return three steps of an LSTM cell."""
    h, c, n = pk.var("h", (b, 16)), pk.var("c", (b, 16)), 16
    w, r, bias = pk.var("w", (n, 64)), pk.var("r", (n, 64)), pk.var("bias", (64,))
    for k in range(3):
        z = pk.var(f"x{k}", (b, n)) @ w + h @ r + bias
        i, f, g, u = (o.slice(z, begin=(0, j * n), size=(b, n)) for j in range(4))
        c = o.sigmoid(f) * c + o.sigmoid(i) * o.tanh(g)
        h = o.sigmoid(u) * o.tanh(c)
    return [h, c]


def batch_norm(b: int) -> list[Entry]:
    """Normalise over a batch, then return a softmax of rows."""
    return [softmax(norm(pk.var("x", (b, 32)), "batch", axis=0))]


BUILDERS: dict[str, Callable[[int], list[Entry]]] = {
    f.__name__: f for f in (attention, block, merged_heads, lstm, batch_norm)
}
SIZES = 24, 25, 26


def together(outputs: Sequence[Entry]) -> PlanningInput:
    """Return a graph and the request that all its operators become one kernel."""
    graph = pk.Graph(outputs)
    nodes = [n for n in graph.nodes if n.op is not None and n.op.name != "constant"]
    return graph, [[graph.names[n] for n in nodes]]


def seconds(planning_input: PlanningInput) -> tuple[float, int]:
    """Plan a graph; return the CPU seconds and the number of kernels."""
    graph, names = planning_input
    start = process_time()
    plan = planned(graph, UNTIL, keep_together=names)
    return process_time() - start, len(plan.attrs["schedule"])


def measure(name: str) -> str:
    """Time one kind of group and return its line of the table."""
    if name == "random":
        times = [seconds(random_stitch(seed, STEPS))[0] for seed in SEEDS]
        mean, longest = (1e3 * x for x in (sum(times) / len(times), max(times)))
        return f"{name:14}{len(times):4} groups   {mean:8.1f} ms, the longest {longest:.1f} ms"
    inputs = [together(BUILDERS[name](n)) for n in SIZES]
    times, kernels = zip(*map(seconds, inputs), strict=True)
    count = len(inputs[0][1][0])
    return f"{name:14}{count:4} operators{1e3 * min(times):8.1f} ms, {kernels[0]} kernels"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=[*BUILDERS, "random"])
    parser.add_argument("--profile", type=int, default=0, help="rows of a profile of each")
    options = parser.parse_args()
    seconds(together(BUILDERS["attention"](9)))  # imports and lookups are cached
    for name in options.names:
        profile = cProfile.Profile()
        if options.profile:
            profile.enable()
        print(measure(name), flush=True)
        profile.disable()
        if options.profile:
            pstats.Stats(profile).sort_stats("tottime").print_stats(options.profile)


if __name__ == "__main__":
    main()
