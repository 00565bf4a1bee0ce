"""Reductions over axes: sums, means, extremes and norms; scans; and argmax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen

from passkit.errors import SettingError
from passkit.frontends.tinyflow.argument_checks import renamed_argument, require_float
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

    Args:
        axis: None, an int, an array, a tensor of static value, or a list or tuple of ints.

    Returns:
        None, an int or a tuple. Bools in a list become ints. Values that are no axes are returned
        as they are; the operator refuses them.

    Raises:
        ShapeError: For a `Dimension` that is unknown.
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
    """Convert an integer-like value to int; return any other for the operator to refuse.

    Raises:
        ShapeError: For a `Dimension` that is unknown.
    """
    is_index = hasattr(axis, "__index__") and not isinstance(axis, type)
    return axis.__index__() if is_index else axis


@frozen
class ReductionSpec:
    """One ``tf.reduce_*`` function: a table entry from which it is generated."""

    name: str
    """TensorFlow's name of the function."""
    op: str
    """passkit's name of the operator."""
    tensor_name: str
    """The default name of the result."""
    summary: str
    """The first line of the docstring."""
    takes: str
    """The dtypes that the function takes, in words, such as "integers or floats"."""
    takes_empty: bool = True
    """Whether an axis without elements may be reduced."""


REDUCTIONS = (
    ReductionSpec(
        name="reduce_sum",
        op="reduce_sum",
        tensor_name="Sum",
        summary="Return the sum of elements over axes; 0 of no elements.",
        takes="integers or floats",
    ),
    ReductionSpec(
        name="reduce_mean",
        op="reduce_mean",
        tensor_name="Mean",
        summary="Return the mean of elements over axes; NaN of no elements.",
        takes="floats, or bools that count as 0 and 1 in float32",
    ),
    ReductionSpec(
        name="reduce_max",
        op="reduce_max",
        tensor_name="Max",
        summary="Return the largest element over axes; NaN if any element is NaN.",
        takes="integers or floats",
        takes_empty=False,
    ),
    ReductionSpec(
        name="reduce_min",
        op="reduce_min",
        tensor_name="Min",
        summary="Return the smallest element over axes; NaN if any element is NaN.",
        takes="integers or floats",
        takes_empty=False,
    ),
    ReductionSpec(
        name="reduce_prod",
        op="reduce_prod",
        tensor_name="Prod",
        summary="Return the product of elements over axes; 1 of no elements.",
        takes="integers or floats",
    ),
    ReductionSpec(
        name="reduce_all",
        op="reduce_all",
        tensor_name="All",
        summary="Return whether all elements over axes are true.",
        takes="bools",
    ),
    ReductionSpec(
        name="reduce_any",
        op="reduce_any",
        tensor_name="Any",
        summary="Return whether any element over axes is true.",
        takes="bools",
    ),
    ReductionSpec(
        name="reduce_logsumexp",
        op="logsumexp",
        tensor_name="LogSumExp",
        summary="Return the logarithm of the sum of exp(input_tensor) over axes.",
        takes="floats",
        takes_empty=False,
    ),
)


