"""Triangles and diagonals of matrices, in the last two axes unless a parameter names axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from passkit import ast
from passkit.errors import ShapeError
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.graph.op import Op, OpPattern
from passkit.ops.helpers import int_param, make, normalize_axis
from passkit.ops.movement import register_movement
from passkit.ops.movement_composites import movement_composite
from passkit.values.size import Extent, Shape

if TYPE_CHECKING:
    from passkit.analysis.accesses import Index, Reader
    from passkit.ast import Expr


# Triangles.


def _triangle_shape(node: Node, shape: Shape) -> Shape:
    """Infer the shape, ``shape`` of the input.

    Raises: ShapeError if the rank is below 2, or the parameter ``k`` of ``node`` is no int.
    """
    if len(shape) < 2:
        raise ShapeError(
            f"{node.where} needs matrices in the last two axes, got {show_shape(shape)}"
        )
    int_param(node, "k")
    return shape


def register_triangle(name: str, is_in_triangle: Callable[[Expr, int], Expr], doc: str) -> Op:
    """Register an operator that replaces elements outside of a triangle by zeros.

    Args:
        name: The operator's name.
        is_in_triangle: Whether diagonal d (column minus row) belongs to the triangle, for the
            parameter ``k``.
        doc: The operator's documentation.

    Returns:
        The registered operator.

    Raises:
        RegistryError: If an operator of that name has another number of inputs, or an attribute of
            it was set elsewhere.
        ArgumentError: If ``name`` is no identifier.
    """

    def element(node: Node, index: Index, read: Reader) -> Expr:
        """Return the input's element inside of the triangle, else 0.

        ``index`` has an expression for each axis, the last two are row and column; ``read`` reads
        the input.

        Raises: ShapeError if the parameter ``k`` of ``node`` is no int.
        """
        value = read(*index)
        zero = ast.const(0, value.dtype)
        diagonal = index[-1] - index[-2]
        return ast.where(is_in_triangle(diagonal, int_param(node, "k")), value, zero)

    op = register_movement(name, params={"k": 0}, doc=doc, pattern=OpPattern.INJECTIVE)
    op.set_attr("FInferShape", _triangle_shape)
    op.set_attr("FElement", element)
    op.set_attr("FGradient", lambda node, dy: [make(name, dy, k=node.params["k"])])
    return op


def _band_part(node: Node, x: Entry) -> Entry:
    """Expand band_part to triangles; a negative number of diagonals keeps all on its side.

    ``node`` has the parameters ``num_lower`` and ``num_upper``. If both are negative, it is an
    identity. Source: tf.linalg.band_part.

    Raises: ShapeError if one is no int, or the rank of ``x`` is below 2 and one not negative.
    """
    low, high = int_param(node, "num_lower"), int_param(node, "num_upper")
    if low >= 0:
        x = make("triu", x, k=-low)
    if high >= 0:
        x = make("tril", x, k=high)
    return make("identity", x) if low < 0 and high < 0 else x


register_triangle(
    "tril",
    is_in_triangle=lambda d, k: d <= k,
    doc="x with zeros above the k-th diagonal of each matrix",
)
register_triangle(
    "triu",
    is_in_triangle=lambda d, k: d >= k,
    doc="x with zeros below the k-th diagonal of each matrix",
)
movement_composite(
    "band_part",
    inputs=["x"],
    expand=_band_part,
    doc="x with zeros outside of num_lower diagonals below the main one and num_upper above it; a "
    "negative number keeps all on that side",
    params={"num_lower": -1, "num_upper": -1},
    aliases="matrix_band_part",
)


# diagonal: from matrices to their diagonals.


def _matrix_axes(node: Node, rank: int) -> tuple[int, int]:
    """Return the parameters ``axis1`` and ``axis2`` of ``node`` as ints from 0 to below ``rank``.

    Raises: ShapeError if they are equal, no ints or out of range.
    """
    a, b = (normalize_axis(node, rank, node.params[k], k) for k in ("axis1", "axis2"))
    if a == b:
        raise ShapeError(f"{node.where} needs two axes, got axis {a} twice")
    return a, b


def _diagonal_shape(node: Node, shape: Shape) -> Shape:
    """Infer the shape: the other axes, then the length of the diagonal, 0 if it lies outside.

    Raises:
        ShapeError: If it is not known which of the two axes is shorter, they are equal, no ints or
            out of range, or the parameter ``offset`` of ``node`` is no int.
    """
    a, b = _matrix_axes(node, len(shape))
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
    """Return the input's element on the diagonal ``offset``, at the last of ``index``.

    The others of these expressions are those of the axes other than ``axis1`` and ``axis2``;
    ``read`` reads the input. ``node`` has the parameters ``axis1``, ``axis2`` and ``offset``.

    Raises: ShapeError if a parameter is invalid, DTypeError if int64 cannot hold ``offset``.
    """
    a, b = _matrix_axes(node, len(index) + 1)
    k = int_param(node, "offset")
    rest = iter(index[:-1])
    positions = {a: index[-1] + max(-k, 0), b: index[-1] + max(k, 0)}
    return read(*(positions[j] if j in positions else next(rest) for j in range(len(index) + 1)))


def _diagonal_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradient of the input: dy on the diagonal of matrices of its shape, else 0.

    ``node`` is the forward node, with the parameters ``axis1``, ``axis2`` and ``offset``; ``dy`` is
    the gradient of its output.

    Raises: ShapeError if a rank is unknown, or a parameter is invalid.
    """
    shape = known_shape(node.inputs[0])
    a, b = _matrix_axes(node, len(shape))
    square = make("diag_embed", dy, offset=int_param(node, "offset"))
    side = known_shape(square)[-1]
    widths = ((0, 0),) * (len(shape) - 2) + ((0, shape[a] - side), (0, shape[b] - side))
    matrices = make("pad_with", square, pad_width=widths)
    return [make("moveaxis", matrices, source=(-2, -1), destination=(a, b))]


