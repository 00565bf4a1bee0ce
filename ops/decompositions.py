"""Linear algebra of matrices in NumPy: factors, inverses, equations, determinants.

Each works on the last two axes of float arrays, in float32 at least, and runs as a step of NumPy.
Where a matrix must be symmetric, the mean of it and its transpose is taken. Gradients are in
`matrix_gradients`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from passkit.errors import FeedError, GraphError, ShapeError
from passkit.graph.infer import agree, broadcast_shapes, show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.graph.op import Op, OpPattern, register_op
from passkit.ops.composites import composite
from passkit.ops.helpers import add_aliases, common_dtype, make
from passkit.ops.matrix_gradients import RULES
from passkit.values.dtype import dtype_of
from passkit.values.size import Extent, Shape


def decomposition(
    name: str,
    shape: Callable[..., Any],
    compute: Callable[..., Any],
    doc: str,
    params: dict[str, Any] | None = None,
    *,
    inputs: int = 1,
    results: int = 1,
    types: Callable[..., Any] | None = None,
) -> Op:
    """Register ``name``: ``compute(node, *arrays)`` gets arrays of 32 or 64 bits."""
    op = register_op(name, inputs, results, params, doc)

    def run(node: Node, *arrays: Any) -> Any:
        narrow = arrays[0].dtype.itemsize < 4
        given = [a.astype(np.float32) if narrow else a for a in arrays]
        try:
            found = compute(node, *given)
        except np.linalg.LinAlgError as error:
            raise FeedError(
                f"{node.where} cannot take the matrix that it was given: {error}; feed another"
            ) from None
        many = found if isinstance(found, tuple) else (found,)
        out = [np.asarray(x) for x in many]
        wanted = [e.dtype.numpy for e in node.entries if e.dtype is not None]
        cast = tuple(x.astype(d, copy=False) for x, d in zip(out, wanted, strict=True))
        return cast if len(cast) > 1 else cast[0]

    op.set_attr("FInferShape", shape)
    op.set_attr("FInferType", types or _alike(results))
    op.set_attr("FCompute", run)
    op.set_attr("FGradient", RULES[name])
    op.set_attr("TOpPattern", OpPattern.OPAQUE)
    op.set_attr("TOpCost", "expensive")
    op.set_attr("THostLibrary", "lapack")
    return op


def _alike(results: int) -> Callable[..., Any]:
    one = common_dtype("f")
    if results == 1:
        return one
    return lambda node, *dtypes: (one(node, *dtypes),) * results


def matrices(node: Node, shape: Shape) -> tuple[Shape, Extent, Extent]:
    """Batch, rows and columns. Raises: ShapeError where there are no matrices."""
    if len(shape) < 2:
        raise ShapeError(
            f"{node.where} needs matrices in the last two axes, got {show_shape(shape)}; insert "
            f"expand_dims"
        )
    return shape[:-2], shape[-2], shape[-1]


def square(node: Node, shape: Shape) -> tuple[Shape, Extent]:
    """Batch and size of square matrices. Raises: ShapeError where they are not square."""
    batch, rows, columns = matrices(node, shape)
    if isinstance(rows, int) and isinstance(columns, int) and rows != columns:
        raise ShapeError(f"{node.where} needs square matrices, got {show_shape(shape)}")
    return batch, agree(node, rows, columns, "rows and columns")


def _least(node: Node, rows: Extent, columns: Extent) -> Extent:
    """The smaller of two extents. Raises: ShapeError where that is not known."""
    if isinstance(rows, int) and isinstance(columns, int):
        return min(rows, columns)
    if rows == columns:
        return rows
    raise ShapeError(
        f"{node.where} needs to know which of {rows} rows and {columns} columns are fewer; give "
        f"the sizes"
    )


def _symmetric(x: Any) -> Any:
    return (x + np.swapaxes(x, -1, -2)) / 2


def _same(node: Node, shape: Shape) -> Shape:
    square(node, shape)
    return shape


def _batch(node: Node, shape: Shape) -> Shape:
    return square(node, shape)[0]


def _cholesky(node: Node, x: Any) -> Any:
    lower = np.linalg.cholesky(_symmetric(x))
    return np.swapaxes(lower, -1, -2) if node.params["upper"] else lower


decomposition(
    "cholesky",
    _same,
    _cholesky,
    "the lower triangle L with L @ L.T = x, or its transpose",
    {"upper": False},
)
decomposition("det", _batch, lambda node, x: np.linalg.det(x), "the determinant of each matrix")
decomposition("inv", _same, lambda node, x: np.linalg.inv(x), "the inverse of each matrix")
decomposition(
    "slogdet",
    lambda node, s: (_batch(node, s),) * 2,
    lambda node, x: tuple(np.linalg.slogdet(x)),
    "the sign of the determinant, and the logarithm of its magnitude",
    results=2,
)
decomposition(
    "eigh",
    lambda node, s: (s[:-1], _same(node, s)),
    lambda node, x: tuple(np.linalg.eigh(_symmetric(x))),
    "eigenvalues of symmetric matrices, rising, and eigenvectors as columns",
    results=2,
)


def _qr_shape(node: Node, shape: Shape) -> tuple[Shape, Shape]:
    batch, rows, columns = matrices(node, shape)
    mode = node.params["mode"]
    if mode not in ("reduced", "complete"):
        raise GraphError(f"{node.where} needs 'reduced' or 'complete' as mode, got {mode!r}")
    inner = rows if mode == "complete" else _least(node, rows, columns)
    return (*batch, rows, inner), (*batch, inner, columns)


decomposition(
    "qr",
    _qr_shape,
    lambda node, x: tuple(np.linalg.qr(x, node.params["mode"])),
    "Q with orthonormal columns and the upper triangle R: Q @ R = x",
    {"mode": "reduced"},
    results=2,
)


def _singular(node: Node, compute: Callable[..., Any], x: Any, **how: Any) -> Any:
    """A function of singular values, for finite matrices: LAPACK's never ends for some others."""
    finite = np.isfinite(x)
    if not finite.all():
        raise FeedError(
            f"{node.where} cannot take the matrix that it was given: it holds {x[~finite][0]}, and "
            f"has no singular values; feed another"
        )
    return compute(x, **how)


