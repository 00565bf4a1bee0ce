"""Convolutions: one operator that libraries run, channels last, and what its gradients are made of.

A filter is (*window, channels / groups, filters), as in TensorFlow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from passkit import ast
from passkit.errors import ShapeError
from passkit.graph.infer import agree, show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.graph.op import REQUIRED, OpPattern, register_op
from passkit.ops.composites import composite
from passkit.ops.helpers import common_dtype, make, parse_extents
from passkit.ops.movement import movement
from passkit.ops.window_padding import absorb, each
from passkit.ops.windowed import WINDOWED, Windows, check_count, scattered, spatial, windows_of
from passkit.values.size import Extent, Shape, numel

if TYPE_CHECKING:
    from passkit.ast import Convolution, Expr
    from passkit.space.reads import Index, Reader

CONVOLVED = {**WINDOWED, "groups": 1}

convolution = register_op(
    "convolution",
    num_inputs=2,
    params=CONVOLVED,
    doc="(batch, *size, channels), (*window, channels / groups, filters) -> (batch, *result, "
    "filters): sums of products under each window",
)


def window_of(node: Node, filters: Shape, count: int) -> tuple[int, ...]:
    """The window of a filter over ``count`` spatial axes.

    Raises: ShapeError where it is not known, or over more or fewer of them.
    """
    if len(filters) != count + 2:
        raise ShapeError(
            f"{node.where} needs a filter of rank {count + 2}, (*window, channels / groups, "
            f"filters), got {show_shape(filters)}"
        )
    if any(not isinstance(n, int) for n in filters):
        raise ShapeError(
            f"{node.where} needs a filter whose shape is known, got {show_shape(filters)}"
        )
    return tuple(int(n) for n in filters[:-2])


def _groups(node: Node, filters: Shape) -> int:
    """The parameter ``groups``. Raises: ShapeError where it does not divide the filters."""
    groups = node.params["groups"]
    if type(groups) is not int or groups < 1 or int(filters[-1]) % groups:
        raise ShapeError(
            f"{node.where} needs groups that divide {filters[-1]} filters, got {groups!r}"
        )
    return groups


def _geometry(node: Node, x: Shape, filters: Shape) -> Windows:
    """Where windows lie. Raises: ShapeError where shapes do not fit."""
    size = spatial(node, x)
    window = window_of(node, filters, len(size))
    groups = _groups(node, filters)
    times = f", {filters[-2]} in each of {groups} groups," if groups > 1 else ""
    agree(node, x[-1], filters[-2] * groups, f"channels of input and filter{times}")
    return windows_of(node, size, window)


def _shape(node: Node, x: Shape, filters: Shape) -> Shape:
    """Shapes: (batch, *size, channels), (*window, channels / groups, filters)."""
    found = _geometry(node, x, filters)
    return (x[0], *found.result, filters[-1])


def _contract(node: Node) -> Convolution:
    x, filters = (known_shape(e) for e in node.inputs)
    return contract_of(x, _geometry(node, x, filters), int(filters[-1]), node.params["groups"])


def contract_of(x: Shape, found: Windows, filters: int, groups: int) -> Convolution:
    """In three spatial axes; those that are missing have length 1. One axis is cut as rows are."""
    front, back = ((1,), (1,)) if len(found.size) == 1 else ((1,) * (3 - len(found.size)), ())
    none = tuple(0 for _ in front), tuple(0 for _ in back)

    return ast.Convolution(
        x[0], (*front, *found.size, *back), int(x[-1]), filters, (*front, *found.window, *back),
        (*front, *found.result, *back), (*front, *found.stride, *back),
        (*none[0], *found.before, *none[1]), (*front, *found.dilation, *back), groups,
    )  # fmt: skip


def _compute(node: Node, x: Any, filters: Any) -> Any:
    """Windows times filter, summed in double and rounded once."""
    found = _geometry(node, x.shape, filters.shape)
    groups, count = node.params["groups"], len(found.size)
    result = tuple(int(n) for n in found.result)
    pads = [(b, int(a)) for b, a in zip(found.before, found.after, strict=True)]
    wide = np.pad(x.astype(np.float64), ((0, 0), *pads, (0, 0)))
    out = np.zeros((x.shape[0], *result, filters.shape[-1]))
    own, each = filters.shape[-2], filters.shape[-1] // groups
    for tap in np.ndindex(*found.window):
        at = [
            slice(k * d, k * d + (o - 1) * s + 1 if o else 0, s)
            for k, d, o, s in zip(tap, found.dilation, result, found.stride, strict=True)
        ]
        seen = wide[(slice(None), *at)]
        for g in range(groups):
            part = filters[tap][:, g * each : (g + 1) * each].astype(np.float64)
            out[..., g * each : (g + 1) * each] += seen[..., g * own : (g + 1) * own] @ part
    assert out.ndim == count + 2
    return out.astype(x.dtype)


def _simplify(node: Node) -> Entry | None:
    """Take over zeros that the input is padded with."""
    filters = known_shape(node.inputs[1])
    return absorb(node, window_of(node, filters, len(filters) - 2))


convolution.set_attr("FInferShape", _shape)
convolution.set_attr("FInferType", common_dtype("f"))
convolution.set_attr("FContract", _contract)
convolution.set_attr("FCompute", _compute)
convolution.set_attr("TOpPattern", OpPattern.CONTRACT)
convolution.set_attr("TOpCost", "expensive")
convolution.set_attr("FSimplify", _simplify)
convolution.set_attr("TLibraryCall", "convolution")


# What gradients are made of: filters turned round, and zeros between elements.


def _turned_shape(node: Node, shape: Shape) -> Shape:
    """Shapes: (*window, channels / groups, filters) -> (*window, filters / groups, channels)."""
    window_of(node, shape, max(len(shape) - 2, 0))
    groups = _groups(node, shape)
    return (*shape[:-2], shape[-1] // groups, shape[-2] * groups)


def _turned_element(node: Node, index: Index, read: Reader) -> Expr:
    shape, groups = known_shape(node.inputs[0]), node.params["groups"]
    taps = [ast.size_of(n - 1) - i for i, n in zip(index, shape[:-2], strict=False)]
    own, each = shape[-2], shape[-1] // groups
    filter_, channel = index[-2:]
    if groups == 1:
        return read(*taps, channel, filter_)
    group = channel // ast.size_of(own)
    return read(*taps, channel % ast.size_of(own), group * ast.size_of(each) + filter_)


filter_turned = movement(
    "filter_turned",
    {"groups": 1},
    "(*window, channels / groups, filters) -> (*window, filters / groups, channels), the window "
    "reversed: the filter of the convolution that goes back",
    OpPattern.INJECTIVE,
)
filter_turned.set_attr("FInferShape", _turned_shape)
filter_turned.set_attr("FElement", _turned_element)
filter_turned.set_attr(
    "FGradient", lambda node, dy: [make("filter_turned", dy, groups=node.params["groups"])]
)


def _dilate_params(node: Node, shape: Shape) -> list[tuple[int, Extent, Extent]]:
    """Factor, padding in front and behind of each axis."""
    factors, padding = node.params["factors"], node.params["padding"]
    fits = all(isinstance(v, tuple) and len(v) == len(shape) for v in (factors, padding))
    fits = fits and all(type(f) is int and f >= 1 for f in factors)
    if not fits or any(not isinstance(p, tuple) or len(p) != 2 for p in padding):
        raise ShapeError(
            f"{node.where} needs a factor and a pair of paddings for each axis of "
            f"{show_shape(shape)}, got {factors} and {padding}"
        )
    return [(f, low, high) for f, (low, high) in zip(factors, padding, strict=True)]


def _dilate_shape(node: Node, shape: Shape) -> Shape:
    found: list[Extent] = []
    for n, (f, low, high) in zip(shape, _dilate_params(node, shape), strict=True):
        length = (n - 1) * f + 1 if n != 0 else 0
        found.append(length + low + high)
    return tuple(found)


def _dilate_element(node: Node, index: Index, read: Reader) -> Expr:
    shape = known_shape(node.inputs[0])
    at: list[Expr] = []
    inside: Expr | None = None
    for i, n, (f, low, high) in zip(index, shape, _dilate_params(node, shape), strict=True):
        place = i - ast.size_of(low) if low != 0 else i
        whole = place // ast.size_of(f) if f != 1 else place
        tests = []
        if low != 0:
            tests.append(place >= ast.size_of(0))
        if f != 1:
            tests.append(ast.equal(whole * ast.size_of(f), place))
        if f != 1 or high != 0:
            tests.append(whole < ast.size_of(n))
        for test in tests:
            inside = test if inside is None else inside & test
        at.append(whole)
    dtype = node.inputs[0].dtype
    assert dtype is not None
    value = read(*at)
    return value if inside is None else ast.where(inside, value, ast.const(0, dtype))


dilate = movement(
    "dilate",
    {"factors": REQUIRED, "padding": REQUIRED},
    "x with its elements factors[k] apart along axis k, and zeros between, in front and behind; "
    "negative padding cuts off",
    OpPattern.INJECTIVE,
)
dilate.set_attr("FInferShape", _dilate_shape)
dilate.set_attr("FElement", _dilate_element)


def _dilate_gradient(node: Node, dy: Entry) -> list[Entry]:
    shape = known_shape(node.inputs[0])
    factors, padding = node.params["factors"], node.params["padding"]
    back = tuple((0 - low, 0 - high) for low, high in padding)
    whole = make("dilate", dy, factors=(1,) * len(shape), padding=back)
    if all(f == 1 for f in factors):
        return [whole]
    begin = (0,) * len(shape)
    return [make("slice", whole, begin=begin, size=shape, step=tuple(factors))]


dilate.set_attr("FGradient", _dilate_gradient)


def passed(node: Node) -> dict[str, Any]:
    """The parameters of a convolution, to be handed on."""
    return {k: node.params[k] for k in CONVOLVED}


WASTE = 1.5
"""How many times as much a convolution that goes back may compute, zeros being most of it."""
MOST = 1 << 24
"""How many elements the products may have that take its place."""


def _input_back(node: Node, filters: Entry, dy: Entry) -> Entry:
    """Source: the convolution of dy, its elements a stride apart, with the filter turned round.

    Where the size is much more than the result, most of that would be zeros: there what each
    element of dy gives to its window is a product of matrices, of which windows are the sum.
    """
    size = parse_extents(node, node.params["size"], "size")
    shape = known_shape(dy)
    count = len(spatial(node, shape))
    if len(size) != count:
        raise ShapeError(
            f"{node.where} needs {count} extents as size, for dy of {show_shape(shape)}, got "
            f"{show_shape(size)}"
        )
    window = window_of(node, known_shape(filters), count)
    found = windows_of(node, size, window)
    check_count(node, found, shape[1:-1])
    whole, part = (n if isinstance(n, int) else 0 for n in (numel(size), numel(shape[1:-1])))
    products = numel((*shape[:-1], *known_shape(filters)[:-1]))
    few = isinstance(products, int) and products <= MOST
    if node.params["groups"] == 1 and few and 0 < WASTE * part < whole:
        return _windows_of_products(node, filters, dy, size)
    padding: list[tuple[Extent, Extent]] = [(0, 0)]
    for k, n in enumerate(size):
        low = found.reach[k] - 1 - found.before[k]
        length = (shape[1 + k] - 1) * found.stride[k] + 1 if shape[1 + k] != 0 else 0
        padding.append((low, n + found.reach[k] - 1 - length - low))
    factors = (1, *found.stride, 1)
    groups = node.params["groups"]
    turned = make("filter_turned", filters, groups=groups)
    ends = [n for pair in padding for n in pair]
    if all(f == 1 for f in factors) and all(isinstance(n, int) and n >= 0 for n in ends):
        given = {"padding": tuple(padding[1:]), "dilations": found.dilation, "groups": groups}
        return make("convolution", dy, turned, **given)  # which needs no copy with zeros around it
    spread = make("dilate", dy, factors=factors, padding=(*padding, (0, 0)))
    return make("convolution", spread, turned, dilations=found.dilation, groups=groups)


def _windows_of_products(
    node: Node, filters: Entry, dy: Entry, size: Sequence[Extent]
) -> Entry:
    """The sum over windows of what each element of dy gives to its own."""
    shape = known_shape(dy)
    *window, channels, count = known_shape(filters)
    left = make("reshape", dy, shape=(numel(shape[:-1]), count))
    right = make("reshape", filters, shape=(numel((*window, channels)), count))
    given = make("matmul", left, right, transpose_b=True)
    given = make("reshape", given, shape=(*shape[:-1], *window, channels))
    params = {k: node.params[k] for k in WINDOWED}
    return scattered(given, size, **params)


def _filter_back(node: Node, x: Entry, dy: Entry) -> Entry:
    """Source: the windows of x, one below the other and transposed, times dy."""
    shape, found = known_shape(x), known_shape(dy)
    window = each(node, "window", len(spatial(node, shape)), least=0)
    if len(found) != len(shape) or any(not isinstance(s[-1], int) for s in (shape, found)):
        raise ShapeError(
            f"{node.where} needs input and dy of one rank, their last axes known, got "
            f"{show_shape(shape)} and {show_shape(found)}"
        )
    filters, groups = int(found[-1]), _groups(node, found)
    rows = numel(found[:-1])
    taps = int(np.prod(window))
    own, part = int(shape[-1]) // groups, filters // groups
    if taps == 0:
        return make("full", shape=(*window, own, filters), fill_value=0, dtype=x.dtype)
    view = make("windows", x, window=window, **{k: node.params[k] for k in WINDOWED})
    if groups == 1:
        left = make("reshape", view, shape=(rows, taps * own))
        right = make("reshape", dy, shape=(rows, filters))
        out = make("matmul", left, right, transpose_a=True)
        return make("reshape", out, shape=(*window, own, filters))
    left = make("reshape", view, shape=(rows, taps, groups, own))
    left = make("transpose", left, axes=(2, 1, 3, 0))
    left = make("reshape", left, shape=(groups, taps * own, rows))
    right = make("transpose", make("reshape", dy, shape=(rows, groups, part)), axes=(1, 0, 2))
    out = make("reshape", make("matmul", left, right), shape=(groups, taps, own, part))
    out = make("transpose", out, axes=(1, 2, 0, 3))
    return make("reshape", out, shape=(*window, own, filters))


composite(
    "convolution_backprop_input",
    ["filter", "dy"],
    _input_back,
    "(*window, channels / groups, filters), (batch, *result, filters) -> (batch, *size, channels): "
    "what goes back to the input of a convolution",
    {"size": REQUIRED, **CONVOLVED},
)
composite(
    "convolution_backprop_filter",
    ["input", "dy"],
    _filter_back,
    "(batch, *size, channels), (batch, *result, filters) -> (*window, channels / groups, filters): "
    "what goes back to the filter of a convolution",
    {"window": REQUIRED, **CONVOLVED},
)


def _gradient(node: Node, dy: Entry) -> list[Entry]:
    x, filters = node.inputs
    given, shape = passed(node), known_shape(x)
    size, (*window, own, _) = shape[1:-1], known_shape(filters)
    if not isinstance(shape[-1], int):
        x = make("reshape", x, shape=(*shape[:-1], own * given["groups"]))
    return [
        make("convolution_backprop_input", filters, dy, size=size, **given),
        make("convolution_backprop_filter", x, dy, window=window, **given),
    ]


convolution.set_attr("FGradient", _gradient)
