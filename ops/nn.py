"""Composites of neural networks, by primitives, so that they fuse with their neighbours."""

from __future__ import annotations

from math import inf, pi, sqrt
from typing import Any

from passkit.errors import GraphError, ShapeError
from passkit.graph.infer import agree, show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.ops.composites import composite
from passkit.ops.helpers import first_shape, make, normalize_axes
from passkit.ops.reduce import nonempty_shape, reduced_shape, spread
from passkit.values.size import Shape, numel


def _axes_kept(node: Node, shape: Shape) -> Shape:
    """The input's shape, once the axes are checked."""
    normalize_axes(node, len(shape), node.params["axis"])
    return shape


def _softmax(node: Node, x: Entry) -> Entry:
    """Source: exp(x - max(x)) / sum(exp(x - max(x))), which cannot overflow."""
    if numel(known_shape(x)) == 0:
        return x
    axis = node.params["axis"]
    e = make("exp", x - make("reduce_max", x, axis=axis, keepdims=True))
    return e / make("reduce_sum", e, axis=axis, keepdims=True)


def _log_softmax(node: Node, x: Entry) -> Entry:
    if numel(known_shape(x)) == 0:
        return x
    axis = node.params["axis"]
    d = x - make("reduce_max", x, axis=axis, keepdims=True)
    total = make("reduce_sum", make("exp", d), axis=axis, keepdims=True)
    return d - make("log", total)


def _logsumexp(node: Node, x: Entry) -> Entry:
    """Where the largest element is infinite, nothing is subtracted: inf - inf is NaN."""
    axis, keepdims = node.params["axis"], node.params["keepdims"]
    top = make("reduce_max", x, axis=axis, keepdims=True)
    shift = make("where", make("abs", top) < inf, top, 0.0)
    total = make("reduce_sum", make("exp", x - shift), axis=axis, keepdims=keepdims)
    if not keepdims:
        shift = make("reshape", shift, shape=known_shape(total))
    return make("log", total) + shift


def _softmax_gradient(node: Node, dy: Entry) -> list[Entry]:
    y = node.entries[0]
    total = make("reduce_sum", dy * y, axis=node.params["axis"], keepdims=True)
    return [(dy - total) * y]


def _log_softmax_gradient(node: Node, dy: Entry) -> list[Entry]:
    total = make("reduce_sum", dy, axis=node.params["axis"], keepdims=True)
    return [dy - make("exp", node.entries[0]) * total]


def _logsumexp_gradient(node: Node, dy: Entry) -> list[Entry]:
    share = make("exp", node.inputs[0] - spread(node, node.entries[0]))
    return [spread(node, dy) * share]


def _variance(node: Node, x: Entry) -> Entry:
    """The mean of squared distances to the mean: two folds, but no cancellation."""
    axis = node.params["axis"]
    d = x - make("reduce_mean", x, axis=axis, keepdims=True)
    return make("reduce_mean", d * d, axis=axis, keepdims=node.params["keepdims"])


def _gelu(node: Node, x: Entry) -> Entry:
    """Source: Hendrycks and Gimpel, Gaussian Error Linear Units, section 2."""
    form = node.params["approximate"]
    if form == "tanh":
        inner = (x + x * x * x * 0.044715) * sqrt(2 / pi)
        return x * 0.5 * (make("tanh", inner) + 1.0)
    if form == "sigmoid":
        return x * make("sigmoid", x * 1.702)
    return x * 0.5 * (make("erf", x * sqrt(0.5)) + 1.0)


def _gelu_shape(node: Node, shape: Shape) -> Shape:
    if node.params["approximate"] not in ("none", "tanh", "sigmoid"):
        raise GraphError(
            f"{node.where} needs 'none', 'tanh' or 'sigmoid' as approximate, got "
            f"{node.params['approximate']!r}"
        )
    return shape


AXIS = {"axis": -1}
FOLD = {"axis": None, "keepdims": False}

