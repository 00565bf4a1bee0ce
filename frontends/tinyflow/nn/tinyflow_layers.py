"""TinyFlow's own names: layers that create their weights, and inference of the weights' shapes.

Images are as ``data_format`` says, by default with channels last, as everywhere in tinyflow. By
TinyFlow's own names, such as ``tf.nn.conv2d(x, num_filter=…)``, they have channels first. Weights
have initial values unless their shapes follow from a placeholder without a shape: then
`infer_variable_shapes` returns the shapes, and the program assigns values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from passkit.errors import DTypeError, ShapeError
from passkit.frontends.tinyflow import arrays, random_ops
from passkit.frontends.tinyflow.argument_checks import axis_length, require_int
from passkit.frontends.tinyflow.deferred_calls import defer_call, defer_if_unranked, is_unranked
from passkit.frontends.tinyflow.deferred_variables import DeferredVariable
from passkit.frontends.tinyflow.feeds import first_entries
from passkit.frontends.tinyflow.graphs import GraphKeys, get_default_graph
from passkit.frontends.tinyflow.initializers import (
    glorot_uniform_initializer,
    ones_initializer,
    zeros_initializer,
)
from passkit.frontends.tinyflow.nn import convolutions
from passkit.frontends.tinyflow.nn.losses import (
    batch_normalization,
    sparse_softmax_cross_entropy_with_logits,
)
from passkit.frontends.tinyflow.reductions import FUNCTIONS, moments
from passkit.frontends.tinyflow.resolution import has_deferred_calls, resolve_deferred_calls
from passkit.frontends.tinyflow.shapes import parse_shape, require_shape
from passkit.frontends.tinyflow.tensors import (
    Tensor,
    as_entry,
    call_operator,
    convert_to_tensor,
    unique_name,
)
from passkit.frontends.tinyflow.variables import Variable
from passkit.graph import graph as core
from passkit.graph.node import Entry, var
from passkit.values.size import Shape, numel

BATCH_EPSILON = 1e-5
"""The epsilon that `batch_normalization_layer` adds to a variance, as Torch does."""


def normal(shape: Any, stdev: float = 1.0, name: str | None = None) -> Tensor:
    """Draw normal numbers around 0.

    Args:
        shape: The shape of the result: ints, or sizes computed from `tf.shape`.
        stdev: The standard deviation, a number, an array or a tensor; 1 by default.
        name: The name of the result; "random_normal" by default.

    Returns:
        A float32 tensor, or of the dtype of a wider tensor ``stdev``, drawn anew in each run.

    Raises:
        ShapeError: If an extent is None, negative, no int, or a tensor that only a run computes, or
            an array or tensor ``stdev`` does not broadcast.
        SettingError: If ``stdev`` is neither a number, an array nor a tensor.
        DTypeError: If ``stdev`` is complex.
    """
    return random_ops.random_normal(shape, 0.0, stdev, name=name)


def _create_weight(
    name: str, x: Tensor, shape_of: Callable[[Shape], Sequence[Any]], initializer: Any
) -> Variable:
    """Create a weight whose shape follows from that of a layer's input.

    Args:
        name: The full name.
        x: The input of the layer.
        shape_of: Returns the weight's extents for the input's shape.
        initializer: Called with a shape and ``dtype=`` for the initial value, if the rank of the
            input is known.

    Returns:
        A variable; if the rank of the input is unknown, one whose shape follows from a feed.

    Raises:
        ShapeError: If the shape has a size that only a run determines.
        DTypeError: If the input holds no floats.
    """
    if not x.dtype.is_float:
        raise DTypeError(f"'{name}' needs inputs of floats, got {x!r}; tf.cast converts them")
    if is_unranked(x):
        return DeferredVariable(name, x, shape_of)
    shape = list(shape_of(require_shape(x.entry)))
    if not all(isinstance(n, int) for n in shape):
        raise ShapeError(f"'{name}' needs inputs of known length, got {x!r}; give it a shape")
    return Variable(lambda: initializer(shape, dtype=x.dtype), name=f"{name}/")


def linear(
    data: Any, num_hidden: int, no_bias: bool = True, name: str | None = None, weight: Any = None
) -> Tensor:
    """Compute data @ transpose(weight) + bias.

    Args:
        data: A tensor of shape (…, examples, inputs).
        num_hidden: The number of outputs, an int, with which a weight and a bias are created.
        no_bias: Whether there is no bias; True by default.
        name: The name of the result; "linear" by default.
        weight: The weight, of shape (num_hidden, inputs); created by default. Without a bias, its
            number of outputs is not compared with ``num_hidden``.

    Returns:
        A tensor of shape (…, examples, num_hidden).

    Raises:
        ShapeError: If ``data`` has less than two axes, its number of inputs is known only in a run,
            ``num_hidden`` is negative, or ``weight`` does not fit.
        SettingError: If ``num_hidden`` is no int.
        DTypeError: If ``data`` holds no floats and a variable is created, or ``weight`` has another
            dtype.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    x, full_name = convert_to_tensor(data), unique_name(name, "linear")
    count = require_int("linear", "num_hidden", num_hidden)
    if weight is None:
        weight = _create_weight(
            f"{full_name}_weight",
            x,
            lambda shape: [count, axis_length("linear", shape, -1)],
            glorot_uniform_initializer(),
        )
    out = call_operator(
        "matmul", "linear", f"{full_name}/", x.entry, as_entry(weight), transpose_b=True
    )
    if no_bias:
        return out
    return out + _create_weight(f"{full_name}_bias", x, lambda shape: [count], zeros_initializer())


