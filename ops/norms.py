"""Normalization: batch, instance, group and RMS norms, and scaling by the length of a vector.

``layer_norm`` is in `passkit.ops.nn`. As there, the parameters ``scale`` and ``center`` of
``rms_norm``, ``instance_norm`` and ``group_norm`` say whether there are inputs gamma and beta;
those that a call leaves out become variables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from passkit.errors import GraphError, ShapeError, nearest
from passkit.graph.infer import agree, show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.ops.composites import composite
from passkit.ops.helpers import common_dtype, make, normalize_axes, normalize_axis
from passkit.ops.layouts import as_dtype, widened
from passkit.values.dtype import DType
from passkit.values.size import Extent, Shape, divide_exactly, numel

AxesRule = Callable[[Node, Shape], tuple[int, ...]]
"""Returns the axes of the data, of the given shape, along which gamma and beta lie."""


# Norms with optional inputs gamma and beta.


def input_names(params: Mapping[str, Any]) -> list[str]:
    """Return the input names of a norm: data, then gamma and beta if the parameters ask for them.

    Args:
        params: ``scale`` asks for gamma, ``center``, which may be missing, for beta.
    """
    names = ["data"]
    if params["scale"]:
        names.append("gamma")
    if params.get("center", False):
        names.append("beta")
    return names


def apply_gamma_and_beta(
    node: Node, normalized: Entry, vectors: tuple[Entry, ...], axes: tuple[int, ...]
) -> Entry:
    """Return ``normalized`` times gamma plus beta, as far as there are these.

    Args:
        node: A node of a norm; its parameters say which of the two there are. Without both, the
            result is ``normalized`` itself.
        normalized: Data of any shape.
        vectors: Gamma and beta, as far as there are any; their axes are ``axes`` of the data.
        axes: Axes of the data, sorted.

    Raises: ShapeError if a rank is unknown, or gamma or beta does not fit.
    """
    shape = known_shape(normalized)
    trailing = axes == tuple(range(len(shape) - len(axes), len(shape)))
    aligned_shape = tuple(n if k in axes else 1 for k, n in enumerate(shape))
    for name, value in zip(input_names(node.params)[1:], vectors, strict=True):
        aligned = value if trailing else make("reshape", value, shape=aligned_shape)
        normalized = normalized * aligned if name == "gamma" else normalized + aligned
    return normalized


def register_norm(
    name: str, expand: Any, axes: AxesRule, doc: str, params: Mapping[str, Any]
) -> None:
    """Register a composite that normalizes data, with optional inputs gamma and beta.

    Args:
        name: The operator's name.
        expand: Called as ``expand(node, data)``, returns the normalized data without gamma, beta.
        axes: Returns the axes of the data that gamma and beta have the lengths of.
        doc: The operator's documentation.
        params: The parameters and their defaults; ``scale``, and ``center`` if there is a beta.

    Raises:
        RegistryError: If an operator of that name has other numbers of inputs or outputs, or an
            attribute of it was set elsewhere.
        ArgumentError: If ``name`` is no identifier.
    """

    def infer_shape(node: Node, data: Shape | None, *vectors: Shape | None) -> Shape | None:
        """Infer the shape, that of the data; None where its rank is unknown.

        ``vectors`` are the shapes of gamma and beta, as far as the parameters ask for them; None
        where unknown. ``node`` has the parameters of the norm.

        Raises: ShapeError if there are more or fewer inputs, or gamma, beta or a parameter does not
        fit the data.
        """
        names = input_names(node.params)
        if len(vectors) + 1 != len(names):
            raise ShapeError(
                f"{node.where} takes {', '.join(names)}, got {len(vectors) + 1} inputs"
            )
        if data is None:
            return None
        expected = tuple(data[k] for k in axes(node, data))
        for vector_name, shape in zip(names[1:], vectors, strict=True):
            if shape is not None and len(shape) != len(expected):
                raise ShapeError(
                    f"{node.where} needs {vector_name} of shape {show_shape(expected)}, got "
                    f"{show_shape(shape)}"
                )
            for a, b in zip(shape or (), expected, strict=False):
                agree(node, a, b, f"the lengths of {vector_name} and of the axes it lies along")
        return data

    def infer_back(node: Node, shapes: Any, outs: Any) -> list[Shape | None]:
        """Infer missing shapes of inputs: data from the output, gamma and beta from the data.

        ``shapes`` and ``outs`` are the shapes of inputs and outputs, None where unknown, as in the
        result. ``node`` has the parameters of the norm.

        Raises: ShapeError if the parameters do not fit the data.
        """
        data = shapes[0] if shapes[0] is not None else outs[0]
        if data is None:
            return list(shapes)
        expected = tuple(data[k] for k in axes(node, data))
        return [data, *(expected if s is None else s for s in shapes[1:])]

    def expand_affine(node: Node, x: Entry, *vectors: Entry) -> Entry:
        """Normalize the data ``x``, and apply gamma and beta, the ``vectors``.

        ``node`` has the parameters of the norm.

        Raises: ShapeError if a rank is unknown, or a vector or parameter does not fit.
        """
        normalized = expand(node, x)
        return apply_gamma_and_beta(node, normalized, vectors, axes(node, known_shape(x)))

    infer_shape.__dict__["partial"] = True  # shapes of gamma and beta may be inferred backwards
    composite(
        name,
        inputs=-1,
        expand=expand_affine,
        doc=doc,
        params=params,
        shape=infer_shape,
        FListInputNames=input_names,
        FInferShapeBack=infer_back,
    )


def standardize(x: Entry, axes: tuple[int, ...], epsilon: float) -> Entry:
    """Return ``x`` with mean 0 and variance 1 along ``axes``; epsilon is added to the variance.

    Raises: ShapeError if an axis is out of range or listed twice.
    """
    deviation = x - make("reduce_mean", x, axis=axes, keepdims=True)
    variance = make("reduce_mean", deviation * deviation, axis=axes, keepdims=True)
    return deviation * make("rsqrt", variance + epsilon)


def _normalized_axes(node: Node, shape: Shape) -> tuple[int, ...]:
    """Return the parameter ``axis`` of ``node`` as sorted axes of data of ``shape``, from 0 on.

    None is all axes.

    Raises: ShapeError if it is neither None nor an int or ints, out of range, or has an axis twice.
    """
    return normalize_axes(node, len(shape), node.params["axis"])


def _channel_axis(node: Node, shape: Shape) -> tuple[int, ...]:
    """Return the parameter ``channel_axis`` for data of ``shape``, as a tuple of one axis.

    ``node`` has the parameter ``channel_axis``, one int; a negative one counts from the end.

    Raises:
        ShapeError: If it is axis 0, which is that of the examples, no int or out of range.
    """
    axis = normalize_axis(node, len(shape), node.params["channel_axis"], "channel_axis")
    if axis == 0:
        raise ShapeError(
            f"{node.where} needs a channel_axis behind axis 0, that of the examples, got "
            f"{node.params['channel_axis']} of {show_shape(shape)}"
        )
    return (axis,)


def _divided_channel_axis(node: Node, shape: Shape) -> tuple[int, ...]:
    """Return the axis of channels of data of ``shape``, as the only element of a tuple.

    ``node`` has the parameters ``channel_axis`` and ``groups``.

    Raises: ShapeError unless ``groups`` is an int > 0 that divides the number of channels, and
    ``channel_axis`` an axis other than 0.
    """
    (channel,) = _channel_axis(node, shape)
    groups = node.params["groups"]
    is_positive = isinstance(groups, int) and not isinstance(groups, bool) and groups > 0
    if not is_positive or divide_exactly(shape[channel], groups) is None:
        raise ShapeError(
            f"{node.where} needs groups that divide {shape[channel]} channels, got {groups!r}"
        )
    return (channel,)


def _rms_norm(node: Node, x: Entry) -> Entry:
    """Expand rms_norm without gamma: divide ``x`` by the root of the mean square along ``axis``.

    ``epsilon`` is added to the mean square. Source: Zhang and Sennrich, Root Mean Square Layer
    Normalization, equation 4. ``node`` has the parameters ``axis`` and ``epsilon``.

    Raises: ShapeError if the axis is out of range, no int or listed twice, or the rank is unknown.
    """
    axes = _normalized_axes(node, known_shape(x))
    mean_square = make("reduce_mean", x * x, axis=axes, keepdims=True)
    return x * make("rsqrt", mean_square + node.params["epsilon"])


def _instance_norm(node: Node, x: Entry) -> Entry:
    """Expand instance_norm: standardize each channel of each example.

    Axis 0 of ``x`` is that of examples, ``channel_axis`` that of channels. Source: Ulyanov, Vedaldi
    and Lempitsky, Instance Normalization, equation 2. ``node`` has the parameters ``channel_axis``
    and ``epsilon``.

    Raises: ShapeError if ``channel_axis`` is 0 or no axis, or the rank is unknown.
    """
    shape = known_shape(x)
    (channel,) = _channel_axis(node, shape)
    axes = tuple(k for k in range(1, len(shape)) if k != channel)
    return standardize(x, axes, node.params["epsilon"])


def _group_norm(node: Node, x: Entry) -> Entry:
    """Expand group_norm: standardize each group of neighbouring channels of an example.

    ``groups``, their number, must divide the channels, which FInferShape checks. Source: Wu and He,
    Group Normalization, equation 7. ``node`` has the parameters ``channel_axis``, ``epsilon`` and
    ``groups``.

    Raises: ShapeError if ``channel_axis`` is 0 or no axis, or the rank is unknown.
    """
    shape = known_shape(x)
    (channel,) = _channel_axis(node, shape)
    groups = node.params["groups"]
    group_size = divide_exactly(shape[channel], groups)
    assert group_size is not None
    split_shape = (*shape[:channel], groups, group_size, *shape[channel + 1 :])
    axes = tuple(k for k in range(1, len(split_shape)) if k != channel)
    out = standardize(make("reshape", x, shape=split_shape), axes, node.params["epsilon"])
    return make("reshape", out, shape=shape)


register_norm(
    "rms_norm",
    expand=_rms_norm,
    axes=_normalized_axes,
    doc="data divided by the root of its mean square along axis, times gamma",
    params={"axis": -1, "epsilon": 1e-6, "scale": True},
)
register_norm(
    "instance_norm",
    expand=_instance_norm,
    axes=_channel_axis,
    doc="data normalized to mean 0 and variance 1 in each channel of each example, times gamma, "
    "plus beta",
    params={"channel_axis": -1, "epsilon": 1e-5, "scale": True, "center": True},
)
register_norm(
    "group_norm",
    expand=_group_norm,
    axes=_divided_channel_axis,
    doc="data normalized to mean 0 and variance 1 in each group of channels of each example, "
    "times gamma, plus beta",
    params={"groups": 32, "channel_axis": -1, "epsilon": 1e-5, "scale": True, "center": True},
)


# Batch normalization: inference, training with the statistics of the batch, TensorFlow's form.


def _check_channel_vectors(node: Node, x: Shape, *vectors: Shape) -> int:
    """Return the channel axis of ``x``, the shape of data: the parameter ``axis`` of ``node``.

    Raises:
        ShapeError: If one of ``vectors``, shapes of scales or statistics, does not have one element
            for each channel, or the axis is no int or out of range.
    """
    axis = normalize_axis(node, len(x), node.params["axis"])
    for k, shape in enumerate(vectors):
        if len(shape) != 1:
            raise ShapeError(
                f"{node.where} needs a vector with an element for each channel as input {k + 1}, "
                f"got {show_shape(shape)}"
            )
        agree(node, x[axis], shape[0], "channels of the data and of its statistics")
    return axis


def _align_vector(v: Entry, rank: int, axis: int) -> Entry:
    """Return the vector ``v`` reshaped to broadcast along ``axis`` of data of rank ``rank``.

    Raises: ShapeError if a rank is unknown.
    """
    shape = tuple(known_shape(v)[0] if k == axis else 1 for k in range(rank))
    return make("reshape", v, shape=shape)


def _scale_and_shift(x: Entry, mean: Entry, factor: Entry, offset: Entry, axis: int) -> Entry:
    """Return (x - mean) * factor + offset, for vectors along ``axis`` of ``x``.

    The mean is subtracted first: to fold it into the offset would cancel where it is large.

    Raises: ShapeError if a rank is unknown.
    """
    rank = len(known_shape(x))
    m, f, o = (_align_vector(v, rank, axis) for v in (mean, factor, offset))
    return (x - m) * f + o


def _batch_norm(node: Node, *inputs: Entry) -> Entry:
    """Expand batch_norm: (x - mean) * factor + offset, factor = scale / sqrt(variance + epsilon).

    ``inputs`` are data and the vectors scale, offset, mean and variance. The factor is a vector, so
    that the data needs one multiplication and two additions. ``node`` has the parameters ``axis``
    and ``epsilon``.

    Raises: ShapeError if a vector does not have one element for each channel along ``axis``, that
    is no int or out of range, or a rank is unknown.
    """
    shapes = [known_shape(e) for e in inputs]
    axis = _check_channel_vectors(node, shapes[0], *shapes[1:])
    x, scale, offset, mean, variance = map(widened, inputs)
    factor = scale * make("rsqrt", variance + node.params["epsilon"])
    return as_dtype(_scale_and_shift(x, mean, factor, offset, axis), inputs[0])


def _batch_norm_training(node: Node, *inputs: Entry) -> tuple[Entry, ...]:
    """Expand batch_norm_training to the normalized data, running mean and running variance.

    ``inputs`` are data and the vectors scale, offset, running mean and running variance. Running
    statistics become ``running * momentum + batch * (1 - momentum)``, and with a momentum of 0
    those of the batch, even where the old ones are NaN. The running variance is updated with the
    unbiased variance of the batch. Source: Ioffe and Szegedy 2015, Batch Normalization. ``node``
    has the parameters ``axis``, ``epsilon`` and ``momentum``.

    Raises: ShapeError if a vector does not have one element for each channel along ``axis``, that
    is no int or out of range, or a rank is unknown.
    """
    shapes = [known_shape(e) for e in inputs]
    axis = _check_channel_vectors(node, shapes[0], *shapes[1:])
    x, scale, offset, *running = map(widened, inputs)
    mean, variance = _batch_statistics(inputs[0], axis)
    factor = scale * make("rsqrt", variance + node.params["epsilon"])
    y = as_dtype(_scale_and_shift(x, mean, factor, offset, axis), inputs[0])
    count = numel([n for k, n in enumerate(shapes[0]) if k != axis])
    unbiased = variance * _bessel_correction(count, variance)
    momentum = float(node.params["momentum"])
    updated = [
        old * momentum + new * (1.0 - momentum) if momentum else new
        for old, new in zip(running, (mean, unbiased), strict=True)
    ]
    return y, *(as_dtype(e, inputs[3]) for e in updated)


def _batch_statistics(data: Entry, axis: int) -> tuple[Entry, Entry]:
    """Return mean and variance of each channel along ``axis``, two vectors.

    They are computed in one pass over the data, in float32 for floats of 16 bits. Moments are taken
    of the difference to the channel's first element, so that little cancels.

    Raises: ShapeError if another axis of the data is empty, or the rank is unknown.
    """
    shape = known_shape(data)
    axes = tuple(k for k in range(len(shape)) if k != axis)
    size = tuple(n if k == axis else 1 for k, n in enumerate(shape))
    first = widened(make("slice", data, begin=(0,) * len(shape), size=size))
    difference = widened(data) - first
    mean_difference = make("reduce_mean", difference, axis=axes)
    mean_square = make("reduce_mean", difference * difference, axis=axes)
    variance = mean_square - mean_difference * mean_difference
    mean = mean_difference + make("reshape", first, shape=(shape[axis],))
    return mean, make("maximum", variance, 0.0)


def _bessel_correction(count: Extent, like: Entry) -> Any:
    """Return n / (n - 1), the ratio of unbiased to biased variance; 1 for a single element.

    Args:
        count: N, the number of elements of a channel.
        like: The shape and dtype of the result, where ``count`` is a size that a call decides.

    Returns:
        A float for an int, 0.0 if that is 0; an entry for a Size.
    """
    if isinstance(count, int):
        return count / max(count - 1, 1)
    reciprocal = make("div_by_size", make("ones_like", like), size=count)
    return make("where", reciprocal < 1.0, 1.0 / (1.0 - reciprocal), 1.0)


composite(
    "batch_norm",
    inputs=["input", "scale", "offset", "mean", "variance"],
    expand=_batch_norm,
    doc="(input - mean) / sqrt(variance + epsilon) * scale + offset with a number for each "
    "channel, in the shape of input",
    params={"epsilon": 1e-3, "axis": -1},
    aliases="batch_normalization_inference",
)
composite(
    "batch_norm_training",
    inputs=["input", "scale", "offset", "running_mean", "running_variance"],
    expand=_batch_norm_training,
    doc="batch_norm with the statistics of the batch. Three results: the normalized input, and "
    "the new running mean and variance, momentum * old + (1 - momentum) * batch",
    params={"epsilon": 1e-3, "axis": -1, "momentum": 0.99},
    results=3,
)


IMAGE_FORMATS = ("NHWC", "NDHWC", "NCHW", "NCDHW")
"""The data formats of ``fused_batch_norm``, whatever the rank of its data."""


def _fused_batch_norm(node: Node, *inputs: Entry) -> tuple[Entry, ...]:
    """Expand fused_batch_norm to y, mean and variance of each channel.

    These are the statistics of the batch or, in inference, the given ones. Without
    ``exponential_avg_factor`` of 1 those of the batch are mixed with the given ones, which have the
    weight 1 less it. Source: tf.nn.fused_batch_norm. ``node`` has the parameters ``data_format``,
    ``epsilon``, ``exponential_avg_factor`` and ``is_training``; the format says only whether
    channels are axis 1 or the last.

    Raises:
        GraphError: If ``data_format`` is none of `IMAGE_FORMATS`.
        ShapeError: If a vector does not have one element for each channel, the data is of rank 0,
            or of rank 1 with channels second, or a rank is unknown.
    """
    data_format = node.params["data_format"]
    if data_format not in IMAGE_FORMATS:
        raise GraphError(
            f"{node.where} has no data_format {data_format!r}; "
            f"{nearest(data_format, IMAGE_FORMATS)}"
        )
    axis = 1 if data_format[1] == "C" else len(known_shape(inputs[0])) - 1
    epsilon = node.params["epsilon"]
    if not node.params["is_training"]:
        y = make("batch_norm", *inputs, epsilon=epsilon, axis=axis)
        return y, make("identity", inputs[3]), make("identity", inputs[4])
    momentum = 1.0 - node.params["exponential_avg_factor"]
    return tuple(
        make("batch_norm_training", *inputs, epsilon=epsilon, axis=axis, momentum=momentum)
    )


composite(
    "fused_batch_norm",
    inputs=["x", "scale", "offset", "mean", "variance"],
    expand=_fused_batch_norm,
    doc="batch_norm as TensorFlow's FusedBatchNorm. Three results: the normalized input, and the "
    "mean and variance of each channel",
    params={
        "epsilon": 1e-3,
        "data_format": "NHWC",
        "is_training": True,
        "exponential_avg_factor": 1.0,
    },
    results=3,
)


# Lengths of vectors: L2 normalization and clipping.


def _l2_normalize(node: Node, x: Entry) -> Entry:
    """Expand l2_normalize along ``axis``: the sum of squares counts as ``epsilon`` or more.

    ``node`` has the parameters ``axis``, one or several axes or None for all, and ``epsilon``.

    Source: tf.math.l2_normalize.

    Raises:
        ShapeError: If the axis is out of range, no int or listed twice, or the rank is unknown.
        GraphError: If ``epsilon`` is below 0 or NaN.
    """
    axes = normalize_axes(node, len(known_shape(x)), node.params["axis"])
    total = make("reduce_sum", x * x, axis=axes, keepdims=True)
    epsilon = float(node.params["epsilon"])
    if not epsilon >= 0:
        raise GraphError(f"{node.where} needs epsilon >= 0, got {epsilon}")
    return x * make("rsqrt", make("maximum", total, epsilon))


def _clip_norm_param(node: Node) -> float:
    """Return the parameter ``clip_norm`` of ``node``, a number, as a float.

    Raises: GraphError if it is below 0 or NaN.
    """
    limit = float(node.params["clip_norm"])
    if not limit >= 0:
        raise GraphError(f"{node.where} needs clip_norm >= 0, got {limit}")
    return limit


def _clip_by_norm(node: Node, x: Entry) -> Entry:
    """Expand clip_by_norm: scale vectors along ``axis`` that are longer than ``clip_norm`` to it.

    Others keep their bits. ``node`` has the parameters ``axis``, one or several axes or None for
    all, and ``clip_norm``.

    Raises: ShapeError if the axis is out of range, no int or listed twice, or the rank is unknown;
    GraphError if ``clip_norm`` is below 0 or NaN.
    """
    axes = normalize_axes(node, len(known_shape(x)), node.params["axis"])
    limit = _clip_norm_param(node)
    total = make("reduce_sum", x * x, axis=axes, keepdims=True)
    too_long = total > limit * limit
    factor = make("rsqrt", make("where", too_long, total, 1.0)) * limit
    return make("where", too_long, x * factor, x)


def _global_norm_dtype(node: Node, *dtypes: DType) -> DType:
    """Infer the dtype of global_norm, that of all inputs.

    Raises: ShapeError, naming ``node``, if there are no inputs, DTypeError if they differ or are no
    floats.
    """
    if not dtypes:
        raise ShapeError(f"{node.where} needs one input or more, got {len(dtypes)}")
    return common_dtype("f")(node, *dtypes)  # type: ignore[no-any-return]


def _global_norm(node: Node, *xs: Entry) -> Entry:
    """Expand global_norm: the root of the sum of squares of all inputs, one or more.

    ``node`` is not used.
    """
    total = make("reduce_sum", xs[0] * xs[0])
    for x in xs[1:]:
        total = total + make("reduce_sum", x * x)
    return make("sqrt", total)


def _scale_by_global_norm(node: Node, norm: Entry, x: Entry) -> Entry:
    """Expand scale_by_global_norm: x * clip_norm / max(norm, clip_norm), for the scalar ``norm``.

    That ``norm`` is a scalar is not checked. ``node`` has the parameter ``clip_norm``.

    Source: Pascanu, Mikolov and Bengio, On the Difficulty of Training RNNs, algorithm 1.

    Raises: GraphError if ``clip_norm`` is below 0 or NaN, ShapeError if the shapes do not
    broadcast.
    """
    limit = _clip_norm_param(node)
    return x * (limit / make("maximum", norm, limit))


composite(
    "l2_normalize",
    inputs=1,
    expand=_l2_normalize,
    doc="x divided by its L2 norm along axis; a sum of squares below epsilon counts as epsilon",
    params={"axis": -1, "epsilon": 1e-12},
)
composite(
    "clip_by_norm",
    inputs=1,
    expand=_clip_by_norm,
    doc="x scaled down along axis to the L2 norm clip_norm, where its norm is larger",
    params={"clip_norm": 1.0, "axis": None},
)
composite(
    "global_norm",
    inputs=-1,
    expand=_global_norm,
    doc="the square root of the sum of squares of all elements of all inputs, a scalar",
    types=_global_norm_dtype,
)
composite(
    "scale_by_global_norm",
    inputs=["norm", "x"],
    expand=_scale_by_global_norm,
    doc="x * min(1, clip_norm / norm), where norm is the result of global_norm",
    params={"clip_norm": 1.0},
)
