"""Products of windows, of which views of windows are one factor: the gradients of filters.

A library that knows what windows are of neither needs nor makes the view, which has every element
as often as windows cover it.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from passkit.errors import ShapeError
from passkit.graph.infer import agree, show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.graph.op import REQUIRED, OpPattern, register_op
from passkit.ops.convolve import contract_of
from passkit.ops.helpers import common_dtype, make
from passkit.ops.window_padding import absorb, each
from passkit.ops.windowed import WINDOWED, Windows, spatial, windows_of
from passkit.values.size import Shape, numel

if TYPE_CHECKING:
    from passkit.ast.folds import Convolution

window_products = register_op(
    "window_products",
    num_inputs=2,
    params={"window": REQUIRED, **WINDOWED},
    doc="(batch, *size, channels), (batch, *result, filters) -> (*window, channels, filters): what "
    "windows cover times what belongs to each, summed over them",
)


def _shape(node: Node, x: Shape, y: Shape) -> Shape:
    """Shapes: (batch, *size, channels), (batch, *result, filters)."""
    found = _geometry(node, x)
    if len(y) != len(x):
        raise ShapeError(
            f"{node.where} needs a second input of rank {len(x)}, got {show_shape(y)}"
        )
    agree(node, x[0], y[0], "batches")
    for k, (n, m) in enumerate(zip(found.result, y[1:-1], strict=True)):
        agree(node, n, m, f"windows of spatial axis {k}")
    return (*found.window, x[-1], y[-1])


def _geometry(node: Node, x: Shape) -> Windows:
    """Where windows lie. Raises: ShapeError where they do not fit."""
    return windows_of(node, spatial(node, x), _window(node))


def _window(node: Node) -> tuple[int, ...]:
    """The parameter ``window``, for each spatial axis."""
    return each(node, "window", len(known_shape(node.inputs[0])) - 2)


def _contract(node: Node) -> Convolution:
    """Where windows lie, as those of the convolution whose filter this has the shape of."""
    x, y = (known_shape(e) for e in node.inputs)
    found = _geometry(node, x)
    return contract_of(x, found, int(y[-1]), 1)


def by_view(node: Node, x: Entry, y: Entry) -> Entry:
    """The same by a view of windows, which is one factor of a product of matrices."""
    shape, window = known_shape(y), _geometry(node, known_shape(x)).window
    rows, channels = numel(shape[:-1]), known_shape(x)[-1]
    view = make("windows", x, **node.params)
    left = make("reshape", view, shape=(rows, prod(window) * channels))
    out = make("matmul", left, make("reshape", y, shape=(rows, shape[-1])), transpose_a=True)
    return make("reshape", out, shape=(*window, channels, shape[-1]))


def _expanded(node: Node, x: Entry, y: Entry) -> Entry | None:
    """By the view, where nothing else computes them."""
    known = all(isinstance(n, int) for n in (*known_shape(x)[-1:], *known_shape(y)[-1:]))
    single = x.dtype is not None and x.dtype.name == "float32"
    return None if known and single else by_view(node, x, y)


def _compute(node: Node, x: Any, y: Any) -> Any:
    """In doubles, rounded once."""
    found = _geometry(node, x.shape)
    pads = [(b, int(a)) for b, a in zip(found.before, found.after, strict=True)]
    wide, rows = np.pad(x.astype(np.float64), ((0, 0), *pads, (0, 0))), y.astype(np.float64)
    out = np.zeros((*found.window, x.shape[-1], y.shape[-1]))
    rows = rows.reshape(prod(y.shape[:-1]), y.shape[-1])
    for tap in np.ndindex(*found.window):
        at = [
            slice(k * d, k * d + (n - 1) * s + 1 if n else 0, s)
            for k, d, n, s in zip(tap, found.dilation, y.shape[1:-1], found.stride, strict=True)
        ]
        out[tap] = wide[(slice(None), *at)].reshape(len(rows), x.shape[-1]).T @ rows
    return out.astype(x.dtype)


def _gradient(node: Node, dw: Entry) -> list[Entry]:
    """What a convolution with the filter dw gives, and what goes back through it."""
    x, y = node.inputs
    given = {k: node.params[k] for k in WINDOWED}
    size = known_shape(x)[1:-1]
    back = make("convolution_backprop_input", dw, y, size=size, **given)
    return [back, make("convolution", x, dw, **given)]


window_products.set_attr("FInferShape", _shape)
window_products.set_attr("FInferType", common_dtype("f"))
window_products.set_attr("FContract", _contract)
window_products.set_attr("FCompute", _compute)
window_products.set_attr("FExpand", _expanded)
window_products.set_attr("FGradient", _gradient)
window_products.set_attr("FSimplify", lambda node: absorb(node, _window(node)))
window_products.set_attr("TOpPattern", OpPattern.OPAQUE)
window_products.set_attr("TOpCost", "expensive")
window_products.set_attr("TLibraryCall", "window_products")