def convolution_layer(
    data: Any,
    num_filter: int,
    ksize: Any,
    strides: Any = (1, 1, 1, 1),
    padding: str = "VALID",
    data_format: str = "NHWC",
    no_bias: bool = True,
    name: str | None = None,
) -> Tensor:
    """Convolve images with a filter that the layer creates, and add a bias.

    Args:
        data: Images of shape (batch, height, width, channels), or (batch, channels, height, width).
        num_filter: The number of output channels, an int.
        ksize: The size of the window: one int, (height, width), or (1, height, width, 1).
        strides: The step of the window, as ``ksize``; 1 by default.
        padding: "VALID" (default), "SAME", or four pairs (before, after) in the order of
            ``data_format``.
        data_format: "NHWC" (default) or "NCHW".
        no_bias: Whether there is no bias; True by default.
        name: The name of the result; "conv2d" by default.

    Returns:
        Images in the layout of ``data``.

    Raises:
        ShapeError: If ``data`` has another rank, its number of channels is known only in a run, the
            window does not fit, or a number is out of range.
        SettingError: For another padding, or numbers that are no ints.
        GraphError: For another data_format, and for a tensor as size, step or padding.
        DTypeError: If ``data`` holds no floats.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    x, full_name = convert_to_tensor(data), unique_name(name, "conv2d")
    window = convolutions.parse_window("conv2d", "ksize", ksize, "NHWC")
    channel_axis, count = (
        1 if data_format == "NCHW" else -1,
        require_int("conv2d", "num_filter", num_filter),
    )
    weight = _create_weight(
        f"{full_name}_weight",
        x,
        lambda shape: [*window, axis_length("conv2d", shape, channel_axis), count],
        glorot_uniform_initializer(),
    )
    step = convolutions.parse_spatial("conv2d", "strides", strides, "NHWC")
    output = convolutions.conv2d(
        x, weight, step, padding, data_format=data_format, name=f"{full_name}/"
    )
    if no_bias:
        return output
    bias = _create_weight(f"{full_name}_bias", x, lambda shape: [count], zeros_initializer())
    return convolutions.bias_add(output, bias, data_format)


def batch_normalization_layer(data: Any, name: str | None = None) -> Tensor:
    """Normalize each channel of images by the batch, times gamma, plus beta.

    Gamma and beta are variables of the layer. Source: TinyFlow's batch_normalization, which always
    uses the statistics of the batch.

    Args:
        data: Images of shape (batch, channels, height, width), or another tensor with channels on
            axis 1.
        name: The name of the result; "batch_normalization" by default.

    Returns:
        A tensor of the shape of ``data``.

    Raises:
        ShapeError: If there is no axis of channels, or their number is known only in a run.
        DTypeError: If ``data`` holds no floats.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    x, full_name = convert_to_tensor(data), unique_name(name, "batch_normalization")
    gamma, beta = (
        _create_weight(
            f"{full_name}_{variable_name}",
            x,
            lambda shape: [axis_length("batch_normalization", shape, 1)],
            initializer,
        )
        for variable_name, initializer in (
            ("gamma", ones_initializer()),
            ("beta", zeros_initializer()),
        )
    )
    arguments: Any = {"x": x, "gamma": gamma, "beta": beta}
    if is_unranked(x):
        return defer_call(_normalize_batch, arguments, [(None, x.dtype)], full_name)[0]
    return _normalize_batch(**arguments, name=f"{full_name}/")


