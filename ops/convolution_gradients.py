"""Gradients of convolutions: by the image and by the filter, and the operators they consist of.

``window_products``, the gradient by the filter, is a product of which one factor is a view of
windows. A library for it reads the image itself: the view would hold each element as often as
windows cover it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from passkit import ast
from passkit.errors import ShapeError
from passkit.graph.infer import agree, show_shape
from passkit.graph.node import Entry, Node, known_dtype, known_shape
from passkit.graph.op import REQUIRED, OpPattern, register_op
from passkit.ops.composites import composite
from passkit.ops.convolutions import (
    CONVOLUTION_PARAMS,
    convolution_contract,
    filter_window,
    group_count,
    window_slices,
)
from passkit.ops.helpers import common_dtype, make, parse_extents
from passkit.ops.movement import register_movement
from passkit.ops.window_geometry import (
    WINDOW_PARAMS,
    WindowGeometry,
    absorb_padding,
    check_window_count,
    pad_image,
    per_axis,
    spatial_sizes,
    window_geometry,
)
from passkit.ops.window_views import sum_windows_back
from passkit.values.size import Extent, Shape, numel

if TYPE_CHECKING:
    from passkit.analysis.accesses import Index, Reader
    from passkit.ast import Convolution, Expr


# filter_turned: the filter of the convolution that computes the gradient by the image.


def _filter_turned_shape(node: Node, shape: Shape) -> Shape:
    """Infer (*window, filters / groups, channels) from (*window, channels / groups, filters).

    This is a filter with reversed windows and its channels exchanged, by group. ``shape`` is that
    of the input, ``groups`` a parameter of ``node``.

    Raises: ShapeError if the rank is below 2, an extent is symbolic, or ``groups`` is no int >= 1
    that divides the filters; a bool is none.
    """
    filter_window(node, shape, max(len(shape) - 2, 0))
    groups = group_count(node, shape)
    return (*shape[:-2], shape[-1] // groups, shape[-2] * groups)


def _filter_turned_element(node: Node, index: Index, read: Reader) -> Expr:
    """Return the filter's element at the reversed position, with channel and filter exchanged.

    Args:
        node: The node, with the parameter ``groups``.
        index: An expression for each axis of the output.
        read: Reads the filter at an index.

    Raises: ShapeError if a rank is unknown.
    """
    shape, groups = known_shape(node.inputs[0]), node.params["groups"]
    window_index = [ast.size_of(n - 1) - i for i, n in zip(index, shape[:-2], strict=False)]
    group_channels, group_filters = shape[-2], shape[-1] // groups
    filter_, channel = index[-2:]
    if groups == 1:
        return read(*window_index, channel, filter_)
    group = channel // ast.size_of(group_channels)
    return read(
        *window_index,
        channel % ast.size_of(group_channels),
        group * ast.size_of(group_filters) + filter_,
    )


filter_turned = register_movement(
    "filter_turned",
    params={"groups": 1},
    doc="a filter with reversed window, and channels and filters of each group exchanged: "
    "(*window, channels / groups, filters) -> (*window, filters / groups, channels)",
    pattern=OpPattern.INJECTIVE,
)
filter_turned.set_attr("FInferShape", _filter_turned_shape)
filter_turned.set_attr("FElement", _filter_turned_element)
filter_turned.set_attr(
    "FGradient", lambda node, dy: [make("filter_turned", dy, groups=node.params["groups"])]
)


# dilate: zeros between the elements.


def _dilate_params(node: Node, shape: Shape) -> list[tuple[int, Extent, Extent]]:
    """Return (factor, padding before, padding after) for each axis of ``shape``, the input's.

    Raises:
        ShapeError: If the parameters ``factors`` and ``padding`` of ``node`` are not tuples of an
            int >= 1 and a pair of ints, which may be negative, or sizes for each axis.
    """
    factors, padding = node.params["factors"], node.params["padding"]
    fits = all(isinstance(v, tuple) and len(v) == len(shape) for v in (factors, padding))
    fits = fits and all(type(f) is int and f >= 1 for f in factors)
    if not fits or any(not isinstance(p, tuple) or len(p) != 2 for p in padding):
        raise ShapeError(
            f"{node.where} needs a factor and a pair of paddings for each axis of "
            f"{show_shape(shape)}, got {factors} and {padding}"
        )
    pairs = [parse_extents(node, p, "padding") for p in padding]
    return [(f, low, high) for f, (low, high) in zip(factors, pairs, strict=True)]


def _dilate_shape(node: Node, shape: Shape) -> Shape:
    """Infer the shape; an axis of length n > 0 becomes (n - 1) * factor + 1 plus padding.

    An axis that is known to be empty gets only its padding. ``shape`` is that of the input;
    ``node`` has the parameters ``factors`` and ``padding``.

    Raises: ShapeError if there are not a factor >= 1 and a pair of paddings for each axis of
    ``shape``, or negative padding cuts off more than there is.
    """
    extents: list[Extent] = []
    for n, (f, low, high) in zip(shape, _dilate_params(node, shape), strict=True):
        length = (n - 1) * f + 1 if n != 0 else 0
        extents.append(length + low + high)
    if any(isinstance(n, int) and n < 0 for n in extents):
        raise ShapeError(
            f"{node.where} cuts more than there is off {show_shape(shape)}: its result would have "
            f"the shape {show_shape(tuple(extents))}"
        )
    return tuple(extents)


def _dilate_element(node: Node, index: Index, read: Reader) -> Expr:
    """Return the input's element where the index is that of one, else 0.

    Element k of an axis is at index k * factor + padding in front; between them and in the padding
    there is 0.

    Args:
        node: The node, with the parameters ``factors`` and ``padding``, of known dtype.
        index: An expression for each axis of the output.
        read: Reads the input at an index; valid only where the output is not 0.

    Raises: ShapeError if a rank is unknown, or a parameter is invalid.
    """
    shape = known_shape(node.inputs[0])
    positions: list[Expr] = []
    is_element: Expr | None = None
    for i, n, (f, low, high) in zip(index, shape, _dilate_params(node, shape), strict=True):
        shifted = i - ast.size_of(low) if low != 0 else i
        position = shifted // ast.size_of(f) if f != 1 else shifted
        tests = []
        if low != 0:
            tests.append(shifted >= ast.size_of(0))
        if f != 1:
            tests.append(ast.equal(position * ast.size_of(f), shifted))
        if f != 1 or high != 0:
            tests.append(position < ast.size_of(n))
        for test in tests:
            is_element = test if is_element is None else is_element & test
        positions.append(position)
    dtype = node.inputs[0].dtype
    assert dtype is not None
    value = read(*positions)
    return value if is_element is None else ast.where(is_element, value, ast.const(0, dtype))


def _dilate_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradient of x: dy without the padding, then every factor-th element of it.

    ``node`` is the forward node, with the parameters ``factors`` and ``padding``; ``dy`` is the
    gradient of its output.

    Raises: ShapeError if a rank is unknown.
    """
    shape = known_shape(node.inputs[0])
    factors, padding = node.params["factors"], node.params["padding"]
    cut = tuple((0 - low, 0 - high) for low, high in padding)
    unpadded = make("dilate", dy, factors=(1,) * len(shape), padding=cut)
    if all(f == 1 for f in factors):
        return [unpadded]
    begin = (0,) * len(shape)
    return [make("slice", unpadded, begin=begin, size=shape, step=tuple(factors))]


