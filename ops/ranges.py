"""Arrays without inputs, such as ranges and constants, and one-hot vectors; computed where read."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, isfinite
from sys import float_info
from typing import TYPE_CHECKING, Any

import numpy as np

from passkit import ast
from passkit.errors import DTypeError, ShapeError
from passkit.graph.infer import show_shape
from passkit.graph.node import Node, known_shape
from passkit.graph.op import REQUIRED, Op, OpPattern, register_op
from passkit.ops.helpers import (
    add_aliases,
    check_kinds,
    count_param,
    int_param,
    normalize_axis,
    number_param,
    parse_extents,
)
from passkit.ops.indices import check_indices
from passkit.values.arguments import shown
from passkit.values.dtype import DType, dtype_of
from passkit.values.size import Extent, Shape, Size

if TYPE_CHECKING:
    from passkit.analysis.accesses import Index, Reader
    from passkit.ast import Expr


LARGEST = float_info.max
"""The largest finite number of Python's floats, in which elements are computed."""


def _dtype_param(node: Node) -> DType:
    """Return the parameter ``dtype`` of ``node``. Raises: DTypeError if there is no such dtype."""
    return dtype_of(node.params["dtype"])


def source(
    *,
    name: str,
    params: dict[str, Any],
    infer_shape: Callable[[Node], Shape],
    element: Callable[[Node, Index], Expr],
    doc: str,
    infer_type: Callable[[Node], DType] = _dtype_param,
    aliases: str = "",
) -> Op:
    """Register an operator without inputs, whose dtype is the parameter ``dtype``.

    Args:
        name: Name of the operator.
        params: Parameters with their defaults, ``dtype`` among them.
        infer_shape: FInferShape.
        element: FElement: ``element(node, index)`` returns the expression of one element.
        doc: What the output is, for help and reference pages.
        infer_type: FInferType; by default the parameter ``dtype``, or DTypeError if there is no
            such.
        aliases: Further names, separated by spaces.

    Returns:
        The registered operator.

    Raises:
        RegistryError: If an operator of that name has other numbers of inputs or outputs, an
            attribute of it was set elsewhere, or an alias names another.
        ArgumentError: If ``name`` or an alias is no identifier.
    """
    op = register_op(name, num_inputs=0, params=params, doc=doc)
    op.set_attr("FInferShape", infer_shape)
    op.set_attr("FInferType", infer_type)
    op.set_attr("FElement", element)
    op.set_attr("FGradient", lambda node, dy: [])
    op.set_attr("TOpPattern", OpPattern.BROADCAST)
    op.set_attr("TOpCost", "light")
    add_aliases(op, aliases)
    return op


# Arrays of one value.


def check_number(node: Node, value: Any, dtype: DType) -> None:
    """Check that a number ``value`` can be an element of ``dtype``; bools always can.

    Floats out of the range of a float dtype are accepted, as they round to infinity, and any number
    for bools.

    Raises:
        DTypeError: If it is neither an int, a float nor a bool (a complex number is none), no
            integer within the range of an integer dtype, or an int beyond the largest Python float.
            The error names ``node``.
    """
    if isinstance(value, bool):
        return
    if not isinstance(value, (int, float)):
        raise DTypeError(f"{node.where} needs a number, got {value!r}")
    if dtype.kind in "iu":
        limits = np.iinfo(dtype.numpy)
        is_whole = isinstance(value, int) or value.is_integer()
        fits = is_whole and limits.min <= value <= limits.max
    else:
        fits = isinstance(value, float) or abs(value) <= LARGEST
    if not fits:
        raise DTypeError(
            f"{node.where} of {dtype} cannot hold {shown(value)}; give another dtype or number"
        )


def _infer_filled_shape(node: Node) -> Shape:
    """Return the parameter ``shape`` of ``node``, one extent or a tuple of them, as a tuple.

    Raises:
        ShapeError: If an extent is negative, or neither an int nor a Size.
    """
    shape = parse_extents(node, node.params["shape"], "shape")
    if any(isinstance(n, int) and n < 0 for n in shape):
        raise ShapeError(f"{node.where} needs extents >= 0, got {show_shape(shape)}")
    return shape


