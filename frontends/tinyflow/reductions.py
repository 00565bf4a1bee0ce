"""Reductions over axes: sums, means, extremes and norms; scans; and argmax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from passkit.errors import SettingError
from passkit.frontends.tinyflow.argument_checks import renamed_argument
from passkit.frontends.tinyflow.dtypes import as_dtype
from passkit.frontends.tinyflow.shapes import require_shape
from passkit.frontends.tinyflow.tensors import (
    Tensor,
    as_entry,
    as_tensor,
    call_operator,
    unique_name,
)
from passkit.graph.op import get_op
from passkit.ops.helpers import make

ReductionFunction = Callable[..., Tensor]


def parse_axes(axis: Any) -> Any:
    """Convert an axis argument to None, an int or a tuple of ints.

    Static tensors and arrays are converted to numbers. Values that are no axes are left for the
    operator to refuse.
    """
    static_value = getattr(axis, "static_value", None)
    if static_value is not None:
        axis = static_value.tolist()
    if axis is None or isinstance(axis, int):
        return axis
    if hasattr(axis, "tolist"):
        axis = axis.tolist()
    return tuple(map(_axis_index, axis)) if isinstance(axis, (list, tuple)) else _axis_index(axis)


def _axis_index(axis: Any) -> Any:
    """Convert an integer-like value to int; leave any other for the operator to refuse."""
    is_index = hasattr(axis, "__index__") and not isinstance(axis, type)
    return axis.__index__() if is_index else axis


def _reduction_function(op: str, default_name: str) -> ReductionFunction:
    """Create a ``tf.reduce_*`` function.

    Args:
        op: Name of the operator.
        default_name: Default name of the result, from which the function's name follows.
    """

    def function(
        input_tensor: Any,
        axis: Any = None,
        keepdims: bool | None = None,
        name: str | None = None,
        reduction_indices: Any = None,
        keep_dims: bool | None = None,
    ) -> Tensor:
        function_name = f"reduce_{default_name.lower()}"
        axis = renamed_argument(function_name, "axis", axis, "reduction_indices", reduction_indices)
        keeps_axes = renamed_argument(function_name, "keepdims", keepdims, "keep_dims", keep_dims)
        entry = as_entry(input_tensor)
        if op == "reduce_mean" and entry.dtype is not None and entry.dtype.name == "bool":
            entry = get_op("cast")(entry, dtype="float32")  # TinyFlow's programs take such means
        return call_operator(
            op, default_name, name, entry, axis=parse_axes(axis), keepdims=bool(keeps_axes)
        )

    doc = get_op(op).doc
    function.__doc__ = f"""{doc[:1].upper()}{doc[1:]}.

    Args:
        input_tensor: A tensor or numbers.
        axis: An axis or several; all by default.
        keepdims: Whether reduced axes stay, with length 1.
        name: The name of the result.
        reduction_indices: The older name of ``axis``.
        keep_dims: The older name of ``keepdims``.
    """
    return function


def _arg_reduction_function(op: str, default_name: str) -> ReductionFunction:
    """Create ``tf.argmax`` or ``tf.argmin``.

    Args:
        op: Name of the operator.
        default_name: Default name of the result.
    """

    def function(
        input: Any,
        axis: int | None = None,
        name: str | None = None,
        dimension: int | None = None,
        output_type: Any = "int64",
    ) -> Tensor:
        chosen_axis = renamed_argument(default_name, "axis", axis, "dimension", dimension)
        parsed_axis = 0 if chosen_axis is None else parse_axes(chosen_axis)
        full_name = unique_name(name, default_name)
        index = get_op(op)(as_entry(input), axis=parsed_axis, name=full_name)
        index_dtype = as_dtype(output_type)
        if index_dtype.name != "int64":
            index = get_op("cast")(index, dtype=index_dtype.name)
        return as_tensor(index, full_name)

    doc = get_op(op).doc
    function.__doc__ = f"""{doc[:1].upper()}{doc[1:]}.

    Args:
        input: A tensor or numbers.
        axis: The axis; 0 by default.
        name: The name of the result.
        dimension: The older name of ``axis``.
        output_type: The dtype of the result.
    """
    return function


FUNCTIONS: dict[str, ReductionFunction] = {
    "reduce_sum": _reduction_function("reduce_sum", "Sum"),
    "reduce_mean": _reduction_function("reduce_mean", "Mean"),
    "reduce_max": _reduction_function("reduce_max", "Max"),
    "reduce_min": _reduction_function("reduce_min", "Min"),
    "reduce_prod": _reduction_function("reduce_prod", "Prod"),
    "reduce_all": _reduction_function("reduce_all", "All"),
    "reduce_any": _reduction_function("reduce_any", "Any"),
    "reduce_logsumexp": _reduction_function("logsumexp", "LogSumExp"),
    "argmax": _arg_reduction_function("argmax", "ArgMax"),
    "argmin": _arg_reduction_function("argmin", "ArgMin"),
}
"""The reductions of `tf.math`, by name."""


def arg_max(
    input: Any, dimension: int, output_type: Any = "int64", name: str | None = None
) -> Tensor:
    """Return the index of the largest element along an axis; the older name of `argmax`.

    Args:
        input: A tensor.
        dimension: The axis.
        output_type: The dtype of the result.
        name: The name of the result.
    """
    return FUNCTIONS["argmax"](input, dimension, name, output_type=output_type)


def arg_min(
    input: Any, dimension: int, output_type: Any = "int64", name: str | None = None
) -> Tensor:
    """Return the index of the smallest element along an axis; the older name of `argmin`.

    Args:
        input: A tensor.
        dimension: The axis.
        output_type: The dtype of the result.
        name: The name of the result.
    """
    return FUNCTIONS["argmin"](input, dimension, name, output_type=output_type)


def moments(
    x: Any,
    axes: Any,
    shift: Any = None,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the mean and the variance over axes.

    Args:
        x: A tensor.
        axes: The axes to reduce.
        shift: Must be None: the variance is computed from the differences to the mean.
        name: The name of the result.
        keep_dims: The older name of ``keepdims``.
        keepdims: Whether reduced axes stay, with length 1.

    Raises:
        SettingError: If ``shift`` is given.
    """
    if shift is not None:
        raise SettingError(f"moments takes no shift, got {shift!r}; the variance needs none")
    keeps_axes = bool(renamed_argument("moments", "keepdims", keepdims, "keep_dims", keep_dims))
    full_name, entry = unique_name(name, "moments"), as_entry(x)
    if not axes and len(require_shape(entry, "moments")) == 0:
        axes = None
    mean = get_op("reduce_mean")(entry, axis=parse_axes(axes), keepdims=True)
    square = get_op("squared_difference")(entry, get_op("stop_gradient")(mean))
    variance = get_op("reduce_mean")(square, axis=parse_axes(axes), keepdims=keeps_axes)
    mean_result = mean if keeps_axes else get_op("reduce_mean")(entry, axis=parse_axes(axes))
    return as_tensor(mean_result, f"{full_name}/mean"), as_tensor(variance, f"{full_name}/variance")