dilate = register_movement(
    "dilate",
    params={"factors": REQUIRED, "padding": REQUIRED},
    doc="x with its elements factors[k] apart along axis k, zeros between them, and padding of "
    "zeros around; negative padding cuts off",
    pattern=OpPattern.INJECTIVE,
)
dilate.set_attr("FInferShape", _dilate_shape)
dilate.set_attr("FElement", _dilate_element)
dilate.set_attr("FGradient", _dilate_gradient)


# convolution_backprop_input: the gradient by the image.

MAX_WASTE = 1.5
"""If the image has more than so many times as many elements as the result, the convolution that
computes the gradient would multiply zeros mostly, and a matrix product is used instead."""

MAX_PRODUCTS = 1 << 24
"""The most elements of that matrix product, which needs memory."""


def _expand_backprop_input(node: Node, filters: Entry, dy: Entry) -> Entry:
    """Expand to a convolution of dy, its elements a stride apart, with the reversed filter.

    Where most elements would be zeros between those of dy, expand to a product of dy and the filter
    instead, whose windows are summed at their positions. ``node`` has the parameter ``size``, the
    spatial extents of the image, and those of a convolution.

    Raises:
        ShapeError: If ``size`` does not have the rank of dy or its number of windows, or has a
            negative extent, the filter has another rank or a symbolic extent, filter and dy do not
            fit, or ``groups`` or a parameter of the windows is invalid.
    """
    size = parse_extents(node, node.params["size"], "size")
    shape = known_shape(dy)
    count = len(spatial_sizes(node, shape))
    if len(size) != count:
        raise ShapeError(
            f"{node.where} needs {count} extents as size, for dy of {show_shape(shape)}, got "
            f"{show_shape(size)}"
        )
    if any(isinstance(n, int) and n < 0 for n in size):
        raise ShapeError(f"{node.where} needs extents >= 0 as size, got {show_shape(size)}")
    window = filter_window(node, known_shape(filters), count)
    geometry = window_geometry(node, size, window)
    check_window_count(node, geometry, shape[1:-1])
    if _prefers_products(node, filters, dy, size):
        return _backprop_by_products(node, filters, dy, size)
    return _backprop_by_convolution(node, filters, dy, geometry)