def _infer_full_type(node: Node, *input_dtypes: DType) -> DType:
    """Return the dtype of the input, or without one the parameter ``dtype`` of ``node``.

    Raises:
        DTypeError: If it cannot hold ``fill_value``, that is no int, float or bool, or there is no
            such dtype.
    """
    dtype = input_dtypes[0] if input_dtypes else _dtype_param(node)
    check_number(node, node.params["fill_value"], dtype)
    return dtype


source(
    name="full",
    aliases="fill",
    params={"shape": REQUIRED, "fill_value": REQUIRED, "dtype": "float32"},
    infer_shape=_infer_filled_shape,
    infer_type=_infer_full_type,
    element=lambda node, index: ast.const(node.params["fill_value"], _dtype_param(node)),
    doc="an array of a shape in which every element is fill_value",
)
source(
    name="zeros",
    params={"shape": REQUIRED, "dtype": "float32"},
    infer_shape=_infer_filled_shape,
    element=lambda node, index: ast.const(0, _dtype_param(node)),
    doc="zeros in an array of a shape",
)
source(
    name="ones",
    params={"shape": REQUIRED, "dtype": "float32"},
    infer_shape=_infer_filled_shape,
    element=lambda node, index: ast.const(1, _dtype_param(node)),
    doc="ones in an array of a shape",
)

full_like = register_op(
    "full_like",
    num_inputs=1,
    params={"fill_value": REQUIRED},
    doc="an array of the shape and dtype of x in which every element is fill_value",
)
full_like.set_attr("FCodeGen", lambda node, x: ast.const(node.params["fill_value"], x.dtype))
full_like.set_attr("FInferType", _infer_full_type)
full_like.set_attr("TOpPattern", OpPattern.ELEMWISE)
full_like.set_attr("TOpCost", "light")
full_like.set_attr("FGradient", lambda node, dy: [None])


# arange


def _arange_ends(node: Node) -> tuple[Any, Any, Any]:
    """Return the parameters start, stop and step; if ``stop`` is None, ``start`` is the stop.

    The stop may be a Size. ``node`` has the parameters that are passed on.

    Raises:
        ShapeError: If one of them is no finite int or float (a bool is none), the step is 0, or the
            stop is a Size and start and step are not a whole number and 1.
    """
    start, stop, step = (node.params[k] for k in ("start", "stop", "step"))
    start, stop = (0, start) if stop is None else (start, stop)
    for name, value in (("start", start), ("stop", stop), ("step", step)):
        is_size = name == "stop" and isinstance(value, Size)
        if not is_size and (type(value) not in (int, float) or not abs(value) <= LARGEST):
            raise ShapeError(f"{node.where} needs a finite number as {name}, got {shown(value)}")
    if step == 0:
        raise ShapeError(f"{node.where} needs a step other than 0")
    if isinstance(stop, Size) and (step != 1 or start != int(start)):
        raise ShapeError(
            f"{node.where} up to the size {stop} needs whole numbers and step 1, got start "
            f"{start!r} and step {step!r}"
        )
    return start, stop, step


