"""Symbolic sizes as values: an operator without inputs whose element is a size."""

from __future__ import annotations

from passkit import ast
from passkit.graph.node import Entry, Node
from passkit.graph.op import REQUIRED, register_op
from passkit.values.dtype import DType, dtype_of
from passkit.values.size import Extent

SIZE_VALUE = register_op(
    "size_value",
    num_inputs=0,
    num_outputs=1,
    params={"size": REQUIRED, "dtype": "int64"},
    doc="An extent, which may be symbolic, as a scalar.",
)
SIZE_VALUE.set_attr("FInferShape", lambda node: ())
SIZE_VALUE.set_attr("FInferType", lambda node: dtype_of(node.params["dtype"]))
SIZE_VALUE.set_attr("FElement", lambda node, index: _element(node))


def _element(node: Node) -> ast.Expr:
    """Return the size of a `size_value` node, converted to its dtype."""
    size = ast.size_of(node.params["size"])
    dtype = dtype_of(node.params["dtype"])
    return size if dtype.name == "int64" else ast.cast(size, dtype)


def size_value(size: Extent, dtype: DType) -> Entry:
    """Return an extent as a scalar of a dtype."""
    return SIZE_VALUE(size=size, dtype=dtype.name)  # type: ignore[no-any-return]
