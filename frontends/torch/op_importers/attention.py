"""Importers of scaled dot-product attention and its gradient, by products and a softmax.

The forward operator also returns the logarithm of each row's sum, from which the gradient computes
the probabilities again.
"""

from __future__ import annotations

import passkit.ops as ops
from passkit.frontends.torch.errors import unsupported
from passkit.frontends.torch.op_importers.registry import (
    AtenCall,
    aten,
    cast,
    constant,
    imports,
)
from passkit.graph.node import Entry, known_shape
from passkit.values.dtype import DType, dtype_of


def _wide(dtype: DType | None) -> DType:
    """Return the dtype that scores of operands of a dtype are computed in: at least float32."""
    assert dtype is not None
    return dtype_of("float32") if dtype.name in ("float16", "bfloat16") else dtype


def _scores(
    query: Entry, key: Entry, mask: Entry | None, causal: bool, scale: float | None
) -> tuple[Entry, float]:
    """Return the scaled and masked scores of each query and key, and the scale."""
    if known_shape(query)[:-2] != known_shape(key)[:-2]:
        unsupported("attention whose keys have other heads than the queries")
    width = known_shape(query)[-1]
    if scale is None:
        if not isinstance(width, int):
            unsupported("attention of queries whose width is symbolic")
        scale = width**-0.5
    wide = _wide(query.dtype)
    scores = ops.matmul(cast(query, wide), cast(key, wide), transpose_b=True) * scale
    if mask is not None:
        if mask.dtype is dtype_of("bool"):
            scores = ops.where(mask, scores, constant(float("-inf"), wide))
        else:
            scores = scores + cast(mask, wide)
    if causal:
        rows, columns = known_shape(scores)[-2:]
        down = ops.reshape(ops.cast(ops.range(0, rows), "int64"), (rows, 1))
        across = ops.reshape(ops.cast(ops.range(0, columns), "int64"), (1, columns))
        scores = ops.where(
            ops.less_equal(across, down), scores, constant(float("-inf"), wide)
        )
    return scores, scale


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
    if dropout:
        unsupported("attention with dropout")
    scores, _ = _scores(query, key, attn_mask, causal, scale)
    wide = _wide(query.dtype)
    largest = ops.reduce_max(scores, axis=-1, keepdims=True)
    powers = ops.exp(scores - largest)
    total = ops.reduce_sum(powers, axis=-1, keepdims=True)
    result = ops.matmul(powers / total, cast(value, wide))
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
    if dropout:
        unsupported("attention with dropout")
    scores, scale = _scores(query, key, attn_mask, causal, scale)
    wide = _wide(query.dtype)
    dy, result, query, key, value = (cast(x, wide) for x in (dy, result, query, key, value))
    chances = ops.exp(scores - ops.expand_dims(cast(logarithms, wide), axis=-1))
    by_value = ops.matmul(chances, dy, transpose_a=True)
    by_chance = ops.matmul(dy, value, transpose_b=True)
    mean = ops.reduce_sum(dy * result, axis=-1, keepdims=True)
    by_score = chances * (by_chance - mean) * scale
    by_query = ops.matmul(by_score, key)
    by_key = ops.matmul(by_score, query, transpose_a=True)
    return [cast(x, call.dtype) for x in (by_query, by_key, by_value)]