def _infer_arange_shape(node: Node) -> Shape:
    """Infer the shape: the number of steps from ``start`` to ``stop``, 0 at least.

    ``node`` has these parameters and ``step``. Up to a Size it is that minus the start, unchecked.

    Raises: ShapeError if these are no finite ints or floats, the step is 0, or the number of steps
    is infinite.
    """
    start, stop, step = _arange_ends(node)
    if isinstance(stop, Size):
        return (stop - int(start),)
    if all(isinstance(v, int) for v in (start, stop, step)):
        return (max(0, -((start - stop) // step)),)
    count = (float(stop) - float(start)) / step
    if not isfinite(count):
        raise ShapeError(
            f"{node.where} from {start} to {stop} in steps of {step} has too many elements"
        )
    return (max(0, ceil(count)),)


def _infer_arange_type(node: Node) -> DType:
    """Return the parameter ``dtype`` of ``node``, or where it is None int64 or float64 by the ends.

    It is float64 if start, stop or step is a float.

    Raises:
        DTypeError: If the dtype is bool or complex or there is no such, or it is an integer and
            start or step is not whole.
        ShapeError: If start, stop and step are no range.
    """
    start, stop, step = _arange_ends(node)
    if node.params["dtype"] is None:
        integers = not any(isinstance(v, float) for v in (start, stop, step))
        return dtype_of("int64" if integers else "float64")
    dtype = _dtype_param(node)
    check_kinds(node, "iuf", dtype)
    if dtype.is_integer and not all(v == int(v) for v in (start, step)):
        raise DTypeError(
            f"{node.where} of {dtype} needs whole numbers as start and step, got {start!r} and "
            f"{step!r}"
        )
    return dtype


def _arange_element(node: Node, index: Index) -> Expr:
    """Return start + index * step, of integers in int64, else in float64, cast to the dtype.

    ``node`` has the parameter ``dtype``.

    Raises: ShapeError if start, stop and step are no range, DTypeError if the dtype does not fit
    them.
    """
    start, _, step = _arange_ends(node)
    dtype = _infer_arange_type(node)
    if dtype.is_integer:
        value = index[0] if step == 1 else index[0] * int(step)
        return ast.cast(value if start == 0 else value + int(start), dtype)
    value = ast.cast(index[0], "float64")
    value = value if step == 1 else value * float(step)
    return ast.cast(value if start == 0 else value + float(start), dtype)


source(
    name="arange",
    aliases="range",
    params={"start": REQUIRED, "stop": None, "step": 1, "dtype": None},
    infer_shape=_infer_arange_shape,
    infer_type=_infer_arange_type,
    element=_arange_element,
    doc="the numbers start, start + step, … before stop, computed in float64; with one argument "
    "from 0 to below it",
)


# linspace


def _infer_linspace_shape(node: Node) -> Shape:
    """Infer the shape: ``num`` elements; check ``start`` and ``stop``.

    ``node`` has these parameters.

    Raises: GraphError if ``start`` or ``stop`` is no int or float, ShapeError if ``num`` is no int
    >= 0 or Size.
    """
    for name in ("start", "stop"):
        number_param(node, name)
    return (count_param(node, "num"),)


def _infer_linspace_type(node: Node) -> DType:
    """Infer the dtype, the parameter ``dtype`` of ``node``.

    Raises: DTypeError if it is no real float, or there is no such dtype.
    """
    dtype = _dtype_param(node)
    check_kinds(node, "f", dtype)
    return dtype


def _linspace_element(node: Node, index: Index) -> Expr:
    """Return start + index * step in float64, and exactly ``stop`` at the end; cast to the dtype.

    Without ``endpoint`` the numbers end one step before ``stop``. A single number is ``start``.
    ``index`` has one expression. ``node`` has the parameters ``dtype``, ``endpoint``, ``num``,
    ``start`` and ``stop``.

    Raises: ShapeError if ``num`` is no int >= 0 or Size, GraphError if ``start`` or ``stop`` is no
    number, DTypeError if there is no such dtype.
    """
    start, stop = float(node.params["start"]), float(node.params["stop"])
    (num,) = _infer_linspace_shape(node)
    last = num - 1 if node.params["endpoint"] else num
    i = ast.cast(index[0], "float64")
    if isinstance(last, int):
        value = i * ((stop - start) / last if last > 0 else 0.0)
    else:
        value = i * (ast.const(stop - start, dtype_of("float64")) / _as_float64(last))
    value = value + start
    if node.params["endpoint"] and not (isinstance(last, int) and last < 1):
        value = ast.where(index[0] >= ast.size_of(last), ast.const(stop, value.dtype), value)
    return ast.cast(value, _dtype_param(node))


def _as_float64(n: Extent) -> Expr:
    """Return an extent as an expression of float64."""
    return ast.cast(ast.size_of(n), "float64")


source(
    name="linspace",
    aliases="lin_space",
    params={"start": REQUIRED, "stop": REQUIRED, "num": 50, "endpoint": True, "dtype": "float32"},
    infer_shape=_infer_linspace_shape,
    infer_type=_infer_linspace_type,
    element=_linspace_element,
    doc="num numbers from start to stop at equal distances, computed in float64",
)


# eye


def _infer_eye_shape(node: Node) -> Shape:
    """Infer the shape (n_rows, n_cols), square if ``n_cols`` is None.

    ``node`` has the parameters ``k``, ``n_cols`` and ``n_rows``.

    Raises: ShapeError if a number of rows or columns is no int >= 0 or Size, or ``k`` is no int.
    """
    rows = count_param(node, "n_rows")
    int_param(node, "k")
    return rows, (rows if node.params["n_cols"] is None else count_param(node, "n_cols"))


def _eye_element(node: Node, index: Index) -> Expr:
    """Return 1 on the diagonal ``k``, else 0; ``index`` is (row, column).

    ``node`` has the parameters ``dtype`` and ``k``.

    Raises: DTypeError if there is no such dtype.
    """
    dtype = _dtype_param(node)
    on_diagonal = ast.equal(index[1] - index[0], node.params["k"])
    return ast.where(on_diagonal, ast.const(1, dtype), ast.const(0, dtype))


source(
    name="eye",
    params={"n_rows": REQUIRED, "n_cols": None, "k": 0, "dtype": "float32"},
    infer_shape=_infer_eye_shape,
    element=_eye_element,
    doc="a matrix (n_rows, n_cols) with ones on its k-th diagonal, and zeros elsewhere",
)


# one_hot


def _one_hot_axis(node: Node, input_rank: int) -> int:
    """Return the position of the new axis in the output, the parameter ``axis`` from 0 on.

    ``input_rank`` is the rank of the indices. ``node`` has the parameter ``axis``.

    Raises: ShapeError if it is no int or out of range.
    """
    return normalize_axis(node, input_rank + 1, node.params["axis"])


def _infer_one_hot_shape(node: Node, shape: Shape) -> Shape:
    """Infer the shape: ``shape`` of the indices with an axis of length ``depth`` inserted.

    ``node`` has the parameters ``axis`` and ``depth``.

    Raises: ShapeError if ``depth`` is no int >= 0 or Size, or ``axis`` is out of range.
    """
    depth = count_param(node, "depth")
    axis = _one_hot_axis(node, len(shape))
    return (*shape[:axis], depth, *shape[axis:])


def _infer_one_hot_type(node: Node, indices: DType) -> DType:
    """Infer the dtype, the parameter ``dtype`` of ``node``; ``indices`` is the dtype of the input.

    Raises: DTypeError if that is no integer, there is no such dtype, or it cannot hold ``on_value``
    or ``off_value``, which must be ints, floats or bools.
    """
    check_indices(node, indices)
    dtype = _dtype_param(node)
    for name in ("on_value", "off_value"):
        check_number(node, node.params[name], dtype)
    return dtype


def _one_hot_element(node: Node, index: Index, read: Reader) -> Expr:
    """Return ``on_value`` where the position along the axis is the input, else ``off_value``.

    A negative input is at no position. ``index`` has an expression for each axis of the output;
    ``read`` reads the input. ``node`` has the parameters ``axis`` and ``dtype``.

    Raises: ShapeError if the rank of the input is unknown, or ``axis`` is no int or out of range;
    DTypeError if there is no such dtype.
    """
    axis = _one_hot_axis(node, len(known_shape(node.inputs[0])))
    hot_position = ast.cast(read(*index[:axis], *index[axis + 1 :]), "int64")
    on, off = (ast.const(node.params[k], _dtype_param(node)) for k in ("on_value", "off_value"))
    return ast.where(ast.equal(hot_position, index[axis]), on, off)


one_hot = register_op(
    "one_hot",
    num_inputs=1,
    params={"depth": REQUIRED, "on_value": 1, "off_value": 0, "axis": -1, "dtype": "float32"},
    doc="on_value at the position indices along a new axis of length depth, off_value elsewhere",
)
one_hot.set_attr("FListInputNames", lambda params: ["indices"])
one_hot.set_attr("FInferShape", _infer_one_hot_shape)
one_hot.set_attr("FInferType", _infer_one_hot_type)
one_hot.set_attr("FElement", _one_hot_element)
one_hot.set_attr("FGradient", lambda node, dy: [None])
one_hot.set_attr("TOpPattern", OpPattern.INJECTIVE)
one_hot.set_attr("TOpCost", "light")
