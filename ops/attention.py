"""Attention, and what stands around it: softmax under a mask, and masks of what is late."""

from __future__ import annotations

from math import inf, sqrt
from typing import TYPE_CHECKING, Any

from passkit import ast
from passkit.errors import DTypeError, ShapeError
from passkit.graph.infer import same_dtype_rule, show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.graph.op import OpPattern, register_op
from passkit.ops.composites import composite
from passkit.ops.helpers import check_kinds, common_dtype, make, normalize_axes, number_param
from passkit.values.dtype import DType, bool_
from passkit.values.size import Extent, Shape, numel

if TYPE_CHECKING:
    from passkit.ast import Expr
    from passkit.space.reads import Index, Reader


# masks


def _mask_type(node: Node, x: DType, mask: DType) -> DType:
    check_kinds(node, "f", x)
    if mask is not bool_:
        raise DTypeError(f"{node.where} needs a bool mask, got {mask}; pk.ops.not_equal(mask, 0)")
    return x


def _masked_softmax(node: Node, x: Entry, mask: Entry) -> Entry:
    """The largest element is that of those kept; 0 where none is kept, as there is nothing."""
    axis = node.params["axis"]
    normalize_axes(node, len(known_shape(x)), axis)
    if numel(known_shape(x)) == 0:
        return make("where", mask, x, 0.0)
    top = make("reduce_max", make("where", mask, x, -inf), axis=axis, keepdims=True)
    some = top > -inf
    shifted = x - make("where", some, top, 0.0)
    e = make("where", mask, make("exp", make("where", mask, shifted, 0.0)), 0.0)
    total = make("reduce_sum", e, axis=axis, keepdims=True)
    return e / make("where", some, total, 1.0)


composite(
    "masked_softmax",
    ["x", "mask"],
    _masked_softmax,
    "softmax along axis of the elements where mask is True; the others are 0, all of them too",
    {"axis": -1},
    types=_mask_type,
)
composite(
    "softmin",
    1,
    lambda node, x: make("softmax", -x, axis=node.params["axis"]),
    "softmax(-x): the smallest weighs most",
    {"axis": -1},
)


def _below_element(node: Node, index: Index, x: Reader) -> Expr:
    """Positions count from the end, as those of a cache that has grown do."""
    rows, columns = known_shape(node.entries[0])[-2:]
    late = index[-1] - index[-2] > ast.size_of(columns - rows)
    return ast.where(late, node.params["value"], x(*index))


def _below_shape(node: Node, shape: Shape) -> Shape:
    if len(shape) < 2:
        raise ShapeError(f"{node.where} needs rank 2 or more, got {show_shape(shape)}")
    return shape


causal_mask = register_op(
    "causal_mask",
    num_inputs=1,
    params={"value": -inf},
    doc="scores (…, queries, keys) with value where a key is later than the query; the last of "
    "both are at one time",
)
causal_mask.set_attr("FInferShape", _below_shape)
causal_mask.set_attr("FInferType", common_dtype("f"))
causal_mask.set_attr("FElement", _below_element)
causal_mask.set_attr("TOpPattern", OpPattern.INJECTIVE)
causal_mask.set_attr("TOpCost", "light")
causal_mask.set_attr(
    "FGradient", lambda node, dy: [None if dy is None else make("causal_mask", dy, value=0.0)]
)


# attention


def _attention_names(params: Any) -> list[str]:
    return ["query", "key", "value", *["mask"] * bool(params["masked"])]


def _attention_type(node: Node, *dtypes: DType) -> DType:
    out = same_dtype_rule(node, *dtypes[:3])
    check_kinds(node, "f", out)
    if len(dtypes) > 3 and dtypes[3] not in (bool_, out):
        raise DTypeError(f"{node.where} needs a mask of bool or {out}, got {dtypes[3]}")
    return out


def _attention(node: Node, q: Entry, k: Entry, v: Entry, *rest: Entry) -> Entry:
    """Source: Vaswani and others, Attention Is All You Need, equation 1."""
    shape = known_shape(q)
    if len(shape) < 2:
        raise ShapeError(f"{node.where} needs queries of rank 2 or more, got {show_shape(shape)}")
    q = q * _scale(node, shape[-1])
    scores = make("matmul", q, k, transpose_b=True)
    if node.params["causal"]:
        scores = make("causal_mask", scores)
    if rest and rest[0].dtype is bool_:
        weights = make("masked_softmax", *_hidden(node, scores, rest[0]))
    else:
        weights = make("softmax", scores + rest[0] if rest else scores)
    return make("matmul", weights, v)


def _hidden(node: Node, scores: Entry, mask: Entry) -> tuple[Entry, Entry]:
    """Scores and a mask of theirs, in which what is late is hidden too."""
    if not node.params["causal"]:
        return scores, mask
    return scores, make("logical_and", mask, scores > -inf)


def _scale(node: Node, depth: Extent) -> float:
    if node.params["scale"] is not None:
        return float(number_param(node, "scale"))
    if not isinstance(depth, int):
        raise ShapeError(f"{node.where} needs a scale, as the queries' length {depth} is unknown")
    return 1 / sqrt(max(depth, 1))


composite(
    "scaled_dot_product_attention",
    -1,
    _attention,
    "softmax(scale * query @ key.T + mask) @ value over the last two axes; a bool mask is True "
    "where a key is seen; scale is 1/sqrt(length of a query)",
    {"masked": False, "causal": False, "scale": None},
    types=_attention_type,
    FListInputNames=_attention_names,
)
