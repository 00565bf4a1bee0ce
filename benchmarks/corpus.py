"""Kernel texts of a fixed set of graphs, recorded by one version and compared with another.

    python benchmarks/corpus.py record DIR [--random 200] [--tree CHECKOUT]
    python benchmarks/corpus.py print DIR [--tree CHECKOUT]
    python benchmarks/corpus.py compare DIR [--tree CHECKOUT]

`record` builds the graphs, writes each as JSON to ``DIR/graphs``, and the kernels of each target to
``DIR/kernels/TARGET``. `print` writes the kernels of recorded graphs anew. `compare` reads the same
graphs with this version, prints their kernels and lists each graph whose kernels differ; it exits 1
if there is one. With ``--tree`` the passkit of another checkout prints the kernels. Nothing is
compiled, and no device or compiler is needed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TARGETS = ("cpu", "cuda", "opencl")
PASSES = ("Fusion", "SchedulePlan", "SharedMemPlan", "CodeGen")


def gelu(pk: Any) -> list[Any]:
    """Return GELU by the error function, of a matrix."""
    x = pk.var("x", (64, 1000))
    return [x * (pk.ops.erf(x / 2**0.5) + 1) / 2]


def softmax(pk: Any) -> list[Any]:
    """Return softmaxes over rows of 40, 1024 and an unknown number of elements."""
    return [pk.ops.softmax(pk.var(f"x{n}", (96, n))) for n in (40, 1024, "n")]


def layer_norm(pk: Any) -> list[Any]:
    """Return a layer norm of rows of 768 with scale and bias, and its three gradients."""
    x, scale, bias = pk.var("x", (128, 768)), pk.var("scale", (768,)), pk.var("bias", (768,))
    y = pk.ops.layer_norm(x, scale, bias)
    return [y, *pk.gradients(pk.ops.reduce_sum(y * y), [x, scale, bias])]


def column_sum(pk: Any) -> list[Any]:
    """Return sums over a long first axis, which is split into partial sums."""
    return [pk.ops.reduce_sum(pk.var("x", (4096, 1024)), axis=0)]


def attention(pk: Any) -> list[Any]:
    """Return scaled dot-product attention of 64 heads, by primitives."""
    q, k, v = (pk.var(name, (64, 94, 32)) for name in "qkv")
    scores = pk.ops.matmul(q, k, transpose_b=True) / 32**0.5
    return [pk.ops.softmax(scores) @ v]


def bias_gelu(pk: Any) -> list[Any]:
    """Return a matrix product of an unknown number of rows with bias and GELU."""
    x, w, b = pk.var("x", ("n", 256)), pk.var("w", (256, 512)), pk.var("b", (512,))
    return [pk.ops.gelu(x @ w + b)]


def convolution(pk: Any) -> list[Any]:
    """Return a residual block of two convolutions."""
    x = pk.var("x", (1, 28, 28, 32))
    h = pk.ops.relu(pk.ops.conv2d(x, pk.var("w1", (3, 3, 32, 32)), padding="SAME"))
    return [pk.ops.relu(x + pk.ops.conv2d(h, pk.var("w2", (3, 3, 32, 32)), padding="SAME"))]


def transposed_add(pk: Any) -> list[Any]:
    """Return the sum of a transposed and a plain matrix."""
    x, y = pk.var("x", (512, 256)), pk.var("y", (256, 512))
    return [pk.ops.transpose(x) + y]


def half_precision(pk: Any) -> list[Any]:
    """Return softmaxes of float16 and bfloat16, which accumulate in float32."""
    return [pk.ops.softmax(pk.var(t, (64, 96), t)) for t in ("float16", "bfloat16")]


def adam(pk: Any) -> list[Any]:
    """Return one step of Adam for six tensors: new mean, variance and weights of each."""
    outputs = []
    for k, size in enumerate((10, 1000, 1000, 4096, 30000, 7)):
        w, g, m, v = (pk.var(f"{name}{k}", (size,)) for name in "wgmv")
        mean = 0.9 * m + 0.1 * g
        variance = 0.999 * v + 0.001 * g * g
        outputs += [mean, variance, w - 0.01 * mean / (pk.ops.sqrt(variance) + 1e-8)]
    return outputs


PROGRAMS: tuple[Callable[[Any], list[Any]], ...] = (
    gelu,
    softmax,
    layer_norm,
    column_sum,
    attention,
    bias_gelu,
    convolution,
    transposed_add,
    half_precision,
    adam,
)


def graphs(pk: Any, random_count: int) -> Iterator[tuple[str, Any]]:
    """Yield the name and graph of each program above, of a TensorFlow model, and of random graphs.

    Args:
        pk: the module passkit.
        random_count: the number of random graphs, by seeds from 0 on.
    """
    from passkit.frontends import tf_graphdef
    from tests.random_graphs import random_case

    for program in PROGRAMS:
        yield program.__name__, pk.Graph(program(pk))
    yield "digits", tf_graphdef.load(HERE.parent / "examples" / "models" / "digits.pb")
    for seed in range(random_count):
        yield f"random_{seed}", random_case(seed).graph


def kernel_texts(pk: Any, graph: Any, target: str) -> str:
    """Return the sources of a graph's kernels, sorted by name, or the error of the compiler."""
    try:
        planned = pk.ApplyPasses(graph, list(PASSES), target=target)
    except pk.PasskitError as error:
        return f"{type(error).__name__}: {error}\n"
    sources = sorted({str(kernel) for kernel in planned.attrs["kernel"].values()})
    return "\n\n".join(sources) + "\n"


def record(pk: Any, folder: Path, random_count: int) -> int:
    """Write the graphs and their kernels into a folder, as `main` describes. Return 0."""
    (folder / "graphs").mkdir(parents=True, exist_ok=True)
    for name, graph in graphs(pk, random_count):
        (folder / "graphs" / f"{name}.json").write_text(pk.to_json(graph))
    return print_kernels(pk, folder)


def print_kernels(pk: Any, folder: Path) -> int:
    """Write the kernels of all graphs that are recorded in a folder. Return 0."""
    for path in sorted((folder / "graphs").glob("*.json")):
        graph = pk.from_json(path.read_text())
        for target in TARGETS:
            out = folder / "kernels" / target / f"{path.stem}.txt"
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(kernel_texts(pk, graph, target))
    return 0


def compare(pk: Any, folder: Path) -> int:
    """Print how many graphs have the recorded kernels, and each that has not. Return 1 if any."""
    differing = []
    count = 0
    for path in sorted((folder / "graphs").glob("*.json")):
        graph = pk.from_json(path.read_text())
        for target in TARGETS:
            count += 1
            recorded = (folder / "kernels" / target / f"{path.stem}.txt").read_text()
            if kernel_texts(pk, graph, target) != recorded:
                differing.append(f"{target}/{path.stem}")
    print(*differing, sep="\n", end="\n" if differing else "")
    print(f"{count - len(differing)} of {count} kernel texts equal")
    return 1 if differing else 0


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("command", choices=("record", "compare", "print"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--random", type=int, default=200, help="random graphs to record")
    parser.add_argument("--tree", type=Path, default=HERE.parent, help="the checkout that prints")
    options = parser.parse_args(arguments)
    sys.path[:0] = [str(options.tree.resolve())]
    os.environ.setdefault("PYTHONHASHSEED", "0")
    import passkit as pk

    if options.command == "record":
        return record(pk, options.folder, options.random)
    if options.command == "print":
        return print_kernels(pk, options.folder)
    return compare(pk, options.folder)


if __name__ == "__main__":
    sys.exit(main())
