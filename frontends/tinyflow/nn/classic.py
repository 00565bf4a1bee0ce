"""TinyFlow's own names: layers that make their weights, and the shapes of what they made.

Images are as ``data_format`` says, by default with channels last, as everywhere in tinyflow;
weights have initial values, which TinyFlow's users assigned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from passkit.errors import ShapeError
from passkit.frontends.tinyflow import draws
from passkit.frontends.tinyflow.graphs import GraphKeys, get_default_graph
from passkit.frontends.tinyflow.initializers import glorot_uniform_initializer, zeros_initializer
from passkit.frontends.tinyflow.nn import convolutions
from passkit.frontends.tinyflow.nn.losses import sparse_softmax_cross_entropy_with_logits
from passkit.frontends.tinyflow.reductions import FUNCTIONS
from passkit.frontends.tinyflow.shapes import extents_of
from passkit.frontends.tinyflow.tensors import Tensor, convert_to_tensor, made, named, read
from passkit.frontends.tinyflow.variables import Variable
from passkit.graph import graph as core
from passkit.graph.node import known_shape
from passkit.values.size import numel


def normal(shape: Any, stdev: float = 1.0, name: str | None = None) -> Tensor:
    """Normal draws around 0."""
    return draws.random_normal(shape, 0.0, stdev, name=name)


def _weight(name: str, shape: list[Any], x: Tensor, initializer: Any) -> Variable:
    """A variable beside a layer. Raises: ShapeError when its shape hangs on a free size."""
    if not all(isinstance(n, int) for n in shape):
        raise ShapeError(f"'{name}' needs inputs of known length, got {x!r}; give it a shape")
    return Variable(lambda: initializer(shape, dtype=x.dtype), name=f"{name}/")


def linear(
    data: Any, num_hidden: int, no_bias: bool = True, name: str | None = None, weight: Any = None
) -> Tensor:
    """data @ weight.T, plus a bias without ``no_bias``; both are made unless given."""
    x, full = convert_to_tensor(data), named(name, "linear")
    shape = [int(num_hidden), known_shape(x.entry)[-1]]
    if weight is None:
        weight = _weight(f"{full}_weight", shape, x, glorot_uniform_initializer())
    out = made("matmul", "linear", f"{full}/", x.entry, read(weight), transpose_b=True)
    if no_bias:
        return out
    return out + _weight(f"{full}_bias", shape[:1], x, zeros_initializer())


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
    """The convolution with so many filters of its own, plus a bias without ``no_bias``."""
    x, full = convert_to_tensor(data), named(name, "conv2d")
    window = convolutions.spatial("conv2d", "ksize", ksize, "NHWC")
    channels = known_shape(x.entry)[1 if data_format == "NCHW" else -1]
    shape = [*window, channels, int(num_filter)]
    weight = _weight(f"{full}_weight", shape, x, glorot_uniform_initializer())
    step = convolutions.spatial("conv2d", "strides", strides, "NHWC")
    out = convolutions.conv2d(x, weight, step, padding, data_format=data_format, name=f"{full}/")
    if no_bias:
        return out
    bias = _weight(f"{full}_bias", shape[-1:], x, zeros_initializer())
    return convolutions.bias_add(out, bias, data_format)


def flatten_layer(data: Any, name: str | None = None) -> Tensor:
    """(examples, the rest in one axis)."""
    entry = read(data)
    sizes = known_shape(entry)
    return made("reshape", "flatten", name, entry, shape=(sizes[0], numel(sizes[1:])))


def mean_sparse_softmax_cross_entropy_with_logits(
    logits: Any, labels: Any, name: str | None = None
) -> Tensor:
    """The mean cross entropy of whole-number labels, of any dtype, and softmax(logits)."""
    whole = convert_to_tensor(labels)
    if whole.dtype.is_float:
        whole = made("cast", "labels", None, whole.entry, dtype="int32")
    losses = sparse_softmax_cross_entropy_with_logits(labels=whole, logits=logits)
    return FUNCTIONS["reduce_mean"](losses, name=name)


def infer_variable_shapes(
    net: Tensor, feed_dict: Mapping[Tensor, Any]
) -> Iterator[tuple[Variable, str, list[int]]]:
    """Variable, name and shape of each that ``net`` needs; they are known before any feed.

    Raises: ShapeError when a shape in ``feed_dict`` does not fit its placeholder.
    """
    for tensor, shape in feed_dict.items():
        found, wanted = known_shape(tensor.entry), extents_of(shape, "infer_variable_shapes")
        fits = len(found) == len(wanted) and all(
            not isinstance(n, int) or n == m for n, m in zip(found, wanted, strict=True)
        )
        if not fits:
            raise ShapeError(
                f"infer_variable_shapes needs a shape that fits {tensor!r}, got {shape}"
            )
    needed = set(core.post_order([net.entry.node]))
    for variable in get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES):
        if variable.state.node in needed:
            yield variable, variable._name, [int(n) for n in variable.shape]
