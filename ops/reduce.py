"""Reductions along ``axis``: None for all axes, an int, or a tuple of ints.

``keepdims`` keeps the reduced axes in the shape with length 1. The result has the input's dtype: a
sum of int32 is int32 and wraps. 16-bit floats are accumulated in float32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from passkit import ast
from passkit.errors import DTypeError
from passkit.graph.infer import demand
from passkit.graph.node import Entry, Node, known_dtype, known_shape
from passkit.graph.op import Op, OpPattern, register_op
from passkit.ops.helpers import add_aliases, as_replacement, common_dtype, make, normalize_axes
from passkit.values.dtype import DType, float32
from passkit.values.size import Shape, numel

if TYPE_CHECKING:
    from passkit.ast import Expr, Reduce

PARAMS = {"axis": None, "keepdims": False}
"""The parameters of all reductions."""


def reduced_shape(node: Node, shape: Shape | None) -> Any:
    """Return the input's shape without the reduced axes, or with ``keepdims``, with 1 for them.

    ``shape`` is the input's, None where its rank is unknown; the parameter ``axis`` of ``node`` is
    None for all axes.

    Returns:
        The shape, or None where the rank of the input is unknown and matters: a reduction over all
        axes is a scalar whatever the rank.

    Raises:
        ShapeError: If ``axis`` is out of range, listed twice, or no int.
    """
    if shape is None:
        scalar = node.params["axis"] is None and not node.params["keepdims"]
        return () if scalar else None
    axes = normalize_axes(node, len(shape), node.params["axis"])
    if node.params["keepdims"]:
        return tuple(1 if k in axes else n for k, n in enumerate(shape))
    return tuple(n for k, n in enumerate(shape) if k not in axes)


def nonempty_shape(node: Node, shape: Shape | None) -> Any:
    """Infer the shape of a reduction without an identity element, such as a maximum.

    ``node`` has the parameters ``axis`` and ``keepdims``. That a symbolic extent is not 0 is
    recorded as a guard.

    Returns: The shape without the reduced axes (of length 1 with ``keepdims``); for an unknown
    ``shape``, None where the rank remains unknown.

    Raises:
        ShapeError: If an axis is out of range, no int or listed twice, or a reduced axis is empty.
    """
    if shape is None:
        return reduced_shape(node, None)
    name = node.op.name if node.op else ""
    for k in normalize_axes(node, len(shape), node.params["axis"]):
        demand(node, shape[k], 1, f"axis {k} must not be empty, as {name} has no identity")
    return reduced_shape(node, shape)


for _rule in (reduced_shape, nonempty_shape):
    _rule.__dict__["partial"] = True  # also for inputs of unknown rank


def accumulator_dtype(dtype: DType) -> DType:
    """Return the dtype in which values of ``dtype`` are accumulated.

    It is float32 for 16-bit floats, else ``dtype`` itself.
    """
    return float32 if dtype.is_float and dtype.nbytes < 4 else dtype


def lowest(dtype: DType) -> Any:
    """Return the smallest value of a real dtype: -inf for floats, False for bools.

    Raises: DTypeError for complex numbers, which have no order.
    """
    return _extreme(dtype, (-np.inf, False), "min")


def highest(dtype: DType) -> Any:
    """Return the largest value of a real dtype: inf for floats, True for bools.

    Raises: DTypeError for complex numbers, which have no order.
    """
    return _extreme(dtype, (np.inf, True), "max")


def _extreme(dtype: DType, values: tuple[float, bool], limit: str) -> Any:
    """Return one of ``values``, for floats and for bools, or the ``limit`` of an integer dtype.

    ``limit`` is "min" or "max". Raises: DTypeError for complex numbers.
    """
    if dtype.kind == "c":
        raise DTypeError(f"{dtype} has no smallest and largest value; pk.ops.real(x) has")
    of_floats, of_bools = values
    if dtype.kind == "b":
        return of_bools
    return of_floats if dtype.is_float else getattr(np.iinfo(dtype.numpy), limit)


def reduction(
    *,
    name: str,
    kinds: str,
    identity: Callable[[DType], Any],
    combine: Callable[[Expr, Expr], Expr],
    doc: str,
    finish: Callable[[Expr, Expr], Expr] | None = None,
    infer_shape: Callable[..., Shape] = reduced_shape,
    gradient: Callable[..., list[Entry]] | None = None,
    aliases: str = "",
) -> Op:
    """Register a reduction with the parameters ``axis`` and ``keepdims``.

    Args:
        name: Name of the operator.
        kinds: The kinds of dtype that the input may have, such as "iuf".
        identity: Returns the identity element of ``combine`` in an accumulator dtype.
        combine: Returns the expression that combines two partial results.
        doc: What an output element is, for help and reference pages.
        finish: Returns the output element from the accumulated value and the number of elements;
            None: the accumulated value itself.
        infer_shape: FInferShape.
        gradient: FGradient.
        aliases: Further names, separated by spaces.

    Returns:
        The registered operator.

    Raises:
        RegistryError: If an operator of that name has other numbers of inputs or outputs, an
            attribute of it was set elsewhere, or an alias names another.
        ArgumentError: If ``name`` or an alias is no identifier.
    """

    @lru_cache(maxsize=256)  # planning asks for the reduction of a node many times
    def build(dtype: DType, axes: tuple[int, ...], keepdims: bool) -> Reduce:
        """Return the loop description of a reduction of one dtype over ``axes``, from 0 on.

        ``keepdims`` says whether these stay with length 1.
        """
        accumulator = accumulator_dtype(dtype)

        def finish_and_cast(total: Expr, count: Expr) -> Expr:
            """Apply ``finish``, if there is one, and cast the accumulated value back to the dtype.

            ``total`` is that value, ``count`` the number of reduced elements.
            """
            return ast.cast(finish(total, count) if finish else total, dtype)

        return ast.Reduce(
            axes=axes,
            keepdims=keepdims,
            identity=ast.const(identity(accumulator), accumulator),
            combine=combine(ast.left(accumulator), ast.right(accumulator)),
            prepare=None if accumulator is dtype else lambda x: ast.cast(x, accumulator),
            finish=None if accumulator is dtype and finish is None else finish_and_cast,
        )

    def reduce(node: Node) -> Reduce:
        """Return the loop description of a node: FReduce.

        Raises: ShapeError if the rank of its input is unknown, or the parameter ``axis`` out of
        range, no int or listed twice; DTypeError if the dtype of its input is unknown.
        """
        dtype = known_dtype(node.inputs[0])
        axes = normalize_axes(node, len(known_shape(node.inputs[0])), node.params["axis"])
        return build(dtype, axes, node.params["keepdims"])

    op = register_op(name, num_inputs=1, params=PARAMS, doc=doc)
    op.set_attr("FReduce", reduce)
    op.set_attr("FInferShape", infer_shape)
    op.set_attr("FInferType", common_dtype(kinds))
    op.set_attr("FSimplify", _simplify_no_axes)
    op.set_attr("TOpPattern", OpPattern.REDUCE)
    op.set_attr("TOpCost", "expensive")
    if gradient is not None:
        op.set_attr("FGradient", gradient)
    add_aliases(op, aliases)
    return op


def _simplify_no_axes(node: Node) -> Entry | None:
    """Return the input of a reduction over no axes (``axis`` is ()), else None.

    None also if the input has not the shape and dtype of the output. ``node`` has the parameter
    ``axis``.
    """
    return as_replacement(node, node.inputs[0]) if node.params["axis"] == () else None


# Gradients.


def broadcast_back(node: Node, reduced: Entry) -> Entry:
    """Broadcast ``reduced``, of the shape of the node's output, to the shape of its input.

    ``node`` is a reduction.

    Raises: ShapeError if the rank of its input is unknown, or ``reduced`` has another shape.
    """
    shape = known_shape(node.inputs[0])
    axes = normalize_axes(node, len(shape), node.params["axis"])
    aligned = tuple(1 if k in axes else n for k, n in enumerate(shape))
    if not node.params["keepdims"] and axes:
        reduced = make("reshape", reduced, shape=aligned)
    return make("broadcast_to", reduced, shape=shape)


def _sum_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradient of the input: dy, the output's, broadcast to the input's shape.

    ``node`` is the forward node, with the parameters ``axis`` and ``keepdims``; ``dy`` is the
    gradient of its output.

    Raises: ShapeError if a rank is unknown, or a parameter is invalid.
    """
    return [broadcast_back(node, dy)]


