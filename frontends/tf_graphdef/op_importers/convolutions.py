"""Importers of convolutions, transposed convolutions, and gradients of filters."""

from __future__ import annotations

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.imported_value import ImportCall, ImportedValue
from passkit.frontends.tf_graphdef.node_windows import (
    NodeWindows,
    channels_first,
    inner_shape,
    windows_of_node,
)
from passkit.frontends.tf_graphdef.operators import ops
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.registry import ImportResult, op_importer
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry
from passkit.ops.layouts import as_dtype, from_last, to_last, widened
from passkit.values.size import Extent, Shape

AXES = {
    "Conv2D": 2,
    "Conv2DBackpropInput": 2,
    "Conv2DBackpropFilter": 2,
    "DepthwiseConv2dNative": 2,
    "DepthwiseConv2dNativeBackpropInput": 2,
    "DepthwiseConv2dNativeBackpropFilter": 2,
    "Conv3D": 3,
    "Conv3DBackpropInputV2": 3,
    "Conv3DBackpropFilterV2": 3,
}
"""Number of spatial axes of each operator."""


def _check_floats(call: ImportCall, *values: ImportedValue) -> None:
    """Raise ModelError if one of ``values``, inputs of the node ``call``, is not of floats.

    Integers, bools and complex numbers are refused.
    """
    for v in values:
        if not v.dtype.is_float:
            raise ModelError(
                f"{call.where} needs floats, got {v.dtype} from {short(v.name)}; cast it to "
                f"float64, which represents sums of integers up to 2**53 exactly"
            )


def _filter_shape(call: ImportCall, shape: Shape, count: int) -> tuple[int, ...]:
    """Return the shape of a filter, as ints.

    Args:
        call: The node, for errors.
        shape: Shape (*window, channels per group, filters).
        count: Number of spatial axes.

    Raises:
        ModelError: If the rank is not ``count`` + 2, or an extent is unknown.
    """
    static_shape = tuple(n for n in shape if isinstance(n, int))
    if len(shape) != count + 2 or len(static_shape) != len(shape):
        raise ModelError(
            f"{call.where} needs a filter of known shape and rank {count + 2}, got "
            f"{show_shape(shape)}"
        )
    return static_shape


def _groups(call: ImportCall, channels: Extent, filters: tuple[int, ...]) -> int:
    """Return the number of groups: input channels divided by the filter's channels per group.

    It is 1 if the number of input channels is unknown or 0.

    Args:
        call: The node, for errors.
        channels: Number of channels of the input.
        filters: Shape of the filter, (*window, channels per group, filters).

    Raises:
        ModelError: If the input's channels are no multiple of the filter's, or the groups do not
            divide the filters.
    """
    filter_channels, num_filters = filters[-2:]
    if not isinstance(channels, int):
        return 1
    groups = channels // filter_channels if filter_channels else 1
    if groups * filter_channels != channels or (groups and num_filters % groups):
        raise ModelError(
            f"{call.where} needs an input of g * {filter_channels} channels, where g divides the "
            f"{num_filters} filters, got {channels} channels"
        )
    return max(groups, 1)


@op_importer("Conv2D", "Conv3D")
def _conv(call: ImportCall, x: ImportedValue, filters: ImportedValue) -> ImportResult:
    """Import Conv2D and Conv3D; groups follow from the channels of input and filter.

    Args:
        call: The node; its attributes hold strides, dilations, padding and data format.
        x: Input (batch, *space, channels), or with the channels second in NCHW and NCDHW.
        filters: Filter of shape (*window, channels per group, filters).

    Returns:
        The convolution in the node's data format and the dtype of ``x``; 16-bit floats are summed
        in float32.

    Raises:
        ModelError: If inputs are no floats, a rank is unknown or other than the operator's, the
            filter has unknown extents, channels do not divide into groups, or ``padding`` is
            missing or an attribute invalid.
        ShapeError: If the input has no channels, or is smaller than the filter's window.
        DTypeError: If only one of ``x`` and ``filters`` is float64.
    """
    return convolved(call, x, filters, AXES[call.node.op])