def _reduction_function(spec: ReductionSpec) -> ReductionFunction:
    """Create a ``tf.reduce_*`` function from its table entry."""

    def function(
        input_tensor: Any,
        axis: Any = None,
        keepdims: bool | None = None,
        name: str | None = None,
        reduction_indices: Any = None,
        keep_dims: bool | None = None,
    ) -> Tensor:
        axis = renamed_argument(spec.name, "axis", axis, "reduction_indices", reduction_indices)
        keeps_axes = renamed_argument(spec.name, "keepdims", keepdims, "keep_dims", keep_dims)
        entry = as_entry(input_tensor)
        if spec.name == "reduce_mean" and entry.dtype is not None and entry.dtype.name == "bool":
            entry = get_op("cast")(entry, dtype="float32")  # TinyFlow's programs take such means
        return call_operator(
            spec.op,
            spec.tensor_name,
            name,
            entry,
            axis=parse_axes(axis),
            keepdims=bool(keeps_axes),
        )

    empty = "" if spec.takes_empty else "has no elements, "
    is_mean = spec.name == "reduce_mean"
    result_dtype = "; float32 for bools" if is_mean else ""
    refused = "neither floats nor bools" if is_mean else f"not {spec.takes}"
    function.__name__ = function.__qualname__ = spec.name
    function.__doc__ = f"""{spec.summary}

    Args:
        input_tensor: A tensor or numbers of any shape: {spec.takes}.
        axis: An axis or a list of several, which may be negative; all axes by default, none for an
            empty list.
        keepdims: Whether reduced axes stay, with length 1; False by default.
        name: The name of the result; "{spec.tensor_name}" by default.
        reduction_indices: The older name of ``axis``.
        keep_dims: The older name of ``keepdims``.

    Returns:
        A tensor of the shape of ``input_tensor`` without the reduced axes. Its dtype is that of
        ``input_tensor``{result_dtype}.

    Raises:
        ShapeError: If an axis is no int, does not exist, {empty}or is named twice.
        DTypeError: If the elements are {refused}.
        SettingError: If an argument is passed under both of its names.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    return function


def _arg_reduction_function(op: str, default_name: str, extreme: str) -> ReductionFunction:
    """Create ``tf.argmax`` or ``tf.argmin``.

    Args:
        op: The name of the operator and of the function.
        default_name: The default name of the result.
        extreme: "largest" or "smallest", for the docstring.
    """

    def function(
        input: Any,
        axis: int | None = None,
        name: str | None = None,
        dimension: int | None = None,
        output_type: Any = "int64",
    ) -> Tensor:
        chosen_axis = renamed_argument(op, "axis", axis, "dimension", dimension)
        parsed_axis = 0 if chosen_axis is None else parse_axes(chosen_axis)
        full_name = unique_name(name, default_name)
        index = get_op(op)(as_entry(input), axis=parsed_axis, name=full_name)
        index_dtype = as_dtype(output_type)
        if index_dtype.name != "int64":
            index = get_op("cast")(index, dtype=index_dtype.name)
        return as_tensor(index, full_name)

    function.__name__ = function.__qualname__ = op
    function.__doc__ = f"""Return the index of the {extreme} element along an axis.

    It is the first index of equal elements, or that of the first NaN.

    Args:
        input: A tensor or numbers of rank 1 or more: bools, integers or floats.
        axis: The axis, which may be negative; 0 by default. The index counts the elements of a
            list of axes in row-major order.
        name: The name of the result; "{default_name}" by default.
        dimension: The older name of ``axis``.
        output_type: The dtype of the result, to which the index is cast; int64 by default.

    Returns:
        A tensor of the shape of ``input`` without the axis.

    Raises:
        ShapeError: If the axis is no int, does not exist or has no elements.
        DTypeError: If the elements are complex numbers or text, or ``output_type`` is no element
            type or a complex one.
        SettingError: If both ``axis`` and ``dimension`` are passed.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    return function


FUNCTIONS: dict[str, ReductionFunction] = {
    **{spec.name: _reduction_function(spec) for spec in REDUCTIONS},
    "argmax": _arg_reduction_function("argmax", "ArgMax", "largest"),
    "argmin": _arg_reduction_function("argmin", "ArgMin", "smallest"),
}
"""The reductions of `tf.math`, by name."""


def arg_max(
    input: Any, dimension: int, output_type: Any = "int64", name: str | None = None
) -> Tensor:
    """Return the index of the largest element along an axis; the older name of `argmax`.

    Args:
        input: A tensor or numbers of rank 1 or more.
        dimension: The axis, which may be negative; 0 for None.
        output_type: The dtype of the result; int64 by default.
        name: The name of the result; "ArgMax" by default.

    Returns:
        A tensor of the shape of ``input`` without the axis.

    Raises:
        ShapeError: If the axis is no int, does not exist or is empty.
        DTypeError: If the elements are complex numbers or text, or ``output_type`` is no element
            type or a complex one.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    return FUNCTIONS["argmax"](input, dimension, name, output_type=output_type)


def arg_min(
    input: Any, dimension: int, output_type: Any = "int64", name: str | None = None
) -> Tensor:
    """Return the index of the smallest element along an axis; the older name of `argmin`.

    Args:
        input: A tensor or numbers of rank 1 or more.
        dimension: The axis, which may be negative; 0 for None.
        output_type: The dtype of the result; int64 by default.
        name: The name of the result; "ArgMin" by default.

    Returns:
        A tensor of the shape of ``input`` without the axis.

    Raises:
        ShapeError: If the axis is no int, does not exist or is empty.
        DTypeError: If the elements are complex numbers or text, or ``output_type`` is no element
            type or a complex one.
        ArgumentError: For a value that is neither a tensor nor numbers.
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
        x: A tensor of floats.
        axes: The axes to reduce, an int or a list; None for all. An empty list reduces none.
        shift: Must be None: the variance is computed from the differences to the mean.
        name: The name scope of the results; "moments" by default.
        keep_dims: The older name of ``keepdims``.
        keepdims: Whether reduced axes stay, with length 1; False by default.

    Returns:
        The mean and the variance, each of the shape of ``x`` without the reduced axes.

    Raises:
        SettingError: If ``shift`` is set, or an argument is passed under both of its names.
        ShapeError: If an axis is no int, does not exist or is named twice.
        DTypeError: If ``x`` holds no floats.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    if shift is not None:
        raise SettingError(f"moments takes no shift, got {shift!r}; the variance needs none")
    keeps_axes = bool(renamed_argument("moments", "keepdims", keepdims, "keep_dims", keep_dims))
    full_name, entry = unique_name(name, "moments"), as_entry(x)
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
        x: A tensor or numbers of rank 1 or more: integers or floats.
        axis: The axis, which may be negative; 0 by default. None for a vector.
        exclusive: Whether each element is left out of its own sum.
        reverse: Whether to sum from the end.
        name: The name of the result; "Cumsum" by default.

    Returns:
        A tensor of the shape and dtype of ``x``.

    Raises:
        ShapeError: If the axis is no int or does not exist.
        DTypeError: If ``x`` holds neither integers nor floats.
        GraphError: If ``exclusive`` or ``reverse`` is no bool.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    params = {"axis": parse_axes(axis), "exclusive": exclusive, "reverse": reverse}
    return call_operator("cumsum", "Cumsum", name, as_entry(x), **params)


