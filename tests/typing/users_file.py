"""A user's file for type checkers: lines marked as wrong must be reported, and no others."""

from __future__ import annotations

import numpy as np

import passkit as pk

x = pk.var("x", ("n", 8), "float32")
y = pk.ops.softmax(x * 2, axis=-1) + pk.ops.exp(x)
pk.ops.sofmax(x)  # wrong: no such operator
pk.ops.softmax(x, axiss=-1)  # wrong: no such parameter
pk.ops.softmax(x, axis="last")  # wrong: type of a parameter
pk.ops.where(x > 0, x)  # wrong: an operand is missing
pk.ops.reduce_sum(x, axis=(0, 1), keepdims=True)
pk.ops.matmul(x, np.ones((8, 4), np.float32))
pk.ops.maximum(x, 0.0)

graph = pk.Graph([y])
run = pk.compile(graph, target="cpu", fusion="stitch", numerics="fast")
pk.compile(graph, fusion="xx")  # wrong: no such strategy
pk.compile(graph, target="gpu")  # wrong: no such target
pk.compile(graph, fused=True)  # wrong: no such option
pk.compile(3)  # wrong: no graph
pk.compile(y, passes={"after Simplify": ["Mine"]}, keep_together=[["softmax", "add"]])
pk.explain(graph, fusion="nnvm").apart
pk.tune(graph, budget="all")  # wrong: type of an argument
pk.ApplyPasses(graph, ["Fusion", "CodeGen"], target="opencl")
pk.ApplyPasses(graph, 5)  # wrong: no passes
pk.PassContext(fusion="stich")  # wrong: no such strategy
pk.nothing  # wrong: no such name

(result,) = run(x=np.ones((2, 8), np.float32))
result.shape
names: list[str] = [kernel.name for kernel in run.kernels]
count: str = len(run.kernels)  # wrong: an int
source: int = run.source  # wrong: a string
run.sauce  # wrong: no such attribute
pk.to_text(graph).splitlines()
pk.to_text("graph")  # wrong: no graph
pk.gradients(y, [x])
pk.var("x", shape=(1, 2), dtyp="int8")  # wrong: no such argument


@pk.register_fusion("my_users_file")
def mine(graph: pk.Graph) -> list[list[pk.Node]]:
    """Fuse nothing."""
    return []


pk.compile(graph, fusion=mine)