def convolved(call: ImportCall, x: ImportedValue, filters: ImportedValue, count: int) -> Entry:
    """Return the convolution that a node describes, in its data format and the dtype of ``x``.

    Args:
        call: The node; its attributes hold strides, dilations, padding and data format.
        x: Input, in the node's data format.
        filters: Filter of shape (*window, channels per group, filters).
        count: Number of spatial axes.

    Raises:
        ModelError: If inputs are no floats, a rank is unknown or not ``count`` + 2, the filter has
            unknown extents, channels do not divide into groups, or ``padding`` is missing or an
            attribute invalid.
        ShapeError: If the input has no channels, or is smaller than the filter's window.
        DTypeError: If only one of ``x`` and ``filters`` is float64.
    """
    _check_floats(call, x, filters)
    shape = inner_shape(call, x, count)
    taps = _filter_shape(call, call.shape(filters), count)
    groups = _groups(call, shape[-1], taps)
    return _convolve(
        call, x, widened(filters.entry), windows_of_node(call, shape[1:-1], taps[:-2]), groups
    )


def _convolve(
    call: ImportCall, x: ImportedValue, filters: Entry, windows: NodeWindows, groups: int
) -> Entry:
    """Convolve in channels-last layout and return the result in the node's data format.

    Args:
        call: The node.
        x: Input, in the node's data format; 16-bit floats are computed in float32.
        filters: Filter of shape (*window, channels per group, filters).
        windows: Strides, dilations and padding.
        groups: Number of groups of channels.

    Raises:
        ShapeError: If the shapes do not fit, for example an input smaller than the window.
        DTypeError: If only one of ``x`` and ``filters`` is float64.
        ModelError: If the data format is unknown or no string.
    """
    first = channels_first(call, len(windows.size))
    inner = windows.padded(to_last(widened(x.entry), first))
    out = ops.convolution(inner, filters, **windows.params, groups=groups, name=call.name)
    return as_dtype(from_last(out, first), x.entry)


@op_importer("DepthwiseConv2dNative")
def _depthwise(call: ImportCall, x: ImportedValue, filters: ImportedValue) -> ImportResult:
    """Import DepthwiseConv2dNative: each channel is convolved with filters of its own.

    Args:
        call: The node; its attributes hold strides, dilations, padding and data format.
        x: Images of rank 4, in the node's data format.
        filters: Filter of shape (height, width, channels, multiplier).

    Returns:
        Images of channels * multiplier channels, in the node's data format.

    Raises:
        ModelError: If inputs are no floats, a rank is unknown or other than 4, the filter has
            unknown extents, or ``padding`` is missing or an attribute invalid.
        ShapeError: If the numbers of channels differ or are 0, or the images are smaller than the
            window.
        DTypeError: If only one of ``x`` and ``filters`` is float64.
    """
    return depthwise_convolved(call, x, filters)


def depthwise_convolved(call: ImportCall, x: ImportedValue, filters: ImportedValue) -> Entry:
    """Return the depthwise convolution that a node describes, in its data format.

    Args:
        call: The node.
        x: Images of rank 4, in the node's data format.
        filters: Filter of shape (height, width, channels, multiplier).

    Raises:
        ModelError: If inputs are no floats, a rank is unknown or other than 4, the filter has
            unknown extents, or ``padding`` is missing or an attribute invalid.
        ShapeError: If the numbers of channels differ or are 0, or the images are smaller than the
            window.
        DTypeError: If only one of ``x`` and ``filters`` is float64.
    """
    _check_floats(call, x, filters)
    shape = inner_shape(call, x, 2)
    taps = _filter_shape(call, call.shape(filters), 2)
    windows = windows_of_node(call, shape[1:-1], taps[:2])
    return _convolve(call, x, _flatten_depthwise_filter(filters, taps), windows, taps[2])


def _flatten_depthwise_filter(filters: ImportedValue, taps: tuple[int, ...]) -> Entry:
    """Reshape a depthwise filter to one of a grouped convolution, with a group for each channel.

    Args:
        filters: Filter of shape (height, width, channels, multiplier).
        taps: That shape.

    Returns:
        The filter of shape (height, width, 1, channels * multiplier).
    """
    grouped: Entry = ops.reshape(widened(filters.entry), shape=(*taps[:2], 1, taps[2] * taps[3]))
    return grouped


# Back to the input: transposed convolutions


