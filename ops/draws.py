"""Distributions drawn from others, and what neural networks draw: dropout, Gumbel softmax."""

from __future__ import annotations

from math import erf, pi, sqrt

from passkit.errors import GraphError
from passkit.graph.call import convert
from passkit.graph.node import Entry, Node, known_shape
from passkit.graph.op import REQUIRED
from passkit.ops.composites import composite
from passkit.ops.helpers import check_kinds, count_param, make, normalize_axis, parse_extents
from passkit.ops.random import fine_unit, float_draw, key_type, open_unit, scaled
from passkit.values.dtype import DType, bool_, float32, int64
from passkit.values.size import Shape

CENTRAL_ERFINV = (
    *(2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087),
    *(-0.00125372503, -0.00417768164, 0.246640727, 1.50140941),
)
"""Coefficients of erfinv(x) / x in -log(1 - x*x) - 2.5, highest power first, for x below 0.99.

Source: Giles, Approximating the erfinv function, table 5.
"""


def _erfinv(x: Entry) -> Entry:
    """The inverse of erf for magnitudes below 0.99; one step of Newton's doubles its digits."""
    w = -make("log", (1.0 - x) * (x + 1.0)) - 2.5
    p = w * CENTRAL_ERFINV[0] + CENTRAL_ERFINV[1]
    for c in CENTRAL_ERFINV[2:]:
        p = w * p + c
    y = p * x
    slope = make("exp", -(y * y)) * (2 / sqrt(pi))
    return y - (make("erf", y) - x) / slope


def _truncated(node: Node, low: Entry, high: Entry, dtype: DType) -> Entry:
    """The inverse of the distribution function between -2 and 2 standard deviations."""
    width = erf(sqrt(2.0))
    z = _erfinv(open_unit(low, dtype) * (2 * width) - width) * sqrt(2.0)
    inside = make("clip", z, -2.0, 2.0)
    return scaled(inside, node.params["mean"], node.params["stddev"])


float_draw(
    "random_truncated_normal",
    _truncated,
    "normal draws of this mean and standard deviation, none beyond two deviations",
    aliases="truncated_normal",
    mean=0.0,
    stddev=1.0,
)
float_draw(
    "random_logistic",
    lambda node, low, high, dtype: _logit(open_unit(low, dtype)),
    "logistic draws of location 0 and scale 1",
)
float_draw(
    "random_laplace",
    lambda node, low, high, dtype: _either_sign(make("log", fine_unit(low, dtype)), high),
    "Laplace draws of location 0 and scale 1",
)


def _either_sign(x: Entry, word: Entry) -> Entry:
    return make("where", word < 0, x, -x)


def _logit(u: Entry) -> Entry:
    return make("log", u / (1.0 - u))


# draws that follow a tensor


def _keyed_type(node: Node, first: DType, key: DType) -> DType:
    """A float and a key give the float's dtype."""
    check_kinds(node, "f", first)
    key_type(node, key)
    return first


def _gumbel(key: Entry, like: Entry) -> Entry:
    """Noise for every element of a tensor."""
    return make("random_gumbel", key, shape=known_shape(like), dtype=str(like.dtype))


def _wanted_shape(node: Node, x: Entry, what: str) -> Shape:
    given = node.params[what]
    return known_shape(x) if given is None else parse_extents(node, given, what)


def _bernoulli(node: Node, p: Entry, key: Entry) -> Entry:
    u = make("random_uniform", key, shape=_wanted_shape(node, p, "shape"))
    return u < convert(p, float32)


def _bernoulli_type(node: Node, p: DType, key: DType) -> DType:
    _keyed_type(node, p, key)
    return bool_


def _rate(node: Node) -> float:
    rate = float(node.params["rate"])
    if not 0 <= rate < 1:
        raise GraphError(f"{node.where} needs a rate from 0 to below 1, got {rate}")
    return rate


