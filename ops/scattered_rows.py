"""What every scatter consists of: rows at indices that are data, and where those indices point.

An update is for the row that an index names; one outside is dropped. Updates of one row are taken
in their order, however many threads share the rows.
"""

from __future__ import annotations

from functools import reduce
from operator import add, and_
from typing import TYPE_CHECKING, Any

import numpy as np

from passkit import ast
from passkit.errors import DTypeError, GraphError, ShapeError, nearest
from passkit.graph.infer import agree, same_dtype_rule, show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.graph.op import REQUIRED, OpPattern, register_op
from passkit.ops.helpers import check_broadcast, check_kinds, make, normalize_axis, parse_extents
from passkit.ops.indices import check_indices, inside, mode_of, position
from passkit.ops.scattered_text import own_kernel
from passkit.plan.kernel import OwnKernel
from passkit.values.dtype import DType, int64, is_narrow
from passkit.values.lazy import Lazy
from passkit.values.size import Extent, Shape, numel

if TYPE_CHECKING:
    from passkit.ast import Expr
    from passkit.space import reads
    from passkit.space.reads import Index, Reader
else:
    reads = Lazy("passkit.space.reads")

Array = Any

FOLDS: dict[str, Any] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}
"""How updates join what is there; "update" replaces it."""

KINDS = ("update", *FOLDS)


def kind_of(node: Node) -> str:
    """The parameter ``kind``. Raises: GraphError for one that there is not."""
    kind = node.params["kind"]
    if kind not in KINDS:
        raise GraphError(f"{node.where} has no kind {kind!r}; {nearest(str(kind), KINDS)}")
    return str(kind)


def _shape(node: Node, x: Shape, rows: Shape, updates: Shape) -> Shape:
    """Shapes: (a, b, n, c), (a, m), (a, b, m, c) -> (a, b, n, c)."""
    if (len(x), len(rows), len(updates)) != (4, 2, 4):
        raise ShapeError(
            f"{node.where} needs (a, b, n, c), (a, m) and (a, b, m, c), got {show_shape(x)}, "
            f"{show_shape(rows)} and {show_shape(updates)}"
        )
    agree(node, x[0], rows[0], "dimension 0 of x and rows")
    for k, n in enumerate((x[0], x[1], rows[1], x[3])):
        agree(node, n, updates[k], f"dimension {k} of the updates")
    return x


def _type(node: Node, x: DType, rows: DType, updates: DType) -> DType:
    check_indices(node, rows, "rows")
    if rows is not int64:
        raise DTypeError(f"{node.where} needs rows of int64, got {rows}; pk.ops.cast(x, 'int64')")
    kind = kind_of(node)
    if kind != "update" and is_narrow(x):
        raise DTypeError(
            f"{node.where} joins floats of 32 bits or more, got {x}; pk.ops.cast(x, 'float32')"
        )
    if kind == "sub":
        check_kinds(node, "iufc", x)
    return same_dtype_rule(node, x, updates)


def _compute(node: Node, x: Array, rows: Array, updates: Array) -> Array:
    out, kind = np.array(x), kind_of(node)
    for image, named, new in zip(out, rows, updates, strict=True):
        there = (named >= 0) & (named < x.shape[2])
        at = (slice(None), named[there])
        if kind == "update":
            image[at] = new[:, there]
        else:
            FOLDS[kind].at(image, at, new[:, there])
    return out


def _kernel(node: Node, dialect: str) -> OwnKernel | None:
    """A text of its own for the CPU and CUDA; elsewhere, and for complex numbers, NumPy runs it."""
    dtype = node.entries[0].dtype
    assert dtype is not None
    outer, middle, rows, length = known_shape(node.inputs[0])
    count = known_shape(node.inputs[1])[1]
    return own_kernel(dtype, kind_of(node), dialect, (outer, middle, rows, count, length))


scatter_rows = register_op(
    "scatter_rows",
    num_inputs=3,
    params={"kind": "add"},
    doc="(a, b, n, c), (a, m), (a, b, m, c): the m updates joined to those of n rows that are "
    "named, in their order; a row that there is not drops them",
)
scatter_rows.set_attr("FListInputNames", lambda params: ["x", "rows", "updates"])
scatter_rows.set_attr("FInferShape", _shape)
scatter_rows.set_attr("FInferType", _type)
scatter_rows.set_attr("FCompute", _compute)
scatter_rows.set_attr("FKernel", _kernel)
scatter_rows.set_attr("FInplaceOption", lambda node: [(0, 0)])
scatter_rows.set_attr("TOpPattern", OpPattern.OPAQUE)


