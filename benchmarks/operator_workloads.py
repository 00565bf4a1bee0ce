"""Workloads by kind of operator: sets for ``compare.py --set NAME``. A set is one entry of `SETS`.

Formulas are written as in `workloads`: once, over a namespace of functions that `peers` supplies.
"""

from typing import Any

from workloads import Formula, Workload, colsum, fullsum, gelu_custom_erf, softmax


def scale(f: Any, x: Any) -> Any:
    """Multiply every element; its bandwidth is the standard for other operators."""
    return x * 2.0


def total(axis: Any) -> Formula:
    """Return the formula of the sum over axes; None means all."""
    return lambda f, x: f.total(x, axis)


def statistics(axes: tuple[int, ...]) -> Formula:
    """Return the formula of mean plus variance over ``axes``."""

    def formula(f: Any, x: Any) -> Any:
        mean = f.mean(x, axes)
        d = x - mean
        return mean + f.mean(d * d, axes)

    return formula


def running(axis: int) -> Formula:
    """Return the formula of the running sum along an axis."""
    return lambda f, x: f.cumsum(x, axis)


def largest(axis: int | None) -> Formula:
    """Return the formula of the maximum along an axis."""
    return lambda f, x: f.max(x, axis)


def turned(*axes: int) -> Formula:
    """Return the formula of a transposition followed by an addition."""
    return lambda f, x, y: f.transpose(x, axes) + y


def joined(axis: int) -> Formula:
    """Return the formula of a concatenation followed by a scaling."""
    return lambda f, x, y: f.concat([x, y], axis) * 0.5


def looked_up(f: Any, x: Any, y: Any) -> Any:
    """Look up rows of a table and scale them: an embedding."""
    return f.take(x, y) * 2.0


def slices(f: Any, x: Any) -> Any:
    """Take every second column of every second row, with some elementwise work."""
    return f.maximum(x[:, ::2][1::2], 0.0) * 2.0 + 1.0


def thinned(f: Any, x: Any) -> Any:
    """Take every second pixel of images, scale it, and cut the border off."""
    return (x[:, ::2, ::2, :] * 2.0 + 1.0)[:, 1:-1, 1:-1, :]


