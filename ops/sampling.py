"""Random operators that follow a tensor: dropout, Gumbel softmax, classes, permutations."""

from __future__ import annotations

from passkit.errors import GraphError
from passkit.graph.call import convert
from passkit.graph.node import Entry, Node, known_dtype, known_shape
from passkit.graph.op import REQUIRED
from passkit.ops.composites import composite
from passkit.ops.helpers import (
    check_broadcast,
    check_kinds,
    count_param,
    make,
    normalize_axis,
    parse_extents,
)
from passkit.ops.random import check_key_type
from passkit.values.dtype import DType, bool_, float32, int64
from passkit.values.size import Shape


def _infer_float_type(node: Node, x: DType, key: DType) -> DType:
    """Return the dtype of ``x``, the first input; ``key`` is that of the random key.

    Raises: DTypeError, naming ``node``, if ``x`` is no float, or the key is not int64.
    """
    check_kinds(node, "f", x)
    check_key_type(node, key)
    return x


def _gumbel_noise(key: Entry, like: Entry) -> Entry:
    """Return Gumbel noise of the shape and dtype of ``like``, drawn with ``key``.

    Raises: ShapeError if the rank of ``like`` is unknown or the key no scalar, DTypeError if its
    dtype is unknown or no float.
    """
    return make("random_gumbel", key, shape=known_shape(like), dtype=known_dtype(like).name)


def _draw_shape(node: Node, x: Entry, name: str) -> Shape:
    """Return the parameter ``name`` of ``node``, a shape, or where it is None the shape of ``x``.

    One extent gives a tuple of one; negative ints are not refused here.

    Raises: ShapeError if it is no ints or sizes, or None and the rank of ``x`` unknown.
    """
    shape = node.params[name]
    return known_shape(x) if shape is None else parse_extents(node, shape, name)


# Bernoulli draws and dropout.


def _bernoulli(node: Node, p: Entry, key: Entry) -> Entry:
    """Expand bernoulli: True where a uniform number is below the probability ``p``.

    The numbers have the parameter ``shape`` of ``node``, or for None the shape of p; they are
    float32 and drawn with the random ``key``.

    Raises: ShapeError if it is no shape or p does not broadcast to it, or the key is no scalar.
    """
    shape = _draw_shape(node, p, "shape")
    check_broadcast(node, known_shape(p), shape, "p")
    return make("random_uniform", key, shape=shape) < convert(p, float32)


def _infer_bernoulli_type(node: Node, p: DType, key: DType) -> DType:
    """Infer the dtype, bool.

    Raises: DTypeError, naming ``node``, if ``p`` is no float or ``key`` not int64.
    """
    _infer_float_type(node, p, key)
    return bool_


def _dropout(node: Node, x: Entry, key: Entry) -> Entry:
    """Zero elements and scale the others by 1 / (1 - rate); an identity for rate 0.

    The mask is drawn in float32 for every dtype of ``x``, in the parameter ``noise_shape`` of
    ``node``, or for None in the shape of x, with the random ``key``. Source: Srivastava et al.,
    Dropout: A Simple Way to Prevent Overfitting, section 10.

    Raises:
        GraphError: If ``rate`` is not from 0 to below 1.
        ShapeError: If ``noise_shape`` is no shape, or does not broadcast to that of x, or the key
            is no scalar; none of these for rate 0.
    """
    rate = float(node.params["rate"])
    if not 0 <= rate < 1:
        raise GraphError(f"{node.where} needs a rate from 0 to below 1, got {rate}")
    if rate == 0:
        return make("identity", x)
    noise_shape = _draw_shape(node, x, "noise_shape")
    check_broadcast(node, noise_shape, known_shape(x), "noise_shape")
    u = make("random_uniform", key, shape=noise_shape)
    return make("where", u >= rate, x * (1 / (1 - rate)), 0.0)


composite(
    name="random_bernoulli",
    aliases="bernoulli",
    inputs=["p", "key"],
    expand=_bernoulli,
    params={"shape": None},
    types=_infer_bernoulli_type,
    doc="True with probability p, broadcast to shape; by default in the shape of p",
)
composite(
    name="dropout",
    inputs=["x", "key"],
    expand=_dropout,
    params={"rate": 0.5, "noise_shape": None},
    types=_infer_float_type,
    doc="x with each element set to 0 with probability rate, and the others divided by 1 - rate; "
    "one draw is shared along axes of length 1 of noise_shape",
)


# Draws of classes.


