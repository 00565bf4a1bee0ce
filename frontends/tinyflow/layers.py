"""Layers: functions that make their own variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from attrs import frozen

from passkit.errors import SettingError, ShapeError
from passkit.frontends.tinyflow import arrays
from passkit.frontends.tinyflow.graphs import GraphKeys, get_default_graph
from passkit.frontends.tinyflow.initializers import ones_initializer, zeros_initializer
from passkit.frontends.tinyflow.missing import lookup
from passkit.frontends.tinyflow.nn import convolutions, sampling
from passkit.frontends.tinyflow.numbers import length, real, whole, wholes
from passkit.frontends.tinyflow.ranks import known_shape
from passkit.frontends.tinyflow.reductions import moments
from passkit.frontends.tinyflow.refusals import refuses
from passkit.frontends.tinyflow.scopes import get_variable, variable_scope
from passkit.frontends.tinyflow.tensors import Tensor, convert_to_tensor, read, scalar, wrapped
from passkit.frontends.tinyflow.variables import Variable, assign
from passkit.ops.helpers import make, size_as_entry
from passkit.values.size import Extent, numel

_ZEROS, _ONES = zeros_initializer(), ones_initializer()
LAYOUTS = {"channels_last": "NHWC", "channels_first": "NCHW"}
SEQUENCES = {"NHWC": "NWC", "NCHW": "NCW"}
"""For an order of the axes of images that of sequences."""


def _layout(where: str, data_format: str) -> str:
    if data_format not in LAYOUTS:
        raise SettingError(
            f"{where} needs {' or '.join(map(repr, LAYOUTS))} as data_format, got {data_format!r}"
        )
    return LAYOUTS[data_format]


def _ended(x: Tensor, activation: Any, activity_regularizer: Any) -> Tensor:
    """What comes last in a layer."""
    out = x if activation is None else activation(x)
    if activity_regularizer is not None:
        graph = get_default_graph()
        graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, activity_regularizer(out))
    return out


def _channel(layout: str) -> int:
    """The axis of the channels of images."""
    return 1 if layout == "NCHW" else 3


def _known(where: str, x: Tensor, axis: int) -> int:
    n = length(where, known_shape(x.entry, where), axis)
    if not isinstance(n, int):
        raise ShapeError(f"{where} needs inputs of known length along axis {axis}, got {x!r}")
    return n


@frozen
class _Own:
    """How a layer makes one of its variables."""

    initializer: Any
    regularizer: Any = None
    constraint: Any = None
    trainable: bool = True

    def variable(self, name: str, shape: Sequence[int], dtype: Any) -> Variable:
        """The variable: made, or found again where the scope is used again."""
        return get_variable(
            name, shape, dtype, self.initializer, self.regularizer, self.trainable,
            constraint=self.constraint,
        )  # fmt: skip


def _with_bias(out: Tensor, own: _Own | None, count: int, layout: str = "NHWC") -> Tensor:
    """``out`` and a number for each channel, if the layer has them."""
    if own is None:
        return out
    bias = own.variable("bias", [count], out.dtype)
    return convolutions.bias_add(out, bias, layout)


def dense(
    inputs: Any,
    units: int,
    activation: Callable[[Tensor], Tensor] | None = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = _ZEROS,
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    kernel_constraint: Any = None,
    bias_constraint: Any = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
) -> Tensor:
    """activation(inputs @ kernel + bias), over the last axis of inputs."""
    x = convert_to_tensor(inputs)
    width, units = _known("dense", x, -1), whole("dense", "units", units)
    weights = _Own(kernel_initializer, kernel_regularizer, kernel_constraint, trainable)
    biases = _Own(bias_initializer, bias_regularizer, bias_constraint, trainable)
    with variable_scope(name, "dense", reuse=reuse):
        kernel = weights.variable("kernel", [width, units], x.dtype)
        out = arrays.matmul(_rows(x), kernel)
        out = _with_bias(out, biases if use_bias else None, units)
        sizes = known_shape(x.entry)
        if len(sizes) != 2:
            out = arrays.reshape(out, [*sizes[:-1], units])
        return _ended(out, activation, activity_regularizer)


def _rows(x: Tensor) -> Tensor:
    sizes = known_shape(x.entry)
    return x if len(sizes) == 2 else arrays.reshape(x, [numel(sizes[:-1]), sizes[-1]])


def conv2d(
    inputs: Any,
    filters: int,
    kernel_size: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    data_format: str = "channels_last",
    dilation_rate: Any = (1, 1),
    activation: Callable[[Tensor], Tensor] | None = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = _ZEROS,
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    kernel_constraint: Any = None,
    bias_constraint: Any = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
) -> Tensor:
    """activation(the convolution of inputs with so many filters + bias)."""
    x, layout = convert_to_tensor(inputs), _layout("conv2d", data_format)
    channels, filters = _known("conv2d", x, _channel(layout)), whole("conv2d", "filters", filters)
    window = convolutions.spatial("conv2d", "kernel_size", kernel_size, layout)
    weights = _Own(kernel_initializer, kernel_regularizer, kernel_constraint, trainable)
    biases = _Own(bias_initializer, bias_regularizer, bias_constraint, trainable)
    with variable_scope(name, "conv2d", reuse=reuse):
        kernel = weights.variable("kernel", [*window, channels, filters], x.dtype)
        out = convolutions.conv2d(
            x, kernel, strides, padding, data_format=layout, dilations=dilation_rate
        )
        out = _with_bias(out, biases if use_bias else None, filters, layout)
        return _ended(out, activation, activity_regularizer)


def conv1d(
    inputs: Any,
    filters: int,
    kernel_size: Any,
    strides: Any = 1,
    padding: str = "valid",
    data_format: str = "channels_last",
    dilation_rate: Any = 1,
    activation: Callable[[Tensor], Tensor] | None = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = _ZEROS,
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    kernel_constraint: Any = None,
    bias_constraint: Any = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
) -> Tensor:
    """activation(the convolution of sequences with so many filters + bias)."""
    x, layout = convert_to_tensor(inputs), _layout("conv1d", data_format)
    place = 1 if layout == "NCHW" else 2
    channels, filters = _known("conv1d", x, place), whole("conv1d", "filters", filters)
    (window,) = wholes("conv1d", "kernel_size", kernel_size)
    weights = _Own(kernel_initializer, kernel_regularizer, kernel_constraint, trainable)
    biases = _Own(bias_initializer, bias_regularizer, bias_constraint, trainable)
    with variable_scope(name, "conv1d", reuse=reuse):
        kernel = weights.variable("kernel", [window, channels, filters], x.dtype)
        out = convolutions.conv1d(
            x, kernel, strides, padding, data_format=SEQUENCES[layout], dilations=dilation_rate
        )
        out = _with_bias(out, biases if use_bias else None, filters, layout)
        return _ended(out, activation, activity_regularizer)


def _pooling1d(pool: Callable[..., Tensor], where: str) -> Callable[..., Tensor]:
    def function(
        inputs: Any,
        pool_size: Any,
        strides: Any,
        padding: str = "valid",
        data_format: str = "channels_last",
        name: str | None = None,
    ) -> Tensor:
        layout = _layout(where, data_format)
        (size,), (step,) = wholes(where, "pool_size", pool_size), wholes(where, "strides", strides)
        axis = 2 if layout == "NCHW" else 1
        x = arrays.expand_dims(inputs, axis)
        out = pool(x, [1, size], [1, step], padding, layout)
        return arrays.squeeze(out, axis, name or where)

    function.__doc__ = f"{(pool.__doc__ or '').split(' under')[0]} under each window of sequences."
    return function


max_pooling1d = _pooling1d(convolutions.max_pool, "max_pooling1d")
average_pooling1d = _pooling1d(convolutions.avg_pool, "average_pooling1d")


def conv2d_transpose(
    inputs: Any,
    filters: int,
    kernel_size: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    data_format: str = "channels_last",
    activation: Callable[[Tensor], Tensor] | None = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = _ZEROS,
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    kernel_constraint: Any = None,
    bias_constraint: Any = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
) -> Tensor:
    """activation(the transposed convolution + bias): images grow by their strides."""
    where = "conv2d_transpose"
    x, layout = convert_to_tensor(inputs), _layout(where, data_format)
    channels, filters = _known(where, x, _channel(layout)), whole(where, "filters", filters)
    window = convolutions.spatial(where, "kernel_size", kernel_size, layout)
    stride = convolutions.spatial(where, "strides", strides, layout)
    places = (2, 3) if layout == "NCHW" else (1, 2)
    sizes = [
        _grown(known_shape(x.entry)[a], s, k, convolutions.padded(where, padding))
        for a, s, k in zip(places, stride, window, strict=True)
    ]
    weights = _Own(kernel_initializer, kernel_regularizer, kernel_constraint, trainable)
    biases = _Own(bias_initializer, bias_regularizer, bias_constraint, trainable)
    with variable_scope(name, where, reuse=reuse):
        kernel = weights.variable("kernel", [*window, filters, channels], x.dtype)
        out = convolutions.conv2d_transpose(
            x, kernel, sizes, stride, padding, data_format=layout
        )
        out = _with_bias(out, biases if use_bias else None, filters, layout)
        return _ended(out, activation, activity_regularizer)


def _grown(n: Extent, stride: int, window: int, padding: str) -> Extent:
    """The size that a transposed convolution gives, as TensorFlow's layers choose it."""
    return n * stride + (max(window - stride, 0) if padding == "VALID" else 0)