diagonal = register_movement(
    "diagonal",
    params={"offset": 0, "axis1": -2, "axis2": -1},
    doc="the diagonal offset of the matrices in axis1 and axis2, as the last axis of the result",
    pattern=OpPattern.INJECTIVE,
)
diagonal.set_attr("FInferShape", _diagonal_shape)
diagonal.set_attr("FElement", _diagonal_element)
diagonal.set_attr("FGradient", _diagonal_gradient)


# diag_embed: from vectors to matrices with them on a diagonal.


def _diag_embed_shape(node: Node, shape: Shape) -> Shape:
    """Infer the shape: square matrices of ``shape[-1]`` + |offset| rows.

    Raises: ShapeError if the input is a scalar, or the parameter ``offset`` of ``node`` no int.
    """
    if not shape:
        raise ShapeError(f"{node.where} needs vectors in the last axis, got a scalar")
    side = shape[-1] + abs(int_param(node, "offset"))
    return (*shape[:-1], side, side)


def _diag_embed_element(node: Node, index: Index, read: Reader) -> Expr:
    """Return the vector's element on the diagonal ``offset``, else 0.

    ``index`` has an expression for each axis, the last two are row and column; ``read`` reads the
    vectors, valid on the diagonal only. ``node`` has the parameter ``offset``.

    Raises: ShapeError if that is no int.
    """
    k = int_param(node, "offset")
    value = read(*index[:-2], index[-2] - max(-k, 0) if k < 0 else index[-2])
    zero = ast.const(0, value.dtype)
    return ast.where(ast.equal(index[-1] - index[-2], k), value, zero)


diag_embed = register_movement(
    "diag_embed",
    params={"offset": 0},
    doc="square matrices of zeros with the last axis of x on the diagonal offset: (…, n) -> (…, "
    "m, m) with m = n + |offset|",
    pattern=OpPattern.INJECTIVE,
)
diag_embed.set_attr("FInferShape", _diag_embed_shape)
diag_embed.set_attr("FElement", _diag_embed_element)
diag_embed.set_attr(
    "FGradient", lambda node, dy: [make("diagonal", dy, offset=node.params["offset"])]
)


# diag and trace.


def _diag(node: Node, x: Entry) -> Entry:
    """Expand diag: the diagonal ``k`` of a matrix, or a matrix with a vector as that diagonal.

    Raises: ShapeError if ``x`` is neither a vector nor a matrix, the parameter ``k`` of ``node`` is
    no int, or the rank is unknown.
    """
    if x.ndim not in (1, 2):
        raise ShapeError(
            f"{node.where} needs a vector or a matrix, got {show_shape(known_shape(x))}; "
            f"diagonal and diag_embed take more axes"
        )
    return make("diagonal" if x.ndim == 2 else "diag_embed", x, offset=int_param(node, "k"))


def _trace(node: Node, x: Entry) -> Entry:
    """Expand trace: the sum of the diagonal ``offset`` of the axes ``axis1`` and ``axis2``.

    ``node`` has these parameters. A diagonal outside of the matrix gives 0.

    Raises: ShapeError if the axes are equal, no ints or out of range, or ``offset`` is no int;
    DTypeError for bools and complex numbers, which have no sum.
    """
    params: dict[str, Any] = {k: node.params[k] for k in ("offset", "axis1", "axis2")}
    return make("reduce_sum", make("diagonal", x, **params), axis=-1)


movement_composite(
    "diag",
    inputs=["x"],
    expand=_diag,
    doc="the k-th diagonal of a matrix x; or a matrix of zeros with the vector x as its k-th "
    "diagonal",
    params={"k": 0},
)
movement_composite(
    "trace",
    inputs=["x"],
    expand=_trace,
    doc="the sum of the diagonal offset of the matrices in axis1 and axis2",
    params={"offset": 0, "axis1": -2, "axis2": -1},
)