def _gumbel_softmax(node: Node, logits: Entry, key: Entry) -> Entry:
    """Expand to the softmax of logits with Gumbel noise, drawn with the random ``key``.

    ``node`` has the parameters ``axis``, one int, and ``temperature``.

    Source: Jang, Gu and Poole, Categorical Reparameterization with Gumbel-Softmax.

    Raises:
        GraphError: If ``temperature`` is not above 0.
        ShapeError: If ``axis`` is no int or out of range, the key is no scalar, or a rank is
            unknown.
        DTypeError: If the dtype of the logits is unknown or no float.
    """
    axis = normalize_axis(node, len(known_shape(logits)), node.params["axis"])
    temperature = float(node.params["temperature"])
    if not temperature > 0:
        raise GraphError(f"{node.where} needs a temperature above 0, got {temperature}")
    noisy = logits + _gumbel_noise(key, logits)
    return make("softmax", noisy * (1 / temperature), axis=axis)


def _categorical(node: Node, logits: Entry, key: Entry) -> Entry:
    """Draw classes by the Gumbel-max trick: the position of the largest logit with Gumbel noise.

    The position along the parameter ``axis`` of ``node``, one int, is the maximum of the positions
    that equal the maximum, so that one kernel computes both; where there is a NaN among the logits,
    it is 0. ``key`` is the random key.

    Raises: ShapeError if the axis is no int, out of range or empty, the key no scalar, or a rank
    unknown; DTypeError if the dtype of the logits is unknown or no float.
    """
    shape = known_shape(logits)
    axis = normalize_axis(node, len(shape), node.params["axis"])
    noisy = logits + _gumbel_noise(key, logits)
    maximum = make("reduce_max", noisy, axis=axis, keepdims=True)
    aligned = tuple(shape[axis] if k == axis else 1 for k in range(len(shape)))
    classes = make("arange", start=0, stop=shape[axis], dtype="int64")
    classes = make("reshape", classes, shape=aligned)
    drawn = make("where", make("equal", noisy, maximum), classes, 0)
    return make("reduce_max", drawn, axis=axis)


def _infer_categorical_type(node: Node, logits: DType, key: DType) -> DType:
    """Infer the dtype, int64.

    Raises: DTypeError, naming ``node``, if ``logits`` is no float or ``key`` not int64.
    """
    _infer_float_type(node, logits, key)
    return int64


composite(
    name="gumbel_softmax",
    inputs=["logits", "key"],
    expand=_gumbel_softmax,
    params={"temperature": 1.0, "axis": -1},
    types=_infer_float_type,
    doc="softmax((logits + Gumbel noise) / temperature) along axis: an approximately one-hot draw "
    "of a class",
)
composite(
    name="random_categorical",
    aliases="categorical",
    inputs=["logits", "key"],
    expand=_categorical,
    params={"axis": -1},
    types=_infer_categorical_type,
    doc="a class along axis, drawn with the probabilities softmax(logits), as int64; in the shape "
    "of logits without axis",
)


# Permutations.


def _permutation(node: Node, key: Entry) -> Entry:
    """Expand random_permutation: the order of ``num`` random 64-bit words.

    Equal words, which would be kept in order, are very unlikely. ``node`` has the parameter
    ``num``.

    Raises: ShapeError if ``num`` is no int >= 0 or Size, or the key no scalar.
    """
    count = count_param(node, "num")
    return convert(make("argsort", make("random_words", key, shape=(count,))), int64)


def _infer_permutation_type(node: Node, key: DType) -> DType:
    """Infer the dtype, int64.

    Raises: DTypeError, naming ``node``, if ``key``, the key's dtype, is not int64.
    """
    check_key_type(node, key)
    return int64


def _shuffle(node: Node, x: Entry, key: Entry) -> Entry:
    """Expand shuffle: take the elements along ``axis`` in the order of a random permutation.

    ``node`` has the parameter ``axis``, one int.

    Raises: ShapeError if the axis is no int or out of range, the key no scalar, or a rank unknown.
    """
    shape = known_shape(x)
    axis = normalize_axis(node, len(shape), node.params["axis"])
    order = make("random_permutation", key, num=shape[axis])
    return make("take", x, order, axis=axis)


def _infer_shuffle_type(node: Node, x: DType, key: DType) -> DType:
    """Infer the dtype, that of ``x``.

    Raises: DTypeError, naming ``node``, if ``key``, the key's dtype, is not int64.
    """
    check_key_type(node, key)
    return x


composite(
    name="random_permutation",
    aliases="permutation",
    inputs=["key"],
    expand=_permutation,
    params={"num": REQUIRED},
    types=_infer_permutation_type,
    doc="the integers from 0 to below num in random order, as int64",
)
composite(
    name="shuffle",
    aliases="random_shuffle",
    inputs=["x", "key"],
    expand=_shuffle,
    params={"axis": 0},
    types=_infer_shuffle_type,
    doc="x with the slices along axis in random order",
)
