"""Graphs in text whose kernels reduce rows or columns, in several stages."""

SOFTMAX = (
    "x: f32[{0}]; e = exp(sub(x, reduce_max(x, axis={1}, keepdims=true)));"
    "return div(e, reduce_sum(e, axis={1}, keepdims=true))"
)
"""A softmax; the fields are the shape of x and the axis."""

VARIANCE = (
    "x: f32[7, 300]; d = sub(erf(x), reduce_mean(erf(x), axis=1, keepdims=true));"
    "return reduce_sum(mul(d, d), axis=1)"
)
"""The sum of squared differences from the mean of each row of error functions."""
