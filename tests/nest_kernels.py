"""Kernels of loop IR, of many shapes and dtypes: single loop nests, and products with others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from attrs import frozen

import passkit as pk
from passkit.graph.kernel import Kernel
from passkit.ir.loop import KernelIR

PASSES = ("Expand", "Simplify", "Fusion", "SchedulePlan", "SharedMemPlan", "CodeGen")
LENGTHS = (1, 5, 8, 10, 32, 40, 64, 100, 128, 130, 256, 768, 1000, 1024, 1028, 4096)


@frozen(eq=False)
class NestProgram:
    """A graph that is one kernel of loop IR.

    Attributes:
        name: what it computes.
        graph: the graph.
        kernel: its kernel.
    """

    name: str
    graph: pk.Graph
    kernel: Kernel

    @property
    def ir(self) -> KernelIR:
        """Return the kernel in final form."""
        assert isinstance(self.kernel.ast, KernelIR)
        return self.kernel.ast

    def outputs(self, expected: Sequence[Any]) -> list[Any]:
        """Return arrays of zeros for what the kernel writes: partial results, then the outputs."""
        written = [b for b in self.ir.params if b.written]
        partial = written[: len(written) - len(expected)]
        arrays = [np.zeros(int(b.extent), b.dtype.numpy) for b in partial]  # type: ignore[call-overload]
        return [*arrays, *(np.zeros_like(x) for x in expected)]


def graphs() -> Iterator[tuple[str, list[Any]]]:
    """Yield names and outputs: elementwise operators, rows, and reductions over several axes."""
    o, f32 = pk.ops, "float32"
    for shape in ((7,), (5000,), (3, 1000), (6, 94, 3)):
        for dtype in (f32, "float16", "int8", "int64"):
            x, y = pk.var("x", shape, dtype), pk.var("y", shape, dtype)
            yield f"{dtype}{shape}", [x * y + x, x - y]
        x, b = pk.var("x", shape, f32), pk.var("b", shape[-1:], f32)
        yield f"gelu{shape}", [o.gelu(x + b) * pk.var("c", (*shape[:-1], 1), f32)]
    x, y = pk.var("x", (2053,), "bool"), pk.var("y", (2053,), "bool")
    yield "and", [o.logical_and(x, y)]
    for n in LENGTHS:
        for rows in (1, 7) if n < 300 else (3,):
            x = pk.var("x", (rows, n), f32)
            yield f"softmax{rows}x{n}", [o.softmax(x)]
            scale, bias = pk.var("s", (n,)), pk.var("b", (n,))
            yield f"layer_norm{rows}x{n}", [o.layer_norm(x, scale, bias)]
            yield f"max{rows}x{n}", [o.reduce_max(x, axis=1), x - o.reduce_max(x, 1, True)]
    for dtype in ("float16", "float64", "int32"):
        for n in (40, 96, 1024):
            x = pk.var("x", (5, n), dtype)
            yield f"sum_{dtype}x{n}", [o.reduce_sum(x, axis=1)]
    x, mask = pk.var("x", (2, 3, 5, 64), f32), pk.var("m", (2, 1, 1, 64), f32)
    yield "masked", [o.softmax(x * 0.5 + mask)]
    for axes in ((2, 3), (1, 3)):
        x = pk.var("x", (4, 6, 8, 16), f32)
        yield f"mean_over{axes}", [x - o.reduce_mean(x, axis=axes, keepdims=True)]
    for shape in ((300, 70), (7, 256), (3, 40, 33), (1000, 4)):
        for dtype in (f32, "float16", "int64"):
            x = pk.var("x", shape, dtype)
            yield f"column_sum_{dtype}{shape}", [o.reduce_sum(x, axis=len(shape) - 2)]
        yield f"column_max{shape}", [o.reduce_max(pk.var("x", shape, f32) * 2.0, axis=0)]
    for n in (10000, 16384, 20000, 40001):
        x = pk.var("x", (3, n), f32)
        yield f"long_sum{n}", [o.reduce_sum(x * x, axis=1)]
        yield f"long_softmax{n}", [o.softmax(x)]
    x, rows = pk.var("x", (5, 12), "float64"), pk.var("i", (2,), "int64")
    yield "rows_by_number", [o.take(x, rows, axis=0)]
    wide = o.cast(pk.var("y", (8,), "float64"), f32)
    yield "doubles_in_floats", [pk.var("x", (3, 8), f32) + wide]
    for shape in ((64, 128), (70, 33)):
        x, y = pk.var("x", shape, f32), pk.var("y", shape[::-1], f32)
        yield f"transpose{shape}", [o.transpose(x, (1, 0)) + y]
    x = pk.var("x", (3, 40, 72), "float16")
    yield "transpose_batch", [o.transpose(x, (0, 2, 1)) * 2]
    yield "joined_sum", [o.reduce_sum(pk.var("x", (100_001,), f32))]
    yield "joined_columns", [o.reduce_sum(pk.var("x", (1200, 200), f32), axis=0)]
    yield "joined_many", [o.reduce_sum(pk.var("x", (9000, 40), f32), axis=0)]
    yield "softmax150x40", [o.softmax(pk.var("x", (150, 40), f32))]
    yield "unknown_rows", [o.softmax(pk.var("x", ("n", 64), f32))]
    yield "unknown_points", [pk.var("x", ("n", 33), f32) * 2 + pk.var("b", (33,))]
    yield "unknown_lengths", [o.softmax(pk.var("x", ("n", "m"), f32))]
    yield "unknown_columns", [o.softmax(pk.var("x", ("n", "m"), f32), axis=0)]
    yield "unknown_steps", [pk.var("x", ("n", "m"), f32) * 2 + pk.var("b", ("m",))]
    x = pk.var("x", ("n", 3, "m"), f32)
    yield "unknown_apart", [x - o.reduce_mean(x, axis=(0, 2), keepdims=True)]
    x, y = pk.var("x", ("n", "m"), f32), pk.var("y", ("m", "n"), f32)
    yield "unknown_transpose", [o.transpose(x, (1, 0)) + y]


def attention(*shape: int, value: int, is_transposed: bool = False) -> pk.Entry:
    """Return attention with a mask: softmax(q k + m) v, of heads with rows of q and k.

    Args:
        *shape: heads, rows of q, rows of k, and the elements of such a row.
        value: the elements of a row of v.
        is_transposed: whether k is given with its rows last.
    """
    o, (heads, rows, length, inner) = pk.ops, shape
    q, v = pk.var("q", (heads, rows, inner)), pk.var("v", (heads, length, value))
    if is_transposed:
        k = pk.var("k", (heads, inner, length))
    else:
        k = o.transpose(pk.var("k", (heads, length, inner)), (0, 2, 1))
    return o.matmul(o.softmax(o.matmul(q, k) * 0.5 + pk.var("m", (length,))), v)


def stitched_graphs() -> Iterator[tuple[str, list[Any]]]:
    """Yield names and outputs of operators of several loop nests, for one kernel each."""
    o = pk.ops
    yield "attention2x7x20x8", [attention(2, 7, 20, 8, value=8)]
    yield "attention3x33x33x5", [attention(3, 33, 33, 5, value=3, is_transposed=True)]
    yield "attention2x9x94x1", [attention(2, 9, 94, 1, value=8)]
    yield "attention1x3x130x12", [attention(1, 3, 130, 12, value=12, is_transposed=True)]
    yield "attention_scaled", [attention(1, 6, 12, 4, value=8) * pk.var("g", (8,))]
    x, w, b = pk.var("x", (37, 13)), pk.var("w", (13, 21)), pk.var("b", (21,))
    yield "dense37x13x21", [o.tanh(o.matmul(x, w) + b)]
    x, w = pk.var("x", (12, 20)), pk.var("w", (16, 12))
    product = o.matmul(o.transpose(x, (1, 0)), o.transpose(w, (1, 0)))
    yield "dense_transposed", [o.relu(product), o.reduce_max(product, axis=1)]
    a, b, c = pk.var("a", (40, 12)), pk.var("b", (12, 25)), pk.var("c", (25, 30))
    yield "products", [o.matmul(o.matmul(a, b), c)]
    a, b = pk.var("a", (14, 30)), pk.var("b", (30, 44))
    scale, shift = pk.var("s", (44,)), pk.var("t", (44,))
    yield "dense_norm", [o.layer_norm(o.matmul(a, b) + pk.var("r", (14, 44)), scale, shift)]
    q, k = pk.var("q", ("n", 5, 6)), pk.var("k", ("n", 6, 7))
    yield "unknown_heads", [o.softmax(o.matmul(q, k))]
    x = pk.var("x", (90, 3))
    apart = o.expand_dims(x, axis=1) - o.expand_dims(x, axis=0)
    square = o.reduce_sum(apart * apart, axis=2, keepdims=True) + 0.5
    yield "forces90x3", [o.reduce_sum(apart * (o.rsqrt(square) / square), axis=1)]
    x = pk.var("x", (34, 40), "float64")
    rows = o.reshape(x - o.reduce_max(x, axis=1, keepdims=True), (136, 10))
    yield "regrouped", [rows - o.reduce_sum(rows, axis=1, keepdims=True)]


def program_of(
    name: str, outputs: list[Any], is_multi_nest: bool = False, **options: Any
) -> NestProgram | None:
    """Return the program of a graph; None if it is not one kernel of loop IR.

    Args:
        name: what it computes.
        outputs: the outputs of the graph.
        is_multi_nest: whether all operators must be in one kernel.
        **options: options of the compiler.
    """
    graph = pk.Graph(outputs)
    if is_multi_nest:
        options["keep_together"] = [[graph.names[n] for n in graph.nodes if n.op is not None]]
    passes = ("SplitReduce", *PASSES) if name.startswith("joined") else PASSES
    planned = pk.ApplyPasses(graph, passes, target="cuda", **options)
    kernels = list(planned.attrs["kernel"].values())
    if len(kernels) != 1 or not isinstance(kernels[0].ast, KernelIR):
        return None
    return NestProgram(name, graph, kernels[0])


@cache
def programs() -> tuple[NestProgram, ...]:
    """Return the programs of all graphs that are one kernel of loop IR."""
    candidates = (program_of(name, outputs) for name, outputs in graphs())
    stitched = (program_of(name, outputs, True) for name, outputs in stitched_graphs())
    return tuple(p for p in (*candidates, *stitched) if p is not None)


def stitched_programs() -> tuple[NestProgram, ...]:
    """Return those of `stitched_graphs`."""
    return tuple(program(name) for name, _ in stitched_graphs())


@cache
def program(name: str) -> NestProgram:
    """Return the program of this name."""
    candidates = (program_of(n, outputs) for n, outputs in graphs() if n == name)
    stitched = (program_of(n, outputs, True) for n, outputs in stitched_graphs() if n == name)
    first = next((p for p in (*candidates, *stitched) if p is not None), None)
    assert first is not None, f"{name} is not one kernel of loop IR"
    return first


def feeds_of(graph: pk.Graph, sizes: Mapping[str, int] | None = None) -> dict[str, Any]:
    """Return arrays for the variables of a graph; unknown extents are in ``sizes``, or 5."""
    rng = np.random.default_rng(0)
    feeds = {}
    for v in graph.inputs:
        entry = v.entries[0]
        extents = {"n": 5, "m": 37, **(sizes or {})}
        shape = tuple(n if isinstance(n, int) else extents[str(n)] for n in entry.shape)
        numbers = rng.standard_normal(shape) * 2
        kind = np.dtype(str(entry.dtype))
        if kind.kind == "b":
            feeds[v.name] = numbers > 0
        else:
            feeds[v.name] = (numbers * (10 if kind.kind == "i" else 1)).astype(kind)
    return feeds
