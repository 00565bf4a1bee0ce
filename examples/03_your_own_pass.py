"""Define a pass: replace x * sigmoid(x) by one operator wherever it occurs."""

import sys
from pathlib import Path

import numpy as np

import passkit as pk

swish = pk.register_op("swish", num_inputs=1, doc="x * sigmoid(x)")
swish.set_attr("FCodeGen", lambda node, x: x / (1.0 + pk.ast.exp(-x)))
swish.set_attr("TOpPattern", pk.OpPattern.ELEMWISE)


@pk.register_pass("FindSwish", changes_graph=True)
def find_swish(graph):
    """Rewrite x * sigmoid(x) and sigmoid(x) * x to swish(x)."""
    graph = graph.rewrite(lambda x: x * pk.ops.sigmoid(x), swish)
    return graph.rewrite(lambda x: pk.ops.sigmoid(x) * x, swish)


# An analysis pass provides an annotation and leaves the nodes unchanged.
@pk.register_pass("CountOps", provides="op_count")
def count_ops(graph):
    """Annotate the graph with the number of its operators."""
    return graph.with_attrs(op_count=sum(not n.is_variable for n in graph.nodes))


x, w = pk.var("x", ("n", 64)), pk.var("w", (64, 32))
h = x @ w
before = pk.ApplyPasses(pk.Graph([h * pk.ops.sigmoid(h) + 1.0]), "CountOps")
after = pk.ApplyPasses(before, ["FindSwish", "CountOps"])
print(pk.to_text(after))
print(f"{before.attrs['op_count']} operators before, {after.attrs['op_count']} after")

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
fused = pk.ApplyPasses(after, ["Fusion"])
for name, drawing in {
    "before": pk.viz.plan(before),
    "after": pk.viz.plan(after),
    "diff": pk.viz.diff(before, after),
    "fused": pk.viz.plan(fused),
}.items():
    print("drew", pk.viz.render(drawing, folder / f"swish_{name}.svg"))

feeds = {"x": np.eye(3, 64, dtype=np.float32), "w": np.ones((64, 32), np.float32)}
np.testing.assert_allclose(
    pk.compile(after)(feeds)[0], pk.compile(before)(feeds)[0], rtol=1e-6, atol=1e-6
)
