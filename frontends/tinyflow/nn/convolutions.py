"""Convolutions and pools, by TensorFlow's arguments."""

from __future__ import annotations

from typing import Any

from passkit.errors import SettingError
from passkit.frontends.tinyflow.deferring import (
    call_later,
    free_size,
    is_unranked,
    needs_ranks,
)
from passkit.frontends.tinyflow.numbers import real, rows, whole, wholes
from passkit.frontends.tinyflow.ranks import known_shape
from passkit.frontends.tinyflow.refusals import either, refuses
from passkit.frontends.tinyflow.shapes import extents_of
from passkit.frontends.tinyflow.tensors import (
    Tensor,
    convert_to_tensor,
    made,
    named,
    read,
)
from passkit.ops.helpers import make


def spatial(where: str, what: str, given: Any, data_format: str) -> tuple[int, int]:
    """The two spatial numbers of a window, stride or dilation: of one, two or four that are given.

    Four are in the order of ``data_format``; (1, height, width, 1) is TinyFlow's order for both.
    Raises: SettingError where those of batch and channels are not 1.
    """
    numbers = wholes(where, what, given)
    if len(numbers) == 1:
        return numbers[0], numbers[0]
    if len(numbers) == 2:
        return numbers[0], numbers[1]
    places = (2, 3) if data_format == "NCHW" else (1, 2)
    if len(numbers) == 4 and places == (2, 3) and numbers[1] != 1 and numbers[3] == 1:
        places = (1, 2)
    others = [n for k, n in enumerate(numbers) if k not in places]
    if len(numbers) != 4 or others != [1, 1]:
        raise SettingError(
            f"{where} needs 1, 2 or 4 numbers as {what}, those of batch and channels 1, got {given}"
        )
    return numbers[places[0]], numbers[places[1]]


def padded(where: str, padding: Any, data_format: str = "NHWC") -> Any:
    """SAME, VALID, or (before, after) for each axis, as passkit has it."""
    if isinstance(padding, str):
        if padding.upper() not in ("SAME", "VALID"):
            raise SettingError(f"{where} needs 'SAME' or 'VALID' as padding, got {padding!r}")
        return padding.upper()
    pairs = () if padding is None else rows(where, "padding", padding)
    if len(pairs) != 4:
        raise SettingError(
            f"{where} needs 'SAME', 'VALID' or four pairs as padding, got {padding!r}"
        )
    return pairs[2:] if data_format == "NCHW" else pairs[1:3]


@refuses("one library is chosen for all", "use_cudnn_on_gpu")
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
    """The convolution of sequences with a filter (width, channels, filters)."""
    layout = data_format or "NWC"
    if layout not in ("NWC", "NHWC", "NCW", "NCHW"):
        raise SettingError(f"conv1d needs 'NWC' or 'NCW' as data_format, got {data_format!r}")
    first = layout in ("NCW", "NCHW")
    axis = 2 if first else 1
    (step,) = wholes("conv1d", "stride", 1 if stride is None else stride)
    (spread,) = wholes("conv1d", "dilations", 1 if dilations is None else dilations)
    x = make("expand_dims", read(either("conv1d", "value", value, "input", input)), axis=axis)
    params = {
        "strides": (1, step),
        "padding": padded("conv1d", padding),
        "dilations": (1, spread),
        "data_format": "NCHW" if first else "NHWC",
    }
    out = make("conv2d", x, make("expand_dims", read(filters), axis=0), **params)
    return made("squeeze", "conv1d", name, out, axis=axis)


