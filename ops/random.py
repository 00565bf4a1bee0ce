"""Random numbers: pure functions of a key and a place, so that they fuse and repeat.

A key is an int64 scalar. Element n of a draw is made from block n of Philox4x32-10 under that key,
so a longer draw begins with a shorter one, and the order of work does not matter. A key is for
one draw: `split_key` and `fold_in` make others of it.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import TYPE_CHECKING, Any

import numpy as np

from passkit import ast
from passkit.errors import DTypeError, GraphError, ShapeError
from passkit.graph.call import convert
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.graph.op import REQUIRED, OpPattern, register_op
from passkit.ops.composites import composite
from passkit.ops.helpers import check_kinds, int_param, make, parse_extents
from passkit.values.dtype import DType, dtype_of, int64
from passkit.values.size import Shape

if TYPE_CHECKING:
    from passkit.ast import Expr
    from passkit.space.reads import Index, Reader

DRAW, FOLD, SPLIT, SEED = range(4)
"""What a block is for: the upper words of Philox's counter, so that no two uses share bits."""


def _key_shape(node: Node, key: Shape) -> None:
    if key != ():
        raise ShapeError(
            f"{node.where} needs one key, a scalar, got {show_shape(key)}; take one of them by k[0]"
        )


def key_type(node: Node, key: DType) -> None:
    """Make sure of a key's dtype. Raises: DTypeError for another than int64."""
    if key is not int64:
        raise DTypeError(f"{node.where} needs a key of int64, got {key}; pk.ops.random_key(x)")


def _drawn_shape(node: Node, key: Shape, *rest: Shape) -> Shape:
    _key_shape(node, key)
    shape = parse_extents(node, node.params["shape"], "shape")
    if any(isinstance(n, int) and n < 0 for n in shape):
        raise ShapeError(f"{node.where} needs extents >= 0, got {show_shape(shape)}")
    return shape


def _words_type(node: Node, key: DType) -> DType:
    key_type(node, key)
    int_param(node, "stream", GraphError)
    _check_half(node)
    return int64


def _check_half(node: Node) -> None:
    if node.params["half"] not in (0, 1):
        raise GraphError(f"{node.where} needs 0 or 1 as half, got {node.params['half']!r}")


def _new_keys_type(node: Node, key: DType) -> DType:
    key_type(node, key)
    return int64


def _half(node: Node, *block: Expr) -> Expr:
    """The first or the second half of a block: two words of it."""
    return ast.Call("philox_high" if node.params["half"] else "philox_low", block, int64)


def _words_element(node: Node, index: Index, key: Reader) -> Expr:
    """The block of the element's row-major position."""
    position: Expr = ast.size_of(0)
    for k, n in enumerate(known_shape(node.entries[0])):
        position = index[k] if k == 0 else position * ast.size_of(n) + index[k]
    return _half(node, position, ast.const(node.params["stream"], int64), key())


random_words = register_op(
    "random_words",
    num_inputs=1,
    params={"shape": (), "stream": DRAW, "half": 0},
    doc="64 random bits for each element, as int64, and 64 others as the other half: what "
    "draws are made of",
)
random_words.set_attr("FInferShape", _drawn_shape)
random_words.set_attr("FInferType", _words_type)
random_words.set_attr("FElement", _words_element)
random_words.set_attr("TOpPattern", OpPattern.INJECTIVE)
random_words.set_attr("TOpCost", "expensive")


def _philox_type(node: Node, *dtypes: DType) -> DType:
    _check_half(node)
    for d in dtypes:
        if d is not int64:
            raise DTypeError(f"{node.where} needs int64, got {d}; pk.ops.cast(x, 'int64')")
    return int64


philox = register_op(
    "philox",
    num_inputs=3,
    params={"half": 0},
    doc="half of the block of Philox4x32-10 for (counter, stream, key): an int64 of two words",
).include("elementwise")
philox.set_attr("FCodeGen", _half)
philox.set_attr("FInferType", _philox_type)
philox.set_attr("TOpPattern", OpPattern.BROADCAST)
philox.set_attr("TOpCost", "expensive")


# keys


def _integers_to_keys(node: Node, *dtypes: DType) -> DType:
    for d in dtypes:
        check_kinds(node, "iu", d)
    return int64


def _fold_type(node: Node, key: DType, data: DType) -> DType:
    key_type(node, key)
    return _integers_to_keys(node, data)


composite(
    "random_key",
    ["seed"],
    lambda node, seed: make("philox", convert(seed, int64), SEED, 0),
    "a key made of a whole number; near numbers give unrelated keys",
    types=_integers_to_keys,
)
composite(
    "fold_in",
    ["key", "data"],
    lambda node, key, data: make("philox", convert(data, int64), FOLD, key),
    "keys made of a key and whole numbers, such as the number of a step or a layer",
    types=_fold_type,
)


def _split(node: Node, key: Entry) -> Entry:
    count = node.params["num"]
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise GraphError(f"{node.where} needs an int of 1 or more as num, got {count!r}")
    return make("random_words", key, shape=(count,), stream=SPLIT)


composite(
    "split_key", ["key"], _split, "num new keys made of one", {"num": 2}, types=_new_keys_type
)


# draws: words of Philox as numbers

BITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
"""The bits of a uniform draw: as many as a significand has, so that no value is rounded."""


def words(node: Node, key: Entry, half: int = 0) -> Entry:
    """An int64 of random bits for each element of a draw."""
    return make("random_words", key, shape=node.params["shape"], half=half)


def unit(word: Entry, dtype: DType) -> Entry:
    """From 0 to below 1, evenly spaced, all values equally likely."""
    count = BITS[dtype.name]
    return _whole(word, count, dtype) * 2.0**-count


