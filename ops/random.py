"""Random numbers as pure functions of a key and a position, so that they fuse and repeat.

A key is an int64 scalar. Element n of a draw is computed from block n of Philox4x32-10 under that
key, so a longer draw begins with a shorter one, whatever the order of evaluation. A key is for one
draw: `split_key` and `fold_in` derive others from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import erf, inf, pi, sqrt
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
    from passkit.analysis.accesses import Index, Reader
    from passkit.ast import Expr

DRAW_STREAM = 0
FOLD_STREAM = 1
SPLIT_STREAM = 2
SEED_STREAM = 3
"""The upper words of Philox's counter: one for each use of a key, so that no two share bits."""


# Random bits.


def check_key_type(node: Node, key: DType) -> None:
    """Check ``key``, the dtype of a random key.

    Raises:
        DTypeError: If it is not int64; the error names ``node``.
    """
    if key is not int64:
        raise DTypeError(f"{node.where} needs a key of int64, got {key}; pk.ops.random_key(x)")


def _check_half(node: Node) -> None:
    """Raise GraphError if the parameter ``half`` of ``node`` is neither 0 nor 1."""
    if node.params["half"] not in (0, 1):
        raise GraphError(f"{node.where} needs 0 or 1 as half, got {node.params['half']!r}")


def _infer_draw_shape(node: Node, key: Shape, *others: Shape) -> Shape:
    """Return the parameter ``shape`` of a draw, one extent or a tuple of them, as a tuple.

    ``key`` is the shape of its key, ``others`` of further inputs, which do not count. ``node`` has
    the parameter ``shape``.

    Raises:
        ShapeError: If the key is no scalar, or an extent of the shape is negative, or neither an
            int nor a Size.
    """
    if key != ():
        raise ShapeError(
            f"{node.where} needs one key, a scalar, got {show_shape(key)}; take one of them by k[0]"
        )
    shape = parse_extents(node, node.params["shape"], "shape")
    if any(isinstance(n, int) and n < 0 for n in shape):
        raise ShapeError(f"{node.where} needs extents >= 0, got {show_shape(shape)}")
    return shape


def _infer_words_type(node: Node, key: DType) -> DType:
    """Infer the dtype, int64; check the key and the parameters ``stream`` and ``half`` of ``node``.

    Raises: DTypeError if the dtype ``key`` is not int64; GraphError if ``stream`` is no int, or
    ``half`` neither 0 nor 1.
    """
    check_key_type(node, key)
    int_param(node, "stream", GraphError)
    _check_half(node)
    return int64


def _infer_philox_type(node: Node, *dtypes: DType) -> DType:
    """Infer the dtype, int64.

    ``node`` has the parameter ``half``.

    Raises: DTypeError if an input is not int64, GraphError if ``half`` is neither 0 nor 1.
    """
    _check_half(node)
    for dtype in dtypes:
        if dtype is not int64:
            raise DTypeError(f"{node.where} needs int64, got {dtype}; pk.ops.cast(x, 'int64')")
    return int64


def _philox_half(node: Node, counter: Expr, stream: Expr, key: Expr) -> Expr:
    """Return half of a Philox4x32-10 block, two of its four 32-bit words, as an int64.

    Args:
        node: The node, whose parameter ``half`` says which half.
        counter: The block's counter, the position of the element.
        stream: The upper half of the counter, which separates sequences of one key.
        key: The key.
    """
    function = "philox_high" if node.params["half"] else "philox_low"
    return ast.Call(function, (counter, stream, key), int64)


def _words_element(node: Node, index: Index, key: Reader) -> Expr:
    """Return the half block whose counter is the row-major position of the element.

    ``index`` has an expression for each axis; ``key`` reads the key. ``node`` has the parameters
    ``stream`` and ``half``.

    Raises: ShapeError if a rank is unknown.
    """
    position: Expr = ast.size_of(0)
    for k, n in enumerate(known_shape(node.entries[0])):
        position = index[k] if k == 0 else position * ast.size_of(n) + index[k]
    return _philox_half(node, position, ast.const(node.params["stream"], int64), key())


random_words = register_op(
    "random_words",
    num_inputs=1,
    params={"shape": (), "stream": DRAW_STREAM, "half": 0},
    doc="64 random bits for each element of an array of a shape, as int64; half selects one of "
    "two independent words",
)
random_words.set_attr("FInferShape", _infer_draw_shape)
random_words.set_attr("FInferType", _infer_words_type)
random_words.set_attr("FElement", _words_element)
random_words.set_attr("TOpPattern", OpPattern.INJECTIVE)
random_words.set_attr("TOpCost", "expensive")