def _svd_shape(node: Node, shape: Shape) -> tuple[Shape, Shape, Shape]:
    batch, rows, columns = matrices(node, shape)
    k = _least(node, rows, columns)
    full = node.params["full_matrices"]
    left, right = (rows, columns) if full else (k, k)
    return (*batch, rows, left), (*batch, k), (*batch, right, columns)


decomposition(
    "svd",
    _svd_shape,
    lambda node, x: tuple(
        _singular(node, np.linalg.svd, x, full_matrices=node.params["full_matrices"])
    ),
    "U, S and Vh with U @ diag(S) @ Vh = x; S falls",
    {"full_matrices": False},
    results=3,
)


def _values_shape(node: Node, shape: Shape) -> Shape:
    batch, rows, columns = matrices(node, shape)
    return (*batch, _least(node, rows, columns))


decomposition(
    "svdvals",
    _values_shape,
    lambda node, x: _singular(node, np.linalg.svd, x, compute_uv=False),
    "the singular values of each matrix, falling",
)
composite("eigvalsh", 1, lambda node, x: make("eigh", x)[0],
          "the eigenvalues of symmetric matrices, rising")  # fmt: skip


def _pinv_shape(node: Node, shape: Shape) -> Shape:
    batch, rows, columns = _tolerant(node, shape)
    return (*batch, columns, rows)


def _tolerant(node: Node, shape: Shape) -> tuple[Shape, Extent, Extent]:
    """As `matrices`. Raises: GraphError for a tolerance that is no number of at least 0."""
    given = node.params["rtol"]
    number = isinstance(given, (int, float)) and not isinstance(given, bool)
    if given is not None and not (number and given >= 0):
        raise GraphError(f"{node.where} needs a number >= 0 as rtol, or None, got {given!r}")
    return matrices(node, shape)


def _tolerance(node: Node, x: Any) -> Any:
    """What counts as zero beside the largest singular value."""
    given = node.params["rtol"]
    return max(x.shape[-2:]) * np.finfo(x.dtype).eps if given is None else given


decomposition(
    "pinv",
    _pinv_shape,
    lambda node, x: _singular(node, np.linalg.pinv, x, rcond=_tolerance(node, x)),
    "the pseudo-inverse of each matrix; singular values below rtol times the largest are zero",
    {"rtol": None},
)


def _rank(node: Node, x: Any) -> Any:
    if min(x.shape[-2:]) == 0:
        return np.zeros(x.shape[:-2], np.int64)
    s = _singular(node, np.linalg.svd, x, compute_uv=False)
    return np.sum(s > _tolerance(node, x) * s[..., :1], axis=-1)


def _rank_type(node: Node, dtype: Any) -> Any:
    common_dtype("f")(node, dtype)
    return dtype_of("int64")


decomposition(
    "matrix_rank",
    lambda node, s: _tolerant(node, s)[0],
    _rank,
    "how many singular values are above rtol times the largest",
    {"rtol": None},
    types=_rank_type,
)


def _solve_shape(node: Node, a: Shape, b: Shape) -> Shape:
    """Shapes: (…, n, n), (…, n, k) of equal batches -> (…, n, k)."""
    batch, n = square(node, a)
    other, rows, columns = matrices(node, b)
    agree(node, n, rows, "rows of both")
    pairs = list(zip(batch, other, strict=False))
    if len(batch) != len(other) or any(
        isinstance(i, int) and isinstance(j, int) and i != j for i, j in pairs
    ):
        raise ShapeError(
            f"{node.where} needs equal batches, got {show_shape(a)} and {show_shape(b)}; solve "
            f"broadcasts them"
        )
    shared = [agree(node, i, j, f"dimension {k} of both") for k, (i, j) in enumerate(pairs)]
    return (*shared, n, columns)


