"""Attention: scaled dot products with masks and grouped heads, and layers of several heads."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

import passkit.ops as ops
from passkit.errors import DTypeError, ShapeError
from passkit.frontends.xp.array import Array, array_of
from passkit.frontends.xp.elementwise_operations import cast, converted
from passkit.frontends.xp.manipulation import broadcast_shapes, moveaxis, reshape
from passkit.frontends.xp.nn.layers import linear
from passkit.frontends.xp.nn.operands import applied, real_number, real_value
from passkit.frontends.xp.reductions import truth
from passkit.frontends.xp.runtime import OPERATIONS, scalar
from passkit.graph.node import Entry, known_shape
from passkit.streams.recorder import Value
from passkit.values.arguments import shown
from passkit.values.dtype import bool_
from passkit.values.size import Extent


def _attention(
    query: Entry, key: Entry, value: Entry, scale: Entry, *mask: Entry, is_causal: bool, heads: int
) -> Entry:
    """Build attention from real operands of known rank.

    ``scale`` is a scalar, ``mask`` at most one entry, as of `scaled_dot_product_attention`.
    ``heads`` is the number of query heads for each head of keys, or 0 where they are as many.
    Grouped heads get an axis of their own, along which keys and values broadcast: they are not
    copied.
    """
    query, key, value = converted([query, key, value], "special")
    shape = known_shape(query)
    groups = known_shape(key)[-3] if heads else 0
    if heads:
        query = ops.reshape(query, shape=(*shape[:-3], groups, heads, *shape[-2:]))
        key, value = ops.expand_dims(key, axis=-3), ops.expand_dims(value, axis=-3)
    assert query.dtype is not None
    rows, columns = known_shape(query)[-2], known_shape(key)[-2]
    masks = [_mask(m, query, heads, groups) for m in mask]
    if is_causal and rows != columns:
        masks = _with_causal(masks, rows, columns)
        is_causal = False
    out = ops.scaled_dot_product_attention(
        query * cast(scale, query.dtype),
        key,
        value,
        *masks,
        masked=bool(masks),
        causal=is_causal,
        scale=1.0,
    )
    if not heads:
        return out
    return ops.reshape(out, shape=(*shape[:-1], known_shape(value)[-1]))


def _mask(mask: Entry, query: Entry, heads: int, groups: Extent) -> Entry:
    """Return a mask for the scores of ``query``: of booleans, or else cast to its dtype.

    If ``heads`` is not 0, the axis of heads, where the mask has one, is split into ``groups`` and
    ``heads``.
    """
    if mask.dtype is not bool_:
        assert query.dtype is not None
        mask = cast(mask, query.dtype)
    shape = known_shape(mask)
    if not heads or len(shape) < 3:
        return mask
    if shape[-3] == 1:
        return ops.expand_dims(mask, axis=-3)
    return ops.reshape(mask, shape=(*shape[:-3], groups, heads, *shape[-2:]))


def _with_causal(masks: list[Entry], rows: Extent, columns: Extent) -> list[Entry]:
    """Return one mask under which query k attends to the first k + 1 keys only.

    Args:
        masks: at most one other mask, of booleans or summands, with which it is joined.
        rows: the number of queries.
        columns: the number of keys.
    """
    row, column = (ops.arange(0, n, 1, dtype="int64") for n in (rows, columns))
    allowed = ops.less_equal(ops.expand_dims(column, axis=0), ops.expand_dims(row, axis=1))
    if not masks:
        return [allowed]
    (mask,) = masks
    if mask.dtype is bool_:
        return [ops.logical_and(mask, allowed)]
    return [ops.where(allowed, mask, -inf)]


OPERATIONS.define("nn.attention", _attention)


def _check_shapes(q: tuple[int, ...], k: tuple[int, ...], v: tuple[int, ...], grouped: bool) -> int:
    """Return the number of query heads for each head of keys, 0 where they are as many.

    ``q``, ``k`` and ``v`` are the shapes of query, key and value; unless ``grouped``, the result is
    0, and the axes before the last two must broadcast.

    Raises: ShapeError if the shapes do not fit, or heads of keys do not divide those of queries.
    """
    least = 3 if grouped else 2
    if min(len(q), len(k), len(v)) < least or q[-1] != k[-1] or k[:-1] != v[:-1]:
        raise ShapeError(
            f"scaled_dot_product_attention needs query (…, l, d), key (…, s, d) and value "
            f"(…, s, e), got shapes {q}, {k} and {v}"
        )
    if not grouped:
        broadcast_shapes(q[:-2], k[:-2])
        return 0
    heads, groups = q[-3], k[-3]
    if not groups or heads % groups:
        raise ShapeError(
            f"scaled_dot_product_attention needs a multiple of {groups} heads of queries, got "
            f"{heads}"
        )
    broadcast_shapes(q[:-3], k[:-3])
    return 0 if heads == groups else heads // groups


def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    *,
    is_causal: bool = False,
    scale: Any = None,
    enable_gqa: bool = False,
) -> Array:
    """Return softmax(scale * query @ transpose(key) + mask) @ value.

    It is computed in the common float dtype of query, key and value; float64 for integers only.

    Args:
        query: an array of shape (…, l, d).
        key: an array of shape (…, s, d).
        value: an array of shape (…, s, e); its leading axes are those of the key, which broadcast
            with those of the query.
        attn_mask: booleans, which are True where a key is attended to; or numbers that are added to
            the scores; of a shape that broadcasts to the scores (…, l, s), whose leading axes are
            those of the query. Queries without a key give 0. None: there is no mask.
        is_causal: whether query k attends to the first k + 1 keys only.
        scale: a number; None: 1 / sqrt(d).
        enable_gqa: whether axis -3 holds heads of which keys and values may have fewer than
            queries, a divisor of their number; each then serves several neighbouring heads of
            queries.

    Returns: An array of shape (…, l, e).

    Raises:
        ArgumentError: an operand or the mask is neither an array nor a real number, or the scale no
            number.
        DTypeError: an operand or the mask is an array of complex numbers.
        ShapeError: the shapes do not fit.
        DeviceError: the arrays are on several devices.
    """
    where = "scaled_dot_product_attention"
    names = ("query", query), ("key", key), ("value", value)
    values: list[Value] = [real_value(where, name, x) for name, x in names]
    q, k, v = (x.type.shape for x in values)
    heads = _check_shapes(q, k, v, truth(f"{where}: enable_gqa", enable_gqa))
    if scale is None:
        scale = max(q[-1], 1) ** -0.5
    dtype = values[0].type.dtype
    dtype = np.dtype(np.float64) if dtype.kind in "biu" else dtype
    values.append(scalar(real_number(where, "scale", scale), dtype))
    if attn_mask is not None:
        mask = array_of(attn_mask)
        if mask.dtype.kind == "c":
            raise DTypeError(f"{where}: attn_mask must be real or bool, got {mask.dtype}")
        scores = (*q[:-1], k[-2])
        if broadcast_shapes(mask.shape, scores) != scores:
            raise ShapeError(f"{where} needs a mask for scores {scores}, got shape {mask.shape}")
        values.append(mask._value)
    is_causal = truth(f"{where}: is_causal", is_causal)
    return applied("attention", *values, is_causal=is_causal, heads=heads)


def multi_head_attention(
    query: Any,
    key: Any,
    value: Any,
    query_weight: Any,
    key_weight: Any,
    value_weight: Any,
    out_weight: Any,
    num_heads: int,
    *,
    num_key_heads: int | None = None,
    query_bias: Any = None,
    key_bias: Any = None,
    value_bias: Any = None,
    out_bias: Any = None,
    attn_mask: Any = None,
    is_causal: bool = False,
) -> Array:
    """Return attention of several heads: linear maps of operands, attention, a map of the result.

    Args:
        query: an array of shape (…, l, n).
        key: an array of shape (…, s, n).
        value: an array of shape (…, s, n).
        query_weight: a matrix (num_heads * d, n), as of `linear`; so are the others.
        key_weight: a matrix (num_key_heads * d, n).
        value_weight: a matrix (num_key_heads * e, n).
        out_weight: a matrix (m, num_heads * e).
        num_heads: the number of heads of queries.
        num_key_heads: that of keys and values, a divisor; None: as many.
        query_bias: a vector of summands of the query's map, or None; so are the others.
        key_bias: the same of the key's map.
        value_bias: the same of the value's map.
        out_bias: the same of the result's map.
        attn_mask: booleans or summands that broadcast to the scores (…, num_heads, l, s), as of
            `scaled_dot_product_attention`; None: there is no mask.
        is_causal: whether query k attends to the first k + 1 keys only.

    Returns: An array of shape (…, l, m).

    Raises:
        ArgumentError: an operand is neither an array nor a real number.
        DTypeError: an operand is an array of complex numbers or of a dtype that passkit does not
            have, or an int too large for a float.
        ShapeError: the shapes do not fit, or a number of heads is no positive int, or does not
            divide what it must.
        DeviceError: the arrays are on several devices.
    """
    key_heads = num_heads if num_key_heads is None else num_key_heads
    heads = (
        _heads(linear(query, query_weight, query_bias), num_heads),
        _heads(linear(key, key_weight, key_bias), key_heads),
        _heads(linear(value, value_weight, value_bias), key_heads),
    )
    attended = scaled_dot_product_attention(
        *heads, attn_mask, is_causal=is_causal, enable_gqa=key_heads != num_heads
    )
    rows = moveaxis(attended, -3, -2)
    joined = reshape(rows, (*rows.shape[:-2], rows.shape[-2] * rows.shape[-1]))
    return linear(joined, out_weight, out_bias)


def _heads(x: Array, count: int) -> Array:
    """Return an array (…, l, count * d) as (…, count, l, d).

    Raises: ShapeError if ``count`` is no positive int, does not divide the last extent, or there
    are fewer than two axes.
    """
    if not isinstance(count, int) or count < 1 or x.ndim < 2 or x.shape[-1] % count:
        raise ShapeError(
            f"multi_head_attention needs features that {shown(count)} heads divide, got shape "
            f"{x.shape}"
        )
    return moveaxis(reshape(x, (*x.shape[:-1], count, x.shape[-1] // count)), -2, -3)