def _input_size(call: ImportCall, sizes: ImportedValue, count: int) -> Shape:
    """Return the input's shape (*size, channels); channels are -1 if ``sizes`` has none.

    Args:
        call: The node, which has the data format.
        sizes: The input ``input_sizes``: a shape in the node's data format, or its spatial sizes.
        count: Number of spatial axes.

    Raises:
        ModelError: If the list has another length, or is not known during import, or the data
            format is unknown or no string.
    """
    input_sizes = tuple(call.extents(sizes, "input_sizes"))
    if len(input_sizes) == count:
        return (*input_sizes, -1)
    if len(input_sizes) != count + 2:
        raise ModelError(
            f"{call.where} needs {count} or {count + 2} input_sizes, got {show_shape(input_sizes)}"
        )
    return (*input_sizes[2:], input_sizes[1]) if channels_first(call, count) else input_sizes[1:]


@op_importer("Conv2DBackpropInput", "Conv3DBackpropInputV2")
def _back_to_input(
    call: ImportCall, sizes: ImportedValue, filters: ImportedValue, dy: ImportedValue
) -> ImportResult:
    """Import Conv2DBackpropInput and Conv3DBackpropInputV2: the gradient of a convolution's input.

    Args:
        call: The node.
        sizes: Shape or spatial size of the input of the convolution.
        filters: Filter of the convolution.
        dy: Gradient of its result, in the node's data format.

    Returns:
        The gradient, in the node's data format and the dtype of ``dy``.

    Raises:
        ModelError: If filter or gradient are no floats or of another rank, ``sizes`` is not known
            or of another length, the filter has unknown extents, channels do not divide into
            groups, or ``padding`` is missing or an attribute invalid.
        ShapeError: If the shape of ``dy`` is not that of the convolution's result.
        DTypeError: If only one of ``dy`` and ``filters`` is float64.
    """
    _check_floats(call, filters, dy)
    count = AXES[call.node.op]
    *size, channels = _input_size(call, sizes, count)
    taps = _filter_shape(call, call.shape(filters), count)
    groups = 1 if channels == -1 else _groups(call, channels, taps)
    windows = windows_of_node(call, tuple(size), taps[:-2])
    return _gradient_of_input(call, widened(filters.entry), dy, windows, groups)


@op_importer("DepthwiseConv2dNativeBackpropInput")
def _depthwise_back_to_input(
    call: ImportCall, sizes: ImportedValue, filters: ImportedValue, dy: ImportedValue
) -> ImportResult:
    """Import DepthwiseConv2dNativeBackpropInput: the gradient of a depthwise convolution's input.

    Args:
        call: The node.
        sizes: Shape or spatial size of the input of the convolution.
        filters: Filter of shape (height, width, channels, multiplier).
        dy: Gradient of its result, in the node's data format.

    Returns:
        The gradient, in the node's data format and the dtype of ``dy``.

    Raises:
        ModelError: If filter or gradient are no floats or of another rank than 4, ``sizes`` is not
            known or of another length, the filter has unknown extents, or ``padding`` is missing or
            an attribute invalid.
        ShapeError: If the shape of ``dy`` is not that of the convolution's result.
        DTypeError: If only one of ``dy`` and ``filters`` is float64.
    """
    _check_floats(call, filters, dy)
    *size, _ = _input_size(call, sizes, 2)
    taps = _filter_shape(call, call.shape(filters), 2)
    windows = windows_of_node(call, tuple(size), taps[:2])
    return _gradient_of_input(call, _flatten_depthwise_filter(filters, taps), dy, windows, taps[2])


def _gradient_of_input(
    call: ImportCall, filters: Entry, dy: ImportedValue, windows: NodeWindows, groups: int
) -> Entry:
    """Return the gradient of a convolution's input; symbolic padding is cropped from it.

    Args:
        call: The node.
        filters: Filter of shape (*window, channels per group, filters).
        dy: Gradient of the result, in the node's data format.
        windows: Strides, dilations and padding of the convolution.
        groups: Number of groups of channels.

    Returns:
        The gradient in the node's data format and the dtype of ``dy``.

    Raises:
        ModelError: If the rank of ``dy`` is unknown or not that of the convolution, or the data
            format is unknown or no string.
        ShapeError: If its shape is not that of the convolution's result.
        DTypeError: If only one of ``dy`` and ``filters`` is float64.
    """
    count = len(windows.size)
    inner_shape(call, dy, count)
    first = channels_first(call, count)
    size = windows.size if windows.is_known else windows.padded_size
    out = ops.convolution_backprop_input(
        filters, to_last(widened(dy.entry), first), size=size, **windows.params, groups=groups
    )
    if not windows.is_known:
        begin = (0, *(low for low, _ in windows.padding), 0)
        out = ops.slice(out, begin=begin, size=(out.shape[0], *windows.size, out.shape[-1]))
    return as_dtype(from_last(out, first), dy.entry)


