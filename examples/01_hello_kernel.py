"""Hello, kernel: write a formula, get one native function, read it, run it."""

import numpy as np

import passkit as pk

# Building nodes computes nothing. "n" is a size that each call chooses.
x = pk.var("x", ("n", 512))
gelu = x * (pk.ops.erf(x / 2**0.5) + 1) / 2
graph = pk.Graph([gelu])
print(pk.to_text(graph))

# Five operators become one kernel, which reads x once and writes the result once.
run = pk.compile(graph)
print(run.source)

rows = np.linspace(-4, 4, 32 * 512, dtype=np.float32).reshape(32, 512)
(result,) = run(x=rows)

# `interpret` is the reference: it evaluates one operator after the other in NumPy.
(expected,) = pk.interpret(graph, {"x": rows})
np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-6)
print(f"{len(run.kernels)} kernel, {run.stats['native_calls']} native call, the same values")

# Another n needs no compilation: sizes are arguments of the kernel.
run(x=rows[:5])
print(f"compiled {run.stats['compiled']} kernels for two sizes")