def open_unit(word: Entry, dtype: DType) -> Entry:
    """As `unit`, but in the middles of its steps: neither 0 nor 1."""
    count = BITS[dtype.name] - 1
    return (_whole(word, count, dtype) + 0.5) * 2.0**-count


def fine_unit(word: Entry, dtype: DType) -> Entry:
    """Above 0 to 1, in steps of 2**-31 or 2**-53 near 0, for what the logarithm is taken of."""
    count = 53 if dtype.nbytes == 8 else 31
    return (_whole(word, count, dtype) + 0.5) * 2.0**-count


def _whole(word: Entry, count: int, dtype: DType) -> Entry:
    """The lowest bits as a float; 32-bit integers become floats faster."""
    narrow = convert(word, dtype_of("int32")) if count < 32 else word
    return convert(narrow & (2**count - 1), dtype)


def drawn_type(kinds: str = "f") -> Any:
    """The FInferType of a draw: the dtype that is asked for, from a key."""

    def infer_type(node: Node, key: DType, *rest: DType) -> DType:
        key_type(node, key)
        check_kinds(node, kinds, wanted := dtype_of(node.params["dtype"]))
        return wanted

    return infer_type


def draw(
    name: str,
    expand: Any,
    doc: str,
    kinds: str = "f",
    aliases: str = "",
    check: Callable[[Node], None] | None = None,
    **params: Any,
) -> None:
    """Register ``name`` with what all draws share: a key, the shape and dtype of the result."""

    def infer_shape(node: Node, key: Shape) -> Shape:
        if check is not None:
            check(node)
        return _drawn_shape(node, key)

    dtype = "float32" if kinds == "f" else "int32"
    composite(
        name,
        ["key"],
        expand,
        doc,
        {"shape": (), **params, "dtype": dtype},
        shape=infer_shape,
        types=drawn_type(kinds),
        aliases=aliases,
    )


def float_draw(name: str, value: Any, doc: str, aliases: str = "", **params: Any) -> None:
    """Register a draw of floats; those of 16 bits are computed in float32 and rounded."""

    def expand(node: Node, key: Entry) -> Entry:
        wanted = dtype_of(node.params["dtype"])
        work = wanted if wanted.nbytes >= 4 else dtype_of("float32")
        return convert(value(node, words(node, key), words(node, key, 1), work), wanted)

    draw(name, expand, doc, aliases=aliases, **params)


def _bits(node: Node, key: Entry) -> Entry:
    return convert(words(node, key), dtype_of(node.params["dtype"]))


def _range_of_floats(node: Node) -> None:
    low, high = float(node.params["low"]), float(node.params["high"])
    if not low < high:
        raise GraphError(f"{node.where} needs low < high, got {low} and {high}")


def _uniform(node: Node, key: Entry) -> Entry:
    """low + (high - low) u; where that rounds up to high, the value below it."""
    wanted = dtype_of(node.params["dtype"])
    low, high = float(node.params["low"]), float(node.params["high"])
    u = unit(words(node, key), wanted)
    if (low, high) == (0.0, 1.0):
        return u
    ends = np.array([high, low]).astype(wanted.numpy)
    return make("minimum", u * (high - low) + low, np.nextafter(ends[0], ends[1]))


def _normal(node: Node, low: Entry, high: Entry, dtype: DType) -> Entry:
    """Source: Box and Muller, A Note on the Generation of Random Normal Deviates."""
    radius = make("sqrt", make("log", fine_unit(low, dtype)) * -2.0)
    z = radius * make("cos", unit(high, dtype) * (2 * pi))
    return scaled(z, node.params["mean"], node.params["stddev"])


def scaled(z: Entry, mean: float, stddev: float) -> Entry:
    """A draw of mean 0 and deviation 1 with these."""
    z = z if stddev == 1 else z * float(stddev)
    return z if mean == 0 else z + float(mean)


def _range_of_integers(node: Node) -> None:
    low, high = (int_param(node, what, GraphError) for what in ("low", "high"))
    check_kinds(node, "iu", wanted := dtype_of(node.params["dtype"]))
    limits = np.iinfo(wanted.numpy)
    if not limits.min <= low < high <= limits.max + 1:
        raise GraphError(f"{node.where} needs low < high within {wanted}, got {low} and {high}")
    if high - low >= 2**63:
        raise GraphError(f"{node.where} draws from at most 2**63 - 1 numbers, got {high - low}")


def _integers(node: Node, key: Entry) -> Entry:
    low, span = node.params["low"], node.params["high"] - node.params["low"]
    word = words(node, key) & (2**63 - 1)
    rest = word & (span - 1) if span & (span - 1) == 0 else word % span
    return convert(rest + low if low else rest, dtype_of(node.params["dtype"]))


draw("random_bits", _bits, "whole numbers of random bits", kinds="iu")
draw(
    "random_uniform",
    _uniform,
    "evenly spread over low to below high",
    check=_range_of_floats,
    low=0.0,
    high=1.0,
)
draw(
    "random_integers",
    _integers,
    "whole numbers from low to below high; by a remainder of 63 bits, whose bias is below 2**-31 "
    "for ranges of 32 bits",
    kinds="iu",
    aliases="randint",
    check=_range_of_integers,
    low=0,
    high=REQUIRED,
)
float_draw(
    "random_normal",
    _normal,
    "normal draws of this mean and standard deviation, by Box and Muller; at most 6.7 of them off",
    mean=0.0,
    stddev=1.0,
)
float_draw(
    "random_exponential",
    lambda node, low, high, dtype: -make("log", fine_unit(low, dtype)),
    "exponential draws of rate 1",
)
float_draw(
    "random_gumbel",
    lambda node, low, high, dtype: -make("log", -make("log", open_unit(low, dtype))),
    "Gumbel draws of location 0 and scale 1",
)
