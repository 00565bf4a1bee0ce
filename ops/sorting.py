"""Sorting operators, which NumPy's routines compute: sort, argsort, top_k, unique.

Sorts are stable, with NaN as the largest number. Where the shape of a result depends on the data,
as for `unique`, a parameter ``size`` says it: the result is cut to it, or filled up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from passkit.errors import ShapeError
from passkit.graph.infer import demand, same_dtype_rule, show_shape
from passkit.graph.node import Entry, Node, known_dtype, known_shape
from passkit.graph.op import REQUIRED, Op, OpPattern, register_op
from passkit.ops.helpers import count_param, make, normalize_axis
from passkit.ops.indices import check_indices, zeros_of
from passkit.values.dtype import DType, dtype_of, int32, int64
from passkit.values.size import Shape

Array = Any


# Shared by all operators that NumPy computes.


def register_numpy_op(
    name: str,
    inputs: list[str],
    compute: Callable[..., Any],
    doc: str,
    params: dict[str, Any] | None = None,
    results: int = 1,
) -> Op:
    """Register an operator that NumPy's routines compute on every target.

    Args:
        name: The operator's name.
        inputs: Names of the inputs.
        compute: The operator's FCompute, ``compute(node, *arrays)``.
        doc: The operator's documentation.
        params: The parameters and their defaults.
        results: Number of results.

    Returns:
        The operator, which still needs FInferShape and FInferType.

    Raises:
        RegistryError: If an operator of that name has other numbers of inputs or outputs, or an
            attribute of it was set elsewhere.
        ArgumentError: If ``name`` is no identifier.
    """
    op = register_op(name, len(inputs), results, params, doc)
    op.set_attr("FListInputNames", lambda params: inputs)
    op.set_attr("FCompute", compute)
    op.set_attr("TOpPattern", OpPattern.OPAQUE)
    op.set_attr("THostLibrary", "numpy")
    return op


def result_dtype(result: DType) -> Callable[..., DType]:
    """Return the FInferType of an operator with a fixed result dtype, whose inputs share a dtype.

    Args:
        result: The dtype of the result.
    """

    def infer_type(node: Node, *dtypes: DType) -> DType:
        """Infer the fixed dtype ``result``; ``node`` is named in errors.

        Raises: DTypeError if the inputs' ``dtypes`` differ, GraphError without inputs.
        """
        same_dtype_rule(node, *dtypes)
        return result

    return infer_type


def no_gradient(node: Node, *dy: Entry | None) -> list[Entry | None]:
    """Return None for each input, as integers and bools have no gradient."""
    return [None] * len(node.inputs)


# sort and argsort.


def _axis(node: Node, rank: int) -> int:
    """Return the parameter ``axis`` of ``node`` as an int from 0 to below ``rank``.

    Raises: ShapeError if it is no int or out of range.
    """
    return normalize_axis(node, rank, node.params["axis"])


def _sorted_shape(node: Node, shape: Shape) -> Shape:
    """Infer the shape, ``shape`` of the input.

    Raises: ShapeError if the parameter ``axis`` of ``node`` is no int or out of range.
    """
    _axis(node, len(shape))
    return shape


def _argsort(x: Array, axis: int, descending: bool) -> Array:
    """Return the positions of the sorted elements of the array ``x`` along ``axis``, NaN last.

    Of equal elements the first comes first, also with ``descending``, where NaN comes first.
    """
    if dtype_of(x.dtype).is_float and x.dtype.itemsize < 4:
        x = x.astype(np.float32)  # NumPy does not sort NaN of bfloat16 to the end
    if not descending:
        return np.argsort(x, axis, kind="stable")
    backwards = np.argsort(np.flip(x, axis), axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(backwards, axis)


def _compute_argsort(node: Node, x: Array) -> Array:
    """Compute argsort of an array along the parameter ``axis`` of ``node`` with NumPy, as int64.

    The order is decreasing with ``descending``.

    Raises: ShapeError if a parameter is invalid.
    """
    return _argsort(x, _axis(node, x.ndim), node.params["descending"]).astype(np.int64)


def _compute_sort(node: Node, x: Array) -> Array:
    """Compute sort of an array along ``axis`` with NumPy; ``descending`` reverses the order.

    ``node`` has the parameters ``axis`` and ``descending``.

    Raises: ShapeError if a parameter is invalid.
    """
    axis = _axis(node, x.ndim)
    return np.take_along_axis(x, _argsort(x, axis, node.params["descending"]), axis)


def _sort_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradient of the input: dy in its order, by the inverse permutation.

    ``node`` is the forward node, with the parameters ``axis`` and ``descending``; ``dy`` is the
    gradient of its output.
    """
    axis = node.params["axis"]
    order = make("argsort", node.inputs[0], axis=axis, descending=node.params["descending"])
    inverse = make("argsort", order, axis=axis)
    return [make("take_along_axis", dy, inverse, axis=axis)]