def _prefers_products(node: Node, filters: Entry, dy: Entry, size: Sequence[Extent]) -> bool:
    """Return whether a matrix product computes the gradient with less work and little memory.

    It does if the image has over `MAX_WASTE` times as many points as the result, the product at
    most `MAX_PRODUCTS` elements, and there is one group. False where these sizes are symbolic.

    Args:
        node: The gradient by the image.
        filters: The filter.
        dy: The gradient of the result.
        size: The spatial extents of the image.

    Raises: ShapeError if a rank is unknown.
    """
    shape = known_shape(dy)
    image, result = (n if isinstance(n, int) else 0 for n in (numel(size), numel(shape[1:-1])))
    products = numel((*shape[:-1], *known_shape(filters)[:-1]))
    fits_memory = isinstance(products, int) and products <= MAX_PRODUCTS
    return node.params["groups"] == 1 and fits_memory and 0 < MAX_WASTE * result < image


def _backprop_by_convolution(
    node: Node, filters: Entry, dy: Entry, geometry: WindowGeometry
) -> Entry:
    """Return the gradient by the image as a convolution of dy.

    dy is dilated by the strides and padded, and the window of the filter reversed.

    Args:
        node: The gradient by the image, with the parameter ``groups``.
        filters: The filter, (*window, channels / groups, filters).
        dy: The gradient of the result, (batch, *result, filters).
        geometry: The positions of the windows in the image.

    Raises: ShapeError if a rank is unknown, filter and dy do not fit, or ``groups`` is invalid.
    """
    shape = known_shape(dy)
    padding: list[tuple[Extent, Extent]] = [(0, 0)]
    for k, n in enumerate(geometry.size):
        reach = geometry.dilated_window[k]
        low = reach - 1 - geometry.before[k]
        length = (shape[1 + k] - 1) * geometry.stride[k] + 1 if shape[1 + k] != 0 else 0
        padding.append((low, n + reach - 1 - length - low))
    factors = (1, *geometry.stride, 1)
    groups = node.params["groups"]
    reversed_filter = make("filter_turned", filters, groups=groups)
    params = {"dilations": geometry.dilation, "groups": groups}
    ends = [n for pair in padding for n in pair]
    if all(f == 1 for f in factors) and all(isinstance(n, int) and n >= 0 for n in ends):
        # Padding by the convolution itself needs no copy with zeros around dy.
        return make("convolution", dy, reversed_filter, padding=tuple(padding[1:]), **params)
    dilated = make("dilate", dy, factors=factors, padding=(*padding, (0, 0)))
    return make("convolution", dilated, reversed_filter, **params)


def _backprop_by_products(node: Node, filters: Entry, dy: Entry, size: Sequence[Extent]) -> Entry:
    """Return the gradient by the image as products of dy and the filter, summed over windows.

    Args:
        node: The gradient by the image, with the parameters of the windows.
        filters: The filter, (*window, channels, filters); there is one group.
        dy: The gradient of the result, (batch, *result, filters).
        size: The spatial extents of the image.

    Raises: ShapeError if a rank is unknown, filter and dy do not fit, or a parameter is invalid.
    """
    shape = known_shape(dy)
    *window, channels, count = known_shape(filters)
    left = make("reshape", dy, shape=(numel(shape[:-1]), count))
    right = make("reshape", filters, shape=(numel((*window, channels)), count))
    products = make("matmul", left, right, transpose_b=True)
    windows = make("reshape", products, shape=(*shape[:-1], *window, channels))
    params = {k: node.params[k] for k in WINDOW_PARAMS}
    return sum_windows_back(windows, size, **params)


composite(
    "convolution_backprop_input",
    inputs=["filter", "dy"],
    expand=_expand_backprop_input,
    doc="the gradient of a convolution by its input: (*window, channels / groups, filters), "
    "(batch, *result, filters) -> (batch, *size, channels)",
    params={"size": REQUIRED, **CONVOLUTION_PARAMS},
)


