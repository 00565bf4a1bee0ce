"""Arrays made from nothing but numbers, and marks of positions: they are computed where read."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, isfinite
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
from passkit.values.dtype import DType, dtype_of
from passkit.values.size import Extent, Shape, Size

if TYPE_CHECKING:
    from passkit.ast import Expr
    from passkit.space.reads import Index, Reader

Number = bool | int | float


def _dtype(node: Node) -> DType:
    return dtype_of(node.params["dtype"])


def source(
    name: str,
    params: dict[str, Any],
    shape: Callable[[Node], Shape],
    doc: str,
    types: Callable[[Node], DType] = _dtype,
) -> Op:
    """Register an operator without inputs; its dtype is a parameter."""
    op = register_op(name, num_inputs=0, params=params, doc=doc)
    op.set_attr("FInferShape", shape)
    op.set_attr("FInferType", types)
    op.set_attr("FGradient", lambda node, dy: [])
    op.set_attr("TOpPattern", OpPattern.BROADCAST)
    op.set_attr("TOpCost", "light")
    return op


def check_number(node: Node, value: Any, dtype: DType) -> None:
    """Make sure that a number can be an element of ``dtype``. Raises: DTypeError."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        if not isinstance(value, bool):
            raise DTypeError(f"{node.where} needs a number, got {value!r}")
    elif dtype.kind in "iu":
        limits = np.iinfo(dtype.numpy)
        if not isfinite(value) or value != int(value) or not limits.min <= value <= limits.max:
            raise DTypeError(f"{node.where} of {dtype} cannot hold {value!r}; give another dtype")


def _full_type(node: Node, *like: DType) -> DType:
    dtype = like[0] if like else _dtype(node)
    check_number(node, node.params["fill_value"], dtype)
    return dtype


def _wanted_shape(node: Node) -> Shape:
    shape = parse_extents(node, node.params["shape"], "shape")
    if any(isinstance(n, int) and n < 0 for n in shape):
        raise ShapeError(f"{node.where} needs extents >= 0, got {show_shape(shape)}")
    return shape


full = source(
    "full",
    {"shape": REQUIRED, "fill_value": REQUIRED, "dtype": "float32"},
    _wanted_shape,
    "an array of a shape with one value everywhere",
    _full_type,
)
full.set_attr("FElement", lambda node, at: ast.const(node.params["fill_value"], _dtype(node)))
add_aliases(full, "fill")
for _name, _value in (("zeros", 0), ("ones", 1)):
    _op = source(
        _name, {"shape": REQUIRED, "dtype": "float32"}, _wanted_shape, f"{_name} of a shape"
    )
    _op.set_attr("FElement", lambda node, index, v=_value: ast.const(v, _dtype(node)))


full_like = register_op(
    "full_like", num_inputs=1, params={"fill_value": REQUIRED}, doc="x with one value everywhere"
)
full_like.set_attr("FCodeGen", lambda node, x: ast.const(node.params["fill_value"], x.dtype))
full_like.set_attr("FInferType", _full_type)
full_like.set_attr("TOpPattern", OpPattern.ELEMWISE)
full_like.set_attr("TOpCost", "light")
full_like.set_attr("FGradient", lambda node, dy: [None])


# arange, linspace, eye


def _arange_ends(node: Node) -> tuple[Any, Any, Any]:
    """Start, stop and step; a stop of None means that start is the stop."""
    start, stop, step = (node.params[k] for k in ("start", "stop", "step"))
    start, stop = (0, start) if stop is None else (start, stop)
    for what, value in (("start", start), ("stop", stop), ("step", step)):
        sized = what == "stop" and isinstance(value, Size)
        if not sized and (type(value) not in (int, float) or not isfinite(value)):
            raise ShapeError(f"{node.where} needs a number as {what}, got {value!r}")
    if step == 0:
        raise ShapeError(f"{node.where} needs a step other than 0")
    if isinstance(stop, Size) and (step != 1 or start != int(start)):
        raise ShapeError(
            f"{node.where} up to the size {stop} needs whole numbers and step 1, got start "
            f"{start!r} and step {step!r}"
        )
    return start, stop, step


def _arange_shape(node: Node) -> Shape:
    start, stop, step = _arange_ends(node)
    if isinstance(stop, Size):
        return (stop - int(start),)
    return (max(0, ceil((stop - start) / step)),)


def _arange_type(node: Node) -> DType:
    if node.params["dtype"] is not None:
        check_kinds(node, "iuf", found := _dtype(node))
        start, _, step = _arange_ends(node)
        if found.is_integer and not all(v == int(v) for v in (start, step)):
            raise DTypeError(
                f"{node.where} of {found} needs whole numbers as start and step, got {start!r} and "
                f"{step!r}"
            )
        return found
    whole = not any(isinstance(v, float) for v in _arange_ends(node))
    return dtype_of("int64" if whole else "float64")