def max_pooling2d(
    inputs: Any,
    pool_size: Any,
    strides: Any,
    padding: str = "valid",
    data_format: str = "channels_last",
    name: str | None = None,
) -> Tensor:
    """The largest element under each window."""
    layout = _layout("max_pooling2d", data_format)
    return convolutions.max_pool(  # type: ignore[no-any-return]
        inputs, pool_size, strides, padding, layout, name or "max_pooling2d"
    )


def average_pooling2d(
    inputs: Any,
    pool_size: Any,
    strides: Any,
    padding: str = "valid",
    data_format: str = "channels_last",
    name: str | None = None,
) -> Tensor:
    """The mean of the elements under each window."""
    layout = _layout("average_pooling2d", data_format)
    return convolutions.avg_pool(  # type: ignore[no-any-return]
        inputs, pool_size, strides, padding, layout, name or "average_pooling2d"
    )


def flatten(inputs: Any, name: str | None = None, data_format: str = "channels_last") -> Tensor:
    """(examples, the rest in one axis); channels that come first are put last before."""
    x, layout = convert_to_tensor(inputs), _layout("flatten", data_format)
    rank = len(known_shape(x.entry, "flatten"))
    if layout == "NCHW" and rank > 2:
        x = arrays.transpose(x, [0, *range(2, rank), 1])
    sizes = known_shape(x.entry)
    rows = length("flatten", sizes, 0)
    return arrays.reshape(x, [rows, numel(sizes[1:])], name or "flatten")