composite(
    "softmax",
    1,
    _softmax,
    "exp(x) divided by its sum along axis",
    AXIS,
    shape=_axes_kept,
    FGradient=_softmax_gradient,
)
composite(
    "log_softmax",
    1,
    _log_softmax,
    "the logarithm of softmax",
    AXIS,
    shape=_axes_kept,
    FGradient=_log_softmax_gradient,
)
composite(
    "logsumexp",
    1,
    _logsumexp,
    "log(reduce_sum(exp(x)))",
    FOLD,
    shape=nonempty_shape,
    aliases="reduce_logsumexp",
    FGradient=_logsumexp_gradient,
)
composite(
    "reduce_variance",
    1,
    _variance,
    "the mean squared distance to the mean",
    FOLD,
    shape=reduced_shape,
    aliases="variance",
)
composite(
    "gelu",
    1,
    _gelu,
    "x times the normal distribution function",
    {"approximate": "none"},
    shape=_gelu_shape,
)
composite(
    "silu",
    1,
    lambda node, x: x * make("sigmoid", x),
    "x * sigmoid(x)",
    shape=first_shape,
)


def _names(params: Any) -> list[str]:
    """data, then gamma and beta as far as they are wanted."""
    return ["data", *["gamma"] * bool(params["scale"]), *["beta"] * bool(params["center"])]


def _normalised(node: Node, shape: Shape) -> Shape:
    """The extents of the normalised axes: the shape of gamma and beta."""
    return tuple(shape[k] for k in normalize_axes(node, len(shape), node.params["axis"]))


def _layer_norm_shape(node: Node, data: Shape | None, *rest: Shape | None) -> Shape | None:
    if len(rest) + 1 != len(_names(node.params)):
        raise ShapeError(
            f"{node.where} takes {', '.join(_names(node.params))}, got {len(rest) + 1} inputs"
        )
    if data is None:
        return None
    wanted = _normalised(node, data)
    for name, s in zip(_names(node.params)[1:], rest, strict=True):
        if s is None:
            continue
        if len(s) != len(wanted):
            raise ShapeError(
                f"{node.where} needs {name} of shape {show_shape(wanted)}, got {show_shape(s)}"
            )
        for a, b in zip(s, wanted, strict=True):
            agree(node, a, b, f"the lengths of {name} and of the normalised axes")
    return data


def _layer_norm_back(node: Node, shapes: Any, outs: Any) -> list[Shape | None]:
    data = shapes[0] if shapes[0] is not None else outs[0]
    if data is None:
        return list(shapes)
    wanted = _normalised(node, data)
    return [data, *(wanted if s is None else s for s in shapes[1:])]


def _layer_norm(node: Node, x: Entry, *rest: Entry) -> Entry:
    """Source: Ba, Kiros and Hinton, Layer Normalization, equation 4."""
    shape = known_shape(x)
    axes = normalize_axes(node, len(shape), node.params["axis"])
    d = x - make("reduce_mean", x, axis=axes, keepdims=True)
    variance = make("reduce_mean", d * d, axis=axes, keepdims=True)
    out = d * make("rsqrt", variance + node.params["epsilon"])
    trailing = axes == tuple(range(len(shape) - len(axes), len(shape)))
    aligned = tuple(n if k in axes else 1 for k, n in enumerate(shape))
    for name, value in zip(_names(node.params)[1:], rest, strict=True):
        spread = value if trailing else make("reshape", value, shape=aligned)
        out = out * spread if name == "gamma" else out + spread
    return out


_layer_norm_shape.__dict__["partial"] = True  # gamma and beta may be what is asked for
composite(
    "layer_norm",
    -1,
    _layer_norm,
    "x with mean 0 and variance 1 along axis, times gamma, plus beta",
    {"axis": -1, "epsilon": 1e-5, "scale": True, "center": True},
    shape=_layer_norm_shape,
    FListInputNames=_names,
    FInferShapeBack=_layer_norm_back,
)
