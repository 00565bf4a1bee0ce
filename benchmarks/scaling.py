"""Time the pipeline up to CodeGen on large graphs, by shape and number of operators.

    python benchmarks/scaling.py [--counts 3000,30000] [--shapes chain,wide] [--profile 30]

Each case runs in a process of its own. Its CPU time counts: the passes use one thread, and a busy
machine would stretch wall-clock time.
"""

import argparse
import cProfile
import json
import os
import pstats
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))  # a checkout that is not installed

import passkit as pk  # noqa: E402  (after the path)
from passkit.program.planning import DEFAULT_PIPELINE  # noqa: E402

COUNTS = (3_000, 30_000)
UNTIL = "CodeGen"


def chain(count: int) -> Any:
    """Build one operator after another, of four kinds, each also reading the first input."""
    x, w = pk.var("x", (64, 128)), pk.var("w", (128,))
    y = x
    for k in range(count * 2 // 7):
        y = pk.ops.tanh(y * w + x) if k % 2 else pk.ops.exp(-abs(y)) - x
    return pk.Graph([y])


def wide(count: int) -> Any:
    """Build many short independent chains, each with its own inputs and outputs."""
    outputs = []
    for k in range(count // 10):
        x = pk.var(f"x{k}", (32, 64))
        d = x - pk.ops.reduce_mean(x, axis=-1, keepdims=True)
        s = pk.ops.reduce_mean(d * d, axis=-1, keepdims=True)
        outputs.append(pk.ops.tanh(d * pk.ops.rsqrt(s + 1e-5) * (k % 7 + 1.0)) + x)
    return pk.Graph(outputs)


def layer_norm(x: Any, name: str, width: int) -> Any:
    """Return a layer norm by primitives: nine operators."""
    d = x - pk.ops.reduce_mean(x, axis=-1, keepdims=True)
    variance = pk.ops.reduce_mean(d * d, axis=-1, keepdims=True)
    scale, shift = pk.var(f"{name}_g", (width,)), pk.var(f"{name}_b", (width,))
    return d * pk.ops.rsqrt(variance + 1e-5) * scale + shift


def transformer(count: int) -> Any:
    """Build layers of attention and of a perceptron, by primitives."""
    ops, rows, width, heads = pk.ops, 64, 128, 4
    x = pk.var("x", (rows, width))
    per_head = (heads, rows, width // heads)
    for k in range(max(1, count // 54)):
        h = layer_norm(x, f"a{k}", width)
        parts = []
        for part in "qkv":
            y = h @ pk.var(f"{part}{k}", (width, width)) + pk.var(f"{part}b{k}", (width,))
            parts.append(ops.transpose(ops.reshape(y, (rows, heads, width // heads)), (1, 0, 2)))
        scores = parts[0] @ ops.transpose(parts[1], (0, 2, 1)) * (width // heads) ** -0.5
        e = ops.exp(scores - ops.reduce_max(scores, axis=-1, keepdims=True))
        mixed = (e / ops.reduce_sum(e, axis=-1, keepdims=True)) @ parts[2]
        assert mixed.shape == per_head
        mixed = ops.reshape(ops.transpose(mixed, (1, 0, 2)), (rows, width))
        x = x + (mixed @ pk.var(f"o{k}", (width, width)) + pk.var(f"ob{k}", (width,)))
        h = layer_norm(x, f"m{k}", width)
        h = h @ pk.var(f"u{k}", (width, 4 * width)) + pk.var(f"ub{k}", (4 * width,))
        h = h * (ops.erf(h * 0.5**0.5) + 1.0) * 0.5
        x = x + (h @ pk.var(f"d{k}", (4 * width, width)) + pk.var(f"db{k}", (width,)))
    return pk.Graph([x])


def mixed(count: int) -> Any:
    """Build a random graph of broadcasts and reductions of recent values; few kernels are equal."""
    stream = random.Random(0)
    recent = [pk.var(f"x{k}", (48, 80)) for k in range(8)]
    ends = []
    for k in range(count * 3 // 2):
        a, b = stream.choice(recent), stream.choice(recent)
        value = [
            lambda a, b: a + b,
            lambda a, b: a * b,
            pk.ops.maximum,
            pk.ops.subtract,
            lambda a, b: pk.ops.tanh(a),
            lambda a, b: a * stream.random(),
            lambda a, b: a - pk.ops.reduce_max(b, axis=stream.choice((0, 1)), keepdims=True),
            lambda a, b: pk.ops.where(a > b, a, b),
        ][stream.randrange(8)](a, b)
        recent[stream.randrange(8)] = value
        if k % 40 == 0:
            ends.append(value)
    return pk.Graph([*ends, *recent])


SHAPES: dict[str, Callable[[int], Any]] = {
    "chain": chain,
    "wide": wide,
    "mixed": mixed,
    "transformer": transformer,
}


def operators(graph: Any) -> int:
    """Count the operators of a graph, without constants and variables."""
    return sum(n.op is not None and n.op.name != "constant" for n in graph.nodes)


def once(shape: str, count: int, rows: int = 0) -> dict[str, Any]:
    """Run the pipeline up to CodeGen on one graph, in this process.

    Args:
        shape: a key of `SHAPES`.
        count: about how many operators.
        rows: lines of a profile to print; 0 for none.

    Returns:
        A row of the table.
    """
    passes = DEFAULT_PIPELINE[: DEFAULT_PIPELINE.index(UNTIL) + 1]
    pk.ApplyPasses(SHAPES[shape](100), passes)  # imports and lookups are cached
    graph = SHAPES[shape](count)
    profile = cProfile.Profile() if rows else None
    with pk.PassContext(timing=True):
        wall, cpu = time.perf_counter(), time.process_time()
        if profile:
            profile.enable()
        planned = pk.ApplyPasses(graph, passes)
        if profile:
            profile.disable()
            pstats.Stats(profile).sort_stats("tottime").print_stats(rows)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    parts = {t.name: round(t.seconds, 3) for t in planned.attrs["timing"].children}
    return {
        "shape": shape,
        "operators": operators(graph),
        "kernels": len(planned.attrs["kernel"]),
        "seconds": wall,
        "cpu_seconds": cpu,
        "passes": parts,
    }


def measure(shape: str, count: int, timeout: float = 900.0) -> dict[str, Any]:
    """Run `once` in a new process.

    Raises:
        RuntimeError: the process failed.
    """
    command = [sys.executable, __file__, "--once", f"{shape},{count}"]
    process = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=timeout,
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": "0"},
    )
    if process.returncode:
        raise RuntimeError(f"{shape} {count}: {process.stderr.strip().splitlines()[-1]}")
    row: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return row


def growth(rows: list[dict[str, Any]]) -> float:
    """Return the time per operator of the largest case over that of the smallest."""
    first, last = rows[0], rows[-1]
    return float(
        (last["cpu_seconds"] / last["operators"]) / (first["cpu_seconds"] / first["operators"])
    )


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--counts", default=",".join(map(str, COUNTS)))
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--profile", type=int, default=0, help="rows of a profile, in this process")
    parser.add_argument("--once", help="SHAPE,COUNT: one case in this process, as JSON")
    options = parser.parse_args()
    if options.once:
        shape, count = options.once.split(",")
        print(json.dumps(once(shape, int(count))))
        return
    print(f"{'shape':14}{'operators':>10}{'kernels':>9}{'seconds':>9}{'CPU':>9}{'us/op':>8}")
    for shape in options.shapes.split(","):
        rows = []
        for count in map(int, options.counts.split(",")):
            row = once(shape, count, options.profile) if options.profile else measure(shape, count)
            rows.append(row)
            per = 1e6 * row["cpu_seconds"] / row["operators"]
            print(
                f"{shape:14}{row['operators']:10}{row['kernels']:9}{row['seconds']:9.2f}"
                f"{row['cpu_seconds']:9.2f}{per:8.0f}   {row['passes']}",
                flush=True,
            )
        if len(rows) > 1:
            print(f"{shape:14}time per operator grows {growth(rows):.2f} times")


if __name__ == "__main__":
    main()