def _normalize_batch(x: Tensor, gamma: Tensor, beta: Tensor, name: str) -> Tensor:
    """Normalize a tensor by the mean and variance of each channel in the batch.

    Args:
        x: The tensor, of known rank, with channels on axis 1.
        gamma: The factor of each channel, a vector.
        beta: The offset of each channel, a vector.
        name: The full name of the result, with a slash at its end.

    Returns:
        A tensor of the shape of ``x``.

    Raises:
        DTypeError: If ``x`` holds no floats.
    """
    rank = len(require_shape(x.entry))
    mean, variance = moments(x, [k for k in range(rank) if k != 1], keep_dims=True)
    shape = tuple(-1 if k == 1 else 1 for k in range(rank))
    factor, offset = (arrays.reshape(t, shape) for t in (gamma, beta))
    return batch_normalization(x, mean, variance, offset, factor, BATCH_EPSILON, name)


@defer_if_unranked("flatten")
def flatten_layer(data: Any, name: str | None = None) -> Tensor:
    """Reshape to (examples, elements of an example).

    Args:
        data: A tensor of shape (examples, …); a vector has one element for each example. If its
            rank is unknown, the call is made in a run.
        name: The name of the result; "flatten" by default.

    Returns:
        A matrix.

    Raises:
        ShapeError: If ``data`` is a scalar.
        ArgumentError: For a value that is neither a tensor nor numbers.
        DTypeError: For a tensor of text.
    """
    entry = as_entry(data)
    sizes = require_shape(entry, "flatten_layer")
    rows = axis_length("flatten_layer", sizes, 0)
    return call_operator("reshape", "flatten", name, entry, shape=(rows, numel(sizes[1:])))


def mean_sparse_softmax_cross_entropy_with_logits(
    logits: Any, labels: Any, name: str | None = None
) -> Tensor:
    """Return the mean cross entropy of class numbers and softmax(logits).

    Args:
        logits: A tensor of shape (examples, classes).
        labels: Class numbers of shape (examples); floats are converted to int32.
        name: The name of the result; "Mean" by default.

    Returns:
        A scalar tensor.

    Raises:
        ShapeError: If the shapes do not fit.
        DTypeError: If the logits are no floats, or the labels neither integers nor floats.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    classes = convert_to_tensor(labels)
    if classes.dtype.is_float:
        classes = call_operator("cast", "labels", None, classes.entry, dtype="int32")
    losses = sparse_softmax_cross_entropy_with_logits(labels=classes, logits=logits)
    return FUNCTIONS["reduce_mean"](losses, name=name)


def infer_variable_shapes(
    net: Tensor, feed_dict: Mapping[Tensor, Any]
) -> Iterator[tuple[Variable, str, list[int]]]:
    """Yield the variables that a tensor needs, each with its name and shape.

    Weights of layers whose inputs have unknown rank get their shapes when the first variable is
    requested from the iterator, and keep them. Errors are raised then, too; weights before the
    layer that does not fit keep their shapes nevertheless.

    Args:
        net: The tensor.
        feed_dict: A shape for each placeholder that the tensor needs; placeholders that have a
            shape may be left out.

    Returns:
        An iterator of triples: a variable of the default graph, its name without output number, and
        its shape as a list of ints. In the order in which they were created.

    Raises:
        ShapeError: If a shape does not fit its placeholder, a layer or other operator behind it, or
            a weight that has a shape already, or leaves a weight's shape unknown.
        FeedError: If a placeholder without a shape is missing, and ``net`` has a layer or another
            function that needs the rank of an unknown shape.
    """
    replacements: dict[Entry, Entry] = {}
    for tensor, shape in feed_dict.items():
        stated = parse_shape(shape, "infer_variable_shapes")
        given = var(tensor._name, stated, tensor.dtype)
        replacements |= dict.fromkeys(first_entries(tensor.entry, net.graph), given)
        if is_unranked(tensor):
            continue
        declared = require_shape(tensor.entry)
        fits = len(declared) == len(stated) and all(
            not isinstance(n, int) or n == m for n, m in zip(declared, stated, strict=True)
        )
        if not fits:
            raise ShapeError(
                f"infer_variable_shapes needs a shape that fits {tensor!r}, got {shape}"
            )
    order = core.post_order([net.entry.node])
    for node, earlier in net.graph.refined_entries.items():
        if earlier.shape is None and earlier.node.is_variable:  # a placeholder left out
            replacements.setdefault(earlier, node.entries[0])
    if has_deferred_calls(order):
        resolve_deferred_calls(net.graph, order, replacements)
    needed = set(order)
    for variable in get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES):
        if {variable.declared_entry.node, variable.state.node} & needed:
            yield variable, variable._name, [int(n) for n in variable.shape]
