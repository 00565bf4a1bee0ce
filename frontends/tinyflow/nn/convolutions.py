"""Convolutions, pooling and biases of ``tf.nn``, by TensorFlow's arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from passkit.errors import SettingError, ShapeError
from passkit.frontends.tinyflow.argument_checks import (
    reject_arguments,
    renamed_argument,
    require_float,
    require_int,
    require_int_rows,
    require_ints,
    require_single_int,
)
from passkit.frontends.tinyflow.deferred_calls import (
    defer_call,
    defer_if_unranked,
    is_unranked,
    runtime_size,
)
from passkit.frontends.tinyflow.shapes import format_shape, parse_shape, require_shape
from passkit.frontends.tinyflow.tensors import (
    Tensor,
    as_entry,
    call_operator,
    convert_to_tensor,
    unique_name,
)
from passkit.graph.op import get_op
from passkit.ops.helpers import make
from passkit.values.size import Extent


def parse_spatial(function: str, argument: str, value: Any, data_format: str) -> tuple[int, int]:
    """Convert a window, stride or dilation argument to (height, width).

    Args:
        function: The function's name, for messages.
        argument: The argument's name, for messages.
        value: One, two or four ints, which may be 0 or negative here. Four are in the order of
            ``data_format``; (1, height, width, 1) is TinyFlow's order for all layouts.
        data_format: "NHWC" or "NCHW".

    Returns:
        The numbers of height and width.

    Raises:
        SettingError: For anything but ints, for other counts, or if the numbers of batch and
            channels are not 1.
        GraphError: For a tensor, which has no numbers before a run.
        ShapeError: For a `Dimension` that is unknown.
    """
    numbers = require_ints(function, argument, value)
    if len(numbers) == 1:
        return numbers[0], numbers[0]
    if len(numbers) == 2:
        return numbers[0], numbers[1]
    spatial_axes = (2, 3) if data_format == "NCHW" else (1, 2)
    if len(numbers) == 4 and spatial_axes == (2, 3) and numbers[1] != 1 and numbers[3] == 1:
        spatial_axes = (1, 2)
    others = [n for k, n in enumerate(numbers) if k not in spatial_axes]
    if len(numbers) != 4 or others != [1, 1]:
        raise SettingError(
            f"{function} needs 1, 2 or 4 numbers as {argument}, those of batch and channels 1, got "
            f"{value}"
        )
    return numbers[spatial_axes[0]], numbers[spatial_axes[1]]


def parse_window(function: str, argument: str, value: Any, data_format: str) -> tuple[int, int]:
    """Convert the size of a filter's window to (height, width), by `parse_spatial`.

    Args:
        function: The function's name, for messages.
        argument: The argument's name, for messages.
        value: One, two or four ints. Four are in the order of ``data_format``, or TinyFlow's (1,
            height, width, 1).
        data_format: "NHWC" or "NCHW".

    Returns:
        The numbers of height and width.

    Raises:
        SettingError: For anything but ints, for other counts, or if the numbers of batch and
            channels are not 1.
        ShapeError: If height or width is below 1, or for a `Dimension` that is unknown.
        GraphError: For a tensor, which has no numbers before a run.
    """
    window = parse_spatial(function, argument, value, data_format)
    if min(window) < 1:
        raise ShapeError(f"{function} needs a {argument} of 1 or more, got {value!r}")
    return window


def parse_padding(function: str, padding: Any, data_format: str = "NHWC") -> Any:
    """Convert a padding argument to "SAME", "VALID" or (before, after) for height and width.

    Args:
        function: The function's name, for messages.
        padding: "SAME" or "VALID" in any case of letters, or four pairs (before, after) in the
            order of ``data_format``; those of batch and channels are (0, 0).
        data_format: "NHWC" or "NCHW".

    Returns:
        "SAME" or "VALID"; or a tuple of two tuples of ints, that of height first, whose number and
        signs the operator checks.

    Raises:
        SettingError: For any other value, or pairs that pad batch or channels.
        GraphError: For a tensor, which has no numbers before a run.
    """
    if isinstance(padding, str):
        if padding.upper() not in ("SAME", "VALID"):
            raise SettingError(f"{function} needs 'SAME' or 'VALID' as padding, got {padding!r}")
        return padding.upper()
    pairs = () if padding is None else require_int_rows(function, "padding", padding)
    if len(pairs) != 4:
        raise SettingError(
            f"{function} needs 'SAME', 'VALID' or four pairs as padding, got {padding!r}"
        )
    spatial_axes = (2, 3) if data_format == "NCHW" else (1, 2)
    if any(any(pair) for k, pair in enumerate(pairs) if k not in spatial_axes):
        raise SettingError(
            f"{function} needs pairs (0, 0) as padding of batch and channels, got {padding!r}"
        )
    return tuple(pairs[k] for k in spatial_axes)


@reject_arguments("one library is chosen for all", "use_cudnn_on_gpu")
def conv1d(
    value: Any = None,
    filters: Any = None,
    stride: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool | None = None,
    data_format: str | None = None,
    name: str | None = None,
    input: Any = None,
    dilations: Any = None,
) -> Tensor:
    """Convolve sequences.

    Args:
        value: Sequences of shape (batch, steps, channels), or (batch, channels, steps).
        filters: The filter, of shape (length, channels, output channels).
        stride: The step of the window, an int; 1 by default.
        padding: "SAME" or "VALID"; required.
        use_cudnn_on_gpu: Unsupported; only the default is accepted.
        data_format: "NWC" (default) or "NHWC" for channels last, "NCW" or "NCHW" for channels on
            axis 1.
        name: The name of the result; "conv1d" by default.
        input: The newer name of ``value``.
        dilations: The distance of the window's elements, an int; 1 by default.

    Returns:
        Sequences in the layout of ``value``.

    Raises:
        SettingError: Without a padding or for another one, for another data_format, a stride or
            dilation of several numbers, if both ``value`` and ``input`` are passed, or an
            unsupported argument is set.
        ShapeError: If a tensor has another rank, the channels of images and filter differ, the
            shape of the filter is unknown, the window does not fit, a stride or dilation is below
            1, or a padding is no pair or below 0.
        DTypeError: If the tensors hold no floats, or their dtypes differ.
        ArgumentError: For a value that is neither a tensor nor numbers.
        GraphError: For a tensor as stride or dilation, which has no numbers before a run.
    """
    layout = data_format or "NWC"
    if layout not in ("NWC", "NHWC", "NCW", "NCHW"):
        raise SettingError(f"conv1d needs 'NWC' or 'NCW' as data_format, got {data_format!r}")
    if not isinstance(padding, str):
        raise SettingError(f"conv1d needs 'SAME' or 'VALID' as padding, got {padding!r}")
    channels_first = layout in ("NCW", "NCHW")
    axis = 2 if channels_first else 1
    step = require_single_int("conv1d", "stride", 1 if stride is None else stride)
    dilation = require_single_int("conv1d", "dilations", 1 if dilations is None else dilations)
    x = make(
        "expand_dims",
        as_entry(renamed_argument("conv1d", "value", value, "input", input)),
        axis=axis,
    )
    params = {
        "strides": (1, step),
        "padding": parse_padding("conv1d", padding),
        "dilations": (1, dilation),
        "data_format": "NCHW" if channels_first else "NHWC",
    }
    out = make("conv2d", x, make("expand_dims", as_entry(filters), axis=0), **params)
    return call_operator("squeeze", "conv1d", name, out, axis=axis)


@reject_arguments("one library is chosen for all", "use_cudnn_on_gpu")
def conv2d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str | None = None,
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
    filters: Any = None,
    *,
    num_filter: int | None = None,
    ksize: Any = None,
    no_bias: bool = True,
) -> Tensor:
    """Convolve images.

    With TinyFlow's arguments ``num_filter`` and ``ksize`` it is `convolution_layer`, which creates
    its filter, and channels come first by default; ``filter`` and ``dilations`` must have their
    defaults then. If the rank of ``input`` is unknown, a run checks the other arguments.

    Args:
        input: Images of shape (batch, height, width, channels), or (batch, channels, height,
            width).
        filter: The filter, of shape (height, width, channels, output channels).
        strides: The step of the window: one int, (height, width), or four ints in the order of
            ``data_format``; 1 by default.
        padding: "SAME", "VALID", or four pairs (before, after) in the order of ``data_format``;
            required. With ``num_filter`` "VALID" by default.
        use_cudnn_on_gpu: Unsupported; only the default is accepted.
        data_format: "NHWC" (default) or "NCHW".
        dilations: The distance of the window's elements, as ``strides``; 1 by default.
        name: The name of the result; "Conv2D" by default.
        filters: The newer name of ``filter``.
        num_filter: TinyFlow's number of output channels; None (default) for TensorFlow's call.
        ksize: TinyFlow's size of the window, as ``strides``; only with ``num_filter``, which needs
            it.
        no_bias: Whether TinyFlow's layer has no bias; True, the default, without ``num_filter``.

    Returns:
        Images in the layout of ``input``.

    Raises:
        SettingError: Without a padding or for another one, a stride or dilation of another number
            of ints, if both names of an argument, or arguments of both kinds of calls, are passed,
            or an unsupported argument is set.
        GraphError: For another data_format, and for a tensor as stride, dilation or padding, which
            has no numbers before a run.
        ShapeError: If a tensor has another rank, the channels of images and filter differ, the
            shape of the filter is unknown, the window does not fit, a stride or dilation is below
            1, or a padding is no pair or below 0.
        DTypeError: If the tensors hold no floats, or their dtypes differ.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    if num_filter is None and (ksize is not None or no_bias is not True):
        raise SettingError(
            f"conv2d needs num_filter beside ksize and no_bias, got ksize={ksize!r} and "
            f"no_bias={no_bias!r}"
        )
    if num_filter is not None:
        from passkit.frontends.tinyflow.nn.tinyflow_layers import convolution_layer  # it calls this

        for argument, value, default in (
            ("filter", filter, None),
            ("filters", filters, None),
            ("dilations", dilations, (1, 1, 1, 1)),
        ):
            if value is not default:
                raise SettingError(
                    f"conv2d with num_filter creates its filter, and takes no {argument}, got "
                    f"{value!r}"
                )
        layer_arguments: Any = {
            "no_bias": no_bias,
            "name": name,
            "data_format": data_format or "NCHW",
        }
        steps = 1 if strides is None else strides
        return convolution_layer(
            input, num_filter, ksize, steps, padding or "VALID", **layer_arguments
        )
    data_format = data_format or "NHWC"
    filter_tensor = renamed_argument("conv2d", "filter", filter, "filters", filters)
    x = convert_to_tensor(input)
    if (
        is_unranked(x) and as_entry(filter_tensor).shape is not None
    ):  # a run tells all but the channels
        full_name, count = unique_name(name, "Conv2D"), require_shape(as_entry(filter_tensor))[-1]
        sizes: list[Any] = [runtime_size(full_name, k) for k in range(4)]
        sizes[1 if data_format == "NCHW" else 3] = count
        arguments = {
            "input": x,
            "filter": filter_tensor,
            "strides": strides,
            "padding": padding,
            "data_format": data_format,
            "dilations": dilations,
        }
        return defer_call(conv2d, arguments, [(tuple(sizes), x.dtype)], full_name)[0]
    params = {
        "strides": parse_spatial(
            "conv2d", "strides", 1 if strides is None else strides, data_format
        ),
        "padding": parse_padding("conv2d", padding, data_format),
        "dilations": parse_spatial("conv2d", "dilations", dilations, data_format),
        "data_format": data_format,
    }
    return call_operator("conv2d", "Conv2D", name, x.entry, as_entry(filter_tensor), **params)