sort = register_numpy_op(
    "sort",
    inputs=["x"],
    compute=_compute_sort,
    doc="the elements along axis in increasing order, or decreasing with descending; NaN counts "
    "as the largest, and equal elements keep their order",
    params={"axis": -1, "descending": False},
)
sort.set_attr("FInferShape", _sorted_shape)
sort.set_attr("FInferType", same_dtype_rule)
sort.set_attr("FGradient", _sort_gradient)

argsort = register_numpy_op(
    "argsort",
    inputs=["x"],
    compute=_compute_argsort,
    doc="the positions of the elements along axis in increasing order, or decreasing with "
    "descending; equal elements keep their order",
    params={"axis": -1, "descending": False},
)
argsort.set_attr("FInferShape", _sorted_shape)
argsort.set_attr("FInferType", result_dtype(int64))
argsort.set_attr("FGradient", no_gradient)


# top_k.


def _top_k_shape(node: Node, shape: Shape) -> tuple[Shape, Shape]:
    """Infer the shapes of values and positions: ``k`` elements along ``axis`` of ``shape``.

    ``node`` has the parameters ``axis`` and ``k``. With symbolic extents a guard is recorded that
    there are k.

    Raises: ShapeError if there are less than k, k is no int >= 0 or Size, or the axis no int or out
    of range.
    """
    k = count_param(node, "k")
    axis = _axis(node, len(shape))
    demand(node, shape[axis], k, f"axis {axis} must have k elements")
    out = (*shape[:axis], k, *shape[axis + 1 :])
    return out, out


def _compute_top_k(node: Node, x: Array) -> tuple[Array, Array]:
    """Compute top_k of an array with NumPy: the largest values, and their positions as int32.

    They are along the parameter ``axis`` of ``node``, in decreasing order.

    Raises: ShapeError if a parameter is invalid.
    """
    axis = _axis(node, x.ndim)
    positions = np.take(_argsort(x, axis, True), np.arange(node.params["k"]), axis)
    return np.take_along_axis(x, positions, axis), positions.astype(np.int32)


def _top_k_gradient(node: Node, dy: Entry | None, *_: Any) -> list[Entry | None]:
    """Return the gradient of the input: dy, that of the values, added to zeros at their positions.

    It is None if ``dy`` is; the gradient of the positions is not used. ``node`` is the forward
    node, with the parameter ``axis``.
    """
    if dy is None:
        return [None]
    x, axis = node.inputs[0], node.params["axis"]
    return [make("add_along_axis", zeros_of(x), node.entries[1], dy, axis=axis)]


top_k = register_numpy_op(
    "top_k",
    inputs=["x"],
    compute=_compute_top_k,
    doc="the k largest elements along axis in decreasing order, and their positions as int32; of "
    "equal elements the first",
    params={"k": 1, "axis": -1},
    results=2,
)
top_k.set_attr("FInferShape", _top_k_shape)
top_k.set_attr("FInferType", lambda node, x: (x, int32))
top_k.set_attr("FGradient", _top_k_gradient)


# unique: the first ``size`` distinct elements.