philox = register_op(
    "philox",
    num_inputs=3,
    params={"half": 0},
    doc="64 of the 128 bits of the Philox4x32-10 block for counter x, stream y and key z, as int64",
).include("elementwise")
philox.set_attr("FCodeGen", lambda node, x, y, z: _philox_half(node, x, y, z))
philox.set_attr("FInferType", _infer_philox_type)
philox.set_attr("TOpPattern", OpPattern.BROADCAST)
philox.set_attr("TOpCost", "expensive")


# Keys.


def _infer_key_type_from_integers(node: Node, *dtypes: DType) -> DType:
    """Infer the dtype of a key, int64.

    Raises: DTypeError, naming ``node``, if an input is no integer.
    """
    check_kinds(node, "iu", *dtypes)
    return int64


def _infer_folded_key_type(node: Node, key: DType, data: DType) -> DType:
    """Infer the dtype of a key, int64.

    Raises: DTypeError, naming ``node``, if the dtype ``key`` is not int64, or ``data`` no integer.
    """
    check_key_type(node, key)
    check_kinds(node, "iu", data)
    return int64


def _infer_split_key_type(node: Node, key: DType) -> DType:
    """Infer the dtype of keys, int64.

    Raises: DTypeError, naming ``node``, if the dtype ``key`` is not int64.
    """
    check_key_type(node, key)
    return int64


def _split_key(node: Node, key: Entry) -> Entry:
    """Expand to a vector of random words of the entry ``key``, one for each new key.

    Raises:
        GraphError: If the parameter ``num`` of ``node`` is no int of 1 or more.
        ShapeError: If the key is no scalar.
    """
    count = node.params["num"]
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise GraphError(f"{node.where} needs an int of 1 or more as num, got {count!r}")
    return make("random_words", key, shape=(count,), stream=SPLIT_STREAM)


composite(
    name="random_key",
    inputs=["seed"],
    expand=lambda node, seed: make("philox", convert(seed, int64), SEED_STREAM, 0),
    types=_infer_key_type_from_integers,
    doc="a key for each integer seed, as int64; neighbouring seeds give unrelated keys",
)
composite(
    name="fold_in",
    inputs=["key", "data"],
    expand=lambda node, key, data: make("philox", convert(data, int64), FOLD_STREAM, key),
    types=_infer_folded_key_type,
    doc="a key made of key and each integer of data, such as the number of a step, as int64",
)
composite(
    name="split_key",
    inputs=["key"],
    expand=_split_key,
    params={"num": 2},
    types=_infer_split_key_type,
    doc="num new keys made of a key, an int64 vector",
)


# Numbers from random bits.

SIGNIFICAND_BITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
"""The bits of a uniform draw: as many as a significand has, so that no value is rounded."""


def draw_words(node: Node, key: Entry, half: int = 0) -> Entry:
    """Return 64 random bits, as an int64, for each element of the draw ``node``.

    ``key`` is the random key. ``half`` 0 or 1 selects independent bits for the same element.

    Raises:
        ShapeError: If the key is no scalar, or the parameter ``shape`` is no shape.
        GraphError: If ``half`` is another number.
    """
    return make("random_words", key, shape=node.params["shape"], half=half)


def unit_interval(word: Entry, dtype: DType) -> Entry:
    """Return uniform random numbers from 0 to below 1, of the shape of ``word``.

    Args:
        word: Random bits, an int64 for each number, such as `draw_words` returns.
        dtype: The dtype of the numbers, a real float. They are multiples of a power of two (2**-24
            in float32), as many as its significand holds, and all are equally likely.
    """
    count = SIGNIFICAND_BITS[dtype.name]
    return _low_bits(word, count, dtype) * 2.0**-count


def open_unit_interval(word: Entry, dtype: DType) -> Entry:
    """Return uniform random numbers between 0 and 1, neither of which occurs.

    Args:
        word: Random bits, an int64 for each number.
        dtype: The dtype of the numbers, a real float. They are the middles of equal steps, as wide
            as the significand allows: 2**-23 in float32.
    """
    count = SIGNIFICAND_BITS[dtype.name] - 1
    return (_low_bits(word, count, dtype) + 0.5) * 2.0**-count