def conv2d_transpose(
    value: Any = None,
    filter: Any = None,
    output_shape: Any = None,
    strides: Any = None,
    padding: Any = "SAME",
    data_format: str = "NHWC",
    name: str | None = None,
    input: Any = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """Compute the transpose of `conv2d`, such as the gradient with respect to its input.

    Args:
        value: Images of shape (batch, height, width, channels), or (batch, channels, height,
            width).
        filter: The filter, of shape (height, width, output channels, channels).
        output_shape: The shape of the result, of which only height and width are read, or these
            two; by default they follow from strides and padding.
        strides: The step of the window: one int, (height, width), or four ints in the order of
            ``data_format``; 1 by default.
        padding: "SAME" (default), "VALID", or four pairs (before, after) in the order of
            ``data_format``.
        data_format: "NHWC" (default) or "NCHW".
        name: The name of the result; "conv2d_transpose" by default.
        input: The newer name of ``value``.
        filters: The newer name of ``filter``.
        dilations: The distance of the window's elements, as ``strides``; 1 by default.

    Returns:
        Images in the layout of ``value``.

    Raises:
        SettingError: For another padding, a stride or dilation of another number of ints, or if
            both names of an argument are passed.
        GraphError: For another data_format, and for a tensor as stride, dilation or padding, which
            has no numbers before a run.
        ShapeError: If a tensor has another rank, the channels of images and filter differ, the
            shape of the filter is unknown, ``output_shape`` does not fit or has another length than
            2 and 4, a stride or dilation is below 1, or a padding is no pair or below 0.
        DTypeError: If the tensors hold no floats, or their dtypes differ.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    function = "conv2d_transpose"
    x = renamed_argument(function, "value", value, "input", input)
    filter_tensor = renamed_argument(function, "filter", filter, "filters", filters)
    sizes = None if output_shape is None else parse_shape(output_shape, function)
    params = {
        "strides": parse_spatial(
            function, "strides", 1 if strides is None else strides, data_format
        ),
        "padding": parse_padding(function, padding, data_format),
        "dilations": parse_spatial(
            function, "dilations", 1 if dilations is None else dilations, data_format
        ),
        "data_format": data_format,
        "output_shape": _spatial_part(sizes, data_format),
    }
    return call_operator(function, function, name, as_entry(x), as_entry(filter_tensor), **params)


def _spatial_part(shape: Any, data_format: str) -> Any:
    """Return the height and width of the shape of a result; None for None.

    Args:
        shape: Two or four extents; None for none.
        data_format: "NHWC" or "NCHW", the order of four extents.

    Raises:
        ShapeError: For another number of extents.
    """
    if shape is None or len(shape) == 2:
        return shape
    if len(shape) != 4:
        raise ShapeError(
            f"conv2d_transpose needs two or four extents as output_shape, got {format_shape(shape)}"
        )
    return shape[2:] if data_format == "NCHW" else shape[1:3]


def depthwise_conv2d(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """Convolve each channel of images with its own filters.

    Args:
        input: Images of shape (batch, height, width, channels), or (batch, channels, height,
            width).
        filter: The filters, of shape (height, width, channels, filters per channel).
        strides: The step of the window: one int, (height, width), or four ints in the order of
            ``data_format``.
        padding: "SAME", "VALID", or four pairs (before, after) in the order of ``data_format``.
        rate: The older name of ``dilations``.
        name: The name of the result; "depthwise" by default.
        data_format: "NHWC" (default) or "NCHW".
        dilations: The distance of the window's elements, as ``strides``; 1 by default.

    Returns:
        Images with channels * filters per channel, in the layout of ``input``.

    Raises:
        SettingError: For another padding, a stride or dilation of another number of ints, or if
            both names of an argument are passed.
        GraphError: For another data_format, and for a tensor as stride, dilation or padding, which
            has no numbers before a run.
        ShapeError: If a tensor has another rank, the channels of images and filter differ, the
            shape of the filter is unknown, the window does not fit, a stride or dilation is below
            1, or a padding is no pair or below 0.
        DTypeError: If the tensors hold no floats, or their dtypes differ.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    function, layout = "depthwise_conv2d", data_format or "NHWC"
    dilation = renamed_argument(function, "rate", rate, "dilations", dilations)
    params = {
        "strides": parse_spatial(function, "strides", strides, layout),
        "padding": parse_padding(function, padding, layout),
        "dilations": parse_spatial(
            function, "dilations", 1 if dilation is None else dilation, layout
        ),
        "data_format": layout,
    }
    return call_operator(function, "depthwise", name, as_entry(input), as_entry(filter), **params)


_POOL_ARGUMENTS = """

    Args:
        value: Images of shape (batch, height, width, channels), or as ``data_format`` says.
        ksize: The size of the window: one int, (height, width), or four ints in that order.
        strides: The step of the window, as ``ksize``.
        padding: "SAME", "VALID", or four pairs (before, after) in the order of ``data_format``.
            Without it the call is TinyFlow's: no padding, and channels first by default.
        data_format: "NHWC" (default) or "NCHW".
        name: The name of the result; "{default}" by default.
        input: The newer name of ``value``.

    Returns:
        Images with a result for each position of the window, in the layout of ``value``.

    Raises:
        SettingError: For another padding, a window or stride of another number of ints, or if both
            ``value`` and ``input`` are passed.
        GraphError: For another data_format, and for a tensor as window, stride or padding, which
            has no numbers before a run.
        ShapeError: If ``value`` has another rank than 4, the window does not fit, or a window or
            stride is below 1.
        DTypeError: If ``value`` holds {refused}.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """


def _pool_function(
    function_name: str, op: str, default: str, summary: str, refused: str
) -> Callable[..., Tensor]:
    """Create a pooling function.

    Args:
        function_name: TensorFlow's name of the function.
        op: The operator's name in passkit.
        default: The default name of the result.
        summary: The first line of the function's docstring.
        refused: The elements that the operator refuses, in words, for the docstring.
    """

    def function(
        value: Any,
        ksize: Any,
        strides: Any,
        padding: Any = None,
        data_format: str | None = None,
        name: str | None = None,
        input: Any = None,
    ) -> Tensor:
        if padding is None:  # TinyFlow's call
            padding, data_format = "VALID", data_format or "NCHW"
        data_format = data_format or "NHWC"
        x = renamed_argument(function_name, "value", value, "input", input)
        params = {
            "window": parse_spatial(function_name, "ksize", ksize, data_format),
            "strides": parse_spatial(function_name, "strides", strides, data_format),
            "padding": parse_padding(function_name, padding, data_format),
            "data_format": data_format,
        }
        return call_operator(op, default, name, as_entry(x), **params)

    function.__doc__ = summary + _POOL_ARGUMENTS.format(default=default, refused=refused)
    function.__name__ = function.__qualname__ = function_name
    return function


max_pool = _pool_function(
    "max_pool",
    "max_pool2d",
    "MaxPool",
    "Return the largest element under each window of images.",
    "bools or complex numbers",
)
avg_pool = _pool_function(
    "avg_pool",
    "avg_pool2d",
    "AvgPool",
    "Return the mean of the elements under each window of images; padding does not count.",
    "no floats",
)


@defer_if_unranked("BiasAdd")
def bias_add(
    value: Any, bias: Any, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """Add a number to each channel.

    Args:
        value: A tensor of shape (batch, …, channels), or (batch, channels, …) with "NCHW".
        bias: A vector with a number for each channel.
        data_format: "NHWC" (default) or "NCHW"; also "N...C" and "NC...".
        name: The name of the result; "BiasAdd" by default.

    Returns:
        A tensor of the shape of ``value``.

    Raises:
        SettingError: For another data_format.
        ShapeError: If ``value`` has fewer than two axes, or ``bias`` is no vector of the length of
            its channels.
        DTypeError: If the dtypes differ, or are bool or text.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    x, b = as_entry(value), as_entry(bias)
    if data_format not in (None, "NHWC", "NCHW", "N...C", "NC..."):
        raise SettingError(f"bias_add needs 'NHWC' or 'NCHW' as data_format, got {data_format!r}")
    if x.shape is not None and b.shape is not None:
        channels_axis = 1 if data_format in ("NCHW", "NC...") else len(x.shape) - 1
        channels = x.shape[channels_axis] if len(x.shape) > 1 else None
        if channels is None or len(b.shape) != 1 or _differ(b.shape[0], channels):
            raise ShapeError(
                f"bias_add needs a vector with a number for each channel of a tensor of shape "
                f"{format_shape(x.shape)}, got a bias of shape {format_shape(b.shape)}"
            )
    if data_format in ("NCHW", "NC..."):
        after = len(require_shape(x, "bias_add")) - 2
        b = get_op("reshape")(b, shape=(require_shape(b)[0], *(1,) * after))
    return call_operator("add", "BiasAdd", name, x, b)


def _differ(a: Extent, b: Extent) -> bool:
    """Return whether two extents are numbers that differ."""
    return isinstance(a, int) and isinstance(b, int) and a != b


def xw_plus_b(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """Return x @ weights + biases.

    Args:
        x: A matrix of shape (examples, inputs), or a batch of matrices.
        weights: A matrix of shape (inputs, outputs).
        biases: A vector of length ``outputs``, or a tensor that broadcasts with the product.
        name: The name of the result; "xw_plus_b" by default.

    Returns:
        A matrix of shape (examples, outputs), or a batch of matrices.

    Raises:
        ShapeError: If the lengths differ, ``x`` or ``weights`` has less than two axes, or
            ``biases`` does not broadcast with the product.
        DTypeError: If the dtypes differ, or are bool or complex, or text.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    return call_operator(
        "add", "xw_plus_b", name, get_op("matmul")(as_entry(x), as_entry(weights)), as_entry(biases)
    )


def local_response_normalization(
    input: Any,
    depth_radius: int = 5,
    bias: float = 1,
    alpha: float = 1,
    beta: float = 0.5,
    name: str | None = None,
) -> Tensor:
    """Divide by a power of the sum of squares over neighbouring channels.

    It is input / (bias + alpha * sum of squares)^beta. Source: Krizhevsky and others, ImageNet
    Classification with Deep Convolutional Neural Networks, section 3.3.

    Args:
        input: A tensor of shape (…, channels), such as images (batch, height, width, channels).
        depth_radius: The number of neighbouring channels on each side; 5 by default.
        bias: A number that is added to the sum; 1 by default.
        alpha: The factor of the sum; 1 by default.
        beta: The exponent; 0.5 by default.
        name: The name of the result; "LRN" by default.

    Returns:
        A tensor of the shape and dtype of ``input``.

    Raises:
        SettingError: If ``depth_radius`` is no int, or another parameter no number.
        ShapeError: If ``depth_radius`` is negative, or ``input`` is a scalar.
        DTypeError: If ``input`` holds no floats.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    function = "local_response_normalization"
    params = {
        "depth_radius": require_int(function, "depth_radius", depth_radius),
        "bias": require_float(function, "bias", bias),
        "alpha": require_float(function, "alpha", alpha),
        "beta": require_float(function, "beta", beta),
    }
    return call_operator(function, "LRN", name, as_entry(input), **params)