def _fit_to_size(node: Node, rows: Array, fill: Any) -> Array:
    """Return the first ``size`` rows of an array, followed by rows of ``fill`` if there are fewer.

    ``size`` is a parameter of the node, since the number of results depends on the data.
    """
    size = int(node.params["size"])
    out = np.full((size, *rows.shape[1:]), fill, rows.dtype)
    out[: min(size, len(rows))] = rows[:size]
    return out


def _unique_shape(node: Node, shape: Shape) -> tuple[Shape, Shape]:
    """Infer the shapes of values and counts, both (size,) for that parameter.

    ``node`` has the parameter ``size``.

    Raises: ShapeError if it is no int >= 0 or Size.
    """
    return (count_param(node, "size"),), (count_param(node, "size"),)


def _compute_unique(node: Node, x: Array) -> tuple[Array, Array]:
    """Compute unique of an array ``x`` with NumPy: values in increasing order, and counts as int64.

    Both are cut to the parameter ``size`` of ``node``, or filled up by 0. NaN counts as one value,
    the last.
    """
    values, counts = np.unique(x, return_counts=True)
    return _fit_to_size(node, values, 0), _fit_to_size(node, counts.astype(np.int64), 0)


def _unique_gradient(node: Node, dy: Entry | None, *_: Any) -> list[Entry | None]:
    """Return the gradient of the input: elements that are equal share that of their value equally.

    It is None if ``dy``, the gradient of the values, is; that of the counts is not used. ``node``
    is the forward node.

    Raises: ShapeError if a rank is unknown, DTypeError if the dtype of ``dy`` is.
    """
    if dy is None:
        return [None]
    x = node.inputs[0]
    values, counts = node.entries
    zero = make("full_like", counts, fill_value=0)
    is_used = make("greater", counts, zero)
    at_least_one = make("maximum", counts, make("full_like", counts, fill_value=1))
    share = make("div", dy, make("cast", at_least_one, dtype=known_dtype(dy).name))
    share = make("where", is_used, share, zeros_of(share))
    flat = make("reshape", x, shape=(-1,))
    equal = make("equal", make("expand_dims", flat, axis=1), make("expand_dims", values, axis=0))
    shares = make("where", equal, make("expand_dims", share, axis=0), zeros_of(share))
    return [make("reshape", make("reduce_sum", shares, axis=1), shape=known_shape(x))]


unique = register_numpy_op(
    "unique",
    inputs=["x"],
    compute=_compute_unique,
    doc="the first size distinct elements in increasing order, and how often each occurs; zeros "
    "beyond them",
    params={"size": REQUIRED},
    results=2,
)
unique.set_attr("FInferShape", _unique_shape)
unique.set_attr("FInferType", lambda node, x: (x, int64))
unique.set_attr("FGradient", _unique_gradient)


# first_positions: where equal elements occur first.


def _first_positions_shape(node: Node, shape: Shape) -> Shape:
    """Infer the shape, ``shape`` of the input.

    Raises: ShapeError, naming ``node``, if it is no vector.
    """
    if len(shape) != 1:
        raise ShapeError(f"{node.where} needs a vector, got {show_shape(shape)}; reshape it")
    return shape


def _first_positions_dtype(node: Node, x: DType) -> DType:
    """Infer the dtype, int64.

    Raises: DTypeError, naming ``node``, if ``x``, the input's dtype, is no integer.
    """
    check_indices(node, x, "elements")
    return int64


def _compute_first_positions(node: Node, x: Array) -> Array:
    """Return for each element of the vector ``x`` the first position of an equal one, as int64.

    ``node`` is not used.
    """
    _, first, inverse = np.unique(x, return_index=True, return_inverse=True)
    return first[inverse.reshape(-1)].astype(np.int64)


first_positions = register_numpy_op(
    "first_positions",
    inputs=["x"],
    compute=_compute_first_positions,
    doc="for each element of an integer vector the position of the first element that equals it, "
    "as int64",
)
first_positions.set_attr("FInferShape", _first_positions_shape)
first_positions.set_attr("FInferType", _first_positions_dtype)
first_positions.set_attr("FGradient", no_gradient)
