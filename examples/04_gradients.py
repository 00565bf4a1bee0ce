"""Gradients by an operator's expression or by a custom rule, checked numerically and fused."""

import numpy as np

import passkit as pk

ops = pk.ops

# The derivative follows from the expression; this operator needs no rule.
mish = pk.register_op("my_mish", num_inputs=1, doc="x * tanh(softplus(x))")
mish.set_attr("FCodeGen", lambda node, x: x * pk.ast.tanh(pk.ast.log1p(pk.ast.exp(x))))
mish.set_attr("TOpPattern", pk.OpPattern.ELEMWISE)

# A rule gets the node and the gradients of its outputs; it returns an entry or None for each input.
# This operator rounds, and its rule passes gradients through unchanged.
steps = pk.register_op("my_steps", num_inputs=1, params={"count": 4})
steps.set_attr("FCodeGen", lambda node, x: pk.ast.rint(x * node.params["count"]))
steps.set_attr("TOpPattern", pk.OpPattern.ELEMWISE)
steps.set_attr("FGradient", lambda node, dy: [dy])

x, w = pk.var("x", ("n", 64), "float64"), pk.var("w", (64,), "float64")
loss = ops.reduce_mean(mish(x * w) ** 2)
dx, dw = pk.gradients(loss, [x, w])
run = pk.compile(pk.Graph([loss, dx, dw]))

rng = np.random.default_rng(0)
feeds = {"x": rng.normal(size=(10, 64)), "w": rng.normal(size=64)}
value, by_x, by_w = run(feeds)

# Compare with central differences along a direction of w.
h, direction = 1e-5, rng.normal(size=64)
ends = [run({**feeds, "w": feeds["w"] + s * h * direction})[0] for s in (1, -1)]
measured = (ends[0] - ends[1]) / (2 * h)
print(f"loss {float(value):.4f}, slope {by_w @ direction:.6f}, measured {measured:.6f}")
np.testing.assert_allclose(by_w @ direction, measured, rtol=1e-7)

# Gradients are graphs, so they have gradients: the second derivative of x**3.
cube = x * x * x
(once,) = pk.gradients(cube, x)
(twice,) = pk.gradients(once, x)
np.testing.assert_allclose(pk.interpret(pk.Graph([twice]), {"x": by_x})[0], 6 * by_x)

# The custom rule gives a gradient of ones although rounding is flat.
(through,) = pk.gradients(steps(x), x)
assert (pk.interpret(pk.Graph([through]), {"x": by_x})[0] == 1).all()

# The backward pass of a softmax is one kernel, as is the forward pass.
dy = pk.var("dy", ("n", 64), "float64")
backward = pk.compile(pk.Graph(pk.gradients(ops.softmax(x), x, dy)))
print(f"the backward of softmax: {len(backward.kernels)} kernel")