def cumsum(
    x: Any, axis: int = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """Return the cumulative sum along an axis.

    Args:
        x: A tensor.
        axis: The axis.
        exclusive: Whether each element is left out of its own sum.
        reverse: Whether to sum from the end.
        name: The name of the result.
    """
    params = {"axis": parse_axes(axis), "exclusive": exclusive, "reverse": reverse}
    return call_operator("cumsum", "Cumsum", name, as_entry(x), **params)


def cumprod(
    x: Any, axis: int = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """Return the cumulative product along an axis.

    Args:
        x: A tensor.
        axis: The axis.
        exclusive: Whether each element is left out of its own product.
        reverse: Whether to multiply from the end.
        name: The name of the result.
    """
    params = {"axis": parse_axes(axis), "exclusive": exclusive, "reverse": reverse}
    return call_operator("cumprod", "Cumprod", name, as_entry(x), **params)


def norm(
    tensor: Any,
    ord: Any = "euclidean",
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Return the norm of vectors along an axis, or of matrices along two axes.

    Args:
        tensor: A tensor.
        ord: "euclidean", 1, 2, inf or another number above 0; for matrices "fro", 1 or inf.
        axis: An axis, or two for matrices; by default the tensor is one vector.
        keepdims: Whether reduced axes stay, with length 1.
        name: The name of the result.
        keep_dims: The older name of ``keepdims``.

    Raises:
        SettingError: For another ``ord``.
    """
    keeps_axes = bool(renamed_argument("norm", "keepdims", keepdims, "keep_dims", keep_dims))
    axes, x = parse_axes(axis), call_operator("abs", "abs", None, as_entry(tensor)).entry
    is_matrix_norm = isinstance(axes, tuple) and len(axes) == 2
    if isinstance(axes, tuple) and len(axes) == 1:
        axes = axes[0]
    params = {"axis": axes, "keepdims": keeps_axes}
    if ord in ("euclidean", "fro") or (ord == 2 and not is_matrix_norm):
        squares = make("reduce_sum", make("square", x), **params)
        return call_operator("sqrt", "norm", name, squares)
    is_valid = isinstance(ord, (int, float)) and not isinstance(ord, bool) and ord > 0
    if not is_valid or (is_matrix_norm and ord not in (1, float("inf"))):
        raise SettingError(
            f"norm needs 'euclidean', 'fro', 1, 2, inf or another number above 0 as ord, of "
            f"matrices 'fro', 1 or inf, got {ord!r}"
        )
    if is_matrix_norm:
        rank = len(require_shape(x, "norm"))
        rows, columns = (a % rank for a in axes)
        inner, outer = (rows, columns) if ord == 1 else (columns, rows)
        sums = make("reduce_sum", x, axis=inner, keepdims=True)
        largest = make("reduce_max", sums, axis=outer, keepdims=True)
        return call_operator(
            "squeeze" if not keeps_axes else "identity",
            "norm",
            name,
            largest,
            **({} if keeps_axes else {"axis": (rows, columns)}),
        )
    if ord == float("inf"):
        return call_operator("reduce_max", "norm", name, x, **params)
    powers = make("reduce_sum", x if ord == 1 else make("pow", x, float(ord)), **params)
    return (
        call_operator("pow", "norm", name, powers, 1.0 / ord)
        if ord != 1
        else as_tensor(powers, unique_name(name, "norm"))
    )