def dropout(
    inputs: Any,
    rate: Any = 0.5,
    noise_shape: Any = None,
    seed: int | None = None,
    training: Any = False,
    name: str | None = None,
) -> Tensor:
    """`tf.nn.dropout` while ``training``, which may be a tensor; else inputs as they are."""
    x = convert_to_tensor(inputs)
    if not isinstance(training, Tensor) and not training:
        return wrapped(make("identity", x.entry), get_default_graph().unique(name or "dropout"))
    out = sampling.dropout(x, noise_shape=noise_shape, seed=seed, name=name, rate=rate)
    if not isinstance(training, Tensor):
        return out
    return wrapped(make("where", scalar(training), out.entry, x.entry), f"{out._name}/chosen")


@refuses("it is one fused program", "fused", "virtual_batch_size", "adjustment")
@refuses("tf.layers.dense and tf.nn.batch_normalization are there for other rules",
         "renorm", "renorm_clipping", "renorm_momentum")
def batch_normalization(
    inputs: Any,
    axis: int = -1,
    momentum: float = 0.99,
    epsilon: float = 1e-3,
    center: bool = True,
    scale: bool = True,
    beta_initializer: Any = _ZEROS,
    gamma_initializer: Any = _ONES,
    moving_mean_initializer: Any = _ZEROS,
    moving_variance_initializer: Any = _ONES,
    beta_regularizer: Any = None,
    gamma_regularizer: Any = None,
    beta_constraint: Any = None,
    gamma_constraint: Any = None,
    training: Any = False,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
    renorm: bool = False,
    renorm_clipping: Any = None,
    renorm_momentum: float = 0.99,
    fused: bool | None = None,
    virtual_batch_size: int | None = None,
    adjustment: Any = None,
) -> Tensor:
    """Each channel with mean 0 and variance 1 of the batch, while ``training``; else of all so far.

    The running mean and variance are moved by operations in the collection UPDATE_OPS, which a
    training step must run. Source: Ioffe and Szegedy, Batch Normalization.
    """
    x = convert_to_tensor(inputs)
    channels, rank = _known("batch_normalization", x, axis), len(known_shape(x.entry))
    place = axis % rank
    around = tuple(k for k in range(rank) if k != place)
    with variable_scope(name, "batch_normalization", reuse=reuse):
        own = {
            "gamma": _Own(gamma_initializer, gamma_regularizer, gamma_constraint, trainable),
            "beta": _Own(beta_initializer, beta_regularizer, beta_constraint, trainable),
            "moving_mean": _Own(moving_mean_initializer, trainable=False),
            "moving_variance": _Own(moving_variance_initializer, trainable=False),
        }
        left_out = {"gamma": not scale, "beta": not center}
        gamma, beta, *running = (
            None if left_out.get(what) else rule.variable(what, [channels], x.dtype)
            for what, rule in own.items()
        )
        shape = tuple(channels if k == place else 1 for k in range(rank))

        def spread(t: Any) -> Any:
            return None if t is None else make("reshape", read(t), shape=shape)

        mean, variance = map(spread, _statistics(x, around, running, momentum, training))
        factor = make("rsqrt", variance + real("batch_normalization", "epsilon", epsilon))
        factor = factor if gamma is None else factor * spread(gamma)
        out = (x.entry - mean) * factor
        out = out if beta is None else out + spread(beta)
        return wrapped(out, get_default_graph().unique("batchnorm"))


