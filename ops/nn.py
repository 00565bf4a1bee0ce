"""Softmax, logsumexp, variance, layer norm and activations, as composites of primitives.

They expand to primitives, so they fuse with their neighbours.
"""

from __future__ import annotations

from math import inf, pi, sqrt
from typing import Any

from passkit.errors import GraphError, ShapeError
from passkit.graph.infer import agree, show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.ops.composites import composite
from passkit.ops.helpers import first_shape, make, normalize_axes
from passkit.ops.reduce import broadcast_back, nonempty_shape, reduced_shape
from passkit.values.size import Shape, numel

# Softmax and reductions.


def _softmax_shape(node: Node, shape: Shape) -> Shape:
    """Infer the shape, ``shape`` of the input; check the parameter ``axis`` of ``node``.

    Raises: ShapeError if it is neither None nor an int or ints, out of range, or has an axis twice.
    """
    normalize_axes(node, len(shape), node.params["axis"])
    return shape


def _softmax(node: Node, x: Entry) -> Entry:
    """Expand softmax as exp(x - max(x)) / sum(exp(x - max(x))), which cannot overflow.

    Maxima and sums are along the parameter ``axis`` of ``node``, None for all. ``x`` is returned
    itself if it is known to be empty.

    Raises: ShapeError if a rank is unknown, or the axis out of range, no int or listed twice.
    """
    if numel(known_shape(x)) == 0:
        return x
    axis = node.params["axis"]
    exponentials = make("exp", x - make("reduce_max", x, axis=axis, keepdims=True))
    return exponentials / make("reduce_sum", exponentials, axis=axis, keepdims=True)


def _softmax_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradient of x: (dy - sum(dy * y)) * y along ``axis``, for the result y.

    ``node`` is the forward node, with the parameter ``axis``; ``dy`` is the gradient of its output.
    """
    y = node.entries[0]
    total = make("reduce_sum", dy * y, axis=node.params["axis"], keepdims=True)
    return [(dy - total) * y]


def _log_softmax(node: Node, x: Entry) -> Entry:
    """Expand log_softmax as d - log(sum(exp(d))) with d = x - max(x), along the parameter ``axis``.

    ``x`` is returned itself if it is known to be empty. ``node`` has the parameter ``axis``, None
    for all axes.

    Raises: ShapeError if a rank is unknown, or the axis out of range, no int or listed twice.
    """
    if numel(known_shape(x)) == 0:
        return x
    axis = node.params["axis"]
    shifted = x - make("reduce_max", x, axis=axis, keepdims=True)
    total = make("reduce_sum", make("exp", shifted), axis=axis, keepdims=True)
    return shifted - make("log", total)


def _log_softmax_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradient of x: dy - softmax(x) * sum(dy), along the parameter ``axis``.

    ``node`` is the forward node, with the parameter ``axis``; ``dy`` is the gradient of its output.
    """
    total = make("reduce_sum", dy, axis=node.params["axis"], keepdims=True)
    return [dy - make("exp", node.entries[0]) * total]


def _logsumexp(node: Node, x: Entry) -> Entry:
    """Expand logsumexp as log(sum(exp(x - max(x)))) + max(x), along the parameter ``axis``.

    None is all axes; they are kept with length 1 if ``keepdims``. An infinite maximum is not
    subtracted, since inf - inf is NaN. ``node`` has the parameters ``axis`` and ``keepdims``.

    Raises: ShapeError for an axis that is out of range, no int, listed twice or empty, and without
    ``keepdims`` for an unknown rank.
    """
    axis, keepdims = node.params["axis"], node.params["keepdims"]
    largest = make("reduce_max", x, axis=axis, keepdims=True)
    shift = make("where", make("abs", largest) < inf, largest, 0.0)
    total = make("reduce_sum", make("exp", x - shift), axis=axis, keepdims=keepdims)
    if not keepdims:
        shift = make("reshape", shift, shape=known_shape(total))
    return make("log", total) + shift


