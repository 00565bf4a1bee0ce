"""Importers of scaled dot-product attention and its gradient, by products and a softmax.

The forward operator also returns the logarithm of each row's sum, from which the gradient computes
the probabilities again.
"""

from __future__ import annotations

import passkit.ops as ops
from passkit.frontends.torch.errors import unsupported
from passkit.frontends.torch.op_importers.registry import (
    BOOL,
    AtenCall,
    accumulated,
    aten,
    cast,
    constant,
    imports,
)
from passkit.graph.node import Entry, known_shape
from passkit.values.dtype import DType


def _scores(
    call: AtenCall,
    query: Entry,
    key: Entry,
    mask: Entry | None,
    dropout: float,
    causal: bool,
    scale: float | None,
) -> tuple[Entry, float, DType]:
    """Return the scaled and masked scores of each query and key, the scale, and their dtype."""
    if dropout:
        unsupported("attention with dropout")
    if known_shape(query)[:-2] != known_shape(key)[:-2]:
        unsupported("attention whose keys have other heads than the queries")
    width = known_shape(query)[-1]
    if scale is None:
        if not isinstance(width, int):
            unsupported("attention of queries whose width is symbolic")
        scale = width**-0.5
    wide = accumulated(call.dtype)
    scores = ops.matmul(cast(query, wide), cast(key, wide), transpose_b=True) * scale
    if mask is not None:
        if mask.dtype is BOOL:
            scores = ops.where(mask, scores, constant(float("-inf"), wide))
        else:
            scores = scores + cast(mask, wide)
    if causal:
        rows, columns = known_shape(scores)[-2:]
        down = ops.reshape(ops.cast(ops.range(0, rows), "int64"), (rows, 1))
        across = ops.reshape(ops.cast(ops.range(0, columns), "int64"), (1, columns))
        scores = ops.where(ops.less_equal(across, down), scores, constant(float("-inf"), wide))
    return scores, scale, wide


def _finite(x: Entry) -> Entry:
    """Return ``x`` with 0 in place of -inf, which rows have whose keys are all masked.

    The weights of such a row are 0 then, and not NaN.
    """
    return ops.where(ops.equal(x, float("-inf")), 0, x)


@imports(aten._scaled_dot_product_flash_attention_for_cpu.default)
def _attention(
    call: AtenCall,
    query: Entry,
    key: Entry,
    value: Entry,
    dropout: float = 0.0,
    causal: bool = False,
    *,
    attn_mask: Entry | None = None,
    scale: float | None = None,
) -> list[Entry]:
    """Import attention; the second result is the logarithm of each row's sum."""
    scores, _, wide = _scores(call, query, key, attn_mask, dropout, causal, scale)
    largest = _finite(ops.reduce_max(scores, axis=-1, keepdims=True))
    powers = ops.exp(scores - largest)
    total = ops.reduce_sum(powers, axis=-1, keepdims=True)
    weights = powers / ops.where(ops.equal(total, 0), 1, total)
    result = ops.matmul(weights, cast(value, wide))
    logarithms = ops.squeeze(largest + ops.log(total), axis=-1)
    return [cast(result, call.dtype), logarithms]


@imports(aten._scaled_dot_product_flash_attention_for_cpu_backward.default)
def _attention_gradient(
    call: AtenCall,
    dy: Entry,
    query: Entry,
    key: Entry,
    value: Entry,
    result: Entry,
    logarithms: Entry,
    dropout: float,
    causal: bool,
    *,
    attn_mask: Entry | None = None,
    scale: float | None = None,
) -> list[Entry]:
    """Import the gradients of attention by queries, keys and values."""
    scores, scale, wide = _scores(call, query, key, attn_mask, dropout, causal, scale)
    dy, result, query, key, value = (cast(x, wide) for x in (dy, result, query, key, value))
    sums = _finite(ops.expand_dims(cast(logarithms, wide), axis=-1))
    weights = ops.exp(scores - sums)
    by_value = ops.matmul(weights, dy, transpose_a=True)
    by_weight = ops.matmul(dy, value, transpose_b=True)
    mean = ops.reduce_sum(dy * result, axis=-1, keepdims=True)
    by_score = weights * (by_weight - mean) * scale
    by_query = ops.matmul(by_score, key)
    by_key = ops.matmul(by_score, query, transpose_a=True)
    return [cast(x, call.dtype) for x in (by_query, by_key, by_value)]