def _mean_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradient of the input: dy divided by the number of reduced elements.

    It is broadcast to the input's shape. ``node`` is the forward node, with the parameters ``axis``
    and ``keepdims``; ``dy`` is the gradient of its output.

    Raises: ShapeError if a rank is unknown, or a parameter is invalid.
    """
    shape = known_shape(node.inputs[0])
    count = numel(shape[k] for k in normalize_axes(node, len(shape), node.params["axis"]))
    return [broadcast_back(node, make("div_by_size", dy, size=count))]


def _extremum_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradient of the input: dy, shared equally by the elements that are the extremum.

    Others get 0, as in TensorFlow. ``node`` is the forward node, with the parameters ``axis`` and
    ``keepdims``; ``dy`` is the gradient of its output.

    Raises: ShapeError if a rank is unknown, or a parameter is invalid; DTypeError if the dtype of
    the input is unknown.
    """
    x, params = node.inputs[0], {k: node.params[k] for k in PARAMS}
    is_extremum = make("equal", x, broadcast_back(node, node.entries[0]))
    count = make("reduce_sum", make("cast", is_extremum, dtype=known_dtype(x).name), **params)
    return [make("where", is_extremum, broadcast_back(node, dy / count), 0.0)]


def _prod_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradient of the input: for each element dy times the product of all others.

    ``node`` is the forward node, with the parameters ``axis`` and ``keepdims``; ``dy`` is the
    gradient of its output.

    Raises: ShapeError if a rank is unknown, or a parameter is invalid; DTypeError for integers.
    """
    x = node.inputs[0]
    return [broadcast_back(node, dy) * make("prod_others", x, axis=node.params["axis"])]


# The operators.

reduction(
    name="reduce_sum",
    kinds="iuf",
    identity=lambda dtype: 0,
    combine=lambda a, b: a + b,
    gradient=_sum_gradient,
    doc="the sum over axis; 0 of no elements",
)
reduction(
    name="reduce_prod",
    kinds="iuf",
    identity=lambda dtype: 1,
    combine=lambda a, b: a * b,
    gradient=_prod_gradient,
    doc="the product over axis; 1 of no elements",
)
reduction(
    name="reduce_mean",
    kinds="f",
    identity=lambda dtype: 0,
    combine=lambda a, b: a + b,
    finish=lambda total, count: total / ast.cast(count, total.dtype),
    gradient=_mean_gradient,
    doc="the mean over axis; NaN of no elements",
)
reduction(
    name="reduce_max",
    kinds="iuf",
    identity=lowest,
    combine=lambda a, b: ast.maximum(a, b),
    infer_shape=nonempty_shape,
    gradient=_extremum_gradient,
    doc="the largest element over axis; NaN if any is NaN. Of zeros of both signs it may be either",
)
reduction(
    name="reduce_min",
    kinds="iuf",
    identity=highest,
    combine=lambda a, b: ast.minimum(a, b),
    infer_shape=nonempty_shape,
    gradient=_extremum_gradient,
    doc="the smallest element over axis; NaN if any is NaN. Of zeros of both signs it may be "
    "either",
)
reduction(
    name="reduce_any",
    kinds="b",
    identity=lambda dtype: False,
    combine=lambda a, b: a | b,
    doc="whether any element over axis is true",
)
reduction(
    name="reduce_all",
    kinds="b",
    identity=lambda dtype: True,
    combine=lambda a, b: a & b,
    doc="whether all elements over axis are true",
)