# Back to the filter


@op_importer("Conv2DBackpropFilter", "Conv3DBackpropFilterV2")
def _back_to_filter(
    call: ImportCall, x: ImportedValue, sizes: ImportedValue, dy: ImportedValue
) -> ImportResult:
    """Import Conv2DBackpropFilter and Conv3DBackpropFilterV2: the gradient of the filter.

    Args:
        call: The node.
        x: Input of the convolution, in the node's data format.
        sizes: Shape of the filter, known during import.
        dy: Gradient of the result, in the node's data format.

    Returns:
        The gradient, of shape ``sizes`` and in the dtype of ``x``.

    Raises:
        ModelError: If ``x`` or ``dy`` are no floats or of another rank, ``sizes`` is not known or
            of another length, channels do not divide into groups, or ``padding`` is missing or an
            attribute invalid.
        ShapeError: If the shapes of ``x`` and ``dy`` do not fit, or their channels are unknown.
        DTypeError: If only one of them is float64.
    """
    _check_floats(call, x, dy)
    count = AXES[call.node.op]
    taps = _filter_shape(call, call.ints(sizes, "filter_sizes"), count)
    groups = _groups(call, inner_shape(call, x, count)[-1], taps)
    return as_dtype(_gradient_of_filter(call, x, dy, taps[:-2], groups), x.entry)


@op_importer("DepthwiseConv2dNativeBackpropFilter")
def _depthwise_back_to_filter(
    call: ImportCall, x: ImportedValue, sizes: ImportedValue, dy: ImportedValue
) -> ImportResult:
    """Import DepthwiseConv2dNativeBackpropFilter: the gradient of a depthwise convolution's filter.

    Args:
        call: The node.
        x: Input of the convolution, in the node's data format.
        sizes: Shape of the filter, (height, width, channels, multiplier), known during import.
        dy: Gradient of the result, in the node's data format.

    Returns:
        The gradient, of shape ``sizes`` and in the dtype of ``x``.

    Raises:
        ModelError: If ``x`` or ``dy`` are no floats or of another rank than 4, ``sizes`` is not
            four known integers, or ``padding`` is missing or an attribute invalid.
        ShapeError: If the shapes of ``x``, ``dy`` and filter do not fit, or channels are unknown.
        DTypeError: If only one of ``x`` and ``dy`` is float64.
    """
    _check_floats(call, x, dy)
    taps = _filter_shape(call, call.ints(sizes, "filter_sizes"), 2)
    out = _gradient_of_filter(call, x, dy, taps[:2], taps[2])
    return as_dtype(ops.reshape(out, shape=taps), x.entry)


def _gradient_of_filter(
    call: ImportCall, x: ImportedValue, dy: ImportedValue, window: tuple[int, ...], groups: int
) -> Entry:
    """Return the gradient of a filter, of shape (*window, channels per group, filters).

    Args:
        call: The node.
        x: Input of the convolution, in the node's data format.
        dy: Gradient of its result, in the same format.
        window: Spatial extents of the filter.
        groups: Number of groups of channels.

    Raises:
        ModelError: If a rank is unknown or not that of the window plus 2, or ``padding`` is missing
            or an attribute invalid.
        ShapeError: If the shapes of ``x`` and ``dy`` do not fit, or their channels are unknown.
        DTypeError: If only one of them is float64.
    """
    count = len(window)
    windows = windows_of_node(call, inner_shape(call, x, count)[1:-1], window)
    inner_shape(call, dy, count)
    first = channels_first(call, count)
    gradient: Entry = ops.convolution_backprop_filter(
        windows.padded(to_last(widened(x.entry), first)),
        to_last(widened(dy.entry), first),
        window=window,
        **windows.params,
        groups=groups,
    )
    return gradient