def fine_unit_interval(word: Entry, dtype: DType) -> Entry:
    """Return uniform random numbers above 0 and up to 1, to take logarithms of.

    Args:
        word: Random bits, an int64 for each number.
        dtype: The dtype of the numbers, float32 or float64. They are in steps of 2**-31, of 2**-53
            in float64.
    """
    count = 53 if dtype.nbytes == 8 else 31
    return (_low_bits(word, count, dtype) + 0.5) * 2.0**-count


def _low_bits(word: Entry, count: int, dtype: DType) -> Entry:
    """Return the lowest ``count`` bits of the int64 ``word`` as floats of ``dtype``.

    For a count below 32 they are converted from int32, which is faster.
    """
    narrow = convert(word, dtype_of("int32")) if count < 32 else word
    return convert(narrow & (2**count - 1), dtype)


def _scale(z: Entry, mean: float, stddev: float) -> Entry:
    """Return ``z``, of mean 0 and standard deviation 1, with another mean and deviation.

    These are ``mean`` and ``stddev``, numbers; for 0 and 1 it is ``z`` itself.
    """
    z = z if stddev == 1 else z * float(stddev)
    return z if mean == 0 else z + float(mean)


# Registration of draws.


def draw(
    *,
    name: str,
    expand: Callable[[Node, Entry], Entry],
    doc: str,
    kinds: str = "f",
    params: Mapping[str, Any] | None = None,
    check: Callable[[Node], None] | None = None,
    aliases: str = "",
) -> None:
    """Register a draw: a composite of a key, with the parameters ``shape`` and ``dtype``.

    The operator raises DTypeError unless the key is int64 and the dtype of one of ``kinds``, and
    ShapeError unless the key is a scalar and ``shape`` a shape.

    Args:
        name: Name of the operator.
        expand: ``expand(node, key)`` returns the output.
        doc: What an output element is, for help and reference pages.
        kinds: The kinds of dtype that may be drawn; the default dtype is float32 for "f", else
            int32.
        params: Further parameters with their defaults.
        check: Raises an error if a parameter of the node is not valid; None: there is nothing to
            check.
        aliases: Further names, separated by spaces.

    Raises:
        RegistryError: If an operator of that name has other numbers of inputs or outputs, an
            attribute of it was set elsewhere, or an alias names another.
        ArgumentError: If ``name`` or an alias is no identifier.
    """

    def infer_shape(node: Node, key: Shape) -> Shape:
        """Infer the shape, the parameter ``shape``, and check the other parameters by ``check``.

        ``key`` is the shape of the key. ``node`` has the parameter ``shape``.

        Raises: ShapeError unless that is a scalar's and the parameter a shape, and what ``check``
        raises.
        """
        if check is not None:
            check(node)
        return _infer_draw_shape(node, key)

    def infer_type(node: Node, key: DType, *others: DType) -> DType:
        """Infer the dtype, the parameter ``dtype`` of ``node``; ``key`` is the dtype of the key.

        Raises: DTypeError for a dtype of another kind, or a key other than int64.
        """
        check_key_type(node, key)
        dtype = dtype_of(node.params["dtype"])
        check_kinds(node, kinds, dtype)
        return dtype

    composite(
        name=name,
        aliases=aliases,
        inputs=["key"],
        expand=expand,
        params={"shape": (), **(params or {}), "dtype": "float32" if kinds == "f" else "int32"},
        shape=infer_shape,
        types=infer_type,
        doc=doc,
    )


def float_draw(
    *,
    name: str,
    value: Callable[[Node, Entry, Entry, DType], Entry],
    doc: str,
    params: Mapping[str, Any] | None = None,
    aliases: str = "",
) -> None:
    """Register a draw of floats; those of 16 bits are computed in float32 and rounded.

    Args:
        name: Name of the operator.
        value: ``value(node, low, high, dtype)`` returns the drawn numbers in ``dtype``, from two
            independent random words for each element.
        doc: What an output element is, for help and reference pages.
        params: Further parameters with their defaults.
        aliases: Further names, separated by spaces.

    Raises:
        RegistryError: If an operator of that name has other numbers of inputs or outputs, an
            attribute of it was set elsewhere, or an alias names another.
        ArgumentError: If ``name`` or an alias is no identifier.
    """

    def expand(node: Node, key: Entry) -> Entry:
        """Draw two random words for each element, and compute floats from them.

        ``key`` is the random key; the result has the parameter ``dtype`` of ``node``.

        Raises: DTypeError if there is no such dtype; ShapeError if the key is no scalar or the
        parameter ``shape`` no shape.
        """
        dtype = dtype_of(node.params["dtype"])
        compute_dtype = dtype if dtype.nbytes >= 4 else dtype_of("float32")
        low, high = draw_words(node, key), draw_words(node, key, 1)
        return convert(value(node, low, high, compute_dtype), dtype)

    draw(name=name, aliases=aliases, expand=expand, params=params, doc=doc)