def _gradient(node: Node, dy: Entry) -> list[Entry | None]:
    """That of the scatter along axis 2, where rows below 0 count from the end: none are below."""
    x, rows, updates = node.inputs
    far = make("full_like", rows, fill_value=np.iinfo(np.int64).max)
    named = make("where", make("less", rows, make("full_like", rows, fill_value=0)), far, rows)
    again = make(f"index_{kind_of(node)}", x, named, updates, axis=2, batch_dims=1).node
    assert again.op is not None
    return again.op.get_attr("FGradient")(again, dy)  # type: ignore[no-any-return]


scatter_rows.set_attr("FGradient", _gradient)


# Where indices point: the number of a row, -1 for none.


def _row(at: list[tuple[Expr, Extent]], strides: list[Extent], clip: bool) -> Expr:
    """The row that indices name, each with the extent of its axis and what a step is worth."""
    if not at:
        return ast.size_of(0)
    placed = [position(i, n) for i, n in at]
    total = reduce(
        add,
        [p if n == 1 else p * ast.size_of(n) for (p, _), n in zip(placed, strides, strict=True)],
    )
    if clip:
        return total
    there = [inside(front, n) for (_, front), (_, n) in zip(placed, at, strict=True)]
    return ast.where(reduce(and_, there), total, -1)


def _index_type(node: Node, indices: DType) -> DType:
    check_indices(node, indices)
    return int64


def _strides(shape: Shape) -> list[Extent]:
    return [numel(shape[k + 1 :]) for k in range(len(shape))]


def _points_element(node: Node, index: Index, read: Reader) -> Expr:
    shape = parse_extents(node, node.params["shape"], "shape")
    at = [(read(*index, ast.size_of(k)), n) for k, n in enumerate(shape)]
    return _row(at, _strides(shape), mode_of(node) == "clip")


def _points_shape(node: Node, indices: Shape) -> Shape:
    shape = parse_extents(node, node.params["shape"], "shape")
    mode_of(node)
    if not indices or indices[-1] != len(shape):
        raise ShapeError(
            f"{node.where} needs {len(shape)} coordinates in the last axis of indices, got "
            f"{show_shape(indices)}"
        )
    return indices[:-1]


points = register_op(
    "rows_of_points",
    num_inputs=1,
    params={"shape": REQUIRED, "mode": "zero"},
    doc="the row-major numbers of the points of a shape whose coordinates are the last axis; "
    "-1 for none",
)
points.set_attr("FElement", _points_element)
points.set_attr("FInferShape", _points_shape)


def _along_element(node: Node, index: Index, read: Reader) -> Expr:
    shape = parse_extents(node, node.params["shape"], "shape")
    axis = normalize_axis(node, len(shape), node.params["axis"])
    i = read(*reads.aligned(index, known_shape(node.inputs[0])))
    strides = _strides(shape)
    row = _row([(i, shape[axis])], [strides[axis]], mode_of(node) == "clip")
    others = [
        at * ast.size_of(stride)
        for k, (at, stride) in enumerate(zip(reads.aligned(index, shape), strides, strict=True))
        if k != axis
    ]
    return reduce(lambda total, more: ast.where(total < 0, total, total + more), others, row)


def _along_shape(node: Node, indices: Shape) -> Shape:
    mode_of(node)
    shape = parse_extents(node, node.params["shape"], "shape")
    updates = parse_extents(node, node.params["updates"], "updates")
    negative = any(isinstance(n, int) and n < 0 for n in (*shape, *updates))
    if negative or max(len(shape), len(indices)) > len(updates):
        raise ShapeError(
            f"{node.where} needs updates of extents >= 0 and of no lower rank than shape and "
            f"indices, got {show_shape(updates)} for {show_shape(shape)} and {show_shape(indices)}"
        )
    normalize_axis(node, len(shape), node.params["axis"])
    check_broadcast(node, indices, updates, "the indices")
    return updates


along = register_op(
    "rows_along_axis",
    num_inputs=1,
    params={"shape": REQUIRED, "updates": REQUIRED, "axis": -1, "mode": "zero"},
    doc="the row-major numbers of the elements of a shape that indices name along axis, for each "
    "of the updates; -1 for none",
)
along.set_attr("FElement", _along_element)
along.set_attr("FInferShape", _along_shape)
for _op in (points, along):
    _op.set_attr("FInferType", _index_type)
    _op.set_attr("TOpPattern", OpPattern.INJECTIVE)
    _op.set_attr("TOpCost", "light")