def _arange_element(node: Node, index: Index) -> Expr:
    start, _, step = _arange_ends(node)
    dtype = _arange_type(node)
    if dtype.is_integer:
        value = index[0] if step == 1 else index[0] * int(step)
        return ast.cast(value if start == 0 else value + int(start), dtype)
    value = ast.cast(index[0], "float64")
    value = value if step == 1 else value * float(step)
    return ast.cast(value if start == 0 else value + float(start), dtype)


arange = source(
    "arange",
    {"start": REQUIRED, "stop": None, "step": 1, "dtype": None},
    _arange_shape,
    "start, start + step, … before stop, computed in double; arange(n) begins at 0",
    _arange_type,
)
arange.set_attr("FElement", _arange_element)
add_aliases(arange, "range")


def _linspace_shape(node: Node) -> Shape:
    for what in ("start", "stop"):
        number_param(node, what)
    return (count_param(node, "num"),)


def _linspace_type(node: Node) -> DType:
    check_kinds(node, "f", found := _dtype(node))
    return found


def _linspace_element(node: Node, index: Index) -> Expr:
    """``start + i*step`` in double, and exactly ``stop`` at the end."""
    start, stop = float(node.params["start"]), float(node.params["stop"])
    num = _linspace_shape(node)[0]
    last = num - 1 if node.params["endpoint"] else num
    i, dtype = ast.cast(index[0], "float64"), _dtype(node)
    if isinstance(last, int):
        value = i * ((stop - start) / last if last > 0 else 0.0)
    else:
        value = i * (ast.const(stop - start, dtype_of("float64")) / _as_double(last))
    value = value + start
    if node.params["endpoint"] and not (isinstance(last, int) and last < 1):
        value = ast.where(index[0] >= ast.size_of(last), ast.const(stop, value.dtype), value)
    return ast.cast(value, dtype)


def _as_double(n: Extent) -> Expr:
    return ast.cast(ast.size_of(n), "float64")


linspace = source(
    "linspace",
    {"start": REQUIRED, "stop": REQUIRED, "num": 50, "endpoint": True, "dtype": "float32"},
    _linspace_shape,
    "num numbers from start to stop at equal distances, computed in double",
    _linspace_type,
)
linspace.set_attr("FElement", _linspace_element)
add_aliases(linspace, "lin_space")


def _eye_shape(node: Node) -> Shape:
    rows = count_param(node, "n_rows")
    int_param(node, "k")
    return rows, (rows if node.params["n_cols"] is None else count_param(node, "n_cols"))


eye = source(
    "eye",
    {"n_rows": REQUIRED, "n_cols": None, "k": 0, "dtype": "float32"},
    _eye_shape,
    "a matrix with ones on its k-th diagonal",
)
eye.set_attr(
    "FElement",
    lambda node, index: ast.where(
        ast.equal(index[1] - index[0], node.params["k"]),
        ast.const(1, _dtype(node)),
        ast.const(0, _dtype(node)),
    ),
)


# one_hot


def _hot_axis(node: Node, rank: int) -> int:
    return normalize_axis(node, rank + 1, node.params["axis"])


def _hot_shape(node: Node, shape: Shape) -> Shape:
    depth = count_param(node, "depth")
    axis = _hot_axis(node, len(shape))
    return (*shape[:axis], depth, *shape[axis:])


def _hot_type(node: Node, indices: DType) -> DType:
    check_indices(node, indices)
    for what in ("on_value", "off_value"):
        check_number(node, node.params[what], _dtype(node))
    return _dtype(node)


def _hot_element(node: Node, index: Index, read: Reader) -> Expr:
    axis = _hot_axis(node, len(known_shape(node.inputs[0])))
    here = ast.cast(read(*index[:axis], *index[axis + 1 :]), "int64")
    on, off = (ast.const(node.params[k], _dtype(node)) for k in ("on_value", "off_value"))
    return ast.where(ast.equal(here, index[axis]), on, off)


one_hot = register_op(
    "one_hot",
    num_inputs=1,
    params={"depth": REQUIRED, "on_value": 1, "off_value": 0, "axis": -1, "dtype": "float32"},
    doc="on_value at the positions that indices name along a new axis, off_value elsewhere",
)
one_hot.set_attr("FListInputNames", lambda params: ["indices"])
one_hot.set_attr("FInferShape", _hot_shape)
one_hot.set_attr("FInferType", _hot_type)
one_hot.set_attr("FElement", _hot_element)
one_hot.set_attr("FGradient", lambda node, dy: [None])
one_hot.set_attr("TOpPattern", OpPattern.INJECTIVE)
one_hot.set_attr("TOpCost", "light")
