"""Triangles and diagonals of matrices, which are the last two axes unless axes are named."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from passkit import ast
from passkit.errors import ShapeError
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.graph.op import Op, OpPattern
from passkit.ops.helpers import int_param, make, normalize_axis
from passkit.ops.movement import movement
from passkit.ops.shaping import move
from passkit.values.size import Extent, Shape

if TYPE_CHECKING:
    from passkit.ast import Expr
    from passkit.space.reads import Index, Reader


def _matrix_shape(node: Node, shape: Shape) -> Shape:
    if len(shape) < 2:
        raise ShapeError(
            f"{node.where} needs matrices in the last two axes, got {show_shape(shape)}"
        )
    int_param(node, "k")
    return shape


def triangle(name: str, keep: Callable[[Expr, int], Expr], doc: str) -> Op:
    """Register an operator that keeps elements by their diagonal and puts 0 elsewhere."""

    def element(node: Node, index: Index, read: Reader) -> Expr:
        value = read(*index)
        zero = ast.const(0, value.dtype)
        return ast.where(keep(index[-1] - index[-2], int_param(node, "k")), value, zero)

    op = movement(name, {"k": 0}, doc, OpPattern.INJECTIVE)
    op.set_attr("FInferShape", _matrix_shape)
    op.set_attr("FElement", element)
    op.set_attr("FGradient", lambda node, dy: [make(name, dy, k=node.params["k"])])
    return op


triangle("tril", lambda d, k: d <= k, "x with zeros above its k-th diagonal")
triangle("triu", lambda d, k: d >= k, "x with zeros below its k-th diagonal")


def _band_part(node: Node, x: Entry) -> Entry:
    """Source: TensorFlow's matrix_band_part: a negative number keeps the whole triangle."""
    low, high = int_param(node, "num_lower"), int_param(node, "num_upper")
    if low >= 0:
        x = make("triu", x, k=-low)
    if high >= 0:
        x = make("tril", x, k=high)
    return make("identity", x) if low < 0 and high < 0 else x


move("band_part", ("x",), _band_part,
     "x with zeros outside of num_lower diagonals below and num_upper above; a negative number "
     "keeps all on its side", {"num_lower": -1, "num_upper": -1}, aliases="matrix_band_part")


# Diagonals.


def _pair(node: Node, rank: int) -> tuple[int, int]:
    a, b = (normalize_axis(node, rank, node.params[k], k) for k in ("axis1", "axis2"))
    if a == b:
        raise ShapeError(f"{node.where} needs two axes, got axis {a} twice")
    return a, b


def _diagonal_shape(node: Node, shape: Shape) -> Shape:
    a, b = _pair(node, len(shape))
    k = int_param(node, "offset")
    n, m = shape[a] - max(-k, 0), shape[b] - max(k, 0)
    if isinstance(n, int) and isinstance(m, int):
        length: Extent = max(0, min(n, m))
    elif n == m:
        length = n
    else:
        raise ShapeError(
            f"{node.where} needs to know which of its axes is shorter, got {shape[a]} and "
            f"{shape[b]} with offset {k}"
        )
    return (*(d for j, d in enumerate(shape) if j not in (a, b)), length)


def _diagonal_element(node: Node, index: Index, read: Reader) -> Expr:
    a, b = _pair(node, len(index) + 1)
    k = int_param(node, "offset")
    rest = iter(index[:-1])
    at = {a: index[-1] + max(-k, 0), b: index[-1] + max(k, 0)}
    return read(*(at[j] if j in at else next(rest) for j in range(len(index) + 1)))


def _diagonal_gradient(node: Node, dy: Entry) -> list[Entry | None]:
    """A matrix with dy on its diagonal, cut to the input's, its axes back in their places."""
    shape = known_shape(node.inputs[0])
    a, b = _pair(node, len(shape))
    built = make("diag_embed", dy, offset=int_param(node, "offset"))
    side = known_shape(built)[-1]
    widths = ((0, 0),) * (len(shape) - 2) + ((0, shape[a] - side), (0, shape[b] - side))
    whole = make("pad_with", built, pad_width=widths)
    return [make("moveaxis", whole, source=(-2, -1), destination=(a, b))]


diagonal = movement(
    "diagonal",
    {"offset": 0, "axis1": -2, "axis2": -1},
    "the diagonal of each matrix, as the last axis; above the main one if offset is positive",
    OpPattern.INJECTIVE,
)
diagonal.set_attr("FInferShape", _diagonal_shape)
diagonal.set_attr("FElement", _diagonal_element)
diagonal.set_attr("FGradient", _diagonal_gradient)


def _embed_shape(node: Node, shape: Shape) -> Shape:
    if not shape:
        raise ShapeError(f"{node.where} needs vectors in the last axis, got a scalar")
    side = shape[-1] + abs(int_param(node, "offset"))
    return (*shape[:-1], side, side)


def _embed_element(node: Node, index: Index, read: Reader) -> Expr:
    k = int_param(node, "offset")
    value = read(*index[:-2], index[-2] - max(-k, 0) if k < 0 else index[-2])
    zero = ast.const(0, value.dtype)
    return ast.where(ast.equal(index[-1] - index[-2], k), value, zero)


embed = movement(
    "diag_embed",
    {"offset": 0},
    "square matrices with the last axis of x on a diagonal and zeros elsewhere",
    OpPattern.INJECTIVE,
)
embed.set_attr("FInferShape", _embed_shape)
embed.set_attr("FElement", _embed_element)
embed.set_attr(
    "FGradient", lambda node, dy: [make("diagonal", dy, offset=node.params["offset"])]
)


def _diag(node: Node, x: Entry) -> Entry:
    if x.ndim not in (1, 2):
        raise ShapeError(
            f"{node.where} needs a vector or a matrix, got {show_shape(known_shape(x))}; "
            f"diagonal and diag_embed take more axes"
        )
    return make("diagonal" if x.ndim == 2 else "diag_embed", x, offset=int_param(node, "k"))


def _trace(node: Node, x: Entry) -> Entry:
    params: dict[str, Any] = {k: node.params[k] for k in ("offset", "axis1", "axis2")}
    return make("reduce_sum", make("diagonal", x, **params), axis=-1)


move("diag", ("x",), _diag, "the k-th diagonal of a matrix, or a matrix with x as its diagonal",
     {"k": 0})
move("trace", ("x",), _trace, "the sum of the diagonal of each matrix",
     {"offset": 0, "axis1": -2, "axis2": -1})
