"""Norms: values with mean 0 or length 1 over some axes, times gamma, plus beta, as far as wanted.

As for `layer_norm`, parameters ``scale`` and ``center`` say whether there are inputs gamma and
beta; those that a call leaves out become variables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from passkit.errors import GraphError, ShapeError
from passkit.graph.infer import agree, show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.ops.composites import composite
from passkit.ops.helpers import common_dtype, make, normalize_axes, normalize_axis
from passkit.values.dtype import DType
from passkit.values.size import Shape, divide_exactly


def names_of(params: Mapping[str, Any]) -> list[str]:
    """data, then gamma and beta as far as they are wanted."""
    beta = params.get("center", False)
    return ["data", *["gamma"] * bool(params["scale"]), *["beta"] * bool(beta)]


def affine(node: Node, out: Entry, rest: tuple[Entry, ...], axes: tuple[int, ...]) -> Entry:
    """``out`` times gamma, plus beta, which lie along ``axes`` of it."""
    shape = known_shape(out)
    trailing = axes == tuple(range(len(shape) - len(axes), len(shape)))
    aligned = tuple(n if k in axes else 1 for k, n in enumerate(shape))
    for name, value in zip(names_of(node.params)[1:], rest, strict=True):
        spread = value if trailing else make("reshape", value, shape=aligned)
        out = out * spread if name == "gamma" else out + spread
    return out


Axes = Callable[[Node, Shape], tuple[int, ...]]


def norm(name: str, expand: Any, axes: Axes, doc: str, params: Mapping[str, Any]) -> None:
    """Register a norm; gamma and beta have the lengths of ``axes(node, shape)`` of the data."""

    def infer_shape(node: Node, data: Shape | None, *rest: Shape | None) -> Shape | None:
        names = names_of(node.params)
        if len(rest) + 1 != len(names):
            raise ShapeError(f"{node.where} takes {', '.join(names)}, got {len(rest) + 1} inputs")
        if data is None:
            return None
        wanted = tuple(data[k] for k in axes(node, data))
        for which, s in zip(names[1:], rest, strict=True):
            if s is not None and len(s) != len(wanted):
                raise ShapeError(
                    f"{node.where} needs {which} of shape {show_shape(wanted)}, got {show_shape(s)}"
                )
            for a, b in zip(s or (), wanted, strict=False):
                agree(node, a, b, f"the lengths of {which} and of the axes it lies along")
        return data

    def infer_back(node: Node, shapes: Any, outs: Any) -> list[Shape | None]:
        data = shapes[0] if shapes[0] is not None else outs[0]
        if data is None:
            return list(shapes)
        wanted = tuple(data[k] for k in axes(node, data))
        return [data, *(wanted if s is None else s for s in shapes[1:])]

    infer_shape.__dict__["partial"] = True  # gamma and beta may be what is asked for
    composite(
        name,
        -1,
        lambda node, x, *rest: affine(node, expand(node, x), rest, axes(node, known_shape(x))),
        doc,
        params,
        shape=infer_shape,
        FListInputNames=names_of,
        FInferShapeBack=infer_back,
    )


def standardised(x: Entry, axes: tuple[int, ...], epsilon: float) -> Entry:
    """Mean 0 and variance 1 along ``axes``."""
    d = x - make("reduce_mean", x, axis=axes, keepdims=True)
    return d * make("rsqrt", make("reduce_mean", d * d, axis=axes, keepdims=True) + epsilon)


def _along_axis(node: Node, shape: Shape) -> tuple[int, ...]:
    return normalize_axes(node, len(shape), node.params["axis"])


def _channel(node: Node, shape: Shape) -> tuple[int, ...]:
    """The channels; the first axis is that of the examples, so it cannot be they."""
    axis = normalize_axis(node, len(shape), node.params["channel_axis"], "channel_axis")
    if axis == 0:
        raise ShapeError(
            f"{node.where} needs a channel_axis behind axis 0, that of the examples, got "
            f"{node.params['channel_axis']} of {show_shape(shape)}"
        )
    return (axis,)


def _rms(node: Node, x: Entry) -> Entry:
    """Source: Zhang and Sennrich, Root Mean Square Layer Normalization, equation 4."""
    axes = _along_axis(node, known_shape(x))
    mean = make("reduce_mean", x * x, axis=axes, keepdims=True)
    return x * make("rsqrt", mean + node.params["epsilon"])


def _instance(node: Node, x: Entry) -> Entry:
    """Source: Ulyanov, Vedaldi and Lempitsky, Instance Normalization, equation 2."""
    shape = known_shape(x)
    (channel,) = _channel(node, shape)
    axes = tuple(k for k in range(1, len(shape)) if k != channel)
    return standardised(x, axes, node.params["epsilon"])


def _group(node: Node, x: Entry) -> Entry:
    """Source: Wu and He, Group Normalization, equation 7: channels c of a group are neighbours."""
    shape = known_shape(x)
    (channel,) = _channel(node, shape)
    each = divide_exactly(shape[channel], groups := node.params["groups"])
    assert each is not None
    split = (*shape[:channel], groups, each, *shape[channel + 1 :])
    axes = tuple(k for k in range(1, len(split)) if k != channel)
    out = standardised(make("reshape", x, shape=split), axes, node.params["epsilon"])
    return make("reshape", out, shape=shape)


def _grouped(node: Node, shape: Shape) -> tuple[int, ...]:
    """The channels, once the groups are known to divide them."""
    (channel,) = _channel(node, shape)
    groups = node.params["groups"]
    fits = isinstance(groups, int) and not isinstance(groups, bool) and groups > 0
    if not fits or divide_exactly(shape[channel], groups) is None:
        raise ShapeError(
            f"{node.where} needs groups that divide {shape[channel]} channels, got {groups!r}"
        )
    return (channel,)


AFFINE = {"scale": True, "center": True}
norm(
    "rms_norm",
    _rms,
    _along_axis,
    "x divided by the root of its mean square along axis, times gamma",
    {"axis": -1, "epsilon": 1e-6, "scale": True},
)
norm(
    "instance_norm",
    _instance,
    _channel,
    "each channel of each example with mean 0 and variance 1, times gamma, plus beta",
    {"channel_axis": -1, "epsilon": 1e-5, **AFFINE},
)
norm(
    "group_norm",
    _group,
    _grouped,
    "each group of channels of each example with mean 0 and variance 1, times gamma, plus beta",
    {"groups": 32, "channel_axis": -1, "epsilon": 1e-5, **AFFINE},
)


# lengths


def _l2_normalize(node: Node, x: Entry) -> Entry:
    """Source: TensorFlow's l2_normalize: epsilon is below the sum of squares."""
    axes = normalize_axes(node, len(known_shape(x)), node.params["axis"])
    total = make("reduce_sum", x * x, axis=axes, keepdims=True)
    epsilon = float(node.params["epsilon"])
    if not epsilon >= 0:
        raise GraphError(f"{node.where} needs epsilon >= 0, got {epsilon}")
    return x * make("rsqrt", make("maximum", total, epsilon))