def cumprod(
    x: Any, axis: int = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """Return the cumulative product along an axis.

    Args:
        x: A tensor or numbers of rank 1 or more: integers or floats.
        axis: The axis, which may be negative; 0 by default. None for a vector.
        exclusive: Whether each element is left out of its own product.
        reverse: Whether to multiply from the end.
        name: The name of the result; "Cumprod" by default.

    Returns:
        A tensor of the shape and dtype of ``x``.

    Raises:
        ShapeError: If the axis is no int or does not exist.
        DTypeError: If ``x`` holds neither integers nor floats.
        GraphError: If ``exclusive`` or ``reverse`` is no bool.
        ArgumentError: For a value that is neither a tensor nor numbers.
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
        tensor: A tensor of floats or complex numbers; also of integers where ``ord`` is 1 or inf.
        ord: The order: "euclidean" (default) or "fro", 1, 2, inf or another Python number above 0.
            Of matrices: "euclidean" or "fro" for the Frobenius norm, 1 for the largest sum of a
            column, inf for that of a row.
        axis: An axis, or a list of two for matrices; by default the tensor is one vector. More axes
            than two are those of one vector.
        keepdims: Whether reduced axes stay, with length 1; False by default.
        name: The name of the result; "norm" by default.
        keep_dims: The older name of ``keepdims``.

    Returns:
        A tensor of the shape of ``tensor`` without the reduced axes, of real numbers.

    Raises:
        SettingError: For another ``ord``, or if both ``keepdims`` and ``keep_dims`` are passed.
        ShapeError: If an axis is no int, does not exist or is named twice, or has no elements for
            inf and matrices.
        DTypeError: If the elements are bools or text, or integers and ``ord`` is neither 1 nor inf.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    keeps_axes = bool(renamed_argument("norm", "keepdims", keepdims, "keep_dims", keep_dims))
    axes, x = parse_axes(axis), call_operator("abs", "abs", None, as_entry(tensor)).entry
    is_matrix_norm = isinstance(axes, tuple) and len(axes) == 2
    if isinstance(axes, tuple) and len(axes) == 1:
        axes = axes[0]
    params = {"axis": axes, "keepdims": keeps_axes}
    is_number = isinstance(ord, (int, float)) and not isinstance(ord, bool)
    is_euclidean = isinstance(ord, str) and ord in ("euclidean", "fro")
    if is_euclidean or (is_number and ord == 2 and not is_matrix_norm):
        squares = make("reduce_sum", make("square", x), **params)
        return call_operator("sqrt", "norm", name, squares)
    is_valid = is_number and require_float("norm", "ord", ord) > 0
    if not is_valid or (is_matrix_norm and ord not in (1, float("inf"))):
        raise SettingError(
            f"norm needs 'euclidean', 'fro', 1, 2, inf or another number above 0 as ord, of "
            f"matrices 'fro', 1 or inf, got {ord!r}"
        )
    if is_matrix_norm:
        require_shape(x, "norm")
        make("reduce_sum", x, axis=axes)  # refuses axes that do not exist or are named twice
        rows, columns = axes
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