# convolution_backprop_filter: the gradient by the filter.


def _expand_backprop_filter(node: Node, x: Entry, dy: Entry) -> Entry:
    """Expand to a matrix product: windows of x, one a row, transposed, times dy.

    `passkit.ops.linalg` rewrites that to ``window_products`` where a library has it. With groups
    there is a product for each. An empty window gives zeros in an empty array.

    Raises:
        ShapeError: If ranks differ, the number of channels or filters is symbolic, the windows do
            not fit, a parameter of ``node`` is invalid, or a rank is unknown.
        DTypeError: If the window is empty and the dtype of ``x`` unknown.
    """
    shape, dy_shape = known_shape(x), known_shape(dy)
    window = per_axis(node, "window", len(spatial_sizes(node, shape)), least=0)
    if len(dy_shape) != len(shape) or any(not isinstance(s[-1], int) for s in (shape, dy_shape)):
        raise ShapeError(
            f"{node.where} needs input and dy of one rank, their last axes known, got "
            f"{show_shape(shape)} and {show_shape(dy_shape)}"
        )
    filters, groups = int(dy_shape[-1]), group_count(node, dy_shape)
    rows = numel(dy_shape[:-1])
    taps = int(np.prod(window))
    group_channels, group_filters = int(shape[-1]) // groups, filters // groups
    filter_shape = (*window, group_channels, filters)
    if taps == 0:
        return make("full", shape=filter_shape, fill_value=0, dtype=known_dtype(x).name)
    params = {k: node.params[k] for k in WINDOW_PARAMS}
    view = make("windows", x, window=window, **params)
    if groups == 1:
        left = make("reshape", view, shape=(rows, taps * group_channels))
        right = make("reshape", dy, shape=(rows, filters))
        out = make("matmul", left, right, transpose_a=True)
        return make("reshape", out, shape=filter_shape)
    left = make("reshape", view, shape=(rows, taps, groups, group_channels))
    left = make("transpose", left, axes=(2, 1, 3, 0))
    left = make("reshape", left, shape=(groups, taps * group_channels, rows))
    right = make("reshape", dy, shape=(rows, groups, group_filters))
    right = make("transpose", right, axes=(1, 0, 2))
    out = make("matmul", left, right)
    out = make("reshape", out, shape=(groups, taps, group_channels, group_filters))
    out = make("transpose", out, axes=(1, 2, 0, 3))
    return make("reshape", out, shape=filter_shape)


composite(
    "convolution_backprop_filter",
    inputs=["input", "dy"],
    expand=_expand_backprop_filter,
    doc="the gradient of a convolution by its filter: (batch, *size, channels), (batch, *result, "
    "filters) -> (*window, channels / groups, filters)",
    params={"window": REQUIRED, **CONVOLUTION_PARAMS},
)


# window_products: the gradient by the filter, without groups, as one operator.


window_products = register_op(
    "window_products",
    num_inputs=2,
    params={"window": REQUIRED, **WINDOW_PARAMS},
    doc="the sums over all windows of the elements under a window times the result at the window: "
    "(batch, *size, channels), (batch, *result, filters) -> (*window, channels, filters)",
)


def _window_param(node: Node) -> tuple[int, ...]:
    """Return the parameter ``window`` of ``node``, an int for each spatial axis.

    Raises: ShapeError if it is neither an int >= 1 nor one for each axis, or the rank of the first
    input is unknown.
    """
    return per_axis(node, "window", len(known_shape(node.inputs[0])) - 2)


def _window_products_geometry(node: Node, x: Shape) -> WindowGeometry:
    """Return the positions of windows in an image of shape ``x``.

    ``node`` has the parameters ``dilations``, ``padding``, ``strides`` and ``window``.

    Raises: ShapeError if they do not fit, or a parameter of the windows is invalid.
    """
    return window_geometry(node, spatial_sizes(node, x), _window_param(node))


def _window_products_shape(node: Node, x: Shape, y: Shape) -> Shape:
    """Infer (*window, channels, filters) from (batch, *size, channels), (batch, *result, filters).

    ``x`` and ``y`` are the shapes of the image and of the second input. ``node`` has the parameters
    ``dilations``, ``padding``, ``strides`` and ``window``.

    Raises:
        ShapeError: If ranks, batches or numbers of windows differ, or the windows do not fit.
    """
    geometry = _window_products_geometry(node, x)
    if len(y) != len(x):
        raise ShapeError(f"{node.where} needs a second input of rank {len(x)}, got {show_shape(y)}")
    agree(node, x[0], y[0], "batches")
    for k, (n, m) in enumerate(zip(geometry.result, y[1:-1], strict=True)):
        agree(node, n, m, f"windows of spatial axis {k}")
    return (*geometry.window, x[-1], y[-1])