def _clip_by_norm(node: Node, x: Entry) -> Entry:
    """Shorter vectors stay, bit by bit."""
    axes = normalize_axes(node, len(known_shape(x)), node.params["axis"])
    most = float(node.params["clip_norm"])
    total = make("reduce_sum", x * x, axis=axes, keepdims=True)
    over = total > most * most
    factor = make("rsqrt", make("where", over, total, 1.0)) * most
    return make("where", over, x * factor, x)


def _squares(xs: tuple[Entry, ...]) -> Entry:
    total = make("reduce_sum", xs[0] * xs[0])
    for x in xs[1:]:
        total = total + make("reduce_sum", x * x)
    return total


def _some_floats(node: Node, *dtypes: DType) -> DType:
    if not dtypes:
        raise ShapeError(f"{node.where} needs one input or more, got {len(dtypes)}")
    return common_dtype("f")(node, *dtypes)  # type: ignore[no-any-return]


def _global_norm(node: Node, *xs: Entry) -> Entry:
    return make("sqrt", _squares(xs))


def _clip_by_global_norm(node: Node, norm: Entry, x: Entry) -> Entry:
    """Source: Pascanu, Mikolov and Bengio, On the Difficulty of Training RNNs, algorithm 1."""
    most = float(node.params["clip_norm"])
    return x * (most / make("maximum", norm, most))


composite(
    "l2_normalize",
    1,
    _l2_normalize,
    "x divided by its length along axis; a sum of squares below epsilon counts as epsilon",
    {"axis": -1, "epsilon": 1e-12},
)
composite(
    "clip_by_norm",
    1,
    _clip_by_norm,
    "x, shortened to length clip_norm along axis where it is longer",
    {"clip_norm": 1.0, "axis": None},
)
composite(
    "global_norm",
    -1,
    _global_norm,
    "the length of all inputs as one vector",
    types=_some_floats,
)
composite(
    "scale_by_global_norm",
    ["norm", "x"],
    _clip_by_global_norm,
    "x times clip_norm / norm where that is below 1; global_norm gives the norm of all gradients",
    {"clip_norm": 1.0},
)
