"""Positions in attention: rotary embeddings and linear biases."""

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
    from passkit.ast import Expr
    from passkit.space.reads import Index, Reader


def _pairs(node: Node, x: Shape) -> Extent:
    """Half of the last axis, over which positions turn pairs."""
    half = divide_exactly(x[-1], 2) if len(x) >= 2 else None
    if half is None:
        raise ShapeError(
            f"{node.where} needs rank 2 or more and an even last axis, got {show_shape(x)}"
        )
    return half


def _turn_shape(node: Node, x: Shape) -> Shape:
    _pairs(node, x)
    return x


def _partner_element(node: Node, index: Index, x: Reader) -> Expr:
    """Which element stands across: half of the axis away, or the neighbour."""
    half = _pairs(node, known_shape(node.entries[0]))
    j = index[-1]
    if node.params["interleaved"]:
        odd = ast.equal(j % ast.size_of(2), ast.size_of(1))
        return ast.where(
            odd, x(*index[:-1], j - ast.size_of(1)), -x(*index[:-1], j + ast.size_of(1))
        )
    n = ast.size_of(half)
    return ast.where(j < n, -x(*index[:-1], j + n), x(*index[:-1], j - n))


rotate_half = register_op(
    "rotate_half",
    num_inputs=1,
    params={"interleaved": False},
    doc="pairs (a, b) of the last axis as (-b, a); a pair is half the axis apart, or interleaved",
)
rotate_half.set_attr("FInferShape", _turn_shape)
rotate_half.set_attr("FInferType", common_dtype("f"))
rotate_half.set_attr("FElement", _partner_element)
rotate_half.set_attr("TOpPattern", OpPattern.INJECTIVE)
rotate_half.set_attr("TOpCost", "light")
rotate_half.set_attr(
    "FGradient",
    lambda node, dy: [None if dy is None else -make("rotate_half", dy, **node.params)],
)


def _wave_shape(node: Node, x: Shape) -> Shape:
    extent_param(node, "offset")
    return _turn_shape(node, x)


def _wave_element(node: Node, index: Index, x: Reader) -> Expr:
    """Of (position + offset) / base**(2 pair / length), computed in float32 at least."""
    half = ast.size_of(_pairs(node, known_shape(node.entries[0])))
    dtype = node.inputs[0].dtype
    assert dtype is not None
    work = _wide(dtype)
    j = index[-1] // ast.size_of(2) if node.params["interleaved"] else index[-1] % half
    share = ast.cast(j, work) / ast.cast(half, work)
    place = ast.cast(index[-2] + ast.size_of(node.params["offset"]), work)
    angle = place * ast.exp(share * -_log_base(node))
    return ast.cast(ast.sin(angle) if node.params["sine"] else ast.cos(angle), dtype)


def _wide(dtype: DType) -> DType:
    return dtype if dtype.nbytes >= 4 else dtype_of("float32")


def _log_base(node: Node) -> float:
    base = float(node.params["base"])
    if not base > 0:
        raise GraphError(f"{node.where} needs a base above 0, got {base}")
    return log(base)


def _wave_type(node: Node, x: DType) -> DType:
    check_kinds(node, "f", x)
    _log_base(node)
    return x


POSITIONS = {"base": 10000.0, "offset": 0, "interleaved": False}
wave = register_op(
    "rotary_wave",
    num_inputs=1,
    params={**POSITIONS, "sine": False},
    doc="for x of (…, positions, length): the cosine or sine of the angle by which each pair of "
    "the last axis is turned",
)
wave.set_attr("FInferShape", _wave_shape)
wave.set_attr("FInferType", _wave_type)
wave.set_attr("FElement", _wave_element)
wave.set_attr("FGradient", lambda node, dy: [None])
wave.set_attr("TOpPattern", OpPattern.INJECTIVE)
wave.set_attr("TOpCost", "expensive")


def _rotary(node: Node, x: Entry) -> Entry:
    """Source: Su and others, RoFormer, equation 34."""
    cos, sin = (make("rotary_wave", x, **node.params, sine=sine) for sine in (False, True))
    turned = make("rotate_half", x, interleaved=node.params["interleaved"])
    return x * cos + turned * sin


composite(
    "rotary_embedding",
    1,
    _rotary,
    "x of (…, positions, length) with pairs turned by their position: query @ key.T then "
    "depends on distances",
    POSITIONS,
    aliases="rope",
)


def _alibi_element(node: Node, index: Index, x: Reader) -> Expr:
    """The slope of head h of n is 2**(-8 (h + 1) / n).

    Source: Press, Smith and Lewis, Train Short, Test Long, section 3.
    """
    heads, rows, columns = known_shape(node.entries[0])[-3:]
    dtype = node.inputs[0].dtype
    assert dtype is not None
    work = _wide(dtype)
    head = ast.cast(index[-3] + ast.size_of(1), work) / ast.cast(ast.size_of(heads), work)
    behind = index[-1] - index[-2] - ast.size_of(columns - rows)
    return ast.cast(ast.exp2(head * -8.0) * -abs(ast.cast(behind, work)), dtype)


def _heads_shape(node: Node, shape: Shape) -> Shape:
    if len(shape) < 3:
        raise ShapeError(
            f"{node.where} needs scores of (…, heads, queries, keys), got {show_shape(shape)}"
        )
    return shape


bias = register_op(
    "alibi_bias",
    num_inputs=1,
    doc="for scores (…, heads, queries, keys): minus the distance of key and query, times the "
    "slope of the head",
)
bias.set_attr("FInferShape", _heads_shape)
bias.set_attr("FInferType", common_dtype("f"))
bias.set_attr("FElement", _alibi_element)
bias.set_attr("FGradient", lambda node, dy: [None])
bias.set_attr("TOpPattern", OpPattern.INJECTIVE)
bias.set_attr("TOpCost", "expensive")
