"""The graphs of the corpus: programs, workloads, training steps and random graphs, each by a name.

They cover every composition of kernels: rows, columns, stitched domains, packs, phases, products;
known and unknown sizes; 16-bit types; results that are streamed; state in place and aliases.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

HERE = Path(__file__).resolve().parent
RANDOM = 300
"""Random graphs, by seeds from 0 on."""
GROUPS = 32
"""Random groups that are requested as one kernel: of several domains, and in phases."""
STORED = 24
"""Random graphs with state, aliases and outputs that are inputs."""
EXTENTS = (33, 1000)


@frozen
class CorpusCase:
    """A graph with its name, and names of operators that are requested as one kernel each."""

    name: str
    graph: Any
    together: list[list[str]] | None = None


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


def cases(pk: Any) -> Iterator[CorpusCase]:
    """Yield all graphs. An older checkout may lack the tests that some of them are of.

    Args:
        pk: the module passkit.
    """
    for part in PARTS:
        try:
            yield from part(pk)
        except ImportError as error:
            print(f"no {part.__name__}, or not all: {error}", file=sys.stderr)


def programs(pk: Any) -> Iterator[CorpusCase]:
    """Yield the programs above, and a model of TensorFlow."""
    from passkit.frontends import tf_graphdef

    for program in PROGRAMS:
        yield CorpusCase(program.__name__, pk.Graph(program(pk)))
    yield CorpusCase("digits", tf_graphdef.load(HERE.parent / "examples" / "models" / "digits.pb"))


def of_tests(pk: Any) -> Iterator[CorpusCase]:
    """Yield graphs of the golden texts, of tests of one kernel, and of stitched and packed ones."""
    from tests.dialects.test_printer import GOLDENS, PARTS
    from tests.fusion.test_pack import adam as updates
    from tests.fusion.test_pack import random_packs
    from tests.planner.test_multi_nest import PROGRAMS as STITCHED
    from tests.planner.test_multi_nest import together
    from tests.test_one_kernel import GRAPHS

    for name, text in GOLDENS.items():
        parts = [p for p in PARTS if f"{p} = " in text]
        yield CorpusCase(f"golden_{name}", pk.parse(text), [parts] if parts else None)
    for name, graph in GRAPHS.items():
        yield CorpusCase(f"one_{name.replace(' ', '_')}", graph)
    for program in STITCHED:
        for n in EXTENTS:
            yield CorpusCase(f"stitched_{program.__name__}_{n}", *together(program(n)))
    for count in (6, 12):
        text, names = random_packs(count)
        yield CorpusCase(f"packs_{count}", pk.parse(text), names)
    for sizes in ([10, 300, 7000, 40, 90000], [1000] * 7):
        for kind, graph in zip(("inputs", "state"), updates(sizes), strict=True):
            yield CorpusCase(f"adam_{kind}_{len(sizes)}", graph)


def of_workloads(pk: Any) -> Iterator[CorpusCase]:
    """Yield the workloads of the comparison with peers; some of them have results of 134 MB."""
    from operator_workloads import SETS
    from peers import passkit_graph
    from workloads import WORKLOADS

    for group, works in (("core", WORKLOADS), *SETS.items()):
        for k, work in enumerate(works):
            graph, options = passkit_graph(work, work.together)
            name = f"{group}_{k}_{work.label}".replace(" ", "_").replace("/", "by")
            yield CorpusCase(name, graph, options.get("keep_together"))


def variants(pk: Any) -> Iterator[CorpusCase]:
    """Yield some programs with unknown sizes, in 16-bit and other types, and streamed."""
    softmax = "e = exp(sub(x, reduce_max(x, axis={k}, keepdims=true))); return div(e, reduce_sum(e, axis={k}, keepdims=true))"  # noqa: E501
    texts = {
        "gelu": "x: {t}[{a}, {b}]; return gelu(x)",
        "softmax_last": "x: {t}[{a}, {b}]; " + softmax.format(k=1),
        "softmax_first": "x: {t}[{a}, {b}]; " + softmax.format(k=0),
        "layer_norm": "x: {t}[{a}, {b}]; g: {t}[{b}]; c: {t}[{b}]; return layer_norm(x, g, c)",
        "column_sum": "x: {t}[{a}, {b}]; y: {t}[{a}, {b}]; return reduce_sum(mul(x, y), axis=0)",
        "row_max": "x: {t}[{a}, {b}]; return reduce_max(x, axis=1)",
        "turned": "x: {t}[{a}, {b}]; y: {t}[{b}, {a}]; return add(transpose(x), y)",
        "running": "x: {t}[{a}, {b}]; return cumsum(x, axis=1)",
        "bias": "x: {t}[{a}, {b}]; c: {t}[{b}]; return tanh(add(x, c))",
    }
    sizes = {
        "unknown": ("n", "m"),
        "unknown_rows": ("n", "96"),
        "unknown_columns": ("96", "n"),
        "wide": ("64", "1024"),
        "odd": ("77", "101"),
        "streamed": ("9000", "1024"),
    }
    for kind, (a, b) in sizes.items():
        for dtype in ("f32",) if kind != "wide" else ("f64", "f16", "bf16"):
            for name, text in texts.items():
                graph = pk.parse(text.format(t=dtype, a=a, b=b))
                yield CorpusCase(f"{name}_{kind}_{dtype}", graph)


def steps(pk: Any) -> Iterator[CorpusCase]:
    """Yield training steps of the micro-benchmarks and networks, with variables in place."""
    from training import micro, networks
    from training.passkit_steps import training_step

    for program in micro.PROGRAMS:
        small = program.name == "word2vec"
        step = training_step(program, program.drawn(small))
        yield CorpusCase(f"step_{program.name}", step.graph)
    for program in networks.PROGRAMS:
        if program.name in ("lenet", "resnet-1", "transformer"):
            yield CorpusCase(
                f"step_{program.name}", training_step(program, program.drawn(True)).graph
            )


def random_graphs(pk: Any) -> Iterator[CorpusCase]:
    """Yield random graphs over all operators, groups for one kernel, and graphs with state."""
    from tests.passes.storage_graphs import random_graph
    from tests.random_graphs import random_case
    from tests.random_phases import random_phases
    from tests.random_stitches import random_stitch

    for seed in range(RANDOM):
        yield CorpusCase(f"random_{seed}", random_case(seed).graph)
    for seed in range(GROUPS):
        yield CorpusCase(f"random_stitch_{seed}", *random_stitch(seed))
        yield CorpusCase(f"random_phases_{seed}", *random_phases(seed))
    for seed in range(STORED):
        graph = random_graph(np.random.default_rng(seed), Counter(), symbolic=seed % 3 == 0)
        yield CorpusCase(f"stored_{seed}", graph)


PARTS: tuple[Callable[[Any], Iterator[CorpusCase]], ...] = (
    programs,
    of_tests,
    of_workloads,
    variants,
    steps,
    random_graphs,
)
"""The parts of the corpus."""