def _logsumexp_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradient of x: dy * softmax(x).

    ``node`` is the forward node, with the parameters ``axis`` and ``keepdims``; ``dy`` is the
    gradient of its output.

    Raises: ShapeError if a rank is unknown, or a parameter is invalid.
    """
    softmax = make("exp", node.inputs[0] - broadcast_back(node, node.entries[0]))
    return [broadcast_back(node, dy) * softmax]


def _variance(node: Node, x: Entry) -> Entry:
    """Expand reduce_variance as the mean squared deviation: two reductions, no cancellation.

    They are along the parameter ``axis`` of ``node``, None for all axes, which ``keepdims`` keeps
    with length 1. It is NaN of no elements.

    Raises: ShapeError if it is out of range, no int or ints, or has an axis twice.
    """
    axis = node.params["axis"]
    deviation = x - make("reduce_mean", x, axis=axis, keepdims=True)
    return make("reduce_mean", deviation * deviation, axis=axis, keepdims=node.params["keepdims"])


composite(
    "softmax",
    inputs=1,
    expand=_softmax,
    doc="exp(x) divided by its sum along axis, in the shape of x",
    params={"axis": -1},
    shape=_softmax_shape,
    FGradient=_softmax_gradient,
)
composite(
    "log_softmax",
    inputs=1,
    expand=_log_softmax,
    doc="the logarithm of softmax along axis, in the shape of x",
    params={"axis": -1},
    shape=_softmax_shape,
    FGradient=_log_softmax_gradient,
)
composite(
    "logsumexp",
    inputs=1,
    expand=_logsumexp,
    doc="log(sum(exp(x))) over axis",
    params={"axis": None, "keepdims": False},
    shape=nonempty_shape,
    aliases="reduce_logsumexp",
    FGradient=_logsumexp_gradient,
)
composite(
    "reduce_variance",
    inputs=1,
    expand=_variance,
    doc="the mean squared distance to the mean over axis",
    params={"axis": None, "keepdims": False},
    shape=reduced_shape,
    aliases="variance",
)


# Activations.


def _gelu_shape(node: Node, shape: Shape) -> Shape:
    """Infer the shape, ``shape`` of the input; check the parameter ``approximate`` of ``node``.

    Raises: GraphError if it is neither 'none', 'tanh' nor 'sigmoid'.
    """
    if node.params["approximate"] not in ("none", "tanh", "sigmoid"):
        raise GraphError(
            f"{node.where} needs 'none', 'tanh' or 'sigmoid' as approximate, got "
            f"{node.params['approximate']!r}"
        )
    return shape


def _gelu(node: Node, x: Entry) -> Entry:
    """Expand gelu: x times the normal distribution function, or an approximation of it.

    The parameter ``approximate`` of ``node`` is 'none', 'tanh' or 'sigmoid'. Source: Hendrycks and
    Gimpel, Gaussian Error Linear Units, section 2.
    """
    approximation = node.params["approximate"]
    if approximation == "tanh":
        inner = (x + x * x * x * 0.044715) * sqrt(2 / pi)
        return x * 0.5 * (make("tanh", inner) + 1.0)
    if approximation == "sigmoid":
        return x * make("sigmoid", x * 1.702)
    return x * 0.5 * (make("erf", x * sqrt(0.5)) + 1.0)


composite(
    "gelu",
    inputs=1,
    expand=_gelu,
    doc="x times the normal distribution function of x",
    params={"approximate": "none"},
    shape=_gelu_shape,
)
composite(
    "silu",
    inputs=1,
    expand=lambda node, x: x * make("sigmoid", x),
    doc="x * sigmoid(x)",
    shape=first_shape,
)


# Layer norm.


def _layer_norm_inputs(params: Any) -> list[str]:
    """Return the input names: data, gamma if ``params["scale"]``, beta if ``params["center"]``."""
    names = ["data"]
    if params["scale"]:
        names.append("gamma")
    if params["center"]:
        names.append("beta")
    return names


def _normalized_shape(node: Node, shape: Shape) -> Shape:
    """Return the extents of the normalized axes of ``shape``, which is the shape of gamma and beta.

    They are in increasing order of the axes; an ``axis`` of None is all of them.

    Raises: ShapeError if the parameter ``axis`` of ``node`` is neither None nor an int or ints, out
    of range, or has an axis twice.
    """
    return tuple(shape[k] for k in normalize_axes(node, len(shape), node.params["axis"]))


def _layer_norm_shape(node: Node, data: Shape | None, *vectors: Shape | None) -> Shape | None:
    """Infer the shape, that of the data; None where its rank is unknown.

    ``vectors`` are the shapes of gamma and beta as far as there are such inputs, None where
    unknown.

    Raises:
        ShapeError: If there are more or fewer inputs, gamma or beta has another shape than the axes
            of the parameter ``axis`` of ``node``, or that is out of range, no int or listed twice.
    """
    names = _layer_norm_inputs(node.params)
    if len(vectors) + 1 != len(names):
        raise ShapeError(f"{node.where} takes {', '.join(names)}, got {len(vectors) + 1} inputs")
    if data is None:
        return None
    expected = _normalized_shape(node, data)
    for name, shape in zip(names[1:], vectors, strict=True):
        if shape is None:
            continue
        if len(shape) != len(expected):
            raise ShapeError(
                f"{node.where} needs {name} of shape {show_shape(expected)}, got "
                f"{show_shape(shape)}"
            )
        for a, b in zip(shape, expected, strict=True):
            agree(node, a, b, f"the lengths of {name} and of the normalised axes")
    return data


def _layer_norm_back(node: Node, shapes: Any, outs: Any) -> list[Shape | None]:
    """Infer the shapes of inputs: data from the output, gamma and beta from the data.

    ``shapes`` and ``outs`` are the shapes of inputs and outputs, None where unknown, as in the
    result.

    Raises: ShapeError if the parameter ``axis`` of ``node`` does not fit the data.
    """
    data = shapes[0] if shapes[0] is not None else outs[0]
    if data is None:
        return list(shapes)
    expected = _normalized_shape(node, data)
    return [data, *(expected if s is None else s for s in shapes[1:])]


def _layer_norm(node: Node, x: Entry, *vectors: Entry) -> Entry:
    """Expand layer_norm of ``x`` along the parameter ``axis`` of ``node``, one or several axes.

    ``vectors`` are gamma and beta, as far as ``scale`` and ``center`` ask for them. Source: Ba,
    Kiros and Hinton, Layer Normalization, equation 4.

    Raises: ShapeError if ``axis`` is out of range, no int or listed twice, the rank of ``x`` is
    unknown, or gamma or beta does not fit.
    """
    shape = known_shape(x)
    axes = normalize_axes(node, len(shape), node.params["axis"])
    deviation = x - make("reduce_mean", x, axis=axes, keepdims=True)
    variance = make("reduce_mean", deviation * deviation, axis=axes, keepdims=True)
    out = deviation * make("rsqrt", variance + node.params["epsilon"])
    trailing = axes == tuple(range(len(shape) - len(axes), len(shape)))
    aligned_shape = tuple(n if k in axes else 1 for k, n in enumerate(shape))
    for name, value in zip(_layer_norm_inputs(node.params)[1:], vectors, strict=True):
        aligned = value if trailing else make("reshape", value, shape=aligned_shape)
        out = out * aligned if name == "gamma" else out + aligned
    return out


_layer_norm_shape.__dict__["partial"] = True  # shapes of gamma and beta may be inferred backwards
composite(
    "layer_norm",
    inputs=-1,
    expand=_layer_norm,
    doc="data normalized to mean 0 and variance 1 along axis, times gamma, plus beta, in the "
    "shape of data",
    params={"axis": -1, "epsilon": 1e-5, "scale": True, "center": True},
    shape=_layer_norm_shape,
    FListInputNames=_layer_norm_inputs,
    FInferShapeBack=_layer_norm_back,
)
