"""TinyFlow's own names: layers that make their weights, and the shapes of what they made.

Images are as ``data_format`` says, by default with channels last, as everywhere in tinyflow; called
by TinyFlow's own names, as ``tf.nn.conv2d(x, num_filter=…)``, with channels first, as there.
Weights have initial values, unless their shapes follow from a placeholder without one: then
`infer_variable_shapes` gives them, and the program assigns values, as TinyFlow's programs do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from passkit.errors import ShapeError
from passkit.frontends.tinyflow import arrays, draws
from passkit.frontends.tinyflow.deferring import call_later, is_unranked, needs_ranks
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
from passkit.frontends.tinyflow.numbers import whole
from passkit.frontends.tinyflow.pending import PendingVariable
from passkit.frontends.tinyflow.ranks import known_shape
from passkit.frontends.tinyflow.reductions import FUNCTIONS, moments
from passkit.frontends.tinyflow.resolving import is_waiting, resolve
from passkit.frontends.tinyflow.shapes import extents_of
from passkit.frontends.tinyflow.tensors import Tensor, convert_to_tensor, made, named, read
from passkit.frontends.tinyflow.variables import Variable
from passkit.graph import graph as core
from passkit.graph.node import Entry, var
from passkit.values.size import Shape, numel

BATCH_EPSILON = 1e-5
"""The epsilon that `batch_normalization_layer` adds to a variance, as Torch does."""


def normal(shape: Any, stdev: float = 1.0, name: str | None = None) -> Tensor:
    """Normal draws around 0."""
    return draws.random_normal(shape, 0.0, stdev, name=name)


def _weight(
    name: str, x: Tensor, shape_of: Callable[[Shape], Sequence[Any]], initializer: Any
) -> Variable:
    """A variable beside a layer, whose shape follows from that of its input.

    Raises: ShapeError when its shape hangs on a free size.
    """
    if is_unranked(x):
        return PendingVariable(name, x, shape_of)
    shape = list(shape_of(known_shape(x.entry)))
    if not all(isinstance(n, int) for n in shape):
        raise ShapeError(f"'{name}' needs inputs of known length, got {x!r}; give it a shape")
    return Variable(lambda: initializer(shape, dtype=x.dtype), name=f"{name}/")


def linear(
    data: Any, num_hidden: int, no_bias: bool = True, name: str | None = None, weight: Any = None
) -> Tensor:
    """data @ weight.T, plus a bias without ``no_bias``; both are made unless given."""
    x, full = convert_to_tensor(data), named(name, "linear")
    count = whole("linear", "num_hidden", num_hidden)
    if weight is None:
        weight = _weight(
            f"{full}_weight", x, lambda shape: [count, shape[-1]], glorot_uniform_initializer()
        )
    out = made("matmul", "linear", f"{full}/", x.entry, read(weight), transpose_b=True)
    if no_bias:
        return out
    return out + _weight(f"{full}_bias", x, lambda shape: [count], zeros_initializer())


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
    where, count = 1 if data_format == "NCHW" else -1, whole("conv2d", "num_filter", num_filter)
    weight = _weight(
        f"{full}_weight",
        x,
        lambda shape: [*window, shape[where], count],
        glorot_uniform_initializer(),
    )
    step = convolutions.spatial("conv2d", "strides", strides, "NHWC")
    out = convolutions.conv2d(x, weight, step, padding, data_format=data_format, name=f"{full}/")
    if no_bias:
        return out
    bias = _weight(f"{full}_bias", x, lambda shape: [count], zeros_initializer())
    return convolutions.bias_add(out, bias, data_format)


def batch_normalization_layer(
    data: Any, data_format: str = "NCHW", name: str | None = None
) -> Tensor:
    """Each channel of images with mean 0 and variance 1 of the batch, times gamma, plus beta.

    Both are variables of the layer. Source: TinyFlow's batch_normalization, which trains always.
    """
    x, full = convert_to_tensor(data), named(name, "batch_normalization")
    where = 1 if data_format == "NCHW" else -1
    gamma, beta = (
        _weight(f"{full}_{what}", x, lambda shape: [shape[where]], first)
        for what, first in (("gamma", ones_initializer()), ("beta", zeros_initializer()))
    )
    inputs: Any = {"x": x, "gamma": gamma, "beta": beta, "data_format": data_format}
    if is_unranked(x):
        return call_later(_batch_normalized, inputs, [(None, x.dtype)], full)[0]
    return _batch_normalized(**inputs, name=f"{full}/")


def _batch_normalized(
    x: Tensor, gamma: Tensor, beta: Tensor, data_format: str, name: str
) -> Tensor:
    """``x`` normalised by the statistics of the batch."""
    rank = len(known_shape(x.entry))
    place = 1 if data_format == "NCHW" else rank - 1
    around = [k for k in range(rank) if k != place]
    mean, variance = moments(x, around, keep_dims=True)
    shape = tuple(-1 if k == place else 1 for k in range(rank))
    factor, offset = (arrays.reshape(t, shape) for t in (gamma, beta))
    return batch_normalization(x, mean, variance, offset, factor, BATCH_EPSILON, name)


@needs_ranks("flatten")
def flatten_layer(data: Any, name: str | None = None) -> Tensor:
    """(examples, the rest in one axis)."""
    entry = read(data)
    sizes = known_shape(entry, "flatten_layer")
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
    """Variable, name and shape of each that ``net`` needs, for placeholders of these shapes.

    Weights of layers whose inputs have no shape get theirs here, and keep it.

    Raises: ShapeError when a shape in ``feed_dict`` does not fit its placeholder, or a weight.
    """
    told: dict[Entry, Entry] = {}
    for tensor, shape in feed_dict.items():
        wanted = extents_of(shape, "infer_variable_shapes")
        told[tensor.entry] = var(tensor._name, wanted, tensor.dtype)
        if is_unranked(tensor):
            continue
        found = known_shape(tensor.entry)
        fits = len(found) == len(wanted) and all(
            not isinstance(n, int) or n == m for n, m in zip(found, wanted, strict=True)
        )
        if not fits:
            raise ShapeError(
                f"infer_variable_shapes needs a shape that fits {tensor!r}, got {shape}"
            )
    order = core.post_order([net.entry.node])
    if is_waiting(order):
        resolve(net.graph, order, told)
    needed = set(order)
    for variable in get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES):
        if {variable.home.node, variable.state.node} & needed:
            yield variable, variable._name, [int(n) for n in variable.shape]
