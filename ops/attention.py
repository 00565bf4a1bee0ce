"""Attention operators: softmax under a mask, causal masks, and scaled dot-product attention.

All but ``causal_mask`` are composites of primitives, so their parts fuse with their neighbours.
"""

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
    from passkit.analysis.accesses import Index, Reader
    from passkit.ast import Expr


# Softmax under a mask.


def _masked_softmax_dtype(node: Node, x: DType, mask: DType) -> DType:
    """Infer the dtype of masked_softmax, that of x.

    ``x`` and ``mask`` are the dtypes of the inputs; ``node`` is named in errors.

    Raises:
        DTypeError: If x is not of floats, or the mask is not of bools.
    """
    check_kinds(node, "f", x)
    if mask is not bool_:
        raise DTypeError(f"{node.where} needs a bool mask, got {mask}; pk.ops.not_equal(mask, 0)")
    return x


def _masked_softmax(node: Node, x: Entry, mask: Entry) -> Entry:
    """Expand masked_softmax of x along the parameter ``axis``, over elements where mask is True.

    The maximum is taken over these. A row in which every element is masked has no maximum and sums
    to 0: its result is 0. ``node`` has the parameter ``axis``: one or several axes, or None for
    all.

    Raises: ShapeError for an axis that is out of range, listed twice or no int, an unknown rank, or
    a mask that does not broadcast with ``x``.
    """
    axis = node.params["axis"]
    normalize_axes(node, len(known_shape(x)), axis)
    if numel(known_shape(x)) == 0:
        return make("where", mask, x, 0.0)
    largest = make("reduce_max", make("where", mask, x, -inf), axis=axis, keepdims=True)
    any_unmasked = largest > -inf
    shifted = x - make("where", any_unmasked, largest, 0.0)
    exponentials = make("where", mask, make("exp", make("where", mask, shifted, 0.0)), 0.0)
    total = make("reduce_sum", exponentials, axis=axis, keepdims=True)
    return exponentials / make("where", any_unmasked, total, 1.0)


composite(
    "masked_softmax",
    inputs=["x", "mask"],
    expand=_masked_softmax,
    doc="softmax along axis over the elements where mask is True, and 0 elsewhere; all 0 where "
    "the mask is False everywhere",
    params={"axis": -1},
    types=_masked_softmax_dtype,
)
composite(
    "softmin",
    inputs=1,
    expand=lambda node, x: make("softmax", -x, axis=node.params["axis"]),
    doc="softmax(-x) along axis: the smallest element has the largest weight",
    params={"axis": -1},
)


# The causal mask.


def _causal_mask_shape(node: Node, shape: Shape) -> Shape:
    """Infer the shape of causal_mask: ``shape``, (…, queries, keys), unchanged.

    Errors name ``node``.

    Raises:
        ShapeError: If the rank is below 2.
    """
    if len(shape) < 2:
        raise ShapeError(f"{node.where} needs rank 2 or more, got {show_shape(shape)}")
    return shape


def _causal_mask_element(node: Node, index: Index, x: Reader) -> Expr:
    """Return an element of causal_mask: the parameter ``value`` if the key is later than the query.

    Else it is that of the input, which ``x`` reads at ``index``, an expression for each axis.
    Positions are counted from the end, as the last query and the last key belong together: a cache
    of earlier keys has more keys than there are queries. ``node`` has the parameter ``value``.

    Raises: ShapeError if a rank is unknown.
    """
    queries, keys = known_shape(node.entries[0])[-2:]
    is_later = index[-1] - index[-2] > ast.size_of(keys - queries)
    return ast.where(is_later, node.params["value"], x(*index))


causal_mask = register_op(
    "causal_mask",
    num_inputs=1,
    params={"value": -inf},
    doc="x, scores of shape (…, queries, keys), with value where the key comes after the query; "
    "the last query and the last key are at the same position",
)
causal_mask.set_attr("FInferShape", _causal_mask_shape)
causal_mask.set_attr("FInferType", common_dtype("f"))
causal_mask.set_attr("FElement", _causal_mask_element)
causal_mask.set_attr("TOpPattern", OpPattern.INJECTIVE)
causal_mask.set_attr("TOpCost", "light")
causal_mask.set_attr(
    "FGradient", lambda node, dy: [None if dy is None else make("causal_mask", dy, value=0.0)]
)


