"""Convolutions, their transposes, and pools.

Images have channels in axis 1 and weights the layout of PyTorch, unless ``data_format`` puts the
channels last. passkit's kernels read channels last: transposes fuse, but cost time where nothing
does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import passkit.ops as ops
from passkit.errors import ArgumentError, ShapeError
from passkit.frontends.xp.array import Array
from passkit.frontends.xp.nn.operands import (
    applied,
    checked_rank,
    define,
    real_array,
    real_value,
    real_values,
)
from passkit.frontends.xp.reductions import truth
from passkit.frontends.xp.statistical import max as largest
from passkit.frontends.xp.statistical import mean
from passkit.graph.node import MOST_ELEMENTS, Entry, known_shape
from passkit.values.arguments import refuse, shown

Numbers = int | tuple[int, ...]
"""A number for all spatial axes, or one for each."""


# Convolutions.

FORMATS = {
    1: ("NCW", "NWC"),
    2: ("NCHW", "NHWC"),
    3: ("NCDHW", "NDHWC"),
}
"""Data formats by the number of spatial axes: channels first, channels last."""


def _convolution(name: str, count: int) -> Callable[..., Entry]:
    """Return the function that builds the operator ``name`` over ``count`` spatial axes.

    It takes entries of an image, a filter in the layout of ``data_format``, and perhaps a bias;
    further parameters are those of the operator.
    """
    call = getattr(ops, name)

    def build(x: Entry, weight: Entry, *bias: Entry, data_format: str, **params: Any) -> Entry:
        is_first = data_format in ("NCW", "NCHW", "NCDHW")
        if is_first:
            weight = ops.transpose(weight, axes=(*range(2, count + 2), 1, 0))
        result: Entry = call(x, weight, data_format=data_format, **params)
        if bias and is_first:
            return result + ops.reshape(bias[0], shape=(known_shape(bias[0])[0], *(1,) * count))
        return result + bias[0] if bias else result

    return build


for _count in FORMATS:
    for _name in (f"conv{_count}d", f"conv{_count}d_transpose"):
        define(_name, _convolution(_name, _count))


def _checked_format(where: str, data_format: Any, count: int) -> str:
    """Return ``data_format``. Raises: ArgumentError unless it is one for ``count`` spatial axes.

    The two formats of each count are in `FORMATS`, in capitals only.
    """
    if not isinstance(data_format, str) or data_format not in FORMATS[count]:
        first, last = FORMATS[count]
        raise ArgumentError(
            f"{where}: data_format must be '{first}' or '{last}', got {shown(data_format)}"
        )
    return str(data_format)


def _hashable(where: str, x: Any) -> Any:
    """Return a parameter of an operator, with lists as tuples and texts in capitals.

    ``where`` names the function and the parameter, for messages.

    Raises:
        ArgumentError: It contains anything but None, texts and numbers of Python or NumPy.
        ShapeError: It contains an int of a magnitude above `MOST_ELEMENTS`.
    """
    if isinstance(x, str):
        return x.upper()
    if isinstance(x, (tuple, list)):
        return tuple([_hashable(where, each) for each in x])
    if x is not None and not isinstance(x, (int, float, np.integer, np.floating)):
        refuse(where, x, "a number, a text or a tuple of numbers")
    if isinstance(x, int) and abs(x) > MOST_ELEMENTS:
        raise ShapeError(f"{where} must be at most {MOST_ELEMENTS}, got {shown(x)}")
    return x


def _convolved(
    name: str,
    count: int,
    x: Any,
    weight: Any,
    bias: Any,
    data_format: Any,
    stride: Numbers,
    padding: Any,
    dilation: Numbers,
    groups: int,
    **params: Any,
) -> Array:
    """Apply a convolution over ``count`` spatial axes: the operation ``name``.

    It has the further parameters ``params``. The other arguments are the image, the filters, a
    vector of summands or None, the name of the layout, and numbers for all spatial axes or each,
    see `conv2d`.

    Raises:
        ArgumentError: an operand is neither an array nor a real number, there is no such format, or
            a parameter holds neither numbers nor a text.
        DTypeError: an operand is an array of complex numbers or of a dtype that passkit does not
            have, or an int too large for a float.
        ShapeError: the shapes or parameters do not fit.
        DeviceError: the arrays are on several devices.
    """
    data_format = _checked_format(name, data_format, count)
    values = real_values(name, optional=("bias",), x=x, weight=weight, bias=bias)
    checked_rank(name, x, count + 2, f"{data_format} (rank {count + 2})")
    if bias is not None and len(values[2].type.shape) != 1:
        raise ShapeError(f"{name} needs a vector as bias, got shape {values[2].type.shape}")
    params |= {"strides": stride, "padding": padding, "dilations": dilation, "groups": groups}
    settings = {k: _hashable(f"{name}: {k}", v) for k, v in params.items()}
    return applied(name, *values, data_format=data_format, **settings)


def conv1d(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Numbers = 1,
    padding: Any = 0,
    dilation: Numbers = 1,
    groups: int = 1,
    *,
    data_format: str = "NCW",
) -> Array:
    """Return the convolution over one spatial axis.

    ``x`` is (batch, channels, width) and ``weight`` (filters, channels / groups, width); with the
    format NWC, (batch, width, channels) and (width, channels / groups, filters). ``bias`` is a
    vector with a summand for each filter, or one for all; None for none. ``stride`` and
    ``dilation`` are the distances of neighbouring windows and of elements in one, ints from 1 on;
    ``padding`` is zeros around ``x``: an int, pairs of ints before and after, "valid" (none) or
    "same"; ``groups`` of channels are convolved separately. See `conv2d`.

    Raises:
        ArgumentError: an operand is neither an array nor a real number, there is no such format, or
            a parameter holds neither numbers nor a text.
        DTypeError: an operand is an array of complex numbers or of a dtype that passkit does not
            have, or an int too large for a float.
        ShapeError: shapes, strides, padding, dilation or groups do not fit.
        DeviceError: the arrays are on several devices.
    """
    return _convolved("conv1d", 1, x, weight, bias, data_format, stride, padding, dilation, groups)


def conv2d(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Numbers = 1,
    padding: Any = 0,
    dilation: Numbers = 1,
    groups: int = 1,
    *,
    data_format: str = "NCHW",
) -> Array:
    """Return the convolution over two spatial axes: sums of products, with weights not flipped.

    Args:
        x: images (batch, channels, height, width); with the format NHWC the channels are last.
            Integers are computed in float64.
        weight: filters (filters, channels / groups, height, width); with the format NHWC
            (height, width, channels / groups, filters).
        bias: a vector with a summand for each filter, or one for all; or None.
        stride: the distance of neighbouring windows, an int from 1 on for all spatial axes, or a
            tuple or list of one for each.
        padding: zeros around the image: an int from 0 on, one for each spatial axis, pairs of them
            before and after it, "valid" (none) or "same" (the result has ceil(extent / stride)
            elements along each spatial axis), in any case of letters.
        dilation: the distance of neighbouring elements of a window.
        groups: the number of groups of channels that are convolved separately.
        data_format: "NCHW" or "NHWC", in capitals.

    Returns: An array of the common float dtype, float64 for integers, in the layout of ``x``.

    Raises:
        ArgumentError: an operand is neither an array nor a real number, there is no such format, or
            a parameter holds neither numbers nor a text.
        DTypeError: an operand is an array of complex numbers or of a dtype that passkit does not
            have, or an int too large for a float.
        ShapeError: shapes, strides, padding, dilation or groups do not fit.
        DeviceError: the arrays are on several devices.
    """
    return _convolved("conv2d", 2, x, weight, bias, data_format, stride, padding, dilation, groups)


def conv3d(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Numbers = 1,
    padding: Any = 0,
    dilation: Numbers = 1,
    groups: int = 1,
    *,
    data_format: str = "NCDHW",
) -> Array:
    """Return the convolution over three spatial axes.

    ``x`` is (batch, channels, depth, height, width) and ``weight`` (filters, channels / groups,
    depth, height, width); with the format NDHWC, channels are the last axis of ``x``, and the
    weight ends with channels / groups, filters. ``bias`` is a vector with a summand for each
    filter, or one for all; None for none. ``stride`` and ``dilation`` are the distances of
    neighbouring windows and of elements in one, ints from 1 on for all axes or one for each;
    ``padding`` is zeros around ``x``: an int, pairs of ints before and after, "valid" (none) or
    "same"; ``groups`` of channels are convolved separately. See `conv2d`.

    Raises:
        ArgumentError: an operand is neither an array nor a real number, there is no such format, or
            a parameter holds neither numbers nor a text.
        DTypeError: an operand is an array of complex numbers or of a dtype that passkit does not
            have, or an int too large for a float.
        ShapeError: shapes, strides, padding, dilation or groups do not fit.
        DeviceError: the arrays are on several devices.
    """
    return _convolved("conv3d", 3, x, weight, bias, data_format, stride, padding, dilation, groups)


def conv1d_transpose(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Numbers = 1,
    padding: Any = 0,
    output_padding: Numbers = 0,
    groups: int = 1,
    dilation: Numbers = 1,
    *,
    data_format: str = "NCW",
) -> Array:
    """Return the transpose of `conv1d`: the gradient of a convolution by its image.

    ``x`` is (batch, channels, width) and ``weight`` (channels, filters / groups, width); with the
    format NWC, (batch, width, channels) and (width, filters / groups, channels). ``bias`` is a
    vector with a summand for each filter, or one for all; None for none. ``stride`` is the distance
    of neighbouring windows in the result, ``dilation`` that of elements in a window, ints from 1
    on; ``padding`` is cut off around the result; ``output_padding``, below the stride, makes its
    ends longer; ``groups`` of channels are convolved separately. See `conv2d_transpose`.

    Raises:
        ArgumentError: an operand is neither an array nor a real number, there is no such format, or
            a parameter holds neither numbers nor a text.
        DTypeError: an operand is an array of complex numbers or of a dtype that passkit does not
            have, or an int too large for a float.
        ShapeError: shapes, strides, paddings, dilation or groups do not fit.
        DeviceError: the arrays are on several devices.
    """
    return _convolved(
        "conv1d_transpose",
        1,
        x,
        weight,
        bias,
        data_format,
        stride,
        padding,
        dilation,
        groups,
        output_padding=output_padding,
    )


def conv2d_transpose(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Numbers = 1,
    padding: Any = 0,
    output_padding: Numbers = 0,
    groups: int = 1,
    dilation: Numbers = 1,
    *,
    data_format: str = "NCHW",
) -> Array:
    """Return the transpose of `conv2d`: the gradient of a convolution by its image.

    Args:
        x: images (batch, channels, height, width); with the format NHWC the channels are last.
        weight: filters (channels, filters / groups, height, width); with the format NHWC
            (height, width, filters / groups, channels).
        bias: a vector with a summand for each filter, or one for all; or None.
        stride: the distance of neighbouring windows in the result.
        padding: what is cut off around the result, as the padding of `conv2d`.
        output_padding: how much longer the result is at its ends than the smallest that fits;
            below the stride.
        groups: the number of groups of channels that are convolved separately.
        dilation: the distance of neighbouring elements of a window.
        data_format: "NCHW" or "NHWC".

    Raises:
        ArgumentError: an operand is neither an array nor a real number, there is no such format, or
            a parameter holds neither numbers nor a text.
        DTypeError: an operand is an array of complex numbers or of a dtype that passkit does not
            have, or an int too large for a float.
        ShapeError: shapes, strides, paddings, dilation or groups do not fit.
        DeviceError: the arrays are on several devices.
    """
    return _convolved(
        "conv2d_transpose",
        2,
        x,
        weight,
        bias,
        data_format,
        stride,
        padding,
        dilation,
        groups,
        output_padding=output_padding,
    )


def conv3d_transpose(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Numbers = 1,
    padding: Any = 0,
    output_padding: Numbers = 0,
    groups: int = 1,
    dilation: Numbers = 1,
    *,
    data_format: str = "NCDHW",
) -> Array:
    """Return the transpose of `conv3d`: the gradient of a convolution by its image.

    ``x`` is (batch, channels, depth, height, width) and ``weight`` (channels, filters / groups,
    depth, height, width); with the format NDHWC, channels are the last axis of ``x``, and the
    weight ends with filters / groups, channels. ``bias`` is a vector with a summand for each
    filter, or one for all; None for none. ``stride`` is the distance of neighbouring windows in the
    result, ``dilation`` that of elements in a window, ints from 1 on for all axes or one for each;
    ``padding`` is cut off around the result; ``output_padding``, below the stride, makes its ends
    longer; ``groups`` of channels are convolved separately. See `conv2d_transpose`.

    Raises:
        ArgumentError: an operand is neither an array nor a real number, there is no such format, or
            a parameter holds neither numbers nor a text.
        DTypeError: an operand is an array of complex numbers or of a dtype that passkit does not
            have, or an int too large for a float.
        ShapeError: shapes, strides, paddings, dilation or groups do not fit.
        DeviceError: the arrays are on several devices.
    """
    return _convolved(
        "conv3d_transpose",
        3,
        x,
        weight,
        bias,
        data_format,
        stride,
        padding,
        dilation,
        groups,
        output_padding=output_padding,
    )


# Pools.

for _count in FORMATS:
    for _name in (f"avg_pool{_count}d", f"max_pool{_count}d"):
        define(_name, getattr(ops, _name))


def _pooled(name: str, count: int, x: Any, data_format: Any, **params: Any) -> Array:
    """Apply the pool ``name`` over ``count`` spatial axes, with the parameters of its operator.

    Raises:
        ArgumentError: ``x`` is neither an array nor a real number, there is no such format, or a
            parameter holds neither numbers nor a text.
        DTypeError: ``x`` is an array of complex numbers.
        ShapeError: the shape or parameters do not fit.
    """
    data_format = _checked_format(name, data_format, count)
    value = real_value(name, "x", x)
    checked_rank(name, x, count + 2, f"{data_format} (rank {count + 2})")
    settings = {k: _hashable(f"{name}: {k}", v) for k, v in params.items()}
    return applied(name, value, data_format=data_format, **settings)


def max_pool1d(
    x: Any,
    window: Numbers,
    stride: Numbers | None = None,
    padding: Any = 0,
    dilation: Numbers = 1,
    *,
    data_format: str = "NCW",
) -> Array:
    """Return the largest element under each window of one spatial axis; NaN if there is one.

    ``x`` is (batch, channels, width); with the format NWC the channels are last. ``window`` and
    ``stride`` are the extent and the distance of windows; a ``stride`` of None is the window.
    ``padding`` is elements around ``x`` that are never the largest; ``dilation`` the distance of
    elements in a window. See `max_pool2d`.

    Raises:
        ArgumentError: ``x`` is neither an array nor a real number, there is no such format, or a
            parameter holds neither numbers nor a text.
        DTypeError: ``x`` is an array of complex numbers.
        ShapeError: the shape, window, stride, padding or dilation does not fit.
    """
    params = {"window": window, "strides": stride, "padding": padding, "dilations": dilation}
    return _pooled("max_pool1d", 1, x, data_format, **params)


def max_pool2d(
    x: Any,
    window: Numbers,
    stride: Numbers | None = None,
    padding: Any = 0,
    dilation: Numbers = 1,
    *,
    data_format: str = "NCHW",
) -> Array:
    """Return the largest element under each window of two spatial axes; NaN if there is one.

    Args:
        x: images (batch, channels, height, width); with the format NHWC the channels are last.
            Integers are computed in float64.
        window: the elements of a window along all spatial axes, or each.
        stride: the distance of neighbouring windows; None: that of the window, which tiles.
        padding: elements around the image, which are never the largest; as of `conv2d`. A window
            of nothing else gives -inf.
        dilation: the distance of neighbouring elements of a window.
        data_format: "NCHW" or "NHWC".

    Raises:
        ArgumentError: ``x`` is neither an array nor a real number, there is no such format, or a
            parameter holds neither numbers nor a text.
        DTypeError: ``x`` is an array of complex numbers.
        ShapeError: the shape, window, stride, padding or dilation does not fit.
    """
    params = {"window": window, "strides": stride, "padding": padding, "dilations": dilation}
    return _pooled("max_pool2d", 2, x, data_format, **params)


def max_pool3d(
    x: Any,
    window: Numbers,
    stride: Numbers | None = None,
    padding: Any = 0,
    dilation: Numbers = 1,
    *,
    data_format: str = "NCDHW",
) -> Array:
    """Return the largest element under each window of three spatial axes; NaN if there is one.

    ``x`` is (batch, channels, depth, height, width); with the format NDHWC the channels are last.
    ``window`` and ``stride`` are the extent and the distance of windows, one number for all axes or
    one for each; a ``stride`` of None is the window. ``padding`` is elements around ``x`` that are
    never the largest; ``dilation`` the distance of elements in a window. See `max_pool2d`.

    Raises:
        ArgumentError: ``x`` is neither an array nor a real number, there is no such format, or a
            parameter holds neither numbers nor a text.
        DTypeError: ``x`` is an array of complex numbers.
        ShapeError: the shape, window, stride, padding or dilation does not fit.
    """
    params = {"window": window, "strides": stride, "padding": padding, "dilations": dilation}
    return _pooled("max_pool3d", 3, x, data_format, **params)


def avg_pool1d(
    x: Any,
    window: Numbers,
    stride: Numbers | None = None,
    padding: Any = 0,
    count_include_pad: bool = True,
    *,
    data_format: str = "NCW",
) -> Array:
    """Return the mean under each window of one spatial axis.

    ``x`` is (batch, channels, width); with the format NWC the channels are last. ``window`` and
    ``stride`` are the extent and the distance of windows; a ``stride`` of None is the window.
    ``padding`` is zeros around ``x``, which count in the mean if ``count_include_pad``. See
    `avg_pool2d`.

    Raises:
        ArgumentError: ``x`` is neither an array nor a real number, there is no such format, or a
            parameter holds neither numbers nor a text.
        DTypeError: ``x`` is an array of complex numbers.
        ShapeError: the shape, window, stride or padding does not fit.
    """
    params = {"window": window, "strides": stride, "padding": padding}
    params["count_include_pad"] = truth("avg_pool1d: count_include_pad", count_include_pad)
    return _pooled("avg_pool1d", 1, x, data_format, **params)


def avg_pool2d(
    x: Any,
    window: Numbers,
    stride: Numbers | None = None,
    padding: Any = 0,
    count_include_pad: bool = True,
    *,
    data_format: str = "NCHW",
) -> Array:
    """Return the mean under each window of two spatial axes.

    Args:
        x: images (batch, channels, height, width); with the format NHWC the channels are last.
            Integers are computed in float64.
        window: the elements of a window along all spatial axes, or each.
        stride: the distance of neighbouring windows; None: that of the window, which tiles.
        padding: zeros around the image; as of `conv2d`.
        count_include_pad: whether they count in the mean; else a window of nothing else gives NaN.
        data_format: "NCHW" or "NHWC".

    Raises:
        ArgumentError: ``x`` is neither an array nor a real number, there is no such format, or a
            parameter holds neither numbers nor a text.
        DTypeError: ``x`` is an array of complex numbers.
        ShapeError: the shape, window, stride or padding does not fit.
    """
    params = {"window": window, "strides": stride, "padding": padding}
    params["count_include_pad"] = truth("avg_pool2d: count_include_pad", count_include_pad)
    return _pooled("avg_pool2d", 2, x, data_format, **params)


def avg_pool3d(
    x: Any,
    window: Numbers,
    stride: Numbers | None = None,
    padding: Any = 0,
    count_include_pad: bool = True,
    *,
    data_format: str = "NCDHW",
) -> Array:
    """Return the mean under each window of three spatial axes.

    ``x`` is (batch, channels, depth, height, width); with the format NDHWC the channels are last.
    ``window`` and ``stride`` are the extent and the distance of windows, one number for all axes or
    one for each; a ``stride`` of None is the window. ``padding`` is zeros around ``x``, which count
    in the mean if ``count_include_pad``. See `avg_pool2d`.

    Raises:
        ArgumentError: ``x`` is neither an array nor a real number, there is no such format, or a
            parameter holds neither numbers nor a text.
        DTypeError: ``x`` is an array of complex numbers.
        ShapeError: the shape, window, stride or padding does not fit.
    """
    params = {"window": window, "strides": stride, "padding": padding}
    params["count_include_pad"] = truth("avg_pool3d: count_include_pad", count_include_pad)
    return _pooled("avg_pool3d", 3, x, data_format, **params)


def _spatial_axes(name: str, x: Any, channels_last: bool) -> tuple[Array, tuple[int, ...]]:
    """Return an operand as an array, and its spatial axes: all but the batch and the channels.

    The channels are axis 1, or the last one if ``channels_last``.

    Raises:
        ArgumentError: it is neither an array nor a real number.
        DTypeError: it is an array of complex numbers.
        ShapeError: it has fewer than three axes.
    """
    array = real_array(name, "x", x)
    if array.ndim < 3:
        raise ShapeError(f"{name} needs batch, channels and spatial axes, got shape {array.shape}")
    is_last = truth(f"{name}: channels_last", channels_last)
    return array, tuple(range(1, array.ndim - 1) if is_last else range(2, array.ndim))


def global_avg_pool(x: Any, *, channels_last: bool = False, keepdims: bool = False) -> Array:
    """Return the mean of each channel over all spatial axes, as floats; float64 for integers.

    Args:
        x: images (batch, channels, …).
        channels_last: whether they are (batch, …, channels).
        keepdims: keep the spatial axes with extent 1.

    Raises:
        ArgumentError: it is neither an array nor a real number.
        DTypeError: it is an array of complex numbers.
        ShapeError: it has no spatial axes.
    """
    array, axes = _spatial_axes("global_avg_pool", x, channels_last)
    return mean(array, axis=axes, keepdims=keepdims)


def global_max_pool(x: Any, *, channels_last: bool = False, keepdims: bool = False) -> Array:
    """Return the largest element of each channel over all spatial axes, in the dtype of ``x``.

    Args:
        x: images (batch, channels, …).
        channels_last: whether they are (batch, …, channels).
        keepdims: keep the spatial axes with extent 1.

    Raises:
        ArgumentError: it is neither an array nor a real number.
        DTypeError: it is an array of complex numbers.
        ShapeError: it has no spatial axes, or no elements along them.
    """
    array, axes = _spatial_axes("global_max_pool", x, channels_last)
    return largest(array, axis=axes, keepdims=keepdims)