# Integers and uniform numbers.


def _draw_bits(node: Node, key: Entry) -> Entry:
    """Expand random_bits: 64 random bits, of which the integer dtype keeps the lowest.

    It is the parameter ``dtype`` of ``node``; ``key`` is the random key.

    Raises: DTypeError if there is no such dtype; ShapeError if the key is no scalar or the
    parameter ``shape`` no shape.
    """
    return convert(draw_words(node, key), dtype_of(node.params["dtype"]))


def _check_float_range(node: Node) -> None:
    """Raise GraphError unless the parameter ``low`` of ``node`` is below ``high``.

    Both must be finite, as must be their difference.
    """
    low, high = float(node.params["low"]), float(node.params["high"])
    if not 0 < high - low < inf:
        raise GraphError(
            f"{node.where} needs low < high, a finite distance apart, got {low} and {high}"
        )


def _draw_uniform(node: Node, key: Entry) -> Entry:
    """Return low + (high - low) u; where that rounds to high, the largest number below high.

    ``low``, ``high`` and ``dtype``, a real float, are parameters, u from 0 to below 1 comes from
    ``key``. ``node`` has the parameters ``dtype``, ``high``, ``low`` and ``shape``.

    Raises: DTypeError if there is no such dtype; ShapeError if the key is no scalar or the
    parameter ``shape`` no shape.
    """
    dtype = dtype_of(node.params["dtype"])
    low, high = float(node.params["low"]), float(node.params["high"])
    u = unit_interval(draw_words(node, key), dtype)
    if (low, high) == (0.0, 1.0):
        return u
    ends = np.array([high, low]).astype(dtype.numpy)
    return make("minimum", u * (high - low) + low, np.nextafter(ends[0], ends[1]))


def _check_integer_range(node: Node) -> None:
    """Check the parameters of `random_integers`.

    ``node`` has the parameters ``dtype``, ``high`` and ``low``.

    Raises:
        GraphError: If ``low`` or ``high`` is no int, they are not in order or do not fit the dtype,
            or there are more than 2**63 - 1 numbers.
        DTypeError: If the dtype is no integer.
    """
    low, high = (int_param(node, name, GraphError) for name in ("low", "high"))
    dtype = dtype_of(node.params["dtype"])
    check_kinds(node, "iu", dtype)
    limits = np.iinfo(dtype.numpy)
    if not limits.min <= low < high <= limits.max + 1:
        raise GraphError(f"{node.where} needs low < high within {dtype}, got {low} and {high}")
    if high - low >= 2**63:
        raise GraphError(f"{node.where} draws from at most 2**63 - 1 numbers, got {high - low}")


def _draw_integers(node: Node, key: Entry) -> Entry:
    """Return ``low`` plus 63 random bits modulo the length of the range up to ``high``.

    These are parameters, as is ``dtype``; the bits come from the random key. ``node`` has the
    parameters ``dtype``, ``high``, ``low`` and ``shape``.

    Raises: GraphError unless ``low`` < ``high`` are ints that fit the dtype, at most 2**63 - 1
    apart; DTypeError if ``dtype`` is no integer; ShapeError if the key is no scalar or the
    parameter ``shape`` no shape.
    """
    _check_integer_range(node)
    low, count = node.params["low"], node.params["high"] - node.params["low"]
    word = draw_words(node, key) & (2**63 - 1)
    remainder = word & (count - 1) if count & (count - 1) == 0 else word % count
    return convert(remainder + low if low else remainder, dtype_of(node.params["dtype"]))


draw(
    name="random_bits",
    expand=_draw_bits,
    kinds="iu",
    doc="independent random bits in an array of a shape, integers of dtype",
)
draw(
    name="random_uniform",
    expand=_draw_uniform,
    params={"low": 0.0, "high": 1.0},
    check=_check_float_range,
    doc="uniformly distributed numbers from low to below high, an array of a shape",
)
draw(
    name="random_integers",
    aliases="randint",
    expand=_draw_integers,
    kinds="iu",
    params={"low": 0, "high": REQUIRED},
    check=_check_integer_range,
    doc="integers from low to below high, an array of a shape; each is 63 random bits modulo high "
    "- low, whose bias is below 2**-31 for ranges of 32 bits",
)


