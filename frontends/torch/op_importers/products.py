"""Importers of matrix products and convolutions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import passkit.ops as ops
from passkit.frontends.torch.errors import unsupported
from passkit.frontends.torch.op_importers.registry import (
    AtenCall,
    aten,
    cast,
    imports,
    plain_extents,
)
from passkit.graph.node import Entry, known_shape

LONG_ROWS = 2048
"""Rows of a product from which on a right operand that lies transposed is turned first."""
FEW_COLUMNS = 256
"""Columns of a product below which that is so; with more, libraries take it as it lies."""


def _product(a: Entry, b: Entry) -> Entry:
    """Return a product of matrices; of complex ones by their parts.

    An operand that another one is the transpose of, such as the weights of a linear layer, is
    read as it lies: no copy is turned.

    Raises: UnsupportedNodeError for bools.
    """
    kind = a.dtype.kind if a.dtype is not None else ""
    if kind == "b":
        unsupported("a product of bools")
    if kind != "c":
        m, n = known_shape(a)[-2], known_shape(b)[-1]
        is_long = isinstance(m, int) and isinstance(n, int) and m >= LONG_ROWS and n < FEW_COLUMNS
        right, flip_right = (b, False) if is_long else _as_stored(b)
        left, flip_left = (a, False) if flip_right else _as_stored(a)
        return ops.matmul(left, right, transpose_a=flip_left, transpose_b=flip_right)
    (x, u), (y, v) = ((ops.real(z), ops.imag(z)) for z in (a, b))
    real = ops.matmul(x, y) - ops.matmul(u, v)
    return ops.complex(real, ops.matmul(x, v) + ops.matmul(u, y))


def _as_stored(x: Entry) -> tuple[Entry, bool]:
    """Return the matrices that ``x`` is made of, and whether ``x`` has them transposed.

    Reshapes of the batch in between are done before.
    """
    operator = None if x.node.op is None else x.node.op.name
    shape = known_shape(x)
    if operator == "transpose":
        rank = len(shape)
        axes = x.node.params["axes"] or tuple(reversed(range(rank)))
        if tuple(axes) == (*range(rank - 2), rank - 1, rank - 2):
            (source,) = x.node.inputs
            stored, is_transposed = _as_stored(source)
            return stored, not is_transposed
    if operator in ("reshape", "broadcast_to"):
        source = x.node.inputs[0]
        before = known_shape(source)
        keeps_matrices = before[-2:] == shape[-2:] and len(before) >= 2
        if keeps_matrices and (operator == "reshape" or before == shape):
            stored, is_transposed = _as_stored(source)
            if is_transposed:
                rows, columns = shape[-2:]
                return ops.reshape(stored, (*shape[:-2], columns, rows)), True
    return x, False


@imports(aten.mm.default, aten.bmm.default, aten.matmul.default)
def _matmul(call: AtenCall, a: Entry, b: Entry) -> Entry:
    """Import a product of matrices, or of batches of them."""
    return ops.reshape(_product(a, b), call.shape)


@imports(aten.mv.default)
def _mv(call: AtenCall, a: Entry, b: Entry) -> Entry:
    """Import a product of a matrix and a vector."""
    return ops.reshape(_product(a, ops.expand_dims(b, axis=-1)), call.shape)


@imports(aten.dot.default, aten.vdot.default)
def _dot(call: AtenCall, a: Entry, b: Entry) -> Entry:
    """Import a product of two vectors; vdot conjugates the first."""
    if call.function is aten.vdot.default and call.dtype.kind == "c":
        a = ops.conj(a)
    return ops.reshape(_product(ops.expand_dims(a, axis=0), ops.expand_dims(b, axis=-1)), ())


@imports(aten.addmm.default, aten.baddbmm.default)
def _addmm(call: AtenCall, c: Entry, a: Entry, b: Entry, *, beta: Any = 1, alpha: Any = 1) -> Entry:
    """Import ``beta * c + alpha * a @ b``; with a beta of 0 NaN of ``c`` does not count."""
    return _scaled_sum(call, c, _product(a, b), beta, alpha)


def _scaled_sum(call: AtenCall, c: Entry, product: Entry, beta: Any, alpha: Any) -> Entry:
    """Return ``beta * c + alpha * product``, whose factors are whole for integers."""
    if not (call.dtype.is_float or call.dtype.kind == "c"):
        beta, alpha = int(beta), int(alpha)
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return ops.broadcast_to(product, call.shape)
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
    rank = len(call.shape) - 2
    if rank not in (1, 2, 3):
        unsupported(f"a convolution over {rank} axes")
    options = _convolution_options(strides, padding, dilations, groups, rank)
    spatial = tuple(range(2, rank + 2))
    if len(known_shape(x)) < len(call.shape):
        x = ops.expand_dims(x, axis=0)
    last = ops.transpose(x, axes=(0, *spatial, 1))
    turned = ops.transpose(filters, axes=(*spatial, 1, 0))
    if _is_pointwise(filters, options, is_transposed):
        result = _pointwise(last, filters, options["strides"])
    elif is_transposed and any(output_padding):
        result = _transposed_with_padding(turned, last, call.shape[2:], options)
    elif is_transposed:
        size = [call.shape[k] for k in spatial]
        result = ops.convolution_backprop_input(turned, last, size=size, **options)
    else:
        result = ops.convolution(last, turned, **options)
    if bias is not None:
        result = result + bias
    return cast(ops.transpose(result, axes=(0, rank + 1, *range(1, rank + 1))), call.dtype)


def _is_pointwise(filters: Entry, options: Mapping[str, Any], is_transposed: bool) -> bool:
    """Return whether a convolution multiplies the channels of single pixels by one matrix."""
    return (
        not is_transposed
        and options["groups"] == 1
        and all(n == 1 for n in known_shape(filters)[2:])
        and all(pad == (0, 0) for pad in options["padding"])
    )


def _pointwise(x: Entry, filters: Entry, strides: Sequence[int]) -> Entry:
    """Return a convolution with a window of one pixel: a product of matrices.

    The filters are read as they lie, so that none are turned and packed in each call. ``x`` has its
    channels last.
    """
    chosen = _chosen_pixels(x, strides)
    shape, (count, channels, *_) = known_shape(chosen), known_shape(filters)
    matrix = ops.transpose(ops.reshape(filters, (count, channels)), axes=(1, 0))
    rows = ops.reshape(chosen, (prod(shape[:-1]), channels))
    return ops.reshape(_product(rows, matrix), (*shape[:-1], count))


def _chosen_pixels(x: Entry, strides: Sequence[int]) -> Entry:
    """Return the pixels of images with channels last that windows of one pixel are at."""
    if all(n == 1 for n in strides):
        return x
    batch, *spatial, channels = known_shape(x)
    size = [(n + stride - 1) // stride for n, stride in zip(spatial, strides, strict=True)]
    begin = [0] * (len(spatial) + 2)
    return ops.slice(x, begin=begin, size=(batch, *size, channels), step=[1, *strides, 1])


def _whole_size(filters: Entry, x: Entry, options: dict[str, Any]) -> list[int]:
    """Return the size of the result of a transposed convolution without padding."""
    counts = plain_extents(known_shape(x)[1:-1])
    windows = plain_extents(known_shape(filters)[: len(counts)])
    return [
        (n - 1) * stride + dilation * (window - 1) + 1
        for n, stride, dilation, window in zip(
            counts, options["strides"], options["dilations"], windows, strict=True
        )
    ]


def _transposed_with_padding(
    filters: Entry, x: Entry, size: Sequence[Any], options: dict[str, Any]
) -> Entry:
    """Return a transposed convolution whose result gets its size from the padding of the output.

    The result without padding is cut in front; behind it is cut or filled with zeros.
    """
    rank = len(size)
    whole = _whole_size(filters, x, options)
    own = {**options, "padding": ((0, 0),) * rank}
    result = ops.convolution_backprop_input(filters, x, size=whole, **own)
    widths = [
        (-front, n - (full - front))
        for n, full, (front, _) in zip(plain_extents(size), whole, options["padding"], strict=True)
    ]
    return ops.pad_with(result, pad_width=[(0, 0), *widths, (0, 0)], value=0)


def _convolution_options(
    strides: Sequence[int],
    padding: Sequence[int],
    dilations: Sequence[int],
    groups: int,
    rank: int,
) -> dict[str, Any]:
    """Return the parameters of a convolution over ``rank`` axes."""
    return {
        "strides": _for_each_axis(strides, rank),
        "padding": tuple((n, n) for n in _for_each_axis(padding, rank)),
        "dilations": _for_each_axis(dilations, rank),
        "groups": groups,
    }


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
    if rank not in (1, 2, 3):
        unsupported(f"a convolution over {rank} axes")
    spatial, back = tuple(range(2, rank + 2)), (0, rank + 1, *range(1, rank + 1))
    options = _convolution_options(strides, padding, dilations, groups, rank)
    of_x: Entry | None = None
    of_filters: Entry | None = None
    of_bias: Entry | None = None
    last_dy, last_x = (ops.transpose(v, axes=(0, *spatial, 1)) for v in (dy, x))
    turned = ops.transpose(filters, axes=(*spatial, 1, 0))
    if is_transposed and any(output_padding):
        whole = _whole_size(turned, last_x, options)
        size = plain_extents(known_shape(last_dy)[1:-1])
        widths = [
            (front, full - front - n)
            for n, full, (front, _) in zip(size, whole, options["padding"], strict=True)
        ]
        last_dy = ops.pad_with(last_dy, pad_width=[(0, 0), *widths, (0, 0)], value=0)
        options = {**options, "padding": ((0, 0),) * rank}
    if _is_pointwise(filters, options, is_transposed) and max(options["strides"]) == 1:
        of_x, of_filters = _pointwise_gradients(last_dy, last_x, filters)
        of_x = ops.transpose(of_x, axes=back) if needed[0] else None
        of_bias = ops.reduce_sum(dy, axis=(0, *spatial)) if needed[2] else None
        return [of_x, of_filters if needed[1] else None, of_bias]
    if needed[0]:
        if is_transposed:
            of_x = ops.convolution(last_dy, turned, **options)
        else:
            image_size = [known_shape(x)[k] for k in spatial]
            of_x = ops.convolution_backprop_input(turned, last_dy, size=image_size, **options)
        of_x = ops.transpose(of_x, axes=back)
    if needed[1]:
        window = plain_extents([known_shape(filters)[k] for k in spatial])
        image, result = (last_dy, last_x) if is_transposed else (last_x, last_dy)
        of_filters = ops.convolution_backprop_filter(image, result, window=window, **options)
        of_filters = ops.transpose(of_filters, axes=(rank + 1, rank, *range(rank)))
    if needed[2]:
        of_bias = ops.reduce_sum(dy, axis=(0, *spatial))
    return [of_x, of_filters, of_bias]


def _pointwise_gradients(dy: Entry, x: Entry, filters: Entry) -> tuple[Entry, Entry]:
    """Return the gradients of `_pointwise` with strides of 1, by its input and its filters."""
    shape, (count, channels, *_) = known_shape(x), known_shape(filters)
    pixels = prod(shape[:-1])
    rows_of_dy, rows = ops.reshape(dy, (pixels, count)), ops.reshape(x, (pixels, channels))
    of_x = ops.matmul(rows_of_dy, ops.reshape(filters, (count, channels)))
    of_filters = ops.matmul(rows_of_dy, rows, transpose_a=True)
    return ops.reshape(of_x, shape), ops.reshape(of_filters, known_shape(filters))


@imports(aten.addbmm.default)
def _addbmm(
    call: AtenCall, c: Entry, a: Entry, b: Entry, *, beta: Any = 1, alpha: Any = 1
) -> Entry:
    """Import ``beta * c`` plus alpha times a sum of products, which is one of longer rows."""
    rows = ops.transpose(a, axes=(1, 0, 2))
    shape_a, shape_b = known_shape(rows), known_shape(b)
    long_rows = ops.reshape(rows, (shape_a[0], shape_a[1] * shape_a[2]))
    product = ops.matmul(long_rows, ops.reshape(b, (shape_b[0] * shape_b[1], shape_b[2])))
    return _scaled_sum(call, c, product, beta, alpha)