def _dropout(node: Node, x: Entry, key: Entry) -> Entry:
    """The draw is in float32 whatever the dtype, so that the mask does not depend on it.

    Source: Srivastava and others, Dropout: A Simple Way to Prevent Overfitting, section 10.
    """
    rate = _rate(node)
    if rate == 0:
        return make("identity", x)
    kept = make("random_uniform", key, shape=_wanted_shape(node, x, "noise_shape")) >= rate
    return make("where", kept, x * (1 / (1 - rate)), 0.0)


def _gumbel_softmax(node: Node, logits: Entry, key: Entry) -> Entry:
    """Source: Jang, Gu and Poole, Categorical Reparameterization with Gumbel-Softmax."""
    axis = normalize_axis(node, len(known_shape(logits)), node.params["axis"])
    temperature = float(node.params["temperature"])
    if not temperature > 0:
        raise GraphError(f"{node.where} needs a temperature above 0, got {temperature}")
    noisy = logits + _gumbel(key, logits)
    return make("softmax", noisy * (1 / temperature), axis=axis)


def _categorical(node: Node, logits: Entry, key: Entry) -> Entry:
    """Gumbel's trick: the largest of logits with Gumbel noise is a draw from their softmax.

    Where it stands is found in the same kernel; NaN among the logits gives class 0.
    """
    shape = known_shape(logits)
    axis = normalize_axis(node, len(shape), node.params["axis"])
    noisy = logits + _gumbel(key, logits)
    top = make("reduce_max", noisy, axis=axis, keepdims=True)
    lined = tuple(shape[axis] if k == axis else 1 for k in range(len(shape)))
    place = make("arange", start=0, stop=shape[axis], dtype="int64")
    found = make("where", make("equal", noisy, top), make("reshape", place, shape=lined), 0)
    return make("reduce_max", found, axis=axis)


def _categorical_type(node: Node, logits: DType, key: DType) -> DType:
    _keyed_type(node, logits, key)
    return int64


composite(
    "random_bernoulli",
    ["p", "key"],
    _bernoulli,
    "True with probability p, which is broadcast to shape; None is p's own",
    {"shape": None},
    types=_bernoulli_type,
    aliases="bernoulli",
)
composite(
    "dropout",
    ["x", "key"],
    _dropout,
    "x with each element 0 with probability rate, the others divided by 1 - rate; axes of length 1 "
    "in noise_shape live or die together",
    {"rate": 0.5, "noise_shape": None},
    types=_keyed_type,
)
composite(
    "gumbel_softmax",
    ["logits", "key"],
    _gumbel_softmax,
    "softmax of logits with Gumbel noise, divided by a temperature: a soft draw of a class",
    {"temperature": 1.0, "axis": -1},
    types=_keyed_type,
)
composite(
    "random_categorical",
    ["logits", "key"],
    _categorical,
    "classes along axis, drawn with the probabilities softmax(logits), as int64",
    {"axis": -1},
    types=_categorical_type,
    aliases="categorical",
)


def _permutation(node: Node, key: Entry) -> Entry:
    """The order of random words: ties are as good as impossible."""
    count = count_param(node, "num")
    return convert(make("argsort", make("random_words", key, shape=(count,))), int64)


def _permutation_type(node: Node, key: DType) -> DType:
    key_type(node, key)
    return int64


def _shuffle(node: Node, x: Entry, key: Entry) -> Entry:
    shape = known_shape(x)
    axis = normalize_axis(node, len(shape), node.params["axis"])
    order = make("random_permutation", key, num=shape[axis])
    return make("take", x, order, axis=axis)


def _shuffle_type(node: Node, x: DType, key: DType) -> DType:
    key_type(node, key)
    return x


composite(
    "random_permutation",
    ["key"],
    _permutation,
    "the numbers from 0 to below num in random order, as int64",
    {"num": REQUIRED},
    types=_permutation_type,
    aliases="permutation",
)
composite(
    "shuffle",
    ["x", "key"],
    _shuffle,
    "x with the slices along axis in random order",
    {"axis": 0},
    types=_shuffle_type,
    aliases="random_shuffle",
)