# Other distributions.

CENTRAL_ERFINV = (
    2.81022636e-08,
    3.43273939e-07,
    -3.5233877e-06,
    -4.39150654e-06,
    0.00021858087,
    -0.00125372503,
    -0.00417768164,
    0.246640727,
    1.50140941,
)
"""Coefficients of erfinv(x) / x in -log(1 - x*x) - 2.5, highest power first, for |x| < 0.99.

Source: Giles, Approximating the erfinv function, table 5.
"""


def _draw_normal(node: Node, low: Entry, high: Entry, dtype: DType) -> Entry:
    """Return normally distributed numbers by the Box-Muller transform.

    Args:
        node: The draw, with its mean and standard deviation.
        low: Random bits, for the radius.
        high: Other random bits, for the angle.
        dtype: The dtype to compute in.

    Source: Box and Muller, A Note on the Generation of Random Normal Deviates.
    """
    radius = make("sqrt", make("log", fine_unit_interval(low, dtype)) * -2.0)
    z = radius * make("cos", unit_interval(high, dtype) * (2 * pi))
    return _scale(z, node.params["mean"], node.params["stddev"])


def _draw_truncated_normal(node: Node, low: Entry, high: Entry, dtype: DType) -> Entry:
    """Return normally distributed numbers within 2 standard deviations of the mean.

    The inverse of the distribution function is applied to a uniform number from the random bits
    ``low``; ``high`` is not used. ``dtype`` is the dtype to compute in, ``mean`` and ``stddev`` are
    parameters of ``node``.
    """
    width = erf(sqrt(2.0))
    z = _erfinv(open_unit_interval(low, dtype) * (2 * width) - width) * sqrt(2.0)
    return _scale(make("clip", z, -2.0, 2.0), node.params["mean"], node.params["stddev"])


def _erfinv(x: Entry) -> Entry:
    """Return the inverse of erf for |x| < 0.99: a polynomial and one step of Newton's method."""
    w = -make("log", (1.0 - x) * (x + 1.0)) - 2.5
    p = w * CENTRAL_ERFINV[0] + CENTRAL_ERFINV[1]
    for c in CENTRAL_ERFINV[2:]:
        p = w * p + c
    y = p * x
    slope = make("exp", -(y * y)) * (2 / sqrt(pi))
    return y - (make("erf", y) - x) / slope


def _draw_logistic(node: Node, low: Entry, high: Entry, dtype: DType) -> Entry:
    """Return numbers of the standard logistic distribution from the random bits ``low``.

    They are of ``dtype``; ``high`` and ``node`` are not used.
    """
    u = open_unit_interval(low, dtype)
    return make("log", u / (1.0 - u))


def _draw_laplace(node: Node, low: Entry, high: Entry, dtype: DType) -> Entry:
    """Return numbers of the standard Laplace distribution: an exponential draw of random sign.

    The random bits ``low`` give the magnitude, ``high`` the sign. They are of ``dtype``. ``node``
    is not used.
    """
    x = make("log", fine_unit_interval(low, dtype))
    return make("where", high < 0, x, -x)


float_draw(
    name="random_normal",
    value=_draw_normal,
    params={"mean": 0.0, "stddev": 1.0},
    doc="normally distributed numbers of this mean and standard deviation by Box and Muller, an "
    "array of a shape; none is more than 6.7 deviations from the mean",
)
float_draw(
    name="random_truncated_normal",
    aliases="truncated_normal",
    value=_draw_truncated_normal,
    params={"mean": 0.0, "stddev": 1.0},
    doc="normally distributed numbers of this mean and standard deviation, none beyond two "
    "deviations, an array of a shape",
)
float_draw(
    name="random_exponential",
    value=lambda node, low, high, dtype: -make("log", fine_unit_interval(low, dtype)),
    doc="exponentially distributed numbers of rate 1, an array of a shape",
)
float_draw(
    name="random_gumbel",
    value=lambda node, low, high, dtype: -make("log", -make("log", open_unit_interval(low, dtype))),
    doc="Gumbel-distributed numbers of location 0 and scale 1, an array of a shape",
)
float_draw(
    name="random_logistic",
    value=_draw_logistic,
    doc="logistically distributed numbers of location 0 and scale 1, an array of a shape",
)
float_draw(
    name="random_laplace",
    value=_draw_laplace,
    doc="Laplace-distributed numbers of location 0 and scale 1, an array of a shape",
)
