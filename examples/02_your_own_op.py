"""Define an operator: an expression for one element is enough to compile and fuse it."""

import numpy as np

import passkit as pk


# A function of entries needs no registration: its operators fuse.
def my_sigmoid(x):
    """Return 1 / (1 + exp(-x)), composed of existing operators."""
    return 1 / (1 + pk.ops.exp(-x))


# A registered operator has a name. Its shape, its dtype, its NumPy reference and its part of a
# kernel follow from the expression.
op = pk.register_op("my_swish", num_inputs=1, doc="x * sigmoid(x)")
op.set_attr("FCodeGen", lambda node, x: x / (1.0 + pk.ast.exp(-x)))
op.set_attr("TOpPattern", pk.OpPattern.ELEMWISE)

# Parameters are known when a kernel is compiled, so they become literals.
leaky = pk.register_op("my_leaky", num_inputs=1, params={"slope": 0.01})
leaky.set_attr("FCodeGen", lambda node, x: pk.ast.where(x > 0.0, x, x * node.params["slope"]))
leaky.set_attr("TOpPattern", pk.OpPattern.ELEMWISE)

x = pk.var("x", ("n",))
sigmoid, swish = my_sigmoid(x), pk.ops.my_swish(x)
mixed = sigmoid * leaky(swish, slope=0.1)
run = pk.compile(pk.Graph([sigmoid, swish, mixed]))
print(run.source)

values = np.linspace(-6, 6, 1001, dtype=np.float32)
results = run(x=values)
exact = 1 / (1 + np.exp(-values.astype(np.float64)))
swished = values * exact
leaked = np.where(values > 0, swished, 0.1 * swished)
for result, expected in zip(results, [exact, swished, exact * leaked], strict=True):
    np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-7)
print(f"{len(results)} results, {len(run.kernels)} kernel, {run.stats['native_calls']} native call")
