"""Composites of neural networks, by primitives, so that they fuse with their neighbours."""

from __future__ import annotations

from math import inf, pi, sqrt
from typing import Any

from passkit.errors import GraphError, ShapeError
from passkit.infer import agree, show_shape
from passkit.node import Entry, Node, known_shape
from passkit.op import Op, get_op, register_op
from passkit.ops.reduce import nonempty_shape, reduced_shape
from passkit.ops.rules import alias, axes_of, same_shape, takes
from passkit.size import Shape


def composite(name: str, expand: Any, doc: str, *, shape: Any = same_shape, **params: Any) -> Op:
    """Register ``name`` as what ``expand`` makes of its inputs."""
    op = register_op(name, num_inputs=1, params=params, doc=doc)
    op.set_attr("FExpand", expand)
    op.set_attr("FInferShape", shape)
    op.set_attr("FInferType", takes("f"))
    op.set_attr("TOpCost", "expensive")
    return op


def _op(name: str, *inputs: Any, **params: Any) -> Any:
    return get_op(name)(*inputs, **params)


def _axes_kept(node: Node, shape: Shape) -> Shape:
    """The input's shape, once the axes are checked."""
    axes_of(node, len(shape), node.params["axis"])
    return shape


def _softmax(node: Node, x: Entry) -> Entry:
    """Source: exp(x - max(x)) / sum(exp(x - max(x))), which cannot overflow."""
    axis = node.params["axis"]
    e = _op("exp", x - _op("reduce_max", x, axis=axis, keepdims=True))
    return e / _op("reduce_sum", e, axis=axis, keepdims=True)  # type: ignore[no-any-return]


def _log_softmax(node: Node, x: Entry) -> Entry:
    axis = node.params["axis"]
    d = x - _op("reduce_max", x, axis=axis, keepdims=True)
    total = _op("reduce_sum", _op("exp", d), axis=axis, keepdims=True)
    return d - _op("log", total)  # type: ignore[no-any-return]


def _logsumexp(node: Node, x: Entry) -> Entry:
    """Where the largest element is infinite, nothing is subtracted: inf - inf is NaN."""
    axis, keepdims = node.params["axis"], node.params["keepdims"]
    top = _op("reduce_max", x, axis=axis, keepdims=True)
    shift = _op("where", _op("abs", top) < inf, top, 0.0)
    total = _op("reduce_sum", _op("exp", x - shift), axis=axis, keepdims=keepdims)
    if not keepdims:
        shift = _op("reshape", shift, shape=known_shape(total))
    return _op("log", total) + shift  # type: ignore[no-any-return]


def _variance(node: Node, x: Entry) -> Entry:
    """The mean of squared distances to the mean: two folds, but no cancellation."""
    axis = node.params["axis"]
    d = x - _op("reduce_mean", x, axis=axis, keepdims=True)
    return _op("reduce_mean", d * d, axis=axis, keepdims=node.params["keepdims"])  # type: ignore[no-any-return]


def _gelu(node: Node, x: Entry) -> Entry:
    """Source: Hendrycks and Gimpel, Gaussian Error Linear Units, section 2."""
    form = node.params["approximate"]
    if form == "tanh":
        inner = (x + x * x * x * 0.044715) * sqrt(2 / pi)
        return x * 0.5 * (_op("tanh", inner) + 1.0)  # type: ignore[no-any-return]
    if form == "sigmoid":
        return x * _op("sigmoid", x * 1.702)  # type: ignore[no-any-return]
    return x * 0.5 * (_op("erf", x * sqrt(0.5)) + 1.0)  # type: ignore[no-any-return]


def _gelu_shape(node: Node, shape: Shape) -> Shape:
    if node.params["approximate"] not in ("none", "tanh", "sigmoid"):
        raise GraphError(
            f"{node.where} needs 'none', 'tanh' or 'sigmoid' as approximate, got "
            f"{node.params['approximate']!r}"
        )
    return shape


composite("softmax", _softmax, "exp(x) divided by its sum along axis", shape=_axes_kept, axis=-1)
composite("log_softmax", _log_softmax, "the logarithm of softmax", shape=_axes_kept, axis=-1)
alias(
    composite(
        "logsumexp",
        _logsumexp,
        "log(reduce_sum(exp(x)))",
        shape=nonempty_shape,
        axis=None,
        keepdims=False,
    ),
    "reduce_logsumexp",
)
alias(
    composite(
        "reduce_variance",
        _variance,
        "the mean squared distance to the mean",
        shape=reduced_shape,
        axis=None,
        keepdims=False,
    ),
    "variance",
)
composite(
    "gelu", _gelu, "x times the normal distribution function", shape=_gelu_shape, approximate="none"
)
composite("silu", lambda node, x: x * _op("sigmoid", x), "x * sigmoid(x)")


def _names(params: Any) -> list[str]:
    """data, then gamma and beta as far as they are wanted."""
    return ["data", *["gamma"] * bool(params["scale"]), *["beta"] * bool(params["center"])]


def _normalised(node: Node, shape: Shape) -> Shape:
    """The extents of the normalised axes: the shape of gamma and beta."""
    return tuple(shape[k] for k in axes_of(node, len(shape), node.params["axis"]))


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
    axes = axes_of(node, len(shape), node.params["axis"])
    d = x - _op("reduce_mean", x, axis=axes, keepdims=True)
    variance = _op("reduce_mean", d * d, axis=axes, keepdims=True)
    out = d * _op("rsqrt", variance + node.params["epsilon"])
    trailing = axes == tuple(range(len(shape) - len(axes), len(shape)))
    aligned = tuple(n if k in axes else 1 for k, n in enumerate(shape))
    for name, value in zip(_names(node.params)[1:], rest, strict=True):
        spread = value if trailing else _op("reshape", value, shape=aligned)
        out = out * spread if name == "gamma" else out + spread
    return out  # type: ignore[no-any-return]


_layer_norm_shape.__dict__["partial"] = True  # gamma and beta may be what is asked for
layer_norm = register_op(
    "layer_norm",
    num_inputs=-1,
    params={"axis": -1, "epsilon": 1e-5, "scale": True, "center": True},
    doc="x with mean 0 and variance 1 along axis, times gamma, plus beta",
)
layer_norm.set_attr("FListInputNames", _names)
layer_norm.set_attr("FExpand", _layer_norm)
layer_norm.set_attr("FInferShape", _layer_norm_shape)
layer_norm.set_attr("FInferShapeBack", _layer_norm_back)
layer_norm.set_attr("FInferType", takes("f"))
layer_norm.set_attr("TOpCost", "expensive")
