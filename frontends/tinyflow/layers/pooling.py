"""Pooling layers of ``tf.layers``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from passkit.frontends.tinyflow import arrays
from passkit.frontends.tinyflow.argument_checks import require_single_int
from passkit.frontends.tinyflow.layers.common import parse_layout, require_padding
from passkit.frontends.tinyflow.nn import convolutions
from passkit.frontends.tinyflow.tensors import Tensor

_ARGS = """

    Args:
        inputs: {inputs}
        pool_size: The size of the window, {numbers}.
        strides: The step of the window, {numbers}.
        padding: "valid" (default), or "same" for results of the inputs' size over the strides,
            rounded up.
        data_format: "channels_last" (default) or "channels_first".
        name: The name of the result; "{name}" by default.

    Returns:
        A tensor with a result for each position of the window, channels as in ``inputs``.

    Raises:
        SettingError: For another padding or data_format, or a size that is not made of ints.
        ShapeError: If ``inputs`` has another rank, the window does not fit, or a size is below 1.
        GraphError: For a tensor as size, which has no numbers before a run.
        DTypeError: If ``inputs`` holds {refused}.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """


def _refused_elements(pool: Callable[..., Tensor]) -> str:
    """Return in words what elements `tf.nn.max_pool` or `tf.nn.avg_pool`, ``pool``, refuses."""
    return "bools or complex numbers" if pool is convolutions.max_pool else "no floats"


def _pooling1d_layer(pool: Callable[..., Tensor], name: str, summary: str) -> Callable[..., Tensor]:
    """Create a pooling layer of sequences from a pooling function of images.

    Args:
        pool: `tf.nn.max_pool` or `tf.nn.avg_pool`.
        name: The name of the function.
        summary: The first line of its docstring.
    """

    def function(
        inputs: Any,
        pool_size: Any,
        strides: Any,
        padding: str = "valid",
        data_format: str = "channels_last",
        name: str | None = None,
    ) -> Tensor:
        layout = parse_layout(layer_name, data_format)
        require_padding(layer_name, padding)
        size = require_single_int(layer_name, "pool_size", pool_size)
        step = require_single_int(layer_name, "strides", strides)
        axis = 2 if layout == "NCHW" else 1
        images = arrays.expand_dims(inputs, axis)
        pooled = pool(images, [1, size], [1, step], padding, layout)
        return arrays.squeeze(pooled, axis, name or layer_name)

    layer_name = name
    inputs = "Sequences of shape (batch, steps, channels), or (batch, channels, steps)."
    function.__doc__ = summary + _ARGS.format(
        inputs=inputs, numbers="one int", name=layer_name, refused=_refused_elements(pool)
    )
    function.__name__ = function.__qualname__ = layer_name
    return function


def _pooling2d_layer(pool: Callable[..., Tensor], name: str, summary: str) -> Callable[..., Tensor]:
    """Create a pooling layer of images from a pooling function of images.

    Args:
        pool: `tf.nn.max_pool` or `tf.nn.avg_pool`.
        name: The name of the function.
        summary: The first line of its docstring.
    """

    def function(
        inputs: Any,
        pool_size: Any,
        strides: Any,
        padding: str = "valid",
        data_format: str = "channels_last",
        name: str | None = None,
    ) -> Tensor:
        layout = parse_layout(layer_name, data_format)
        require_padding(layer_name, padding)
        return pool(inputs, pool_size, strides, padding, layout, name or layer_name)

    layer_name = name
    inputs = (
        "Images of shape (batch, height, width, channels), or (batch, channels, height, width)."
    )
    function.__doc__ = summary + _ARGS.format(
        inputs=inputs,
        numbers="one int or (height, width)",
        name=layer_name,
        refused=_refused_elements(pool),
    )
    function.__name__ = function.__qualname__ = layer_name
    return function


max_pooling1d = _pooling1d_layer(
    convolutions.max_pool,
    "max_pooling1d",
    "Return the largest element under each window of sequences.",
)
average_pooling1d = _pooling1d_layer(
    convolutions.avg_pool,
    "average_pooling1d",
    "Return the mean of the elements under each window of sequences; padding does not count.",
)
max_pooling2d = _pooling2d_layer(
    convolutions.max_pool,
    "max_pooling2d",
    "Return the largest element under each window of images.",
)
average_pooling2d = _pooling2d_layer(
    convolutions.avg_pool,
    "average_pooling2d",
    "Return the mean of the elements under each window of images; padding does not count.",
)
