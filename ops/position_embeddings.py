"""Positions in attention: rotary embeddings (RoPE) and attention with linear biases (ALiBi)."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING

from passkit import ast
from passkit.errors import GraphError, ShapeError
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.graph.op import OpPattern, register_op
from passkit.ops.composites import composite
from passkit.ops.helpers import check_kinds, common_dtype, extent_param, make
from passkit.values.dtype import DType, dtype_of
from passkit.values.size import Extent, Shape, divide_exactly

if TYPE_CHECKING:
    from passkit.analysis.accesses import Index, Reader
    from passkit.ast import Expr


def _compute_dtype(dtype: DType) -> DType:
    """Return the dtype to compute angles and distances of a float ``dtype`` in.

    It is float32 for 16-bit floats, else ``dtype`` itself.
    """
    return dtype if dtype.nbytes >= 4 else dtype_of("float32")


# Rotary embeddings: pairs of elements of the last axis are rotated by the angle of the position.


def _pair_count(node: Node, shape: Shape) -> Extent:
    """Return the number of pairs along the last axis of ``shape``, half its length.

    Errors name ``node``.

    Raises:
        ShapeError: If the rank is below 2, or the length is odd or a Size not known to be even.
    """
    half = divide_exactly(shape[-1], 2) if len(shape) >= 2 else None
    if half is None:
        raise ShapeError(
            f"{node.where} needs rank 2 or more and an even last axis, got {show_shape(shape)}"
        )
    return half


def _rotate_half_shape(node: Node, shape: Shape) -> Shape:
    """Infer the shape, ``shape`` of the input.

    Raises: ShapeError, naming ``node``, if the rank is below 2 or the last axis is odd, or
    symbolic and not known to be even.
    """
    _pair_count(node, shape)
    return shape


def _rotate_half_element(node: Node, index: Index, x: Reader) -> Expr:
    """Return the partner of an element, negated for the first element of a pair.

    The partner is the neighbour if the parameter ``interleaved`` of ``node`` is true, else half the
    axis away. ``index`` has an expression for each axis; ``x`` reads the input.

    Raises: ShapeError if the rank is unknown or below 2, or the last axis odd, or symbolic
    and not known to be even.
    """
    half = _pair_count(node, known_shape(node.entries[0]))
    j = index[-1]
    if node.params["interleaved"]:
        is_second = ast.equal(j % ast.size_of(2), ast.size_of(1))
        return ast.where(
            is_second, x(*index[:-1], j - ast.size_of(1)), -x(*index[:-1], j + ast.size_of(1))
        )
    n = ast.size_of(half)
    return ast.where(j < n, -x(*index[:-1], j + n), x(*index[:-1], j - n))


rotate_half = register_op(
    "rotate_half",
    num_inputs=1,
    params={"interleaved": False},
    doc="x with each pair (a, b) of the last axis replaced by (-b, a); the elements of a pair are "
    "half the axis apart, or neighbours if interleaved",
)
rotate_half.set_attr("FInferShape", _rotate_half_shape)
rotate_half.set_attr("FInferType", common_dtype("f"))
rotate_half.set_attr("FElement", _rotate_half_element)
rotate_half.set_attr("TOpPattern", OpPattern.INJECTIVE)
rotate_half.set_attr("TOpCost", "light")
rotate_half.set_attr(
    "FGradient",
    lambda node, dy: [None if dy is None else -make("rotate_half", dy, **node.params)],
)


def _rotary_wave_shape(node: Node, shape: Shape) -> Shape:
    """Infer the shape, ``shape`` of the input; check the parameter ``offset`` of ``node``.

    Raises: ShapeError if it is neither an int nor a Size, the rank is below 2, or the last axis is
    not known to have an even length.
    """
    extent_param(node, "offset")
    return _rotate_half_shape(node, shape)


def _rotary_wave_dtype(node: Node, x: DType) -> DType:
    """Infer the dtype, ``x`` of the input; check the parameter ``base`` of ``node``.

    Raises: DTypeError if x is no float, GraphError if ``base`` is not above 0.
    """
    check_kinds(node, "f", x)
    _log_base(node)
    return x


def _rotary_wave_element(node: Node, index: Index, x: Reader) -> Expr:
    """Return the cosine or sine of (position + offset) / base**(2 * pair / length).

    It is the sine if the parameter ``sine`` of ``node`` is true, computed in float32 at least.
    ``index`` has an expression for each axis, the position next to last; ``x``, which reads the
    input, is not used.

    Raises: ShapeError if the rank is unknown or below 2, or the last axis odd, or symbolic
    and not known to be even; GraphError if ``base`` is not above 0.
    """
    half = ast.size_of(_pair_count(node, known_shape(node.entries[0])))
    dtype = node.inputs[0].dtype
    assert dtype is not None
    compute_dtype = _compute_dtype(dtype)
    pair = index[-1] // ast.size_of(2) if node.params["interleaved"] else index[-1] % half
    exponent = ast.cast(pair, compute_dtype) / ast.cast(half, compute_dtype)
    position = ast.cast(index[-2] + ast.size_of(node.params["offset"]), compute_dtype)
    angle = position * ast.exp(exponent * -_log_base(node))
    return ast.cast(ast.sin(angle) if node.params["sine"] else ast.cos(angle), dtype)


def _log_base(node: Node) -> float:
    """Return the natural logarithm of the parameter ``base``, a number.

    ``node`` has the parameter ``base``.

    Raises: GraphError if it is not above 0, or NaN.
    """
    base = float(node.params["base"])
    if not base > 0:
        raise GraphError(f"{node.where} needs a base above 0, got {base}")
    return log(base)


ROTARY_PARAMS = {"base": 10000.0, "offset": 0, "interleaved": False}
rotary_wave = register_op(
    "rotary_wave",
    num_inputs=1,
    params={**ROTARY_PARAMS, "sine": False},
    doc="the cosine or sine of the angle by which rotary_embedding rotates each pair of x, in the "
    "shape of x",
)
rotary_wave.set_attr("FInferShape", _rotary_wave_shape)
rotary_wave.set_attr("FInferType", _rotary_wave_dtype)
rotary_wave.set_attr("FElement", _rotary_wave_element)
rotary_wave.set_attr("FGradient", lambda node, dy: [None])
rotary_wave.set_attr("TOpPattern", OpPattern.INJECTIVE)
rotary_wave.set_attr("TOpCost", "expensive")


def _rotary_embedding(node: Node, x: Entry) -> Entry:
    """Expand rotary_embedding: x cos(angle) + rotate_half(x) sin(angle).

    ``node`` has the parameter ``interleaved``.

    Source: Su and others, RoFormer, equation 34.

    Raises:
        ShapeError: If the rank of ``x`` is below 2, its last axis odd, or symbolic and not known
            to be even, or ``offset`` no extent.
        GraphError: If ``base`` is not above 0.
    """
    cos, sin = (make("rotary_wave", x, **node.params, sine=sine) for sine in (False, True))
    rotated = make("rotate_half", x, interleaved=node.params["interleaved"])
    return x * cos + rotated * sin


composite(
    "rotary_embedding",
    inputs=1,
    expand=_rotary_embedding,
    doc="x of shape (…, positions, length) with each pair of elements of the last axis rotated by "
    "an angle that grows with the position",
    params=ROTARY_PARAMS,
    aliases="rope",
)


# Linear biases: scores are lowered in proportion to the distance of key and query.


def _alibi_bias_shape(node: Node, shape: Shape) -> Shape:
    """Infer the shape, ``shape`` of the scores.

    Raises: ShapeError, naming ``node``, if the rank is below 3.
    """
    if len(shape) < 3:
        raise ShapeError(
            f"{node.where} needs scores of (…, heads, queries, keys), got {show_shape(shape)}"
        )
    return shape


def _alibi_bias_element(node: Node, index: Index, x: Reader) -> Expr:
    """Return minus the distance of key and query times the slope of head h of n, 2**(-8 (h+1) / n).

    The last three of ``index``, an expression for each axis, are head, query and key; the last
    query and the last key are at the same position. ``x``, which reads the scores, is not used.
    Source: Press, Smith and Lewis, Train Short, Test Long, section 3. ``node`` has the shape of the
    scores, and their dtype, which must be known.

    Raises: ShapeError if a rank is unknown.
    """
    heads, queries, keys = known_shape(node.entries[0])[-3:]
    dtype = node.inputs[0].dtype
    assert dtype is not None
    compute_dtype = _compute_dtype(dtype)
    head = ast.cast(index[-3] + ast.size_of(1), compute_dtype) / ast.cast(
        ast.size_of(heads), compute_dtype
    )
    distance = index[-1] - index[-2] - ast.size_of(keys - queries)
    return ast.cast(ast.exp2(head * -8.0) * -abs(ast.cast(distance, compute_dtype)), dtype)


alibi_bias = register_op(
    "alibi_bias",
    num_inputs=1,
    doc="for scores x of shape (…, heads, queries, keys): minus the distance of key and query "
    "times the slope of the head",
)
alibi_bias.set_attr("FInferShape", _alibi_bias_shape)
alibi_bias.set_attr("FInferType", common_dtype("f"))
alibi_bias.set_attr("FElement", _alibi_bias_element)
alibi_bias.set_attr("FGradient", lambda node, dy: [None])
alibi_bias.set_attr("TOpPattern", OpPattern.INJECTIVE)
alibi_bias.set_attr("TOpCost", "expensive")