def _flipped(x: Any, flip: bool) -> Any:
    return np.swapaxes(x, -1, -2) if flip else x


def _triangle(node: Node, a: Any, b: Any) -> Any:
    own = np.tril(a) if node.params["lower"] else np.triu(a)
    return np.linalg.solve(_flipped(own, node.params["adjoint"]), b)


decomposition(
    "matrix_solve",
    _solve_shape,
    lambda node, a, b: np.linalg.solve(_flipped(a, node.params["adjoint"]), b),
    "X with A @ X = B, or A.T @ X = B, for matrices B",
    {"adjoint": False},
    inputs=2,
)
decomposition(
    "matrix_triangular_solve",
    _solve_shape,
    _triangle,
    "X with A @ X = B, or A.T @ X = B, of a triangle of A; the rest of it is not read",
    {"lower": True, "adjoint": False},
    inputs=2,
)


def _solving(core: str) -> Callable[..., Entry]:
    """Batches broadcast; a vector B is a column, as in the array API."""

    def expand(node: Node, a: Entry, b: Entry) -> Entry:
        column = len(known_shape(b)) == 1
        b = make("expand_dims", b, axis=1) if column else b
        shape_a, shape_b = known_shape(a), known_shape(b)
        matrices(node, shape_a)
        batch = broadcast_shapes(node, (shape_a[:-2], shape_b[:-2]))
        if shape_a[:-2] != batch:
            a = make("broadcast_to", a, shape=(*batch, *shape_a[-2:]))
        if shape_b[:-2] != batch:
            b = make("broadcast_to", b, shape=(*batch, *shape_b[-2:]))
        out = make(core, a, b, **node.params)
        return make("squeeze", out, axis=-1) if column else out

    return expand


composite("solve", ["a", "b"], _solving("matrix_solve"), "x with a @ x = b; b may be a vector",
          {"adjoint": False})  # fmt: skip
composite(
    "triangular_solve", ["a", "b"], _solving("matrix_triangular_solve"),
    "x with a @ x = b, of a triangle of a; b may be a vector", {"lower": True, "adjoint": False},
)  # fmt: skip


def _lstsq(node: Node, a: Entry, b: Entry) -> Entry:
    inverse = make("pinv", a, rtol=node.params["rtol"])
    return make("matvec" if len(known_shape(b)) == 1 else "matmul", inverse, b)


composite("lstsq", ["a", "b"], _lstsq, "the shortest x for which a @ x is nearest to b",
          {"rtol": None})  # fmt: skip
NORMS = ("fro", "nuc", 1, -1, 2, -2)
"""The norms of matrices, beside those of infinite order."""


def _matrix_norm(node: Node, x: Entry) -> Entry:
    """Source: numpy.linalg.matrix_norm."""
    order: Any = "fro" if node.params["ord"] is None else node.params["ord"]
    keep = {"keepdims": node.params["keepdims"]}
    batch, _, _ = matrices(node, known_shape(x))
    if type(order) not in (str, int, float) or order not in (*NORMS, np.inf, -np.inf):
        raise GraphError(
            f"{node.where} needs one of {', '.join(map(repr, NORMS))}, inf and -inf as ord, got "
            f"{order!r}"
        )
    if order == "fro":
        return make("sqrt", make("reduce_sum", x * x, axis=(-2, -1), **keep))
    if order in ("nuc", 2, -2):
        values = make("svdvals", x)
        fold = {"nuc": "reduce_sum", 2: "reduce_max", -2: "reduce_min"}[order]
        out = make(fold, values, axis=-1)
        return make("reshape", out, shape=(*batch, 1, 1)) if keep["keepdims"] else out
    axis = -2 if abs(order) == 1 else -1
    sums = make("reduce_sum", make("abs", x), axis=axis, keepdims=True)
    return make("reduce_max" if order > 0 else "reduce_min", sums, axis=(-2, -1), **keep)


composite("matrix_norm", 1, _matrix_norm, "the norm of each matrix, by default that of Frobenius",
          {"ord": None, "keepdims": False})  # fmt: skip

PADE = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0,
    129060195264000.0, 10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0,
    40840800.0, 960960.0, 16380.0, 182.0, 1.0,
)  # fmt: skip


def _expm(node: Node, x: Any) -> Any:
    """Source: Higham 2005, The scaling and squaring method for the matrix exponential, [13/13]."""
    if x.size == 0:
        return x
    wide = x.astype(np.float64)
    norm = float(np.abs(wide).sum(axis=-2).max())
    if not np.isfinite(norm):
        return np.full_like(x, np.nan)
    squarings = max(0, int(np.ceil(np.log2(norm / 5.37)))) if norm > 5.37 else 0
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


expm = decomposition("expm", _same, _expm, "the exponential of each matrix")
add_aliases(expm, "matrix_exponential")
