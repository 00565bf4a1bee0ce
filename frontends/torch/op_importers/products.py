"""Importers of matrix products and convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import passkit.ops as ops
from passkit.frontends.torch.errors import UnsupportedNodeError
from passkit.frontends.torch.op_importers.registry import (
    AtenCall,
    aten,
    cast,
    imports,
    plain_extents,
)
from passkit.graph.node import Entry, known_shape


@imports(aten.mm.default, aten.bmm.default, aten.matmul.default)
def _matmul(call: AtenCall, a: Entry, b: Entry) -> Entry:
    """Import a product of matrices, or of batches of them."""
    if call.dtype.kind == "b":
        raise UnsupportedNodeError("a product of bools")
    return ops.reshape(ops.matmul(a, b), call.shape)


@imports(aten.mv.default)
def _mv(call: AtenCall, a: Entry, b: Entry) -> Entry:
    """Import a product of a matrix and a vector."""
    return ops.reshape(ops.matmul(a, ops.expand_dims(b, axis=-1)), call.shape)


@imports(aten.dot.default, aten.vdot.default)
def _dot(call: AtenCall, a: Entry, b: Entry) -> Entry:
    """Import a product of two vectors."""
    return ops.reshape(ops.matmul(ops.expand_dims(a, axis=0), ops.expand_dims(b, axis=-1)), ())


@imports(aten.addmm.default, aten.baddbmm.default)
def _addmm(
    call: AtenCall, c: Entry, a: Entry, b: Entry, *, beta: Any = 1, alpha: Any = 1
) -> Entry:
    """Import ``beta * c + alpha * a @ b``; with a beta of 0 NaN of ``c`` does not count."""
    product = ops.matmul(a, b)
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return product
    return product + (c if beta == 1 else c * beta)


@imports(aten.convolution.default)
def _convolution(
    call: AtenCall,
    x: Entry,
    filters: Entry,
    bias: Entry | None,
    strides: Sequence[int],
    padding: Sequence[int],
    dilations: Sequence[int],
    is_transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Entry:
    """Import a convolution of images with channels first."""
    rank = len(known_shape(x)) - 2
    if is_transposed or rank not in (1, 2, 3) or len(known_shape(x)) != len(call.shape):
        raise UnsupportedNodeError("a transposed convolution, or one of another rank than 1 to 3")
    strides, dilations = (_for_each_axis(n, rank) for n in (strides, dilations))
    widths = tuple((n, n) for n in _for_each_axis(padding, rank))
    spatial = tuple(range(2, rank + 2))
    result = ops.convolution(
        ops.transpose(x, axes=(0, *spatial, 1)),
        ops.transpose(filters, axes=(*spatial, 1, 0)),
        strides=strides,
        padding=widths,
        dilations=dilations,
        groups=groups,
    )
    if bias is not None:
        result = result + bias
    return cast(ops.transpose(result, axes=(0, rank + 1, *range(1, rank + 1))), call.dtype)


def _for_each_axis(values: Sequence[int], rank: int) -> tuple[int, ...]:
    """Return a number for each spatial axis; a single one is meant for all."""
    own = tuple(int(n) for n in values)
    return own * rank if len(own) == 1 else own


@imports(aten.convolution_backward.default)
def _convolution_backward(
    call: AtenCall,
    dy: Entry,
    x: Entry,
    filters: Entry,
    bias_sizes: Any,
    strides: Sequence[int],
    padding: Sequence[int],
    dilations: Sequence[int],
    is_transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    needed: Sequence[bool],
) -> list[Entry | None]:
    """Import the gradients of a convolution by its input, filters and bias."""
    rank = len(known_shape(x)) - 2
    if is_transposed or rank not in (1, 2, 3):
        raise UnsupportedNodeError("a transposed convolution, or one of another rank than 1 to 3")
    spatial, back = tuple(range(2, rank + 2)), (0, rank + 1, *range(1, rank + 1))
    options: dict[str, Any] = {
        "strides": _for_each_axis(strides, rank),
        "padding": tuple((n, n) for n in _for_each_axis(padding, rank)),
        "dilations": _for_each_axis(dilations, rank),
        "groups": groups,
    }
    last = ops.transpose(dy, axes=(0, *spatial, 1))
    of_x: Entry | None = None
    of_filters: Entry | None = None
    of_bias: Entry | None = None
    if needed[0]:
        turned = ops.transpose(filters, axes=(*spatial, 1, 0))
        size = [known_shape(x)[k] for k in spatial]
        of_x = ops.convolution_backprop_input(turned, last, size=size, **options)
        of_x = ops.transpose(of_x, axes=back)
    if needed[1]:
        window = plain_extents([known_shape(filters)[k] for k in spatial])
        turned = ops.transpose(x, axes=(0, *spatial, 1))
        of_filters = ops.convolution_backprop_filter(turned, last, window=window, **options)
        of_filters = ops.transpose(of_filters, axes=(rank + 1, rank, *range(rank)))
    if needed[2]:
        of_bias = ops.reduce_sum(dy, axis=(0, *spatial))
    return [of_x, of_filters, of_bias]
