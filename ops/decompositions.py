"""Linear algebra of matrices in NumPy: factors, inverses, equations, determinants.

The operators work on the last two axes of float arrays, in float32 at least, and run as a step of
NumPy. Where a matrix must be symmetric, the mean of it and its transpose is taken. Their gradients
are in `matrix_gradients`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from passkit.errors import FeedError, GraphError, ShapeError
from passkit.graph.infer import agree, broadcast_shapes, show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.graph.op import Op, OpPattern, register_op
from passkit.ops.composites import composite
from passkit.ops.helpers import add_aliases, common_dtype, make
from passkit.ops.matrix_gradients import (
    cholesky_gradient,
    det_gradient,
    eigh_gradient,
    expm_gradient,
    inv_gradient,
    pinv_gradient,
    qr_gradient,
    slogdet_gradient,
    solve_gradient,
    svd_gradient,
    svdvals_gradient,
    triangular_solve_gradient,
)
from passkit.values.dtype import DType, dtype_of
from passkit.values.size import Extent, Shape


def matrix_operator(
    *,
    name: str,
    infer_shape: Callable[..., Any],
    compute: Callable[..., Any],
    gradient: Callable[..., Sequence[Entry | None]],
    doc: str,
    params: Mapping[str, Any] | None = None,
    num_inputs: int = 1,
    num_outputs: int = 1,
    infer_type: Callable[..., Any] | None = None,
    aliases: str = "",
) -> Op:
    """Register an operator on matrices that NumPy computes.

    Args:
        name: Name of the operator.
        infer_shape: FInferShape.
        compute: ``compute(node, *arrays)`` returns an array, or a tuple of ``num_outputs`` arrays,
            for arrays of 32 or 64 bits; its results are cast to the inferred dtypes.
        gradient: FGradient.
        doc: What the output is, for help and reference pages.
        params: Parameters with their defaults.
        num_inputs: Number of inputs.
        num_outputs: Number of outputs.
        infer_type: FInferType; None: inputs are floats of one dtype, and outputs have that.
        aliases: Further names, separated by spaces.

    Returns:
        The registered operator.

    Raises:
        RegistryError: If an operator of that name has other numbers of inputs or outputs, an
            attribute of it was set elsewhere, or an alias names another.
        ArgumentError: If ``name`` or an alias is no identifier.
    """
    op = register_op(name, num_inputs, num_outputs, params, doc)

    def compute_in_32_bits(node: Node, *arrays: Any) -> Any:
        """Call ``compute`` with 16-bit floats as float32, and cast the results back.

        ``arrays`` are the inputs of ``node``. Returns an array, or a tuple for several outputs, in
        the dtypes of the node; as computed where those are unknown.

        Raises:
            FeedError: If NumPy's linear algebra refuses the matrix, such as a singular one, or
                ``compute`` does.
        """
        narrow = arrays[0].dtype.itemsize < 4
        operands = [a.astype(np.float32) if narrow else a for a in arrays]
        try:
            computed = compute(node, *operands)
        except np.linalg.LinAlgError as error:
            raise FeedError(
                f"{node.where} cannot take the matrix that it was given: {error}; feed another"
            ) from None
        outputs = computed if isinstance(computed, tuple) else (computed,)
        cast = tuple(
            np.asarray(array, None if entry.dtype is None else entry.dtype.numpy)
            for array, entry in zip(outputs, node.entries, strict=True)
        )
        return cast if len(cast) > 1 else cast[0]

    op.set_attr("FInferShape", infer_shape)
    op.set_attr("FInferType", infer_type or _common_float_types(num_outputs))
    op.set_attr("FCompute", compute_in_32_bits)
    op.set_attr("FGradient", gradient)
    op.set_attr("TOpPattern", OpPattern.OPAQUE)
    op.set_attr("TOpCost", "expensive")
    op.set_attr("THostLibrary", "lapack")
    add_aliases(op, aliases)
    return op


def _common_float_types(num_outputs: int) -> Callable[..., Any]:
    """Return the FInferType of operators on floats of one dtype, which all outputs have.

    It raises DTypeError for other inputs, and returns a tuple of ``num_outputs`` dtypes, or the
    dtype itself for one.
    """
    infer_one = common_dtype("f")
    if num_outputs == 1:
        return infer_one
    return lambda node, *dtypes: (infer_one(node, *dtypes),) * num_outputs


# Shapes.


def matrix_shape(node: Node, shape: Shape) -> tuple[Shape, Extent, Extent]:
    """Return the batch axes, and the number of rows and of columns, of an input of shape ``shape``.

    Raises:
        ShapeError: If there are fewer than two axes; the error names ``node``.
    """
    if len(shape) < 2:
        raise ShapeError(
            f"{node.where} needs matrices in the last two axes, got {show_shape(shape)}; insert "
            f"expand_dims"
        )
    return shape[:-2], shape[-2], shape[-1]


def square_shape(node: Node, shape: Shape) -> tuple[Shape, Extent]:
    """Return the batch axes and the size of square matrices, an input of shape ``shape``.

    Where rows and columns differ symbolically, a guard that they are equal is recorded.

    Raises:
        ShapeError: If there are no matrices, or they are not square; the error names ``node``.
    """
    batch, rows, columns = matrix_shape(node, shape)
    if isinstance(rows, int) and isinstance(columns, int) and rows != columns:
        raise ShapeError(f"{node.where} needs square matrices, got {show_shape(shape)}")
    return batch, agree(node, rows, columns, "rows and columns")


def _smaller_extent(node: Node, rows: Extent, columns: Extent) -> Extent:
    """Return the smaller of two extents, the numbers of rows and columns.

    Errors name ``node``.

    Raises:
        ShapeError: If they differ and one is symbolic, so that the smaller one is not known.
    """
    if isinstance(rows, int) and isinstance(columns, int):
        return min(rows, columns)
    if rows == columns:
        return rows
    raise ShapeError(
        f"{node.where} needs to know which of {rows} rows and {columns} columns are fewer; give "
        f"the sizes"
    )


def _infer_same_shape(node: Node, shape: Shape) -> Shape:
    """Infer the shape, ``shape`` of the input.

    Raises: ShapeError, naming ``node``, if the rank is below 2 or matrices are not square.
    """
    square_shape(node, shape)
    return shape


def _infer_batch_shape(node: Node, shape: Shape) -> Shape:
    """Infer the shape, one number for each matrix of an input of ``shape``.

    Raises: ShapeError, naming ``node``, if the rank is below 2 or matrices are not square.
    """
    return square_shape(node, shape)[0]


# Inverses, determinants, eigenvalues.


def _symmetrize(x: Any) -> Any:
    """Return the symmetric part of matrices, (x + x.T) / 2, in NumPy."""
    return (x + np.swapaxes(x, -1, -2)) / 2


def _compute_cholesky(node: Node, x: Any) -> Any:
    """Compute cholesky with NumPy, of the symmetric part of matrices ``x``.

    The parameter ``upper`` of ``node`` transposes the factor.

    Raises: LinAlgError if a matrix is not positive definite.
    """
    lower = np.linalg.cholesky(_symmetrize(x))
    return np.swapaxes(lower, -1, -2) if node.params["upper"] else lower


matrix_operator(
    name="cholesky",
    params={"upper": False},
    infer_shape=_infer_same_shape,
    compute=_compute_cholesky,
    gradient=cholesky_gradient,
    doc="the lower triangular L with L @ transpose(L) = x of each symmetric matrix; transpose(L) "
    "with upper",
)
matrix_operator(
    name="det",
    infer_shape=_infer_batch_shape,
    compute=lambda node, x: np.linalg.det(x),
    gradient=det_gradient,
    doc="the determinant of each matrix: (…, n, n) -> (…)",
)
matrix_operator(
    name="inv",
    infer_shape=_infer_same_shape,
    compute=lambda node, x: np.linalg.inv(x),
    gradient=inv_gradient,
    doc="the inverse of each matrix",
)
matrix_operator(
    name="slogdet",
    num_outputs=2,
    infer_shape=lambda node, shape: (_infer_batch_shape(node, shape),) * 2,
    compute=lambda node, x: tuple(np.linalg.slogdet(x)),
    gradient=slogdet_gradient,
    doc="the sign of the determinant of each matrix, and the logarithm of its magnitude",
)
matrix_operator(
    name="eigh",
    num_outputs=2,
    infer_shape=lambda node, shape: (shape[:-1], _infer_same_shape(node, shape)),
    compute=lambda node, x: tuple(np.linalg.eigh(_symmetrize(x))),
    gradient=eigh_gradient,
    doc="the eigenvalues of symmetric matrices in increasing order, (…, n), and their "
    "eigenvectors as columns, (…, n, n)",
)
composite(
    name="eigvalsh",
    inputs=1,
    expand=lambda node, x: make("eigh", x)[0],
    doc="the eigenvalues of symmetric matrices in increasing order: (…, n, n) -> (…, n)",
)


# Orthogonal factors and singular values.


def _infer_qr_shape(node: Node, shape: Shape) -> tuple[Shape, Shape]:
    """Return the shapes of Q and R for an input of ``shape``.

    ``node`` has the parameter ``mode``.

    Raises:
        GraphError: If ``mode`` is neither 'reduced' nor 'complete'.
        ShapeError: If there are no matrices, or for 'reduced' which extent is smaller is not known.
    """
    batch, rows, columns = matrix_shape(node, shape)
    mode = node.params["mode"]
    if mode not in ("reduced", "complete"):
        raise GraphError(f"{node.where} needs 'reduced' or 'complete' as mode, got {mode!r}")
    inner = rows if mode == "complete" else _smaller_extent(node, rows, columns)
    return (*batch, rows, inner), (*batch, inner, columns)


def _infer_svd_shape(node: Node, shape: Shape) -> tuple[Shape, Shape, Shape]:
    """Return the shapes of U, S and Vh for an input of ``shape``.

    Square U and Vh with the parameter ``full_matrices`` of ``node``.

    Raises: ShapeError if the rank is below 2, or which of rows and columns are fewer is not known.
    """
    batch, rows, columns = matrix_shape(node, shape)
    k = _smaller_extent(node, rows, columns)
    left, right = (rows, columns) if node.params["full_matrices"] else (k, k)
    return (*batch, rows, left), (*batch, k), (*batch, right, columns)


def _infer_svdvals_shape(node: Node, shape: Shape) -> Shape:
    """Infer the shape: the smaller of rows and columns for each matrix.

    Raises: ShapeError, naming ``node``, if the rank is below 2, or the smaller one is not known.
    """
    batch, rows, columns = matrix_shape(node, shape)
    return (*batch, _smaller_extent(node, rows, columns))


def _check_rtol(node: Node, shape: Shape) -> tuple[Shape, Extent, Extent]:
    """Check the parameter ``rtol`` of ``node``; return batch axes, rows and columns of ``shape``.

    Raises:
        GraphError: If ``rtol`` is neither None nor a number of at least 0.
        ShapeError: If the rank is below 2.
    """
    rtol = node.params["rtol"]
    is_number = isinstance(rtol, (int, float)) and not isinstance(rtol, bool)
    if rtol is not None and not (is_number and rtol >= 0):
        raise GraphError(f"{node.where} needs a number >= 0 as rtol, or None, got {rtol!r}")
    return matrix_shape(node, shape)


def _infer_pinv_shape(node: Node, shape: Shape) -> Shape:
    """Infer the shape (…, columns, rows); check the parameter ``rtol`` of ``node``.

    Raises: GraphError if ``rtol`` is neither None nor a number >= 0, ShapeError for a rank below 2.
    """
    batch, rows, columns = _check_rtol(node, shape)
    return (*batch, columns, rows)


def _infer_rank_type(node: Node, dtype: DType) -> DType:
    """Infer the dtype of matrix_rank, int64.

    Raises: DTypeError, naming ``node``, if ``dtype``, the input's, is no float.
    """
    common_dtype("f")(node, dtype)
    return dtype_of("int64")


def _with_finite_input(node: Node, function: Callable[..., Any], x: Any, **params: Any) -> Any:
    """Return ``function(x, **params)``, which computes singular values of an array in NumPy.

    Raises:
        FeedError: If ``x`` is not finite: LAPACK does not terminate for some such matrices. The
            error names ``node``.
    """
    finite = np.isfinite(x)
    if not finite.all():
        raise FeedError(
            f"{node.where} cannot take the matrix that it was given: it holds {x[~finite][0]}, and "
            f"has no singular values; feed another"
        )
    return function(x, **params)


def _relative_tolerance(node: Node, x: Any) -> Any:
    """Return the part of the largest singular value up to which singular values count as 0.

    It is the parameter ``rtol`` of ``node``; if that is None, the larger of the numbers of rows and
    columns of the array ``x`` times the epsilon of its dtype.
    """
    rtol = node.params["rtol"]
    return max(x.shape[-2:]) * np.finfo(x.dtype).eps if rtol is None else rtol


def _compute_svd(node: Node, x: Any) -> Any:
    """Compute svd of an array of matrices with NumPy; return the arrays U, S and Vh.

    ``node`` has the parameter ``full_matrices``.

    Raises: FeedError if ``x`` is not finite.
    """
    full_matrices = node.params["full_matrices"]
    return tuple(_with_finite_input(node, np.linalg.svd, x, full_matrices=full_matrices))


def _compute_svdvals(node: Node, x: Any) -> Any:
    """Return the singular values of an array of matrices in decreasing order, by NumPy.

    Raises: FeedError, naming ``node``, if ``x`` is not finite.
    """
    return _with_finite_input(node, np.linalg.svd, x, compute_uv=False)


def _compute_pinv(node: Node, x: Any) -> Any:
    """Return the pseudo-inverse of each matrix of an array, by NumPy.

    Singular values up to the relative tolerance of ``node``, which has the parameter ``rtol``,
    times the largest count as 0.

    Raises: FeedError if ``x`` is not finite.
    """
    return _with_finite_input(node, np.linalg.pinv, x, rcond=_relative_tolerance(node, x))


def _compute_matrix_rank(node: Node, x: Any) -> Any:
    """Return the number of singular values of each matrix above the tolerance, as int64, by NumPy.

    It is 0 for empty matrices. ``node`` has the parameter ``rtol``.

    Raises: FeedError if ``x`` is not finite.
    """
    if min(x.shape[-2:]) == 0:
        return np.zeros(x.shape[:-2], np.int64)
    s = _compute_svdvals(node, x)
    return np.sum(s > _relative_tolerance(node, x) * s[..., :1], axis=-1)


matrix_operator(
    name="qr",
    num_outputs=2,
    params={"mode": "reduced"},
    infer_shape=_infer_qr_shape,
    compute=lambda node, x: tuple(np.linalg.qr(x, node.params["mode"])),
    gradient=qr_gradient,
    doc="Q with orthonormal columns and the upper triangular R with Q @ R = x, for each matrix",
)
matrix_operator(
    name="svd",
    num_outputs=3,
    params={"full_matrices": False},
    infer_shape=_infer_svd_shape,
    compute=_compute_svd,
    gradient=svd_gradient,
    doc="U, the singular values S in decreasing order, and Vh with U @ diag(S) @ Vh = x, for each "
    "matrix",
)
matrix_operator(
    name="svdvals",
    infer_shape=_infer_svdvals_shape,
    compute=_compute_svdvals,
    gradient=svdvals_gradient,
    doc="the singular values of each matrix in decreasing order: (…, m, n) -> (…, min(m, n))",
)
matrix_operator(
    name="pinv",
    params={"rtol": None},
    infer_shape=_infer_pinv_shape,
    compute=_compute_pinv,
    gradient=pinv_gradient,
    doc="the pseudo-inverse of each matrix; singular values below rtol times the largest count as "
    "0: (…, m, n) -> (…, n, m)",
)
matrix_operator(
    name="matrix_rank",
    params={"rtol": None},
    infer_shape=lambda node, shape: _check_rtol(node, shape)[0],
    infer_type=_infer_rank_type,
    compute=_compute_matrix_rank,
    gradient=lambda node, dy: [None],
    doc="the number of singular values of each matrix that exceed rtol times the largest, as int64",
)


# Linear equations.


def _infer_solve_shape(node: Node, a: Shape, b: Shape) -> Shape:
    """Return the shape of X in A @ X = B: (…, n, n), (…, n, k) of equal batches -> (…, n, k).

    ``a`` and ``b`` are the shapes of A and B. Errors name ``node``.

    Raises:
        ShapeError: If a rank is below 2, A is not square, or rows or batches differ.
    """
    batch, n = square_shape(node, a)
    other_batch, rows, columns = matrix_shape(node, b)
    agree(node, n, rows, "rows of both")
    pairs = list(zip(batch, other_batch, strict=False))
    if len(batch) != len(other_batch) or any(
        isinstance(i, int) and isinstance(j, int) and i != j for i, j in pairs
    ):
        raise ShapeError(
            f"{node.where} needs equal batches, got {show_shape(a)} and {show_shape(b)}; solve "
            f"broadcasts them"
        )
    common = [agree(node, i, j, f"dimension {k} of both") for k, (i, j) in enumerate(pairs)]
    return (*common, n, columns)


def _transpose_if(x: Any, condition: bool) -> Any:
    """Return matrices ``x``, an array; if ``condition``, a view with the last two axes swapped."""
    return np.swapaxes(x, -1, -2) if condition else x


def _compute_triangular_solve(node: Node, a: Any, b: Any) -> Any:
    """Compute matrix_triangular_solve of arrays a and b with NumPy.

    The parameter ``lower`` of ``node`` says which triangle of ``a`` is read, ``adjoint`` that the
    triangle is transposed.

    Raises: LinAlgError if it is singular.
    """
    triangle = np.tril(a) if node.params["lower"] else np.triu(a)
    return np.linalg.solve(_transpose_if(triangle, node.params["adjoint"]), b)


matrix_operator(
    name="matrix_solve",
    num_inputs=2,
    params={"adjoint": False},
    infer_shape=_infer_solve_shape,
    compute=lambda node, a, b: np.linalg.solve(_transpose_if(a, node.params["adjoint"]), b),
    gradient=solve_gradient,
    doc="X with A @ X = B for square matrices A = x and matrices B = y: (…, n, n), (…, n, k) -> "
    "(…, n, k)",
)
matrix_operator(
    name="matrix_triangular_solve",
    num_inputs=2,
    params={"lower": True, "adjoint": False},
    infer_shape=_infer_solve_shape,
    compute=_compute_triangular_solve,
    gradient=triangular_solve_gradient,
    doc="X with A @ X = B for triangular A = x, of which only one triangle is read, and matrices "
    "B = y: (…, n, n), (…, n, k) -> (…, n, k)",
)


def _broadcasting_solve(matrix_op: str) -> Callable[..., Entry]:
    """Return the FExpand of a solve whose batches broadcast, by an operator on equal batches.

    ``matrix_op`` is the name of that operator. A vector as right-hand side is one column, as in the
    array API standard.
    """

    def expand(node: Node, a: Entry, b: Entry) -> Entry:
        """Broadcast the batches of matrices ``a`` and right-hand sides ``b``; apply the operator.

        ``node`` has the parameters that are passed on. A vector ``b`` gives vectors.

        Raises: ShapeError if ``a`` is not square matrices, ``b`` is a scalar, batches do not
        broadcast, rows differ, or a rank is unknown.
        """
        is_vector = len(known_shape(b)) == 1
        b = make("expand_dims", b, axis=1) if is_vector else b
        shape_a, shape_b = known_shape(a), known_shape(b)
        matrix_shape(node, shape_a)
        batch = broadcast_shapes(node, (shape_a[:-2], shape_b[:-2]))
        if shape_a[:-2] != batch:
            a = make("broadcast_to", a, shape=(*batch, *shape_a[-2:]))
        if shape_b[:-2] != batch:
            b = make("broadcast_to", b, shape=(*batch, *shape_b[-2:]))
        solution = make(matrix_op, a, b, **node.params)
        return make("squeeze", solution, axis=-1) if is_vector else solution

    return expand


def _least_squares(node: Node, a: Entry, b: Entry) -> Entry:
    """Expand lstsq: the product of the pseudoinverse of ``a`` with ``b``, a vector or matrices.

    The parameter ``rtol`` of ``node`` is that of ``pinv``.

    Raises: GraphError if it is no number >= 0 or None; ShapeError if ``a`` is no matrix, the shapes
    do not fit, or a rank is unknown.
    """
    inverse = make("pinv", a, rtol=node.params["rtol"])
    return make("matvec" if len(known_shape(b)) == 1 else "matmul", inverse, b)


composite(
    name="solve",
    inputs=["a", "b"],
    params={"adjoint": False},
    expand=_broadcasting_solve("matrix_solve"),
    doc="x with a @ x = b for square matrices a and matrices or vectors b, whose leading axes "
    "broadcast",
)
composite(
    name="triangular_solve",
    inputs=["a", "b"],
    params={"lower": True, "adjoint": False},
    expand=_broadcasting_solve("matrix_triangular_solve"),
    doc="x with a @ x = b for triangular matrices a, of which only one triangle is read, and "
    "matrices or vectors b",
)
composite(
    name="lstsq",
    inputs=["a", "b"],
    params={"rtol": None},
    expand=_least_squares,
    doc="the shortest x that minimizes the length of a @ x - b: (…, m, n), (…, m, k) -> (…, n, k)",
)


# Norms of matrices.

FINITE_ORDERS = ("fro", "nuc", 1, -1, 2, -2)
"""The orders of matrix norms other than infinity and -infinity."""


def _matrix_norm(node: Node, x: Entry) -> Entry:
    """Expand to the norm of each matrix, as numpy.linalg.matrix_norm defines it.

    The parameter ``ord`` of ``node`` is the order, None for "fro"; ``keepdims`` keeps both axes
    with length 1.

    Raises:
        GraphError: If ``ord`` is none of "fro", "nuc", 1, -1, 2, -2, inf and -inf; a bool is none.
        ShapeError: If the rank is below 2 or unknown, it is not known which of rows and columns are
            fewer for "nuc", 2 and -2, or an axis is empty whose maximum or minimum would be taken.
    """
    order: Any = "fro" if node.params["ord"] is None else node.params["ord"]
    keepdims = node.params["keepdims"]
    batch, _, _ = matrix_shape(node, known_shape(x))
    if type(order) not in (str, int, float) or order not in (*FINITE_ORDERS, np.inf, -np.inf):
        raise GraphError(
            f"{node.where} needs one of {', '.join(map(repr, FINITE_ORDERS))}, inf and -inf as "
            f"ord, got {order!r}"
        )
    if order == "fro":
        return make("sqrt", make("reduce_sum", x * x, axis=(-2, -1), keepdims=keepdims))
    if order in ("nuc", 2, -2):
        reduction = {"nuc": "reduce_sum", 2: "reduce_max", -2: "reduce_min"}[order]
        norm = make(reduction, make("svdvals", x), axis=-1)
        return make("reshape", norm, shape=(*batch, 1, 1)) if keepdims else norm
    axis = -2 if abs(order) == 1 else -1
    sums = make("reduce_sum", make("abs", x), axis=axis, keepdims=True)
    reduction = "reduce_max" if order > 0 else "reduce_min"
    return make(reduction, sums, axis=(-2, -1), keepdims=keepdims)


composite(
    name="matrix_norm",
    inputs=1,
    params={"ord": None, "keepdims": False},
    expand=_matrix_norm,
    doc="the norm of each matrix, by default the Frobenius norm: (…, m, n) -> (…)",
)


# The exponential of a matrix.

PADE = (
    64764752532480000.0,
    32382376266240000.0,
    7771770303897600.0,
    1187353796428800.0,
    129060195264000.0,
    10559470521600.0,
    670442572800.0,
    33522128640.0,
    1323241920.0,
    40840800.0,
    960960.0,
    16380.0,
    182.0,
    1.0,
)
"""Coefficients of the [13/13] Padé approximation of exp, lowest power first."""

PADE_NORM = 5.37
"""The largest norm of a matrix for which that approximation is exact to double precision."""


def _compute_expm(node: Node, x: Any) -> Any:
    """Return the exponential of each matrix of an array, computed and returned in float64.

    An empty array is returned itself; if an element of it or a sum of magnitudes of a column is not
    finite, all of the result is NaN, in the dtype of ``x``. Source: Higham 2005, The scaling and
    squaring method for the matrix exponential revisited. ``node`` is not used.
    """
    if x.size == 0:
        return x
    wide = x.astype(np.float64)
    norm = float(np.abs(wide).sum(axis=-2).max())
    if not np.isfinite(norm):
        return np.full_like(x, np.nan)
    squarings = max(0, int(np.ceil(np.log2(norm / PADE_NORM)))) if norm > PADE_NORM else 0
    a = wide / 2.0**squarings
    one = np.broadcast_to(np.eye(x.shape[-1]), a.shape)
    a2 = a @ a
    a4, b = a2 @ a2, PADE
    a6 = a2 @ a4
    odd = a6 @ (b[13] * a6 + b[11] * a4 + b[9] * a2) + b[7] * a6 + b[5] * a4 + b[3] * a2
    u = a @ (odd + b[1] * one)
    v = a6 @ (b[12] * a6 + b[10] * a4 + b[8] * a2) + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * one
    out = np.linalg.solve(v - u, v + u)
    for _ in range(squarings):
        out = out @ out
    return out


matrix_operator(
    name="expm",
    aliases="matrix_exponential",
    infer_shape=_infer_same_shape,
    compute=_compute_expm,
    gradient=expm_gradient,
    doc="the exponential of each matrix",
)