def _statistics(
    x: Tensor, around: tuple[int, ...], running: Any, momentum: float, training: Any
) -> Any:
    """Mean and variance: those so far, or while ``training`` those of the batch."""
    if not isinstance(training, Tensor) and not training:
        return running
    batch = moments(x, list(around))
    _moved(running, batch, x, around, momentum, training)
    if not isinstance(training, Tensor):
        return batch
    return [
        wrapped(make("where", scalar(training), b.entry, r.entry), r._name)
        for b, r in zip(batch, running, strict=True)
    ]


def _moved(
    running: Any, batch: Any, x: Tensor, around: tuple[int, ...], momentum: float, training: Any
) -> None:
    """The operations that move the running statistics, put into UPDATE_OPS."""
    sizes = known_shape(x.entry)
    count = numel(sizes[k] for k in around)
    mean, variance = (b.entry for b in batch)
    if len(sizes) == 4:  # TensorFlow's kernel for images takes the variance of a sample
        number = make("cast", size_as_entry(count), dtype=str(x.dtype))
        variance = variance * (number / make("maximum", number - 1.0, 1.0))
    for old, new in zip(running, (mean, variance), strict=True):
        value = old.state * momentum + new * (1 - momentum)
        if isinstance(training, Tensor):
            value = make("where", scalar(training), value, old.state)
        write = assign(old, wrapped(value, f"{old._name}/new"))
        get_default_graph().add_to_collection(GraphKeys.UPDATE_OPS, write.op)


NAMES = (
    *("average_pooling1d", "average_pooling2d", "batch_normalization", "conv1d", "conv2d"),
    *("conv2d_transpose", "dense", "dropout", "flatten", "max_pooling1d", "max_pooling2d"),
)
_missing = lookup("tf.layers", lambda: {**dict.fromkeys(NAMES), **_classes()})


def _classes() -> dict[str, Any]:
    from passkit.frontends.tinyflow.layer_classes import CLASSES  # they are made of these functions

    return CLASSES


def __getattr__(name: str) -> Any:
    found = None if name.startswith("_") else _classes().get(name)
    return _missing(name) if found is None else found