def attention(f: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    """Return multi-head attention under one mask, by primitives."""
    scores = f.matmul(q, f.transpose(k, (0, 2, 1))) * q.shape[-1] ** -0.5 + mask
    e = f.exp(scores - f.max(scores, -1))
    return f.matmul(e / f.sum(e, -1), v)


def figure1(f: Any, q: Any, k: Any, v: Any, m: Any, g: Any) -> tuple[Any, ...]:
    """Return two products with a softmax between them, and three statistics of its rows."""
    add = f.matmul(q, k) * 0.125 + m
    row_max = f.max(add, -1)
    e = f.exp(add - row_max)
    total = f.sum(e, -1)
    log, divide = f.log(total), 1.0 / total
    return f.matmul(e * divide, v) * g, divide, log, row_max + log


def _row(name: str, formula: Formula, *shapes: tuple[int, ...], **rest: Any) -> Workload:
    """Build a workload whose inputs are called x, y, z, w, v."""
    names = "xyzwv"[: len(shapes)]
    return Workload(name, formula, tuple(zip(names, shapes, strict=True)), **rest)


def conv(window: int, count: int, stride: int = 1) -> Formula:
    """Return the formula of a convolution whose filter is constant, as in inference."""
    return lambda f, x: f.conv(x, window, count, stride)


def depthwise(stride: int) -> Formula:
    """Return the formula of a depthwise convolution of 3 x 3."""
    return lambda f, x: f.depthwise(x, stride)


def max_pool(f: Any, x: Any) -> Any:
    """Return the maxima of windows of 3 x 3, with stride 2."""
    return f.max_pool(x)


def avg_pool(f: Any, x: Any) -> Any:
    """Return the means of windows of 2 x 2."""
    return f.avg_pool(x)


def norm_relu(f: Any, x: Any) -> Any:
    """Return the relu of a batch norm in inference."""
    return f.norm_relu(x)


def pair_sum(weight: Formula) -> Formula:
    """Return the formula of the sum over points j of a weight of the squared distance to j."""

    def formula(f: Any, x: Any) -> Any:
        d = x[:, None] - x[None]
        return f.total(weight(f, f.total(d * d, 2)), 1)

    return formula


def softened(f: Any, squared: Any) -> Any:
    """Return a quotient that is finite at distance 0."""
    return 1.0 / (squared + 0.01)


def gaussian(f: Any, squared: Any) -> Any:
    """Return a Gaussian, as density estimates sum it."""
    return f.exp(squared * -0.5)


def forces(f: Any, x: Any) -> Any:
    """Return gravity on each point: the sum over j of (x_j - x_i) / (distance² + 0.01)^1.5."""
    d = x[None] - x[:, None]
    w = f.rsqrt(f.total(d * d, 2) + 0.01)
    return f.total(d * (w * w * w)[:, :, None], 1)


def escape_time(iterations: int) -> Formula:
    """Return the formula of how many iterations of z = z² + c stay near 0, unrolled."""

    def formula(f: Any, re: Any, im: Any) -> Any:
        a, b, count = re, im, re * 0.0
        for _ in range(iterations):
            p, q = a * a, b * b
            is_near = p + q < 4.0
            count = f.where(is_near, count + 1.0, count)
            a, b = f.where(is_near, p - q + re, a), f.where(is_near, 2.0 * a * b + im, b)
        return count

    return formula


def newton(iterations: int) -> Formula:
    """Return the formula of cube roots by Newton's iterations, unrolled; each divides."""

    def formula(f: Any, x: Any) -> Any:
        a = f.abs(x) + 0.5
        y = a
        for _ in range(iterations):
            y = y - (y * y * y - a) / (3.0 * y * y)
        return y

    return formula


def logistic(f: Any, x: Any) -> Any:
    """Return swish by the logistic function, expressed by exp."""
    return x / (1.0 + f.exp(-x))


LOOSE: dict[str, Any] = {"tolerance": 3e-5}
ONE_ITERATION: dict[str, Any] = {"tolerance": 0.6}
"""Tolerance of `escape_time`: a point at the edge may escape an iteration earlier or later.

torch.compile takes minutes on the set "unrolled": give `--only passkit,jax`.
"""

RESNET = ((56, 64), (28, 128), (14, 256), (7, 512))
"""Height, which equals the width, and channels of ResNet's stages."""

SETS: dict[str, tuple[Workload, ...]] = {
    "convolutions": (
        *(_row("conv3x3", conv(3, c), (1, n, n, c), quick=True, **LOOSE) for n, c in RESNET),
        *(_row("conv3x3", conv(3, c), (8, n, n, c), **LOOSE) for n, c in RESNET),
        _row("conv3x3/2", conv(3, 128, 2), (1, 28, 28, 128), **LOOSE),
        _row("conv7x7/2", conv(7, 64, 2), (1, 224, 224, 3), quick=True, **LOOSE),
        _row("conv1x1", conv(1, 256), (1, 56, 56, 64), quick=True, **LOOSE),
        _row("conv1x1", conv(1, 256), (1, 14, 14, 1024), quick=True, **LOOSE),
        _row("conv1x1", conv(1, 64), (8, 56, 56, 256), **LOOSE),
        _row("depthwise", depthwise(1), (1, 112, 112, 32), quick=True, **LOOSE),
        _row("depthwise", depthwise(1), (1, 56, 56, 128), quick=True, **LOOSE),
        _row("depthwise", depthwise(2), (1, 56, 56, 128), **LOOSE),
        _row("depthwise", depthwise(1), (1, 14, 14, 512), quick=True, **LOOSE),
        _row("depthwise", depthwise(1), (8, 56, 56, 128), **LOOSE),
        _row("max_pool", max_pool, (1, 112, 112, 64), quick=True),
        _row("max_pool", max_pool, (8, 112, 112, 64)),
        _row("avg_pool", avg_pool, (1, 56, 56, 128), quick=True, **LOOSE),
        _row("avg_pool", avg_pool, (8, 56, 56, 128), **LOOSE),
        _row("norm_relu", norm_relu, (1, 56, 56, 64), quick=True, **LOOSE),
        _row("norm_relu", norm_relu, (8, 56, 56, 64), **LOOSE),
    ),
    "reductions": (
        _row("scale", scale, (1 << 24,)),
        _row("fullsum", total(None), (1 << 12,), **LOOSE),
        _row("fullsum", total(None), (1 << 18,), **LOOSE),
        _row("fullsum", total(None), (1 << 24,), quick=True, tolerance=1e-3, hand="plain_sum"),
        _row("fullsum_xy", fullsum, (1 << 22,), (1 << 22,), **LOOSE),
        _row("colsum_xy", colsum, (4096, 1024), (4096, 1024), quick=True, **LOOSE),
        _row("colsum", total(0), (4096, 1024), **LOOSE),
        _row("colsum", total(0), (100000, 32), quick=True, **LOOSE),
        _row("colsum", total(0), (100000, 7), **LOOSE),
        _row("colsum", total(0), (1000, 100), **LOOSE),
        _row("colmax", largest(0), (4096, 1024)),
        _row("rowsum", total(-1), (4096, 1024), **LOOSE),
        _row("rowsum", total(-1), (4, 1 << 20), **LOOSE),
        _row("batch_nhwc", statistics((0, 1, 2)), (32, 28, 28, 64), quick=True, **LOOSE),
        _row("batch_nhwc", statistics((0, 1, 2)), (32, 112, 112, 3), **LOOSE),
        _row("batch_nchw", statistics((0, 2, 3)), (32, 64, 28, 28), quick=True, **LOOSE),
        _row("batch_nchw", statistics((0, 2, 3)), (32, 3, 112, 112), **LOOSE),
        _row("softmax_first", softmax(0), (4096, 1024), quick=True),
        _row("softmax_middle", softmax(1), (64, 1024, 64), quick=True),
        _row("softmax_middle", softmax(1), (256, 40, 196)),
        _row("cumsum", running(-1), (4096, 1024), quick=True, **LOOSE),
        _row("cumsum", running(0), (4096, 1024), quick=True, **LOOSE),
        _row("cumsum", running(-1), (65536, 40), **LOOSE),
        _row("cumsum", running(0), (1 << 22,), tolerance=1e-3),
        _row("cumsum", running(1), (64, 1024, 64), **LOOSE),
    ),
    "moves": (
        _row("transpose_add", turned(1, 0), (4096, 4096), (4096, 4096), quick=True),
        _row("transpose_add", turned(1, 0), (1000, 300), (300, 1000)),
        _row("to_nhwc_add", turned(0, 2, 3, 1), (32, 64, 56, 56), (32, 56, 56, 64), quick=True),
        _row("to_nhwc_add", turned(0, 2, 3, 1), (32, 3, 224, 224), (32, 224, 224, 3)),
        _row("to_nchw_add", turned(0, 3, 1, 2), (32, 56, 56, 64), (32, 64, 56, 56), quick=True),
        _row("concat_rows", joined(0), (2000, 1024), (2096, 1024), quick=True),
        _row("concat_columns", joined(1), (4096, 500), (4096, 524), quick=True),
        _row("concat_channels", joined(3), (32, 56, 56, 64), (32, 56, 56, 32)),
        _row("gather", looked_up, (50000, 512), (4096,), quick=True, indices=("y", 50000)),
        _row("gather", looked_up, (1 << 20, 16), (65536,), indices=("y", 1 << 20)),
        _row("gather_elements", looked_up, (1 << 20,), (1 << 20,), indices=("y", 1 << 20)),
        _row("slices", slices, (4096, 4096), quick=True),
        _row("thinned", thinned, (32, 112, 112, 64)),
    ),
    "pairs": (
        *(
            _row("pair_sum", pair_sum(softened), (n, 3), quick=n == 2000, **LOOSE)
            for n in (1000, 2000, 4000)
        ),
        *(_row("pair_sum", pair_sum(softened), (2000, k), **LOOSE) for k in (2, 4, 8)),
        *(
            _row("pair_gaussian", pair_sum(gaussian), (n, 3), quick=n == 2000, **LOOSE)
            for n in (1000, 2000, 4000)
        ),
        *(
            _row("forces", forces, (n, 3), quick=n == 2000, tolerance=1e-4)
            for n in (1000, 2000, 4000)
        ),
    ),
    "unrolled": (
        *(
            _row(
                f"escape_{n}",
                escape_time(n),
                (512, 512),
                (512, 512),
                quick=n == 24,
                **ONE_ITERATION,
            )
            for n in (8, 24, 48, 100)
        ),
        _row("newton", newton(12), (1 << 18,), quick=True),
        _row("gelu_custom_erf", gelu_custom_erf, (1 << 21,), quick=True),
        _row("logistic", logistic, (1 << 21,), quick=True),
    ),
    "stitched": (
        *(
            _row(
                "attention",
                attention,
                *[(64, t, d)] * 3,
                (t, t),
                hand="attention",
                quick=t == 94,
                together=True,
                **LOOSE,
            )
            for t in (17, 94, 128, 512)
            for d in (32, 64)
        ),
        *(
            _row(
                "figure1",
                figure1,
                (b, 94, k),
                (b, k, 94),
                (b, 94, n),
                (94,),
                (n,),
                hand="figure1",
                quick=b == 512,
                together=True,
                results=4,
                **LOOSE,
            )
            for b in (512, 2048)
            for k, n in ((1, 8), (32, 32))
        ),
    ),
}