# Scaled dot-product attention.


def _attention_inputs(params: Any) -> list[str]:
    """Return the input names: query, key, value, and mask if ``params["masked"]`` is true."""
    names = ["query", "key", "value"]
    return [*names, "mask"] if params["masked"] else names


def _attention_dtype(node: Node, *dtypes: DType) -> DType:
    """Infer the dtype of attention: that of query, key and value.

    ``dtypes`` are those of query, key, value and perhaps the mask. Errors name ``node``.

    Raises:
        DTypeError: If the first three differ or are not floats, or the mask is of neither bools nor
            their dtype; a GraphError for no dtypes.
    """
    out = same_dtype_rule(node, *dtypes[:3])
    check_kinds(node, "f", out)
    if len(dtypes) > 3 and dtypes[3] not in (bool_, out):
        raise DTypeError(f"{node.where} needs a mask of bool or {out}, got {dtypes[3]}")
    return out


def _attention(node: Node, query: Entry, key: Entry, value: Entry, *mask: Entry) -> Entry:
    """Expand attention: softmax(scale * query @ key.T + mask) @ value.

    A bool mask hides keys where it is False; ``causal`` hides keys later than the query. Source:
    Vaswani and others, Attention Is All You Need, equation 1. ``node`` has the parameters
    ``causal`` and ``scale``; ``mask`` is empty or holds one entry.

    Raises:
        ShapeError: If a rank is unknown or the query's is below 2, the shapes do not fit, or
            ``scale`` is None and the length of a query is symbolic.
        GraphError: If ``scale`` is neither None, an int nor a float.
    """
    shape = known_shape(query)
    if len(shape) < 2:
        raise ShapeError(f"{node.where} needs queries of rank 2 or more, got {show_shape(shape)}")
    query = query * _score_scale(node, shape[-1])
    scores = make("matmul", query, key, transpose_b=True)
    if node.params["causal"]:
        scores = make("causal_mask", scores)
    if mask and mask[0].dtype is bool_:
        weights = make("masked_softmax", scores, _joint_mask(node, scores, mask[0]))
    else:
        weights = make("softmax", scores + mask[0] if mask else scores)
    return make("matmul", weights, value)


def _joint_mask(node: Node, scores: Entry, mask: Entry) -> Entry:
    """Return the bool mask; if ``causal`` is set, it is False also where a score is -inf or NaN.

    ``scores`` are those with the causal mask applied, -inf for keys later than the query. ``node``
    has the parameter ``causal``.

    Raises: ShapeError if mask and scores do not broadcast.
    """
    if not node.params["causal"]:
        return mask
    return make("logical_and", mask, scores > -inf)


def _score_scale(node: Node, depth: Extent) -> float:
    """Return the factor of the scores: the parameter ``scale``, or for None 1/sqrt(depth).

    ``depth`` is the length of a query; 0 counts as 1. ``node`` has the parameter ``scale``.

    Raises:
        ShapeError: If ``scale`` is None and ``depth`` is symbolic.
        GraphError: If ``scale`` is neither None, an int nor a float, such as a bool.
    """
    if node.params["scale"] is not None:
        return float(number_param(node, "scale"))
    if not isinstance(depth, int):
        raise ShapeError(f"{node.where} needs a scale, as the queries' length {depth} is unknown")
    return 1 / sqrt(max(depth, 1))


composite(
    "scaled_dot_product_attention",
    inputs=-1,
    expand=_attention,
    doc="softmax(scale * query @ transpose(key) + mask) @ value over the last two axes, of shape "
    "(…, queries, length of a value); where mask is bool, keys are attended to where it is "
    "True",
    params={"masked": False, "causal": False, "scale": None},
    types=_attention_dtype,
    FListInputNames=_attention_inputs,
)