def _window_products_contract(node: Node) -> Convolution:
    """Describe ``window_products`` to the planner as the convolution whose filter is its result.

    ``node`` has the parameters ``dilations``, ``padding``, ``strides`` and ``window``.

    Raises: ShapeError if a rank is unknown, a number of channels or filters is symbolic, or the
    windows do not fit.
    """
    x, y = (known_shape(e) for e in node.inputs)
    geometry = _window_products_geometry(node, x)
    return convolution_contract(x, geometry, int(y[-1]), 1)


def window_products_as_matmul(node: Node, x: Entry, y: Entry) -> Entry:
    """Return ``window_products`` as a matrix product of a view of windows and ``y``.

    Args:
        node: A node of ``window_products``, for its parameters.
        x: The image, (batch, *size, channels).
        y: (batch, *result, filters).

    Returns:
        (*window, channels, filters).

    Raises:
        ShapeError: If the windows do not fit, or a rank is unknown.
    """
    shape, window = known_shape(y), _window_products_geometry(node, known_shape(x)).window
    rows, channels = numel(shape[:-1]), known_shape(x)[-1]
    view = make("windows", x, **node.params)
    left = make("reshape", view, shape=(rows, prod(window) * channels))
    out = make("matmul", left, make("reshape", y, shape=(rows, shape[-1])), transpose_a=True)
    return make("reshape", out, shape=(*window, channels, shape[-1]))


def _expand_window_products(node: Node, x: Entry, y: Entry) -> Entry | None:
    """Expand to a matrix product, or return None where the library function applies.

    The library takes float32 with known numbers of channels and filters. ``x`` is the image, ``y``
    (batch, *result, filters). ``node`` has the parameters ``dilations``, ``padding``, ``strides``
    and ``window``.

    Raises: ShapeError if the windows do not fit, or a rank is unknown.
    """
    channels_known = all(isinstance(known_shape(e)[-1], int) for e in (x, y))
    is_float32 = x.dtype is not None and x.dtype.name == "float32"
    return None if channels_known and is_float32 else window_products_as_matmul(node, x, y)


def _compute_window_products(node: Node, x: Any, y: Any) -> Any:
    """Compute window_products with NumPy in float64, rounded once to the dtype of ``x``.

    ``x`` is the image, ``y`` (batch, *result, filters). ``node`` has the parameters ``dilations``,
    ``padding``, ``strides`` and ``window``. The result is a new array.

    Raises: ShapeError if the windows do not fit, MemoryError if the padded image is too large.
    """
    geometry = _window_products_geometry(node, x.shape)
    padded = pad_image(x, geometry)
    rows = y.astype(np.float64).reshape(prod(y.shape[:-1]), y.shape[-1])
    out = np.zeros((*geometry.window, x.shape[-1], y.shape[-1]))
    for tap in np.ndindex(*geometry.window):
        covered = padded[(slice(None), *window_slices(geometry, tap, y.shape[1:-1]))]
        out[tap] = covered.reshape(len(rows), x.shape[-1]).T @ rows
    return out.astype(x.dtype)


def _window_products_gradient(node: Node, dw: Entry) -> list[Entry]:
    """Return the gradients of window_products by the image x and by y, of its output's, ``dw``.

    By y it is the convolution of x with dw, by x the gradient of a convolution by its image.
    ``node`` has the parameters that are passed on.

    Raises: ShapeError if a rank is unknown.
    """
    x, y = node.inputs
    params = {k: node.params[k] for k in WINDOW_PARAMS}
    size = known_shape(x)[1:-1]
    dx = make("convolution_backprop_input", dw, y, size=size, **params)
    return [dx, make("convolution", x, dw, **params)]


window_products.set_attr("FInferShape", _window_products_shape)
window_products.set_attr("FInferType", common_dtype("f"))
window_products.set_attr("FContract", _window_products_contract)
window_products.set_attr("FCompute", _compute_window_products)
window_products.set_attr("FExpand", _expand_window_products)
window_products.set_attr("FGradient", _window_products_gradient)
window_products.set_attr("FSimplify", lambda node: absorb_padding(node, _window_param(node)))
window_products.set_attr("TOpPattern", OpPattern.OPAQUE)
window_products.set_attr("TOpCost", "expensive")
window_products.set_attr("TLibraryCall", "window_products")