@refuses("one library is chosen for all", "use_cudnn_on_gpu")
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
    """The convolution of images with a filter (height, width, channels, filters).

    With TinyFlow's ``num_filter`` and ``ksize`` it is `convolution_layer`, which makes its filter.
    """
    if num_filter is not None:
        from passkit.frontends.tinyflow.nn.classic import convolution_layer  # it calls this

        own: Any = {"no_bias": no_bias, "name": name, "data_format": data_format or "NCHW"}
        steps = 1 if strides is None else strides
        return convolution_layer(input, num_filter, ksize, steps, padding or "VALID", **own)
    data_format = data_format or "NHWC"
    taps = either("conv2d", "filter", filter, "filters", filters)
    x = convert_to_tensor(input)
    if is_unranked(x) and read(taps).shape is not None:  # a run tells all but the channels
        full, count = named(name, "Conv2D"), known_shape(read(taps))[-1]
        sizes: list[Any] = [free_size(full, k) for k in range(4)]
        sizes[1 if data_format == "NCHW" else 3] = count
        given = {
            **{"input": x, "filter": taps, "strides": strides, "padding": padding},
            **{"data_format": data_format, "dilations": dilations},
        }
        return call_later(conv2d, given, [(tuple(sizes), x.dtype)], full)[0]
    params = {
        "strides": spatial("conv2d", "strides", 1 if strides is None else strides, data_format),
        "padding": padded("conv2d", padding, data_format),
        "dilations": spatial("conv2d", "dilations", dilations, data_format),
        "data_format": data_format,
    }
    return made("conv2d", "Conv2D", name, x.entry, read(taps), **params)


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
    """The transpose of `conv2d`; its filter is (height, width, result's channels, channels)."""
    where = "conv2d_transpose"
    x = either(where, "value", value, "input", input)
    taps = either(where, "filter", filter, "filters", filters)
    sizes = None if output_shape is None else extents_of(output_shape, where)
    params = {
        "strides": spatial(where, "strides", 1 if strides is None else strides, data_format),
        "padding": padded(where, padding, data_format),
        "dilations": spatial(where, "dilations", dilations or 1, data_format),
        "data_format": data_format,
        "output_shape": _size_only(sizes, data_format),
    }
    return made(where, where, name, read(x), read(taps), **params)


def _size_only(shape: Any, data_format: str) -> Any:
    """Of an output's shape the two that a transposed convolution may choose."""
    if shape is None or len(shape) == 2:
        return shape
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
    """The convolution of each channel with its own filters (height, width, channels, count)."""
    where, layout = "depthwise_conv2d", data_format or "NHWC"
    spread = either(where, "rate", rate, "dilations", dilations)
    params = {
        "strides": spatial(where, "strides", strides, layout),
        "padding": padded(where, padding, layout),
        "dilations": spatial(where, "dilations", spread or 1, layout),
        "data_format": layout,
    }
    return made(where, "depthwise", name, read(input), read(filter), **params)


def _pool(op: str, default: str) -> Any:
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
        x = either(default, "value", value, "input", input)
        params = {
            "window": spatial(default, "ksize", ksize, data_format),
            "strides": spatial(default, "strides", strides, data_format),
            "padding": padded(default, padding, data_format),
            "data_format": data_format,
        }
        return made(op, default, name, read(x), **params)

    return function


max_pool = _pool("max_pool2d", "MaxPool")
max_pool.__doc__ = "The largest element under each window; without padding, TinyFlow's call."
avg_pool = _pool("avg_pool2d", "AvgPool")
avg_pool.__doc__ = "The mean of the elements under each window; padding does not count."


@needs_ranks("BiasAdd")
def bias_add(
    value: Any, bias: Any, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """``value`` plus a number for each channel, which come last, or second with "NCHW"."""
    x, b = read(value), read(bias)
    if data_format not in (None, "NHWC", "NCHW", "N...C", "NC..."):
        raise SettingError(f"bias_add needs 'NHWC' or 'NCHW' as data_format, got {data_format!r}")
    if data_format in ("NCHW", "NC..."):
        from passkit.graph.op import get_op

        after = len(known_shape(x, "bias_add")) - 2
        b = get_op("reshape")(b, shape=(known_shape(b)[0], *(1,) * after))
    return made("add", "BiasAdd", name, x, b)


def xw_plus_b(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """x @ weights + biases."""
    from passkit.graph.op import get_op

    return made("add", "xw_plus_b", name, get_op("matmul")(read(x), read(weights)), read(biases))


def local_response_normalization(
    input: Any,
    depth_radius: int = 5,
    bias: float = 1,
    alpha: float = 1,
    beta: float = 0.5,
    name: str | None = None,
) -> Tensor:
    """x / (bias + alpha * the sum of squares of channels near by) ** beta."""
    lrn = "local_response_normalization"
    params = {
        "depth_radius": whole(lrn, "depth_radius", depth_radius),
        "bias": real(lrn, "bias", bias),
        "alpha": real(lrn, "alpha", alpha),
        "beta": real(lrn, "beta", beta),
    }
    return made(lrn, "LRN", name, read(input), **params)
